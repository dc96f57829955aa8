"""Messages: what are faults of FIFOs called? (row fifo; rings that stay full are found by `hangs`)"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from fencepost import ir
from fencepost.diagnose.case import Case
from fencepost.diagnose.repair import Signature
from fencepost.diagnose.signals import hung
from fencepost.diagnose.texts import at, describe, related
from fencepost.facts import Fact
from fencepost.findings import Related, Severity
from fencepost.model.effects import MessageRing, Resolver
from fencepost.model.executor import MessageFault, Op, Run
from fencepost.model.lifetimes import misused
from fencepost.phrases import plural


def messages(case: Case) -> Iterator[Fact]:
    """701, 703, 706, 707, 708: FIFO faults of one run, one per ring and kind."""
    run = case.run
    yield from _counts(case)
    seen: set[Hashable] = set()
    for fault in run.message_faults:
        ring = run.resolver.rings[fault.ring]
        if fault.kind == "left" or (fault.kind == "overrun" and leaves_unguarded(run.resolver, ring)):
            continue  # told by the counts, and by the text of the declaration
        if fault.kind == "unfreed" and _lanes(run, fault.ring) is not None:
            continue  # one sub-core does not take part
        code, detail = _message(fault)
        cause = (code, ring.sender, ring.id)
        if cause in seen:
            continue
        seen.add(cause)
        places = () if fault.other is None else (related(fault.other, _OTHER[fault.kind]),)
        operations = (at(fault.op),) if fault.other is None else (at(fault.other), at(fault.op))
        faults: Signature = frozenset({("message", fault.kind, fault.ring)})
        data = (("detail", f"{ring}: {detail}"),)
        yield Fact(code, fault.op.stmt.span, data, places, cause, operations=operations, faults=faults)


_OTHER = {
    "overrun": "the release of the slot",
    "unfreed": "the pop",
    "free-unpopped": "the pop",
    "use-after-free": "freed here",
    "freed-twice": "freed here first",
    "round": "the push",
}


def _message(fault: MessageFault) -> tuple[str, str]:
    op = describe(fault.op)
    match fault.kind:
        case "overrun":
            return "706", f"{op} (message {fault.op.message}) is not ordered after the release of the slot it reuses"
        case "unfreed":
            return "707", f"{plural(fault.count, 'message')} popped and never freed"
        case "free-unpopped":
            return "707", f"{op} frees a message that is not popped by then"
        case "use-after-free":
            return "707", f"{op} uses a message after its slot was freed"
        case "freed-twice":
            return "707", f"{op} frees a message whose slot was freed before"
        case "round":
            other = fault.other.task if fault.other is not None else None
            return "701", f"{op} receives the message of task {other} where task {fault.op.task} is meant"
        case "left":
            return "703", f"{plural(fault.count, 'message')} pushed and never popped"


def early_frees(run: Run) -> Iterator[Fact]:
    """A warning, 707, in a clean run where a free does nothing: uses of a message behind its free."""
    if run.compiled.target.frees_at != "pop":
        return
    buffers = frozenset(b.name for b in run.compiled.kernel.buffers)
    for ops in run.issued.values():
        for _, op, free in misused(ops, buffers):
            ring = run.resolver.rings[free.effect.rings[0][0]]
            what = "frees" if isinstance(op.stmt, ir.Free) else "uses"
            harmless = f"harmless on {run.compiled.target.name}, where a free does nothing"
            detail = (
                f"{ring}: {describe(op)} {what} a message after its free; {harmless}, but not on a5, where it gives "
                f"the slot back"
            )
            cause = ("707", ring.sender, ring.id)
            places = (related(free, "freed here"),)
            yield Fact(
                "707",
                op.stmt.span,
                (("detail", detail),),
                places,
                cause,
                Severity.WARNING,
                operations=(at(free), at(op)),
            )
            return


# ------------------------------------------------------------------------------------------------ counts


def _issued(run: Run, kind: type, ring: int, lane: int) -> list[Op]:
    return [
        op for ops in run.issued.values() for op in ops if isinstance(op.stmt, kind) and (ring, lane) in op.effect.rings
    ]


def _lanes(run: Run, number: int) -> tuple[list[Op], list[Op]] | None:
    """What the vector sub-cores push or pop on a ring of two lanes, if one does it more often: (fewer, more)."""
    ring = run.resolver.rings[number]
    if ring.lanes < 2:
        return None
    kind = ir.Push if ring.sender == "vector" else ir.Pop
    few, many = sorted((_issued(run, kind, number, lane) for lane in (0, 1)), key=len)
    return None if len(few) == len(many) else (few, many)


def _counts(case: Case) -> Iterator[Fact]:
    """Rings whose pushes and pops differ; in a run that hangs they are told together."""
    run = case.run
    found = [fact for number, ring in enumerate(run.resolver.rings) for fact in _uneven(case, number, ring)]
    if not run.blocked or len(found) < 2:
        yield from found
        return
    stuck = {at(b.op) for b in run.blocked}
    first = next((f for f in found if stuck & {*f.operations}), found[0])
    others = [f for f in found if f is not first]
    case.aliases += [(f.cause, first.cause) for f in others]
    places = tuple(Related(f.span, f"likewise {dict(f.values)['detail']}") for f in others)
    yield replace(first, related=(*first.related, *places))


def _uneven(case: Case, number: int, ring: MessageRing) -> Iterator[Fact]:
    """708 and 703: pushes and pops of a ring differ."""
    run = case.run
    cause: Hashable = ("messages", ring.sender, ring.id)
    faults: Signature = hung(run) or frozenset({("message", "left", number)})
    uneven = _lanes(run, number)
    if uneven is not None:
        few, many = uneven
        extra = many[len(few)]
        lane = next(lane for n, lane in extra.effect.rings if n == number)
        word = "pushes" if ring.sender == "vector" else "pops"
        detail = (
            f"{ring} has two lanes, but aiv{1 - lane} {word} {plural(len(few), 'message')} and aiv{lane} {len(many)}: "
            f"{describe(extra)} has no counterpart"
        )
        yield Fact("708", extra.stmt.span, (("detail", detail),), (), cause, operations=(at(extra),), faults=faults)
        return
    pushes, pops = _issued(run, ir.Push, number, 0), _issued(run, ir.Pop, number, 0)
    if len(pushes) == len(pops):
        yield from _unfreed(case, number, ring, pops)
        return
    told = f"{ring}: {plural(len(pushes), 'message')} pushed, {len(pops)} popped"
    if len(pushes) > len(pops):
        op = pushes[len(pops)]
        detail = f"{told}: nobody takes message {len(pops)}, that of {describe(op)}"
        places = (related(pops[-1], "the last pop"),) if pops else ()
    else:
        op = pops[len(pushes)]
        detail = f"{told}: {describe(op)} waits for ever"
        places = (related(pushes[-1], "the last push"),) if pushes else ()
    yield Fact("703", op.stmt.span, (("detail", detail),), places, cause, operations=(at(op),), faults=faults)


def _unfreed(case: Case, number: int, ring: MessageRing, pops: list[Op]) -> Iterator[Fact]:
    """707 in a run that hangs: slots that the receiver never frees (in a run that ends the executor counts them)."""
    run = case.run
    frees = _issued(run, ir.Free, number, 0)
    if not run.blocked or run.compiled.target.frees_at != "tfree" or len(frees) >= len(pops):
        return
    op = pops[len(frees)]
    detail = f"{ring}: {plural(len(pops), 'message')} popped, {len(frees)} freed: a push waits for the slot for ever"
    cause = ("707", ring.sender, ring.id)
    yield Fact("707", op.stmt.span, (("detail", detail),), (), cause, operations=(at(op),), faults=hung(run))


# ------------------------------------------------------------------------------------------------ slots


def period(slots: int) -> int:
    """How many credits travel together under batched credits."""
    return slots if slots <= 2 else slots // 2


def leaves_unguarded(resolver: Resolver, ring: MessageRing) -> bool:
    """Whether batched credits leave some pushes of a ring without a guard, whatever the parameters."""
    return resolver.compiled.kernel.credits != "per_slot" and (ring.slots < 1 or bool(ring.slots % period(ring.slots)))


def rings(resolver: Resolver) -> Iterator[Fact]:
    """706: a number of slots that batched credits leave unguarded."""
    for ring in resolver.rings:
        if leaves_unguarded(resolver, ring):
            detail = (
                f"{ring} has {plural(ring.slots, 'slot')}; batched credits travel {period(ring.slots)} at a time, so "
                f"some pushes are not held back and can overwrite an unread slot"
            )
            cause = ("706", ring.sender, ring.id)
            yield Fact("706", ring.declared.span, (("detail", detail),), cause=cause, static=True)
