"""Checker: which events does a program have, if the formulas that a certificate claims for its loops are right?

A second symbolic execution, on plain terms.  It finds no formula itself: at the head of every loop it takes the claimed
ones, and states what proves them by induction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

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
from fencepost.prove.plainterms import (
    Renaming,
    Term,
    add,
    both,
    div,
    either,
    eq,
    ite,
    le,
    lt,
    minus,
    mod,
    no,
    times,
)

Claim = tuple[str, str, tuple[Term, ...]]
"""Name, group, and conditions that must not hold together."""


class Rejected(Exception):
    """The certificate does not fit the program; the message says where."""


@dataclass(frozen=True)
class LoopClaim:
    """What a certificate says about one loop: its index, and the values at its head as formulas in it.

    `slots` and `counters` are proved; `free` slots are functions of the indices of which nothing is known.
    """

    index: str
    slots: dict[int, Term]
    free: tuple[int, ...]
    counters: dict[str, Term]


@dataclass(frozen=True)
class Event:
    """One operation in one copy; `before` counts what its agent executed earlier."""

    name: str
    agent: str
    stmt: Any
    pipe: str
    indices: tuple[str, ...]
    place: tuple[Term, ...]
    path: tuple[Term, ...]
    arguments: tuple[Term, ...]
    task: Term | None
    cases: tuple[tuple[Term, Effect], ...]
    before: Mapping[str, Term]


@dataclass(frozen=True)
class State:
    path: tuple[Term, ...]
    slots: Mapping[int, Term]
    bases: Mapping[str, Term]
    steps: Mapping[str, tuple[Term, ...]]  # conditions under which a counter grew by one since its base

    def count(self, key: str) -> Term:
        return add(self.bases.get(key, 0), *(ite(c, 1, 0) for c in self.steps.get(key, ())))

    @property
    def counters(self) -> dict[str, Term]:
        return {key: self.count(key) for key in {**self.bases, **self.steps}}


@dataclass
class Walk:
    """Executes one agent's program under the claims of a certificate."""

    compiled: Compiled
    program: Program
    resolver: Resolver
    loops: dict[tuple[int, tuple[int, ...]], LoopClaim]
    operands: dict[str, tuple[tuple[int, ...], ...]]
    claims: list[Claim] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    totals: dict[str, Term] = field(default_factory=dict)
    entered: set[tuple[int, tuple[int, ...]]] = field(default_factory=set)
    _indices: tuple[str, ...] = ()
    _place: tuple[Term, ...] = ()
    _copies: tuple[int, ...] = ()

    def run(self) -> None:
        count = len(self.compiled.parameters)
        slots: dict[int, Term] = {i: parameter(p) for i, p in enumerate(self.compiled.parameters)}
        slots |= {count + i: v for i, v in enumerate(self.program.initial)}
        end = self._region(0, len(self.program.code) - 1, State((), slots, {}, {}), -1)
        self.totals = {} if end is None else end.counters

    def claim(self, name: str, group: str, *conditions: Term) -> None:
        self.claims.append((f"{self.program.agent}: {name}", group, conditions))

    # -------------------------------------------------------------------------------------------- instructions

    def _region(self, first: int, last: int, start: State, head: int) -> State | None:
        waiting: dict[int, list[State]] = {}
        state: State | None = start
        at = first
        while True:
            arrived = [*waiting.pop(at, []), *([] if state is None else [state])]
            state = merged(arrived)
            if at >= last:
                return state
            if state is not None:
                state, at = self._step(at, last, head, state, waiting)
            at += 1

    def _step(
        self, at: int, last: int, head: int, state: State, waiting: dict[int, list[State]]
    ) -> tuple[State | None, int]:
        match self.program.code[at]:
            case Set(slot=slot, value=value):
                return self._store({slot: self.integer(value, state)}, state), at
            case Emit() as emit:
                return self._emit(at, emit, state), at
            case Test(condition=condition, target=target):
                holds = self.condition(condition, state)
                if holds != "true":
                    waiting.setdefault(target, []).append(replace(state, path=(*state.path, no(holds))))
                return None if holds == "false" else replace(state, path=(*state.path, holds)), at
            case Jump(target=target):
                target = last if target == head else target
                if not at < target <= last:
                    raise Rejected("a loop can be left by break")
                waiting.setdefault(target, []).append(state)
                return None, at
            case MoveCursor(slot=slot, cursor=cursor, depth=depth, move=move):
                where = state.slots[cursor]
                moved = mod(add(where, {"next": 1, "previous": -1}.get(move, 0)), depth) if move != "current" else where
                return self._store({slot: moved, **({cursor: moved} if move == "next" else {})}, state), at
            case Store(base=base, size=size, index=index, value=value):
                where, new = self.integer(index, state), self.integer(value, state)
                self._demand("index", state, (), both(le(0, where), lt(where, size)))
                fields = {base + i: ite(eq(where, i), new, state.slots[base + i]) for i in range(size)}
                return self._store(fields, state), at
            case Require(condition=condition):
                self._demand("assert", state, (), self.condition(condition, state))
                return state, at
            case Enter() as enter:
                following = self.program.code[at + 1]
                assert isinstance(following, Next)
                return self._loop(enter, following, at + 1, state), following.target - 1
            case Next() | Stop():
                raise AssertionError("entered through Enter; Stop ends the program")

    def _store(self, values: Mapping[int, Term], state: State) -> State:
        return replace(state, slots={**state.slots, **values})

    def _emit(self, at: int, emit: Emit, state: State) -> State:
        stmt: Any = self.program.sites[emit.site]
        arguments = tuple(self.integer(a, state) for a in emit.arguments)
        task = None if emit.task is None else self.integer(emit.task, state)
        name = f"{self.program.agent}.{emit.site}" + "".join(f".{c}" for c in self._copies)
        cases = []
        for values in self.operands.get(name, ()):
            if len(values) != len(arguments):
                raise Rejected(f"operands of {name}")
            condition = both(*(eq(a, v) for a, v in zip(arguments, values, strict=True)))
            cases.append((condition, self.resolver.effect(self.program.agent, emit.site, stmt, values)))
        pipe = pipe_of(stmt)
        event = Event(name, self.program.agent, stmt, pipe, self._indices, (*self._place, at), state.path, arguments,
                      task, tuple(cases), state.counters)  # fmt: skip
        self.events.append(event)
        self._check_operands(event)
        steps = dict(state.steps)
        for key, condition in advances(event, self.program):
            steps[key] = (*steps.get(key, ()), condition)
        return replace(state, steps=steps)

    def _check_operands(self, event: Event) -> None:
        covered = either(*(c for c, _ in event.cases))
        if not isinstance(event.stmt, ir.DataOp):
            if event.arguments:
                self.claim(f"id of {event.name}", "operands", *event.path, no(covered))
        elif event.cases:
            self.claim(f"operands of {event.name}", "operands", *event.path, no(covered))
        for condition, effect in event.cases:
            if effect.illegal:
                self.claim(f"legal {event.name} {effect.arguments}", "legal", *event.path, condition)

    # -------------------------------------------------------------------------------------------- loops

    def _loop(self, enter: Enter, following: Next, head: int, state: State) -> State | None:
        lo, hi = self.integer(enter.start, state), self.integer(enter.stop, state)
        step, last = following.step, following.target - 1
        gap = add(minus(hi, lo), step - 1) if step > 0 else add(minus(lo, hi), -step - 1)
        extent = div(gap, abs(step)) if abs(step) != 1 else gap
        claim = self.loops.get((head, self._copies))
        if claim is None:
            if not isinstance(extent, int) or extent > 1_000:
                raise Rejected(f"nothing is claimed about the loop at {self.program.agent} {head}")
            return self._unrolled(lo, max(extent, 0), head, last, following, state)
        self.entered.add((head, self._copies))
        x = claim.index
        if x != f"{parameter(following.node.var)}@{head}" + "".join(f".{c}" for c in self._copies):
            raise Rejected(f"{x} is not the index of the loop at {head}")
        trips = ite(le(extent, 0), 0, extent)
        within = (*state.path, le(0, x), lt(x, extent))
        self._check_free(claim, head)
        start, inside = self._at(claim, 0, state, state.path), self._at(claim, x, state, within)
        self._equal(f"start of loop {head}{list(self._copies)}", claim, state.path, start, state)
        changed = self._changed(head, last)
        unknown = changed - set(claim.slots) - set(claim.free) - {following.slot}
        if set(claim.free) - changed:
            raise Rejected(f"the loop at {head} does not change {sorted(set(claim.free) - changed)}")
        if unknown:
            raise Rejected(f"the loop at {head} changes {sorted(unknown)}, of which nothing is claimed")
        outer = self._indices, self._place
        self._indices, self._place = (*self._indices, x), (*self._place, head, x)
        body = self._store({following.slot: add(lo, times(x, step))}, inside)
        after = self._region(head + 1, last, body, head)
        self._indices, self._place = outer
        if after is None:
            raise Rejected(f"the body of the loop at {head} does not end")
        self._equal(f"step of loop {head}{list(self._copies)}", claim, within,
                    self._at(claim, add(x, 1), state, within), after)  # fmt: skip
        end = self._at(claim, trips, state, state.path)
        gone = ("after.", f"{self.program.agent}.{claim.index}", *self._indices)
        return self._store(
            {following.slot: (gone[0] + gone[1], *gone[2:]) if self._indices else gone[0] + gone[1]}, end
        )

    def _at(self, claim: LoopClaim, trip: Term, before: State, path: tuple[Term, ...]) -> State:
        change = Renaming({claim.index: trip})
        slots = {slot: change(form) for slot, form in claim.slots.items()}
        for slot in claim.free:
            slots[slot] = (f"any.{self.program.agent}.{claim.index}.{slot}", trip, *self._indices)
        counters = {key: change(form) for key, form in claim.counters.items()}
        bases = {**before.counters, **counters}
        return State(path, {**before.slots, **slots}, bases, {})

    def _equal(self, name: str, claim: LoopClaim, path: tuple[Term, ...], one: State, other: State) -> None:
        for slot in claim.slots:
            self.claim(f"{name}, slot {slot}", "induction", *path, no(eq(one.slots[slot], other.slots.get(slot, 0))))
        theirs = other.counters
        for key in sorted({*claim.counters, *theirs}):
            self.claim(f"{name}, {key}", "induction", *path, no(eq(one.count(key), theirs.get(key, 0))))

    def _check_free(self, claim: LoopClaim, head: int) -> None:
        if set(claim.free) & set(claim.slots):
            raise Rejected(f"a slot of the loop at {head} is claimed twice")

    def _unrolled(self, lo: Term, trips: int, head: int, last: int, following: Next, state: State) -> State | None:
        found: State | None = state
        outer = self._copies, self._place
        for k in range(trips):
            if found is None:
                break
            self._copies, self._place = (*outer[0], k), (*outer[1], head, k)
            begun = self._store({following.slot: add(lo, k * following.step)}, found)
            found = self._region(head + 1, last, begun, head)
        self._copies, self._place = outer
        return found

    def _changed(self, head: int, last: int) -> set[int]:
        changed: set[int] = set()
        for instruction in self.program.code[head + 1 : last]:
            match instruction:
                case Set(slot=slot) | Next(slot=slot):
                    changed.add(slot)
                case MoveCursor(slot=slot, cursor=cursor):
                    changed |= {slot, cursor}
                case Store(base=base, size=size):
                    changed |= set(range(base, base + size))
        return changed

    # -------------------------------------------------------------------------------------------- expressions

    def _demand(self, kind: str, state: State, path: tuple[Term, ...], safe: Term) -> None:
        if safe != "true":
            self.claim(f"{kind} {len(self.claims)}", "value", *state.path, *path, no(safe))

    def integer(self, expr: ir.Expr, state: State, path: tuple[Term, ...] = ()) -> Term:
        match expr:
            case ir.Int(value=value):
                return value
            case ir.Name(id=name):
                slot = self.program.names.get(name)
                return state.slots[slot] if slot is not None else self.integer(self.compiled.scalars[name], state, path)
            case ir.Item(name=name, index=index):
                at = self.integer(index, state, path)
                values = [self.integer(e, state, path) for e in self.compiled.tuples[name]]
                self._demand("index", state, path, both(le(0, at), lt(at, len(values))))
                return element(values, at)
            case ir.Field(ring=ring, index=index, field=name):
                base, size, fields = self.program.rings[ring]
                at = self.integer(index, state, path)
                self._demand("index", state, path, both(le(0, at), lt(at, size)))
                start = base + size * fields.index(name)
                return element([state.slots[start + i] for i in range(size)], at)
            case ir.Unary(op="-", operand=operand):
                return minus(self.integer(operand, state, path))
            case ir.Binary(op=op, left=left, right=right):
                a, b = self.integer(left, state, path), self.integer(right, state, path)
                if op in ("%", "//"):
                    self._demand("zero", state, path, no(eq(b, 0)))
                    self._demand("negative", state, path, both(le(0, a), le(0, b)))
                return arithmetic(op, a, b)
            case ir.Choose(condition=condition, then=then, other=other):
                c = self.condition(condition, state, path)
                return ite(c, self.integer(then, state, (*path, c)), self.integer(other, state, (*path, no(c))))
            case ir.Call(function="min" | "max" as f, arguments=arguments):
                found, *rest = (self.integer(a, state, path) for a in arguments)
                for term in rest:
                    found = ite(le(found, term), *((found, term) if f == "min" else (term, found)))
                return found
            case ir.Call(function=f, arguments=arguments):
                terms = tuple(self.integer(a, state, path) for a in arguments)
                return (f"f.{parameter(f)}", *terms) if terms else f"f.{parameter(f)}"
        return ite(self.condition(expr, state, path), 1, 0)

    def condition(self, expr: ir.Expr, state: State, path: tuple[Term, ...] = ()) -> Term:
        match expr:
            case ir.Unary(op="not", operand=operand):
                return no(self.condition(operand, state, path))
            case ir.Compare(first=first, rest=rest):
                found, left = "true", self.integer(first, state, path)
                for op, operand in rest:
                    right = self.integer(operand, state, (*path, found))
                    found, left = both(found, comparison(op, left, right)), right
                return found
            case ir.Logic(op=op, operands=operands):
                found = "true" if op == "and" else "false"
                for operand in operands:
                    value = self.condition(operand, state, (*path, found if op == "and" else no(found)))
                    found = both(found, value) if op == "and" else either(found, value)
                return found
        return no(eq(self.integer(expr, state, path), 0))


def merged(states: list[State]) -> State | None:
    if not states:
        return None
    found = states[-1]
    for state in reversed(states[:-1]):
        found = _merge(state, found)
    return found


def _merge(one: State, other: State) -> State:
    same = next((i for i, (a, b) in enumerate(zip(one.path, other.path, strict=False)) if a != b),
                min(len(one.path), len(other.path)))  # fmt: skip
    mine, theirs = both(*one.path[same:]), both(*other.path[same:])
    path = one.path[:same] if no(mine) == theirs else (*one.path[:same], either(mine, theirs))
    slots = {k: ite(mine, one.slots.get(k, 0), other.slots.get(k, 0)) for k in {**one.slots, **other.slots}}
    bases: dict[str, Term] = {}
    steps: dict[str, tuple[Term, ...]] = {}
    for key in {**one.bases, **one.steps, **other.bases, **other.steps}:
        if one.bases.get(key, 0) != other.bases.get(key, 0):
            bases[key] = ite(mine, one.count(key), other.count(key))
            continue
        bases[key] = one.bases.get(key, 0)
        a, b = one.steps.get(key, ()), other.steps.get(key, ())
        n = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        steps[key] = (*a[:n], *(both(mine, c) for c in a[n:]), *(both(theirs, c) for c in b[n:]))
    return State(path, slots, bases, steps)


def parameter(name: str) -> str:
    """A name of the kernel as an SMT-LIB symbol that nothing else uses."""
    from fencepost.prove.expressions import smt_name

    return smt_name(name)


def element(values: list[Term], at: Term) -> Term:
    if isinstance(at, int):
        return values[at] if 0 <= at < len(values) else 0
    gaps = {b - a for a, b in pairwise(values)} if all(isinstance(v, int) for v in values) else set()
    if len(gaps) == 1:
        return add(values[0], times(gaps.pop(), at))
    found = values[-1]
    for i in range(len(values) - 2, -1, -1):
        found = ite(eq(at, i), values[i], found)
    return found


def arithmetic(op: str, a: Term, b: Term) -> Term:
    if op in "+-":
        return add(a, b) if op == "+" else minus(a, b)
    if op == "*":
        if isinstance(a, int) or isinstance(b, int):
            return times(a, b)
        return ("op.product", *sorted((a, b), key=repr))
    if not isinstance(b, int):
        return ("op.quotient" if op == "//" else "op.remainder", a, b)
    if b == 0:
        return 0
    if op == "//":
        return div(a, b) if b > 0 else div(minus(a), -b)
    return mod(a, b) if b > 0 else minus(mod(minus(a), -b))


def comparison(op: str, a: Term, b: Term) -> Term:
    match op:
        case "<":
            return lt(a, b)
        case "<=":
            return le(a, b)
        case ">":
            return lt(b, a)
        case ">=":
            return le(b, a)
    return eq(a, b) if op == "==" else no(eq(a, b))


def pipe_of(stmt: Any) -> str:
    match stmt:
        case ir.SyncSrc():
            return stmt.source
        case ir.SyncDst():
            return stmt.target
        case ir.Barrier() | ir.SyncAll():
            return "S"
    return str(stmt.pipe)


def advances(event: Event, program: Program) -> Iterator[tuple[str, Term]]:
    """The counters that an operation advances, each with its condition."""
    yield f"run {event.name}", "true"
    stmt = event.stmt
    if isinstance(stmt, ir.Pop):
        yield f"renew {stmt.value}", "true"
    elif isinstance(stmt, ir.DataOp):
        popped = {s.value for s in program.sites if isinstance(s, ir.Pop)}
        yield from ((f"renew {n}", "true") for n in dict.fromkeys(a.name for a in stmt.writes if a.name in popped))
    for condition, effect in event.cases:
        for key in counters(effect):
            yield key, condition


def counters(effect: Effect) -> Iterator[str]:
    yield from (f"set {c}" for c in effect.sets)
    yield from (f"wait {c}" for c in effect.waits)
    if effect.phase is not None:
        role, final = effect.phase
        for cell in effect.phased:
            yield f"{role} {cell}"
            if final:
                yield f"{'raise' if role == 'produce' else 'lower'} {cell}"
    match effect.stmt:
        case ir.MutexLock():
            yield f"lock {effect.arguments[0]}"
        case ir.MutexUnlock():
            yield f"unlock {effect.arguments[0]}"
        case ir.Push() | ir.Pop() | ir.Free():
            kind = type(effect.stmt).__name__.lower()
            yield from (f"{kind} {ring} {lane}" for ring, lane in effect.rings)
    if effect.meets:
        yield "meet 0"
