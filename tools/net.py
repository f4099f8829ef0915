"""Holds what HOPS computes against what it computed before: digests of traces, summaries, programs, plans and messages.

    python tools/net.py write FILE.json [--keep DIR]      at the commit to hold on to
    python tools/net.py compare FILE.json [--keep DIR]    after a change; exit code 1 if anything differs or is gone

`--only 'random/*'` runs the cases of a pattern (several may be given). With `--keep` values lie beside the digests, and
compare (there it is by default the folder named as FILE without its ending) shows where each case first differs.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from itertools import zip_longest
from pathlib import Path
from unittest.mock import patch

import numpy as np
from net_cases import COLUMNS, FILES, OUT, Part, cases

EXAMPLES = Path(__file__).parent.parent / "examples"
FORMAT = "hops-net/1"
WIDTH = "100"  # of what commands print
TRACE = "trace."  # begins the names of the parts of a trace
TOOK = re.compile(r'("search_ms":) [^,}]*')
LONGEST_LINE = 160
SLOW_S = 2.0  # a case that takes longer is worth a word

Values = dict[str, Part]
Digests = dict[str, dict[str, str]]


def main() -> int:
    """Run the command that the arguments name; returns the exit code."""
    options = _options()
    started = time.monotonic()
    if options.command == "write":
        digests = _write(options.only, options.keep)
        document = {"format": FORMAT, "python": sys.version.split()[0], "numpy": np.__version__, "cases": digests}
        options.file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        code, told = 0, f"wrote {options.file}: {len(digests)} cases"
    else:
        code, told = _compare(options.file, options.only, options.keep or options.file.with_suffix(""))
    print(f"{told}, {time.monotonic() - started:.0f} s")
    return code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("write", "compare"))
    parser.add_argument("file", type=_path, metavar="FILE.json", help="the digests")
    parser.add_argument("--keep", type=_path, metavar="DIR", help="the values")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="cases to run, such as 'random/*'")
    return parser.parse_args()


def _path(text: str) -> Path:
    return Path(text).absolute()


def _write(patterns: Sequence[str] | None, keep: Path | None) -> Digests:
    if keep is not None:
        shutil.rmtree(keep, ignore_errors=True)
    digests, raised = {}, Counter[str]()
    for name, values in _run(patterns):
        digests[name] = _digests(values)
        if "error" in values:
            raised[str(values["error"]).split(":")[0]] += 1
        if keep is not None:
            _kept(keep, name).parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(_kept(keep, name), allow_pickle=False, **values)
    print("specs that do not run:", ", ".join(f"{count} {kind}" for kind, count in sorted(raised.items())) or "none")
    return digests


def _compare(file: Path, patterns: Sequence[str] | None, keep: Path) -> tuple[int, str]:
    document = json.loads(file.read_text(encoding="utf-8"))
    before: Digests = document["cases"]
    if (document["format"], document["numpy"]) != (FORMAT, np.__version__):
        print(f"{file} is {document['format']} by numpy {document['numpy']}, this is {FORMAT}, {np.__version__}")
    seen, different = set(), 0
    for name, values in _run(patterns):
        seen.add(name)
        if name not in before:
            print(f"{name}: new")
        elif parts := _changed(before[name], _digests(values)):
            different += 1
            print(f"{name}: {', '.join(parts)}")
            if _kept(keep, name).exists():
                with np.load(_kept(keep, name)) as kept:
                    then = {part: kept[part] if kept[part].ndim else str(kept[part]) for part in kept.files}
                print(*(f"    {line}" for line in _first_difference(parts, then, values)), sep="\n")
    gone = [name for name in before if name not in seen and _wanted(name, patterns)]
    for name in gone:
        print(f"{name}: gone")
    told = (
        f"{len(seen)} cases: {different} differ, {len(gone)} are gone"
        if different or gone
        else f"{len(seen)} cases equal"
    )
    return int(bool(different or gone)), told


def _run(patterns: Sequence[str] | None) -> Iterator[tuple[str, Values]]:
    """Names and values of the cases, each run in a folder that has what they read."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), patch.dict(os.environ, COLUMNS=WIDTH):
        shutil.copytree(EXAMPLES, "examples", ignore=shutil.ignore_patterns("__pycache__"))
        for file, text in FILES.items():
            Path(file).write_text(text, encoding="utf-8")
        Path(OUT).mkdir()
        for name, case in cases():
            if _wanted(name, patterns):
                started = time.monotonic()
                values = case()
                yield name, {part: _steady(value, folder) for part, value in values.items()}
                if (took := time.monotonic() - started) > SLOW_S:
                    print(f"{name} took {took:.1f} s", file=sys.stderr)


def _steady(part: Part, folder: str) -> Part:
    """The part without what is another each time: the name of the folder, and how long a search took."""
    if not isinstance(part, str):
        return part
    return TOOK.sub(r"\1 -", part.replace(str(Path(folder).resolve()), ".").replace(folder, "."))


def _wanted(name: str, patterns: Sequence[str] | None) -> bool:
    return patterns is None or any(fnmatch(name, pattern) for pattern in patterns)


def _digests(values: Values) -> dict[str, str]:
    return {name: _digest(part) for name, part in values.items()}


def _digest(part: Part) -> str:
    """The first 16 digits of the SHA-256 of a text, or of an array's type and numbers."""
    data = part.encode() if isinstance(part, str) else part.dtype.str.encode() + part.tobytes()
    return hashlib.sha256(data).hexdigest()[:16]


def _kept(keep: Path, name: str) -> Path:
    return keep / f"{name}.npz"


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The parts that are not the same, or only on one side."""
    return sorted({part for part, _ in before.items() ^ now.items()})


def _first_difference(parts: Sequence[str], before: Values, now: Values) -> Iterator[str]:
    """Lines that say where the parts begin to differ."""
    if any(part.removeprefix(TRACE) in COLUMNS for part in parts) and _has_rows(before) and _has_rows(now):
        yield from _first_row(before, now)
    for part in parts:
        if part not in before or part not in now:
            value = str(now[part] if part in now else before[part])
            shown = "" if part.startswith(TRACE) else f": {value.strip()[:LONGEST_LINE]}"
            yield f"{part} {'is new' if part in now else 'is gone'}{shown}"
        elif isinstance(before[part], str):
            yield f"{part} {_first_line(str(before[part]), str(now[part]))}"


def _has_rows(values: Values) -> bool:
    return all(f"{TRACE}{name}" in values for name in COLUMNS)


def _first_row(before: Values, now: Values) -> Iterator[str]:
    """Where two traces part, column by column."""
    then, here = (
        np.stack([np.asarray(values[f"{TRACE}{name}"]) for name in COLUMNS], axis=1) for values in (before, now)
    )
    if len(then) != len(here):
        yield f"trace has {len(here)} rows, had {len(then)}"
    elif np.array_equal(np.unique(then, axis=0), np.unique(here, axis=0)):
        yield "trace has the same rows in another order"
    both = min(len(then), len(here))
    unequal = np.flatnonzero((then[:both] != here[:both]).any(axis=1))
    if len(unequal):
        row = unequal[0]
        pairs = zip(COLUMNS, then[row].tolist(), here[row].tolist(), strict=True)
        cells = (f"{name} {old}" if old == new else f"{name} {old} -> {new}" for name, old, new in pairs)
        yield f"trace, {len(unequal)} rows of {both}, first row {row}: {', '.join(cells)}"


def _first_line(before: str, now: str) -> str:
    lines = zip_longest(before.splitlines(), now.splitlines())
    number, old, new = next((n, old, new) for n, (old, new) in enumerate(lines, start=1) if old != new)
    old, new = (repr(line.strip()[:LONGEST_LINE]) if line is not None else "the end" for line in (old, new))
    return f"line {number}: {old} -> {new}"


if __name__ == "__main__":
    sys.exit(main())
