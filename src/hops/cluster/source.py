"""A source says which document a number is from, and of when."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A document, where it is found, and its date (year and month, `2024-09`; empty if unknown)."""

    document: str
    url: str = ""
    date: str = ""


STATED = Source(document="stated by the user")
