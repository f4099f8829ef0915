"""The searched plan as priorities: when a run strays from the profile, an idle rank takes what is ready."""

from collections import defaultdict
from collections.abc import Sequence

from hops.actions import Action, Op
from hops.schedule.base import SCHEDULERS, Scheduler, View
from hops.schedule.hops_hetero import HopsHetero
from hops.schedule.profile import Profile
from hops.schedule.search import Choice
from hops.schedule.search.robust import LOOK_AHEADS
from hops.schedule.shape import Shape


@SCHEDULERS.register("hops_hetero_adaptive")
class HopsHeteroAdaptive(Scheduler):
    """Runs `hops_hetero`'s plan, that plan as priorities, or a built-in: what simulation finds best under the noise.

    As priorities: an idle rank runs the first action that is ready among its next few.

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
        self._choice: Choice | None = None

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return self.planner.shape(num_ranks, num_microbatches)

    @property
    def choice(self) -> Choice:
        """What is run, and what was expected of everything tried."""
        assert self._choice is not None, "configure comes before choice"
        return self._choice

    def configure(self, profile: Profile) -> None:
        self.profile = profile
        self.planner.configure(profile)
        self._choice = self.planner.choose(profile, look_aheads=LOOK_AHEADS)
        # per (iteration, rank): what is still to run, and bytes held
        self._open: defaultdict[tuple[int, int], list[Action]] = defaultdict(list)
        self._held: defaultdict[tuple[int, int], int] = defaultdict(int)

    def next_actions(self, view: View) -> Sequence[Action]:
        key = (view.iteration, view.rank)
        if key not in self._open:
            self._open[key] = list(self.choice.program.ranks[view.rank])
        ready = set(view.ready())
        for place, action in enumerate(self._open[key][: self.choice.look_ahead + 1]):
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
