"""The name that the authors of a run gave its schedule; not what ran, and never read by a prediction."""

from pathlib import Path

from ruamel.yaml import YAML


def read_label(file: Path) -> str:
    """`labelled_schedule` of a run.yaml that `read_launch` accepts, "" if it has none."""
    document = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    return str(document.get("labelled_schedule") or "")
