"""One attempt as a state machine: each step takes what the one before left on the disk, up to a decision."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hops.files import atomic_write
from hops.research.decide import accept, message_of, reject
from hops.research.folder import Folder
from hops.research.judge import judge
from hops.research.measure import run_limited
from hops.research.observe import observe, render
from hops.research.scores import figures_text
from hops.research.states import Accepting, AgentRuns, NothingUnderWay, Open, Opened, Rejecting, State, Submitted

UNSTATED = "(the agent stated no hypothesis)"
LONGEST_HYPOTHESIS = 2000
PROMPT = """\
You improve a performance model so that it predicts measured runs better. Your working directory is a checkout of its
repository. Change the model by its structure, for a physical reason; do not fit a constant to a run.

- You may change only: {editable}. Anything else is undone, and the attempt with it.
- Write your hypothesis, one sentence, into the file {hypothesis}
- When you end, the loop evaluates your tree on the training runs and runs the tests. It keeps your change if throughput
  MAPE, bubble MAE and utilisation correlation hold or improve, no run regresses by more than {throughput:g}% throughput
  or {bubble:g} pp bubble, and all tests pass. Otherwise your change is undone.
- Training runs: {data}   report of the present model: {report}   what was tried: {journal}

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A command line, run by `sh`, and the seconds that it may take."""

    command: str
    limit_s: float


def finish(folder: Folder, state: Open, agent: Agent, tell: Callable[[str], None]) -> None:
    """Take an attempt to its end; the state on the disk is always the one that we are in."""
    following: State = state
    while not isinstance(following, NothingUnderWay):
        folder.write(following)
        following = _step(folder, following, agent, tell)
    folder.write(NothingUnderWay())


def take_over(folder: Folder, state: Open) -> Open:
    """What to go on with after a crash: all steps may be repeated, but an agent that was cut off is not run again."""
    match state:
        case AgentRuns():
            faults = ("the loop was interrupted while the agent worked", *_restored(folder, state))
            return _candidate(folder, state, faults)
        case Submitted():
            return replace(state, faults=(*state.faults, *_restored(folder, state)))
        case _:
            return state


def _step(folder: Folder, state: Open, agent: Agent, tell: Callable[[str], None]) -> State:
    match state:
        case Opened():
            return _prepare(folder, state)
        case AgentRuns():
            tell(f"attempt {state.attempt}: the agent works")
            return _run_agent(folder, state, agent)
        case Submitted():
            tell(f"attempt {state.attempt}: checking: {state.hypothesis}")
            return _check(folder, state)
        case Accepting():
            following = accept(folder, state)
            if isinstance(following, NothingUnderWay):
                tell(f"attempt {state.attempt}: accepted as {state.commit[:12]}: {figures_text(state.after)}")
            return following
        case Rejecting():
            tell(f"attempt {state.attempt}: rejected: {'; '.join(state.reasons)}")
            return reject(folder, state)


def _prepare(folder: Folder, state: Opened) -> AgentRuns:
    records = folder.attempt_folder(state.attempt)
    gates = folder.settings.gates
    observation = render(observe(folder.golden()))
    with atomic_write(records / "observation.md") as out:
        out.write(observation)
    with atomic_write(records / "prompt.md") as out:
        out.write(
            PROMPT.format(
                editable=", ".join(folder.settings.editable),
                hypothesis=records / "hypothesis.txt",
                throughput=gates.run_throughput_pct,
                bubble=gates.run_bubble_pp,
                data=folder.split("train").copy,
                report=folder.golden_path,
                journal=folder.journal.path,
            )
            + observation
        )
    (records / "hypothesis.txt").unlink(missing_ok=True)
    folder.git.add_worktree(folder.agent_tree, state.base)
    return AgentRuns(attempt=state.attempt, base=state.base, protected=folder.protect())


def _run_agent(folder: Folder, state: AgentRuns, agent: Agent) -> Submitted:
    records = folder.attempt_folder(state.attempt)
    ended = run_limited(
        ["sh", "-c", agent.command],
        cwd=folder.agent_tree,
        limit_s=agent.limit_s,
        output=records / "agent.txt",
        stdin=records / "prompt.md",
        env={
            "HOPS_RESEARCH_ATTEMPT": str(state.attempt),
            "HOPS_RESEARCH_OBSERVATION": str(records / "observation.md"),
            "HOPS_RESEARCH_HYPOTHESIS": str(records / "hypothesis.txt"),
            "HOPS_RESEARCH_DATA": str(folder.split("train").copy),
            "HOPS_RESEARCH_REPORT": str(folder.golden_path),
            "HOPS_RESEARCH_JOURNAL": str(folder.journal.path),
        },
    )
    faults = () if ended.ok else (ended.story("the agent", agent.limit_s),)
    return _candidate(folder, state, (*faults, *_restored(folder, state)))


def _candidate(folder: Folder, state: AgentRuns, faults: tuple[str, ...]) -> Submitted:
    """Keep what lies in the agent's tree as a commit under the attempt's ref."""
    hypothesis = _stated(folder.attempt_folder(state.attempt) / "hypothesis.txt")
    folder.agent_tree.mkdir(parents=True, exist_ok=True)  # an agent may have removed even that
    tree = folder.git.snapshot(folder.agent_tree, state.base)
    snapshot = folder.git.commit(tree, state.base, hypothesis)
    folder.git.keep(folder.ref(state.attempt), snapshot)
    return Submitted(
        attempt=state.attempt,
        base=state.base,
        protected=state.protected,
        snapshot=snapshot,
        hypothesis=hypothesis,
        faults=faults,
    )


def _check(folder: Folder, state: Submitted) -> State:
    golden = folder.golden()
    rejecting = Rejecting(
        attempt=state.attempt,
        base=state.base,
        snapshot=state.snapshot,
        hypothesis=state.hypothesis,
        reasons=state.faults,
        before=golden.figures,
        after={},
        in_place=False,
    )
    if state.faults:
        return rejecting
    verdict = judge(folder, golden, state.base, state.snapshot, folder.attempt_folder(state.attempt))
    after = {} if verdict.scores is None else verdict.scores.figures
    reasons = (*verdict.reasons, *_restored(folder, state))  # the candidate's own code ran just now
    if reasons:
        return replace(rejecting, reasons=reasons, after=after)
    message = message_of(state.hypothesis, figures_text(golden.figures), figures_text(after))
    return Accepting(
        attempt=state.attempt,
        base=state.base,
        commit=folder.git.commit(folder.git.tree_of(state.snapshot), state.base, message),
        hypothesis=state.hypothesis,
        before=golden.figures,
        after=after,
    )


def _restored(folder: Folder, state: AgentRuns | Submitted) -> tuple[str, ...]:
    return tuple(f"{what} (put back)" for what in folder.heal(state.protected))


def _stated(path: Path) -> str:
    """What the agent wrote as its hypothesis, on one line."""
    if not path.is_file() or path.is_symlink():
        return UNSTATED
    with path.open("rb") as file:
        text = file.read(LONGEST_HYPOTHESIS).decode(errors="replace")
    return " ".join(text.split()) or UNSTATED
