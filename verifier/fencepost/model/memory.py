"""Memory: which slots of which buffers are the same bytes?

All slots (and the parts of slots that operations name) are cut into *cells*: classes of bytes that exactly the same
slots cover.  Two accesses meet in memory exactly if they share a cell.  Rows may interleave, so slots are compared as
sets of byte runs, never as one interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import lcm

from fencepost import ir
from fencepost.model.program import Compiled, ModelError, constant

Run = tuple[int, int]
View = tuple[str, int, int, int]  # buffer, slot, part, parts

_MAX_VIEWS = 200_000


@dataclass(slots=True)
class Layout:
    """The cells of every slot.

    Vec exists once per vector sub-core: a cell there has two instances.  `instances[c]` is how many copies the class
    c has; `names[c]` lists the slots that cover it, for messages.
    """

    views: dict[View, tuple[int, ...]] = field(default_factory=dict)
    spaces: dict[str, ir.Space] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)
    mutexes: dict[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    classes: int = 0

    def cells(self, buffer: str, slot: int, lane: int, part: int = 0, parts: int = 1) -> tuple[int, ...]:
        """The cells of one access as dense numbers; `lane` picks the copy of a Vec buffer and is ignored elsewhere."""
        classes = self.views[buffer, slot, part, parts]
        copy = lane if self.spaces[buffer] == "Vec" else 0
        return tuple(2 * c + copy for c in classes)

    def overlapping(self, buffer: str, names: Iterable[str]) -> bool:
        """True if some byte of `buffer` belongs to one of the buffers `names` too (or is `buffer` itself)."""
        mine = self._all(buffer)
        return any(mine & self._all(name) for name in names)

    def slots_overlap(self, buffer: str) -> bool:
        """True if some byte belongs to two slots of `buffer`."""
        return sum(len(self.views[buffer, s, 0, 1]) for s in range(self.depths[buffer])) > len(self._all(buffer))

    def _all(self, buffer: str) -> set[int]:
        return {c for s in range(self.depths[buffer]) for c in self.views[buffer, s, 0, 1]}


def lay_out(compiled: Compiled) -> Layout:
    """Cut all slots of the kernel's buffers into cells.

    Raises:
        ModelError: an address without a size, a depth below 1, or sizes that are not constant.
    """
    kernel, scalars = compiled.kernel, compiled.scalars
    parts = _parts(kernel, scalars)
    layout = Layout()
    runs: dict[object, list[tuple[int, int, View]]] = defaultdict(list)
    total = 0
    for buffer in kernel.buffers:
        depth = compiled.depths[buffer.name]
        if depth < 1:
            raise ModelError(f"buffer {buffer.name} has no slot", buffer.span)
        total += depth * sum(parts[buffer.name])
        if total > _MAX_VIEWS:
            raise ModelError(f"more than {_MAX_VIEWS} slots and parts", buffer.span)
        layout.spaces[buffer.name] = buffer.space
        layout.depths[buffer.name] = depth
        if buffer.mutex is not None:
            layout.mutexes[buffer.name] = _mutexes(buffer, depth, scalars)
        split = lcm(*parts[buffer.name])
        for slot in range(depth):
            place = _place(buffer, slot, scalars)
            key: object = buffer.space if place is not None else (buffer.name, slot)
            bytes_ = place if place is not None else [(0, split)]
            for n in parts[buffer.name]:
                for i in range(n):
                    for start, end in _part(bytes_, i, n):
                        runs[key].append((start, end, (buffer.name, slot, i, n)))
    for key in runs:
        _cut(runs[key], layout)
    return layout


def _parts(kernel: ir.Kernel, scalars: dict[str, ir.Expr]) -> dict[str, list[int]]:
    """For each buffer the different n of `part i of n`, 1 first."""
    found: dict[str, set[int]] = {b.name: {1} for b in kernel.buffers}
    for node in ir.walk(kernel):
        if isinstance(node, ir.Access) and node.parts is not None and node.name in found:
            n = constant(node.parts, scalars, "the n of `part i of n`")
            if n < 1:
                raise ModelError("the n of `part i of n` must be at least 1", node.parts.span)
            found[node.name].add(n)
    return {name: sorted(ns) for name, ns in found.items()}


def _mutexes(buffer: ir.Buffer, depth: int, scalars: dict[str, ir.Expr]) -> tuple[tuple[int, ...], ...]:
    assert buffer.mutex is not None
    ids = tuple(tuple(constant(e, scalars, "mutex id") for e in slot) for slot in buffer.mutex)
    if len(ids) != depth:
        raise ModelError(f"buffer {buffer.name} has {depth} slots but {len(ids)} mutex entries", buffer.span)
    return ids


def _place(buffer: ir.Buffer, slot: int, scalars: dict[str, ir.Expr]) -> list[Run] | None:
    """The byte runs of a slot, or None for a buffer without addresses (memory of its own)."""
    if buffer.addresses is None:
        return None
    if buffer.size is None:
        raise ModelError(f"buffer {buffer.name} has an address but no size", buffer.span)
    size = constant(buffer.size, scalars, "buffer size")
    if size < 1:
        raise ModelError("a buffer's size must be at least 1 byte", buffer.size.span)
    stride = size if buffer.stride is None else constant(buffer.stride, scalars, "stride")
    rows = 1 if buffer.rows is None else constant(buffer.rows, scalars, "rows")
    if rows < 1 or (rows > 1 and stride < size):
        raise ModelError("a strided region needs rows >= 1 and a stride of at least its size", buffer.span)
    addresses = [constant(a, scalars, "address") for a in buffer.addresses]
    if slot < len(addresses):
        base = addresses[slot]
    elif len(addresses) == 1:
        base = addresses[0] + slot * (size if rows == 1 else stride * rows)
    else:
        raise ModelError(f"buffer {buffer.name} has more slots than addresses", buffer.span)
    return [(base + r * stride, base + r * stride + size) for r in range(rows)]


def _part(runs: list[Run], i: int, n: int) -> list[Run]:
    """The i-th of n equal shares of the bytes of `runs`, taken in order."""
    if n == 1:
        return runs
    total = sum(end - start for start, end in runs)
    low, high = i * total // n, (i + 1) * total // n
    found, passed = [], 0
    for start, end in runs:
        a, b = max(low, passed), min(high, passed + end - start)
        if a < b:
            found.append((start + a - passed, start + b - passed))
        passed += end - start
    return found


def _cut(runs: list[tuple[int, int, View]], layout: Layout) -> None:
    """Sweep over the bytes of one space and number the classes of bytes with the same covering views."""
    events = sorted(
        [(start, 1, view) for start, _, view in runs] + [(end, 0, view) for _, end, view in runs],
        key=lambda e: (e[0], e[1]),
    )
    active: dict[View, int] = {}
    numbers: dict[frozenset[View], int] = {}
    covers: dict[View, set[int]] = defaultdict(set)
    for position, (at, opens, view) in enumerate(events):
        if opens:
            active[view] = active.get(view, 0) + 1
        elif active[view] == 1:
            del active[view]
        else:
            active[view] -= 1
        if active and position + 1 < len(events) and events[position + 1][0] > at:
            cover = frozenset(active)
            if cover not in numbers:
                numbers[cover] = layout.classes
                layout.classes += 1
                for v in cover:
                    covers[v].add(numbers[cover])
    for view, classes in covers.items():
        layout.views[view] = tuple(sorted(classes))
