"""Which value does each message carry, and what does the receiver make of it?

One agent's program is run alone on concrete parameters with symbolic values.  A value is what computed it: the
operation, its scalar operands and the values that it read.  Two values are the same exactly if they have the same
number, also across kernels and agents that share one `Values` table.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.model.functions import FunctionTable
from fencepost.model.issue import issue
from fencepost.model.program import Compiled, Emit, Program

Fifo = tuple[ir.Core, int]
"""The core that sends, and the id."""


@dataclass(slots=True)
class Values:
    """Numbers for symbolic values; equal descriptions get equal numbers."""

    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _descriptions: list[Hashable] = field(default_factory=list)

    def number(self, description: Hashable) -> int:
        """Return the number of a description, a new one if it was never seen."""
        found = self._numbers.get(description)
        if found is None:
            found = self._numbers[description] = len(self._descriptions)
            self._descriptions.append(description)
        return found

    def description(self, number: int) -> Hashable:
        """What computed the value with this number."""
        return self._descriptions[number]


@dataclass(frozen=True, slots=True)
class Sent:
    """A push: the `rank`-th message of its FIFO carries the value with number `value`."""

    fifo: Fifo
    rank: int
    value: int
    task: int | None
    stmt: ir.Push


@dataclass(frozen=True, slots=True)
class Received:
    """A pop: takes the `rank`-th message of its FIFO; `value` stands for whatever that message carries."""

    fifo: Fifo
    rank: int
    value: int
    task: int | None
    stmt: ir.Pop


@dataclass(frozen=True, slots=True)
class Freed:
    """A free of the popped value with number `value`."""

    fifo: Fifo
    value: int
    stmt: ir.Free


@dataclass(frozen=True, slots=True)
class Computed:
    """A data operation: what it read (numbers, in order) and the numbers of its results.

    A copy from name to name is none: both hold one value.  A store that gives its tensor back gives the same tensor.
    """

    op: str
    at: tuple[int, ...]
    reads: tuple[int, ...]
    results: tuple[int, ...]
    task: int | None
    stmt: ir.DataOp


Event = Sent | Received | Freed | Computed


def trace(
    compiled: Compiled, agent: str, parameters: tuple[int, ...], functions: FunctionTable, values: Values, limit: int
) -> list[Event]:
    """Return what `agent` sends, receives, frees and computes, in program order.

    Args:
        parameters: values in the order of `compiled.parameters`.
        limit: the largest number of instructions to execute; `LimitReached` is raised beyond it.
    """
    program = _with_operands(compiled.program(agent))
    issued, _ = issue(compiled, program, parameters, functions, limit)
    run = _Run("cube" if agent == "aic" else "vector", frozenset(compiled.depths), values)
    for site, arguments, task in issued:
        run.execute(program.sites[site], arguments, task)
    return run.events


def _with_operands(program: Program) -> Program:
    """The same program, with the scalar operands of data operations after their slots."""

    def extended(instruction: Emit) -> Emit:
        stmt = program.sites[instruction.site]
        extra = stmt.at if isinstance(stmt, ir.DataOp) else ()
        return replace(instruction, arguments=(*instruction.arguments, *extra)) if extra else instruction

    return replace(program, code=tuple(extended(i) if isinstance(i, Emit) else i for i in program.code))


@dataclass(slots=True)
class _Run:
    core: ir.Core
    buffers: frozenset[str]
    values: Values
    events: list[Event] = field(default_factory=list)
    known: dict[Hashable, int] = field(default_factory=dict)
    ranks: dict[tuple[str, Fifo], int] = field(default_factory=dict)

    def execute(self, stmt: ir.Stmt, arguments: tuple[int, ...], task: int | None) -> None:
        other: ir.Core = "vector" if self.core == "cube" else "cube"
        match stmt:
            case ir.DataOp():
                self._compute(stmt, arguments, task)
            case ir.Push(value=value):
                fifo = (self.core, arguments[0])
                self.events.append(Sent(fifo, self._rank("push", fifo), self._read(value), task, stmt))
            case ir.Pop(value=value):
                fifo = (other, arguments[0])
                rank = self._rank("pop", fifo)
                number = self.values.number(("message", fifo, rank))
                self.known[value] = number
                self.events.append(Received(fifo, rank, number, task, stmt))
            case ir.Free(value=value):
                self.events.append(Freed((other, arguments[0]), self._read(value), stmt))
            case _:
                pass

    def _rank(self, kind: str, fifo: Fifo) -> int:
        rank = self.ranks.get((kind, fifo), 0)
        self.ranks[kind, fifo] = rank + 1
        return rank

    def _read(self, place: Hashable) -> int:
        """The value in a place: an SSA name, or a slot of a buffer.  A place that was never written is an input."""
        number = self.known.get(place)
        if number is None:
            number = self.known[place] = self.values.number(("input", place))
        return number

    def _compute(self, stmt: ir.DataOp, arguments: tuple[int, ...], task: int | None) -> None:
        if stmt.renames and self._named(stmt.writes) and self._named(stmt.reads):
            self.known[stmt.writes[0].name] = self._read(stmt.reads[0].name)
            return
        operands = iter(arguments)
        places: list[Hashable] = []
        for access in (*stmt.writes, *stmt.reads):
            if access.name not in self.buffers:
                places.append(access.name)
                continue
            given = [e for e in (access.index, access.part, access.parts) if e is not None]
            places.append((access.name, *(next(operands) for _ in given)))
        at = tuple(operands)
        written, read = places[: len(stmt.writes)], places[len(stmt.writes) :]
        sources = tuple(self._read(place) for place in read)
        if is_store(stmt) and len(sources) > 1 and self._named(stmt.writes):
            results: tuple[int, ...] = (sources[-1],)
        else:
            results = tuple(self.values.number((stmt.op, at, sources, i)) for i in range(len(written)))
        for place, number in zip(written, results, strict=True):
            self.known[place] = number
        self.events.append(Computed(stmt.op, at, sources, results, task, stmt))

    def _named(self, accesses: tuple[ir.Access, ...]) -> bool:
        return len(accesses) == 1 and accesses[0].name not in self.buffers


def is_store(stmt: ir.DataOp) -> bool:
    """Whether an operation writes memory that outlives the kernel, by its name or because it gives no value."""
    return not stmt.writes or stmt.op.startswith(("store", "assemble", "atomic", "mscatter"))


__all__ = ["Computed", "Event", "Fifo", "Freed", "Received", "Sent", "Values", "is_store", "trace"]
