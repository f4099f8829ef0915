"""A script is walked, never run: assignments are followed, tests decided where they can be, commands written down."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from hops.errors import UsageError
from hops.importers.shell.builtins import run_builtin
from hops.importers.shell.commands import Command, Given, Script
from hops.importers.shell.conditions import Truth, both, decide, either, negation
from hops.importers.shell.expand import Expander
from hops.importers.shell.grammar import MAX_BYTES, line_of, parse, source
from hops.importers.shell.patterns import matches
from hops.importers.shell.slurm import slurm_variables
from hops.importers.shell.state import Knowledge, State
from hops.importers.shell.values import Array, Unknown, Value, is_known, without_marks

if TYPE_CHECKING:
    from tree_sitter import Node

_SHELLS = {"bash", "sh", "zsh", "dash", "ksh"}
_ACTIVATIONS = re.compile(
    r"(^|/)(activate|\.?bashrc|\.?bash_profile|\.?profile|conda\.sh|lmod|modules\.sh|bash|functions)$"
)
_RUNNERS = frozenset(
    "srun sbatch salloc mpirun mpiexec ssh pdsh nohup sudo time env exec timeout numactl docker podman singularity "
    "apptainer enroot qsub bsub setsid stdbuf nice torchrun".split()
)  # commands whose arguments may be a command
_STATEMENTS = {";", "\n", ";;", "&", "do", "done", "then", "fi", "{", "}", "(", ")", "else", ";&", ";;&"}
_MAX_NESTED = 20
_MAX_TURNS = 200  # of a loop


class Flow(Enum):
    """How a statement ends."""

    GO_ON = "goes on"
    BREAK = "leaves the loop"
    CONTINUE = "starts the loop again"
    RETURN = "leaves the function"
    EXIT = "ends the script"


def read_script(text: str, *, where: str, given: Given) -> Script:
    """The commands of a script, as the shell would hand them over.

    Raises UsageError with file, line and column where it is no shell script or cannot be followed.
    """
    text = without_marks(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    knowledge = Knowledge(given)
    state = State(arguments=_arguments(knowledge))
    slurm = slurm_variables(text)
    knowledge.in_slurm = bool(slurm)
    state.variables |= {name: value for name, value in slurm.items() if name not in given.values}
    walk = Walk(knowledge, state, where)
    walk.run(text)
    unused = {name: _why_unused(name, walk.state) for name in given.values if name not in knowledge.asked}
    ends = {name: value for name, value in walk.state.variables.items() if isinstance(value, str)}
    return Script(
        commands=tuple(walk.commands),
        unknowns=knowledge.unknowns,
        unread=tuple(knowledge.unread),
        unused=unused,
        variables=ends,
    )


def _arguments(knowledge: Knowledge) -> tuple[str, ...]:
    """$1, $2, ... as far as the caller stated them without a gap."""
    found: list[str] = []
    while (value := knowledge.given_value(str(len(found) + 1))) is not None:
        found.append(value)
    return tuple(found)


def _why_unused(name: str, state: State) -> str:
    if name in state.lines:
        return f"the script sets {name} itself (line {state.lines[name]})"
    return f"the script does not ask for {name}"


class Walk:
    """One pass through a script and what it calls."""

    def __init__(self, knowledge: Knowledge, state: State, where: str) -> None:
        self.knowledge = knowledge
        self.commands: list[Command] = []
        self.expander = Expander(knowledge, where, self._substitute)
        self.state = state
        self.prints: list[list[str]] = []  # what open substitutions and pipes have caught
        self._tests: list[str] = []
        self._launcher: tuple[str, ...] = ()
        self._left: list[tuple[Flow, State]] = []  # cases that left a loop or function while others went on
        self._success: Truth = True
        self._nested = 0

    @property
    def state(self) -> State:
        return self.expander.state

    @state.setter
    def state(self, state: State) -> None:
        self.expander.state = state

    # -- what builtins use

    def print(self, text: str) -> None:
        if self.prints:
            self.knowledge.step(self.expander.where, text)
            self.prints[-1].append(text)

    def assign(self, name: str, value: Value, line: int) -> None:
        self.knowledge.assign(self.state, name, value, line)

    def unknown(self, why: str) -> str:
        return self.knowledge.unknowns.mark(Unknown(why=why))

    def shown(self, text: str) -> str:
        return self.knowledge.unknowns.printed(text)

    # -- scripts and statements

    def run(self, text: str, where: str = "") -> Flow:
        """Walk a text in the present state."""
        self._nested += 1
        if self._nested > _MAX_NESTED:
            raise UsageError(f"{self.expander.where}: scripts call each other more than {_MAX_NESTED} deep")
        before = self.expander.where
        self.expander.where = where or before
        try:
            return self._all(parse(text, where=self.expander.where).children)
        finally:
            self.expander.where = before
            self._nested -= 1

    def _all(self, nodes: Sequence["Node"]) -> Flow:
        for node in nodes:
            flow = self._statement(node)
            if flow is not Flow.GO_ON:
                return flow
        return Flow.GO_ON

    def _statement(self, node: "Node", stdin: str = "") -> Flow:
        kind = node.type
        if kind in _STATEMENTS or kind in {"comment", "heredoc_body", "heredoc_end", "heredoc_content", "ERROR"}:
            return Flow.GO_ON
        self.knowledge.step(f"{self.expander.where}:{line_of(node)}")
        handler = getattr(self, f"_{kind}", None)
        if handler is None:
            return Flow.GO_ON
        flow: Flow = handler(node, stdin)
        return flow

    # -- assignments

    def _variable_assignment(self, node: "Node", stdin: str) -> Flow:
        self._assign(node)
        self._success = True
        return Flow.GO_ON

    def _variable_assignments(self, node: "Node", stdin: str) -> Flow:
        return self._all(node.children)

    def _assign(self, node: "Node", *, named: bool = False) -> None:
        target, *_, last = node.children
        line = line_of(node)
        adds = any(child.type == "+=" for child in node.children)
        value_node = last if last.type not in {"=", "+="} else None
        if target.type == "subscript":
            self._assign_item(target, value_node, adds=adds, line=line)
            return
        name = source(target)
        old = self.state.variables.get(name)
        if old is None and adds:
            old = self.knowledge.given_value(name)
        if value_node is not None and value_node.type == "array":
            self.assign(name, self._array(value_node, old if adds else None, named=named or _is_named(old)), line)
            return
        text = "" if value_node is None else self.expander.text(value_node)
        if isinstance(old, Array):
            items = dict(old.items)
            items["0"] = (items.get("0", "") if adds else "") + text
            self.assign(name, Array(items, old.named), line)
            return
        self.assign(name, (old or "") + text if adds else text, line)

    def _assign_item(self, target: "Node", value_node: "Node | None", *, adds: bool, line: int) -> None:
        name, _, index = source(target)[:-1].partition("[")
        old = self.state.variables.get(name, Array({}))
        old = old if isinstance(old, Array) else Array({"0": old})
        index = self.expander.inside(index.strip("\"'"))
        if not old.named:
            index = self.expander.arithmetic(index, line)
        text = "" if value_node is None else self.expander.text(value_node)
        items = {**old.items, index: (old.items.get(index, "") if adds else "") + text}
        if not is_known(index) or (not old.named and not index.isdigit()):
            self.assign(name, self.unknown(f"has an unknown index (line {line})"), line)
        else:
            self.assign(name, Array(items, old.named), line)

    def _array(self, node: "Node", old: Value | None, *, named: bool) -> Array:
        items: dict[str, str] = {}
        if old is not None:
            items = dict(old.items) if isinstance(old, Array) else {"0": old}
        following = max((int(each) for each in items), default=-1) + 1 if not named else 0
        for child in node.children:
            if child.type in {"(", ")", "comment"}:
                continue
            at_index = re.match(r"\[([^\]]+)\]=", source(child)) if child.type == "concatenation" else None
            if at_index:
                index = self.expander.inside(at_index[1].strip("\"'"))
                text = self.expander.text(child)
                items[index if named or index.isdigit() else str(following)] = text[text.index("]=") + 2 :]
                continue
            for text, _ in self.expander.words([child]):
                items[str(following)] = text
                following += 1
        return Array(items, named)

    def _declaration_command(self, node: "Node", stdin: str) -> Flow:
        options = "".join(source(child) for child in node.children if child.type == "word" and source(child)[0] == "-")
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                self._assign(child, named="A" in options)
            elif child.type == "variable_name" and source(node.children[0]) != "export":
                name = source(child)
                if "A" in options or "a" in options:
                    self.assign(name, Array({}, named="A" in options), line_of(node))
                elif source(node.children[0]) == "local":
                    self.assign(name, "", line_of(node))
            elif child.type in {"string", "concatenation", "expansion", "simple_expansion"}:
                for text, _ in self.expander.words([child]):
                    name, equals, value = text.partition("=")
                    if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
                        self.assign(name, value, line_of(node))
        self._success = True
        return Flow.GO_ON

    def _unset_command(self, node: "Node", stdin: str) -> Flow:
        for child in node.children[1:]:
            self.state.variables.pop(source(child), None)
        self._success = True
        return Flow.GO_ON

    # -- what holds statements

    def _compound_statement(self, node: "Node", stdin: str) -> Flow:
        if node.children[0].type == "((":
            self._success = self._arithmetic_truth(node)
            return Flow.GO_ON
        return self._all(node.children)

    def _do_group(self, node: "Node", stdin: str) -> Flow:
        return self._all(node.children)

    def _subshell(self, node: "Node", stdin: str) -> Flow:
        with self._aside():
            self._all(node.children)
        return Flow.GO_ON

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """What happens inside changes no variable outside."""
        before = self.state
        left = len(self._left)
        self.state = before.copy()
        try:
            yield
        finally:
            before.files.update(self.state.files)
            self.state = before
            del self._left[left:]

    def _test_command(self, node: "Node", stdin: str) -> Flow:
        self._success = decide(node, self.expander)
        return Flow.GO_ON

    def _arithmetic_truth(self, node: "Node") -> Truth:
        inner = source(node).strip()[2:-2]
        value = self.expander.arithmetic(self.expander.inside(inner), line_of(node))
        return value != "0" if is_known(value) else None

    def _negated_command(self, node: "Node", stdin: str) -> Flow:
        flow = self._statement(node.children[-1])
        self._success = negation(self._success)
        return flow

    def _list(self, node: "Node", stdin: str) -> Flow:
        left, operator, right = node.children[0], source(node.children[1]), node.children[-1]
        flow = self._statement(left)
        if flow is not Flow.GO_ON:
            return flow
        first = self._success
        if first is (operator == "||"):
            return Flow.GO_ON
        if first is None:
            flow = self._cases(_short(left), [lambda: self._statement(right), lambda: Flow.GO_ON])
        else:
            flow = self._statement(right)
        second = self._success
        self._success = both(first, second) if operator == "&&" else either(first, second)
        return flow

    def _pipeline(self, node: "Node", stdin: str) -> Flow:
        commands = [child for child in node.children if child.is_named and child.type != "comment"]
        text = stdin
        for number, command in enumerate(commands):
            last = number == len(commands) - 1
            with self._aside():
                if not last:
                    self.prints.append([])
                self._statement(command, text)
                if not last:
                    text = "".join(self.prints.pop())
        return Flow.GO_ON

    # -- branches and loops

    def _cases(self, test: str, ways: Sequence[Callable[[], Flow]]) -> Flow:
        """Walk every case of an undecided test from the present state, and go on with what all have in common."""
        start = self.state
        ends: list[tuple[Flow, State]] = []
        for way in ways:
            self.state = start.copy()
            self._tests.append(test)
            ends.append((way(), self.state))
            self._tests.pop()
        for wanted in (Flow.GO_ON, Flow.BREAK, Flow.CONTINUE, Flow.RETURN):
            states = [state for flow, state in ends if flow is wanted]
            if states:
                self._left += [(flow, state) for flow, state in ends if flow not in {wanted, Flow.EXIT}]
                self.state = self.knowledge.merge(states, test)
                self._success = None
                return wanted
        return Flow.EXIT

    def _if_statement(self, node: "Node", stdin: str) -> Flow:
        branches, condition, body = [], [], []
        in_body = False
        otherwise: list[Node] = []
        for child in node.children[1:]:
            if child.type == "then":
                in_body = True
            elif child.type == "elif_clause":
                at = next(number for number, each in enumerate(child.children) if each.type == "then")
                branches.append((child.children[1:at], child.children[at + 1 :]))
            elif child.type == "else_clause":
                otherwise = list(child.children[1:])
            elif child.type != "fi":
                (body if in_body else condition).append(child)
        return self._branch([(condition, body), *branches], otherwise)

    def _branch(
        self, branches: Sequence[tuple[Sequence["Node"], Sequence["Node"]]], otherwise: Sequence["Node"]
    ) -> Flow:
        if not branches:
            return self._all(otherwise)
        (condition, body), *rest = branches
        flow = self._all(condition)
        if flow is not Flow.GO_ON:
            return flow
        if self._success is None:
            label = _short(next(each for each in condition if each.is_named))
            return self._cases(label, [lambda: self._all(body), lambda: self._branch(rest, otherwise)])
        flow = self._all(body) if self._success else self._branch(rest, otherwise)
        self._success = True
        return flow

    def _case_statement(self, node: "Node", stdin: str) -> Flow:
        word = next(child for child in node.children[1:] if child.is_named)
        text = self.expander.settled(self.expander.text(word))
        items = [child for child in node.children if child.type == "case_item"]
        bodies = [(self._patterns(item), _body(item)) for item in items]
        if not is_known(text):
            ways = [lambda body=body: self._all(body) for _, body in bodies]
            if not any("*" in wanted for wanted, _ in bodies):
                ways.append(lambda: Flow.GO_ON)
            return self._cases(_short(word), ways)
        for wanted, body in bodies:
            if any(matches(text, each) for each in wanted):
                return self._all(body)
        return Flow.GO_ON

    def _patterns(self, item: "Node") -> list[str]:
        found = []
        for child in item.children:
            if child.type == ")":
                return found
            if child.type not in {"|", "("}:
                found.append(self.expander.text(child))
        return found

    def _for_statement(self, node: "Node", stdin: str) -> Flow:
        name = source(node.children[1])
        body = node.children[-1]
        until = next((at for at, each in enumerate(node.children) if each.type == "in"), None)
        if until is None:
            words = [(text, False) for text in self.state.arguments]
        else:
            stop = next((at for at in range(until, len(node.children)) if node.children[at].type in {";", "\n"}), -1)
            words = self.expander.words([each for each in node.children[until + 1 : stop] if each.type != "do_group"])
        unclear = [text for text, bare in words if re.search(r"[*?]|\[", text) or (bare and not is_known(text))]
        if unclear:
            why = f"is one of {self.shown(' '.join(unclear))[:40]!r} (line {line_of(node)})"
            return self._maybe(_short(node), lambda: self._turn(name, self.unknown(why), body, line_of(node)))
        return self._turns([lambda text=text: self._turn(name, text, body, line_of(node)) for text, _ in words], node)

    def _turn(self, name: str, value: str, body: "Node", line: int) -> Flow:
        self.assign(name, value, line)
        return self._statement(body)

    def _maybe(self, test: str, turn: Callable[[], Flow]) -> Flow:
        """A loop that may have any number of turns: none or one, and what differs is unknown."""
        before = len(self._left)
        flow = self._cases(test, [turn, lambda: Flow.GO_ON])
        self._rejoin(before, {Flow.BREAK, Flow.CONTINUE}, test)
        return Flow.GO_ON if flow in {Flow.BREAK, Flow.CONTINUE} else flow

    def _turns(self, turns: Sequence[Callable[[], Flow]], node: "Node") -> Flow:
        before = len(self._left)
        for turn in turns:
            flow = turn()
            if flow is Flow.BREAK:
                break
            if flow in {Flow.RETURN, Flow.EXIT}:
                return flow if not self._rejoin(before, {Flow.BREAK}, _short(node), alive=False) else Flow.GO_ON
            self._rejoin(before, {Flow.CONTINUE}, _short(node))
        self._rejoin(before, {Flow.BREAK, Flow.CONTINUE}, _short(node))
        return Flow.GO_ON

    def _rejoin(self, before: int, flows: set[Flow], test: str, *, alive: bool = True) -> bool:
        """Bring back the cases that left this loop or function; `alive`: the present state goes on, too."""
        back = [state for flow, state in self._left[before:] if flow in flows]
        self._left[before:] = [each for each in self._left[before:] if each[0] not in flows]
        if back:
            self.state = self.knowledge.merge([self.state, *back] if alive else back, test)
        return bool(back)

    def _c_style_for_statement(self, node: "Node", stdin: str) -> Flow:
        head = re.match(r"for\s*\(\((.*?);(.*?);(.*?)\)\)", source(node), re.DOTALL)
        if head is None:
            return Flow.GO_ON
        start, test, step = (self.expander.inside(each) for each in head.groups())
        line, body = line_of(node), node.children[-1]
        if start.strip():
            self.expander.arithmetic(start, line)

        def decided() -> Truth:
            value = self.expander.arithmetic(test, line) if test.strip() else "1"
            return value != "0" if is_known(value) else None

        def turn() -> Flow:
            flow = self._statement(body)
            if step.strip() and flow in {Flow.GO_ON, Flow.CONTINUE}:
                self.expander.arithmetic(step, line)
            return flow

        return self._while(decided, turn, node)

    def _while_statement(self, node: "Node", stdin: str) -> Flow:
        body = node.children[-1]
        condition = [child for child in node.children[1:-1] if child.type != ";"]
        until = node.children[0].type == "until"

        def decided() -> Truth:
            self._all(condition)
            return negation(self._success) if until else self._success

        return self._while(decided, lambda: self._statement(body), node)

    def _while(self, decided: Callable[[], Truth], turn: Callable[[], Flow], node: "Node") -> Flow:
        before = len(self._left)
        for _ in range(_MAX_TURNS):
            truth = decided()
            if truth is False:
                break
            if truth is None:
                return self._maybe(_short(node), turn)
            flow = turn()
            if flow is Flow.BREAK:
                break
            if flow in {Flow.RETURN, Flow.EXIT}:
                return flow if not self._rejoin(before, {Flow.BREAK}, _short(node), alive=False) else Flow.GO_ON
            self._rejoin(before, {Flow.CONTINUE}, _short(node))
        else:  # it never ends by itself: only the cases that left it go on
            return Flow.GO_ON if self._rejoin(before, {Flow.BREAK}, _short(node), alive=False) else Flow.EXIT
        self._rejoin(before, {Flow.BREAK, Flow.CONTINUE}, _short(node))
        return Flow.GO_ON

    # -- functions

    def _function_definition(self, node: "Node", stdin: str) -> Flow:
        name = next(child for child in node.children if child.type == "word")
        self.state.functions[source(name)] = (node.children[-1], self.expander.where)
        return Flow.GO_ON

    def _call(self, name: str, arguments: Sequence[str], stdin: str) -> Flow:
        body, where = self.state.functions[name]
        self._nested += 1
        if self._nested > _MAX_NESTED:
            raise UsageError(f"{where}: functions call each other more than {_MAX_NESTED} deep")
        outer, outer_where = self.state.arguments, self.expander.where
        locals_before = {each: self.state.variables.get(each) for each in _locals(body)}
        before = len(self._left)
        self.state.arguments, self.expander.where = tuple(arguments), where
        flow = self._statement(body, stdin)
        self._rejoin(before, {Flow.RETURN}, f"in {name}", alive=flow is not Flow.EXIT)
        self.state.arguments, self.expander.where = outer, outer_where
        for each, value in locals_before.items():
            if value is None:
                self.state.variables.pop(each, None)
            else:
                self.state.variables[each] = value
        self._nested -= 1
        return flow if flow is Flow.EXIT else Flow.GO_ON

    # -- commands

    def _redirected_statement(self, node: "Node", stdin: str) -> Flow:
        text, files, after = stdin, [], []
        for child in node.children[1:]:
            if child.type == "heredoc_redirect":
                text, more = self._heredoc(child)
                after += [each for each in more if each.type not in {"file_redirect"}]
                files += [each for each in more if each.type == "file_redirect"]
            elif child.type == "herestring_redirect":
                text = self.expander.text(child.children[-1]) + "\n"
            elif child.type == "file_redirect":
                files.append(child)
        target = next(
            (each for each in files if any(part.type in {">", ">>", "&>", "&>>", ">|"} for part in each.children)), None
        )
        source_file = next((each for each in files if each.children[0].type == "<"), None)
        if source_file is not None:
            text = self.state.files.get(self.expander.text(source_file.children[-1]), text)
        if node.children[0].type in {"file_redirect", "heredoc_redirect"}:
            return Flow.GO_ON
        catches = target is not None and source(target.children[0]) != "2"
        if catches:
            self.prints.append([])
        pipes = [each for each in after if each.type in {"pipeline", "command"}]
        flow = self._statement(node.children[0], text)
        if catches and target is not None:
            written = "".join(self.prints.pop())
            name = self.expander.text(target.children[-1])
            adds = any(part.type in {">>", "&>>"} for part in target.children)
            if is_known(name) and name != "/dev/null":
                self.state.files[name] = (self.state.files.get(name, "") if adds else "") + written
        for each in pipes:  # what stands behind the start of a here-document on its line: | cmd, && cmd, || cmd
            before = each.prev_sibling
            if before is not None and source(before) == "||":
                continue
            self._statement(each)
        return flow

    def _heredoc(self, node: "Node") -> tuple[str, list["Node"]]:
        parts = {child.type: child for child in node.children}
        more = [child for child in node.children
                if child.type not in {"<<", "<<-", "heredoc_start", "heredoc_body", "heredoc_end"}]  # fmt: skip
        body = parts.get("heredoc_body")
        if body is None:
            return "", more
        text = self._text_of_root(node)
        start = text.rfind(b"\n", 0, body.start_byte) + 1
        raw = text[start : parts["heredoc_end"].start_byte].decode("utf-8", "surrogateescape")
        if "<<-" in parts:
            raw = "\n".join(line.lstrip("\t") for line in raw.split("\n"))
        quoted = bool(re.search(r"['\"\\]", source(parts["heredoc_start"])))
        return (raw if quoted else self.expander.heredoc(raw)), more

    def _text_of_root(self, node: "Node") -> bytes:
        root = node
        while root.parent is not None:
            root = root.parent
        assert root.text is not None
        return b"\0" * root.start_byte + root.text

    def _command(self, node: "Node", stdin: str) -> Flow:
        line = line_of(node)
        settings, words = self._parts(node)
        for child in node.children:
            if child.type == "herestring_redirect":
                stdin = self.expander.text(child.children[-1]) + "\n"
        if not words:
            for name, value in settings.items():
                self.assign(name, value, line)
            return Flow.GO_ON
        texts = [text for text, _ in words]
        name, arguments = texts[0], texts[1:]
        if name in {"exit", "return", "break", "continue"}:
            return {"exit": Flow.EXIT, "return": Flow.RETURN, "break": Flow.BREAK, "continue": Flow.CONTINUE}[name]
        if name in self.state.functions:
            return self._call(name, arguments, stdin)
        if name == "eval":
            return self.run(" ".join(arguments))
        if name in {"source", "."} and arguments:
            return self._source(arguments[0], arguments[1:], line)
        if name in {"time", "command", "exec", "nohup", "sudo"} and len(words) > 1 and texts[1] in self.state.functions:
            return self._call(texts[1], texts[2:], stdin)
        known, self._success = run_builtin(self, texts, line, stdin)
        if known or self._nested_script(texts, stdin, line):
            return Flow.GO_ON
        if self.prints:
            self.print(self.unknown(f"is the output of `{_short(node)}` (line {line})"))
        self.commands.append(Command(
            words=tuple(texts), bare=tuple(bare for _, bare in words), launcher=self._launcher,
            where=f"{self.expander.where}:{line}", only_if=tuple(self._tests), settings=settings,
        ))  # fmt: skip
        self._success = None
        return Flow.GO_ON

    def _parts(self, node: "Node") -> tuple[Mapping[str, str], list[tuple[str, bool]]]:
        settings: dict[str, str] = {}
        words = []
        for child in node.children:
            if child.type == "variable_assignment":
                last = child.children[-1]
                settings[source(child.children[0])] = "" if last.type == "=" else self.expander.text(last)
            elif not child.type.endswith("redirect"):
                words += self.expander.words([child])
        return settings, words

    def _source(self, name: str, arguments: Sequence[str], line: int) -> Flow:
        text = self._file(name)
        self._success = True
        if text is not None:
            flow = self.run(text, where=name)
            return Flow.GO_ON if flow is Flow.RETURN else flow
        if not _ACTIVATIONS.search(name) and name != "/dev/null":
            self.knowledge.unread.append(f"{self.shown(name)} (line {line})")
        return Flow.GO_ON

    def _file(self, name: str) -> str | None:
        """A file that the script wrote itself, or that lies beside it."""
        if name in self.state.files:
            return self.state.files[name]
        folder = self.knowledge.given.folder
        beside = re.sub(r"^.*[^\x20-\x7e]/", "", name)  # $(dirname $0)/env.sh
        if folder is None or not beside or not is_known(beside) or beside.startswith(("/", "~")):
            return None
        file = folder / Path(beside)
        try:
            small = file.is_file() and file.stat().st_size <= MAX_BYTES
            return without_marks(file.read_text(encoding="utf-8")) if small else None
        except (OSError, UnicodeDecodeError, ValueError):
            return None

    def _nested_script(self, words: Sequence[str], stdin: str, line: int) -> bool:
        """Walk what a command hands to another shell: `bash -c TEXT`, `srun sh run.sh`, `ssh host TEXT`, `bash <<EOF`."""
        runs = words[0].rsplit("/", 1)[-1] in _RUNNERS
        for at, word in enumerate(words if runs else words[:1]):
            if word.rsplit("/", 1)[-1] in _SHELLS:
                rest = words[at + 1 :]
                option = next((number for number, each in enumerate(rest) if re.fullmatch(r"-[a-z]*c", each)), None)
                if option is not None and option + 1 < len(rest):
                    return self._aside_run(rest[option + 1], rest[option + 3 :], words[:at])
                scripts = [number for number, each in enumerate(rest) if not each.startswith("-")]
                if not scripts and stdin:
                    return self._aside_run(stdin, (), words[:at])
                if scripts and (text := self._file(rest[scripts[0]])) is not None:
                    return self._aside_run(text, rest[scripts[0] + 1 :], words[:at], rest[scripts[0]])
                return False
            text = self._file(word) if word.endswith(".sh") or word in self.state.files else None
            if text is not None:
                return self._aside_run(text, words[at + 1 :], words[:at], word)
            if word.endswith(".py"):
                return False
        if runs and words[-1].count(" ") > 1 and re.search(r"\.py\b", words[-1]):
            return self._aside_run(words[-1], (), words[:-1])
        return False

    def _aside_run(self, text: str, arguments: Sequence[str], launcher: Sequence[str], where: str = "") -> bool:
        before = self._launcher
        self._launcher = (*before, *launcher)
        if self.prints:
            self.prints.append([])
        with self._aside():
            self.state.arguments = tuple(arguments)
            self.run(text, where=where)
        if self.prints:
            self.prints.pop()
            self.print(self.unknown("is the output of another shell"))
        self._launcher = before
        return True

    def _substitute(self, node: "Node") -> str:
        """What a command substitution prints, without its last line ends."""
        self.prints.append([])
        with self._aside():
            children = list(node.children[1:-1])
            if source(node.children[0]).strip() == "$(" and children and children[0].type == "file_redirect":
                name = self.expander.text(children[0].children[-1])
                self.print(self.state.files.get(name, self.unknown(f"is the content of {self.shown(name)}")))
            self._all(children)
        return "".join(self.prints.pop()).rstrip("\n")


def _is_named(value: Value | None) -> bool:
    return isinstance(value, Array) and value.named


def _body(item: "Node") -> list["Node"]:
    at = next(number for number, child in enumerate(item.children) if child.type == ")")
    return list(item.children[at + 1 :])


def _short(node: "Node") -> str:
    """A statement's first line, for messages."""
    first = source(node).strip().splitlines()[0] if source(node).strip() else ""
    return first if len(first) <= 50 else f"{first[:47]}..."


def _locals(body: "Node") -> list[str]:
    """Names that a function declares for itself."""
    found = []
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if node.type == "declaration_command" and source(node.children[0]) in {"local", "declare", "typeset"}:
            found += [source(part.children[0] if part.type == "variable_assignment" else part)
                      for part in node.children[1:] if part.type in {"variable_assignment", "variable_name"}]  # fmt: skip
        waiting.extend(node.children)
    return found
