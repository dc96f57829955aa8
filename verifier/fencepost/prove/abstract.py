"""Abstract agents: what does one agent do next when parameters are only partly known?

The agent runs the same instructions as the executor, on values that are integers or linear forms over symbols.  It
stops at the next operation, or raises `Undecided` where the next step depends on something that is not known yet.

The same parameter is one symbol everywhere, but what is known of it is kept per loop level and per entry of the loop
(*copies*): a loop that is entered again compares its counter with a fresh copy of which only little is remembered.
All copies stand for the same integer; forgetting that is sound, it only admits more executions than there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from fencepost import ir
from fencepost.model.functions import FunctionTable
from fencepost.model.issue import Evaluator, Translator, as_function
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
from fencepost.prove.structure import Level, Loop, Structure
from fencepost.prove.values import Form, Interval, Knowledge, Linear, Symbol, Undecided, Value, add, linear, scale

STALE = "stale"
"""Name of the unknown numbers that stand for counters of earlier entries of a loop."""


class CannotModel(Exception):
    """An expression is outside what the exploration understands; the message says which."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A bad value met on a path: "negative", "zero", "index" or "assert" (see `BadValue`)."""

    kind: str
    span: ir.Span


@dataclass(slots=True)
class Agent:
    """The state of one agent: where it is, its integers, and which entry of each loop level it is in."""

    pc: int
    values: list[Value]
    epochs: dict[Level, int] = field(default_factory=dict)

    def copy(self) -> Agent:
        return Agent(self.pc, list(self.values), dict(self.epochs))


@dataclass(slots=True)
class World:
    """Knowledge shared by all agents, with the rules for copies.

    `initial` are the intervals that the assumes give each parameter; `remember` is the largest value of a symbol that
    is remembered outside the loop that learnt it.
    """

    knowledge: Knowledge
    initial: dict[Symbol, Interval]
    remember: int

    def copy(self) -> World:
        return World(self.knowledge.copy(), self.initial, self.remember)

    def at(self, symbol: Symbol, level: Level | None, epoch: int) -> Symbol:
        """The copy of `symbol` that comparisons at `level` in entry `epoch` use, created on first use."""
        if level is None or (symbol[0] == "f" and (symbol[3] == level or symbol[1] == STALE)):
            return symbol
        copy: Symbol = ("c", symbol, level, epoch)
        if ((copy, 1),) not in self.knowledge.intervals:
            self.knowledge.learn(((copy, 1),), self.initial.get(symbol, (None, None)), None)
            residue = self.knowledge.residues.get(symbol)
            self.knowledge.learn(((copy, 1),), self._weak(self.knowledge.interval(((symbol, 1),))), residue)
        return copy

    def _weak(self, interval: Interval) -> Interval:
        """What one copy tells the others: only how small values lie, which no shift of a copy ever changes."""
        low, high = interval
        if low is not None:
            low = None if low < -self.remember else min(low, self.remember)
        if high is not None:
            high = None if high > self.remember else max(high, -self.remember)
        return low, high

    def learn(self, form: Form, interval: Interval, residue: tuple[int, int] | None) -> bool:
        """Narrow the knowledge on this path; False if nothing is left of it."""
        knowledge = self.knowledge
        if not knowledge.learn(form, interval, residue):
            return False
        if len(form) > 1:
            return True
        symbol = form[0][0]
        base = symbol[1] if symbol[0] == "c" else symbol
        assert isinstance(base, tuple)
        weak = self._weak(knowledge.interval(form))
        if base != symbol and ((base, 1),) not in knowledge.intervals:
            knowledge.intervals[(base, 1),] = self.initial.get(base, (None, None))
        for other in list(knowledge.intervals):
            if len(other) == 1 and other != form:
                name = other[0][0]
                if (name == base or (name[0] == "c" and name[1] == base)) and not knowledge.learn(other, weak, residue):
                    return False
        return True


class _Reporter(Evaluator):
    """The executor's evaluator of expressions, telling bad values to a stepper."""

    def __init__(self, stepper: Stepper) -> None:
        super().__init__(stepper.program.agent, FunctionTable(), [])
        self.stepper = stepper

    def note(self, kind: Literal["negative", "zero", "index", "assert"], k: int, value: int, message: str) -> None:
        self.stepper.report(Bad(kind, self.nodes[k].span))


class Stepper:
    """Runs the instructions of one program on abstract values."""

    def __init__(self, compiled: Compiled, program: Program, structure: Structure) -> None:
        self.compiled = compiled
        self.program = program
        self.code = program.code
        self.structure = structure
        self.report: Callable[[Bad], None] = lambda bad: None
        self._levels: dict[int, tuple[Level | None, ir.Expr]] = {}
        self._plain: dict[int, tuple[tuple[int, ...], Callable[..., Value] | None, ir.Expr]] = {}
        self._evaluator = _Reporter(self)
        sizes = [len(t) for t in compiled.tuples.values()] + [size for _, size, _ in program.rings.values()]
        self.outside = max([64, *compiled.depths.values(), *sizes])
        self.enters: dict[int, Loop] = {loop.enter: loop for loop in structure.loops}
        self.heads: dict[int, Loop] = {loop.head: loop for loop in structure.loops}

    def start(self) -> Agent:
        values: list[Value] = [Linear(0, ((("p", p), 1),)) for p in self.compiled.parameters]
        return Agent(0, [*values, *self.program.initial])

    def next(self, agent: Agent, world: World, budget: int) -> tuple[Emit, tuple[int, ...], Value | None] | None:
        """Run to the next operation, which stays to be executed; None at the end of the program.

        Raises:
            Undecided: the path must split first; the agent stands before the undecided instruction.
            CannotModel: something is outside the abstraction.
        """
        for _ in range(budget):
            instruction = self.code[agent.pc]
            match instruction:
                case Emit():
                    arguments = tuple(self._integer(a, agent, world) for a in instruction.arguments)
                    task = None if instruction.task is None else self.evaluate(instruction.task, agent, world)
                    return instruction, arguments, task
                case Set(slot=slot, value=value):
                    agent.values[slot] = self.evaluate(value, agent, world)
                case Next(slot=slot, index=index, limit=limit, step=step, target=target):
                    at = agent.values[index]
                    loop = self.heads[agent.pc]
                    level = loop.level
                    step = 1 if loop.counted else step
                    op = "<" if step > 0 else ">"
                    if self._sign(add(at, agent.values[limit], -1), op, agent, world, level):
                        agent.values[slot] = at
                        agent.values[index] = add(at, step)
                    else:
                        agent.pc = target
                        continue
                case Test(condition=condition, target=target):
                    if not self._truth(condition, agent, world):
                        agent.pc = target
                        continue
                case Jump(target=target):
                    agent.pc = target
                    continue
                case MoveCursor(slot=slot, cursor=cursor, depth=depth, move=move):
                    position = agent.values[cursor]
                    assert isinstance(position, int)
                    if move == "next":
                        position = agent.values[cursor] = (position + 1) % depth
                    elif move == "previous":
                        position = (position - 1) % depth
                    agent.values[slot] = position
                case Store(base=base, size=size):
                    where = self._integer(instruction.index, agent, world)
                    new = self.evaluate(instruction.value, agent, world)
                    if not 0 <= where < size:
                        self.report(Bad("index", instruction.node.span))
                        where = 0
                    agent.values[base + where] = new
                case Enter():
                    self._enter(instruction, agent, world)
                case Require(condition=condition, node=node):
                    if not self._truth(condition, agent, world):
                        self.report(Bad("assert", node.span))
                case Stop():
                    return None
            agent.pc += 1
        raise CannotModel("an agent runs on for ever without an operation")

    def _enter(self, instruction: Enter, agent: Agent, world: World) -> None:
        loop = self.enters[agent.pc]
        level = loop.level
        epochs = dict(agent.epochs)
        if level is not None and not loop.linked:
            epochs[level] = epochs.get(level, 0) + 1
        before, agent.epochs = agent.epochs, epochs
        try:
            start = self.value(instruction.start, agent, world, level)
            stop = self.value(instruction.stop, agent, world, level)
        except Undecided:
            agent.epochs = before
            raise
        for slot in self.structure.stale.get(agent.pc, ()):
            self._make_stale(agent, slot, world)
        if loop.counted:
            start, stop = 0, self._trips(instruction, start, stop, loop, agent, world)
        agent.values[instruction.index], agent.values[instruction.limit] = start, stop

    def _make_stale(self, agent: Agent, slot: int, world: World) -> None:
        """A counter of an earlier entry: only small values are remembered, larger ones become unknown numbers."""
        value = agent.values[slot]
        least = self.structure.groups[self.structure.group_of[slot]].threshold
        if not isinstance(value, int) or value < least:
            return
        number = 0
        while True:
            symbol: Symbol = ("f", STALE, (self.program.agent, slot, number), None, 0)
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
        home = self.structure.level_of(ir.Compare(instruction.start, (("<", instruction.stop),)))
        epoch = agent.epochs.get(home, 0) if home is not None else 0
        symbol: Symbol = ("f", "trips", (start, stop, loop.step), home, epoch)
        if ((symbol, 1),) not in world.knowledge.intervals:
            world.knowledge.intervals[(symbol, 1),] = (0, None)
        return Linear(0, ((symbol, 1),))

    # ------------------------------------------------------------------------------------------ decisions

    def _sign(self, value: Value, op: str, agent: Agent, world: World, level: Level | None) -> bool:
        return world.knowledge.sign(self._placed(value, agent, world, level), op)

    def _placed(self, value: Value, agent: Agent, world: World, level: Level | None) -> Value:
        """The value with every symbol replaced by its copy for this level and entry."""
        if isinstance(value, int):
            return value
        epoch = agent.epochs.get(level, 0) if level is not None else 0
        terms: dict[Symbol, int] = {}
        for symbol, coefficient in value.terms:
            copy = world.at(symbol, level, epoch)
            terms[copy] = terms.get(copy, 0) + coefficient
        return linear(value.constant, terms)

    def _truth(self, expr: ir.Expr, agent: Agent, world: World, level: Level | None = None) -> bool:
        value = self.evaluate(expr, agent, world, level)
        if isinstance(value, int):
            return value != 0
        return self._sign(value, "!=", agent, world, level or self.structure_level(expr))

    def structure_level(self, expr: ir.Expr) -> Level | None:
        """The level at which comparisons in `expr` are decided; the expression stays alive, so its id is its own."""
        cached = self._levels.get(id(expr))
        if cached is None:
            cached = self._levels[id(expr)] = (self.structure.level_of(expr), expr)
        return cached[0]

    def _integer(self, expr: ir.Expr, agent: Agent, world: World) -> int:
        """An id, slot or index: it must be a plain integer, or split until it is.

        All values outside every range of the kernel are the same mistake: -1 or `self.outside` stand for them.
        """
        value = self.evaluate(expr, agent, world)
        if isinstance(value, int):
            return value
        placed = self._placed(value, agent, world, self.structure_level(expr))
        assert not isinstance(placed, int)
        if world.knowledge.sign(placed, "<"):
            return -1
        if not world.knowledge.sign(add(placed, -self.outside), "<"):
            return self.outside
        total = placed.constant
        for symbol, coefficient in placed.terms:
            low, high = world.knowledge.interval(((symbol, 1),))
            if low is None or low != high:
                if low is not None and high is not None and high - low <= self.outside:
                    middle = (low + high) // 2
                    choices = (((low, middle), None), ((middle + 1, high), None))
                    raise Undecided(((symbol, 1),), choices)
                raise CannotModel("an id or slot is not bounded")
            total += coefficient * low
        return total

    # ------------------------------------------------------------------------------------------ expressions

    def evaluate(self, expr: ir.Expr, agent: Agent, world: World, level: Level | None = None) -> Value:
        """The value of an expression: at the executor's speed where only integers stand in it."""
        known = self._plain.get(id(expr))
        if known is None:
            known = self._plain[id(expr)] = self._translate(expr)
        slots, function, _ = known
        if function is not None:
            values = agent.values
            for slot in slots:
                if type(values[slot]) is not int:
                    break
            else:
                return function(values, self._evaluator)
        return self.value(expr, agent, world, level)

    def _translate(self, expr: ir.Expr) -> tuple[tuple[int, ...], Callable[..., Value] | None, ir.Expr]:
        """The slots that an expression reads, and the executor's form of it unless it calls unknown functions."""
        slots = tuple(sorted(self.structure.slots_of(expr)))
        if self.structure.calls_of(expr):
            return slots, None, expr
        translator = Translator(self.compiled, self.program.names, self.program.rings, self._evaluator.nodes)
        return slots, as_function(translator.text(expr)), expr

    def value(self, expr: ir.Expr, agent: Agent, world: World, level: Level | None = None) -> Value:
        """The value of an expression.

        `level` overrides the level at which comparisons inside it are decided (the header of a loop is decided at the
        loop's own level).
        """
        match expr:
            case ir.Int(value=number):
                return number
            case ir.Name(id=name):
                if name in self.program.names:
                    return agent.values[self.program.names[name]]
                return self.value(self.compiled.scalars[name], agent, world, level)
            case ir.Item(name=name, index=index):
                values = self.compiled.tuples[name]
                at = self._integer(index, agent, world)
                if not 0 <= at < len(values):
                    self.report(Bad("index", expr.span))
                    return 0
                return self.value(values[at], agent, world, level)
            case ir.Field(ring=ring, index=index, field=name):
                base, size, fields = self.program.rings[ring]
                at = self._integer(index, agent, world)
                if not 0 <= at < size:
                    self.report(Bad("index", expr.span))
                    at = 0
                return agent.values[base + size * fields.index(name) + at]
            case ir.Unary(op="-", operand=operand):
                return scale(self.value(operand, agent, world, level), -1)
            case ir.Unary(operand=operand):
                return int(not self._truth(operand, agent, world, level))
            case ir.Binary():
                return self._binary(expr, agent, world, level)
            case ir.Compare(first=first, rest=rest):
                left = self.value(first, agent, world, level)
                at_level = level or self.structure_level(expr)
                for op, operand in rest:
                    right = self.value(operand, agent, world, level)
                    if not self._sign(add(left, right, -1), op, agent, world, at_level):
                        return 0
                    left = right
                return 1
            case ir.Logic(op=op, operands=operands):
                for operand in operands:
                    if self._truth(operand, agent, world, level) != (op == "and"):
                        return int(op == "or")
                return int(op == "and")
            case ir.Choose(condition=condition, then=then, other=other):
                chosen = then if self._truth(condition, agent, world, level) else other
                return self.value(chosen, agent, world, level)
            case ir.Call(function="min" | "max" as function, arguments=arguments):
                best = self.value(arguments[0], agent, world, level)
                at_level = level or self.structure_level(expr)
                for argument in arguments[1:]:
                    other_value = self.value(argument, agent, world, level)
                    less = self._sign(add(other_value, best, -1), "<", agent, world, at_level)
                    if less == (function == "min"):
                        best = other_value
                return best
            case ir.Call(function=function, arguments=arguments):
                values_ = tuple(self.value(a, agent, world, level) for a in arguments)
                return self._symbol(function, values_, expr, agent, world, (None, None))

    def _symbol(
        self, function: str, arguments: tuple[Value, ...], expr: ir.Expr, agent: Agent, world: World, bounds: Interval
    ) -> Value:
        home = self.structure_level(expr)
        epoch = agent.epochs.get(home, 0) if home is not None else 0
        symbol: Symbol = ("f", function, arguments, home, epoch)
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
        sides = tuple(sorted((left, right), key=repr))
        return self._symbol("*", sides, expr, agent, world, (None, None))

    def _divide(self, expr: ir.Binary, agent: Agent, world: World, level: Level | None) -> Value:
        left = self.value(expr.left, agent, world, level)
        right = self.value(expr.right, agent, world, level)
        at_level = level or self.structure_level(expr)
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
        placed = self._placed(left, agent, world, at_level)
        if expr.op == "%" and isinstance(right, int):
            return world.knowledge.residue(placed, right)
        bounds: Interval = (None if negative else 0, None)
        if isinstance(right, int):
            assert not isinstance(placed, int)
            low, high = _bounds(world, placed)
            bounds = (None if low is None else low // right, None if high is None else high // right)
        return self._symbol(expr.op, (left, right), expr, agent, world, bounds)


def _bounds(world: World, value: Linear) -> Interval:
    low: int | None = value.constant
    high: int | None = value.constant
    for symbol, coefficient in value.terms:
        a, b = world.knowledge.interval(((symbol, 1),))
        if coefficient < 0:
            a, b = b, a
        low = None if low is None or a is None else low + coefficient * a
        high = None if high is None or b is None else high + coefficient * b
    return low, high
