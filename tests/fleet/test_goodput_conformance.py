"""Our recovery policies pass the suite that others inherit, and outsiders' are found by their entry point."""

import pytest

from hops.fleet.recovery.base import RECOVERIES
from hops.fleet.recovery.restart import CheckpointRestart
from hops.testing.recovery import RecoveryConformance


class TestStall(RecoveryConformance):
    policy = "stall"


class TestCheckpointRestart(RecoveryConformance):
    policy = "checkpoint_restart"


class TestSpare(RecoveryConformance):
    policy = "spare"


class TestReroute(RecoveryConformance):
    policy = "reroute"


class TestReplan(RecoveryConformance):
    policy = "replan"


def test_every_policy_of_ours_is_in_the_suite():
    ours = [each for each in RecoveryConformance.__subclasses__() if each.__module__ == __name__]
    assert {each.policy for each in ours} == set(RECOVERIES.names())


def test_outsiders_policies_are_found_by_their_entry_point(monkeypatch):
    class Point:
        name = "theirs"

        def load(self):
            return CheckpointRestart

    monkeypatch.setattr("hops.registry.entry_points", lambda group: [Point()] if group == "hops.recovery" else [])
    assert RECOVERIES.get("theirs") is CheckpointRestart
    with pytest.raises(Exception, match="did you mean 'theirs'"):
        RECOVERIES.get("their")
