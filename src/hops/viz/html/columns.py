"""How arrays travel inside a page: whole numbers in the smallest type that holds them, packed together, as text."""

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

_LEVEL: Final = 6
_TYPES: Final = ("u1", "i1", "u2", "i2", "u4", "i4", "f8")  # of JavaScript's typed arrays, the smallest first


@dataclass(slots=True)
class ColumnStore:
    """Collects arrays for one page. `add` gives the place that the page's script reads an array from."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, values: NDArray[np.integer], *, steps: bool = False) -> dict[str, object]:
        """Put whole numbers (below 2^53) in; with `steps`, as differences to the one before, which pack better."""
        whole = np.asarray(values, dtype=np.int64)
        stored = np.diff(whole, prepend=0) if steps else whole
        low, high = int(stored.min(initial=0)), int(stored.max(initial=0))
        kind = next(kind for kind in _TYPES if kind == "f8" or _holds(kind, low, high))
        padding = -self.size % 8
        raw = bytes(padding) + stored.astype(f"<{kind}").tobytes()
        place = {"at": self.size + padding, "length": len(stored), "type": kind, "steps": steps}
        self.parts.append(raw)
        self.size += len(raw)
        return place

    def add_all(self, columns: Mapping[str, NDArray[np.integer]], *, steps: tuple[str, ...] = ()) -> dict[str, object]:
        """Several arrays by name."""
        return {name: self.add(values, steps=name in steps) for name, values in columns.items()}

    def text(self) -> str:
        """All of it: deflated, in base64."""
        return base64.b64encode(zlib.compress(b"".join(self.parts), _LEVEL)).decode("ascii")


def _holds(kind: str, low: int, high: int) -> bool:
    limits = np.iinfo(kind)
    return int(limits.min) <= low and high <= int(limits.max)
