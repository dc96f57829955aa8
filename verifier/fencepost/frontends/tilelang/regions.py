"""Which elements does one entry of a subscript name?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fencepost import ir
from fencepost.frontends.tilelang.values import Dim, Full, Part, Place, Region, Vague


def dimension(low: ir.Expr, high: ir.Expr | None, size: ir.Expr | None, variables: Iterable[str] = ()) -> Dim:
    """The slice from `low` to `high` of a dimension with `size` elements (None: not known)."""
    if low == ir.Int(0) and (high is None or high == size):
        return Full()
    if isinstance(low, ir.Int) and isinstance(high, ir.Int):
        return Part(low.value, high.value)
    return Place(low)


def index_dim(index: ir.Expr | None, size: ir.Expr | None) -> Dim:
    """One element of a dimension; None: which one is not known."""
    if index is None:
        return Vague()
    if isinstance(index, ir.Int):
        if size == ir.Int(1) and index.value == 0:
            return Full()
        return Part(index.value, index.value + 1)
    return Place(index)


def spread(region: Region, extents: dict[str, tuple[ir.Expr, ir.Expr]]) -> Region:
    """All elements that a region names while some variables run over their ranges; values are (start, stop)."""
    if region.dims is None or not extents:
        return region
    shape: Sequence[ir.Expr | None] = region.tensor.shape or ()
    dims: list[Dim] = []
    used: set[str] = set()
    for place, dim in enumerate(region.dims):
        size = shape[place] if place < len(shape) else None
        names = _mentioned(dim) & extents.keys()
        if not isinstance(dim, Place) or not names:
            dims.append(dim)
        elif isinstance(dim.start, ir.Name) and dim.start.id not in used:
            used.add(dim.start.id)
            start, stop = extents[dim.start.id]
            dims.append(dimension(start, stop, size))
            if isinstance(dims[-1], Place):
                dims[-1] = Vague()
        else:
            dims.append(Vague())
    return Region(region.tensor, tuple(dims))


def _mentioned(dim: Dim) -> set[str]:
    if not isinstance(dim, Place):
        return set()
    return {n.id for n in ir.walk(dim.start) if isinstance(n, ir.Name)}
