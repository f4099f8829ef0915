"""Does two independent jobs at once: pictures take longer than the simulation they show."""

import os
import sys
import warnings
from collections.abc import Callable

from hops.errors import HopsError, UsageError

# macOS's frameworks do not survive a fork, Windows has none
CAN_FORK = hasattr(os, "fork") and sys.platform != "darwin"


def together(first: Callable[[], None], second: Callable[[], None]) -> None:
    """Run `first` here and `second` in a forked process; one after the other where the system cannot fork.

    A HopsError of either is raised, that of `first` before that of `second`; both have ended then.
    """
    if not CAN_FORK:
        first()
        second()
        return
    reader, writer = os.pipe()
    sys.stdout.flush()
    with warnings.catch_warnings():  # Python 3.12 warns of threads, and NumPy's idle ones know how to fork
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _finish(second, writer)
    os.close(writer)
    try:
        first()
    finally:
        with os.fdopen(reader, encoding="utf-8") as pipe:
            message = pipe.read()
        _, status = os.waitpid(child, 0)
    if status:
        raise UsageError(message or "a process that draws pictures was killed; draw one picture at a time")


def _finish(job: Callable[[], None], writer: int) -> None:
    """Do the job and end this process; what went wrong goes into the pipe."""
    code = 1
    try:
        job()
        code = 0
    except HopsError as error:
        os.write(writer, str(error).encode())
    finally:
        if code and sys.exc_info()[0] is not None:
            sys.excepthook(*sys.exc_info())
        os._exit(code)  # without what the parent does at its end
