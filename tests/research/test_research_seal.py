"""The test split: the loop makes sure that it cannot read it; opening it is counted and tells suite figures."""

import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from research_project import BETTER, in_a_process

from hops.errors import ResearchError
from hops.research import seal as landlock
from hops.research.by_hand import check
from hops.research.journal import Rejected, Tested, TestOpened
from hops.research.loop import initialise, run_loop
from hops.research.seal import Seal, close, readable
from hops.research.sealed_test import run_sealed_test

NAMES = ("run_6", "run_7", "run_16")
needs_landlock = pytest.mark.skipif(not landlock.available(), reason="needs Linux 5.19 or newer with Landlock")


@pytest.fixture
def folder(fresh):
    settings = fresh.settings()
    return initialise(fresh.research, replace(settings, data=replace(settings.data, test=str(fresh.sealed))))


def confined(function, place):
    """Run in a process of its own, with its temporary files where it can still read them."""
    scratch = place / "scratch"
    scratch.mkdir(exist_ok=True)

    def run():
        os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
        function()

    return in_a_process(run, place)


def test_what_is_granted_is_all_that_is_not_on_the_way_to_what_is_hidden(tmp_path):
    for name in ("a/hidden/x", "a/b/c", "d/hidden", "d/e", "f"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a/hidden")
    granted = list(landlock.beside({tmp_path / "a/hidden", tmp_path / "d/hidden"}, tmp_path))
    assert granted == [tmp_path / name for name in ("a/b", "a/file", "d/e", "f")]


def test_the_way_through_a_folder_that_cannot_be_listed_is_still_found(tmp_path):
    """As /home is on some machines."""
    for name in ("closed/me/hidden", "closed/me/work", "closed/others", "open"):
        (tmp_path / name).mkdir(parents=True)
    listed = Path.iterdir

    def iterdir(path):
        if path == tmp_path / "closed":
            raise PermissionError
        return listed(path)

    with mock.patch.object(Path, "iterdir", iterdir):
        granted = list(landlock.beside({tmp_path / "closed/me/hidden"}, tmp_path))
    assert granted == [tmp_path / "closed/me/work", tmp_path / "open"]


def test_a_kernel_that_refuses_to_hide_is_no_way_around_the_check(fresh):
    seal = Seal(folder=fresh.sealed, digests=())
    with (
        mock.patch.object(landlock, "available", return_value=True),
        mock.patch.object(landlock, "hide", side_effect=OSError),
        pytest.raises(ResearchError, match="this process can read it"),
    ):
        close(seal)


@needs_landlock
def test_a_closed_seal_holds_against_whoever_we_are_and_whatever_we_start(fresh):
    run, other = fresh.sealed / "run_6", fresh.train / "run_1"
    attempts = [
        f"cat {run}/run.txt",
        f"ls {fresh.sealed}",
        f"ls {run}",
        f"chmod -R a+rwx {fresh.sealed}; cat {run}/run.txt",
        f"mv {fresh.sealed} {fresh.train}/moved; cat {fresh.train}/moved/run_6/run.txt",
        f"mv {run} {fresh.train}/moved; cat {fresh.train}/moved/run.txt",
        f"ln {run}/run.txt {fresh.train}/linked; cat {fresh.train}/linked",
        f"ln -s {run} {fresh.train}/link; cat {fresh.train}/link/run.txt",
        f"cat /proc/self/root{run}/run.txt",
        f"cat /proc/{os.getpid()}/root{run}/run.txt",
        f"unshare -Urm cat {run}/run.txt",
    ]

    def look():
        print(close(Seal(folder=fresh.sealed, digests=())))
        assert not readable(fresh.sealed)
        with pytest.raises(PermissionError):
            (run / "run.txt").read_text()
        for attempt in attempts:
            ran = subprocess.run(["sh", "-c", attempt], capture_output=True, text=True, check=False)
            assert "layers" not in ran.stdout, attempt
            assert "run" not in ran.stdout, attempt
            assert ran.returncode, attempt
        for harmless in (f"cat {other}/run.txt", f"mv {other} {fresh.diagnostic}/moved", "git --version"):
            subprocess.run(["sh", "-c", harmless], check=True, capture_output=True)

    code, printed = confined(look, fresh.place)
    assert code == 0, printed
    assert printed == "the test split cannot be read: hidden from this process and all it starts by Landlock\n"
    assert (run / "run.txt").read_text().startswith("run run_6"), "it is all still there"


def test_a_test_split_that_is_elsewhere_needs_no_hiding(tmp_path):
    gone = Seal(folder=tmp_path / "gone", digests=())
    assert close(gone) == f"the test split is not on this machine (was in {tmp_path}/gone)"
    assert close(None) == "there is no test split"


def test_without_landlock_a_readable_test_split_ends_everything(folder, fresh):
    head = fresh.fingerprint()
    said = (
        rf"{fresh.sealed} holds the sealed test split and this process can read it\n.*\nfix: move the folder to another"
    )
    with mock.patch.object(landlock, "available", return_value=False):
        for act in (lambda: run_loop(folder, "true", 1, tell=print), lambda: check(folder)):
            with pytest.raises(ResearchError, match=said):
                act()
    assert fresh.fingerprint() == head
    assert len(folder.journal.entries()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_without_landlock_a_folder_of_another_user_is_enough(fresh):
    fresh.sealed.chmod(0)
    with mock.patch.object(landlock, "available", return_value=False):
        assert close(Seal(folder=fresh.sealed, digests=())).endswith("this user has no permission")
    fresh.sealed.chmod(0o700)


@needs_landlock
def test_neither_an_agent_nor_what_it_changes_sees_the_test_split(folder, fresh):
    """Through the loop: the agent itself, and its code while it is measured and tested, with the path known to them."""
    look = f"cat {fresh.sealed}/*/run.txt > $1 2>/dev/null; ls -R {fresh.sealed} >> $1 2>/dev/null"
    script = fresh.agent(
        f"""
        set -- model/leak; {look}
        printf {BETTER!r} > model/model.txt
        echo '({look.replace("$1", str(fresh.train) + "/leak")}) || true' > model/hook.sh
        """
    )
    fresh.train.joinpath("leak").write_text("")
    code, printed = confined(lambda: run_loop(folder, script, 1, tell=print), fresh.place)
    assert code == 0, printed
    assert "accepted" in printed
    assert (fresh.root / "model/leak").read_text() == ""
    assert (fresh.train / "leak").read_text() == ""


def test_the_research_folder_tells_nothing_about_the_test_runs_but_where_they_were(folder, fresh):
    for path in folder.root.rglob("*"):
        assert not any(name in path.name for name in NAMES)
        if path.is_file():
            text = path.read_text(errors="replace")
            assert not any(name in text for name in NAMES), path
    lines = (folder.root / "splits/test.txt").read_text().splitlines()
    assert lines[0].startswith("# Sealed test split: 3 runs by digest")
    assert [len(line) for line in lines[1:]] == [64, 64, 64]
    assert lines[1:] == sorted(lines[1:])


def test_a_test_run_may_not_be_a_train_run_too(fresh):
    (fresh.sealed / "run_6/run.txt").write_bytes((fresh.train / "run_2/run.txt").read_bytes())
    data = replace(fresh.settings().data, test=str(fresh.sealed))
    with pytest.raises(ResearchError, match="run_6 has the same content as train run run_2"):
        initialise(fresh.research, fresh.settings(data=data))


def test_the_test_split_may_not_lie_in_the_repository(fresh):
    data = replace(fresh.settings().data, test=str(fresh.root / "model"))
    with pytest.raises(
        ResearchError, match=r"(?s)test split .*model lies inside the repository .*fix: move it elsewhere"
    ):
        initialise(fresh.research, fresh.settings(data=data))


def test_testing_is_counted_and_records_suite_figures_only(folder, fresh):
    for count in (1, 2):
        tested = run_sealed_test(folder)
        assert (tested.count, tested.runs) == (count, 3)
    mean = 100 * sum(3 / (1 + 2 * n) for n in (6, 7, 16)) / 3
    assert tested.figures["throughput_mape_pct"] == pytest.approx(mean)
    kinds = [type(each) for each in folder.journal.entries()[1:]]
    assert kinds == [TestOpened, Tested, TestOpened, Tested]
    test_the_research_folder_tells_nothing_about_the_test_runs_but_where_they_were(folder, fresh)
    assert list((folder.root / "worktrees").iterdir()) == []


def test_testing_scores_what_is_committed(folder, fresh):
    first = run_sealed_test(folder)
    fresh.write_model(BETTER)
    assert run_sealed_test(folder).figures == first.figures


def test_an_opening_counts_whatever_comes_of_it_and_failures_name_no_run(folder, fresh):
    broken = replace(folder, settings=replace(folder.settings, evaluate=("sh", "-c", "ls {runs}; ls; false")))
    with pytest.raises(ResearchError, match="what it printed is not shown, since it may name runs") as caught:
        run_sealed_test(broken)
    assert "run_" not in str(caught.value)
    (fresh.sealed / "run_7/run.txt").write_text("other")
    with pytest.raises(ResearchError, match="are not the ones that were sealed; put the originals back"):
        run_sealed_test(folder)
    assert [each.count for each in folder.journal.entries()[1:]] == [1, 2]


def test_test_runs_that_were_moved_are_found_by_name_and_known_by_content(folder, fresh):
    elsewhere = fresh.sealed.rename(fresh.place / "elsewhere")
    with pytest.raises(ResearchError, match=r"cannot be read in .*\nfix: .* or name where it is now with --from"):
        run_sealed_test(folder)
    assert run_sealed_test(folder, Path(elsewhere)).count == 1


def test_there_must_be_a_test_split_to_test(project):
    with pytest.raises(ResearchError, match="no test split; seal one with: hops research init --test RUNS"):
        run_sealed_test(project.start())


@needs_landlock
def test_an_agent_cannot_open_the_seal_by_the_command_that_may(folder, fresh):
    """What it starts is confined as it is."""

    def loop():
        def sneak(*_):
            with pytest.raises(ResearchError, match="the test split cannot be read"):
                run_sealed_test(folder)
            print("refused")

        run_loop(folder, "true", 1, tell=sneak)

    code, printed = confined(loop, fresh.place)
    assert code == 0, printed
    assert printed.count("refused\n") == printed.count("\n") > 2
    assert not any(isinstance(each, TestOpened) for each in folder.journal.entries())
    assert isinstance(folder.journal.entries()[-1], Rejected)
