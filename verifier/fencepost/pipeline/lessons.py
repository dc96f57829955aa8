"""What does a schedule that failed teach about others?

Each lesson is a condition in the words of a `Question` that the failed schedule violates and every right schedule
fulfils.  The more general, the fewer schedules have to be tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from fencepost.pipeline.explore import Outcome, SerialRun
from fencepost.pipeline.question import Proposal, Question, both, either
from fencepost.pipeline.schedule import Plan, Slot
from fencepost.pipeline.unawaited import Race, unawaited


def not_again(question: Question, proposal: Proposal) -> str:
    """Other stages, or another order; the same order with other numbers does not count."""
    ordered = sorted(question.scheduled, key=lambda n: proposal.orders[n])
    parts = [*_staged(question, proposal, ordered), *_ordered(question, ordered)]
    return f"(not {both(parts)})"


def _staged(question: Question, proposal: Proposal, numbers: Iterable[int]) -> Iterator[str]:
    yield from (f"(= {question.stage(n)} {proposal.stages[n]})" for n in numbers)


def _ordered(question: Question, numbers: Iterable[int]) -> Iterator[str]:
    yield from (f"(< {question.order(a)} {question.order(b)})" for a, b in pairwise(numbers))


def wrong_values(question: Question, proposal: Proposal, plan: Plan, shown: Outcome) -> str:
    """What decides the values that came out wrong is different.

    These are the stages of all statements that can reach them, the versions of the buffers through which they do, and
    the order of statements that meet in such a buffer in one step.
    """
    loop, trips = plan.loop, shown.trips
    buffers = {cell[0] for cell in shown.differs}
    numbers: set[int] = set()
    while True:
        new = {s.number for s in plan.slots if any(a.buffer in buffers for a in plan.statement(s).writes)} - numbers
        if not new:
            break
        numbers |= new
        buffers |= {a.buffer for n in new for a in loop.statements[n].reads}
    # A statement without effect on them may stand anywhere, except that it counts for the versions.
    chosen = sorted(numbers)
    parts = list(_staged(question, proposal, chosen))
    parts += [f"(= {question.versions(b)} {plan.versions[b]})" for b in question.versioned if b in buffers]
    for k, p in enumerate(chosen):
        for q in chosen[k + 1 :]:
            if abs(proposal.stages[p] - proposal.stages[q]) < trips and _meet(plan, p, q, buffers):
                parts += _ordered(question, sorted((p, q), key=lambda n: proposal.orders[n]))
    return question.taken_apart(f"(not {both(parts)})")


def _meet(plan: Plan, p: int, q: int, buffers: set[str]) -> bool:
    """Whether one of two statements writes what the other uses."""
    a, b = plan.loop.statements[p], plan.loop.statements[q]
    written = {x.buffer for x in a.writes}, {x.buffer for x in b.writes}
    used = {x.buffer for x in a.reads} | written[0], {x.buffer for x in b.reads} | written[1]
    return bool(buffers & (written[0] & used[1] | written[1] & used[0]))


def missing_wait(question: Question, proposal: Proposal, plan: Plan, run: SerialRun, race: Race) -> str:
    """What decides the waits is different; `race` is what is wrong without one.

    Waits follow from the asynchronous statements and those that the compiler sees reading what these fill; others
    matter only between two asynchronous ones, which they put into different commits, and where waits are relaxed.
    The one that writes a cell too early matters, too.
    """
    touched = {a.buffer for s in plan.slots if s.is_async for a in plan.statement(s).writes}
    matter = {s.number for s in plan.slots if s.is_async or _uses(plan, s) & touched}
    others = [s for s in plan.slots if s.number not in matter]
    hindering = _hindering(plan, others)
    if hindering and (bare := unawaited(replace(plan, retain_stages=1), run.trips, run.setting)):
        race, hindering = bare, []  # it is missing even if no wait is relaxed
    touched.add(race.buffer)
    if race.writer is not None:
        matter.add(race.writer)
        others = [s for s in others if s.number != race.writer]
    ordered = [s for s in plan.emitted if s.number in matter]
    apart: list[str] = []
    for a, b in _neighbours(ordered):
        between = [x for x in others if a.order < x.order < b.order]
        matter |= {x.number for x in between}
        here, there = question.order(a.number), question.order(b.number)
        for x in others:
            if x not in between:
                place = question.order(x.number)
                apart.append(f"(or (< {place} {here}) (< {there} {place}))")
    placed = matter | {s.number for s in hindering if not _plain(plan, s)}
    parts = [*_staged(question, proposal, sorted(matter)), *apart]
    parts += _ordered(question, [s.number for s in plan.emitted if s.number in placed])
    for s in hindering:
        if s.number not in matter:
            word = "<=" if run.trips >= question.last else "="
            parts.append(f"({word} {s.stage} {question.stage(s.number)})")
    parts += [f"(= {question.versions(b)} {plan.versions[b]})" for b in question.versioned if b in touched]
    notes = plan.loop.annotations
    if notes.async_producers is None:  # a stage is asynchronous, and whoever is in it
        free = [n for n in question.scheduled if n not in matter]
        moved = (f"(= {question.stage(n)} {k})" for n in free for k in notes.async_stages or ())
        parts.append(f"(not {either(moved)})")
    return question.taken_apart(f"(not {both(parts)})")


def _neighbours(ordered: list[Slot]) -> Iterator[tuple[Slot, Slot]]:
    """Pairs of asynchronous statements that follow each other in some step, and then share a commit.

    Statements of other stages may stand between them: they are absent in some steps of the prologue or the epilogue.
    """
    for place, a in enumerate(ordered):
        b = next((b for b in ordered[place + 1 :] if b.stage == a.stage), None)
        if a.is_async and b is not None and b.is_async:
            yield a, b


def _hindering(plan: Plan, others: list[Slot]) -> list[Slot]:
    """Which of the statements that need no waits can keep waits from being relaxed.

    Conditional ones do wherever they stand in a step, and beside a conditional asynchronous one all do.  A statement
    of a later stage stands in fewer steps of the prologue, so then no wait becomes stronger.
    """
    if all(_plain(plan, s) for s in plan.slots if s.is_async):
        return [s for s in others if not _plain(plan, s)]
    return others


def _plain(plan: Plan, slot: Slot) -> bool:
    return all(plan.loop.statements[t].plain for t in (slot.number, *plan.replays[slot.number]))


def _uses(plan: Plan, slot: Slot) -> set[str]:
    texts = [plan.loop.statements[t] for t in (slot.number, *plan.replays[slot.number])]
    return {a.buffer for t in texts for a in (*t.seen, *t.reads)}
