"""Megatron-LM's arguments, each with what HOPS does about it: applied, nothing to change here, or refused.

`flags.csv` has a row per flag, from Megatron-LM's argument parser and configuration classes (commit d98e8a64dd,
2026-08-22), with flags of older releases and forks. Columns: how many words it `takes` (none, one, many), what a flag
without words `sets`, the `name` under which Megatron-LM keeps it and configuration files know it, its `default`, its
`treatment`, `why`, and for refused ones what it `needs` to have an effect at all.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

Treatment = Literal["applied", "nothing", "refused"]
ALIASES = {
    "num_moe_experts": "num_experts",
    "num_layers_in_first_pipeline_stage": "decoder_first_pipeline_num_layers",
    "num_layers_in_last_pipeline_stage": "decoder_last_pipeline_num_layers",
    "virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank",
}


@dataclass(frozen=True, slots=True)
class Flag:
    """A row of the table; `flag` is "" for what only a configuration file can say."""

    flag: str
    takes: Literal["none", "one", "many"]
    sets: str
    name: str
    default: str
    treatment: Treatment
    why: str
    needs: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One argument of a launch.

    Attributes:
        written: as the launch spells it, such as `--num_layers`.
        values: its words; of a flag without words "true" or "false".
    """

    written: str
    row: Flag
    values: tuple[str, ...]

    @property
    def value(self) -> str:
        return " ".join(self.values)

    def __str__(self) -> str:
        return self.written if self.row.takes == "none" and self.row.flag else f"{self.written} {self.value}"


@cache
def rows() -> tuple[Flag, ...]:
    """The table, in the order of the file."""
    text = files(__package__).joinpath("flags.csv").read_text(encoding="utf-8")
    return tuple(Flag(**row) for row in csv.DictReader(text.splitlines()))  # type: ignore[arg-type]  # words of a file


@cache
def by_flag() -> Mapping[str, Flag]:
    """Rows by flag, with dashes throughout: forks and older releases write underscores."""
    return {row.flag.replace("_", "-"): row for row in rows() if row.flag}


@cache
def by_name() -> Mapping[str, Flag]:
    """A row for each name, the flag that sets it plainly before one that takes it away."""
    found: dict[str, Flag] = {}
    for row in sorted(rows(), key=lambda each: each.sets == "false"):
        found.setdefault(row.name, row)
    return found


def find(written: str) -> Flag | None:
    """The row of a flag as a launch spells it."""
    return by_flag().get(written.lstrip("-").replace("_", "-"))


@lru_cache(maxsize=100)
def nearest(written: str) -> str:
    """The most similar flag, "" if none is."""
    near = get_close_matches(written.lstrip("-").replace("_", "-"), by_flag(), n=1)
    return f"--{by_flag()[near[0]].flag}" if near else ""


def page() -> str:
    """The table as a page of the documentation."""
    return "\n".join([*_HEAD, *_applied(), *_refused(), *_nothing()]) + "\n"


_HEAD = [
    "# Megatron-LM's flags, one by one",
    "",
    "Generated from `src/hops/importers/megatron/flags.csv` by `python -m hops.importers.megatron.flags`; a test says",
    "when it is out of date. Names and defaults are those of Megatron-LM at commit d98e8a64dd (2026-08-22); flags of",
    "older releases and of forks are in it, too. `hops import megatron` prints which flags of a launch it applied, and",
    "which change nothing here; it refuses the rest, and says why. How to use it: docs/how-to/import-a-launch.md.",
    "",
    "Underscores are read as dashes. Words in brackets are names that only a configuration file uses.",
    "",
]


def _spelt(row: Flag) -> str:
    return f"`--{row.flag}`" if row.flag else f"[`{row.name}`]"


def _applied() -> Iterator[str]:
    yield from ("## Applied", "", "Where a size other than 1 is refused, the table says so.", "")
    yield from ("| Flag | Takes | Default |", "|---|---|---|")
    note = {f"{kind}_parallel_size": " (above 1 refused for now)" for kind in
            ("tensor_model", "context", "expert_model", "expert_tensor")}  # fmt: skip
    for row in _unique(each for each in rows() if each.treatment == "applied"):
        yield f"| {_spelt(row)}{note.get(row.name, '')} | {row.takes} | {row.default or 'none'} |"
    yield ""


def _refused() -> Iterator[str]:
    yield from ("## Refused", "", "A value equal to the default passes; so does a flag whose switch is off.", "")
    yield from ("| Why | Only with | Flags |", "|---|---|---|")
    groups: dict[tuple[str, str], list[str]] = {}
    for row in _unique(each for each in rows() if each.treatment == "refused"):
        groups.setdefault((row.why, row.needs), []).append(_spelt(row))
    for (why, needs), flags in groups.items():
        yield f"| {why} | {_switch(needs)} | {', '.join(flags)} |"
    yield ""


def _switch(needs: str) -> str:
    if needs == "data_parallel":
        return "copies of the pipeline"
    return f"`--{needs.replace('_', '-')}`" if needs else ""


def _nothing() -> Iterator[str]:
    yield from ("## Change nothing that HOPS models", "", "| What they are about | Flags |", "|---|---|")
    groups: dict[str, list[str]] = {}
    for row in _unique(each for each in rows() if each.treatment == "nothing"):
        groups.setdefault(row.why, []).append(_spelt(row))
    for why, flags in groups.items():
        yield f"| {why} | {', '.join(flags)} |"


def _unique(every: Iterator[Flag]) -> Sequence[Flag]:
    return list({(row.flag or row.name): row for row in every}.values())


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
