"""The fleet as a pure machine: an event moves its state and says what it wants next. No clock, no draws, no engine."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from hops.fleet.recovery.base import Phase, Reaction, RecoveryPolicy, Situation, ask_to_react, ask_to_rejoin
from hops.fleet.recovery_times import RecoveryTimes
from hops.fleet.state import (
    NEVER,
    Activity,
    AwaitingLinks,
    Checkpoint,
    Due,
    Event,
    FailedLinks,
    FleetState,
    Hung,
    LetPass,
    LinksReplaced,
    Passed,
    PlannedStop,
    Recovering,
    ReplaceLinks,
    ReplacingLinks,
    Saving,
    Stopped,
    Train,
    Trained,
    Training,
    TransportFailed,
    WentWrong,
    Wish,
    WrongNoticed,
)
from hops.fleet.time_use import TimeUse, spend, undo


def start(policy: RecoveryPolicy, times: RecoveryTimes) -> tuple[FleetState, Wish]:
    """A fleet at time 0: its state as it begins counts as a checkpoint."""
    state = FleetState(
        layout=policy.layout(frozenset()),
        spares=times.spares if policy.keeps_spares else 0,
        due_ns=_due_ns(times, 0),
    )
    return state, _wish(state)


def advance(state: FleetState, event: Event, policy: RecoveryPolicy, times: RecoveryTimes) -> tuple[FleetState, Wish]:
    """What an event makes of a state, and what is wished next. Raises UsageError where the policy fails.

    Which events can come: whatever the last wish was, time may pass up to what it asked for (`Passed`, `Trained`) and
    units may stop; all else comes while training is wished, but for `WentWrong` and `WrongNoticed`, which come at any
    time, and `LinksReplaced`, which answers `ReplaceLinks`.
    """
    match event:
        case Trained():
            found = _trained(state, event)
        case Passed():
            found = _passed(state, event.to_ns, policy, times)
        case Stopped():
            found = _stopped(state, event, policy)
        case TransportFailed():
            found = _recover(_broken_off(state), "link-down", policy, event.links)
        case LinksReplaced():
            found = state.but(doing=Training())
        case Due():
            found = _due(state, policy, times)
        case PlannedStop():
            found = _stop_as_planned(state, event.until_ns, policy, times)
        case Hung():
            found = _hang(state, event.until_ns, policy, times)
        case WentWrong():
            found = state if state.sound is not None else state.but(sound=state.last_checkpoint)
        case WrongNoticed():
            found = _back_to_sound(state, policy, times)
    return found, _wish(found)


def _wish(state: FleetState) -> Wish:
    match state.doing:
        case Training():
            return Train(until_ns=min(state.due_ns, *(state.back_ns[unit] for unit in state.out), NEVER))
        case ReplacingLinks(copies=copies):
            return ReplaceLinks(copies=copies)
        case Saving(ends_ns=ends_ns) | Recovering(ends_ns=ends_ns) | AwaitingLinks(ends_ns=ends_ns):
            return LetPass(until_ns=ends_ns)


# Time


def _trained(state: FleetState, event: Trained) -> FleetState:
    assert isinstance(state.doing, Training), "iterations end while training is wished"
    assert not state.vacant, "training needs every place filled, or gone without"
    return state.but(
        now_ns=state.now_ns + sum(event.spent_ns.values()),
        iterations=state.iterations + event.iterations,
        spent_ns=spend(state.spent_ns, event.spent_ns),
    )


def _passed(state: FleetState, to_ns: int, policy: RecoveryPolicy, times: RecoveryTimes) -> FleetState:
    """What was wished has ended if its time has come; an iteration during which time just passes is lost."""
    doing = state.doing
    assert isinstance(doing, Training | ReplacingLinks) or to_ns <= doing.ends_ns, "time passes up to what was wished"
    spent_ns = spend(state.spent_ns, {_use(doing): to_ns - state.now_ns})
    if isinstance(doing, Saving) and to_ns == doing.ends_ns:
        return _saved(state, doing.started_ns, to_ns, spent_ns, times)
    state = state.but(now_ns=to_ns, spent_ns=spent_ns, broken_off=isinstance(doing, Training))
    if isinstance(doing, Recovering) and to_ns == doing.ends_ns:
        return _phase_ended(state, doing, policy, times)
    if isinstance(doing, AwaitingLinks) and to_ns == doing.ends_ns:
        return state.but(doing=Training())
    return state


def _use(doing: Activity) -> TimeUse:
    """What time is spent on while this goes on and no iteration ends."""
    match doing:
        case Training():
            return TimeUse.REDONE
        case Saving():
            return TimeUse.CHECKPOINT
        case Recovering():
            return doing.phases[0].cause
        case AwaitingLinks() | ReplacingLinks():
            return TimeUse.WAITING


# Checkpoints


def _due_ns(times: RecoveryTimes, now_ns: int) -> int:
    """When the next checkpoint is due after training started from one."""
    return NEVER if times.interval_ns is None else now_ns + times.interval_ns


def _due(state: FleetState, policy: RecoveryPolicy, times: RecoveryTimes) -> FleetState:
    """Units that came back are taken in before a checkpoint is begun."""
    if not any(state.back_ns[unit] <= state.now_ns for unit in state.out):
        return state.but(doing=Saving(started_ns=state.now_ns, ends_ns=state.now_ns + times.pause_ns))
    state, situation = _situation(state)
    return _go_through(state, ask_to_rejoin(policy, situation), policy, None)


def _saved(
    state: FleetState, started_ns: int, now_ns: int, spent_ns: Mapping[TimeUse, int], times: RecoveryTimes
) -> FleetState:
    """Training may go on. Written in the background, a checkpoint can be used only when all of it is written."""
    assert times.interval_ns is not None, "checkpoints are due only at an interval"
    usable_ns = max(now_ns, started_ns + times.write_ns) if times.asynchronous else now_ns
    return state.but(
        now_ns=now_ns,
        spent_ns=spent_ns,
        doing=Training(),
        saved=state.written if state.written.usable_ns <= now_ns else state.saved,
        written=Checkpoint(iterations=state.iterations, spent_ns=spent_ns, usable_ns=usable_ns),
        due_ns=max(now_ns + times.interval_ns, usable_ns),
    )


def _roll_back(state: FleetState, to: Checkpoint) -> FleetState:
    """Training is to go on from a checkpoint; what went wrong after it did not happen."""
    undone = state.sound is None or to.iterations <= state.sound.iterations
    return state.but(
        iterations=to.iterations,
        spent_ns=undo(state.spent_ns, to.spent_ns),
        sound=None if undone else state.sound,
    )


def _lost(state: FleetState, what: str, iterations: int) -> FleetState:
    counts = Counter(state.lost_iterations)
    counts[what] += iterations
    return state.but(lost_iterations=dict(counts), broken_off=False)


# Breaking off


def _broken_off(state: FleetState) -> FleetState:
    """Training is interrupted: what is not wholly written is lost."""
    last = state.last_checkpoint
    return state.but(interruptions=state.interruptions + 1, saved=last, written=last)


def _stopped(state: FleetState, event: Stopped, policy: RecoveryPolicy) -> FleetState:
    back_ns = dict(state.back_ns)
    for stop in event.stops:
        back_ns[stop.unit] = max(stop.back_ns, back_ns.setdefault(stop.unit, 0))
    noticed = [stop for stop in event.stops if state.uses(stop.unit)]
    state = state.but(back_ns=back_ns)
    if not noticed:
        return state
    struck = dict.fromkeys(stop.unit for stop in noticed)
    repairs_ns = (*state.repairs_ns, *(back_ns[unit] for unit in struck)) if policy.keeps_spares else ()
    state = state.but(vacant=state.vacant | struck.keys(), repairs_ns=tuple(sorted(repairs_ns)))
    return _recover(_broken_off(state), noticed[0].what, policy, None)


def _recover(state: FleetState, what: str, policy: RecoveryPolicy, links: FailedLinks | None) -> FleetState:
    """The policy says how training goes on."""
    state, situation = _situation(state)
    reaction = ask_to_react(policy, situation)
    lost = int(state.broken_off)
    if reaction.rollback:
        last = state.written
        lost += state.iterations - last.iterations
        state = _roll_back(state, last)
    return _go_through(_lost(state, what, lost), reaction, policy, links)


def _hang(state: FleetState, until_ns: int, policy: RecoveryPolicy, times: RecoveryTimes) -> FleetState:
    """Nothing moves until a person kills the job; it starts again from the last checkpoint."""
    state = _broken_off(state)
    lost = int(state.broken_off) + state.iterations - state.written.iterations
    hangs = Phase(cause=TimeUse.DETECTION, length_ns=max(0, until_ns - state.now_ns))
    return _begin_again(_lost(_roll_back(state, state.written), "hang", lost), (hangs,), policy, times)


def _stop_as_planned(state: FleetState, until_ns: int, policy: RecoveryPolicy, times: RecoveryTimes) -> FleetState:
    """State is saved first, so that nothing is lost."""
    waits_ns = max(0, until_ns - state.now_ns - times.write_ns)
    phases = (
        Phase(cause=TimeUse.CHECKPOINT, length_ns=times.write_ns, saves=True),
        Phase(cause=TimeUse.WAITING, length_ns=waits_ns),
    )
    return _begin_again(_lost(_broken_off(state), "planned-stop", 0), phases, policy, times)


def _back_to_sound(state: FleetState, policy: RecoveryPolicy, times: RecoveryTimes) -> FleetState:
    """Training starts again from the newest checkpoint that is sound; a recovery under way goes on, but from there."""
    sound = state.sound
    if sound is None:
        return state
    lost = int(state.broken_off) + state.iterations - sound.iterations
    state = _lost(_roll_back(state.but(saved=sound, written=sound), sound), "roll-back", lost)
    doing = state.doing
    if not isinstance(doing, Recovering):
        links = FailedLinks(copies=(), back_ns=doing.ends_ns) if isinstance(doing, AwaitingLinks) else None
        return _begin_again(state.but(interruptions=state.interruptions + 1), (), policy, times, links)
    if doing.from_checkpoint:
        return state
    reads = Phase(cause=TimeUse.RELOAD, length_ns=times.reload_ns)
    return state.but(doing=replace(doing, phases=(*doing.phases, reads), from_checkpoint=True))


def _begin_again(
    state: FleetState,
    phases: tuple[Phase, ...],
    policy: RecoveryPolicy,
    times: RecoveryTimes,
    links: FailedLinks | None = None,
) -> FleetState:
    """After these phases the job starts on the devices that it has, and reads a checkpoint."""
    starts = (
        Phase(cause=TimeUse.RESTART, length_ns=times.restart_ns),
        Phase(cause=TimeUse.RELOAD, length_ns=times.reload_ns),
    )
    return _go_through(state, Reaction(phases=(*phases, *starts), rollback=True, out=state.out), policy, links)


# Recovering


def _go_through(state: FleetState, reaction: Reaction, policy: RecoveryPolicy, links: FailedLinks | None) -> FleetState:
    phases = reaction.phases or (Phase(cause=TimeUse.RESTART, length_ns=0),)
    doing = Recovering(
        phases=phases,
        ends_ns=state.now_ns + phases[0].length_ns,
        out=reaction.out,
        layout=policy.layout(reaction.out),
        places_empty=policy.keeps_spares,
        from_checkpoint=reaction.rollback,
        links=links,
    )
    return state.but(doing=doing)


def _phase_ended(state: FleetState, doing: Recovering, policy: RecoveryPolicy, times: RecoveryTimes) -> FleetState:
    phase, *rest = doing.phases
    if phase.saves:
        written = Checkpoint(iterations=state.iterations, spent_ns=state.spent_ns, usable_ns=state.now_ns)
        state = state.but(saved=written, written=written)
    if phase.fills:
        state = _filled(state, doing, policy)
    if rest:
        return state.but(doing=replace(doing, phases=tuple(rest), ends_ns=state.now_ns + rest[0].length_ns))
    return state.but(
        doing=_after_recovery(state.now_ns, doing),
        layout=doing.layout,
        out=doing.out,
        vacant=frozenset(),
        due_ns=_due_ns(times, state.now_ns) if doing.from_checkpoint else state.due_ns,
    )


def _after_recovery(now_ns: int, doing: Recovering) -> Activity:
    """A restart before failed links are back would fail again; with spares, the hosts behind them are replaced."""
    if doing.links is None:
        return Training()
    if doing.places_empty:
        return ReplacingLinks(copies=doing.links.copies)
    return AwaitingLinks(ends_ns=max(now_ns, doing.links.back_ns))


def _filled(state: FleetState, doing: Recovering, policy: RecoveryPolicy) -> FleetState:
    """Devices stand in all vacant places that training does not go without."""
    state = _with_repaired(state)
    spares = state.spares - len(state.vacant - doing.out) if policy.keeps_spares else state.spares
    assert spares >= 0, "places are filled when there are devices for them"
    return state.but(spares=spares, vacant=state.vacant & doing.out, out=state.out & doing.out)


def _with_repaired(state: FleetState) -> FleetState:
    """Devices that are repaired by now stand by."""
    back = sum(each <= state.now_ns for each in state.repairs_ns)
    return state.but(spares=state.spares + back, repairs_ns=state.repairs_ns[back:]) if back else state


def _situation(state: FleetState) -> tuple[FleetState, Situation]:
    """What the policy is told; units that stopped unnoticed, in copies that do not run, are out like others."""
    state = _with_repaired(state)
    if state.layout.dropped:
        down = {unit for unit, back_ns in state.back_ns.items() if back_ns > state.now_ns}
        unnoticed = {unit for unit in down - state.vacant if unit.replica in state.layout.dropped}
        state = state.but(out=state.out | unnoticed)
    return state, Situation(
        now_ns=state.now_ns,
        vacant=state.vacant,
        out=state.out,
        back_ns=state.back_ns,
        free=state.spares,
        repairs_ns=state.repairs_ns,
    )
