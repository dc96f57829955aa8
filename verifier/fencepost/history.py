"""What does an agent do with the memory that outlives it, in which order, and can that be told from values alone?

Stores and loads of tensors are tied by no value.  A tensor is known by its name as an input, a place in it by the
coordinates; different coordinates are taken to be different places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fencepost import ir
from fencepost.defuse import stored
from fencepost.facts import Fact
from fencepost.findings import Related
from fencepost.model.memory import lay_out
from fencepost.model.program import Compiled, constant
from fencepost.model.values import Computed, Event, Values, is_store


@dataclass(frozen=True, slots=True)
class Use:
    """An access to a tensor: a store to a place of it, or an operation that may read it (`store` is False).

    `what`: the operation with its scalar operands and values.  `view`: the tensor or the part of it that is stored to.
    """

    what: Hashable
    view: Hashable
    at: tuple[int, ...]
    store: bool
    stmt: ir.DataOp


Past = dict[str, list[Use]]
"""For every tensor that an agent touches: in order, all that it does with it."""


def past(events: Sequence[Event], meaning: Callable[[int], int], values: Values) -> Past:
    """What one agent does with every tensor; `meaning` says how values are named in the result."""
    found: Past = defaultdict(list)
    for event in events:
        if not isinstance(event, Computed):
            continue
        named, last = _stored(event)
        reads = tuple(meaning(number) for number in event.reads)
        what = (event.op, event.at, reads)
        written: frozenset[str] = frozenset() if named is None else frozenset({named})
        view: Hashable = named
        if last:
            written |= _tensors(event.reads[-1], values)
            view = reads[-1]
        given = event.reads[:-1] if last else event.reads
        read = frozenset[str]().union(*(_tensors(number, values) for number in given))
        for tensor in sorted(written):
            found[tensor].append(Use(what, view, event.at, True, event.stmt))
        for tensor in sorted(read - written):
            found[tensor].append(Use(what, None, event.at, False, event.stmt))
    return dict(found)


def _stored(event: Computed) -> tuple[str | None, bool]:
    """For a store: the tensor that it only names as what it writes, or that the tensor is its last operand."""
    target = stored(event.stmt) if is_store(event.stmt) else None
    if target is None:
        return None, False
    last = any(target is access for access in event.stmt.reads)
    return (None if last else target.name), last


def _tensors(number: int, values: Values) -> frozenset[str]:
    """The inputs that a value may be a part of; what was loaded is no part of the tensor that it was loaded from."""
    found: set[str] = set()
    seen: set[int] = set()
    stack = [number]
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        match values.description(current):
            case ("input", str() as name):
                found.add(name)
            case (str() as op, tuple(), tuple() as sources, int()) if not op.startswith("load"):
                stack.extend(sources)
    return frozenset(found)


def same_past(before: Sequence[Use], after: Sequence[Use]) -> bool:
    """Whether a tensor ends, and is read, the same: all in one order, or only stored to and the same place by place."""
    if [use.what for use in before] == [use.what for use in after]:
        return True
    uses = (*before, *after)
    if not any(use.store for use in uses):
        return True
    if not all(use.store and use.at for use in uses) or len({use.view for use in uses}) > 1:
        return False
    places: list[dict[tuple[int, ...], list[Hashable]]] = [{}, {}]
    for place, side in zip(places, (before, after), strict=True):
        for use in side:
            place.setdefault(use.at, []).append(use.what)
    return places[0] == places[1]


def last_store(before: Past, after: Past) -> Fact | None:
    """The first place whose last store, of those to the same part of a tensor at the same coordinates, is another."""
    for tensor, uses in after.items():
        ends = [{(u.view, u.at): u for u in side if u.store and u.at} for side in (before.get(tensor, []), uses)]
        for (view, at), use in ends[1].items():
            was = ends[0].get((view, at))
            if was is not None and was.what != use.what:
                place = ", ".join(map(str, at))
                detail = f"the last {use.stmt.op} to {tensor} at ({place}) stores another value than in the text before"
                related = (Related(was.stmt.span, "the last one in the text before"),)
                return Fact("701", use.stmt.span, (("detail", detail),), related, ("translation store", tensor))
    return None


def shared_tensors(agents: Mapping[str, Past]) -> Iterator[str]:
    """Tensors that one core stores to and the other one touches: what is read there depends on both."""
    cores: dict[str, set[str]] = defaultdict(set)
    stores: set[str] = set()
    for agent, tensors in agents.items():
        for tensor, uses in tensors.items():
            cores[tensor].add("cube" if agent == "aic" else "vector")
            if any(use.store for use in uses):
                stores.add(tensor)
    return (tensor for tensor in sorted(stores) if len(cores[tensor]) > 1)


def unfollowed(compiled: Compiled) -> str:
    """Why equal values of a run may still not be the same kernel; "" if they are.

    That is where memory has several names or several users: buffers that share bytes, a buffer that one core writes
    and the other one uses, a buffer that outlives the agent, a message that is a buffer.
    """
    buffers = {b.name: b for b in compiled.kernel.buffers}
    for program in compiled.programs:
        for stmt in program.sites:
            if isinstance(stmt, ir.Push | ir.Pop | ir.Free) and stmt.value in buffers:
                return f"the buffer {stmt.value} is a message"
    for name, uses in _users(compiled).items():
        written = any(write for _, write, _ in uses)
        if written and (buffers[name].space == "GM" or buffers[name].shared):
            return f"the buffer {name} may be seen by others"
        if written and len({core for core, _, _ in uses}) > 1:
            return f"both cores use the buffer {name}"
    return aliased(compiled)


def aliased(compiled: Compiled) -> str:
    """Which memory has several names, so that values that are followed by name can be wrong; "" if none has."""
    users = _users(compiled)
    for name, uses in users.items():
        if any(write for _, write, _ in uses) and len({parts for _, _, parts in uses}) > 1:
            return f"the buffer {name} is used in parts and as a whole"
    layout = lay_out(compiled)
    covered: dict[int, tuple[str, int]] = {}
    for name in users:
        for slot in range(compiled.depths[name]):
            for cell in layout.views[name, slot, 0, 1]:
                other = covered.setdefault(cell, (name, slot))
                if other != (name, slot):
                    return f"{other[0]} and {name} share memory" if other[0] != name else f"slots of {name} overlap"
    return ""


def _users(compiled: Compiled) -> dict[str, set[tuple[str, bool, int]]]:
    """For every buffer that is used: by which core, whether written, and in how many parts (0: as a whole)."""
    found: dict[str, set[tuple[str, bool, int]]] = defaultdict(set)
    for program in compiled.programs:
        core = "cube" if program.agent == "aic" else "vector"
        for stmt in program.sites:
            if not isinstance(stmt, ir.DataOp):
                continue
            for position, access in enumerate((*stmt.writes, *stmt.reads)):
                if access.name in compiled.depths:
                    parts = 0 if access.parts is None else constant(access.parts, compiled.scalars, "parts")
                    found[access.name].add((core, position < len(stmt.writes), parts))
    return found


__all__ = ["Past", "Use", "aliased", "last_store", "past", "same_past", "shared_tensors", "unfollowed"]
