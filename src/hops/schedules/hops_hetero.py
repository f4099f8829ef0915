"""The searched schedule: near the limit that the profile's bound proves, and never worse than any built-in."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hops.errors import UsageError
from hops.program.action import Action, Op, Pair
from hops.program.builders import at_least
from hops.program.policy import View
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, Scheduler, StaticScheduler
from hops.schedules.builtins import builtin_programs
from hops.search.robust import LOOK_AHEADS, Noise, RobustChoice, choose
from hops.search.search import Result, iterations_for, judge, search
from hops.timing.stage_costs import StageCosts

PLACEMENTS = ("loop", "v")


@SCHEDULERS.register("hops_hetero")
class HopsHetero(StaticScheduler):
    """Searches for the shortest program under the memory limits, within a budget of iterations.

    Args:
        budget_ms: time for the search, turned into iterations at a fixed rate, so that results repeat.
        iterations: the iterations themselves, in place of the budget.
        seed: of the search's random choices.
        chunks: stages per rank.
        placement: of more than one chunk: `loop` (Megatron's interleaving) or `v` (down the ranks and up again).
        jitter: expected noise per action, as a fraction of its time. With noise, the plan and the best built-in are
            compared by simulation, and the better one on average is run. `hops_hetero_adaptive` goes further.
        profile_error: the same for errors of the profile, constant per stage and op.
    """

    tells_microbatches_apart = True

    def __init__(
        self,
        *,
        budget_ms: float = 300.0,
        iterations: int | None = None,
        seed: int = 0,
        chunks: int = 1,
        placement: str = "loop",
        jitter: float = 0.0,
        profile_error: float = 0.0,
    ) -> None:
        if not budget_ms > 0:
            raise UsageError(f"budget_ms must be a time above 0, but got {budget_ms!r}")
        if placement not in PLACEMENTS:
            raise UsageError(f"placement must be one of {', '.join(PLACEMENTS)}, but got {placement!r}")
        if placement == "v" and chunks != 2:
            raise UsageError(f"placement v has 2 chunks, but got chunks: {chunks!r}")
        self.budget_ms = budget_ms
        self.iterations = None if iterations is None else at_least("iterations", iterations, 0)
        self.seed = at_least("seed", seed, 0)
        self.chunks = at_least("chunks", chunks, 1)
        self.placement = placement
        self.noise = Noise(jitter=jitter, profile_error=profile_error)
        self._result: Result | None = None
        self._builtins: dict[str, Program | None] = {}

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        if self.placement == "v":
            return Shape.v(num_ranks, num_microbatches=num_microbatches)
        return Shape.loop(num_ranks, num_microbatches=num_microbatches, chunks=self.chunks)

    @property
    def result(self) -> Result:
        """The searched program and its certificate. Under noise the run may use another, see `program`."""
        assert self._result is not None, "configure comes before result"
        return self._result

    def build(self, profile: StageCosts) -> Program:
        """Raises DoesNotFitError if not even one microbatch fits."""
        iterations = self.iterations
        if iterations is None:
            iterations = iterations_for(self.budget_ms / 1e3, profile)
        self._builtins = builtin_programs(profile)
        self._result = search(profile, self._builtins, iterations=iterations, seed=self.seed)
        if self.noise.is_none:
            return self._result.program
        return self.choose(profile, look_aheads=(0,), with_pairs=True).program

    def choose(self, profile: StageCosts, *, look_aheads: tuple[int, ...], with_pairs: bool) -> RobustChoice:
        """What is best on average under the expected noise; see `hops.search.robust`.

        Args:
            profile: that of `build`.
            look_aheads: with which the plan may serve as priorities.
            with_pairs: whether pairs run as such, or as two actions.
        """
        plan, programs = self.result.program, self._builtins
        if not with_pairs:
            plan = _unpaired(plan)
            programs = {name: program and _unpaired(program) for name, program in programs.items()}
        _, builtin = judge(profile, programs)
        return choose(profile, plan, builtin, self.noise, seed=self.seed, look_aheads=look_aheads)


def _unpaired(program: Program) -> Program:
    return replace(program, step=np.arange(program.num_actions))


@SCHEDULERS.register("hops_hetero_adaptive")
class HopsHeteroAdaptive(Scheduler):
    """Runs `hops_hetero`'s plan, that plan as priorities, or a built-in: what simulation finds best under the noise.

    As priorities: an idle rank runs the first action that is ready among its next few. Where pairs take less than their
    actions apart, they run as pairs, and a plan that has some runs as it is; else each of their actions runs alone.

    Args:
        jitter: expected noise per action, as a fraction of its time.
        profile_error: expected errors of the profile, constant per stage and op.
        budget_ms, iterations, seed, chunks, placement: as for `hops_hetero`.
    """

    def __init__(
        self,
        *,
        jitter: float = 0.1,
        profile_error: float = 0.0,
        budget_ms: float = 300.0,
        iterations: int | None = None,
        seed: int = 0,
        chunks: int = 1,
        placement: str = "loop",
    ) -> None:
        self.planner = HopsHetero(
            budget_ms=budget_ms,
            iterations=iterations,
            seed=seed,
            chunks=chunks,
            placement=placement,
            jitter=jitter,
            profile_error=profile_error,
        )
        self._choice: RobustChoice | None = None

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return self.planner.shape(num_ranks, num_microbatches)

    @property
    def choice(self) -> RobustChoice:
        """What is run, and what was expected of everything tried."""
        assert self._choice is not None, "configure comes before choice"
        return self._choice

    def configure(self, profile: StageCosts) -> None:
        self.profile = profile
        self.planner.configure(profile)
        # Where W needs more than F keeps, an action out of turn could leave no room for the one whose turn it is.
        grows = any(
            kept > whole for whole, kept in zip(profile.activation_bytes, profile.kept_for_weight_bytes, strict=True)
        )
        with_pairs = profile.pair_factor < 1
        as_it_is = grows or (with_pairs and self.planner.result.program.in_pair.any())
        self._choice = self.planner.choose(
            profile, look_aheads=(0,) if as_it_is else LOOK_AHEADS, with_pairs=with_pairs
        )
        # per (iteration, rank): what is still to run, and bytes held
        self._open: defaultdict[tuple[int, int], list[Action | Pair]] = defaultdict(list)
        self._held: defaultdict[tuple[int, int], int] = defaultdict(int)

    def next_actions(self, view: View) -> Sequence[Action | Pair]:
        key = (view.iteration, view.rank)
        if key not in self._open:
            self._open[key] = list(self.choice.program.rank(view.rank))
        ready = set(view.ready())
        for place, entry in enumerate(self._open[key][: self.choice.look_ahead + 1]):
            actions = entry if isinstance(entry, Pair) else (entry,)
            if ready.issuperset(actions) and self._fits(key, actions[0], place):
                del self._open[key][place]
                self._held[key] += sum(map(self._change, actions))
                return (entry,)
        return ()

    def _fits(self, key: tuple[int, int], action: Action, place: int) -> bool:
        """Whether memory takes a forward; out of turn, it must leave room for its microbatch in later stages."""
        limit = self.profile.budget_bytes[key[1]]
        if action.op is not Op.F or limit is None:
            return True
        needed, _ = self._bytes(action.stage, action.microbatch)
        if place > 0:
            stages = self.profile.shape.stages_of(key[1])
            needed += sum(self._bytes(stage, action.microbatch)[0] for stage in stages if stage > action.stage)
        return self._held[key] + needed <= limit

    def _bytes(self, stage: int, microbatch: int) -> tuple[int, int]:
        """What F allocates, and what stays of it after I."""
        work = self.profile.work[microbatch % len(self.profile.work)]
        sizes = (self.profile.activation_bytes[stage], self.profile.kept_for_weight_bytes[stage])
        return round(sizes[0] * work), round(sizes[1] * work)

    def _change(self, action: Action) -> int:
        """Bytes that are held more after the action."""
        whole, kept = self._bytes(action.stage, action.microbatch)
        return {Op.F: whole, Op.B: -whole, Op.I: kept - whole, Op.W: -kept}[action.op]
