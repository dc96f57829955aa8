"""Which conditions on a schedule follow from where the values of the serial loop come from?

A read gets its value in the pipeline exactly if the last write before it, in the version that it uses, is one that
stores this value.  A statement in a middle stage runs twice for an iteration if there are fewer trips than the last
stage, once in the prologue and once, later, in the epilogue; the last of the two must be right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from fencepost.pipeline.cells import Instance
from fencepost.pipeline.flows import Flows, Place, Value
from fencepost.pipeline.question import ANYWAY, NEVER, Before, Question, both, either, negated
from fencepost.pipeline.smt import number

_numbers = count()


@dataclass(frozen=True, slots=True)
class _Event:
    """One execution of an instance: where it may be (0 prologue and steady part, 1 epilogue), and if it is there."""

    instance: Instance
    part: int = 0
    exists: str = ANYWAY


class Demands:
    """The conditions that one run of the serial loop puts on a schedule."""

    def __init__(self, question: Question, found: Flows) -> None:
        self.question, self.flows = question, found
        self.twice = found.trips < question.last
        self.run = next(_numbers)
        self.rights: dict[tuple[int, int], str] = {}

    def facts(self) -> Iterator[str]:
        """What every right schedule fulfils, apart from waits."""
        question = self.question
        needed = list(self.flows.needed())
        if self.twice:
            self.rights = {
                (id(v), part): f"r{self.run}_{k}_{part}" for k, v in enumerate(needed) for part in (0, 1) if v.inputs
            }
            question.declare(self.rights.values())
        for place, value in self.flows.ends:
            yield from map(question.taken_apart, self._arrives(place, value, None))
        for value in needed:
            assert value.writer is not None
            for event in self._events(value.writer):
                demands = [d for p, source in value.inputs for d in self._arrives(p, source, event)]
                if self.twice and value.inputs:
                    yield f"(=> {self.rights[id(value), event.part]} {both(demands)})"
                else:
                    yield from map(question.taken_apart, demands)

    def _events(self, instance: Instance) -> list[_Event]:
        if not self.twice:
            return [_Event(instance)]
        stage, iteration = self.question.stage(instance[0]), instance[1]
        first, last, trips = self.question.last - iteration, self.question.last, self.flows.trips
        events = [_Event(instance, 0, f"(< {stage} {number(first)})" if first <= last else ANYWAY)]
        return [*events, _Event(instance, 1, f"(>= {stage} {number(trips - iteration)})")]

    def _before(self, a: _Event, b: _Event | None) -> str:
        """The condition that `a` takes place before `b` (None: the end)."""
        if b is None or a.part < b.part:
            return a.exists
        if a.part > b.part:
            return NEVER
        (p, i), (q, j) = a.instance, b.instance
        return both([a.exists, self.question.before(Before(p, q, j - i))])

    def _arrives(self, place: Place, value: Value, reader: _Event | None) -> Iterator[str]:
        """What brings a value to its reader, or to the code after the loop."""
        sources = self.flows.sources(place, value)
        if reader is not None and reader.instance == value.writer:
            return  # written by the same execution
        use = 0 if reader is None else reader.instance[1]
        versions = {
            i: self.question.same_version(place[0], use - i[1]) for i in (*sources, *self.flows.writers.get(place, ()))
        }
        good = [(e, versions[s]) for s in sources for e in self._events(s)]
        if not sources and value.held:
            yield self.question.same_version(place[0], use)
        if sources:
            yield either(both([same, self._before(e, reader)]) for e, same in good)
        for other in self.flows.writers.get(place, ()):
            if other in sources:
                continue
            for x in self._events(other):
                if x == reader or (reader is not None and not self.twice and other == reader.instance):
                    continue
                between = (both([same, self._before(x, e), self._before(e, reader)]) for e, same in good)
                comes_first = both([versions[other], self._before(x, reader)])
                if comes_first != NEVER:
                    yield either([negated(comes_first), *between])
        if self.twice and value.inputs and sources:
            yield self._right(value, reader)

    def _right(self, value: Value, reader: _Event | None) -> str:
        """The execution of a value's writer that a reader sees is right."""
        assert value.writer is not None
        early, late = (self.rights[id(value), part] for part in (0, 1))
        second = self._before(self._events(value.writer)[1], reader)
        if second == NEVER:
            return early
        return f"(ite {second} {late} {early})"
