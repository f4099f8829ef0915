"""Program files: in our own text form, or as PyTorch's schedule CSV if the name ends in `.csv`."""

from pathlib import Path

from hops.errors import ProgramError
from hops.program.lowering import check
from hops.program.program import Program
from hops.program.pytorch_csv import load_csv


def load_program(path: Path) -> Program:
    """Read and check a program file. Raises ProgramError saying file and line."""
    program = load_csv(path) if path.suffix.lower() == ".csv" else Program.load(path)
    try:
        check(program)
    except ProgramError as error:
        raise type(error)(f"{path}: {error}") from error
    return program
