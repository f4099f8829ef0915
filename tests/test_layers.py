"""A package imports only from lower layers, never sideways (the house plan)."""

import ast
from pathlib import Path

import hops

LAYERS = [
    "errors",
    "units arrays axes compiled registry files recent processes",
    "decode distributions",
    "program hardware model",
    "timing trace",
    "bounds cost faults metrics",
    "search engine",
    "schedules",
    "spec",
    "build",
    "planner fleet diagnose calibrate importers exporters tracing",
    "sweep rehearse published",
    "report viz research testing",
    "cli",
]
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names.split()}
ROOT = Path(hops.__file__).parent


def imported_rooms(tree):
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""] if node.module != "hops" else [f"hops.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("hops."):
                yield node.lineno, name.split(".")[1]


def test_every_room_has_a_layer():
    rooms = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")}
    assert rooms - set(LAYER_OF) == {"__init__", "__main__"}, (
        "give new packages a place in LAYERS and in the architecture page"
    )


def test_architecture_page_shows_these_layers():
    """The table and this list are one."""
    page = (Path(__file__).parent.parent / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    shown = {int(row[1]): row[2].replace("`", "").split() for row in rows if row[1].strip().isdigit()}
    assert shown == {number: names.split() for number, names in enumerate(LAYERS)}


def test_imports_point_downward():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room.startswith("__"):  # the package's own front door
            continue
        for line, other in imported_rooms(ast.parse(path.read_text())):
            if other != room and other in LAYER_OF and LAYER_OF[other] >= LAYER_OF[room]:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {room} must not import {other}")
    assert not wrong, "\n".join(wrong)


def test_tracing_stands_alone():
    """What a training script imports loads nothing else of HOPS."""
    loaded = {
        f"{path.name}:{line}: {other}"
        for path in (ROOT / "tracing").rglob("*.py")
        for line, other in imported_rooms(ast.parse(path.read_text()))
        if other != "tracing"
    }
    assert not loaded
