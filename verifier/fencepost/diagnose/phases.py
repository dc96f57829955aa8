"""Phases: what are faults of the unit_flag hand-over called? (row phases, 605; hangs are found by `hangs`)"""

from __future__ import annotations

from collections.abc import Iterator

from fencepost import ir
from fencepost.diagnose.case import Case
from fencepost.diagnose.hangs import phase_cause
from fencepost.diagnose.races import phased_pair
from fencepost.diagnose.repair import race_fault
from fencepost.diagnose.texts import at, describe, related
from fencepost.facts import Fact
from fencepost.model.effects import Resolver
from fencepost.model.executor import Op, Run


def phases(case: Case) -> Iterator[Fact]:
    """801, 803, 807: unit_flag faults of one run."""
    run = case.run
    one_sided: set[str] = set()
    explained: set[int] = set()
    for race in run.races:
        if not phased_pair(race):
            continue
        one, two, buffer = race.first, race.second, race.touched.access.name
        explained |= set(race.touched.cells) | set(race.first_touched.cells)
        if buffer in one_sided:
            continue
        one_sided.add(buffer)
        phased, plain = (one, two) if one.effect.phase is not None else (two, one)
        detail = f"{describe(phased)} has a phase, {describe(plain)} has none and does not wait for it"
        yield Fact(
            "801",
            plain.stmt.span,
            (("detail", detail),),
            (related(phased, "the phase"),),
            ("phase pair", buffer),
            operations=(at(one), at(two)),
            faults=frozenset({race_fault(one.stmt, two.stmt)}),
        )
    left = [f for f in run.phase_faults if f.cell not in explained]
    for fault in left[:1]:
        detail = f"the flag that {describe(fault.op)} raised is never lowered by a read with phase = Final"
        faults = frozenset({("phase", fault.kind)})
        cause = phase_cause(run, fault.op, "803")
        operations = (at(fault.op),)
        yield Fact("803", fault.op.stmt.span, (("detail", detail),), (), cause, operations=operations, faults=faults)
    yield from early_final(run)


def early_final(run: Run) -> Iterator[Fact]:
    """807: an accumulating matmul after the Final of the same sum."""
    seen: set[int] = set()
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
                if id(before.stmt) in seen:
                    continue
                seen.add(id(before.stmt))
                detail = f"{describe(before)} is Final, but {describe(op)} still adds to the same sum"
                yield Fact(
                    "807",
                    before.stmt.span,
                    (("detail", detail),),
                    (related(op, "still adds"),),
                    ("early", before.stmt.span),
                    operations=(at(before), at(op)),
                    faults=frozenset({("early", id(before.stmt))}),
                )


def static(resolver: Resolver) -> Iterator[Fact]:
    """605, 804, 805, 806: features that the target or the operation does not have, whatever the parameters."""
    target, layout = resolver.compiled.target, resolver.layout
    for node in ir.walk(resolver.compiled.kernel):
        if isinstance(node, (ir.MutexLock, ir.MutexUnlock)) and not target.has_mutex:
            yield _static("605", node, f"target {target.name} has no mutex", "mutex")
        if not isinstance(node, ir.DataOp) or node.phase is None:
            continue
        family = "Acc" if node.pipe == "M" else "ST"
        if not target.has_unit_flag:
            detail = f"{node.op} has a phase, but target {target.name} has no unit_flag"
            yield _static("805", node, detail, "phase")
        if node.family is not None and node.family != family:
            yield _static("804", node, f"{node.op} takes {family}Phase, not {node.family}Phase")
        if node.op == "move":
            to_vec = any(layout.spaces.get(a.name) == "Vec" for a in node.writes)
            from_acc = any(layout.spaces.get(a.name) == "Acc" for a in node.reads)
            if not (to_vec and from_acc):
                yield _static("806", node, "a phase on a move that is not Acc -> Vec")
            elif node.offset:
                yield _static("806", node, "a move with both a phase and an offset")


def _static(code: str, node: ir.Node, detail: str, feature: str = "") -> Fact:
    """A fault of the text; one for the whole kernel where the target lacks a `feature`, else one per place."""
    return Fact(code, node.span, (("detail", detail),), cause=(code, feature or node.span), static=True)
