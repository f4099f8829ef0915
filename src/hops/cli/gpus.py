"""Which GPUs this machine has, as the driver tells, in the catalog's names."""

import re
import subprocess
from dataclasses import dataclass

from hops.errors import UsageError
from hops.hardware.devices import DeviceKind

_QUERY = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
_MIB = 1 << 20
_NEAR = 0.15  # of its memory, which a driver states less what it reserves


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGpu:
    """A GPU as the driver names it, with its bytes of memory."""

    name: str
    memory_bytes: int


def found_gpus() -> list[FoundGpu]:
    """All GPUs of this machine. Raises UsageError if the driver's tool is missing, fails, or names none."""
    try:
        ran = subprocess.run(_QUERY, capture_output=True, text=True, check=True, timeout=30)  # noqa: S603
    except FileNotFoundError:
        raise UsageError(f"no GPUs found: there is no {_QUERY[0]} here; {_BY_HAND}") from None
    except subprocess.SubprocessError as error:
        raise UsageError(f"no GPUs found: {_QUERY[0]} failed ({error}); {_BY_HAND}") from None
    rows = [line.rsplit(",", 1) for line in ran.stdout.splitlines() if line.strip()]
    if not rows or any(len(row) != 2 or not row[1].strip().isdigit() for row in rows):
        raise UsageError(f"no GPUs found: {_QUERY[0]} says {ran.stdout.strip()!r}; {_BY_HAND}")
    return [FoundGpu(name=name.strip(), memory_bytes=int(mib) * _MIB) for name, mib in rows]


_BY_HAND = "leave out --from-gpus and name the devices in the file (`hops list devices`)"


def catalog_name(gpu: FoundGpu, kinds: list[DeviceKind]) -> str:
    """The catalog's device of that name, form and memory: `NVIDIA H100 80GB HBM3` is h100-sxm.

    Raises UsageError if there is none: figures of another device would be wrong.
    """
    words = set(re.split(r"[^a-z0-9]+", gpu.name.lower().replace("rtx ", "rtx-").replace("geforce", "")))
    words |= {f"rtx-{word}" for word in words}
    fits = [kind for kind in kinds if _stem(kind.name) in words and abs(_off(kind, gpu)) <= _NEAR]
    bus = [kind for kind in fits if "pcie" in kind.name.split("-")]
    if "pcie" in words and bus:
        fits = bus
    elif len(fits) > 1:
        fits = [kind for kind in fits if kind not in bus] or fits
    if not fits:
        raise UsageError(
            f"the catalog has no {gpu.name} with {gpu.memory_bytes / (1 << 30):.0f} GiB; add its figures to a catalog "
            f"of your own (docs/reference/catalog.md), or {_BY_HAND}"
        )
    return min(fits, key=lambda kind: abs(_off(kind, gpu))).name


def _stem(name: str) -> str:
    """`h100` of `h100-sxm`, `rtx-4090` as a whole."""
    first, _, rest = name.partition("-")
    return name if first == "rtx" else first if rest else name


def _off(kind: DeviceKind, gpu: FoundGpu) -> float:
    return gpu.memory_bytes / kind.memory_bytes - 1


def node_text(names: list[str]) -> str:
    """The `nodes` of a spec with one host of these devices, in YAML."""
    runs: list[tuple[str, int]] = []
    for name in names:
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1] + 1)
        else:
            runs.append((name, 1))
    devices = ", ".join(f"{{type: {name}, count: {count}}}" for name, count in runs)
    return f"    - name: here                # as nvidia-smi says\n      devices: [{devices}]\n"
