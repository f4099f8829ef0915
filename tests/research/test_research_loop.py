"""The loop with agents of every kind: what passes becomes a commit, all else is undone, logged and kept in git."""

from pathlib import Path

import pytest
from research_project import BEST, BETTER, FIRST, WORSE, git

from hops.errors import ResearchError
from hops.research.folder import Data, Folder
from hops.research.journal import Accepted, Baseline, Rejected
from hops.research.loop import initialise, run_loop
from hops.research.seal import Seal
from hops.research.states import AgentRuns, NothingUnderWay

ACCEPT = f"printf {BETTER!r} > model/model.txt"


def loop(folder, command, iterations=1, **options):
    said = []
    return run_loop(folder, command, iterations, tell=said.append, **options), said


def left_behind(folder):
    """Worktrees and attempts under way: there must be none."""
    assert isinstance(folder.state(), NothingUnderWay)
    assert len(git(folder.git.root, "worktree", "list").splitlines()) == 1
    return list((folder.root / "worktrees").iterdir())


def test_init_makes_readable_files_and_measures_the_baseline(fresh):
    before = fresh.fingerprint()
    folder = fresh.start()
    assert fresh.fingerprint() == before, "the folder ignores itself"
    (baseline,) = folder.journal.entries()
    assert isinstance(baseline, Baseline)
    assert baseline.commit == git(fresh.root, "rev-parse", "HEAD")
    assert baseline.figures == folder.golden().figures
    assert baseline.figures["throughput_mape_pct"] == pytest.approx(
        100 * sum(3 / (1 + 2 * n) for n in (1, 2, 4, 8)) / 4
    )
    assert baseline.measured == "4 train runs, variant calibrated"
    assert [line.split()[1] for line in (folder.root / "splits/train.txt").read_text().splitlines()[1:]] == [
        "run_1",
        "run_2",
        "run_4",
        "run_8",
    ]
    assert left_behind(folder) == []


def test_init_refuses_what_exists_and_leaves_nothing_of_what_fails(fresh):
    fresh.start()
    with pytest.raises(ResearchError, match=r"research exists already; name another folder with --folder"):
        initialise(fresh.research, fresh.settings())
    (fresh.root / "evaluate.sh").write_text("echo no model here; exit 1")
    git(fresh.root, "commit", "-qam", "break it")
    with pytest.raises(ResearchError, match=r"(?s)the baseline cannot be measured: .*exit code 1.*no model here"):
        initialise(fresh.root / "second", fresh.settings())
    assert not list(fresh.root.glob("*second*"))


def test_a_run_may_be_in_one_split_only(fresh):
    content = (fresh.train / "run_2/run.txt").read_bytes()
    (fresh.diagnostic / "run_3/run.txt").write_bytes(content)
    with pytest.raises(ResearchError, match=r"diagnostic run run_3 has the same content as train run run_2"):
        fresh.start()
    assert not fresh.research.exists()


def test_a_better_model_is_committed_and_becomes_the_baseline(project):
    folder = project.start()
    first, golden = git(project.root, "rev-parse", "HEAD"), folder.golden()
    outcome, said = loop(folder, project.proposes(BETTER, "there is a floor"))
    assert (outcome.attempts, outcome.accepted) == (1, 1)
    accepted = folder.journal.entries()[-1]
    assert isinstance(accepted, Accepted)
    assert (accepted.attempt, accepted.hypothesis) == (1, "there is a floor")
    assert accepted.commit == git(project.root, "rev-parse", "HEAD")
    assert git(project.root, "rev-parse", "HEAD^", "--abbrev-ref", "HEAD") == f"{first}\nmain"
    assert project.model() == BETTER
    assert accepted.before == golden.figures
    assert accepted.after == folder.golden().figures
    assert accepted.after["throughput_mape_pct"] < accepted.before["throughput_mape_pct"] / 4
    message = git(project.root, "log", "-1", "--format=%B")
    assert message.startswith("there is a floor\n\nBefore: throughput MAPE % 52.75")
    assert "After: throughput MAPE % 12.16" in message
    assert git(project.root, "status", "--short") == ""
    assert left_behind(folder) == []
    assert said[-1].startswith("attempt 1: accepted as ")


def test_each_attempt_builds_on_the_last_accepted_one(project):
    folder = project.start()
    assert loop(folder, project.proposes(BETTER))[0].accepted == 1
    assert loop(folder, project.proposes(WORSE))[0].accepted == 0
    assert loop(folder, project.proposes(BEST))[0].accepted == 1
    kinds = [type(each).__name__ for each in folder.journal.entries()]
    assert kinds == ["Baseline", "Accepted", "Rejected", "Accepted"]
    assert [each.attempt for each in folder.journal.entries()[1:]] == [1, 2, 3]
    assert folder.golden().figures["throughput_max_pct"] == 0
    assert len(git(project.root, "log", "--format=%h").splitlines()) == 3


def test_the_same_model_again_is_no_improvement_but_no_harm(project):
    """An agent that changes nothing is rejected without being measured."""
    folder = project.start()
    outcome, _ = loop(folder, "true", iterations=2)
    assert outcome.accepted == 0
    rejected = folder.journal.entries()[1:]
    assert [(each.attempt, each.reasons, each.after) for each in rejected] == [
        (1, ("nothing has been changed",), {}),
        (2, ("nothing has been changed",), {}),
    ]
    assert rejected[0].hypothesis == "(the agent stated no hypothesis)"


def test_an_agent_is_handed_the_observation_the_data_and_what_was_tried(project):
    folder = project.start()
    script = project.agent(
        """
        cat > model/prompt
        for name in OBSERVATION DATA REPORT JOURNAL; do eval "ls -d \\$HOPS_RESEARCH_$name"; done > model/places
        git rev-parse HEAD > model/head
        """
    )
    loop(folder, script)
    snapshot = folder.journal.entries()[-1].commit
    prompt = git(project.root, "show", f"{snapshot}:model/prompt")
    assert "You may change only: model." in prompt
    assert "| floor | 4 | " in prompt, "the term that is wrong"
    assert "| depth 1 | 1 | 100.00 | +100.00 |" in prompt, "the group that is worst"
    places = git(project.root, "show", f"{snapshot}:model/places").splitlines()
    names = ["attempts/0001/observation.md", "data/train", "golden.json", "journal.jsonl"]
    assert places == [str(folder.root / name) for name in names]
    assert git(project.root, "show", f"{snapshot}:model/head") == git(project.root, "rev-parse", "HEAD^")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f"printf {WORSE!r} > model/model.txt", "throughput MAPE % gets worse: 52.745 before, 70.042 now"),
        ("echo nonsense > model/model.txt", "the evaluation ended with exit code 1"),
        ("rm -r model", "the evaluation ended with exit code 1"),
        (f"{ACCEPT}; echo untested >> model/model.txt", "test command ended with exit code 1; its last lines:\na"),
        (f"{ACCEPT}; exit 3", "the agent ended with exit code 3"),
        (f"{ACCEPT}; kill -9 $$", "the agent ended with exit code 137"),
        (f"{ACCEPT}; sleep 300", "the agent ran longer than 0.7 s and was ended"),
        (f"{ACCEPT}; : > tests/check.sh", "changes what it must not: tests/check.sh"),
        ("rm -r tests", "changes what it must not: tests/check.sh; editable are model"),
        ("echo > evaluate.sh; echo > modelling; git commit -qam mine", "must not: evaluate.sh, modelling; editable"),
        ("ln -s ../evaluate.sh model/link", "leaves links or repositories instead of files: model/link"),
        ("git init -q model/own; cd model/own; git commit -qm x --allow-empty", "instead of files: model/own"),
        ('rm -rf "$PWD"', "changes what it must not"),
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_what_does_not_pass_is_undone_logged_and_kept(project, script, reason):
    folder = project.start()
    before, golden = project.fingerprint(), folder.golden_path.read_bytes()
    outcome, said = loop(folder, script, limit_s=0.7 if "sleep" in script else 20.0)
    assert outcome.accepted == 0
    assert project.fingerprint() == before
    assert folder.golden_path.read_bytes() == golden
    rejected = folder.journal.entries()[-1]
    assert isinstance(rejected, Rejected)
    assert reason in "\n".join(rejected.reasons)
    assert reason.partition("\n")[0] in said[-1]
    assert git(project.root, "rev-parse", "refs/hops-research/research/0001") == rejected.snapshot
    if "model.txt" in script and "sleep" not in script:  # on a busy machine it may not have come to write
        kept = git(project.root, "show", f"{rejected.snapshot}:model/model.txt")
        assert kept.split("\n")[0] in {"floor_ms 0.5", "nonsense", "floor_ms 3.0"}
    assert left_behind(folder) == []


@pytest.mark.parametrize(
    "damage",
    [
        {
            "sed -i s/run_bubble_pp.*/run_bubble_pp=99/ ../../research.toml": "research.toml had been changed",
            "sed -i /run_1/d ../../splits/train.txt": "splits/train.txt had been changed",
            "rm ../../splits/diagnostic.txt": "splits/diagnostic.txt had been changed",
            "echo abc > ../../splits/test.txt": "splits/test.txt had been added",
            "echo '{}' > ../../golden.json": "golden.json had been changed",
            "sed -i 1d ../../journal.jsonl": "journal.jsonl had been changed",
        },
        {
            "cp -r $HOPS_RESEARCH_DATA/run_1 $HOPS_RESEARCH_DATA/run_9": "train data: run_9 had been added",
            "echo ms 3 > $HOPS_RESEARCH_DATA/run_1/run.txt": "train data: run_1 had been changed",
            "rm -r $HOPS_RESEARCH_DATA/run_4": "train data: run_4 had been changed",
        },
        {
            "rm -r ../../data": "train data: run_8 had been changed",
            "rm ../../golden.json": "golden.json had been changed",
        },
    ],
    ids=["settings and records", "runs", "all"],
)  # fmt: skip
def test_tolerances_baseline_journal_splits_and_data_are_put_back(project, damage):
    """And the attempt is rejected, however good its model."""
    folder = project.start()
    kept = {path: path.read_bytes() for path in folder.root.rglob("*") if path.is_file() and path.name != "lock"}
    loop(folder, f"{'; '.join(damage)}; {ACCEPT}")
    rejected = folder.journal.entries()[-1]
    assert {f"{what} (put back)" for what in damage.values()} <= set(rejected.reasons)
    journal = folder.journal.path
    assert journal.read_bytes().startswith(kept.pop(journal))
    assert {path: path.read_bytes() for path in kept} == kept
    assert not (folder.root / "splits/test.txt").exists()
    assert not (folder.root / "data/train/run_9").exists()
    assert project.model() == FIRST


def test_what_the_candidates_own_code_changes_while_it_is_measured_is_put_back(project):
    folder = project.start()
    golden = folder.golden_path.read_bytes()
    loop(folder, f"{ACCEPT}; echo : '>' ../../golden.json > model/hook.sh")
    assert folder.journal.entries()[-1].reasons == ("golden.json had been changed (put back)",)
    assert folder.golden_path.read_bytes() == golden


def test_data_changed_in_both_places_ends_the_loop_with_the_name_of_the_run(project):
    folder = project.start()
    for place in (project.train, folder.root / "data/train"):
        (place / "run_4/run.txt").write_text("{}")
    with pytest.raises(ResearchError, match=r"train run run_4 is not what it was, neither in .*data/train.* nor in"):
        loop(folder, "true")


def test_a_dirty_main_worktree_is_refused_before_anything_is_started(project):
    folder = project.start()
    (project.root / "notes.txt").write_text("mine")
    with pytest.raises(ResearchError, match=r"project has changes that are not committed.*\nfix: commit them"):
        loop(folder, "true")
    assert len(folder.journal.entries()) == 1
    assert left_behind(folder) == []


def test_ignored_files_are_no_dirt_and_stay(project):
    folder = project.start()
    (project.root / "big.cache").write_text("mine")
    assert loop(folder, project.proposes(BETTER))[0].accepted == 1
    assert (project.root / "big.cache").read_text() == "mine"


def test_a_branch_that_moves_meanwhile_is_not_touched(project):
    folder = project.start()
    script = project.agent(
        f"""
        {ACCEPT}
        git -C {project.root} commit -q --allow-empty -m theirs
        """
    )
    outcome, _ = loop(folder, script)
    assert outcome.accepted == 0
    assert "the branch has moved on from" in folder.journal.entries()[-1].reasons[0]
    assert git(project.root, "log", "-1", "--format=%s") == "theirs"
    assert project.model() == FIRST


def test_a_main_worktree_edited_meanwhile_stops_the_loop_and_the_attempt_goes_on_later(project):
    folder = project.start()
    script = project.agent(
        f"""
        {ACCEPT}
        echo theirs > {project.root}/model/model.txt
        """
    )
    with pytest.raises(ResearchError, match=r"git merge --ff-only"):
        loop(folder, script)
    assert (project.root / "model/model.txt").read_text() == "theirs\n"
    git(project.root, "checkout", "--", "model")
    outcome, said = loop(folder, "false")
    assert outcome.accepted == 1
    assert "going on with attempt 1, which was left at Accepting" in said
    assert project.model() == BETTER


def test_two_loops_do_not_work_in_one_folder(project):
    folder = project.start()
    with folder.lock(), pytest.raises(ResearchError, match=r"another hops research command works in .*research"):
        loop(folder, "true")


def test_a_state_that_nobody_can_read_is_named(project):
    folder = project.start()
    (folder.root / "state.json").write_text('{"step": "Dancing"}')
    with pytest.raises(ResearchError, match=r"state.json: got 'Dancing', expected .* step, one of .*\nnothing of an"):
        loop(folder, "true")


@pytest.mark.parametrize("state", [NothingUnderWay(), AgentRuns(attempt=3, base="b", protected={"golden.json": "c"})])
def test_states_survive_the_disk(project, state):
    folder = project.start()
    folder.write(state)
    assert Folder.open(folder.root).state() == state


def test_a_research_folder_may_lie_elsewhere(project):
    """Then it names the repository by a relative path."""
    git(project.root, "worktree", "add", "-q", "-b", "side", "../side")
    folder = initialise(project.place / "side/deep/er", project.settings())
    assert folder.settings.repository == "../.."
    assert loop(folder, project.proposes(BETTER))[0].accepted == 1
    assert (project.place / "side/model/model.txt").read_text() == BETTER
    assert project.model() == FIRST, "another worktree of the same repository stays"


def test_there_is_a_seal_only_where_a_test_split_is(project):
    assert project.start().seal() is None
    data = Data(train=str(project.train), test=str(project.sealed))
    other = initialise(project.root / "other", project.settings(data=data))
    assert other.seal() == Seal(folder=Path(project.sealed), digests=other.seal().digests)
    assert len(other.seal().digests) == 3
