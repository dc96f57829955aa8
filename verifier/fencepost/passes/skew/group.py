"""How does a loop with several round trips per iteration run one round trip ahead, all its messages together?

The body is split into a *lead* (the pushes before the first pop, with what they depend on), a *tail* (what follows the
last push) and a *middle* (the rest).  The lead of the next iteration moves between middle and tail: while the peer
works on the last message of an iteration, this core sends the first of the next.  Every ring keeps its order, because
all pushes of an iteration still precede those of the next, and so do all pops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost import ir
from fencepost.defuse import Flows
from fencepost.passes.skew.halves import Body
from fencepost.passes.skew.loops import NewNames, trip_count
from fencepost.rewrite import constant, copy, offset


@dataclass(frozen=True, slots=True)
class Group:
    """The three parts of a body as statement indices; `recomputed` are in the lead and in the tail."""

    lead: tuple[int, ...]
    middle: tuple[int, ...]
    tail: tuple[int, ...]
    recomputed: tuple[int, ...]


def split_group(loop: ir.For, flows: Flows) -> Group | str:
    """Split the body of a cross-core loop, or say why it cannot run one round trip ahead."""
    body = Body(loop.body, flows)
    kinds = [(i, isinstance(s, ir.Push)) for i, s in enumerate(loop.body) if isinstance(s, ir.Push | ir.Pop)]
    first_pop = next(i for i, push in kinds if not push)
    last_push = max(i for i, push in kinds if push)
    leading = [i for i, push in kinds if push and i < first_pop]
    if not leading:
        return "the first message of an iteration is a pop"
    if not any(not push and i > last_push for i, push in kinds):
        return "no pop follows the last push of an iteration"
    if body.whole.jumps:
        return "a break or continue leaves an iteration early"
    if loop.var in body.whole.may:
        return "the body assigns the loop variable"
    if any(isinstance(n, ir.Push | ir.Pop) for s in loop.body if isinstance(s, ir.For | ir.If) for n in ir.walk(s)):
        return "a nested statement sends or takes messages"
    lead: set[int] = set()
    for i in leading:
        lead |= body.slice(i)
    for i in sorted(lead):
        for name in sorted(body.flows[i].exposed):
            if body.reaching(name, i)[1]:
                return f"the first pushes use the loop-carried value {name}"
    rest = [i for i in range(len(loop.body)) if i not in lead]
    passed = _passed(body, lead)
    if passed:
        return f"{passed} is used or computed between the statements that the first pushes depend on"
    tail = [i for i in rest if i > last_push]
    defined = frozenset[str]().union(*(body.flows[i].may for i in lead))
    recomputed: set[int] = set()
    twice = sorted(defined & frozenset[str]().union(*(body.flows[i].may for i in tail)))
    if twice:
        return f"{twice[0]} is computed before the first pop and again after the last push"
    for i in tail:
        for name in sorted(body.flows[i].exposed & defined):
            sources, from_before = body.reaching(name, i)
            for j in sources:
                again = body.recomputable(j) if j in lead else None
                if again is None or from_before:
                    return f"{name} is needed after the last push, when the next iteration has replaced it"
                recomputed |= again
    middle = tuple(i for i in rest if i <= last_push)
    return Group(tuple(sorted(lead)), middle, tuple(sorted({*tail, *recomputed})), tuple(sorted(recomputed)))


def _passed(body: Body, lead: set[int]) -> str:
    """A value of a statement that the lead passes in its own iteration and that one of the two computes; "" if none."""
    for i in sorted(lead):
        mine = body.flows[i]
        for j in range(i):
            other = body.flows[j]
            shared = (mine.may & (other.may | other.exposed)) | (other.may & mine.exposed) if j not in lead else None
            if shared:
                return min(shared)
    return ""


def emit_group(
    loop: ir.For, group: Group, flows: Flows, constants: Mapping[str, int], new: NewNames
) -> tuple[ir.Stmt, ...] | str:
    """Return the loop with the lead one iteration ahead, or say why its bounds do not allow that."""
    step = constant(loop.step, constants)
    start, stop = constant(loop.start, constants), constant(loop.stop, constants)
    if step is None or step == 0:
        return "the step is not a constant"
    again = sorted(flows.of_all([loop.body[i] for i in group.recomputed]).may)

    def part(indices: tuple[int, ...], value: ir.Expr) -> list[ir.Stmt]:
        renamed = {name: new.fresh(name) for name in again} if indices is group.tail else {}
        return [copy(loop.body[i], {loop.var: value}, renamed) for i in indices]

    here = ir.Name(loop.var, span=loop.span)
    body = (*part(group.middle, here), *part(group.lead, offset(loop.var, step, loop.span)), *part(group.tail, here))
    if start is not None and stop is not None:
        trips = trip_count(start, stop, step)
        if trips < 2:
            return "fewer than two iterations"
        last = ir.Int(start + (trips - 1) * step)
        steady = ir.For(loop.var, ir.Int(start), last, ir.Int(step), body, span=loop.span)
        return (*part(group.lead, ir.Int(start)), steady, *part(group.middle, last), *part(group.tail, last))
    if step not in (1, -1):
        return "the number of iterations is not a constant, and the step is neither 1 nor -1"
    before_stop = ir.Binary("-" if step == 1 else "+", loop.stop, ir.Int(1), span=loop.span)
    steady = ir.For(loop.var, loop.start, before_stop, ir.Int(step), body, span=loop.span)
    runs = ir.Compare(loop.start, (("<" if step == 1 else ">", loop.stop),), span=loop.span)
    whole = (
        *part(group.lead, loop.start),
        steady,
        *part(group.middle, before_stop),
        *part(group.tail, before_stop),
    )
    return (ir.If(((runs, whole),), span=loop.span),)
