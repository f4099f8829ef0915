"""What every scheduler has to do: inherit SchedulerConformance in a test class and give it `make`."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

import pytest

from hops.cost.table import TableCosts
from hops.engine.settings import RunSettings
from hops.engine.simulate import run_policy
from hops.errors import UsageError
from hops.hardware.network import Network
from hops.program.lowering import check
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import Scheduler, StaticScheduler
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts
from hops.trace.order import program_from_trace
from hops.trace.trace import Trace

SIZES = ((1, 1), (1, 5), (2, 1), (2, 2), (3, 7), (4, 1), (4, 3), (4, 12), (6, 18), (8, 5))
HOP_S = 0.25

at_every_size = pytest.mark.parametrize(("num_ranks", "num_microbatches"), SIZES)


class SchedulerConformance(ABC):
    """The tests that every scheduler passes, static or deciding during the run.

    Sizes that `shape` refuses with a UsageError are skipped. Name the subclass `Test...` so that pytest finds it.
    """

    keeps_to_memory: ClassVar[bool] = False
    """Whether it heeds the profile's memory limit."""

    @abstractmethod
    def make(self) -> Scheduler:
        """A new scheduler, configured by nothing but its parameters."""

    def most_in_flight(self, shape: Shape, rank: int) -> int | None:
        """The most microbatches (per stage) that a rank may have in flight; None if nothing is promised."""
        return None

    def test_arranges_some_size(self) -> None:
        """Not every size is refused."""
        assert any(self._arranges(*size) for size in SIZES), f"shape refuses all of {SIZES}"

    @at_every_size
    def test_places_a_stage_on_every_rank(self, num_ranks: int, num_microbatches: int) -> None:
        shape = self._shape(num_ranks, num_microbatches)
        assert shape.whole_microbatches == num_microbatches, f"shape has {shape.whole_microbatches} microbatches"
        assert set(shape.rank_of_stage) == set(range(num_ranks)), f"ranks without stage: {shape.rank_of_stage}"

    @at_every_size
    def test_runs_every_action_once_without_a_stall(self, num_ranks: int, num_microbatches: int) -> None:
        profile = StageCosts.uniform(self._shape(num_ranks, num_microbatches))
        check(program_from_trace(self._run(profile)))

    @at_every_size
    def test_runs_unequal_stages_with_messages(self, num_ranks: int, num_microbatches: int) -> None:
        profile = unequal(self._shape(num_ranks, num_microbatches))
        check(program_from_trace(self._run(profile)))

    @at_every_size
    def test_every_iteration_is_complete(self, num_ranks: int, num_microbatches: int) -> None:
        trace = self._run(unequal(self._shape(num_ranks, num_microbatches)), iterations=3)
        for iteration in range(3):
            check(program_from_trace(trace, iteration=iteration))

    @at_every_size
    def test_same_profile_gives_the_same_trace(self, num_ranks: int, num_microbatches: int) -> None:
        profile = unequal(self._shape(num_ranks, num_microbatches))
        assert self._run(profile) == self._run(profile), "two schedulers with the same parameters decide differently"

    @at_every_size
    def test_keeps_to_what_it_promises_in_flight(self, num_ranks: int, num_microbatches: int) -> None:
        shape = self._shape(num_ranks, num_microbatches)
        for profile in (StageCosts.uniform(shape), unequal(shape)):
            peaks = evaluate(program_from_trace(self._run(profile)), profile).peak_in_flight
            for rank, peak in enumerate(peaks):
                most = self.most_in_flight(shape, rank)
                assert most is None or peak <= most, f"rank {rank} has {peak} in flight, promised at most {most}"

    @at_every_size
    def test_keeps_to_the_memory_of_the_profile(self, num_ranks: int, num_microbatches: int) -> None:
        if not self.keeps_to_memory:
            pytest.skip("it does not promise to heed memory limits")
        shape = self._shape(num_ranks, num_microbatches)
        limits = tuple(2 + 3 * (rank % 2) for rank in range(num_ranks))
        profile = replace(unequal(shape), budget_bytes=limits)
        peaks = evaluate(program_from_trace(self._run(profile)), profile).peak_bytes
        for rank, (peak, limit) in enumerate(zip(peaks, limits, strict=True)):
            assert peak <= limit, f"rank {rank} takes {peak} bytes of {limit}"

    @at_every_size
    def test_a_static_program_is_checked_and_printable(self, num_ranks: int, num_microbatches: int) -> None:
        scheduler = self.make()
        if not isinstance(scheduler, StaticScheduler):
            pytest.skip("it decides during the run")
        program = scheduler.build(unequal(self._shape(num_ranks, num_microbatches)))
        check(program)
        assert Program.parse(str(program)) == program, "the program's text does not read back as the program"

    def _arranges(self, num_ranks: int, num_microbatches: int) -> bool:
        try:
            self.make().shape(num_ranks, num_microbatches)
        except UsageError:
            return False
        return True

    def _shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        if not self._arranges(num_ranks, num_microbatches):
            pytest.skip("the schedule refuses this size")
        return self.make().shape(num_ranks, num_microbatches)

    def _run(self, profile: StageCosts, *, iterations: int = 1) -> Trace:
        """What a new scheduler does in the engine, asked rank by rank as a policy."""
        costs = TableCosts.of(
            forward_s=profile.forward_s,
            input_backward_s=profile.input_backward_s,
            weight_backward_s=profile.weight_backward_s,
            fused_backward_s=profile.fused_backward_s,
        )
        latency_s = max(profile.hop_s, default=0.0)
        network = Network.uniform(profile.shape.num_ranks, latency_s=latency_s)
        return run_policy(self.make().placed(profile), costs, network, RunSettings(iterations=iterations))


def unequal(shape: Shape) -> StageCosts:
    """A profile whose stages differ in every time, with messages that take a while."""
    stages = range(shape.num_stages)
    return replace(
        StageCosts.uniform(shape, hop_s=HOP_S),
        forward_s=tuple(1.0 + 0.3 * (stage % 3) for stage in stages),
        input_backward_s=tuple(1.1 + 0.2 * (stage % 2) for stage in stages),
        weight_backward_s=tuple(0.7 + 0.1 * (stage % 4) for stage in stages),
        fused_backward_s=tuple(1.8 + 0.2 * (stage % 2) + 0.1 * (stage % 4) for stage in stages),
    )
