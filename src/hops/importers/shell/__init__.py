"""Shell scripts as they stand: which commands a script would run, found without running any of it."""

from hops.importers.shell.commands import Command, Given, Script
from hops.importers.shell.walk import read_script

__all__ = ["Command", "Given", "Script", "read_script"]
