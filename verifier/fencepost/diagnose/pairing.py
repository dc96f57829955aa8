"""Pairing: does an access wait for the signal of another buffer, or in another mode? (303, 304, 305)"""

from __future__ import annotations

from collections.abc import Iterator

from fencepost import ir
from fencepost.diagnose.case import Case
from fencepost.diagnose.edits import core_of
from fencepost.diagnose.roles import Use
from fencepost.diagnose.texts import at, related, statement
from fencepost.facts import Fact
from fencepost.model.executor import Op, Run


def pairings(case: Case) -> Iterator[Fact]:
    """303 and 305 for the unordered accesses of a run; notes in `case.slots` which accesses they account for."""
    run, protocol = case.run, case.protocol
    suspects = [
        Use(r.second, r.kind == "read-write", r.touched)
        for r in run.races
        if r.kind != "write-write" and core_of(r.first.effect.agent) != core_of(r.second.effect.agent)
    ]
    suspects += [Use(u.op, False, u.touched) for u in run.unwritten]
    seen: set[object] = set()
    for use in suspects:
        group = protocol.group(use.op)
        announced = [u for wait in group for u in protocol.announced(wait) if u.writes != use.writes]
        if not announced or any(u.meets(use) for u in announced):
            continue
        guarded = protocol.after(group[-1])
        if any(u.meets(g) for u in announced for g in guarded):
            continue
        wait = next(w for w in group if protocol.announced(w))
        fact = _wrong_partner(case, wait, use, announced[0])
        case.slots[id(use.op.stmt), use.touch.access.name] = fact.cause
        if fact.cause not in seen:
            seen.add(fact.cause)
            yield fact


def _wrong_partner(case: Case, wait: Op, use: Use, theirs: Use) -> Fact:
    protocol = case.protocol
    cause = ("pairing", case.family(wait))
    channel = wait.effect.waits[0]
    purposes = _purposes(case, channel)
    operations = (at(theirs.op), at(wait), at(use.op))
    verb = "announces" if theirs.writes else "hands back"
    if len({names for _, names in purposes}) > 1:
        (first, first_use), (second, second_use) = purposes[:2]
        data = (
            ("channel", case.channel(channel)),
            ("first", f"line {first.stmt.span.line} ({first_use})"),
            ("second", f"line {second.stmt.span.line} ({second_use})"),
        )
        places = tuple(related(op, f"set for {what}") for op, what in purposes[:2])
        return Fact("305", wait.stmt.span, data, places, cause, operations=operations)
    setter = protocol.partners(wait)[0]
    name, mine = theirs.touch.access.name, use.touch.access.name
    act = "writes" if use.writes else "reads"
    detail = f"{statement(setter.stmt)} (line {setter.stmt.span.line}) {verb} {name}, {mine} is used after the wait"
    data = (("sync", _waiting(wait)), ("channel", case.channel(channel)), ("detail", detail))
    places = (related(theirs.op, f"the access to {name}"), related(use.op, f"{act} {mine} after the wait"))
    return Fact("303", wait.stmt.span, data, places, cause, operations=operations)


def _waiting(wait: Op) -> str:
    return f"{statement(wait.stmt)} of {wait.effect.agent}"


def _purposes(case: Case, channel: int) -> list[tuple[Op, str]]:
    """The different set statements of a channel, each with the buffers that it announces."""
    found: dict[int, tuple[Op, str]] = {}
    for setter in case.protocol.sets.get(channel, []):
        if id(setter.stmt) not in found:
            buffers = dict.fromkeys(u.touch.access.name for u in case.protocol.before(setter))
            if buffers:
                found[id(setter.stmt)] = (setter, ", ".join(buffers))
    distinct: dict[str, tuple[Op, str]] = {}
    for setter, names in found.values():
        distinct.setdefault(names, (setter, names))
    return list(distinct.values())


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
            places = (related(two, f"the other end, mode {other}"),)
            yield Fact(
                "304",
                one.stmt.span,
                data,
                places,
                ("mode", sender, number),
                operations=(at(two), at(one)),
                faults=frozenset({("mode", sender, number)}),
            )
