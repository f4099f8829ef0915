"""How the framework runs a model: precision, kernels, recompute; and the microbatch it runs it on.

Counted in Megatron-LM core 0.16 (`transformer-impl local`: GPTModel with local layer specs) on PyTorch 2. An operation
is whatever the framework handles one by one: a tensor operation (a view as well as a kernel), a call of a module, of an
autograd function or of a compiled function, and in the backward pass a node of the graph. Python between them is not
counted. The counts are what they are: they were written down before any prediction was scored with them.

One layer, F, with unfused attention (86):
    TransformerLayer 1; input norm: module, kernel 2
    SelfAttention 1; linear_qkv: module, copy to region, autograd function, transpose, matmul (view, mm, view), bias 8
    split of QKV: view, split, reshape 3
    DotProductAttention 1; Q K^T: reshape, view, buffer (slice, view), transposes 3, baddbmm, view 9
    mask and softmax: module, masked fill, Softmax made, called, kernel 5; random state forked: get, set, get, set 4
    dropout: module, kernel 2; P V: views 2, transpose, bmm, view, permute, contiguous, view 8
    linear_proj: module, autograd function, transpose, matmul 3, reduce from region 7
    bias + dropout + add: grad mode set and reset, compiled call, its autograd function, its kernel 5
    cross attention that is none: three identities, grad mode set and reset 5
    MLP norm 2; MLP 1; linear_fc1 without bias 7; bias + GeLU: autograd function, compiled call, kernel 3; linear_fc2 7
    bias + dropout + add 5

One layer, B, with unfused attention (149):
    two bias + dropout + add: node, compiled call 2, kernel, bias reduction 5 each = 10
    four linears: node of the region, node, dX (view, mm, view), views of both operands 2, transpose, mm 9 each = 36
    GeLU: node, compiled call, kernel, bias reduction 2 = 5; bias of QKV 1; two norms: node, kernel 4; residual adds 2
    attention core (49): views and transposes with their nodes 24, contiguous and dropout and softmax 6,
    bmm: node, transposes 2, bmms 2 = 5, in-place mask of a view: CopySlices 7, baddbmm: node, transposes 2, bmms 2,
    scale 2 = 7; split of QKV 6
    twelve parameters: AccumulateGrad node, hook, addition to main_grad 3 each = 36

Flash attention replaces the core's 28 operations inside its module by 5, and its 49 of B by 6. Gradient accumulation
fused into the GEMM saves transpose and addition of four weights.

First stage: batch (iterator, five tensors to the device, three broadcasts) 9 and embedding (two tables with their
modules, add, transpose, contiguous, dropout) 11 in F; 18 in B, of which 6 add two tables' gradients.
Last stage: batch 9, norm 2, logits 7, transposes 6, cross-entropy 33 (12 if fused), loss and its reduction 15 in F;
loss 6, cross-entropy 12 (4 if fused), transposes 4, GEMMs 9, norm 2, gradients of three parameters 9 in B.

Experts in place of the MLP, with the all-to-all dispatcher: router (module, jitter, linear, scores, top-k, masks, loss
for balance and its scaler) 38, counts of tokens by expert and device with their copies to the host 27, permutation 12,
two all-to-alls (autograd function, buffer, collective, wait) 14, sorting by expert 8, grouped linears and activation 16
in place of the MLP's 15, sorting back and weighted sum 15: 115 more in F; the nodes of these, two operations each on
the way back, 125 in B.

Optimizer without Apex or Transformer Engine, per layer of 12 parameters: norm 24 (filter and torch.norm each), step 60
(gradient handed over, clipped by read and write, foreach kernels, master copied back, each once per parameter). Fused,
lists of tensors are handled at once: 12 (the filter) and 0. Once per step: 30 (reductions of norm and success flags,
clip coefficient, step counter).

One message of a blocking schedule: receive buffer, two P2POps, coalescing begun and ended, isend, irecv, wait,
synchronize, deallocation of what was sent: 10 on each side.
"""

from dataclasses import dataclass
from typing import Literal

from hops.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Microbatch:
    """The unit of scheduling: `samples` sequences of `sequence_length` tokens."""

    sequence_length: int
    samples: int = 1

    def __post_init__(self) -> None:
        for name in ("sequence_length", "samples"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} of a microbatch must be at least 1, but got {getattr(self, name)}")

    @property
    def tokens(self) -> int:
        return self.sequence_length * self.samples


RecomputeModule = Literal["core_attn", "mlp", "moe", "moe_act", "shared_experts", "layernorm", "mla_up_proj"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """Linear layers in fewer bits (Micikevicius et al. 2022, arXiv 2209.05433): head, router and attention stay as is.

    Attributes:
        format: of the operands of their GEMMs; results and all else keep the run's element type.
        scaling: one factor per tensor from earlier steps (`delayed`), per tensor found by a pass of its own
            (`current`), or per block of elements (`block`: MXFP8, NVFP4, 128 x 128 and 1 x 128 blocks).
        quantized_weights: whether weights are held in the format only, the states holding the master copy; otherwise
            in the element type as well.
    """

    format: Literal["fp8", "fp4"] = "fp8"
    scaling: Literal["delayed", "current", "block"] = "current"
    quantized_weights: bool = False

    @property
    def operand_bytes(self) -> float:
        """Bytes of an element of an operand, scaling factors of blocks left out."""
        return 1.0 if self.format == "fp8" else 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """What of the run's time and memory is the framework's choice and not the model's.

    Attributes:
        element_bytes: bytes of a weight or activation: 2 for bf16 and fp16, 4 for fp32.
        attention: `unfused` moves the heads x sequence^2 scores through memory; `flash` never writes them, skips the
            masked half and computes the scores again in the backward pass.
        cross_entropy: `unfused` makes several fp32 passes over sequence x vocab logits; `fused` one.
        recompute: `none` keeps all activations; `selective` computes `recompute_modules` again in the backward pass;
            `full` keeps the input of each layer only.
        recompute_modules: what `selective` computes again.
        recompute_layers: how many layers of a stage, its first ones, `full` computes again, all others being kept
            (Megatron-LM's block method); None: all.
        recompute_unit: layers of which `full` keeps one input together (its uniform method).
        dropout: whether masks are written and kept (probability above 0).
        fused_gradient_accumulation: whether weight-gradient GEMMs add to the fp32 gradients themselves.
        quantization: linear layers in fewer bits.
        tensor_overlap: whether tensor parallelism's collectives run chunk by chunk beside the GEMM next to them
            (Megatron-LM's --tp-comm-overlap, asynchronous tensor parallelism in PyTorch).
        shared_expert_overlap: whether shared experts are computed while tokens travel to routed ones.
        expert_capacity: rows of an expert over its fair share, to which it is padded or cut; None: as many as come.
        expert_imbalance: rows of the fullest device over its fair share where nothing is cut.
    """

    element_bytes: int = 2
    attention: Literal["unfused", "flash"] = "flash"
    cross_entropy: Literal["unfused", "fused"] = "unfused"
    recompute: Literal["none", "selective", "full"] = "none"
    recompute_modules: tuple[RecomputeModule, ...] = ("core_attn",)
    recompute_layers: int | None = None
    recompute_unit: int = 1
    dropout: bool = True
    fused_gradient_accumulation: bool = True
    quantization: Quantization | None = None
    tensor_overlap: bool = False
    shared_expert_overlap: bool = False
    expert_capacity: float | None = None
    expert_imbalance: float = 1.0

    def __post_init__(self) -> None:
        if self.element_bytes not in (1, 2, 4):
            raise UsageError(f"element_bytes must be 1, 2 or 4, but got {self.element_bytes}")
        if self.recompute_unit < 1:
            raise UsageError(f"recompute_unit must be at least 1, but got {self.recompute_unit}")
        if self.recompute_layers is not None and self.recompute_layers < 0:
            raise UsageError(f"recompute_layers must be at least 0, but got {self.recompute_layers}")
        if self.expert_capacity is not None and not self.expert_capacity > 0:
            raise UsageError(f"expert_capacity must be a positive number, but got {self.expert_capacity}")
        if not 1 <= self.expert_imbalance < float("inf"):
            raise UsageError(f"expert_imbalance must be at least 1, but got {self.expert_imbalance}")


FP32_BYTES = 4
MOMENTS = {"adam": 2, "sgd_momentum": 1, "sgd": 0}  # fp32 states beside the weights
FOREACH_EXTRA_MOVES = {"adam": 14, "sgd_momentum": 3, "sgd": 0}
"""fp32 moves per parameter of torch.optim's foreach kernels beyond those of one fused kernel.

Adam (torch/optim/adam.py, `_multi_tensor_adam` with decoupled decay): decay 2, lerp 3, mul 2, addcmul 4, sqrt 2, div 2,
add 2, addcdiv 4 = 21, against 7 (gradient read, three states read and written). Momentum (torch/optim/sgd.py): mul 2,
add 3, step 3 = 8, against 5.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """Bytes per parameter.

    Attributes:
        state_bytes: states held between steps, a master copy of the weights included.
        gradient_bytes: one gradient, in memory and in reductions.
        master_weights: whether the states hold an fp32 copy from which the weights are written.
        extra_step_bytes: what the step moves beyond one pass over gradients and states.
    """

    state_bytes: float
    gradient_bytes: float = FP32_BYTES
    master_weights: bool
    extra_step_bytes: float = 0.0

    def __post_init__(self) -> None:
        for name in ("state_bytes", "gradient_bytes", "extra_step_bytes"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} of an optimizer must be at least 0, but got {getattr(self, name)}")

    @classmethod
    def named(cls, kind: str, *, element_bytes: int, fused: bool = True) -> "Optimizer":
        """Megatron-LM's `adam`, `sgd_momentum` or `sgd`: fp32 moments, gradients and master weights.

        Adam with 2-byte weights holds 12 bytes of states per parameter, 18 with weights and gradients (Megatron-LM,
        distributed optimizer's documentation). Weights that are fp32 themselves have no other master copy.
        `fused` is one kernel (Apex, Transformer Engine); without these Megatron-LM falls back to torch.optim.
        Raises UsageError for another name.
        """
        if kind not in MOMENTS:
            raise UsageError(f"unknown optimizer {kind!r}: known are {', '.join(MOMENTS)}")
        master = element_bytes < FP32_BYTES
        return cls(
            state_bytes=(MOMENTS[kind] + master) * FP32_BYTES,
            master_weights=master,
            extra_step_bytes=0.0 if fused else FOREACH_EXTRA_MOVES[kind] * FP32_BYTES,
        )

    def step_bytes(self, element_bytes: int) -> float:
        """What the end of an iteration moves per parameter, as Megatron-LM's mixed-precision optimizer does it.

        Gradients: read for the norm, read and written by clipping, read by the step, zeroed (5 moves). States: read and
        written. Weights: the master copy is read and they are written, or they are read and written themselves.
        Adam in mixed precision: 20 + 24 + 6 = 50.
        """
        weights = FP32_BYTES + element_bytes if self.master_weights else 2 * element_bytes
        return 5 * self.gradient_bytes + 2 * self.state_bytes + weights + self.extra_step_bytes


UNFUSED_CORE_FORWARD, FLASH_CORE_FORWARD = 28, 5
UNFUSED_CORE_BACKWARD, FLASH_CORE_BACKWARD = 49, 6
LAYER_FORWARD_AROUND_CORE, LAYER_BACKWARD_AROUND_CORE = 58, 100
FUSED_ACCUMULATION_SAVES = 8
OPTIMIZER_ONCE = 30
EXPERTS_FORWARD, EXPERTS_BACKWARD = 115, 125
MESSAGE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOperations:
    """Operations that the host dispatches. `layer_*`: per layer; `first_*`, `last_*`: more on first and last stage.

    Attributes:
        norm_layer, step_layer: per layer in the gradient norm and in the optimizer step.
        step: once per optimizer step.
        message: per message, on each side.
    """

    layer_forward: int
    layer_backward: int
    first_forward: int
    first_backward: int
    last_forward: int
    last_backward: int
    norm_layer: int
    step_layer: int
    step: int = OPTIMIZER_ONCE
    message: int = MESSAGE


def host_operations(how: Implementation, *, fused_optimizer: bool, experts: bool = False) -> HostOperations:
    """The counts above for an implementation; `experts`: of layers with experts in place of the MLP."""
    flash, fused_loss = how.attention == "flash", how.cross_entropy == "fused"
    forward = LAYER_FORWARD_AROUND_CORE + (FLASH_CORE_FORWARD if flash else UNFUSED_CORE_FORWARD)
    backward = LAYER_BACKWARD_AROUND_CORE + (FLASH_CORE_BACKWARD if flash else UNFUSED_CORE_BACKWARD)
    if experts:
        forward, backward = forward + EXPERTS_FORWARD, backward + EXPERTS_BACKWARD
    return HostOperations(
        layer_forward=forward,
        layer_backward=backward - (FUSED_ACCUMULATION_SAVES if how.fused_gradient_accumulation else 0),
        first_forward=20,
        first_backward=18,
        last_forward=39 + (12 if fused_loss else 33),
        last_backward=30 + (4 if fused_loss else 12),
        norm_layer=12 if fused_optimizer else 24,
        step_layer=0 if fused_optimizer else 60,
    )
