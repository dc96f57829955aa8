"""Claims: what must be shown about a program, so that every row of its report is right?

The list follows from the program alone.  Routes come from the certificate; a wrong one makes its claim fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations, permutations, product
from typing import Any

from fencepost import ir
from fencepost.model.effects import Effect, Resolver
from fencepost.model.memory import Layout
from fencepost.model.rings import Ring
from fencepost.prove.checker import Claim, Event, Rejected, Walk
from fencepost.prove.plainterms import Term, add, applications, both, either, eq, le, lt, minus, mod, no, read, subst

FOLLOWS = {("lock", "leave"): "acquire", ("phase", "raise"): "consume", ("phase", "lower"): "produce"}
"""What a later operation waits for, by the kind of hop and what an earlier one does."""
Spot = tuple[str, Any]
"""An execution of an event, seen from another one: "same" (the same indices), "taker" (it takes the signal), or its
number, a term over `total.EVENT` and `before.EVENT` (how often this agent has executed it before here)."""
Route = dict[str, Any]
"""Why `one` is before `other`: along `hops`; with a `writer`: where the read `other` finds its write.

A hop is its kind, its source (at or after the current execution on its pipe), and its target (None: whoever takes the
signal).  It is what the certificate says, and read where it is used."""


@dataclass(frozen=True)
class Link:
    """`taker` ends its k-th `take` only after the k-th `give` of `giver`; at most `room` may be pending.

    With `ring`, `give` are its releases: `room` is there from the start, and more of it comes as the ring says.
    """

    name: str
    giver: str
    taker: str
    give: str
    take: str
    room: int | None = None
    ring: Ring | None = None

    def awaited(self, k: Term) -> tuple[Term, Term]:
        """Whether take number k waits at all, and for which number of give."""
        if self.ring is None:
            return "true", k
        return both(le(self.ring.slots, k), eq(mod(k, self.ring.batch), 0)), add(k, -1 - self.ring.window)

    def matched(self, source: At, target: At) -> Term:
        """Whether one execution gives what another one takes."""
        waits, number = self.awaited(target.count(self.take))
        return both(source.does(self.give), target.does(self.take), waits, eq(source.count(self.give), number))


class At:
    """An event at given indices."""

    def __init__(self, event: Event, terms: tuple[Term, ...]) -> None:
        self.event, self.terms = event, terms
        self.of = subst(dict(zip(event.indices, terms, strict=True)))
        self.domain, self.place = both(*map(self.of, event.path)), tuple(map(self.of, event.place))
        self.task = None if event.task is None else self.of(event.task)
        self.number = self.count(f"run {event.name}")

    def count(self, key: str) -> Term:
        return self.of(self.event.before.get(key, 0))

    def does(self, key: str) -> Term:
        return self.of(self.event.does.get(key, "false"))


def named(event: Event, prefix: str) -> At:
    return At(event, tuple(f"{prefix}@{i}" for i in range(len(event.indices))))


def pairs(ones: Iterable[Event], others: Iterable[Event]) -> Iterator[tuple[At, At]]:
    """Every pair of events, at any indices."""
    return ((named(one, "a"), named(other, "b")) for one, other in product(ones, others))


def pair(name: str, a: At, b: At, *conditions: Term) -> Claim:
    return f"{name}: {a.event.name} {b.event.name}", (a.domain, b.domain, *conditions)


def precedes(one: At, other: At) -> Term:
    """Strictly earlier in the program of one agent."""
    places = list(zip(one.place, other.place, strict=False))[::-1]
    return reduce(lambda found, ab: either(lt(*ab), both(eq(*ab), found)), places, "false")


@dataclass(frozen=True)
class Operand:
    """One access: which bytes a slot and part of a buffer are (on both sub-cores if both are meant)."""

    name: str
    writes: bool
    place: tuple[Term, Term]
    cells: Mapping[tuple[int, int], frozenset[int]]


def operands_of(event: Event, layout: Layout) -> Iterator[Operand]:
    """The accesses of an event to declared buffers."""
    values, stmt = iter(event.arguments), event.stmt
    lanes = {"both": (0, 1), "0": (0,), "1": (1,)}[stmt.lanes] if event.agent == "aic" else (int(event.agent[-1]),)
    for access, writes in (*((a, True) for a in stmt.writes), *((a, False) for a in stmt.reads)):
        if (name := access.name) in layout.depths:
            texts = zip((access.index, access.part, access.parts), (0, 0, 1), strict=True)
            slot, part, parts = (default if expr is None else next(values) for expr, default in texts)
            places = product(range(layout.depths[name]), range(parts))
            yield Operand(name, writes, (slot, part), {
                (s, p): frozenset(c for lane in lanes for c in layout.cells(name, s, lane, p, parts)) for s, p in places
            })  # fmt: skip


def shared(a: At, x: Operand, b: At, y: Operand, byte: int | None = None) -> Term:
    """When two operands have a byte in common, both being in range; with `byte`, that byte of the first one."""
    one, other = tuple(map(a.of, x.place)), tuple(map(b.of, y.place))
    if x.cells == y.cells and sum(map(len, x.cells.values())) == len(frozenset().union(*x.cells.values())):
        return both(*map(eq, one, other))
    wanted = ((p, c if byte is None else {*sorted(c)[byte : byte + 1]}) for p, c in x.cells.items())
    rows = ((*p, *q) for p, cells in wanted for q, others in y.cells.items() if cells & others)
    return either(*(both(*map(eq, (*one, *other), row)) for row in rows))


def legal(resolver: Resolver, uses: Iterable[tuple[str, str, Any, tuple[Effect, ...]]]) -> None:
    """Reject what is wrong whatever the values are, and what this checker does not understand.

    A use is the name of an operation, its agent, its statement and its effects.
    """
    modes: dict[tuple[bool, int], str] = {}
    target, layout = resolver.compiled.target, resolver.layout
    if any(b.shared for b in resolver.compiled.kernel.buffers) or target.signals != "counting":
        raise Rejected("memory that blocks share and signals that merge are not certified")
    for name, agent, stmt, effects in uses:
        wrong = isinstance(stmt, (ir.MutexLock, ir.MutexUnlock)) and not target.has_mutex
        if isinstance(stmt, ir.DataOp) and stmt.phase is not None:
            reads, writes = ({layout.spaces.get(a.name) for a in some} for some in (stmt.reads, stmt.writes))
            wrong = not target.has_unit_flag or stmt.family not in (None, "Acc" if stmt.pipe == "M" else "ST")
            wrong |= stmt.op == "move" and (stmt.offset or "Acc" not in reads or "Vec" not in writes)
        if isinstance(stmt, (ir.SetCross, ir.WaitCross)):  # an id belongs to its sender
            sends = isinstance(stmt, ir.SetCross) or stmt.mode.startswith("INTER")
            ids = ((sends == (agent == "aic"), effect.arguments[0] % 16) for effect in effects)
            wrong = any(modes.setdefault(key, stmt.mode) != stmt.mode for key in ids)
        if wrong:
            raise Rejected(f"{name} is not legal: its mode, phase or target")


@dataclass
class Statement:
    """The claims about one program under one credit scheme."""

    resolver: Resolver
    walks: dict[str, Walk]
    batched: bool
    routes: list[Route]
    used: set[int] = field(default_factory=set)
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

    def all(self) -> Iterator[Claim]:
        """Every claim, in a fixed order."""
        legal(self.resolver, ((e.name, e.agent, e.stmt, e.effects) for e in self.events))
        for some in (self._signals, self._messages, self._toggles, self._progress, self._memory):
            yield from some()
        if len(self.used) != len(self.routes):
            raise Rejected("a route leads nowhere")

    def _total(self, agent: str, key: str) -> Term:
        return self.walks[agent].env.get(key, 0) if agent in self.walks else 0

    def _doing(self, agent: str, key: str) -> list[Event]:
        return [e for e in self.events if e.agent == agent and key in e.does]

    def _links(self) -> Iterator[Link]:
        for n, c in enumerate(self.resolver.channels):
            one, other = ("aic" if end == "cube" else end for end in (c.sender, c.receiver))
            yield Link(str(c), one, other, f"set {n}", f"wait {n}", c.capacity)
        for n, declared in enumerate(self.resolver.rings):
            ring = Ring(declared.slots, "batched" if self.batched else "per_slot")
            if ring.unguarded:
                raise Rejected(f"{declared} cannot have its credits in batches")
            for lane in range(declared.lanes):
                one, other = ("aic", f"aiv{lane}")[:: 1 if declared.sender == "cube" else -1]
                push, pop, release = (f"{verb} {n} {lane}" for verb in ("push", "pop", self.release))
                yield Link(f"{declared} {lane}", one, other, push, pop)
                yield Link(f"credits of {declared} {lane}", other, one, release, push, ring.slots, ring)
        if any("meet 0" in e.does for e in self.events):
            yield from (Link("sync_all", a, b, "meet 0", "meet 0") for a, b in permutations(self.walks, 2))

    def _signals(self) -> Iterator[Claim]:
        """Everything given is taken, the order on both ends is certain, and there is always room for it."""
        for end in dict.fromkeys(end for k in self.links for end in ((k.giver, k.give), (k.taker, k.take))):
            yield from self._determined(*end)
        for k in self.links:
            yield f"balance of {k.name}", (no(eq(self._total(k.giver, k.give), self._total(k.taker, k.take))),)
            (agent, first), (other, second) = ((k.taker, k.take), (k.giver, k.give))[:: -1 if k.ring else 1]
            for a, b in pairs(self._doing(agent, first), self._doing(other, second)) if k.room is not None else ():
                late = both(a.does(first), b.does(second), le(add(a.count(first), k.room), b.count(second)))
                yield self._order(f"room in {k.name}", a, b, late)

    def _determined(self, agent: str, key: str) -> Iterator[Claim]:
        """What different pipes of an agent do is ordered by what they know before."""
        for a, b in pairs(self._doing(agent, key), self._doing(agent, key)):
            if a.event.pipe != b.event.pipe:
                related = both(a.does(key), b.does(key), precedes(a, b))
                yield self._order(f"who does {key} first", a, b, related, own_token=False)

    def _messages(self) -> Iterator[Claim]:
        """Messages are popped for the task that they were pushed for, freed after that, and then not used any more."""
        for link in (k for k in self.links if k.give.startswith("push ")):
            for a, b in pairs(self._doing(link.giver, link.give), self._doing(link.taker, link.take)):
                if a.task is not None and b.task is not None:
                    yield pair("task", a, b, link.matched(a, b), no(eq(a.task, b.task)))
            free = Link("", link.taker, link.taker, link.take, link.take.replace("pop", self.release))
            for a, b in pairs(self._doing(free.giver, free.give), self._doing(free.taker, free.take)):
                if free.give != free.take:
                    yield self._order(f"popped before freed of {link.name}", a, b, free.matched(a, b))
        frees = [e for e in self.events if isinstance(e.stmt, ir.Free) and self.release == "free"]
        for a, b in pairs(frees, self.events):
            if a.event.agent == b.event.agent and self._consumes(b.event.stmt, value := a.event.stmt.value):
                kept = eq(a.count(f"renew {value}"), b.count(f"renew {value}"))
                yield pair("used after its free", a, b, precedes(a, b), kept)

    def _consumes(self, stmt: object, value: str) -> bool:
        if isinstance(stmt, ir.DataOp):
            return value not in self.layout.depths and any(a.name == value for a in stmt.reads)
        return isinstance(stmt, (ir.Push, ir.Free)) and stmt.value == value

    def _toggles(self) -> Iterator[Claim]:
        """Mutexes are locked and unlocked in turn; accumulators are summed up and read in turn."""
        keys = [(e.agent, *key.partition(" ")[::2]) for e in self.events for key in e.does]
        for kinds, steps in ((("lock", "unlock"),) * 2, (("produce", "consume"), ("raise", "lower"))):
            for agent, thing in dict.fromkeys((agent, thing) for agent, kind, thing in keys if kind in kinds):
                up, down = (f"{step} {thing}" for step in steps)
                yield f"{up} and {down} of {agent}", (no(eq(self._total(agent, up), self._total(agent, down))),)
                for wanted, key in enumerate(f"{kind} {thing}" for kind in kinds):
                    for here in (named(e, "a") for e in self._doing(agent, key)):
                        wrong = no(eq(minus(here.count(up), here.count(down)), wanted))
                        yield f"{key} in turn: {here.event.name}", (here.domain, here.does(key), wrong)
                    if kinds != steps:
                        yield from self._determined(agent, key)
                for a, b in pairs(self._doing(agent, f"raise {thing}"), self._doing(agent, f"adds {thing}")):
                    follows = eq(add(a.count(f"produce {thing}"), 1), b.count(f"produce {thing}"))
                    adds = both(a.does(f"raise {thing}"), b.does(f"adds {thing}"), follows)
                    yield pair("added to what is complete", a, b, adds)

    def _progress(self) -> Iterator[Claim]:
        """No agents wait for each other in a circle, each as a whole at one operation."""
        circles = (some for n in (1, 2, 3) for some in permutations(self.walks, n) if some[0] == min(some))
        for some in circles:
            ends = zip((*some[1:], some[0]), some, strict=True)  # supplier, waiting
            needs = [[k for k in self.links if (k.giver, k.taker) == end] for end in ends]
            waits = [[e for k in links for e in self._doing(k.taker, k.take)] for links in needs]
            for chosen in product(*map(dict.fromkeys, waits)):
                stuck = [named(e, "abc"[i]) for i, e in enumerate(chosen)]
                places = zip(needs, stuck, (*stuck[1:], stuck[0]), strict=True)
                missing = [either(*(self._missing(k, here, there) for k in links)) for links, here, there in places]
                name = " ".join(here.event.name for here in stuck)
                yield f"waiting for each other: {name}", (*(here.domain for here in stuck), *missing)

    def _missing(self, link: Link, waiting: At, supplier: At) -> Term:
        """The supplier, stuck at its own operation, has not yet given what is waited for."""
        waits, number = link.awaited(waiting.count(link.take))
        arrived = int(link.give == "meet 0" and "meet 0" in supplier.event.does)
        return both(waiting.does(link.take), waits, le(add(supplier.count(link.give), arrived), number))

    def _memory(self) -> Iterator[Claim]:
        """Operands are in range, uses are in order, reads come after a write, and both sides mean the same round."""
        users = [e for e in self.events if self.operands.get(e.name)]
        texts = (n for n in ir.walk(self.kernel) if isinstance(n, ir.DataOp))
        written = {a.name for n in texts for a in n.writes if a.name in self.layout.depths}
        for here in (named(e, "a") for e in users):
            for i, x in enumerate(self.operands[here.event.name]):
                inside = (
                    both(le(0, here.of(t)), le(here.of(t), most)) for t, most in zip(x.place, max(x.cells), strict=True)
                )
                yield f"range of operand {i} of {here.event.name}", (here.domain, no(both(*inside)))
                if not x.writes and self.layout.overlapping(x.name, written):
                    yield self._source(f"written before operand {i} of {here.event.name}", here, x)
        for one, other in combinations(users, 2):
            if (one.agent, one.pipe) != (other.agent, other.pipe):
                a, b = named(one, "a"), named(other, "b")
                uses = product(self.operands[one.name], self.operands[other.name])
                meet = either(*(shared(a, x, b, y) for x, y in uses if x.writes or y.writes))
                if meet != "false":
                    yield self._order("order", a, b, meet, either_way=True)
        yield from self._rounds([e for e in users if e.task is not None])

    def _rounds(self, users: list[Event]) -> Iterator[Claim]:
        """Where the other core writes with rounds: a write of a read's round comes before it, later rounds after it.

        Of two such writes of one cell, the earlier round comes first, so the last one before a read is of its round.
        """
        ordered: dict[tuple[Event, Event], None] = {}
        for here, (i, x) in ((named(e, "a"), ix) for e in users for ix in enumerate(self.operands[e.name])):
            there = [named(e, "b") for e in users if (e.agent == "aic") != (here.event.agent == "aic") and not x.writes]
            meets = [(b, either(*(shared(here, x, b, y) for y in self._writes(b)))) for b in there]
            for b, meet in ((b, meet) for b, meet in meets if meet != "false"):
                ordered |= {(b.event, c.event): None for c, meet in meets if meet != "false"}
                yield self._order(f"later round than operand {i}", here, b, both(meet, lt(here.task, b.task)))
                for y in (y for y in self._writes(b) if x.name == y.name):
                    yield pair(f"round of {x.name}", b, here, eq(here.task, b.task), no(shared(here, x, b, y)))
            for n in range(max(map(len, x.cells.values())) if any(meet != "false" for _, meet in meets) else 0):
                yield self._source(f"round of byte {n} of operand {i} of {here.event.name}", here, x, n)
        for a, b in ((named(one, "a"), named(other, "b")) for one, other in ordered):
            meet = either(*(shared(a, x, b, y) for x, y in product(self._writes(a), self._writes(b))))
            if (a.event.agent, a.event.pipe) == (b.event.agent, b.event.pipe):
                yield pair("rounds in order", a, b, meet, lt(a.task, b.task), no(precedes(a, b)))
            else:
                yield self._order("rounds in order", a, b, both(meet, lt(a.task, b.task)))

    def _writes(self, here: At) -> list[Operand]:
        return [o for o in self.operands[here.event.name] if o.writes]

    def _order(self, name: str, a: At, b: At, related: Term, either_way: bool = False, own_token: bool = True) -> Claim:
        """That some route leads from one execution to the other whenever they are related."""
        self._facts, self._fresh, apart = [self._numbered(a), self._numbered(b)], {}, list[Term]()
        for (n, route), (one, other) in product(enumerate(self.routes), ((a, b), (b, a))[: 1 + either_way]):
            if (route["one"], route["other"], route["writer"]) == (one.event.name, other.event.name, None):
                apart.append(no(self._leads(route["hops"], one, other, own_token)))
                self.used.add(n)
        return pair(name, a, b, related, *apart, *self._facts)

    def _source(self, name: str, reader: At, access: Operand, byte: int | None = None) -> Claim:
        """That a read is preceded by a write of the same memory, where the certificate places it.

        With `byte`, by one of the other core for its round that covers the byte of this number.
        """
        self._facts, self._fresh, missing = [self._numbered(reader)], {}, list[Term]()
        for n, route in enumerate(self.routes):
            if (spot := route["writer"]) and (route["one"], route["other"]) == (spot[0], reader.event.name):
                writer, exists, _ = self._find(spot, reader)
                meet = either(*(shared(reader, access, writer, o, byte) for o in self._writes(writer)))
                if byte is not None:
                    twin = (reader.event.agent == "aic") == (writer.event.agent == "aic") or writer.task is None
                    meet = "false" if twin else both(meet, eq(reader.task, writer.task))
                missing.append(no(both(exists, meet, self._leads(route["hops"], writer, reader))))
                self.used.add(n)
        return name, (reader.domain, *missing, *self._facts)

    def _numbered(self, here: At) -> Term:
        """What holds for every execution: its number is below the total."""
        return both(le(0, here.number), lt(here.number, self.totals[here.event.name]))

    def _leads(self, hops: list[Any], one: At, other: At, own_token: bool = True) -> Term:
        """Whether hops lead from one execution to another; without `own_token`, not by what arrives only at its end."""
        here, needed = one, list[Term]()
        for n, (kind, start, end) in enumerate(hops):
            source, exists, later = self._find(start, here)
            needed += [exists, self._reached(here, source, later=later)]
            if end is None:
                if n + 1 < len(hops) or kind != "signal":
                    raise Rejected("only the last signal of a route needs no taker")
                return both(*needed, self._taken(source, other))
            here, exists, _ = self._find(end, source)
            needed += [exists, self._hop(kind, source, here)]
        strictly = not hops or (not own_token and hops[-1][0] in ("signal", "phase"))
        return both(*needed, self._reached(here, other, strictly))

    def _find(self, spot: Spot, here: At) -> tuple[At, Term, bool]:
        """An execution, the condition that it exists, and whether it is certainly not before `here`."""
        name, data = spot
        event, at = self.by_name[name], read(data)
        if at == "same" or at == "taker":
            found = self._taker(event, here) if at == "taker" else At(event, here.terms[: len(event.indices)])
            return found, found.domain, False
        values = {f"total.{name}": total for name, total in self.totals.items()}
        values |= {f"before.{e.name}": here.count(f"run {e.name}") for e in self.events if e.agent == here.event.agent}
        if not {*applications([at])} <= {(name,) for name in values}:
            raise Rejected(f"{data} is not the number of an execution")  # it could depend on what it defines
        number = subst(values)(at)
        found, exists = self._named(event, number), both(le(0, number), lt(number, self.totals[event.name]))
        self._facts.append(either(no(exists), both(found.domain, eq(found.number, number))))
        later = event.agent == here.event.agent and le(here.count(f"run {event.name}"), number) == "true"
        return found, exists, later

    def _named(self, event: Event, place: Term) -> At:
        """An execution at indices of its own."""
        return self._fresh.setdefault((event.name, place), named(event, f"z{len(self._fresh)}"))

    def _taker(self, event: Event, here: At) -> At:
        """The execution that takes a signal: if this one gives some, there is one, since as many are taken as given."""
        place, links = ("taker", here.event.name, here.terms), self._plain_links(here.event, event)
        takers = ((k, self._named(e, place)) for k in links for e in self._doing(k.taker, k.take))
        met = [both(it.domain, link.matched(here, it)) for link, it in takers]
        gives = either(*(here.does(link.give) for link in links))
        self._facts.append(either(no(both(here.domain, gives)), *met))
        return self._named(event, place)

    def _plain_links(self, one: Event, other: Event) -> list[Link]:
        """The links by which every signal of one event is taken by the agent of another."""
        ends = (one.agent, other.agent, None)
        return [k for k in self.links if (k.giver, k.taker, k.ring) == ends and k.give in one.does]

    def _reached(self, here: At, there: At, strictly: bool = False, later: bool = False) -> Term:
        """Whether one execution is the other, or ordered before it by its pipe (or by S) alone."""
        one, other = here.event, there.event
        if one.agent != other.agent or one.pipe not in (other.pipe, "S"):
            return "false"
        same = "false" if strictly or one is not other else both(*map(eq, here.terms, there.terms))
        return "true" if later else either(precedes(here, there), same)

    def _taken(self, source: At, end: At) -> Term:
        """Whether whoever takes the signal of `source` comes before `end`, on its pipe or on S, judged by counting."""
        return either(*(
            both(source.does(link.give), lt(source.count(link.give), end.count(link.take)))
            for link in self._plain_links(source.event, end.event)
            if all(e.pipe in (end.event.pipe, "S") for e in self._doing(link.taker, link.take))
        ))  # fmt: skip

    def _hop(self, kind: str, source: At, target: At) -> Term:
        """Whether order hops from one operation to another."""
        one, other = source.event, target.event
        if kind == "signal":
            links = (k for k in self.links if (k.giver, k.taker) == (one.agent, other.agent))
            return either(*(link.matched(source, target) for link in links))
        drains = isinstance(other.stmt, ir.SyncAll) or other.stmt == ir.Barrier("ALL")
        found = ["true"] if (kind == "issue" and one.pipe == "S") or (kind == "drain" and drains) else []
        keys = ((key, *key.partition(" ")[::2]) for key in one.does)
        ends = ((key, f"{FOLLOWS[kind, verb]} {thing}") for key, verb, thing in keys if (kind, verb) in FOLLOWS)
        found += [both(source.does(key), target.does(end)) for key, end in ends]
        return both(either(*found), precedes(source, target)) if one.agent == other.agent else "false"
