"""Observables: from some instruction on, how can a program tell one set of values from another?

The uses of all expressions are carried backwards through the program: before `x = y + 1` what is asked of x is asked
of y, before `x = 0` it is asked of nobody.  Two sets of values that answer every use at an instruction alike make the
program do the same from there on; whoever shifts counters relies on this and on nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import inf, lcm

from fencepost import ir
from fencepost.model.program import (
    Compiled,
    Emit,
    Enter,
    Instruction,
    ModelError,
    MoveCursor,
    Next,
    Require,
    Set,
    Store,
    Test,
    constant,
)
from fencepost.prove.ranges import Ranges
from fencepost.prove.structure import Loop, Structure, successors
from fencepost.prove.uses import BELOW, FIXED, UNKNOWN, Form, Key, Named, Node, Reader, Shape, Uses, combine
from fencepost.prove.values import TRIPS, Level

_PATIENCE = 6  # how often a bound may move before it is taken to move for ever

Fact = tuple[int | None, int | None] | int


@dataclass(frozen=True, slots=True)
class Sign:
    """The sign of `shape` plus any constant in low..high."""

    shape: Shape
    level: Level | None
    later: bool
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Ask:
    """Something asked of one node: a threshold or a modulus."""

    node: Node
    level: Level | None
    later: bool
    value: int


@dataclass(frozen=True, slots=True)
class Observables:
    """What may be asked from one instruction on; `slots` are those that it can matter to change.

    `below`: what is natural is not taken to be large.  `moduli`: the slots of which nothing but a remainder is asked,
    with its modulus.
    """

    signs: tuple[Sign, ...]
    above: tuple[Ask, ...]
    natural: tuple[Ask, ...]
    below: bool
    residues: tuple[Ask, ...]
    slots: frozenset[int]
    ordered: tuple[int, ...]  # the slots, in order
    dead: tuple[int, ...]  # the others, but for `sub` and parameters, which never change and may be operands
    current: frozenset[Level]  # levels whose current run is looked at
    next: frozenset[Level]  # levels of which later runs are looked at
    levels: tuple[Level, ...]  # all of them, in order
    moduli: Mapping[int, int]
    bounded: frozenset[str]  # the functions whose values are compared with constants
    looking: Mapping[str, frozenset[Level | None]]  # the levels at which values of a function are compared


@dataclass(slots=True)
class Plan:
    """The observables of one program.

    `idle[pc]`: the value that the instruction assigns is never looked at.
    `stale[pc]`: for an Enter, the counters of earlier runs of its level, with the threshold from which on their value
    is forgotten.  `moduli[name]`: all moduli that a parameter or function value is ever taken by.  `remember`: how
    large the constants are that unknown numbers are compared with outside their loops.
    """

    structure: Structure
    facts: list[dict[Key, Fact]] = field(default_factory=list)
    idle: list[bool] = field(default_factory=list)
    stale: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    moduli: dict[str, int] = field(default_factory=dict)
    remember: int = 1
    _at: dict[int, Observables] = field(default_factory=dict)

    def at(self, pc: int) -> Observables:
        """What may be asked from an instruction on."""
        found = self._at.get(pc)
        if found is None:
            program = self.structure.program
            kept = frozenset((*range(len(self.structure.compiled.parameters)), program.names["sub"]))
            found = self._at[pc] = _observables(self.facts[pc], len(program.slots), kept)
        return found


class OutOfTime(Exception):
    """The observables were not worked out by the deadline."""


def plan(structure: Structure, checks: bool = True, deadline: float = inf) -> Plan:
    """Work out the observables of a program.

    Args:
        checks: an expression that may be bad (a negative operand, an index out of range) is evaluated even if nobody
            looks at its value.
        deadline: `time.monotonic()` at which to give up.

    Raises:
        OutOfTime: it took longer than that.
    """
    return _Flow(structure, checks).run(deadline)


@dataclass(slots=True)
class _Step:
    """What one instruction reads, and the forms of what it assigns; worked out once."""

    uses: Uses
    assigned: dict[int, tuple[Form, ...]] = field(default_factory=dict)
    own: Uses = field(default_factory=Uses)  # uses of the assigned values, which count only if somebody looks at them
    record: bool = False  # assigns one of the slots, the others stay
    needed: bool = False  # the value must be worked out even if nobody looks at it
    cursor: int | None = None


def _largest(compiled: Compiled) -> int | None:
    """The largest number of slots of a buffer, and of parts of a slot; None if that is not constant."""
    parts = (a.parts for a in ir.walk(compiled.kernel) if isinstance(a, ir.Access) and a.parts is not None)
    try:
        return max((*compiled.depths.values(), *(constant(p, compiled.scalars, "parts") for p in parts)), default=1)
    except ModelError:
        return None


class _Flow:
    def __init__(self, structure: Structure, checks: bool) -> None:
        self.structure = structure
        self.largest = _largest(structure.compiled)
        self.checks = checks
        self.ranges = Ranges(structure)
        self.code = structure.program.code
        self.parameters = len(structure.compiled.parameters)
        self.remember = 1
        self.enters: dict[int, Loop] = {x.enter: x for x in structure.loops}
        self.heads: dict[int, Loop] = {x.head: x for x in structure.loops}
        self.moves: dict[tuple[int, Key], int] = {}
        self.stale: dict[int, dict[int, int]] = {}
        self.facts: list[dict[Key, Fact]] = [{} for _ in self.code]
        self.steps = [self._step(pc, i) for pc, i in enumerate(self.code)]

    def run(self, deadline: float) -> Plan:
        before: list[list[int]] = [[] for _ in self.code]
        for pc in range(len(self.code)):
            for following in successors(self.code, pc):
                before[following].append(pc)
        waiting = set(range(len(self.code)))
        order = list(range(len(self.code) - 1, -1, -1))
        while waiting:
            for pc in order:
                if pc not in waiting:
                    continue
                if time.monotonic() > deadline:
                    raise OutOfTime
                waiting.discard(pc)
                if self._update(pc):
                    waiting.update(before[pc])
        return self._result()

    # ------------------------------------------------------------------------------------------ one instruction

    def _read(self, expressions: Iterable[tuple[ir.Expr, Level | None]], reader: Reader) -> list[tuple[Form, ...]]:
        found = [reader.forms(e, level) for e, level in expressions]
        self.remember = max(self.remember, reader.remember)
        return found

    def _step(self, pc: int, i: Instruction) -> _Step:
        reader = Reader(self.structure, self.ranges)
        step = _Step(reader.uses)
        match i:
            case Set(slot=slot, value=value):
                (forms,) = self._read([(value, None)], reader)
                step.own, step.uses = reader.uses, Uses()
                step.needed = self.checks and not self.ranges.safe(value)
                step.assigned[slot] = forms
            case Store(base=base, size=size, index=index, value=value):
                at, forms = self._read([(index, None), (value, None)], reader)
                reader.exact(at, size, self.structure.level(index))
                step.own, step.uses, step.record = reader.uses, Uses(), True
                inside = self.ranges.within(index, size) and self.ranges.safe(index) and self.ranges.safe(value)
                step.needed = self.checks and not inside
                step.assigned = {base + k: forms for k in range(size)}
            case Test(condition=condition) | Require(condition=condition):
                reader.truth(condition, None)
            case MoveCursor(slot=slot, cursor=cursor, depth=depth):
                step.assigned[slot] = (Form((), 0, depth - 1),)
                step.own.above(cursor, FIXED, None)
                step.cursor = cursor
            case Enter():
                self._enter(i, reader, step)
            case Next(slot=slot, index=index, limit=limit):
                loop = self.heads[pc]
                reader.uses.sign(Form(((index, 1), (limit, -1))), loop.level)
                by = 1 if loop.counted else loop.step
                step.assigned = {slot: (Form(((index, 1),)),), index: (Form(((index, 1),), by, by),)}
            case Emit(arguments=arguments, task=task):
                self._emit(i, arguments, task, reader)
            case _:
                pass
        self.remember = max(self.remember, reader.remember)
        return step

    def _enter(self, i: Enter, reader: Reader, step: _Step) -> None:
        loop = next(x for x in self.structure.loops if x.number == i.loop)
        starts, stops = self._read([(i.start, loop.level), (i.stop, loop.level)], reader)
        if loop.counted:
            level = loop.level
            for form in (*starts, *stops):
                reader.uses.fix([t for t in form.terms if not _free(t[0], self.parameters)], level)
            trips = (Form(((Named("function", TRIPS), 1),)), UNKNOWN)
            stops = (*stops, *trips) if loop.step == 1 else trips
            starts = (Form(()),)
        step.assigned = {i.index: starts, i.limit: stops}

    def _emit(self, i: Emit, arguments: tuple[ir.Expr, ...], task: ir.Expr | None, reader: Reader) -> None:
        site = self.structure.program.sites[i.site]
        slots = isinstance(site, ir.DataOp)
        for argument in arguments:
            forms = reader.forms(argument)
            if slots and self.largest is not None:
                reader.exact(forms, max(self.largest, 32), self.structure.level(argument))
            else:
                reader.same(forms, self.structure.level(argument))
        if task is not None:
            reader.round(reader.forms(task))

    # ------------------------------------------------------------------------------------------ backwards

    def _update(self, pc: int) -> bool:
        """Recompute what may be asked from `pc` on; True if it grew."""
        i, step = self.code[pc], self.steps[pc]
        found = Uses()
        if isinstance(i, Next):
            self._next(pc, i, step, found)
        else:
            following = successors(self.code, pc)
            after: dict[Key, Fact] = {}
            for to in following:
                _merge(after, self.facts[to])
            loop = self.enters.get(pc)
            if loop is not None:
                after = self._entered(pc, loop, after)
            self._assign(step, after, found)
            _merge(found.facts, self._shifted(loop, step.uses.facts))
        return self._widen(pc, found.facts)

    def _next(self, pc: int, i: Next, step: _Step, found: Uses) -> None:
        loop = self.heads[pc]
        inside = self.facts[pc + 1]
        if loop.level is not None:
            # one more trip: counters of this trip start a new run
            inside = _later(inside, ("C", loop.depth))
        self._assign(step, inside, found)
        _merge(found.facts, self.facts[i.target])
        _merge(found.facts, step.uses.facts)

    def _shifted(self, loop: Loop | None, facts: dict[Key, Fact]) -> dict[Key, Fact]:
        return _later(facts, loop.level) if loop is not None and loop.fresh else facts

    def _entered(self, pc: int, loop: Loop, after: dict[Key, Fact]) -> dict[Key, Fact]:
        """What is asked before a loop is entered: its run is a later one, counters of earlier runs may be forgotten."""
        if not loop.fresh:
            return after
        after = _later(after, loop.level)
        stale = self.stale.setdefault(pc, {})
        old, spoilt = self._stale(pc, loop, after)
        stale.update(dict.fromkeys(spoilt, FIXED))
        for slot in old - spoilt:
            threshold = 1
            for (kind, what, _, _), fact in after.items():
                if what == slot and kind in ("above", "natural"):
                    assert isinstance(fact, int)
                    threshold = max(threshold, fact)
                elif kind == "residue" and what == slot:
                    threshold = FIXED
            stale[slot] = max(stale.get(slot, 1), threshold)
        kept: dict[Key, Fact] = {}
        for key, fact in after.items():
            what = key[1]
            forgotten = isinstance(what, tuple) and any(
                stale.get(n, FIXED) < FIXED for n, _ in what if isinstance(n, int)
            )
            if not forgotten:
                kept[key] = fact
                continue
            assert isinstance(what, tuple)
            for node, _ in what:  # the others are compared with a number that nobody knows any more
                if not (isinstance(node, int) and stale.get(node, FIXED) < FIXED):
                    _put(kept, ("above", node, key[2], key[3]), FIXED)
        for slot, threshold in stale.items():
            if threshold < FIXED:
                _put(kept, ("above", slot, loop.level, True), threshold)
        return kept

    def _stale(self, pc: int, loop: Loop, after: dict[Key, Fact]) -> tuple[set[int], set[int]]:
        """Slots with counters of earlier runs: those only compared with unknown numbers in new runs, and the others.

        A slot that may hold an unknown number itself is one of the others: that number is not forgotten.
        """
        enter, following = self.code[pc], self.code[loop.head]
        assert isinstance(enter, Enter) and isinstance(following, Next)
        own = {enter.index, enter.limit, following.slot}
        found: set[int] = set()
        spoilt: set[int] = set()
        for kind, what, level, late in after:
            if kind != "sign":
                continue
            assert isinstance(what, tuple)
            slots = [n for n, _ in what if isinstance(n, int)]
            unknown = any(not isinstance(n, int) or self.structure.symbolic[n] for n, _ in what)
            here = level == loop.level and late and unknown
            for slot in slots:
                if slot not in own and self.structure.levels[slot] == loop.level and slot >= self.parameters:
                    (found if here and not self.structure.symbolic[slot] else spoilt).add(slot)
        return found, spoilt

    def _assign(self, step: _Step, after: dict[Key, Fact], found: Uses) -> None:
        """Carry uses backwards over the assignments of an instruction."""
        if not step.assigned:
            _merge(found.facts, after)
            return
        looked = step.needed
        for key, fact in after.items():
            if not self._mentions(key, step.assigned):
                _put(found.facts, key, fact)
                continue
            looked = True
            if step.record:
                _put(found.facts, key, fact)  # another record may have been assigned
                for slot, forms in step.assigned.items():
                    if self._mentions(key, {slot: forms}):
                        self._replace(key, fact, {slot: forms}, found)
            else:
                self._replace(key, fact, step.assigned, found)
        if looked:
            _merge(found.facts, step.own.facts)

    @staticmethod
    def _mentions(key: Key, slots: Container[object]) -> bool:
        kind, what, _, _ = key
        if kind == "sign":
            assert isinstance(what, tuple)
            return any(node in slots for node, _ in what)
        return what in slots

    def _replace(self, key: Key, fact: Fact, assigned: dict[int, tuple[Form, ...]], found: Uses) -> None:
        kind, what, level, later = key
        if kind == "sign":
            assert isinstance(what, tuple) and isinstance(fact, tuple)
            base = Form(tuple((n, c) for n, c in what if n not in assigned), *fact)
            replaced = [(assigned[n], c) for n, c in what if isinstance(n, int) and n in assigned]
            for choice in product(*(forms for forms, _ in replaced)):
                form = base
                for part, (_, c) in zip(choice, replaced, strict=True):
                    form = combine(form, part, c)
                found.sign(form, level, later)
            return
        assert isinstance(what, int) and isinstance(fact, int)
        for form in assigned[what]:
            match kind:
                case "above":
                    found.beyond(form, fact, level, later)
                case "natural":
                    found.summand(form, fact, level, later)
                case _:
                    found.modulo(form, fact, level, later)

    def _widen(self, pc: int, new: dict[Key, Fact]) -> bool:
        """Join with what was known before; a bound that keeps moving moves for ever."""
        old, grown = self.facts[pc], False
        for key, fact in new.items():
            before = old.get(key)
            if before == fact:
                continue
            if before is None:
                old[key], grown = fact, True
                continue
            joined = _join(key, before, fact)
            if joined == before:
                continue
            moves = self.moves[pc, key] = self.moves.get((pc, key), 0) + 1
            if moves > _PATIENCE:
                joined = _limit(before, joined)
            old[key], grown = joined, True
        return grown

    # ------------------------------------------------------------------------------------------ result

    def _result(self) -> Plan:
        found = Plan(self.structure, self.facts, [self._idle(pc) for pc in range(len(self.code))])
        found.remember = self.remember
        names = self.structure.compiled.parameters
        for facts in self.facts:
            for (kind, what, _, _), fact in facts.items():
                if kind != "residue":
                    continue
                assert isinstance(fact, int)
                name = names[what] if isinstance(what, int) and what < self.parameters else None
                if isinstance(what, Named) and what.kind == "function":
                    name = what.name
                if name is not None:
                    found.moduli[name] = min(lcm(found.moduli.get(name, 1), fact), FIXED)
        for pc, slots in self.stale.items():
            found.stale[pc] = tuple(sorted((slot, least) for slot, least in slots.items() if least < FIXED))
        return found

    def _idle(self, pc: int) -> bool:
        """Whether nobody looks at what an assignment leaves."""
        if not isinstance(self.code[pc], (Set, Store, MoveCursor)):
            return False
        step = self.steps[pc]
        if step.needed:
            return False
        slots = self._looked(pc + 1)
        watched = set(step.assigned) | ({step.cursor} if step.cursor is not None else set())
        return not watched & slots

    def _looked(self, pc: int) -> frozenset[int]:
        found: set[int] = set()
        for kind, what, _, _ in self.facts[pc]:
            if kind == "sign":
                found.update(n for n, _ in what if isinstance(n, int))  # type: ignore[union-attr]
            elif isinstance(what, int):
                found.add(what)
        return frozenset(found)


def _free(term: object, parameters: int) -> bool:
    return isinstance(term, Named) or (isinstance(term, int) and term < parameters)


# ---------------------------------------------------------------------------------------------- facts


def _later(facts: dict[Key, Fact], level: Level | None) -> dict[Key, Fact]:
    """The facts with all uses at a level in a later run."""
    found: dict[Key, Fact] = {}
    for key, fact in facts.items():
        if key[2] == level and not key[3]:
            key = (key[0], key[1], level, True)
        _put(found, key, fact)
    return found


def _join(key: Key, a: Fact, b: Fact) -> Fact:
    if isinstance(a, tuple):
        assert isinstance(b, tuple)
        low = None if a[0] is None or b[0] is None else min(a[0], b[0])
        high = None if a[1] is None or b[1] is None else max(a[1], b[1])
        return low, high
    assert isinstance(b, int)
    if key[0] == "residue":
        return min(lcm(a, b), FIXED)
    return max(a, b)


def _limit(before: Fact, joined: Fact) -> Fact:
    if isinstance(before, tuple):
        assert isinstance(joined, tuple)
        return (
            joined[0] if joined[0] == before[0] else None,
            joined[1] if joined[1] == before[1] else None,
        )
    return FIXED


def _put(facts: dict[Key, Fact], key: Key, fact: Fact) -> None:
    old = facts.get(key)
    facts[key] = fact if old is None else _join(key, old, fact)


def _merge(into: dict[Key, Fact], facts: dict[Key, Fact]) -> None:
    for key, fact in facts.items():
        _put(into, key, fact)


def _observables(facts: dict[Key, Fact], count: int, kept: frozenset[int]) -> Observables:
    signs: list[Sign] = []
    asks: dict[str, list[Ask]] = {"above": [], "natural": [], "residue": []}
    slots: set[int] = set()
    below = False
    for (kind, what, level, later), fact in sorted(facts.items(), key=repr):
        if isinstance(fact, tuple):
            assert isinstance(what, tuple)
            signs.append(Sign(what, level, later, *fact))
            slots.update(n for n, _ in what if isinstance(n, int))
        else:
            assert not isinstance(what, tuple)
            if what == BELOW:
                below = True
                continue
            asks[kind].append(Ask(what, level, later, fact))
            if isinstance(what, int):
                slots.add(what)
    moduli: dict[int, int] = {}
    for ask in asks["residue"]:
        if isinstance(ask.node, int):
            moduli[ask.node] = lcm(moduli.get(ask.node, 1), ask.value)
    otherwise = {n for sign in signs for n, _ in sign.shape} | {a.node for k in ("above", "natural") for a in asks[k]}
    constant = [a.node for k in ("above", "natural") for a in asks[k]]
    constant += [n for sign in signs if len(sign.shape) == 1 for n, _ in sign.shape]
    looking: dict[str, set[Level | None]] = {}
    for kind, what, level, _ in facts:
        for node in [n for n, _ in what] if isinstance(what, tuple) else [what]:
            if kind != "residue" and isinstance(node, Named) and node.kind == "function":
                looking.setdefault(node.name, set()).add(level)
    current = frozenset(level for _, _, level, later in facts if level is not None and not later)
    following = frozenset(level for _, _, level, later in facts if level is not None and later)
    return Observables(
        tuple(signs),
        tuple(asks["above"]),
        tuple(asks["natural"]),
        below,
        tuple(asks["residue"]),
        frozenset(slots),
        tuple(sorted(slots)),
        tuple(slot for slot in range(count) if slot not in slots and slot not in kept),
        current,
        following,
        tuple(sorted(current | following, key=repr)),
        {slot: modulus for slot, modulus in moduli.items() if slot not in otherwise},
        frozenset(n.name.partition("(")[0] for n in constant if isinstance(n, Named) and n.kind == "function"),
        {name: frozenset(levels) for name, levels in looking.items()},
    )
