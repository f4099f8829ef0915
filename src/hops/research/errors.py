"""What can go wrong in the calibration loop, for readers: a message with the fix, and an exit code."""

from hops.errors import HopsError


class ResearchError(HopsError):
    """The loop cannot go on: the folder, the data, git or a command is not as it must be."""


class GateError(HopsError):
    """The answer is no: a candidate does not pass the gates."""

    exit_code = 1
