"""Does the pipeline keep every order between accesses that may matter, whatever conditions and slots turn out to be?

This is the classical dependence test on the scheduled program.  Statement p runs for iteration i at (i + stage, order),
so whether p for iteration i stays before q for iteration i + d depends on d alone and is certain for large d.  The test
needs no knowledge of conditions (any statement may run or not) and takes an unknown slot for any slot.  It answers
"yes" or gives the first pair of accesses whose order is lost; such a pair is no proof that a value changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fencepost.pipeline.model import Access, At, Statement, fills
from fencepost.pipeline.schedule import Plan, Slot


@dataclass(frozen=True, slots=True)
class Lost:
    """`first` for iteration i may run after `second` for iteration i + `distance`; both use `buffer`.

    `distance` is None if the buffer has versions and `first` may read what another iteration left.
    """

    buffer: str
    first: int
    second: int
    distance: int | None


def lost_order(plan: Plan) -> Lost | None:
    """The first order that the pipeline may lose, or None.

    None means that both programs agree for every trip count, provided that no statement `repeats` or that there are
    at least `plan.last_stage` trips.
    """
    return next(_lost(plan), None)


def repeats(plan: Plan) -> list[Slot]:
    """The statements that run twice for the same iteration when there are fewer trips than the last stage."""
    return [slot for slot in plan.slots if plan.rewritten and 0 < slot.stage < plan.last_stage]


def _lost(plan: Plan) -> Iterator[Lost]:
    for slot in plan.slots:
        if slot.stage < 0:
            yield Lost("", slot.number, slot.number, None)
    buffers, slots = plan.visible
    for buffer in plan.loop.buffers:
        if buffer.name not in buffers or buffer.name not in plan.loop.written:
            continue
        versions = plan.versions.get(buffer.name, 1)
        if versions > 1:
            yield from _not_renamed(plan, buffer.name, slots)
        users = [(slot, a, w) for slot in slots for a, w in _accesses(plan.statement(slot), buffer.name)]
        for n, (p, a, a_writes) in enumerate(users):
            for q, b, b_writes in users[n:]:
                if a_writes or b_writes:
                    yield from _conflicts(buffer.name, versions, (p, a), (q, b))
    for slot in slots:
        for number in plan.scalars[slot.number]:
            name = f"={plan.loop.statements[number].bind}"
            yield from _conflicts(name, 1, (plan.slot[number], Access(name)), (slot, Access(name)))


def _accesses(text: Statement, buffer: str) -> list[tuple[Access, bool]]:
    found = [(a, False) for a in text.reads if a.buffer == buffer]
    return found + [(a, True) for a in text.writes if a.buffer == buffer]


def _conflicts(buffer: str, versions: int, first: tuple[Slot, Access], second: tuple[Slot, Access]) -> Iterator[Lost]:
    """Lost orders between two accesses, the first not after the second in the source."""
    (p, a), (q, b) = first, second
    for distance in range(abs(p.stage - q.stage) + 2):
        if distance % versions:
            continue  # another version
        if p.number != q.number and not _kept(p, q, distance) and may_share(a, b, distance):
            yield Lost(buffer, p.number, q.number, distance)
        if distance and not _kept(q, p, distance) and may_share(b, a, distance):
            yield Lost(buffer, q.number, p.number, distance)


def _kept(p: Slot, q: Slot, distance: int) -> bool:
    """Whether p for iteration i runs before q for iteration i + distance."""
    return (p.stage, p.order) < (q.stage + distance, q.order)


def may_share(a: Access, b: Access, distance: int) -> bool:
    """Whether `a` in some iteration i and `b` in iteration i + distance touch a common cell (versions apart)."""
    match a.index, b.index:
        case At(x), At(y):
            return y.shifted(distance).plus(x.times(-1)).vanishes()
        case _:
            return True


def _not_renamed(plan: Plan, buffer: str, slots: tuple[Slot, ...]) -> Iterator[Lost]:
    """Reads that may see another iteration, which is lost once iterations have versions of their own."""
    if any(a.buffer == buffer for a in plan.loop.after):
        writer = next(s for s in plan.slots if any(a.buffer == buffer for a in plan.statement(s).writes))
        yield Lost(buffer, writer.number, writer.number, None)
    for n, slot in enumerate(slots):
        for read in plan.statement(slot).exposed:
            earlier = [plan.statement(other) for other in slots[:n]]
            if read.buffer == buffer and not any(fills(text, plan.statement(slot), read) for text in earlier):
                yield Lost(buffer, slot.number, slot.number, None)
