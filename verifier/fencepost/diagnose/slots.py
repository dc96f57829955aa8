"""Slots and rounds: do producer and consumer of one round use the same slot, in the same order? (102, 103, 303)"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.diagnose.case import Case
from fencepost.diagnose.edits import core_of
from fencepost.diagnose.families import spellings
from fencepost.diagnose.repair import Signature, race_fault
from fencepost.diagnose.roles import Protocol
from fencepost.diagnose.texts import at, describe, related
from fencepost.facts import Fact
from fencepost.findings import Severity
from fencepost.model.effects import Touch
from fencepost.model.executor import Op, Run


def slots(case: Case) -> Iterator[Fact]:
    """Slot faults of a run that fails in some way; notes in `case.slots` which reads they account for."""
    for fact in annotated(case.run):
        agent, number = fact.operations[-1]
        case.slots[id(case.run.issued[agent][number].stmt), dict(fact.values)["buffer"]] = fact.cause
        yield fact
    for mismatch in rounds(case.run):
        if (id(mismatch.reader.stmt), mismatch.touch.access.name) not in case.slots:
            yield _other_round(case, mismatch)
    yield from _signalled(case)


def annotated(run: Run) -> Iterator[Fact]:
    """Compare slots round by round where both sides carry `task =`."""
    written: dict[tuple[str, int], dict[str, list[tuple[Op, Touch]]]] = {}
    for agent, ops in run.issued.items():
        for op in ops:
            if op.task is not None:
                for touch in op.effect.writes:
                    key = (touch.access.name, op.task)
                    written.setdefault(key, {}).setdefault(agent, []).append((op, touch))
    seen: set[tuple[int, int]] = set()
    for agent, ops in run.issued.items():
        for op in ops:
            if op.task is None:
                continue
            for touch in op.effect.reads:
                for other, writes in written.get((touch.access.name, op.task), {}).items():
                    if core_of(other) == core_of(agent):
                        continue
                    if any(set(touch.cells) & set(w.cells) for _, w in writes):
                        continue
                    writer, their = writes[-1]
                    if (id(op.stmt), id(writer.stmt)) not in seen:
                        seen.add((id(op.stmt), id(writer.stmt)))
                        yield _disagreement(run, op, touch, writer, their, str(op.task))


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An ordered read that finds another round in its slot than the one that it means."""

    reader: Op
    writer: Op
    touch: Touch

    @property
    def fault(self) -> Hashable:
        return "round", id(self.reader.stmt), self.touch.access.name


def rounds(run: Run) -> Iterator[Mismatch]:
    """Compare the annotated rounds of ordered writes and reads of one slot on two cores, one per reading statement."""
    latest: dict[int, Op] = {}
    races = {frozenset({id(r.first.effect), id(r.second.effect)}) for r in run.races}
    seen: set[Hashable] = set()
    for op in run.order:
        for touch in op.effect.reads if op.task is not None else ():
            for writer in dict.fromkeys(latest[c] for c in touch.cells if c in latest):
                if writer.task in (None, op.task) or core_of(writer.effect.agent) == core_of(op.effect.agent):
                    continue
                found = Mismatch(op, writer, touch)
                if found.fault not in seen and frozenset({id(writer.effect), id(op.effect)}) not in races:
                    seen.add(found.fault)
                    yield found
        for touch in op.effect.writes:
            for cell in touch.cells:
                latest[cell] = op


def _other_round(case: Case, found: Mismatch) -> Fact:
    """303: the signal before a read was set for another round."""
    place = f"{found.touch.access.name}[{found.touch.slot}]"
    detail = f"{place} then holds round {found.writer.task}, round {found.reader.task} is meant"
    return Fact(
        "303",
        found.reader.stmt.span,
        (*_signal_before(case.protocol, found.reader, place), ("detail", detail)),
        (related(found.writer, "the write"),),
        ("slot", found.touch.access.name),
        operations=(at(found.writer), at(found.reader)),
        faults=frozenset({found.fault}),
    )


def _signal_before(protocol: Protocol, reader: Op, place: str) -> tuple[tuple[str, str], ...]:
    """The wait before a read and its channel; the read itself and its slot if there is no wait."""
    group = protocol.group(reader)
    if not group:
        return ("sync", describe(reader)), ("channel", place)
    channels = [protocol.run.channels[n] for n in group[-1].effect.waits]
    return ("sync", describe(group[-1])), ("channel", spellings(protocol.families, channels))


def _signalled(case: Case) -> Iterator[Fact]:
    """Compare slots round by round where only the signals say what a round is."""
    run, protocol = case.run, case.protocol
    seen: set[int] = set()
    for ops in run.issued.values():
        wait: Op | None = None
        for op in ops:
            if isinstance(op.stmt, ir.WaitCross):
                wait = op
            elif wait is not None and op.task is None and id(op.stmt) not in seen and op.seq and _suspicious(run, op):
                announced = [u for u in protocol.announced(wait) if u.writes and u.op.task is None]
                for touch in op.effect.reads:
                    same = [u for u in announced if u.touch.access.name == touch.access.name]
                    if not same or any(set(touch.cells) & set(u.touch.cells) for u in same):
                        continue
                    seen.add(id(op.stmt))
                    number = protocol.rank(wait.effect.waits[0], wait)
                    fact = _disagreement(
                        run, op, touch, same[0].op, same[0].touch, f"{number} (counted by the signals)"
                    )
                    case.slots[id(op.stmt), touch.access.name] = fact.cause
                    yield replace(fact, faults=_shown(case, op))


def _shown(case: Case, reader: Op) -> Signature:
    """How a slot fault shows: unordered or unwritten reads, or else a run that hangs or leaves signals."""
    run = case.run
    found: set[Hashable] = {("unwritten", id(u.op.stmt)) for u in run.unwritten if u.op.stmt is reader.stmt}
    pairs = [(r.first.stmt, r.second.stmt) for r in run.races]
    found |= {race_fault(one, two) for one, two in pairs if reader.stmt is one or reader.stmt is two}
    return frozenset(found) or case.repairs.before


def _suspicious(run: Run, op: Op) -> bool:
    """Whether the read `op` takes part in an unordered or unwritten access, or the run hangs or leaves signals."""
    return bool(
        run.blocked
        or run.leftovers
        or any(u.op.stmt is op.stmt for u in run.unwritten)
        or any(r.first.stmt is op.stmt or r.second.stmt is op.stmt for r in run.races)
    )


def swapped(protocol: Protocol) -> Iterator[Fact]:
    """A clean run in which a consumer takes the rounds of a buffer in another order than they were produced."""
    run = protocol.run
    produced: dict[tuple[str, str], int] = {}
    number: dict[int, int] = {}
    latest: dict[int, Op] = {}
    progress: dict[tuple[str, str], tuple[int, Op]] = {}
    observed: set[tuple[str, str, int]] = set()
    for op in run.order:
        for touch in op.effect.reads:
            writer = latest.get(touch.cells[0]) if touch.cells else None
            if writer is None or core_of(writer.effect.agent) == core_of(op.effect.agent):
                continue
            if op.task is not None and writer.task is not None:
                continue
            key = (op.effect.agent, touch.access.name)
            n = number[id(writer)]
            if (*key, n) in observed:
                continue
            observed.add((*key, n))
            before = progress.get(key)
            if before is not None and before[0] > n and before[1].stmt is op.stmt:
                place = f"{touch.access.name}[{touch.slot}]"
                detail = f"all accesses are ordered, but tiles of {touch.access.name} are taken in another order than "
                data = (*_signal_before(protocol, op, place), ("detail", f"{detail}they were produced"))
                cause: Hashable = ("order", touch.access.name)
                places = (related(writer, "the write"),)
                yield Fact("303", op.stmt.span, data, places, cause, Severity.WARNING, operations=(at(writer), at(op)))
                return
            progress[key] = (n, op)
        for touch in op.effect.writes:
            name = (op.effect.agent, touch.access.name)
            produced[name] = produced.get(name, 0) + 1
            number[id(op)] = produced[name]
            for cell in touch.cells:
                latest[cell] = op


def _disagreement(run: Run, reader: Op, touch: Touch, writer: Op, their: Touch, round_: str) -> Fact:
    by_cursor = _from_cursor(run, reader, touch) or _from_cursor(run, writer, their)
    data = (
        ("buffer", touch.access.name),
        ("slot", str(touch.slot)),
        ("other_slot", str(their.slot)),
        ("agent", reader.effect.agent),
        ("other_agent", writer.effect.agent),
        ("round", round_),
    )
    return Fact(
        "103" if by_cursor else "102",
        reader.stmt.span,
        data,
        (related(writer, "the write of the same round"),),
        ("slot", touch.access.name),
        operations=(at(writer), at(reader)),
        faults=frozenset({("slot", id(reader.stmt), id(writer.stmt))}),
    )


def _from_cursor(run: Run, op: Op, touch: Touch) -> bool:
    """Whether the slot of an operand is a name that a cursor of its agent's program sets."""
    core = core_of(op.effect.agent)
    names: set[str] = set()
    for item in run.compiled.kernel.body:
        if not isinstance(item, ir.Section) or item.core == core:
            names |= {n.name for n in ir.walk(item) if isinstance(n, ir.Cursor)}
    index = touch.access.index
    return index is not None and any(isinstance(n, ir.Name) and n.id in names for n in ir.walk(index))
