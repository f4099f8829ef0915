"""The schedule of a spec: its name, with the parameters of its constructor beside it."""

from collections.abc import Iterator
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Annotated, Any, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, ValidationInfo, model_serializer, model_validator

from hops.decode.document import Complaint
from hops.decode.quantities import Name, Section, short_for
from hops.errors import HopsError
from hops.schedules.base import SCHEDULERS, Scheduler
from hops.spec.context import from_folder
from hops.units import shown


def _parameters_beside_the_name(schema: dict[str, Any]) -> None:
    """In the document, parameters are keys of their own."""
    del schema["properties"]["parameters"]
    schema["additionalProperties"] = True


class ScheduleChoice(Section):
    """A schedule, with its own parameters beside its name."""

    model_config = ConfigDict(json_schema_extra=_parameters_beside_the_name)

    name: Name = Field(description="name of the schedule (`hops list schedules`)")
    parameters: dict[str, Any] = Field(default_factory=dict, description="the schedule's own, written beside the name")

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, dict):
            return value
        own = {key: each for key, each in value.items() if key != "name"}
        if isinstance(own.get("file"), str):  # as all files that a spec names
            own["file"] = from_folder(own["file"], info)
        return {"parameters": own, **({"name": value["name"]} if "name" in value else {})}

    @model_serializer
    def _flat(self) -> dict[str, Any]:
        return {"name": self.name, **self.parameters}

    def make(self) -> Scheduler:
        """A new scheduler of that name with these parameters. Raises UsageError if there is none."""
        return SCHEDULERS.get(self.name)(**self.parameters)

    def known(self) -> dict[str, Parameter]:
        """The parameters that the schedule's constructor takes. Raises UsageError if there is no such schedule."""
        maker = SCHEDULERS.get(self.name)
        if maker.__init__ is object.__init__:
            return {}
        return dict(signature(maker).parameters)

    def defaults(self) -> dict[str, Any]:
        """What the schedule takes for parameters that are not stated."""
        return {key: each.default for key, each in self.known().items() if each.default is not Parameter.empty}

    def complaints(self) -> Iterator[Complaint]:
        """What is wrong with name and parameters; paths start at the schedule."""
        try:
            known = self.known()
        except HopsError as error:
            yield Complaint(path=("name",), what=str(error))
            return
        found = [*self._unknown(known), *self._missing(known), *self._mistyped(known)]
        yield from found
        if not found:
            yield from self._refused()

    def _unknown(self, known: dict[str, Parameter]) -> Iterator[Complaint]:
        for key in self.parameters:
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                what = f"unknown parameter of the schedule {self.name}, {takes}{hint}"
                yield Complaint(path=(key,), what=what, at_key=True)

    def _missing(self, known: dict[str, Parameter]) -> Iterator[Complaint]:
        for key, parameter in known.items():
            if parameter.default is Parameter.empty and key not in self.parameters:
                yield Complaint(path=(), what=f"missing, the schedule {self.name} needs {key}; add it")

    def _mistyped(self, known: dict[str, Parameter]) -> Iterator[Complaint]:
        hints = get_type_hints(SCHEDULERS.get(self.name).__init__)
        for key, value in self.parameters.items():
            if key in known and key in hints:
                try:
                    TypeAdapter(hints[key]).validate_python(value, strict=True)
                except ValidationError:
                    expected = getattr(hints[key], "__name__", str(hints[key]))
                    yield Complaint(path=(key,), what=f"got {shown(value)}, expected {_in_words(expected)}")

    def _refused(self) -> Iterator[Complaint]:
        try:
            self.make()
        except HopsError as error:
            yield Complaint(path=(), what=str(error))


def _in_words(type_name: str) -> str:
    words = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "None": "null"}
    return " or ".join(words.get(part.strip(), part.strip()) for part in type_name.split("|"))


ScheduleField = Annotated[ScheduleChoice, short_for("name", ScheduleChoice)]
