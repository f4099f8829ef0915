"""Whole-number arithmetic as a shell has it in `$((...))`, after its `$` are expanded."""

import operator
import re
from collections.abc import Callable, Mapping

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|\d+(?:#\w+)?)|(?P<name>[A-Za-z_]\w*(?:\[[^\]]*\])?)"
    r"|(?P<sign><<=|>>=|\*\*|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%<>!~&|^?:=(),]))"
)
# Loosest first; each row binds from the left. Comma, assignment and ?: stand above them.
_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
           ("*", "/", "%"))  # fmt: skip
_WIDEST = 1 << 63
_MAX_DEPTH = 60


class ArithmeticFault(Exception):  # noqa: N818 - never leaves the package: its reader turns it into a UsageError
    """What is wrong, as a shell would say it."""


class Arithmetic:
    """One expression.

    Args:
        text: without `$`.
        get: the text of a variable, "" where it is not set.
        put: called for `X = 3`, `X += 1` and `X++`.
    """

    def __init__(self, text: str, get: Callable[[str], str], put: Callable[[str, str], None], depth: int = 0) -> None:
        self._get, self._put, self._depth = get, put, depth
        self._tokens = _tokens(text)
        self._at = 0

    def value(self) -> int:
        """Raises ArithmeticFault."""
        if not self._tokens:
            return 0
        found = self._comma()
        if self._at < len(self._tokens):
            raise ArithmeticFault(f"unexpected {self._tokens[self._at]!r}")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str:
        if self._peek() in wanted:
            self._at += 1
            return self._tokens[self._at - 1]
        return ""

    def _comma(self) -> int:
        found = self._assignment()
        while self._take(","):
            found = self._assignment()
        return found

    def _assignment(self) -> int:
        name, sign = self._peek(), self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else ""
        if name and (name[0].isalpha() or name[0] == "_") and sign[-1:] == "=" and sign not in {"==", "!=", "<=", ">="}:
            self._at += 2
            right = self._assignment()
            found = right if sign == "=" else _apply(sign[:-1], self._number(name), right)
            self._put(name, str(found))
            return found
        return self._ternary()

    def _ternary(self) -> int:
        condition = self._binary(0)
        if not self._take("?"):
            return condition
        first = self._assignment()
        if not self._take(":"):
            raise ArithmeticFault("? without :")
        second = self._assignment()
        return first if condition else second

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._power()
        left = self._binary(level + 1)
        while sign := self._take(*_LEVELS[level]):
            left = _apply(sign, left, self._binary(level + 1))
        return left

    def _power(self) -> int:
        base = self._unary()
        return _apply("**", base, self._power()) if self._take("**") else base

    def _unary(self) -> int:
        sign = self._take("-", "+", "!", "~", "++", "--")
        if not sign:
            return self._primary()
        if sign in {"++", "--"}:
            name = self._peek()
            self._at += 1
            return self._step(name, sign)
        self._deeper()
        value = self._unary()
        return {"-": -value, "+": value, "!": int(not value), "~": ~value}[sign]

    def _primary(self) -> int:
        if self._take("("):
            self._deeper()
            found = self._comma()
            if not self._take(")"):
                raise ArithmeticFault("a parenthesis is not closed")
            return found
        token = self._peek()
        self._at += 1
        if token[:1].isdigit():
            return _literal(token)
        if not token or not (token[0].isalpha() or token[0] == "_"):
            raise ArithmeticFault(f"unexpected {token!r}" if token else "an operand is missing")
        value = self._number(token)
        if sign := self._take("++", "--"):
            self._step(token, sign)
        return value

    def _step(self, name: str, sign: str) -> int:
        found = self._number(name) + (1 if sign == "++" else -1)
        self._put(name, str(found))
        return found

    def _number(self, name: str) -> int:
        """A variable's text is an expression itself."""
        text = self._get(name).strip()
        if re.fullmatch(r"-?\d{1,18}", text):
            return int(text) if not text.lstrip("-").startswith("0") else Arithmetic(text, self._get, self._put).value()
        if self._depth > _MAX_DEPTH:
            raise ArithmeticFault(f"{name} stands for itself")
        return Arithmetic(text, self._get, self._put, self._depth + 1).value()

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ArithmeticFault("nested too deep")


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ArithmeticFault(f"unexpected {text[at:].strip()[:10]!r}")
        found.append(match[0].strip())
        at = match.end()
    return found


def _literal(token: str) -> int:
    try:
        if "#" in token:
            base, _, digits = token.partition("#")
            return int(digits, int(base))
        if token[:2] in {"0x", "0X"}:
            return int(token, 16)
        return int(token, 8 if token[0] == "0" else 10) if len(token) < 20 else _too_large()
    except ValueError:
        raise ArithmeticFault(f"{token!r} is no number") from None


def _too_large() -> int:
    raise ArithmeticFault("a number of more than 63 bits")


def _apply(sign: str, left: int, right: int) -> int:
    """A shell divides towards zero. Raises ArithmeticFault for what it refuses, and beyond 63 bits."""
    if sign in {"/", "%"} and right == 0:
        raise ArithmeticFault("division by zero")
    if sign in {"<<", ">>", "**"} and not 0 <= right < 64:
        raise ArithmeticFault(f"{sign} {right}")
    found = int(_SIGNS[sign](left, right))
    if abs(found) >= _WIDEST:
        raise ArithmeticFault("a number of more than 63 bits")
    return found


def _quotient(left: int, right: int) -> int:
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


_SIGNS: Mapping[str, Callable[[int, int], int]] = {
    "||": lambda left, right: int(bool(left or right)),
    "&&": lambda left, right: int(bool(left and right)),
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda left, right: left - _quotient(left, right) * right,
    "**": operator.pow,
}
