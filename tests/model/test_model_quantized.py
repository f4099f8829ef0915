"""Linear layers in fewer bits: which products, which casts, which copies of weights."""

from dataclasses import replace

import pytest

from hops.model.implementation import Implementation, Microbatch, Optimizer, Quantization
from hops.model.kernels import Gemm
from hops.model.kinds import Experts
from hops.model.memory import stage_memory
from hops.model.partition import StageSlice
from hops.model.shards import StateShards
from hops.model.transformer import Transformer
from hops.model.workload import stage_work

LLAMA = Transformer.llama(
    layers=2, hidden=512, ffn_hidden=1024, heads=8, kv_heads=8, vocab=4096, max_positions=1024
)  # fmt: skip
MOE = replace(LLAMA, experts=Experts(count=8, top_k=2, hidden=256))
BOTH_ENDS = StageSlice(layers=2, embedding=True, head=True)
BATCH = Microbatch(sequence_length=1024)


def work(quantization, model=LLAMA):
    return stage_work(model, BOTH_ENDS, BATCH, Implementation(quantization=quantization))


def kernels(stage):
    return [k for op in (stage.forward, stage.input_backward, stage.weight_backward) for k in op.kernels]


@pytest.mark.parametrize("model", [LLAMA, MOE], ids=["dense", "experts"])
def test_linear_layers_are_quantized_and_head_router_and_attention_are_not(model):
    formats = {
        kernel.name: kernel.format for kernel in kernels(work(Quantization(), model)) if isinstance(kernel, Gemm)
    }
    quantized = {name for name, each in formats.items() if each == "fp8"}
    assert quantized == {"qkv", "projection", "experts" if model.experts else "mlp"}
    assert {"lm_head", "attention"} <= formats.keys() - quantized


def test_a_quantized_product_reads_fewer_bytes_and_does_the_same_flops():
    plain, eight, four = (work(each) for each in (None, Quantization(), Quantization(format="fp4", scaling="block")))
    assert plain.forward.flop == eight.forward.flop == four.forward.flop

    def moved(stage):
        return next(kernel.bytes for kernel in stage.forward.kernels if kernel.name == "projection")

    operands, result = 1024 * 512 + 512 * 512, 1024 * 512
    assert moved(plain) == 2 * (operands + result)
    assert moved(eight) == operands + 2 * result
    assert moved(four) == operands // 2 + 2 * result


@pytest.mark.parametrize(
    ("scaling", "format_", "per_element"),
    [("delayed", "fp8", 4), ("block", "fp8", 4), ("current", "fp8", 6), ("block", "fp4", 3)],
)
def test_inputs_are_cast_in_f_and_gradients_in_i(scaling, format_, per_element):
    """Read once as 2 bytes (twice, if the factor is found first), written twice in the format."""
    stage = work(Quantization(scaling=scaling, format=format_))
    forward, backward, weights = (
        sum(kernel.total_bytes for kernel in op.kernels if kernel.name == "cast")
        for op in (stage.forward, stage.input_backward, stage.weight_backward)
    )
    assert forward == 2 * 1024 * (512 + 512 + 512 + 1024) * per_element
    assert backward == 2 * 1024 * (3 * 512 + 512 + 2 * 1024 + 512) * per_element
    assert weights == 0


@pytest.mark.parametrize(("only", "extra"), [(False, 2), (True, 0)])
def test_copies_of_weights_in_the_format_are_held_beside_or_instead(only, extra):
    def weights(quantization, states=StateShards()):  # noqa: B008 (frozen)
        how = Implementation(quantization=quantization)
        adam = Optimizer.named("adam", element_bytes=2)
        return stage_memory(LLAMA, BOTH_ENDS, BATCH, how, adam, states=states).weights_bytes

    recipe = Quantization(quantized_weights=only)
    assert weights(recipe) - weights(None) == extra * 2 * LLAMA.layer_matrix_parameters
    sharded = StateShards.zero(3, 8)
    assert weights(recipe, sharded) == weights(None, sharded)  # made of what is gathered, when it is
