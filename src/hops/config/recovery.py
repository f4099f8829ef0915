"""The recovery part of the failure section: what happens after a stop, and what checkpoints cost."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from hops.config.fields import Bandwidth, Bytes, Flag, Index, Name, Seconds, Section


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


class Recovery(Section):
    """What happens when devices stop, and what it costs. Used by `hops goodput`."""

    policy: Name = Field(default="checkpoint_restart", description="recovery policy (`hops list recoveries`)")
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
