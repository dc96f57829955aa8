"""Which schedules of a loop are still possible, as a question to the solver?

The unknowns are a stage and an order for each scheduled statement.  What the compiler demands is stated at the start;
what failed proposals teach is added, each lesson as a condition that every right schedule fulfils.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fencepost.pipeline.model import Access, Loop
from fencepost.pipeline.order import may_share
from fencepost.pipeline.smt import number
from fencepost.prove.solver import Session

NEVER, ANYWAY = "false", "true"


@dataclass(frozen=True, slots=True)
class Before:
    """`first` for some iteration runs before `second` for the iteration `distance` later."""

    first: int
    second: int
    distance: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """A stage and an order for each scheduled statement; `changes` entries differ from what is written."""

    stages: dict[int, int]
    orders: dict[int, int]
    changes: int


class Unsettled(Exception):
    """The solver did not decide the question; the message says why."""


class Question:
    """Schedules of a loop with stages from 0 to `last`.

    Order numbers are 0, 1, ... or lie in the range of what is written.  `deadline` is a time of `time.monotonic()`.
    """

    def __init__(
        self,
        loop: Loop,
        scheduled: list[int],
        stages: Sequence[int | None],
        orders: Sequence[int | None],
        last: int,
        deadline: float | None = None,
    ) -> None:
        self.loop, self.scheduled, self.last, self.deadline = loop, scheduled, last, deadline
        self.written = {
            name: value
            for n, s, o in zip(scheduled, stages, orders, strict=True)
            for name, value in ((self.stage(n), s), (self.order(n), o))
            if value is not None
        }
        known = [o for o in orders if o is not None]
        self.low, self.high = min(0, *known, 0), max(len(scheduled) - 1, *known, 0)
        self.versioned = [b.name for b in loop.buffers if b.local and b.name in loop.written]
        self.session = Session(boolean=True)
        self._said: set[str] = set()
        self._names: dict[str, str] = {}
        self._limits: set[int] = set()  # numbers of changes that the session has a condition for
        names = [f(n) for n in scheduled for f in (self.stage, self.order)]
        names += [self.versions(b) for b in self.versioned]
        flags = ["whole", "kept", "spread", "narrow", "waits", *(self.waits(n) for n in scheduled)]
        lines = [f"(declare-const {name} Int)" for name in names]
        lines += [f"(declare-const {flag} Bool)" for flag in flags]
        self.session.add("\n".join(lines))
        self.say(self._accepted())
        self.say(self._counted())
        self.say(f"(=> kept {fact})" for fact in self._kept())
        self.say(self._waiting())

    @staticmethod
    def stage(n: int) -> str:
        return f"s{n}"

    @staticmethod
    def order(n: int) -> str:
        return f"o{n}"

    def versions(self, buffer: str) -> str:
        """The number of versions that the compiler keeps of a local buffer."""
        return f"v{self.versioned.index(buffer)}"

    @staticmethod
    def waits(n: int) -> str:
        """The condition that the compiler may place a wait before a statement."""
        return f"w{n}"

    def declare(self, names: Iterable[str]) -> None:
        """Add truth values that facts may speak about."""
        self.session.add("".join(f"(declare-const {name} Bool)" for name in names))

    def named(self, condition: str) -> str:
        """A name for a condition that is used often; nothing is said by that."""
        if condition in (ANYWAY, NEVER):
            return condition
        name = self._names.get(condition)
        if name is None:
            name = self._names[condition] = f"c{len(self._names)}"
            self.session.add(f"(declare-const {name} Bool) (assert (= {name} {condition}))")
        return name

    def say(self, facts: Iterable[str]) -> None:
        """Add conditions that every right schedule fulfils."""
        new = [f for f in dict.fromkeys(facts) if f != ANYWAY and f not in self._said]
        self._said.update(new)
        if new:
            self.session.add("\n".join(f"(assert {fact})" for fact in new))

    def propose(self, *assumed: str, changes: int | None = None) -> Proposal | None:
        """A possible schedule that fulfils `assumed`, too; `changes` is the most entries that may differ.

        Args:
            assumed: "kept" (enough for all dependences to be kept), "spread" (some statement is in stage 0) or
                "narrow" (none is).

        Raises:
            Unsettled: the solver does not know.
        """
        near = [] if changes is None or not self.written else [self._near(changes)]
        verdict = self.session.check([*assumed, *near], self.deadline)
        if verdict.answer == "unknown":
            raise Unsettled(verdict.reason)
        if verdict.answer == "unsat":
            return None
        model = verdict.model
        stages = {n: model.get(self.stage(n), 0) for n in self.scheduled}
        orders = {n: model.get(self.order(n), 0) for n in self.scheduled}
        differing = sum(model.get(name, 0) != value for name, value in self.written.items())
        return Proposal(stages, orders, differing)

    def _near(self, changes: int) -> str:
        """The condition that at most so many entries differ from what is written."""
        name = f"near{changes}"
        if changes not in self._limits:
            self._limits.add(changes)
            self.declare([name])
            differ = " ".join(f"(not (= {entry} {number(value)}))" for entry, value in self.written.items())
            self.say([f"(=> {name} ((_ at-most {changes}) {differ}))"])
        return name

    # ----------------------------------------------------------------------------------------- what is always true

    def _accepted(self) -> Iterator[str]:
        """What the compiler demands; `whole`: all statements share one stage, so that the loop is kept as it is."""
        stages = [self.stage(n) for n in self.scheduled]
        for n in self.scheduled:
            yield f"(<= 0 {self.stage(n)} {self.last})"
            yield f"(<= {number(self.low)} {self.order(n)} {number(self.high)})"
        yield either(f"(= {s} {self.last})" for s in stages)
        yield f"(= whole {both(f'(= {stages[0]} {s})' for s in stages[1:])})"
        yield f"(= spread {either(f'(= {s} 0)' for s in stages)})"
        yield "(= narrow (not spread))"
        if len(self.scheduled) > 1:
            yield f"(distinct {' '.join(self.order(n) for n in self.scheduled)})"
        for place, reader in enumerate(self.scheduled):
            text = self.loop.statements[reader]
            read = {a.buffer for a in text.seen}
            for writer in self.scheduled[:place]:
                if any(a.buffer in read for a in self.loop.statements[writer].writes):
                    yield self.before(Before(writer, reader, 0))
            for name in text.uses:
                bind = self.loop.definition.get(name)
                if bind is not None and bind != reader and not self.loop.can_replay(bind):
                    yield f"(= {self.stage(bind)} {self.stage(reader)})"
                    yield f"(< {self.order(bind)} {self.order(reader)})"

    def before(self, b: Before, distance: str | None = None) -> str:
        """The condition that one statement runs before another; `distance` may be a term instead of a number."""
        p, q = self.stage(b.first), self.stage(b.second)
        if distance is None:
            if b.first == b.second:
                return ANYWAY if b.distance > 0 else NEVER
            if b.distance < -self.last:
                return NEVER
            if b.distance > self.last:
                return ANYWAY
        later = distance or number(b.distance)
        if later != "0":
            q = f"(+ {q} {later})"
        ordered = f"(< {self.order(b.first)} {self.order(b.second)})"
        return f"(or (< {p} {q}) (and (= {p} {q}) {ordered}))"

    def _counted(self) -> Iterator[str]:
        """How many versions the compiler keeps of each local buffer, if it takes the loop apart."""
        for buffer in self.versioned:
            count = self.versions(buffer)
            texts = self.loop.statements
            writers = [n for n in self.scheduled if any(a.buffer == buffer for a in texts[n].writes)]
            readers = [n for n in self.scheduled if any(a.buffer == buffer for a in texts[n].seen)]
            yield f"(<= 1 {count} {self.last + 1})"
            if not readers or not writers:
                yield f"(= {count} 1)"
            needs_all = either(
                f"(and (< {self.stage(w)} {self.stage(r)}) (< {self.order(w)} {self.order(r)}))"
                for w in writers
                for r in readers
                if self._may_overlap(w, r, buffer)
            )
            for w in writers:
                for r in readers:
                    lowest = both(f"(<= {self.stage(w)} {self.stage(x)})" for x in writers)
                    highest = both(f"(>= {self.stage(r)} {self.stage(x)})" for x in readers)
                    span = f"(+ (- {self.stage(r)} {self.stage(w)}) 1)"
                    value = f"(ite (>= {span} 2) (ite {needs_all} {span} (- {span} 1)) 1)"
                    yield f"(=> (and {lowest} {highest}) (= {count} {value}))"

    def _may_overlap(self, writer: int, reader: int, buffer: str) -> bool:
        writes = [a for a in self.loop.statements[writer].writes if a.buffer == buffer]
        reads = [a for a in self.loop.statements[reader].seen if a.buffer == buffer]
        return self.loop.may_overlap(writes, reads)

    def is_async(self, n: int) -> str:
        """The condition that a statement is asynchronous."""
        notes, flags = self.loop.annotations, self.loop.annotations.async_producers
        if flags is not None and len(flags) in (len(self.scheduled), len(self.loop.statements)):
            place = n if len(flags) != len(self.scheduled) else self.scheduled.index(n)
            return ANYWAY if flags[place] else NEVER
        return either(f"(= {self.stage(n)} {number(k)})" for k in dict.fromkeys(notes.async_stages or ()))

    def _waiting(self) -> Iterator[str]:
        """The compiler waits only before statements that are not asynchronous and read what such ones fill."""
        asynchronous = {n: self.is_async(n) for n in self.scheduled}
        for r in self.scheduled:
            alone, sources = negated(asynchronous[r]), self.sources(r)
            filled = {n: both([asynchronous[n], f"(<= {self.stage(n)} {self.stage(r)})"]) for n in sources}
            yield f"(= {self.waits(r)} {both([alone, either(filled.values())])})"
            for k, a in enumerate(sources):
                for b in sources[k + 1 :]:  # two asynchronous stages are too many to wait for (909)
                    two = both([filled[a], filled[b], f"(not (= {self.stage(a)} {self.stage(b)}))", alone])
                    yield self.taken_apart(negated(two))
        yield f"(= waits {either(self.waits(n) for n in self.scheduled)})"

    def sources(self, n: int) -> list[int]:
        """The statements that may be asynchronous and fill what a statement reads."""
        used = self.used(n)
        fill = (m for m in self.scheduled if any(a.buffer in used for a in self.loop.statements[m].writes))
        return [m for m in fill if self.is_async(m) != NEVER]

    def used(self, n: int) -> set[str]:
        """The buffers that a statement reads as the compiler sees it, with the binds that are replayed for it."""
        texts, stack = {n}, [n]
        while stack:
            for name in self.loop.statements[stack.pop()].uses:
                bind = self.loop.definition.get(name)
                if bind is not None and bind not in texts and self.loop.can_replay(bind):
                    texts.add(bind)
                    stack.append(bind)
        return {a.buffer for t in texts for a in self.loop.statements[t].seen}

    def _kept(self) -> Iterator[str]:
        """Enough for all dependences to be kept: the dependence test for a schedule that is not known yet."""
        for name in sorted(self.loop.written):
            distance = None
            if name in self.versioned:
                distance = self.versions(name)
                if name in self.loop.carried or any(a.buffer == name for a in self.loop.after):
                    yield f"(= {distance} 1)"
            users = [(n, a, w) for n in self.scheduled for a, w in self._accesses(n, name)]
            for k, (p, a, a_writes) in enumerate(users):
                for q, b, b_writes in users[k:]:
                    if not (a_writes or b_writes):
                        continue
                    if p != q and may_share(a, b, 0):
                        yield self.before(Before(p, q, 0))
                    if distance or any(may_share(b, a, d) for d in range(1, self.last + 2)):
                        yield self.before(Before(q, p, 1), distance)
                    if p != q and (distance or any(may_share(a, b, d) for d in range(1, self.last + 2))):
                        yield self.before(Before(p, q, 1), distance)

    def _accesses(self, n: int, buffer: str) -> list[tuple[Access, bool]]:
        text = self.loop.statements[n]
        found = [(a, False) for a in text.reads if a.buffer == buffer]
        return found + [(a, True) for a in text.writes if a.buffer == buffer]

    # ----------------------------------------------------------------------------------------------- what is learnt

    def taken_apart(self, fact: str) -> str:
        """The fact, demanded only where the compiler takes the loop apart."""
        return either(["whole", fact])

    def in_order(self, p: int, q: int) -> str:
        """The condition that one statement comes before another in a step in which both are."""
        return f"(< {self.order(p)} {self.order(q)})"

    def same_version(self, buffer: str, distance: int) -> str:
        """The condition that iterations `distance` apart use the same version of a buffer."""
        if buffer not in self.versioned or distance == 0:
            return ANYWAY
        counts = [n for n in range(1, self.last + 2) if distance % n == 0]
        return either(f"(= {self.versions(buffer)} {n})" for n in counts)


def either(parts: Iterable[str]) -> str:
    """The disjunction of conditions."""
    return _joined("or", list(parts), NEVER, ANYWAY)


def both(parts: Iterable[str]) -> str:
    """The conjunction of conditions."""
    return _joined("and", list(parts), ANYWAY, NEVER)


def negated(part: str) -> str:
    """The opposite of a condition."""
    return {ANYWAY: NEVER, NEVER: ANYWAY}.get(part, f"(not {part})")


def _joined(word: str, parts: list[str], empty: str, strong: str) -> str:
    if strong in parts:
        return strong
    parts = [p for p in dict.fromkeys(parts) if p != empty]
    if not parts:
        return empty
    return parts[0] if len(parts) == 1 else f"({word} {' '.join(parts)})"
