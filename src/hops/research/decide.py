"""Carry out a decision, in steps of which each may be done twice: whoever finds the state can finish it."""

from hops.files import atomic_path
from hops.research.folder import Folder
from hops.research.journal import Accepted, Rejected, decision_of, today
from hops.research.states import Accepting, NothingUnderWay, Rejecting, State


def message_of(hypothesis: str, before: str, after: str) -> str:
    """The commit message of an accepted attempt."""
    return f"{hypothesis}\n\nBefore: {before}\nAfter: {after}\n"


def accept(folder: Folder, state: Accepting) -> State:
    """Branch, golden baseline, journal; Rejecting instead if the branch has gone elsewhere meanwhile."""
    folder.git.keep(folder.ref(state.attempt), state.commit)
    if not folder.git.advance(state.base, state.commit):
        reason = (
            f"the branch has moved on from {state.base[:12]} meanwhile, so what was checked is not what would be there"
        )
        return Rejecting(
            attempt=state.attempt,
            base=state.base,
            snapshot=state.commit,
            hypothesis=state.hypothesis,
            reasons=(reason,),
            before=state.before,
            after=state.after,
            in_place=False,
        )
    with atomic_path(folder.golden_path) as temporary:
        temporary.write_bytes((folder.attempt_folder(state.attempt) / "report.json").read_bytes())
    if decision_of(folder.journal.entries(), state.attempt) is None:
        folder.journal.append(
            Accepted(
                date=today(),
                attempt=state.attempt,
                hypothesis=state.hypothesis,
                commit=state.commit,
                before=state.before,
                after=state.after,
            )
        )
    folder.git.remove_worktrees(folder.agent_tree, folder.check_tree)
    return NothingUnderWay()


def reject(folder: Folder, state: Rejecting) -> State:
    """Journal, then the tree as it was; what was tried stays in git under the attempt's ref."""
    if state.snapshot:
        folder.git.keep(folder.ref(state.attempt), state.snapshot)
    if decision_of(folder.journal.entries(), state.attempt) is None:
        folder.journal.append(
            Rejected(
                date=today(),
                attempt=state.attempt,
                hypothesis=state.hypothesis,
                snapshot=state.snapshot,
                reasons=state.reasons,
                before=state.before,
                after=state.after,
            )
        )
    if state.in_place and only_between(folder, state.base, state.snapshot):
        folder.git.restore(state.base)
    folder.git.remove_worktrees(folder.agent_tree, folder.check_tree)
    return NothingUnderWay()


def only_between(folder: Folder, base: str, snapshot: str) -> bool:
    """Whether every file of the main worktree is as in one of the two, so that restoring it loses nothing."""
    now = folder.git.snapshot(folder.git.root, base)
    from_base = {change.path for change in folder.git.changes(base, now)}
    from_snapshot = {change.path for change in folder.git.changes(snapshot, now)}
    return folder.git.head() == base and not from_base & from_snapshot
