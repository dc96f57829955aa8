"""What do the serial loop and the pipelined loop compute, on symbolic values?

A value is a term: the statement and iteration that computed it and the values that it read.  Two programs compute the
same exactly if they leave the same terms behind; terms are numbered as they appear, so comparing two is cheap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost.pipeline.cells import Cell, Instance, cells, cells_after
from fencepost.pipeline.emission import Commit, Item, Run, Wait, emit, steps
from fencepost.pipeline.flights import Flights, Flying, fetched
from fencepost.pipeline.model import Access, Loop, Statement, Step
from fencepost.pipeline.schedule import Plan, Slot
from fencepost.pipeline.setting import Setting

FAR = 1 << 40  # a trip count so large that no guard sees the end

Source: TypeAlias = Instance | Cell | None
"""Who wrote the value that was read: an instance, the contents of a cell before the loop, or nobody."""


@dataclass(frozen=True, slots=True)
class Read:
    """A cell that was read, and where the value came from."""

    cell: Cell
    source: Source


@dataclass(frozen=True, slots=True)
class Execution:
    """One executed statement.  `part` and `step` say where in the program.

    `early` lists cells that it read although their last asynchronous write, by the instance beside it, was not
    awaited; `overtaken` are cells that it wrote although the asynchronous instance beside it may still use them.
    """

    instance: Instance
    part: str
    step: int
    reads: tuple[Read, ...]
    written: tuple[Cell, ...]
    early: Flying = ()
    overtaken: Flying = ()


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
    `late` are the cells read after the loop whose last asynchronous write was not awaited, `open` those written after
    it that an asynchronous statement may still use.
    """

    executions: tuple[Execution, ...]
    final: dict[Cell, tuple[int, Source]]
    late: Flying = ()
    open: Flying = ()

    @property
    def hazard(self) -> bool:
        """Whether something was read that an asynchronous write might not have filled yet."""
        return bool(self.late) or any(e.early for e in self.executions)

    @property
    def race(self) -> bool:
        """Whether something is not in order with an asynchronous statement: a read (`hazard`) or a write."""
        return self.hazard or bool(self.open) or any(e.overtaken for e in self.executions)


@dataclass(slots=True)
class _Done:
    """An execution under way."""

    instance: Instance
    part: str
    step: int
    reads: list[Read] = field(default_factory=list)
    written: list[Cell] = field(default_factory=list)
    early: list[tuple[Cell, Instance]] = field(default_factory=list)
    overtaken: list[tuple[Cell, Instance]] = field(default_factory=list)


class Machine:
    """One of the two programs while it runs.

    `trips` matters to guards that look at the last iterations; it may be raised as long as they are not reached.
    """

    def __init__(self, plan: Plan, trips: int, terms: Terms, setting: Setting, pipelined: bool) -> None:
        self.plan, self.loop = plan, plan.loop
        self.pipelined = pipelined and plan.rewritten
        self.trips, self.terms, self.setting = trips, terms, setting
        self.memory: dict[Cell, tuple[int, Source]] = {}
        self.flights = Flights(plan)
        self.executions: list[Execution] = []

    def fork(self, trips: int) -> Machine:
        """A copy of the state, without the executions so far, that goes on for a loop of `trips` iterations."""
        copy = Machine(self.plan, trips, self.terms, self.setting, self.pipelined)
        copy.memory, copy.flights = dict(self.memory), self.flights.fork()
        return copy

    def iterate(self, iteration: int) -> None:
        """Run one iteration of the loop as it is written."""
        for slot in self.plan.slots:
            self._run(slot, iteration, "body", iteration)

    def step(self, items: tuple[Item, ...], part: str, t: int, count: int) -> None:
        """Run one step of the emitted program, the one at time `t`; `count` is its place in the program."""
        for item in items:
            match item:
                case Run(slot):
                    self._run(slot, t - slot.stage if self.pipelined else t, part, count)
                case Commit(runs):
                    for run in runs:
                        self._run(run.slot, t - run.slot.stage, part, count)
                    self.flights.committed += 1
                case Wait(pending):
                    self.flights.wait(pending)

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
        return cells(self.loop, access, version, iteration, self.setting)

    def _run(self, slot: Slot, iteration: int, part: str, count: int) -> None:
        text = self.plan.statement(slot)
        if not text.guard.holds(iteration, self.trips, self.setting):
            return
        instance = (slot.number, iteration)
        done = _Done(instance, part, count)
        scalars = []
        for definition in self.plan.scalars[slot.number]:
            scalar = (f"={self.loop.statements[definition].bind}", 0, 0)
            value, source = self.memory.get(scalar, (self.terms.number(None), None))
            done.reads.append(Read(scalar, source))
            scalars.append(value)
        for place, step in enumerate(text.steps):
            if step.guard.holds(iteration, self.trips, self.setting):
                self._operate(done, place, step, scalars, text if slot.is_async and self.pipelined else None)
        if text.bind is not None:
            inputs = tuple(self._look(cell)[0] for a in text.reads for cell in self._cells(a, iteration))
            term = (instance, inputs, *scalars)
            self.memory[(f"={text.bind}", 0, 0)] = (self.terms.number(term), instance)
        reads, written = tuple(done.reads), tuple(done.written)
        early, overtaken = tuple(done.early), tuple(done.overtaken)
        self.executions.append(Execution(instance, part, count, reads, written, early, overtaken))

    def _operate(self, done: _Done, place: int, step: Step, scalars: list[int], flying: Statement | None) -> None:
        """Run one operation; `flying` is its statement, if that is asynchronous."""
        iteration, flights = done.instance[1], self.flights
        inputs: list[tuple[int, ...]] = []
        for access in step.reads:
            found = [(cell, *self._look(cell)) for cell in self._cells(access, iteration)]
            done.reads += [Read(cell, source) for cell, _, source in found]
            inputs.append(tuple(value for _, value, _ in found))
            if flights.filling:
                done.early += [f for f in flights.unfilled(cell for cell, _, _ in found) if f[1] != done.instance]
            if flying is not None and fetched(self.plan, flying, access):
                flights.fetches(done.instance, (cell for cell, _, _ in found))
        what = (done.instance[0], -1 if step.constant else iteration, place)
        for n, access in enumerate(step.writes):
            targets = self._cells(access, iteration)
            for k, cell in enumerate(targets):
                parts = inputs
                if step.cellwise and inputs and len(inputs[0]) == len(targets) > 1:
                    parts = [(inputs[0][k],), *inputs[1:]]
                term = (what, n, k, tuple(parts), *scalars)
                self.memory[cell] = (self.terms.number(term), done.instance)
            if flying is not None:
                flights.fills(done.instance, targets)
            elif flights.filling or flights.fetching:
                done.overtaken += flights.in_use(targets)
            done.written += targets

    def history(self) -> History:
        """What this program has done, if it ends here."""
        final = {cell: self.memory[cell] for cell in self.memory if self._visible(cell)}
        after = [c for a in self.loop.after for c in cells_after(self.loop, a, self.memory, self.setting)]
        seen = ((cell, self._look(cell)) for cell in after)
        final.update((c, found) for c, found in seen if self.loop.buffer[c[0]].cells is not None or _is_new(found[1]))
        late, still_open = self.flights.read_too_early(self.setting), self.flights.written_too_early(self.setting)
        return History(tuple(self.executions), final, late, still_open)

    def _visible(self, cell: Cell) -> bool:
        buffer = self.loop.buffer.get(cell[0])
        return buffer is not None and not buffer.local


def instance_of(source: Source) -> Instance | None:
    """The instance that a value came from, None if it was there before the loop."""
    return source if source is not None and len(source) == 2 else None


def _is_new(source: Source) -> bool:
    return instance_of(source) is not None


def identity(loop: Loop, source: Source) -> Source:
    """The source, except that all iterations of a statement that stores a constant are one."""
    instance = instance_of(source)
    return (instance[0], -1) if instance is not None and loop.statements[instance[0]].constant else source


def serial(plan: Plan, trips: int, terms: Terms, setting: Setting) -> History:
    """Run the loop as it is written."""
    machine = Machine(plan, trips, terms, setting, pipelined=False)
    for iteration in range(trips):
        machine.iterate(iteration)
    return machine.history()


def scheduled(plan: Plan, trips: int, terms: Terms, setting: Setting) -> History:
    """Run the program that the compiler emits."""
    machine = Machine(plan, trips, terms, setting, pipelined=True)
    for count, (part, t, items) in enumerate(steps(emit(plan, trips))):
        machine.step(items, part.name, t, count)
    return machine.history()


def differing(a: History, b: History, terms: Terms) -> list[Cell]:
    """The cells that can be seen after the loop and hold other values in `b` than in `a`."""

    def value(history: History, cell: Cell) -> int:
        return history.final[cell][0] if cell in history.final else terms.number(cell)

    return [cell for cell in dict.fromkeys((*a.final, *b.final)) if value(a, cell) != value(b, cell)]
