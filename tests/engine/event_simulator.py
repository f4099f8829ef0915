"""A second simulator, written for the tests alone: it polls every rank at every instant at which something happens.

It knows what docs/explanation/messages.md says of the ways to send, and shares no code with `hops.engine`. Slow, and
without faults, shared links, iterations and their ends.
"""

from hops.engine.settings import P2P
from hops.program.action import Op, Pair


class Simulator:
    """Times in ns. An output is known as (stage that takes it, whether it is a gradient, microbatch)."""

    def __init__(self, program, durations, hop, host, way):
        self.owner, self.way, self.hop, self.host = program.shape.rank_of_stage, way, hop, host
        ranks = range(program.num_ranks)
        self.entries = [[[*each] if isinstance(each, Pair) else [each] for each in program.rank(r)] for r in ranks]
        self.durations, self.now, stages = durations, 0, len(self.owner) // program.shape.copies
        self.firsts = {copy * stages for copy in range(program.shape.copies)}
        self.lasts = {first + stages - 1 for first in self.firsts}
        self.next_entry, self.busy, self.tied = [0 for _ in ranks], [False for _ in ranks], [0 for _ in ranks]
        self.events, self.there, self.sent, self.wanted, self.times = [], set(), set(), set(), {}
        self.producer = {self.output(a): a for r in ranks for e in self.entries[r] for a in e if self.output(a)}
        self.posts = [self.posting_places(rank) for rank in ranks]

    def needs(self, action):
        stage, op, microbatch = action
        if op is Op.F and stage not in self.firsts:
            return (stage, False, microbatch)
        return (stage, True, microbatch) if op in (Op.B, Op.I) and stage not in self.lasts else None

    def output(self, action):
        stage, op, microbatch = action
        if op is Op.F and stage not in self.lasts:
            return (stage + 1, False, microbatch)
        return (stage - 1, True, microbatch) if op in (Op.B, Op.I) and stage not in self.firsts else None

    def sender(self, key):
        return self.owner[self.producer[key][0]]

    def travels(self, key):
        return key is not None and self.sender(key) != self.owner[key[0]]

    def posting_places(self, rank):
        """By message from another rank: one entry before that which takes it, or one that its peer sends later."""
        takes = {self.needs(a): max(0, i - 1) for i, e in enumerate(self.entries[rank]) for a in e}
        places = {}
        for peer in range(len(self.entries)):
            sends = [self.output(a) for e in self.entries[peer] for a in reversed(e)]
            mine = [key for key in sends if self.travels(key) and self.owner[key[0]] == rank]
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
        if self.busy[rank] or self.tied[rank] or place == len(mine):
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
            spent += length
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
        if self.way in (P2P.BLOCKING, P2P.BLOCKING_FUSED):
            self.tied[rank] += 1
        if self.way is P2P.BLOCKING_FUSED and not self.has_chunks():
            wished = self.next_wish(rank)
            if wished is not None and self.sender(wished) == self.owner[key[0]]:
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
        self.tied[self.owner[key[0]]] += 1
        self.match(key)

    def match(self, key):
        """Start a message once it can."""
        if key not in self.sent:
            return
        wanted = key in self.wanted
        if self.way is P2P.BLOCKING_FUSED and self.has_chunks() and not wanted:
            self.tied[self.owner[key[0]]] += 1
        elif self.way is not P2P.OVERLAPPED and not wanted:
            return
        self.sent.remove(key)
        self.later(self.hop, self.arrive, key)

    def arrive(self, key):
        self.there.add(key)
        if self.way in (P2P.BLOCKING, P2P.BLOCKING_FUSED):
            self.tied[self.owner[key[0]]] -= 1
            self.tied[self.sender(key)] -= 1
