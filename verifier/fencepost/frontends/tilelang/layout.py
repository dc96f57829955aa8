"""How are the regions of one tensor named in kernel IR, so that equal and disjoint ones can be told apart?

A tensor is one buffer.  If its regions are constant stretches of one dimension, they are numbered parts of it; if one
dimension is indexed, its entries are slots.  What fits neither is an unknown part, named by the function `somewhere`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fencepost import ir
from fencepost.frontends.tilelang.values import Full, Part, Place, Region, Tensor, Vague

_MAX_SLOTS = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """`dim` is the dimension that tells regions apart, None if there is none.

    `parts` are the constant stretches, in order; `depth` the number of slots.
    """

    tensor: Tensor
    dim: int | None = None
    parts: tuple[Part, ...] = ()
    depth: int | None = None

    def accesses(self, region: Region, span: ir.Span, place: ir.Expr | None) -> list[ir.Access]:
        """The region as accesses to the buffer; `place` stands for an unknown one, None: it may be taken as all."""
        name = self.tensor.name
        if region.whole and self.depth is not None:
            return [ir.Access(name, ir.Int(slot), span=span) for slot in range(self.depth)]
        if region.whole:
            return [ir.Access(name, span=span)]
        entry = region.dims[self.dim] if self.dim is not None and region.dims is not None else None
        if self.depth is not None:
            index = _index(entry)
            if index is not None:
                return [ir.Access(name, index, span=span)]
        elif isinstance(entry, Part) and entry in self.parts:
            count = ir.Int(len(self.parts) + 1)
            return [ir.Access(name, part=ir.Int(self.parts.index(entry)), parts=count, span=span)]
        if place is None:
            return self.accesses(Region(self.tensor), span, None)
        if self.depth is not None:
            return [ir.Access(name, place, span=span)]
        return [ir.Access(name, part=place, parts=ir.Int(2), span=span)]


def layout(tensor: Tensor, regions: Sequence[Region]) -> Layout:
    """Choose how to name the regions of a tensor."""
    partial = [r for r in dict.fromkeys(regions) if not r.whole and r.dims is not None]
    shapes = {tuple(i for i, d in enumerate(r.dims or ()) if not isinstance(d, Full)) for r in partial}
    if len(shapes) != 1 or any(isinstance(d, Vague) for r in partial for d in r.dims or ()):
        return Layout(tensor)
    (dims,) = shapes
    if len(dims) != 1:
        return Layout(tensor)
    (dim,) = dims
    entries = [r.dims[dim] for r in partial if r.dims is not None]
    size = tensor.shape[dim] if tensor.shape is not None and dim < len(tensor.shape) else None
    if all(isinstance(e, Part) for e in entries):
        parts = sorted({e for e in entries if isinstance(e, Part)}, key=lambda p: (p.low, p.high))
        if all(a.high <= b.low for a, b in pairwise(parts)):
            return Layout(tensor, dim, tuple(parts))
        return Layout(tensor)
    single = all(_index(e) is not None for e in entries)
    if single and isinstance(size, ir.Int) and 0 < size.value <= _MAX_SLOTS:
        return Layout(tensor, dim, depth=size.value)
    return Layout(tensor)


def _index(entry: object) -> ir.Expr | None:
    match entry:
        case Place(start, None):
            return start
        case Part(low, high) if high == low + 1:
            return ir.Int(low)
        case _:
            return None
