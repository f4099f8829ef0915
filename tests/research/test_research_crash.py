"""Killed with -9 before any step that lasts: the next loop goes on, and ends where it would have ended."""

import os
import signal
from contextlib import ExitStack
from unittest import mock

import pytest
from research_project import BETTER, FIRST, KILLED, WORSE, git, in_a_process

from hops.research import attempt, decide, folder, measure
from hops.research.folder import Folder
from hops.research.git import Git
from hops.research.journal import Accepted, Baseline, Journal, Rejected
from hops.research.loop import run_loop
from hops.research.states import NothingUnderWay

LASTING_IN_GIT = {"update-ref", "worktree", "merge", "reset", "clean"}  # others read, or add what nobody refers to
LASTING = [
    (Git, "run"),
    (Journal, "append"),
    (folder, "write_state"),
    (decide, "atomic_path"),
    (attempt, "atomic_write"),
    (attempt, "run_limited"),
    (measure, "run_limited"),
]


class Countdown:
    """Kills this process before its count-th lasting step; counts them all if it never comes to that."""

    def __init__(self, count):
        self.left = count
        self.steps = 0

    def before(self, original, *, selective):
        def step(*arguments, **options):
            if not selective or arguments[1] in LASTING_IN_GIT:
                self.steps += 1
                self.left -= 1
                if self.left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **options)

        return step

    def patched(self):
        stack = ExitStack()
        for owner, name in LASTING:
            step = self.before(getattr(owner, name), selective=owner is Git)
            stack.enter_context(mock.patch.object(owner, name, step))
        return stack


def loop_until(project, command, count):
    """A loop of one attempt in a process that is killed before its count-th lasting step."""

    def loop():
        countdown = Countdown(count)
        with countdown.patched():
            run_loop(Folder.open(project.research), command, 1, tell=lambda _: None)
        print(countdown.steps)

    return in_a_process(loop, project.place)


def steps_of(project, command):
    code, printed = loop_until(project, command, -1)
    assert code == 0, printed
    return int(printed)


def ending(project):
    """What an attempt leaves: branch, files, baseline, what the journal says happened."""
    opened = Folder.open(project.research)
    decided = [each for each in opened.journal.entries() if not isinstance(each, Baseline)]
    assert isinstance(opened.state(), NothingUnderWay)
    assert len(git(project.root, "worktree", "list").splitlines()) == 1
    assert git(project.root, "status", "--short") == ""
    assert [each.attempt for each in decided] == [1]
    subjects = git(project.root, "log", "--format=%s")
    return decided[0], (project.model(), opened.golden(), subjects)


@pytest.mark.parametrize(("model", "kind"), [(BETTER, Accepted), (WORSE, Rejected)], ids=["accepted", "rejected"])
def test_a_loop_killed_at_any_step_ends_as_if_it_had_not_been(begun, tmp_path, model, kind):
    """Only an agent that was cut off is not run again: then its attempt is undone, and what it had done is kept."""
    whole = begun.copy(tmp_path / "whole")
    steps = steps_of(whole, whole.proposes(model))
    decided, expected = ending(whole)
    assert isinstance(decided, kind)
    assert steps > 12
    untouched = (FIRST, Folder.open(begun.research).golden(), "first model")
    seen = set()
    first = 1 if kind is Accepted else steps - 5  # up to the verdict both are the same
    for count in range(first, steps + 1):
        project = begun.copy(tmp_path / f"killed{count}")
        command = project.proposes(model)
        assert loop_until(project, command, count)[0] == KILLED
        run_loop(Folder.open(project.research), command, 1, tell=lambda _: None)
        decided, found = ending(project)
        cut_off = isinstance(decided, Rejected) and "the loop was interrupted while the agent worked" in decided.reasons
        assert found == (untouched if cut_off else expected), f"killed before step {count}"
        assert cut_off or (decided.hypothesis, type(decided)) == ("a floor", kind)
        seen.add(cut_off)
    assert seen == ({True, False} if kind is Accepted else {False})


def test_a_loop_killed_while_the_agent_works_ends_the_agent_and_keeps_what_it_had_done(project):
    command = project.agent(
        f"""
        printf {BETTER!r} > model/model.txt
        echo halfway > "$HOPS_RESEARCH_HYPOTHESIS"
        echo $$ > {project.place}/agent.pid
        kill -9 $(cat {project.place}/loop.pid)
        sleep 300
        """
    )

    def loop():
        (project.place / "loop.pid").write_text(str(os.getpid()))
        run_loop(Folder.open(project.research), command, 1, tell=lambda _: None)

    assert in_a_process(loop, project.place)[0] == KILLED
    said = []
    run_loop(Folder.open(project.research), "false", 1, tell=said.append)
    assert said[1] == "going on with attempt 1, which was left at AgentRuns"
    decided, (model, _, _) = ending(project)
    assert decided.reasons == ("the loop was interrupted while the agent worked",)
    assert decided.hypothesis == "halfway"
    assert git(project.root, "show", f"{decided.snapshot}:model/model.txt") + "\n" == BETTER
    assert model == FIRST


def test_an_agent_that_vandalises_and_kills_the_loop_has_it_all_put_back_by_the_next(project):
    golden = (project.research / "golden.json").read_bytes()
    command = project.agent(
        f"""
        echo > ../../golden.json
        echo > ../../research.toml.new; rm ../../splits/train.txt; rm -r ../../data
        kill -9 $(cat {project.place}/loop.pid)
        """
    )

    def loop():
        (project.place / "loop.pid").write_text(str(os.getpid()))
        run_loop(Folder.open(project.research), command, 1, tell=lambda _: None)

    assert in_a_process(loop, project.place)[0] == KILLED
    run_loop(Folder.open(project.research), "false", 1, tell=lambda _: None)
    decided, _ = ending(project)
    assert "golden.json had been changed (put back)" in decided.reasons
    assert "splits/train.txt had been changed (put back)" in decided.reasons
    assert "train data: run_1 had been changed (put back)" in decided.reasons
    assert (project.research / "golden.json").read_bytes() == golden
