"""The result of a search as the dictionary that `hops schedule search --json` prints."""

from typing import Any

from hops.schedule.search.driver import Result

NS_PER_MS = 1e6


def search_report(name: str, result: Result, search_ms: float) -> dict[str, Any]:
    """One instance: times in ms, peaks in bytes per rank, the gap in percent, the program as texts such as 2F0."""
    certificate = result.certificate
    return {
        "name": name,
        "makespan_ms": certificate.makespan_ns / NS_PER_MS,
        "bound_ms": certificate.bound.value_ns / NS_PER_MS,
        "gap_pct": 100.0 * certificate.gap,
        "peak_bytes": list(certificate.peak_bytes),
        "builtins_ms": {
            builtin: None if makespan is None else makespan / NS_PER_MS
            for builtin, makespan in certificate.builtins_ns.items()
        },
        "search_ms": search_ms,
        "program": [[str(action) for action in actions] for actions in result.program.ranks],
    }
