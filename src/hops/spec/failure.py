"""The failure section: what breaks, when, and what the transport does about a link that is down."""

from typing import Annotated, Any, Literal, Union

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_serializer,
    model_validator,
)

from hops.decode.quantities import (
    Bandwidth,
    Bytes,
    Flag,
    Index,
    Name,
    Probability,
    Seconds,
    Section,
    problem,
    short_for,
)
from hops.distributions import Distribution
from hops.errors import UsageError
from hops.faults.models import FAULT_MODELS, FaultModel, Fixed, Renewal, Share
from hops.faults.plan import FaultKind
from hops.faults.presets import PRESETS
from hops.registry import made
from hops.spec.context import InputFile
from hops.spec.distributions import ConstantForm, Factors, Time
from hops.units import shown


def _parameters_beside_the_name(schema: dict[str, Any]) -> None:
    """In the document, parameters are keys of their own."""
    del schema["properties"]["parameters"]
    schema["additionalProperties"] = True


class PluginChoice(Section):
    """A member of a family that plug-ins add to, with its own parameters beside its name."""

    model_config = ConfigDict(json_schema_extra=_parameters_beside_the_name)

    name: Name = Field(description="its name")
    parameters: dict[str, Any] = Field(default_factory=dict, description="its own, written beside the name")

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        own = {key: each for key, each in value.items() if key != "name"}
        return {"parameters": own, **({"name": value["name"]} if "name" in value else {})}

    @model_serializer
    def _flat(self) -> dict[str, Any]:
        return {"name": self.name, **self.parameters}


class PolicyChoice(PluginChoice):
    """A recovery policy, with its own parameters beside its name."""

    name: Name = Field(description="name of the policy (`hops list recoveries`)")


PolicyField = Annotated[PolicyChoice, short_for("name", PolicyChoice)]


class FaultModelChoice(PluginChoice):
    """A fault model from a plug-in, with its own parameters beside its name."""

    name: Name = Field(description="name of the model (entry points `hops.faults`)")

    def make(self) -> FaultModel:
        """The model. Raises UsageError for a name or parameters that there are not."""
        return made(FAULT_MODELS, self.name, (), self.parameters)


def _rule_or_time(value: object) -> str:
    return "<rule>" if value in ("young", "daly") else "<time>"


Interval = Annotated[
    Annotated[Literal["young", "daly"], Tag("<rule>")] | Annotated[Seconds, Field(gt=0), Tag("<time>")],
    Discriminator(_rule_or_time),
]


class Checkpoints(Section):
    """When state is saved, and for how long training stands still for it."""

    interval: Interval | None = Field(
        default=1800.0,
        json_schema_extra={"default": "30 min"},
        description="training between two checkpoints: a time, young or daly (the optimum in theory), null for none",
    )
    asynchronous: Flag = Field(default=False, description="training goes on while a copy of the state is written")
    pause: Seconds | None = Field(
        default=None,
        description="training stands still; default: the time to write, or (asynchronous) to copy to the host",
    )
    write: Seconds | None = Field(
        default=None, description="until a checkpoint can be used; default: state over storage bandwidth"
    )


class RecoverySection(Section):
    """What happens when devices stop, and what it costs. Used by `hops goodput`."""

    policy: PolicyField = Field(
        default=PolicyChoice(name="checkpoint_restart"),
        json_schema_extra={"default": "checkpoint_restart"},
        description="recovery policy (`hops list recoveries`); a plug-in's parameters stand beside its name",
    )
    checkpoint: Checkpoints = Field(default=Checkpoints(), description="saving of the state")
    detection: Seconds = Field(
        default=60.0, json_schema_extra={"default": "60 s"}, description="from a stop until somebody knows of it"
    )
    restart: Seconds = Field(
        default=300.0,
        json_schema_extra={"default": "5 min"},
        description="start of processes and communicators, before the state is read",
    )
    reconfigure: Seconds = Field(
        default=60.0,
        json_schema_extra={"default": "60 s"},
        description="new communicators and assignment of work, when training goes on without (reroute, replan)",
    )
    state: Bytes | None = Field(
        default=None, description="one copy of weights and optimizer states; default: the model's"
    )
    storage_bandwidth: Bandwidth | None = Field(
        default=None, description="of all hosts together; default: the NICs of one copy of the pipeline"
    )
    spares: Index = Field(default=0, description="hot spare devices (policy spare); repaired devices become spares")
    state_from: Literal["peer", "checkpoint"] = Field(
        default="peer", description="where a spare's state comes from; peer needs a data-parallel copy that is whole"
    )
    split_backward: Flag = Field(
        default=True, description="policy reroute: weights' gradients fill bubbles (I and W apart), as ReCycle does"
    )


_LASTS = {  # what `repair` says of faults of the job
    FaultKind.PLANNED_STOP: "for how long the job stands still",
    FaultKind.HANG: "how long it takes until somebody kills the job",
    FaultKind.ROLL_BACK: "how long it takes until somebody sees that training went wrong",
}
_HOWS = ("between", "at", "share", "model", "preset")


def _as_list(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Names = Annotated[
    tuple[Name, ...],
    BeforeValidator(_as_list, json_schema_input_type=Union[Name, tuple[Name, ...]]),  # noqa: UP007 (a value)
    Field(min_length=1),
]


def _known_preset(name: str) -> str:
    if name not in PRESETS:
        raise problem(f"unknown preset, got {shown(name)}, expected one of {', '.join(PRESETS)}")
    return name


class FaultEntry(Section):
    """What may break, how, and when: a preset, or kind and targets with one of between, at, share and model."""

    name: Name | None = Field(
        default=None, description="what draws depend on, beside seed and target; default: from kind and targets"
    )
    preset: Annotated[Name, AfterValidator(_known_preset)] | None = Field(
        default=None, description=f"published rates: {', '.join(PRESETS)} (docs/explanation/faults.md)"
    )
    kind: Literal["stop", "slow", "link-slow", "link-down", "planned-stop", "hang", "roll-back"] | None = Field(
        default=None, description="what happens; the last three to the whole job (`hops goodput`)"
    )
    on: Names | None = Field(
        default=None,
        description="devices, hosts, nics, links or groups: each of them; or names of such; job for what happens to it",
    )
    only: Names | None = Field(default=None, description="of them, those with a device of these types")
    between: Time | None = Field(default=None, description="from the start or the last repair to the next failure")
    at: tuple[Seconds, ...] | None = Field(default=None, description="stated times since the start")
    share: Probability | None = Field(default=None, description="chance to be broken from the start, for good")
    model: FaultModelChoice | None = Field(default=None, description="a fault model from a plug-in")
    repair: Time | None = Field(default=None, description="how long it stays broken; default: for good")
    factor: Factors | None = Field(
        default=None, description="slow: how many times longer all takes; link-slow: the part of bandwidth that is left"
    )

    @model_validator(mode="before")
    @classmethod
    def _of_job(cls, value: object) -> object:
        """What happens to the job needs no target."""
        if isinstance(value, dict) and value.get("kind") in tuple(_LASTS) and "on" not in value:
            return {**value, "on": "job"}
        return value

    @model_validator(mode="after")
    def _is_one_thing(self) -> "FaultEntry":
        stated = [key for key in _HOWS if getattr(self, key) is not None]
        if len(stated) != 1:
            got = "none of them" if not stated else " and ".join(stated)
            raise problem(
                f"got {got}, expected one of {', '.join(_HOWS)}", "say when it breaks, such as between: 100 h"
            )
        if self.preset is not None:
            self._check_preset(self.preset)
        else:
            self._check_kind(stated[0])
        return self

    def _check_preset(self, preset: str) -> None:
        beside = [key for key in ("kind", "on", "factor") if getattr(self, key) is not None]
        if beside:
            raise problem(f"got {beside[0]} beside a preset, which states its own", f"remove {beside[0]}")
        if PRESETS[preset].needs_repair and self.repair is None:
            raise problem(f"the preset {preset} says how often, not for how long", "add repair: 2 h, for example")

    def _check_kind(self, how: str) -> None:
        if self.kind is not None and FaultKind(self.kind).of_job:
            self._check_job(how)
        missing = [key for key in ("kind", "on") if getattr(self, key) is None]
        if missing:
            raise problem(f"{missing[0]} is missing beside {how}", "add kind: stop and on: devices, for example")
        if self.repair is not None and how in ("share", "model"):
            raise problem(f"got repair beside {how}, which says itself how long", "remove repair")
        self._check_factor(FaultKind(self.kind or ""))
        try:
            self.fault_model()
        except UsageError as error:
            raise problem(str(error)) from None

    def _check_job(self, how: str) -> None:
        if how == "share":
            raise problem(f"got share for {self.kind}, which happens at some time", "use between or at")
        if self.only is not None:
            raise problem(f"got only for {self.kind}, which happens to the whole job", "remove it")
        if self.repair is None and how != "model":
            raise problem(
                f"{self.kind} does not say {_LASTS[FaultKind(self.kind or '')]}", "add repair: 2 h, for example"
            )

    def _check_factor(self, kind: FaultKind) -> None:
        if kind not in (FaultKind.SLOW, FaultKind.LINK_SLOW):
            if self.factor is not None:
                raise problem(f"got a factor for {kind}, expected none", "remove it, or use slow or link-slow")
            return
        needed = "more than 1" if kind is FaultKind.SLOW else "more than 0 and less than 1"
        if self.factor is None:
            raise problem(f"the factor of {kind} is missing, expected {needed}", "add it")
        mean = self.factor.build().mean
        fits = mean > 1 if kind is FaultKind.SLOW else 0 < mean < 1
        if not fits:
            which = "" if isinstance(self.factor, ConstantForm) else " on average"
            raise problem(f"got a factor of {mean:g}{which} for {kind}, expected {needed}")

    def fault_model(self) -> FaultModel:
        """When a target breaks; not for presets. Raises UsageError for parameters that cannot be."""
        if self.model is not None:
            return self.model.make()
        if self.share is not None:
            return Share(probability=self.share)
        if self.at is not None:
            return Fixed(at=self.at, repair=self.repair_time())
        assert self.between is not None, "validation asks for one of them"
        return Renewal(between=self.between.build(), repair=self.repair_time())

    def repair_time(self) -> Distribution | None:
        return None if self.repair is None else self.repair.build()


class FailureGroup(Section):
    """Things that break together, such as the hosts of a rack."""

    name: Name = Field(description="for models' on")
    members: Names = Field(description="names of hosts, devices, NICs or links")


class FailureSection(Section):
    """Faults of devices, hosts and links."""

    enabled: Flag = Field(default=False, description="whether anything breaks")
    models: tuple[FaultEntry, ...] = Field(default=(), description="what is drawn")
    groups: tuple[FailureGroup, ...] = Field(default=(), description="what breaks together")
    trace: InputFile | None = Field(
        default=None, description="availability trace: lines of time,add|remove,node (seconds; a host or device)"
    )
    plan: InputFile | None = Field(default=None, description="a fault plan, as runs and `hops faults draw` save it")
    horizon: Annotated[Seconds, Field(gt=0, le=3_153_600_000)] = Field(
        default=2_592_000.0,
        json_schema_extra={"default": "30 d"},
        description="until when faults are drawn; at most 36500 d",
    )
    link_timeout: Seconds | None = Field(
        default=None,
        description="how long the transport waits for a link that is down until the job fails; default: for ever",
    )
    recovery: RecoverySection = Field(
        default=RecoverySection(), description="what `hops goodput` does about stops; a run waits for repair"
    )
