"""What a run.yaml says beside the launch: that it is one, and the name its authors gave the schedule (not what ran)."""

import re
from pathlib import Path

from ruamel.yaml import YAML

_ARGUMENTS = re.compile(r"^arguments:", re.MULTILINE)


def is_launch(file: Path) -> bool:
    """Whether a YAML file is a Megatron-LM launch and no spec of ours: it has `arguments`."""
    try:
        return _ARGUMENTS.search(file.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False


def read_label(file: Path) -> str:
    """`labelled_schedule` of a run.yaml that `read_launch` accepts, "" if it has none."""
    document = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    return str(document.get("labelled_schedule") or "")
