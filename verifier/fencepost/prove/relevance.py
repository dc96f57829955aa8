"""Relevance: which of what the pipes know can still make a difference?

An event matters as long as some pipe that will ask for it does not know it, and then only who of those knows it whose
knowledge can still get there.  Everything else is left out when two states are compared: they go on alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.prove.order import Action, Actions, Clock, Order
from fencepost.prove.values import Value


@dataclass(slots=True)
class _Tables:
    """Which pipes do what, as far as the actions built so far say."""

    touchers: dict[int, list[int]] = field(default_factory=dict)  # cell -> pipes that ask for its last write
    writers: dict[int, list[int]] = field(default_factory=dict)  # cell -> pipes that ask for its last reads
    setters: dict[int, list[int]] = field(default_factory=dict)
    waiters: dict[int, list[int]] = field(default_factory=dict)
    takers: dict[int, list[int]] = field(default_factory=dict)  # lock -> pipes that take it
    roles: dict[tuple[str, Hashable], list[int]] = field(default_factory=dict)
    reach: list[int] = field(default_factory=list)  # pipe -> pipes that may learn what it knows, as bits


class Relevance:
    """What to compare of two happens-before states; rebuilt when there are more actions."""

    def __init__(self, actions: Actions) -> None:
        self.actions = actions
        self.seen = -1
        self.tables = _Tables()
        self._bits: dict[Hashable, int] = {}
        self._next = len(actions.pipes)

    def update(self) -> None:
        if self.seen != len(self.actions.known):
            self.seen = len(self.actions.known)
            self.tables = _build(list(self.actions.known.values()), self.actions)

    # ------------------------------------------------------------------------------------------ what is settled

    def settle(self, order: Order) -> None:
        """Drop what everybody who may ask for it knows, in place."""
        t, clocks = self.tables, order.clocks
        for cell, (writer, written, reads) in list(order.cells.items()):
            if reads:
                asking = t.writers.get(cell, ())
                kept = tuple(r for r in reads if any(clocks[q][r[0]] < r[1] for q in asking))
                if len(kept) != len(reads):
                    order.cells[cell] = (writer, written, kept)
        for lock, held in list(order.locks.items()):
            takers = t.takers.get(lock, ())
            kept_ = tuple(x for x in held if any(q != x[0] and clocks[q][x[0]] < x[1][x[0]] for q in takers))
            if not kept_:
                del order.locks[lock]
            elif len(kept_) != len(held):
                order.locks[lock] = kept_
        for channel, waits in list(order.waits.items()):
            setters = t.setters.get(channel, ())
            first = waits[:1] if len(t.waiters.get(channel, ())) > 1 else ()
            order.waits[channel] = (
                *first,
                *(w for w in waits[len(first) :] if any(clocks[q][w[0]] < w[1] for q in setters)),
            )

    # ------------------------------------------------------------------------------------------ comparison

    def key(self, order: Order, fold: Callable[[Value], Hashable]) -> Hashable:
        """What two states must agree in to go on alike; `fold` names a round."""
        holders = self._holders(order)
        rows: list[tuple[Hashable, int]] = []
        for name, pipe, number, asking in self._events(order):
            unknown = 0
            for q in asking:
                if order.clocks[q][pipe] < number:
                    unknown |= 1 << q
            if unknown:
                known = 0
                for bit, clock, reach in holders:
                    if reach & unknown and clock[pipe] >= number:
                        known |= bit
                rows.append((name, known))
        written = 0
        for cell, state in order.cells.items():
            if state[0] >= 0:
                written |= 1 << cell
        return (
            frozenset(rows),
            written,
            frozenset((c, len(t)) for c, t in order.tokens.items() if t),
            frozenset((c, f[0]) for c, f in order.flags.items() if f[0]),
            frozenset(
                (
                    k,
                    tuple(None if task is None else fold(task) for _, task in r.messages),
                    len(r.freed),
                    len(r.credits),
                    len(r.popped),
                    r.pushes,
                    r.batch,
                    r.ahead,
                )
                for k, r in order.rings.items()
            ),
            frozenset((c, core, fold(task)) for c, (core, task) in order.tasks.items()),
            frozenset(c for c, final in order.sums.items() if final),
            order.held,
            order.freed,
        )

    def _events(self, order: Order) -> Iterable[tuple[Hashable, int, int, Iterable[int]]]:
        """Name, pipe and number of each event that is remembered, and the pipes that ask for it."""
        t = self.tables
        for cell, (writer, written, reads) in order.cells.items():
            if writer >= 0:
                yield cell, writer, written, t.touchers.get(cell, ())
            for pipe, number in reads:
                yield (cell, pipe), pipe, number, t.writers.get(cell, ())
        for channel, (pipe, number) in order.sets.items():
            setters = t.setters.get(channel, ())
            if len(setters) > 1:
                yield ("set", channel), pipe, number, setters
        for channel, waits in order.waits.items():
            setters = t.setters.get(channel, ())
            waiters = t.waiters.get(channel, ())
            for place, (pipe, number) in enumerate(waits):
                asking = setters if place or len(waiters) < 2 else [*setters, *waiters]
                yield ("wait", channel, place), pipe, number, asking
        for role, (pipe, number) in order.roles.items():
            asking = t.roles.get(role, [])
            if len(asking) > 1:
                yield ("role", role), pipe, number, asking
        for key, ring in order.rings.items():
            for place, (pipe, number) in enumerate(ring.releases):
                yield ("release", key, place), pipe, number, t.roles.get(("push", key), ())
            for place, (pipe, number) in enumerate(ring.popped):
                yield ("popped", key, place), pipe, number, t.roles.get(("free", key), ())

    def _holders(self, order: Order) -> list[tuple[int, Clock, int]]:
        """Whoever may know something: its bit, its clock, and the pipes that may learn it from there."""
        t = self.tables
        reach = t.reach
        found = [(1 << q, clock, reach[q]) for q, clock in enumerate(order.clocks) if reach[q]]
        for channel, tokens in order.tokens.items():
            if tokens:
                to = self._union(t.waiters.get(channel, ()))
                for place, token in enumerate(tokens):
                    found.append((self._bit((channel, place)), token, to))
        for lock, held in order.locks.items():
            takers = t.takers.get(lock, ())
            for pipe, clock in held:
                to = self._union(q for q in takers if q != pipe and order.clocks[q][pipe] < clock[pipe])
                found.append((self._bit(("lock", lock, pipe)), clock, to))
        for cell, (_, raised, lowered) in order.flags.items():
            for way, role, snapshot in (("raised", "consume", raised), ("lowered", "produce", lowered)):
                if snapshot is not None:
                    found.append((self._bit((way, cell)), snapshot, self._union(t.roles.get((role, cell), ()))))
        for key, ring in order.rings.items():
            take, push = self._union(t.roles.get(("pop", key), ())), self._union(t.roles.get(("push", key), ()))
            for place, (clock, _) in enumerate(ring.messages):
                found.append((self._bit(("message", key, place)), clock, take))
            for way, clocks in (("freed", ring.freed), ("credit", ring.credits)):
                for place, clock in enumerate(clocks):
                    found.append((self._bit((way, key, place)), clock, push))
        return found

    def _bit(self, name: Hashable) -> int:
        bit = self._bits.get(name)
        if bit is None:
            bit = self._bits[name] = 1 << self._next
            self._next += 1
        return bit

    def _union(self, pipes: Iterable[int]) -> int:
        mask = 0
        for q in pipes:
            mask |= self.tables.reach[q]
        return mask


def _build(actions: list[Action], table: Actions) -> _Tables:
    touchers: dict[int, set[int]] = defaultdict(set)
    writers: dict[int, set[int]] = defaultdict(set)
    setters: dict[int, set[int]] = defaultdict(set)
    waiters: dict[int, set[int]] = defaultdict(set)
    takers: dict[int, set[int]] = defaultdict(set)
    givers: dict[int, set[int]] = defaultdict(set)
    roles: dict[tuple[str, Hashable], set[int]] = defaultdict(set)
    drains: set[int] = set()
    meets = False
    for a in actions:
        for touch in a.reads:
            for cell in touch.cells:
                touchers[cell].add(a.pipe)
        for _, cells, _ in a.writes:
            for cell in cells:
                touchers[cell].add(a.pipe)
                writers[cell].add(a.pipe)
        for channel in a.sets:
            setters[channel].add(a.pipe)
        for channel in a.waits:
            waiters[channel].add(a.pipe)
        for lock in a.locks:
            takers[lock].add(a.pipe)
        for lock in a.unlocks:
            givers[lock].add(a.pipe)
        if a.phase is not None:
            for cell in a.phased:
                roles[a.phase[0], cell].add(a.pipe)
        for key in a.rings:
            role = {ir.Push: "push", ir.Pop: "pop"}.get(type(a.effect.stmt), "free")
            roles[role, key].add(a.pipe)
        if a.siblings:
            drains.add(a.scalar)
        meets = meets or a.meets
    count = len(table.pipes)
    edges: list[int] = [1 << p for p in range(count)]

    def flow(sources: Iterable[int], targets: Iterable[int]) -> None:
        to = sum(1 << q for q in targets)
        for p in sources:
            edges[p] |= to

    for p, (agent, _) in enumerate(table.pipes):
        scalar = table.numbers[agent, "S"]
        edges[scalar] |= 1 << p
        if scalar in drains:
            edges[p] |= 1 << scalar
    if meets:
        scalars = [table.numbers[agent, "S"] for agent in {agent for agent, _ in table.pipes}]
        flow(range(count), scalars)
    for channel, ps in setters.items():
        flow(ps, waiters.get(channel, ()))
    for lock, ps in givers.items():
        flow(ps, takers.get(lock, ()))
    for (role, at), ps in list(roles.items()):
        for peer in {"produce": ("consume",), "consume": ("produce",), "push": ("pop",)}.get(role, ("push",)):
            flow(ps, roles.get((peer, at), ()))
    return _Tables(
        _lists(touchers),
        _lists(writers),
        _lists(setters),
        _lists(waiters),
        _lists(takers),
        {k: sorted(v) for k, v in roles.items()},
        _close(edges),
    )


def _lists(found: dict[int, set[int]]) -> dict[int, list[int]]:
    return {k: sorted(v) for k, v in found.items()}


def _close(edges: list[int]) -> list[int]:
    """The reflexive and transitive closure."""
    reach = list(edges)
    for middle in range(len(reach)):
        bit = 1 << middle
        for p in range(len(reach)):
            if reach[p] & bit:
                reach[p] |= reach[middle]
    return reach
