"""A script that is read gives the words that a real shell gives; what only a run can tell stays unknown."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hops.errors import UsageError
from hops.importers.shell import Given, read_script

PARTS = (Path(__file__).parent / "shell_snippets.sh").read_text().split("#### ")[1:]
SNIPPETS = {part.split("\n", 1)[0]: part.split("\n", 1)[1] for part in PARTS}


def words(text, **values):
    script = read_script(text, where="script.sh", given=Given(values=values))
    settled = script.unknowns.settled
    return [
        [settled(word) for word, bare in zip(command.words, command.bare, strict=True) if settled(word) or not bare][1:]
        for command in script.commands
        if command.words[0] == "show"
    ]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash to compare with")
@pytest.mark.parametrize("name", SNIPPETS)
def test_words_are_those_of_a_real_shell(name):
    script = 'show() { printf "%s\\0" "$@"; printf "\\001"; }\n' + SNIPPETS[name]
    run = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, env={}, check=False)
    real = [call.split("\0")[:-1] for call in run.stdout.split("\1")[:-1]]
    assert words(SNIPPETS[name]) == real


def unknowns(text, **values):
    script = read_script(text, where="script.sh", given=Given(values=values))
    return [unknown for word in script.commands[-1].words for unknown in script.unknowns.among(word)]


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        ("show $A", "A", "is set nowhere in the script"),
        ("A=$(nproc)\nshow $A", "A", "is the output of `nproc` (line 1)"),
        ("show $1", "1", "is an argument of the script, which is not given"),
        ("show $((A+1))", "A", "is set nowhere in the script"),
        (
            "if [ -f x ]; then A=1; else A=2; fi\nshow $A",
            "A",
            "depends on the test `[ -f x ]`, which cannot be decided",
        ),
        ("for f in *.json; do A=$f; done\nshow $A", "A", "depends on the test `for f in *.json; do A=$f; done`"),
        ("while read x; do A=$x; done < f\nshow $A", "A", "depends on the test"),
        ("source env.sh\nshow ${A:-3}", "A", "is set nowhere here, but perhaps in env.sh (line 1), which is not here"),
        ("show $HOSTNAME", "HOSTNAME", "is known only when the script runs"),
        ("A=$(sed s/a/b/ f)-x\nshow $A", "A", "is the output of `sed s/a/b/ f` (line 1)"),
    ],
)
def test_what_only_a_run_can_tell_is_unknown_and_can_be_stated(text, name, why):
    found = unknowns(text)
    assert [unknown.name for unknown in found] == [name]
    assert why in found[0].why
    assert unknowns(text, **{name: "7"}) == []


def test_a_stated_value_that_the_script_sets_itself_is_not_used():
    script = read_script("A=3\nshow $A $B", where="s", given=Given(values={"A": "4", "B": "5", "C": "6"}))
    assert script.commands[0].words == ("show", "3", "5")
    assert script.unused == {"A": "the script sets A itself (line 1)", "C": "the script does not ask for C"}


def test_cases_that_a_test_cannot_decide_keep_what_they_share():
    text = (
        'A="x y"; if [ -d q ]; then A="$A z"; B=1; else B=1; fi; exit_if() { exit; }; [ -f f ] || exit_if\nshow $A $B'
    )
    script = read_script(text, where="s", given=Given(values={}))
    words = script.commands[-1].words
    assert (words[1], words[2], words[4]) == ("x", "y", "1")
    assert script.unknowns.among(words[3])[0].either == ("z", "")


def test_commands_of_scripts_that_a_script_runs_are_found_with_what_starts_them():
    text = (
        'cat > in.sh <<"E"\nshow $1 $X\nE\nexport X=2\nsrun -N 2 bash in.sh 1\n'
        'ssh host "cd a; show 3 x.py"\nbash -c "show 4"'
    )
    script = read_script(text, where="s", given=Given(values={}))
    assert [(command.launcher, command.words) for command in script.commands if command.words[0] == "show"] == [
        (("srun", "-N", "2"), ("show", "1", "2")),
        (("ssh", "host"), ("show", "3", "x.py")),
        ((), ("show", "4")),
    ]


def test_nothing_is_run(tmp_path):
    file = tmp_path / "made"
    read_script(
        f"touch {file}; A=$(touch {file}); echo x > {file}; eval 'touch {file}'", where="s", given=Given(values={})
    )
    assert not file.exists()


def test_files_beside_a_script_are_read_and_others_are_not(tmp_path):
    (tmp_path / "env.sh").write_text("A=3\n")
    given = Given(values={}, folder=tmp_path)
    script = read_script('. "$(dirname $0)/env.sh"\nsource /etc/passwd\nshow $A', where="s", given=given)
    assert script.commands[-1].words == ("show", "3")
    assert script.unread == ("/etc/passwd (line 2)",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo 'a", 's:1:5: cannot be read as a shell script near "\'a"'),
        ("A=<Specify path>\n", "s:1:3: cannot be read as a shell script"),
        ("if true; then\n", "cannot be read as a shell script"),
        ("show $((1/0))", "s:1: $((1/0)): division by zero"),
        ("show $((9999999999*9999999999))", "a number of more than 63 bits"),
        ("f() { f; }; f", "functions call each other more than 20 deep"),
        ("A=x; while true; do A=$A$A; done", "or 1048576 characters to follow; give the flags themselves with --flags"),
        ("for a in {1..999}; do for b in {1..999}; do :; done; done", "takes more than 20000 steps"),
        ("(" * 400 + ")" * 400, "nested more than 150 deep"),
        ("x" * (1 << 21), "got 2097152 bytes, expected a shell script of at most 1048576"),
    ],
)
def test_what_cannot_be_followed_says_where(text, message):
    with pytest.raises(UsageError) as error:
        read_script(text, where="s", given=Given(values={}))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("header", "variables"),
    [
        ("-N 2 --gres=gpu:h100:8", {"SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "8", "SLURM_GPU_TYPE": "h100"}),
        ("--nodes=1-4\n#SBATCH --ntasks-per-node=8", {"SLURM_NNODES": "4", "SLURM_NTASKS": "32"}),
        ("-n 16 --ntasks-per-node=8 # comment", {"SLURM_NNODES": "2", "SLURM_NTASKS": "16"}),
        ("--gpus-per-node=4", {"SLURM_NNODES": "1", "SLURM_GPUS_ON_NODE": "4", "SLURM_NTASKS": "1"}),
        ("--ntasks=16", {"SLURM_NTASKS": "16"}),
    ],
)
def test_slurms_header_sets_slurms_variables(header, variables):
    script = read_script(f"#!/bin/bash\n#SBATCH {header}\nshow $SLURM_JOB_ID", where="s", given=Given(values={}))
    found = {name: value for name, value in script.variables.items() if name in variables or name == "SLURM_NNODES"}
    assert found == variables
    assert script.unknowns.among(script.commands[0].words[1])[0].why == "is known only when the script runs"
