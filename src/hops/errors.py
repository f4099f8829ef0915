"""Everything a user can get wrong is a HopsError: one message, no traceback, an exit code."""


class HopsError(Exception):
    """Base of all errors that are shown to a user as a message.

    Messages say what is wrong, what was got, what was expected, where, and the fix.
    """

    exit_code = 2


class UsageError(HopsError):
    """A command or a call was used wrongly."""


class UnitError(HopsError):
    """A quantity lacks its unit, or has one of the wrong kind."""


class SpecError(HopsError):
    """A spec file is wrong; the message lists every problem with file, line, column and path."""


class CatalogError(HopsError):
    """A catalog file is wrong, or a name is not in any catalog."""


class ProgramError(HopsError):
    """A program is incomplete, out of order or deadlocks; the message shows the grid with a mark."""


class DeadlockError(ProgramError):
    """A program is complete and in order, and yet ranks would wait for each other for ever."""

    exit_code = 1


class TraceError(HopsError):
    """A trace file is wrong; the message says file and line."""


class DoesNotFitError(HopsError):
    """A plan needs more memory than a device has (found before it runs)."""

    exit_code = 1


class StalledError(HopsError):
    """A run ended while ranks still waited; the message names, rank by rank, for what."""

    exit_code = 1


class JobFailedError(HopsError):
    """A fault ended the run, such as a link that was down for longer than the transport waits."""

    exit_code = 1


class RehearsalError(HopsError):
    """A rehearsal did not come to its end: the message says which rank failed, and what each waited for."""

    exit_code = 1


class ResearchError(HopsError):
    """The loop cannot go on: the folder, the data, git or a command is not as it must be."""


class GateError(HopsError):
    """The answer is no: a candidate does not pass the gates."""

    exit_code = 1
