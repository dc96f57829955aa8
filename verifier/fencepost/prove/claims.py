"""Claims: what must be shown about a program, so that every row of its report is right?

The list follows from the program alone.  Routes come from the certificate; a wrong one makes its claim fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, permutations, product

from fencepost import ir
from fencepost.model.effects import Resolver
from fencepost.model.memory import Layout
from fencepost.prove.checker import Claim, Event, Rejected, Walk
from fencepost.prove.plainterms import Renaming, Term, add, both, either, eq, le, lt, minus, mod, no

LANES = {"both": (0, 1), "0": (0,), "1": (1,)}
MUTEX = ("lock", "unlock")

Spot = tuple[str, Term]
"""An execution of an event, seen from another one: "same" (the same indices), "taker" (it takes the signal), or its
number, a term over `total.EVENT` and `before.EVENT` (how often this agent has executed it before here)."""


@dataclass(frozen=True)
class Hop:
    """From `source`, at or after the current execution on its pipe, to `target`; None: to whoever takes the signal."""

    kind: str
    source: Spot
    target: Spot | None


@dataclass(frozen=True)
class Route:
    """Why `one` is before `other`; with a `writer`: where the read `other` finds its write."""

    one: str
    other: str
    hops: tuple[Hop, ...]
    writer: Spot | None


@dataclass(frozen=True)
class Link:
    """`taker` ends its k-th `take` only after the k-th `give` of `giver`; at most `capacity` may be pending.

    With `slots`, that many are there from the start, and more of them come in batches of `period`.
    """

    name: str
    giver: str
    taker: str
    give: str
    take: str
    capacity: int | None = None
    slots: int = 0
    period: int = 1

    def awaited(self, k: Term) -> tuple[Term, Term]:
        """Whether take number k waits at all, and for which number of give."""
        if not self.slots:
            return "true", k
        first = -(-self.slots // self.period) * self.period
        return both(le(self.slots, k), eq(mod(k, self.period), 0)), add(k, self.period - 1 - first)

    def matched(self, source: At, target: At) -> Term:
        """Whether one execution gives what another one takes."""
        waits, number = self.awaited(target.count(self.take))
        return both(source.does(self.give), target.does(self.take), waits, eq(source.count(self.give), number))


class At:
    """An event at given indices."""

    def __init__(self, event: Event, terms: tuple[Term, ...]) -> None:
        self.event, self.terms = event, terms
        self.of = Renaming(dict(zip(event.indices, terms, strict=True)))
        self.domain = both(*map(self.of, event.path))
        self.task = None if event.task is None else self.of(event.task)

    def count(self, key: str) -> Term:
        return self.of(self.event.before.get(key, 0))

    def does(self, key: str) -> Term:
        return self.of(self.event.does.get(key, "false"))

    @property
    def number(self) -> Term:
        return self.count(f"run {self.event.name}")


def named(event: Event, prefix: str) -> At:
    return At(event, tuple(f"{prefix}@{i}" for i in range(len(event.indices))))


def pairs(ones: Iterable[Event], others: Iterable[Event]) -> Iterator[tuple[At, At]]:
    """Every pair of events, at any indices."""
    return ((named(one, "a"), named(other, "b")) for one, other in product(ones, others))


def precedes(one: At, other: At) -> Term:
    """Strictly earlier in the program of one agent."""
    found: Term = "false"
    for a, b in reversed(list(zip(map(one.of, one.event.place), map(other.of, other.event.place), strict=False))):
        found = either(lt(a, b), both(eq(a, b), found))
    return found


@dataclass(frozen=True)
class Operand:
    """One access: part `part` of `parts` of a slot of a buffer, or of both if its copies on two sub-cores are meant.

    `cells` are the bytes of a slot and part; what two operands share is decided by them.
    """

    name: str
    writes: bool
    slot: Term
    part: Term
    depth: int
    parts: int
    cells: Mapping[tuple[int, int], frozenset[int]]


def operands_of(event: Event, layout: Layout) -> Iterator[Operand]:
    """The accesses of an event to declared buffers."""
    values, stmt = iter(event.arguments), event.stmt
    for access, writes in (*((a, True) for a in stmt.writes), *((a, False) for a in stmt.reads)):
        if access.name in layout.depths:
            given = zip((access.index, access.part, access.parts), (0, 0, 1), strict=True)
            slot, part, parts = (default if expr is None else next(values) for expr, default in given)
            lanes = (int(event.agent[-1]),) if event.agent != "aic" else LANES[stmt.lanes]
            depth = layout.depths[access.name]
            cells = {
                (s, p): frozenset(c for lane in lanes for c in layout.cells(access.name, s, lane, p, parts))
                for s, p in product(range(depth), range(parts))
            }
            yield Operand(access.name, writes, slot, part, depth, parts, cells)


def shared(a: At, x: Operand, b: At, y: Operand) -> Term:
    """When two operands have a byte in common, both being in range."""
    holders: dict[int, list[tuple[int, int]]] = {}
    for place, cells in y.cells.items():
        for cell in cells:
            holders.setdefault(cell, []).append(place)
    meetings = ((*p, *q) for p, cells in x.cells.items() for cell in cells for q in holders.get(cell, ()))
    rows, slots = dict.fromkeys(meetings), (a.of(x.slot), b.of(y.slot))
    if x.parts == y.parts == 1 and x.depth == y.depth == len(rows) and all(i == j for i, _, j, _ in rows):
        return eq(*slots)
    terms = slots[0], a.of(x.part), slots[1], b.of(y.part)
    return either(*(both(*map(eq, terms, row)) for row in rows))


@dataclass
class Statement:
    """The claims about one program under one credit scheme."""

    resolver: Resolver
    walks: dict[str, Walk]
    batched: bool
    routes: tuple[Route, ...]
    claims: list[Claim] = field(default_factory=list)
    used: set[Route] = field(default_factory=set)
    _facts: list[Term] = field(default_factory=list)
    _fresh: dict[tuple[str, Term], At] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.events = [e for walk in self.walks.values() for e in walk.events]
        self.by_name = {e.name: e for e in self.events}
        self.target, self.kernel = self.resolver.compiled.target, self.resolver.compiled.kernel
        self.release = "free" if self.target.frees_at == "tfree" else "pop"
        self.layout, self.links = self.resolver.layout, list(self._links())
        data = [e for e in self.events if isinstance(e.stmt, ir.DataOp)]
        self.operands = {e.name: list(operands_of(e, self.layout)) for e in data}
        self.totals = {e.name: self._total(e.agent, f"run {e.name}") for e in self.events}

    def all(self) -> list[Claim]:
        """Every claim, in a fixed order."""
        self._legal()
        self._signals()
        self._messages()
        self._toggles()
        self._progress()
        self._memory()
        if self.used != set(self.routes):
            raise Rejected("a route leads nowhere")
        return self.claims

    def _claim(self, name: str, *conditions: Term) -> None:
        self.claims.append((name, conditions))

    def _pair(self, name: str, a: At, b: At, *conditions: Term) -> None:
        self._claim(f"{name}: {a.event.name} {b.event.name}", a.domain, b.domain, *conditions)

    def _total(self, agent: str, key: str) -> Term:
        return self.walks[agent].env.get(key, 0) if agent in self.walks else 0

    def _doing(self, agent: str, key: str) -> list[Event]:
        return [e for e in self.events if e.agent == agent and key in e.does]

    def _legal(self) -> None:
        """Reject what is wrong whatever the values are, and what this checker does not understand."""
        modes: dict[tuple[str, int], str] = {}
        if any(b.shared for b in self.kernel.buffers) or self.target.signals != "counting":
            raise Rejected("memory that blocks share and signals that merge are not certified")
        for event in self.events:
            stmt, core = event.stmt, "cube" if event.agent == "aic" else "vector"
            if isinstance(stmt, (ir.MutexLock, ir.MutexUnlock)) and not self.target.has_mutex:
                raise Rejected("the target has no mutex")
            if isinstance(stmt, ir.DataOp) and stmt.phase is not None:
                spaces = [{self.resolver.layout.spaces.get(a.name) for a in some} for some in (stmt.reads, stmt.writes)]
                wrong_move = stmt.op == "move" and (stmt.offset or "Acc" not in spaces[0] or "Vec" not in spaces[1])
                wrong_family = stmt.family not in (None, "Acc" if stmt.pipe == "M" else "ST")
                if not self.target.has_unit_flag or wrong_family or wrong_move:
                    raise Rejected(f"the phase of {event.name}")
            if isinstance(stmt, (ir.SetCross, ir.WaitCross)):
                if isinstance(stmt, ir.WaitCross) and not stmt.mode.startswith("INTER"):
                    core = {"cube": "vector", "vector": "cube"}[core]
                for _, effect in event.cases:
                    if modes.setdefault((core, effect.arguments[0] % 16), stmt.mode) != stmt.mode:
                        raise Rejected(f"event {effect.arguments[0]} of {event.name} has two modes")

    # -------------------------------------------------------------------------------------------- links

    def _links(self) -> Iterator[Link]:
        for n, c in enumerate(self.resolver.channels):
            one, other = ("aic" if end == "cube" else end for end in (c.sender, c.receiver))
            yield Link(str(c), one, other, f"set {n}", f"wait {n}", c.capacity)
        for n, ring in enumerate(self.resolver.rings):
            batch = ring.slots if ring.slots <= 2 else ring.slots // 2
            if self.kernel.credits != "per_slot" and (batch < 1 or ring.slots % batch):
                raise Rejected(f"{ring} cannot have its credits in batches")
            for lane in range(ring.lanes):
                one, other = ("aic", f"aiv{lane}") if ring.sender == "cube" else (f"aiv{lane}", "aic")
                push, pop, release = (f"{verb} {n} {lane}" for verb in ("push", "pop", self.release))
                yield Link(f"{ring} {lane}", one, other, push, pop)
                period = batch if self.batched else 1
                yield Link(f"credits of {ring} {lane}", other, one, release, push, None, ring.slots, period)
        if any("meet 0" in e.does for e in self.events):
            yield from (Link("sync_all", a, b, "meet 0", "meet 0") for a, b in permutations(self.walks, 2))

    def _signals(self) -> None:
        """Everything given is taken, the order on both ends is certain, and there is always room for it."""
        ends = dict.fromkeys(end for k in self.links for end in ((k.giver, k.give), (k.taker, k.take)))
        for end in ends:
            self._determined(*end)
        for k in self.links:
            self._claim(f"balance of {k.name}", no(eq(self._total(k.giver, k.give), self._total(k.taker, k.take))))
            first, second, room = (k.taker, k.take), (k.giver, k.give), k.capacity
            if k.slots:
                first, second, room = second, first, k.slots
            if room is not None:
                for a, b in pairs(self._doing(*first), self._doing(*second)):
                    late = le(add(a.count(first[1]), room), b.count(second[1]))
                    self._order(f"room in {k.name}", a, b, both(a.does(first[1]), b.does(second[1]), late))

    def _determined(self, agent: str, key: str) -> None:
        """What different pipes of an agent do is ordered by what they know before."""
        for a, b in pairs(self._doing(agent, key), self._doing(agent, key)):
            if a.event.pipe != b.event.pipe:
                self._order(
                    f"who does {key} first", a, b, both(a.does(key), b.does(key), precedes(a, b)), own_token=False
                )

    def _messages(self) -> None:
        """Messages are popped for the task that they were pushed for, freed after that, and then not used any more."""
        for link in (k for k in self.links if k.give.startswith("push ")):
            for a, b in pairs(self._doing(link.giver, link.give), self._doing(link.taker, link.take)):
                if a.task is not None and b.task is not None:
                    self._pair("task", a, b, link.matched(a, b), no(eq(a.task, b.task)))
            if self.release == "free":
                free = Link("", link.taker, link.taker, link.take, link.take.replace("pop", "free"))
                for a, b in pairs(self._doing(free.giver, free.give), self._doing(free.taker, free.take)):
                    self._order(f"popped before freed of {link.name}", a, b, free.matched(a, b))
        for a, b in pairs(self.events if self.release == "free" else (), self.events):
            if isinstance(a.event.stmt, ir.Free) and a.event.agent == b.event.agent:
                value = a.event.stmt.value
                if self._consumes(b.event.stmt, value):
                    kept = eq(a.count(f"renew {value}"), b.count(f"renew {value}"))
                    self._pair("used after its free", a, b, precedes(a, b), kept)

    def _consumes(self, stmt: object, value: str) -> bool:
        if isinstance(stmt, ir.DataOp):
            return value not in self.resolver.layout.depths and any(a.name == value for a in stmt.reads)
        return isinstance(stmt, (ir.Push, ir.Free)) and stmt.value == value

    def _toggles(self) -> None:
        """Mutexes are locked and unlocked in turn; accumulators are summed up and read in turn."""
        for agent, walk in self.walks.items():
            keys = dict.fromkeys(key.partition(" ")[::2] for e in walk.events for key in e.does)
            for kinds, steps in ((MUTEX, MUTEX), (("produce", "consume"), ("raise", "lower"))):
                for thing in dict.fromkeys(thing for kind, thing in keys if kind in kinds):
                    up, down = (f"{step} {thing}" for step in steps)
                    self._claim(f"{up} and {down} of {agent}", no(eq(self._total(agent, up), self._total(agent, down))))
                    for wanted, key in enumerate(f"{kind} {thing}" for kind in kinds):
                        for here in (named(e, "a") for e in self._doing(agent, key)):
                            wrong = no(eq(minus(here.count(up), here.count(down)), wanted))
                            self._claim(f"{key} in turn: {here.event.name}", here.domain, here.does(key), wrong)
                        if kinds != steps:
                            self._determined(agent, key)
                    for a, b in pairs(self._doing(agent, up), self._doing(agent, f"adds {thing}")):
                        follows = eq(add(a.count(f"produce {thing}"), 1), b.count(f"produce {thing}"))
                        self._pair("added to what is complete", a, b, a.does(up), b.does(f"adds {thing}"), follows)

    def _progress(self) -> None:
        """No agents wait for each other in a circle, each as a whole at one operation."""
        agents = list(self.walks)
        triples = (some for some in permutations(agents, 3) if some[0] == min(some))
        for some in (*((a,) for a in agents), *combinations(agents, 2), *triples):
            needs = []
            for agent, supplier in zip(some, (*some[1:], some[0]), strict=True):
                links = [k for k in self.links if (k.giver, k.taker) == (supplier, agent)]
                mine = ((e, [k for k in links if k.take in e.does]) for e in self.walks[agent].events)
                needs.append([(e, found) for e, found in mine if found])
            for chosen in product(*needs):
                stuck = [named(e, "abc"[i]) for i, (e, _) in enumerate(chosen)]
                missing = [
                    either(*(self._missing(link, here, there) for link in links))
                    for (_, links), here, there in zip(chosen, stuck, (*stuck[1:], stuck[0]), strict=True)
                ]
                name = " ".join(here.event.name for here in stuck)
                self._claim(f"waiting for each other: {name}", *(here.domain for here in stuck), *missing)

    def _missing(self, link: Link, waiting: At, supplier: At) -> Term:
        """The supplier, stuck at its own operation, has not yet given what is waited for."""
        waits, number = link.awaited(waiting.count(link.take))
        arrived = int(link.give == "meet 0" and "meet 0" in supplier.event.does)
        return both(waiting.does(link.take), waits, le(add(supplier.count(link.give), arrived), number))

    # -------------------------------------------------------------------------------------------- memory

    def _memory(self) -> None:
        """Operands are in range, uses are in order, reads come after a write, and both sides mean the same round."""
        users = [e for e in self.events if self.operands.get(e.name)]
        texts = (n for n in ir.walk(self.kernel) if isinstance(n, ir.DataOp))
        written = {a.name for n in texts for a in n.writes if a.name in self.layout.depths}
        for here in (named(e, "a") for e in users):
            for i, x in enumerate(self.operands[here.event.name]):
                inside = [both(le(0, here.of(t)), lt(here.of(t), n)) for t, n in ((x.slot, x.depth), (x.part, x.parts))]
                self._claim(f"range of operand {i} of {here.event.name}", here.domain, no(both(*inside)))
                if not x.writes and self.layout.overlapping(x.name, written):
                    self._source(f"written before operand {i} of {here.event.name}", here, x)
        for one, other in combinations(users, 2):
            if (one.agent, one.pipe) != (other.agent, other.pipe):
                a, b = named(one, "a"), named(other, "b")
                meet = either(*(shared(a, x, b, y) for x, y in self._uses(a, b) if x.writes or y.writes))
                if meet != "false":
                    self._order("order", a, b, meet, either_way=True)
        for a, b in pairs(users, users):
            if a.task is not None and b.task is not None and (a.event.agent == "aic") != (b.event.agent == "aic"):
                for x, y in self._uses(a, b):
                    if x.writes and not y.writes and x.name == y.name:
                        self._pair(f"round of {x.name}", a, b, eq(a.task, b.task), no(shared(a, x, b, y)))

    def _uses(self, a: At, b: At) -> Iterator[tuple[Operand, Operand]]:
        return product(self.operands[a.event.name], self.operands[b.event.name])

    # -------------------------------------------------------------------------------------------- order

    def _order(self, name: str, a: At, b: At, related: Term, either_way: bool = False, own_token: bool = True) -> None:
        """Claim that some route leads from one execution to the other whenever they are related."""
        self._facts, self._fresh = [self._numbered(a), self._numbered(b)], {}
        apart = []
        for route in self.routes:
            for one, other in ((a, b), (b, a)) if either_way else ((a, b),):
                if (route.one, route.other, route.writer) == (one.event.name, other.event.name, None):
                    apart.append(no(self._leads(route.hops, one, other, own_token)))
                    self.used.add(route)
        self._pair(name, a, b, related, *apart, *self._facts)

    def _source(self, name: str, reader: At, read: Operand) -> None:
        """Claim that a read is preceded by a write of the same memory, where the certificate places it."""
        self._facts, self._fresh = [self._numbered(reader)], {}
        missing = []
        for route in self.routes:
            if route.writer is not None and (route.one, route.other) == (route.writer[0], reader.event.name):
                writer, exists, _ = self._find(route.writer, reader)
                meet = either(*(shared(reader, read, writer, o) for o in self.operands[route.one] if o.writes))
                missing.append(no(both(exists, meet, self._leads(route.hops, writer, reader))))
                self.used.add(route)
        self._claim(name, reader.domain, *missing, *self._facts)

    def _numbered(self, here: At) -> Term:
        """What holds for every execution: its number is below the total."""
        return both(le(0, here.number), lt(here.number, self.totals[here.event.name]))

    def _leads(self, hops: tuple[Hop, ...], one: At, other: At, own_token: bool = True) -> Term:
        """Whether hops lead from one execution to another; without `own_token`, not by what arrives only at its end."""
        here, needed = one, list[Term]()
        for hop in hops:
            source, exists, later = self._find(hop.source, here)
            needed += [exists, self._reached(here, source, later=later)]
            if hop.target is None:
                if hop is not hops[-1] or hop.kind != "signal":
                    raise Rejected("only the last signal of a route needs no taker")
                return both(*needed, self._taken(source, other))
            here, exists, _ = self._find(hop.target, source)
            needed += [exists, self._hop(hop.kind, source, here)]
        strictly = not hops or (not own_token and hops[-1].kind in ("signal", "phase"))
        return both(*needed, self._reached(here, other, strictly))

    def _find(self, spot: Spot, here: At) -> tuple[At, Term, bool]:
        """An execution, the condition that it exists, and whether it is certainly not before `here`."""
        event, at = self.by_name[spot[0]], spot[1]
        if at == "same" and event is here.event:
            return here, "true", False
        if at == "same" or at == "taker":
            found = self._taker(event, here) if at == "taker" else At(event, here.terms[: len(event.indices)])
            return found, found.domain, False
        values = {f"total.{name}": total for name, total in self.totals.items()}
        mine = (e.name for e in self.events if e.agent == here.event.agent)
        number = Renaming(values | {f"before.{name}": here.count(f"run {name}") for name in mine})(at)
        found, exists = self._named(event, number), both(le(0, number), lt(number, self.totals[event.name]))
        self._facts.append(either(no(exists), both(found.domain, eq(found.number, number))))
        later = event.agent == here.event.agent and le(here.count(f"run {event.name}"), number) == "true"
        return found, exists, later

    def _named(self, event: Event, place: Term) -> At:
        """An execution at indices of its own."""
        if (event.name, place) not in self._fresh:
            self._fresh[event.name, place] = named(event, f"z{len(self._fresh)}")
        return self._fresh[event.name, place]

    def _taker(self, event: Event, here: At) -> At:
        """The execution that takes a signal: there is one, since as many are taken as are given."""
        place, links = ("taker", here.event.name, here.terms), self._plain_links(here.event, event)
        takers = ((k, self._named(e, place)) for k in links for e in self._doing(k.taker, k.take))
        met = [both(it.domain, link.matched(here, it)) for link, it in takers]
        gives = either(*(here.does(link.give) for link in links))
        self._facts.append(either(no(both(here.domain, gives)), *met))
        return self._named(event, place)

    def _plain_links(self, one: Event, other: Event) -> list[Link]:
        """The links by which every signal of one event is taken by the agent of another."""
        return [
            k for k in self.links if (k.giver, k.taker, k.slots) == (one.agent, other.agent, 0) and k.give in one.does
        ]

    def _reached(self, here: At, there: At, strictly: bool = False, later: bool = False) -> Term:
        """Whether one execution is the other, or ordered before it by its pipe (or by S) alone."""
        one, other = here.event, there.event
        if one.agent != other.agent or one.pipe not in (other.pipe, "S"):
            return "false"
        if later or (here is there and not strictly):
            return "true"
        same = "false" if strictly or one is not other else both(*map(eq, here.terms, there.terms))
        return either(precedes(here, there), same)

    def _taken(self, source: At, end: At) -> Term:
        """Whether whoever takes the signal of `source` comes before `end`, on its pipe or on S, judged by counting."""
        found = [
            both(source.does(link.give), lt(source.count(link.give), end.count(link.take)))
            for link in self._plain_links(source.event, end.event)
            if all(e.pipe in (end.event.pipe, "S") for e in self._doing(link.taker, link.take))
        ]
        return either(*found)

    def _hop(self, kind: str, source: At, target: At) -> Term:
        """Whether order hops from one operation to another."""
        one, other = source.event, target.event
        if kind == "signal":
            links = (k for k in self.links if (k.giver, k.taker) == (one.agent, other.agent))
            return either(*(link.matched(source, target) for link in links))
        drains = isinstance(other.stmt, ir.SyncAll) or other.stmt == ir.Barrier("ALL")
        passed = {"lock": (("leave", "acquire"),), "phase": (("raise", "consume"), ("lower", "produce"))}
        found = ["true"] if (kind == "issue" and one.pipe == "S") or (kind == "drain" and drains) else []
        for key in one.does:
            verb, _, thing = key.partition(" ")
            found += (both(source.does(key), target.does(f"{b} {thing}")) for a, b in passed.get(kind, ()) if a == verb)
        return both(either(*found), precedes(source, target)) if one.agent == other.agent else "false"
