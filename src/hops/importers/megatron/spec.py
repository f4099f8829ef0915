"""A launch becomes a spec, in words a person would have written."""

from importlib.resources import files
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from hops.importers.megatron.hosts import Placed
from hops.importers.megatron.launch import Launch

_WARMUP_ITERATIONS = 1


def spec_text(launch: Launch, *, iterations: int = 5, profile: str = "") -> str:
    """The spec of a launch as YAML, with `iterations` simulated and costs by a hardware profile, if one is named."""
    writer = YAML()
    writer.width = 120
    writer.indent(mapping=2, sequence=4, offset=2)
    out = StringIO()
    out.write(f"# {launch.name}: imported from Megatron-LM launch arguments\n")
    writer.dump(_document(launch, iterations, profile), out)
    return out.getvalue()


def _document(launch: Launch, iterations: int, profile: str) -> dict[str, Any]:
    ranks = len(launch.layers) // launch.chunks
    return {
        "simulation": {
            "iterations": iterations,
            "warmup_iterations": min(_WARMUP_ITERATIONS, iterations - 1),
            "seed": 0,
        },
        "pipeline": _pipeline(launch),
        **({"parallel": launch.axes.section(ranks, launch.data_parallel)} if launch.axes.whole_job else {}),
        "hardware": ({"profile": profile} if profile else {}) | _hardware(launch),
        "optimizer": {
            "kind": {"adam": "adam", "sgd": "sgd_momentum"}[launch.optimizer],
            "fused": _fused_optimizer(launch),
            "distributed": launch.distributed_optimizer,
            **({"state_bytes": launch.state_bytes} if launch.state_bytes is not None else {}),
            "gradient_bytes": launch.gradient_bytes,
            **({} if launch.axes.whole_job else {"data_parallel": launch.data_parallel}),
        },
    }


def _fused_optimizer(launch: Launch) -> bool:
    """Megatron-LM takes the fused Adam of Apex or Transformer Engine where one is installed, else torch.optim's.

    Local layers with gradient accumulation that is not fused (fusing it needs Apex) say that neither is there.
    """
    return launch.fused_gradient_accumulation or launch.attention == "flash"


def _pipeline(launch: Launch) -> dict[str, Any]:
    schedule: Any = "1f1b"
    if launch.chunks > 1:
        schedule = {"name": "interleaved_1f1b", "chunks": launch.chunks, "microbatch_group_size": launch.group}
    return {
        "model": {
            "layers": launch.num_layers,
            "hidden": launch.hidden_size,
            "heads": launch.num_attention_heads,
            "kv_heads": launch.num_query_groups,
            **(
                {"head_dim": launch.head_dim}
                if launch.head_dim * launch.num_attention_heads != launch.hidden_size
                else {}
            ),
            "ffn_hidden": launch.ffn_hidden_size,
            "vocab": launch.vocab_size,
            "max_positions": launch.max_position_embeddings,
            "gated": launch.swiglu,
            "positions": "rotary" if launch.rotary else "learned",
            "norm": "rms" if launch.rms_norm else "layer",
            "biases": launch.biases,
            "tied": launch.tied,
            **({"experts": dict(launch.experts)} if launch.experts is not None else {}),
            **({"latent": dict(launch.latent)} if launch.latent is not None else {}),
        },
        "schedule": schedule,
        "microbatches": launch.num_microbatches,
        "microbatch_size": launch.micro_batch_size,
        "sequence_length": launch.seq_length,
        "partition": list(launch.layers),
        "precision": launch.precision,
        "attention": launch.attention,
        "recompute": launch.recompute,
        "cross_entropy": "fused" if launch.fused_cross_entropy else "unfused",
        "dropout": launch.dropout,
        "fused_gradient_accumulation": launch.fused_gradient_accumulation,
        "p2p": "overlapped" if launch.overlap_p2p else "blocking_fused",
    }


def _hardware(launch: Launch) -> dict[str, Any]:
    by_host: dict[str, list[Placed]] = {}
    for placed in launch.placed:
        by_host.setdefault(placed.host, []).append(placed)
    nics: dict[str, str] = YAML(typ="safe", pure=True).load(
        files(__package__).joinpath("hosts.yaml").read_text(encoding="utf-8")
    )
    nodes = []
    for host, devices in by_host.items():
        node: dict[str, Any] = {
            "name": host,
            **({"instance_type": devices[0].instance_type} if devices[0].instance_type else {}),
            "devices": [{"type": placed.device, "id": placed.id} for placed in devices],
        }
        if devices[0].instance_type in nics:
            node["nic"] = {"bandwidth": nics[devices[0].instance_type]}
        nodes.append(node)
    transport = {"transport": "sockets"} if "socket" in launch.transport else {}
    return {**transport, "nodes": nodes, "placement": [placed.id for placed in launch.placed]}
