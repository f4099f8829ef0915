"""Distributions as a spec writes them: a bare `10 ms`, or `{distribution: normal, mean: 10 ms, std: 1 ms}`."""

from abc import abstractmethod
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, Union

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from hops import distributions as draws
from hops.decode.decode import read_text
from hops.decode.quantities import Number, Seconds, Section, problem
from hops.errors import UsageError
from hops.spec.context import from_folder

Q = TypeVar("Q", bound=float)
Alpha = Annotated[float, Field(strict=True, gt=1, le=1000)]
WeibullShape = Annotated[float, Field(strict=True, ge=0.05, le=1000)]


class Form(Section):
    """Written form of one distribution; `build` gives the one that draws."""

    distribution: str

    @abstractmethod
    def build(self) -> draws.Distribution:
        """The distribution to sample from, in seconds (times) or plain numbers (factors)."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Give forms of times and of factors the description of the form itself."""
        super().__pydantic_init_subclass__(**kwargs)
        if cls.__doc__ is None:
            cls.__doc__ = cls.__mro__[1].__doc__

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """A short name for messages and JSON Schema."""
        return f"{cls.__name__}[{'times' if params[0] is Seconds else 'factors'}]"

    @model_validator(mode="after")
    def _can_be_drawn(self) -> "Form":
        try:
            self.build()
        except UsageError as error:
            raise problem(str(error)) from None
        return self


class ConstantForm(Form, Generic[Q]):
    """Always the same value; written as the value alone."""

    distribution: Literal["constant"] = "constant"
    value: Q = Field(description="the value")

    def build(self) -> draws.Distribution:
        return draws.Constant(value=self.value)

    @model_serializer(mode="wrap")
    def _short(self, handler: Any) -> Any:
        return handler(self)["value"]


class NormalForm(Form, Generic[Q]):
    """Normal, truncated at 0 in a way that keeps the mean."""

    distribution: Literal["normal"]
    mean: Q = Field(description="mean, kept although values below 0 are cut off")
    std: Q = Field(description="standard deviation before truncation, at most twice the mean")

    def build(self) -> draws.Distribution:
        return draws.Normal(mean=self.mean, std=self.std)


class LogNormalForm(Form, Generic[Q]):
    """Lognormal, by mean and standard deviation of the values themselves (not of their logarithm)."""

    distribution: Literal["lognormal"]
    mean: Q = Field(description="mean")
    std: Q = Field(description="standard deviation")

    def build(self) -> draws.Distribution:
        return draws.LogNormal(mean=self.mean, std=self.std)


class ParetoForm(Form, Generic[Q]):
    """Heavy-tailed: P(x > t) = (minimum / t)^alpha."""

    distribution: Literal["pareto"]
    mean: Q = Field(description="mean; the minimum is mean x (alpha - 1) / alpha")
    alpha: Alpha = Field(description="tail index; smaller is heavier")

    def build(self) -> draws.Distribution:
        return draws.Pareto(mean=self.mean, alpha=self.alpha)


class PoissonForm(Form, Generic[Q]):
    """A Poisson number of units: mean / unit expected, each one unit long."""

    distribution: Literal["poisson"]
    mean: Q = Field(description="mean")
    unit: Q = Field(description="what one count is worth")

    def build(self) -> draws.Distribution:
        return draws.Poisson(mean=self.mean, unit=self.unit)


class ExponentialForm(Form, Generic[Q]):
    """Memoryless."""

    distribution: Literal["exponential"]
    mean: Q = Field(description="mean")

    def build(self) -> draws.Distribution:
        return draws.Exponential(mean=self.mean)


class WeibullForm(Form, Generic[Q]):
    """Times whose rate falls (shape < 1) or rises (shape > 1) with age."""

    distribution: Literal["weibull"]
    mean: Q = Field(description="mean")
    shape: WeibullShape = Field(description="1 is the exponential distribution")

    def build(self) -> draws.Distribution:
        return draws.Weibull(mean=self.mean, shape=self.shape)


def _samples_or_file(schema: dict[str, Any]) -> None:
    """In the document, a file may stand in place of the samples."""
    file = {"type": "string", "description": schema["properties"]["file"]["description"], "default": None}
    schema["properties"]["file"] = file
    schema["required"] = ["distribution"]


class EmpiricalForm(Form, Generic[Q]):
    """One of the measured samples, each as likely."""

    model_config = ConfigDict(json_schema_extra=_samples_or_file)

    distribution: Literal["empirical"]
    samples: tuple[Q, ...] = Field(min_length=1, max_length=1_000_000, description="the samples; or file")
    file: None = Field(
        default=None, description="a text file beside the spec, one sample a line; becomes samples when loaded"
    )

    def build(self) -> draws.Distribution:
        return draws.Empirical(samples=self.samples)

    @model_validator(mode="before")
    @classmethod
    def _read_file(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, dict) or not isinstance(value.get("file"), str):
            return value
        if "samples" in value:
            raise problem("got both samples and file, expected one of them", "remove one")
        rest = {key: each for key, each in value.items() if key != "file"}
        return {**rest, "samples": read_samples(from_folder(value["file"], info))}

    @model_serializer(mode="wrap")
    def _without_file(self, handler: Any) -> Any:
        return {key: each for key, each in handler(self).items() if key != "file"}


def read_samples(path: str) -> tuple[object, ...]:
    """One sample a line: a number (for factors), or a quantity with its unit. Skips empty lines and # comments."""
    try:
        text = read_text(Path(path), error=UsageError, expected="one sample a line")
    except UsageError as error:
        raise problem(str(error)) from None
    texts = (line.split("#")[0].strip() for line in text.splitlines())
    return tuple(_sample(text) for text in texts if text)


def _sample(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


KINDS = ("constant", "normal", "lognormal", "pareto", "poisson", "exponential", "weibull", "empirical")


def _long(value: object) -> object:
    """Give a bare value its long form, and check which distribution a long one names."""
    if isinstance(value, Form):
        return value
    if not isinstance(value, dict):
        return {"value": value}
    kinds = ", ".join(KINDS)
    if "distribution" not in value:
        raise problem(f"the key distribution is missing, expected one of {kinds}", "add it, or write a bare value")
    kind = value["distribution"]
    if kind not in KINDS:
        near = get_close_matches(str(kind), KINDS, n=1)
        raise problem(
            f"unknown distribution, got {kind!r}, expected one of {kinds}", f"did you mean {near[0]}?" if near else ""
        )
    return value


def _tag(value: Any) -> str:
    if isinstance(value, Form):
        return f"<{value.distribution}>"
    return f"<{value['distribution']}>" if "distribution" in value else "<constant>"


def _written(quantity: Any) -> BeforeValidator:
    """The check of a distribution's kind, and what JSON Schema says of it."""
    forms = (NormalForm, LogNormalForm, ParetoForm, PoissonForm, ExponentialForm, WeibullForm, EmpiricalForm)
    return BeforeValidator(_long, json_schema_input_type=Union[quantity, *(form[quantity] for form in forms)])


Time = Annotated[
    Annotated[ConstantForm[Seconds], Tag("<constant>")]
    | Annotated[NormalForm[Seconds], Tag("<normal>")]
    | Annotated[LogNormalForm[Seconds], Tag("<lognormal>")]
    | Annotated[ParetoForm[Seconds], Tag("<pareto>")]
    | Annotated[PoissonForm[Seconds], Tag("<poisson>")]
    | Annotated[ExponentialForm[Seconds], Tag("<exponential>")]
    | Annotated[WeibullForm[Seconds], Tag("<weibull>")]
    | Annotated[EmpiricalForm[Seconds], Tag("<empirical>")],
    Discriminator(_tag),
    _written(Seconds),
]
Factors = Annotated[
    Annotated[ConstantForm[Number], Tag("<constant>")]
    | Annotated[NormalForm[Number], Tag("<normal>")]
    | Annotated[LogNormalForm[Number], Tag("<lognormal>")]
    | Annotated[ParetoForm[Number], Tag("<pareto>")]
    | Annotated[PoissonForm[Number], Tag("<poisson>")]
    | Annotated[ExponentialForm[Number], Tag("<exponential>")]
    | Annotated[WeibullForm[Number], Tag("<weibull>")]
    | Annotated[EmpiricalForm[Number], Tag("<empirical>")],
    Discriminator(_tag),
    _written(Number),
]
