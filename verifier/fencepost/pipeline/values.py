"""What do the serial loop and the pipelined loop compute, on symbolic values?

A value is a term: the statement and iteration that computed it and the values that it read.  Two programs compute the
same exactly if they leave the same terms behind; terms are numbered as they appear, so comparing two is cheap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost.pipeline.emission import Commit, Run, Wait, emit, steps
from fencepost.pipeline.model import Access, At, Loop, Somewhere, Whole
from fencepost.pipeline.schedule import Plan, Slot
from fencepost.pipeline.sequence import Unknowns

Cell: TypeAlias = tuple[str, int, object]
"""Buffer, version, cell number (or the name of a place that is not known).  A scalar is a buffer named ``=name``."""

Instance: TypeAlias = tuple[int, int]
"""Statement, iteration."""

Source: TypeAlias = Instance | Cell | None
"""Who wrote the value that was read: an instance, the contents of a cell before the loop, or nobody."""


@dataclass(frozen=True, slots=True)
class Read:
    """A cell that was read: which access of the statement it belongs to, and where the value came from."""

    access: int
    cell: Cell
    source: Source


@dataclass(frozen=True, slots=True)
class Execution:
    """One executed statement.  `part` and `step` say where in the program; `early` lists the reads of cells whose last
    asynchronous write was not awaited."""

    instance: Instance
    part: str
    step: int
    reads: tuple[Read, ...]
    written: tuple[Cell, ...]
    value: int
    early: tuple[Read, ...] = ()


@dataclass(slots=True)
class Terms:
    """The terms seen so far, numbered."""

    numbers: dict[object, int] = field(default_factory=dict)

    def number(self, term: object) -> int:
        return self.numbers.setdefault(term, len(self.numbers))


@dataclass(frozen=True, slots=True)
class History:
    """Everything that one program did.

    `final` holds (value, source) of the cells that can be seen afterwards; a cell that was never used is absent.
    `late` are the cells read after the loop whose last asynchronous write was not awaited.
    """

    executions: tuple[Execution, ...]
    final: dict[Cell, tuple[int, Source]]
    late: tuple[Cell, ...] = ()

    @property
    def hazard(self) -> bool:
        """Whether something was read that an asynchronous write might not have filled yet."""
        return bool(self.late) or any(e.early for e in self.executions)


def cells(loop: Loop, access: Access, version: int, iteration: int, unknowns: Unknowns) -> list[Cell]:
    """The cells that an access touches in one iteration."""
    match access.index:
        case Whole():
            count = loop.buffer[access.buffer].cells
            if count is None:
                raise ValueError(f"{access.buffer} has no end, so it cannot be used as a whole")
            return [(access.buffer, version, n) for n in range(count)]
        case At(cell):
            return [(access.buffer, version, cell(iteration))]
        case Somewhere(key):
            place = unknowns.get((key, iteration))
            return [(access.buffer, version, (key, iteration) if place is None else place)]


def serial(plan: Plan, trips: int, terms: Terms, unknowns: Unknowns) -> History:
    """Run the loop as it is written."""
    machine = _Machine(plan, trips, terms, unknowns, pipelined=False)
    for iteration in range(trips):
        for slot in plan.slots:
            machine.run(slot, iteration, "body", iteration)
    return machine.history()


def scheduled(plan: Plan, trips: int, terms: Terms, unknowns: Unknowns) -> History:
    """Run the program that the compiler emits."""
    machine = _Machine(plan, trips, terms, unknowns, pipelined=True)
    for count, (part, t, items) in enumerate(steps(emit(plan, trips))):
        for item in items:
            match item:
                case Run(slot):
                    machine.run(slot, t - slot.stage if plan.rewritten else t, part.name, count)
                case Commit(runs):
                    for run in runs:
                        machine.run(run.slot, t - run.slot.stage, part.name, count)
                    machine.committed += 1
                case Wait(pending):
                    machine.completed = max(machine.completed, machine.committed - pending)
    return machine.history()


class _Machine:
    def __init__(self, plan: Plan, trips: int, terms: Terms, unknowns: Unknowns, pipelined: bool) -> None:
        self.plan, self.loop = plan, plan.loop
        self.pipelined = pipelined and plan.rewritten
        self.trips, self.terms, self.unknowns = trips, terms, unknowns
        self.memory: dict[Cell, tuple[int, Source]] = {}
        self.flying: dict[Cell, int] = {}  # cell -> commit group of its last asynchronous write
        self.committed = 0
        self.completed = 0
        self.executions: list[Execution] = []

    def _look(self, cell: Cell) -> tuple[int, Source]:
        found = self.memory.get(cell)
        if found is None:
            buffer = self.loop.buffer[cell[0]]
            # What was stored before the loop is in the first version; the others hold nothing.
            source: Source = cell if buffer.initialised and cell[1] == 0 else None
            found = self.memory[cell] = (self.terms.number(source), source)
        return found

    def _cells(self, access: Access, iteration: int) -> list[Cell]:
        version = self.plan.version(access.buffer, iteration) if self.pipelined else 0
        return cells(self.loop, access, version, iteration, self.unknowns)

    def run(self, slot: Slot, iteration: int, part: str, step: int) -> None:
        text = self.plan.statement(slot)
        if not text.guard.holds(iteration, self.trips, self.unknowns):
            return
        reads: list[Read] = []
        inputs: list[tuple[int, ...]] = []
        for n, access in enumerate(text.reads):
            found = [(cell, *self._look(cell)) for cell in self._cells(access, iteration)]
            reads += [Read(n, cell, source) for cell, _, source in found]
            inputs.append(tuple(value for _, value, _ in found))
        early = tuple(r for r in reads if self._in_flight(r.cell))
        for n, definition in enumerate(self.plan.scalars[slot.number], len(text.reads)):
            scalar: Cell = (f"={self.loop.statements[definition].bind}", 0, 0)
            value, source = self.memory.get(scalar, (self.terms.number(None), None))
            reads.append(Read(n, scalar, source))
            inputs.append((value,))
        instance = (slot.number, iteration)
        value = self.terms.number((instance, tuple(inputs)))
        written: list[Cell] = []
        if text.bind is not None:
            self.memory[(f"={text.bind}", 0, 0)] = (value, instance)
        for n, access in enumerate(text.writes):
            targets = self._cells(access, iteration)
            for k, cell in enumerate(targets):
                parts = inputs
                if text.cellwise and inputs and len(inputs[0]) == len(targets) > 1:
                    parts = [(inputs[0][k],), *inputs[1:]]
                self.memory[cell] = (self.terms.number((instance, n, k, tuple(parts))), instance)
                if slot.is_async and self.pipelined:
                    self.flying[cell] = self.committed
            written += targets
        self.executions.append(Execution(instance, part, step, tuple(reads), tuple(written), value, early))

    def history(self) -> History:
        final = {cell: self.memory[cell] for cell in self.memory if self._visible(cell)}
        after = [c for a in self.loop.after for c in cells(self.loop, a, 0, 0, self.unknowns)]
        final.update((cell, self._look(cell)) for cell in after)
        late = tuple(cell for cell in after if self._in_flight(cell))
        return History(tuple(self.executions), final, late)

    def _in_flight(self, cell: Cell) -> bool:
        return self.flying.get(cell, -1) >= self.completed

    def _visible(self, cell: Cell) -> bool:
        buffer = self.loop.buffer.get(cell[0])
        return buffer is not None and not buffer.local


def differing(a: History, b: History, terms: Terms) -> list[Cell]:
    """The cells that can be seen after the loop and hold other values in `b` than in `a`."""

    def value(history: History, cell: Cell) -> int:
        return history.final[cell][0] if cell in history.final else terms.number(cell)

    return [cell for cell in dict.fromkeys((*a.final, *b.final)) if value(a, cell) != value(b, cell)]
