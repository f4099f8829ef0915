"""Random scripts of assignments, expansions, tests, loops and functions: the reader's words are a real shell's."""

import random
import shutil
import subprocess

import pytest

from hops.importers.shell import Given, read_script

START = 'A=x; B="a b"; C=a/b.cd; N=3; M=4; L=(l "m n" o); set -- p "q r"; set -f\n'
VARIABLES = "ABC"
LITERALS = ["x", "1", "7", "a b", "ab.cd", "a/b/c", "", "0", "--n 3", "Q_q", "x.y"]
CALLS = 100


class Scripts:
    """Draws scripts; `depth` keeps statements from nesting for ever."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def one(self, *texts):
        return self.draw.choice(texts)

    def any_of(self, *ways):
        """One of several texts, of which only the chosen one is made."""
        return self.draw.choice(ways)()

    def quoted(self, text):
        return self.one(f'"{text}"', f"'{text}'") if " " in text or not text else self.one(text, f'"{text}"')

    def literal(self):
        return self.quoted(self.one(*LITERALS))

    def expansion(self, depth=0):
        name, number, one = self.one(*VARIABLES), self.draw.randint(0, 3), self.one
        return self.any_of(
            *[lambda: f"${name}", lambda: f"${{{name}}}"] * 2,
            lambda: f"${{{name}:-{one('d', '${B}', 'e f', chr(34) + 'g h' + chr(34))}}}",
            lambda: f"${{{name}{one('#', '##', '%', '%%')}{one('*/', '*.', 'a', '?', '/*', '.*', '*[a-c]')}}}",
            lambda: f"${{{name}{one('/', '//', '/#', '/%')}{one('a', 'b', '?', '[a-c]')}/{one('z', '', '$B')}}}",
            lambda: f"${{#{name}}}",
            lambda: f"${{{name}{one('^^', ',,', '^', ',')}}}",
            lambda: f"${{{name}:{number}{one('', ':1', ':2')}}}",
            lambda: f"$(({one('N', 'M', '$N')} {one(*'+-*%/<', '==', '&&')} {one('N+1', '2', '$M', '(M-9)')}))",
            lambda: one("${L[@]}", "${L[1]}", "${#L[@]}", "${L[*]}", "${L[@]:1}", "${L[@]: -1}", "${L[N]}"),
            lambda: f"$(echo {self.word(depth + 1)})" if depth < 2 else "$A",
            lambda: f"${{{name}:+set}}",
            lambda: f"${{{name}-u}}",
            lambda: one("$1", "$#", "$@", "$*", "${2}", "${@:2}"),
        )

    def word(self, depth=0):
        return self.any_of(
            self.literal,
            lambda: self.expansion(depth),
            lambda: f'"{self.one("", "p ", "q")}{self.expansion(depth)}{self.one("", " r", "s")}"',
            lambda: self.one("k=", "u") + self.expansion(depth),
            lambda: '"${L[@]}"',
        )

    def test(self):
        name, one = self.one(*VARIABLES), self.one
        return one(
            *(f'[ -z "${name}" ]', f'[ -n "${name}" ]', f'[ "${name}" = "{one("x", "1", "a b")}" ]'),
            *(f"[[ ${name} == {one('a*', 'x', '?', '*b*')} ]]", f'[[ "${name}" != "a*" ]]', f"[[ ! ${name} =~ ^a ]]"),
            *(f"[ $N -gt {self.draw.randint(0, 9)} ]", f"(( N {one(*'<>')} M ))", f"[[ -n ${name} && $N -lt 5 ]]"),
        )

    def statement(self, depth=0):
        name, word = self.one(*VARIABLES), self.word
        plain = [
            *[lambda: f"{name}={self.any_of(self.literal, self.expansion)}"] * 3,
            lambda: f'{name}="{self.expansion()} {self.expansion()}"',
            lambda: f"{name}+={self.literal()}",
            lambda: f"L=({word()} {word()} {self.literal()})",
            lambda: f"L+=({word()})",
            lambda: self.one("N=$((N+1))", "((N++))", "let M=M-1", "M=$((M*2 % 11))", "N=$(expr $N + 2)"),
            lambda: f"{self.test()} && A={word()} || C={self.literal()}",
            lambda: f'{name}=$(cat <<EOF\n {self.expansion()} lit "$A" ${name}\nEOF\n)',
            lambda: f"show {word()} {word()}",
        ]
        inner = [
            lambda: f"if {self.test()}; then {self.statement(depth + 1)}; else {self.statement(depth + 1)}; fi",
            lambda: f"for x in {word()} {word()}; do A=$x; {self.statement(depth + 1)}; done",
            lambda: f"case ${name} in a*) {self.statement(depth + 1)} ;; *) {self.statement(depth + 1)} ;; esac",
            lambda: f"f() {{ local A=$1; B=$A$2; {self.statement(2)}; }}; f {word()} {word()}",
        ]
        return self.any_of(*plain, *(inner if depth < 2 else []))

    def script(self):
        body = "\n".join(self.statement() for _ in range(self.draw.randint(1, 6)))
        return f'{START}{body}\nshow {self.word()} "$A" "$B" "$C" $N $M "${{L[@]}}"'


def read_words(text):
    """Words that the reader finds, where those that may be none are none."""
    script = read_script(text, where="s", given=Given(values={}))
    unknowns = script.unknowns

    def is_a_word(word, bare):
        parts = unknowns.among(word)
        return bool(unknowns.settled(word)) or not (bare or (parts and all(part.words for part in parts)))

    return [
        [unknowns.settled(word) for word, bare in zip(each.words, each.bare, strict=True) if is_a_word(word, bare)][1:]
        for each in script.commands
        if each.words[0] == "show"
    ]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash to compare with")
@pytest.mark.parametrize("seed", range(4))
def test_words_of_random_scripts_are_those_of_a_real_shell(seed):
    scripts = Scripts(seed)
    compared = 0
    for _ in range(CALLS):
        text = scripts.script()
        shown = 'show() { printf "%s\\0" "$@"; printf "\\001"; }\n' + text
        run = subprocess.run(["bash", "--norc", "-c", shown], capture_output=True, text=True, env={}, check=False)
        if run.returncode or run.stderr:  # such as a slice of a negative length
            continue
        compared += 1
        assert read_words(text) == [call.split("\0")[:-1] for call in run.stdout.split("\1")[:-1]], text
    assert compared > CALLS / 2
