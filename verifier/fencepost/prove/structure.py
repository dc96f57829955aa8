"""Structure: which integers of a program may be shifted together without changing what it does?

The exploration keeps counters as plain integers and folds them: a group of values that the program only compares with
each other, with small constants and modulo small numbers behaves the same when all of them are shifted by the period
of the group.  This module finds, for one program, the levels of its loops, the level of every slot, liveness, the
groups with their period and threshold, and the assignments that break a shift (a counter that restarts).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import lcm
from typing import TypeAlias

from fencepost import ir
from fencepost.model.program import (
    Compiled,
    Emit,
    Enter,
    Instruction,
    Jump,
    ModelError,
    MoveCursor,
    Next,
    Program,
    Require,
    Set,
    Stop,
    Store,
    Test,
    constant,
)

Level: TypeAlias = tuple[object, ...]
"""("L", depth) for loops around synchronisation, shared by all agents; ("X", agent, loop) for private ones."""

Node: TypeAlias = tuple[object, ...]
"""What a group may hold: ("slot", i), ("symbol", name, level), ("task",), ("argument", function, position, level)."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop: its instructions `head` (Next) and `end`, its level (None: constant bounds), and its step.

    `linked`: its start continues from other values instead of a constant.  `counted`: its start is not constant, but
    nobody reads its variable, so only the number of trips matters.
    """

    number: int
    enter: int
    head: int
    end: int
    level: Level | None
    linked: bool
    counted: bool
    step: int


@dataclass(slots=True)
class Group:
    """Slots and symbols that are related to each other.

    `period` and `threshold`: shifting by multiples of the period changes nothing while every member stays at or above
    the threshold.  `related`: some two members are compared with each other, so that restarting one of them breaks
    the shift of the others.  `foldable` is False if a use is of no known kind.
    """

    period: int = 1
    threshold: int = 1
    related: bool = False
    foldable: bool = True
    slots: set[int] = field(default_factory=set)
    symbols: set[tuple[str, Level | None]] = field(default_factory=set)
    functions: set[tuple[str, int, Level | None]] = field(default_factory=set)
    task: bool = False


@dataclass(slots=True)
class Structure:
    """The result for one program.

    `remember` bounds the constants that symbols are compared with outside loops.  `lags[f]` is how far behind the
    counter the arguments of the unknown function f lie.  `levels[slot]` is the level whose loop counters flow into
    the slot.  `live[pc]` are the slots that may be read before they are written.  `breaks[pc]` are the slots whose
    unrelated reassignment is reachable from pc, with the slots that the reassignment replaces together.
    `entries[pc]`: levels that a reachable Enter starts anew.
    """

    program: Program
    loops: list[Loop]
    levels: list[Level | None]
    live: list[frozenset[int]]
    groups: list[Group]
    group_of: dict[int, int]
    breaks: list[frozenset[int]]
    entries: list[frozenset[Level]]
    calls: list[frozenset[str]]
    lags: dict[str, int]
    remember: int
    moduli: dict[str, int]
    stale: dict[int, tuple[int, ...]]
    level_of: Callable[[ir.Expr], Level | None]
    slots_of: Callable[[ir.Expr], set[int]]
    calls_of: Callable[[ir.Expr], bool]
    depth_of: Callable[[Level | None], int]


def analyse(compiled: Compiled, program: Program) -> Structure:
    return _Analysis(compiled, program).run()


# A linear form over nodes: constant part unknown unless the form has no nodes; None = bounded or unknown kind.


@dataclass(frozen=True, slots=True)
class _Form:
    """`sum of coefficient * node + constant`; `bounded` adds some value that no shift changes."""

    terms: tuple[tuple[Node, int], ...]
    constant: int = 0
    bounded: bool = False
    small: bool = False  # taken only while the other forms of a max(...) are small

    @property
    def plain(self) -> int | None:
        return self.constant if not self.terms and not self.bounded else None


class _Analysis:
    def __init__(self, compiled: Compiled, program: Program) -> None:
        self.compiled = compiled
        self.program = program
        self.code = program.code
        self.parameters = len(compiled.parameters)
        self.parent: dict[Node, Node] = {}
        self.period: dict[Node, int] = defaultdict(lambda: 1)
        self.threshold: dict[Node, int] = defaultdict(lambda: 1)
        self.bad: set[Node] = set()
        self.related: set[Node] = set()
        self.levels: list[Level | None] = [None] * len(program.slots)
        self.breakers: dict[int, set[int]] = {}
        self.lags: dict[str, int] = {}
        self.copies: list[tuple[int, int, int]] = []  # target := source + offset
        self.moduli: dict[str, int] = {}
        self.remember = 1
        self.holds: list[set[str]] = [set() for _ in program.slots]

    # ------------------------------------------------------------------------------------------ driver

    def run(self) -> Structure:
        successors = [self._successors(pc) for pc in range(len(self.code))]
        reads = [frozenset(self._reads(i)) for i in self.code]
        live = self._liveness(successors, reads)
        self.loops = self._loops(live)
        self.by_number = {loop.number: loop for loop in self.loops}
        self._levels()
        self._hold()
        for pc, instruction in enumerate(self.code):
            self._constrain(pc, instruction)
        self._flow()
        stale = self._stale(live)
        groups, group_of = self._groups()
        breaks = self._reach(successors, {pc: frozenset(s) for pc, s in self.breakers.items()})
        entries = self._reach(
            successors,
            {loop.enter: frozenset([loop.level]) for loop in self.loops if loop.level is not None and not loop.linked},
        )
        calls = self._reach(successors, {pc: frozenset(self._functions(i)) for pc, i in enumerate(self.code)})
        return Structure(
            self.program,
            self.loops,
            self.levels,
            live,
            groups,
            group_of,
            breaks,
            entries,
            calls,
            self.lags,
            self.remember,
            self.moduli,
            stale,
            self.level,
            self._slots,
            self._calls,
            self.depth,
        )

    # ------------------------------------------------------------------------------------------ loops and levels

    def _loops(self, live: list[frozenset[int]]) -> list[Loop]:
        found: list[Loop] = []
        stack: list[tuple[int, bool]] = []  # (end, symbolic)
        for pc, instruction in enumerate(self.code):
            while stack and stack[-1][0] <= pc:
                stack.pop()
            if not isinstance(instruction, Enter):
                continue
            head = pc + 1
            following = self.code[head]
            assert isinstance(following, Next)
            end = following.target
            symbolic = not (self._is_constant(instruction.start) and self._is_constant(instruction.stop))
            level: Level | None = None
            if symbolic:
                inside = self.code[head:end]
                synchronises = any(
                    isinstance(i, Emit) and not isinstance(self.program.sites[i.site], ir.DataOp) for i in inside
                )
                depth = 1 + sum(s for _, s in stack)
                level = ("L", depth) if synchronises else ("X", self.program.agent, instruction.loop)
            counted = level is not None and following.slot not in live[head + 1]
            linked = not self._is_constant(instruction.start) and not counted
            found.append(Loop(instruction.loop, pc, head, end, level, linked, counted, following.step))
            stack.append((end, symbolic))
        return found

    def _is_constant(self, expr: ir.Expr) -> bool:
        try:
            scalars = {k: v for k, v in self.compiled.scalars.items() if k not in self.program.names}
            constant(expr, scalars, "")
        except ModelError:
            return False
        return True

    def depth(self, level: Level | None) -> int:
        if level is None:
            return 0
        if level[0] == "L":
            assert isinstance(level[1], int)
            return level[1]
        loop = next(x for x in self.loops if x.number == level[2])
        return 1 + sum(1 for x in self.loops if x.level is not None and x.enter < loop.enter < x.end)

    def _levels(self) -> None:
        """Let the levels of loop counters flow through assignments, to a fixed point."""
        for loop in self.loops:
            if loop.level is not None:
                following = self.code[loop.head]
                assert isinstance(following, Next)
                for slot in (following.slot, following.index, following.limit):
                    self._raise(slot, loop.level)
        changed = True
        while changed:
            changed = False
            for instruction in self.code:
                if isinstance(instruction, Set):
                    changed |= self._raise(instruction.slot, self.level(instruction.value))
                elif isinstance(instruction, Store):
                    for i in range(instruction.size):
                        changed |= self._raise(instruction.base + i, self.level(instruction.value))
                elif isinstance(instruction, Enter):
                    for expr in (instruction.start, instruction.stop):
                        changed |= self._raise(instruction.index, self.level(expr))
                        changed |= self._raise(instruction.limit, self.level(expr))

    def _hold(self) -> None:
        """Which symbols each slot may hold, by name, to a fixed point."""
        changed = True
        while changed:
            changed = False
            for i in self.code:
                flows: list[tuple[int, ir.Expr]] = []
                match i:
                    case Set(slot=slot, value=value):
                        flows = [(slot, value)]
                    case Store(base=base, size=size, value=value):
                        flows = [(base + k, value) for k in range(size)]
                    case Enter(index=index, limit=limit, start=start, stop=stop):
                        flows = [(index, start), (limit, stop)]
                        if self.by_number[i.loop].counted and "trips" not in self.holds[limit]:
                            self.holds[limit].add("trips")
                            changed = True
                    case Next(slot=slot, index=index):
                        if self.holds[index] - self.holds[slot]:
                            self.holds[slot] |= self.holds[index]
                            changed = True
                for slot, value in flows:
                    names = self._symbols(value)
                    if names - self.holds[slot]:
                        self.holds[slot] |= names
                        changed = True

    def _symbols(self, expr: ir.Expr) -> set[str]:
        """Names of the parameters, unknown functions and opaque operations that may stand in a value."""
        names: set[str] = set()
        stack: list[ir.Node] = [expr]
        while stack:
            node = stack.pop()
            match node:
                case ir.Name(id=name) if name in self.program.names:
                    slot = self.program.names[name]
                    names |= {name} if slot < self.parameters else self.holds[slot]
                case ir.Name(id=name) if name in self.compiled.scalars:
                    stack.append(self.compiled.scalars[name])
                case ir.Call(function=function) if function not in ir.INTERPRETED:
                    names.add(function)
                case ir.Binary(op="//" | "%" as op):
                    names.add(op)  # a quotient is a symbol of its own; what it is made of does not show
                case ir.Item(name=name):
                    stack += self.compiled.tuples[name]
                case ir.Field():
                    names |= {n for s in self._slots(node) for n in self.holds[s]}
                case ir.Compare() | ir.Logic():
                    pass
                case _:
                    if isinstance(node, ir.Binary) and node.op == "*":
                        names.add("*")
                    stack += ir.children(node)
        return names

    def _raise(self, slot: int, level: Level | None) -> bool:
        if self.depth(level) > self.depth(self.levels[slot]):
            self.levels[slot] = level
            return True
        return False

    def level(self, expr: ir.Expr) -> Level | None:
        """The deepest level of the slots that an expression reads."""
        best: Level | None = None
        for slot in self._slots(expr):
            if self.depth(self.levels[slot]) > self.depth(best):
                best = self.levels[slot]
        return best

    # ------------------------------------------------------------------------------------------ reads, flow

    def _slots(self, expr: ir.Expr) -> set[int]:
        found: set[int] = set()
        for node in ir.walk(expr):
            if isinstance(node, ir.Name):
                if node.id in self.program.names:
                    found.add(self.program.names[node.id])
                elif node.id in self.compiled.scalars:
                    found |= self._slots(self.compiled.scalars[node.id])
            elif isinstance(node, ir.Item):
                for value in self.compiled.tuples[node.name]:
                    found |= self._slots(value)
            elif isinstance(node, ir.Field):
                base, size, fields = self.program.rings[node.ring]
                at = base + size * fields.index(node.field)
                found |= set(range(at, at + size))
        return found

    def _expressions(self, i: Instruction) -> tuple[ir.Expr, ...]:
        match i:
            case Set(value=value):
                return (value,)
            case Store(index=index, value=value):
                return (index, value)
            case Test(condition=condition) | Require(condition=condition):
                return (condition,)
            case Enter(start=start, stop=stop):
                return (start, stop)
            case Emit(arguments=arguments, task=task):
                return arguments if task is None else (*arguments, task)
        return ()

    def _reads(self, i: Instruction) -> set[int]:
        found: set[int] = set()
        for expr in self._expressions(i):
            found |= self._slots(expr)
        if isinstance(i, Next):
            found |= {i.index, i.limit}
        if isinstance(i, MoveCursor):
            found.add(i.cursor)
        return found

    def _functions(self, i: Instruction) -> set[str]:
        names: set[str] = set()
        stack = list(self._expressions(i))
        while stack:
            for node in ir.walk(stack.pop()):
                if isinstance(node, ir.Call) and node.function not in ir.INTERPRETED:
                    names.add(node.function)
                elif isinstance(node, ir.Name) and node.id in self.compiled.scalars:
                    if node.id not in self.program.names:
                        stack.append(self.compiled.scalars[node.id])
                elif isinstance(node, ir.Item):
                    stack += self.compiled.tuples[node.name]
        return names

    def _calls(self, expr: ir.Expr) -> bool:
        """Whether the expression calls an unknown function."""
        return bool(self._functions(Set(0, expr)))

    def _writes(self, i: Instruction) -> set[int]:
        match i:
            case Set(slot=slot):
                return {slot}
            case Next(slot=slot):
                return {slot}
            case Enter(index=index, limit=limit):
                return {index, limit}
            case MoveCursor(slot=slot):
                return {slot}
        return set()

    def _successors(self, pc: int) -> tuple[int, ...]:
        match self.code[pc]:
            case Jump(target=target):
                return (target,)
            case Test(target=target) | Next(target=target):
                return (pc + 1, target)
            case Stop():
                return ()
        return (pc + 1,)

    def _liveness(self, successors: list[tuple[int, ...]], reads: list[frozenset[int]]) -> list[frozenset[int]]:
        live: list[frozenset[int]] = [frozenset()] * len(self.code)
        changed = True
        while changed:
            changed = False
            for pc in range(len(self.code) - 1, -1, -1):
                out: set[int] = set()
                for s in successors[pc]:
                    out |= live[s]
                new = reads[pc] | (out - self._writes(self.code[pc]))
                if new != live[pc]:
                    live[pc] = frozenset(new)
                    changed = True
        return live

    def _reach(self, successors: list[tuple[int, ...]], sources: dict[int, frozenset]) -> list[frozenset]:  # type: ignore[type-arg]
        """For each pc the union of what is attached to the instructions reachable from it (itself included)."""
        found = [sources.get(pc, frozenset()) for pc in range(len(self.code))]
        changed = True
        while changed:
            changed = False
            for pc in range(len(self.code) - 1, -1, -1):
                new = found[pc]
                for s in successors[pc]:
                    new |= found[s]
                if new != found[pc]:
                    found[pc] = new
                    changed = True
        return found

    # ------------------------------------------------------------------------------------------ groups

    def _find(self, node: Node) -> Node:
        while self.parent.setdefault(node, node) != node:
            node = self.parent[node]
        return node

    def _union(self, a: Node, b: Node) -> Node:
        a, b = self._find(a), self._find(b)
        if a != b:
            self.parent[b] = a
            self.period[a] = lcm(self.period[a], self.period.pop(b, 1))
            self.threshold[a] = max(self.threshold[a], self.threshold.pop(b, 1))
            if b in self.bad:
                self.bad.add(a)
            if b in self.related:
                self.related.add(a)
        return a

    def _spoil(self, *forms: _Form) -> None:
        for form in forms:
            for node, _ in form.terms:
                if node[0] != "symbol" or len(node) > 2:
                    self.bad.add(self._find(node))

    def _constrain(self, pc: int, i: Instruction) -> None:
        match i:
            case Set(slot=slot, value=value):
                self._assign(pc, {slot}, slot, self._forms(value))
            case Store():
                self._index(self._forms(i.index), i.size, self.level(i.index))
                for k in range(i.size):
                    self._assign(pc, {i.base + k}, i.base + k, self._forms(i.value))
            case Test(condition=condition) | Require(condition=condition):
                self._truth(condition, None)
            case MoveCursor(slot=slot):
                self.breakers.setdefault(pc, set()).add(slot)
            case Enter():
                loop = self.by_number[i.loop]
                following = self.code[loop.head]
                assert isinstance(following, Next)
                together = {i.index, i.limit, following.slot}
                level = loop.level
                starts, stops = self._forms(i.start, level), self._forms(i.stop, level)
                if loop.counted:
                    self._count(pc, i, starts, stops, level)
                else:
                    self._assign(pc, together, i.index, starts)
                    self._assign(pc, together, i.limit, stops, limit=True)
                self._union(("slot", i.index), ("slot", following.slot))
                self._relate(_Form(((("slot", i.index), 1),)), _Form(((("slot", i.limit), 1),)), level)
            case Emit(site=site, arguments=arguments, task=task):
                for argument in arguments:
                    self._index(self._forms(argument), self._reach_of(site), self.level(argument))
                if task is not None:
                    for form in self._forms(task):
                        if form.terms:
                            self._relate(form, _Form(((("task",), 1),)), None)

    def _count(self, pc: int, i: Enter, starts: list[_Form], stops: list[_Form], level: Level | None) -> None:
        """A loop of which only the number of trips matters: it counts from 0 to a number of its own."""
        self.breakers.setdefault(pc, set()).add(i.index)
        for a in starts:
            for b in stops:
                terms = dict(b.terms)
                for node, c in a.terms:
                    terms[node] = terms.get(node, 0) - c
                left = [(n, c) for n, c in terms.items() if c]
                if all(n[0] == "symbol" for n, _ in left) and not (a.bounded or b.bounded):
                    continue
                if len(left) > 1 and all(n[0] == "slot" for n, _ in left) and not sum(c for _, c in left):
                    self._balance(_Form(tuple(left)), 0, level)
                else:
                    self._spoil(_Form(tuple(left)))

    def _reach_of(self, site: int) -> int:
        """An upper bound of what the direct value of an operand can mean: ids and slots."""
        largest = max(self.compiled.depths.values(), default=1)
        return max(largest, 32)

    def _assign(self, pc: int, together: set[int], slot: int, forms: list[_Form], *, limit: bool = False) -> None:
        """`slot := one of forms`: linked if the form is one node plus a constant, else a restart."""
        node: Node = ("slot", slot)
        for form in forms:
            if len(form.terms) == 1 and form.terms[0][1] == 1 and not form.bounded:
                source = form.terms[0][0]
                if source[0] == "slot":
                    self.copies.append((slot, int(str(source[1])), form.constant))
                elif source[0] != "symbol":
                    self._union(node, source)
            elif form.terms:
                self._spoil(form)
                self.bad.add(self._find(node))
            else:
                if not limit and not form.small:
                    self.breakers.setdefault(pc, set()).add(slot)
                if form.bounded:
                    # A residue or a field of fixed range: it never grows, but may be small for ever.
                    self._find(node)

    def _index(self, forms: list[_Form], size: int, level: Level | None) -> None:
        for form in forms:
            self._against(form, size, level)

    def _against(self, form: _Form, bound: int, level: Level | None) -> None:
        """The value of the form is compared with constants up to `bound`."""
        if not form.terms:
            return
        form = self._placed(form, level)
        if len(form.terms) == 1 and form.terms[0][1] == 1 and not form.bounded:
            root = self._find(form.terms[0][0])
            self.threshold[root] = max(self.threshold[root], abs(bound) + abs(form.constant) + 2)
        else:
            self._balance(form, bound, level)

    def _placed(self, form: _Form, level: Level | None) -> _Form:
        """The form with symbols as their copies of a level; slots bring the copies of symbols they may hold."""
        terms: list[tuple[Node, int]] = []
        for node, c in form.terms:
            if node[0] == "symbol" and len(node) == 2:
                node = (*node, level)
            elif node[0] == "slot":
                assert isinstance(node[1], int)
                for name in self.holds[node[1]]:
                    self._union(node, ("symbol", name, level))
            terms.append((node, c))
        return _Form(tuple(terms), form.constant, form.bounded)

    def _relate(self, a: _Form, b: _Form, level: Level | None) -> None:
        terms = dict[Node, int]()
        for form, sign in ((a, 1), (b, -1)):
            for node, c in form.terms:
                terms[node] = terms.get(node, 0) + sign * c
        difference = _Form(
            tuple((n, c) for n, c in terms.items() if c), a.constant - b.constant, a.bounded or b.bounded
        )
        if difference.terms:
            self._balance(difference, 0, level)

    def _balance(self, form: _Form, bound: int, level: Level | None) -> None:
        """The sign of the form matters: its nodes must shift together, and the shift must cancel."""
        form = self._placed(form, level)
        if level is None and any(
            n[0] == "symbol" or (n[0] == "slot" and self.holds[int(str(n[1]))]) for n, _ in form.terms
        ):
            self.remember = max(self.remember, abs(form.constant) + abs(bound) + 1)
        if len(form.terms) == 1:
            (node, c) = form.terms[0]
            root = self._find(node)
            if form.bounded or abs(c) != 1:
                self.bad.add(root)
            self.threshold[root] = max(self.threshold[root], abs(form.constant) + abs(bound) + 2)
            return
        first = form.terms[0][0]
        for node, _ in form.terms[1:]:
            self._union(first, node)
        root = self._find(first)
        self.related.add(root)
        if sum(c for _, c in form.terms) != 0:
            self.bad.add(root)

    # ------------------------------------------------------------------------------------------ expressions

    def _forms(self, expr: ir.Expr, level: Level | None = None) -> list[_Form]:
        """All linear forms that the expression may take; comparisons inside it are recorded on the way."""
        match expr:
            case ir.Int(value=value):
                return [_Form((), value)]
            case ir.Name(id=name):
                if name in self.program.names:
                    slot = self.program.names[name]
                    if name == "sub":
                        return [_Form((), 0, bounded=True)]
                    if slot < self.parameters:
                        return [_Form(((("symbol", name), 1),))]
                    return [_Form(((("slot", slot), 1),))]
                return self._forms(self.compiled.scalars[name], level)
            case ir.Item(name=name, index=index):
                values = self.compiled.tuples[name]
                self._index(self._forms(index, level), len(values), level or self.level(index))
                found = [f for v in values for f in self._forms(v, level)]
                if all(f.plain is not None for f in found):
                    return [_Form((), 0, bounded=True)]
                return found
            case ir.Field(ring=ring, index=index, field=name):
                base, size, fields = self.program.rings[ring]
                self._index(self._forms(index, level), size, level or self.level(index))
                at = base + size * fields.index(name)
                return [_Form(((("slot", at + k), 1),)) for k in range(size)]
            case ir.Unary(op="-", operand=operand):
                return [self._scaled(f, -1) for f in self._forms(operand, level)]
            case ir.Unary(operand=operand):
                self._truth(operand, level)
                return [_Form((), 0, bounded=True)]
            case ir.Binary():
                return self._binary(expr, level)
            case ir.Compare(first=first, rest=rest):
                left = first
                where = level or self.level(expr)
                for _, right in rest:
                    for a in self._forms(left, level):
                        for b in self._forms(right, level):
                            self._relate(a, b, where)
                    left = right
                return [_Form((), 0, bounded=True)]
            case ir.Logic(operands=operands):
                for operand in operands:
                    self._truth(operand, level)
                return [_Form((), 0, bounded=True)]
            case ir.Choose(condition=condition, then=then, other=other):
                self._truth(condition, level)
                return self._unique([*self._forms(then, level), *self._forms(other, level)])
            case ir.Call(function="min" | "max", arguments=arguments):
                options = [self._forms(a, level) for a in arguments]
                where = level or self.level(expr)
                for i, one in enumerate(options):
                    for two in options[i + 1 :]:
                        for a in one:
                            for b in two:
                                self._relate(a, b, where)
                grows = any(len(f.terms) == 1 and f.terms[0][1] > 0 and not f.bounded for o in options for f in o)
                if expr.function == "max" and grows:
                    return self._unique([replace(f, small=not f.terms) for o in options for f in o])
                return self._unique([f for o in options for f in o])
            case ir.Call(function=function, arguments=arguments):
                for position, argument in enumerate(arguments):
                    for form in self._forms(argument, level):
                        self.lags[function] = max(self.lags.get(function, 0), -form.constant)
                        if form.terms:
                            where = self.level(expr)
                            self._relate(form, _Form(((("argument", function, position, where), 1),)), where)
                return [_Form(((("symbol", function), 1),))]

    def _truth(self, expr: ir.Expr, level: Level | None) -> None:
        for form in self._forms(expr, level):
            self._against(form, 0, level or self.level(expr))

    @staticmethod
    def _unique(forms: list[_Form]) -> list[_Form]:
        return list(dict.fromkeys(forms))

    @staticmethod
    def _scaled(form: _Form, factor: int) -> _Form:
        return _Form(tuple((n, c * factor) for n, c in form.terms if factor), form.constant * factor, form.bounded)

    def _binary(self, expr: ir.Binary, level: Level | None) -> list[_Form]:
        if expr.op == "%" and self._residue_of_products(expr, level):
            return [_Form((), 0, bounded=True)]
        inner = self._quotient(expr.left) if expr.op == "%" else None
        if inner is not None:
            divided, divisor = inner
            for b in self._forms(expr.right, level):
                if b.plain is None or b.plain <= 0:
                    self._spoil(divided, b)
                else:
                    self._modulo(divided, b.plain * divisor, level or self.level(expr))
            return [_Form((), 0, bounded=True)]
        lefts, rights = self._forms(expr.left, level), self._forms(expr.right, level)
        found: list[_Form] = []
        for a in lefts:
            for b in rights:
                found.append(self._combine(expr, a, b, level))
        return self._unique(found)

    def _combine(self, expr: ir.Binary, a: _Form, b: _Form, level: Level | None) -> _Form:
        match expr.op:
            case "+" | "-":
                terms = dict(a.terms)
                sign = 1 if expr.op == "+" else -1
                for node, c in b.terms:
                    terms[node] = terms.get(node, 0) + sign * c
                return _Form(
                    tuple((n, c) for n, c in terms.items() if c),
                    a.constant + sign * b.constant,
                    a.bounded or b.bounded,
                )
            case "*":
                if a.plain is not None:
                    return self._scaled(b, a.plain)
                if b.plain is not None:
                    return self._scaled(a, b.plain)
            case "%":
                if b.plain is not None and b.plain > 0:
                    self._modulo(a, b.plain, level or self.level(expr))
                    return _Form((), 0, bounded=True)
            case "//":
                if b.plain is not None and not a.terms:
                    return _Form((), 0, bounded=True)
        self._spoil(a, b)
        nodes = [n for form in (a, b) for n, _ in form.terms]
        if not nodes:
            return _Form((), 0, bounded=True)
        return _Form(((("symbol", expr.op), 1),))

    def _residue_of_products(self, expr: ir.Binary, level: Level | None) -> bool:
        """`(a * b + c) % m`: shifting a factor by m changes nothing; handled here if the left side is such a sum."""
        modulus = [f.plain for f in self._forms(expr.right, level)]
        if len(modulus) != 1 or modulus[0] is None or modulus[0] <= 0:
            return False
        if not any(isinstance(n, ir.Binary) and n.op == "*" for n in ir.walk(expr.left)):
            return False
        stack: list[ir.Expr] = [expr.left]
        factors: list[_Form] = []
        while stack:
            node = stack.pop()
            match node:
                case ir.Binary(op="+" | "*", left=left, right=right):
                    stack += [left, right]
                case ir.Int(value=value) if value >= 0:
                    pass
                case ir.Name() | ir.Field():
                    factors += self._forms(node, level)
                case _:
                    return False
        for form in factors:
            self._modulo(form, modulus[0], level or self.level(expr))
        return True

    def _quotient(self, expr: ir.Expr) -> tuple[_Form, int] | None:
        """`form // constant`, whose residue is a residue of the form."""
        if isinstance(expr, ir.Binary) and expr.op == "//":
            lefts, rights = self._forms(expr.left), self._forms(expr.right)
            if len(lefts) == 1 and len(rights) == 1 and rights[0].plain is not None and rights[0].plain > 0:
                return lefts[0], rights[0].plain
        return None

    def _modulo(self, form: _Form, modulus: int, level: Level | None) -> None:
        """The residue of the form matters, and its sign: a negative operand of `%` is reported."""
        for node, _ in form.terms:
            for name in (str(node[1]),) if node[0] == "symbol" else self.holds[int(str(node[1]))]:
                self.moduli[name] = lcm(self.moduli.get(name, 1), modulus)
        form = self._placed(form, level)
        for node, _ in form.terms:
            root = self._find(node)
            self.period[root] = lcm(self.period[root], modulus)
        if form.terms and all(c > 0 for _, c in form.terms):
            for node, _ in form.terms:
                root = self._find(node)
                self.threshold[root] = max(self.threshold[root], abs(form.constant) + 2)
        elif form.terms:
            self._balance(form, 0, level)

    # ------------------------------------------------------------------------------------------ results

    def _flow(self) -> None:
        """What is asked of the target of an assignment is asked of its source too.

        A source joins the group of a target that is compared with others; else it only takes over period and
        threshold, and keeps shifting on its own.
        """
        changed = True
        while changed:
            changed = False
            for target, source, offset in self.copies:
                t, s = self._find(("slot", target)), self._find(("slot", source))
                if t == s:
                    continue
                if t in self.related:
                    self._union(t, s)
                    changed = True
                    continue
                period = lcm(self.period[s], self.period[t])
                threshold = max(self.threshold[s], min(self.threshold[t] + abs(offset), 1 << 20))
                if (period, threshold) != (self.period[s], self.threshold[s]) or (t in self.bad and s not in self.bad):
                    self.period[s], self.threshold[s] = period, threshold
                    if t in self.bad:
                        self.bad.add(s)
                    changed = True

    def _stale(self, live: list[frozenset[int]]) -> dict[int, tuple[int, ...]]:
        """For each Enter the counters of earlier entries of its loop that are still read, and compared with others."""
        found: dict[int, tuple[int, ...]] = {}
        for loop in self.loops:
            if loop.level is None or loop.linked:
                continue
            following = self.code[loop.head]
            assert isinstance(following, Next)
            own = {following.index, following.limit, following.slot}
            found[loop.enter] = tuple(
                slot
                for slot in sorted(live[loop.head] - own)
                if self.levels[slot] == loop.level and self._find(("slot", slot)) in self.related
            )
        return found

    def _groups(self) -> tuple[list[Group], dict[int, int]]:
        groups: dict[Node, Group] = {}
        for node in list(self.parent):
            root = self._find(node)
            group = groups.setdefault(root, Group())
            match node:
                case ("slot", int(slot)):
                    group.slots.add(slot)
                case ("symbol", str(name), level):
                    group.symbols.add((name, level))  # type: ignore[arg-type]
                case ("task",):
                    group.task = True
                case ("argument", str(function), int(position), level):
                    group.functions.add((function, position, level))  # type: ignore[arg-type]
        for root, group in groups.items():
            group.period = self.period[root]
            group.threshold = self.threshold[root]
            group.foldable = root not in self.bad
            group.related = root in self.related
        listed = list(groups.values())
        group_of = {slot: n for n, group in enumerate(listed) for slot in group.slots}
        return listed, group_of
