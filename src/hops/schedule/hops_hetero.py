"""The searched schedule: near the limit that the profile's bound proves, and never worse than any built-in."""

from collections import defaultdict
from collections.abc import Sequence

from hops.actions import Action, Op
from hops.errors import UsageError
from hops.schedule.base import SCHEDULERS, StaticScheduler, View
from hops.schedule.columns import at_least
from hops.schedule.profile import Profile
from hops.schedule.program import Program
from hops.schedule.search import Noise, Result, choose, iterations_for, search
from hops.schedule.search.builtins import contenders
from hops.schedule.shape import Shape

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
        jitter: expected noise per action, as a fraction of its time. With noise, the plan as it stands, the plan as
            priorities and the best built-in are compared by simulation, and the best on average is run.
        profile_error: the same for errors of the profile, constant per stage and op.
    """

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
        self._priorities: _Priorities | None = None

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        if self.placement == "v":
            return Shape.v(num_ranks, num_microbatches=num_microbatches)
        return Shape.loop(num_ranks, num_microbatches=num_microbatches, chunks=self.chunks)

    @property
    def result(self) -> Result:
        """The searched program and its certificate. Under noise the run may use another, see `program`."""
        assert self._result is not None, "configure comes before result"
        return self._result

    def build(self, profile: Profile) -> Program:
        """Raises DoesNotFitError if not even one microbatch fits."""
        iterations = self.iterations
        if iterations is None:
            iterations = iterations_for(self.budget_ms / 1e3, profile)
        self._result = search(profile, iterations=iterations, seed=self.seed)
        self._priorities = None
        if self.noise.is_none:
            return self._result.program
        _, builtin = contenders(profile)
        choice = choose(profile, self._result.program, builtin, self.noise, seed=self.seed)
        if choice.look_ahead > 0:
            self._priorities = _Priorities(choice.program, profile, choice.look_ahead)
        return choice.program

    def next_actions(self, view: View) -> Sequence[Action]:
        if self._priorities is None:
            return super().next_actions(view)
        return self._priorities.next_actions(view)


class _Priorities:
    """A program as priorities: an idle rank takes its first ready action among the first few open ones."""

    def __init__(self, program: Program, profile: Profile, look_ahead: int) -> None:
        self.program = program
        self.profile = profile
        self.look_ahead = look_ahead
        self._open: defaultdict[tuple[int, int], list[Action]] = defaultdict(list)
        self._held: defaultdict[tuple[int, int], int] = defaultdict(int)

    def next_actions(self, view: View) -> Sequence[Action]:
        key = (view.iteration, view.rank)
        if key not in self._open:
            self._open[key] = list(self.program.ranks[view.rank])
        ready = set(view.ready())
        for place, action in enumerate(self._open[key][: self.look_ahead + 1]):
            if action in ready and self._fits(key, action, place):
                del self._open[key][place]
                self._held[key] += self._change(action)
                return (action,)
        return ()

    def _fits(self, key: tuple[int, int], action: Action, place: int) -> bool:
        """Whether memory takes a forward; out of turn, it must leave room for its microbatch in later stages."""
        limit = self.profile.memory_bytes[key[1]]
        if action.op is not Op.F or limit is None:
            return True
        needed = self.profile.activation_bytes[action.stage]
        if place > 0:
            stages = self.profile.shape.stages_of(key[1])
            needed += sum(self.profile.activation_bytes[stage] for stage in stages if stage > action.stage)
        return self._held[key] + needed <= limit

    def _change(self, action: Action) -> int:
        """Bytes that are held more after the action."""
        whole = self.profile.activation_bytes[action.stage]
        kept = self.profile.kept_for_weight_bytes[action.stage]
        return {Op.F: whole, Op.B: -whole, Op.I: kept - whole, Op.W: -kept}[action.op]
