"""The programs that the original code of each schedule prints (facts/schedules), as HOPS reads them."""

import json
from functools import cache

from shared_data import FACTS, missing

from hops.program.program import Program

FILE = FACTS / "schedules" / "programs.jsonl"
WHY_NOT = missing(FILE)
BOTH_WAYS = {"dualpipe", "chimera"}
DOWN_AND_UP = {"zb_v", "v_min", "v_half", "v_1f1b", "v_auto", "dualpipe_v"}


@cache
def rows():
    """All of them; none where the file is not there."""
    return tuple(map(json.loads, FILE.read_text().splitlines())) if FILE.exists() else ()


def rows_of(schedule):
    return [row for row in rows() if row["schedule"] == schedule]


def where(row):
    """What names a row in a failed test."""
    return ", ".join(f"{key} {row[key]}" for key in ("schedule", "source", "P", "M", "chunks", "group") if key in row)


def text(row):
    """The row as a program file."""
    ranks = [*range(row["P"])]
    place = ranks + ranks[::-1] if row["schedule"] in DOWN_AND_UP else ranks * row["chunks"]
    lines = [" ".join(map(_entry, words)) for words in row["programs"]]
    copies = ""
    if row["schedule"] in BOTH_WAYS:  # the rows name a stage of the second copy as that of the first
        place, copies = ranks + ranks[::-1], ", copies 2"
    slices = f", slices {row['slices']}" if "slices" in row else ""
    return "\n".join([f"microbatches {row['M']}, rank of stage {' '.join(map(str, place))}{copies}{slices}", *lines])


def _entry(word):
    """`(0F1;2B3)OVERLAP_F_B` is our `0F1+2B3`."""
    return word.removesuffix("OVERLAP_F_B").strip("()").replace(";", "+")


def program(row):
    return Program.parse(text(row))
