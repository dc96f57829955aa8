"""What can be said about a pipelined loop when some of its conditions and slots are not known?

The dependence test does not need them.  What it leaves open are asynchronous copies, and statements that run twice
when there are few trips: both are decided by running the programs for everything that the unknowns may be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from math import prod

from fencepost import ir
from fencepost.model.functions import FunctionTable
from fencepost.pipeline.explore import outcome
from fencepost.pipeline.horizon import horizon, slots_of
from fencepost.pipeline.model import Access, At, Buffer, Somewhere, Statement, Step
from fencepost.pipeline.order import repeats
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.sequence import ALWAYS, All, Compared, Guard, Not, Opaque, Sequence, opaque_parts
from fencepost.pipeline.setting import ITERATION, Setting
from fencepost.pipeline.trips import Trips
from fencepost.pipeline.unawaited import ever_unawaited

_MAX_CASES = 300
"""Combinations of unknown conditions and slots that are all tried."""


def unknown_parts(text: Statement) -> set[Opaque]:
    """The conditions in a statement that are not known."""
    return {part for guard in text.guards for part in opaque_parts(guard)}


def settled(plan: Plan, truths: Mapping[Opaque, bool]) -> Plan:
    """The plan where some conditions are known to hold, or not to hold, throughout the loop."""
    known = {part: ALWAYS if truth else Not(ALWAYS) for part, truth in truths.items()}
    statements = tuple(_mapped(s, lambda a: a, lambda g: _renamed(g, known)) for s in plan.loop.statements)
    return plan.altered(replace(plan.loop, statements=statements))


def _renamed(guard: Guard, parts: Mapping[Opaque, Guard]) -> Guard:
    """The guard with other guards for some of its parts."""
    match guard:
        case Opaque():
            return parts.get(guard, guard)
        case Not(operand):
            return Not(_renamed(operand, parts))
        case All(operands):
            return All(tuple(_renamed(o, parts) for o in operands))
        case Compared():
            return guard


def waits_undecided(plan: Plan, known: bool = False) -> str | None:
    """Try to show that waits are strong enough even if all conditions hold and unknown slots are one slot.

    `known`: treat conditions and slots that are known in the same way, if slots alternate; then there is less to run.
    Returns None on success, else what could not be decided.
    """
    if not any(slot.is_async for slot in plan.slots):
        return None
    loop = plan.loop

    def is_vague(buffer: Buffer) -> bool:
        found = slots_of(plan, buffer)
        return isinstance(found, str) or (known and any(s.period > 1 for s in found))

    vague = {b.name for b in loop.buffers if b.name in plan.changing and is_vague(b)}

    def coarse(access: Access) -> Access:
        return Access(access.buffer, At(Sequence.constant(0))) if access.buffer in vague else access

    def sure(guard: Guard) -> Guard:
        return ALWAYS if known or opaque_parts(guard) else guard

    # What an instance did itself needs no wait, and of all steps at one slot that would be the last one.
    several = [s for s in (plan.statement(slot) for slot in plan.slots if slot.is_async) if s.inner]
    if any(_mapped(s, coarse, sure) != s for s in several):
        return "an asynchronous statement has several steps"
    statements = tuple(_mapped(s, coarse, sure) for s in loop.statements)
    after, later = tuple(map(coarse, loop.after)), tuple(map(coarse, loop.written_later))
    rough = plan.altered(replace(loop, statements=statements, after=after, written_later=later))
    ahead = horizon(rough)
    if isinstance(ahead, str):
        return ahead
    if ever_unawaited(rough, ahead.tail, Setting(), ahead.trips):
        return "an asynchronous copy may not have been awaited in time, depending on conditions that are not known"
    return None


def _mapped(text: Statement, access: Callable[[Access], Access], guard: Callable[[Guard], Guard]) -> Statement:
    """The statement with other accesses and conditions."""

    def step(s: Step) -> Step:
        return replace(s, reads=tuple(map(access, s.reads)), writes=tuple(map(access, s.writes)), guard=guard(s.guard))

    reads, writes = tuple(map(access, text.reads)), tuple(map(access, text.writes))
    fetched = None if text.fetched is None else tuple(map(access, text.fetched))
    inner = tuple(map(step, text.inner))
    return replace(text, reads=reads, writes=writes, guard=guard(text.guard), inner=inner, fetched=fetched)


def few_trips_undecided(plan: Plan, trips: Trips) -> str | None:
    """All orders are kept, but with few trips some statements run twice: try those with all values of the unknowns.

    Returns None if both programs always agree, else what could not be decided.
    """
    if not repeats(plan):
        return None
    last = plan.last_stage
    twice = plan.statement(repeats(plan)[0]).label
    why = f"{twice} runs twice when there are fewer than {last} trips, and what it then does depends on unknown values"
    free, conditions, slots = _freed(plan)
    for count in range(last):
        if trips.setting(count) is None:
            continue
        # An unknown slot is one of the slots that are used otherwise, or one of as many new ones as there are unknowns.
        used = {c for s in free.loop.statements for a in (*s.reads, *s.writes) for c in _fixed(a, count + last)}
        values = [*used, *range(max(used, default=0) + 1, max(used, default=0) + 1 + len(slots) * count)]
        domains = {(name, (i,)): [0, 1] for name in conditions for i in range(count)}
        domains.update({(name, (i,)): values for name in slots for i in range(count)})
        if prod(len(d) for d in domains.values()) > _MAX_CASES:
            return why
        for chosen in product(*domains.values()):
            table = FunctionTable(dict(zip(domains, chosen, strict=True)))
            if outcome(free, count, Setting({}, table)).wrong:
                return why
    return None


def _freed(plan: Plan) -> tuple[Plan, list[str], list[str]]:
    """The plan with an arbitrary function of the iteration for each unknown condition and slot, and their names."""
    names: dict[ir.Expr, str] = {}

    def function(expr: ir.Expr, kind: str) -> ir.Expr:
        return ir.Call(names.setdefault(expr, f"#{kind}{len(names)}"), (ir.Name(ITERATION),))

    def free(access: Access) -> Access:
        if isinstance(access.index, Somewhere) and access.buffer in plan.loop.written & plan.visible[0]:
            return Access(access.buffer, Somewhere(function(access.index.expr, "slot")))
        return access

    def condition(guard: Guard) -> Guard:
        return _renamed(guard, {p: Opaque(function(p.expr, "if")) for p in opaque_parts(guard)})

    statements = tuple(_mapped(s, free, condition) for s in plan.loop.statements)
    found = list(names.values())
    altered = plan.altered(replace(plan.loop, statements=statements))
    return altered, [n for n in found if n.startswith("#if")], [n for n in found if n.startswith("#slot")]


def _fixed(access: Access, iterations: int) -> set[int]:
    return {access.index.cell(i) for i in range(iterations)} if isinstance(access.index, At) else {0}
