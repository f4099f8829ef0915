"""The device clock: software delay vanishes while it is shorter than what follows, and is counted where it is not."""

from hops.rehearse.clock import TOLERANCE_NS, DeviceClock

MS = 1_000_000


class Machine:
    """A time that passes by sleeping, and where every wake-up is late."""

    def __init__(self, *, oversleeps=0):
        self.now_ns = 0
        self.oversleeps = oversleeps

    def now(self):
        return self.now_ns

    def sleep(self, seconds):
        self.now_ns += round(seconds * 1e9) + self.oversleeps


def test_actions_follow_each_other_whatever_the_process_takes():
    machine = Machine(oversleeps=MS)
    clock = DeviceClock(machine.now, machine.sleep)
    clock.begin(0)
    for number in range(10):
        assert clock.run(0, 5 * MS) == (number * 5 * MS, (number + 1) * 5 * MS)
        machine.now_ns += MS // 2
    assert clock.late == 0
    assert machine.now_ns == 51 * MS + MS // 2


def test_an_action_begins_when_what_it_takes_is_there():
    machine = Machine()
    clock = DeviceClock(machine.now, machine.sleep)
    clock.begin(0)
    assert clock.run(7 * MS, 2 * MS) == (7 * MS, 9 * MS)
    assert clock.run(3 * MS, 2 * MS) == (9 * MS, 11 * MS)


def test_what_comes_too_late_is_counted_and_moves_the_clock():
    machine = Machine()
    clock = DeviceClock(machine.now, machine.sleep)
    clock.begin(0)
    machine.now_ns = 5 * MS + TOLERANCE_NS
    assert clock.run(0, 5 * MS) == (0, 5 * MS)
    assert (clock.late, clock.worst_ns) == (0, TOLERANCE_NS)
    machine.now_ns = 10 * MS + TOLERANCE_NS + 1
    assert clock.run(0, 5 * MS) == (5 * MS, 10 * MS + TOLERANCE_NS + 1)
    assert (clock.late, clock.worst_ns) == (1, TOLERANCE_NS + 1)
    assert clock.free_ns == machine.now_ns
    clock.begin(20 * MS)
    assert (clock.late, clock.worst_ns, clock.free_ns) == (0, 0, 20 * MS)


def test_the_host_prepares_the_next_action():
    machine = Machine()
    clock = DeviceClock(machine.now, machine.sleep)
    clock.begin(0)
    assert clock.run(0, 5 * MS, MS) == (0, 5 * MS)
    assert (clock.free_ns, clock.next_ns) == (5 * MS, 6 * MS)
    assert clock.run(0, 5 * MS, MS) == (6 * MS, 11 * MS)
    assert clock.run(20 * MS, 5 * MS, MS) == (20 * MS, 25 * MS)


def test_a_last_action_that_was_done_too_late_counts():
    for oversleeps, late in ((TOLERANCE_NS, 0), (TOLERANCE_NS + 1, 1)):
        machine = Machine(oversleeps=oversleeps)
        clock = DeviceClock(machine.now, machine.sleep)
        clock.begin(0)
        clock.run(0, 5 * MS)
        clock.run(0, 5 * MS)
        clock.end()
        assert (clock.late, clock.woke_ns - clock.free_ns, clock.worst_ns) == (late, oversleeps, oversleeps)
