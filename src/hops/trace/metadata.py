"""The metadata of a trace as one line of JSON, for files that carry it beside the rows."""

import json
from collections.abc import Mapping
from math import inf, isfinite
from typing import Any

from hops.errors import TraceError
from hops.trace.trace import LinkMeta, TraceMeta

FORMAT = "hops-trace/1"
EXAMPLE = (
    '{"format": "hops-trace/1", "source": "measured", "num_microbatches": 8, "rank_of_stage": [0, 1], '
    '"devices": ["H100", "L4"], "hosts": ["a", "b"]}'
)
_NEEDED: Mapping[str, type] = {
    "source": str,
    "num_microbatches": int,
    "rank_of_stage": list,
    "devices": list,
    "hosts": list,
}


def metadata_to_json(meta: TraceMeta) -> str:
    """One line of JSON. A link of unlimited bandwidth has null; routes are [source, target, [links]]."""
    links = [
        {"name": link.name, "bandwidth_bytes_per_s": link.bandwidth if isfinite(link.bandwidth) else None}
        for link in meta.links
    ]
    plain = {
        "format": FORMAT,
        "source": meta.source,
        "schedule": meta.schedule,
        "num_microbatches": meta.num_microbatches,
        "rank_of_stage": meta.rank_of_stage,
        "devices": meta.devices,
        "hosts": meta.hosts,
        "links": links,
        "routes": [[source, target, list(crossed)] for (source, target), crossed in meta.routes.items()],
    }
    return json.dumps(plain, allow_nan=False, ensure_ascii=False)


def metadata_from_json(text: str, *, where: str) -> TraceMeta:
    """Read what `metadata_to_json` writes; schedule, links and routes may be missing.

    Raises TraceError, saying `where` it stands.
    """
    try:
        plain = json.loads(text)
    except json.JSONDecodeError as error:
        raise TraceError(f"{where}: metadata is not JSON ({error}): expected {EXAMPLE}") from error
    if not isinstance(plain, dict):
        raise TraceError(f"{where}: metadata is not a JSON object: got {text[:40]}, expected {EXAMPLE}")
    for key, kind in _NEEDED.items():
        if not isinstance(plain.get(key), kind):
            got = json.dumps(plain[key])[:40] if key in plain else "nothing"
            raise TraceError(f"{where}: metadata {key!r}: got {got}, expected {_word(kind)} as in {EXAMPLE}")
    if plain.get("format", FORMAT) != FORMAT:
        raise TraceError(f"{where}: metadata 'format': got {plain['format']!r}, expected {FORMAT!r}")
    if plain["source"] not in ("simulated", "measured"):
        raise TraceError(f"{where}: metadata 'source': got {plain['source']!r}, expected 'simulated' or 'measured'")
    try:
        return _meta(plain)
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{where}: metadata is malformed ({error!r}): expected {EXAMPLE}") from error


def _meta(plain: Mapping[str, Any]) -> TraceMeta:
    devices, owners = tuple(map(str, plain["devices"])), tuple(map(int, plain["rank_of_stage"]))
    if len(plain["hosts"]) != len(devices):
        raise ValueError(f"{len(plain['hosts'])} hosts for {len(devices)} devices; one each per rank")
    if not owners or not all(0 <= owner < len(devices) for owner in owners):
        raise ValueError(f"rank_of_stage {list(owners)} names ranks beyond the {len(devices)} devices")
    optional: dict[str, Any] = {"schedule": "", "links": [], "routes": [], **plain}
    links = tuple(
        LinkMeta(name=str(link["name"]), bandwidth=_bandwidth(link["bandwidth_bytes_per_s"]))
        for link in optional["links"]
    )
    routes = {(int(a), int(b)): tuple(map(int, crossed)) for a, b, crossed in optional["routes"]}
    if not all(0 <= link < len(links) for crossed in routes.values() for link in crossed):
        raise ValueError(f"routes name links beyond the {len(links)} there are")
    return TraceMeta(
        source=plain["source"],
        schedule=str(optional["schedule"]),
        num_microbatches=plain["num_microbatches"],
        rank_of_stage=owners,
        devices=devices,
        hosts=tuple(map(str, plain["hosts"])),
        links=links,
        routes=routes,
    )


def _bandwidth(value: float | None) -> float:
    return inf if value is None else float(value)


def _word(kind: type) -> str:
    return {str: "text", int: "a whole number", list: "a list"}[kind]
