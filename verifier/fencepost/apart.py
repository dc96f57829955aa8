"""Apart: on which buffers can two cores never meet, whatever the signals?"""

from __future__ import annotations

from collections.abc import Iterator

from fencepost import ir
from fencepost.model.effects import Resolver
from fencepost.model.memory import Layout
from fencepost.model.once import once
from fencepost.model.program import Compiled, ModelError, constant


@once
def private(compiled: Compiled) -> frozenset[str]:
    """Buffers whose memory only the cube, or each vector sub-core for itself, touches: only one core can race there."""
    layout = Resolver(compiled).layout
    cube = {access.name for core, access in _accesses(compiled, layout) if core == "cube"}
    vector = {access.name for core, access in _accesses(compiled, layout) if core == "vector"}
    mine = {b for b in cube if not layout.overlapping(b, vector)}
    own = {b for b in vector if layout.spaces[b] == "Vec" and not layout.overlapping(b, cube)}
    return frozenset(mine | own)


@once
def lanes_apart(compiled: Compiled) -> frozenset[str]:
    """Buffers on which the two vector sub-cores cannot meet: Vec, or each sub-core has its own parts."""
    layout = Resolver(compiled).layout
    touched: list[dict[str, set[int]]] = [{}, {}]
    for core, access in _accesses(compiled, layout):
        if core == "vector":
            for lane in (0, 1):
                touched[lane].setdefault(access.name, set()).update(_cells(compiled, layout, access, lane))
    both = set().union(*touched[0].values()) & set().union(*touched[1].values())
    return frozenset(b for b in layout.depths if not any(both & side.get(b, set()) for side in touched))


def _accesses(compiled: Compiled, layout: Layout) -> Iterator[tuple[str, ir.Access]]:
    """Every operand of the text that is a buffer, with the cores that may run it."""
    for item in compiled.kernel.body:
        for core in (item.core,) if isinstance(item, ir.Section) else ("cube", "vector"):
            for node in ir.walk(item):
                if isinstance(node, ir.Access) and node.name in layout.depths:
                    yield core, node


def _cells(compiled: Compiled, layout: Layout, access: ir.Access, lane: int) -> Iterator[int]:
    """The memory that an operand may touch on one sub-core, in whichever slot."""
    parts, chosen = 1, [0]
    if access.parts is not None and access.part is not None:
        parts = constant(access.parts, compiled.scalars, "number of parts")
        chosen = list(range(parts))
        try:
            part = constant(access.part, {**compiled.scalars, "sub": ir.Int(lane)}, "part")
            chosen = [part] if 0 <= part < parts else chosen
        except ModelError:
            pass  # computed as the kernel runs: any part
    for slot in range(layout.depths[access.name]):
        for part in chosen:
            yield from layout.cells(access.name, slot, lane, part, parts)
