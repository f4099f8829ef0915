"""Field types of the spec: strict counts, quantities with units, and the base that every section shares."""

from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

from hops.errors import UnitError
from hops.units import BANDWIDTH, BYTES, COMPUTE, TIME, Dimension, parse_bytes


class Section(BaseModel):
    """A frozen part of a spec. Unknown keys are errors; NaN and infinities are, too."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, ser_json_inf_nan="strings")


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
