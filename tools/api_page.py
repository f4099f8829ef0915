"""Writes docs/reference/api.md from the docstrings of the verbs: `python tools/api_page.py > docs/reference/api.md`."""

import inspect
import re
import textwrap

import hops

HEAD = """\
# The Python interface

Generated from the code by `tools/api_page.py`; a test keeps it current and runs every example.
"""
GROUPS = {
    "Specs": ("load", "loads", "from_dict", "dump"),
    "Runs": ("simulate", "summarize", "compare", "read_trace"),
    "Many runs": ("sweep", "evaluate", "sample"),
    "Answers": ("plan", "search", "goodput", "whatif", "calibrate", "validate"),
    "Pictures": ("draw_timeline", "draw_comparison", "draw_diff", "draw_dashboard", "draw_sweep"),
}


def page() -> str:
    """The page in Markdown."""
    parts = [HEAD, _prose(inspect.getdoc(hops) or "")]
    for title, verbs in GROUPS.items():
        parts.append(f"## {title}\n")
        for verb in verbs:
            function = getattr(hops, verb)
            signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
            signature = signature.replace("collections.abc.", "")
            parts.append(f"### `hops.{verb}`\n\n```python\n{verb}{signature}\n```\n")
            parts.append(_prose(inspect.getdoc(function) or ""))
    types = ", ".join(f"`{name}`" for name in hops.__all__ if inspect.isclass(getattr(hops, name)))
    parts.append(f"## Types\n\nWhat verbs take and give, for annotations: {types}.\n")
    return "\n".join(parts)


def _prose(text: str) -> str:
    """A docstring as Markdown: examples as code, arguments as a list."""
    lines: list[str] = []
    for block in text.split("\n\n"):
        if block.startswith(">>>"):
            lines.append(f"```pycon\n{block}\n```")
        elif block.startswith("Args:"):
            lines.append(_arguments(textwrap.dedent(block.removeprefix("Args:\n"))))
        else:
            lines.append(block.replace("\n", " "))
    return "\n\n".join(lines) + "\n"


def _arguments(text: str) -> str:
    items = []
    for line in text.splitlines():
        if line.startswith(" "):
            items[-1] += f" {line.strip()}"
        else:
            name, _, meaning = line.partition(": ")
            items.append(f"- `{name}`: {meaning}")
    return "\n".join(items)


if __name__ == "__main__":
    print(page(), end="")
