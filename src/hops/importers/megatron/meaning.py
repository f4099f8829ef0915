"""What Megatron-LM's arguments mean: sizes that follow from others, and choices in HOPS's words."""

from collections.abc import Sequence

from hops.errors import UsageError
from hops.importers.megatron.cut import Cut
from hops.importers.megatron.settings import Settings

_VOCABULARY_MULTIPLE = 128  # Megatron-LM's default of --make-vocab-size-divisible-by
_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1}
_REMAINDER_BYTES = 2  # of an fp32 parameter whose upper half is the bf16 parameter (--store-param-remainders)


def size(settings: Settings, name: str, older: str) -> int:
    """A size with two names, of which a launch may use one."""
    if settings.given(name) and settings.given(older) and settings.count(name) != settings.count(older):
        raise settings.fault(older, f"{settings.written(name)} {settings.text(name)}, or one of the two alone")
    return settings.count(older) if settings.given(older) and not settings.given(name) else settings.count(name)


def gated(settings: Settings) -> bool:
    """Whether the MLP is gated."""
    function = settings.choice("activation_func", ("gelu", "swiglu"), "gelu")
    return settings.on("swiglu") or function == "swiglu"


def query_groups(settings: Settings, heads: int) -> int:
    """--group-query-attention switches them on; a configuration file states the number alone."""
    stated = settings.given("num_query_groups") and not settings.written("num_query_groups").startswith("--")
    if settings.on("group_query_attention", default=stated):
        return settings.count("num_query_groups", 1)
    return heads


def head_dim(hidden: int, heads: int, where: str) -> int:
    """Width of a head that no argument states."""
    if hidden % heads:
        raise UsageError(f"{where}: --hidden-size {hidden} is no multiple of --num-attention-heads {heads}")
    return hidden // heads


def microbatches(settings: Settings, micro: int, replicas: int, where: str) -> int:
    """Microbatches per iteration and pipeline."""
    whole = settings.count("global_batch_size", micro * replicas)
    if whole % (micro * replicas):
        raise UsageError(
            f"{where}: --global-batch-size {whole} is no multiple of --micro-batch-size {micro} x {replicas} replicas"
        )
    return whole // (micro * replicas)


def vocabulary(settings: Settings, asked: int, where: str) -> tuple[int, tuple[str, ...]]:
    """Rows of the embedding table, and a note where what the launch says was not taken."""
    if not asked and settings.given("padded_vocab_size"):
        return settings.count("padded_vocab_size"), ()
    if not asked and not settings.given("vocab_size"):
        raise UsageError(
            f"{where}: --vocab-size is missing: the tokenizer decides it when the run starts; add --vocab N, the words "
            "of the tokenizer (GPT-2's has 50257, Llama 2's 32000, Llama 3's 128256)"
        )
    size = asked or settings.count("vocab_size")
    tensor = settings.count("tensor_model_parallel_size", 1)
    notes = []
    if asked and settings.given("vocab_size") and settings.count("vocab_size") != asked:
        notes.append(
            f"the launch says {settings.written('vocab_size')} {settings.text('vocab_size')}; --vocab {asked} holds"
        )
    if not settings.on("pad_vocab_size", default=True):
        return size, tuple(notes)
    multiple = settings.count("make_vocab_size_divisible_by", _VOCABULARY_MULTIPLE) * tensor
    return -(-size // multiple) * multiple, tuple(notes)


def attention(settings: Settings) -> str:
    """Which kind of attention runs."""
    backend = settings.choice("attention_backend", ("auto", "flash", "fused", "unfused", "local"), "auto")
    local = settings.choice(
        "transformer_impl", ("local", "transformer_engine", "inference_optimized"), "transformer_engine"
    )
    if backend in {"unfused", "local"}:
        return "unfused"
    return "unfused" if local == "local" and not settings.on("use_flash_attn") and backend == "auto" else "flash"


def recompute(settings: Settings, layers: Sequence[int]) -> str:
    """Which of HOPS's three ways it is. Raises UsageError for what lies between them."""
    kind = settings.choice("recompute_granularity", ("none", "None", "", "selective", "full"), "none")
    if settings.on("recompute_activations"):
        kind = "selective"
    if kind == "selective":
        if settings.given("recompute_modules") and settings.text("recompute_modules").split() != ["core_attn"]:
            raise settings.fault("recompute_modules", "core_attn: others are not modelled yet")
        return "selective"
    if kind != "full":
        return "none"
    method = settings.choice("recompute_method", ("uniform", "block"), "uniform")
    number = settings.count("recompute_num_layers", 1 if method == "uniform" else max(layers))
    if method == "block" and number < max(layers):
        raise settings.fault(
            "recompute_num_layers",
            f"{max(layers)} or more with --recompute-method block, all layers of a stage: recomputation of a part is "
            "not modelled yet",
        )
    if method == "uniform" and number > 1:
        raise settings.fault(
            "recompute_num_layers", "1 with --recompute-method uniform: units of several layers are not modelled yet"
        )
    return "full"


def rotary(settings: Settings) -> bool:
    """Whether positions are rotary. Raises UsageError for models without positions."""
    kinds = ("learned_absolute", "rope", "yarn", "mrope")
    kind = settings.choice("position_embedding_type", kinds, "learned_absolute")
    rotary = settings.on("use_rotary_position_embeddings") or kind != "learned_absolute"
    if not rotary and not settings.on("add_position_embedding", default=True):
        raise UsageError(
            f"{settings.written('add_position_embedding')}: models without positions are not modelled; expected "
            "it beside --position-embedding-type rope"
        )
    return rotary


def optimizer_bytes(settings: Settings, precision: str, optimizer: str) -> tuple[int, int | None]:
    """Bytes of a gradient, in memory and in reductions, and of the optimizer's states where HOPS would count others.

    Source: Megatron-LM's `docs/.../dist_optimizer.md`: with gradients of 2 bytes the optimizer holds an fp32 copy.
    """
    in_four = precision == "fp32" or settings.on("accumulate_allreduce_grads_in_fp32") or (
        precision == "bf16" and not settings.on("grad_reduce_in_bf16"))  # fmt: skip
    if not settings.on("use_precision_aware_optimizer"):
        copies = {"adam": 3, "sgd": 2}[optimizer]  # of 4 bytes: master weights and moments
        return (4, None) if in_four else (2, 4 * copies + 4)
    if not settings.on("use_distributed_optimizer"):
        raise settings.fault("use_precision_aware_optimizer", "--use-distributed-optimizer beside it")
    kinds = {
        name: settings.choice(name, choices, "fp32")
        for name, choices in {
            "main_grads_dtype": ("fp32", "bf16"),
            "main_params_dtype": ("fp32", "fp16"),
            "exp_avg_dtype": ("fp32", "fp16", "bf16", "fp8"),
            "exp_avg_sq_dtype": ("fp32", "fp16", "bf16", "fp8"),
        }.items()
    }
    remainder = precision == "bf16" and kinds["main_params_dtype"] == "fp32" and settings.on(
        "store_param_remainders", default=True)  # fmt: skip
    main = _REMAINDER_BYTES if remainder else _BYTES[kinds["main_params_dtype"]]
    states = main + _BYTES[kinds["exp_avg_dtype"]] + _BYTES[kinds["exp_avg_sq_dtype"]]
    main_grads = _BYTES[kinds["main_grads_dtype"]]
    gradients = 4 if in_four and main_grads == 4 else 2  # fp32 ones are held only where main gradients are fp32
    return gradients, states + (4 if gradients == 2 and main_grads == 4 else 0)


def cut_of(settings: Settings, num_layers: int, ranks: int) -> Cut:
    """What the arguments say about the cut."""
    layout = settings.text("pipeline_model_parallel_layout")
    return Cut(
        num_layers=num_layers,
        ranks=ranks,
        chunks=settings.optional("num_virtual_stages_per_pipeline_rank"),
        layers_per_chunk=settings.optional("num_layers_per_virtual_pipeline_stage"),
        first=settings.optional("decoder_first_pipeline_num_layers"),
        last=settings.optional("decoder_last_pipeline_num_layers"),
        embedding=settings.on("account_for_embedding_in_pipeline_split"),
        loss=settings.on("account_for_loss_in_pipeline_split"),
        embedding_alone=settings.on("standalone_embedding_stage"),
        layout="" if layout in {"None", "null"} else layout,
    )
