"""Claims: what must be shown about a program, stated a second time for the checker of certificates?

The list follows from the program alone.  Path templates and places of writes come from the certificate; a wrong one
makes its claim fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, permutations, product
from typing import Any

from fencepost import ir
from fencepost.model.effects import Resolver
from fencepost.model.program import Compiled
from fencepost.prove.checker import Claim, Event, Rejected, Walk
from fencepost.prove.plainterms import Renaming, Term, add, both, either, eq, le, lt, minus, mod, no

FALSE = ("false",)
TOKENS = ("match", "message", "credit", "phase", "meet")
CORES = {"cube": "aic"}


@dataclass(frozen=True)
class Spot:
    """Where a template looks for an execution; see `hops.Spot`."""

    event: str
    find: str
    offset: int = 0
    plus: str | None = None
    minus: str | None = None


@dataclass(frozen=True)
class Hop:
    kind: str
    source: Spot
    target: Spot


@dataclass(frozen=True)
class Route:
    one: str
    other: str
    hops: tuple[Hop, ...]
    writer: Spot | None = None


class At:
    """An event at given indices."""

    def __init__(self, event: Event, terms: tuple[Term, ...]) -> None:
        self.event, self.terms = event, terms
        self.of = Renaming(dict(zip(event.indices, terms, strict=True)))

    @property
    def domain(self) -> Term:
        return both(*map(self.of, self.event.path))

    @property
    def place(self) -> tuple[Term, ...]:
        return tuple(map(self.of, self.event.place))

    def count(self, key: str) -> Term:
        return self.of(self.event.before.get(key, 0))

    def when(self, what: str, thing: object) -> Term:
        return self.of(either(*(c for c, e in self.event.cases if thing in getattr(e, what))))


def precedes(one: tuple[Term, ...], other: tuple[Term, ...]) -> Term:
    found: Term = "false"
    for a, b in reversed(list(zip(one, other, strict=False))):
        found = either(lt(a, b), both(eq(a, b), found))
    return found


def can(event: Event, what: str, thing: object) -> bool:
    return any(thing in getattr(e, what) for _, e in event.cases)


@dataclass
class Statement:
    """The claims about one program under one credit scheme."""

    compiled: Compiled
    resolver: Resolver
    walks: dict[str, Walk]
    batched: bool
    routes: tuple[Route, ...]
    claims: list[Claim] = field(default_factory=list)
    facts: list[Term] = field(default_factory=list)
    used: set[Route] = field(default_factory=set)
    _fresh: dict[tuple[str, str], At] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.events = [e for w in self.walks.values() for e in w.events]
        self.by_name = {e.name: e for e in self.events}
        self.release = "free" if self.compiled.target.frees_at == "tfree" else "pop"

    def all(self) -> list[Claim]:
        """Every claim, in a fixed order."""
        for walk in self.walks.values():
            self.claims += walk.claims
        self._channels()
        self._modes()
        self._mutexes()
        self._meetings()
        self._rings()
        self._flags()
        self._progress()
        Memory(self).state()
        return self.claims

    def claim(self, name: str, group: str, *conditions: Term) -> None:
        self.claims.append((name, group, conditions))

    def pair(self, one: Event, other: Event) -> tuple[At, At]:
        return self.named(one, "a"), self.named(other, "b")

    def named(self, event: Event, prefix: str) -> At:
        return At(event, tuple(f"{prefix}@{i}" for i in range(len(event.indices))))

    def total(self, agent: str, key: str) -> Term:
        walk = self.walks.get(CORES.get(agent, agent))
        return 0 if walk is None else walk.totals.get(key, 0)

    # -------------------------------------------------------------------------------------------- signals

    def _channels(self) -> None:
        for n, channel in enumerate(self.resolver.channels):
            sets = [e for e in self.events if can(e, "sets", n)]
            waits = [e for e in self.events if can(e, "waits", n)]
            if not sets and not waits:
                continue
            given, taken = self.total(channel.sender, f"set {n}"), self.total(channel.receiver, f"wait {n}")
            self.claim(f"balance {channel}", "balance", no(eq(given, taken)))
            self._determined(str(channel), "sets", n, sets)
            self._determined(str(channel), "waits", n, waits)
            for w, s in product(waits, sets):
                a, b = self.pair(w, s)
                late = le(add(a.count(f"wait {n}"), channel.capacity), b.count(f"set {n}"))
                related = both(a.when("waits", n), b.when("sets", n), late)
                self.order(f"capacity of {channel}", "capacity", a, b, related)

    def _determined(self, name: str, what: str, thing: object, events: list[Event]) -> None:
        for one, other in product(events, events):
            if one.agent == other.agent and one.pipe != other.pipe:
                a, b = self.pair(one, other)
                related = both(a.when(what, thing), b.when(what, thing), precedes(a.place, b.place))
                self.order(f"{what} of {name}", "determined", a, b, related, own_token=False)

    def _modes(self) -> None:
        modes: dict[tuple[str, int], set[str]] = {}
        for event in self.events:
            if isinstance(event.stmt, (ir.SetCross, ir.WaitCross)):
                core = "cube" if event.agent == "aic" else "vector"
                away = isinstance(event.stmt, ir.WaitCross) and not event.stmt.mode.startswith("INTER")
                sender = {"cube": "vector", "vector": "cube"}[core] if away else core
                for _, effect in event.cases:
                    modes.setdefault((sender, effect.arguments[0] % 16), set()).add(event.stmt.mode)
        for key, found in modes.items():
            self.claim(f"modes of {key}", "modes", *(() if len(found) > 1 else FALSE))

    def _mutexes(self) -> None:
        for agent, walk in self.walks.items():
            mine = [e for e in walk.events if isinstance(e.stmt, (ir.MutexLock, ir.MutexUnlock))]
            for n in dict.fromkeys(v for e in mine for _, effect in e.cases for v in effect.arguments):
                for event in mine:
                    here = self.named(event, "a")
                    chosen = here.of(either(*(c for c, e in event.cases if e.arguments == (n,))))
                    held = minus(here.count(f"lock {n}"), here.count(f"unlock {n}"))
                    wanted = 1 if isinstance(event.stmt, ir.MutexUnlock) else 0
                    self.claim(f"mutex {n} at {event.name}", "mutex", here.domain, chosen, no(eq(held, wanted)))
                left = no(eq(walk.totals.get(f"lock {n}", 0), walk.totals.get(f"unlock {n}", 0)))
                self.claim(f"mutex {n} of {agent} at the end", "mutex", left)
            if mine and not self.compiled.target.has_mutex:
                self.claim(f"mutexes of {agent} on this target", "legal")

    def _meetings(self) -> None:
        agents = list(self.walks)
        if any(isinstance(e.stmt, ir.SyncAll) for e in self.events):
            for agent in agents[1:]:
                differ = no(eq(self.total(agents[0], "meet 0"), self.total(agent, "meet 0")))
                self.claim(f"sync_all of {agents[0]} and {agent}", "meetings", differ)

    # -------------------------------------------------------------------------------------------- rings

    def _rings(self) -> None:
        if self.resolver.rings and self.release == "free":
            self._lifetimes()
        for n, ring in enumerate(self.resolver.rings):
            if self.compiled.kernel.credits != "per_slot":
                uneven = ring.slots < 1 or ring.slots % batch(ring.slots)
                self.claim(f"slots of {ring}", "fifo", *(() if uneven else FALSE))
            for lane in range(ring.lanes):
                key, name = f"{n} {lane}", f"{ring} {lane}"
                ends = ("aic", f"aiv{lane}") if ring.sender == "cube" else (f"aiv{lane}", "aic")
                pushed, popped = self.total(ends[0], f"push {key}"), self.total(ends[1], f"pop {key}")
                self.claim(f"pushes and pops of {name}", "balance", no(eq(pushed, popped)))
                if self.release == "free":
                    freed = self.total(ends[1], f"free {key}")
                    self.claim(f"pops and frees of {name}", "fifo", no(eq(popped, freed)))
                self._ring(name, (n, lane), key, ring.slots)

    def _ring(self, name: str, taking: tuple[int, int], key: str, slots: int) -> None:
        of = {k: [e for e in self.events if isinstance(e.stmt, k) and can(e, "rings", taking)]
              for k in (ir.Push, ir.Pop, ir.Free)}  # fmt: skip
        if self.release == "pop":
            of[ir.Free] = []
        for kind in of.values():
            self._determined(name, "rings", taking, kind)
        for push in of[ir.Push]:
            for source in of[ir.Free if self.release == "free" else ir.Pop]:
                a, b = self.pair(source, push)
                late = le(add(a.count(f"{self.release} {key}"), slots), b.count(f"push {key}"))
                self.order(
                    f"slots of {name}", "fifo", a, b, both(a.when("rings", taking), b.when("rings", taking), late)
                )
            for pop in of[ir.Pop]:
                a, b = self.pair(push, pop)
                if push.task is not None and pop.task is not None:
                    same = both(a.when("rings", taking), b.when("rings", taking),
                                eq(a.count(f"push {key}"), b.count(f"pop {key}")))  # fmt: skip
                    differ = no(eq(a.of(push.task), b.of(pop.task)))
                    self.claim(f"task of {name}: {push.name} {pop.name}", "fifo", a.domain, b.domain, same, differ)
        for free, pop in product(of[ir.Free], of[ir.Pop]):
            a, b = self.pair(pop, free)
            same = eq(a.count(f"pop {key}"), b.count(f"free {key}"))
            related = both(a.when("rings", taking), b.when("rings", taking), same)
            self.order(f"popped before freed {name}", "fifo", a, b, related)

    def _lifetimes(self) -> None:
        for free in (e for e in self.events if isinstance(e.stmt, ir.Free)):
            value = free.stmt.value
            for use in self.events:
                if use.agent == free.agent and self._uses(use.stmt, value):
                    a, b = self.pair(free, use)
                    kept = eq(a.count(f"renew {value}"), b.count(f"renew {value}"))
                    late = precedes(a.place, b.place)
                    self.claim(f"{value} after {free.name} at {use.name}", "fifo", a.domain, b.domain, late, kept)

    def _uses(self, stmt: Any, value: str) -> bool:
        if isinstance(stmt, (ir.Push, ir.Free)):
            return bool(stmt.value == value)
        named = isinstance(stmt, ir.DataOp) and value not in self.resolver.layout.depths
        return named and any(a.name == value for a in stmt.reads)

    # -------------------------------------------------------------------------------------------- phases

    def _flags(self) -> None:
        for event in self.events:
            self._phase_operands(event)
        phased = [e for e in self.events if any(effect.phase for _, effect in e.cases)]
        for agent, cell in dict.fromkeys((e.agent, c) for e in phased for _, x in e.cases for c in x.phased):
            mine = [e for e in phased if e.agent == agent and can(e, "phased", cell)]
            roles = {e.name: next(x.phase[0] for _, x in e.cases if x.phase) for e in mine}
            for event in mine:
                here = self.named(event, "a")
                up = minus(here.count(f"raise {cell}"), here.count(f"lower {cell}"))
                wrong = no(eq(up, 0 if roles[event.name] == "produce" else 1))
                self.claim(f"flag {cell} at {event.name}", "phases", here.domain, here.when("phased", cell), wrong)
            left = no(eq(self.total(agent, f"raise {cell}"), self.total(agent, f"lower {cell}")))
            self.claim(f"flag {cell} at the end", "phases", left)
            for role in ("produce", "consume"):
                same = [e for e in mine if roles[e.name] == role]
                self._determined(f"flag {cell} {role}", "phased", cell, same)
                if role == "produce":
                    self._early(cell, same)

    def _early(self, cell: int, events: list[Event]) -> None:
        for one, other in product(events, events):
            adds = any(cell in t.cells for _, x in other.cases for t in x.reads)
            if adds and any(x.phase and x.phase[1] for _, x in one.cases):
                a, b = self.pair(one, other)
                follows = eq(add(a.count(f"produce {cell}"), 1), b.count(f"produce {cell}"))
                chosen = both(a.when("phased", cell), b.when("phased", cell))
                self.claim(f"adding after {one.name} at {other.name}", "phases", a.domain, b.domain, chosen, follows)

    def _phase_operands(self, event: Event) -> None:
        stmt = event.stmt
        if not isinstance(stmt, ir.DataOp) or stmt.phase is None:
            return
        spaces = self.resolver.layout.spaces
        to_vec = any(spaces.get(a.name) == "Vec" for a in stmt.writes)
        from_acc = any(spaces.get(a.name) == "Acc" for a in stmt.reads)
        wrong = (
            not self.compiled.target.has_unit_flag
            or stmt.family not in (None, "Acc" if stmt.pipe == "M" else "ST")
            or (stmt.op == "move" and (stmt.offset or not (to_vec and from_acc)))
            or not event.cases
        )
        self.claim(f"phase of {event.name}", "phases", *(() if wrong else FALSE))

    # -------------------------------------------------------------------------------------------- progress

    def _progress(self) -> None:
        waiting: dict[str, list[tuple[Event, list[Need]]]] = {}
        for agent, walk in self.walks.items():
            waiting[agent] = [(e, found) for e in walk.events if (found := list(self._needs(e)))]
        for agent, events in waiting.items():
            for event, found in events:
                own = [n for n in found if n.supplier == agent]
                if own:
                    here = self.named(event, "a")
                    late = either(*(self._missing(n, here, here) for n in own))
                    self.claim(f"issued before awaited: {event.name}", "progress", here.domain, late)
        agents = list(waiting)
        for some in (*combinations(agents, 2), *(t for t in permutations(agents, 3) if t[0] == min(t))):
            lists = [
                [(e, mine) for e, found in waiting[a] if (mine := [n for n in found if n.supplier == b])]
                for a, b in zip(some, (*some[1:], some[0]), strict=True)
            ]
            for chosen in product(*lists):
                stuck = [self.named(e, "abc"[i]) for i, (e, _) in enumerate(chosen)]
                missing = [
                    either(*(self._missing(n, x, y) for n in found))
                    for (_, found), x, y in zip(chosen, stuck, (*stuck[1:], stuck[0]), strict=True)
                ]
                name = f"circle {' '.join(e.name for e, _ in chosen)}"
                self.claim(name, "progress", *(h.domain for h in stuck), *missing)

    def _missing(self, need: Need, waiting: At, supplier: At) -> Term:
        done = supplier.count(need.key)
        if need.key == "meet 0" and isinstance(supplier.event.stmt, ir.SyncAll):
            done = add(done, 1)
        return both(need.condition(waiting), le(done, need.number(waiting)))

    def _needs(self, event: Event) -> Iterator[Need]:
        for n in dict.fromkeys(c for _, effect in event.cases for c in effect.waits):
            sender = self.resolver.channels[n].sender
            yield Need(CORES.get(sender, sender), f"set {n}", _when("waits", n), _counted(f"wait {n}"))
        if isinstance(event.stmt, ir.SyncAll):
            for other in self.walks:
                if other != event.agent:
                    yield Need(other, "meet 0", lambda here: "true", _counted("meet 0"))
        for taking in dict.fromkeys(t for _, effect in event.cases for t in effect.rings):
            peer, key = "aic" if event.agent != "aic" else f"aiv{taking[1]}", f"{taking[0]} {taking[1]}"
            if isinstance(event.stmt, ir.Pop):
                yield Need(peer, f"push {key}", _when("rings", taking), _counted(f"pop {key}"))
            elif isinstance(event.stmt, ir.Push):
                yield self._slot(peer, taking, key)

    def _slot(self, peer: str, taking: tuple[int, int], key: str) -> Need:
        slots = self.resolver.rings[taking[0]].slots

        def waits(here: At) -> Term:
            return both(here.when("rings", taking), self.credited(here.count(f"push {key}"), slots))

        return Need(peer, f"{self.release} {key}", waits, lambda here: self.credit(here.count(f"push {key}"), slots))

    def credited(self, push: Term, slots: int) -> Term:
        return both(le(slots, push), eq(mod(push, batch(slots) if self.batched else 1), 0))

    def credit(self, push: Term, slots: int) -> Term:
        period = batch(slots) if self.batched else 1
        return add(push, period - 1 - -(-slots // period) * period)

    # -------------------------------------------------------------------------------------------- order

    def order(
        self, name: str, group: str, one: At, other: At, related: Term, either_way: bool = False, own_token: bool = True
    ) -> None:
        """Claim that related executions are ordered by some template of the certificate."""
        self.facts, self._fresh = [], {}
        paths = []
        for route in self.routes:
            ends = (route.one, route.other)
            if route.writer is None and ends == (one.event.name, other.event.name):
                paths.append(self.holds(route.hops, one, other, own_token))
            elif route.writer is None and either_way and ends == (other.event.name, one.event.name):
                paths.append(self.holds(route.hops, other, one, own_token))
            else:
                continue
            self.used.add(route)
        name = f"{name}: {one.event.name} {other.event.name}"
        numbers = (self.numbered(one), self.numbered(other))
        self.claim(name, group, one.domain, other.domain, related, *numbers, *map(no, paths), *self.facts)

    def source(self, name: str, reader: At, met: Callable[[At], Term]) -> None:
        """Claim that every read is preceded by a write that the certificate places."""
        self.facts, self._fresh = [], {}
        served = []
        for route in self.routes:
            if route.writer is not None and route.other == reader.event.name:
                self.used.add(route)
                if route.one != route.writer.event:
                    raise Rejected(f"a route from {route.one} for a write by {route.writer.event}")
                writer, exists, _ = self.find(route.writer, reader)
                served.append(both(exists, met(writer), self.holds(route.hops, writer, reader)))
        self.claim(name, "written", reader.domain, self.numbered(reader), no(either(*served)), *self.facts)

    def numbered(self, here: At) -> Term:
        rank = here.count(f"run {here.event.name}")
        return both(le(0, rank), lt(rank, self.total(here.event.agent, f"run {here.event.name}")))

    def event(self, name: str) -> Event:
        if name not in self.by_name:
            raise Rejected(f"no event {name}")
        return self.by_name[name]

    def find(self, spot: Spot, here: At) -> tuple[At, Term, bool]:
        """An execution, the condition that it exists, and whether it is certainly not before `here`."""
        event = self.event(spot.event)
        _plain(spot)
        if not event.indices:
            found = At(event, ())
            return found, found.domain, False
        if spot.find == "same" and len(event.indices) <= len(here.terms):
            found = At(event, here.terms[: len(event.indices)])
            return found, found.domain, False
        if spot.find == "partner":
            return self._partner(event, here)
        rank = self._rank(spot, here)
        exists = both(le(0, rank), lt(rank, self.total(event.agent, f"run {event.name}")))
        key = event.name, repr(rank)
        if key not in self._fresh:
            found = self._fresh[key] = self.named(event, f"z{len(self._fresh)}")
            it = both(found.domain, eq(found.count(f"run {event.name}"), rank))
            self.facts.append(either(no(exists), it))
        return self._fresh[key], exists, spot.find == "next"

    def _rank(self, spot: Spot, here: At) -> Term:
        own, theirs = f"run {here.event.name}", f"run {spot.event}"
        there = self.total(self.event(spot.event).agent, theirs)
        match spot.find:
            case "next" | "previous":
                if self.event(spot.event).agent != here.event.agent:
                    raise Rejected(f"{spot.find} of another agent")
                return add(here.count(theirs), 0 if spot.find == "next" else -1)
            case "first":
                return spot.offset
            case "last":
                return add(there, -1 - spot.offset)
            case "mirror":
                return add(there, minus(self.total(here.event.agent, own)), here.count(own), spot.offset)
            case "shift":
                plus = 0 if spot.plus is None else self.total(self.event(spot.plus).agent, f"run {spot.plus}")
                less = 0 if spot.minus is None else self.total(self.event(spot.minus).agent, f"run {spot.minus}")
                return add(here.count(own), spot.offset, plus, minus(less))
        raise Rejected(f"no such place: {spot.find}")

    def _partner(self, event: Event, here: At) -> tuple[At, Term, bool]:
        place = f"partner of {here.event.name} at {here.terms!r}"
        if (event.name, place) not in self._fresh:
            given = {n for _, effect in here.event.cases for n in effect.sets}
            found = []
            for taker in self.walks[event.agent].events:
                if any(given & set(effect.waits) for _, effect in taker.cases):
                    it = self._fresh[taker.name, place] = self.named(taker, f"z{len(self._fresh)}")
                    found.append(both(it.domain, self.hop("match", here, it)))
            self.facts.append(either(no(here.domain), *found))
        if (event.name, place) not in self._fresh:
            raise Rejected(f"{event.name} takes nothing from {here.event.name}")
        partner = self._fresh[event.name, place]
        return partner, partner.domain, False

    def reached(self, here: At, there: At, strictly: bool = False) -> Term:
        one, other = here.event, there.event
        if one.agent != other.agent or (one.pipe != other.pipe and one.pipe != "S"):
            return "false"
        if here is there and not strictly:
            return "true"
        later = precedes(here.place, there.place)
        if strictly or one is not other:
            return later
        return either(later, both(*(eq(a, b) for a, b in zip(here.terms, there.terms, strict=True))))

    def holds(self, hops: tuple[Hop, ...], one: At, other: At, own_token: bool = True) -> Term:
        """Whether a template leads from one execution to another."""
        here, needed = one, list[Term]()
        for number, hop in enumerate(hops):
            if hop.source.find == "same" and hop.source.event == here.event.name:
                _plain(hop.source)
                source = here
            else:
                source, exists, later = self.find(hop.source, here)
                same_pipe = source.event.agent == here.event.agent and here.event.pipe in (source.event.pipe, "S")
                needed += [exists, ("true" if same_pipe else "false") if later else self.reached(here, source)]
            if hop.target.find == "count":
                _plain(hop.target)
                if self.event(hop.target.event).agent != other.event.agent:
                    raise Rejected(f"{hop.target.event} takes no signal on the way to {other.event.name}")
                if number != len(hops) - 1 or hop.kind != "match":
                    raise Rejected("only the last signal of a path can be counted")
                return both(*needed, self._arrives(source, other))
            target, exists, _ = self.find(hop.target, source)
            needed += [exists, self.hop(hop.kind, source, target)]
            here = target
        strictly = bool(hops) and not own_token and hops[-1].kind in TOKENS
        return both(*needed, self.reached(here, other, strictly or not hops))

    def _arrives(self, source: At, end: At) -> Term:
        found = []
        for n in dict.fromkeys(c for _, effect in source.event.cases for c in effect.sets):
            waits = [e for e in self.walks[end.event.agent].events if can(e, "waits", n)]
            if waits and all(e.pipe in (end.event.pipe, "S") for e in waits):
                found.append(both(source.when("sets", n), lt(source.count(f"set {n}"), end.count(f"wait {n}"))))
        return either(*found)

    def hop(self, kind: str, source: At, target: At) -> Term:
        one, other = source.event, target.event
        same = one.agent == other.agent
        match kind:
            case "match":
                return either(*(
                    both(source.when("sets", n), target.when("waits", n),
                         eq(source.count(f"set {n}"), target.count(f"wait {n}")))
                    for n in dict.fromkeys(c for _, x in one.cases for c in x.sets) if can(other, "waits", n)
                ))  # fmt: skip
            case "lock" if same and one.pipe != other.pipe:
                shared = [
                    n for n in dict.fromkeys(c for _, x in one.cases for c in x.unlocks) if can(other, "locks", n)
                ]
                held = either(*(both(source.when("unlocks", n), target.when("locks", n)) for n in shared))
                return both(held, precedes(source.place, target.place))
            case "issue" if same and one.pipe == "S":
                return precedes(source.place, target.place)
            case "drain" if same and other.cases and other.cases[0][1].drains:
                return precedes(source.place, target.place)
            case "meet" if not same and isinstance(one.stmt, ir.SyncAll) and isinstance(other.stmt, ir.SyncAll):
                return eq(source.count("meet 0"), target.count("meet 0"))
            case "phase" if same:
                return both(self._handed(source, target), precedes(source.place, target.place))
            case "message" | "credit":
                return self._message(kind, source, target)
        return "false"

    def _handed(self, source: At, target: At) -> Term:
        return either(*(
            both(source.of(c), target.of(d))
            for c, x in source.event.cases for d, y in target.event.cases
            if x.phase and y.phase and x.phase[1] and x.phase[0] != y.phase[0] and set(x.phased) & set(y.phased)
        ))  # fmt: skip

    def _message(self, kind: str, source: At, target: At) -> Term:
        given, taken = (type(e.stmt).__name__.lower() for e in (source.event, target.event))
        wanted = ("push", "pop") if kind == "message" else (self.release, "push")
        if (given, taken) != wanted or source.event.agent == target.event.agent:
            return "false"
        found = []
        for taking in dict.fromkeys(t for _, x in source.event.cases for t in x.rings):
            key, slots = f"{taking[0]} {taking[1]}", self.resolver.rings[taking[0]].slots
            first, second = source.count(f"{given} {key}"), target.count(f"{taken} {key}")
            if kind == "message":
                met = eq(first, second)
            else:
                met = both(self.credited(second, slots), eq(first, self.credit(second, slots)))
            found.append(both(source.when("rings", taking), target.when("rings", taking), met))
        return either(*found)


def _plain(spot: Spot) -> None:
    """Reject a place that says more than its kind needs."""
    counted = spot.find in ("shift", "first", "last", "mirror")
    through = spot.plus is not None or spot.minus is not None
    if not isinstance(spot.offset, int) or (spot.offset and not counted) or (through and spot.find != "shift"):
        raise Rejected(f"{spot.find} of {spot.event} says too much")


@dataclass(frozen=True)
class Need:
    supplier: str
    key: str
    condition: Callable[[At], Term]
    number: Callable[[At], Term]


def _when(what: str, thing: object) -> Callable[[At], Term]:
    return lambda here: here.when(what, thing)


def _counted(key: str) -> Callable[[At], Term]:
    return lambda here: here.count(key)


def batch(slots: int) -> int:
    return slots if slots <= 2 else slots // 2


# ------------------------------------------------------------------------------------------------ memory


@dataclass(frozen=True)
class Operand:
    access: ir.Access
    writes: bool
    slot: Term
    part: Term
    parts: int


class Memory:
    """Claims about accesses."""

    def __init__(self, statement: Statement) -> None:
        self.s = statement
        self.layout = statement.resolver.layout
        nodes = [n for n in ir.walk(statement.compiled.kernel) if isinstance(n, ir.DataOp)]
        self.names = {a.name for n in nodes for a in n.writes if a.name in self.layout.depths}
        self.operands = {e.name: list(self._operands(e)) for e in statement.events}

    def state(self) -> None:
        s = self.s
        events = [e for e in s.events if self.operands[e.name]]
        for event in events:
            here = s.named(event, "a")
            for i, o in enumerate(self.operands[event.name]):
                depth = self.layout.depths[o.access.name]
                slot, part = here.of(o.slot), here.of(o.part)
                inside = both(le(0, slot), lt(slot, depth), le(0, part), lt(part, o.parts))
                s.claim(f"range of operand {i} of {event.name}", "range", here.domain, no(inside))
        for one, other in combinations(events, 2):
            if (one.agent, one.pipe) != (other.agent, other.pipe):
                a, b = s.pair(one, other)
                meet = either(*(self.overlap(a, x, b, y) for x in self.operands[one.name]
                                for y in self.operands[other.name] if x.writes or y.writes))  # fmt: skip
                if meet != "false":
                    group = "lanes" if {one.agent, other.agent} == {"aiv0", "aiv1"} else "order"
                    s.order("order", group, a, b, meet, either_way=True)
        for reader in events:
            for i, read in enumerate(self.operands[reader.name]):
                if not read.writes and self.layout.overlapping(read.access.name, self.names):
                    here = s.named(reader, "a")
                    s.source(f"written before operand {i} of {reader.name}", here, self._written(here, read))
        for writer, reader in product(events, events):
            self._rounds(writer, reader)
        if any(b.shared for b in s.compiled.kernel.buffers):
            raise Rejected("shared memory is not certified")

    def _written(self, here: At, read: Operand) -> Callable[[At], Term]:
        return lambda there: either(*(
            self.overlap(here, read, there, w) for w in self.operands[there.event.name] if w.writes
        ))  # fmt: skip

    def _rounds(self, writer: Event, reader: Event) -> None:
        if writer.task is None or reader.task is None or (writer.agent == "aic") == (reader.agent == "aic"):
            return
        for i, w in enumerate(self.operands[writer.name]):
            for j, r in enumerate(self.operands[reader.name]):
                if w.writes and not r.writes and w.access.name == r.access.name:
                    a, b = self.s.pair(writer, reader)
                    same = eq(a.of(writer.task), b.of(reader.task))
                    apart = no(self.overlap(a, w, b, r))
                    name = f"round of {writer.name} {i} and {reader.name} {j}"
                    self.s.claim(name, "round", a.domain, b.domain, same, apart)

    def _operands(self, event: Event) -> Iterator[Operand]:
        if not isinstance(event.stmt, ir.DataOp):
            return
        values = iter(event.arguments)
        for accesses, writes in ((event.stmt.writes, True), (event.stmt.reads, False)):
            for access in accesses:
                if access.name in self.layout.depths:
                    slot = next(values) if access.index is not None else 0
                    part = next(values) if access.part is not None else 0
                    parts = next(values) if access.parts is not None else 1
                    yield Operand(access, writes, slot, part, int(parts))

    def overlap(self, one: At, a: Operand, other: At, b: Operand) -> Term:
        rows: dict[tuple[int, int, int, int], None] = {}
        theirs: dict[int, list[tuple[int, int]]] = {}
        for slot, part, cells in self._cells(other.event, b):
            for cell in cells:
                theirs.setdefault(cell, []).append((slot, part))
        for slot, part, cells in self._cells(one.event, a):
            for cell in cells:
                rows |= dict.fromkeys((slot, part, *t) for t in theirs.get(cell, ()))
        mine, yours = (one.of(a.slot), one.of(a.part)), (other.of(b.slot), other.of(b.part))
        depths = {self.layout.depths[a.access.name], self.layout.depths[b.access.name], len(rows)}
        if a.parts == b.parts == 1 and len(depths) == 1 and all(i == j for i, _, j, _ in rows):
            return eq(mine[0], yours[0])
        return either(*(both(*(eq(t, n) for t, n in zip((*mine, *yours), row, strict=True))) for row in rows))

    def _cells(self, event: Event, o: Operand) -> Iterator[tuple[int, int, list[int]]]:
        lanes = [int(event.agent[-1])] if event.agent != "aic" else [0]
        if event.agent == "aic" and self.layout.spaces[o.access.name] == "Vec":
            lanes = {"both": [0, 1], "0": [0], "1": [1]}[event.stmt.lanes]
        for slot in range(self.layout.depths[o.access.name]):
            for part in range(o.parts):
                found = [c for n in lanes for c in self.layout.cells(o.access.name, slot, n, part, o.parts)]
                yield slot, part, found
