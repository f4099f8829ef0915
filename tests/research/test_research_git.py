"""Git: snapshots see all and touch nothing, a branch moves forward or not at all, errors carry what git said."""

import os

import pytest
from research_project import FIRST, git

from hops.errors import ResearchError
from hops.research.git import Git, blob_name


@pytest.fixture
def project(fresh):
    return fresh


@pytest.fixture
def repository(project):
    return Git(root=project.root)


def test_a_snapshot_has_what_is_not_ignored_and_touches_nothing(project, repository):
    (project.root / "new.txt").write_text("new")
    (project.root / "evaluate.sh").unlink()
    (project.root / "x.cache").write_text("ignored")
    git(project.root, "add", "new.txt")
    (project.root / "new.txt").write_text("newer")
    before = git(project.root, "status", "--short"), git(project.root, "diff", "--cached")
    tree = repository.snapshot(project.root, "HEAD")
    changes = {(each.path, each.mode) for each in repository.changes("HEAD", tree)}
    assert changes == {("new.txt", "100644"), ("evaluate.sh", "000000")}
    assert repository.run("show", f"{tree}:new.txt") == "newer"
    assert (git(project.root, "status", "--short"), git(project.root, "diff", "--cached")) == before


def test_a_snapshot_needs_no_working_git_in_the_folder(project, repository, tmp_path):
    repository.add_worktree(tmp_path / "tree", "HEAD")
    (tmp_path / "tree/.git").unlink()
    (tmp_path / "tree/more").write_text("")
    tree = repository.snapshot(tmp_path / "tree", "HEAD")
    assert [each.path for each in repository.changes("HEAD", tree)] == ["more"]


def test_a_git_that_we_are_called_from_lends_us_nothing(project, repository, monkeypatch):
    """As in a hook or in `git rebase --exec`."""
    head = repository.head()
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert repository.head() == head
    assert repository.tree_of(head) == repository.snapshot(project.root, head)


@pytest.mark.parametrize("dirty", [False, True], ids=["clean tree", "tree as in the commit already"])
def test_a_branch_moves_forward_twice_as_well_as_once(project, repository, dirty):
    base = repository.head()
    project.write_model("floor_ms 9")
    commit = repository.commit(repository.snapshot(project.root, base), base, "next")
    if not dirty:
        project.write_model(FIRST)
    for _ in range(2):
        assert repository.advance(base, commit)
        assert repository.head() == commit
        assert repository.is_clean()
        assert project.model() == "floor_ms 9"
    assert git(project.root, "branch", "--show-current") == "main"


def test_a_branch_that_has_gone_elsewhere_is_left_alone(project, repository):
    base = repository.head()
    commit = repository.commit(repository.tree_of(base), base, "ours")
    git(project.root, "commit", "--allow-empty", "--quiet", "-m", "theirs")
    before = project.fingerprint()
    assert not repository.advance(base, commit)
    assert project.fingerprint() == before


def test_what_is_not_committed_is_never_overwritten(project, repository):
    base = repository.head()
    (project.root / "model/new").write_text("ours")
    commit = repository.commit(repository.snapshot(project.root, base), base, "next")
    (project.root / "model/new").write_text("theirs")
    with pytest.raises(ResearchError, match=r"git merge --ff-only .* failed in .*\n(.*\n)*.*model/new"):
        repository.advance(base, commit)
    assert (project.root / "model/new").read_text() == "theirs"
    assert repository.head() == base


def test_restoring_brings_back_files_and_removes_new_ones_but_not_ignored_ones(project, repository):
    before = project.fingerprint()
    (project.root / "evaluate.sh").unlink()
    project.write_model("changed")
    (project.root / "new/deep").mkdir(parents=True)
    (project.root / "new/deep/file").write_text("")
    (project.root / "kept.cache").write_text("ignored")
    repository.restore("HEAD")
    (project.root / "kept.cache").unlink()
    assert project.fingerprint() == before


def test_a_worktree_replaces_whatever_lies_there(repository, tmp_path):
    """Half a worktree, unwritable folders, a file."""
    tree = tmp_path / "tree"
    repository.add_worktree(tree, "HEAD")
    (tree / "model").chmod(0o500)
    (tree / ".git").unlink()
    repository.add_worktree(tree, "HEAD")
    assert (tree / "model/model.txt").exists()
    repository.remove_worktrees(tree)
    tree.write_text("a file")
    repository.add_worktree(tree, "HEAD")
    repository.remove_worktrees(tree)
    assert not tree.exists()
    assert len(repository.run("worktree", "list").splitlines()) == 1


def test_hooks_do_not_run(project, repository, tmp_path):
    hook = project.root / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    repository.add_worktree(tmp_path / "tree", "HEAD")
    assert not (tmp_path / "ran").exists()


def test_a_blob_gives_back_its_bytes(repository, tmp_path):
    content = bytes(range(256)) + b"\r\n"
    (tmp_path / "file").write_bytes(content)
    (blob,) = repository.store([tmp_path / "file"])
    assert blob == blob_name(content, blob)
    assert repository.fetch(blob) == content
    with pytest.raises(ResearchError, match="git has lost blob 0000"):
        repository.fetch("0" * 40)


def test_errors_say_which_command_failed_where_and_why(repository, tmp_path, monkeypatch):
    with pytest.raises(ResearchError, match=r"git rev-parse .*nothing\^\{tree\} failed in .*project\n.*fatal"):
        repository.tree_of("nothing")
    with pytest.raises(ResearchError, match="not a git repository"):
        Git.containing(tmp_path)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(ResearchError, match=r"git cannot be started: .*; hops research keeps"):
        repository.head()
