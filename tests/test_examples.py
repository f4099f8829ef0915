"""Every example is a spec that loads, runs, and shows what its comment says."""

from pathlib import Path
from time import process_time

import pytest

import hops
from hops.build.exchanged import exposed_by_axis
from hops.decode.document import parse
from hops.importers.megatron.launch import launch_from_flags
from hops.importers.megatron.spec import spec_text
from hops.planner.planner import plan
from hops.spec.choices import left_open
from hops.spec.open import load_open
from hops.spec.text import dump

EXAMPLES = Path(__file__).parent.parent / "examples"


def simulated(name, *overrides):
    return hops.summarize(hops.simulate(hops.load(EXAMPLES / name, overrides)))


def is_open(path):
    return any(left_open(parse(path.read_text(encoding="utf-8"), name=path.name)))


EVERY = sorted(EXAMPLES.glob("*.yaml"))
OPEN = [path for path in EVERY if is_open(path)]
RUNS = [path for path in EVERY if path not in OPEN]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_runs_and_says_what_it_is_for(path):
    assert path.read_text(encoding="utf-8").startswith("# ")
    assert simulated(path.name).iteration_time.mean_ms > 0


def test_the_smallest_has_about_ten_lines():
    lines = (EXAMPLES / "minimal.yaml").read_text(encoding="utf-8").splitlines()
    assert sum(not line.startswith("#") for line in lines) <= 10


def test_the_demo_is_heterogeneous_and_writes_everything_below_output_demo():
    spec = hops.load(EXAMPLES / "demo.yaml")
    assert len({device.type for host in spec.hardware.hosts() for device in host.devices}) == 3
    assert len(spec.hardware.hosts()) == 3
    written = {key: name for key, name in spec.output.model_dump().items() if name is not None}
    assert set(written) == {"summary", "events", "trace", "timeline", "dashboard"}
    assert all(name.startswith("output/demo/") for name in written.values())


@pytest.mark.parametrize("path", OPEN, ids=lambda path: path.stem)
def test_an_open_example_is_for_hops_plan_and_becomes_a_spec_that_runs(path):
    """`hops run` points at `hops plan`; what that makes of it loads again and runs to the figure that it gave."""
    assert path.read_text(encoding="utf-8").startswith("# ")
    with pytest.raises(hops.errors.SpecError, match="`hops plan` chooses it and writes specs to run"):
        hops.load(path)
    (best,) = plan(load_open(path), budget_s=0.1, top=1).plans
    spec = hops.loads(dump(best.spec))
    assert hops.summarize(hops.simulate(spec)).iteration_time.mean_ms == best.seconds * 1e3


def test_the_example_of_a_plan_is_open():
    assert EXAMPLES / "plan.yaml" in OPEN


def test_the_demo_does_not_fit_on_fewer_devices():
    """It is a run that needs its pipeline."""
    with pytest.raises(hops.errors.DoesNotFitError, match="needs"):
        simulated("demo.yaml", "hardware.placement=[fast/0]")


def test_interleaving_shortens_the_bubble_and_sends_more():
    interleaved = simulated("interleaved.yaml")
    plain = simulated("interleaved.yaml", "pipeline.schedule=1f1b")
    assert interleaved.bubble.pipeline.fraction < plain.bubble.pipeline.fraction
    assert interleaved.num_stages == 2 * plain.num_stages


def test_zero_bubble_gains_from_memory_and_loses_by_a_dear_split():
    stated = simulated("zero-bubble.yaml").iteration_time.mean_ms
    less_memory = simulated("zero-bubble.yaml", "pipeline.schedule.max_activations=4").iteration_time.mean_ms
    dearer = simulated("zero-bubble.yaml", "pipeline.split_overhead=1.15").iteration_time.mean_ms
    assert stated < less_memory
    assert stated < dearer


def test_stalls_and_the_older_cable_cost_time():
    stated = simulated("explicit-times.yaml").iteration_time.mean_ms
    calm = simulated("explicit-times.yaml", "hardware.interconnect.stall.probability=0.0").iteration_time.mean_ms
    same_cables = simulated("explicit-times.yaml", "hardware.links=[]").iteration_time.mean_ms
    assert calm < stated
    assert same_cables < stated


def test_the_megatron_launch_becomes_a_run():
    """One entry per stage, microbatches from the batch sizes, vocabulary padded as Megatron-LM pads it."""
    flags = (EXAMPLES / "megatron-launch.sh").read_text(encoding="utf-8")
    spec = hops.loads(spec_text(launch_from_flags(flags, devices=["a10g", "a10g", "l4", "l4"])))
    assert spec.pipeline.microbatches == 128 // 4
    assert spec.pipeline.partition == (6, 6, 6, 6)
    assert spec.pipeline.model.vocab == 50304


def simulated_at_once(name):
    """The run, after one in which kernels were compiled, and its computing time: tests share their machine."""
    hops.simulate(hops.load(EXAMPLES / name, ["simulation.iterations=1"]))
    started = process_time()
    run = hops.simulate(hops.load(EXAMPLES / name))
    return run, process_time() - started


def test_sixteen_thousand_devices_are_simulated_in_seconds_and_near_what_was_published():
    """Llama 3 405B: 41 % of the peak (arXiv 2407.21783, table 4)."""
    run, seconds = simulated_at_once("llama3-405b-16k.yaml")
    assert seconds < 5
    assert run.setup.spec.mesh().num_ranks == 16_384
    assert hops.summarize(run).mfu == pytest.approx(0.41, abs=0.02)


def test_experts_over_64_devices_are_simulated_in_seconds():
    run, seconds = simulated_at_once("deepseek-v3.yaml")
    assert seconds < 5
    shares = exposed_by_axis(run.setup)
    assert shares["expert"] > 10 * shares["data"]  # what DeepSeek hides, and this model counts once per expert
