"""A new plan for the devices that are left, as the recovery policy `replan` asks for one."""

from hops.errors import HopsError
from hops.planner.planner import plan
from hops.spec.hardware import HardwareSection
from hops.spec.open import OpenSpec
from hops.spec.spec import Spec

BUDGET_S = 1.0  # a number of evaluations, as in `hops plan --budget 1s`


def replanned(spec: Spec, devices: tuple[str, ...]) -> Spec | None:
    """The best plan on these devices with the same schedule, recompute option and batch; None if there is none."""
    pipeline = spec.pipeline
    if pipeline.model is None or not devices:
        return None  # stated stage times cannot be cut anew
    left = spec.model_copy(update={"hardware": _only(spec.hardware, devices)})
    opened = OpenSpec(
        base=left,
        partition=True,
        placement=True,
        schedules=(pipeline.schedule,),
        recomputes=(pipeline.recompute,),
        batches=((pipeline.microbatches, pipeline.microbatch_size),),
    )
    try:
        return plan(opened, budget_s=BUDGET_S, top=1).plans[0].spec
    except HopsError:
        return None


def _only(hardware: HardwareSection, devices: tuple[str, ...]) -> HardwareSection:
    """The hardware without all other devices: hosts one by one, ids written out."""
    nodes = []
    for host in hardware.hosts():
        kept = tuple(
            entry.model_copy(update={"count": 1, "id": device})
            for device, entry in zip(host.device_ids, host.devices, strict=True)
            if device in devices
        )
        if kept:
            nodes.append(host.entry.model_copy(update={"name": host.name, "count": 1, "devices": kept}))
    names = {node.name for node in nodes} | set(devices)
    links = tuple(link for link in hardware.links if set(link.between) <= names)
    return hardware.model_copy(update={"nodes": tuple(nodes), "links": links, "placement": devices})
