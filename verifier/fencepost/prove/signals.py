"""Signals: is everything that is sent taken, determined by order, and never too much at once?"""

from __future__ import annotations

from collections.abc import Iterator

from fencepost import ir
from fencepost.model.effects import Channel
from fencepost.prove.events import Event, Instance, pair, precedes
from fencepost.prove.expressions import Key
from fencepost.prove.hops import batch
from fencepost.prove.kernels import Closed
from fencepost.prove.obligations import Obligation, Order, Relation, at
from fencepost.prove.terms import FALSE, ONE, TRUE, ZERO, Cond, Lin, conjoin, disjoin, eq, le, negate

AGENT_OF = {"cube": "aic"}
"""Channels name the cube core; agents are named aic, aiv0, aiv1."""


def signals(kernel: Closed) -> Iterator[Obligation]:
    """All obligations about channels, mutexes, rings, sync_all and accumulator flags."""
    events = [e for trace in kernel.traces.values() for e in trace.events]
    for number, channel in enumerate(kernel.resolver.channels):
        sets = [e for e in events if e.can("sets", number)]
        waits = [e for e in events if e.can("waits", number)]
        if sets or waits:
            yield from _channel(kernel, number, channel, sets, waits)
    yield from _modes(kernel, events)
    yield from _mutexes(kernel, events)
    yield from _meetings(kernel, events)
    yield from _rings(kernel, events)
    yield from _flags(kernel, events)


def total(kernel: Closed, agent: str, key: Key) -> Lin:
    """How often an agent does something in the whole run."""
    trace = kernel.traces.get(AGENT_OF.get(agent, agent))
    return ZERO if trace is None else trace.total(key)


def _channel(
    kernel: Closed, number: int, channel: Channel, sets: list[Event], waits: list[Event]
) -> Iterator[Obligation]:
    given = total(kernel, channel.sender, ("set", number))
    taken = total(kernel, channel.receiver, ("wait", number))
    place = (sets or waits)[0].stmt.span
    yield Obligation(f"sets and waits of {channel}", "balance", place, (negate(eq(given, taken)),))
    yield from _determined(str(channel), "sets", number, sets)
    yield from _determined(str(channel), "waits", number, waits)
    for wait in waits:
        for signal in sets:
            relation, seed = (_too_many(number, n, wait, signal) for n in (channel.capacity, 1))
            name = f"at most {channel.capacity} pending on {channel}: {at(wait)}, {at(signal)}"
            yield Obligation(name, "capacity", signal.stmt.span, need=Order(wait, signal, relation, seed=seed))


def _too_many(number: int, capacity: int, wait: Event, signal: Event) -> Relation:
    """The wait takes the signal that must be gone before this one is set."""
    waited, given = wait.when("waits", number), signal.when("sets", number)

    def relation(one: Instance, other: Instance) -> Cond:
        late = le(one.count(("wait", number)) + capacity - other.count(("set", number)))
        return conjoin((one.cond(waited), other.cond(given), late))

    return relation


def _determined(name: str, what: str, number: object, events: list[Event]) -> Iterator[Obligation]:
    """Operations on one thing from different pipes are ordered by what their pipes knew before."""
    for one in events:
        for other in events:
            if one.agent != other.agent or one.pipe == other.pipe:
                continue
            relation = _first(one.when(what, number), other.when(what, number))
            text = f"{what} of {name} from two pipes: {at(one)}, {at(other)}"
            yield Obligation(text, "determined", other.stmt.span, need=Order(one, other, relation, own_token=False))


def _first(mine: Cond, theirs: Cond) -> Relation:
    """Both do it, and the first is earlier in the program."""
    return lambda a, b: conjoin((a.cond(mine), b.cond(theirs), precedes(a.place, b.place)))


def _modes(kernel: Closed, events: list[Event]) -> Iterator[Obligation]:
    """Both ends of every event id name one mode."""
    modes: dict[tuple[str, int], dict[str, Event]] = {}
    for event in events:
        stmt = event.stmt
        if not isinstance(stmt, (ir.SetCross, ir.WaitCross)):
            continue
        core = "cube" if event.agent == "aic" else "vector"
        same_core = stmt.mode in ("INTER_SUBBLOCK", "INTER_BLOCK") or isinstance(stmt, ir.SetCross)
        sender = core if same_core else "vector" if core == "cube" else "cube"
        for _, effect in event.cases:
            modes.setdefault((sender, effect.arguments[0] % 16), {}).setdefault(stmt.mode, event)
    for (sender, number), found in modes.items():
        first = next(iter(found.values()))
        conditions = () if len(found) > 1 else (FALSE,)
        yield Obligation(f"modes of event {number} from the {sender} side", "modes", first.stmt.span, conditions)


def _mutexes(kernel: Closed, events: list[Event]) -> Iterator[Obligation]:
    """Explicit locks and unlocks of each mutex alternate in each agent's program."""
    for agent, trace in kernel.traces.items():
        mine = [e for e in events if e.agent == agent and isinstance(e.stmt, (ir.MutexLock, ir.MutexUnlock))]
        ids = dict.fromkeys(n for e in mine for _, effect in e.cases for n in effect.arguments)
        for number in ids:
            locks, unlocks = ("lock", number), ("unlock", number)
            for event in mine:
                chosen = disjoin(c for c, effect in event.cases if effect.arguments == (number,))
                held = event.count(locks) - event.count(unlocks)
                wanted = ONE if isinstance(event.stmt, ir.MutexUnlock) else ZERO
                wrong = (event.domain, chosen, negate(eq(held, wanted)))
                yield Obligation(f"mutex {number}: {at(event)}", "mutex", event.stmt.span, wrong)
            left = negate(eq(trace.total(locks), trace.total(unlocks)))
            yield Obligation(f"mutex {number} of {agent} at the end", "mutex", mine[0].stmt.span, (left,))
    if not kernel.compiled.target.has_mutex:
        for event in events:
            if isinstance(event.stmt, (ir.MutexLock, ir.MutexUnlock)):
                yield Obligation(f"no mutex on this target: {at(event)}", "legal", event.stmt.span)


def _meetings(kernel: Closed, events: list[Event]) -> Iterator[Obligation]:
    """Every agent reaches sync_all equally often."""
    meetings = [e for e in events if isinstance(e.stmt, ir.SyncAll)]
    if not meetings:
        return
    agents = list(kernel.traces)
    for agent in agents[1:]:
        differ = negate(eq(total(kernel, agents[0], ("meet", 0)), total(kernel, agent, ("meet", 0))))
        name = f"sync_all of {agents[0]} and {agent}"
        yield Obligation(name, "meetings", meetings[0].stmt.span, (differ,))


# ------------------------------------------------------------------------------------------------ rings


def _rings(kernel: Closed, events: list[Event]) -> Iterator[Obligation]:
    messages = [e for e in events if isinstance(e.stmt, (ir.Push, ir.Pop, ir.Free))]
    if kernel.resolver.rings and kernel.compiled.target.frees_at == "tfree":
        yield from _lifetimes(kernel, events)
    for number, ring in enumerate(kernel.resolver.rings):
        span = ring.declared.span
        if kernel.compiled.kernel.credits != "per_slot":
            uneven = ring.slots < 1 or ring.slots % batch(ring.slots)
            conditions = () if uneven else (FALSE,)
            yield Obligation(f"slots of {ring} under batched credits", "fifo", span, conditions)
        for lane in range(ring.lanes):
            taking = (number, lane)
            ends = ("aic", f"aiv{lane}") if ring.sender == "cube" else (f"aiv{lane}", "aic")
            mine = [e for e in messages if e.can("rings", taking)]
            pushed, popped = total(kernel, ends[0], ("push", taking)), total(kernel, ends[1], ("pop", taking))
            name = f"{ring}, sub-core {lane}"
            yield Obligation(f"pushes and pops of {name}", "balance", span, (negate(eq(pushed, popped)),))
            if kernel.compiled.target.frees_at == "tfree":
                freed = total(kernel, ends[1], ("free", taking))
                yield Obligation(f"pops and frees of {name}", "fifo", span, (negate(eq(popped, freed)),))
            yield from _ring(kernel, name, taking, ring.slots, mine)


def _ring(kernel: Closed, name: str, taking: tuple[int, int], slots: int, events: list[Event]) -> Iterator[Obligation]:
    release = "free" if kernel.compiled.target.frees_at == "tfree" else "pop"
    kinds: dict[type, list[Event]] = {
        k: [e for e in events if isinstance(e.stmt, k)] for k in (ir.Push, ir.Pop, ir.Free)
    }
    if release == "pop":
        kinds[ir.Free] = []  # a tfree does nothing
    for kind in kinds.values():
        yield from _determined(name, "rings", taking, kind)
    for push in kinds[ir.Push]:
        for source in kinds[ir.Free if release == "free" else ir.Pop]:
            relation = _ranked(taking, (release, "push"), source, push, slots)
            text = f"slots of {name}: {at(source)}, {at(push)}"
            yield Obligation(text, "fifo", push.stmt.span, need=Order(source, push, relation))
        for pop in kinds[ir.Pop]:
            if push.task is not None and pop.task is not None:
                yield _message_round(kernel, taking, name, push, pop)
    for free in kinds[ir.Free]:
        for pop in kinds[ir.Pop]:
            relation = _ranked(taking, ("pop", "free"), pop, free, None)
            text = f"popped before freed, {name}: {at(pop)}, {at(free)}"
            yield Obligation(text, "fifo", free.stmt.span, need=Order(pop, free, relation))


def _ranked(taking: tuple[int, int], keys: tuple[str, str], one: Event, other: Event, slots: int | None) -> Relation:
    """Operations with equal numbers, or (with `slots`) at least that many apart."""
    chosen = [e.when("rings", taking) for e in (one, other)]

    def relation(a: Instance, b: Instance) -> Cond:
        first, second = a.count((keys[0], taking)), b.count((keys[1], taking))
        related = eq(first, second) if slots is None else le(first + slots - second)
        return conjoin((a.cond(chosen[0]), b.cond(chosen[1]), related))

    return relation


def _lifetimes(kernel: Closed, events: list[Event]) -> Iterator[Obligation]:
    """A popped message is not used, or freed again, after it was freed, until the name gets a new content."""
    for free in (e for e in events if isinstance(e.stmt, ir.Free)):
        assert isinstance(free.stmt, ir.Free)
        value = free.stmt.value
        for use in (e for e in events if e.agent == free.agent and _uses(kernel, e, value)):
            one, other = pair(free, use, kernel.sums)
            renewed = ("renew", value)
            kept = eq(one.count(renewed), other.count(renewed))
            conditions = (one.domain, other.domain, precedes(one.place, other.place), kept)
            name = f"{value} is not used after its free: {at(free)}, {at(use)}"
            yield Obligation(name, "fifo", use.stmt.span, conditions)


def _uses(kernel: Closed, event: Event, value: str) -> bool:
    match event.stmt:
        case ir.Push(value=name) | ir.Free(value=name):
            return name == value
        case ir.DataOp(reads=reads):
            return value not in kernel.resolver.layout.depths and any(a.name == value for a in reads)
    return False


def _message_round(kernel: Closed, taking: tuple[int, int], name: str, push: Event, pop: Event) -> Obligation:
    """A message is popped for the task that it was pushed for."""
    one, other = pair(push, pop, kernel.sums)
    assert push.task is not None and pop.task is not None
    same = _ranked(taking, ("push", "pop"), push, pop, None)(one, other)
    differ = negate(eq(one.lin(push.task), other.lin(pop.task)))
    conditions = (one.domain, other.domain, same, differ)
    return Obligation(f"task of {name}: {at(push)}, {at(pop)}", "fifo", pop.stmt.span, conditions)


# ------------------------------------------------------------------------------------------------ accumulator flags


def _flags(kernel: Closed, events: list[Event]) -> Iterator[Obligation]:
    """The unit_flag of every accumulator alternates in program order, and is 0 at the end."""
    phased = [e for e in events if any(effect.phase is not None for _, effect in e.cases)]
    for event in events:
        yield from _phase_operands(kernel, event)
    cells = dict.fromkeys((e.agent, c) for e in phased for _, effect in e.cases for c in effect.phased)
    for agent, cell in cells:
        raised, lowered = ("raise", cell), ("lower", cell)
        mine = [e for e in phased if e.agent == agent and e.can("phased", cell)]
        for event in mine:
            produces = any(effect.phase is not None and effect.phase[0] == "produce" for _, effect in event.cases)
            up = event.count(raised) - event.count(lowered)
            wrong = (event.domain, event.when("phased", cell), negate(eq(up, ZERO if produces else ONE)))
            yield Obligation(f"accumulator flag: {at(event)}", "phases", event.stmt.span, wrong)
        left = negate(eq(total(kernel, agent, raised), total(kernel, agent, lowered)))
        yield Obligation("accumulator flag at the end", "phases", mine[0].stmt.span, (left,))
        for role in ("produce", "consume"):
            same = [e for e in mine if any(effect.phase and effect.phase[0] == role for _, effect in e.cases)]
            yield from _determined(f"the accumulator ({role})", "phased", cell, same)
            if role == "produce":
                yield from _early(kernel, cell, same)


def _early(kernel: Closed, cell: int, events: list[Event]) -> Iterator[Obligation]:
    """No matmul adds to a sum that ended in Final."""
    for one in events:
        for other in events:
            adds = any(cell in touch.cells for _, effect in other.cases for touch in effect.reads)
            if not adds or not any(effect.phase and effect.phase[1] for _, effect in one.cases):
                continue
            a, b = pair(one, other, kernel.sums)
            next_ = eq(a.count(("produce", cell)) + 1, b.count(("produce", cell)))
            both = (a.cond(one.when("phased", cell)), b.cond(other.when("phased", cell)))
            name = f"adding after Final: {at(one)}, {at(other)}"
            yield Obligation(name, "phases", other.stmt.span, (a.domain, b.domain, *both, next_))


def _phase_operands(kernel: Closed, event: Event) -> Iterator[Obligation]:
    """Phases of the right family, on operations and a target that have them."""
    stmt = event.stmt
    if not isinstance(stmt, ir.DataOp) or stmt.phase is None:
        return
    spaces = kernel.resolver.layout.spaces
    to_vec = any(spaces.get(a.name) == "Vec" for a in stmt.writes)
    from_acc = any(spaces.get(a.name) == "Acc" for a in stmt.reads)
    faults = {
        "no unit_flag on this target": not kernel.compiled.target.has_unit_flag,
        "phase of the wrong family": stmt.family not in (None, "Acc" if stmt.pipe == "M" else "ST"),
        "phase on a move that is not Acc -> Vec": stmt.op == "move" and not (to_vec and from_acc),
        "move with both a phase and an offset": stmt.op == "move" and stmt.offset,
        "operands of a phased operation": not event.cases,
    }
    for text, wrong in faults.items():
        if wrong:
            yield Obligation(f"{text}: {at(event)}", "phases", stmt.span, (TRUE,))
