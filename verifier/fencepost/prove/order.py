"""Order: who knows of which event, in a state that stays finite for every trip count?

The executor keeps vector clocks that grow with the run.  Here an event is only one of the last ones that can still
matter: the last write of a cell, the last read of a cell per pipe, the last signals and waits of a channel.  What a
pipe, a pending signal or a released lock knows is a set of such events, as the bits of one integer.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.model.effects import Effect, PipeKey, Resolver
from fencepost.prove.values import Value

Fault = tuple[Hashable, ...]
"""(kind, ...); the kinds are the keys of `ROWS` in `fencepost.prove.explore`."""


class Events:
    """Numbers the events; one table for the whole exploration, so that masks of all states are comparable."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self.count = 0
        self.grown = False  # a bit that everybody knows from the start was numbered since this was last cleared
        self.annotated = _annotated(resolver)
        self.virtual = 0  # bits that everybody knows from the start
        self.writes: dict[int, int] = {}  # cell -> bit of its last write
        self.cells: dict[int, int] = {}  # cell -> bits of its last write and reads
        self.reads: dict[tuple[int, PipeKey], int] = {}
        self.sets: dict[int, int] = {}  # channel -> bit of its last set
        self.fields: dict[int, tuple[int, int]] = {}  # channel -> (shift, width) of its last waits
        self.roles: dict[tuple[str, Hashable], int] = {}

    def _new(self, width: int = 1) -> int:
        shift = self.count
        self.count += width
        return shift

    def _know(self, bits: int) -> None:
        self.virtual |= bits
        self.grown = True

    def write(self, cell: int) -> int:
        if cell not in self.writes:
            bit = self.writes[cell] = 1 << self._new()
            self.cells[cell] = self.cells.get(cell, 0) | bit
        return self.writes[cell]

    def read(self, cell: int, pipe: PipeKey) -> int:
        key = (cell, pipe)
        if key not in self.reads:
            bit = self.reads[key] = 1 << self._new()
            self.cells[cell] = self.cells.get(cell, 0) | bit
        return self.reads[key]

    def cell(self, cell: int) -> int:
        self.write(cell)
        return self.cells[cell]

    def set(self, channel: int) -> int:
        if channel not in self.sets:
            bit = self.sets[channel] = 1 << self._new()
            self._know(bit)
        return self.sets[channel]

    def waits(self, channel: int) -> tuple[int, int]:
        if channel not in self.fields:
            width = self.resolver.channels[channel].capacity + 1
            shift = self._new(width)
            self.fields[channel] = (shift, width)
            self._know(((1 << width) - 1) << shift)
        return self.fields[channel]

    def role(self, what: str, key: Hashable) -> int:
        """The last operation in a role that must not be contested (producer of an accumulator, pusher of a ring)."""
        if (what, key) not in self.roles:
            bit = self.roles[what, key] = 1 << self._new()
            self._know(bit)
        return self.roles[what, key]

    def release(self, ring: tuple[int, int]) -> tuple[int, int]:
        key = -1 - (2 * ring[0] + ring[1])
        if key not in self.fields:
            width = self.resolver.rings[ring[0]].slots + 2
            shift = self._new(width)
            self.fields[key] = (shift, width)
        return self.fields[key]


@dataclass(slots=True)
class RingState:
    """One ring and lane: pending messages, releases and credits as what they know; counts reduced to what matters."""

    messages: tuple[tuple[int, Value | None], ...] = ()
    freed: tuple[int, ...] = ()
    credits: tuple[int, ...] = ()
    pushes: int = 0
    batch: int = 0
    unfreed: int = 0
    ahead: int = 0  # pushes minus releases


@dataclass(slots=True)
class Order:
    """The happens-before state of one path."""

    events: Events
    present: int = 0
    pipes: dict[PipeKey, int] = field(default_factory=dict)
    tokens: dict[int, tuple[int, ...]] = field(default_factory=dict)
    locks: dict[tuple[str, int, PipeKey], int] = field(default_factory=dict)
    flags: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # cell -> (value, raised, lowered)
    rings: dict[tuple[int, int], RingState] = field(default_factory=dict)
    tasks: dict[int, tuple[str, Value]] = field(default_factory=dict)  # cell -> core and round of its last write
    sums: dict[int, bool] = field(default_factory=dict)  # cell -> the last phased matmul was Final
    held: frozenset[tuple[str, int, PipeKey]] = frozenset()  # (agent, mutex, pipe) of explicit locks
    freed: frozenset[tuple[str, str]] = frozenset()  # (agent, value) of popped messages whose slot is free again

    def copy(self) -> Order:
        rings = {
            k: RingState(r.messages, r.freed, r.credits, r.pushes, r.batch, r.unfreed, r.ahead)
            for k, r in self.rings.items()
        }
        return Order(
            self.events,
            self.present,
            dict(self.pipes),
            dict(self.tokens),
            dict(self.locks),
            dict(self.flags),
            rings,
            dict(self.tasks),
            dict(self.sums),
            self.held,
            self.freed,
        )

    # ------------------------------------------------------------------------------------------ progress

    def obstacle(self, effect: Effect, credits: str) -> bool:
        """Whether the operation has to wait in this state."""
        if any(not self.tokens.get(c) for c in effect.waits):
            return True
        if effect.phase is not None:
            needed = 0 if effect.phase[0] == "produce" else 1
            if any(self.flags.get(c, (0, 0, 0))[0] != needed for c in effect.phased):
                return True
        for key in effect.rings:
            state = self.rings.get(key)
            if isinstance(effect.stmt, ir.Pop) and (state is None or not state.messages):
                return True
            if isinstance(effect.stmt, ir.Push) and state is not None:
                slots = self.events.resolver.rings[key[0]].slots
                if state.pushes >= slots:
                    if credits == "per_slot" and not state.freed:
                        return True
                    if credits == "batched" and state.pushes % period(slots) == 0 and not state.credits:
                        return True
        return False

    # ------------------------------------------------------------------------------------------ one operation

    def execute(
        self, effect: Effect, task: Value | None, credits: str, frees_at: str, siblings: list[PipeKey]
    ) -> list[Fault]:
        """Execute an operation without obstacle; the faults that it shows."""
        faults: list[Fault] = []
        pipe, agent = effect.pipe, effect.agent
        know = self.pipes.get(pipe, self.events.virtual)
        know |= self.pipes.get((agent, "S"), 0)
        if effect.drains:
            for sibling in siblings:
                know |= self.pipes.get(sibling, 0)
        for mutex in effect.locks:
            for sibling in siblings:
                if sibling != pipe:
                    know |= self.locks.get((agent, mutex, sibling), 0)
        for channel in effect.waits:
            know = self._wait(effect, channel, know, faults)
        if effect.phase is not None:
            know = self._hand_over(effect, know, faults)
        for ring in effect.rings:
            know = self._message(effect, ring, know, task, credits, frees_at, faults)
        if effect.reads or effect.writes:
            know = self._touch(effect, know, task, faults)
        if frees_at == "tfree":
            self._values(effect, faults)
        for channel in effect.sets:
            know = self._set(effect, channel, know, faults)
        if isinstance(effect.stmt, (ir.MutexLock, ir.MutexUnlock)):
            self._explicit(effect, faults)
        for mutex in effect.unlocks:
            self.locks[agent, mutex, pipe] = know
        self.pipes[pipe] = know
        if effect.phase is not None:
            self._raise(effect, know)
        for illegal in effect.illegal:
            faults.append(("illegal", effect.stmt.span, illegal.kind))
        for access, _ in effect.out_of_range:
            faults.append(("outside", effect.stmt.span, access.name))
        return faults

    def _forget(self, bits: int) -> None:
        """Nobody knows these events: they were replaced by newer ones."""
        keep = ~bits
        for key, mask in self.pipes.items():
            self.pipes[key] = mask & keep
        for channel, tokens in self.tokens.items():
            if tokens:
                self.tokens[channel] = tuple(t & keep for t in tokens)
        for lock, mask in self.locks.items():
            self.locks[lock] = mask & keep
        for cell, (value, raised, lowered) in self.flags.items():
            self.flags[cell] = (value, raised & keep, lowered & keep)
        for ring in self.rings.values():
            ring.messages = tuple((m & keep, t) for m, t in ring.messages)
            ring.freed = tuple(m & keep for m in ring.freed)
            ring.credits = tuple(m & keep for m in ring.credits)

    def _age(self, shift: int, width: int) -> None:
        """A new event enters a thermometer field: everything known moves one place back."""
        ones = ((1 << width) - 1) << shift

        def older(mask: int) -> int:
            return (mask & ~ones) | (((mask & ones) << 1) & ones)

        for key, mask in self.pipes.items():
            self.pipes[key] = older(mask)
        for channel, tokens in self.tokens.items():
            if tokens:
                self.tokens[channel] = tuple(older(t) for t in tokens)
        for lock, mask in self.locks.items():
            self.locks[lock] = older(mask)
        for cell, (value, raised, lowered) in self.flags.items():
            self.flags[cell] = (value, older(raised), older(lowered))
        for ring in self.rings.values():
            ring.messages = tuple((older(m), t) for m, t in ring.messages)
            ring.freed = tuple(older(m) for m in ring.freed)
            ring.credits = tuple(older(m) for m in ring.credits)

    def _wait(self, effect: Effect, channel: int, know: int, faults: list[Fault]) -> int:
        shift, width = self.events.waits(channel)
        if not know >> shift & 1:
            faults.append(("contested", channel, effect.stmt.span))
        token, *rest = self.tokens[channel]
        self.tokens[channel] = tuple(rest)
        know |= token
        self.pipes[effect.pipe] = know
        self._age(shift, width)
        return self.pipes[effect.pipe] | 1 << shift

    def _set(self, effect: Effect, channel: int, know: int, faults: list[Fault]) -> int:
        bit = self.events.set(channel)
        if not know & bit:
            faults.append(("contested", channel, effect.stmt.span))
        self._forget(bit)
        know |= bit
        shift, width = self.events.waits(channel)
        field_ = know >> shift & ((1 << width) - 1)
        unknown = width if field_ == 0 else (field_ & -field_).bit_length() - 1
        tokens = self.tokens.get(channel, ())
        capacity = self.events.resolver.channels[channel].capacity
        if len(tokens) + 1 + unknown > capacity:
            faults.append(("overflow", channel, effect.stmt.span))
        if len(tokens) <= capacity:
            self.tokens[channel] = (*tokens, know)
        return know

    def _touch(self, effect: Effect, know: int, task: Value | None, faults: list[Fault]) -> int:
        events, gone = self.events, 0
        core, peer = ("cube", "vector") if effect.agent == "aic" else ("vector", "cube")
        for touch in effect.reads:
            missing = touch.written
            for cell in touch.cells:
                write = events.write(cell)
                if self.present & write:
                    missing = False
                    if not know & write:
                        faults.append(("race", effect.stmt.span, touch.access.name, cell))
                other_side = task is not None and events.annotated.get(touch.access.name, core) != core
                if other_side and self.tasks.get(cell) != (peer, task):
                    faults.append(("round", effect.stmt.span, touch.access.name))
                gone |= events.read(cell, effect.pipe)
            if missing:
                faults.append(("unwritten", effect.stmt.span, touch.access.name))
        if gone:
            self._forget(gone)
            know = (know & ~gone) | gone
            self.present |= gone
        gone, new = 0, 0
        for touch in effect.writes:
            for cell in touch.cells:
                all_ = events.cell(cell)
                if self.present & all_ & ~know & ~new:
                    faults.append(("race", effect.stmt.span, touch.access.name, cell))
                gone |= all_
                new |= events.write(cell)
                if task is not None:
                    self.tasks[cell] = (core, task)
                else:
                    self.tasks.pop(cell, None)
        if gone:
            self._forget(gone)
            self.present = (self.present & ~gone) | new
            know = (know & ~gone) | new
        return know

    # ------------------------------------------------------------------------------------------ phases and messages

    def _hand_over(self, effect: Effect, know: int, faults: list[Fault]) -> int:
        assert effect.phase is not None
        role, final = effect.phase
        reads = {c for t in effect.reads for c in t.cells}
        for cell in effect.phased:
            bit = self.events.role(role, cell)
            if not know & bit:
                faults.append(("contested", None, effect.stmt.span))
            self._forget(bit)
            know |= bit
            _, raised, lowered = self.flags.get(cell, (0, 0, 0))
            know |= lowered if role == "produce" else raised
            if role == "produce":
                if cell in reads and self.sums.get(cell, False):
                    faults.append(("early", effect.stmt.span))
                self.sums[cell] = final
        return know

    def _raise(self, effect: Effect, know: int) -> None:
        assert effect.phase is not None
        role, final = effect.phase
        if final:
            for cell in effect.phased:
                _, raised, lowered = self.flags.get(cell, (0, 0, 0))
                self.flags[cell] = (1, know, lowered) if role == "produce" else (0, raised, know)

    def _message(
        self,
        effect: Effect,
        key: tuple[int, int],
        know: int,
        task: Value | None,
        credits: str,
        frees_at: str,
        faults: list[Fault],
    ) -> int:
        ring = self.events.resolver.rings[key[0]]
        state = self.rings.setdefault(key, RingState())
        shift, width = self.events.release(key)
        stmt = effect.stmt
        role = {ir.Push: "push", ir.Pop: "pop"}.get(type(stmt), "free")
        bit = self.events.role(role, key)
        if not know & bit:
            faults.append(("contested", None, stmt.span))
        self._forget(bit)
        know |= bit
        if isinstance(stmt, ir.Push):
            if state.pushes >= ring.slots:
                if credits == "per_slot":
                    know |= state.freed[0]
                    state.freed = state.freed[1:]
                elif state.pushes % period(ring.slots) == 0:
                    know |= state.credits[0]
                    state.credits = state.credits[1:]
                # The release of message n - slots, counted from the newest release back.
                place = ring.slots - 1 - state.ahead
                if place < 0 or not know >> shift >> place & 1:
                    faults.append(("overrun", key[0], stmt.span))
            state.pushes += 1
            if state.pushes >= ring.slots + period(ring.slots):
                state.pushes -= period(ring.slots)
            state.ahead += 1
            state.messages = (*state.messages, (know, task))
        elif isinstance(stmt, ir.Pop):
            token, pushed = state.messages[0]
            state.messages = state.messages[1:]
            know |= token
            if pushed is not None and task is not None and pushed != task:
                faults.append(("message", key[0], stmt.span))
            state.unfreed += 1
            if frees_at == "pop":
                know = self._release(effect, state, ring.slots, (shift, width), know, credits)
        else:
            if state.unfreed == 0:
                faults.append(("free", key[0], stmt.span))
            else:
                state.unfreed -= 1
            if frees_at == "tfree":
                know = self._release(effect, state, ring.slots, (shift, width), know, credits)
        if frees_at == "pop":
            state.unfreed = 0
        return know

    def _release(
        self, effect: Effect, state: RingState, slots: int, field_: tuple[int, int], know: int, credits: str
    ) -> int:
        """A slot is free again: note who knows it, and send the credit."""
        shift, width = field_
        self.pipes[effect.pipe] = know
        self._age(shift, width)
        know = self.pipes[effect.pipe] | 1 << shift
        state.ahead -= 1
        if credits == "per_slot":
            state.freed = (*state.freed, know)
        else:
            state.batch = (state.batch + 1) % period(slots)
            if state.batch == 0:
                state.credits = (*state.credits, know)
        return know

    def _explicit(self, effect: Effect, faults: list[Fault]) -> None:
        """Explicit locks and unlocks alternate per mutex, in program order."""
        agent, number = effect.agent, effect.arguments[0]
        holders = {h for h in self.held if h[:2] == (agent, number)}
        if isinstance(effect.stmt, ir.MutexLock):
            if any(h[2] != effect.pipe for h in holders):
                faults.append(("mutex", effect.stmt.span))
            self.held = (self.held - holders) | {(agent, number, effect.pipe)}
        elif not holders:
            faults.append(("mutex", effect.stmt.span))
        else:
            self.held -= holders

    def _values(self, effect: Effect, faults: list[Fault]) -> None:
        """Messages used after their slot was freed, in program order."""
        stmt, agent = effect.stmt, effect.agent
        if isinstance(stmt, ir.Free):
            self.freed |= {(agent, stmt.value)}
        elif isinstance(stmt, ir.Pop):
            self.freed -= {(agent, stmt.value)}
        elif self.freed and isinstance(stmt, (ir.DataOp, ir.Push)):
            used = [stmt.value] if isinstance(stmt, ir.Push) else [a.name for a in stmt.reads]
            if any((agent, name) in self.freed for name in used):
                faults.append(("used", stmt.span))
            if isinstance(stmt, ir.DataOp):
                self.freed -= {(agent, a.name) for a in stmt.writes}

    # ------------------------------------------------------------------------------------------ end

    def left(self) -> list[Fault]:
        """What is not empty at the end of the kernel."""
        channels = self.events.resolver.channels
        faults: list[Fault] = [("leftover", channels[c].kind, c) for c, tokens in self.tokens.items() if tokens]
        faults += [("phase", cell) for cell, flag in self.flags.items() if flag[0]]
        faults += [("mutex", number) for _, number, _ in self.held]
        for key, state in self.rings.items():
            if state.messages:
                faults.append(("messages", key[0]))
            if state.unfreed:
                faults.append(("unfreed", key[0]))
        return faults


def _annotated(resolver: Resolver) -> dict[str, str]:
    """The buffers whose writes carry rounds, and the core that writes them ("both" if both do)."""
    found: dict[str, str] = {}
    for program in resolver.compiled.programs:
        core = "cube" if program.agent == "aic" else "vector"
        for site in program.sites:
            if isinstance(site, ir.DataOp) and site.task is not None:
                for access in site.writes:
                    found[access.name] = core if found.get(access.name, core) == core else "both"
    return found


def period(slots: int) -> int:
    """How many FIFO credits travel together."""
    return slots if slots <= 2 else slots // 2
