"""For torchtitan: its schedule CSV, and its keys as flags and as a table of the older job configuration.

Keys as of torchtitan b5bcd76c66 (2026-08-21); the file is for configurations in TOML, until 2026-02. The schedule that
is named fixes how many stages a rank has and where they lie; the order comes from the CSV.
"""

import numpy as np

from hops.errors import UsageError
from hops.exporters.base import EXPORTERS, Exported, Exporter, Launchable
from hops.program.action import Op
from hops.program.pytorch_csv import compute_csv
from hops.program.shape import Shape

SCHEDULE = "schedule.csv"
FLAGS = "torchtitan.flags"
TABLE = "torchtitan.toml"


@EXPORTERS.register("torchtitan")
class Torchtitan(Exporter):
    """Placements in a loop, of any number of chunks, and in a V of two."""

    def export(self, plan: Launchable) -> Exported:
        program = plan.program
        name = schedule_name(program.shape)
        parts = None if plan.layers is None else module_names(plan.layers)
        keys: dict[str, object] = {
            "pipeline_parallel_degree": program.shape.num_ranks,
            "pipeline_parallel_schedule": name,
            "pipeline_parallel_schedule_csv": SCHEDULE,
        }
        notes = [f"{name} is named for its placement only; the order is that of {SCHEDULE}"]
        if parts is None:
            notes.append("no module_fqns_per_model_part: the spec names no model, so cut the model yourself")
        if np.isin(program.op, (Op.I, Op.W)).any():
            notes.append(
                "the program splits the backward (I and W): switch torch.compile off, which PyTorch's split backward "
                "refuses"
            )
        files = {SCHEDULE: compute_csv(program), FLAGS: _flags(plan, keys, parts), TABLE: _table(plan, keys, parts)}
        return Exported(files=files, notes=tuple(notes))


def schedule_name(shape: Shape) -> str:
    """The schedule of torchtitan with this placement. Raises UsageError if none has it."""
    ranks, stages = shape.num_ranks, shape.num_stages
    if shape.rank_of_stage == tuple(range(ranks)):
        return "1F1B"
    if stages % ranks == 0 and shape.rank_of_stage == tuple(range(ranks)) * (stages // ranks):
        return "Interleaved1F1B"
    if shape == Shape.v(ranks, num_microbatches=shape.num_microbatches):
        return "ZBVZeroBubble"
    raise UsageError(
        f"torchtitan cannot place stages on ranks {' '.join(map(str, shape.rank_of_stage))}: expected a loop "
        "(0 1 2 0 1 2) or a V of two stages per rank (0 1 2 2 1 0); choose a schedule with such a placement"
    )


def module_names(layers: tuple[int, ...]) -> list[list[str]]:
    """The modules of every stage by torchtitan's names: embedding first, final norm and output last."""
    parts, first = [], 0
    for count in layers:
        parts.append([f"layers.{number}" for number in range(first, first + count)])
        first += count
    parts[0].insert(0, "tok_embeddings")
    parts[-1] += ["norm", "output"]
    return parts


def _flags(plan: Launchable, keys: dict[str, object], parts: list[list[str]] | None) -> str:
    """One flag a line. A list of lists has no flag: it goes into the configuration, shown as a comment."""
    lines = [f"# {plan.name}: append to the training command"]
    lines += [f"--parallelism.{key} {value}" for key, value in keys.items()]
    lines.append(f"--parallelism.num_pp_microbatches {plan.program.shape.num_microbatches}")
    if parts is not None:
        lines.append("# in the configuration (the head is called lm_head since 2026-02):")
        lines.append(f"# parallelism.module_fqns_per_model_part = {_listed(parts).replace('output', 'lm_head')}")
    return "\n".join(lines) + "\n"


def _table(plan: Launchable, keys: dict[str, object], parts: list[list[str]] | None) -> str:
    samples = plan.spec.pipeline.microbatch_size
    lines = [f"# {plan.name}", "[training]", f"local_batch_size = {samples * plan.program.shape.num_microbatches}"]
    if plan.spec.pipeline.sequence_length is not None:
        lines.append(f"seq_len = {plan.spec.pipeline.sequence_length}")
    lines += ["", "[parallelism]"]
    lines += [f"{key} = {value}" if isinstance(value, int) else f'{key} = "{value}"' for key, value in keys.items()]
    lines.append(f"pipeline_parallel_microbatch_size = {samples}")
    if parts is not None:
        lines.append(f"module_fqns_per_model_part = {_listed(parts)}")
    return "\n".join(lines) + "\n"


def _listed(parts: list[list[str]]) -> str:
    return str(parts).replace("'", '"')
