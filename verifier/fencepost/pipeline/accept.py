"""Does the compiler accept the annotations, and what does it take them to mean?

The rules are those of the software-pipeline pass of TileLang 0.1.15 (codes 901 to 912).  The pass stops at the first
mistake; here all of them are reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fencepost.ir import NOWHERE, Span
from fencepost.pipeline.model import Loop, Statement
from fencepost.pipeline.schedule import Plan, Slot


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong with the annotations; `statements` are the places in the source that it is about."""

    code: str
    message: str
    statements: tuple[int, ...] = ()
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Reading:
    """What the compiler makes of the annotations.

    `plan` is None if the loop is rejected or has no stage and order; `errors` reject it, `warnings` do not.
    """

    plan: Plan | None
    errors: tuple[Complaint, ...] = ()
    warnings: tuple[Complaint, ...] = ()


def resolve(loop: Loop) -> Reading:
    """Apply the compiler's rules to the annotations of `loop`."""
    notes = loop.annotations
    if notes.stage is None and notes.order is None:
        return Reading(None)
    if notes.stage is None or notes.order is None:
        present, missing = ("order", "stage") if notes.stage is None else ("stage", "order")
        message = f"the loop has {present} = but no {missing} =; the compiler needs both lists"
        return Reading(None, (Complaint("908", message, span=loop.span),))

    replayed, errors = _replayed(loop)
    if errors:
        return Reading(None, tuple(errors))
    scheduled = [n for n in range(len(loop.statements)) if n not in replayed]
    if not scheduled:
        message = "the body holds only binds that are replayed, so there is nothing to schedule"
        return Reading(None, (Complaint("911", message, span=loop.span),))

    entries, errors = _entries(loop, scheduled)
    if entries is None:
        return Reading(None, tuple(errors))
    slots = tuple(_slot(loop, n, entry) for n, entry in zip(scheduled, entries, strict=True))
    plan = Plan(loop, slots, replayed, _stages(loop))
    errors += [*_orders(plan), *_bind_order(plan), *_flow(plan), *_two_async_stages(plan)]
    warnings = tuple(_legacy(plan, entries)) + tuple(_beside(plan))
    return Reading(None if errors else plan, tuple(errors), warnings)


def _replayed(loop: Loop) -> tuple[frozenset[int], list[Complaint]]:
    """The binds that are replayed; an explicit mask is ignored if it has another length or marks a non-bind."""
    derived = frozenset(n for n in range(len(loop.statements)) if loop.can_replay(n))
    mask = loop.annotations.replayable
    if mask is None or len(mask) != len(loop.statements):
        return derived, []
    marked = frozenset(n for n, flag in enumerate(mask) if flag)
    if any(loop.statements[n].bind is None for n in marked):
        return derived, []
    errors = [
        Complaint(
            "912",
            f"bind {loop.statements[n].bind} is marked replayable, but it cannot be computed again: "
            + _why_not(loop, loop.statements[n]),
            (n,),
            loop.statements[n].span,
        )
        for n in sorted(marked - derived)
    ]
    return marked, errors


def _why_not(loop: Loop, bind: Statement) -> str:
    read = next((r.buffer for r in bind.reads if r.buffer in loop.written), None)
    return f"it reads {read}, which the body writes" if read else "it is not a scalar or has a side effect"


def _entries(loop: Loop, scheduled: list[int]) -> tuple[list[int] | None, list[Complaint]]:
    """For each scheduled statement the place of its entry in the lists; None if the lists do not fit."""
    notes, everything = loop.annotations, len(loop.statements)
    assert notes.stage is not None and notes.order is not None
    errors: list[Complaint] = []
    length = len(notes.stage)
    if len(notes.order) != length:
        message = f"stage has {length} entries and order has {len(notes.order)}; each statement needs one in both"
        errors.append(Complaint("901", message, span=loop.span))
    wanted = f"{len(scheduled)}" + ("" if len(scheduled) == everything else f" (or {everything} with all binds)")
    if length not in (len(scheduled), everything):
        message = f"stage and order have {length} entries, but {wanted} statements are scheduled"
        errors.append(Complaint("901", message, span=loop.span))
        binds = [n for n in scheduled if loop.statements[n].bind is not None]
        if binds and length == len(scheduled) - len(binds):
            errors += [_unlisted(loop, n) for n in binds]
    if errors:
        return None, errors
    entries = list(range(length)) if length == len(scheduled) else scheduled
    for name in ("async_producers", "async_producer_groups"):
        values: tuple[int, ...] | None = getattr(notes, name)
        if values is not None and len(values) != length:
            message = f"{name} has {len(values)} entries and stage has {length}; they must have the same length"
            errors.append(Complaint("901", message, span=loop.span))
    return entries, errors


def _unlisted(loop: Loop, n: int) -> Complaint:
    bind = loop.statements[n]
    message = (
        f"bind {bind.bind} has no entry in stage and order, but it must be scheduled: {_why_not(loop, bind)}, "
        "so its value cannot be computed again at each use"
    )
    return Complaint("906", message, (n,), bind.span)


def _slot(loop: Loop, number: int, entry: int) -> Slot:
    notes = loop.annotations
    assert notes.stage is not None and notes.order is not None
    stage = notes.stage[entry]
    if notes.async_producers is not None:
        is_async = entry < len(notes.async_producers) and notes.async_producers[entry] != 0
    else:
        is_async = stage in (notes.async_stages or ())
    groups = notes.async_producer_groups
    group = groups[entry] if groups is not None and entry < len(groups) else -1
    return Slot(number, stage, notes.order[entry], is_async, group)


def _stages(loop: Loop) -> int | None:
    """The number of stages that the compiler takes for relaxing waits: num_stages, else the largest entry + 1."""
    notes = loop.annotations
    if notes.num_stages is not None:
        return notes.num_stages
    largest = max(notes.stage or (-1,), default=-1)
    return largest + 1 if largest >= 0 else None


def _orders(plan: Plan) -> Iterator[Complaint]:
    first: dict[int, int] = {}
    for slot in plan.slots:
        other = first.setdefault(slot.order, slot.number)
        if other != slot.number:
            a, b = plan.loop.statements[other], plan.statement(slot)
            message = f"{a.label} and {b.label} both have order {slot.order}; each order number may be used once"
            yield Complaint("902", message, (other, slot.number), b.span)


def _bind_order(plan: Plan) -> Iterator[Complaint]:
    for slot in plan.slots:
        text = plan.statement(slot)
        for name in dict.fromkeys(text.uses):
            definition = plan.loop.definition.get(name)
            if definition is None or definition == slot.number or definition in plan.replayed:
                continue
            bind = plan.slot[definition]
            if bind.stage != slot.stage:
                what = f"is in stage {bind.stage} and {text.label}, which uses it, in stage {slot.stage}"
            elif bind.order >= slot.order:
                what = f"has order {bind.order} and {text.label}, which uses it, order {slot.order}"
            else:
                continue
            message = f"bind {name} {what}; a scheduled bind must be in the stage of its consumers, before them"
            yield Complaint("905", message, (definition, slot.number), text.span)


def _flow(plan: Plan) -> Iterator[Complaint]:
    """Writer before reader in the source, as the compiler sees it: by buffer, whatever the cells."""
    for n, reader in enumerate(plan.slots):
        for buffer in dict.fromkeys(a.buffer for a in plan.statement(reader).seen):
            for writer in plan.slots[:n]:
                if all(a.buffer != buffer for a in plan.statement(writer).writes):
                    continue
                w, r = plan.statement(writer), plan.statement(reader)
                if writer.stage > reader.stage:
                    message = (
                        f"{r.label} in stage {reader.stage} reads {buffer}, which {w.label} writes in the later stage "
                        f"{writer.stage}"
                    )
                    yield Complaint("903", message, (writer.number, reader.number), r.span)
                elif writer.stage == reader.stage and writer.order >= reader.order:
                    message = (
                        f"{r.label} (order {reader.order}) reads {buffer} before {w.label} (order {writer.order}) "
                        f"writes it, both in stage {reader.stage}"
                    )
                    yield Complaint("904", message, (writer.number, reader.number), r.span)


def async_sources(plan: Plan, slot: Slot) -> dict[int, str]:
    """The async stages, up to its own, whose buffers a statement reads: stage -> one such buffer."""
    texts = (slot.number, *plan.replays[slot.number])
    read = {a.buffer for t in texts for a in plan.loop.statements[t].seen}
    found = {}
    for producer in plan.slots:
        if producer.is_async and producer.stage <= slot.stage:
            for access in plan.statement(producer).writes:
                if access.buffer in read:
                    found[producer.stage] = access.buffer
    return found


def _two_async_stages(plan: Plan) -> Iterator[Complaint]:
    if not plan.rewritten:
        return
    for slot in plan.slots:
        sources = async_sources(plan, slot)
        if not slot.is_async and len(sources) > 1:
            text = plan.statement(slot)
            what = " and ".join(f"{buffer} (stage {stage})" for stage, buffer in sorted(sources.items()))
            message = f"{text.label} reads {what}, written by two async stages; the compiler can wait for one only"
            yield Complaint("909", message, (slot.number,), text.span)


def _legacy(plan: Plan, entries: list[int]) -> Iterator[Complaint]:
    loop = plan.loop
    notes = loop.annotations
    if notes.stage is None or len(notes.stage) != len(loop.statements) or not plan.replayed:
        return
    for n in sorted(plan.replayed):
        bind = loop.statements[n]
        consumers = [s for s in plan.slots if bind.bind in plan.statement(s).uses]
        if len({(s.stage, s.order) for s in consumers}) > 1:
            message = (
                f"stage and order have an entry for bind {bind.bind}; it is ignored, the bind is computed again at "
                f"each of its {len(consumers)} uses"
            )
            yield Complaint("910", message, (n,), bind.span)


def _beside(plan: Plan) -> Iterator[Complaint]:
    given = plan.loop.annotations.num_stages
    if given is None:
        return
    message = (
        f"num_stages = {given} stands beside stage and order; the depth is max(stage) + 1 = {plan.depth}, num_stages "
        "only sets the number of barriers and how far waits are relaxed"
    )
    yield Complaint("907", message, span=plan.loop.span)
