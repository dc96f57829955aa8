"""Signals: what are leftovers, wrong counts, too many signals and missing participants called? (rows 2 to 4 and 6)"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from fencepost import ir
from fencepost.diagnose.case import Case
from fencepost.diagnose.repair import Signature
from fencepost.diagnose.roles import Use
from fencepost.diagnose.texts import at, describe, related
from fencepost.facts import Fact
from fencepost.findings import Related, Severity
from fencepost.model.effects import Channel
from fencepost.model.executor import Op, Run
from fencepost.model.interleave import Outcome, explore
from fencepost.model.outcome import Overflow

Data = tuple[tuple[str, str], ...]


def hung(run: Run) -> Signature:
    """The faults of a run that does not end."""
    return frozenset(("blocked", id(b.op.stmt), b.op.effect.agent) for b in run.blocked)


def _families(case: Case, numbers: Iterator[int]) -> dict[Hashable, list[int]]:
    """Channels by family and kind."""
    groups: dict[Hashable, list[int]] = {}
    for number in numbers:
        channel = case.run.channels[number]
        groups.setdefault(case.protocol.families.of(channel), []).append(number)
    return groups


def _counts(case: Case, number: int) -> tuple[int, int]:
    """Issued sets and waits of a channel."""
    return len(case.protocol.sets.get(number, [])), len(case.protocol.waits.get(number, []))


def _alike(case: Case, numbers: list[int]) -> str:
    """The channels of a group whose counts are those of its first."""
    return case.channel(*(n for n in numbers if _counts(case, n) == _counts(case, numbers[0])))


# ------------------------------------------------------------------------------------------------ leftovers, counts


def leftovers(case: Case) -> Iterator[Fact]:
    """206, 302, 404: signals that nobody takes."""
    left = {x.channel: x.ops for x in case.run.leftovers}
    for family, numbers in _families(case, iter(left)).items():
        first = numbers[0]
        ops, (sets, waits) = left[first], _counts(case, first)
        faults: Signature = frozenset(("leftover", str(case.run.channels[n])) for n in numbers)
        cause: Hashable = ("signals", family)
        place, operations = ops[-1].stmt.span, (at(ops[-1]),)
        if case.run.channels[first].kind == "flag":
            flag: Data = (("flag", _alike(case, numbers)), ("detail", "still set at the end"))
            yield Fact("404", place, flag, cause=cause, operations=operations, faults=faults)
            continue
        data: Data = (
            ("channel", _alike(case, numbers)),
            ("count", str(len(ops))),
            ("sets", str(sets)),
            ("waits", str(waits)),
        )
        if any(case.protocol.role(n) == "release" for n in numbers):
            yield Fact("206", place, data, cause=cause, operations=operations, faults=faults)
        yield Fact("302", place, data, cause=cause, operations=operations, faults=faults)


def counts(case: Case) -> Iterator[Fact]:
    """401 and 403: the issued sets and waits of a channel differ, whether or not the run ends.

    In a run that hangs all differences are told together: which of them would be left is not known.
    """
    run = case.run
    found = [_count(case, family, numbers) for family, numbers in _families(case, _differing(case)).items()]
    if not run.blocked or len(found) < 2:
        yield from found
        return
    short = [fact for fact in found if int(dict(fact.values)["sets"]) < int(dict(fact.values)["waits"])]
    first = (short or found)[0]
    others = [fact for fact in found if fact is not first]
    case.aliases += [(fact.cause, first.cause) for fact in others]
    places = tuple(
        Related(f.span, "likewise {channel}: {sets} set, {waits} awaited".format_map(dict(f.values))) for f in others
    )
    yield replace(first, related=(*first.related, *places))


def _differing(case: Case) -> Iterator[int]:
    """Channels whose counts differ; a flag that is left set has its own name (404)."""
    for number, channel in enumerate(case.run.channels):
        sets, waits = _counts(case, number)
        if sets < waits or (sets > waits and channel.kind != "flag"):
            yield number


def _count(case: Case, family: Hashable, numbers: list[int]) -> Fact:
    first = numbers[0]
    sets, waits = case.protocol.sets.get(first, []), case.protocol.waits.get(first, [])
    anchor, other = (sets, waits) if len(sets) > len(waits) else (waits, sets)
    data = (("channel", _alike(case, numbers)), ("sets", str(len(sets))), ("waits", str(len(waits))))
    places = (related(other[-1], "the other end"),) if other else ()
    return Fact(
        "403" if any(_mixed(case, n) for n in numbers) else "401",
        anchor[-1].stmt.span,
        data,
        places,
        ("signals", family),
        operations=tuple(at(op) for op in (*other[-1:], anchor[-1])),
        faults=_faults(case.run, numbers),
    )


def _faults(run: Run, numbers: list[int]) -> Signature:
    """What a wrong count shows up as: signals left, or a run that does not end."""
    left = {x.channel for x in run.leftovers}
    return frozenset(("leftover", str(run.channels[n])) for n in numbers if n in left) or hung(run)


def _mixed(case: Case, number: int) -> bool:
    """A RELEASE that is issued before any use, while the first write of its slot does not wait for it."""
    protocol = case.protocol
    sets, waits = protocol.sets.get(number, []), protocol.waits.get(number, [])
    if not sets or not waits or protocol.role(number) != "release" or protocol.before(sets[0]):
        return False
    guarded = [u for wait in waits for u in protocol.after(wait) if u.writes]
    guarded += [u for setter in sets for u in protocol.before(setter) if not u.writes]
    cells = {c for use in guarded for c in use.touch.cells}
    return any(_writes(protocol.shared, op, cells) for op in case.run.issued[waits[0].effect.agent][: waits[0].number])


def _writes(shared: frozenset[str], op: Op, cells: set[int]) -> bool:
    uses = (Use(op, True, t) for t in op.effect.writes if t.access.name in shared)
    return any(cells & set(u.touch.cells) for u in uses)


# ------------------------------------------------------------------------------------------------ capacity, contests


def capacity(case: Case) -> Iterator[Fact]:
    """402, and 404 for a flag that is set while it is still set."""
    over = {x.channel: x for x in case.run.overflows}
    for family, numbers in _families(case, iter(over)).items():
        first = over[numbers[0]]
        channel = case.run.channels[first.channel]
        faults: Signature = frozenset(("overflow", str(case.run.channels[n])) for n in numbers)
        late = _not_over(case, first)
        operations = (*(at(wait) for wait in late), at(first.op))
        places = tuple(related(wait, "nothing says that it is over by then") for wait in late)
        if channel.kind == "flag":
            data: Data = (("flag", case.channel(*numbers)), ("detail", "set again while it can still be set"))
            cause: Hashable = ("signals", family)
            yield Fact("404", first.op.stmt.span, data, places, cause, operations=operations, faults=faults)
        else:
            data = (
                ("channel", case.channel(*numbers)),
                ("pending", str(first.pending)),
                ("capacity", str(channel.capacity)),
            )
            cause = ("capacity", family)
            yield Fact("402", first.op.stmt.span, data, places, cause, operations=operations, faults=faults)


def _not_over(case: Case, over: Overflow) -> list[Op]:
    """The first wait of the channel that need not be over when it is set once too often; none if it never runs."""
    sets, waits = case.protocol.sets[over.channel], case.protocol.waits.get(over.channel, [])
    number = next(i for i, op in enumerate(sets) if op is over.op) + 1 - over.pending
    return [op for op in waits[number : number + 1] if op.seq]


def contests(case: Case, outcome: Outcome | None = None) -> Iterator[Fact]:
    """307: an error if schedules differ in a property, else a warning.

    `outcome` is what exploring the schedules gave, if that is known already.
    """
    run = case.run
    seen: set[object] = set()
    for pair in run.contested:
        # who hands over an accumulator or a message first decides which value is read
        hands_over = pair.channel is None
        key = "hand-over" if pair.channel is None else case.protocol.families.of(run.channels[pair.channel])
        if (key, pair.what) in seen:
            continue
        seen.add((key, pair.what))
        if outcome is None:
            outcome = explored(run)
        differs = outcome.kind == "deadlock" or bool(run.races) or hands_over
        what = pair.what
        if outcome.kind == "deadlock" and not run.blocked:
            stuck = ", ".join(describe(op) for op in outcome.stuck[:2])
            what = f"as {what}s; in some schedule {stuck} then waits for ever"
        name = case.channel(pair.channel) if pair.channel is not None else "the accumulator or ring"
        data = (("channel", name), ("first", describe(pair.first)), ("second", describe(pair.second)), ("what", what))
        yield Fact(
            "307",
            pair.second.stmt.span,
            data,
            (related(pair.first, "unordered with"),),
            ("contested", key, pair.what),
            None if differs else Severity.WARNING,
            operations=(at(pair.first), at(pair.second)),
            faults=frozenset({("contested", id(pair.first.stmt), id(pair.second.stmt))}),
        )


def explored(run: Run) -> Outcome:
    """Whether some schedule of a run with contested signals hangs."""
    return Outcome("deadlock") if run.blocked else explore(run)


# ------------------------------------------------------------------------------------------------ participants


def participants(case: Case) -> Iterator[Fact]:
    """601 and 606: a core takes part less often than another that needs it."""
    run = case.run
    for number, channel in enumerate(run.channels):
        if channel.kind == "cross" and channel.lane == 0:
            twin = next((n for n, c in enumerate(run.channels) if _twins(channel, c)), None)
            if twin is not None:
                yield from _lanes(case, number, twin)
    meets = {agent: sum(op.effect.meets for op in ops) for agent, ops in run.issued.items()}
    if len(set(meets.values())) > 1:
        most = max(meets, key=lambda agent: meets[agent])
        last = [op for op in run.issued[most] if op.effect.meets][-1]
        text = ", ".join(f"{agent} {count}" for agent, count in meets.items())
        detail = (("detail", f"sync_all is not reached equally often: {text}"),)
        yield Fact("606", last.stmt.span, detail, cause="sync_all", operations=(at(last),), faults=hung(run))


def _twins(one: Channel, two: Channel) -> bool:
    """Whether `two` is the channel of sub-core 1 beside `one` of sub-core 0."""
    direction = (one.sender == "cube") == (two.sender == "cube")
    return two.kind == one.kind and two.id == one.id and two.lane == 1 and direction


def _lanes(case: Case, zero: int, one: int) -> Iterator[Fact]:
    """601: the sub-cores differ on a channel that both must serve, or UNICAST reaches the other one."""
    run, protocol = case.run, case.protocol
    upwards = run.channels[zero].sender != "cube"
    mine = protocol.sets if upwards else protocol.waits
    served = protocol.waits if upwards else protocol.sets
    cube = [*served.get(zero, []), *served.get(one, [])]
    numbers = {n: mine.get(n, []) for n in (zero, one)}
    few, many = sorted((zero, one), key=lambda n: len(numbers[n]))
    faults = _faults(run, [zero, one])
    cause = ("signals", protocol.families.of(run.channels[zero]))
    both = next((op for op in cube if len({*op.effect.waits, *op.effect.sets} & {zero, one}) == 2), None)
    missing = len(numbers[few]) < len(served.get(few, []))  # others may be for one sub-core alone
    if both is not None and missing and len(numbers[few]) < len(numbers[many]):
        extra = numbers[many][len(numbers[few])]
        data = (
            ("channel", case.channel(few)),
            ("agent", f"aiv{run.channels[few].lane}"),
            ("other_agent", f"aiv{run.channels[many].lane}"),
            ("count", str(len(numbers[few]))),
            ("other_count", str(len(numbers[many]))),
        )
        places = (related(both, "serves both"),)
        operations = (at(both), at(extra))
        yield Fact("601", extra.stmt.span, data, places, cause, operations=operations, faults=faults)
        return
    unicast = [
        op for op in cube if isinstance(op.stmt, (ir.SetCross, ir.WaitCross)) and op.stmt.mode == "UNICAST_BLOCK"
    ]
    for number in (zero, one):
        sets, waits = _counts(case, number)
        if unicast and sets != waits and numbers[number] and (waits if upwards else sets) == 0:
            op = numbers[number][0]
            data = (
                ("channel", case.channel(number)),
                ("agent", "aic"),
                ("other_agent", op.effect.agent),
                ("count", "0"),
                ("other_count", str(len(numbers[number]))),
            )
            places = (related(unicast[0], "reaches the other sub-core only"),)
            yield Fact("601", op.stmt.span, data, places, cause, operations=(at(op),), faults=faults)


# ------------------------------------------------------------------------------------------------ mutexes


def mutexes(case: Case) -> Iterator[Fact]:
    """405: explicit locks and unlocks that do not alternate."""
    details = {
        "unlocked": "unlocked without being locked",
        "relocked": "locked again before it was unlocked",
        "held": "never unlocked",
    }
    seen: set[object] = set()
    for fault in case.run.mutex_faults:
        op = fault.op
        cause = ("mutex", op.effect.arguments)
        if cause in seen:
            continue
        seen.add(cause)
        data = (("mutex", f"mutex {op.effect.arguments[0]}"), ("detail", details[fault.kind]))
        same = (m for m in case.run.mutex_faults if m.op.effect.arguments == op.effect.arguments)
        faults = frozenset(("mutex", m.kind, id(m.op.stmt)) for m in same)
        yield Fact("405", op.stmt.span, data, cause=cause, operations=(at(op),), faults=faults)
