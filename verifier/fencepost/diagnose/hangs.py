"""Hangs: what does a run that does not end wait for? (301, 306; rings and phases: 702, 802, 803)"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from fencepost import ir
from fencepost.diagnose.case import Case
from fencepost.diagnose.repair import Signature
from fencepost.diagnose.signals import hung
from fencepost.diagnose.texts import at, describe, together, twins
from fencepost.facts import Fact
from fencepost.findings import Related
from fencepost.model.executor import Blocked, Op, Run
from fencepost.phrases import plural

_MORE_SLOTS = (1, 2, 3, 4, 6, 8)


def hangs(case: Case) -> Iterator[Fact]:
    """Why a run hangs: waits that nothing can ever satisfy, else the cycle of waits.

    Rings whose pushes and pops differ are left to `messages`, sync_all to `participants`.
    """
    blocked = case.run.blocked
    if not blocked:
        return
    roots = [b for b in blocked if b.reason not in ("lock", "drain")] or blocked
    signals = [b for b in roots if b.reason == "channel" and _starved_channels(case, b)]
    if signals:
        yield _never_set(case, signals)
    phases = [b for b in roots if b.reason == "phase" and _starved_phase(case, b)]
    yield from _phases(case, phases)
    if signals or phases or any(_starved_ring(case, b) or _uneven_meeting(case, b) for b in roots):
        return
    if any(b.reason == "push" for b in roots):
        yield _full_ring(case, roots)
    else:
        yield cycle(case, roots)


def _blocked_text(ops: list[Op]) -> tuple[Related, ...]:
    return tuple(Related(group[0].stmt.span, f"also waits for ever: {together(group)}") for group in twins(ops))


# ------------------------------------------------------------------------------------------------ nothing comes


def _starved_channels(case: Case, blocked: Blocked) -> list[int]:
    """The channels of a wait that nobody ever sets often enough, whatever the schedule."""
    protocol = case.protocol
    return [n for n in blocked.on if len(protocol.sets.get(n, [])) <= protocol.rank(n, blocked.op)]


def _never_set(case: Case, starved: list[Blocked]) -> Fact:
    """301, one for all waits of the run that nothing satisfies."""
    first = starved[0]
    channels = _starved_channels(case, first)
    families = list(dict.fromkeys(case.family(b.op) for b in starved))
    faults: Signature = hung(case.run)
    own: Hashable = ("signals", families[0])
    case.aliases += [(("signals", other), own) for other in families[1:]]
    data = (
        ("sync", together([b.op for b in starved if b.op.stmt is first.op.stmt])),
        ("channel", case.channel(*channels)),
        ("sets", str(len(case.protocol.sets.get(channels[0], [])))),
        ("rank", str(case.protocol.rank(channels[0], first.op) + 1)),
    )
    others = _blocked_text([b.op for b in starved if b.op.stmt is not first.op.stmt])
    return Fact("301", first.op.stmt.span, data, others, own, operations=(at(first.op),), faults=faults)


def _starved_ring(case: Case, blocked: Blocked) -> bool:
    """Whether a push or pop waits for an operation that the peer never issues."""
    if blocked.reason == "pop":
        return any(
            sum(1 for _ in _issued(case, ir.Push, ring, lane)) <= _place(case, blocked.op, ring)
            for ring, lane in blocked.op.effect.rings
        )
    if blocked.reason == "push":
        frees = ir.Free if case.run.compiled.target.frees_at == "tfree" else ir.Pop
        return any(
            sum(1 for _ in _issued(case, frees, ring, lane))
            <= _place(case, blocked.op, ring) - case.run.resolver.rings[ring].slots
            for ring, lane in blocked.op.effect.rings
        )
    return False


def _issued(case: Case, kind: type, ring: int, lane: int) -> Iterator[Op]:
    """The operations of one kind on one lane of a ring, executed or not."""
    for ops in case.run.issued.values():
        for op in ops:
            if isinstance(op.stmt, kind) and (ring, lane) in op.effect.rings:
                yield op


def _place(case: Case, op: Op, ring: int) -> int:
    """Which push (or pop) of the ring `op` is in its agent's program, from 0."""
    before = case.run.issued[op.effect.agent][: op.number]
    return sum(type(o.stmt) is type(op.stmt) and any(r == ring for r, _ in o.effect.rings) for o in before)


def _uneven_meeting(case: Case, blocked: Blocked) -> bool:
    return blocked.reason == "meet" and len({sum(o.effect.meets for o in ops) for ops in case.run.issued.values()}) > 1


def _starved_phase(case: Case, blocked: Blocked) -> bool:
    """Whether the hand-over that an accumulator operation waits for is never issued."""
    op = blocked.op
    assert op.effect.phase is not None
    role = op.effect.phase[0]
    before = case.run.issued[op.effect.agent][: op.number]
    for cell in op.effect.phased:
        mine = sum(_final(o, role, cell) for o in before)
        peer = "consume" if role == "produce" else "produce"
        theirs = sum(_final(o, peer, cell) for ops in case.run.issued.values() for o in ops)
        if theirs < mine + (role == "consume"):
            return True
    return False


def phase_cause(run: Run, op: Op, code: str) -> Hashable:
    """The cause of a hand-over that fails at `op`: the other side may have no phase at all (801)."""
    cells = set(op.effect.phased)
    buffer = next(t.access.name for t in (*op.effect.writes, *op.effect.reads) if cells & set(t.cells))
    for ops in run.issued.values():
        for other in ops:
            touched = (*other.effect.writes, *other.effect.reads)
            if other.effect.phase is None and any(cells & set(t.cells) for t in touched):
                return "phase pair", buffer
    return "phase", code, buffer


def _final(op: Op, role: str, cell: int) -> bool:
    return op.effect.phase == (role, True) and cell in op.effect.phased


def _phases(case: Case, blocked: list[Blocked]) -> Iterator[Fact]:
    """802 and 803."""
    seen: set[str] = set()
    for b in blocked:
        assert b.op.effect.phase is not None
        if b.op.effect.phase[0] == "consume":
            code, why = "802", "no matmul into this accumulator ends with phase = Final"
        else:
            code, why = "803", "no read of the accumulator hands it back with phase = Final"
        if code not in seen:
            seen.add(code)
            detail = (("detail", f"{describe(b.op)} waits for ever: {why}"),)
            cause = phase_cause(case.run, b.op, code)
            yield Fact(code, b.op.stmt.span, detail, cause=cause, operations=(at(b.op),), faults=hung(case.run))


# ------------------------------------------------------------------------------------------------ cycles


def _waits_for(case: Case, blocked: Blocked) -> str:
    match blocked.reason:
        case "channel":
            return case.channel(*blocked.on)
        case "pop":
            return f"a message of {case.run.resolver.rings[blocked.on[0]]}"
        case "push":
            return f"a free slot of {case.run.resolver.rings[blocked.on[0]]}"
        case "meet":
            return "the other cores at sync_all"
        case "phase":
            return "the unit flag of the accumulator"
        case "lock":
            return "a mutex"
        case "drain":
            return "the other pipes of its core"


def _parts(case: Case, roots: list[Blocked]) -> list[str]:
    """Who waits for what, both sub-cores together."""
    parts = []
    for ops in twins(b.op for b in roots):
        mine = [b for b in roots if b.op in ops]
        on = tuple(dict.fromkeys(n for b in mine for n in b.on))
        parts.append(f"{together(ops)} waits for {_waits_for(case, replace(mine[0], on=on))}")
    return parts


def cycle(case: Case, roots: list[Blocked]) -> Fact:
    """306: waits that wait for each other."""
    first = roots[0].op
    faults = hung(case.run)
    places = tuple(
        Related(ops[0].stmt.span, f"waits here: {together(ops)}")
        for ops in twins(b.op for b in roots)
        if ops[0].stmt is not first.stmt
    )
    detail = (("detail", "; ".join(_parts(case, roots))),)
    cause = ("cycle",)
    return Fact("306", first.stmt.span, detail, places, cause, operations=(at(first),), faults=faults)


def _full_ring(case: Case, roots: list[Blocked]) -> Fact:
    """702: everybody waits, and somebody for a free slot."""
    run = case.run
    first = next(b for b in roots if b.reason == "push")
    full = [run.resolver.rings[n] for b in roots if b.reason == "push" for n in b.on[:1]]
    sizes = ", ".join(dict.fromkeys(f"{ring} has {plural(ring.slots, 'slot')}" for ring in full))
    detail = (
        f"{'; '.join(_parts(case, [first, *(b for b in roots if b is not first)]))} ({sizes}, credits {run.credits})"
    )
    names = frozenset(ring.declared.name for ring in full)
    enough = _enough_slots(case, names)
    if enough:
        detail += f"; {enough} would do for these values"
    places = tuple(
        Related(ops[0].stmt.span, f"also blocked: {together(ops)}")
        for ops in twins(b.op for b in roots)
        if ops[0].stmt is not first.op.stmt
    )
    cause = ("ring full",)
    operations = (at(first.op),)
    return Fact(
        "702", first.op.stmt.span, (("detail", detail),), places, cause, operations=operations, faults=hung(run)
    )


def _enough_slots(case: Case, names: frozenset[str]) -> str:
    """The smallest numbers of slots that avoid the hang, or "" if a few more slots do not help."""
    kernel = case.repairs.kernel
    sizes = {ring.declared.name: ring.slots for ring in case.run.resolver.rings}
    for more in _MORE_SLOTS:
        fifos = tuple(replace(f, slots=ir.Int(sizes[f.name] + more)) if f.name in names else f for f in kernel.fifos)
        if case.repairs.whole(replace(kernel, fifos=fifos)):
            return " and ".join(f"{sizes[f.name] + more} slots in {f.name}" for f in kernel.fifos if f.name in names)
    return ""
