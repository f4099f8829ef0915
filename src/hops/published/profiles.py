"""Which profile a published row is predicted with: the one of its framework, if one comes with HOPS."""

from collections.abc import Callable
from pathlib import Path

from hops.cost.kernel_profile import KernelProfile, read_any_profile
from hops.cost.profile import HardwareProfile, shipped_profile, shipped_profiles
from hops.published.job import PublishedJob

NONE = "none"  # the catalog alone
GENERAL = "published"
PREFIX = "published-"

ProfileOf = Callable[[PublishedJob], str | None]


def profile_name(framework: str) -> str | None:
    """The shipped profile of a framework: of its era, else of any, else the general one, else none."""
    names, parts = shipped_profiles(), framework.split("-")
    tried = [PREFIX + "-".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in (*tried, GENERAL) if name in names), None)


def chosen(profile: str | None) -> ProfileOf:
    """Which profile each job gets: the one stated (`none`: the catalog alone), or its framework's.

    Raises CatalogError for a profile that cannot be read.
    """
    if profile == NONE:
        return lambda _: None
    if profile is not None:
        _file(profile)
        return lambda _: profile
    return lambda job: profile_name(job.software.full_name)


def knows(profile: str | None, device: str) -> bool:
    """Whether a profile has figures of a device."""
    if profile is None:
        return False
    return device in _file(profile).devices


def _file(profile: str) -> HardwareProfile | KernelProfile:
    return read_any_profile(shipped_profile(profile) if profile in shipped_profiles() else Path(profile))
