"""Which engine carries a run out."""

from hops.compiled import available
from hops.engine.settings import Engine, RunSettings
from hops.errors import UsageError
from hops.program.program import Program

WORTH_LOADING = 50_000  # actions: in the reference half a second, about what loading the compiled engine takes
_simulated = [0]  # actions that the reference has simulated in this process


def is_compiled_worth_it(program: Program, settings: RunSettings) -> bool:
    """Whether the compiled engine runs a program. Auto: once the reference has taken as long as loading it takes.

    Raises UsageError if it is asked for and not there.
    """
    if settings.engine is Engine.REFERENCE:
        return False
    if settings.engine is Engine.COMPILED and not available():
        raise UsageError("the compiled engine needs numba, which is not installed: install numba, or use engine: auto")
    if settings.engine is Engine.COMPILED:
        return True
    _simulated[0] += settings.iterations * program.num_actions
    return _simulated[0] >= WORTH_LOADING and available()


def will_load(program: Program, settings: RunSettings) -> bool:
    """Whether a program alone is worth the compiled engine, whatever was simulated before."""
    large = settings.iterations * program.num_actions >= WORTH_LOADING
    return (settings.engine is Engine.COMPILED or (settings.engine is Engine.AUTO and large)) and available()


def check_policy(settings: RunSettings) -> None:
    """Raises UsageError if the compiled engine is asked for to run a policy."""
    if settings.engine is Engine.COMPILED:
        raise UsageError(
            "the compiled engine runs programs only, and this schedule decides while it runs: use engine: auto"
        )
