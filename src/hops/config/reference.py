"""The reference page: every key with what it takes, its default and meaning, generated from the JSON Schema."""

from collections.abc import Iterator
from typing import Any

from hops.config.text import json_schema

_HEAD = """\
# The spec, key by key

Generated from the code; a test keeps it current. `hops schema` prints the same as JSON Schema for editors,
`hops init` a commented starter, `hops show SPEC` a spec with every default written out.

A spec is one YAML 1.2 document. Quantities are text with a unit; a bare number where a unit is due is an error.

| Quantity | Written | Units |
|---|---|---|
| memory | `80 GiB`, `80 GB` | B; kB MB GB TB PB (powers of 1000); KiB MiB GiB TiB PiB (powers of 1024) |
| bandwidth | `25 Gbit/s`, `3.35 TB/s` | bit/s and B/s with k M G T P E; B/s with Ki Mi Gi Ti Pi |
| time | `15 us`, `1.5 ms` | ns us ms s min h d |
| compute rate | `312 TFLOP/s` | FLOP/s with k M G T P E |

- Where a key takes a *random time* or *random factor*, it takes a bare value, or a distribution (last chapter).
- Where it takes a value *or a list of* such values, one value holds for all stages, and a list has one per stage.
- Where it takes *text or keys*, the text stands for the first key: `schedule: 1f1b` is `schedule: {name: 1f1b}`.
- For `hops plan`, `partition`, `placement`, `schedule` and `recompute` may be `auto`; `schedule`, its parameters,
  `recompute`, `microbatches` and `microbatch_size` may be lists of choices (docs/how-to/plan-a-cluster.md).
- Files that a spec names are looked for in its own folder; outputs are written relative to where you run.
"""
_WORDS = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text", "null": "null"}
_UNIT_TITLES = ("amount of memory", "bandwidth", "time", "compute rate")


def reference() -> str:
    """The reference page in Markdown."""
    page = _Page(json_schema())
    return "\n".join([_HEAD, *page.sections(), "## Distributions\n", *page.distributions()])


class _Page:
    """Chapters of the page, from the schema's definitions."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.top = schema
        self.definitions: dict[str, dict[str, Any]] = schema["$defs"]

    def sections(self) -> Iterator[str]:
        """One chapter per kind of mapping, under all paths where it stands."""
        paths: dict[str, list[str]] = {}
        for name, schema in self.top["properties"].items():
            self.collect(name, schema["$ref"], paths)
        for reference, places in paths.items():
            definition = self.definition({"$ref": reference})
            yield f"## {', '.join(f'`{place}`' for place in places)}\n"
            yield f"{definition['description']}{' Required.' if places[0] in self.top['required'] else ''}\n"
            yield self.table(definition)

    def collect(self, path: str, reference: str, paths: dict[str, list[str]]) -> None:
        """Note the paths at which every kind of mapping stands, in order of their first appearance."""
        paths.setdefault(reference, []).append(path)
        for name, schema in self.definition({"$ref": reference})["properties"].items():
            for inner, index in self.inner(schema):
                self.collect(f"{path}.{name}{index}", inner, paths)

    def distributions(self) -> Iterator[str]:
        yield "Each is written for times; factors take plain numbers in place of times.\n"
        for name, definition in self.definitions.items():
            if name.endswith("Form_times"):
                yield f"### `distribution: {definition['properties']['distribution']['const']}`\n"
                yield f"{definition['description']}\n"
                yield self.table(definition)

    def table(self, definition: dict[str, Any]) -> str:
        rows = ["| Key | Takes | Default | Meaning |", "|---|---|---|---|"]
        for name, schema in definition["properties"].items():
            if "const" in schema and name == "distribution":
                continue
            default = "required" if name in definition.get("required", ()) else _written(schema.get("default"))
            meaning = schema.get("description", "")
            rows.append(f"| `{name}` | {_cell(self.takes(schema))} | {_cell(default)} | {_cell(meaning)} |")
        return "\n".join(rows) + "\n"

    def inner(self, schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """References to the mappings that a key takes, with `[]` if they stand in a list."""
        for each in _alternatives(schema):
            if "$ref" in each and "Form_" not in each["$ref"]:
                yield each["$ref"], ""
            elif each.get("type") == "array" and "prefixItems" not in each:
                yield from ((found, "[]") for found, _ in self.inner(each["items"]))

    def takes(self, schema: dict[str, Any]) -> str:
        """What a key takes, in words."""
        choices = _alternatives(schema)
        if any("Form_" in each.get("$ref", "") for each in choices):
            kinds = [each for each in choices if "$ref" not in each]
            factor = any(each.get("type") == "number" for each in kinds)
            lists = [f"list of random {'factors' if factor else 'times'}"] * any(
                each.get("type") == "array" for each in kinds
            )
            return " or ".join([f"random {'factor' if factor else 'time'}", *lists])
        words = list(dict.fromkeys(self.one(each) for each in choices))
        if len(words) == 2 and words[1] == f"list, each {words[0]}":
            words[1] = "list of such"
        return " or ".join(words)

    def one(self, schema: dict[str, Any]) -> str:
        """One alternative in words."""
        if "$ref" in schema:
            return "keys, below"
        if "enum" in schema or "const" in schema:
            return ", ".join(_written(each) for each in schema.get("enum", [schema.get("const")]))
        if schema.get("type") == "array":
            return f"list, each {self.takes(schema['items'])}" if "items" in schema else "pair of names"
        if schema.get("title") in _UNIT_TITLES:
            return f"{schema['title']}, such as `{schema['examples'][0]}`"
        words = {
            "integer": "whole number",
            "number": "number",
            "boolean": "true or false",
            "string": "text",
            "null": "null",
        }
        return words[schema["type"]] + _bounds(schema)

    def definition(self, schema: dict[str, Any]) -> dict[str, Any]:
        return self.definitions[schema["$ref"].removeprefix("#/$defs/")]


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The forms of a value, nested choices taken apart, null left out."""
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return [form for each in schema[key] for form in _alternatives(each) if form.get("type") != "null"]
    return [schema]


def _bounds(schema: dict[str, Any]) -> str:
    low = [f"at least {schema['minimum']}"] if "minimum" in schema else []
    low += [f"above {schema['exclusiveMinimum']}"] if "exclusiveMinimum" in schema else []
    high = [f"at most {schema['maximum']}"] if schema.get("maximum", 1e30) <= 1_000_000 else []
    return f" ({', '.join([*low, *high])})" if low or high else ""


def _written(value: object) -> str:
    if isinstance(value, dict):
        return _written(value["name"]) if "name" in value else "its keys' defaults"
    if isinstance(value, list):
        return "`[]`"
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else "null" if value is None else str(value)
    return f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
