"""What the project says about itself is true: pages run, links lead somewhere, versions and pins agree."""

import json
import os
import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest
from shared_data import FIXTURES, missing

import hops
from hops.importers.megatron.launch import read_launch
from hops.importers.megatron.spec import spec_text

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGES = runpy.run_path(str(ROOT / "tools/pages.py"))


def tracked_files():
    """Files of the repository; nothing else lies in the folder of a published archive."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def pins(name):
    lines = (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
    return {match[1]: match[2] for line in lines if (match := re.match(r"([a-z0-9-]+)==([0-9][^ ]*)", line))}


def numbers(version):
    return [int(part) for part in version.split(".")]


@pytest.mark.parametrize("page", PAGES["PAGES"], ids=str)
def test_commands_and_code_of_a_page_run_and_print_what_it_shows(page):
    """If figures have changed: make pages."""
    assert PAGES["refreshed"](page) == (ROOT / page).read_text(encoding="utf-8")


def test_excerpts_follow_the_order_of_the_output():
    """The second line that begins with a word is the second such line of the output."""
    page = PAGES["_Page"](Path("page.md"))
    page.output = "a 1\n\nb 2\n─────\na 3\n"
    assert page.excerpt("a\n...\n─\na old\n") == "a 1\n...\n─────\na 3\n"
    with pytest.raises(AssertionError, match="no further line begins with 'b'"):
        page.excerpt("a\na\nb\n")


def test_links_between_pages_resolve():
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in tracked_files()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", path.read_text(encoding="utf-8"))
        if not target.startswith("http") and not (path.parent / target).exists()
    ]
    assert not broken, "\n".join(broken)


def test_every_page_is_reached_from_the_index():
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = {path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts} - {
        ROOT / "docs/README.md"
    }
    missing = [
        str(path.relative_to(ROOT)) for path in sorted(pages) if str(path.relative_to(ROOT / "docs")) not in index
    ]
    assert not missing, f"docs/README.md does not link to {missing}"


def test_decisions_have_numbers_of_their_own():
    found = [path.name[:4] for path in sorted((ROOT / "docs/decisions").glob("*.md"))]
    assert len(found) == len(set(found)), found


def test_no_file_names_a_place_on_somebodys_machine():
    places = [f"/{name}/" for name in ("work", "tmp", "root", "home")]
    found = []
    for path in tracked_files():
        if path.suffix in {".png", ".svg", ".gz", ".zst", ".parquet"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            found += [f"{path.relative_to(ROOT)}:{number}: {place}" for place in places if place in line]
    assert not found, "\n".join(found)


def test_the_page_of_formats_names_those_that_are_written():
    written = set()
    for path in (ROOT / "src/hops").rglob("*.py"):
        written |= set(
            re.findall(r'^FORMAT\b[^=]*= "(hops-[a-z]+/\d+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
        )
    page = (ROOT / "docs/reference/formats.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(hops-[a-z]+/\d+)`", page, re.MULTILINE)) == written


def test_version_is_one():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {hops.__version__}\n" in citation
    assert PROJECT["project"]["version"] == hops.__version__


@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt", "runtimes.txt"])
def test_lock_files_pin_versions_only(name):
    """No hashes (they differ by platform), no addresses, no options."""
    for line in (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines():
        assert line.lstrip().startswith("#") or re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .+)?", line), line


def test_both_lock_files_pin_the_same_versions():
    runtime, everything = pins("runtime.txt"), pins("dev.txt")
    assert runtime == {name: everything[name] for name in runtime}


RUNTIMES = ("torch", "megatron", "ray", "optuna")  # extras whose packages are pinned apart
LOCK = (ROOT / "tools" / "lock.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt", "runtimes.txt"])
def test_lock_files_cover_what_the_project_asks_for(name):
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]]
    if name == "dev.txt":
        extras = PROJECT["project"]["optional-dependencies"]
        wanted += [each for extra, needs in extras.items() if extra not in RUNTIMES for each in needs]
        assert all(f"--extra {extra}" in LOCK for extra in extras if extra not in RUNTIMES)
    if name == "runtimes.txt":
        wanted = [each for extra in RUNTIMES for each in PROJECT["project"]["optional-dependencies"][extra]]
    pinned = pins(name)
    for requirement in wanted:
        package, least = re.match(r"([\w.-]+)>=([\d.]+)", requirement).groups()
        assert numbers(pinned[package.replace(".", "-")]) >= numbers(least), requirement


def venv(tmp_path, version, *, new_enough, has_venv):
    """Run tools/venv.sh with a stand-in for Python; gives (exit code, stderr)."""
    python = tmp_path / "python-stand-in"
    python.write_text(
        "#!/bin/sh\n"
        'case "$2" in\n'
        f"*print*) echo {version} ;;\n"
        f"*version_info*) exit {int(not new_enough)} ;;\n"
        f"*ensurepip*) exit {int(not has_venv)} ;;\n"
        "esac\n"
    )
    python.chmod(0o755)
    ran = subprocess.run(
        ["sh", str(ROOT / "tools/venv.sh"), str(tmp_path / "venv")],
        env={**os.environ, "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stderr


def test_set_up_refuses_an_old_python(tmp_path):
    code, err = venv(tmp_path, "3.9.18", new_enough=False, has_venv=True)
    assert code == 1
    assert "error: HOPS needs Python 3.11 or newer, got: " in err
    assert "python-stand-in (is 3.9.18)" in err
    assert "fix: install Python 3.11 or newer, or name it: make PYTHON=" in err


def test_set_up_refuses_a_python_without_venv(tmp_path):
    code, err = venv(tmp_path, "3.12.1", new_enough=True, has_venv=False)
    assert code == 1
    assert "error: Python has no venv module here, got: " in err
    assert "apt install python3-venv" in err


def test_set_up_keeps_an_environment_that_works(tmp_path):
    """No Python is even looked for."""
    bin_folder = tmp_path / "venv/bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").write_text("#!/bin/sh\n")
    (bin_folder / "python").chmod(0o755)
    assert venv(tmp_path, "2.7", new_enough=False, has_venv=False) == (0, "")


def measured_iteration_ms(run):
    """Mean time from start to start over all ranks, the first two left out."""
    starts = {}
    for path in (run / "megatron_trace").glob("rank*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            starts[event["iteration"]] = min(starts.get(event["iteration"], 1 << 62), event["start_wall_ns"])
    return np.diff([starts[iteration] for iteration in sorted(starts)])[2:].mean() / 1e6


@pytest.mark.skipif(not FIXTURES.exists(), reason=missing(FIXTURES))
def test_the_readme_states_the_error_against_measured_runs():
    """Mean and worst error of the iteration time, uncalibrated; within two points, since the model still moves."""
    runs = sorted([*FIXTURES.glob("train/*"), *FIXTURES.glob("diagnostic/*")])
    errors = []
    for run in runs:
        summary = hops.summarize(hops.simulate(hops.loads(spec_text(read_launch(run / "run.yaml")))))
        errors.append(100 * abs(summary.iteration_time.mean_ms / measured_iteration_ms(run) - 1))
    stated = re.search(
        r"On (\d+) measured Megatron-LM runs.*?iterations are (\d+) % off on average.*?up to\s+(\d+) % off",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    found = (len(runs), np.mean(errors), max(errors))
    assert [int(each) for each in stated.groups()] == pytest.approx(found, abs=2), f"README should say {found}"
