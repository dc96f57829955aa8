"""Symbolic execution: what is every value of an agent's program, and every rank, as a formula in the loop indices?

The instructions that the executor runs are run once per loop on terms.  At the head of a loop every value that the loop
changes gets a formula in the trip number; `ranks` guesses it, and `Induction` states what proves it: it is right at
trip 0, and one trip takes it from x to x + 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from math import lcm

from fencepost import ir
from fencepost.model.effects import Effect, Resolver
from fencepost.model.program import (
    Compiled,
    Emit,
    Enter,
    Jump,
    MoveCursor,
    Next,
    Program,
    Require,
    Set,
    Stop,
    Store,
    Test,
)
from fencepost.prove import events, rings
from fencepost.prove.events import Cases, Event, Loop, Place
from fencepost.prove.expressions import Demand, Env, Expressions, Key, State, smt_name
from fencepost.prove.ranks import Summation, Sums
from fencepost.prove.recurrences import Recurrences
from fencepost.prove.rewrite import Known, Substitution
from fencepost.prove.rings import RingState, Zeros
from fencepost.prove.terms import (
    TRUE,
    ZERO,
    Cond,
    Lin,
    apply,
    choose,
    conjoin,
    const,
    disjoin,
    div,
    indicator,
    le,
    lt,
    mod,
    negate,
    pos,
    symbol,
)

_UNROLLED = 16  # instructions times trips of a constant loop that is unrolled, in trips
_COPIES = 160
_PERIOD = 24

Oracle = Callable[[tuple[Cond, ...], Cond], bool]
"""Does the first imply the second, for all values?"""


class NotClosed(Exception):
    """The program does not fit closed forms; the message says why, `span` where."""

    def __init__(self, message: str, span: ir.Span) -> None:
        super().__init__(message)
        self.span = span


class Mode(IntEnum):
    """What a walk over a loop body is for."""

    VALUES = 0  # how slots and rings change
    COUNTS = 1  # what is executed, the values being known
    RECORD = 2  # the events themselves


@dataclass(frozen=True, slots=True)
class Induction:
    """A formula at the head of one loop is right: `one` equals `other` whenever `path` holds."""

    loop: Loop
    name: str
    path: tuple[Cond, ...]
    key: Key
    one: Lin
    other: Lin


@dataclass(frozen=True, slots=True)
class Head:
    """The formulas at the head of one loop; nothing is known of the `unsolved` slots."""

    loop: Loop
    copies: tuple[int, ...]
    values: Env
    rings: dict[int, RingState]
    unsolved: frozenset[Key]


@dataclass(slots=True)
class Trace:
    """What one agent does: its events in program order, what must hold, and what it has executed at the end."""

    agent: str
    events: list[Event] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)
    inductions: list[Induction] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    totals: Env = field(default_factory=dict)

    def total(self, key: Key) -> Lin:
        return self.totals.get(key, ZERO)


@dataclass(slots=True)
class Walker:
    """Runs one agent's program on terms."""

    compiled: Compiled
    program: Program
    resolver: Resolver
    sums: Sums
    summation: Summation
    assumed: Known
    oracle: Oracle
    deadline: float | None = None
    trace: Trace = field(init=False)
    _mode: Mode = Mode.RECORD
    _expressions: Expressions = field(init=False)
    _known: dict[tuple[str, ...], Known] = field(default_factory=dict)
    _cases: dict[object, tuple[Cases, Cond]] = field(default_factory=dict)
    _loops: tuple[Loop, ...] = ()
    _place: Place = ()
    _copies: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.trace = Trace(self.program.agent)
        self._expressions = Expressions(self.compiled, self.program, self.trace.demands)

    def run(self) -> Trace:
        """Execute the whole program.

        Raises:
            NotClosed: a loop that can be left early, or the deadline is over.
        """
        program = self.program
        env: Env = {i: symbol(smt_name(p)) for i, p in enumerate(self.compiled.parameters)}
        for i, value in enumerate(program.initial):
            env[len(self.compiled.parameters) + i] = const(value)
        fields: dict[int, RingState] = {}
        for base, size, names in program.rings.values():
            for i in range(len(names)):
                fields[base + size * i] = RingState(Zeros(), size)
        state = self._region(0, len(program.code) - 1, State((), env, fields), -1)
        if state is not None:
            known = self._knowing(state.path)
            self.trace.totals = {k: known.lin(v) for k, v in state.env.items() if not isinstance(k, int)}
        for number, event in enumerate(self.trace.events):
            event.number = number
        return self.trace

    def _knowing(self, path: tuple[Cond, ...]) -> Known:
        key = tuple(c.text for c in path)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._knowing(path[:-1]).extended(path[-1:]) if path else self.assumed
        return found

    # -------------------------------------------------------------------------------------------- straight code

    def _region(self, first: int, last: int, start: State, head: int) -> State | None:
        """Execute the instructions from `first` up to `last`; jumps to `head` end it.  None: the end is not reached."""
        waiting: dict[int, list[State]] = {}
        otherwise: dict[int, list[State]] = {}
        state: State | None = start
        at = first
        while True:
            arrived = waiting.pop(at, [])
            if state is not None:
                arrived.append(state)
            state = _merged(arrived + otherwise.pop(at, []))
            if at >= last:
                return state
            if state is None:
                at += 1
                continue
            match self.program.code[at]:
                case Set(slot=slot, value=value):
                    found = self._expressions.integer(value, state)
                    state = State(state.path, {**state.env, slot: found}, state.rings)
                case Emit() as emit:
                    state = self._emit(at, emit, state)
                case Test(condition=condition, target=target):
                    holds = self._plain(state.path, self._expressions.condition(condition, state))
                    if holds.kind != "true":
                        other = (*state.path, negate(holds)) if holds.kind != "false" else state.path
                        otherwise.setdefault(target, []).append(State(other, state.env, state.rings))
                    if holds.kind == "false":
                        state = None
                    elif holds.kind != "true":
                        state = State((*state.path, holds), state.env, state.rings)
                case Jump(target=target):
                    if target == head:
                        target = last
                    elif not at < target <= last:
                        raise NotClosed("the loop can be left by break", self._span(at))
                    waiting.setdefault(target, []).append(state)
                    state = None
                case MoveCursor(slot=slot, cursor=cursor, depth=depth, move=move):
                    where = state.env[cursor]
                    env = dict(state.env)
                    if move == "next":
                        where = env[cursor] = mod(where + 1, depth)
                    elif move == "previous":
                        where = mod(where - 1, depth)
                    env[slot] = where
                    state = State(state.path, env, state.rings)
                case Store(base=base, size=size, index=index, value=value, node=node):
                    where = self._expressions.integer(index, state)
                    self._expressions.within(node, state, where, size)
                    store = rings.Store(TRUE, where, self._expressions.integer(value, state))
                    state = State(state.path, state.env, {**state.rings, base: state.rings[base].stored(store)})
                case Require(node=node):
                    self._expressions.require(node, state)
                case Enter() as enter:
                    following = self.program.code[at + 1]
                    assert isinstance(following, Next)
                    state = self._loop(enter, following, at + 1, state)
                    at = following.target - 1
                case Next() | Stop():
                    raise AssertionError("loops are entered through Enter, and Stop ends the program")
            at += 1

    def _plain(self, path: tuple[Cond, ...], condition: Cond) -> Cond:
        """The condition without what the path decides; disjunctions are put to the solver."""
        found = self._knowing(path).cond(condition)
        parts = found.parts if found.kind == "and" else (found,)
        if not any(p.kind == "or" for p in parts):
            return found
        kept = [p for p in parts if p.kind != "or"]
        for part in (p for p in parts if p.kind == "or"):
            if not self.oracle((*path, *kept), part):
                kept.append(self._weakest((*path, *kept), part))
        return conjoin(kept)

    def _weakest(self, path: tuple[Cond, ...], condition: Cond) -> Cond:
        """A disjunction without the cases that imply another one."""
        cases = list(condition.parts)
        for case in condition.parts:
            others = [c for c in cases if c is not case]
            if others and self.oracle((*path, case), disjoin(others)):
                cases = others
        return disjoin(cases)

    def _span(self, at: int) -> ir.Span:
        """Where the innermost loop around an instruction stands."""
        span = self.compiled.kernel.span
        for number, instruction in enumerate(self.program.code[:at]):
            if isinstance(instruction, Next) and number < at < instruction.target:
                span = instruction.node.span
        return span

    def _emit(self, at: int, emit: Emit, state: State) -> State:
        """Count what the operation does, and note the event."""
        if self._mode is Mode.VALUES:
            return state
        stmt = self.program.sites[emit.site]
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise NotClosed("the time limit was reached", stmt.span)
        known = self._knowing(state.path)
        arguments = tuple(known.lin(self._expressions.integer(a, state)) for a in emit.arguments)
        task = None if emit.task is None else known.lin(self._expressions.integer(emit.task, state))
        memory = (emit.site, arguments, known)
        found = self._cases.get(memory)
        if found is None:
            found = self._cases[memory] = events.cases(self.resolver, self.program, emit.site, arguments, known)
        possible, covered = found
        if self._mode is Mode.RECORD:
            event = Event(
                self.program.agent, emit.site, stmt, self._copies, self._loops, (*self._place, at), state.path,
                arguments, task, (self.program.agent, _pipe(stmt)), possible, covered,
                tuple(events.operands(stmt, arguments, self.resolver.layout.depths)), known, state.env,
            )  # fmt: skip
            self.trace.events.append(event)
        env = dict(state.env)
        own: Key = ("run", (emit.site, self._copies))
        env[own] = env.get(own, ZERO) + 1
        for value in self._renewed(stmt):
            env[("renew", value)] = env.get(("renew", value), ZERO) + 1
        for condition, effect in possible:
            for key in counted(effect):
                env[key] = env.get(key, ZERO) + indicator(condition)
        return State(state.path, env, state.rings)

    def _renewed(self, stmt: object) -> Iterator[str]:
        """The popped values that an operation gives a new content."""
        if isinstance(stmt, ir.Pop):
            yield stmt.value
        elif isinstance(stmt, ir.DataOp):
            popped = {s.value for s in self.program.sites if isinstance(s, ir.Pop)}
            yield from dict.fromkeys(a.name for a in stmt.writes if a.name in popped)

    # -------------------------------------------------------------------------------------------- loops

    def _loop(self, enter: Enter, following: Next, head: int, state: State) -> State | None:
        lo = self._expressions.integer(enter.start, state)
        hi = self._expressions.integer(enter.stop, state)
        step = following.step
        known = self._knowing(state.path)
        extent = known.lin(div(hi - lo + (step - 1), step) if step > 0 else div(lo - hi + (-step - 1), -step))
        trips = self._trips(extent, state.path)
        last = following.target - 1
        if trips.value is not None and self._small(trips.value, head, last):
            return self._unrolled(lo, step, trips.value, head, last, following, state)
        suffix = "".join(f".{c}" for c in self._copies)
        index = f"{smt_name(following.node.var)}@{head}{suffix}"
        loop = Loop(head, following.node, index, extent, trips)
        x = symbol(index)
        within = (*state.path, le(-x), lt(x, extent))
        outside = known.extended((le(-x), le(x - trips)))
        inside = self._knowing(within)
        outer = tuple(o.index for o in self._loops)
        recurrences = Recurrences(
            self.summation, loop, self.program.agent, state, outer, inside, outside, self._mode is Mode.VALUES
        )

        def trip(mode: Mode, env: Env, fields: dict[int, RingState]) -> State:
            values = {**env, following.slot: lo + x * step}
            before = self._loops, self._place, self._mode, self._expressions.demands
            self._loops, self._place, self._mode = (*self._loops, loop), (*self._place, head, x), mode
            if mode is not Mode.RECORD:
                self._expressions.demands = None
            after = self._region(head + 1, last, State(within, values, fields), head)
            self._loops, self._place, self._mode, self._expressions.demands = before
            assert after is not None, "a loop body without break reaches its end"
            return after

        changed = self._changed(head, last)
        after = trip(Mode.VALUES, *recurrences.placeholders(changed))
        recurrences.solve_values(after.env, after.rings)
        if self._mode is not Mode.VALUES:
            env, fields = recurrences.at(x, inside)
            after = trip(Mode.COUNTS, {k: v for k, v in env.items() if isinstance(k, int)}, fields)
            recurrences.solve_counts(after.env)
        if self._mode is Mode.RECORD:
            after = trip(Mode.RECORD, *recurrences.at(x, inside))
            self.trace.loops.append(loop)
            self.trace.heads.append(recurrences_head(recurrences, loop, self._copies, inside))
            self.trace.inductions += self._inductions(loop, recurrences, state, after, within)
        env, fields = recurrences.at(trips, known)
        indices = tuple(symbol(o.index) for o in self._loops)
        env[following.slot] = apply(f"after.{self.program.agent}.{index}", indices)
        return State(state.path, env, fields)

    def _inductions(
        self, loop: Loop, recurrences: Recurrences, before: State, after: State, within: tuple[Cond, ...]
    ) -> list[Induction]:
        """That the formulas hold at trip 0, and that a trip preserves them."""
        known, inside = self._knowing(before.path), self._knowing(within)
        x = symbol(loop.index)
        base: list[tuple[Key, Lin, Lin]] = []
        step: list[tuple[Key, Lin, Lin]] = []
        start, following = recurrences.at(ZERO, known)[0], recurrences.at(x + 1, inside)[0]
        for key in recurrences.solved:
            if key in recurrences.unsolved:
                continue
            one, other = start[key], known.lin(before.env.get(key, ZERO))
            if not same(one, other):
                base.append((key, one, other))
            one, other = following[key], inside.lin(after.env.get(key, ZERO))
            if not same(one, other, loop.index):
                step.append((key, one, other))
        return [
            *(Induction(loop, "start", before.path, *pair) for pair in base),
            *(Induction(loop, "step", within, *pair) for pair in step),
        ]

    def _trips(self, extent: Lin, path: tuple[Cond, ...]) -> Lin:
        """How many trips an extent means; the solver is asked when bounds leave its sign open."""
        found = self._knowing(path).positive(extent)
        if found == extent or found.value is not None:
            return found
        if any(a.kind == "apply" for a in extent.atoms()) and len(extent.parts) == 1:
            return found
        return extent if self.oracle(path, le(-extent)) else pos(extent)

    def _small(self, trips: int, head: int, last: int) -> bool:
        nested = any(isinstance(i, Enter) for i in self.program.code[head + 1 : last])
        return trips <= 1 or (trips <= _UNROLLED and not nested and trips * (last - head) <= _COPIES)

    def _unrolled(
        self, lo: Lin, step: int, trips: int, head: int, last: int, following: Next, state: State
    ) -> State | None:
        found: State | None = state
        outer = self._copies, self._place
        for k in range(trips):
            if found is None:
                break
            env = {**found.env, following.slot: lo + k * step}
            self._copies, self._place = (*outer[0], k), (*outer[1], head, k)
            found = self._region(head + 1, last, State(found.path, env, found.rings), head)
        self._copies, self._place = outer
        return found

    def _changed(self, head: int, last: int) -> set[int]:
        """The slots that a loop's body can change, rings' fields by their first slot."""
        changed: set[int] = set()
        for instruction in self.program.code[head + 1 : last]:
            match instruction:
                case Set(slot=slot) | Next(slot=slot):
                    changed.add(slot)
                case MoveCursor(slot=slot, cursor=cursor):
                    changed |= {slot, cursor}
                case Store(base=base):
                    changed.add(base)
        return changed


def recurrences_head(found: Recurrences, loop: Loop, copies: tuple[int, ...], inside: Known) -> Head:
    """What was found about the head of a loop."""
    fields = found.at(symbol(loop.index), inside)[1]
    changed = {slot: fields[slot] for slot in found.rolled}
    return Head(loop, copies, dict(found.solved), changed, frozenset(found.unsolved))


def _pipe(stmt: object) -> ir.Pipe:
    match stmt:
        case ir.SyncSrc():
            return stmt.source
        case ir.SyncDst():
            return stmt.target
        case ir.Barrier() | ir.SyncAll():
            return "S"
    pipe: ir.Pipe = stmt.pipe  # type: ignore[attr-defined]
    return pipe


def counted(effect: Effect) -> list[Key]:
    """The counters that an operation with this effect advances, besides its own."""
    found: list[Key] = [("set", c) for c in effect.sets]
    found += [("wait", c) for c in effect.waits]
    if effect.phase is not None:
        role, final = effect.phase
        found += [(role, cell) for cell in effect.phased]
        if final:
            found += [("raise" if role == "produce" else "lower", cell) for cell in effect.phased]
    if isinstance(effect.stmt, ir.MutexLock):
        found.append(("lock", effect.arguments[0]))
    elif isinstance(effect.stmt, ir.MutexUnlock):
        found.append(("unlock", effect.arguments[0]))
    elif isinstance(effect.stmt, (ir.Push, ir.Pop, ir.Free)):
        kind = {ir.Push: "push", ir.Pop: "pop", ir.Free: "free"}[type(effect.stmt)]
        found += [(kind, taking) for taking in effect.rings]
    elif effect.meets:
        found.append(("meet", 0))
    return found


def same(one: Lin, other: Lin, index: str | None = None) -> bool:
    """Whether two terms are equal, by their form or residue by residue of the index."""
    difference = one - other
    if not difference.parts or index is None or index not in difference.symbols:
        return difference == ZERO
    period = lcm(*(a.number for a in difference.atoms() if a.kind in ("mod", "div") and index in a.symbols))
    if not 1 < period <= _PERIOD:
        return False
    x = symbol(index) * period
    return all(Substitution({index: x + r}).lin(difference) == ZERO for r in range(period))


def _merged(states: list[State]) -> State | None:
    """One state for several ways to the same instruction, the later ways first."""
    if not states:
        return None
    found = states[-1]
    for state in reversed(states[:-1]):
        found = _merge(state, found)
    return found


def _merge(one: State, other: State) -> State:
    same = 0
    while same < min(len(one.path), len(other.path)) and one.path[same] == other.path[same]:
        same += 1
    first, second = conjoin(one.path[same:]), conjoin(other.path[same:])
    path = one.path[:same]
    if negate(first) != second:
        path = (*path, disjoin((first, second)))
    env = dict(other.env)
    for key, value in one.env.items():
        theirs = other.env.get(key, ZERO)
        if theirs is not value and theirs != value:
            env[key] = choose(first, value, theirs)
    for key, value in other.env.items():
        if key not in one.env:
            env[key] = choose(first, ZERO, value)
    fields = {
        base: mine if mine is other.rings[base] else mine.merged(other.rings[base], first)
        for base, mine in one.rings.items()
    }
    return State(path, env, fields)


__all__ = ["Induction", "NotClosed", "Oracle", "Trace", "Walker", "counted"]
