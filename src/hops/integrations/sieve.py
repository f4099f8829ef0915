"""What happens to a fault in a file: it ends the reading, or, if the reader is lenient, is dropped and counted."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from hops.errors import TraceError


class Sieve:
    """Takes faults. Reasons are the few words under which dropped events are counted."""

    def __init__(self, *, lenient: bool) -> None:
        self._lenient = lenient
        self._dropped: Counter[str] = Counter()

    def drop(self, reason: str, message: str, *, events: int = 1) -> None:
        """Drop `events` and count them, or raise TraceError with the message."""
        if not self._lenient:
            raise TraceError(f"{message} (--lenient drops what is wrong and counts it)")
        self._dropped[reason] += events

    @property
    def dropped(self) -> Mapping[str, int]:
        """Events dropped, by reason, most first."""
        return MappingProxyType(dict(self._dropped.most_common()))
