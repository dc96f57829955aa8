"""Signal faults: what are a hang, a leftover and a wrong count called? (rows 2 to 6)"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fencepost import ir
from fencepost.diagnose.repair import Repairs, core_of
from fencepost.diagnose.roles import Protocol
from fencepost.diagnose.texts import channel as channel_text
from fencepost.diagnose.texts import describe, family, plural
from fencepost.facts import Fact
from fencepost.findings import Related, Severity
from fencepost.model.executor import Blocked, Leftover, Op, Run
from fencepost.model.interleave import Outcome, explore

Data = tuple[tuple[str, str], ...]


def modes(run: Run) -> Iterator[Fact]:
    """304: the two ends of a cross-core pair name different modes."""
    by_id: dict[tuple[ir.Core, int], dict[type, dict[str, Op]]] = {}
    for ops in run.issued.values():
        for op in ops:
            stmt = op.stmt
            if not isinstance(stmt, (ir.SetCross, ir.WaitCross)):
                continue
            core = core_of(op.effect.agent)
            sender: ir.Core = core if isinstance(stmt, ir.SetCross) else "vector" if core == "cube" else "cube"
            if stmt.mode in ("INTER_SUBBLOCK", "INTER_BLOCK"):
                sender = core
            number = op.effect.arguments[0] % 16
            by_id.setdefault((sender, number), {}).setdefault(type(stmt), {}).setdefault(stmt.mode, op)
    for (sender, number), ends in by_id.items():
        sets, waits = ends.get(ir.SetCross, {}), ends.get(ir.WaitCross, {})
        if sets and waits and set(sets) != set(waits):
            mode, one = next((m, o) for m, o in [*waits.items(), *sets.items()] if (m in waits) != (m in sets))
            other, two = next((m, o) for m, o in [*sets.items(), *waits.items()] if m != mode)
            data = (("channel", f"event {number} from the {sender} side"), ("mode", mode), ("other_mode", other))
            related = (Related(two.stmt.span, f"the other end: {describe(two)}, mode {other}"),)
            yield Fact("304", one.stmt.span, data, related, ("mode", sender, number))


def hangs(run: Run, protocol: Protocol) -> Iterator[Fact]:
    """301, 306, 601, 606 (and 70x, 80x): what a run that does not end waits for."""
    roots = [b for b in run.blocked if b.reason not in ("lock", "drain")]
    starved = [f for b in roots for f in _starved(run, protocol, b)]
    if starved:
        yield from starved
        return
    if any(b.reason == "push" for b in roots):
        yield from _full_ring(run, roots)
        return
    phases = [b for b in roots if b.reason == "phase"]
    if phases:
        yield from _phase_hang(run, phases)
        return
    if roots:
        yield _cycle(run, roots)


def _starved(run: Run, protocol: Protocol, blocked: Blocked) -> Iterator[Fact]:
    """A wait whose signal nobody ever issues, whatever the schedule."""
    op = blocked.op
    if blocked.reason == "channel":
        for number in blocked.on:
            sets, waits = protocol.sets.get(number, []), protocol.waits[number]
            rank = waits.index(op)
            if len(sets) > rank:
                continue
            yield from _partner(run, protocol, number, op)
            yield _never_set(run, number, op, len(sets), rank)
    elif blocked.reason == "pop":
        pushes = _issued(run, ir.Push, blocked.on[0])
        rank = next(i for i, p in enumerate(_issued_by(run, ir.Pop, blocked.on[0], op.effect.agent)) if p is op)
        if pushes <= rank:
            ring = run.resolver.rings[blocked.on[0]]
            detail = f"{describe(op)} waits for message {rank} of {ring}, but only {pushes} are pushed"
            yield Fact("703", op.stmt.span, (("detail", detail),), cause=("messages", blocked.on[0]))
    elif blocked.reason == "meet":
        counts = {a: sum(o.effect.meets for o in ops) for a, ops in run.issued.items()}
        if len(set(counts.values())) > 1:
            text = ", ".join(f"{agent} {count}" for agent, count in counts.items())
            yield Fact("606", op.stmt.span, (("detail", f"sync_all is reached by {text} times"),), cause="sync_all")


def _issued_by(run: Run, kind: type, ring: int, agent: str) -> list[Op]:
    return [o for o in run.issued[agent] if isinstance(o.stmt, kind) and any(r == ring for r, _ in o.effect.rings)]


def _issued(run: Run, kind: type, ring: int) -> int:
    """The fewest operations of this kind that any participating agent of the ring issues."""
    core = run.resolver.rings[ring].sender
    if kind is not ir.Push:
        core = "vector" if core == "cube" else "cube"
    counts = [len(_issued_by(run, kind, ring, a)) for a in run.issued if core_of(a) == core]
    lanes = run.resolver.rings[ring].lanes
    return min(counts[:lanes] if core == "vector" else counts, default=0)


def _partner(run: Run, protocol: Protocol, number: int, op: Op) -> Iterator[Fact]:
    """601: the other vector sub-core signals more often than this one."""
    channel = run.channels[number]
    if channel.kind != "cross" or op.effect.agent != "aic" or len(op.effect.waits) < 2:
        return
    twin = next(n for n in op.effect.waits if n != number)
    mine, theirs = protocol.sets.get(number, []), protocol.sets.get(twin, [])
    if len(mine) >= len(theirs):
        return
    data = (
        ("channel", str(channel)),
        ("agent", channel.sender),
        ("other_agent", run.channels[twin].sender),
        ("count", str(len(mine))),
        ("other_count", str(len(theirs))),
    )
    setter = theirs[len(mine)]
    related = (Related(op.stmt.span, f"waits for both: {describe(op)}"),)
    yield Fact("601", setter.stmt.span, data, related, ("hang", family(op)))


def _never_set(run: Run, number: int, op: Op, sets: int, rank: int) -> Fact:
    channel = run.channels[number]
    data = (
        ("sync", describe(op)),
        ("channel", str(channel)),
        ("sets", str(sets)),
        ("rank", str(rank + 1)),
    )
    return Fact("301", op.stmt.span, data, cause=("hang", family(op)))


def _full_ring(run: Run, roots: list[Blocked]) -> Iterator[Fact]:
    for b in roots:
        if b.reason == "push":
            ring = run.resolver.rings[b.on[0]]
            detail = (
                f"{describe(b.op)} waits for ever for a free slot of {ring} ({plural(ring.slots, 'slot')}, "
                f"credits {run.credits}): the receiver is itself blocked"
            )
            related = tuple(
                Related(o.op.stmt.span, f"also blocked: {describe(o.op)}") for o in roots if o.op is not b.op
            )
            yield Fact("702", b.op.stmt.span, (("detail", detail),), related, ("ring", ring.sender, ring.id))


def _phase_hang(run: Run, blocked: list[Blocked]) -> Iterator[Fact]:
    for b in blocked:
        assert b.op.effect.phase is not None
        if b.op.effect.phase[0] == "consume":
            detail = f"{describe(b.op)} waits for ever: no matmul into this accumulator ends with phase = Final"
            code = "802"
        else:
            detail = f"{describe(b.op)} waits for ever: no read of the accumulator hands it back with phase = Final"
            code = "803"
        yield Fact(code, b.op.stmt.span, (("detail", detail),), cause=("phase", code))


def _cycle(run: Run, roots: list[Blocked]) -> Fact:
    parts = []
    for b in roots:
        if b.reason == "channel":
            on = ", ".join(channel_text(run, n) for n in b.on)
        else:
            on = {"pop": "a message", "push": "a free slot", "meet": "sync_all", "phase": "the accumulator flag"}.get(
                b.reason, b.reason
            )
        parts.append(f"{describe(b.op)} waits for {on}")
    related = tuple(Related(b.op.stmt.span, f"waits here: {describe(b.op)}") for b in roots[1:])
    return Fact("306", roots[0].op.stmt.span, (("detail", "; ".join(parts)),), related, ("cycle",))


def leftovers(run: Run, protocol: Protocol, repairs: Repairs) -> Iterator[Fact]:
    """206, 302, 404: signals that nobody takes."""
    seen: set[object] = set()
    for left in run.leftovers:
        channel = run.channels[left.channel]
        op = left.ops[-1]
        cause = ("left", channel.kind, family(op))
        if cause in seen:
            continue
        seen.add(cause)
        sets, waits = len(protocol.sets[left.channel]), len(protocol.waits.get(left.channel, []))
        if channel.kind == "flag":
            yield Fact("404", op.stmt.span, (("flag", str(channel)), ("detail", "still set at the end")), cause=cause)
            continue
        data: Data = (
            ("channel", str(channel)),
            ("count", str(len(left.ops))),
            ("sets", str(sets)),
            ("waits", str(waits)),
        )
        if protocol.role(left.channel) == "release" and _drain_repairs(run, left, repairs):
            yield Fact("206", op.stmt.span, data, cause=cause)
        yield Fact("302", op.stmt.span, data, cause=cause)


def _drain_repairs(run: Run, left: Leftover, repairs: Repairs) -> bool:
    """Whether waits at the end of the receiving side, one per signal left by this protocol, repair the leftover."""
    mine = family(left.ops[-1])
    channel = run.channels[left.channel]
    waits = [s for s in waits_in_text(run, left.channel) if isinstance(s, ir.WaitCross)]
    if not waits:
        return False
    drains: list[ir.Stmt] = []
    for other in run.leftovers:
        peer = run.channels[other.channel]
        if family(other.ops[-1]) == mine and peer.kind == channel.kind and peer.lane == channel.lane:
            drains += [replace(waits[-1], id=ir.Int(peer.id), lane=None)] * len(other.ops)
    receiver: ir.Core = "cube" if channel.receiver in ("cube", "aic") else "vector"
    edited = replace(repairs.kernel, body=(*repairs.kernel.body, ir.Section(receiver, tuple(drains))))
    return repairs.everywhere(edited, ("leftover", str(channel)))


def waits_in_text(run: Run, number: int) -> list[ir.WaitCross]:
    """The waits of the receiving side's text that could take this channel's id, executed or not."""
    channel = run.channels[number]
    receiver = "cube" if channel.receiver in ("cube", "aic") else "vector"
    found: list[ir.WaitCross] = []
    for program in run.compiled.programs:
        if core_of(program.agent) != receiver:
            continue
        for site in program.sites:
            if isinstance(site, ir.WaitCross) and (not isinstance(site.id, ir.Int) or site.id.value % 16 == channel.id):
                found.append(site)
    return found


def counts(run: Run, protocol: Protocol) -> Iterator[Fact]:
    """401 and 403: the issued sets and waits of a channel differ, whether or not the run ends."""
    seen: set[object] = set()
    for number, channel in enumerate(run.channels):
        sets, waits = protocol.sets.get(number, []), protocol.waits.get(number, [])
        if channel.kind == "flag" or len(sets) == len(waits):
            continue
        anchor, other = (sets, waits) if len(sets) > len(waits) else (waits, sets)
        cause = ("count", channel.kind, family(anchor[-1]))
        if cause in seen:
            continue
        seen.add(cause)
        data = (("channel", str(channel)), ("sets", str(len(sets))), ("waits", str(len(waits))))
        related = (Related(other[-1].stmt.span, f"the other end: {describe(other[-1])}"),) if other else ()
        code = "403" if _mixed(protocol, number) else "401"
        yield Fact(code, anchor[-1].stmt.span, data, related, cause)


def _mixed(protocol: Protocol, number: int) -> bool:
    """A RELEASE that is issued before any use, while the producer's first writes do not wait for it."""
    sets, waits = protocol.sets.get(number, []), protocol.waits.get(number, [])
    if not sets or not waits or protocol.role(number) != "release":
        return False
    ahead = protocol.previous_access(sets[0]) is None
    first = protocol.previous_access(waits[0])
    return ahead and first is not None and first[1]


def capacity(run: Run, protocol: Protocol) -> Iterator[Fact]:
    """402, and 404 for a flag that is set while it is still set."""
    seen: set[object] = set()
    for over in run.overflows:
        channel = run.channels[over.channel]
        key = (channel.kind, family(over.op))
        if key in seen:
            continue
        seen.add(key)
        if channel.kind == "flag":
            data: Data = (("flag", str(channel)), ("detail", "set again while it can still be set"))
            yield Fact("404", over.op.stmt.span, data, cause=("twice", key))
        else:
            data = (("channel", str(channel)), ("pending", str(over.pending)), ("capacity", str(channel.capacity)))
            yield Fact("402", over.op.stmt.span, data, cause=("capacity", key))


def contested(run: Run, protocol: Protocol) -> Iterator[Fact]:
    """307: an error if schedules differ in a property, else a warning."""
    outcome: Outcome | None = None
    seen: set[tuple[int, int]] = set()
    for pair in run.contested:
        key = (id(pair.first.stmt), id(pair.second.stmt))
        if key in seen:
            continue
        seen.add(key)
        if outcome is None:
            outcome = Outcome("deadlock") if run.blocked else explore(run)
        differs = outcome.kind != "same" or bool(run.races)
        if outcome.kind == "deadlock" and not run.blocked:
            stuck = ", ".join(describe(op) for op in outcome.stuck[:2])
            what = f"{pair.what}; in some schedule {stuck} then waits for ever"
        else:
            what = pair.what
        name = channel_text(run, pair.channel) if pair.channel is not None else "the accumulator or ring"
        data = (("channel", name), ("first", describe(pair.first)), ("second", describe(pair.second)), ("what", what))
        related = (Related(pair.first.stmt.span, f"unordered with: {describe(pair.first)}"),)
        severity = None if differs else Severity.WARNING
        yield Fact("307", pair.second.stmt.span, data, related, ("contested", name), severity)


def mutexes(run: Run, protocol: Protocol) -> Iterator[Fact]:
    """405: explicit locks and unlocks that do not alternate."""
    details = {
        "unlocked": "unlocked without being locked",
        "relocked": "locked again before it was unlocked",
        "held": "never unlocked",
    }
    seen: set[tuple[str, int]] = set()
    for fault in run.mutex_faults:
        if (fault.kind, id(fault.op.stmt)) not in seen:
            seen.add((fault.kind, id(fault.op.stmt)))
            data = (("mutex", f"mutex {fault.op.effect.arguments[0]}"), ("detail", details[fault.kind]))
            yield Fact("405", fault.op.stmt.span, data, cause=("mutex", fault.op.effect.arguments))
