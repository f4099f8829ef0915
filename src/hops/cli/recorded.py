"""What `hops trace` works on: a run that was read from files, or that a spec or a launch describes and is simulated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hops.api import load, loads, simulate
from hops.integrations import read_trace
from hops.integrations.megatron import is_launch, read_launch, spec_text
from hops.metrics import Run, RunFacts, audit, find_warmup, summarize
from hops.report.audit import Audited
from hops.schedule import Detected, detect
from hops.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A run. `facts.warmup_iterations` is what was asked for, or found in the trace."""

    name: str
    trace: Trace
    facts: RunFacts
    dropped: Mapping[str, int]

    @property
    def title(self) -> str:
        return f"{self.name} ({self.trace.meta.source})"

    def renamed(self, detected: Detected) -> Trace:
        """The trace under the name of what ran, for pictures."""
        names = " = ".join(detected.names) or self.trace.meta.schedule
        return replace(self.trace, meta=replace(self.trace.meta, schedule=names))


def opened(path: Path, *, format_name: str = "", lenient: bool = False, warmup: int | None = None) -> Recorded:
    """Read a run, or simulate a spec or a Megatron-LM run.yaml."""
    if path.is_file() and path.suffix in {".yaml", ".yml"} and not format_name:
        return _simulated(path, warmup)
    found = read_trace(path, format_name=format_name, lenient=lenient)
    leave_out = find_warmup(found.trace) if warmup is None else warmup
    facts = replace(found.facts, warmup_iterations=leave_out)
    return Recorded(name=path.resolve().name, trace=found.trace, facts=facts, dropped=found.dropped)


def _simulated(path: Path, warmup: int | None) -> Recorded:
    """Warm-up as the spec has it, unless it is set."""
    launch = read_launch(path) if is_launch(path) else None
    spec = load(path) if launch is None else loads(spec_text(launch), name=str(path))
    run = simulate(spec)
    facts = run.facts if warmup is None else replace(run.facts, warmup_iterations=warmup)
    name = path.name if launch is None else launch.name
    return Recorded(name=name, trace=run.trace, facts=facts, dropped={})


def audited(recorded: Recorded) -> Audited:
    """Everything that can be found out about it."""
    trace = recorded.trace
    return Audited(
        name=recorded.name,
        label=trace.meta.schedule,
        summary=summarize(trace, recorded.facts),
        audit=audit(Run.of(trace, recorded.facts)),
        detected=detect(trace),
        dropped=recorded.dropped,
    )
