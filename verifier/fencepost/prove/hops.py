"""Hops: does one operation happen before another, for all values?

Order inside a pipe is program order.  It travels to another pipe by *hops*: a signal from set to wait, a mutex from
unlock to lock, an operation on S to what is issued later, a barrier, an accumulator flag, a message, a credit.  A
*path template* names the hops and says where to find them; a template holds for two executions if every hop exists and
the last one arrives in time.  Where a template looks is only a guess: what it finds is checked by its condition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fencepost import ir
from fencepost.prove.events import Event, Instance, precedes
from fencepost.prove.kernels import Closed
from fencepost.prove.ranks import Sums
from fencepost.prove.terms import (
    FALSE,
    TRUE,
    Cond,
    Lin,
    conjoin,
    const,
    disjoin,
    eq,
    le,
    lt,
    mod,
    negate,
    symbol,
)

Find = Literal["same", "next", "previous", "shift", "first", "last", "mirror", "partner", "count"]
Kind = Literal["match", "lock", "issue", "drain", "meet", "phase", "message", "credit"]


_TOKENS = ("match", "message", "credit", "phase", "meet")
"""Hops by which something arrives at an operation only while it executes."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where to find an execution of an event, seen from another one.

    "same": the same indices.  "next", "previous": its first execution from here on, its last one before (of one agent).
    "shift": the execution whose number is `offset` more than the number of this one, more by all executions of `plus`
    and fewer by all of `minus`, for what runs through several loops on one side.  "first" and "last": number
    `offset` from its start or end.  "mirror": as far from its end as this one is from its own, plus `offset`.
    "partner": the execution that takes this one's signal, whichever it is.  "count": the same, where it is enough to
    know, by counting, that it comes before the end of the path.
    """

    event: Event
    find: Find
    offset: int = 0
    plus: Event | None = None
    minus: Event | None = None


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop: from an operation at or after the current one on its pipe, to an operation on another pipe."""

    kind: Kind
    source: Spot
    target: Spot


Template = tuple[Hop, ...]


@dataclass(slots=True)
class Search:
    """Definitions that one query needs: fresh indices, and what they are."""

    prefix: str
    facts: list[Cond] = field(default_factory=list)
    known: dict[tuple[Event, str], Instance] = field(default_factory=dict)

    def fresh(self, event: Event, sums: Sums) -> Instance:
        """The event at indices that nothing else uses."""
        names = (f"{self.prefix}{len(self.known) + 1}@{i}" for i in range(len(event.loops)))
        return Instance(event, tuple(map(symbol, names)), sums)


@dataclass(slots=True)
class Hops:
    """Conditions for happens-before, over one kernel."""

    kernel: Closed

    # -------------------------------------------------------------------------------------------- finding executions

    def find(self, spot: Spot, here: Instance, search: Search) -> tuple[Instance, Cond, bool]:
        """An execution, the condition that it exists, and whether it is certainly not before `here` in one program."""
        event = spot.event
        if spot.find == "partner":
            return self._partner(event, here, search)
        terms: tuple[Lin, ...] | None = () if not event.loops else None
        if spot.find == "same" and len(event.loops) <= len(here.terms):
            terms = here.terms[: len(event.loops)]
        if terms is None:
            rank = self._rank(spot, here)
            terms = self._solved(event, rank)
        if terms is not None:
            found = Instance(event, terms, self.kernel.sums)
            return found, found.domain, False
        # Every number below the total belongs to exactly one execution, and numbers grow in program order.
        key = event, rank.text
        exists = conjoin((le(-rank), lt(rank, self.total(event))))
        if key not in search.known:
            found = search.known[key] = search.fresh(event, self.kernel.sums)
            it = conjoin((found.domain, eq(found.count(event.key), rank)))
            search.facts.append(disjoin((negate(exists), it)))
        return search.known[key], exists, spot.find == "next"

    def _partner(self, event: Event, here: Instance, search: Search) -> tuple[Instance, Cond, bool]:
        """The wait that takes a signal to an agent: if there is such a signal, it is one of the waits that can.

        Sets and waits of each channel are equally many.  Which channel is set may depend on the execution (a computed
        id or lane), and this agent may wait on a part of them only.
        """
        place = f"partner of {here.event.agent} {here.event.number} at {' '.join(t.text for t in here.terms)}"
        if (event, place) not in search.known:
            channels = {n for _, effect in here.event.cases for n in effect.sets}
            takers = [
                e
                for e in self.kernel.traces[event.agent].events
                if any(channels & set(effect.waits) for _, effect in e.cases)
            ]
            taken = {n for e in takers for _, effect in e.cases for n in effect.waits}
            given = disjoin(here.cond(here.event.when("sets", n)) for n in sorted(channels & taken))
            found = []
            for taker in takers:
                it = search.known[taker, place] = search.fresh(taker, self.kernel.sums)
                found.append(conjoin((it.domain, self.hop("match", here, it))))
            search.facts.append(disjoin((negate(conjoin((here.domain, given))), *found)))
        partner = search.known[event, place]
        return partner, partner.domain, False

    def total(self, event: Event) -> Lin:
        return self.kernel.traces[event.agent].total(event.key)

    def numbered(self, here: Instance) -> Cond:
        """What holds for every execution: its number is below the total of its event."""
        rank = here.count(here.event.key)
        if not any(a.kind == "apply" for a in rank.atoms()):
            return TRUE  # plain from the formula
        return conjoin((le(-rank), lt(rank, self.total(here.event))))

    def _rank(self, spot: Spot, here: Instance) -> Lin:
        match spot.find:
            case "next":
                return here.count(spot.event.key)
            case "previous":
                return here.count(spot.event.key) - 1
            case "first":
                return const(spot.offset)
            case "last":
                return self.total(spot.event) - 1 - spot.offset
            case "mirror":
                return self.total(spot.event) - self.total(here.event) + here.count(here.event.key) + spot.offset
        rank = here.count(here.event.key) + spot.offset
        rank = rank if spot.plus is None else rank + self.total(spot.plus)
        return rank if spot.minus is None else rank - self.total(spot.minus)

    def _solved(self, event: Event, rank: Lin) -> tuple[Lin, ...] | None:
        """The index of a single loop at which an event has this number, if the number is linear in the index."""
        if len(event.loops) != 1:
            return None
        inverse = self.kernel.inverses.get(event, ...)
        if inverse is ...:
            inverse = self.kernel.inverses[event] = _inverse(event)
        if inverse is None:
            return None
        stride, first = inverse
        return (rank * stride + first,)

    # -------------------------------------------------------------------------------------------- order

    def before(self, one: Instance, other: Instance) -> Cond:
        """Strictly earlier in the program of one agent."""
        return precedes(one.place, other.place)

    def reached(self, here: Instance, there: Instance, strictly: bool = False) -> Cond:
        """Whether `there` is `here`, or ordered after it by its pipe (or by S) alone."""
        one, other = here.event, there.event
        if one.agent != other.agent or (one.pipe != other.pipe and one.pipe[1] != "S"):
            return FALSE
        if here is there and not strictly:
            return TRUE
        later = self.before(here, there)
        if strictly or one is not other:
            return later
        return disjoin((later, conjoin(eq(a, b) for a, b in zip(here.terms, there.terms, strict=True))))

    def holds(self, template: Template, one: Instance, other: Instance, search: Search, own_token: bool = True) -> Cond:
        """The condition under which a template leads from one execution to another.

        `own_token`: a signal that arrives at `other` itself counts.
        """
        here, needed = one, list[Cond]()
        for hop in template:
            if hop.source.find == "same" and hop.source.event is here.event:
                source = here
            else:
                source, exists, later = self.find(hop.source, here, search)
                needed += [exists, self._follows(here, source) if later else self.reached(here, source)]
            if hop.target.find == "count":
                return conjoin((*needed, self.counted(source, other)))
            target, exists, _ = self.find(hop.target, source, search)
            needed += [exists, self.hop(hop.kind, source, target)]
            here = target
        strictly = bool(template) and not own_token and template[-1].kind in _TOKENS
        needed.append(self.reached(here, other, strictly or not template))
        return conjoin(needed)

    def counted(self, source: Instance, end: Instance) -> Cond:
        """Whether the wait that takes the source's signal comes before `end`, on its pipe or on S."""
        found = []
        for channel in dict.fromkeys(n for _, effect in source.event.cases for n in effect.sets):
            if self.arrives(channel, end.event):
                given = source.cond(source.event.when("sets", channel))
                late = lt(source.count(("set", channel)), end.count(("wait", channel)))
                found.append(conjoin((given, late)))
        return disjoin(found)

    def arrives(self, channel: int, end: Event) -> bool:
        """Whether all waits of a channel are on the pipe of `end` or on S, in its program."""
        waits = [e for e in self.kernel.traces[end.agent].events if e.can("waits", channel)]
        return bool(waits) and all(e.pipe == end.pipe or e.pipe[1] == "S" for e in waits)

    @staticmethod
    def _follows(here: Instance, there: Instance) -> Cond:
        """Whether a later operation of one agent is ordered after `here` by its pipe or by S."""
        one, other = here.event, there.event
        return TRUE if one.agent == other.agent and (one.pipe == other.pipe or one.pipe[1] == "S") else FALSE

    def hop(self, kind: Kind, source: Instance, target: Instance) -> Cond:
        """The condition under which order hops from one execution to another."""
        one, other = source.event, target.event
        same = one.agent == other.agent
        match kind:
            case "match":
                channels = _common(one, other, "sets", "waits")
                return self._paired(source, target, channels, "sets", "waits", ("set", "wait"))
            case "lock":
                mutexes = _common(one, other, "unlocks", "locks")
                if not same or one.pipe == other.pipe:
                    return FALSE
                return conjoin(
                    (self._paired(source, target, mutexes, "unlocks", "locks", None), self.before(source, target))
                )
            case "issue":
                return self.before(source, target) if same and one.pipe[1] == "S" else FALSE
            case "drain":
                drains = same and isinstance(other.stmt, (ir.Barrier, ir.SyncAll)) and other.cases[0][1].drains
                return self.before(source, target) if drains else FALSE
            case "meet":
                if not (isinstance(one.stmt, ir.SyncAll) and isinstance(other.stmt, ir.SyncAll)) or same:
                    return FALSE
                return eq(source.count(("meet", 0)), target.count(("meet", 0)))
            case "phase":
                return self._phase(source, target) if same else FALSE
            case "message" | "credit":
                return self._message(kind, source, target)

    def _paired(
        self, source: Instance, target: Instance, things: list[int], gives: str, takes: str,
        ranks: tuple[str, str] | None,
    ) -> Cond:  # fmt: skip
        """Whether one thing that the source gives is what the target takes, with equal ranks."""
        one, other = source.event, target.event
        pairs = []
        for thing in things:
            given = source.cond(one.when(gives, thing))
            taken = target.cond(other.when(takes, thing))
            equal = TRUE if ranks is None else eq(source.count((ranks[0], thing)), target.count((ranks[1], thing)))
            pairs.append((given, conjoin((taken, equal))))
        certain = one.covered.kind == "true" and all(set(getattr(e, gives)) & set(things) for _, e in one.cases)
        if certain and len(one.cases) == len(things):
            # Exactly one of the things is given: then it must be taken.
            return conjoin(disjoin((negate(given), taken)) for given, taken in pairs)
        return disjoin(conjoin(pair) for pair in pairs)

    def _phase(self, source: Instance, target: Instance) -> Cond:
        """A Final read frees the accumulator for a later matmul; a Final matmul releases it to a later read."""
        one, other = source.event, target.event
        found = []
        for condition, effect in one.cases:
            for other_condition, other_effect in other.cases:
                if effect.phase is None or other_effect.phase is None or not effect.phase[1]:
                    continue
                if effect.phase[0] != other_effect.phase[0] and set(effect.phased) & set(other_effect.phased):
                    found.append(conjoin((source.cond(condition), target.cond(other_condition))))
        return conjoin((disjoin(found), self.before(source, target)))

    def _message(self, kind: Kind, source: Instance, target: Instance) -> Cond:
        """The k-th push and pop; the release number j and the push that had to wait for it."""
        one, other = source.event, target.event
        keys = {ir.Push: "push", ir.Pop: "pop", ir.Free: "free"}
        given, taken = (keys.get(type(e.stmt)) for e in (one, other))
        release = "free" if self.kernel.compiled.target.frees_at == "tfree" else "pop"
        if (given, taken) != (("push", "pop") if kind == "message" else (release, "push")) or one.agent == other.agent:
            return FALSE
        found = []
        for ring in _common(one, other, "rings", "rings"):
            first, second = source.count((str(given), ring)), target.count((str(taken), ring))
            both = ((source, one), (target, other))
            certain = conjoin(i.cond(e.when("rings", ring)) for i, e in both)
            if kind == "message":
                found.append(conjoin((certain, eq(first, second))))
            else:
                slots = self.kernel.resolver.rings[ring[0]].slots
                found.append(conjoin((certain, credited(second, slots, self.kernel.batched, first))))
        return disjoin(found)


def batch(slots: int) -> int:
    """How many credits travel together in hardware."""
    return slots if slots <= 2 else slots // 2


def credited(push: Lin, slots: int, batched: bool, release: Lin | None = None) -> Cond:
    """When push number `push` has to wait for a release, and (if given) `release` is the number it waits for."""
    period = batch(slots) if batched else 1
    waits = conjoin((le(const(slots) - push), eq(mod(push, period))))
    return waits if release is None else conjoin((waits, eq(release, credit(push, slots, batched))))


def credit(push: Lin, slots: int, batched: bool) -> Lin:
    """The number of the release that a waiting push waits for: credits travel in batches, and are taken in order."""
    period = batch(slots) if batched else 1
    first = -(-slots // period) * period
    return push - first + (period - 1)


def _common(one: Event, other: Event, gives: str, takes: str) -> list:  # type: ignore[type-arg]
    """What both events can name, in the order of the first."""
    mine = dict.fromkeys(n for _, e in one.cases for n in getattr(e, gives))
    theirs = {n for _, e in other.cases for n in getattr(e, takes)}
    return [n for n in mine if n in theirs]


def _inverse(event: Event) -> tuple[int, Lin] | None:
    """(stride, first): the execution with number k is at index k * stride + first; None if that is not so."""
    rank = event.count(event.key)
    index = event.indices[0]
    if rank.symbols.isdisjoint((index,)):
        return None
    slope, rest = 0, []
    for atom, k in rank.parts:
        if atom.kind == "symbol" and atom.name == index:
            slope = k
        elif index in atom.symbols:
            return None
        else:
            rest.append((atom, k))
    return (1, -Lin(rank.constant, tuple(rest))) if slope == 1 else None


__all__ = ["Hop", "Hops", "Kind", "Search", "Spot", "Template", "batch", "credit", "credited"]
