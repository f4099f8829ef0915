"""The command line, run in this process as a user would run it."""

import sys

import pytest

from hops.cli.main import main


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run `hops` with arguments in an empty folder, 80 columns wide; gives (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["hops", *arguments])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run
