"""For Megatron-LM: flags of pipeline, cut and model as a shell array; refused is what its schedules do not run.

Flags as of Megatron-LM d98e8a64dd (2026-08-22), `megatron/training/arguments.py` and
`core/pipeline_parallel/schedules.py`: it runs 1F1B, and interleaved 1F1B in a loop. `hops import megatron` reads what
stands here back.
"""

from hops.errors import UsageError
from hops.exporters.base import EXPORTERS, Exported, Exporter, Launchable
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts

FLAGS = "megatron.sh"


@EXPORTERS.register("megatron")
class MegatronFlags(Exporter):
    """1F1B and interleaved 1F1B. Data, tokenizer and learning rate are the user's own."""

    def export(self, plan: Launchable) -> Exported:
        group = _group(plan)
        flags = [*_pipeline(plan, group), *_layout(plan), *_batch(plan), *_model(plan), *_memory(plan), *_rest(plan)]
        text = "\n".join([f"# {plan.name}", "MEGATRON_FLAGS=(", *(f"    {flag}" for flag in flags), ")"]) + "\n"
        start = (
            f'start with: source {FLAGS}; torchrun ... pretrain_gpt.py "${{MEGATRON_FLAGS[@]}}" and your flags '
            "for data, tokenizer and learning rate"
        )
        lacking = "the spec names no model: flags of the model and of the cut are yours"
        return Exported(files={FLAGS: text}, notes=(start,) if plan.layers is not None else (start, lacking))


def _group(plan: Launchable) -> int:
    """Microbatches of a group, 0 for plain 1F1B. Raises UsageError where Megatron-LM has no such order."""
    shape, program = plan.program.shape, plan.program
    if shape == Shape.loop(shape.num_ranks, num_microbatches=shape.num_microbatches):
        if program == _built("1f1b", shape):
            return 0
    elif _chunks(shape) > 1:
        stated = plan.spec.pipeline.schedule.parameters
        own = [value for key, value in stated.items() if key == "microbatch_group_size" and value is not None]
        group = own[0] if own else shape.num_ranks
        if program == _interleaved(shape, group):
            return group
    raise UsageError(
        f"{plan.name}: Megatron-LM cannot run the program of {plan.spec.pipeline.schedule.name}: expected the order of "
        "1f1b, or of interleaved_1f1b with its stages in a loop; export to torch or torchtitan, or change the schedule"
    )


def _chunks(shape: Shape) -> int:
    """Stages per rank of a loop, 0 if it is none."""
    chunks, rest = divmod(shape.num_stages, shape.num_ranks)
    loop = Shape.loop(shape.num_ranks, num_microbatches=shape.num_microbatches, chunks=max(chunks, 1))
    return chunks if rest == 0 and shape == loop else 0


def _interleaved(shape: Shape, group: int) -> Program | None:
    try:
        return _built("interleaved_1f1b", shape, chunks=_chunks(shape), microbatch_group_size=group)
    except UsageError:
        return None


def _built(name: str, shape: Shape, **parameters: int) -> Program:
    scheduler = SCHEDULERS.get(name)(**parameters)
    assert isinstance(scheduler, StaticScheduler)
    scheduler.configure(StageCosts.uniform(scheduler.shape(shape.num_ranks, shape.num_microbatches)))
    return scheduler.program


def _pipeline(plan: Launchable, group: int) -> list[str]:
    shape, p2p = plan.program.shape, plan.spec.pipeline.p2p
    if shape.num_ranks == 1:
        return ["--pipeline-model-parallel-size 1"]
    flags = [f"--pipeline-model-parallel-size {shape.num_ranks}"]
    if plan.layers is None and group:
        flags.append(f"--num-virtual-stages-per-pipeline-rank {_chunks(shape)}")
    if group and group != shape.num_ranks:
        flags.append(f"--microbatch-group-size-per-virtual-pipeline-stage {group}")
    if group and p2p != "overlapped":
        flags.append("--no-overlap-p2p-communication")
    return flags


def _layout(plan: Launchable) -> list[str]:
    """The cut, stage by stage: it says chunks, too."""
    if plan.layers is None or len(plan.layers) == 1:
        return []
    stages = [f"t*{count}" if count > 1 else "t" * count for count in plan.layers]
    stages[0], stages[-1] = f"E{stages[0]}", f"{stages[-1]}L"
    return [f"--pipeline-model-parallel-layout '{'|'.join(stages)}'"]


def _batch(plan: Launchable) -> list[str]:
    pipeline, copies = plan.spec.pipeline, plan.spec.optimizer.data_parallel
    samples = pipeline.microbatch_size * pipeline.microbatches * copies
    length = [] if pipeline.sequence_length is None else [f"--seq-length {pipeline.sequence_length}"]
    return [f"--micro-batch-size {pipeline.microbatch_size}", f"--global-batch-size {samples}", *length]


def _model(plan: Launchable) -> list[str]:
    section = plan.spec.pipeline.model
    if section is None:
        return []
    model = section.transformer()
    flags = [
        f"--num-layers {model.layers}",
        f"--hidden-size {model.hidden}",
        f"--num-attention-heads {model.heads}",
        f"--ffn-hidden-size {model.ffn_hidden}",
        f"--max-position-embeddings {model.max_positions}",
        f"--vocab-size {model.vocab}",
        "--make-vocab-size-divisible-by 1",
        f"--position-embedding-type {'rope' if model.positions == 'rotary' else 'learned_absolute'}",
        f"--normalization {'RMSNorm' if model.norm == 'rms' else 'LayerNorm'}",
    ]
    flags += [f"--kv-channels {model.head_dim}"] if model.head_dim * model.heads != model.hidden else []
    flags += (
        ["--group-query-attention", f"--num-query-groups {model.kv_heads}"] if model.kv_heads != model.heads else []
    )
    flags += ["--swiglu"] if model.gated else []
    flags += [] if model.biases else ["--disable-bias-linear"]
    flags += [] if plan.spec.optimizer.tied_embeddings else ["--untie-embeddings-and-output-weights"]
    return flags


def _memory(plan: Launchable) -> list[str]:
    """Recomputation and number formats."""
    recompute, precision = plan.spec.pipeline.recompute, plan.spec.pipeline.precision
    flags = {
        "none": [],
        "selective": ["--recompute-granularity selective"],
        "full": ["--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"],
    }[recompute]
    return [*flags, *([] if precision == "fp32" else [f"--{precision}"])]


def _rest(plan: Launchable) -> list[str]:
    pipeline, optimizer = plan.spec.pipeline, plan.spec.optimizer
    flags = ["--use-distributed-optimizer"] if optimizer.distributed else []
    flags += [f"--optimizer {'adam' if optimizer.kind == 'adam' else 'sgd'}"]
    flags += [] if pipeline.dropout else ["--attention-dropout 0.0", "--hidden-dropout 0.0"]
    flags += ["--cross-entropy-loss-fusion"] if pipeline.cross_entropy == "fused" else []
    flags += ["--attention-backend unfused"] if pipeline.attention == "unfused" else []
    flags += [] if pipeline.fused_gradient_accumulation else ["--no-gradient-accumulation-fusion"]
    return flags
