"""Which parts of shared memory do accesses reach: slots of global tensors, shares of a tile that sub-cores fill?

A tensor that the kernel both writes and reads becomes a buffer in GM.  Regions that are provably distinct become
distinct slots; where coordinates cannot be told apart, the accesses share a slot, and the assumptions say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from fencepost import ir
from fencepost.frontends.pypto_pro.context import Context, Core, TensorAccess
from fencepost.frontends.pypto_pro.expressions import add, divide, from_linear, linear, modulo, multiply, subtract
from fencepost.frontends.pypto_pro.facts import BOTH, Facts
from fencepost.frontends.pypto_pro.reaching import Known, definitions
from fencepost.frontends.pypto_pro.simplify import Body, map_statements, statements

_MAX_SLOTS = 1024
_BUILD = {"+": add, "-": subtract, "*": multiply, "//": divide, "%": modulo}
_ZERO = ir.Int(0)


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a slot that an access touches: the `part`-th of `parts`, or all of it."""

    index: ir.Expr | None = None
    part: ir.Expr | None = None
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Use:
    """One access to a tensor, or one insertion into a tile."""

    operation: ir.DataOp
    core: Core
    where: TensorAccess
    active: frozenset[int]


@dataclass(slots=True)
class _Axis:
    """One dimension of a tensor: tiles of `size`, `count` of them; per use the tile and the rest within it."""

    size: int
    count: int
    tiles: dict[int, ir.Expr] = field(default_factory=dict)
    shares: dict[int, tuple[ir.Expr, int]] = field(default_factory=dict)


class Regions:
    """The accesses of a kernel to memory that is not a plain tile."""

    def __init__(self, context: Context, bodies: Mapping[Core, Body]) -> None:
        self.context = context
        self.facts = {c: Facts.of(b, context.constants.values(), c == "vector") for c, b in bodies.items()}
        wanted = {i for i, places in context.accesses.items() if places}
        self.known = {c: definitions(b, lambda s: id(s) in wanted) for c, b in bodies.items()}
        self.uses: dict[str, list[Use]] = {}
        self.shares: dict[tuple[int, str], Share] = {}
        for core, body in bodies.items():
            for stmt in statements(body):
                if isinstance(stmt, ir.DataOp):
                    active = self.facts[core].active.get(id(stmt), BOTH)
                    for where in context.accesses.get(id(stmt), ()):
                        use = Use(stmt, core, self._narrowed(where, self.facts[core]), active)
                        self.uses.setdefault(where.name, []).append(use)

    @staticmethod
    def _narrowed(where: TensorAccess, facts: Facts) -> TensorAccess:
        """The access with extents no larger than its valid shape."""
        if not any(where.valid):
            return where
        extents: list[int | None] = []
        for extent, valid in zip(where.extents, where.valid, strict=True):
            most = None if valid is None else facts.highest(valid)
            extents.append(extent if most is None or most < 1 else most if extent is None else min(extent, most))
        return replace(where, extents=tuple(extents))

    # ----------------------------------------------------------------------------------------------- insertions (tiles)

    def insertions(self, name: str) -> None:
        """The shares of a tile that the insertions into it fill."""
        uses = [u for u in self.uses[name] if u.core == "vector"]
        if not uses:
            return
        exact = self._rectangles(uses)
        if exact is not None:
            self._number(uses, exact)
            return
        for use in uses:
            facts = self.facts[use.core]
            if any(c is None or facts.depends(c) for c in use.where.coordinates) and use.active == BOTH:
                self.shares[id(use.operation), name] = Share(None, ir.Name("sub"), 2)
                self.context.assume(
                    f"the two sub-cores insert into different parts of {name} (line {use.operation.span.line})"
                )

    def _rectangles(self, uses: list[Use]) -> list[dict[int, tuple[int, ...]]] | None:
        """For each use and sub-core the rectangle (row, column, rows, columns), if all of them are known."""
        found: list[dict[int, tuple[int, ...]]] = []
        for use in uses:
            facts = self.facts[use.core]
            per_sub: dict[int, tuple[int, ...]] = {}
            for sub in use.active:
                corner = [None if c is None else facts.at(c, sub) for c in use.where.coordinates]
                if any(c is None for c in corner) or any(e is None for e in use.where.extents):
                    return None
                if not _fits([c or 0 for c in corner], [e or 0 for e in use.where.extents], use.where.shape):
                    return None  # what is inserted must be less than the whole source tile
                per_sub[sub] = (*(c for c in corner if c is not None), *(e for e in use.where.extents if e is not None))
            found.append(per_sub)
        return found

    def _number(self, uses: list[Use], rectangles: list[dict[int, tuple[int, ...]]]) -> None:
        """Number the rectangles if they are pairwise equal or disjoint; otherwise each access is to the whole tile."""
        distinct = sorted({r for per_sub in rectangles for r in per_sub.values()})
        if len(distinct) < 2 or any(_meet(a, b) for i, a in enumerate(distinct) for b in distinct[i + 1 :]):
            return
        for use, per_sub in zip(uses, rectangles, strict=True):
            numbers = {sub: distinct.index(r) for sub, r in per_sub.items()}
            low = numbers.get(0, numbers.get(1, 0))
            high = numbers.get(1, low)
            part = add(multiply(ir.Name("sub"), ir.Int(high - low), ir.NOWHERE), ir.Int(low), ir.NOWHERE)
            if len(numbers) == 1:
                part = ir.Int(low)
            self.shares[id(use.operation), use.where.name] = Share(None, part, len(distinct))

    # ---------------------------------------------------------------------------------------------------------- tensors

    def tensor(self, name: str) -> int | None:
        """Choose the slots of a tensor; returns how many there are (None: one, used without an index)."""
        uses = self.uses[name]
        dimensions = len(uses[0].where.coordinates)
        known = dimensions > 0 and all(len(u.where.coordinates) == dimensions for u in uses)
        axes = [self._axis(uses, d) for d in range(dimensions)] if known else []
        merged = [d for d, axis in enumerate(axes) if axis is None]
        if not known or merged:
            self.context.assume(
                f"accesses to {name} that cannot be told apart by their coordinates are taken as one region"
            )
        kept = [a for a in axes if a is not None]
        while prod(a.count for a in kept) > _MAX_SLOTS:
            widest = max(kept, key=lambda a: a.count)
            widest.count, widest.tiles = 1, {}
            self.context.assume(f"{name} is too large to tell all its regions apart: some are taken as one")
        total = prod(a.count for a in kept)
        for number, use in enumerate(uses):
            index: ir.Expr = _ZERO
            for axis in kept:
                if axis.count > 1:
                    index = add(multiply(index, ir.Int(axis.count), ir.NOWHERE), axis.tiles[number], ir.NOWHERE)
            share = self._share(uses, number, kept)
            key = (id(use.operation), name)
            self.shares[key] = replace(share, index=index if total > 1 else None)
        return total if total > 1 else None

    def _axis(self, uses: list[Use], dimension: int) -> _Axis | None:
        """Cut one dimension into tiles that every access respects, or None."""
        extents = [u.where.extents[dimension] if dimension < len(u.where.extents) else None for u in uses]
        sizes = [e for e in extents if e is not None]
        if not sizes:
            return None
        axis = _Axis(max(sizes), 1)
        highest: int | None = 0
        coordinates, moved = self._relative(uses, dimension)
        for number, (use, extent, coordinate) in enumerate(zip(uses, extents, coordinates, strict=True)):
            if coordinate is None:
                return None
            placed = self._place(use, coordinate, extent if extent is not None else axis.size, axis.size)
            if placed is None:
                return None
            tile, share = placed
            axis.tiles[number] = tile
            if share is not None:
                axis.shares[number] = share
            reach = self.facts[use.core].highest(tile)
            highest = None if highest is None or reach is None else max(highest, reach)
        sizes_known = {u.where.shape[dimension] for u in uses if dimension < len(u.where.shape)}
        length = sizes_known.pop() if len(sizes_known) == 1 and not moved else None
        if length is not None:
            axis.count = max((length + axis.size - 1) // axis.size, 1)
            if highest is not None:
                axis.count = min(axis.count, highest + 1)
        elif highest is not None:
            axis.count = highest + 1
        else:  # all in one; several slots in turn would be as sound, but much harder to prove
            axis.count = 1
            name = uses[0].where.name
            self.context.assume(f"the regions of {name}, whose number is not bounded, are taken as one")
        return axis

    def _relative(self, uses: list[Use], dimension: int) -> tuple[list[ir.Expr | None], bool]:
        """The coordinates without what all of them have in common, and whether that is anything."""
        found: list[ir.Expr | None] = []
        for use in uses:
            coordinate = use.where.coordinates[dimension]
            found.append(None if coordinate is None else self._expanded(use, coordinate))
        forms = [linear(c) for c in found if c is not None]
        if not forms:
            return found, False
        common = {
            atom
            for atom, factor in forms[0][0].items()
            if self._steady(atom)
            and not any(isinstance(n, ir.Name) and n.id == "sub" for n in ir.walk(atom))
            and all(terms.get(atom) == factor for terms, _ in forms)
        }
        if not common:
            return found, False
        relative: list[ir.Expr | None] = []
        for coordinate in found:
            if coordinate is not None:
                terms, constant = linear(coordinate)
                kept = {a: f for a, f in terms.items() if a not in common}
                coordinate = from_linear((kept, constant), coordinate.span)
            relative.append(coordinate)
        return relative, True

    def _place(
        self, use: Use, coordinate: ir.Expr, extent: int, size: int
    ) -> tuple[ir.Expr, tuple[ir.Expr, int] | None] | None:
        """The tile that an access lies in, and its share of it (share, of how many)."""
        facts = self.facts[use.core]
        terms, constant = linear(coordinate)
        whole: dict[ir.Expr, int] = {}
        rest: dict[ir.Expr, int] = {}
        for atom, factor in terms.items():
            (whole if (factor * facts.multiple(atom)) % size == 0 else rest)[atom] = factor
        span = coordinate.span
        base = from_linear((whole, constant // size * size), span)
        tile = divide(base, ir.Int(size, span=span), span)
        left = from_linear((rest, constant % size), span)
        offsets = [facts.at(left, sub) for sub in sorted(use.active)] if use.core == "vector" else [facts.at(left, 0)]
        numbers = [o for o in offsets if o is not None]
        if len(numbers) == len(offsets):
            if any(o < 0 or o + extent > size for o in numbers):
                return None
            if extent == size:
                return tile, None
            if size % extent or any(o % extent for o in numbers):
                return tile, None
            return tile, (divide(left, ir.Int(extent, span=span), span), size // extent)
        if extent == 1:
            return divide(coordinate, ir.Int(size, span=span), span), None
        if use.core == "vector" and use.active == BOTH and facts.at(left, 0) == 0:
            self.context.assume(
                f"the two sub-cores reach different parts of {use.where.name} (line {use.operation.span.line})"
            )
            return tile, (ir.Name("sub", span=span), 2)
        return None

    def _expanded(self, use: Use, expr: ir.Expr) -> ir.Expr:
        """The expression as it stands at a use, with scalars replaced by what they are defined as."""
        return self._replaced(expr, self.facts[use.core], self.known[use.core].get(id(use.operation), {}), 6)

    def _replaced(self, expr: ir.Expr, facts: Facts, known: Known, depth: int) -> ir.Expr:
        match expr:
            case ir.Name(id=name) if depth:
                if name in known:
                    return self._replaced(known[name], facts, known, depth - 1)
                given = facts.values.get(name, []) if name not in facts.loops and name not in facts.opaque else []
                if len({g.value for g in given}) == 1 and self._steady(given[0].value):
                    return self._replaced(given[0].value, facts, {}, depth - 1)
            case ir.Binary(op=op, left=left, right=right):
                a, b = self._replaced(left, facts, known, depth), self._replaced(right, facts, known, depth)
                return _BUILD[op](a, b, expr.span)
        return expr

    def _steady(self, expr: ir.Expr) -> bool:
        return all(
            not isinstance(n, (ir.Field, ir.Item)) and (not isinstance(n, ir.Name) or self.context.stable(n.id))
            for n in ir.walk(expr)
        )

    def _share(self, uses: list[Use], number: int, axes: list[_Axis]) -> Share:
        """The share of its slot that a use touches.

        Shares are runs of bytes, so they are exact when all partial accesses split the same way.
        """
        splits = {tuple(a.shares[n][1] if n in a.shares else 1 for a in axes) for n in range(len(uses))}
        splits = {s for s in splits if prod(s) > 1}
        mine = tuple(a.shares[number][1] if number in a.shares else 1 for a in axes)
        nested = len(splits) > 1 and all(all(n == 1 for n in s[1:]) for s in splits)
        if prod(mine) == 1:
            return Share()
        if len(splits) > 1 and not nested:
            return Share()
        part: ir.Expr = _ZERO
        for axis, count in zip(axes, mine, strict=True):
            if count > 1:
                part = add(multiply(part, ir.Int(count), ir.NOWHERE), axis.shares[number][0], ir.NOWHERE)
            elif prod(mine) > 1:
                continue
        return Share(None, part, prod(mine))

    # -------------------------------------------------------------------------------- outputs that both sub-cores write

    def clashes(self, name: str, bodies: Mapping[Core, Body]) -> list[Use]:
        """Stores of what differs between the sub-cores to one place that does not."""
        facts = self.facts.get("vector")
        if facts is None:
            return []
        both = [u for u in self.uses[name] if u.core == "vector" and u.active == BOTH]
        different = self._different(bodies) if both else set()
        found: list[Use] = []
        for use in both:
            if not any(a.name in different for a in use.operation.reads):
                continue
            apart = self._apart(use, facts)
            if apart is None:
                self.context.assume(
                    f"the two sub-cores store to different parts of {name} (line {use.operation.span.line})"
                )
            elif not apart:
                found.append(use)
        return found

    def _apart(self, use: Use, facts: Facts) -> bool | None:
        """Whether the sub-cores reach different places; None if that cannot be told."""
        result: bool | None = False
        if not use.where.coordinates:
            return None
        for coordinate, extent in zip(use.where.coordinates, use.where.extents, strict=False):
            if coordinate is None:
                result = None
                continue
            terms, _ = linear(self._expanded(use, coordinate))
            step = terms.pop(ir.Name("sub"), 0)
            if any(facts.depends(atom) for atom in terms) or (step and extent is None):
                result = None
            elif extent is not None and abs(step) >= extent:
                return True
        return None if result is False and not use.where.exact else result

    def _different(self, bodies: Mapping[Core, Body]) -> set[str]:
        """Vec buffers whose contents differ between the sub-cores."""
        facts = self.facts["vector"]
        different: set[str] = set()
        for stmt in statements(bodies.get("cube", ())):
            if isinstance(stmt, ir.DataOp) and stmt.op.startswith("move"):
                different |= {a.name for a in stmt.writes if self._in_vec(a.name)}
        operations = [s for s in statements(bodies.get("vector", ())) if isinstance(s, ir.DataOp)]
        for stmt in operations:
            places = [w for w in self.context.accesses.get(id(stmt), ()) if stmt.op.startswith("load")]
            if facts.active.get(id(stmt), BOTH) != BOTH or any(
                c is None or facts.depends(c) for w in places for c in w.coordinates
            ):
                different |= {a.name for a in stmt.writes}
        while True:
            before = len(different)
            for stmt in operations:
                if any(a.name in different for a in stmt.reads):
                    different |= {a.name for a in stmt.writes if self._in_vec(a.name)}
            if len(different) == before:
                return different

    def _in_vec(self, name: str) -> bool:
        found = self.context.buffers.found.get(name)
        return found is not None and found.type.space == "Vec"


def _fits(corner: list[int], extents: list[int], shape: tuple[int | None, ...]) -> bool:
    """Whether a rectangle lies within a shape, in one of its two orientations."""
    ends = [c + e for c, e in zip(corner, extents, strict=False)]
    return any(
        all(bound is None or end <= bound for end, bound in zip(ends, order, strict=False))
        for order in (shape, shape[::-1])
    )


def _meet(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    (r, c, h, w), (y, x, m, n) = a, b
    return r < y + m and y < r + h and c < x + n and x < c + w


def place_regions(context: Context, bodies: dict[Core, Body]) -> tuple[dict[Core, Body], tuple[ir.Buffer, ...]]:
    """The programs with slots and shares filled in, and the buffers in global memory."""
    regions = Regions(context, bodies)
    depths: dict[str, int | None] = {}
    for name in list(regions.uses):
        if name in context.buffers.found:
            regions.insertions(name)
            continue
        uses = regions.uses[name]
        writers = {u.core for u in uses if any(a.name == name for a in u.operation.writes)}
        read = any(a.name == name for u in uses for a in u.operation.reads)
        if all(u.where.atomic for u in uses):
            continue
        if writers and (read or len(writers) > 1):
            depths[name] = regions.tensor(name)
        elif writers and (clashing := regions.clashes(name, bodies)):
            depths[name] = None
            for use in clashing:
                regions.shares[id(use.operation), name] = Share()
    if depths and set(depths) != {"ssbuf"}:
        names = ", ".join(sorted(n for n in depths if n != "ssbuf"))
        context.assume(f"no other core touches the parts of {names} that this one uses")

    def change(stmt: ir.Stmt) -> ir.Stmt:
        if not isinstance(stmt, ir.DataOp):
            return stmt
        if stmt.op == "getval" and stmt.reads and _undeclared(stmt.reads[0].name):
            return ir.Pass(span=stmt.span)
        if id(stmt) not in context.accesses:
            return stmt
        writes = tuple(shared(stmt, a) for a in stmt.writes)
        return plain(replace(stmt, writes=writes, reads=tuple(shared(stmt, a) for a in stmt.reads)))

    def plain(stmt: ir.DataOp) -> ir.DataOp:
        """The operation without reads of an output that it adds to."""
        outputs = {a.name for a in stmt.writes if _undeclared(a.name)}
        return replace(stmt, reads=tuple(a for a in stmt.reads if a.name not in outputs))

    def _undeclared(name: str) -> bool:
        return name not in context.buffers.found and name not in depths

    def shared(stmt: ir.DataOp, access: ir.Access) -> ir.Access:
        share = regions.shares.get((id(stmt), access.name))
        if share is None:
            # a store that does not clash is an output like any other: it gets a name of its own
            return access if access.name not in depths else replace(access, name=f"{access.name}_out")
        index = access.index if access.name in context.buffers.found else share.index
        if share.part is None:
            return replace(access, index=index)
        return replace(access, index=index, part=share.part, parts=ir.Int(share.parts, span=access.span))

    changed = {core: map_statements(body, change) for core, body in bodies.items()}
    memory = tuple(
        ir.Buffer(name, "GM", None if depth is None else ir.Int(depth), span=_first_span(regions.uses[name]))
        for name, depth in depths.items()
    )
    return changed, memory


def _first_span(uses: list[Use]) -> ir.Span:
    return uses[0].operation.span
