"""Programs: what does each agent execute, as a flat list of instructions?

A kernel is flattened once per agent.  The executor runs the instructions on concrete integers; the prover runs the
same instructions on knowledge about integers.  Because control flow depends on parameters and private scalars only,
the sequence of operations that an agent issues is a function of the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost import ir
from fencepost.model.target import TARGETS, Target

AGENTS = ("aic", "aiv0", "aiv1")


class ModelError(Exception):
    """The kernel cannot be modelled; `span` says where, the message says what and what would help."""

    def __init__(self, message: str, span: ir.Span) -> None:
        super().__init__(message)
        self.span = span


@dataclass(frozen=True, slots=True)
class Set:
    """`slot := value`."""

    slot: int
    value: ir.Expr


@dataclass(frozen=True, slots=True)
class Store:
    """`ring[index].field := value`; the field of record i lives in slot `base + i`."""

    base: int
    size: int
    index: ir.Expr
    value: ir.Expr
    node: ir.StoreField


@dataclass(frozen=True, slots=True)
class MoveCursor:
    """`slot := cursor` after (`next`) or without moving it."""

    slot: int
    cursor: int
    depth: int
    move: str
    node: ir.Cursor


@dataclass(frozen=True, slots=True)
class Jump:
    target: int


@dataclass(frozen=True, slots=True)
class Test:
    """Falls through if `condition` holds, else goes to `target`."""

    condition: ir.Expr
    target: int
    node: ir.If


@dataclass(frozen=True, slots=True)
class Enter:
    """Starts loop number `loop`: evaluates its bounds into the slots `index` and `limit`."""

    index: int
    limit: int
    start: ir.Expr
    stop: ir.Expr
    loop: int


@dataclass(frozen=True, slots=True)
class Next:
    """Next trip of loop `loop`: `slot := index`, or goes to `target` when the range is exhausted."""

    slot: int
    index: int
    limit: int
    step: int
    target: int
    loop: int
    node: ir.For


@dataclass(frozen=True, slots=True)
class Emit:
    """Issues the operation `site`; `arguments` are its ids, slots and parts in the order of `site_arguments`."""

    site: int
    arguments: tuple[ir.Expr, ...]
    task: ir.Expr | None


@dataclass(frozen=True, slots=True)
class Require:
    """`assert condition`."""

    condition: ir.Expr
    node: ir.Assert


@dataclass(frozen=True, slots=True)
class Stop:
    """End of the program."""


Instruction: TypeAlias = Set | Store | MoveCursor | Jump | Test | Enter | Next | Emit | Require | Stop

Operation: TypeAlias = (
    ir.SetCross
    | ir.WaitCross
    | ir.SyncSrc
    | ir.SyncDst
    | ir.MutexLock
    | ir.MutexUnlock
    | ir.Barrier
    | ir.SyncAll
    | ir.DataOp
    | ir.Push
    | ir.Pop
    | ir.Free
)


@dataclass(frozen=True, slots=True)
class Program:
    """One agent's instructions.

    `slots` names every integer of the agent's state; the parameters come first.  `initial` holds the start values of
    the slots after the parameters.  `sites` are the operations in text order; a site is one textual operation.
    """

    agent: str
    code: tuple[Instruction, ...]
    slots: tuple[str, ...]
    initial: tuple[int, ...]
    sites: tuple[Operation, ...]
    names: dict[str, int]
    rings: dict[str, tuple[int, int, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel ready to run: `parameters` includes `block` when the kernel uses it."""

    kernel: ir.Kernel
    target: Target
    parameters: tuple[str, ...]
    scalars: dict[str, ir.Expr]
    tuples: dict[str, tuple[ir.Expr, ...]]
    depths: dict[str, int]
    programs: tuple[Program, ...]
    unsupported: tuple[ir.Unsupported, ...]

    def program(self, agent: str) -> Program:
        return self.programs[[p.agent for p in self.programs].index(agent)]


def compile_kernel(kernel: ir.Kernel) -> Compiled:
    """Flatten `kernel` for each agent.

    Raises:
        ModelError: a size that must be constant is not, or a `pipeline`/`pipelined` loop has not been lowered.
    """
    scalars = {c.name: c.value for c in kernel.constants if not isinstance(c.value, tuple)}
    tuples = {c.name: c.value for c in kernel.constants if isinstance(c.value, tuple)}
    nodes = list(ir.walk(kernel))
    used = {n.id for n in nodes if isinstance(n, ir.Name)}
    parameters = kernel.parameters + (("block",) if "block" in used else ())
    depths = {b.name: 1 if b.depth is None else constant(b.depth, scalars, "buffer depth") for b in kernel.buffers}
    programs = tuple(
        _Flattener(kernel, agent, parameters, scalars, depths).run() for agent in AGENTS if _takes_part(kernel, agent)
    )
    unsupported = tuple(n for n in nodes if isinstance(n, ir.Unsupported))
    return Compiled(kernel, TARGETS[kernel.target], parameters, scalars, tuples, depths, programs, unsupported)


def _takes_part(kernel: ir.Kernel, agent: str) -> bool:
    """An agent takes part if it has a section, or if a statement outside the sections runs on all agents."""
    core = "cube" if agent == "aic" else "vector"
    return any(not isinstance(item, ir.Section) or item.core == core for item in kernel.body)


def constant(expr: ir.Expr, scalars: dict[str, ir.Expr], what: str) -> int:
    """The value of an expression over constants only.

    Raises:
        ModelError: the value depends on a parameter or on the run.
    """
    match expr:
        case ir.Int(value=value):
            return value
        case ir.Name(id=name) if name in scalars:
            return constant(scalars[name], scalars, what)
        case ir.Unary(op="-", operand=operand):
            return -constant(operand, scalars, what)
        case ir.Binary(op=op, left=left, right=right):
            a, b = constant(left, scalars, what), constant(right, scalars, what)
            if op in ("//", "%") and b == 0:
                raise ModelError(f"{what}: division by zero", expr.span)
            return {"+": a + b, "-": a - b, "*": a * b}.get(op, 0) if op in "+-*" else (a // b if op == "//" else a % b)
        case ir.Call(function="min" | "max" as f, arguments=arguments):
            values = [constant(a, scalars, what) for a in arguments]
            return min(values) if f == "min" else max(values)
    raise ModelError(f"{what} must be a constant integer", expr.span)


def site_arguments(op: Operation, buffers: frozenset[str]) -> tuple[ir.Expr, ...]:
    """The integer expressions that an operation evaluates when it is issued, in a fixed order."""
    match op:
        case ir.SetCross() | ir.WaitCross():
            return (op.id,) if op.lane is None else (op.id, op.lane)
        case ir.DataOp():
            found: list[ir.Expr] = []
            for access in (*op.writes, *op.reads):
                if access.name in buffers:
                    found += [e for e in (access.index, access.part, access.parts) if e is not None]
            return tuple(found)
        case ir.Barrier() | ir.SyncAll():
            return ()
        case _:
            return (op.id,)


@dataclass(slots=True)
class _Flattener:
    kernel: ir.Kernel
    agent: str
    parameters: tuple[str, ...]
    scalars: dict[str, ir.Expr]
    depths: dict[str, int]
    code: list[Instruction | None] = field(default_factory=list)
    slots: list[str] = field(default_factory=list)
    initial: list[int] = field(default_factory=list)
    sites: list[Operation] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    cursors: dict[str, int] = field(default_factory=dict)
    rings: dict[str, tuple[int, int, tuple[str, ...]]] = field(default_factory=dict)
    breaks: list[list[int]] = field(default_factory=list)
    continues: list[int] = field(default_factory=list)
    loops: int = 0

    def run(self) -> Program:
        self.slots = list(self.parameters)
        self.names = {p: i for i, p in enumerate(self.parameters)}
        self.names["sub"] = self._slot("sub", 1 if self.agent == "aiv1" else 0)
        for ring in self.kernel.rings:
            size = constant(ring.size, self.scalars, "ring size")
            if size < 1:
                raise ModelError("a ring needs at least one record", ring.span)
            base = len(self.slots)
            for f in ring.fields:
                for i in range(size):
                    self._slot(f"{ring.name}[{i}].{f}", 0)
            self.rings[ring.name] = (base, size, ring.fields)
        core = "cube" if self.agent == "aic" else "vector"
        for item in self.kernel.body:
            if not isinstance(item, ir.Section):
                self._statements((item,))
            elif item.core == core:
                self._statements(item.body)
        self.code.append(Stop())
        code = tuple(i for i in self.code if i is not None)
        assert len(code) == len(self.code), "every jump was patched"
        return Program(
            self.agent,
            code,
            tuple(self.slots),
            tuple(self.initial),
            tuple(self.sites),
            self.names,
            self.rings,
        )

    def _slot(self, name: str, value: int = 0) -> int:
        self.slots.append(name)
        self.initial.append(value)
        return len(self.slots) - 1

    def _name(self, name: str) -> int:
        if name not in self.names:
            self.names[name] = self._slot(name)
        return self.names[name]

    def _hole(self) -> int:
        self.code.append(None)
        return len(self.code) - 1

    def _statements(self, body: tuple[ir.Stmt, ...]) -> None:
        for stmt in body:
            self._statement(stmt)

    def _statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Assign():
                self.code.append(Set(self._name(stmt.name), stmt.value))
            case ir.Bind():
                self.code.append(Set(self._name(stmt.name), stmt.value))
            case ir.StoreField():
                base, size, fields = self.rings[stmt.ring]
                offset = base + size * fields.index(stmt.field)
                self.code.append(Store(offset, size, stmt.index, stmt.value, stmt))
            case ir.Cursor():
                depth = self.depths[stmt.buffer]
                if stmt.buffer not in self.cursors:
                    self.cursors[stmt.buffer] = self._slot(f"cursor of {stmt.buffer}", depth - 1)
                slot = self._name(stmt.name)
                self.code.append(MoveCursor(slot, self.cursors[stmt.buffer], depth, stmt.move, stmt))
            case ir.For():
                self._loop(stmt)
            case ir.If():
                self._if(stmt)
            case ir.Break():
                self.breaks[-1].append(self._hole())
            case ir.Continue():
                self.code.append(Jump(self.continues[-1]))
            case ir.Assert():
                self.code.append(Require(stmt.condition, stmt))
            case ir.Pass() | ir.Unsupported():
                pass
            case ir.Pipelined():
                raise ModelError("a pipelined loop is checked in its own row and cannot be run as it stands", stmt.span)
            case _:
                site = len(self.sites)
                self.sites.append(stmt)
                task = stmt.task if isinstance(stmt, (ir.DataOp, ir.Push, ir.Pop)) else None
                self.code.append(Emit(site, site_arguments(stmt, frozenset(self.depths)), task))

    def _loop(self, stmt: ir.For) -> None:
        loop, self.loops = self.loops, self.loops + 1
        step = constant(stmt.step, self.scalars, "loop step")
        if step == 0:
            raise ModelError("the step of a loop must not be 0", stmt.step.span)
        index, limit = self._slot(f"next {stmt.var}"), self._slot(f"limit of {stmt.var}")
        self.code.append(Enter(index, limit, stmt.start, stmt.stop, loop))
        head = self._hole()
        self.breaks.append([])
        self.continues.append(head)
        self._statements(stmt.body)
        self.code.append(Jump(head))
        end = len(self.code)
        self.code[head] = Next(self._name(stmt.var), index, limit, step, end, loop, stmt)
        self.continues.pop()
        for hole in self.breaks.pop():
            self.code[hole] = Jump(end)

    def _if(self, stmt: ir.If) -> None:
        exits: list[int] = []
        for condition, body in stmt.branches:
            test = self._hole()
            self._statements(body)
            exits.append(self._hole())
            self.code[test] = Test(condition, len(self.code), stmt)
        self._statements(stmt.orelse)
        for hole in exits:
            self.code[hole] = Jump(len(self.code))


def loops(kernel: ir.Kernel) -> Iterator[ir.For]:
    """Every `For` of the kernel, in text order."""
    return (node for node in ir.walk(kernel) if isinstance(node, ir.For))
