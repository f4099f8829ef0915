"""On which hosts and devices a launch runs: by --hosts, by a list of devices, or as its launcher says."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hops.errors import UsageError
from hops.importers.shell.slurm import gpus_of, slurm_options
from hops.importers.shell.values import Unknowns

_MOST_DEVICES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The device of one rank. `instance_type`: the cloud's name of its host's kind, "" if unknown."""

    device: str
    id: str
    host: str
    instance_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a launcher starts.

    Attributes:
        hosts, per_host: 0 where it does not say.
        device: type of device that a Slurm header asks for, "" if none.
        why: why a number is not known, "" if it is.
    """

    hosts: int = 0
    per_host: int = 0
    device: str = ""
    why: str = ""

    @property
    def total(self) -> int:
        return self.hosts * self.per_host


def read_launcher(
    words: Sequence[str], around: Sequence[str], variables: dict[str, str], unknowns: Unknowns
) -> Started:
    """Numbers of hosts and processes from torchrun, srun, mpirun, deepspeed, and Slurm's variables.

    Args:
        words: of the command, up to the training program.
        around: words of what runs that command, such as srun.
        variables: of the script.
        unknowns: of the script.
    """
    device = variables.get("SLURM_GPU_TYPE", "").lower()
    names = [word.rsplit("/", 1)[-1] for word in words]
    options = {**_options(around), **_options(words)}
    slurm = {**slurm_options(list(around)), **slurm_options(list(words))}
    gpus = gpus_of(slurm.get("gpus-per-node", slurm.get("gres", "")))
    if gpus is not None and gpus[0]:
        device = gpus[0].lower()
    why: list[str] = []

    def number(*texts: str | None) -> int:
        """The first that is given."""
        text = next((each for each in texts if each), "")
        if re.fullmatch(r"\d{1,6}", text):
            return int(text)
        if text:
            cause = unknowns.among(text)
            fix = f"{cause[0].why}; add --set {cause[0].name}=VALUE" if cause and cause[0].name else "is no number"
            why.append(f"{unknowns.printed(text)} {fix}")
        return 0

    nodes = slurm.get("nodes", variables.get("SLURM_NNODES", "")).split("-")[-1]
    per_node = variables.get("SLURM_GPUS_ON_NODE", "") or (str(gpus[1]) if gpus else "")
    if "torchrun" in names or any("torch.distributed" in word for word in words):
        every = options.get("nproc-per-node", "1")
        hosts = number(options.get("nnodes", "1"))
        each = number(per_node if every in {"gpu", "auto"} and per_node else every)
    elif "accelerate" in names:
        hosts, total = number(options.get("num-machines", "1")), number(options.get("num-processes"))
        each = total // hosts if hosts and total % hosts == 0 else 0
    elif "deepspeed" in names:
        hosts, each = number(options.get("num-nodes", "1")), number(options.get("num-gpus"), per_node)
    elif any(name in {"mpirun", "mpiexec", "srun"} for name in [*names, *(word.rsplit("/", 1)[-1] for word in around)]):
        hosts = number(nodes)
        tasks = _after(words, {"-np", "-n", "--ntasks"}) or _after(around, {"-np", "-n", "--ntasks"})
        each = number(slurm.get("ntasks-per-node"), variables.get("SLURM_NTASKS_PER_NODE"))
        total = number(tasks or slurm.get("ntasks") or variables.get("SLURM_NTASKS"))
        if not each and hosts and total and total % hosts == 0:
            each = total // hosts
        if not hosts and not why:
            why.append("on how many hosts is not said")
    else:
        return Started(device=device)
    return Started(hosts=hosts, per_host=each, device=device, why="; ".join(why))


def _options(words: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            found[name.replace("_", "-")] = value if equals else words[at + 1] if at + 1 < len(words) else ""
    return found


def _after(words: Sequence[str], options: set[str]) -> str:
    return next((words[at + 1] for at, word in enumerate(words[:-1]) if word in options), "")


def stated_hosts(text: str) -> tuple[Placed, ...]:
    """Every device of `2x8xh100,1x4xl4`: hosts x devices each x type."""
    groups: list[list[str]] = []
    total = 0
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,6})x(\d{1,6})x([A-Za-z][\w.-]*)", part.strip())
        if match is None or not int(match[1]) or not int(match[2]):
            raise UsageError(f"--hosts {text}: got {part.strip()!r}, expected hosts x devices x type, such as 2x8xh100")
        total += int(match[1]) * int(match[2])
        if total > _MOST_DEVICES:
            raise UsageError(f"--hosts {text}: got more than {_MOST_DEVICES} devices")
        groups += [[match[3].lower()] * int(match[2]) for _ in range(int(match[1]))]
    return _placed(groups)


def place(
    devices: Sequence[str], hosts: str, started: Started, *, ranks: int, where: str
) -> tuple[tuple[Placed, ...], tuple[str, ...]]:
    """The device of every process, and what was assumed. Raises UsageError where it cannot be known."""
    if hosts:
        if devices:
            raise UsageError("got both --hosts and --devices, expected one of them")
        placed = stated_hosts(hosts)
        notes = []
        if started.total and started.total != len(placed):
            notes.append(f"the script starts {started.hosts} x {started.per_host} processes; --hosts {hosts} holds")
        return placed, tuple(notes)
    names = list(devices) or ([started.device] if started.device else [])
    if not names:
        raise UsageError(f"{where}: {_what_is_missing(started)}")
    if len(names) == 1 and started.total > 1:
        names = names * started.total
    if started.total:
        if len(names) != started.total:
            raise UsageError(
                f"{where}: got {len(names)} devices, but the script starts {started.hosts} hosts x {started.per_host} "
                "processes; give as many, or say with --hosts what it runs on, such as --hosts 2x8xh100"
            )
        size = started.per_host
        return _placed([names[at : at + size] for at in range(0, len(names), size)]), ()
    if started.why and len(names) < max(ranks, 2):
        raise UsageError(f"{where}: how many processes start is not known: {started.why}; or add --hosts 2x8xh100")
    notes = ["each device stands on a host of its own; --hosts says otherwise"] if len(names) > 1 else []
    return _placed([[name] for name in names]), tuple(notes)


def _what_is_missing(started: Started) -> str:
    if started.total:
        return (
            f"the script starts {started.hosts} hosts x {started.per_host} processes, but does not say on which "
            f"devices; add their type: --hosts {started.hosts}x{started.per_host}xh100"
        )
    why = f" ({started.why})" if started.why else ""
    return f"flags do not say what they run on{why}; add a device per rank: --devices h100,l4, or --hosts 2x8xh100"


def _placed(groups: Sequence[Sequence[str]]) -> tuple[Placed, ...]:
    return tuple(
        Placed(device=name, id=f"node{host}/{name if len(names) == 1 else number}", host=f"node{host}")
        for host, names in enumerate(groups)
        for number, name in enumerate(names)
    )
