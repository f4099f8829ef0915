"""Field types of files: strict counts, quantities with units, and the base that sections share."""

from collections.abc import Callable
from typing import Annotated, TypeAlias, TypeVar, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from hops.errors import UnitError
from hops.units import BANDWIDTH, BYTES, COMPUTE, TIME, Dimension, parse_bytes

T = TypeVar("T")


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
    title = dimension.name.split(" ", 1)[1]
    return WithJsonSchema(
        {"type": "string", "title": title, "pattern": rf"^\s*{number}\s*({units})\s*$", "examples": examples}
    )


def _writer(dimension: Dimension) -> PlainSerializer:
    return PlainSerializer(dimension.exact, return_type=str)


def _plain_number(value: float) -> float:
    """12 and not 12.0."""
    return int(value) if float(value).is_integer() else value


def quantity(dimension: Dimension) -> BeforeValidator:
    """The reader of a field that has a unit of its own."""
    return _reader(dimension.parse)


Bytes = Annotated[int, _reader(parse_bytes), _writer(BYTES), _quantity_schema(BYTES)]
Bandwidth = Annotated[float, _reader(BANDWIDTH.parse), Field(gt=0), _writer(BANDWIDTH), _quantity_schema(BANDWIDTH)]
Seconds = Annotated[float, _reader(TIME.parse), _writer(TIME), _quantity_schema(TIME)]
FlopRate = Annotated[float, _reader(COMPUTE.parse), Field(gt=0), _writer(COMPUTE), _quantity_schema(COMPUTE)]

Flag = Annotated[bool, Strict()]
Index = Annotated[int, Strict(), Field(ge=0, le=1_000_000)]
Count = Annotated[int, Strict(), Field(ge=1, le=1_000_000)]
Size = Annotated[int, Strict(), Field(ge=1, le=1_000_000_000)]
Seed = Annotated[int, Strict(), Field(ge=0, le=2**63 - 1)]
Instant = Annotated[int, Strict(), Field(ge=0, le=1 << 62)]  # nanoseconds
Number = Annotated[float, Strict(), Field(ge=0, le=1e30), PlainSerializer(_plain_number)]
Positive = Annotated[float, Strict(), Field(gt=0, le=1e30)]
Probability = Annotated[float, Strict(), Field(ge=0, le=1)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Several: TypeAlias = Annotated[tuple[T, ...], Field(min_length=1)]  # a list that is not empty


def short_for(key: str, section: type[Section]) -> BeforeValidator:
    """Let text stand for `{key: text}`, in documents and in their JSON Schema."""

    def lengthen(value: object) -> object:
        return {key: value} if isinstance(value, str) else value

    return BeforeValidator(lengthen, json_schema_input_type=Union[str, section])  # noqa: UP007 (a value, not a type)
