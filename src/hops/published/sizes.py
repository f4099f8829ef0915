"""Sizes of a published job: what the row states, and what follows; or the reason why they do not make a job."""

from dataclasses import dataclass
from math import prod

from hops.published.refusal import RowRefusedError
from hops.published.row import PublishedRow

DEVICES = {
    "a100": "a100-sxm-80",
    "a100-80gb": "a100-sxm-80",
    "a100-40gb": "a100-sxm-40",
    "a100-sxm4-80gb": "a100-sxm-80",
    "a100-sxm4-40gb": "a100-sxm-40",
    "a100-pcie-80gb": "a100-pcie-80",
    "a100-pcie-40gb": "a100-pcie-40",
    "h100": "h100-sxm",
    "h100-80gb": "h100-sxm",
    "h800": "h800-sxm",
    "h200": "h200-sxm",
    "h20": "h20-sxm",
    "a800": "a800-sxm",
    "b200": "b200-sxm",
    "b300": "b300-sxm",
    "gb200": "gb200",
    "gb300": "gb300",
    "v100": "v100-sxm-32",
    "v100-sxm2-16gb": "v100-sxm-16",
    "v100-sxm2-32gb": "v100-sxm-32",
    "unknown": "a100-sxm-80",  # a runner of Megatron-LM's long-term support tests; its other golden values are of A100s
}
"""Catalog names of the devices as tables print them, in small letters, without what stands in brackets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSizes:
    """Sizes that multiply: tensor x context x pipeline x data devices, data x microbatches x samples per iteration.

    Attributes:
        chunks: stages per rank (virtual pipeline).
        notes: what was assumed.
    """

    device: str
    devices: int
    per_node: int
    tensor: int
    context: int
    pipeline: int
    chunks: int
    data: int
    expert: int
    expert_tensor: int
    microbatches: int
    samples: int
    sequence_length: int
    notes: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        return max(1, self.devices // self.per_node)


def sizes_of(row: PublishedRow) -> JobSizes:
    """The sizes of a row. Raises RowRefusedError with what is missing, or which sizes contradict each other."""
    notes: list[str] = []
    device = device_name(row)
    tensor, context, pipeline = row.tp, row.cp or 1, row.pp
    missing = [
        name for name, value in (("tp", tensor), ("pp", pipeline), ("seq", row.seq), ("gbs", row.gbs)) if value is None
    ]
    if missing or tensor is None or pipeline is None or row.seq is None or row.gbs is None:
        raise RowRefusedError(f"the row does not state {', '.join(missing)}, without which there is no job")
    model_devices = prod((tensor, context, pipeline))
    devices = row.n_gpus if row.n_gpus is not None else model_devices * (row.dp or 1)
    if row.dp is not None and row.dp * model_devices != devices:
        notes.append(f"{devices} devices are taken for tp x cp x pp x dp = {row.dp * model_devices}")
    if devices % model_devices:
        raise RowRefusedError(
            f"{devices} devices are no multiple of tp {tensor} x cp {context} x pp {pipeline} = {model_devices}"
        )
    data = devices // model_devices
    samples = row.mbs or 1
    if row.mbs is None:
        notes.append("the samples of a microbatch are not stated: 1 is taken")
    if row.gbs % (samples * data):
        raise RowRefusedError(f"{row.gbs} samples are not divided by {data} copies into microbatches of {samples}")
    per_node = min(devices, row.gpus_per_node or 8)
    if devices % per_node:
        per_node = max(size for size in range(1, per_node + 1) if devices % size == 0)
    return JobSizes(
        device=device,
        devices=devices,
        per_node=per_node,
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        chunks=row.vp or 1,
        data=data,
        expert=row.ep or 1,
        expert_tensor=_expert_tensor(row, tensor),
        microbatches=row.gbs // (samples * data),
        samples=samples,
        sequence_length=row.seq,
        notes=tuple(notes),
    )


def _expert_tensor(row: PublishedRow, tensor: int) -> int:
    """Silent flags of Megatron-LM mean as many as tensor parallelism; silent recipes of expert parallelism mean 1."""
    if row.etp is not None:
        return row.etp
    return tensor if row.flags or (row.ep or 1) == 1 else 1


def device_name(row: PublishedRow) -> str:
    """The catalog's name of the device. Raises RowRefusedError."""
    if row.gpu is None:
        raise RowRefusedError("the row does not state its device")
    name = row.gpu.lower().split("(")[0].strip()
    if name not in DEVICES:
        known = ", ".join(DEVICES)
        raise RowRefusedError(f"the device {row.gpu!r} is not known, expected one of {known}")
    return DEVICES[name]
