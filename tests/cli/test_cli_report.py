"""`hops report`, `hops view` and `hops run -o page.html`: what they write, open and refuse."""

import sys
import webbrowser

import pytest

from hops.cli import report as commands

SPEC = """
pipeline: {model: gpt2, microbatches: 4}
hardware: {nodes: [{devices: [l4, l4]}]}
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return path


def test_report_puts_schedules_side_by_side_and_says_which_cannot_run(command, spec, tmp_path):
    page = tmp_path / "page.html"
    code, out, err = command("report", str(spec), "-s", "zb_h1,interleaved_1f1b", "-o", str(page))
    assert (code, err) == (0, "")
    assert out == f"wrote {page}\n"
    text = page.read_text(encoding="utf-8")
    assert "What does zb_h1 change?" in text


def test_report_of_what_was_run_is_that_of_the_spec(command, spec, tmp_path):
    folder = tmp_path / "out"
    assert command("run", str(spec), "-o", str(folder), "-q")[0] == 0
    assert (folder / "report.html").is_file()
    assert command("report", str(folder / "events.csv"), str(spec), "-o", str(tmp_path / "both.html"))[0] == 0
    assert "What does spec.yaml change?" in (tmp_path / "both.html").read_text(encoding="utf-8")


def test_run_writes_the_report_alone(command, spec, tmp_path):
    code, out, _ = command("run", str(spec), "-o", str(tmp_path / "page.html"))
    assert code == 0
    assert out.rstrip().endswith(f"wrote {tmp_path / 'page.html'}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "spec.yaml"]


def test_report_refuses_what_it_cannot_apply(command, spec, tmp_path):
    code, _, err = command("report", str(spec), "-o", str(tmp_path / "page.pdf"))
    assert code == 2
    assert "expected a name that ends in .html" in err
    code, _, err = command("report", "run.csv", "-s", "zb_h1", "-o", str(tmp_path / "page.html"))
    assert code == 2
    assert "--schedules: got no spec to apply it to" in err
    code, _, err = command("report", str(spec), "-s", "zb_h1,zb_h1", "-o", str(tmp_path / "page.html"))
    assert code == 2
    assert "expected different names separated by commas" in err


def test_view_opens_the_report_or_says_where_it_is(command, spec, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(commands, "has_screen", lambda: True)
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(opened.append(address)))
    code, out, _ = command("view", str(spec))
    assert code == 0
    assert out.startswith("no browser here; open this file in one: ")
    assert opened[0].endswith("report.html")
    page = tmp_path / "page.html"
    command("report", str(spec), "-o", str(page))
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))
    assert command("view", str(page))[1] == f"opened {page}\n"
    assert opened[-1] == page.as_uri()
    code, _, err = command("view", str(tmp_path / "other.html"))
    assert code == 2
    assert "no such file; write it with `hops report`" in err


def test_a_folder_is_no_spec(tmp_path):
    (tmp_path / "odd.yaml").mkdir()
    assert not commands.is_spec(tmp_path / "odd.yaml")


def test_no_browser_is_opened_where_there_is_no_screen(command, spec, tmp_path, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(webbrowser, "open", lambda _: pytest.fail("opened a browser"))
    page = tmp_path / "page.html"
    command("report", str(spec), "-o", str(page))
    assert command("view", str(page))[1] == f"no browser here; open this file in one: {page}\n"


def test_plans_come_with_a_report(command, tmp_path):
    (tmp_path / "open.yaml").write_text(SPEC.replace("microbatches: 4", "microbatches: 4, schedule: [gpipe, 1f1b]"))
    code, out, _ = command("plan", "open.yaml", "--budget", "0.1s", "-o", "plans")
    assert code == 0
    assert "wrote plans/report.html" in out
    text = (tmp_path / "plans/report.html").read_text(encoding="utf-8")
    assert "What does plan 2 change?" in text
    assert '"title":"Plans"' in text


def test_goodput_puts_policies_side_by_side_on_a_page(command, tmp_path):
    faults = """
failure:
  enabled: true
  models: [{kind: stop, on: devices, between: 20 d, repair: 1 h}]
  recovery: {state: 10 GiB}
"""
    (tmp_path / "faulty.yaml").write_text(SPEC + faults)
    arguments = ("goodput", "faulty.yaml", "--days", "1", "--seeds", "2", "--report", "goodput.html")
    code, out, _ = command(*arguments, "--policies", "checkpoint_restart,stall")
    assert code == 0
    assert out.endswith("wrote goodput.html\n")
    text = (tmp_path / "goodput.html").read_text(encoding="utf-8")
    assert "How much of the time is productive?" in text
    assert '"names":["checkpoint_restart","stall"]' in text
    code, _, err = command(*arguments, "--sweep-checkpoint-interval")
    assert code == 2
    assert "got both --sweep-checkpoint-interval and --report" in err


def test_faults_of_a_run_stand_in_a_table_by_name(command, tmp_path):
    faults = "{kind: slow, on: [node0/1], at: [0 s], repair: 10 s, factor: 1.5}"
    (tmp_path / "slow.yaml").write_text(SPEC + f"failure: {{enabled: true, models: [{faults}]}}\n")
    assert command("report", "slow.yaml", "-o", "slow.html")[0] == 0
    text = (tmp_path / "slow.html").read_text(encoding="utf-8")
    assert '["slow","node0/1",' in text
    assert command("report", "slow.yaml", "-o", "calm.html", "--set", "failure.enabled=false")[0] == 0
    assert '"title":"Faults"' not in (tmp_path / "calm.html").read_text(encoding="utf-8")
