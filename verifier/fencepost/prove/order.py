"""Order: who knows of which event, along one path of the exploration?

Vector clocks as in the executor, but of each cell only the last write and the last read of each pipe are kept, of each
channel the last set and the last waits.  Clocks grow along the path; two states are compared by who knows of which of
these events (`fencepost.prove.relevance`), which is finite.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fencepost import ir
from fencepost.model.effects import Effect, PipeKey, Resolver
from fencepost.prove.values import Value

Fault = tuple[Hashable, ...]
"""(kind, ...); the kinds are the keys of `ROWS` in `fencepost.prove.explorer`."""

Clock: TypeAlias = tuple[int, ...]
Event: TypeAlias = tuple[int, int]
"""(pipe, how many operations the pipe has executed then)"""

RingKey: TypeAlias = tuple[int, int]
"""(ring, lane)"""


@dataclass(frozen=True, slots=True)
class Reading:
    """One operand that is read; `other` is the core whose annotated writes it is compared with, if any."""

    name: str
    cells: tuple[int, ...]
    written: bool
    annotated: bool
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """An effect in the terms of the exploration: pipes and locks are numbers."""

    effect: Effect
    span: ir.Span
    pipe: int
    scalar: int
    siblings: tuple[int, ...]  # pipes that a barrier waits for
    locks: tuple[int, ...]
    unlocks: tuple[int, ...]
    waits: tuple[int, ...]
    sets: tuple[int, ...]
    reads: tuple[Reading, ...]
    writes: tuple[tuple[str, tuple[int, ...], int], ...]  # buffer, cells, place among the operands
    core: str
    peer: str
    phase: tuple[Literal["produce", "consume"], bool] | None
    phased: tuple[int, ...]
    rings: tuple[RingKey, ...]
    explicit: bool
    meets: bool
    faults: tuple[Fault, ...]  # what is wrong with it wherever it is executed


class Actions:
    """Builds actions and numbers pipes and locks; accesses to buffers in `unchecked` only take locks."""

    def __init__(self, resolver: Resolver, pipes: Iterable[PipeKey], unchecked: frozenset[str] = frozenset()) -> None:
        self.resolver = resolver
        self.unchecked = unchecked
        self.pipes = list(pipes)
        self.numbers = {pipe: n for n, pipe in enumerate(self.pipes)}
        self.locks: dict[tuple[str, int], int] = {}
        self.known: dict[Effect, Action] = {}
        self.annotated = _annotated(resolver)

    def action(self, effect: Effect) -> Action:
        found = self.known.get(effect)
        if found is None:
            found = self.known[effect] = self._build(effect)
        return found

    def touched(self) -> tuple[frozenset[int], frozenset[int]]:
        """The cells that known operations write, and those that they read."""
        known = self.known.values()
        written = frozenset(cell for a in known for _, cells, _ in a.writes for cell in cells)
        return written, frozenset(cell for a in known for touch in a.reads for cell in touch.cells)

    def _lock(self, agent: str, mutex: int) -> int:
        return self.locks.setdefault((agent, mutex), len(self.locks))

    def _build(self, e: Effect) -> Action:
        core, peer = ("cube", "vector") if e.agent == "aic" else ("vector", "cube")
        scalar = self.numbers[e.agent, "S"]
        mine = tuple(n for n, (agent, _) in enumerate(self.pipes) if agent == e.agent)
        faults: list[Fault] = [("illegal", e.stmt.span, illegal.kind) for illegal in e.illegal]
        faults += [("outside", e.stmt.span, access.name) for access, _ in e.out_of_range]
        return Action(
            e,
            e.stmt.span,
            self.numbers[e.pipe],
            scalar,
            mine if e.drains else (),
            tuple(self._lock(e.agent, m) for m in e.locks),
            tuple(self._lock(e.agent, m) for m in e.unlocks),
            e.waits,
            e.sets,
            tuple(
                Reading(t.access.name, t.cells, t.written, self.annotated.get(t.access.name, core) != core, t.place)
                for t in e.reads
                if t.access.name not in self.unchecked
            ),
            tuple((t.access.name, t.cells, t.place) for t in e.writes if t.access.name not in self.unchecked),
            core,
            peer,
            e.phase,
            e.phased,
            e.rings,
            isinstance(e.stmt, (ir.MutexLock, ir.MutexUnlock)),
            e.meets,
            tuple(faults),
        )


def _annotated(resolver: Resolver) -> dict[str, str]:
    """The buffers in whose memory writes carry rounds, and the core that writes there ("both" if both do)."""
    cores: dict[str, set[str]] = {}
    for program in resolver.compiled.programs:
        core = "cube" if program.agent == "aic" else "vector"
        for site in program.sites:
            if isinstance(site, ir.DataOp) and site.task is not None:
                for access in site.writes:
                    cores.setdefault(access.name, set()).add(core)
    found: dict[str, str] = {}
    cores = {name: own for name, own in cores.items() if name in resolver.layout.depths}
    for name in resolver.layout.depths if cores else ():
        sides = {c for other, own in cores.items() if resolver.layout.overlapping(name, {other}) for c in own}
        if sides:
            found[name] = sides.pop() if len(sides) == 1 else "both"
    return found


@dataclass(slots=True)
class RingState:
    """One ring and lane: pending messages, releases and credits with their clocks; counts reduced to what matters."""

    messages: tuple[tuple[Clock, Value | None], ...] = ()
    freed: tuple[Clock, ...] = ()
    credits: tuple[Clock, ...] = ()
    releases: tuple[Event, ...] = ()  # newest first
    popped: tuple[Event, ...] = ()  # pops of messages not freed yet, oldest first
    pushes: int = 0
    batch: int = 0
    ahead: int = 0  # pushes minus releases

    def copy(self) -> RingState:
        return RingState(
            self.messages,
            self.freed,
            self.credits,
            self.releases,
            self.popped,
            self.pushes,
            self.batch,
            self.ahead,
        )


@dataclass(frozen=True, slots=True)
class Rules:
    """How FIFO credits travel, when a slot is free again, and whether it is asked how many signals may be pending."""

    credits: str
    frees_at: str
    counted: bool = True


Cell: TypeAlias = tuple[int, int, tuple[Event, ...]]
"""Pipe of the last write (-1: never written) and its number, and the last read of each pipe since."""


@dataclass(slots=True)
class Order:
    """The happens-before state of one path."""

    actions: Actions
    rules: Rules
    clocks: list[Clock]
    joined: list[Clock | None]  # per pipe: the clock of pipe S that it has taken over last
    tokens: dict[int, tuple[Clock, ...]] = field(default_factory=dict)
    sets: dict[int, Event] = field(default_factory=dict)  # channel -> last set
    waits: dict[int, tuple[Event, ...]] = field(default_factory=dict)  # channel -> last waits, newest first
    cells: dict[int, Cell] = field(default_factory=dict)
    locks: dict[int, tuple[tuple[int, Clock], ...]] = field(default_factory=dict)  # last unlock of each pipe
    flags: dict[int, tuple[int, Clock | None, Clock | None]] = field(default_factory=dict)  # value, raised, lowered
    roles: dict[tuple[str, Hashable], Event] = field(default_factory=dict)
    rings: dict[RingKey, RingState] = field(default_factory=dict)
    tasks: dict[int, tuple[str, Value]] = field(default_factory=dict)  # cell -> core and round of its last write
    sums: dict[int, bool] = field(default_factory=dict)  # cell -> the last phased matmul was Final
    held: frozenset[tuple[str, int, int]] = frozenset()  # (agent, mutex, pipe) of explicit locks
    freed: frozenset[tuple[str, str]] = frozenset()  # (agent, value) of popped messages whose slot is free again

    def copy(self) -> Order:
        return Order(
            self.actions,
            self.rules,
            self.clocks.copy(),
            self.joined.copy(),
            self.tokens.copy(),
            self.sets.copy(),
            self.waits.copy(),
            self.cells.copy(),
            self.locks.copy(),
            self.flags.copy() if self.flags else {},
            self.roles.copy() if self.roles else {},
            {k: r.copy() for k, r in self.rings.items()} if self.rings else {},
            self.tasks.copy() if self.tasks else {},
            self.sums.copy() if self.sums else {},
            self.held,
            self.freed,
        )

    # ------------------------------------------------------------------------------------------ progress

    def obstacle(self, a: Action) -> bool:
        """Whether the operation has to wait in this state."""
        for channel in a.waits:
            if not self.tokens.get(channel):
                return True
        if a.phase is not None:
            needed = 0 if a.phase[0] == "produce" else 1
            if any(self.flags.get(c, _LOWERED)[0] != needed for c in a.phased):
                return True
        return any(self._full(a, key) for key in a.rings)

    def _full(self, a: Action, key: RingKey) -> bool:
        state = self.rings.get(key)
        stmt = a.effect.stmt
        if isinstance(stmt, ir.Pop):
            return state is None or not state.messages
        if isinstance(stmt, ir.Push) and state is not None:
            slots = self.actions.resolver.rings[key[0]].slots
            if state.pushes >= slots:
                if self.rules.credits == "per_slot":
                    return not state.freed
                return state.pushes % period(slots) == 0 and not state.credits
        return False

    # ------------------------------------------------------------------------------------------ one operation

    def execute(self, a: Action, task: Value | None) -> list[Fault]:
        """Execute an operation without obstacle; the faults that it shows."""
        faults: list[Fault] = []
        p, clocks = a.pipe, self.clocks
        clock = list(clocks[p])
        scalar = clocks[a.scalar]
        if self.joined[p] is not scalar:
            if a.scalar != p:
                clock[:] = map(max, clock, scalar)
            self.joined[p] = scalar
        for sibling in a.siblings:
            clock[:] = map(max, clock, clocks[sibling])
        for lock in a.locks:
            for q, other in self.locks.get(lock, ()):
                if clock[q] < other[q]:
                    clock[:] = map(max, clock, other)
        if a.waits:
            self._wait(a, clock, faults)
        if a.phase is not None:
            self._hand_over(a, clock, faults)
        if a.rings:
            self._message(a, clock, task, faults)
        clock[p] = number = clock[p] + 1
        if a.reads:
            self._read(a, clock, number, task, faults)
        if a.writes:
            self._write(a, clock, number, task, faults)
        clocks[p] = known = tuple(clock)
        if a.sets:
            self._set(a, known, number, faults)
        if a.explicit:
            self._explicit(a, faults)
        for lock in a.unlocks:
            held = self.locks.get(lock, ())
            self.locks[lock] = (*(x for x in held if x[0] != p), (p, known))
        if a.phase is not None:
            self._raise(a, known)
        if a.rings:
            self._sent(a, known, number, task, faults)
        if self.rules.frees_at == "tfree" and self.rings:
            self._values(a, faults)
        if a.faults:
            faults += a.faults
        return faults

    def _wait(self, a: Action, clock: list[int], faults: list[Fault]) -> None:
        number = clock[a.pipe] + 1
        taken: list[Clock] = []
        for channel in a.waits:
            waits = self.waits.get(channel, ())
            if waits and clock[waits[0][0]] < waits[0][1]:
                faults.append(("contested", channel, a.span))
            capacity = self.actions.resolver.channels[channel].capacity if self.rules.counted else 0
            self.waits[channel] = ((a.pipe, number), *waits[:capacity])
            token, *rest = self.tokens[channel]
            self.tokens[channel] = tuple(rest)
            taken.append(token)
        for token in taken:
            clock[:] = map(max, clock, token)

    def _set(self, a: Action, known: Clock, number: int, faults: list[Fault]) -> None:
        for channel in a.sets:
            last = self.sets.get(channel)
            if last is not None and known[last[0]] < last[1]:
                faults.append(("contested", channel, a.span))
            self.sets[channel] = (a.pipe, number)
            unknown = sum(known[q] < n for q, n in self.waits.get(channel, ()))
            tokens = self.tokens.get(channel, ())
            named = self.actions.resolver.channels[channel]
            if self.rules.counted and len(tokens) + 1 + unknown > named.capacity:
                faults.append(("overflow", named.kind, str(named), a.span))
            if len(tokens) <= named.capacity:
                self.tokens[channel] = (*tokens, known)
            else:
                faults.append(("signals lost", channel))  # later waits would take the tokens of later sets

    def _read(self, a: Action, clock: list[int], number: int, task: Value | None, faults: list[Fault]) -> None:
        cells, p = self.cells, a.pipe
        for touch in a.reads:
            missing = touch.written
            for cell in touch.cells:
                state = cells.get(cell)
                if state is None:
                    cells[cell] = (-1, 0, ((p, number),))
                else:
                    writer, written, reads = state
                    if writer >= 0:
                        missing = False
                        if clock[writer] < written:
                            faults.append(("race", a.span, touch.name, touch.place, self.actions.pipes[writer]))
                    if not reads or (len(reads) == 1 and reads[0][0] == p):
                        cells[cell] = (writer, written, ((p, number),))
                    else:
                        cells[cell] = (writer, written, (*(r for r in reads if r[0] != p), (p, number)))
                if touch.annotated and task is not None and self.tasks.get(cell) != (a.peer, task):
                    faults.append(("round", a.span, touch.name))
            if missing:
                faults.append(("unwritten", a.span, touch.name, touch.place))

    def _write(self, a: Action, clock: list[int], number: int, task: Value | None, faults: list[Fault]) -> None:
        cells, p = self.cells, a.pipe
        for name, touched, place in a.writes:
            for cell in touched:
                state = cells.get(cell)
                if state is not None:
                    writer, written, reads = state
                    others = dict.fromkeys(q for q, n in ((writer, written), *reads) if q >= 0 and clock[q] < n)
                    faults += [("race", a.span, name, place, self.actions.pipes[q]) for q in others]
                cells[cell] = (p, number, ())
                if task is not None:
                    self.tasks[cell] = (a.core, task)
                elif self.tasks:
                    self.tasks.pop(cell, None)

    # ------------------------------------------------------------------------------------------ phases and messages

    def _role(self, a: Action, role: tuple[str, Hashable], clock: list[int], faults: list[Fault]) -> None:
        last = self.roles.get(role)
        if last is not None and clock[last[0]] < last[1]:
            faults.append(("contested", None, a.span))
        self.roles[role] = (a.pipe, clock[a.pipe] + 1)

    def _hand_over(self, a: Action, clock: list[int], faults: list[Fault]) -> None:
        assert a.phase is not None
        role, final = a.phase
        reads = {c for t in a.reads for c in t.cells}
        for cell in a.phased:
            self._role(a, (role, cell), clock, faults)
        for cell in a.phased:
            _, raised, lowered = self.flags.get(cell, _LOWERED)
            other = lowered if role == "produce" else raised
            if other is not None:
                clock[:] = map(max, clock, other)
            if role == "produce":
                if cell in reads and self.sums.get(cell, False):
                    faults.append(("early", a.span))
                self.sums[cell] = final

    def _raise(self, a: Action, known: Clock) -> None:
        assert a.phase is not None
        role, final = a.phase
        if final:
            for cell in a.phased:
                _, raised, lowered = self.flags.get(cell, _LOWERED)
                self.flags[cell] = (1, known, lowered) if role == "produce" else (0, raised, known)

    def _message(self, a: Action, clock: list[int], task: Value | None, faults: list[Fault]) -> None:
        """What a push, pop or free learns before it takes place."""
        stmt = a.effect.stmt
        role = {ir.Push: "push", ir.Pop: "pop"}.get(type(stmt), "free")
        learnt: list[Clock] = []
        for key in a.rings:
            ring = self.actions.resolver.rings[key[0]]
            state = self.rings.setdefault(key, RingState())
            if role != "free" or self.rules.frees_at == "tfree":
                self._role(a, (role, key), clock, faults)
            if role == "push" and state.pushes >= ring.slots:
                if self.rules.credits == "per_slot":
                    learnt.append(state.freed[0])
                    state.freed = state.freed[1:]
                elif state.pushes % period(ring.slots) == 0:
                    learnt.append(state.credits[0])
                    state.credits = state.credits[1:]
            elif role == "pop":
                token, pushed = state.messages[0]
                state.messages = state.messages[1:]
                learnt.append(token)
                if pushed is not None and task is not None and pushed != task:
                    faults.append(("message", key[0], a.span))
        for other in learnt:
            clock[:] = map(max, clock, other)
        if role == "push":
            for key in a.rings:
                self._overrun(a, key, clock, faults)

    def _overrun(self, a: Action, key: RingKey, clock: list[int], faults: list[Fault]) -> None:
        """A push must come after the release of the message whose slot it takes."""
        ring, state = self.actions.resolver.rings[key[0]], self.rings[key]
        if state.pushes >= ring.slots:
            place = ring.slots - 1 - state.ahead  # of that release, counted from the newest one back
            release = state.releases[place] if 0 <= place < len(state.releases) else None
            if release is None or clock[release[0]] < release[1]:
                faults.append(("overrun", key[0], a.span))

    def _sent(self, a: Action, known: Clock, number: int, task: Value | None, faults: list[Fault]) -> None:
        """What a push, pop or free leaves behind."""
        stmt, frees_at = a.effect.stmt, self.rules.frees_at
        for key in a.rings:
            slots = self.actions.resolver.rings[key[0]].slots
            state = self.rings[key]
            if isinstance(stmt, ir.Push):
                state.pushes += 1
                if state.pushes >= slots + period(slots):
                    state.pushes -= period(slots)
                state.ahead += 1
                state.messages = (*state.messages, (known, task))
                continue
            if isinstance(stmt, ir.Pop):
                releases = frees_at == "pop"
                if not releases:
                    state.popped = (*state.popped, (a.pipe, number))
            else:
                releases = frees_at == "tfree"
                if releases and (not state.popped or known[state.popped[0][0]] < state.popped[0][1]):
                    faults.append(("free", key[0], a.span))
                state.popped = state.popped[1:]
            if releases:
                state.ahead -= 1
                state.releases = ((a.pipe, number), *state.releases[: slots + 1])
                if self.rules.credits == "per_slot":
                    state.freed = (*state.freed, known)
                else:
                    state.batch = (state.batch + 1) % period(slots)
                    if state.batch == 0:
                        state.credits = (*state.credits, known)

    def _explicit(self, a: Action, faults: list[Fault]) -> None:
        """Explicit locks and unlocks alternate per mutex, in program order."""
        agent, number = a.effect.agent, a.effect.arguments[0]
        holders = {h for h in self.held if h[:2] == (agent, number)}
        if isinstance(a.effect.stmt, ir.MutexLock):
            if any(h[2] != a.pipe for h in holders):
                faults.append(("mutex", a.span))
            self.held = (self.held - holders) | {(agent, number, a.pipe)}
        elif not holders:
            faults.append(("mutex", a.span))
        else:
            self.held -= holders

    def _values(self, a: Action, faults: list[Fault]) -> None:
        """Messages used or freed after their slot was freed, in program order."""
        stmt, agent = a.effect.stmt, a.effect.agent
        if isinstance(stmt, ir.Free):
            if (agent, stmt.value) in self.freed:
                faults.append(("used", a.span))
            self.freed |= {(agent, stmt.value)}
        elif isinstance(stmt, ir.Pop):
            self.freed -= {(agent, stmt.value)}
        elif self.freed and isinstance(stmt, (ir.DataOp, ir.Push)):
            used = [stmt.value] if isinstance(stmt, ir.Push) else [x.name for x in stmt.reads]
            if any((agent, name) in self.freed for name in used):
                faults.append(("used", a.span))
            if isinstance(stmt, ir.DataOp):
                self.freed -= {(agent, x.name) for x in stmt.writes}

    # ------------------------------------------------------------------------------------------ all agents, the end

    def meet(self, scalars: Iterable[int]) -> None:
        """All agents stand at sync_all: everybody learns what anybody knows."""
        known = tuple(map(max, zip(*self.clocks, strict=True)))
        for p in scalars:
            clock = list(known)
            self.clocks[p] = tuple(clock)

    def left(self) -> list[Fault]:
        """What is not empty at the end of the kernel."""
        channels = self.actions.resolver.channels
        left = [channels[c] for c, tokens in self.tokens.items() if tokens]
        faults: list[Fault] = [("leftover", channel.kind, str(channel)) for channel in left]
        faults += [("phase", cell) for cell, flag in self.flags.items() if flag[0]]
        faults += [("mutex", number) for _, number, _ in self.held]
        for key, state in self.rings.items():
            if state.messages:
                faults.append(("messages", key[0]))
            if state.popped:
                faults.append(("unfreed", key[0]))
        return faults


_LOWERED: tuple[int, Clock | None, Clock | None] = (0, None, None)


def period(slots: int) -> int:
    """How many FIFO credits travel together."""
    return slots if slots <= 2 else slots // 2
