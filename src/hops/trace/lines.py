r"""Columns as lines of text, made by NumPy: a third of the time that a Python loop over the rows takes.

A part of a line is a table of bytes, shape (rows, width); a zero byte is no character. Parts stand side by side in one
block, and dropping its zeros leaves the text:

    lines(numbers(np.array([7, 12])), b":", names(np.array([0, 1]), ["F", "B"]))  # b"7:F\n12:B\n"
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

NS_PER_US: Final = 1000

Part = NDArray[np.uint8] | bytes
ROWS_AT_ONCE: Final = 8_192  # a block of them, some 3 MB, stays in the cache


def lines(*parts: Part, end: bytes = b"\n") -> bytes:
    """The text of all rows; bytes are the same in each. At least one part is a table; all tables have equal length."""
    parts = (*parts, end)
    rows = next(len(part) for part in parts if not isinstance(part, bytes))
    widths = [len(part) if isinstance(part, bytes) else part.shape[1] for part in parts]
    block = np.empty((rows, sum(widths)), dtype=np.uint8)
    at = 0
    for part, width in zip(parts, widths, strict=True):
        block[:, at : at + width] = np.frombuffer(part, dtype=np.uint8) if isinstance(part, bytes) else part
        at += width
    return block.tobytes().translate(None, b"\0")


def numbers(values: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Whole numbers, shape (rows,), in decimal."""
    size = np.abs(values.astype(np.int64))
    width = len(str(int(size.max(initial=0))))
    digits = _digits(size, width)
    digits[:, :-1] *= size[:, None] >= 10 ** np.arange(width - 1, 0, -1)  # no leading zeros
    if not np.any(values < 0):
        return digits
    return np.concatenate([only(values < 0, b"-"), digits], axis=1)


def microseconds(values_ns: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Nanoseconds from 0 on, shape (rows,), in microseconds with all three decimals: exact at any length."""
    whole, rest = np.divmod(values_ns, NS_PER_US)
    point = np.full((len(values_ns), 1), ord("."), dtype=np.uint8)
    return np.concatenate([numbers(whole), point, _digits(rest, 3)], axis=1)


def names(index: NDArray[np.integer], texts: Sequence[str]) -> NDArray[np.uint8]:
    """One of the texts for each row, by its number, shape (rows,)."""
    table = np.array([text.encode() for text in texts])
    characters: NDArray[np.uint8] = table.view(np.uint8).reshape(len(texts), table.itemsize)
    return np.asarray(characters[index])


def only(mask: NDArray[np.bool_], part: Part) -> NDArray[np.uint8]:
    """The part where the mask, shape (rows,), holds, and nothing elsewhere."""
    table = np.frombuffer(part, dtype=np.uint8) if isinstance(part, bytes) else part
    return mask[:, None] * table


# The characters of 0000 to 9999, each as one 32-bit word: four digits for one division
_FOUR_DIGITS: Final = np.frombuffer("".join(f"{n:04}" for n in range(10_000)).encode(), dtype=np.uint32)


def _digits(values: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    """The last `width` decimal digits of numbers from 0 on, leading zeros included; shape (rows, width)."""
    words = -(-width // 4)
    digits = np.empty((len(values), words), dtype=np.uint32)
    for place in range(words - 1, 0, -1):
        values, rest = np.divmod(values, 10_000)
        digits[:, place] = _FOUR_DIGITS[rest]
    digits[:, 0] = _FOUR_DIGITS[values % 10_000]
    return digits.view(np.uint8)[:, 4 * words - width :]
