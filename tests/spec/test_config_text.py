"""The spec as text: what is dumped loads back equal, the starter runs, schema and reference follow the code."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.decode.messages import keys_of, records_in
from hops.spec.load import loads
from hops.spec.spec import Spec
from hops.spec.text import dump, json_schema, reference, starter
from hops.units import BANDWIDTH, BYTES, TIME

times = st.floats(1e-9, 1e3).map(TIME.exact)
sizes = st.integers(0, 2**45).map(BYTES.exact)
bandwidths = st.floats(1.0, 1e13).map(BANDWIDTH.exact)
names = st.text("abcdefghijklmnopqrstuvwxyz0123456789 -_:#'\"yn~", min_size=1, max_size=8)
flags = st.booleans()


def keys(**fields):
    """A mapping with some of the keys."""
    return st.fixed_dictionaries({}, optional=fields)


def distributions(values):
    return st.one_of(
        values,
        st.fixed_dictionaries({"distribution": st.just("lognormal"), "mean": values, "std": values}),
        st.fixed_dictionaries({"distribution": st.just("pareto"), "mean": values, "alpha": st.floats(1.01, 100)}),
        st.fixed_dictionaries({"distribution": st.just("exponential"), "mean": values}),
        st.fixed_dictionaries({"distribution": st.just("weibull"), "mean": values, "shape": st.floats(0.05, 10)}),
        st.fixed_dictionaries({"distribution": st.just("empirical"), "samples": st.lists(values, min_size=1)}),
    )


def per_stage(values):
    return values | st.lists(values, min_size=4, max_size=4)


stalls = st.fixed_dictionaries({"probability": st.floats(0, 1), "extra": distributions(times)})
connections = st.fixed_dictionaries(
    {"bandwidth": bandwidths}, optional={"latency": distributions(times), "stall": stalls}
)
devices = st.fixed_dictionaries(
    {"type": st.sampled_from(["h100", "a100", "l4"])},
    optional={"memory": sizes, "memory_bandwidth": bandwidths, "launch_overhead": times, "price_per_hour": times},
).map(lambda device: {**device, **({"price_per_hour": 2.5} if "price_per_hour" in device else {})})
stage_times = st.fixed_dictionaries(
    {"forward": per_stage(distributions(times)), "backward": per_stage(distributions(times))},
    optional={"message": per_stage(sizes), "activation": per_stage(sizes), "weights": per_stage(sizes)},
)
models = st.sampled_from(["gpt2-medium", "llama2-7b", {"name": "gpt3", "layers": 8}])
sources = st.fixed_dictionaries({"stage_times": stage_times}) | st.fixed_dictionaries({"model": models})
pipelines = st.tuples(
    sources,
    st.fixed_dictionaries(
        {"microbatches": st.sampled_from([8, 16]), "schedule": st.sampled_from(["1f1b", "gpipe", {"name": "zb_v"}])},
        optional={
            "jitter": distributions(st.floats(0.5, 2)),
            "split_overhead": st.floats(1, 2),
            "p2p": st.sampled_from(["overlapped", "blocking", "blocking_fused"]),
            "recompute": st.sampled_from(["none", "selective", "full"]),
            "precision": st.sampled_from(["bf16", "fp16", "fp32"]),
        },
    ),
).map(lambda parts: {**parts[0], **parts[1]})
documents = st.fixed_dictionaries(
    {
        "pipeline": pipelines,
        "hardware": st.fixed_dictionaries(
            {
                "nodes": st.tuples(
                    st.fixed_dictionaries({"name": names, "devices": st.lists(devices, min_size=2, max_size=2)})
                )
            },
            optional={"interconnect": connections | st.just("infiniband-ndr")},
        ).map(lambda hardware: {**hardware, "nodes": [{**hardware["nodes"][0], "count": 2}]}),
    },
    optional={
        "simulation": keys(iterations=st.integers(1, 9), seed=st.integers(0, 2**63 - 1)),
        "optimizer": keys(enabled=flags, synchronized=flags, update_time=distributions(times), host_gap=times),
        "output": keys(summary=names.map(lambda name: f"{name}.json"), timeline=st.just("x.svg")),
    },
)


def eight_stages(document):
    """Whether the schedule makes two stages of each rank, for which the lists of four are too short."""
    return document["pipeline"]["schedule"] == {"name": "zb_v"} and "stage_times" in document["pipeline"]


@given(document=documents)
@settings(deadline=None, max_examples=12)
def test_a_dumped_spec_loads_back_equal(document):
    if eight_stages(document):
        document["pipeline"]["schedule"] = "1f1b"
    spec = loads(dump(Spec.model_validate(document)))
    assert loads(dump(spec)) == spec


def test_dumping_is_a_fixed_point_and_shows_every_key():
    spec = loads(starter())
    text = dump(spec)
    assert dump(loads(text)) == text
    for section, field in Spec.model_fields.items():
        for key in keys_of(records_in(field.annotation)[0]):
            assert f"\n  {key}:" in text, f"{section}.{key}"


def test_the_starter_loads_and_its_comments_hold_for_real_keys():
    spec = loads(starter())
    assert spec.shape().num_ranks == 4
    for lines in ("stage_times", "links", "placement", "jitter", "events"):
        assert f"# {lines}:" in starter()


def uncommented(text, first):
    """The starter with the comment block that begins with `first` made active."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.strip().startswith(f"# {first}"))
    end = start
    while end < len(lines) and lines[end].strip().startswith("# ") and (end == start or "#   " in lines[end]):
        lines[end] = lines[end].replace("# ", "", 1)
        end += 1
    return "\n".join(lines)


@pytest.mark.parametrize("first", ["jitter", "links", "placement", "events", "trace", "dashboard"])
def test_what_the_starter_shows_in_comments_loads_when_made_active(first):
    assert loads(uncommented(starter(), first)) != loads(starter())


def test_the_stage_times_of_the_starter_load_in_place_of_the_model():
    text = uncommented(starter(), "stage_times").replace("model: llama2-7b", "# model").replace("balanced ", "even ")
    assert loads(text).pipeline.stage_times.message == 8 * 2**20


def test_every_key_of_the_schema_has_a_description():
    for name, definition in json_schema()["$defs"].items():
        assert definition["description"], name
        for key, schema in definition["properties"].items():
            assert "description" in schema or "const" in schema, f"{name}.{key}"


def test_the_schema_knows_short_forms_units_and_parameters_of_schedules():
    definitions = json_schema()["$defs"]
    pipeline = definitions["PipelineSection"]["properties"]
    assert {"type": "string"} in pipeline["schedule"]["anyOf"]
    assert definitions["ScheduleChoice"]["additionalProperties"] is True
    assert definitions["PipelineSection"]["additionalProperties"] is False
    memory = definitions["DeviceEntry"]["properties"]["memory"]["anyOf"][0]
    assert (memory["type"], memory["examples"]) == ("string", ["80 GiB"])


def test_the_reference_page_is_current():
    """If not: python -c "from hops.spec.text import reference; print(reference(), end='')" > the page."""
    page = Path(__file__).parents[2] / "docs/reference/spec.md"
    assert page.read_text(encoding="utf-8") == reference()


def test_the_reference_page_has_every_key():
    page = reference()
    for definition in json_schema()["$defs"].values():
        for key in definition["properties"]:
            assert f"`{key}" in page
