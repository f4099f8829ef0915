"""A Megatron-LM launch: what was to be trained, in which cut, on which devices. Known before the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hops.decode.decode import opened, read_text
from hops.errors import UsageError
from hops.importers.megatron import meaning
from hops.importers.megatron.axes import Axes, axes_of, experts_of, latent_of
from hops.importers.megatron.cut import cut_layers
from hops.importers.megatron.flags import find, nearest
from hops.importers.megatron.hosts import Placed, place, stated_hosts
from hops.importers.megatron.run_document import RunDocument, read_run_document
from hops.importers.megatron.settings import Settings, Sorted, read_flag_mapping, sort_out
from hops.importers.megatron.source import (
    EXPECTED,
    Asked,
    LaunchSource,
    is_configuration,
    read_document,
    read_flags,
    refuse_idle,
)
from hops.importers.shell.grammar import MAX_BYTES
from hops.importers.shell.values import Unknowns


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launch, in Megatron-LM's terms where it has them.

    Attributes:
        head_dim: --kv-channels.
        layers: transformer layers of each stage, in the order of the model.
        placed: the device of each rank of the first pipeline replica, or of all ranks where `axes` divide a copy.
        chunks: stages per rank (1: plain 1F1B).
        group: microbatch group size of the interleaved schedule.
        gradient_bytes, state_bytes: of one parameter; state_bytes None: as HOPS counts by kind and precision.
        axes: in how many parts a copy divides its work.
        experts, latent: of the model, in a spec's words; None: plain MLPs, plain attention.
        arguments: what was done about every argument, and under which assumptions.
    """

    name: str
    num_layers: int
    hidden_size: int
    ffn_hidden_size: int
    num_attention_heads: int
    num_query_groups: int
    head_dim: int
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
    gradient_bytes: int
    state_bytes: int | None
    layers: tuple[int, ...]
    chunks: int
    group: int
    overlap_p2p: bool
    placed: tuple[Placed, ...]
    axes: Axes = field(default_factory=Axes)
    experts: Mapping[str, Any] | None = None
    latent: Mapping[str, Any] | None = None
    transport: str = ""
    arguments: Sorted = field(default_factory=Sorted)


def read_launch(path: Path, devices: Sequence[str] = (), asked: Asked | None = None) -> Launch:
    """Read a run folder, its run.yaml, a launch script, a configuration in YAML, or a file of flags.

    Args:
        path: the file or folder.
        devices: a device per rank, for what does not say on which it runs.
        asked: the same and more.

    Raises UsageError saying file, what is wrong and the fix.
    """
    asked = replace(asked or Asked(), devices=devices or (asked or Asked()).devices)
    file = path / "run.yaml" if path.is_dir() else path
    if file.suffix not in {".yaml", ".yml"}:
        text = read_text(file, error=UsageError, expected=EXPECTED, largest=MAX_BYTES)
        return launch_from_flags(text, asked.devices, name=str(file), asked=asked, folder=file.parent)
    data, where = opened(file, expected=EXPECTED, largest=MAX_BYTES)
    if is_configuration(data):
        return _located(read_document(data, asked, where=str(file)), asked, title=file.parent.name or file.stem)
    return _from_run(read_run_document(data, where, file), file, asked)


def launch_from_flags(
    text: str,
    devices: Sequence[str],
    *,
    name: str = "command line",
    asked: Asked | None = None,
    folder: Path | None = None,
) -> Launch:
    """A launch from flags or a script; `devices`: a catalog name per rank, in rank order, or one for all."""
    asked = replace(asked or Asked(), devices=devices)
    return _located(read_flags(text, asked, where=name, folder=folder), asked, title=name)


def _located(source: LaunchSource, asked: Asked, *, title: str) -> Launch:
    """A launch whose devices are asked for, or said by its launcher."""
    settings, left_out = _settings(source, asked)
    ranks = settings.count("pipeline_model_parallel_size", 1)
    count = len(stated_hosts(asked.hosts)) if asked.hosts else max(source.started.total, len(asked.devices))
    sort_out(
        settings,
        copies=count // (ranks * axes_of(settings).of_a_position),
        where=source.where,
        unknown=_unknown(source, asked),
    )  # before devices matter
    placed, notes = place(asked.devices, asked.hosts, source.started, ranks=ranks, where=source.where)
    extra = Sorted(left_out=left_out, notes=(*source.notes, *notes))
    return _launch(source, settings, placed, extra, asked, stated_layers=(), title=title, transport="")


def _settings(source: LaunchSource, asked: Asked) -> tuple[Settings, tuple[str, ...]]:
    """The arguments without those to be left out. Raises UsageError for what could not be read at all."""
    wanted = {_plain(each) for each in asked.without}
    kept = [each for each in source.words.settings if _plain(each.row.flag or each.row.name) not in wanted]
    left_out = [str(each) for each in source.words.settings if each not in kept]
    left_out += [each.split()[0] for each in source.words.unknown if _plain(each.split()[0]) in wanted]
    given = {_plain(each.split()[0]) for each in left_out}
    for name in wanted - given:
        row = find(name)
        near = "" if row is not None else nearest(name)
        hint = f"; did you mean {near}?" if near else ""
        raise UsageError(f"--without {name}: the launch has no such flag{hint}")
    if source.words.faults:
        raise UsageError("\n".join(f"{source.where}: {each}" for each in source.words.faults))
    left = tuple(source.unknowns.printed(each) for each in left_out)
    return Settings(kept, where=source.where, unknowns=source.unknowns), left


def _plain(flag: str) -> str:
    return flag.lstrip("-").replace("_", "-")


def _unknown(source: LaunchSource, asked: Asked) -> list[str]:
    """Flags that Megatron-LM does not have, but for those to be left out."""
    wanted = {_plain(each) for each in asked.without}
    return [each for each in source.words.unknown if _plain(each.split()[0]) not in wanted]


def _from_run(document: RunDocument, file: Path, asked: Asked) -> Launch:
    """A launch whose devices the document states."""
    where = str(file)
    idle = {"--devices": asked.devices, "--hosts": asked.hosts, "--set": asked.given, "--command": asked.command}
    refuse_idle(idle, where)
    source = LaunchSource(words=read_flag_mapping(document.arguments), unknowns=Unknowns(), where=where)
    settings, left_out = _settings(source, asked)
    return _launch(
        source, settings, document.placed, Sorted(left_out=left_out), asked,
        stated_layers=document.layers, title=document.title, transport=document.transport,
    )  # fmt: skip


def _launch(
    source: LaunchSource, settings: Settings, placed: tuple[Placed, ...], extra: Sorted, asked: Asked, *,
    stated_layers: tuple[int, ...], title: str, transport: str,
) -> Launch:  # fmt: skip
    where = source.where
    ranks = settings.count("pipeline_model_parallel_size", 1)
    axes = axes_of(settings)
    one = ranks * axes.of_a_position
    if len(placed) % one:
        also = "" if axes.of_a_position == 1 else f" x tensor {axes.tensor} x context {axes.context} = {one}"
        raise UsageError(
            f"{where}: got {len(placed)} devices for --pipeline-model-parallel-size {ranks}{also}, "
            "expected a multiple of it"
        )
    replicas = len(placed) // one
    arguments = sort_out(settings, copies=replicas, where=where, unknown=_unknown(source, asked))
    hidden, heads = settings.count("hidden_size"), settings.count("num_attention_heads")
    micro = settings.count("micro_batch_size")
    gated = meaning.gated(settings)
    num_layers = meaning.size(settings, "num_layers", "encoder_num_layers")
    seq_length = meaning.size(settings, "seq_length", "encoder_seq_length")
    layers = cut_layers(meaning.cut_of(settings, num_layers, ranks), where=where)
    if stated_layers and len(stated_layers) == len(layers) and stated_layers != layers:
        raise UsageError(f"{where}: stages have {list(stated_layers)} layers, but the arguments give {list(layers)}")
    chunks = len(layers) // ranks
    precision = "bf16" if settings.on("bf16") else "fp16" if settings.on("fp16") else "fp32"
    optimizer = settings.choice("optimizer", ("adam", "sgd"), "adam")
    gradient_bytes, state_bytes = meaning.optimizer_bytes(settings, precision, optimizer)
    ffn = settings.count("ffn_hidden_size", hidden * 8 // 3 // 64 * 64 if gated else 4 * hidden)
    vocab, vocab_note = meaning.vocabulary(settings, asked.vocab, where)
    together = not settings.on(
        "use_tp_pp_dp_mapping"
    )  # the ranks of a pipeline: every `replicas`-th, or the first ones
    return Launch(
        name=title,
        num_layers=num_layers,
        hidden_size=hidden,
        ffn_hidden_size=ffn,
        num_attention_heads=heads,
        num_query_groups=meaning.query_groups(settings, heads),
        head_dim=settings.optional("kv_channels") or meaning.head_dim(hidden, heads, where),
        vocab_size=vocab,
        max_position_embeddings=settings.count("max_position_embeddings", seq_length),
        seq_length=seq_length,
        micro_batch_size=micro,
        num_microbatches=meaning.microbatches(settings, micro, replicas, where),
        data_parallel=replicas,
        precision=precision,
        attention=meaning.attention(settings),
        recompute=meaning.recompute(settings, layers),
        fused_cross_entropy=settings.on("cross_entropy_loss_fusion"),
        dropout=max(settings.number("attention_dropout", 0.1), settings.number("hidden_dropout", 0.1)) > 0,
        fused_gradient_accumulation=settings.on("gradient_accumulation_fusion", default=True),
        swiglu=gated,
        rotary=meaning.rotary(settings),
        rms_norm=settings.choice("normalization", ("LayerNorm", "RMSNorm"), "LayerNorm") == "RMSNorm",
        biases=settings.on("add_bias_linear", default=True),
        tied=not settings.on("untie_embeddings_and_output_weights"),
        optimizer=optimizer,
        distributed_optimizer=settings.on("use_distributed_optimizer"),
        gradient_bytes=gradient_bytes,
        state_bytes=state_bytes,
        layers=layers,
        chunks=chunks,
        group=settings.optional("microbatch_group_size_per_vp_stage") or ranks,
        overlap_p2p=chunks > 1 and settings.on("overlap_p2p_comm", default=True),
        placed=placed if axes.whole_job else placed[::replicas] if together else placed[:ranks],
        axes=axes,
        experts=experts_of(settings, num_layers, ffn, where),
        latent=latent_of(settings),
        transport=transport,
        arguments=replace(arguments, left_out=extra.left_out, notes=(*extra.notes, *vocab_note)),
    )
