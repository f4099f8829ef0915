"""A run.yaml: Megatron-LM's arguments beside the device and the layers of each stage."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from hops.decode.decode import Where, decode
from hops.decode.document import Complaint
from hops.decode.quantities import Count, Index, Several, problem
from hops.errors import UsageError
from hops.importers.megatron.hosts import Placed
from hops.units import shown


def _scalar(value: object) -> object:
    if isinstance(value, list | tuple | dict):
        raise problem(f"got {shown(value)}, expected text, a number, or true or false")
    return value


Scalar = Annotated[object, AfterValidator(_scalar)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenStage:
    """What run.yaml says of one stage."""

    gpu: Scalar
    host: Scalar
    device_id: Scalar
    layers: Count
    stage: Index | None = None
    instance_type: Scalar = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenNetwork:
    """What run.yaml says of the network between hosts."""

    transport: Scalar = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFile:
    """A run.yaml, as far as it says what was launched: Megatron-LM's arguments, and stages with their devices."""

    arguments: Annotated[Mapping[str, Scalar], Field(min_length=1)]
    stages: Several[WrittenStage]
    name: Scalar = None
    network: WrittenNetwork | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocument:
    """What a run.yaml says.

    Attributes:
        layers: of each stage, in the order of the model.
        transport: between hosts, such as `tcp-sockets`, "" if it does not say.
    """

    arguments: Mapping[str, object]
    placed: tuple[Placed, ...]
    layers: tuple[int, ...]
    title: str
    transport: str


def read_run_document(data: object, where: Where, file: Path) -> RunDocument:
    """A run.yaml that was opened. Raises UsageError with all that is wrong, each with its place."""
    written = decode(LaunchFile, data, replace(where, strict=False))
    for number, each in enumerate(written.stages):
        if each.stage not in (None, number):
            what = f"got stage {each.stage}, expected {number}; list stages in order"
            raise UsageError(where.report(data, [Complaint(path=("stages", number, "stage"), what=what)]))
    placed = tuple(
        Placed(
            device=str(each.gpu).lower(),
            id=str(each.device_id),
            host=str(each.host),
            instance_type=str(each.instance_type),
        )
        for each in written.stages
    )
    return RunDocument(
        arguments=written.arguments,
        placed=placed,
        layers=tuple(each.layers for each in written.stages),
        title=file.parent.name if written.name is None else str(written.name),
        transport="" if written.network is None else str(written.network.transport or ""),
    )
