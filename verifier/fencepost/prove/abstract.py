"""Abstract agents: what does one agent do next when parameters are only partly known?

The agent runs the same instructions as the executor, on values that are integers or linear forms over symbols.  It
stops at the next operation, or raises `Undecided` where the next step depends on something that is not known yet.

The same parameter is one symbol everywhere, but what is known of it is kept per run of a counter (*copies*): a loop
that is entered again compares its counter with a fresh copy of which only little is remembered.  All copies stand for
the same integer; forgetting that is sound, it only admits more executions than there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import gcd, lcm
from typing import Any, Literal

from fencepost import ir
from fencepost.model.functions import FunctionTable
from fencepost.model.issue import LARGEST, Evaluator, Translator, as_function
from fencepost.model.program import Compiled, Emit, Enter, Jump, MoveCursor, Next, Require, Set, Stop, Store, Test
from fencepost.prove.delays import LOST
from fencepost.prove.observables import Plan
from fencepost.prove.structure import Loop
from fencepost.prove.values import (
    EVERYTHING,
    TRIPS,
    Form,
    Interval,
    Knowledge,
    Level,
    Linear,
    Residue,
    Symbol,
    Symbols,
    Undecided,
    Value,
    add,
    linear,
    lower_bound,
    scale,
)

_NAME = 2_000
"""Letters in the family of an unknown number; those of squares of squares grow without end."""

STALE = "stale~"
"""Name of the unknown numbers that stand for counters of earlier runs."""


class CannotModel(Exception):
    """An expression is outside what the exploration understands; the message says which."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A bad value met on a path: "negative", "zero", "index" or "assert" (see `BadValue`)."""

    kind: str
    span: ir.Span


@dataclass(slots=True)
class Agent:
    """The state of one agent: where it is, its integers, and which run of each level it is in."""

    pc: int
    values: list[Value]
    epochs: dict[Level, int] = field(default_factory=dict)

    def copy(self) -> Agent:
        return Agent(self.pc, list(self.values), self.epochs)  # epochs are replaced, never changed


@dataclass(slots=True)
class World:
    """Knowledge shared by all agents, with the rules for copies.

    `initial` are the intervals that the assumes give each parameter; `remember` is the largest value of a symbol that
    one copy tells the others.  `moduli`: by name or family of a symbol, the modulus of the remainders that one copy
    tells the others, for all of them keep these when counters are shifted.
    """

    symbols: Symbols
    knowledge: Knowledge
    initial: dict[Symbol, Interval]
    remember: int
    moduli: Mapping[str, int]

    def copy(self) -> World:
        return World(self.symbols, self.knowledge.copy(), self.initial, self.remember, self.moduli)

    def at(self, symbol: Symbol, level: Level | None, epoch: int) -> Symbol:
        """The copy of `symbol` that comparisons at `level` in run `epoch` use, created on first use."""
        if level is None or (symbol.kind == "f" and (symbol.level == level or symbol.name == STALE)):
            return symbol
        copy = self.symbols.copy(symbol, level, epoch)
        form: Form = ((copy, 1),)
        if form not in self.knowledge.intervals:
            self.knowledge.intervals[form] = self.fresh(symbol)
            residue = self.knowledge.residues.get(symbol)
            if residue is not None:
                self.knowledge.learn(form, EVERYTHING, residue)
        return copy

    def fresh(self, symbol: Symbol) -> Interval:
        """What is known of a copy of `symbol` that nobody has looked at."""
        low, high = self.weak(self.knowledge.intervals.get(((symbol, 1),), EVERYTHING))
        least, most = self.initial.get(symbol, EVERYTHING)
        if least is not None:
            low = least if low is None else max(low, least)
        if most is not None:
            high = most if high is None else min(high, most)
        return low, high

    def firm(self, value: Linear) -> Interval:
        """What is known of a value for good: what a comparison taught one copy is gone when counters are shifted."""
        known = Knowledge({((symbol, 1),): self.fresh(symbol) for symbol, _ in value.terms})
        return known.bounds(value)

    def weak(self, interval: Interval) -> Interval:
        """What one copy tells the others: only how small values lie, which no shift of a copy ever changes."""
        low, high = interval
        if low is not None:
            low = None if low < -self.remember else min(low, self.remember)
        if high is not None:
            high = None if high > self.remember else max(high, -self.remember)
        return low, high

    def _kept(self, base: Symbol, residue: Residue | None) -> Residue | None:
        """What one copy tells the others of its remainder."""
        if residue is None:
            return None
        modulus = gcd(residue[0], lcm(self.moduli.get(base.name, 1), self.moduli.get(base.family, 1)))
        return modulus, residue[1] % modulus

    def learn(self, form: Form, interval: Interval, residue: Residue | None) -> bool:
        """Narrow the knowledge on this path; False if nothing is left of it."""
        knowledge = self.knowledge
        if not knowledge.learn(form, interval, residue):
            return False
        if len(form) > 1:
            return True
        base = form[0][0].base
        weak = self.weak(knowledge.intervals[form])
        residue = self._kept(base, knowledge.residues.get(form[0][0]))
        if ((base, 1),) not in knowledge.intervals:
            knowledge.intervals[(base, 1),] = self.initial.get(base, EVERYTHING)
        for other in list(knowledge.intervals):
            same = len(other) == 1 and other != form and other[0][0].base is base
            if same and not knowledge.learn(other, weak, residue):
                return False
        return True


class _Reporter(Evaluator):
    """The executor's evaluator of expressions, telling bad values to a stepper."""

    def __init__(self, stepper: Stepper) -> None:
        super().__init__(stepper.program.agent, FunctionTable(), [])
        self.stepper = stepper

    def note(self, kind: Literal["negative", "zero", "index", "assert"], k: int, value: int, message: str) -> None:
        self.stepper.report(Bad(kind, self.nodes[k].span))


@dataclass(frozen=True, slots=True)
class _Expression:
    """An expression; `quick` is the executor's form of it, usable while the `slots` hold plain integers."""

    expr: ir.Expr
    slots: tuple[int, ...]
    quick: Callable[..., Any] | None
    level: Level | None


_EMIT, _NEXT, _TEST, _JUMP, _SET, _MOVE, _STORE, _ENTER, _REQUIRE, _STOP, _SKIP = range(11)

Operation = tuple[int, tuple[int, ...], Value | None]
"""Site, operands, round."""


class Stepper:
    """Runs the instructions of one program on abstract values."""

    def __init__(self, compiled: Compiled, plan: Plan, symbols: Symbols) -> None:
        self.compiled = compiled
        self.plan = plan
        self.structure = plan.structure
        self.program = plan.structure.program
        self.symbols = symbols
        self.report: Callable[[Bad], None] = lambda bad: None
        self._evaluator = _Reporter(self)
        self._translator = Translator(compiled, self.program.names, self.program.rings, self._evaluator.nodes)
        self._known: dict[int, _Expression] = {}
        self.enters: dict[int, Loop] = {loop.enter: loop for loop in self.structure.loops}
        self.heads: dict[int, Loop] = {loop.head: loop for loop in self.structure.loops}
        self._trip_levels = {level for level in self.structure.levels if level is not None and level[0] == "C"}
        self.code = [self._decode(pc) for pc in range(len(self.program.code))]

    def _decode(self, pc: int) -> tuple[Any, ...]:
        i = self.program.code[pc]
        if self.plan.idle[pc]:
            return (_SKIP,)
        match i:
            case Emit(site=site, arguments=arguments, task=task):
                quick = self._together(arguments)
                given = tuple(self._expression(a) for a in arguments)
                return _EMIT, site, quick, given, None if task is None else self._expression(task)
            case Next(slot=slot, index=index, limit=limit, step=step, target=target):
                loop = self.heads[pc]
                trips = ("C", loop.depth)
                restart = trips if loop.level is not None and trips in self._trip_levels else None
                return _NEXT, slot, index, limit, 1 if loop.counted else step, target, loop.level, restart
            case Test(condition=condition, target=target):
                return _TEST, self._expression(condition), target
            case Jump(target=target):
                return _JUMP, target
            case Set(slot=slot, value=value):
                return _SET, slot, self._expression(value)
            case MoveCursor(slot=slot, cursor=cursor, depth=depth, move=move):
                return _MOVE, slot, cursor, depth, move
            case Store(base=base, size=size, index=index, value=value, node=node):
                return _STORE, base, size, self._expression(index), self._expression(value), node
            case Enter():
                return _ENTER, i
            case Require(condition=condition, node=node):
                return _REQUIRE, self._expression(condition), node
            case Stop():
                return (_STOP,)

    def _together(self, arguments: tuple[ir.Expr, ...]) -> _Expression | None:
        """All operands of an operation as one tuple."""
        if not arguments:
            return None
        slots = tuple(sorted(frozenset().union(*(self.structure.slots(a) for a in arguments))))
        if any(self.structure.functions(a) for a in arguments):
            return None
        text = "(" + "".join(f"{self._translator.text(a)}, " for a in arguments) + ")"
        return _Expression(arguments[0], slots, as_function(text), None)

    def _expression(self, expr: ir.Expr) -> _Expression:
        found = self._known.get(id(expr))
        if found is None:
            slots = tuple(sorted(self.structure.slots(expr)))
            quick = None
            if not self.structure.functions(expr) and not any(s < len(self.compiled.parameters) for s in slots):
                quick = as_function(self._translator.text(expr))
            found = self._known[id(expr)] = _Expression(expr, slots, quick, self.structure.level(expr))
        return found

    def start(self) -> Agent:
        values: list[Value] = [Linear(0, ((self.symbols.parameter(p), 1),)) for p in self.compiled.parameters]
        return Agent(0, [*values, *self.program.initial])

    def next(self, agent: Agent, world: World, budget: int) -> Operation | None:
        """Run to the next operation, which stays to be executed; None at the end of the program.

        Raises:
            Undecided: the path must split first; the agent stands before the undecided instruction.
            CannotModel: something is outside the abstraction.
        """
        code, values = self.code, agent.values
        for _ in range(budget):
            i = code[agent.pc]
            match i[0]:
                case 0:  # Emit
                    _, site, quick, given, task = i
                    arguments: tuple[int, ...] = ()
                    if given:
                        known = None if quick is None else self._quick(quick, values)
                        if known is None:
                            known = tuple(self._integer(a, agent, world) for a in given)
                        arguments = known
                    return site, arguments, None if task is None else self.evaluate(task, agent, world)
                case 1:  # Next
                    _, slot, index, limit, step, target, level, restart = i
                    at = values[index]
                    distance = add(at, values[limit], -1)
                    if isinstance(distance, Linear):
                        more = self._sign(distance, "<" if step > 0 else ">", agent, world, level)
                    else:
                        more = distance < 0 if step > 0 else distance > 0
                    if not more:
                        agent.pc = target
                        continue
                    values[slot] = at
                    values[index] = add(at, step)
                    if restart is not None:
                        agent.epochs = {**agent.epochs, restart: agent.epochs.get(restart, 0) + 1}
                case 2:  # Test
                    if not self._truth(i[1], agent, world):
                        agent.pc = i[2]
                        continue
                case 3:  # Jump
                    agent.pc = i[1]
                    continue
                case 4:  # Set
                    values[i[1]] = self._assigned(i[2], agent, world)
                case 5:  # MoveCursor
                    _, slot, cursor, depth, move = i
                    position = values[cursor]
                    assert isinstance(position, int)
                    if move == "next":
                        position = values[cursor] = (position + 1) % depth
                    elif move == "previous":
                        position = (position - 1) % depth
                    values[slot] = position
                case 6:  # Store
                    _, base, size, index, value, node = i
                    where = self._integer(index, agent, world)
                    new = self._assigned(value, agent, world)
                    if not 0 <= where < size:
                        self.report(Bad("index", node.span))
                        where = 0
                    values[base + where] = new
                case 7:  # Enter
                    self._enter(i[1], agent, world)
                case 8:  # Require
                    if not self._truth(i[1], agent, world):
                        self.report(Bad("assert", i[2].span))
                case 9:  # Stop
                    return None
                case _:  # an assignment that nobody looks at
                    pass
            agent.pc += 1
        raise CannotModel("an agent executes too many instructions without an operation to be followed")

    def _quick(self, e: _Expression, values: list[Value]) -> Any:
        """The value by the executor's arithmetic, or None if something unknown stands in it."""
        for slot in e.slots:
            if type(values[slot]) is not int:
                return None
        assert e.quick is not None
        return e.quick(values, self._evaluator)

    # ------------------------------------------------------------------------------------------ loops

    def _enter(self, instruction: Enter, agent: Agent, world: World) -> None:
        loop = self.enters[agent.pc]
        level = loop.level
        before = agent.epochs
        if loop.fresh:
            assert level is not None
            agent.epochs = {**before, level: before.get(level, 0) + 1}
        try:
            start = self.value(instruction.start, agent, world, level)
            stop = self.value(instruction.stop, agent, world, level)
        except Undecided:
            agent.epochs = before
            raise
        for slot, least in self.plan.stale.get(agent.pc, ()):
            self._make_stale(agent, slot, least, world)
        if loop.counted:
            start, stop = 0, self._trips(instruction, start, stop, loop, agent, world)
        agent.values[instruction.index], agent.values[instruction.limit] = start, stop

    def _make_stale(self, agent: Agent, slot: int, least: int, world: World) -> None:
        """A counter of an earlier run: only small values are remembered, larger ones become unknown numbers."""
        value = agent.values[slot]
        if not isinstance(value, int) or value < least:
            return
        number = 0
        while True:
            symbol = self.symbols.function(STALE, (slot, number), None, 0)
            if ((symbol, 1),) not in world.knowledge.intervals:
                break
            number += 1
        world.knowledge.intervals[(symbol, 1),] = (least, None)
        agent.values[slot] = Linear(0, ((symbol, 1),))

    def _trips(self, instruction: Enter, start: Value, stop: Value, loop: Loop, agent: Agent, world: World) -> Value:
        """The number of trips of a loop whose variable nobody reads, as one unknown: equal for equal ranges."""
        if isinstance(start, int) and isinstance(stop, int):
            return len(range(start, stop, loop.step))
        if start == 0 and loop.step == 1:
            return stop
        home = self.structure.level(ir.Compare(instruction.start, (("<", instruction.stop),)))
        epoch = agent.epochs.get(home, 0) if home is not None else 0
        symbol = self.symbols.function(TRIPS, (start, stop, loop.step), home, epoch)
        if ((symbol, 1),) not in world.knowledge.intervals:
            world.knowledge.intervals[(symbol, 1),] = (0, None)
        return Linear(0, ((symbol, 1),))

    # ------------------------------------------------------------------------------------------ decisions

    def _sign(self, value: Value, op: str, agent: Agent, world: World, level: Level | None) -> bool:
        return world.knowledge.sign(self._placed(value, agent, world, level), op)

    def _placed(self, value: Value, agent: Agent, world: World, level: Level | None) -> Value:
        """The value with every symbol replaced by its copy for this level and run."""
        if not isinstance(value, Linear) or level is None:
            return value
        epoch = agent.epochs.get(level, 0)
        if len(value.terms) == 1:
            ((symbol, coefficient),) = value.terms
            return Linear(value.constant, ((world.at(symbol, level, epoch), coefficient),))
        terms: dict[Symbol, int] = {}
        for symbol, coefficient in value.terms:
            copy = world.at(symbol, level, epoch)
            terms[copy] = terms.get(copy, 0) + coefficient
        return linear(value.constant, terms)

    def _truth(self, e: _Expression, agent: Agent, world: World, level: Level | None = None) -> bool:
        value = self.evaluate(e, agent, world, level)
        if not isinstance(value, Linear):
            return value != 0
        return self._sign(value, "!=", agent, world, e.level or level)

    def _integer(self, e: _Expression, agent: Agent, world: World) -> int:
        """An id, slot or index: it must be a plain integer, or split until it is."""
        value = self.evaluate(e, agent, world)
        if not isinstance(value, Linear):
            return value
        placed = self._placed(value, agent, world, e.level)
        if not isinstance(placed, Linear):
            return placed
        total = placed.constant
        for symbol, coefficient in placed.terms:
            low, high = world.knowledge.interval(((symbol, 1),))
            if low is None or low != high:
                if low is not None and high is not None and high - low <= 64:
                    middle = (low + high) // 2
                    choices = (((low, middle), None), ((middle + 1, high), None))
                    raise Undecided(((symbol, 1),), choices)
                raise CannotModel("an id or slot is not bounded")
            total += coefficient * low
        return total

    # ------------------------------------------------------------------------------------------ expressions

    def evaluate(self, e: _Expression, agent: Agent, world: World, level: Level | None = None) -> Value:
        """The value of an expression: at the executor's speed where only integers stand in it."""
        if e.quick is not None:
            values = agent.values
            for slot in e.slots:
                if type(values[slot]) is not int:
                    break
            else:
                return int(e.quick(values, self._evaluator))
        return self.value(e.expr, agent, world, level)

    def _assigned(self, e: _Expression, agent: Agent, world: World) -> Value:
        """The value of an expression that is only put somewhere; a mere copy may be of a lost record."""
        match e.expr:
            case ir.Name(id=name) if name in self.program.names:
                return _not_too_long(agent.values[self.program.names[name]])
            case ir.Field():
                return _not_too_long(self._field(e.expr, agent, world))
        return _not_too_long(self.evaluate(e, agent, world))

    def _field(self, expr: ir.Field, agent: Agent, world: World) -> Value:
        slots = self.structure.record(expr.ring, expr.field)
        at = self._integer(self._expression(expr.index), agent, world)
        if not 0 <= at < len(slots):
            self.report(Bad("index", expr.span))
            at = 0
        return agent.values[slots[at]]

    def _inner(self, expr: ir.Expr, agent: Agent, world: World, level: Level | None) -> bool:
        return self._truth(self._expression(expr), agent, world, level)

    def value(self, expr: ir.Expr, agent: Agent, world: World, level: Level | None = None) -> Value:
        """The value of an expression.

        `level` is where comparisons inside it are decided that look at no counter (the header of a loop is decided at
        the loop's own level).
        """
        match expr:
            case ir.Int(value=number):
                return number
            case ir.Name(id=name):
                if name in self.program.names:
                    return _kept(agent.values[self.program.names[name]])
                return self.value(self.compiled.scalars[name], agent, world, level)
            case ir.Item(name=name, index=index):
                at = self._integer(self._expression(index), agent, world)
                values = [self.value(element, agent, world, level) for element in self.compiled.tuples[name]]
                if not 0 <= at < len(values):
                    self.report(Bad("index", expr.span))
                    return 0
                return values[at]
            case ir.Field():
                return _kept(self._field(expr, agent, world))
            case ir.Unary(op="-", operand=operand):
                return scale(self.value(operand, agent, world, level), -1)
            case ir.Unary(operand=operand):
                return int(not self._inner(operand, agent, world, level))
            case ir.Binary():
                return self._binary(expr, agent, world, level)
            case ir.Compare(first=first, rest=rest):
                left = self.value(first, agent, world, level)
                at_level = self.structure.level(expr) or level
                for op, operand in rest:
                    right = self.value(operand, agent, world, level)
                    if not self._sign(add(left, right, -1), op, agent, world, at_level):
                        return 0
                    left = right
                return 1
            case ir.Logic(op=op, operands=operands):
                for operand in operands:
                    if self._inner(operand, agent, world, level) != (op == "and"):
                        return int(op == "or")
                return int(op == "and")
            case ir.Choose(condition=condition, then=then, other=other):
                chosen = then if self._inner(condition, agent, world, level) else other
                return self.value(chosen, agent, world, level)
            case ir.Call(function="min" | "max" as function, arguments=arguments):
                best = self.value(arguments[0], agent, world, level)
                at_level = self.structure.level(expr) or level
                for argument in arguments[1:]:
                    other_value = self.value(argument, agent, world, level)
                    less = self._sign(add(other_value, best, -1), "<", agent, world, at_level)
                    if less == (function == "min"):
                        best = other_value
                return best
            case ir.Call(function=function, arguments=arguments):
                given = tuple(self.value(a, agent, world, level) for a in arguments)
                return self._symbol(function, given, expr, agent, world, (lower_bound(function), None))

    def _symbol(
        self, function: str, arguments: tuple[Value, ...], expr: ir.Expr, agent: Agent, world: World, bounds: Interval
    ) -> Value:
        home = self.structure.level(expr)
        epoch = agent.epochs.get(home, 0) if home is not None else 0
        symbol = self.symbols.function(function, arguments, home, epoch)
        if len(symbol.family) > _NAME:
            raise CannotModel("an unknown number is computed from too many others")
        if ((symbol, 1),) not in world.knowledge.intervals:
            world.knowledge.intervals[(symbol, 1),] = bounds
        return Linear(0, ((symbol, 1),))

    def _binary(self, expr: ir.Binary, agent: Agent, world: World, level: Level | None) -> Value:
        if expr.op in ("%", "//"):
            return self._divide(expr, agent, world, level)
        left = self.value(expr.left, agent, world, level)
        right = self.value(expr.right, agent, world, level)
        if expr.op == "+":
            return add(left, right)
        if expr.op == "-":
            return add(left, right, -1)
        if isinstance(left, int):
            return scale(right, left)
        if isinstance(right, int):
            return scale(left, right)
        sides = (left, right) if _rank(left) <= _rank(right) else (right, left)
        return self._symbol("*", sides, expr, agent, world, EVERYTHING)

    def _divide(self, expr: ir.Binary, agent: Agent, world: World, level: Level | None) -> Value:
        left = self.value(expr.left, agent, world, level)
        right = self.value(expr.right, agent, world, level)
        at_level = self.structure.level(expr) or level
        if isinstance(right, int):
            if right == 0:
                self.report(Bad("zero", expr.span))
                return 0
            positive = right > 0
        else:
            positive = self._sign(right, ">", agent, world, at_level)
        negative = self._sign(left, "<", agent, world, at_level)
        if negative or not positive:
            self.report(Bad("negative", expr.span))
        if isinstance(left, int) and isinstance(right, int):
            return left % right if expr.op == "%" else left // right
        if not positive:
            raise CannotModel("a value divided by a number that may not be positive")
        if expr.op == "%" and isinstance(right, int):
            return world.knowledge.residue(self._placed(left, agent, world, at_level), right)
        bounds: Interval = (None if negative else 0, None)
        if isinstance(right, int) and isinstance(left, Linear):
            low, high = world.firm(left)
            low = low if negative or low is None else max(low, 0)
            bounds = (bounds[0] if low is None else low // right, None if high is None else high // right)
        return self._symbol(expr.op, (left, right), expr, agent, world, bounds)


def _rank(value: Value) -> tuple[tuple[str, int, int], ...]:
    """Any order of values, the same in every run of a level."""
    if not isinstance(value, Linear):
        return (("", 0, value),)
    return (("", 1, value.constant), *((symbol.family, symbol.number, c) for symbol, c in value.terms))


def _not_too_long(value: Value) -> Value:
    if type(value) is int and not -LARGEST < value < LARGEST:
        raise CannotModel("a scalar is longer than numbers that are followed")
    return value


def _kept(value: Value) -> Value:
    """A value that is looked at; that of a record that was written again is not to be."""
    if isinstance(value, Linear) and any(symbol.base.name.startswith(LOST) for symbol, _ in value.terms):
        raise CannotModel("a record is read after it was written again")
    return value
