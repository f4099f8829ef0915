"""Published rates of what goes wrong in real clusters and jobs, each with its source; how long it lasts none says."""

from collections.abc import Mapping
from dataclasses import dataclass

from hops.distributions import Constant, Distribution, Exponential
from hops.faults.inventory import TargetKind
from hops.faults.models import FaultModel, Renewal, Share
from hops.faults.plan import FaultKind

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often the members of a family break.

    Attributes:
        what: for the names of sources.
        kind, family: what happens to what.
        mean_s: mean time between failures of one member, seconds.
    """

    what: str
    kind: FaultKind
    family: TargetKind
    mean_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stragglers:
    """What part of a family is slow for good, and by which factor."""

    what: str
    family: TargetKind
    share: float
    factor: float

    @property
    def kind(self) -> FaultKind:
        return FaultKind.SLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A published cluster.

    Attributes:
        title: for lists.
        source: where the figures stand, and how they were used.
        parts: what breaks how often.
    """

    title: str
    source: str
    parts: tuple[Rate | Stragglers, ...]

    @property
    def needs_repair(self) -> bool:
        """Whether a repair time has to be stated beside it."""
        return any(isinstance(part, Rate) for part in self.parts)


def model_of(part: Rate | Stragglers, repair: Distribution | None) -> tuple[FaultModel, Distribution | None]:
    """The fault model of a part, and the factor of its faults."""
    if isinstance(part, Stragglers):
        return Share(probability=part.share), Constant(value=part.factor)
    return Renewal(between=Exponential(mean=part.mean_s), repair=repair), None


def _mean_s(*, days: float, members: int, failures: float) -> float:
    """Mean time between failures of one member, if `members` had so many failures in so many days."""
    return days * DAY_S * members / failures


PRESETS: Mapping[str, Preset] = {
    "llama3": Preset(
        title="Llama 3 405B, 16,384 H100 in hosts of 8",
        source=(
            "The Llama 3 Herd of Models, arXiv 2407.21783, section 3.3.4, table 5: 419 unexpected interruptions in 54 "
            "days, 58.7% by GPUs, 10.1% by network (switch and cable 8.4%, NIC 1.7%; here per NIC, one per GPU); the "
            "remaining 31.2% (software, hosts, others) are taken as stops of hosts"
        ),
        parts=(
            Rate(
                what="gpu",
                kind=FaultKind.STOP,
                family=TargetKind.DEVICES,
                mean_s=_mean_s(days=54, members=16_384, failures=0.587 * 419),
            ),
            Rate(
                what="host",
                kind=FaultKind.STOP,
                family=TargetKind.HOSTS,
                mean_s=_mean_s(days=54, members=2_048, failures=0.312 * 419),
            ),
            Rate(
                what="network",
                kind=FaultKind.LINK_DOWN,
                family=TargetKind.NICS,
                mean_s=_mean_s(days=54, members=16_384, failures=0.101 * 419),
            ),
        ),
    ),
    "opt-175b": Preset(
        title="OPT-175B, 992 A100 in hosts of 8",
        source=(
            "OPT: Open Pre-trained Transformer Language Models, arXiv 2205.01068, section 2.5: hardware failures "
            "cycled over 100 hosts out in 2 months (61 days, 124 hosts)"
        ),
        parts=(
            Rate(
                what="host",
                kind=FaultKind.STOP,
                family=TargetKind.HOSTS,
                mean_s=_mean_s(days=61, members=124, failures=100),
            ),
        ),
    ),
    "bloom": Preset(
        title="BLOOM 176B, 384 A100",
        source=(
            "BLOOM: A 176B-Parameter Open-Access Multilingual Language Model, arXiv 2211.05100, section 3.4: on "
            "average 1 to 2 GPU failures a week (1.5 here) on 384 GPUs"
        ),
        parts=(
            Rate(
                what="gpu",
                kind=FaultKind.STOP,
                family=TargetKind.DEVICES,
                mean_s=_mean_s(days=7, members=384, failures=1.5),
            ),
        ),
    ),
    "llama3-planned": Preset(
        title="Llama 3 405B: maintenance and changes by operators",
        source=(
            "The Llama 3 Herd of Models, arXiv 2407.21783, section 3.3.4: 466 interruptions in 54 days, of which 47 "
            "were planned (firmware upgrades, changes of configuration or data by operators)"
        ),
        parts=(
            Rate(
                what="planned",
                kind=FaultKind.PLANNED_STOP,
                family=TargetKind.JOB,
                mean_s=_mean_s(days=54, members=1, failures=47),
            ),
        ),
    ),
    "opt-175b-manual": Preset(
        title="OPT-175B: restarts by hand",
        source=(
            "OPT: Open Pre-trained Transformer Language Models, arXiv 2205.01068, section 2.5: at least 35 manual "
            "restarts in 2 months (61 days), besides those that were automatic; each is taken as a job that stands "
            "still until a person acts"
        ),
        parts=(
            Rate(
                what="manual",
                kind=FaultKind.HANG,
                family=TargetKind.JOB,
                mean_s=_mean_s(days=61, members=1, failures=35),
            ),
        ),
    ),
    "palm-spikes": Preset(
        title="PaLM 540B: loss spikes",
        source=(
            "PaLM: Scaling Language Modeling with Pathways, arXiv 2204.02311, section 5.1: about 20 loss spikes in "
            "the training of the largest model, each answered by a restart from a checkpoint about 100 steps before "
            "it; over 1,536 hours (1,200 on 6,144 and 336 on 3,072 chips, as its appendix on compute says)"
        ),
        parts=(
            Rate(
                what="spike",
                kind=FaultKind.ROLL_BACK,
                family=TargetKind.JOB,
                mean_s=_mean_s(days=64, members=1, failures=20),
            ),
        ),
    ),
    "megascale-stragglers": Preset(
        title="MegaScale's computational stragglers",
        source=(
            "MegaScale, arXiv 2402.15627, on computational stragglers among the problems discovered: about 0.5% of the "
            "machines took about 10% longer for the same forward computation"
        ),
        parts=(Stragglers(what="straggler", family=TargetKind.HOSTS, share=0.005, factor=1.10),),
    ),
}
