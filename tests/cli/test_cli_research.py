"""`hops research` as a person uses it: what each command prints, and with which exit code it ends."""

import json
import subprocess
import sys

import pytest

from hops.cli.main import main

# A model of one number; the report's errors are what it is off by.
EVALUATE = """\
printf '{"variants": {"calibrated": {"throughput_mape_pct": %s, "throughput_max_pct": %s, "bubble_mae_pp": 1,
"iteration_p50_mape_pct": 1, "utilization_spearman": 0.9, "forward_mape_pct": 1, "backward_mape_pct": 1,
"latency_mape_pct": 1}}, "runs": [{"run": "r1", "iteration_ms": 9, "groups": {}, "variants": {"calibrated": {
"throughput_error_pct": %s, "bubble_error_pp": 1, "terms": {}}}}]}' $(for i in 1 2 3; do cat model.txt; done) > $3
"""


@pytest.fixture
def hops(monkeypatch, capfd, tmp_path):
    """Run `hops research` with arguments in a repository; gives (exit code, stdout, stderr)."""
    project = tmp_path / "project"
    for run, folder in (("r1", "train"), ("d1", "diagnostic"), ("t1", "vault/test")):
        (tmp_path / folder / run).mkdir(parents=True)
        (tmp_path / folder / run / "run.yaml").write_text(run)
    project.mkdir()
    (project / "model.txt").write_text("5.0\n")
    (project / "evaluate.sh").write_text(EVALUATE)
    for command in (
        ("init", "-q", "--template="),
        ("config", "user.name", "Test"),
        ("config", "user.email", "test@example.org"),
        ("add", "--all"),
        ("commit", "-qm", "first"),
    ):
        subprocess.run(["git", *command], cwd=project, check=True)
    monkeypatch.chdir(project)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["hops", "research", *arguments])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capfd.readouterr()
        return code, out, err

    return run


SHOWN = "[throughput MAPE % {}, bubble MAE pp 1.00, utilisation Spearman 0.900]"
INIT = (
    "init",
    "--train=../train",
    "--diagnostic=../diagnostic",
    "--editable=model.txt",
    "--evaluate=sh evaluate.sh {runs} {train} {report}",
    "--tests=true",
)


@pytest.fixture
def begun(hops):
    code, out, err = hops(*INIT)
    assert (code, err) == (0, "")
    assert out.startswith("baseline: throughput MAPE % 5.00, worst run % 5.0")
    assert out.endswith("wrote research; look at research/research.toml; next: hops research observe\n")
    return hops


def test_a_change_by_hand_from_observation_to_log(begun, tmp_path):
    model = tmp_path / "project/model.txt"
    code, out, _ = begun("observe")
    assert code == 0
    assert "| throughput MAPE % | 5.00 |" in out
    assert "| throughput MAPE % | 5.00 |" in begun("observe", "--split", "diagnostic")[1]
    model.write_text("6.0\n")
    code, out, _ = begun("check")
    assert code == 1
    assert "- throughput MAPE % gets worse: 5.000 before, 6.000 now" in out
    assert out.endswith("does not pass\n")
    code, out, err = begun("accept", "-m", "more is better")
    assert (code, out) == (1, "")
    assert err.startswith("error: not accepted:\n- throughput MAPE % gets worse")
    code, out, _ = begun("reject", "-m", "more is better")
    assert code == 0
    assert "rejected and restored; what you had is in git: git show " in out
    assert model.read_text() == "5.0\n"
    model.write_text("4.0\n")
    code, out, _ = begun("check", "--json")
    assert (code, json.loads(out)["passes"], json.loads(out)["reasons"]) == (0, True, [])
    code, out, _ = begun("accept", "-m", "less is more")
    assert code == 0
    assert out.startswith("accepted; before: throughput MAPE % 5.00")
    code, out, _ = begun("log")
    assert code == 0
    assert [line.split("  ")[-2:] for line in out.splitlines()] == [
        ["the model as committed", SHOWN.format("5.00")],
        ["more is better", SHOWN.format("6.00")],
        ["less is more", SHOWN.format("4.00")],
    ]
    assert [each["kind"] for each in json.loads(begun("log", "--json")[1])] == ["baseline", "rejected", "accepted"]
    assert begun("log", "--markdown", "-o", "log.md")[1] == "wrote log.md\n"
    assert "| 3 | less is more | accepted | 4.00 |" in (tmp_path / "project/log.md").read_text()


def test_an_agent_that_improves_and_one_that_does_not(begun):
    code, out, err = begun("run", "--agent", "echo 3.0 > model.txt", "--iterations", "1")
    assert (code, err) == (0, "")
    assert out.startswith("there is no test split\nattempt 1: the agent works\n")
    assert out.endswith("\n1 attempts, 1 accepted\n")
    assert begun("run", "--agent", "echo 9.0 > model.txt", "-n", "2", "-q") == (1, "", "")
    assert begun("run", "--agent", "sleep 60", "--timeout", "0.2")[0] == 1
    assert "ran longer than 0.2 s and was ended" in begun("log", "--json")[1]


def test_the_test_split_is_tested_by_the_command_that_may(hops):
    assert hops(*INIT, "--test=../vault/test")[0] == 0
    code, out, err = hops("test")
    assert (code, err) == (0, "")
    assert out.startswith("test no. 1, 1 runs: throughput MAPE % 5.00")
    assert json.loads(hops("test", "--json")[1])["count"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("observe",), "no research folder\nfix: name yours with --folder, or make one with: hops research init"),
        (("test", "-C", "nowhere"), "nowhere/research.toml does not exist"),
        (("log", "--journal", "nothing"), "error: --journal: nothing is no file"),
        (("init", "--train", "nothing"), "nothing: No such file or directory; expected a folder of run folders"),
    ],
)
def test_wrong_use_is_a_message_and_exit_code_2(hops, arguments, message):
    code, out, err = hops(*arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_journal_elsewhere_needs_no_research_folder(begun, tmp_path):
    journal = tmp_path / "project/research/journal.jsonl"
    assert "the model as committed" in begun("log", "-C", "nowhere", "--journal", str(journal))[1]
