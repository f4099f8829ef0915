"""A change of a spec: paths and values as `--set` takes them, and those that more than one question tries."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hops.spec.spec import Spec


class Change(NamedTuple):
    """One change of a spec. `settings`: paths and values, as `--set` takes them."""

    what: str
    settings: Mapping[str, Any]

    @property
    def command(self) -> str:
        """What makes the change on the command line, after `hops run SPEC`."""
        return " ".join(f"--set {_quoted(f'{key}={_yaml(value)}')}" for key, value in self.settings.items())


def to_schedule(name: str) -> Change:
    """Another schedule, with its parameters' defaults."""
    return Change(f"schedule {name}", {"pipeline.schedule": name})


def balanced(spec: Spec) -> Iterator[Change]:
    """Layers cut by the devices' speed, where they are not."""
    if spec.pipeline.model is not None and spec.pipeline.partition != "balanced":
        yield Change("layers balanced by the devices' speed", {"pipeline.partition": "balanced"})


def shared_states(spec: Spec) -> Iterator[Change]:
    """Optimizer states shared by the copies, where there are copies that do not."""
    if spec.optimizer.data_parallel > 1 and not spec.optimizer.distributed:
        yield Change("optimizer states shared by the copies (ZeRO-1)", {"optimizer.distributed": True})


def of_size(spec: Spec, size: int) -> Iterator[Change]:
    """Microbatches of another size at the same samples per iteration; none where they do not divide into it."""
    samples = spec.pipeline.microbatches * spec.pipeline.microbatch_size
    if spec.pipeline.model is not None and size >= 1 and samples % size == 0:
        yield Change(
            f"{samples // size} microbatches of {size}",
            {"pipeline.microbatches": samples // size, "pipeline.microbatch_size": size},
        )


def _yaml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    return str(value)


def _quoted(text: str) -> str:
    return f"'{text}'" if " " in text or "[" in text else text
