"""Which stage and order would be right for a loop, as close as possible to what is written?

A solver proposes schedules that keep every dependence (or, where there is none, that the compiler accepts), with as few
changed entries as possible; each proposal is verified before it is given out.  What a failed proposal teaches is added
to the question.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from fencepost.findings import Verdict
from fencepost.pipeline.accept import resolve
from fencepost.pipeline.explore import outcome
from fencepost.pipeline.model import Access, Annotations, Loop, Statement
from fencepost.pipeline.order import may_share
from fencepost.pipeline.result import PipelineResult
from fencepost.pipeline.setting import Setting
from fencepost.pipeline.smt import number
from fencepost.pipeline.trips import ANY_TRIPS, Trips
from fencepost.pipeline.verify import verify
from fencepost.prove.solver import check

_MAX_PROPOSALS = 25
_MAX_STATEMENTS = 24
_MAX_FAILING = 4
_MAX_STAGE = 64


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A stage and an order for the scheduled statements, proved right.

    `changes` counts the entries that differ from what is written; 0 if nothing was written.
    """

    stage: tuple[int, ...]
    order: tuple[int, ...]
    changes: int
    result: PipelineResult

    @property
    def text(self) -> str:
        """The annotation as kernel IR text."""
        return f"stage = ({_listed(self.stage)}), order = ({_listed(self.order)})"


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values)) + ("," if len(values) == 1 else "")


def suggest(loop: Loop, trips: Trips = ANY_TRIPS) -> Suggestion | None:
    """The nearest right annotation of the same depth, or for a loop without one the shallowest that overlaps copies.

    None if the loop is right as it is, or if no right annotation was found.
    """
    notes = loop.annotations
    scheduled = [n for n in range(len(loop.statements)) if not loop.can_replay(n)]
    if not scheduled or len(scheduled) > _MAX_STATEMENTS:
        return None
    if notes.stage is None and notes.order is None:
        return _overlapping(loop, trips, scheduled)
    written = verify(loop, trips)
    if written.verdict is Verdict.PROVED:
        return None
    stages, orders = (_aligned(loop, scheduled, entries) for entries in (notes.stage, notes.order))
    depth = max((s for s in stages if s is not None), default=1)
    if depth > _MAX_STAGE:
        return None
    question = _Question(loop, scheduled, stages, orders, max(depth, 0))
    question.remember(written)
    return question.answer(trips)


def _aligned(loop: Loop, scheduled: list[int], entries: tuple[int, ...] | None) -> list[int | None]:
    """The written entry of each scheduled statement, None where there is none."""
    if entries is None:
        return [None] * len(scheduled)
    if len(entries) == len(scheduled):
        return list(entries)
    if len(entries) == len(loop.statements):
        return [entries[n] for n in scheduled]
    plain = [n for n in scheduled if loop.statements[n].bind is None]
    places = plain if len(entries) == len(plain) else scheduled
    found = dict(zip(places, entries, strict=False))
    return [found.get(n) for n in scheduled]


def _overlapping(loop: Loop, trips: Trips, scheduled: list[int]) -> Suggestion | None:
    sources = [n for n in scheduled if _brings_in(loop, loop.statements[n])]
    if not sources:
        return None
    orders: list[int | None] = list(range(len(scheduled)))
    for last in range(1, len(scheduled)):
        question = _Question(loop, scheduled, [None] * len(scheduled), orders, last)
        for n in sources:
            written = {a.buffer for a in loop.statements[n].writes}
            users = [m for m in scheduled if m > n and any(a.buffer in written for a in loop.statements[m].reads)]
            question.facts += [f"(< {question.stage(n)} {question.stage(m)})" for m in users]
        found = question.answer(trips)
        if found is not None:
            return replace(found, changes=0)
    return None


def _brings_in(loop: Loop, text: Statement) -> bool:
    """Whether a statement only moves data from parameters into local buffers."""
    local = {b.name for b in loop.buffers if b.local}
    moves = bool(text.reads) and not any(a.buffer in local for a in text.reads)
    return text.copy or (moves and bool(text.writes) and all(a.buffer in local for a in text.writes))


class _Question:
    """Schedules of a loop with stages from 0 to `last`, as SMT-LIB text."""

    def __init__(
        self,
        loop: Loop,
        scheduled: list[int],
        stages: list[int | None],
        orders: list[int | None],
        last: int,
    ) -> None:
        self.loop, self.scheduled, self.last = loop, scheduled, last
        self.written = dict(zip(scheduled, zip(stages, orders, strict=True), strict=True))
        self.facts: list[str] = []
        self.failing: list[
            tuple[int, Setting]
        ] = []  # trip counts at which earlier proposals failed, the last one first
        known = [o for o in orders if o is not None]
        self.low, self.high = min(0, *known, 0), max(len(scheduled) - 1, *known, 0)

    def stage(self, n: int) -> str:
        return f"s{n}"

    def order(self, n: int) -> str:
        return f"o{n}"

    def answer(self, trips: Trips) -> Suggestion | None:
        """The verified schedule with the fewest changes that keeps the loop a pipeline, else one that does not."""
        kept, overlapping = list(self._kept()), self._overlapping()
        for rules in ([*kept, overlapping], [overlapping], kept, []):
            proposals = 0
            for changes in range(2 * len(self.scheduled) + 1):
                while proposals < _MAX_PROPOSALS:
                    proposal = self._propose(rules, changes)
                    if proposal is None:
                        break
                    proposals += 1
                    loop = self._annotated(*proposal)
                    if self._fails(loop):
                        self.facts.append(self._not_again(list(self.scheduled), *proposal))
                        continue
                    result = verify(loop, trips)
                    self.remember(result)
                    if result.verdict is Verdict.PROVED:
                        stage, order = loop.annotations.stage, loop.annotations.order
                        assert stage is not None and order is not None
                        return Suggestion(stage, order, changes, result)
                    self.facts += self._learned(result, *proposal)
        return None

    def remember(self, result: PipelineResult) -> None:
        """Keep the runs that showed what is wrong: the next proposal often fails in the same.

        Failures because of few trips (926) are left to the full check, from which more can be learnt.
        """
        shown = [(f.code, f.failure) for f in result.faults if f.failure is not None]
        runs = [(failure.outcome.trips, failure.setting) for code, failure in shown if code != "926"]
        self.failing = [*runs, *self.failing][:_MAX_FAILING]

    def _fails(self, loop: Loop) -> bool:
        """Whether a proposal fails in a run in which others failed; if not, nothing is known about it."""
        plan = resolve(loop).plan
        if plan is None:
            return False
        return any(outcome(plan, trips, setting).wrong for trips, setting in self.failing)

    def _overlapping(self) -> str:
        """Stages from the first to the last are used, so that the loop stays a pipeline of its depth."""
        return f"(or {' '.join(f'(= {self.stage(n)} 0)' for n in self.scheduled)})"

    # ------------------------------------------------------------------------------------------------ the text

    def _propose(self, rules: list[str], changes: int) -> tuple[dict[int, int], dict[int, int]] | None:
        """A schedule that differs from what is written in exactly `changes` entries."""
        names = [f(n) for n in self.scheduled for f in (self.stage, self.order)]
        lines = [f"(declare-const {name} Int)" for name in names]
        lines += [f"(declare-const v{k} Int)" for k in range(len(self._versioned()))]
        facts = [*self._accepted(), *rules, *self.facts]
        terms = [f"(ite (= {name} {number(value)}) 0 1)" for name, value in self._entries() if value is not None]
        facts.append(f"(= {changes} (+ 0 {' '.join(terms)}))" if terms else f"(= {changes} 0)")
        verdict = check("\n".join((*lines, *(f"(assert {fact})" for fact in facts))))
        if verdict.answer != "sat":
            return None
        stages = {n: verdict.model.get(self.stage(n), 0) for n in self.scheduled}
        orders = {n: verdict.model.get(self.order(n), 0) for n in self.scheduled}
        return stages, orders

    def _entries(self) -> Iterator[tuple[str, int | None]]:
        for n, (stage, order) in self.written.items():
            yield self.stage(n), stage
            yield self.order(n), order

    def _annotated(self, stages: dict[int, int], orders: dict[int, int]) -> Loop:
        """The loop with a proposal; async marks stay with their statements."""
        notes = self.loop.annotations

        def kept(entries: tuple[int, ...] | None) -> tuple[int, ...] | None:
            if entries is None or len(entries) not in (len(self.scheduled), len(self.loop.statements)):
                return None
            return entries if len(entries) == len(self.scheduled) else tuple(entries[n] for n in self.scheduled)

        return replace(
            self.loop,
            annotations=Annotations(
                tuple(stages[n] for n in self.scheduled),
                tuple(orders[n] for n in self.scheduled),
                notes.num_stages,
                notes.async_stages,
                kept(notes.async_producers),
                kept(notes.async_producer_groups),
            ),
        )

    def _accepted(self) -> Iterator[str]:
        """What the compiler demands."""
        for n in self.scheduled:
            yield f"(<= 0 {self.stage(n)} {self.last})"
            yield f"(<= {number(self.low)} {self.order(n)} {number(self.high)})"
        yield f"(or {' '.join(f'(= {self.stage(n)} {self.last})' for n in self.scheduled)} false)"
        if len(self.scheduled) > 1:
            yield f"(distinct {' '.join(self.order(n) for n in self.scheduled)})"
        for place, reader in enumerate(self.scheduled):
            text = self.loop.statements[reader]
            read = {a.buffer for a in text.seen}
            for writer in self.scheduled[:place]:
                if any(a.buffer in read for a in self.loop.statements[writer].writes):
                    yield self._before(writer, reader, "0")
            for name in text.uses:
                bind = self.loop.definition.get(name)
                if bind is not None and bind != reader and not self.loop.can_replay(bind):
                    yield f"(= {self.stage(bind)} {self.stage(reader)})"
                    yield f"(< {self.order(bind)} {self.order(reader)})"

    def _before(self, p: int, q: int, distance: str) -> str:
        """p for some iteration runs before q for the iteration `distance` later."""
        later = f"(+ {self.stage(q)} {distance})"
        same = f"(and (= {self.stage(p)} {later}) (< {self.order(p)} {self.order(q)}))"
        return f"(or (< {self.stage(p)} {later}) {same})"

    def _versioned(self) -> list[str]:
        return [b.name for b in self.loop.buffers if b.local and b.name in self.loop.written]

    def _kept(self) -> Iterator[str]:
        """Enough for all dependences to be kept: the dependence test for a schedule that is not known yet."""
        versioned = self._versioned()
        for name in sorted(self.loop.written):
            distance = "1"
            if name in versioned:
                distance = f"v{versioned.index(name)}"
                yield from self._versions(name, distance)
            users = [(n, a, w) for n in self.scheduled for a, w in self._accesses(n, name)]
            for k, (p, a, a_writes) in enumerate(users):
                for q, b, b_writes in users[k:]:
                    if not (a_writes or b_writes):
                        continue
                    if p != q and may_share(a, b, 0):
                        yield self._before(p, q, "0")
                    near = 1 if name in versioned else 0
                    if near or any(may_share(b, a, d) for d in range(1, self.last + 2)):
                        yield self._before(q, p, distance)
                    if p != q and (near or any(may_share(a, b, d) for d in range(1, self.last + 2))):
                        yield self._before(p, q, distance)

    def _accesses(self, n: int, buffer: str) -> list[tuple[Access, bool]]:
        text = self.loop.statements[n]
        found = [(a, False) for a in text.reads if a.buffer == buffer]
        return found + [(a, True) for a in text.writes if a.buffer == buffer]

    def _versions(self, buffer: str, count: str) -> Iterator[str]:
        """`count` is the number of versions that the compiler keeps of a local buffer."""
        writers = [n for n in self.scheduled if any(a.buffer == buffer for a in self.loop.statements[n].writes)]
        readers = [n for n in self.scheduled if any(a.buffer == buffer for a in self.loop.statements[n].seen)]
        needs_all = [
            f"(and (< {self.stage(w)} {self.stage(r)}) (< {self.order(w)} {self.order(r)}))"
            for w in writers
            for r in readers
            if self._may_overlap(w, r, buffer)
        ]
        most = f"(or {' '.join(needs_all)} false)"
        for w in writers:
            for r in readers:
                lowest = " ".join(f"(<= {self.stage(w)} {self.stage(x)})" for x in writers)
                highest = " ".join(f"(>= {self.stage(r)} {self.stage(x)})" for x in readers)
                span = f"(+ (- {self.stage(r)} {self.stage(w)}) 1)"
                value = f"(ite (>= {span} 2) (ite {most} {span} (- {span} 1)) 1)"
                yield f"(=> (and {lowest} {highest}) (= {count} {value}))"
        if not readers or not writers:
            yield f"(= {count} 1)"
        renamable = buffer not in self.loop.carried and all(a.buffer != buffer for a in self.loop.after)
        if not renamable:
            yield f"(= {count} 1)"

    def _may_overlap(self, writer: int, reader: int, buffer: str) -> bool:
        writes = [a for a in self.loop.statements[writer].writes if a.buffer == buffer]
        reads = [a for a in self.loop.statements[reader].seen if a.buffer == buffer]
        return self.loop.may_overlap(writes, reads)

    # ------------------------------------------------------------------------------------------------ learning

    def _learned(self, result: PipelineResult, stages: dict[int, int], orders: dict[int, int]) -> list[str]:
        """Facts that rule out a failed proposal, and others that fail for the same reason."""
        facts = [self._not_again(list(self.scheduled), stages, orders)]
        if any(fault.code == "934" for fault in result.faults):  # so it is wherever the loop is taken apart
            first = self.stage(self.scheduled[0])
            facts += [f"(= {first} {self.stage(n)})" for n in self.scheduled[1:]]
        for fault in result.faults:
            cause = fault.cause
            if cause is None or fault.severity.value != "error":
                continue
            if fault.code == "926":
                inside = [n for n in cause.statements if n in stages and 0 < stages[n] < self.last]
                facts += [f"(or (= {self.stage(n)} 0) (= {self.stage(n)} {self.last}))" for n in inside]
        return facts

    def _not_again(self, numbers: list[int], stages: dict[int, int], orders: dict[int, int]) -> str:
        """Other stages or another order of these statements among themselves."""
        parts = [f"(= {self.stage(n)} {stages[n]})" for n in numbers]
        ordered = sorted(numbers, key=lambda n: orders[n])
        parts += [f"(< {self.order(a)} {self.order(b)})" for a, b in pairwise(ordered)]
        return f"(not (and {' '.join(parts)} true))"
