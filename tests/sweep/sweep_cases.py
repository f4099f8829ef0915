"""Sweeps that take moments, and what they come to."""

SPEC = {
    "simulation": {"iterations": 1},
    "pipeline": {
        "stage_times": {"forward": "1 ms", "backward": "2 ms", "message": "1 MiB"},
        "microbatches": 4,
        "jitter": {"distribution": "lognormal", "mean": 1.0, "std": 0.05},
    },
    "hardware": {"nodes": [{"count": 2, "devices": ["l4"]}], "interconnect": {"bandwidth": "10 Gbit/s"}},
}
SMALL = {
    "spec": SPEC,
    "axes": {
        "pipeline.schedule": ["gpipe", "1f1b", "zb_h1"],
        "hardware.interconnect.bandwidth": ["1 Gbit/s", "10 Gbit/s"],
    },
    "seeds": 3,
    "figures": ["iteration_time.mean_ms", "bubble.pipeline.fraction"],
}


def found(table):
    """All of a table but the time that points took."""
    return [{key: value for key, value in record.items() if key != "seconds"} for record in table.records()]
