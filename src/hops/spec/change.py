"""A spec with other values: only sections that change are read again, and the same change only once."""

import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from hops.decode.document import Complaint, Document, Path, Position
from hops.decode.quantities import Section
from hops.recent import Recent
from hops.spec.choices import left_open
from hops.spec.hardware import HardwareSection
from hops.spec.load import WrongOverrideError, checked, path_of, put, surroundings, validate
from hops.spec.spec import FILLED, Spec, resolve

SECTIONS_KEPT = 1024
_PLACE = Position(text="", order=(1, 0))


def changed(spec: Spec, changes: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> Spec:
    """The spec with other values at some paths; see `Spec.with_`."""
    quick = _by_section(spec, changes, str(folder))
    return _anew(spec, changes, folder) if quick is None else quick


def _anew(spec: Spec, changes: Mapping[str, Any], folder: str | os.PathLike[str]) -> Spec:
    """By writing the spec out and reading it again. Raises SpecError with everything that is wrong."""
    document = Document.of(spec.model_dump(mode="json", exclude_unset=True))
    for key, value in changes.items():
        try:
            document = put(document, path_of(key), Document.of(value), _PLACE)
        except WrongOverrideError as error:
            wrong = Complaint(path=(), what=f"{key}: {error}", place=_PLACE)
            document = replace(document, complaints=(*document.complaints, wrong))
    return checked(document, folder, left_open(document))


def _by_section(spec: Spec, changes: Mapping[str, Any], folder: str) -> Spec | None:
    """The same, section by section; None if anything is wrong, which `_anew` has words for.

    A section that neither changes nor gets values from others when a spec is read stays the very same, and so does one
    that was changed in the same way before: what is made of sections (see Recent) serves all specs that share them.
    """
    if spec.hardware.catalog:  # files, which may have changed
        return None
    of_section: defaultdict[str, list[tuple[Path, Any]]] = defaultdict(list)
    for key, value in changes.items():
        try:
            path = path_of(key)
        except WrongOverrideError:
            return None
        if path[0] not in Spec.model_fields:
            return None
        of_section[str(path[0])].append((path, value))
    named, data = frozenset(of_section), dict[str, Any]()
    for name in Spec.model_fields:
        if name in named or name in FILLED:
            section = _section(spec, name, tuple(of_section[name]), folder)
            if section is None or (isinstance(section, HardwareSection) and section.catalog):
                return None
            data[name] = section
        else:
            data[name] = getattr(spec, name)
    found, wrong = validate(Document(data=data), folder)
    if wrong or found is None:
        return None
    found.model_fields_set.intersection_update({*spec.model_fields_set, *named})
    return resolve(found)


_SECTIONS: Recent[Section | None] = Recent(SECTIONS_KEPT)


def _section(spec: Spec, name: str, changes: tuple[tuple[Path, Any], ...], folder: str) -> Section | None:
    """A section with changes, as it is before others give it values; None if something is wrong."""
    section = getattr(spec, name)
    return _SECTIONS.of((section,), lambda: _read(section, name, changes, folder), key=(name, folder, repr(changes)))


def _read(section: Section, name: str, changes: tuple[tuple[Path, Any], ...], folder: str) -> Section | None:
    document = Document.of({name: section.model_dump(mode="json", exclude_unset=True)})
    try:
        for path, value in changes:
            document = put(document, path, Document.of(value), _PLACE)
    except WrongOverrideError:
        return None
    if document.complaints or any(left_open(document)):
        return None
    kind: Any = Spec.model_fields[name].annotation
    try:
        read: Section = kind.model_validate(document.data[name], context=surroundings(folder))
    except ValidationError:
        return None
    return read
