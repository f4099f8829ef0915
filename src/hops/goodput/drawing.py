"""The plans of a fleet: every copy of the pipeline draws its own faults from the spec's failure section."""

from hops.api import Setup
from hops.api.faults import build_inventory, build_plan
from hops.config import Spec
from hops.config.check_failure import name_of
from hops.goodput.fleet import FleetPlan
from hops.units import NS_PER_S


def draw_fleet(setup: Setup, seed: int, horizon_ns: int) -> FleetPlan:
    """What breaks in all copies before the horizon.

    The first copy draws what `hops run` draws, and what traces and plans state befalls it; the others draw under names
    of their own, so that another number of copies moves nothing. Raises UsageError as `hops run` does.
    """
    first = _until(setup.spec, horizon_ns)
    inventory = build_inventory(first, setup.network)
    copies = range(setup.spec.optimizer.data_parallel)
    specs = (first if copy == 0 else _of_copy(first, copy) for copy in copies)
    return FleetPlan.of(build_plan(spec, inventory, seed=seed) for spec in specs)


def _until(spec: Spec, horizon_ns: int) -> Spec:
    failure = spec.failure.model_copy(update={"horizon": horizon_ns / NS_PER_S})
    return spec.model_copy(update={"failure": failure})


def _of_copy(spec: Spec, copy: int) -> Spec:
    models = tuple(entry.model_copy(update={"name": f"copy {copy} {name_of(entry)}"}) for entry in spec.failure.models)
    failure = spec.failure.model_copy(update={"models": models, "trace": None, "plan": None})
    return spec.model_copy(update={"failure": failure})
