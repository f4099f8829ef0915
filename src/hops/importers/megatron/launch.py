"""A Megatron-LM launch: what was to be trained, in which cut, on which devices. Known before the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from hops.decode.decode import decode, opened, read_text
from hops.decode.document import Complaint
from hops.decode.quantities import Count, Index, Several, problem
from hops.errors import UsageError
from hops.importers.megatron.flags import Arguments, parse_flags
from hops.units import shown

_EXPECTED = "a run folder, a run.yaml, or a file of flags"
_VOCABULARY_MULTIPLE = 128  # Megatron-LM's default of --make-vocab-size-divisible-by


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The device of one rank of the pipeline. `instance_type`: the cloud's name of its host's kind, "" if unknown."""

    device: str
    id: str
    host: str
    instance_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launch, in Megatron-LM's terms where it has them.

    Attributes:
        layers: transformer layers of each stage, in the order of the model.
        placed: the device of each rank of the first pipeline replica.
        chunks: stages per rank (1: plain 1F1B).
        group: microbatch group size of the interleaved schedule.
        ignored: flags that do not change the prediction.
    """

    name: str
    num_layers: int
    hidden_size: int
    ffn_hidden_size: int
    num_attention_heads: int
    num_query_groups: int
    vocab_size: int
    max_position_embeddings: int
    seq_length: int
    micro_batch_size: int
    num_microbatches: int
    data_parallel: int
    precision: str
    attention: str
    recompute: str
    fused_cross_entropy: bool
    dropout: bool
    fused_gradient_accumulation: bool
    swiglu: bool
    rotary: bool
    rms_norm: bool
    biases: bool
    tied: bool
    optimizer: str
    distributed_optimizer: bool
    layers: tuple[int, ...]
    chunks: int
    group: int
    overlap_p2p: bool
    train_iters: int
    placed: tuple[Placed, ...]
    transport: str = ""


def read_launch(path: Path, devices: Sequence[str] = ()) -> Launch:
    """Read a run folder, its run.yaml, or a file of command-line flags (then `devices` lists one device per rank).

    Raises UsageError saying file, what is wrong and the fix.
    """
    file = path / "run.yaml" if path.is_dir() else path
    if file.suffix in {".yaml", ".yml"}:
        return _from_document(file)
    return launch_from_flags(read_text(file, error=UsageError, expected=_EXPECTED), devices, name=str(file))


def launch_from_flags(text: str, devices: Sequence[str], *, name: str = "command line") -> Launch:
    """A launch from flags; `devices`: a catalog name per rank, in rank order, each on a host of its own."""
    if not devices:
        raise UsageError(f"{name}: flags do not say what they run on; add a device per rank: --devices h100,l4")
    placed = tuple(
        Placed(device=device, id=f"node{rank}/{device}", host=f"node{rank}") for rank, device in enumerate(devices)
    )
    return _launch(parse_flags(text, name=name), placed, stated_layers=(), where=name, title=name, transport="")


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


def _from_document(file: Path) -> Launch:
    data, where = opened(file, expected=_EXPECTED)
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
    return _launch(
        written.arguments,
        placed,
        stated_layers=tuple(each.layers for each in written.stages),
        where=str(file),
        title=file.parent.name if written.name is None else str(written.name),
        transport="" if written.network is None else str(written.network.transport or ""),
    )


def _launch(
    flags: Mapping[str, object], placed: tuple[Placed, ...], *, stated_layers: tuple[int, ...], where: str, title: str,
    transport: str,
) -> Launch:  # fmt: skip
    arguments = Arguments(flags, where=where)
    arguments.refuse("tensor-model-parallel-size", "HOPS does not model tensor parallelism yet")
    arguments.refuse("context-parallel-size", "HOPS does not model context parallelism yet")
    arguments.refuse("expert-model-parallel-size", "HOPS does not model expert parallelism yet")
    ranks = arguments.count("pipeline-model-parallel-size", 1)
    if len(placed) % ranks:
        raise UsageError(
            f"{where}: got {len(placed)} devices for --pipeline-model-parallel-size {ranks}, expected a multiple of it"
        )
    replicas = len(placed) // ranks
    hidden, heads = arguments.count("hidden-size"), arguments.count("num-attention-heads")
    micro = arguments.count("micro-batch-size")
    swiglu = arguments.on("swiglu")
    num_layers = arguments.count("num-layers")
    chunks = _chunks(arguments, num_layers, ranks, where)
    return Launch(
        name=title,
        num_layers=num_layers,
        hidden_size=hidden,
        ffn_hidden_size=arguments.count("ffn-hidden-size", hidden * 8 // 3 // 64 * 64 if swiglu else 4 * hidden),
        num_attention_heads=heads,
        num_query_groups=arguments.count("num-query-groups", 1) if arguments.on("group-query-attention") else heads,
        vocab_size=_vocabulary(arguments),
        max_position_embeddings=arguments.count("max-position-embeddings", arguments.count("seq-length")),
        seq_length=arguments.count("seq-length"),
        micro_batch_size=micro,
        num_microbatches=_microbatches(arguments, micro, replicas, where),
        data_parallel=replicas,
        precision="bf16" if arguments.on("bf16") else "fp16" if arguments.on("fp16") else "fp32",
        attention=_attention(arguments),
        recompute=_recompute(arguments),
        fused_cross_entropy=arguments.on("cross-entropy-loss-fusion"),
        dropout=max(arguments.number("attention-dropout", 0.1), arguments.number("hidden-dropout", 0.1)) > 0,
        fused_gradient_accumulation=not arguments.on("no-gradient-accumulation-fusion"),
        swiglu=swiglu,
        rotary=_rotary(arguments),
        rms_norm=arguments.choice("normalization", ("LayerNorm", "RMSNorm"), "LayerNorm") == "RMSNorm",
        biases=not arguments.on("disable-bias-linear"),
        tied=not arguments.on("untie-embeddings-and-output-weights"),
        optimizer=arguments.choice("optimizer", ("adam", "sgd"), "adam"),
        distributed_optimizer=arguments.on("use-distributed-optimizer"),
        layers=_layers(arguments, num_layers, ranks * chunks, stated_layers, where),
        chunks=chunks,
        group=arguments.count("microbatch-group-size-per-virtual-pipeline-stage", ranks),
        overlap_p2p=chunks > 1 and not arguments.on("no-overlap-p2p-communication"),
        train_iters=arguments.count("train-iters", 10),
        placed=placed[::replicas],
        transport=transport,
    )


def _microbatches(arguments: Arguments, micro: int, replicas: int, where: str) -> int:
    whole = arguments.count("global-batch-size", micro * replicas)
    if whole % (micro * replicas):
        raise UsageError(
            f"{where}: --global-batch-size {whole} is no multiple of --micro-batch-size {micro} x {replicas} replicas"
        )
    return whole // (micro * replicas)


def _vocabulary(arguments: Arguments) -> int:
    multiple = arguments.count("make-vocab-size-divisible-by", _VOCABULARY_MULTIPLE)
    return -(-arguments.count("vocab-size") // multiple) * multiple


def _attention(arguments: Arguments) -> str:
    local = arguments.choice(
        "transformer-impl", ("local", "transformer_engine", "inference_optimized"), "transformer_engine"
    )
    return "unfused" if local == "local" and not arguments.on("use-flash-attn") else "flash"


def _recompute(arguments: Arguments) -> str:
    if arguments.on("recompute-activations"):
        return "selective"
    return arguments.choice("recompute-granularity", ("none", "selective", "full"), "none")


def _rotary(arguments: Arguments) -> bool:
    kinds = ("learned_absolute", "rope", "yarn", "mrope", "none")
    return arguments.choice("position-embedding-type", kinds, "learned_absolute") != "learned_absolute"


def _chunks(arguments: Arguments, num_layers: int, ranks: int, where: str) -> int:
    """Stages per rank."""
    stages = arguments.optional("num-virtual-stages-per-pipeline-rank")
    per_stage = arguments.optional("num-layers-per-virtual-pipeline-stage")
    if stages is not None:
        return stages
    if per_stage is None:
        return 1
    if num_layers % (ranks * per_stage):
        raise UsageError(
            f"{where}: --num-layers {num_layers} is not a multiple of {ranks} ranks x "
            f"--num-layers-per-virtual-pipeline-stage {per_stage}"
        )
    return num_layers // (ranks * per_stage)


def _layers(arguments: Arguments, num_layers: int, stages: int, stated: tuple[int, ...], where: str) -> tuple[int, ...]:
    """Layers of each stage: even, but for what the first and the last are given by flag."""
    first, last = (arguments.optional(f"decoder-{end}-pipeline-num-layers") for end in ("first", "last"))
    inner = stages - (first is not None) - (last is not None)
    rest = num_layers - (first or 0) - (last or 0)
    if rest < 0 or (inner and rest % inner) or (not inner and rest):
        raise UsageError(
            f"{where}: {num_layers} layers cannot be cut evenly over {stages} stages "
            f"(first {first or 'even'}, last {last or 'even'})"
        )
    middle = (rest // inner,) * inner if inner else ()
    layers = ((first,) if first is not None else ()) + middle + ((last,) if last is not None else ())
    if stated and len(stated) == stages and stated != layers:
        raise UsageError(f"{where}: stages have {list(stated)} layers, but the arguments give {list(layers)}")
    return layers
