"""The searched schedule: near the limit that the profile's bound proves, and never worse than any built-in."""

from hops.errors import UsageError
from hops.schedule.base import SCHEDULERS, StaticScheduler
from hops.schedule.columns import at_least
from hops.schedule.profile import Profile
from hops.schedule.program import Program
from hops.schedule.search import Choice, Noise, Result, choose, iterations_for, search
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
        jitter: expected noise per action, as a fraction of its time. With noise, the plan and the best built-in are
            compared by simulation, and the better one on average is run. `hops_hetero_adaptive` goes further.
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
        if self.noise.is_none:
            return self._result.program
        return self.choose(profile, look_aheads=(0,)).program

    def choose(self, profile: Profile, *, look_aheads: tuple[int, ...]) -> Choice:
        """What is best on average under the expected noise; see `hops.schedule.search.choose`."""
        _, builtin = contenders(profile)
        plan = self.result.program
        return choose(profile, plan, builtin, self.noise, seed=self.seed, look_aheads=look_aheads)
