"""What can happen in any interleaving of a small run?  An independent model of the execution semantics.

It takes the operations that the agents issue (statement, operands, task) and nothing else from the tool: channels,
locks, rings and bytes are worked out here again, plainly and slowly.  Two views are computed:

* `explore`: every reachable state of the pipes.  Deadlock, leftovers, the largest number of pending signals and
  "these two accesses can happen in either order" are read off the states; there is no happens-before in it.
* `close`: one greedy run, an explicit graph of the orders that the semantics names, and its transitive closure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from math import lcm

from fencepost import ir
from fencepost.model.executor import Run

Key = Hashable
ALL_PIPES = ("S", "MTE1", "MTE2", "MTE3", "M", "V", "FIX")


class TooLarge(Exception):
    """More states than the budget."""


@dataclass
class Event:
    """One issued operation: what it needs, takes, gives and touches."""

    number: int
    agent: str
    place: int
    pipe: str
    stmt: ir.Node
    arguments: tuple[int, ...]
    task: int | None
    takes: list[Key] = field(default_factory=list)
    gives: list[Key] = field(default_factory=list)
    after: list[int] = field(default_factory=list)  # events that must be over (scalar unit, locks, barriers)
    meeting: int | None = None  # the how-manieth sync_all of its agent
    pushes: list[Key] = field(default_factory=list)
    pops: list[Key] = field(default_factory=list)
    frees: list[Key] = field(default_factory=list)
    looks: dict[Key, int] = field(default_factory=dict)
    turns: dict[Key, int] = field(default_factory=dict)
    operands: list[frozenset[Key]] = field(default_factory=list)  # what each operand reads, of buffers ever written
    reads: frozenset[Key] = frozenset()
    writes: frozenset[Key] = frozenset()

    @property
    def queue(self) -> tuple[str, str]:
        return self.agent, self.pipe


@dataclass
class Outcome:
    """What the model says about one run.

    `unordered` holds pairs of event numbers that conflict and have no order; `peak` the largest number of pending
    signals per channel; `left` what may stay pending at the end; `unwritten` reads that can come before every write.
    """

    events: list[Event]
    deadlock: bool = False
    stuck: set[int] = field(default_factory=set)
    unordered: set[tuple[int, int]] = field(default_factory=set)
    peak: dict[Key, int] = field(default_factory=dict)
    left: dict[Key, int] = field(default_factory=dict)
    unwritten: set[int] = field(default_factory=set)
    flags_left: bool = False
    overrun: bool = False
    early_free: bool = False
    states: int = 0


# ------------------------------------------------------------------------------------------------ operations


@dataclass
class System:
    """The issued operations of one run, with their mutual requirements."""

    kernel: ir.Kernel
    issued: Mapping[str, list[tuple[ir.Node, tuple[int, ...], int | None]]]
    credits: str
    events: list[Event] = field(default_factory=list)
    by_agent: dict[str, list[Event]] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for c in self.kernel.constants:
            if isinstance(c.value, ir.Int):
                self.constants[c.name] = c.value.value
        self.buffers = {b.name: b for b in self.kernel.buffers}
        self.rings = {(f.sender, self.value(f.id)): f for f in self.kernel.fifos}
        self.early = self.kernel.target != "a5"
        self.auto = self.kernel.auto_mutex and self.kernel.target == "a5"
        self.shares = dict.fromkeys(self.buffers, 1)
        for ops in self.issued.values():
            for stmt, arguments, _ in ops:
                for access, _, _, n in self.operands(stmt, arguments):
                    self.shares[access.name] = lcm(self.shares[access.name], n)
        for agent, ops in self.issued.items():
            mine: list[Event] = []
            for place, (stmt, arguments, task) in enumerate(ops):
                event = Event(len(self.events), agent, place, self.pipe(stmt), stmt, arguments, task)
                self.fill(event)
                self.requirements(event, mine)
                mine.append(event)
                self.events.append(event)
            self.by_agent[agent] = mine

    def value(self, expr: ir.Expr) -> int:
        if isinstance(expr, ir.Int):
            return expr.value
        assert isinstance(expr, ir.Name)
        return self.constants[expr.id]

    @staticmethod
    def pipe(stmt: ir.Node) -> str:
        match stmt:
            case ir.SyncSrc(source=pipe) | ir.SyncDst(target=pipe):
                return pipe
            case ir.Barrier() | ir.SyncAll():
                return "S"
            case ir.SetCross() | ir.WaitCross() | ir.MutexLock() | ir.MutexUnlock() | ir.DataOp():
                return stmt.pipe
            case ir.Push() | ir.Pop() | ir.Free():
                return stmt.pipe
        raise AssertionError(stmt)

    # ------------------------------------------------------------------------------------------ one operation

    def fill(self, e: Event) -> None:
        stmt, agent = e.stmt, e.agent
        match stmt:
            case ir.SetCross():
                e.gives = self.cross(agent, stmt, e.arguments)
            case ir.WaitCross():
                e.takes = self.cross(agent, stmt, e.arguments)
            case ir.SyncSrc():
                e.gives = [("flag", agent, stmt.source, stmt.target, e.arguments[0])]
            case ir.SyncDst():
                e.takes = [("flag", agent, stmt.source, stmt.target, e.arguments[0])]
            case ir.Push() | ir.Pop() | ir.Free():
                self.message(e)
            case ir.DataOp():
                self.data(e)

    def cross(self, agent: str, stmt: ir.SetCross | ir.WaitCross, arguments: tuple[int, ...]) -> list[Key]:
        number, sets = arguments[0], isinstance(stmt, ir.SetCross)
        if stmt.mode in ("INTER_SUBBLOCK", "INTER_BLOCK"):
            group = ["aic"] if agent == "aic" else ["aiv0", "aiv1"]
            return [("group", stmt.mode, *((agent, p) if sets else (p, agent)), number) for p in group]
        if agent != "aic":
            return [("up" if sets else "down", agent, number)]
        lanes = ["aiv0", "aiv1"]
        if stmt.mode == "UNICAST_BLOCK":
            lane = arguments[1] if len(arguments) > 1 else 0
            if number >= 16:
                number, lane = number - 16, 1
            lanes = [f"aiv{lane}"]
        return [("down" if sets else "up", a, number) for a in lanes]

    def message(self, e: Event) -> None:
        stmt = e.stmt
        here, there = ("cube", "vector") if e.agent == "aic" else ("vector", "cube")
        sender = here if isinstance(stmt, ir.Push) else there
        fifo = self.rings[sender, e.arguments[0]]  # type: ignore[index]
        lanes = [0, 1][: fifo.lanes] if e.agent == "aic" else [int(e.agent[3])]
        keys: list[Key] = [(sender, e.arguments[0], lane) for lane in lanes if lane < fifo.lanes]
        if isinstance(stmt, ir.Push):
            e.pushes = keys
        elif isinstance(stmt, ir.Pop):
            e.pops = keys
            e.frees = keys if self.early else []
        elif not self.early:
            e.frees = keys

    def slots(self, key: Key) -> int:
        assert isinstance(key, tuple)
        return self.value(self.rings[key[0], key[1]].slots)

    @staticmethod
    def period(slots: int) -> int:
        return slots if slots <= 2 else slots // 2

    def operands(self, stmt: ir.Node, arguments: tuple[int, ...]) -> Iterable[tuple[ir.Access, int, int, int]]:
        """Access, slot, part, parts of every operand in memory."""
        if not isinstance(stmt, ir.DataOp):
            return
        given = list(arguments)
        for access in (*stmt.writes, *stmt.reads):
            if access.name in self.buffers:
                slot = given.pop(0) if access.index is not None else 0
                part = given.pop(0) if access.part is not None else 0
                parts = given.pop(0) if access.parts is not None else 1
                yield access, slot, part, parts

    def depth(self, buffer: ir.Buffer) -> int:
        return 1 if buffer.depth is None else self.value(buffer.depth)

    def bytes(self, access: ir.Access, slot: int, part: int, parts: int, lanes: Iterable[int]) -> set[Key]:
        """The bytes (or equal shares of a slot without an address) that an access touches."""
        b = self.buffers[access.name]
        if b.addresses is None:
            n = self.shares[b.name]
            where: list[Key] = [(b.name, slot, i) for i in range(n)]
        else:
            assert b.size is not None
            size = self.value(b.size)
            rows = 1 if b.rows is None else self.value(b.rows)
            stride = size if b.stride is None else self.value(b.stride)
            if len(b.addresses) > 1 or slot == 0:
                base = self.value(b.addresses[slot])
            else:
                base = self.value(b.addresses[0]) + slot * (stride * rows if rows > 1 else size)
            where = [(b.space, base + r * stride + i) for r in range(rows) for i in range(size)]
        low, high = part * len(where) // parts, (part + 1) * len(where) // parts
        copies = list(lanes) if b.space == "Vec" else [0]
        return {(place, copy) for place in where[low:high] for copy in copies}

    def data(self, e: Event) -> None:
        stmt = e.stmt
        assert isinstance(stmt, ir.DataOp)
        lanes = [int(e.agent[3])] if e.agent != "aic" else {"both": [0, 1], "0": [0], "1": [1]}[stmt.lanes]
        touched: list[set[Key]] = []
        for access, slot, part, parts in self.operands(stmt, e.arguments):
            inside = 0 <= slot < self.depth(self.buffers[access.name]) and 0 <= part < parts
            touched.append(self.bytes(access, slot, part, parts, lanes) if inside else set())
        n = sum(a.name in self.buffers for a in stmt.writes)
        e.writes = frozenset().union(*touched[:n])
        e.reads = frozenset().union(*touched[n:])
        buffers = [a.name for a in (*stmt.writes, *stmt.reads) if a.name in self.buffers]
        e.operands = [
            frozenset(cells) for name, cells in zip(buffers[n:], touched[n:], strict=True) if self.ever_written(name)
        ]
        if stmt.phase is not None:
            produce = stmt.pipe == "M"
            mine = e.writes if produce else e.reads
            cells = {c for c in mine if self.is_acc(c)}
            e.looks = dict.fromkeys(cells, 0 if produce else 1)
            if stmt.phase == "Final":
                e.turns = dict.fromkeys(cells, 1 if produce else 0)

    def ever_written(self, name: str) -> bool:
        """Whether an operation of the text writes memory that overlaps this buffer."""
        written = {
            a.name for n in ir.walk(self.kernel) if isinstance(n, ir.DataOp) for a in n.writes if a.name in self.buffers
        }

        def region(name: str) -> set[Key]:
            buffer = self.buffers[name]
            return {c for i in range(self.depth(buffer)) for c in self.bytes(ir.Access(name), i, 0, 1, [0, 1])}

        return any(region(name) & region(w) for w in written)

    def is_acc(self, cell: Key) -> bool:
        assert isinstance(cell, tuple)
        name = cell[0][0]
        return name == "Acc" or (name in self.buffers and self.buffers[name].space == "Acc")

    def locks(self, e: Event) -> tuple[set[int], set[int]]:
        """Mutex ids that an operation takes and gives back."""
        match e.stmt:
            case ir.MutexLock():
                return {e.arguments[0]}, set()
            case ir.MutexUnlock():
                return set(), {e.arguments[0]}
            case ir.DataOp() if self.auto:
                ids: set[int] = set()
                for access, slot, part, parts in self.operands(e.stmt, e.arguments):
                    b = self.buffers[access.name]
                    if b.mutex is None or not 0 <= slot < self.depth(b):
                        continue
                    if e.looks and self.bytes(access, slot, part, parts, [0]) <= set(e.looks):
                        continue  # a phase replaces the automatic order of this accumulator
                    ids |= {self.value(i) for i in b.mutex[slot]}
                return ids, ids
        return set(), set()

    def requirements(self, e: Event, before: list[Event]) -> None:
        """Earlier operations of the same agent that must be over before this one can execute."""
        needed = {b.number for b in before if b.pipe == "S"}
        if isinstance(e.stmt, ir.SyncAll) or (isinstance(e.stmt, ir.Barrier) and e.stmt.pipe == "ALL"):
            needed |= {b.number for b in before}
        taken, _ = self.locks(e)
        if taken:
            needed |= {b.number for b in before if b.pipe != e.pipe and self.locks(b)[1] & taken}
        if isinstance(e.stmt, ir.SyncAll):
            e.meeting = sum(isinstance(b.stmt, ir.SyncAll) for b in before)
        e.after = sorted(needed)

    def meeting_needs(self, e: Event) -> list[int] | None:
        """What must be over on all agents before this sync_all ends; None if some agent never arrives."""
        needs: list[int] = []
        for mine in self.by_agent.values():
            points = [x for x in mine if x.meeting == e.meeting]
            if not points:
                return None
            needs += [x.number for x in mine[: points[0].place]]
        return needs


def system(run: Run) -> System:
    """The operations that a run issued, as a system of its own."""
    issued = {agent: [(op.stmt, op.effect.arguments, op.task) for op in ops] for agent, ops in run.issued.items()}
    return System(run.compiled.kernel, issued, run.credits)


# ------------------------------------------------------------------------------------------------ all interleavings


class _Counters:
    """Counters of signals and messages as one integer, eight bits each: no counter of a reachable state is negative."""

    def __init__(self, events: list[Event]) -> None:
        keys: dict[Key, int] = {}
        for e in events:
            for key in self._deltas(e):
                keys.setdefault(key, 8 * len(keys))
        self.shift = keys
        self.step = [sum(n << keys[key] for key, n in self._deltas(e).items()) for e in events]

    @staticmethod
    def _deltas(e: Event) -> dict[Key, int]:
        found: dict[Key, int] = defaultdict(int)
        for key in e.gives:
            found[key] += 1
        for key in e.takes:
            found[key] -= 1
        for word, keys in (("pushed", e.pushes), ("popped", e.pops), ("freed", e.frees)):
            for key in keys:
                found[word, key] += 1
        return found

    def read(self, packed: int, key: Key) -> int:
        shift = self.shift.get(key)
        return 0 if shift is None else packed >> shift & 255


def explore(s: System, budget: int = 30_000) -> Outcome:
    """Visit every reachable state.

    Raises:
        TooLarge: more than `budget` states.
    """
    events = s.events
    queues: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for e in events:
        queues[e.queue].append(e)
    lines = list(queues.values())
    counters = _Counters(events)
    needs = _needs(s)
    out = Outcome(events)
    accesses = [e for e in events if e.reads or e.writes]
    conflicts = [(a, b) for i, a in enumerate(accesses) for b in accesses[i + 1 :] if meet(a, b)]
    watched = sum(1 << n for n in {e.number for pair in conflicts for e in pair})
    watched |= sum(1 << e.number for e in events if e.pushes or e.pops or e.frees)
    missing = [0] * len(events)  # per watched event: events that some state has not done although it has done this one
    writers_of = [
        [sum(1 << w.number for w in events if w is not e and w.writes & cells) for cells in e.operands] for e in events
    ]
    gives = [(key, counters.shift[key]) for key in dict.fromkeys(k for e in events for k in e.gives)]
    flags = sorted({c for e in events for c in e.looks}, key=repr)
    everything = (1 << len(events)) - 1
    start = ((0,) * len(lines), (0,) * len(flags))
    seen = {start}
    stack: list[tuple[tuple[tuple[int, ...], tuple[int, ...]], int, int]] = [(start, 0, 0)]
    ran = 0
    while stack:
        (counts, values), done, packed = stack.pop()
        out.states += 1
        if out.states > budget:
            raise TooLarge
        todo = everything & ~done
        ran |= done
        rest = done & watched
        while rest:
            low = rest & -rest
            missing[low.bit_length() - 1] |= todo
            rest ^= low
        for key, shift in gives:
            n = packed >> shift & 255
            if n > out.peak.get(key, 0):
                out.peak[key] = n
        value = dict(zip(flags, values, strict=True))
        moved = False
        for i, line in enumerate(lines):
            if counts[i] == len(line):
                continue
            e = line[counts[i]]
            if needs[e.number] & ~done or not _enabled(s, e, lambda key, p=packed: counters.read(p, key), value):
                continue
            moved = True
            if any(not done & writers for writers in writers_of[e.number]):
                out.unwritten.add(e.number)
            after = tuple(e.turns.get(f, v) for f, v in zip(flags, values, strict=True)) if e.turns else values
            new = ((*counts[:i], counts[i] + 1, *counts[i + 1 :]), after)
            if new not in seen:
                seen.add(new)
                stack.append((new, done | 1 << e.number, packed + counters.step[e.number]))
        if not moved:
            if todo:
                out.deadlock = True
                out.stuck |= {line[c].number for line, c in zip(lines, counts, strict=True) if c < len(line)}
            else:
                out.left = _left(s, lambda key, p=packed: counters.read(p, key))
                out.flags_left |= any(values)
    for a, b in conflicts:
        if missing[a.number] >> b.number & 1 and missing[b.number] >> a.number & 1:
            out.unordered.add((a.number, b.number))
    turn = sorted((e for e in events if ran >> e.number & 1), key=lambda e: (~missing[e.number] & ran).bit_count())
    out.overrun = _overruns(s, turn, lambda x, y: not missing[y] >> x & 1)
    out.early_free = not s.early and _early_frees(turn, lambda x, y: not missing[y] >> x & 1)
    return out


def _needs(s: System) -> list[int]:
    """Per event the events that must be over, as a set of bits; the bit after the last event is never set."""
    found = []
    for e in s.events:
        needs = sum(1 << n for n in e.after)
        if e.meeting is not None:
            others = s.meeting_needs(e)
            needs = 1 << len(s.events) if others is None else needs | sum(1 << n for n in set(others) - set(e.after))
        found.append(needs)
    return found


def _left(s: System, tally: Callable[[Key], int]) -> dict[Key, int]:
    """Signals and messages that nobody took, at the end of a run."""
    left = {key: tally(key) for e in s.events for key in e.gives if tally(key)}
    for e in s.events:
        for key in e.pushes:
            if tally(("pushed", key)) > tally(("popped", key)):
                left["messages", key] = tally(("pushed", key)) - tally(("popped", key))
    return left


def meet(a: Event, b: Event) -> bool:
    return bool(a.writes & b.writes or a.writes & b.reads or a.reads & b.writes)


def _enabled(s: System, e: Event, tally: Callable[[Key], int], value: Mapping[Key, int]) -> bool:
    """Whether counters and accumulator flags let the next operation of a pipe go on."""
    if any(tally(key) <= 0 for key in e.takes) or any(value[c] != v for c, v in e.looks.items()):
        return False
    if any(tally(("popped", key)) >= tally(("pushed", key)) for key in e.pops):
        return False
    return all(_room(s, key, tally(("pushed", key)), tally(("freed", key))) for key in e.pushes)


def _room(s: System, key: Key, pushed: int, freed: int) -> bool:
    """Whether the push number `pushed` (from 0) may go on when `freed` messages are released."""
    slots = s.slots(key)
    if pushed < slots:
        return True
    if s.credits == "per_slot":
        return freed >= pushed - slots + 1
    period = s.period(slots)
    if pushed % period:
        return True
    taken = sum(1 for n in range(slots, pushed) if n % period == 0)
    return freed // period > taken


def _by_key(events: list[Event], keys: Callable[[Event], list[Key]]) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = defaultdict(list)
    for e in events:
        for key in keys(e):
            found[key].append(e.number)
    return found


def _overruns(s: System, order: list[Event], before: Callable[[int, int], bool]) -> bool:
    """Whether some push is not ordered after the release of the message whose slot it reuses.

    `order` holds the events that can run, in one order in which they can; `before` tells what is ordered.
    """
    frees = _by_key(order, lambda e: e.frees)
    for key, pushes in _by_key(order, lambda e: e.pushes).items():
        for n, push in enumerate(pushes):
            at = n - s.slots(key)
            if at >= 0 and (at >= len(frees[key]) or not before(frees[key][at], push)):
                return True
    return False


def _early_frees(order: list[Event], before: Callable[[int, int], bool]) -> bool:
    """Whether some tfree is not ordered after the pop of the message that it frees."""
    pops = _by_key(order, lambda e: e.pops)
    for key, frees in _by_key(order, lambda e: e.frees).items():
        for n, free in enumerate(frees):
            if n >= len(pops[key]) or not before(pops[key][n], free):
                return True
    return False


# ------------------------------------------------------------------------------------------------ explicit order


def close(s: System) -> Outcome:
    """One greedy run, the graph of all orders that the semantics names, and its transitive closure.

    Meaningful where every channel has one order of its sets and one of its waits.
    """
    events = s.events
    out = Outcome(events)
    queues: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for e in events:
        queues[e.queue].append(e)
    needs = _needs(s)
    at = dict.fromkeys(queues, 0)
    done, order = 0, list[Event]()
    tally: dict[Key, int] = defaultdict(int)
    value: dict[Key, int] = defaultdict(int)
    before: list[set[int]] = [set() for _ in events]  # direct predecessors
    sets: dict[Key, list[int]] = defaultdict(list)
    waits: dict[Key, list[int]] = defaultdict(list)
    pushed: dict[Key, list[int]] = defaultdict(list)
    popped: dict[Key, list[int]] = defaultdict(list)
    freed: dict[Key, list[int]] = defaultdict(list)
    raised: dict[Key, int] = {}
    lowered: dict[Key, int] = {}
    moved = True
    while moved:
        moved = False
        for q, queue in queues.items():
            while at[q] < len(queue):
                e = queue[at[q]]
                if needs[e.number] & ~done or not _enabled(s, e, tally.__getitem__, value):
                    break
                mine = before[e.number]
                if at[q]:
                    mine.add(queue[at[q] - 1].number)
                mine |= set(e.after)
                if e.meeting is not None:
                    mine |= set(s.meeting_needs(e) or ())
                for key in e.takes:
                    mine.add(sets[key][len(waits[key])])
                    waits[key].append(e.number)
                    tally[key] -= 1
                for key in e.gives:
                    sets[key].append(e.number)
                    tally[key] += 1
                for key in e.pops:
                    mine.add(pushed[key][len(popped[key])])
                    popped[key].append(e.number)
                    tally["popped", key] += 1
                for key in e.pushes:
                    slots, n = s.slots(key), len(pushed[key])
                    period = s.period(slots)
                    if n >= slots and s.credits == "per_slot":
                        mine.add(freed[key][n - slots])
                    elif n >= slots and n % period == 0:
                        taken = sum(1 for k in range(slots, n) if k % period == 0)
                        mine.add(freed[key][(taken + 1) * period - 1])
                    pushed[key].append(e.number)
                    tally["pushed", key] += 1
                for key in e.frees:
                    freed[key].append(e.number)
                    tally["freed", key] += 1
                for cell, needed in e.looks.items():
                    source = (lowered if needed == 0 else raised).get(cell)
                    if source is not None:
                        mine.add(source)
                for cell, v in e.turns.items():
                    value[cell] = v
                    (raised if v else lowered)[cell] = e.number
                done |= 1 << e.number
                order.append(e)
                at[q] += 1
                moved = True
    closed = [0] * len(events)
    for e in order:
        for p in before[e.number]:
            closed[e.number] |= closed[p] | 1 << p
    out.deadlock = len(order) < len(events)
    out.stuck = {queue[at[q]].number for q, queue in queues.items() if at[q] < len(queue)}
    accesses = [e for e in order if e.reads or e.writes]
    for i, a in enumerate(accesses):
        for b in accesses[i + 1 :]:
            if meet(a, b) and not closed[b.number] >> a.number & 1:
                out.unordered.add((min(a.number, b.number), max(a.number, b.number)))
    for key, numbers in sets.items():
        for k, setter in enumerate(numbers):
            pending = k + 1 - sum(closed[setter] >> w & 1 for w in waits[key])
            out.peak[key] = max(pending, out.peak.get(key, 0))
    if not out.deadlock:
        out.left = _left(s, tally.__getitem__)
        out.flags_left = any(value.values())
    out.overrun = _overruns(s, order, lambda x, y: bool(closed[y] >> x & 1))
    out.early_free = not s.early and _early_frees(order, lambda x, y: bool(closed[y] >> x & 1))
    written: set[Key] = set()
    for e in order:
        if any(not cells & written for cells in e.operands):
            out.unwritten.add(e.number)
        written |= e.writes
    return out
