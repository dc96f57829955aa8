"""Rings: what does a field of a small array of records hold at a record number?

One field of a ring is a base with stores on top.  In a loop that stores to record (index + c) % N on each trip, the
record read a fixed distance behind is the value of the trip that distance ago.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fencepost.prove.rewrite import Rewriter, Substitution
from fencepost.prove.terms import (
    ONE,
    ZERO,
    Cond,
    Lin,
    apply,
    choose,
    conjoin,
    const,
    eq,
    le,
    mod,
    negate,
    symbol,
)


class Base(Protocol):
    """What a field holds before the stores on top."""

    def read(self, at: Lin) -> Lin: ...

    def rewritten(self, change: Substitution) -> Base: ...


@dataclass(frozen=True, slots=True)
class Zeros:
    """The start of the program."""

    def read(self, at: Lin) -> Lin:
        return ZERO

    def rewritten(self, change: Substitution) -> Base:
        return self


@dataclass(frozen=True, slots=True)
class Anything:
    """Nothing is known but that the content is a function of the record number and of `terms`."""

    name: str
    terms: tuple[Lin, ...] = ()

    def read(self, at: Lin) -> Lin:
        return apply(self.name, (*self.terms, at))

    def rewritten(self, change: Substitution) -> Base:
        return Anything(self.name, tuple(map(change.lin, self.terms)))


@dataclass(frozen=True, slots=True)
class Store:
    """`ring[at] = value`, executed if `condition`."""

    condition: Cond
    at: Lin
    value: Lin


@dataclass(frozen=True, slots=True)
class RingState:
    """A base and the stores since."""

    base: Base
    size: int
    stores: tuple[Store, ...] = ()

    def read(self, at: Lin) -> Lin:
        found = self.base.read(at)
        for store in self.stores:
            found = choose(conjoin((store.condition, eq(store.at, at))), store.value, found)
        return found

    def stored(self, store: Store) -> RingState:
        return RingState(self.base, self.size, (*self.stores, store))

    def merged(self, other: RingState, condition: Cond) -> RingState:
        """This state where the condition holds, the other one elsewhere; both start from one base."""
        if self == other:
            return self
        if self.base != other.base:
            return RingState(_Either(condition, self, other), self.size)
        same = 0
        while same < min(len(self.stores), len(other.stores)) and self.stores[same] == other.stores[same]:
            same += 1
        mine = [Store(conjoin((condition, s.condition)), s.at, s.value) for s in self.stores[same:]]
        theirs = [Store(conjoin((negate(condition), s.condition)), s.at, s.value) for s in other.stores[same:]]
        return RingState(self.base, self.size, (*self.stores[:same], *mine, *theirs))

    def rewritten(self, change: Substitution) -> RingState:
        stores = tuple(Store(change.cond(s.condition), change.lin(s.at), change.lin(s.value)) for s in self.stores)
        return RingState(self.base.rewritten(change), self.size, stores)


@dataclass(frozen=True, slots=True)
class _Either:
    condition: Cond
    one: RingState
    other: RingState

    def read(self, at: Lin) -> Lin:
        return choose(self.condition, self.one.read(at), self.other.read(at))

    def rewritten(self, change: Substitution) -> Base:
        return _Either(change.cond(self.condition), self.one.rewritten(change), self.other.rewritten(change))


@dataclass(frozen=True, slots=True)
class Rolling:
    """The field after `trips` trips of a loop that stores `value` (in terms of `index`) to record (index + c) % N.

    On trips that store nothing the value is what the record held before, the function `old`.
    """

    entry: RingState
    index: str
    trips: Lin
    offset: Lin
    value: Lin
    rebuild: Rewriter
    old: str

    def read(self, at: Lin) -> Lin:
        gap = ONE + mod(self.trips - 1 + self.offset - at, self.entry.size)
        return self._stored(self.trips - gap, at, again=True)

    def _stored(self, trip: Lin, at: Lin, again: bool) -> Lin:
        """What trip number `trip` leaves in its record `at`; `again`: `old` is looked up, N trips earlier."""

        def rebuild(name: str, terms: tuple[Lin, ...]) -> Lin:
            if again and name == self.old:
                return self._stored(trip - self.entry.size, at, again=False)
            return self.rebuild(name, terms)

        then = Substitution({self.index: trip}, rebuild).lin(self.value)
        return choose(le(-trip), then, self.entry.read(at))

    def rewritten(self, change: Substitution) -> Base:
        return Rolling(
            self.entry.rewritten(change),
            self.index,
            change.lin(self.trips),
            change.lin(self.offset),
            change.lin(self.value),
            self.rebuild,
            self.old,
        )


def roll(
    entry: RingState, body: RingState, index: str, old: Lin, rebuild: Rewriter, pending: Callable[[Lin], bool]
) -> Rolling | None:
    """The field as a function of the trips of a loop, from its state after one trip; None if stores do not roll.

    `old` stands for what the stored record held before; `pending` tells terms that are not solved yet.
    """
    size = entry.size
    offset: Lin | None = None
    value = old
    for store in body.stores:
        if len(store.at.parts) != 1 or store.at.constant:
            return None
        atom, k = store.at.parts[0]
        if atom.kind != "mod" or atom.number != size or k != 1:
            return None
        here = atom.terms[0] - symbol(index)
        if index in here.symbols or (offset is not None and mod(here - offset, size) != ZERO):
            return None
        offset = here
        value = choose(store.condition, store.value, value)
    if offset is None or pending(value) or pending(offset):
        return None
    return Rolling(entry, index, const(0), offset, value, rebuild, old.parts[0][0].name)


__all__ = ["Anything", "Base", "RingState", "Rolling", "Store", "Zeros", "roll"]
