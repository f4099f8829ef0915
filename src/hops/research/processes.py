"""Commands with a limit: whatever they start ends with them, at the limit, or with us, even if we die of kill -9."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SUPERVISOR = Path(__file__).with_name("supervise.py")
TAIL_BYTES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: its exit code (128 + signal if killed), and whether that was our limit's doing."""

    code: int
    timed_out: bool
    output: Path

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out

    def story(self, what: str, limit_s: float) -> str:
        """Why it did not work, with the last lines it printed."""
        how = f"ran longer than {limit_s:g} s and was ended" if self.timed_out else f"ended with exit code {self.code}"
        tail = self.tail()
        return f"{what} {how}" + (f"; its last lines:\n{tail}" if tail else "")

    def tail(self, lines: int = 8) -> str:
        """The last lines of the output, at most TAIL_BYTES."""
        with self.output.open("rb") as file:
            file.seek(max(0, self.output.stat().st_size - TAIL_BYTES))
            text = file.read().decode(errors="replace").strip()
        return "\n".join(text.splitlines()[-lines:])


def run_limited(
    command: Sequence[str],
    *,
    cwd: Path,
    limit_s: float,
    output: Path,
    env: Mapping[str, str] | None = None,
    stdin: Path = Path(os.devnull),
) -> Ended:
    """Run a command in `cwd` for at most `limit_s` seconds; both its outputs are appended to the file `output`."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.touch()
    supervisor = [sys.executable, "-I", "-S", str(SUPERVISOR), str(stdin), str(output), *command]
    with subprocess.Popen(  # noqa: S603
        supervisor, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        timed_out = False
        try:
            process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            assert process.stdin is not None
            process.stdin.close()  # the supervisor ends what still runs
            process.wait()
    return Ended(code=process.returncode, timed_out=timed_out, output=output)
