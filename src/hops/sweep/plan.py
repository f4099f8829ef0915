"""A sweep: a base spec, what varies in it and how points are chosen, and which figures are kept of each."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from hops.decode.decode import Where, decode, opened
from hops.decode.document import Complaint
from hops.errors import HopsError, UsageError
from hops.metrics.figures import check_figure
from hops.spec.load import from_dict, load
from hops.spec.spec import Spec
from hops.sweep.axes import Varied, between, choices, together
from hops.sweep.design import ADAPTIVE, SAMPLERS, Sampler, grid, grid_size, sampled
from hops.sweep.outcome import USUAL_FIGURES, key_of

Goal = Literal["min", "max"]
_RANGE = {"from", "to", "steps", "scale"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """What `hops sweep` runs.

    Attributes:
        base: the spec that points change.
        axes: what varies, by the names of keys.
        sampler: grid: all combinations; random, lhs (Latin hypercube), sobol: `samples` points spread over the axes;
            tpe, nsga2: chosen by the outcomes of those before (needs optuna), for `goals`.
        samples: how many points a sampler takes.
        seed: of the sampler.
        seeds: every point is run with so many seeds, from the spec's own on.
        figures: what is kept of each run, by their names (see `hops.metrics.figures`).
        goals: figures that an adaptive sampler makes small or large.
    """

    base: Spec
    axes: tuple[Varied, ...]
    sampler: Sampler = "grid"
    samples: int = 0
    seed: int = 0
    seeds: int = 1
    figures: tuple[str, ...] = USUAL_FIGURES
    goals: Mapping[str, Goal] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """The paths that points change, in the order of tables."""
        varied = tuple(key for axis in self.axes for key in axis.keys)
        return varied if self.seeds == 1 else (*varied, "simulation.seed")

    @property
    def size(self) -> int:
        """How many points there are."""
        return (grid_size(self.axes) if self.sampler == "grid" else self.samples) * self.seeds

    def points(self) -> Iterator[dict[str, Any]]:
        """The changes of every point, in order; not of an adaptive sampler, which chooses as it goes."""
        assert self.sampler not in ADAPTIVE, "its points depend on outcomes"
        if self.sampler == "grid":
            chosen = grid(self.axes)
        else:
            chosen = sampled(self.sampler, self.axes, self.samples, self.seed)
        for changes in chosen:
            yield from self.with_seeds(changes)

    def with_seeds(self, changes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """A point once per seed."""
        if self.seeds == 1:
            yield dict(changes)
            return
        first = self.base.simulation.seed
        for seed in range(first, first + self.seeds):
            yield {**changes, "simulation.seed": seed}

    def name(self, version: str) -> str:
        """A hash of all that decides which points there are, and what comes of them."""
        axes = [repr(axis) for axis in self.axes]
        how = [self.sampler, self.samples, self.seed, self.seeds, dict(self.goals)]
        text = json.dumps([key_of(self.base, self.figures, version), axes, how])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """A sweep as a file has it."""

    spec: str | dict[str, Any]
    axes: dict[str, Any] = field(default_factory=dict)
    together: tuple[dict[str, tuple[Any, ...]], ...] = ()
    sampler: str = "grid"
    samples: int = 0
    seed: int = 0
    seeds: int = 1
    figures: tuple[str, ...] = USUAL_FIGURES
    goals: dict[str, Goal] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise UsageError(f"got sampler {self.sampler}, expected one of {', '.join(SAMPLERS)}")
        if self.seeds < 1:
            raise UsageError(f"got seeds {self.seeds}, expected at least 1")
        if (self.sampler == "grid") is not (self.samples == 0) or self.samples < 0:
            raise UsageError(f"got samples {self.samples} with sampler {self.sampler}, expected {_samples(self)}")
        if (self.sampler in ADAPTIVE) is not bool(self.goals) or (self.sampler == "tpe" and len(self.goals) > 1):
            raise UsageError(f"got {len(self.goals)} goals with sampler {self.sampler}, expected {_goals(self)}")
        for name in (*self.figures, *self.goals):
            check_figure(name)


def _samples(form: _Form) -> str:
    return "none: a grid takes all combinations" if form.sampler == "grid" else "how many points to take"


def _goals(form: _Form) -> str:
    if form.sampler not in ADAPTIVE:
        return "none: only tpe and nsga2 have goals"
    number = "one" if form.sampler == "tpe" else "one or more"
    return f"{number}, such as goals: {{iteration_time.mean_ms: min}}"


def load_sweep(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> SweepPlan:
    """Read a sweep file; the spec that it names is looked for in its folder. `overrides` change that spec.

    Raises UsageError with everything that is wrong, SpecError for a spec that is.
    """
    data, where = opened(Path(path), expected="a sweep")
    return _plan(data, where, Path(path).parent, overrides)


def sweep_from_dict(data: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> SweepPlan:
    """The same from plain data; `spec` may also be a `Spec`."""
    plain, base = dict(data), data.get("spec")
    if isinstance(base, Spec):
        plain["spec"] = {}
        return _plan(plain, Where(name="sweep"), Path(folder), (), base)
    return _plan(plain, Where(name="sweep"), Path(folder), ())


def _plan(data: Any, where: Where, folder: Path, overrides: Sequence[str], known: Spec | None = None) -> SweepPlan:
    form = decode(_Form, data, where)
    axes: list[Varied] = []
    found: list[Complaint] = []
    makers: list[tuple[tuple[str, str | int], Callable[[], Varied]]] = [
        (("axes", path), partial(_axis, path, value)) for path, value in form.axes.items()
    ]
    makers += [(("together", number), partial(together, lists)) for number, lists in enumerate(form.together)]
    for place, make in makers:
        try:
            axes.append(make())
            if form.sampler == "grid":
                axes[-1].all_values()
        except HopsError as error:
            found.append(Complaint(path=place, what=str(error).removeprefix(f"{'.'.join(map(str, place))}: ")))
    keys = [key for axis in axes for key in axis.keys] + (["simulation.seed"] if form.seeds > 1 else [])
    found += [
        Complaint(path=("axes",), what=f"{key} varies twice; remove one")
        for key in {k for k in keys if keys.count(k) > 1}
    ]
    if not axes and not found and form.seeds == 1:
        found.append(Complaint(path=(), what="nothing varies, expected axes, together or seeds"))
    if found:
        raise where.error(where.report(data, found))
    if known is None:
        known = _base(form, folder, overrides)
    return SweepPlan(
        base=known,
        axes=tuple(axes),
        sampler=form.sampler,  # type: ignore[arg-type] # the form has checked it
        samples=form.samples,
        seed=form.seed,
        seeds=form.seeds,
        figures=tuple(dict.fromkeys((*form.figures, *form.goals))),
        goals=form.goals,
    )


def _base(form: _Form, folder: Path, overrides: Sequence[str]) -> Spec:
    if isinstance(form.spec, str):
        return load(folder / form.spec, overrides)
    if overrides:
        raise UsageError("--set changes a spec file, and this sweep holds its spec itself; change it there")
    return from_dict(form.spec, folder=folder)


def _axis(path: str, value: Any) -> Varied:
    if isinstance(value, list | tuple):
        return choices(path, value)
    if not isinstance(value, dict) or not {"from", "to"} <= set(value) <= _RANGE:
        raise UsageError(f"axes.{path}: expected a list of values, or a range {{from: A, to: B}} with steps and scale")
    scale, steps = value.get("scale", "linear"), value.get("steps")
    if scale not in ("linear", "log") or not (steps is None or type(steps) is int):
        raise UsageError(
            f"axes.{path}: got scale {scale} and steps {steps}, expected linear or log, and a whole number"
        )
    return between(path, value["from"], value["to"], scale=scale, steps=steps)
