"""The house in good order: one name for one thing, no circles, and a list of who may say when something happens."""

import ast
from collections import defaultdict
from pathlib import Path

import hops

ROOT = Path(hops.__file__).parent
FILES = {
    "hops." + str(path.relative_to(ROOT)).removesuffix(".py").removesuffix("/__init__").replace("/", "."): path
    for path in sorted(ROOT.rglob("*.py"))
}
TREES = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in FILES.items()}

# Compiled loops, and what each of them is for. Only `timing` and `engine` say when something happens.
KERNELS = {
    "bounds": "what no order can beat",
    "engine": "when, simulated",
    "planner": "layouts and what they cannot beat",
    "program": "an order in which all can run",
    "schedules": "the paper's greedy order, which is a schedule's own rule",
    "search": "moves on orders",
    "timing": "when, expected",
}


def test_no_class_name_stands_for_two_things():
    homes = defaultdict(list)
    for module, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def imported_at_the_top(module, tree):
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hops."):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in TREES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in TREES)


def test_no_files_import_each_other_in_a_circle():
    """Depth first through all imports at the top of files, package faces left out: they only show what is inside."""
    faces = {module for module, path in FILES.items() if path.name == "__init__.py"}
    needs = {
        module: sorted(set(imported_at_the_top(module, tree)) - faces)
        for module, tree in TREES.items()
        if module not in faces
    }
    done, path = set(), []

    def visit(module):
        assert module not in path, f"circle: {' -> '.join([*path[path.index(module) :], module])}"
        if module in done or module not in needs:
            return
        path.append(module)
        for each in needs[module]:
            visit(each)
        path.pop()
        done.add(module)

    for module in needs:
        visit(module)


def test_kernels_stand_where_they_belong():
    found = {
        module.split(".")[1]
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(each, ast.Name) and each.id == "kernel" for each in node.decorator_list)
    }
    assert found <= set(KERNELS), "a compiled loop outside of the rooms that may have one"
