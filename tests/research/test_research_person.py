"""The loop by hand: check touches nothing, accept commits what was checked, reject restores and loses nothing."""

import pytest
from research_project import BETTER, FIRST, KILLED, WORSE, git, in_a_process
from test_research_crash import Countdown

from hops.errors import GateError, ResearchError
from hops.research import by_hand as person
from hops.research.folder import Folder
from hops.research.journal import Accepted, Rejected
from hops.research.states import AgentRuns, NothingUnderWay


@pytest.fixture
def folder(project):
    return project.start()


def measurements(project):
    """Evaluations since hook.sh counts them."""
    return len((project.place / "measured").read_text().splitlines())


def counted(project):
    (project.root / "model/hook.sh").write_text(f"echo >> {project.place}/measured\n")


def test_a_check_judges_the_tree_as_it_lies_there_and_touches_nothing(project, folder):
    project.write_model(BETTER)
    (project.root / "model/new.txt").write_text("untracked")
    git(project.root, "add", "model/model.txt")
    before = project.fingerprint()
    checked = person.check(folder)
    assert checked.reasons == ()
    assert checked.before == folder.golden().figures
    assert checked.after["throughput_mape_pct"] < checked.before["throughput_mape_pct"] / 4
    assert project.fingerprint() == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda project: project.write_model(WORSE), "throughput MAPE % gets worse"),
        (lambda project: project.write_model(BETTER + "untested\n"), "the test command ended with exit code 1"),
        (lambda project: (project.root / "tests/more.sh").touch(), "changes what it must not: tests/more.sh"),
        (lambda project: None, "nothing has been changed"),
    ],
    ids=["worse", "fails tests", "changes tests", "changes nothing"],
)
def test_what_does_not_pass_is_not_accepted(project, folder, change, reason):
    change(project)
    before = project.fingerprint()
    assert reason in "\n".join(person.check(folder).reasons)
    with pytest.raises(GateError, match=f"(?s)not accepted:\n.*{reason}") as caught:
        person.accept(folder, "it is better")
    assert caught.value.exit_code == 1
    assert project.fingerprint() == before
    assert len(folder.journal.entries()) == 1


def test_accept_commits_the_tree_moves_the_baseline_and_logs(project, folder):
    project.write_model(BETTER)
    (project.root / "model/new.txt").write_text("untracked")
    head, before = git(project.root, "rev-parse", "HEAD"), folder.golden()
    person.accept(folder, "there is a floor")
    accepted = folder.journal.entries()[-1]
    assert isinstance(accepted, Accepted)
    assert accepted.commit == git(project.root, "rev-parse", "HEAD")
    assert git(project.root, "rev-parse", "HEAD^") == head
    assert git(project.root, "show", "--name-only", "--format=%s", "HEAD").split("\n") == [
        "there is a floor",
        "",
        "model/model.txt",
        "model/new.txt",
    ]
    assert git(project.root, "status", "--short") == ""
    assert project.model() == BETTER
    assert (accepted.before, accepted.after) == (before.figures, folder.golden().figures)


def test_accept_takes_over_a_check_of_the_very_same_thing(project, folder):
    project.write_model(BETTER)
    counted(project)
    person.check(folder)
    person.accept(folder, "a floor")
    assert measurements(project) == 1


@pytest.mark.parametrize("what", ["tree", "branch", "tolerances"])
def test_accept_checks_again_if_anything_has_changed_since(project, folder, what):
    project.write_model(BETTER)
    counted(project)
    person.check(folder)
    if what == "tree":
        project.write_model(WORSE)
    elif what == "branch":
        git(project.root, "commit", "-q", "--allow-empty", "-m", "more")
    else:
        settings = folder.root / "research.toml"
        settings.write_text(settings.read_text().replace("run_bubble_pp = 2.0", "run_bubble_pp = 1.0"))
    if what == "tree":
        with pytest.raises(GateError):
            person.accept(folder, "a floor")
    else:
        person.accept(Folder.open(folder.root), "a floor")
    assert measurements(project) == 2


def test_reject_restores_the_tree_keeps_the_entry_and_what_was_tried(project, folder):
    before = project.fingerprint()
    project.write_model(WORSE)
    (project.root / "notes.txt").write_text("mine")
    (project.root / "big.cache").write_text("ignored")
    checked = person.check(folder)
    person.reject(folder, "less is more")
    (project.root / "big.cache").unlink()
    assert project.fingerprint() == before
    rejected = folder.journal.entries()[-1]
    assert isinstance(rejected, Rejected)
    assert (rejected.hypothesis, rejected.reasons) == ("less is more", checked.reasons)
    assert git(project.root, "show", f"{rejected.snapshot}:notes.txt") == "mine"
    assert git(project.root, "show", f"{rejected.snapshot}:model/model.txt") + "\n" == WORSE
    assert git(project.root, "rev-parse", "refs/hops-research/research/0001") == rejected.snapshot


def test_reject_needs_no_check(project, folder):
    project.write_model(WORSE)
    person.reject(folder, "less is more")
    assert folder.journal.entries()[-1].reasons == ("rejected by hand",)
    assert folder.journal.entries()[-1].after == {}
    with pytest.raises(ResearchError, match="there is nothing to reject: the tree is as committed"):
        person.reject(folder, "less is more")


def test_a_hypothesis_must_be_stated(folder):
    for act in (person.accept, person.reject):
        with pytest.raises(ResearchError, match="-m is empty; say in a sentence what you expected and why"):
            act(folder, " ")


def test_an_observation_is_of_train_or_of_diagnostic(project, folder):
    assert "| run_1 | +100.00 | +10.00 |" in person.observation(folder, "train")
    diagnostic = person.observation(folder, "diagnostic")
    assert "| run_3 | +42.86 | +4.29 |" in diagnostic
    assert "run_1 " not in diagnostic


def test_an_agents_open_attempt_comes_first(folder):
    folder.write(AgentRuns(attempt=1, base=folder.git.head(), protected={}))
    with pytest.raises(
        ResearchError, match=r"attempt 1 of an agent was interrupted at AgentRuns; finish it first: hops"
    ):
        person.check(folder)


@pytest.mark.parametrize("verb", ["accept", "reject"])
def test_a_decision_by_hand_that_was_killed_is_finished_by_the_next_command(begun, tmp_path, verb):
    """Or had not begun, and then nothing had been touched; never in between."""
    seen = set()
    for count in range(1, 40):
        project = begun.copy(tmp_path / f"{verb}{count}")
        project.write_model(BETTER)
        folder = project.start()
        if verb == "accept":
            person.check(folder)

        def act(folder=folder, count=count):
            with Countdown(count).patched():
                getattr(person, verb)(folder, "a floor")

        code, printed = in_a_process(act, project.place)
        if code == 0:
            break
        assert code == KILLED, printed
        if isinstance(folder.state(), NothingUnderWay) and len(folder.journal.entries()) == 1:
            assert project.model() == BETTER
            seen.add("not begun")
            continue
        person.check(folder)
        assert isinstance(folder.state(), NothingUnderWay)
        assert len(folder.journal.entries()) == 2
        assert project.model() == (BETTER if verb == "accept" else FIRST)
        assert git(project.root, "status", "--short") == ""
        assert len(git(project.root, "log", "--format=%s").splitlines()) == (2 if verb == "accept" else 1)
        seen.add("finished")
    assert seen >= {"finished"}


def test_what_was_written_after_a_killed_reject_is_not_swept_away(project, folder):
    project.write_model(WORSE)

    def act():
        with Countdown(4).patched():
            person.reject(folder, "less")

    assert in_a_process(act, project.place)[0] == KILLED
    assert not isinstance(folder.state(), NothingUnderWay), "killed too early for this test"
    project.write_model("precious")
    person.check(folder)
    assert project.model() == "precious"
    assert isinstance(folder.journal.entries()[-1], Rejected)
