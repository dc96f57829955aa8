"""Where does each value that matters come from in the serial loop, and who else touches those cells?

The serial program is run once for one trip count, on values that remember what they were made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost.pipeline.cells import Instance, cells, cells_after
from fencepost.pipeline.model import Access, Loop, Statement, Step
from fencepost.pipeline.setting import Setting

Place: TypeAlias = tuple[str, int]
"""A buffer and a cell of it."""

Kind: TypeAlias = tuple[int, int, int, int]
"""Stores of one constant into the same cell are of one kind: statement, step, access, and which of its cells."""


@dataclass(slots=True, eq=False)
class Value:
    """What one instance stored in a cell (None: what was there before the loop), made of `inputs`.

    `kind` is that of a constant.  `held`: the cell held something before the loop.
    """

    writer: Instance | None
    inputs: tuple[tuple[Place, Value], ...] = ()
    kind: Kind | None = None
    held: bool = False


@dataclass(slots=True)
class Flows:
    """One run of the serial program.

    `ends` are the visible cells after the loop.  `writers` and `readers` are the instances that touch a cell, and
    `fetchers` those of the readers that may still read it after their issue, if they are asynchronous.
    """

    trips: int
    ends: list[tuple[Place, Value]] = field(default_factory=list)
    writers: dict[Place, dict[Instance, Kind | None]] = field(default_factory=dict)
    readers: dict[Place, dict[Instance, None]] = field(default_factory=dict)
    fetchers: dict[Place, dict[Instance, None]] = field(default_factory=dict)

    def needed(self) -> Iterator[Value]:
        """The values that were computed in the loop and reach something visible."""
        stack = [value for _, value in self.ends]
        known: set[int] = set()
        while stack:
            value = stack.pop()
            if value.writer is not None and id(value) not in known:
                known.add(id(value))
                stack += [source for _, source in value.inputs]
                yield value

    def sources(self, place: Place, value: Value) -> list[Instance]:
        """The instances that store this value in the cell; none if it was there before the loop."""
        if value.writer is None:
            return []
        if value.kind is None:
            return [value.writer]
        return [w for w, kind in self.writers[place].items() if kind == value.kind]


def flows(loop: Loop, numbers: list[int], trips: int, setting: Setting) -> Flows:
    """Run the statements `numbers` for `trips` iterations as they are written."""
    serial = _Serial(loop, setting, Flows(trips))
    for iteration in range(trips):
        for number in numbers:
            text = loop.statements[number]
            if text.guard.holds(iteration, trips, setting):
                for place, step in enumerate(text.steps):
                    if step.guard.holds(iteration, trips, setting):
                        serial.operate(text, place, step, (number, iteration))
    seen = dict.fromkeys(place for place in serial.flows.writers if not loop.buffer[place[0]].local)
    for access in loop.after:
        used = [(buffer, 0, cell) for buffer, cell in serial.memory]
        found = cells_after(loop, access, used, setting)
        seen.update(dict.fromkeys((buffer, cell) for buffer, _, cell in found))
    serial.flows.ends = [(place, serial.look(place)) for place in seen]
    return serial.flows


class _Serial:
    def __init__(self, loop: Loop, setting: Setting, found: Flows) -> None:
        self.loop, self.setting, self.flows = loop, setting, found
        self.memory: dict[Place, Value] = {}

    def places(self, access: Access, iteration: int) -> list[Place]:
        return [(buffer, cell) for buffer, _, cell in cells(self.loop, access, 0, iteration, self.setting)]

    def look(self, place: Place) -> Value:
        found = self.memory.get(place)
        if found is None:
            found = self.memory[place] = Value(None, held=self.loop.buffer[place[0]].initialised)
        return found

    def operate(self, text: Statement, place: int, step: Step, instance: Instance) -> None:
        """What the executor does in `values`, on values of this module."""
        inputs = []
        for access in step.reads:
            inputs.append([(p, self.look(p)) for p in self.places(access, instance[1])])
            for p, _ in inputs[-1]:
                self.flows.readers.setdefault(p, {})[instance] = None
                if text.fetched is None or access in text.fetched:
                    self.flows.fetchers.setdefault(p, {})[instance] = None
        everything = tuple(i for part in inputs for i in part)
        for n, access in enumerate(step.writes):
            targets = self.places(access, instance[1])
            for k, p in enumerate(targets):
                used = everything
                if step.cellwise and inputs and len(inputs[0]) == len(targets) > 1:
                    used = (inputs[0][k], *(i for part in inputs[1:] for i in part))
                kind = (instance[0], place, n, k) if step.constant and not used else None
                self.memory[p] = Value(instance, used, kind)
                self.flows.writers.setdefault(p, {})[instance] = kind
