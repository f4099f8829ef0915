"""Whether a plan fits into memory, found before it runs."""

from hops.api.build import Setup
from hops.errors import DoesNotFitError
from hops.schedule import Program
from hops.schedule.evaluate import evaluate
from hops.units import format_bytes

GIB = 1 << 30


def check_fit(setup: Setup, program: Program) -> None:
    """Raises DoesNotFitError naming every rank whose weights, states and peak activations exceed its device."""
    peaks = evaluate(program, setup.profile)
    lines = []
    for rank, capacity in enumerate(setup.facts.memory_bytes):
        line = _overflow(setup, rank, capacity, peaks.peak_bytes[rank], peaks.peak_in_flight[rank])
        if line:
            lines.append(line)
    if lines:
        raise DoesNotFitError(
            "the plan does not fit into memory\n"
            + "\n".join(lines)
            + "\nuse recompute, a smaller microbatch_size, another partition, a schedule with fewer microbatches in "
            "flight, or more devices"
        )


def check_weights_fit(setup: Setup) -> None:
    """The same for a policy, of which only this is known before it runs: one microbatch must fit on every rank."""
    ones = []
    for rank in range(setup.shape.num_ranks):
        activations = [setup.facts.stage_memory[stage].activation_bytes for stage in setup.shape.stages_of(rank)]
        line = _overflow(setup, rank, setup.facts.memory_bytes[rank], max(activations), 1)
        ones += [line] if line else []
    if ones:
        raise DoesNotFitError("the plan does not fit into memory\n" + "\n".join(ones))


def _overflow(setup: Setup, rank: int, capacity: int, activations: int, in_flight: int) -> str:
    """What a rank needs and has, or nothing if it fits."""
    memories = [setup.facts.stage_memory[stage] for stage in setup.shape.stages_of(rank)]
    parts = {
        "weights": sum(memory.weights_bytes for memory in memories),
        "gradients": sum(memory.gradients_bytes for memory in memories),
        "optimizer": sum(memory.optimizer_bytes for memory in memories),
        "workspace": sum(memory.workspace_bytes for memory in memories),
    }
    needed = sum(parts.values()) + activations
    if needed <= capacity:
        return ""
    stated = ", ".join(f"{name} {size / GIB:.1f}" for name, size in parts.items() if size)
    flight = f"{in_flight} microbatch{'es' if in_flight != 1 else ''} in flight {activations / GIB:.1f}"
    return (
        f"  rank {rank} ({setup.settings.devices[rank]}) needs {needed / GIB:.1f} GiB of "
        f"{format_bytes(capacity)}: {', '.join(part for part in (stated, flight) if part)}"
    )
