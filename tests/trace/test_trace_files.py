"""Outputs appear whole or not at all."""

import gzip

import pytest

from hops.errors import UsageError
from hops.files import atomic_path, atomic_write


def test_the_file_appears_when_the_block_ends_and_not_before(tmp_path):
    target = tmp_path / "new" / "deep" / "out.txt"
    with atomic_write(target) as out:
        out.write("grün\n")
        assert not target.exists()
    assert target.read_bytes() == "grün\n".encode()
    assert [path.name for path in target.parent.iterdir()] == ["out.txt"]


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, name):
    target = tmp_path / name
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_write(target) as out:
        out.write(str(1 / 0))
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_gz_is_packed_with_the_same_bytes_every_time(tmp_path):
    for name in ("a.gz", "b.gz"):
        with atomic_write(tmp_path / name) as out:
            out.write("same")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"same"


def test_a_temporary_path_keeps_the_suffixes_that_libraries_look_at(tmp_path):
    with atomic_path(tmp_path / "picture.svg") as temporary:
        assert temporary.suffix == ".svg"
        temporary.write_text("x")
    assert (tmp_path / "picture.svg").read_text() == "x"


def test_what_the_system_refuses_is_a_usage_error_that_names_the_path(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UsageError, match=r"cannot write .*file/out\.txt: .*; choose another path"),
        atomic_write(tmp_path / "file" / "out.txt"),
    ):
        pass
    with pytest.raises(UsageError, match=r"cannot write .*: Is a directory"), atomic_write(tmp_path) as out:
        out.write("x")
