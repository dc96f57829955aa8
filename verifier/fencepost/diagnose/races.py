"""Races: what is an access without an order called, and which signal is to blame? (rows 2 and 6)

Accesses are grouped by what must be repaired: all reads that one write may overtake are one fault.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.diagnose import edits
from fencepost.diagnose.case import Case
from fencepost.diagnose.repair import Signature, race_fault
from fencepost.diagnose.texts import at, describe, related, statement
from fencepost.facts import Fact
from fencepost.findings import Related
from fencepost.model.effects import Channel
from fencepost.model.executor import Op, Race, Run, Unwritten

_MORE = 4  # further accesses that a finding lists


def races(case: Case) -> Iterator[Fact]:
    """The unordered accesses of a run, each under the most specific name that a repair proves."""
    groups: dict[Hashable, list[Race]] = {}
    for race in case.run.races:
        groups.setdefault(_group(race), []).append(race)
    covered: set[tuple[int, str]] = set()
    for key, members in groups.items():
        covered |= {(id(op.stmt), r.touched.access.name) for r in members for op in (r.first, r.second)}
        yield from _group_facts(case, key, members)
    unwritten: dict[str, list[Unwritten]] = {}
    for read in case.run.unwritten:
        if (id(read.op.stmt), read.touched.access.name) not in covered:
            unwritten.setdefault(read.touched.access.name, []).append(read)
    for buffer, reads in unwritten.items():
        yield _unwritten(case, buffer, reads)


def _group(race: Race) -> Hashable:
    """Equal for races with one repair."""
    first, second, buffer = race.first.effect, race.second.effect, race.touched.access.name
    if first.agent == second.agent:
        return "208", edits.core_of(first.agent), buffer, frozenset({first.pipe[1], second.pipe[1]})
    if {first.agent, second.agent} == {"aiv0", "aiv1"}:
        return "602", buffer
    if race.kind == "write-write":
        return "203", buffer, frozenset({race.first.stmt.span, race.second.stmt.span})
    writer, reader = _ends(race)
    return ("201" if _means(race, writer, reader) else "202"), buffer, writer.stmt.span


def _ends(race: Race) -> tuple[Op, Op]:
    """Writer and reader of a race between a read and a write."""
    return (race.first, race.second) if race.kind == "write-read" else (race.second, race.first)


def _means(race: Race, writer: Op, reader: Op) -> bool:
    """Whether the reader means the value of this very write (201), or an earlier one that is destroyed (202)."""
    if writer.task is not None and reader.task is not None:
        return writer.task == reader.task
    return race.writes <= race.uses


def phased_pair(race: Race) -> bool:
    """One side of an accumulator hand-over has a phase and the other none (801)."""
    one, two = race.first.effect, race.second.effect
    return one.agent == two.agent and (one.phase is None) != (two.phase is None)


def _group_facts(case: Case, key: Hashable, members: list[Race]) -> Iterator[Fact]:
    race = members[0]
    first, second, buffer = race.first, race.second, race.touched.access.name
    faults: Signature = frozenset(race_fault(r.first.stmt, r.second.stmt) for r in members)
    where = (("buffer", _named(race)), ("slot", str(race.touched.slot)))
    both = (*where, ("first", describe(first)), ("second", describe(second)), ("agent", first.effect.agent))
    places = (related(first, "the other access"), *_more(members, first, second))
    operations = (at(first), at(second))
    cause: Hashable = ("unordered", key)
    found: _Edit | None = None
    if first.effect.agent == second.effect.agent:
        if phased_pair(race):
            cause = ("phase pair", buffer)
        elif case.known(faults) is None:
            found = _blame(case, members, faults)
        if found is None or not found.code:
            _consequences(case, race, faults, cause)
            yield Fact("208", second.stmt.span, both, places, cause, operations=operations, faults=faults)
            return
    elif {first.effect.agent, second.effect.agent} == {"aiv0", "aiv1"}:
        yield Fact("602", second.stmt.span, both, places, cause, operations=operations, faults=faults)
    elif race.kind != "write-write":
        slots = [case.slots.get((id(op.stmt), buffer)) for op in (first, second)]
        cause = slots[0] or slots[1] or cause
        if not any(slots) and case.known(faults) is None:
            found = _blame(case, members, faults)
    if found is not None and found.code:
        yield found.fact(case, race, faults, where)
        return
    fact = _access(race, members, faults, where, cause)
    if found is not None:
        note = Related(found.sync.span, f"without it the accesses are in order: {statement(found.sync)}")
        fact = replace(fact, related=(*fact.related, note))
    yield fact


def _named(race: Race) -> str:
    """The buffer of a race; both of them if two share memory."""
    name, other = race.touched.access.name, race.first_touched.access.name
    return name if name == other else f"{name} (the same memory as {other})"


def _consequences(case: Case, race: Race, faults: Signature, cause: Hashable) -> None:
    """Flags that are set twice only because two pipes of one core have no order have the cause of the race."""
    over = {("overflow", str(channel)): channel for channel in _overflows(case.run)}
    if not over or case.repairs.exhausted:
        return
    edited = edits.ordered(case.repairs.kernel, race.first.effect.pipe[1], race.second.effect.pipe[1], race.second.stmt)
    after = None if edited is None else case.repairs.after(edited)
    if after is None or faults & after:
        return
    families = case.protocol.families
    left = {families.of(channel) for fault, channel in over.items() if fault in after}
    gone = {families.of(channel) for channel in over.values()} - left
    case.aliases += [(("signals", family), cause) for family in gone]


def _overflows(run: Run) -> list[Channel]:
    """The flags that may be set twice."""
    found = [run.channels[x.channel] for x in run.overflows]
    return [channel for channel in found if channel.kind == "flag"]


def _access(
    race: Race,
    members: list[Race],
    faults: Signature,
    where: tuple[tuple[str, str], ...],
    cause: Hashable,
) -> Fact:
    """201, 202 or 203: the access itself."""
    first, second = race.first, race.second
    operations = (at(first), at(second))
    more = _more(members, first, second)
    if race.kind == "write-write":
        data = (*where, ("first", describe(first)), ("second", describe(second)))
        places = (related(first, "the other write"), *more)
        return Fact("203", second.stmt.span, data, places, cause, operations=operations, faults=faults)
    writer, reader = _ends(race)
    data = (*where, ("reader", describe(reader)), ("writer", describe(writer)))
    if _means(race, writer, reader):
        places = (related(writer, "the write"), *more)
        operations = (at(writer), at(reader))
        return Fact("201", reader.stmt.span, data, places, cause, operations=operations, faults=faults)
    places = (related(reader, "the read"), *more)
    operations = (at(reader), at(writer))
    return Fact("202", writer.stmt.span, data, places, cause, operations=operations, faults=faults)


def _more(members: list[Race], *told: Op) -> tuple[Related, ...]:
    """The other statements of a group."""
    seen = {id(op.stmt) for op in told}
    found: list[Related] = []
    for race in members:
        for op in (race.first, race.second):
            if id(op.stmt) not in seen and len(found) < _MORE:
                seen.add(id(op.stmt))
                found.append(related(op, "likewise"))
    return tuple(found)


def _unwritten(case: Case, buffer: str, reads: list[Unwritten]) -> Fact:
    """A read of a slot that nothing has written by then."""
    read = reads[0]
    faults: Signature = frozenset(("unwritten", id(r.op.stmt)) for r in reads)
    data = (
        ("buffer", buffer),
        ("slot", str(read.touched.slot)),
        ("reader", describe(read.op)),
        ("writer", "anything has written it"),
    )
    others = {id(r.op.stmt): r.op for r in reads if r.op.stmt is not read.op.stmt}
    places = tuple(related(op, "likewise") for op in list(others.values())[:_MORE])
    cause = case.slots.get((id(read.op.stmt), buffer)) or ("unwritten", buffer)
    return Fact("201", read.op.stmt.span, data, places, cause, operations=(at(read.op),), faults=faults)


# ------------------------------------------------------------------------------------------------ which signal


@dataclass(frozen=True, slots=True)
class _Edit:
    """A candidate repair: `code` is "" where it tells the cause, but the access keeps its own name."""

    code: str
    sync: ir.Stmt
    access: Op
    kernel: ir.Kernel
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def cause(self) -> Hashable:
        return "sync", self.sync.span

    def fact(self, case: Case, race: Race, faults: Signature, where: tuple[tuple[str, str], ...]) -> Fact:
        """204, 205 or 207."""
        data = (("sync", statement(self.sync)), ("access", describe(self.access)), *where, *self.extra)
        words = race.kind.split("-")
        ends = (race.first, race.second)
        places = tuple(related(op, f"the {word}") for op, word in zip(ends, words, strict=True))
        operations = tuple(at(op) for op in (ends if race.kind != "read-write" else ends[::-1]))
        if race.kind != "write-write":
            writer, reader = _ends(race)
            operations = (at(writer), at(reader)) if _means(race, writer, reader) else (at(reader), at(writer))
        return Fact(self.code, self.sync.span, data, places, self.cause, operations=operations, faults=faults)


def _blame(case: Case, members: list[Race], faults: Signature) -> _Edit | None:
    """The signal whose move, pipe or removal repairs the races, if one does."""
    race = members[0]
    ends = (race.first, race.second) if race.kind == "write-write" else _ends(race)
    gone = faults
    if race.kind != "write-write":
        gone |= {("unwritten", id(ends[1].stmt))}
    found: _Edit | None = None
    for edit in _candidates(case.repairs.kernel, *ends):
        if case.repairs.exhausted:
            break
        verdict = case.repairs.judge(edit.kernel, gone)
        if verdict == "whole":
            found = edit
            break
        if verdict == "part" and found is None:
            found = edit
    if found is not None:
        case.accept(found.cause, found.kernel)
        _same_protocol(case, found)
    return found


def _same_protocol(case: Case, edit: _Edit) -> None:
    """A signal to blame and wrong counts of its channels are one fault of the protocol."""
    sync = next((op for ops in case.run.issued.values() for op in ops if op.stmt is edit.sync), None)
    if sync is None:
        return
    family, protocol = case.family(sync), case.protocol
    for number, channel in enumerate(case.run.channels):
        uneven = len(protocol.sets.get(number, [])) != len(protocol.waits.get(number, []))
        if uneven and protocol.families.of(channel) == family:
            case.aliases.append((("signals", family), edit.cause))
            return


def _candidates(kernel: ir.Kernel, *ends: Op) -> Iterator[_Edit]:
    one_agent = len({op.effect.agent for op in ends}) == 1
    kinds = (ir.SyncSrc, ir.SyncDst) if one_agent else (ir.SetCross, ir.WaitCross)
    for access in ends:
        for sync in edits.syncs(kernel, edits.core_of(access.effect.agent)):
            if not isinstance(sync, kinds):
                continue
            sets = isinstance(sync, (ir.SetCross, ir.SyncSrc))
            edited = edits.moved(kernel, sync, access.stmt, behind=sets)
            if edited is not None:
                yield _Edit("204" if sets else "205", sync, access, edited)
    if one_agent:
        yield from _other_flags(kernel, *ends)
    for access in ends:
        if not one_agent:
            yield from _other_pipes(kernel, access)
    for access in ends:
        for sync in edits.syncs(kernel, edits.core_of(access.effect.agent)):
            if isinstance(sync, (ir.SetCross, ir.SyncSrc)) and isinstance(sync, kinds):
                early = edits.precedes(kernel, sync, access.stmt)
                yield _Edit("204" if early else "", sync, access, edits.removed(kernel, sync))


def _other_pipes(kernel: ir.Kernel, access: Op) -> Iterator[_Edit]:
    """Sets and waits moved to the pipe of the access: one alone, and all of one id tuple together."""
    pipe = access.effect.pipe[1]
    crosses = [
        s
        for s in edits.syncs(kernel, edits.core_of(access.effect.agent))
        if isinstance(s, (ir.SetCross, ir.WaitCross)) and s.pipe != pipe
    ]
    for sync in crosses:
        extra = (("pipe", sync.pipe), ("needed", pipe))
        changed = edits.replace_statements(kernel, {id(sync): replace(sync, pipe=pipe)})
        yield _Edit("207", sync, access, changed, extra)
        family = [s for s in crosses if type(s) is type(sync) and _base(s.id) == _base(sync.id)]
        if family[0] is sync and len(family) > 1:
            changes: dict[int, ir.Stmt] = {id(s): replace(s, pipe=pipe) for s in family}
            anchor = max(family, key=lambda s: edits.nearness(kernel, s, access.stmt))
            yield _Edit("207", anchor, access, edits.replace_statements(kernel, changes), extra)


def _other_flags(kernel: ir.Kernel, one: Op, two: Op) -> Iterator[_Edit]:
    """All flags between one pair of pipes put between the pipes of the two accesses, in either direction."""
    flags = [s for s in edits.syncs(kernel, edits.core_of(one.effect.agent)) if isinstance(s, (ir.SyncSrc, ir.SyncDst))]
    for source, target in dict.fromkeys((s.source, s.target) for s in flags):
        for op, other in ((one, two), (two, one)):
            new = (op.effect.pipe[1], other.effect.pipe[1])
            if new == (source, target):
                continue
            changes: dict[int, ir.Stmt] = {
                id(s): replace(s, source=new[0], target=new[1])
                for s in flags
                if (s.source, s.target) == (source, target)
            }
            anchor = max((s for s in flags if id(s) in changes), key=lambda s: edits.nearness(kernel, s, op.stmt))
            extra = (("pipe", f"{source} -> {target}"), ("needed", f"{new[0]} -> {new[1]}"))
            yield _Edit("207", anchor, op, edits.replace_statements(kernel, changes), extra)


def _base(expr: ir.Expr) -> object:
    return expr.name if isinstance(expr, ir.Item) else expr
