"""The fleet machine without engine, clock and draws: what it answers to lists of events, and what holds after any."""

from dataclasses import replace

import pytest
from goodput_fleets import TIMES, S
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import UsageError
from hops.fleet.fleet import Fleet
from hops.fleet.machine import advance, start
from hops.fleet.recovery.base import RECOVERIES, Reaction, RecoveryPolicy
from hops.fleet.state import (
    NEVER,
    Due,
    FailedLinks,
    Hung,
    LetPass,
    LinksReplaced,
    Passed,
    PlannedStop,
    Recovering,
    ReplaceLinks,
    Stop,
    Stopped,
    Train,
    Trained,
    Training,
    TransportFailed,
    Unit,
    WentWrong,
    WrongNoticed,
)
from hops.fleet.time_use import TimeUse

ITERATION = 2 * S
FLEET = Fleet.of(3, ["a", "b", "c"], microbatches=4)


def policy(name, times=TIMES, fleet=FLEET):
    return RECOVERIES.get(name)(times, fleet, lambda _: 1.0)


def trained(iterations):
    return Trained(iterations=iterations, spent_ns={TimeUse.PRODUCTIVE: iterations * ITERATION})


def passed(seconds):
    return Passed(to_ns=seconds * S)


def stopped(unit, back_s):
    return Stopped(stops=(Stop(unit=unit, back_ns=back_s * S),))


def story(name, *events, times=TIMES):
    """What is wished after each event, as text, and the last state."""
    made = policy(name, times)
    state, wish = start(made, times)
    told = [said(state, wish)]
    for event in events:
        state, wish = advance(state, event, made, times)
        told.append(said(state, wish))
    return told, state


def said(state, wish):
    match wish:
        case Train(until_ns=until_ns):
            return f"train until {'the end' if until_ns == NEVER else until_ns // S}"
        case LetPass(until_ns=until_ns):
            use = state.doing.phases[0].cause if isinstance(state.doing, Recovering) else type(state.doing).__name__
            return f"{use} until {until_ns // S}"
        case ReplaceLinks(copies=copies):
            return f"replace links of {copies}"


def losses(state):
    return {str(use): length // S for use, length in state.spent_ns.items() if length and use != "productive"}


# Golden lists


def test_a_checkpoint_at_its_time():
    told, state = story("checkpoint_restart", trained(300), Due(), passed(610), trained(5))
    assert told == ["train until 600", "train until 600", "Saving until 610", "train until 1210", "train until 1210"]
    assert (state.written.iterations, state.iterations, state.now_ns) == (300, 305, 620 * S)


def test_checkpoint_restart_goes_through_its_phases():
    events = (trained(50), passed(101), stopped(Unit(0, 1), 191), passed(131), passed(191), passed(251), passed(271))
    told, state = story("checkpoint_restart", *events)
    assert told == [
        "train until 600",
        "train until 600",
        "train until 600",
        "detection until 131",
        "waiting until 191",
        "restart until 251",
        "reload until 271",
        "train until 871",
    ]
    assert losses(state) == {"redone": 101, "detection": 30, "waiting": 60, "restart": 60, "reload": 20}
    assert state.lost_iterations == {"device": 51}
    assert (state.iterations, state.interruptions) == (0, 1)


def test_a_stop_during_a_recovery_asks_the_policy_again():
    events = (passed(100), stopped(Unit(0, 1), 110), passed(105), stopped(Unit(1, 1), 400), passed(135), passed(400))
    told, state = story("checkpoint_restart", *events)
    assert told[2:] == [
        "detection until 130",
        "detection until 130",
        "detection until 135",
        "waiting until 400",
        "restart until 460",
    ]
    assert state.interruptions == 2
    assert state.lost_iterations == {"device": 1}


def test_a_spare_takes_the_place_and_the_repaired_device_becomes_one():
    events = (passed(100), stopped(Unit(0, 1), 500), passed(130), passed(130), passed(190), passed(195))
    told, state = story("spare", *events)
    assert told[2:] == [
        "detection until 130",
        "waiting until 130",
        "restart until 190",
        "reload until 195",
        "train until 600",
    ]
    assert (state.spares, state.repairs_ns) == (0, (500 * S,))
    state, _ = advance(state, trained(200), policy("spare"), TIMES)
    state, _ = advance(state, stopped(Unit(1, 0), 900), policy("spare"), TIMES)
    assert (state.spares, state.repairs_ns) == (1, (900 * S,))


def test_reroute_goes_on_without_and_takes_the_device_back():
    events = (
        passed(100),
        stopped(Unit(0, 1), 200),
        passed(130),
        passed(140),
        trained(31),
        Due(),
        passed(207),
        passed(217),
    )
    told, state = story("reroute", *events)
    assert told[2:] == [
        "detection until 130",
        "reconfigure until 140",
        "train until 200",
        "train until 200",
        "reload until 207",
        "reconfigure until 217",
        "train until 600",
    ]
    assert state.out == frozenset()


def test_nobody_notices_a_device_that_is_not_used():
    """It stops in its vacant place; only when it is repaired changes."""
    events = (passed(100), stopped(Unit(0, 1), 110), stopped(Unit(0, 1), 700), passed(130))
    told, state = story("spare", *events)
    assert told[2:] == ["detection until 130", "detection until 130", "waiting until 130"]
    assert state.back_ns == {Unit(0, 1): 700 * S}
    assert state.interruptions == 1


def test_after_the_transport_gave_up_everybody_waits_for_the_link_or_spares_replace_it():
    failed = TransportFailed(links=FailedLinks(copies=(2,), back_ns=400 * S))
    phases = (passed(130), passed(130), passed(190))
    told, state = story("checkpoint_restart", passed(100), failed, *phases, passed(210), passed(400))
    assert told[-3:] == ["reload until 210", "AwaitingLinks until 400", "train until 810"]
    assert losses(state)["waiting"] == 190
    told, _ = story("spare", passed(100), failed, *phases, passed(190), LinksReplaced())
    assert told[-2:] == ["replace links of (2,)", "train until 600"]
    early = TransportFailed(links=FailedLinks(copies=(2,), back_ns=150 * S))
    told, _ = story("checkpoint_restart", passed(100), early, *phases, passed(210), passed(210))
    assert told[-2:] == ["AwaitingLinks until 210", "train until 810"]


BACKGROUND = replace(TIMES, asynchronous=True, pause_ns=2 * S, write_ns=100 * S)


def test_a_checkpoint_written_in_the_background_counts_when_all_of_it_is_written():
    """Begun at 600 s, written at 700 s: a stop at 699 goes back to the start, one at 700 to it."""
    saves = (trained(300), Due(), passed(602))
    for at, left in ((699, 0), (700, 300)):
        _, state = story("checkpoint_restart", *saves, passed(at), stopped(Unit(0, 0), at + 1), times=BACKGROUND)
        assert state.iterations == left
        assert losses(state)["redone"] == (at - 2 if left == 0 else at - 602)


def test_while_a_checkpoint_is_being_written_the_one_before_it_counts():
    """Begun at 600 and at 1,202 s; a stop at 1,250 s finds the second one unfinished."""
    saves = (trained(300), Due(), passed(602), trained(300), Due(), passed(1204))
    _, state = story("checkpoint_restart", *saves, passed(1250), stopped(Unit(0, 0), 1251), times=BACKGROUND)
    assert state.iterations == 300
    assert losses(state)["redone"] == 1250 - 602 - 2


def test_the_next_checkpoint_waits_until_the_last_is_written():
    """An interval of 50 s, but 100 s to write: one every 100 s."""
    short = replace(BACKGROUND, interval_ns=50 * S)
    told, _ = story("checkpoint_restart", trained(25), Due(), passed(52), trained(49), Due(), times=short)
    assert told == [
        "train until 50",
        "train until 50",
        "Saving until 52",
        "train until 150",
        "train until 150",
        "Saving until 152",
    ]


def test_a_checkpoint_that_was_being_written_at_a_stop_is_lost_for_good():
    events = (trained(300), Due(), passed(602), passed(650), stopped(Unit(0, 0), 651))
    _, state = story("checkpoint_restart", *events, times=BACKGROUND)
    assert state.written.iterations == state.saved.iterations == 0
    assert state.last_checkpoint.iterations == 0


# The job as a whole


def test_a_planned_stop_saves_first_and_loses_nothing():
    events = (trained(50), PlannedStop(until_ns=400 * S), passed(110), passed(400), passed(460), passed(480))
    told, state = story("checkpoint_restart", *events)
    assert told[2:] == [
        "checkpoint until 110",
        "waiting until 400",
        "restart until 460",
        "reload until 480",
        "train until 1080",
    ]
    assert state.iterations == state.written.iterations == 50
    assert losses(state) == {"checkpoint": 10, "waiting": 290, "restart": 60, "reload": 20}
    assert state.lost_iterations == {"planned-stop": 0}


def test_a_stop_while_a_planned_stop_saves_loses_what_was_to_be_saved():
    events = (trained(50), PlannedStop(until_ns=400 * S), passed(109), stopped(Unit(0, 0), 120))
    _, state = story("checkpoint_restart", *events)
    assert state.iterations == 0
    _, state = story(
        "checkpoint_restart", trained(50), PlannedStop(until_ns=400 * S), passed(110), stopped(Unit(0, 0), 120)
    )
    assert state.iterations == 50


def test_a_hang_stands_still_until_somebody_acts_and_goes_back_to_the_checkpoint():
    events = (trained(50), passed(101), Hung(until_ns=3701 * S), passed(3701), passed(3761), passed(3781))
    told, state = story("spare", *events)
    assert told[3:] == ["detection until 3701", "restart until 3761", "reload until 3781", "train until 4381"]
    assert losses(state) == {"redone": 101, "detection": 3600, "restart": 60, "reload": 20}
    assert state.lost_iterations == {"hang": 51}


SAVED = (trained(300), Due(), passed(610))
SAVED_AGAIN = (trained(300), Due(), passed(1220))


def test_a_loss_spike_goes_back_past_the_last_checkpoint_to_one_from_before_it():
    """Wrong since 800 s, seen at 1301 s: the checkpoint of 1,220 s is wrong, too; the one of 610 s is sound."""
    events = (
        *SAVED,
        trained(95),
        WentWrong(),
        trained(205),
        Due(),
        passed(1220),
        trained(40),
        passed(1301),
        WrongNoticed(),
    )
    told, state = story("checkpoint_restart", *events)
    assert told[-1] == "restart until 1361"
    assert (state.iterations, state.written.iterations, state.sound) == (300, 300, None)
    assert losses(state)["redone"] == 1301 - 620
    assert state.lost_iterations == {"roll-back": 341}


def test_a_roll_back_before_what_went_wrong_cures_it():
    events = (*SAVED, WentWrong(), passed(700), stopped(Unit(0, 0), 701))
    _, state = story("checkpoint_restart", *events)
    assert state.sound is None
    after, _ = advance(state, WrongNoticed(), policy("checkpoint_restart"), TIMES)
    assert after == state


def test_a_roll_back_to_a_wrong_checkpoint_does_not():
    events = (*SAVED, WentWrong(), *SAVED_AGAIN, passed(1300), stopped(Unit(0, 0), 1301))
    _, state = story("checkpoint_restart", *events)
    assert (state.iterations, state.sound.iterations) == (600, 300)
    state, wish = advance(state, WrongNoticed(), policy("checkpoint_restart"), TIMES)
    assert (state.iterations, state.interruptions, wish) == (300, 1, LetPass(until_ns=1330 * S))


def test_what_went_wrong_is_read_from_storage_even_if_peers_had_been_copied():
    made = policy("spare")
    _, state = story("spare", *SAVED, WentWrong(), passed(700), stopped(Unit(0, 0), 701))
    assert not state.doing.from_checkpoint
    state, _ = advance(state, WrongNoticed(), made, TIMES)
    assert state.doing.phases[-1].length_ns == TIMES.reload_ns
    assert state.doing.from_checkpoint


# A policy that fails


class Broken(RecoveryPolicy):
    answer = None

    def react(self, situation):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ZeroDivisionError("division by zero"), "react at 100 s failed: ZeroDivisionError: division by zero"),
        (None, "react at 100 s gave None, expected a Reaction"),
        (Reaction(phases=(), rollback=True), "leaves [Unit(replica=0, device=0)] vacant; fill them in a phase"),
        (Reaction(phases=(), rollback=True, out=frozenset({Unit(2, 2)})), "goes without [Unit(replica=2, device=2)]"),
    ],
)
def test_a_policy_that_fails_is_named(answer, message):
    made = Broken(TIMES, FLEET, lambda _: 1.0)
    made.answer = answer
    state, _ = start(made, TIMES)
    state, _ = advance(state, passed(100), made, TIMES)
    with pytest.raises(UsageError) as caught:
        advance(state, stopped(Unit(0, 0), 200), made, TIMES)
    assert str(caught.value).startswith("recovery policy test_fleet_machine.Broken: ")
    assert message in str(caught.value)


# Whatever happens


UNITS = [Unit(copy, place) for copy in range(3) for place in range(3)]


@settings(deadline=None, max_examples=300)
@given(
    data=st.data(),
    name=st.sampled_from(["checkpoint_restart", "spare", "reroute", "replan", "stall"]),
    spares=st.integers(0, 2),
    asynchronous=st.booleans(),
    from_peer=st.booleans(),
    interval_s=st.sampled_from([None, 20, 300]),
)
def test_whatever_happens_time_is_conserved_and_no_unit_is_both_used_and_out(
    data, name, spares, asynchronous, from_peer, interval_s
):
    times = replace(
        TIMES,
        spares=spares,
        asynchronous=asynchronous,
        from_peer=from_peer,
        write_ns=40 * S,
        interval_ns=None if interval_s is None else interval_s * S,
    )
    made = policy(name, times)
    state, wish = start(made, times)
    for _ in range(data.draw(st.integers(1, 40))):
        for event in data.draw(st.sampled_from(possible(state, wish, made)), label="events"):
            before = state
            state, wish = advance(state, event, made, times)
            check(before, event, state, made)


def possible(state, wish, made):
    """Lists of events that may come now."""
    now_ns = state.now_ns
    stops = [] if made.awaits_return else [stopped_at(state, unit, s) for unit in UNITS for s in (1, 500)]
    anyway = [[WentWrong()], [WrongNoticed()]]
    match wish:
        case Train(until_ns=until_ns):
            if until_ns <= now_ns:
                return [[Due()], *([each] for each in stops)]
            lost = Passed(to_ns=now_ns + S)
            breaks = [*stops, Hung(until_ns=now_ns + 300 * S), transport(now_ns, 2), transport(now_ns, 200)]
            breaks += [] if state.sound is None else [WrongNoticed()]
            return [
                *([trained(count)] for count in (1, 5, 100)),
                *([lost, each] for each in breaks if not isinstance(each, Stopped) or state.uses(each.stops[0].unit)),
                *([each] for each in stops),
                [PlannedStop(until_ns=now_ns + 90 * S)],
                *anyway,
            ]
        case LetPass(until_ns=until_ns):
            part = [[Passed(to_ns=(now_ns + until_ns) // 2), *each] for each in ([], *([e] for e in stops), *anyway)]
            return [[Passed(to_ns=until_ns)], *(part if until_ns > now_ns + 1 else []), *anyway]
        case ReplaceLinks():
            return [[LinksReplaced()]]


def stopped_at(state, unit, seconds):
    return Stopped(stops=(Stop(unit=unit, back_ns=state.now_ns + seconds * S),))


def transport(now_ns, seconds):
    return TransportFailed(links=FailedLinks(copies=(1,), back_ns=now_ns + seconds * S))


def check(before, event, state, made):
    """What holds after every event."""
    assert sum(state.spent_ns.values()) == state.now_ns >= before.now_ns
    assert min(state.spent_ns.values()) >= 0
    assert state.iterations >= state.last_checkpoint.iterations >= 0
    assert state.spares >= 0
    assert list(state.repairs_ns) == sorted(state.repairs_ns)
    assert state.sound is None or state.sound.iterations <= state.iterations
    assert all(length >= 0 for length in state.lost_iterations.values())
    used = {unit for unit in UNITS if state.uses(unit)}
    if isinstance(state.doing, Training):
        assert not used & (state.out | state.vacant)
        assert not state.vacant
        assert state.layout == made.layout(state.out)
    if isinstance(state.doing, Recovering):
        assert not used & state.doing.out
    lost = sum(state.lost_iterations.values()) - sum(before.lost_iterations.values())
    done = event.iterations if isinstance(event, Trained) else 0
    assert state.iterations + lost - int(before.broken_off and not state.broken_off) == before.iterations + done
    assert state.interruptions - before.interruptions in (0, 1)
