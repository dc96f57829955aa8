"""Obligations: what is a thing to be shown, and which rows fall with it?

An obligation names conditions that must not hold together, or two operations that must be ordered whenever they are
related.  The list for a kernel is made before anything is solved, and depends on the kernel alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fencepost import ir
from fencepost.findings import Row
from fencepost.prove.events import Event, Instance
from fencepost.prove.kernels import Closed
from fencepost.prove.terms import TRUE, Cond, conjoin, const, eq, le, lt, negate

Relation = Callable[[Instance, Instance], Cond]

_ALL = frozenset(Row)
_ORDER = frozenset({Row.SLOT_MAPPING, Row.EVENT_POSITION, Row.PAIRING, Row.BOUNDARY, Row.PHASES})

ROWS: dict[str, frozenset[Row]] = {
    # What everything else relies on.
    "induction": _ALL,
    "value": _ALL,
    "operands": _ALL,
    "range": _ALL,
    "balance": _ALL,
    "determined": _ALL,
    # What order relies on, where it travels along a mutex, a sync_all or an accumulator flag.
    "mutex": _ALL,
    "meetings": _ALL,
    "phases": _ALL,
    # One property each, and every row whose sentence it can make false.
    "round": frozenset({Row.SLOT_MAPPING, Row.PAIRING, Row.BOUNDARY}),
    "order": _ORDER,
    "lanes": _ORDER | {Row.PARTICIPANTS},
    "written": _ORDER,
    "progress": _ALL - {Row.EVENT_POSITION, Row.COUNTS},
    "modes": frozenset({Row.PAIRING, Row.BOUNDARY}),
    "capacity": frozenset({Row.COUNTS, Row.BOUNDARY}),
    "legal": frozenset({Row.PARTICIPANTS, Row.BOUNDARY}),
    "fifo": frozenset({Row.FIFO, Row.BOUNDARY}),
    "blocks": frozenset({Row.EVENT_POSITION, Row.BOUNDARY}),
}


@dataclass(frozen=True, slots=True)
class Order:
    """Whenever two executions are related, the first must happen before the other (with `either`: or after it).

    `own_token`: an order counts that arrives only with what the second operation itself takes.  `seed`: a weaker
    relation, which small runs can show; some of its pairs may be unordered.
    """

    one: Event
    other: Event
    relation: Relation
    either: bool = False
    own_token: bool = True
    seed: Relation | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Every execution of `reader` must be preceded by a related execution of one of `writers`.

    `place`, if given, says where an execution of a writer would be.
    """

    reader: Event
    writers: tuple[Event, ...]
    relation: Relation
    place: Callable[[Instance, Event], Instance | None] | None = None


@dataclass(frozen=True, slots=True)
class Obligation:
    """Something to be shown: `conditions` do not hold together, or `need` is met.

    `group` is a key of `ROWS`; `place` is where a reader would look.
    """

    name: str
    group: str
    place: ir.Span
    conditions: tuple[Cond, ...] = ()
    need: Order | Source | None = None

    @property
    def rows(self) -> frozenset[Row]:
        return ROWS[self.group]


def at(event: Event) -> str:
    """Where an event stands, for names of obligations."""
    copies = "".join(f", copy {c + 1}" for c in event.copies)
    return f"{type(event.stmt).__name__} in line {event.stmt.span.line} of {event.agent}{copies}"


def values(kernel: Closed) -> Iterator[Obligation]:
    """Formulas are right, and every value and operand is one that the model allows."""
    for agent, trace in kernel.traces.items():
        for induction in trace.inductions:
            span = induction.loop.node.span
            wrong = negate(eq(induction.one, induction.other))
            name = f"formula of {induction.key} of {agent} at the loop in line {span.line}, {induction.name}"
            yield Obligation(name, "induction", span, (*induction.path, wrong))
        for demand in trace.demands:
            name = f"{demand.kind} in line {demand.node.span.line} of {agent}"
            yield Obligation(name, "value", demand.node.span, (*demand.path, negate(demand.safe)))
        for event in trace.events:
            yield from _operands(kernel, event)


def _operands(kernel: Closed, event: Event) -> Iterator[Obligation]:
    span = event.stmt.span
    for operand in event.operands:
        depth = kernel.resolver.layout.depths[operand.access.name]
        slot = (le(-operand.slot), lt(operand.slot, const(depth)))
        part = (le(-operand.part), lt(operand.part, const(operand.parts)))
        name = f"slot of {operand.access.name}, {at(event)}"
        yield Obligation(name, "range", span, (event.domain, negate(conjoin((*slot, *part)))))
    data = isinstance(event.stmt, ir.DataOp)
    if event.arguments and not (data and event.cases):  # of data operations all cases are there, or none
        missing = (event.domain, negate(event.covered)) if event.cases else (TRUE,)
        if not data or _odd_mutexes(kernel, event):
            yield Obligation(f"id of {at(event)}", "operands", span, missing)
    for condition, effect in event.cases:
        for illegal in effect.illegal:
            yield Obligation(f"{illegal.message}, {at(event)}", "legal", span, (event.domain, condition))


def _odd_mutexes(kernel: Closed, event: Event) -> bool:
    """Whether a slot that a data operation might touch has a mutex that the target has not."""
    mutexes, count = kernel.resolver.layout.mutexes, kernel.compiled.target.mutex_ids
    slots = (ids for o in event.operands for ids in mutexes.get(o.access.name, ()))
    return any(not 0 <= number < count for ids in slots for number in ids)
