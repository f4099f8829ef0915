"""What `hops trace` works on: a run that was read from files, or that a spec or a launch describes and is simulated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hops.build.run import simulate
from hops.calibrate.validate import Readers
from hops.cost.profile import shipped_profile
from hops.diagnose.against_program import against_program
from hops.diagnose.detect import Detected, detect
from hops.importers.base import read_trace
from hops.importers.megatron.launch import read_launch
from hops.importers.megatron.run_folder import is_launch, read_inputs
from hops.importers.megatron.spec import spec_text
from hops.importers.megatron.trace import read_run
from hops.metrics.audit import audit
from hops.metrics.iterations import Iterations
from hops.metrics.stalls import find_warmup
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts
from hops.report.audit import Audited
from hops.spec.load import load, loads
from hops.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A run. `facts.warmup_iterations` is what was asked for, or found in the trace."""

    name: str
    trace: Trace
    facts: RunFacts
    dropped: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.name} ({self.trace.meta.source})"

    def renamed(self, detected: Detected) -> Trace:
        """The trace under the name of what ran, for pictures."""
        names = " = ".join(detected.names) or self.trace.meta.schedule
        return replace(self.trace, meta=replace(self.trace.meta, schedule=names))


def opened(
    path: Path,
    *,
    format_name: str = "",
    lenient: bool = False,
    align_clocks: bool = False,
    warmup: int | None = None,
) -> Recorded:
    """Read a run, or simulate a spec or a Megatron-LM run.yaml (whose clocks agree)."""
    if path.is_file() and path.suffix in {".yaml", ".yml"} and not format_name:
        return _simulated(path, warmup)
    found = read_trace(path, format_name=format_name, lenient=lenient, align_clocks=align_clocks)
    leave_out = find_warmup(found.trace) if warmup is None else warmup
    facts = replace(found.facts, warmup_iterations=leave_out)
    name = path.resolve().name
    return Recorded(name=name, trace=found.trace, facts=facts, dropped=found.dropped, notes=found.notes)


def _simulated(path: Path, warmup: int | None) -> Recorded:
    """Warm-up as the spec has it, unless it is set."""
    launch = read_launch(path) if is_launch(path) else None
    spec = load(path) if launch is None else loads(spec_text(launch), name=str(path))
    run = simulate(spec)
    facts = run.facts if warmup is None else replace(run.facts, warmup_iterations=warmup)
    name = path.name if launch is None else launch.name
    return Recorded(name=name, trace=run.trace, facts=facts, dropped={})


def audited(recorded: Recorded, program: Path | None = None) -> Audited:
    """Everything that can be found out about it; also against the program in a file."""
    trace = recorded.trace
    return Audited(
        name=recorded.name,
        label=trace.meta.schedule,
        summary=summarize(trace, recorded.facts),
        audit=audit(Iterations.of(trace, recorded.facts)),
        detected=detect(trace),
        dropped=recorded.dropped,
        notes=recorded.notes,
        against=None if program is None else against_program(trace, program),
    )


def _trace(folder: Path) -> Trace:
    return read_run(folder).trace


def megatron(warmup: int = 0) -> Readers:
    """Readers of Megatron-LM run folders."""
    return Readers(inputs=read_inputs, trace=_trace, warmup=warmup)


def profile_file(name: str) -> Path:
    """A profile by its file, or by the name of a shipped one. Raises UsageError if there is neither."""
    return Path(name) if Path(name).is_file() else shipped_profile(name)
