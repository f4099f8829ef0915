"""The reason why a published row is no spec."""

from hops.errors import HopsError


class RowRefusedError(HopsError):
    """A row that does not say enough, or says what no spec can say."""
