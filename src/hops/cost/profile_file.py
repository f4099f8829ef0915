"""Hardware profiles as YAML files: written by `hops calibrate`, read where a spec names one."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from hops.cost.hardware_profile import HardwareProfile
from hops.errors import CatalogError, UsageError
from hops.files import atomic_write

SHIPPED = Path(__file__).parent / "profiles"
SHIPPED_DEFAULT = "megatron-aws"
FORMAT = 1
_HEADER = """\
# Hardware profile written by `hops calibrate`; do not edit by hand. Times in seconds, sizes in bytes, rates per second.
# A spec uses it by `hardware: {profile: FILE}`. What each figure means: docs/explanation/cost-model.md.
"""


def shipped_profiles() -> tuple[str, ...]:
    """Names of the profiles that come with HOPS."""
    return tuple(sorted(file.stem for file in SHIPPED.glob("*.yaml")))


def shipped_profile(name: str) -> Path:
    """The file of a shipped profile. Raises UsageError, with those there are, if there is none of that name."""
    if name not in shipped_profiles():
        raise UsageError(f"no profile {name!r} comes with HOPS: there are {', '.join(shipped_profiles()) or 'none'}")
    return SHIPPED / f"{name}.yaml"


def write_profile(profile: HardwareProfile, path: Path) -> None:
    """Write a profile; the same profile gives the same bytes."""
    from ruamel.yaml import YAML

    writer = YAML()
    writer.default_flow_style = None
    writer.width = 120
    with atomic_write(path) as out:
        out.write(_HEADER)
        writer.dump({"format": FORMAT, **_plain(profile)}, out)


def read_profile(path: Path) -> HardwareProfile:
    """Read a profile. Raises CatalogError saying file and key, what was got and what was expected."""
    path = Path(path)
    return _read(path, path.stat().st_mtime_ns if path.is_file() else 0)


@cache
def _read(path: Path, _changed_ns: int) -> HardwareProfile:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogError(f"{path}: cannot be read: {error}; expected a profile written by hops calibrate") from None
    except (YAMLError, ValueError) as error:
        raise CatalogError(f"{path}: is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CatalogError(
            f"{path}: format: got {content.get('format') if isinstance(content, dict) else type(content).__name__}, "
            f"expected {FORMAT}; write the profile with hops calibrate"
        )
    body = {key: value for key, value in content.items() if key != "format"}
    profile: HardwareProfile = _typed(HardwareProfile, body, str(path), "")
    return profile


def _plain(value: Any) -> Any:
    """Mappings, lists, texts and numbers; numbers with seven digits."""
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.7g}")
    return value


def _typed(kind: Any, value: Any, file: str, where: str) -> Any:
    """The value as the type asks for."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _record(kind, value, file, where)
    if kind is Any:
        return value
    if origin is tuple:
        _expect(isinstance(value, list), "a list", value, file, where)
        repeated = len(arguments) == 2 and arguments[1] is Ellipsis
        _expect(repeated or len(value) == len(arguments), f"{len(arguments)} values", value, file, where)
        kinds = [arguments[0]] * len(value) if repeated else arguments
        return tuple(_typed(k, v, file, f"{where}[{i}]") for i, (k, v) in enumerate(zip(kinds, value, strict=True)))
    if origin is not None and issubclass(origin, Mapping):
        _expect(isinstance(value, dict), "a mapping", value, file, where)
        return {key: _typed(arguments[1], each, file, f"{where}.{key}".strip(".")) for key, each in value.items()}
    assert not isinstance(kind, UnionType), "profiles have no optional values"
    if kind is float:
        _expect(isinstance(value, (int, float)) and not isinstance(value, bool), "a number", value, file, where)
        return float(value)
    _expect(isinstance(value, kind) and not isinstance(value, bool), f"a value of {kind.__name__}", value, file, where)
    return value


def _record(kind: Any, value: Any, file: str, where: str) -> Any:
    _expect(isinstance(value, dict), "a mapping", value, file, where)
    hints = get_type_hints(kind)
    known = {each.name: each for each in fields(kind)}
    for key in value:
        if key not in known:
            raise CatalogError(f"{file}: {where or 'profile'}: unknown key {key!r}, expected {', '.join(known)}")
    for name, each in known.items():
        if name not in value and each.default is MISSING and each.default_factory is MISSING:
            raise CatalogError(
                f"{file}: {where or 'profile'}: {name} is missing; write the profile with hops calibrate"
            )
    try:
        return kind(**{key: _typed(hints[key], each, file, f"{where}.{key}".strip(".")) for key, each in value.items()})
    except UsageError as error:
        raise CatalogError(f"{file}: {where or 'profile'}: {error}") from None


def _expect(ok: bool, expected: str, got: Any, file: str, where: str) -> None:
    if not ok:
        raise CatalogError(f"{file}: {where or 'profile'}: got {str(got)[:80]!r}, expected {expected}")
