"""What is found in a script: its commands, as the shell would hand them over, and what its reader has to know."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hops.importers.shell.values import Unknowns


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that is not the shell's own.

    Attributes:
        words: name and arguments; unknown parts are marks of the script's `unknowns`.
        bare: of each word, whether it came from an unquoted expansion alone, so that it may be no word, or several.
        launcher: the words around a nested shell that runs it, such as `srun -N 2`.
        where: file and line.
        only_if: tests that the reader could not decide, on which it depends.
        settings: variables set for this command alone.
    """

    words: tuple[str, ...]
    bare: tuple[bool, ...]
    launcher: tuple[str, ...]
    where: str
    only_if: tuple[str, ...]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the caller of a script hands to it.

    Attributes:
        values: variables by name, and arguments by number ("1").
        folder: where files beside the script are looked for; None: nowhere.
    """

    values: Mapping[str, str]
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script that was read.

    Attributes:
        unread: sourced files that were not there, each as "env.sh (line 3)".
        unused: names of given values that nothing asked for, each with the reason.
        variables: what is known at the end of it, such as SLURM_NNODES.
    """

    commands: tuple[Command, ...]
    unknowns: Unknowns
    unread: tuple[str, ...]
    unused: Mapping[str, str]
    variables: Mapping[str, str]
