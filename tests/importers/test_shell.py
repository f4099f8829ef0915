"""A script that is read gives the words that a real shell gives; what only a run can tell stays unknown."""

import shutil
import subprocess

import pytest

from hops.errors import UsageError
from hops.importers.shell import Given, read_script

SNIPPETS = {
    "quotes": """show a 'b c' "d e" f\\ g "h\\"i" 'j"k' $'l\\tm' a"b"'c'$D""",
    "unset": """A=; show $A "$A" x${A}y ${B:-d e} "${B:-d e}" ${C-f} "${A-g}" "${A:-h}" ${A:+i} ${X+j} end""",
    "assign default": """: ${A:=3}; : "${B:=x y}"; show "$A" "$B" $B""",
    "splitting": """A="  one   two  "; show $A "$A" x$A'y' $A$A""",
    "arrays": """A=(a "b c" d); show ${A[@]} "${A[@]}" "${A[*]}" ${A[1]} "${A[1]}" ${#A[@]} $A "x${A[@]}y" ${#A[1]}""",
    "array growth": """A=(1 2); A+=(3 "4 5"); A[7]=z; A[0]+=q; show "${A[@]}" ${#A[@]} "${!A[@]}" ${A[-1]}""",
    "array slices": """A=(a b c d e); show "${A[@]:1:2}" "${A[@]:3}" "${A[@]: -2}" ; B=abcdef; show ${B:1:3} ${B:4} ${B: -2} ${B:0:-1}""",
    "maps": """declare -A M=([a]=1 ["b c"]=2); M[d]=3; K=a; show "${M[a]}" "${M[$K]}" "${M[d]}" ${#M[@]}""",
    "comments": """A=(1 # one\n 2 # two\n); show "${A[@]}" a#b # not this""",
    "arithmetic": """A=7; B=2; show $((A*B+1)) $(( A / B )) $((-A / B)) $((A % B)) $((2**10)) $((A > B ? 10 : 20)) $(( (A+1) << 2 ))""",
    "more arithmetic": """A=010; show $((A)) $((0x1F)) $((A+=2)) $A $((A++)) $A $((++A)) $((!A)) $((~1)) $((1,2)) $((A==12&&1||0))""",
    "arithmetic with dollars": """A=3; B=(4 5); show $(($A*${B[1]})) $((${#B[@]})) $((B[0]+1)) $(( ${X:-6} / 2 ))""",
    "let": """let A=3*4 "B = A + 1"; ((C = B * 2)); ((C++)); show $A $B $C""",
    "prefix and suffix": """F=/a/b.c/file.tar.gz; show ${F##*/} ${F#*/} ${F%%.*} ${F%.*} ${F%/*} ${F#x}""",
    "replace": """A=banana; show ${A/a/o} ${A//a/o} ${A/#b/c} ${A/%a/e} ${A//[an]/x} ${A/n*/y} ${A//a}""",
    "case of letters": """A=Hello; show ${A^^} ${A,,} ${A^} ${A,} ${#A}""",
    "indirect": """A=B; B="x y"; show ${!A} "${!A}"; P=2; set -- p q r; show ${!P}""",
    "substitution": """A=$(echo one two); B="$(printf '%s-%s' a b)"; show $A "$A" $B `echo c` "$(echo 'd  e')" $(echo f; echo g)""",
    "nested": """A=2; B=$(echo "$(( $(echo 3) * A ))"); show "$B" "$(echo "${A}x" | cat)" """,
    "sequences": """show {1..4} $(seq 3) $(seq 2 4) $(expr 3 + 4) $(echo "6*7" | cat)""",
    "heredoc": """A=5; T=$(cat <<EOF\n --x $A "q" 'r' \\$A $((A+1))\n  $(echo sub "s")\nEOF\n); show $T; show "$T" """,
    "heredoc first": """A=5; T=$(cat <<EOF\n  $A $A\n$A\nEOF\n); show "x$T" """,
    "quoted heredoc": """T=$(cat <<'E'\n $A "q" \\x\nE\n); show "$T" """,
    "tabbed heredoc": """T=$(cat <<-E\n\ta\n\t\tb\n\tE\n); show "$T" """,
    "read": """read A B <<< "1 2 3"; read -r -d '' C <<E\nx y\nz\nE\nshow "$A" "$B" $C""",
    "mapfile": """mapfile -t A <<E\na b\nc\nE\nshow "${A[@]}" """,
    "functions": """f() { local a=$1; shift; B="$a:$*:$#"; C=3; }; a=9; f x y z; show "$B" $C $a""",
    "function output": """f() { echo "$1-$2"; }; g() { f "$@" tail; }; show $(f a b) $(g q)""",
    "return": """f() { if [ "$1" = a ]; then R=1; return; fi; R=2; }; f a; A=$R; f b; show $A $R""",
    "positional": """set -- a "b c" d; show $# "$@" "$*" $2 "${2}" "${@:2}"; shift; show "$1" $#""",
    "no arguments": """show "$@" a $* b$@""",
    "if": """A=5; if [ $A -gt 3 ] && [[ -n $A ]]; then B=1; elif false; then B=2; else B=3; fi; show $B""",
    "tests": """A="x y"; t() { "$@" && echo y || echo n; }; [[ $A == x* ]] && B=1; [ -z "$C" ] && C=2; [ "$A" != "x y" ] || D=3
[[ "$A" == "x*" ]] || E=4; [[ a < b ]] && F=5; [[ $A =~ ^x ]] && G=6; [ ! 1 -eq 2 ] && H=7; test -n "$A" && I=8; show $B $C $D $E $F $G $H $I""",
    "and or": """true && A=1 || A=2; false && B=1 || B=2; false || { C=3; D=4; }; show $A $B $C $D""",
    "case": """for x in abc a.b zz; do case $x in a?c) R=1;; *.*|y) R=2;; *) R=3;; esac; S="$S$R"; done; show $S""",
    "for": """for x in 1 "2 3" $(echo 4 5); do A="$A<$x>"; done; show "$A" $x; set -- p q; for y; do B=$B$y; done; show $B""",
    "c style for": """for ((i=0; i<5; i+=2)); do A=$A$i; done; show $A $i""",
    "while": """n=3; while [ $n -gt 0 ]; do A=$A$n; n=$((n-1)); [ $n -eq 1 ] && break; done; until (( n >= 4 )); do ((n++)); done; show $A $n""",
    "continue": """for x in 1 2 3; do [ $x = 2 ] && continue; A=$A$x; done; show $A""",
    "subshells": """A=1; (A=2; B=3); { C=4; }; echo x | A=5; show $A "$B" $C""",
    "eval": """A='B="x y"'; eval $A; eval "C=\\$B"; show "$B" "$C" """,
    "export": """export A=1 B="x y"; readonly C=3; declare D=4; local_="q"; declare -x E; show $A "$B" $C $D "$E" """,
    "unset variable": """A=1; unset A; show "${A:-none}" """,
    "lines": "show a \\\n  b \\\n  c\nshow d; show e",
    "last line end": "A=$(printf 'a\\n\\n'); show \"$A\" ",
    "written file": """cat > /dev/null <<E\nx\nE\nshow ok""",
    "printf": """show "$(printf '%s ' a b c)" "$(printf '%d%%' 5)"; printf -v A '%s/%s' x y; show $A""",
    "tr": """show $(echo a,b,c | tr , ' ') "$(echo "x y" | tr -d ' ')" """,
    "xargs": """show "$(printf 'a\\nb\\n' | xargs)" """,
    "not": """! true || A=1; ! false && B=2; show "$A" $B""",
    "while read args": """set -- --a 1 --b; while [[ $# -gt 0 ]]; do case $1 in --a) A=$2; shift 2;; *) B=$1; shift;; esac; done; show $A $B""",
}  # fmt: skip


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
        ("if [ -f x ]; then A=1; else A=2; fi\nshow $A", "A", "depends on the test `[ -f x ]`, which cannot be decided"),
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
    text = 'A="x y"; if [ -d q ]; then A="$A z"; B=1; else B=1; fi; exit_if() { exit; }; [ -f f ] || exit_if\nshow $A $B'
    script = read_script(text, where="s", given=Given(values={}))
    words = script.commands[-1].words
    assert (words[1], words[2], words[4]) == ("x", "y", "1")
    assert script.unknowns.among(words[3])[0].either == ("z", "")


def test_commands_of_scripts_that_a_script_runs_are_found_with_what_starts_them():
    text = 'cat > in.sh <<"E"\nshow $1 $X\nE\nexport X=2\nsrun -N 2 bash in.sh 1\nssh host "cd a; show 3 x.py"\nbash -c "show 4"'
    script = read_script(text, where="s", given=Given(values={}))
    assert [(command.launcher, command.words) for command in script.commands if command.words[0] == "show"] == [
        (("srun", "-N", "2"), ("show", "1", "2")),
        (("ssh", "host"), ("show", "3", "x.py")),
        ((), ("show", "4")),
    ]


def test_nothing_is_run(tmp_path):
    file = tmp_path / "made"
    read_script(f"touch {file}; A=$(touch {file}); echo x > {file}; eval 'touch {file}'", where="s", given=Given(values={}))
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
        ("echo 'a", "s:1:5: cannot be read as a shell script near \"'a\""),
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
