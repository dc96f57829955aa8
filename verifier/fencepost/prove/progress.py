"""Progress: can agents wait for each other for ever?

Every agent is run as a whole: it stops at the first operation that cannot end.  That is stricter than the pipes are, so
what always ends here ends there too.  At a deadlock every agent that is not done waits for something that another one
has not done yet; counting who has done what at two such operations excludes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, permutations, product

from fencepost import ir
from fencepost.prove.events import Event, Instance, named
from fencepost.prove.expressions import Key
from fencepost.prove.hops import credit, credited
from fencepost.prove.kernels import Closed
from fencepost.prove.obligations import Obligation, at
from fencepost.prove.signals import AGENT_OF
from fencepost.prove.terms import TRUE, Cond, Lin, conjoin, disjoin, le


@dataclass(frozen=True, slots=True)
class Need:
    """Where `condition` holds, the event ends only after `supplier` has done `key` more than `number` times."""

    supplier: str
    key: Key
    condition: Callable[[Instance], Cond]
    number: Callable[[Instance], Lin]


def progress(kernel: Closed) -> Iterator[Obligation]:
    """No set of agents waits in a circle."""
    waiting: dict[str, list[tuple[Event, list[Need]]]] = {}
    for agent, trace in kernel.traces.items():
        waiting[agent] = [(e, found) for e in trace.events if (found := list(needs(kernel, e)))]
    for agent, events in waiting.items():
        for event, found in events:
            own = [n for n in found if n.supplier == agent]
            if own:
                here = named(event, "a", kernel.sums)
                late = disjoin(_missing(n, here, here) for n in own)
                name = f"issued before it is awaited: {at(event)}"
                yield Obligation(name, "progress", event.stmt.span, (here.domain, late))
    agents = list(waiting)
    for pair in combinations(agents, 2):
        yield from _circle(kernel, pair, waiting)
    for triple in permutations(agents, 3):
        if triple[0] == min(triple):
            yield from _circle(kernel, triple, waiting)


def _circle(
    kernel: Closed, agents: tuple[str, ...], waiting: dict[str, list[tuple[Event, list[Need]]]]
) -> Iterator[Obligation]:
    """Each agent waits for the next one, the last one for the first."""
    following = (*agents[1:], agents[0])
    lists = [
        [(event, mine) for event, found in waiting[agent] if (mine := [n for n in found if n.supplier == supplier])]
        for agent, supplier in zip(agents, following, strict=True)
    ]
    for chosen in product(*lists):
        here = [named(event, "abc"[i], kernel.sums) for i, (event, _) in enumerate(chosen)]
        there = (*here[1:], here[0])
        missing = (
            disjoin(_missing(n, one, other) for n in found)
            for (_, found), one, other in zip(chosen, here, there, strict=True)
        )
        name = "waiting for each other: " + ", ".join(at(event) for event, _ in chosen)
        yield Obligation(name, "progress", chosen[0][0].stmt.span, (*(h.domain for h in here), *missing))


def _missing(need: Need, waiting: Instance, supplier: Instance) -> Cond:
    """The supplier, stopped at its own operation, has not yet done what is needed."""
    done = supplier.count(need.key)
    if need.key[0] == "meet" and isinstance(supplier.event.stmt, ir.SyncAll):  # type: ignore[index]
        done = done + 1  # it has arrived
    return conjoin((need.condition(waiting), le(done - need.number(waiting))))


def needs(kernel: Closed, event: Event) -> Iterator[Need]:
    """What an operation waits for."""
    for number in dict.fromkeys(n for _, effect in event.cases for n in effect.waits):
        channel = kernel.resolver.channels[number]
        yield _need(AGENT_OF.get(channel.sender, channel.sender), ("set", number), ("wait", number), event, "waits")
    if isinstance(event.stmt, ir.SyncAll):
        for other in kernel.traces:
            if other != event.agent:
                yield Need(other, ("meet", 0), lambda here: TRUE, lambda here: here.count(("meet", 0)))
    if isinstance(event.stmt, (ir.Push, ir.Pop)):
        for taking in dict.fromkeys(t for _, effect in event.cases for t in effect.rings):
            peer = "aic" if event.agent != "aic" else f"aiv{taking[1]}"
            if isinstance(event.stmt, ir.Pop):
                yield _need(peer, ("push", taking), ("pop", taking), event, "rings")
            else:
                yield _slot(kernel, event, peer, taking)


def _need(supplier: str, supply: Key, own: Key, event: Event, what: str) -> Need:
    chosen = event.when(what, own[1])  # type: ignore[index]
    return Need(supplier, supply, lambda here: here.cond(chosen), lambda here: here.count(own))


def _slot(kernel: Closed, event: Event, peer: str, taking: tuple[int, int]) -> Need:
    """A push waits for a free slot."""
    slots = kernel.resolver.rings[taking[0]].slots
    chosen = event.when("rings", taking)
    release = "free" if kernel.compiled.target.frees_at == "tfree" else "pop"

    def waits(here: Instance) -> Cond:
        return conjoin((here.cond(chosen), credited(here.count(("push", taking)), slots, kernel.batched)))

    return Need(
        peer, (release, taking), waits, lambda here: credit(here.count(("push", taking)), slots, kernel.batched)
    )
