"""A script is walked, never run: assignments are followed, tests decided where they can be, commands written down."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hops.errors import UsageError
from hops.importers.shell import assignments, branches, calls, loops, redirects
from hops.importers.shell.commands import Command, Given, Script
from hops.importers.shell.conditions import Truth
from hops.importers.shell.expand import Expander
from hops.importers.shell.flow import MAX_NESTED, Flow, Handler
from hops.importers.shell.grammar import line_of, parse, source
from hops.importers.shell.slurm import slurm_variables
from hops.importers.shell.state import Knowledge, ShellState
from hops.importers.shell.values import Unknown, Value, without_marks

if TYPE_CHECKING:
    from tree_sitter import Node


def read_script(text: str, *, where: str, given: Given) -> Script:
    """The commands of a script, as the shell would hand them over.

    Raises UsageError with file, line and column where it is no shell script or cannot be followed.
    """
    text = without_marks(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    knowledge = Knowledge(given)
    state = ShellState(arguments=_arguments(knowledge))
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


def _why_unused(name: str, state: ShellState) -> str:
    if name in state.lines:
        return f"the script sets {name} itself (line {state.lines[name]})"
    return f"the script does not ask for {name}"


class Walk:
    """One pass through a script and what it calls.

    Attributes:
        commands: found so far.
        expander: expands words in the present state.
        prints: what open substitutions and pipes have caught.
        stdin: what is handed to the present statement as standard input.
        line: of the present command.
        tests: undecided ones that the present case depends on.
        launcher: words around the shell that is walked.
        left: cases that left a loop or function while others went on.
        success: of the last statement; None: only the run knows.
        nested: scripts and functions that are open.
    """

    def __init__(self, knowledge: Knowledge, state: ShellState, where: str) -> None:
        self.knowledge = knowledge
        self.commands: list[Command] = []
        self.expander = Expander(knowledge, where, self._substitute)
        self.state = state
        self.prints: list[list[str]] = []
        self.stdin = ""
        self.line = 0
        self.tests: list[str] = []
        self.launcher: tuple[str, ...] = ()
        self.left: list[tuple[Flow, ShellState]] = []
        self.success: Truth = True
        self.nested = 0

    @property
    def state(self) -> ShellState:
        return self.expander.state

    @state.setter
    def state(self, state: ShellState) -> None:
        self.expander.state = state

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

    def run(self, text: str, where: str = "") -> Flow:
        """Walk a text in the present state."""
        self.nested += 1
        if self.nested > MAX_NESTED:
            raise UsageError(f"{self.expander.where}: scripts call each other more than {MAX_NESTED} deep")
        before = self.expander.where
        self.expander.where = where or before
        try:
            return self.all(parse(text, where=self.expander.where).children)
        finally:
            self.expander.where = before
            self.nested -= 1

    def all(self, nodes: Sequence["Node"]) -> Flow:
        for node in nodes:
            flow = self.statement(node)
            if flow is not Flow.GO_ON:
                return flow
        return Flow.GO_ON

    def statement(self, node: "Node", stdin: str = "") -> Flow:
        handler = _HANDLERS.get(node.type)
        if handler is None:  # a mark of the grammar, or a comment
            return Flow.GO_ON
        self.knowledge.step(f"{self.expander.where}:{line_of(node)}")
        before, self.stdin = self.stdin, stdin
        flow = handler(self, node)
        self.stdin = before
        return flow

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What happens inside changes no variable outside."""
        before = self.state
        left = len(self.left)
        self.state = before.copy()
        try:
            yield
        finally:
            before.files.update(self.state.files)
            self.state = before
            del self.left[left:]

    def cases(self, test: str, ways: Sequence[Callable[[], Flow]]) -> Flow:
        """Walk every case of an undecided test from the present state, and go on with what all have in common."""
        start = self.state
        ends: list[tuple[Flow, ShellState]] = []
        for way in ways:
            self.state = start.copy()
            self.tests.append(test)
            ends.append((way(), self.state))
            self.tests.pop()
        for wanted in (Flow.GO_ON, Flow.BREAK, Flow.CONTINUE, Flow.RETURN):
            states = [state for flow, state in ends if flow is wanted]
            if states:
                self.left += [(flow, state) for flow, state in ends if flow not in {wanted, Flow.EXIT}]
                self.state = self.knowledge.merge(states, test)
                self.success = None
                return wanted
        return Flow.EXIT

    def rejoin(self, before: int, flows: set[Flow], test: str, *, alive: bool = True) -> bool:
        """Bring back the cases that left this loop or function; `alive`: the present state goes on, too."""
        back = [state for flow, state in self.left[before:] if flow in flows]
        self.left[before:] = [each for each in self.left[before:] if each[0] not in flows]
        if back:
            self.state = self.knowledge.merge([self.state, *back] if alive else back, test)
        return bool(back)

    def _substitute(self, node: "Node") -> str:
        """What a command substitution prints, without its last line ends."""
        self.prints.append([])
        with self.aside():
            children = list(node.children[1:-1])
            if source(node.children[0]).strip() == "$(" and children and children[0].type == "file_redirect":
                name = self.expander.text(children[0].children[-1])
                self.print(self.state.files.get(name, self.unknown(f"is the content of {self.shown(name)}")))
            self.all(children)
        return "".join(self.prints.pop()).rstrip("\n")


def _group(walk: Walk, node: "Node") -> Flow:
    return walk.all(node.children)


_HANDLERS: Mapping[str, Handler] = {
    "do_group": _group,
    **assignments.HANDLERS,
    **branches.HANDLERS,
    **loops.HANDLERS,
    **redirects.HANDLERS,
    **calls.HANDLERS,
}
