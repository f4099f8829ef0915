"""Which rank of the pipeline each profile is of, and whether a rank of it is missing.

Stages that annotations name say it themselves: profiles stand in the order of their first stages, whatever ranks they
have in the job. `Forward 0` names no stage: profiles stand in the order of their ranks. A job of several pipelines has
profiles of more ranks than one pipeline; those of one stage each (ranks 0, 8, 16, 24 of 32) are one pipeline.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from hops.errors import TraceError
from hops.importers.kineto.annotations import OF_RANK
from hops.importers.kineto.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What the annotations of one profile name.

    Attributes:
        stages: of its actions, rising; OF_RANK alone where they name none.
        exchanged: stage and kind of communication, such as (2, "SEND_F").
    """

    profile: Profile
    stages: tuple[int, ...]
    exchanged: Collection[tuple[int, str]]


def in_order(path: Path, found: Sequence[Contents]) -> list[int]:
    """Indices of the profiles by rank of the pipeline, for two profiles or more.

    Raises TraceError if a rank is there twice or missing, or if nothing says which rank a profile is of.
    """
    ranks = [each.profile.rank for each in found]
    known = sorted(rank for rank in ranks if rank is not None)
    if len(set(known)) < len(known):
        raise TraceError(f"{path}: got profiles of ranks {known}, expected one each of 0 to {len(found) - 1}")
    if any(OF_RANK in each.stages for each in found):
        return _by_rank(path, found, known)
    order = sorted(range(len(found)), key=lambda place: found[place].stages)
    _check_stages(path, [found[place] for place in order])
    complete = _last_is_there(found)
    if complete is None:
        _check_ranks(path, found, known)
    if complete is False:
        raise TraceError(
            f"{path}: stage {_last_stage(found)} sends activations on, but no profile has stage "
            f"{_last_stage(found) + 1}: got {_named(known, found)}; add the file of the rank that is missing"
        )
    return order


def whole_pipeline(only: Contents) -> bool:
    """Whether the only profile is of a pipeline of one rank."""
    if only.profile.world_size == 1:
        return True
    sends = _last_is_there([only])
    takes = any(stage == min(only.stages) and kind == "RECV_F" for stage, kind in only.exchanged)
    gap = only.stages != tuple(range(len(only.stages)))
    unknown = OF_RANK in only.stages or sends is None
    return not gap and not takes and (only.profile.world_size is None if unknown else bool(sends))


def _by_rank(path: Path, found: Sequence[Contents], known: Sequence[int]) -> list[int]:
    if len(known) < len(found):
        file = next(each.profile.file for each in found if each.profile.rank is None)
        raise TraceError(
            f"{file}: neither distributedInfo nor the file's name says which rank it is of, and 'Forward 0' names no "
            "stage; expected a name such as rank0.json: rename the files by their ranks"
        )
    _check_ranks(path, found, known)
    return sorted(range(len(found)), key=lambda place: found[place].profile.rank or 0)


def _check_stages(path: Path, found: Sequence[Contents]) -> None:
    owner: dict[int, Path] = {}
    for each in found:
        for stage in each.stages:
            if stage in owner:
                raise TraceError(
                    f"{path}: stage {stage} is in {owner[stage].name} and in {each.profile.file.name}, expected each "
                    "stage on one rank: give the files of one copy of the pipeline"
                )
            owner[stage] = each.profile.file
    missing = next(stage for stage in range(len(owner) + 1) if stage not in owner)
    if missing < len(owner):
        raise TraceError(
            f"{path}: no profile has stage {missing}, but {owner[max(owner)].name} has stage {max(owner)}, expected "
            "stages from 0 on without a gap: add the file of the rank that is missing"
        )


def _last_stage(found: Sequence[Contents]) -> int:
    return max(stage for each in found for stage in each.stages)


def _last_is_there(found: Sequence[Contents]) -> bool | None:
    """Whether the last stage sends nothing on; None where communication is not annotated."""
    exchanged = {pair for each in found for pair in each.exchanged}
    if not exchanged:
        return None
    return not {(_last_stage(found), "SEND_F"), (_last_stage(found), "RECV_B")} & exchanged


def _check_ranks(path: Path, found: Sequence[Contents], known: Sequence[int]) -> None:
    """The ranks that are there are one pipeline, as far as their numbers and the size of the job say."""
    sizes = {each.profile.world_size for each in found} - {None}
    if len(known) < len(found) or any(tuple(known) in each.profile.groups for each in found):
        return
    count, step = len(known), known[1] - known[0]
    even = all(rank == known[0] + place * step for place, rank in enumerate(known))
    if even and known[0] < step and all(count * step == size for size in sizes):
        return
    of_job = f" of a job of {min(size for size in sizes if size is not None)}" if sizes else ""
    raise TraceError(
        f"{path}: got profiles of ranks {list(known)}{of_job}, expected those of all ranks of one pipeline, from the "
        "first to the last, evenly spaced: add the file of the rank that is missing"
    )


def _named(known: Sequence[int], found: Sequence[Contents]) -> str:
    sizes = {each.profile.world_size for each in found} - {None}
    job = f" of a job of {sizes.pop()}" if len(sizes) == 1 else ""
    return f"ranks {list(known)}{job}" if known else f"{len(found)} files"
