"""The loop by hand: check, accept or reject what you changed in your own worktree."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from hops.decode.decode import read
from hops.errors import GateError, ResearchError
from hops.files import atomic_path, atomic_write
from hops.research.attempt import Agent, finish, take_over
from hops.research.dataset import heal
from hops.research.decide import message_of
from hops.research.folder import PROTECTED, Folder
from hops.research.journal import next_attempt
from hops.research.judge import judge
from hops.research.measure import measure
from hops.research.observe import observe, render
from hops.research.scores import figures_text
from hops.research.seal import close
from hops.research.states import Accepting, NothingUnderWay, Rejecting

NO_AGENT = Agent(command="false", limit_s=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check found: reasons against the change (none: it passes), figures (`after` is empty if unmeasured)."""

    base: str
    snapshot: str
    context: str
    reasons: tuple[str, ...]
    before: Mapping[str, float | None]
    after: Mapping[str, float | None]


def observation(folder: Folder, split: str) -> str:
    """Where the error comes from, as Markdown: of the golden report on train, or measured now on diagnostic."""
    close(folder.seal())
    if split == "train":
        return render(observe(folder.golden()))
    with folder.lock():
        _finish_open(folder)
        for each in folder.readable_splits():
            heal(each)
        records = _records(folder)
        folder.git.add_worktree(folder.check_tree, folder.git.head())
        runs, train = folder.split(split).copy, folder.split("train").copy
        measured = measure(folder, runs, train, records / f"{split}.json", records / f"{split}.txt")
        folder.git.remove_worktrees(folder.check_tree)
    if measured.scores is None:
        raise ResearchError(measured.fault)
    return render(observe(measured.scores))


def check(folder: Folder) -> Checked:
    """Judge the main worktree as it lies there, from a checkout of its snapshot; nothing in it is touched."""
    with folder.lock():
        close(folder.seal())
        return _check(folder)


def accept(folder: Folder, hypothesis: str) -> Checked:
    """Commit a change that passes, move the golden baseline, log it. Raises GateError with the reasons if it fails."""
    _need(hypothesis)
    with folder.lock():
        close(folder.seal())
        checked = _known(folder) or _check(folder)
        if checked.reasons:
            raise GateError("not accepted:\n" + "\n".join(f"- {reason}" for reason in checked.reasons))
        attempt = _number(folder)
        with atomic_path(folder.attempt_folder(attempt) / "report.json") as temporary:
            temporary.write_bytes((_records(folder) / "report.json").read_bytes())
        message = message_of(hypothesis, figures_text(checked.before), figures_text(checked.after))
        state = Accepting(
            attempt=attempt,
            base=checked.base,
            commit=folder.git.commit(folder.git.tree_of(checked.snapshot), checked.base, message),
            hypothesis=hypothesis,
            before=checked.before,
            after=checked.after,
        )
        finish(folder, state, NO_AGENT, lambda _: None)
    return checked


def reject(folder: Folder, hypothesis: str) -> Rejecting:
    """Log a change with what its last check found, then restore the tree; git keeps it under the attempt's ref."""
    _need(hypothesis)
    with folder.lock():
        close(folder.seal())
        _finish_open(folder)
        base, snapshot = _snapshot(folder)
        if not folder.git.changes(base, snapshot):
            raise ResearchError("there is nothing to reject: the tree is as committed")
        checked = _known(folder)
        attempt = _number(folder)
        state = Rejecting(
            attempt=attempt,
            base=base,
            snapshot=folder.git.commit(folder.git.tree_of(snapshot), base, hypothesis),
            hypothesis=hypothesis,
            reasons=("rejected by hand",) if checked is None else (checked.reasons or ("rejected by hand",)),
            before=folder.golden().figures,
            after={} if checked is None else checked.after,
            in_place=True,
        )
        folder.git.keep(folder.ref(attempt), state.snapshot)
        finish(folder, state, NO_AGENT, lambda _: None)
    return state


def _check(folder: Folder) -> Checked:
    _finish_open(folder)
    for split in folder.readable_splits():
        heal(split)
    base, snapshot = _snapshot(folder)
    (_records(folder) / "checked.json").unlink(missing_ok=True)  # its report is about to be replaced
    protected, golden = folder.protect(), folder.golden()
    verdict = judge(folder, golden, base, snapshot, _records(folder))
    folder.git.remove_worktrees(folder.check_tree)
    changed = tuple(f"{what} (put back)" for what in folder.heal(protected))
    checked = Checked(
        base=base,
        snapshot=snapshot,
        context=_context(folder),
        reasons=(*verdict.reasons, *changed),
        before=golden.figures,
        after={} if verdict.scores is None else verdict.scores.figures,
    )
    with atomic_write(_records(folder) / "checked.json") as out:
        out.write(json.dumps(asdict(checked), indent=1) + "\n")
    return checked


def _known(folder: Folder) -> Checked | None:
    """The last check, if it was of this very tree, base, baseline and settings."""
    path = _records(folder) / "checked.json"
    if not path.exists():
        return None
    checked = read(Checked, path, error=ResearchError, expected="what `hops research check` wrote; check again")
    base, snapshot = _snapshot(folder)
    same = (
        checked.base == base
        and folder.git.tree_of(checked.snapshot) == folder.git.tree_of(snapshot)
        and checked.context == _context(folder)
    )
    return checked if same else None


def _finish_open(folder: Folder) -> None:
    """An attempt that a crash left undecided but for the writing down is written down first."""
    state = folder.state()
    if isinstance(state, Accepting | Rejecting):
        finish(folder, take_over(folder, state), NO_AGENT, lambda _: None)
    elif not isinstance(state, NothingUnderWay):
        raise ResearchError(
            f"attempt {state.attempt} of an agent was interrupted at {type(state).__name__}; "
            "finish it first: hops research run --agent COMMAND --iterations 1"
        )


def _number(folder: Folder) -> int:
    _finish_open(folder)
    return next_attempt(folder.journal.entries())


def _snapshot(folder: Folder) -> tuple[str, str]:
    """HEAD, and the main worktree as a commit on it."""
    base = folder.git.head()
    return base, folder.git.commit(folder.git.snapshot(folder.git.root, base), base, "what hops research checked")


def _context(folder: Folder) -> str:
    """Digest of all that a verdict depends on beside the tree."""
    total = hashlib.sha256()
    for name in PROTECTED:
        path = folder.root / name
        if name != "journal.jsonl" and path.exists():
            total.update(path.read_bytes())
    return total.hexdigest()


def _records(folder: Folder) -> Path:
    return folder.root / "attempts/check"


def _need(hypothesis: str) -> None:
    if not hypothesis.strip():
        raise ResearchError("-m is empty; say in a sentence what you expected and why")
