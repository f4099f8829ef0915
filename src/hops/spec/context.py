"""What a spec is read in: the folder of the files that it names, and the catalog that its names are from."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from hops.decode.quantities import Name, problem
from hops.errors import CatalogError
from hops.hardware.catalog import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a document is read in: the folder of its files, and the catalog its names are from (None: not checked)."""

    folder: str
    catalog: Catalog | None = None


def from_folder(path: str, info: ValidationInfo) -> str:
    """The absolute path of a file that a spec names; relative ones are taken from the spec's own folder."""
    folder = info.context.folder if isinstance(info.context, Surroundings) else "."
    return os.path.normpath(Path(folder).absolute() / path)


InputFile = Annotated[Name, AfterValidator(from_folder)]


def known(find: Callable[[Catalog, str], object]) -> AfterValidator:
    """Check that `find` finds the name in the catalog, if there is one."""

    def check(name: str, info: ValidationInfo) -> str:
        if isinstance(info.context, Surroundings) and info.context.catalog is not None:
            try:
                find(info.context.catalog, name)
            except CatalogError as error:
                raise problem(str(error)) from None
        return name

    return AfterValidator(check)
