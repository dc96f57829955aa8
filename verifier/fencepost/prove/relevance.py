"""Relevance: which knowledge of a pipe can ever be asked for?

A pipe needs to know of an event only if it, or a pipe that its signals reach, checks that event.  Everything else is
forgotten, which is sound (an order can only be missed, never invented) and keeps the number of states small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from fencepost import ir
from fencepost.model.effects import Effect, PipeKey
from fencepost.prove.order import Events, Order


class Relevance:
    """The masks that matter, from the effects that exist so far; rebuilt when there are more."""

    def __init__(self, events: Events, pipes: Iterable[PipeKey]) -> None:
        self.events = events
        self.all = list(pipes)
        self.version: tuple[int, int] | None = None
        self.pipes: dict[PipeKey, int] = {}
        self.tokens: dict[int, int] = {}
        self.locks: dict[tuple[str, int, PipeKey], int] = {}
        self.raised: dict[int, int] = {}
        self.lowered: dict[int, int] = {}
        self.messages: dict[tuple[int, int], int] = {}
        self.releases: dict[tuple[int, int], int] = {}

    def apply(self, order: Order) -> None:
        """Forget what does not matter, in place."""
        effects = self.events.resolver.effects()
        if self.version != (len(effects), self.events.count):
            self._build(effects)
            self.version = (len(effects), self.events.count)
        order.pipes = {p: m & self.pipes[p] for p, m in order.pipes.items()}
        order.tokens = {c: tuple(m & self.tokens.get(c, 0) for m in t) for c, t in order.tokens.items() if t}
        order.locks = {k: m & self.locks.get(k, 0) for k, m in order.locks.items()}
        order.flags = {
            c: (v, up & self.raised.get(c, 0), down & self.lowered.get(c, 0))
            for c, (v, up, down) in order.flags.items()
        }
        for key, ring in order.rings.items():
            ring.messages = tuple((m & self.messages.get(key, 0), t) for m, t in ring.messages)
            ring.freed = tuple(m & self.releases.get(key, 0) for m in ring.freed)
            ring.credits = tuple(m & self.releases.get(key, 0) for m in ring.credits)

    def _build(self, effects: list[Effect]) -> None:
        own: dict[PipeKey, int] = dict.fromkeys(self.all, 0)
        setters: dict[int, set[PipeKey]] = defaultdict(set)
        waiters: dict[int, set[PipeKey]] = defaultdict(set)
        holders: dict[tuple[str, int], set[PipeKey]] = defaultdict(set)
        roles: dict[tuple[str, object], set[PipeKey]] = defaultdict(set)
        drains: set[str] = set()
        meets = False
        for e in effects:
            own[e.pipe] |= self._own(e)
            for c in e.sets:
                setters[c].add(e.pipe)
            for c in e.waits:
                waiters[c].add(e.pipe)
            for mutex in e.locks:
                holders[e.agent, mutex].add(e.pipe)
            for mutex in e.unlocks:
                holders[e.agent, mutex].add(e.pipe)
            if e.phase is not None:
                for cell in e.phased:
                    roles[e.phase[0], cell].add(e.pipe)
            for ring in e.rings:
                kind = "push" if isinstance(e.stmt, ir.Push) else "take"
                roles[kind, ring].add(e.pipe)
            if e.drains:
                drains.add(e.agent)
            meets = meets or e.meets
        edges: dict[PipeKey, set[PipeKey]] = {p: set() for p in self.all}
        for p in self.all:
            if p[1] == "S":
                edges[p] |= {q for q in self.all if q[0] == p[0]}
            elif p[0] in drains:
                edges[p].add((p[0], "S"))
            if meets:
                edges[p] |= set(self.all)
        for c, ps in setters.items():
            for p in ps:
                edges[p] |= waiters[c]
        for ps in holders.values():
            for p in ps:
                edges[p] |= ps
        for (kind, key), ps in list(roles.items()):
            peer = {"produce": "consume", "consume": "produce", "push": "take", "take": "push"}[kind]
            for p in ps:
                edges[p] |= roles[peer, key]
        closed = self._close(own, edges)
        # A pipe that executes nothing never learns anything that its agent's other pipes do not know from the start.
        active = {e.pipe for e in effects}
        self.pipes = {p: mask if p in active else 0 for p, mask in closed.items()}
        self.tokens = {c: self._union(ps) for c, ps in waiters.items()}
        self.locks = {
            (agent, mutex, p): self._union(q for q in ps if q != p)
            for (agent, mutex), ps in holders.items()
            for p in ps
        }
        self.raised = {int(c): self._union(ps) for (k, c), ps in roles.items() if k == "consume"}  # type: ignore[call-overload]
        self.lowered = {int(c): self._union(ps) for (k, c), ps in roles.items() if k == "produce"}  # type: ignore[call-overload]
        self.messages = {c: self._union(ps) for (k, c), ps in roles.items() if k == "take"}  # type: ignore[misc]
        self.releases = {c: self._union(ps) for (k, c), ps in roles.items() if k == "push"}  # type: ignore[misc]

    def _own(self, e: Effect) -> int:
        """The events that the operation itself checks."""
        events, mask = self.events, 0
        for touch in (*e.reads, *e.writes):
            for cell in touch.cells:
                mask |= events.cell(cell)
        for c in e.sets:
            shift, width = events.waits(c)
            mask |= events.set(c) | ((1 << width) - 1) << shift
        for c in e.waits:
            mask |= 1 << events.waits(c)[0]
        if e.phase is not None:
            for cell in e.phased:
                mask |= events.role(e.phase[0], cell)
        for ring in e.rings:
            role = {ir.Push: "push", ir.Pop: "pop"}.get(type(e.stmt), "free")
            mask |= events.role(role, ring)
            if role == "push":
                shift, width = events.release(ring)
                mask |= ((1 << width) - 1) << shift
        return mask

    def _close(self, own: dict[PipeKey, int], edges: dict[PipeKey, set[PipeKey]]) -> dict[PipeKey, int]:
        found = dict(own)
        changed = True
        while changed:
            changed = False
            for p, targets in edges.items():
                new = found[p]
                for q in targets:
                    new |= found[q]
                if new != found[p]:
                    found[p] = new
                    changed = True
        return found

    def _union(self, pipes: Iterable[PipeKey]) -> int:
        mask = 0
        for p in pipes:
            mask |= self.pipes[p]
        return mask
