"""A second simulator, written for the tests alone: it polls every rank at every instant at which something happens.

It knows what docs/explanation/messages.md says of the ways to send, and shares no code with `hops.engine`. Slow, and
without faults, shared links, iterations and their ends.
"""

from hops.engine.settings import P2P
from hops.program.action import Op, Pair

BUSY_WAYS = (P2P.BLOCKING, P2P.BLOCKING_FUSED, P2P.CALLS)


def simulate(program, durations, hop, host, way):
    """{action: (start, end)}; None: ranks stall. Fused messages of several stages per rank are calls, if these meet."""
    if way is P2P.BLOCKING_FUSED and program.shape.num_stages > program.num_ranks:
        found = Simulator(program, durations, hop, host, P2P.CALLS).run()
        if found is not None:
            return found
    return Simulator(program, durations, hop, host, way).run()


class Simulator:
    """Times in ns. An output is known as (stage that takes it, whether it is a gradient, microbatch)."""

    def __init__(self, program, durations, hop, host, way):
        self.owner, self.way, self.hop, self.host = program.shape.rank_of_stage, way, hop, host
        ranks = range(program.num_ranks)
        self.entries = [[[*each] if isinstance(each, Pair) else [each] for each in program.rank(r)] for r in ranks]
        self.couples = set()
        if way is P2P.CALLS:
            self.entries = [self.in_couples(mine) for mine in self.entries]
        self.durations, self.now = durations, 0
        self.depth = len(self.owner) // program.shape.copies  # copies of the pipeline stand one after the other
        self.next_entry, self.busy, self.tied = [0 for _ in ranks], [False for _ in ranks], [0 for _ in ranks]
        self.events, self.there, self.sent, self.wanted, self.called, self.times = [], set(), set(), set(), set(), {}
        self.producer = {self.output(a): a for r in ranks for e in self.entries[r] for a in e if self.output(a)}
        self.home = {a: r for r in ranks for e in self.entries[r] for a in e}
        self.taker = {self.needs(a): rank for a, rank in self.home.items()}
        self.posts = [self.posting_places(rank) for rank in ranks]

    def in_couples(self, entries):
        """A forward and the backward after it stand between the same two calls."""
        together = []
        for entry in entries:
            before = together[-1] if together else []
            is_couple = len(before) == len(entry) == 1 and before[0].op is Op.F and entry[0].op in (Op.B, Op.I)
            if is_couple:
                before.append(entry[0])
                self.couples.add(before[0])
            else:
                together.append(entry)
        return together

    def needs(self, action):
        stage, op, microbatch = action
        if op is Op.F and stage % self.depth > 0:
            return (stage, False, microbatch)
        return (stage, True, microbatch) if op in (Op.B, Op.I) and (stage + 1) % self.depth else None

    def output(self, action):
        stage, op, microbatch = action
        if op is Op.F and (stage + 1) % self.depth:
            return (stage + 1, False, microbatch)
        return (stage - 1, True, microbatch) if op in (Op.B, Op.I) and stage % self.depth else None

    def sender(self, key):
        return self.home[self.producer[key]]

    def travels(self, key):
        return key is not None and self.sender(key) != self.taker[key]

    def posting_places(self, rank):
        """By message from another rank: one entry before that which takes it, or one that its peer sends later."""
        takes = {self.needs(a): max(0, i - 1) for i, e in enumerate(self.entries[rank]) for a in e}
        places = {}
        for peer in range(len(self.entries)):
            sends = [self.output(a) for e in self.entries[peer] for a in reversed(e)]
            mine = [key for key in sends if self.travels(key) and self.taker[key] == rank]
            for position, key in enumerate(mine):
                places[key] = min(takes[later] for later in mine[position:])
        return places

    def run(self):
        """{action: (start, end)}; None if ranks stall."""
        while True:
            while self.something_decided():
                pass
            if not self.events:
                done = all(place == len(mine) for place, mine in zip(self.next_entry, self.entries, strict=True))
                return self.times if done else None
            self.now = min(time for time, *_ in self.events)
            due = [event for event in self.events if event[0] == self.now]
            self.events = [event for event in self.events if event[0] != self.now]
            for _, what, about in due:
                what(about)

    def later(self, delay, what, about):
        self.events.append((self.now + delay, what, about))

    def something_decided(self):
        decided = [self.decide(rank) for rank in range(len(self.entries))]
        return any(decided) and not any(time == self.now for time, *_ in self.events)

    def decide(self, rank):
        place, mine = self.next_entry[rank], self.entries[rank]
        if self.busy[rank] or place == len(mine):
            return False
        if self.way is P2P.CALLS and mine[place][0] not in self.called:
            self.called.add(mine[place][0])
            for key in filter(self.travels, map(self.needs, mine[place])):
                self.want(key)
        if self.tied[rank]:
            return False
        if self.way is P2P.POSTED:
            for key, when in self.posts[rank].items():
                if when <= place and key not in self.wanted:
                    self.wanted.add(key)
                    self.match(key)
        missing = [key for key in map(self.needs, mine[place]) if key is not None and key not in self.there]
        if not missing:
            self.begin(rank, mine[place])
            return True
        if self.way in (P2P.BLOCKING, P2P.BLOCKING_FUSED):
            self.want(missing[0])
            return True
        return False

    def begin(self, rank, entry):
        self.busy[rank], self.next_entry[rank] = True, self.next_entry[rank] + 1
        spent = 0
        for action in entry:
            length = self.durations[action.stage, action.op, action.microbatch]
            self.times[action] = (self.now + spent, self.now + spent + length)
            spent += length + (self.host if action in self.couples else 0)
        self.later(spent, self.end, (rank, entry))

    def end(self, about):
        rank, entry = about
        for action in reversed(entry):
            key = self.output(action)
            if self.travels(key):
                self.send(rank, key)
            elif key is not None:
                self.there.add(key)
        if self.host and self.next_entry[rank] < len(self.entries[rank]):
            self.later(self.host, self.rested, rank)
        else:
            self.busy[rank] = False

    def rested(self, rank):
        self.busy[rank] = False

    def send(self, rank, key):
        self.sent.add(key)
        if self.way in BUSY_WAYS:
            self.tied[rank] += 1
        if self.way is P2P.BLOCKING_FUSED and not self.has_chunks():
            wished = self.next_wish(rank)
            if wished is not None and self.sender(wished) == self.taker[key]:
                self.want(wished)
        self.match(key)

    def has_chunks(self):
        return len(self.owner) > len(self.entries)

    def next_wish(self, rank):
        """What the rank takes from another one before it sends again; of a pair, both take before either sends."""
        for entry in self.entries[rank][self.next_entry[rank] :]:
            for action in entry:
                key = self.needs(action)
                if self.travels(key) and key not in self.there:
                    return key
            if any(self.travels(self.output(action)) for action in entry):
                return None
        return None

    def want(self, key):
        self.wanted.add(key)
        self.tied[self.taker[key]] += 1
        self.match(key)

    def match(self, key):
        """Start a message once it can."""
        if key not in self.sent:
            return
        wanted = key in self.wanted
        if self.way is P2P.BLOCKING_FUSED and self.has_chunks() and not wanted:
            self.tied[self.taker[key]] += 1
        elif self.way is not P2P.OVERLAPPED and not wanted:
            return
        self.sent.remove(key)
        self.later(self.hop, self.arrive, key)

    def arrive(self, key):
        self.there.add(key)
        if self.way in BUSY_WAYS:
            self.tied[self.taker[key]] -= 1
            self.tied[self.sender(key)] -= 1
