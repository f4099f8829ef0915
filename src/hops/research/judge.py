"""Whether a candidate passes: it changed only what it may, it evaluates, the gates hold, the tests pass."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hops.research.folder import Folder
from hops.research.git import FILE_MODES, FileChange
from hops.research.measure import measure, run_tests
from hops.research.scores import Scores, problems

SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Reasons against a candidate (none: it passes), and its scores as far as it could be measured."""

    reasons: tuple[str, ...]
    scores: Scores | None


def judge(folder: Folder, golden: Scores, base: str, commit: str, records: Path) -> Verdict:
    """Judge a commit against its base and the golden baseline, read before since the candidate's code runs here.

    The checks run from cheap to dear, and the first kind that fails ends them: nothing is run of a candidate that
    changed what it must not. Report and outputs are left in the folder `records`.
    """
    changes = folder.git.changes(base, commit)
    if not changes:
        return Verdict(reasons=("nothing has been changed",), scores=None)
    forbidden = forbidden_changes(changes, folder.settings.editable)
    if forbidden:
        return Verdict(reasons=forbidden, scores=None)
    folder.git.add_worktree(folder.check_tree, commit)
    train = folder.split("train").copy
    measured = measure(folder, train, train, records / "report.json", records / "evaluation.txt")
    if measured.scores is None:
        return Verdict(reasons=(measured.fault,), scores=None)
    reasons = problems(golden, measured.scores, folder.settings.gates)
    if not reasons and (failed := run_tests(folder, records / "tests.txt")):
        reasons = (failed,)
    return Verdict(reasons=reasons, scores=measured.scores)


def forbidden_changes(changes: Iterable[FileChange], editable: tuple[str, ...]) -> tuple[str, ...]:
    """Why these changes may not be made: paths outside `editable`, and links or repositories instead of files."""
    changes = tuple(changes)
    outside = [each.path for each in changes if not _inside(each.path, editable)]
    special = [each.path for each in changes if each.mode not in FILE_MODES]
    reasons = []
    if outside:
        reasons.append(f"changes what it must not: {_listed(outside)}; editable are {', '.join(editable)}")
    if special:
        reasons.append(f"leaves links or repositories instead of files: {_listed(special)}")
    return tuple(reasons)


def _inside(path: str, editable: tuple[str, ...]) -> bool:
    return any(path == each.rstrip("/") or path.startswith(each.rstrip("/") + "/") for each in editable)


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return ", ".join(paths[:SHOWN]) + more
