"""Which conditions on a schedule follow from what asynchronous statements need to be waited for?

The compiler waits before statements that are not asynchronous and read what such ones fill: until at most a number of
groups, those that were committed last, are not over.  In the steady loop it leaves more of them, where it can count
them (`emission`).  What is said here is less than that, but holds for every right schedule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from fencepost.pipeline.cells import Instance
from fencepost.pipeline.flows import Flows
from fencepost.pipeline.question import ANYWAY, NEVER, Before, Question, both, either, negated
from fencepost.pipeline.smt import number


@dataclass(frozen=True, slots=True)
class _Kind:
    """The instances of two statements that are so far apart meet in a buffer."""

    buffer: str
    pair: Before


@dataclass(frozen=True, slots=True)
class _Meetings:
    """In which iterations of the first of a pair: the least, and whether one is in the steady loop anyway."""

    first: int
    steady: bool


class Awaiting:
    """What runs of the serial loop say about waits; nothing is said twice."""

    def __init__(self, question: Question) -> None:
        self.question = question
        given = question.loop.annotations.num_stages
        self.relaxed = question.last > 0 if given is None else given > 1
        binds = (text for text in question.loop.statements if text.bind is not None)
        self.counted = all(text.plain for text in binds)
        self.known = question.loop.start is not None and question.loop.start >= 0
        self.asynchronous = {n: question.named(question.is_async(n)) for n in question.scheduled}
        self._strong = cache(self._strong_wait)
        self._said: set[tuple[_Kind, _Meetings, bool, bool]] = set()

    def facts(self, found: Flows) -> Iterator[str]:
        """What every schedule fulfils in which waits are strong enough.

        A read must wait for every asynchronous write of its cell that comes before it, even one that has been
        overwritten since: nobody knows when it ends.  So must a write of what an asynchronous statement fills or
        fetches, unless it is asynchronous itself.  What is read after the loop must have been waited for inside.
        """
        question, few = self.question, found.trips < self.question.last
        if all(condition == NEVER for condition in self.asynchronous.values()):
            return
        reads = self._meetings(
            found.trips,
            (
                (place[0], reader, writer)
                for place, readers in found.readers.items()
                for reader in readers
                for writer in found.writers.get(place, ())
                if reader != writer
            ),
        )
        overwrites = self._meetings(
            found.trips,
            (
                (place[0], writer, user)
                for place, writers in found.writers.items()
                for writer in writers
                for user in (*writers, *found.fetchers.get(place, ()))
                if user[0] != writer[0]
            ),
        )
        for pairs in (reads, overwrites):  # what a write demands follows from what a read of the same statement demands
            for kind, when in pairs.items():
                is_read = pairs is reads
                if (kind, when, few, True) in self._said or (kind, when, few, is_read) in self._said:
                    continue
                self._said.add((kind, when, few, is_read))
                awaited = self._awaited(kind, when, few)
                yield awaited if is_read else either([self.asynchronous[kind.pair.first], awaited])
        if few:
            return
        after = {a.buffer for a in question.loop.after}
        for place in (p for p, _ in found.ends if p[0] in after):
            for w, j in found.writers.get(place, ()):
                first = question.same_version(place[0], j)  # the one in which the code after the loop looks
                parts = [negated(self.asynchronous[w]), negated(first), "waits"]
                yield question.taken_apart(either(parts))

    def _meetings(self, trips: int, pairs: Iterable[tuple[str, Instance, Instance]]) -> dict[_Kind, _Meetings]:
        last = self.question.last
        steady = range(last, trips - max(last, 1))
        found: dict[_Kind, _Meetings] = {}
        for buffer, (p, i), (q, j) in pairs:
            if i - j > last + 1:  # no closer than the two of another pair, in whatever version
                continue
            kind = _Kind(buffer, Before(p, q, j - i))
            old = found.get(kind)
            if old is None:
                found[kind] = _Meetings(i, i in steady)
            elif i < old.first or i in steady:
                found[kind] = _Meetings(min(i, old.first), old.steady or i in steady)
        return found

    def _awaited(self, kind: _Kind, when: _Meetings, few: bool) -> str:
        """A write of a cell is not asynchronous, or a read comes before it, or some statement between them waits."""
        question, pair = self.question, kind.pair
        r, w = pair.first, pair.second
        parts = [negated(self.asynchronous[w]), question.before(pair)]
        if (same := question.same_version(kind.buffer, pair.distance)) != ANYWAY:
            parts.append(negated(same))
        if few:  # statements in other stages run twice
            parts += [f"(< 0 {question.stage(n)} {question.last})" for n in sorted({r, w})]
        if ANYWAY in parts:
            return ANYWAY
        if r == w:
            return question.taken_apart(either([*parts, question.waits(r), "waits"]))
        waiting = {x: question.waits(x) for x in question.scheduled if x not in (r, w)}
        if not few:  # it is there in the step of the read, be that in the prologue
            step = f"(+ {question.stage(r)} {number(when.first)})"
            waiting = {x: both([c, f"(<= {question.stage(x)} {step})"]) for x, c in waiting.items()}
        at_once, next_ = (
            f"(= {question.stage(r)} (+ {question.stage(w)} {number(pair.distance + d)}))" for d in (0, 1)
        )
        strong = {x: self._strong(w, x) if when.steady else ANYWAY for x in (r, *waiting)}
        parts.append(both([question.waits(r), either([negated(at_once), strong[r]])]))
        between = [both(["waits", negated(at_once), negated(next_)])]  # a whole step, at least, is between them
        for x, waits in waiting.items():
            after, until = question.in_order(w, x), question.in_order(x, r)
            here = both([after, until, either([negated(at_once), strong[x]])])
            between.append(both([waits, either([here, both([next_, either([after, until])])])]))
        covered = ANYWAY if few or not self.known else self._covered(pair, waiting)
        parts.append(both([either(between), covered]))
        return question.taken_apart(either(parts))

    def _covered(self, pair: Before, waiting: dict[int, str]) -> str:
        """What is waited for may be that write, and not just earlier ones, if no other statement is asynchronous.

        A wait before a statement is for what its own iteration reads.  It takes place in the step of that statement,
        at the first of those that wait there.
        """
        question, r = self.question, pair.first
        steps = {x: f"(+ {question.stage(x)} {number(pair.distance)})" for x in waiting}
        earlier, at_once = (
            either(both([waits, f"({op} {steps[x]} {question.stage(r)})"]) for x, waits in waiting.items())
            for op in "<="
        )
        first = either(both([waits, question.in_order(x, r)]) for x, waits in waiting.items())
        others = (self.asynchronous[x] for x in (r, *waiting))
        return either([*others, earlier, both([at_once, first])])

    def _strong_wait(self, w: int, x: int) -> str:
        """A wait before `x` may be for the group of `w`, committed earlier in the same step of the steady loop.

        The first wait after a commit leaves, at least, the group that was committed last, unless the commits that are
        pending cannot be counted.  If `x` reads nothing else that is filled asynchronously, in the same iteration, it
        leaves all groups of other stages, too.
        """
        if not self.relaxed:
            return ANYWAY
        question, sources = self.question, self.question.sources(x)
        parts = []
        for y in question.scheduled:
            if y in (w, x):
                continue
            matters = ANYWAY
            if self.counted and question.loop.statements[y].plain:
                commits = [self.asynchronous[y]]
                if sources == [w]:
                    alike, own = (f"(= {question.stage(n)} {question.stage(w)})" for n in (x, y))
                    commits.append(f"(=> {alike} {own})")
                matters = either([both(commits), question.waits(y)])
            parts.append(both([matters, question.in_order(w, y), question.in_order(y, x)]))
        return question.named(either(parts))
