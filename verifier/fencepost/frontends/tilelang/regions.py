"""Which elements does one entry of a subscript name?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from fencepost import ir
from fencepost.frontends.tilelang.signs import Bounds, bounds_of
from fencepost.frontends.tilelang.values import Dim, Full, Part, Place, Region, Vague


def dimension(
    low: ir.Expr, high: ir.Expr | None, size: ir.Expr | None, known: Mapping[str, Bounds] = MappingProxyType({})
) -> Dim:
    """The slice from `low` to `high` of a dimension with `size` elements (None: not known).

    `known` are the bounds of names, as far as they are known: the compiler counts negative indices from the end.
    """
    if low == ir.Int(0) and (high is None or high == size):
        return Full()
    if high is None:
        return Vague()
    least = bounds_of(low, known)[0]
    if least is None or least < 0:
        return Vague()
    if isinstance(low, ir.Int) and isinstance(high, ir.Int):
        return Part(low.value, high.value)
    return Place(low, high)


def index_dim(
    index: ir.Expr | None,
    size: ir.Expr | None,
    known: Mapping[str, Bounds] = MappingProxyType({}),
    read: bool = False,
) -> Dim:
    """One element of a dimension; None: which one is not known.  Negative indices count from the end.

    `read`: the index is read from memory, and so not negative in a program that stays within its buffers.
    """
    if index is None:
        return Vague()
    least, most = bounds_of(index, known)
    if most is not None and most < 0 and isinstance(size, ir.Int):
        index = ir.Int(index.value + size.value) if isinstance(index, ir.Int) else ir.Binary("+", index, size)
        least, most = bounds_of(index, known)
    if not read and (least is None or least < 0):
        return Vague()
    if isinstance(index, ir.Int):
        if size == ir.Int(1) and index.value == 0:
            return Full()
        return Part(index.value, index.value + 1)
    return Place(index)


Extents = Mapping[str, tuple[ir.Expr, ir.Expr] | None]
"""Loop variables and their ranges: (start, stop); None where they leave some numbers out."""


def spread(region: Region, extents: Extents) -> Region:
    """All elements that a region names while some variables run over their ranges."""
    if not extents:
        return region
    at = tuple(dict.fromkeys(spread(r, extents) for r in region.at))
    if region.dims is None:
        return replace(region, at=at)
    shape: Sequence[ir.Expr | None] = region.tensor.shape or ()
    dims: list[Dim] = []
    used: set[str] = set()
    for place, dim in enumerate(region.dims):
        size = shape[place] if place < len(shape) else None
        names = _mentioned(dim) & extents.keys()
        if not isinstance(dim, Place) or not names:
            dims.append(dim)
            continue
        start = dim.start
        extent = extents[start.id] if isinstance(start, ir.Name) and start.id in extents else None
        if not isinstance(start, ir.Name) or extent is None or dim.stop is not None or start.id in used:
            dims.append(Vague())
            continue
        used.add(start.id)
        found = dimension(*extent, size)
        dims.append(Vague() if isinstance(found, Place) else found)
    return replace(region, dims=tuple(dims), at=at)


def blurred(region: Region, variables: Collection[str]) -> Region:
    """A region in one round of some loops, where the entries that depend on their variables are not told."""
    at = tuple(dict.fromkeys(blurred(r, variables) for r in region.at))
    dims = region.dims and tuple(d if _mentioned(d).isdisjoint(variables) else Vague() for d in region.dims)
    return replace(region, dims=dims, at=at)


def filled(region: Region, extents: Extents) -> set[str]:
    """The variables that run over all entries of some dimension of a region, one entry at a time."""
    shape: Sequence[ir.Expr | None] = region.tensor.shape or ()
    found: set[str] = set()
    for dim, size in zip(region.dims or (), shape, strict=False):
        if isinstance(dim, Place) and dim.stop is None and isinstance(dim.start, ir.Name):
            extent = extents.get(dim.start.id)
            if extent is not None and extent[0] == ir.Int(0) and extent[1] == size:
                found.add(dim.start.id)
    return found


def _mentioned(dim: Dim) -> set[str]:
    if not isinstance(dim, Place):
        return set()
    ends = (dim.start,) if dim.stop is None else (dim.start, dim.stop)
    return {n.id for end in ends for n in ir.walk(end) if isinstance(n, ir.Name)}
