"""Field types of the spec: strict counts, quantities with units, and the base that every section shares."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from hops.errors import UnitError
from hops.units import BANDWIDTH, BYTES, COMPUTE, TIME, Dimension, parse_bytes, shown


class Section(BaseModel):
    """A frozen part of a spec. Unknown keys are errors; NaN and infinities are, too."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def problem(what: str, fix: str = "") -> PydanticCustomError:
    """The error a validator raises: what is wrong (with what was got and expected), and the fix."""
    return PydanticCustomError("hops", "{what}{fix}", {"what": what, "fix": f"; {fix}" if fix else ""})


def _reader(parse: Callable[[object], float]) -> BeforeValidator:
    def read(value: object) -> float:
        try:
            return parse(value)
        except UnitError as error:
            raise problem(str(error)) from None

    return BeforeValidator(read)


def _quantity_schema(dimension: Dimension) -> WithJsonSchema:
    number = r"[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?"
    units = "|".join(unit.replace(".", r"\.") for unit in dimension.scales)
    examples = dimension.example.split(" or ")
    return WithJsonSchema({"type": "string", "pattern": rf"^\s*{number}\s*({units})\s*$", "examples": examples})


def _writer(dimension: Dimension) -> PlainSerializer:
    return PlainSerializer(dimension.exact, return_type=str)


Bytes = Annotated[int, _reader(parse_bytes), _writer(BYTES), _quantity_schema(BYTES)]
Bandwidth = Annotated[float, _reader(BANDWIDTH.parse), Field(gt=0), _writer(BANDWIDTH), _quantity_schema(BANDWIDTH)]
Seconds = Annotated[float, _reader(TIME.parse), _writer(TIME), _quantity_schema(TIME)]
FlopRate = Annotated[float, _reader(COMPUTE.parse), Field(gt=0), _writer(COMPUTE), _quantity_schema(COMPUTE)]

Flag = Annotated[bool, Strict()]
Index = Annotated[int, Strict(), Field(ge=0, le=1_000_000)]
Count = Annotated[int, Strict(), Field(ge=1, le=1_000_000)]
Size = Annotated[int, Strict(), Field(ge=1, le=1_000_000_000)]
Seed = Annotated[int, Strict(), Field(ge=0, le=2**63 - 1)]
Number = Annotated[float, Strict(), Field(ge=0, le=1e30)]
Factor = Annotated[float, Strict(), Field(gt=0, le=1e6)]
Probability = Annotated[float, Strict(), Field(ge=0, le=1)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


def named(value: object, key: str = "name") -> object:
    """The long form of a short one: text stands for `{name: text}`."""
    return {key: value} if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a document is read in: the folder of its files, and the names it may use (None: not checked)."""

    folder: str
    devices: tuple[str, ...] | None = None
    interconnects: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None


def beside(path: str, info: ValidationInfo) -> str:
    """The absolute path of a file that a spec names; relative ones are taken from the spec's own folder."""
    folder = info.context.folder if isinstance(info.context, Surroundings) else "."
    return os.path.normpath(Path(folder).absolute() / path)


def reason(error: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be read, in words."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8"
    return {
        FileNotFoundError: "there is no such file",
        IsADirectoryError: "it is a folder",
        PermissionError: "reading it is not permitted",
    }.get(type(error), str(error.strerror or error))


InputFile = Annotated[Name, AfterValidator(beside)]


def one_of(value: str, known: tuple[str, ...] | None, what: str, where: str) -> str:
    """Check a name against those known, if they are. `where` says where the known ones are listed."""
    if known is None or value in known:
        return value
    near = get_close_matches(value.lower(), known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise problem(
        f"unknown {what}, got {shown(value)}, expected one that {where} lists", f"{hint}known are {', '.join(known)}"
    )
