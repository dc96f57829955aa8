"""Which stages and orders does the compiler choose for a loop that only says how many stages it wants?

Copies from global to shared memory, and what they depend on, go to stage 0; everything else goes to the last stage, in
source order, each copy right after the last statement that uses what it brings.  The rules are those of the planning
pass of TileLang for a GPU target with asynchronous copies (without a bulk-copy engine).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencepost.pipeline.model import Annotations, Loop, Statement


class Unplanned(Exception):
    """The planning pass gives up, or plans something that the rules here do not cover; the message says why."""


@dataclass(slots=True)
class _Unit:
    """A statement under planning.  `copies`: brings data in; `early`: goes to stage 0 with the copies that need it.

    `asynchronous`: a copy that takes place whatever holds.
    """

    text: Statement
    copies: bool
    asynchronous: bool
    early: bool = False
    last_use: int = -1
    order: int = -1
    stage: int = -1

    @property
    def first(self) -> bool:
        return self.copies or self.early


def plan_stages(loop: Loop) -> Loop:
    """The loop with the annotations that the compiler chooses for its `num_stages`.

    Raises:
        Unplanned: the compiler rejects the loop, or the rules do not say what it does.
    """
    stages = loop.annotations.num_stages
    if stages is None or stages < 1:
        raise Unplanned("the loop asks for no stages")
    texts = [s for n, s in enumerate(loop.statements) if not loop.can_replay(n)]
    mixed = next((s for s in texts if s.partly_copy), None)
    if mixed is not None:
        raise Unplanned(f"whether {mixed.label} counts as a copy is not known")
    units = [_Unit(s, s.copy, s.copy and s.plain) for s in texts]
    if not units:
        raise Unplanned("the body holds only binds that are replayed")
    _needed_by_copies(units)
    _last_uses(units)
    _binds_of_copies(units)
    _arrange(units, stages)
    producers = tuple(int(u.asynchronous) for u in units)
    notes = Annotations(
        num_stages=stages,
        stage=tuple(u.stage for u in units),
        order=tuple(u.order for u in units),
        async_stages=tuple(sorted({u.stage for u in units if u.asynchronous})) or None,
        async_producers=producers if any(producers) else None,
        async_producer_groups=_groups(units) if any(producers) else None,
    )
    return replace(loop, annotations=notes)


def _needed_by_copies(units: list[_Unit]) -> None:
    """Statements that write what a later copy reads go with it."""
    wanted = {a.buffer for u in units if u.copies for a in u.text.seen}
    for place, unit in enumerate(units):
        if not unit.copies:
            continue
        changed = True
        while changed:
            changed = False
            for other in units[:place]:
                if other.copies or not any(a.buffer in wanted for a in other.text.writes):
                    continue
                reads = {a.buffer for a in other.text.seen}
                changed = changed or not other.early or not reads <= wanted
                other.early = True
                wanted |= reads


def _last_uses(units: list[_Unit]) -> None:
    for place, unit in enumerate(units):
        if not unit.first:
            continue
        written = {a.buffer for a in unit.text.writes}
        for later, other in enumerate(units[place + 1 :], place + 1):
            if any(a.buffer in written for a in other.text.seen):
                unit.last_use = later
            again = [a for a in other.text.writes if a.buffer in written] if unit.copies else []
            if any(a.rough for a in again):
                raise Unplanned(f"whether {other.text.label} writes {again[0].buffer} again is not known")
            if again:
                raise Unplanned(f"{unit.text.label} and {other.text.label} write one buffer; the compiler rejects that")


def _binds_of_copies(units: list[_Unit]) -> None:
    """Scheduled binds that a copy uses go with it."""
    place_of = {u.text.bind: u for u in units if u.text.bind is not None}
    changed = True
    while changed:
        changed = False
        for unit in units:
            if not unit.first or unit.last_use < 0:
                continue
            for bind in (place_of.get(name) for name in unit.text.uses):
                if bind is None or bind.copies or bind is unit:
                    continue
                if not bind.early or bind.last_use < 0 or unit.last_use < bind.last_use:
                    bind.early, bind.last_use, changed = True, unit.last_use, True


def _arrange(units: list[_Unit], stages: int) -> None:
    order = 0
    for place, unit in enumerate(units):
        if unit.first and unit.last_use >= 0:
            continue
        unit.order, unit.stage = order, stages
        order += 1
        for other in units:
            if other.first and other.last_use == place:
                other.order, other.stage = order, 0
                order += 1
    if order != len(units):
        raise Unplanned("some copies are used by copies only")
    firsts = [u.order for u in units if u.first]
    others = [u.order for u in units if not u.first]
    if firsts and stages >= 2 and min(firsts) > max(others, default=0):
        for unit in units:  # all copies stand at the end: move them to the front, one stage closer
            unit.order = (unit.order + len(firsts)) % len(units)
            if not unit.first:
                unit.stage -= 1


def _groups(units: list[_Unit]) -> tuple[int, ...]:
    """Copies of one stage with one last user form a commit group."""
    numbers: dict[tuple[int, int], int] = {}
    for unit in sorted(units, key=lambda u: u.order):
        if unit.asynchronous:
            numbers.setdefault((unit.stage, unit.last_use), len(numbers))
    return tuple(numbers[u.stage, u.last_use] if u.asynchronous else -1 for u in units)
