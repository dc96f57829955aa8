"""Messages and phases: what are faults of FIFOs and of the unit_flag called? (rows fifo and phases)"""

from __future__ import annotations

from collections.abc import Iterator

from fencepost import ir
from fencepost.diagnose.texts import describe, plural
from fencepost.facts import Fact
from fencepost.findings import Related
from fencepost.model.executor import MessageFault, Op, Run


def messages(run: Run) -> Iterator[Fact]:
    """701, 703, 706, 707: FIFO faults of one run (hangs are reported by the signals)."""
    seen: set[tuple[str, int]] = set()
    for fault in run.message_faults:
        if (fault.kind, fault.ring) in seen:
            continue
        seen.add((fault.kind, fault.ring))
        ring = run.resolver.rings[fault.ring]
        code, detail = _message(run, fault)
        related = () if fault.other is None else (Related(fault.other.stmt.span, describe(fault.other)),)
        yield Fact(code, fault.op.stmt.span, (("detail", f"{ring}: {detail}"),), related, ("fifo", code, fault.ring))


def _message(run: Run, fault: MessageFault) -> tuple[str, str]:
    op = describe(fault.op)
    match fault.kind:
        case "overrun":
            return "706", f"{op} (message {fault.op.message}) is not ordered after the release of the slot it reuses"
        case "left":
            return "703", f"{plural(fault.count, 'message')} pushed and never popped"
        case "unfreed":
            return "707", f"{plural(fault.count, 'message')} popped and never freed"
        case "free-unpopped":
            return "707", f"{op} frees a message that is not popped yet"
        case "use-after-free":
            return "707", f"{op} uses a message after its slot was freed"
        case "round":
            other = fault.other.task if fault.other is not None else None
            return "701", f"{op} receives the message of task {other} where task {fault.op.task} is meant"


def rings(kernel: ir.Kernel, run: Run) -> Iterator[Fact]:
    """706: a number of slots that batched credits leave unguarded, whatever the parameters."""
    if kernel.credits == "per_slot":
        return
    for ring in run.resolver.rings:
        period = ring.slots if ring.slots <= 2 else ring.slots // 2
        if ring.slots < 1 or ring.slots % period:
            detail = (
                f"{ring} has {plural(ring.slots, 'slot')}; batched credits travel {period} at a time, so some pushes "
                f"are not held back and can overwrite an unread slot"
            )
            yield Fact(
                "706", ring.declared.span, (("detail", detail),), cause=("slots", ring.sender, ring.id), static=True
            )


def phases(run: Run) -> Iterator[Fact]:
    """801, 803, 807: unit_flag faults of one run (hangs are reported by the signals)."""
    seen: set[tuple[str, int]] = set()
    for race in run.races:
        one, two = race.first, race.second
        if one.effect.agent == two.effect.agent and (one.effect.phase is None) != (two.effect.phase is None):
            phased, plain = (one, two) if one.effect.phase is not None else (two, one)
            if ("801", id(plain.stmt)) not in seen:
                seen.add(("801", id(plain.stmt)))
                detail = f"{describe(phased)} has a phase, {describe(plain)} has none and does not wait for it"
                related = (Related(phased.stmt.span, describe(phased)),)
                yield Fact(
                    "801", plain.stmt.span, (("detail", detail),), related, ("phase pair", race.touched.access.name)
                )
    if not run.races:
        for fault in run.phase_faults:
            if ("803", id(fault.op.stmt)) not in seen:
                seen.add(("803", id(fault.op.stmt)))
                detail = f"the flag that {describe(fault.op)} raised is never lowered by a read with phase = Final"
                yield Fact("803", fault.op.stmt.span, (("detail", detail),), cause=("phase", "803"))
    yield from early_final(run, seen)


def early_final(run: Run, seen: set[tuple[str, int]]) -> Iterator[Fact]:
    """807: an accumulating matmul after the Final of the same sum."""
    for ops in run.issued.values():
        last: dict[int, Op] = {}
        for op in ops:
            effect = op.effect
            if effect.phase is None or effect.phase[0] != "produce":
                continue
            reads = {c for t in effect.reads for c in t.cells}
            for cell in effect.phased:
                before = last.get(cell)
                last[cell] = op
                if before is None or cell not in reads or before.effect.phase is None or not before.effect.phase[1]:
                    continue
                if ("807", id(before.stmt)) in seen:
                    continue
                seen.add(("807", id(before.stmt)))
                detail = f"{describe(before)} is Final, but {describe(op)} still adds to the same sum"
                related = (Related(op.stmt.span, describe(op)),)
                yield Fact("807", before.stmt.span, (("detail", detail),), related, ("early", before.stmt.span))


def static(kernel: ir.Kernel, run: Run) -> Iterator[Fact]:
    """605, 804, 805, 806: features that the target or the operation does not have, whatever the parameters."""
    target = run.compiled.target
    layout = run.resolver.layout
    for node in ir.walk(kernel):
        if isinstance(node, (ir.MutexLock, ir.MutexUnlock)) and not target.has_mutex:
            detail = f"target {target.name} has no mutex"
            yield Fact("605", node.span, (("detail", detail),), cause=("mutex", target.name), static=True)
        if not isinstance(node, ir.DataOp) or node.phase is None:
            continue
        family = "Acc" if node.pipe == "M" else "ST"
        if not target.has_unit_flag:
            detail = f"{node.op} has a phase, but target {target.name} has no unit_flag"
            yield Fact("805", node.span, (("detail", detail),), cause=("phase", target.name), static=True)
        if node.family is not None and node.family != family:
            detail = f"{node.op} takes {family}Phase, not {node.family}Phase"
            yield Fact("804", node.span, (("detail", detail),), static=True)
        if node.op == "move":
            to_vec = any(layout.spaces.get(a.name) == "Vec" for a in node.writes)
            from_acc = any(layout.spaces.get(a.name) == "Acc" for a in node.reads)
            if not (to_vec and from_acc):
                yield Fact("806", node.span, (("detail", "a phase on a move that is not Acc -> Vec"),), static=True)
            elif node.offset:
                yield Fact("806", node.span, (("detail", "a move with both a phase and an offset"),), static=True)
