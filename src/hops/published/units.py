"""What a row measured as seconds per iteration, where its source prints FLOP/s per device."""

from hops.published.job import PublishedJob
from hops.published.row import PublishedRow

CAUSAL, FULL = 0.5, 1.0  # of the scores that a convention counts
FULLY_COUNTED = ("nemo-long-seq",)
"""Sources that count all scores. The tables of Megatron-Bridge print tokens per second as well, which
tells that they count the visible half."""


def measured_seconds(row: PublishedRow, job: PublishedJob) -> float | None:
    """Stated seconds; else the model FLOPs of an iteration over the stated FLOP/s of all devices; None: neither."""
    if row.step_s is not None:
        return row.step_s
    if not row.tflops_per_gpu:
        return None
    sizes, model = job.sizes, job.model
    samples = sizes.samples * sizes.microbatches * sizes.data
    whole = model.model_flop(sequence_length=sizes.sequence_length, samples=samples)
    scores = 6.0 * sizes.sequence_length * samples * _score_products(job)
    counted = FULL if row.source in FULLY_COUNTED else CAUSAL
    return (whole - (1 - counted) * scores) / (row.tflops_per_gpu * 1e12 * sizes.devices)


def _score_products(job: PublishedJob) -> float:
    """Products per token of queries with keys, and of scores with values, masked ones included."""
    model = job.model
    return model.layers * job.sizes.sequence_length * (model.query_width + model.context_width)
