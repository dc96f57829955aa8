"""The reference executor: what happens when a kernel runs on concrete values?

It is the execution model.  Agents issue operations to in-order pipes; pipes block on signals, rings, locks and
accumulator flags; vector clocks give happens-before.  One canonical run decides a concrete shape, because with one
waiting and one setting pipe per channel the k-th set meets the k-th wait in every run; where that premise fails the
run says so (`Contested`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fencepost import ir
from fencepost.model.effects import Channel, Effect, PipeKey, Resolver, Touch
from fencepost.model.functions import FunctionTable, Point
from fencepost.model.issue import BadValue, LimitReached, issue
from fencepost.model.lifetimes import misused
from fencepost.model.program import Compiled, compile_kernel

DEFAULT_LIMIT = 1_000_000

Clock = list[int]


class Op:
    """One issued operation.

    `number` counts the operations of its agent; `seq` counts those of its pipe once executed (0: never executed).
    `task` is the annotated round, or None.
    """

    __slots__ = ("after", "effect", "locks", "message", "number", "pipe", "released", "seq", "task")

    def __init__(self, effect: Effect, number: int, task: int | None, pipe: int) -> None:
        self.effect = effect
        self.number = number
        self.task = task
        self.pipe = pipe
        self.seq = 0
        self.after: tuple[int, ...] | None = None  # clock of pipe S when this was issued
        self.locks: tuple[Op, ...] = ()  # earlier holders of its mutexes on other pipes
        self.released: tuple[int, ...] | None = None  # clock at completion, when somebody may need it
        self.message: int | None = None  # number of the FIFO message pushed, popped or freed

    @property
    def stmt(self) -> ir.Node:
        return self.effect.stmt

    def __repr__(self) -> str:
        return f"<{self.effect.agent} #{self.number} {type(self.stmt).__name__}>"


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses that meet in memory without an order.  `first` ran first in the canonical run."""

    kind: Literal["write-read", "read-write", "write-write"]
    first: Op
    second: Op
    touched: Touch  # of the second operation
    first_touched: Touch
    uses: int = 0  # how often the reader's statement had used the cell before
    writes: int = 0  # how often the cell had been written before the write of this race


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A read of a slot that nothing has written, although some operation of the text writes the buffer."""

    op: Op
    touched: Touch


@dataclass(frozen=True, slots=True)
class Overflow:
    """`pending` signals can be pending on a channel when `op` sets it, in some legal execution."""

    channel: int
    op: Op
    pending: int


@dataclass(frozen=True, slots=True)
class Leftover:
    """Signals that nobody took: the sets number `first`.. of the channel, in order."""

    channel: int
    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pipe that waits for ever at `op`.

    `reason`: "channel", "push", "pop", "phase", "lock", "drain" or "meet"; `on` are the numbers of the channels or
    rings that it waits for.
    """

    op: Op
    reason: Literal["channel", "push", "pop", "phase", "lock", "drain", "meet"]
    on: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contested:
    """Two operations of unordered pipes set, await or hand over one thing; which comes first is not determined."""

    what: str
    channel: int | None
    first: Op
    second: Op


@dataclass(frozen=True, slots=True)
class PhaseFault:
    """A fault of the unit_flag hand-over: "left" (flag still 1 at the end, `op` set it)."""

    kind: Literal["left"]
    op: Op
    cell: int


@dataclass(frozen=True, slots=True)
class MessageFault:
    """A FIFO fault.

    `kind`: "overrun" (a push is not ordered after the release of its slot), "left" (messages never popped), "unfreed"
    (popped, never freed), "freed-twice", "free-unpopped", "use-after-free", "round" (task of push and pop differ).
    """

    kind: Literal["overrun", "left", "unfreed", "free-unpopped", "freed-twice", "use-after-free", "round"]
    ring: int
    op: Op
    other: Op | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class MutexFault:
    """`kind`: "unlocked" (unlock without lock), "relocked" (lock while another pipe holds it), "held" (at the end)."""

    kind: Literal["unlocked", "relocked", "held"]
    op: Op


@dataclass(slots=True)
class Run:
    """The outcome of one concrete run, as data.

    `issued` holds every operation of each agent, whether or not it was executed; `order` the executed ones in the
    order of the canonical run.  `sets[c]` and `waits[c]` are the executed operations of channel c in order: the k-th
    of each match.  `peak[c]` is the largest number of signals that any legal execution can have pending.
    """

    compiled: Compiled
    values: tuple[int, ...]
    functions: dict[Point, int]
    credits: Literal["per_slot", "batched"]
    channels: list[Channel]
    resolver: Resolver
    pipes: list[PipeKey]
    issued: dict[str, list[Op]] = field(default_factory=dict)
    order: list[Op] = field(default_factory=list)
    sets: list[list[Op]] = field(default_factory=list)
    waits: list[list[Op]] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)
    bad_values: list[BadValue] = field(default_factory=list)
    races: list[Race] = field(default_factory=list)
    unwritten: list[Unwritten] = field(default_factory=list)
    overflows: list[Overflow] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    blocked: list[Blocked] = field(default_factory=list)
    contested: list[Contested] = field(default_factory=list)
    phase_faults: list[PhaseFault] = field(default_factory=list)
    message_faults: list[MessageFault] = field(default_factory=list)
    mutex_faults: list[MutexFault] = field(default_factory=list)
    illegal: list[Op] = field(default_factory=list)
    outside: list[Op] = field(default_factory=list)
    pushes: list[list[Op]] = field(default_factory=list)
    pops: list[list[Op]] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """True if nothing at all went wrong (contested pairs count as wrong)."""
        return not (
            self.bad_values
            or self.races
            or self.unwritten
            or self.overflows
            or self.leftovers
            or self.blocked
            or self.contested
            or self.phase_faults
            or self.message_faults
            or self.mutex_faults
            or self.illegal
            or self.outside
        )

    def assignment(self) -> dict[str, int]:
        """The parameter values by name."""
        return dict(zip(self.compiled.parameters, self.values, strict=True))


def run(
    kernel: ir.Kernel | Compiled,
    values: Mapping[str, int],
    functions: FunctionTable | None = None,
    *,
    credits: Literal["per_slot", "batched"] = "per_slot",
    limit: int = DEFAULT_LIMIT,
) -> Run:
    """Execute a kernel on concrete values.

    Args:
        kernel: the kernel, or its compiled form (reuse it for many runs).
        values: one integer per parameter; `block` defaults to 0.
        functions: values of uninterpreted functions; every point is 1 by default.
        credits: how FIFO credits travel.
        limit: the largest number of instructions per agent.

    Raises:
        ModelError: the kernel cannot be modelled.
        LimitReached: the run is longer than `limit`.
        KeyError: a parameter has no value.
    """
    compiled = kernel if isinstance(kernel, Compiled) else compile_kernel(kernel)
    given = tuple(values.get("block", 0) if p == "block" else values[p] for p in compiled.parameters)
    table = functions if functions is not None else FunctionTable()
    weak: frozenset[int] = frozenset()
    while True:
        result = Machine(compiled, given, table, credits, limit, weak).run()
        contested = weak | {c.channel for c in result.contested if c.channel is not None}
        if contested == weak:
            return result
        weak = contested


class _Pipe:
    """One in-order pipe: its queue of issued operations and its clock."""

    __slots__ = ("clock", "joined", "key", "number", "queue", "seq")

    def __init__(self, number: int, key: PipeKey, width: int) -> None:
        self.number = number
        self.key = key
        self.queue: deque[Op] = deque()
        self.clock: Clock = [0] * width
        self.seq = 0
        self.joined: tuple[int, ...] | None = None


class _Signals:
    """The state of one channel."""

    __slots__ = ("by_pipe", "peak", "seqs", "sets", "tokens", "totals", "waits")

    def __init__(self) -> None:
        self.tokens: deque[tuple[int, ...]] = deque()
        self.sets: list[Op] = []
        self.waits: list[Op] = []
        self.seqs: dict[int, list[int]] = {}  # waiting pipe -> seqs of its waits
        self.peak = 0
        self.by_pipe: dict[int, list[tuple[int, ...]]] = {}  # weak channels: setting pipe -> clocks of its sets
        self.totals: dict[int, int] = {}  # weak channels: setting pipe -> sets in the whole run


class _Messages:
    """The state of one ring and lane."""

    __slots__ = ("credits", "freed", "frees", "popped", "pops", "pushed", "pushes", "taken")

    def __init__(self) -> None:
        self.pushed: list[tuple[int, ...]] = []
        self.freed: list[tuple[int, ...]] = []
        self.credits: list[tuple[int, ...]] = []
        self.taken = 0
        self.pushes: list[Op] = []
        self.pops: list[Op] = []
        self.frees: list[Op] = []


class _Cell:
    """The last write of a cell, and per pipe the last read since."""

    __slots__ = ("reads", "uses", "write", "write_touch", "writes")

    def __init__(self) -> None:
        self.write: Op | None = None
        self.write_touch: Touch | None = None
        self.reads: dict[int, tuple[Op, Touch]] = {}
        self.writes = 0
        self.uses: dict[tuple[str, int], int] = {}


class _Flag:
    """The unit_flag of one accumulator cell.

    Per role: `final` is the last operation that turned the flag, `since` the last operation of each pipe after it.
    """

    __slots__ = ("final", "since", "value")

    def __init__(self) -> None:
        self.value = 0
        self.final: dict[str, Op] = {}
        self.since: dict[str, dict[int, Op]] = {"produce": {}, "consume": {}}


class Machine:
    """One run in progress.

    On a channel in `weak` it is not determined which set meets which wait: a wait then only knows that at least as many
    sets happened as waits are ordered before it, less those that other pipes may have contributed.
    """

    def __init__(
        self,
        compiled: Compiled,
        values: tuple[int, ...],
        functions: FunctionTable,
        credits: Literal["per_slot", "batched"],
        limit: int,
        weak: frozenset[int] = frozenset(),
    ) -> None:
        self.weak = weak
        self.resolver = Resolver(compiled)
        self.compiled = compiled
        self.limit = limit
        self.functions = functions
        self.result = Run(compiled, values, functions.used, credits, self.resolver.channels, self.resolver, [])
        self.credits = credits
        self.pipe_numbers: dict[PipeKey, int] = {}
        self.pipes: list[_Pipe] = []
        self.cells: dict[int, _Cell] = {}
        self.flags: dict[int, _Flag] = {}
        self.seen: set[tuple[object, ...]] = set()  # what was reported already
        self.arrived: dict[str, list[tuple[int, ...]]] = {}

    # ---------------------------------------------------------------------------------------------- issue

    def run(self) -> Run:
        result = self.result
        for program in self.compiled.programs:
            listed, bad = issue(self.compiled, program, result.values, self.functions, self.limit)
            result.bad_values += bad
            resolve, agent, sites = self.resolver.effect, program.agent, program.sites
            known: dict[tuple[int, tuple[int, ...]], tuple[Effect, int]] = {}
            ops: list[Op] = []
            for number, (site, arguments, task) in enumerate(listed):
                key = (site, arguments)
                pair = known.get(key)
                if pair is None:
                    effect = resolve(agent, site, sites[site], arguments)
                    pair = known[key] = (effect, self._pipe(effect.pipe))
                ops.append(Op(pair[0], number, task, pair[1]))
            result.issued[agent] = ops
            self._pipe((agent, "S"))
        width = len(self.pipe_numbers)
        result.pipes = list(self.pipe_numbers)
        self.pipes = [_Pipe(i, key, width) for i, key in enumerate(result.pipes)]
        self.signals = [_Signals() for _ in self.resolver.channels]
        self.messages = {
            (n, lane): _Messages() for n, ring in enumerate(self.resolver.rings) for lane in range(ring.lanes)
        }
        self._check_operands()
        self._check_lifetimes()
        self._simulate()
        self._finish()
        return result

    def _pipe(self, key: PipeKey) -> int:
        return self.pipe_numbers.setdefault(key, len(self.pipe_numbers))

    def _check_operands(self) -> None:
        seen: set[int] = set()
        for ops in self.result.issued.values():
            for op in ops:
                effect = op.effect
                if (effect.illegal or effect.out_of_range) and id(effect) not in seen:
                    seen.add(id(effect))
                    if effect.illegal:
                        self.result.illegal.append(op)
                    if effect.out_of_range:
                        self.result.outside.append(op)

    def _check_lifetimes(self) -> None:
        """Find popped messages that are used after their slot was freed."""
        if not self.resolver.rings or self.compiled.target.frees_at != "tfree":
            return
        buffers = frozenset(self.resolver.layout.depths)
        for ops in self.result.issued.values():
            for kind, op, freed in misused(ops, buffers):
                ring = freed.effect.rings[0][0] if freed.effect.rings else None
                key = (kind, op.effect.site, freed.effect.site, op.effect.agent)
                if ring is not None and key not in self.seen:
                    self.seen.add(key)
                    self.result.message_faults.append(MessageFault(kind, ring, op, freed))

    # ---------------------------------------------------------------------------------------------- schedule

    def _simulate(self) -> None:
        agents = [_Agent(a, ops, self) for a, ops in self.result.issued.items()]
        progress = True
        while progress:
            progress = False
            for agent in agents:
                progress |= agent.advance()
        self.agents = agents

    def _finish(self) -> None:
        result = self.result
        for agent in self.agents:
            result.blocked += agent.blocked()
        hung = bool(result.blocked)
        for number, signals in enumerate(self.signals):
            result.sets.append(signals.sets)
            result.waits.append(signals.waits)
            result.peak.append(signals.peak)
            if signals.tokens and not hung:
                result.leftovers.append(Leftover(number, tuple(signals.sets[len(signals.waits) :])))
        for cell, flag in self.flags.items():
            if flag.value and not hung:
                result.phase_faults.append(PhaseFault("left", flag.final["produce"], cell))
        self._finish_messages(hung)
        for agent in self.agents:
            result.mutex_faults += agent.mutex_faults
            if not hung:
                result.mutex_faults += [MutexFault("held", op) for op in agent.held.values()]

    def _finish_messages(self, hung: bool) -> None:
        result = self.result
        for (number, lane), messages in self.messages.items():
            if lane == 0:
                result.pushes.append(messages.pushes)
                result.pops.append(messages.pops)
            if hung:
                continue
            left = len(messages.pushes) - len(messages.pops)
            if left > 0:
                op = messages.pushes[len(messages.pops)]
                result.message_faults.append(MessageFault("left", number, op, count=left))
            unfreed = len(messages.pops) - len(messages.frees)
            if unfreed > 0 and self.compiled.target.frees_at == "tfree":
                op = messages.pops[len(messages.frees)]
                result.message_faults.append(MessageFault("unfreed", number, op, count=unfreed))

    # ---------------------------------------------------------------------------------------------- one operation

    def obstacle(self, op: Op) -> tuple[str, tuple[int, ...]] | None:
        """Why `op`, at the head of its pipe, cannot execute now; None if it can."""
        effect = op.effect
        for channel in effect.waits:
            if not self.signals[channel].tokens:
                return "channel", tuple(c for c in effect.waits if not self.signals[c].tokens)
        for earlier in op.locks:
            if earlier.seq == 0:
                return "lock", ()
        if effect.phase is not None:
            needed = 0 if effect.phase[0] == "produce" else 1
            if any(self._flag(c).value != needed for c in effect.phased):
                return "phase", effect.phased
        if effect.rings:
            return self._ring_obstacle(op)
        return None

    def _ring_obstacle(self, op: Op) -> tuple[str, tuple[int, ...]] | None:
        stmt = op.effect.stmt
        for number, lane in op.effect.rings:
            m = self.messages[number, lane]
            if isinstance(stmt, ir.Pop):
                if len(m.pushed) <= len(m.pops):
                    return "pop", (number,)
            elif isinstance(stmt, ir.Push):
                n, slots = len(m.pushes), self.resolver.rings[number].slots
                if self.credits == "per_slot":
                    if n >= slots and len(m.freed) <= n - slots:
                        return "push", (number,)
                elif n >= slots and n % _period(slots) == 0 and len(m.credits) <= m.taken:
                    return "push", (number,)
        return None

    def execute(self, op: Op) -> None:
        """Execute `op`, which nothing holds back, at the head of its pipe."""
        pipe = self.pipes[op.pipe]
        clock = pipe.clock
        effect = op.effect
        after = op.after
        if after is not None and after is not pipe.joined:
            _join(clock, after)
            pipe.joined = after
        for earlier in op.locks:
            if clock[earlier.pipe] < earlier.seq:
                assert earlier.released is not None
                _join(clock, earlier.released)
        if effect.waits:
            self._take(op, clock)
        if effect.phase is not None:
            self._hand_over(op, clock)
        if effect.rings:
            self._message(op, clock)
        pipe.seq += 1
        op.seq = clock[op.pipe] = pipe.seq
        if effect.reads or effect.writes:
            self._touch(op, clock)
        if effect.sets:
            self._signal(op, clock)
        if effect.unlocks or effect.phase is not None:
            op.released = tuple(clock)
        self.result.order.append(op)

    def _take(self, op: Op, clock: Clock) -> None:
        tokens = []
        for channel in op.effect.waits:
            s = self.signals[channel]
            if s.waits:
                last = s.waits[-1]
                if clock[last.pipe] < last.seq:
                    self._contest("wait", channel, last, op)
            s.waits.append(op)
            seqs = s.seqs.get(op.pipe)
            if seqs is None:
                seqs = s.seqs[op.pipe] = []
            seqs.append(self.pipes[op.pipe].seq + 1)
            token = s.tokens.popleft()
            if channel in self.weak:
                tokens += self._certain(channel, op, clock)
            else:
                tokens.append(token)
        for token in tokens:
            _join(clock, token)

    def _certain(self, channel: int, op: Op, clock: Clock) -> list[tuple[int, ...]]:
        """Sets of a weak channel that must have happened before the wait `op` ends, whoever takes which signal."""
        s = self.signals[channel]
        if not s.totals:
            for ops in self.result.issued.values():
                for setter in ops:
                    if channel in setter.effect.sets:
                        s.totals[setter.pipe] = s.totals.get(setter.pipe, 0) + 1
        seq = self.pipes[op.pipe].seq + 1
        known = sum(bisect_right(seqs, seq if pipe == op.pipe else clock[pipe]) for pipe, seqs in s.seqs.items())
        total = sum(s.totals.values())
        found = []
        for pipe, clocks in s.by_pipe.items():
            least = known - (total - s.totals[pipe])
            if least > 0:
                found.append(clocks[least - 1])
        return found

    def _signal(self, op: Op, clock: Clock) -> None:
        token = tuple(clock)
        for channel in op.effect.sets:
            s = self.signals[channel]
            if s.sets:
                last = s.sets[-1]
                if clock[last.pipe] < last.seq:
                    self._contest("set", channel, last, op)
            s.sets.append(op)
            s.tokens.append(token)
            if channel in self.weak:
                s.by_pipe.setdefault(op.pipe, []).append(token)
            known = 0
            for pipe, seqs in s.seqs.items():
                known += bisect_right(seqs, clock[pipe]) if clock[pipe] < seqs[-1] else len(seqs)
            pending = len(s.sets) - known
            if pending > s.peak:
                before, s.peak = s.peak, pending
                if before <= self.resolver.channels[channel].capacity < pending:
                    self.result.overflows.append(Overflow(channel, op, pending))

    def _contest(self, what: str, channel: int | None, first: Op, second: Op) -> None:
        key = (what, channel, first.pipe, first.effect.site, second.pipe, second.effect.site)
        if key not in self.seen:
            self.seen.add(key)
            self.result.contested.append(Contested(what, channel, first, second))

    def _flag(self, cell: int) -> _Flag:
        flag = self.flags.get(cell)
        if flag is None:
            flag = self.flags[cell] = _Flag()
        return flag

    def _hand_over(self, op: Op, clock: Clock) -> None:
        assert op.effect.phase is not None
        role, final = op.effect.phase
        joins: list[Op] = []
        for cell in op.effect.phased:
            flag = self._flag(cell)
            since = flag.since[role]
            rivals = [flag.final[role]] if role in flag.final else []
            if final:  # two reads (or writes) that only wait are in no competition
                rivals += since.values()
            for rival in rivals:
                if clock[rival.pipe] < rival.seq:
                    self._contest("produce" if role == "produce" else "read", None, rival, op)
            source = flag.final.get("consume" if role == "produce" else "produce")
            if source is not None:
                joins.append(source)
            if final:
                flag.value = 1 if role == "produce" else 0
                flag.final[role] = op
                since.clear()
            else:
                since[op.pipe] = op
        for source in joins:
            if clock[source.pipe] < source.seq:
                assert source.released is not None
                _join(clock, source.released)

    def _message(self, op: Op, clock: Clock) -> None:
        stmt = op.effect.stmt
        after = list(clock)  # what is joined only after every lane was looked at
        for number, lane in op.effect.rings:
            m = self.messages[number, lane]
            ring = self.resolver.rings[number]
            if isinstance(stmt, ir.Push):
                op.message = n = len(m.pushes)
                if m.pushes and clock[m.pushes[-1].pipe] < m.pushes[-1].seq:
                    self._contest("push", None, m.pushes[-1], op)
                if n >= ring.slots:
                    if self.credits == "per_slot":
                        _join(after, m.freed[n - ring.slots])
                    elif n % _period(ring.slots) == 0:
                        _join(after, m.credits[m.taken])
                        m.taken += 1
                    releases = m.frees if self.compiled.target.frees_at == "tfree" else m.pops
                    release = releases[n - ring.slots] if len(releases) > n - ring.slots else None
                    known = any(f.kind == "overrun" and f.ring == number for f in self.result.message_faults)
                    if not known and (release is None or after[release.pipe] < release.seq):
                        self.result.message_faults.append(MessageFault("overrun", number, op, release))
                m.pushes.append(op)
            elif isinstance(stmt, ir.Pop):
                op.message = n = len(m.pops)
                if m.pops and clock[m.pops[-1].pipe] < m.pops[-1].seq:
                    self._contest("pop", None, m.pops[-1], op)
                m.pops.append(op)
                _join(after, m.pushed[n])
                pushed = m.pushes[n]
                if pushed.task is not None and op.task is not None and pushed.task != op.task:
                    self.result.message_faults.append(MessageFault("round", number, op, pushed))
            else:
                op.message = n = len(m.frees)
                if self.compiled.target.frees_at == "tfree":  # elsewhere a tfree does nothing
                    if m.frees and clock[m.frees[-1].pipe] < m.frees[-1].seq:
                        self._contest("free", None, m.frees[-1], op)
                    pop = m.pops[n] if n < len(m.pops) else None
                    if pop is None or clock[pop.pipe] < pop.seq:
                        self.result.message_faults.append(MessageFault("free-unpopped", number, op, pop))
                m.frees.append(op)
        clock[:] = after
        clock[op.pipe] = self.pipes[op.pipe].seq + 1
        stamp = tuple(clock)
        frees = ir.Free if self.compiled.target.frees_at == "tfree" else ir.Pop
        for number, lane in op.effect.rings:
            m = self.messages[number, lane]
            if isinstance(stmt, ir.Push):
                m.pushed.append(stamp)
            if isinstance(stmt, frees):
                m.freed.append(stamp)
                if len(m.freed) % _period(self.resolver.rings[number].slots) == 0:
                    m.credits.append(stamp)

    # ---------------------------------------------------------------------------------------------- memory

    def _touch(self, op: Op, clock: Clock) -> None:
        effect = op.effect
        cells = self.cells
        for touch in effect.reads:
            unwritten = touch.written
            for c in touch.cells:
                cell = cells.get(c)
                if cell is None:
                    cell = cells[c] = _Cell()
                last = cell.write
                use = (effect.agent, effect.site)
                cell.uses[use] = cell.uses.get(use, 0) + 1
                if last is not None:
                    unwritten = False
                    if clock[last.pipe] < last.seq:
                        assert cell.write_touch is not None
                        self._race("write-read", last, op, touch, cell.write_touch, cell, use)
                cell.reads[op.pipe] = (op, touch)
            if unwritten and ("unwritten", id(effect)) not in self.seen:
                self.seen.add(("unwritten", id(effect)))
                self.result.unwritten.append(Unwritten(op, touch))
        for touch in effect.writes:
            for c in touch.cells:
                cell = cells.get(c)
                if cell is None:
                    cell = cells[c] = _Cell()
                for reader, read_touch in cell.reads.values():
                    if reader is not op and clock[reader.pipe] < reader.seq:
                        use = (reader.effect.agent, reader.effect.site)
                        self._race("read-write", reader, op, touch, read_touch, cell, use)
                last = cell.write
                if last is not None and last is not op and clock[last.pipe] < last.seq:
                    assert cell.write_touch is not None
                    self._race("write-write", last, op, touch, cell.write_touch, cell, None)
                if last is not op:
                    cell.writes += 1
                cell.write = op
                cell.write_touch = touch
                cell.reads.clear()

    def _race(
        self,
        kind: Literal["write-read", "read-write", "write-write"],
        first: Op,
        second: Op,
        touch: Touch,
        first_touch: Touch,
        cell: _Cell,
        use: tuple[str, int] | None,
    ) -> None:
        key = (id(first.effect), id(second.effect), kind, touch.access.name)
        if key in self.seen:
            return
        self.seen.add(key)
        uses = cell.uses.get(use, 0) if use is not None else 0
        writes = cell.writes + (0 if kind == "write-read" else 1)
        self.result.races.append(Race(kind, first, second, touch, first_touch, uses, writes))


class _Agent:
    """One agent's scalar unit: issues its operations in order and stalls at operations on pipe S."""

    def __init__(self, name: str, ops: list[Op], machine: Machine) -> None:
        self.name = name
        self.ops = ops
        self.machine = machine
        self.at = 0
        self.mine = [p for p in machine.pipes if p.key[0] == name]
        self.scalar = next(p for p in self.mine if p.key[1] == "S")
        self.after: tuple[int, ...] | None = None
        self.holders: dict[int, dict[int, Op]] = {}
        self.held: dict[int, Op] = {}
        self.mutex_faults: list[MutexFault] = []
        self.met = 0
        self.prepared = 0

    def advance(self) -> bool:
        """Execute and issue as far as possible; True if anything happened."""
        moved = False
        again = True
        while again:
            again = False
            for pipe in self.mine:
                again |= self._drain(pipe)
            again |= self._issue()
            moved |= again
        return moved

    def _drain(self, pipe: _Pipe) -> bool:
        machine, queue, moved = self.machine, pipe.queue, False
        while queue and machine.obstacle(queue[0]) is None:
            machine.execute(queue.popleft())
            moved = True
        return moved

    def _issue(self) -> bool:
        machine, ops, scalar = self.machine, self.ops, self.scalar.number
        start = self.at
        while self.at < len(ops):
            op = ops[self.at]
            if op.pipe == scalar:
                if not self._scalar(op):
                    break
            else:
                self._prepare(op)
                pipe = machine.pipes[op.pipe]
                if pipe.queue or machine.obstacle(op) is not None:
                    pipe.queue.append(op)
                else:
                    machine.execute(op)
            self.at += 1
        return self.at > start

    def _scalar(self, op: Op) -> bool:
        """Try to execute an operation of pipe S; later operations are issued after it."""
        machine, effect = self.machine, op.effect
        if effect.drains and any(p.queue for p in self.mine):
            return False
        if effect.meets and not self._meet():
            return False
        if self.prepared <= op.number:
            self.prepared = op.number + 1
            self._prepare(op)
        if machine.obstacle(op) is not None:
            return False
        if effect.drains:
            for pipe in self.mine:
                _join(self.scalar.clock, pipe.clock)
        if effect.meets:
            for arrivals in machine.arrived.values():
                _join(self.scalar.clock, arrivals[self.met - 1])
        machine.execute(op)
        self.after = tuple(self.scalar.clock)
        return True

    def _meet(self) -> bool:
        """Arrive at the next sync_all, and see whether everybody has."""
        arrivals = self.machine.arrived.setdefault(self.name, [])
        if len(arrivals) == self.met:
            clock = list(self.scalar.clock)
            for pipe in self.mine:
                _join(clock, pipe.clock)
            arrivals.append(tuple(clock))
        others = [self.machine.arrived.get(a, []) for a in self.machine.result.issued]
        if any(len(a) <= self.met for a in others):
            return False
        self.met += 1
        return True

    def _prepare(self, op: Op) -> None:
        """Note, in program order, what the operation is issued after and whose locks it waits for."""
        op.after = self.after
        effect = op.effect
        if effect.locks:
            waits: list[Op] = []
            for mutex in effect.locks:
                for pipe, holder in self.holders.get(mutex, {}).items():
                    if pipe != op.pipe and holder not in waits:
                        waits.append(holder)
            op.locks = tuple(waits)
        if effect.unlocks:
            for mutex in effect.unlocks:
                self.holders.setdefault(mutex, {})[op.pipe] = op
        if isinstance(effect.stmt, (ir.MutexLock, ir.MutexUnlock)):
            self._explicit(op)

    def _explicit(self, op: Op) -> None:
        """Check that explicit locks and unlocks alternate per mutex in program order."""
        number = op.effect.arguments[0]
        if isinstance(op.effect.stmt, ir.MutexLock):
            if number in self.held and self.held[number].pipe != op.pipe:
                self.mutex_faults.append(MutexFault("relocked", op))
            self.held[number] = op
        elif number not in self.held:
            self.mutex_faults.append(MutexFault("unlocked", op))
        else:
            del self.held[number]

    def blocked(self) -> list[Blocked]:
        """The heads of all pipes that wait for ever, and the scalar unit's own operation."""
        found: list[Blocked] = []
        for pipe in self.mine:
            if pipe.queue:
                found.append(self._blocked(pipe.queue[0]))
        if self.at < len(self.ops):
            found.append(self._blocked(self.ops[self.at]))
        return found

    def _blocked(self, op: Op) -> Blocked:
        obstacle = self.machine.obstacle(op)
        if obstacle is not None:
            reason, on = obstacle
            return Blocked(op, reason, on)  # type: ignore[arg-type]
        return Blocked(op, "meet" if op.effect.meets and not any(p.queue for p in self.mine) else "drain", ())


def _period(slots: int) -> int:
    """How many FIFO credits travel together."""
    return slots if slots <= 2 else slots // 2


def _join(clock: Clock, other: tuple[int, ...] | list[int]) -> None:
    clock[:] = map(max, clock, other)


__all__ = ["DEFAULT_LIMIT", "LimitReached", "Machine", "Op", "Run", "run"]
