"""Distributions as a spec writes them: a bare `10 ms`, or `{distribution: normal, mean: 10 ms, std: 1 ms}`."""

from abc import abstractmethod
from difflib import get_close_matches
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_serializer

from hops import draws
from hops.config.fields import Number, Seconds, Section, problem

Q = TypeVar("Q", bound=float)
Shape = Annotated[float, Field(strict=True, gt=1, le=1000)]


class Form(Section):
    """Written form of one distribution; `build` gives the one that draws."""

    distribution: str

    @abstractmethod
    def build(self) -> draws.Distribution:
        """The distribution to sample from, in seconds (times) or plain numbers (factors)."""


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
    std: Q = Field(description="standard deviation before truncation")

    def build(self) -> draws.Distribution:
        return draws.Normal(mean=self.mean, std=self.std)


class LogNormalForm(Form, Generic[Q]):
    """Lognormal, by its own mean and standard deviation (not those of the logarithm)."""

    distribution: Literal["lognormal"]
    mean: Q = Field(description="mean of the values themselves")
    std: Q = Field(description="standard deviation of the values themselves")

    def build(self) -> draws.Distribution:
        return draws.LogNormal(mean=self.mean, std=self.std)


class ParetoForm(Form, Generic[Q]):
    """Heavy-tailed: P(x > t) = (minimum / t) ** shape."""

    distribution: Literal["pareto"]
    minimum: Q = Field(description="smallest value")
    shape: Shape = Field(description="tail index, above 1 so that there is a mean; smaller is heavier")

    def build(self) -> draws.Distribution:
        return draws.Pareto(minimum=self.minimum, shape=self.shape)


class PoissonForm(Form, Generic[Q]):
    """A Poisson number of steps: mean / step expected, each one step long."""

    distribution: Literal["poisson"]
    mean: Q = Field(description="mean of the values")
    step: Q = Field(description="what one count is worth")

    def build(self) -> draws.Distribution:
        return draws.Poisson(mean=self.mean, step=self.step)


class EmpiricalForm(Form, Generic[Q]):
    """Draws from measured samples, each equally likely. A file (one sample a line) becomes a list when it is loaded."""

    distribution: Literal["empirical"]
    samples: tuple[Q, ...] = Field(min_length=1, max_length=1_000_000, description="the samples")

    def build(self) -> draws.Distribution:
        return draws.Empirical(samples=self.samples)


KINDS = ("constant", "normal", "lognormal", "pareto", "poisson", "empirical")


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
            f"unknown distribution, got {kind!r}, expected one of {kinds}", near and f"did you mean {near[0]}?"
        )
    return value


def _tag(value: Any) -> str:
    if isinstance(value, Form):
        return f"<{value.distribution}>"
    return f"<{value['distribution']}>" if "distribution" in value else "<constant>"


Time = Annotated[
    Annotated[ConstantForm[Seconds], Tag("<constant>")]
    | Annotated[NormalForm[Seconds], Tag("<normal>")]
    | Annotated[LogNormalForm[Seconds], Tag("<lognormal>")]
    | Annotated[ParetoForm[Seconds], Tag("<pareto>")]
    | Annotated[PoissonForm[Seconds], Tag("<poisson>")]
    | Annotated[EmpiricalForm[Seconds], Tag("<empirical>")],
    Discriminator(_tag),
    BeforeValidator(_long),
]
Factors = Annotated[
    Annotated[ConstantForm[Number], Tag("<constant>")]
    | Annotated[NormalForm[Number], Tag("<normal>")]
    | Annotated[LogNormalForm[Number], Tag("<lognormal>")]
    | Annotated[ParetoForm[Number], Tag("<pareto>")]
    | Annotated[PoissonForm[Number], Tag("<poisson>")]
    | Annotated[EmpiricalForm[Number], Tag("<empirical>")],
    Discriminator(_tag),
    BeforeValidator(_long),
]
