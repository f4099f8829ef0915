"""Every built-in schedule passes the conformance suite, and the suite catches schedules that do not do their work."""

import pytest

from hops.errors import ProgramError, StalledError
from hops.program.action import Action, Op
from hops.program.program import Program
from hops.schedules.base import SCHEDULERS, Scheduler, StaticScheduler
from hops.testing.schedules import SchedulerConformance


def in_flight_caps():
    """The most microbatches per stage in flight on rank s of p with m microbatches, by the schedules' definitions."""
    return {
        "gpipe": lambda shape, rank: shape.num_microbatches,
        "1f1b": lambda shape, rank: min(shape.num_ranks - rank, shape.num_microbatches),
        "interleaved_1f1b": lambda shape, rank: 2 * (shape.num_ranks - 1 - rank) + shape.num_ranks + 1,
        "zero_bubble": lambda shape, rank: 2 * shape.num_ranks,
        "zb_h1": lambda shape, rank: shape.num_ranks,
        "zb_h2": lambda shape, rank: 2 * shape.num_ranks - 1,
        "zb_v": lambda shape, rank: 2 * shape.num_ranks,
        "v_half": lambda shape, rank: None,  # it promises bytes
        "v_min": lambda shape, rank: None,
        "v_auto": lambda shape, rank: None,
        "v_1f1b": lambda shape, rank: 2 * shape.num_ranks,
        "dualpipe": lambda shape, rank: shape.num_ranks + 1,
        "chimera": lambda shape, rank: shape.num_ranks,
        "seq1f1b": lambda shape, rank: shape.num_ranks - 1 - rank + shape.slices,
        "looped_bfs": lambda shape, rank: 2 * shape.num_microbatches,
        "interleaved_zb": lambda shape, rank: shape.num_ranks + max(shape.num_ranks, shape.num_microbatches),
        "grouped_interleaved": lambda shape, rank: 2 * shape.num_ranks,
        "combined_1f1b": lambda shape, rank: 2 * (shape.num_ranks - rank) + max(6, 2 * shape.num_ranks),
        "dualpipe_v": lambda shape, rank: 2 * shape.num_ranks + 1,
    }


def suite(name, **parameters):
    class Suite(SchedulerConformance):
        keeps_to_memory = name == "zero_bubble"

        def make(self):
            return SCHEDULERS.get(name)(**parameters)

        def most_in_flight(self, shape, rank):
            return in_flight_caps()[name](shape, rank) if not parameters else None

    return Suite


class TestGPipe(suite("gpipe")): ...


class Test1F1B(suite("1f1b")): ...


class TestInterleaved(suite("interleaved_1f1b")): ...


class TestInterleavedInThreeChunks(suite("interleaved_1f1b", chunks=3)): ...


class TestInterleavedInLargerGroups(suite("interleaved_1f1b", microbatch_group_size=8)): ...


class TestZeroBubble(suite("zero_bubble")): ...


class TestZeroBubbleWithMoreMemory(suite("zero_bubble", max_activations=11)): ...


class TestZeroBubbleWithLeastMemory(suite("zero_bubble", max_activations=1)): ...


class TestZBH1(suite("zb_h1")): ...


class TestZBH2(suite("zb_h2")): ...


class TestZBV(suite("zb_v")): ...


class TestVHalf(suite("v_half")): ...


class TestVMin(suite("v_min")): ...


class TestVAuto(suite("v_auto")): ...


class TestVAutoWithLeastMemory(suite("v_auto", max_activations=1)): ...


class TestV1F1B(suite("v_1f1b")): ...


class TestDualPipeV(suite("dualpipe_v")): ...


class TestDualPipe(suite("dualpipe")): ...


class TestChimera(suite("chimera")): ...


class TestSeq1F1B(suite("seq1f1b")): ...


class TestSeq1F1BInFiveSlices(suite("seq1f1b", slices=5)): ...


class TestLoopedBFS(suite("looped_bfs")): ...


class TestInterleavedZeroBubble(suite("interleaved_zb")): ...


class TestGroupedInterleaved(suite("grouped_interleaved")): ...


class TestGroupedInterleavedOneByOne(suite("grouped_interleaved", microbatch_group_size=1, chunks=3)): ...


class TestCombined1F1B(suite("combined_1f1b")): ...


class Lazy(Scheduler):
    """Never runs a backward."""

    def configure(self, profile):
        pass

    def next_actions(self, view):
        return [action for action in view.ready() if action.op is Op.F][:1]


class Forgetful(StaticScheduler):
    """Leaves out the last backward."""

    def build(self, profile):
        whole = SCHEDULERS.get("1f1b")().build(profile)
        return Program.of(whole.shape, [whole.actions(0)[:-1], *map(whole.actions, range(1, whole.num_ranks))])


class Moody(Scheduler):
    """Decides by how many of its kind were made before."""

    made = 0

    def configure(self, profile):
        Moody.made += 1
        self._op = Op.B if Moody.made % 2 else Op.I

    def next_actions(self, view):
        return [action for action in view.ready() if action.op in {Op.F, self._op, Op.W}][:1]


def conformance_of(scheduler):
    class Suite(SchedulerConformance):
        def make(self):
            return scheduler()

        def most_in_flight(self, shape, rank):
            return 1

    return Suite()


def test_the_suite_catches_a_policy_that_stalls():
    with pytest.raises(StalledError, match="returned no action"):
        conformance_of(Lazy).test_runs_every_action_once_without_a_stall(2, 2)


def test_the_suite_catches_a_program_that_is_not_complete():
    with pytest.raises(ProgramError, match="it lacks 0B1"):
        conformance_of(Forgetful).test_a_static_program_is_checked_and_printable(2, 2)


def test_the_suite_catches_what_changes_between_runs():
    with pytest.raises(AssertionError, match="decide differently"):
        conformance_of(Moody).test_same_profile_gives_the_same_trace(2, 2)


def test_the_suite_catches_a_broken_promise():
    with pytest.raises(AssertionError, match="rank 0 has 4 in flight, promised at most 1"):
        conformance_of(SCHEDULERS.get("gpipe")).test_keeps_to_what_it_promises_in_flight(2, 4)


def test_an_action_of_another_rank_is_refused_with_the_place():
    class Thief(Lazy):
        def next_actions(self, view):
            return [Action(1, Op.F, 0)]

    with pytest.raises(ProgramError, match="belongs to rank 1"):
        conformance_of(Thief).test_runs_every_action_once_without_a_stall(2, 2)
