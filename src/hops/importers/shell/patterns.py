"""A shell's patterns: `*`, `?` and `[...]`, as `case`, `[[ a == b ]]` and `${X%...}` use them."""

import re
from functools import lru_cache

MAX_TEXT = 4000  # characters that a pattern is tried on: trying all cuts of a text is quadratic


@lru_cache(maxsize=1000)
def pattern(text: str, *, greedy: bool = True) -> re.Pattern[str]:
    """The regular expression of a pattern; `greedy`: `*` takes as much as it can."""
    out: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "*":
            out.append(".*" if greedy else ".*?")
        elif character == "?":
            out.append(".")
        elif character == "\\" and at < len(text):
            out.append(re.escape(text[at]))
            at += 1
        elif character == "[" and (end := text.find("]", at + 1)) > 0:
            inner = text[at:end].replace("\\", "\\\\").replace("[", "\\[")
            out.append(f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]")
            at = end + 1
        else:
            out.append(re.escape(character))
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error:  # such as [z-a]
        return re.compile(re.escape(text))


def matches(text: str, wanted: str) -> bool:
    return pattern(wanted).fullmatch(text) is not None


def without_prefix(text: str, wanted: str, *, longest: bool) -> str:
    """`${X#wanted}`, or `##` for the longest."""
    ends = range(len(text), -1, -1) if longest else range(len(text) + 1)
    return next((text[end:] for end in ends if matches(text[:end], wanted)), text)


def without_suffix(text: str, wanted: str, *, longest: bool) -> str:
    """`${X%wanted}`, or `%%` for the longest."""
    starts = range(len(text) + 1) if longest else range(len(text), -1, -1)
    return next((text[:start] for start in starts if matches(text[start:], wanted)), text)


def replaced(text: str, wanted: str, by: str, *, everywhere: bool) -> str:
    """`${X/wanted/by}`, or `//` everywhere; a leading # or % ties the pattern to start or end."""
    if wanted[:1] == "#":
        cut = without_prefix(text, wanted[1:], longest=True)
        return text if len(cut) == len(text) and wanted[1:] else by + cut
    if wanted[:1] == "%":
        cut = without_suffix(text, wanted[1:], longest=True)
        return text if len(cut) == len(text) and wanted[1:] else cut + by
    if not wanted:
        return text
    return pattern(wanted).sub(lambda _: by, text, count=0 if everywhere else 1)
