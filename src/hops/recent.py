"""What was made of the same frozen objects lately, so that runs that share parts share what is made of them."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Recent(Generic[R]):
    """Remembers the last `size` results by the objects that they were made of.

    Objects count as the same if they are the very same, not if they are equal: that takes no time to find out, and
    holds for arrays and for whatever has no hash. They must not change; they are kept alive with their result.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._made: OrderedDict[tuple[Hashable, ...], tuple[tuple[object, ...], R]] = OrderedDict()
        self._lock = Lock()

    def of(
        self,
        objects: tuple[object, ...],
        make: Callable[[], R],
        *,
        key: Hashable = None,
        keep: Callable[[R], bool] | None = None,
    ) -> R:
        """What `make()` gives, or gave before for the same objects and an equal key; `keep`: whether it is kept."""
        name = (key, *map(id, objects))
        found: Any = self._made.get(name)
        if found is not None:
            with self._lock:
                if name in self._made:
                    self._made.move_to_end(name)
            result: R = found[1]
            return result
        result = make()
        if keep is not None and not keep(result):
            return result
        with self._lock:
            self._made[name] = (objects, result)
            while len(self._made) > self._size:
                self._made.popitem(last=False)
        return result
