"""Knobs of the axes: field, base spec, overrides before and after; see test_api_knobs."""

JOB = """
simulation: {iterations: 2}
pipeline:
  model: {layers: 8, hidden: 1024, heads: 16, vocab: 4096, max_positions: 4096, ffn_hidden: 4096}
  microbatches: 4
  sequence_length: 4096
  microbatch_size: 4
parallel: {tensor: 2, data: 2}
hardware:
  nodes: [{count: 4, devices: [{type: h100, count: 4}], nics: 4}]
"""
EXPERTS = JOB.replace("tensor: 2", "tensor: 2, sequence: true").replace(
    "ffn_hidden: 4096", "ffn_hidden: 4096, experts: {count: 8, top_k: 2, hidden: 1024}"
)
FOUR = ["parallel.context=4", "parallel.tensor=1"]

AXES_KNOBS = {
    "parallel.tensor": (JOB, [], ["parallel.tensor=4"]),
    "parallel.sequence": (JOB, [], ["parallel.sequence=true"]),
    "parallel.context": (JOB, [], ["parallel.context=2"]),
    "parallel.context_kind": (JOB, ["parallel.context=2"], ["parallel.context=2", "parallel.context_kind=all_to_all"]),
    "parallel.context_inner": (
        JOB,
        [*FOUR, "parallel.context_kind=hierarchical"],
        [*FOUR, "parallel.context_kind=hierarchical", "parallel.context_inner=2"],
    ),
    "parallel.expert": (EXPERTS, [], ["parallel.expert=2"]),
    "parallel.expert_tensor": (EXPERTS, [], ["parallel.expert_tensor=1"]),
    "parallel.data": (JOB, [], ["parallel.data=4"]),
    "parallel.pipeline": (
        JOB,
        ["parallel.data=null", "optimizer.data_parallel=2"],
        ["parallel.data=null", "optimizer.data_parallel=2", "parallel.pipeline=4"],
    ),
    "parallel.shard": (JOB, [], ["parallel.shard=optimizer"]),
    "parallel.shard_group": (
        JOB,
        ["parallel.shard=optimizer", "parallel.data=4"],
        ["parallel.shard=optimizer", "parallel.data=4", "parallel.shard_group=2"],
    ),
    "parallel.order": (JOB, [], ["parallel.order=tp-cp-ep-pp-dp"]),
    "parallel.overlap": (JOB, [], ["parallel.overlap=[gradients]"]),
    "hardware.domains.hosts": (JOB, ["hardware.domains.hosts=1"], ["hardware.domains.hosts=4"]),
    "hardware.domains.interconnect.name": (
        JOB,
        ["hardware.domains.hosts=4"],
        ["hardware.domains={hosts: 4, interconnect: nvlink3}"],
    ),
    "hardware.domains.interconnect.bandwidth": (
        JOB,
        ["hardware.domains={hosts: 4, interconnect: nvlink4}"],
        ["hardware.domains={hosts: 4, interconnect: {name: nvlink4, bandwidth: 100 GB/s}}"],
    ),
    "hardware.domains.interconnect.latency": (
        JOB,
        ["hardware.domains={hosts: 4, interconnect: nvlink4}"],
        ["hardware.domains={hosts: 4, interconnect: {name: nvlink4, latency: 1 ms}}"],
    ),
    "hardware.fabric.pod": (
        JOB,
        ["parallel.data=8", "hardware.fabric={pod: 4, oversubscription: 8.0}"],
        ["parallel.data=8", "hardware.fabric={pod: 1, oversubscription: 8.0}"],
    ),
    "hardware.fabric.oversubscription": (
        JOB,
        ["parallel.data=8", "hardware.fabric={pod: 1}"],
        ["parallel.data=8", "hardware.fabric={pod: 1, oversubscription: 8.0}"],
    ),
}
