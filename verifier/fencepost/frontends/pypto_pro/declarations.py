"""Which device objects do the declarations of a kernel make: tiles, tile groups, tensors, structs, rings?"""

from __future__ import annotations

import ast

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic, expressions
from fencepost.frontends.pypto_pro.handles import Handles
from fencepost.frontends.pypto_pro.tiles import MOST, integer, integers, known_space
from fencepost.frontends.pypto_pro.values import (
    Decorated,
    Group,
    Member,
    OneOf,
    Opaque,
    Pointer,
    Record,
    Ring,
    Scalar,
    Struct,
    Tensor,
    Tile,
    TileType,
    Unknown,
    Unreadable,
    Value,
)

_TILE_TYPE = ("shape", "dtype", "target_memory", "valid_shape", "layout", "fractal", "pad", "compact")


class Declarations(Handles):
    """`pl.TileType`, `pl.make_*`, `pl.struct*`."""

    hint = "tile"  # what the user calls the value being made
    direct: tuple[ast.expr, object, str] | None = None  # an expression, and the variable it goes to

    def arguments(self, node: ast.Call, parameters: tuple[str, ...]) -> dict[str, ast.expr]:
        """The argument expressions of a call, by name."""
        found: dict[str, ast.expr] = {}
        for i, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred) or i >= len(parameters):
                raise Unreadable(f"{ast.unparse(node.func)} is called in a way that is not understood", node)
            found[parameters[i]] = argument
        for keyword in node.keywords:
            if keyword.arg is None:
                raise Unreadable("arguments are unpacked with **", node)
            if keyword.arg in found or keyword.arg not in parameters:
                raise Unreadable(f"{ast.unparse(node.func)} has an argument {keyword.arg} that is not read", node)
            found[keyword.arg] = keyword.value
        return found

    def site(self, node: ast.AST) -> object:
        """What tells a place of the text, with the calls that led to it, from all others."""
        return (id(node), self.frame.via)

    def make_tile_type(self, node: ast.Call) -> TileType:
        given = self.arguments(node, _TILE_TYPE)
        return self._tile_type({name: self.evaluate(value) for name, value in given.items()}, node)

    def _tile_type(self, given: dict[str, Value], node: ast.AST) -> TileType:
        """The tile type with the given values."""
        if "shape" not in given or "dtype" not in given:
            raise Unreadable("a tile type needs a shape and a dtype", node)
        shape, valid, layout = given["shape"], given.get("valid_shape"), given.get("layout")
        if not isinstance(shape, tuple):
            raise Unreadable("the shape of a tile must be a list", node)
        space = given.get("target_memory", Member("MemorySpace", "Vec"))
        if not isinstance(space, Member) or not known_space(space.name):
            raise Unreadable("the memory space of a tile must be a known pl.MemorySpace", node)
        return TileType(
            shape,
            given["dtype"],
            space.name,
            layout.name if isinstance(layout, Member) else None,
            valid if isinstance(valid, tuple) else None,
        )

    def make_tile(self, node: ast.Call) -> Tile:
        given = self.arguments(node, ("type", "addr", "size"))
        type_ = self._type_of(given.get("type") or given.get("tile_type"), node)
        if "addr" not in given:
            raise Unreadable("a tile needs an address", node)
        address = integer(self.evaluate(given["addr"]), "the address of a tile", given["addr"])
        size = None
        if "size" in given and not isinstance(value := self.evaluate(given["size"]), (Unknown, OneOf)):
            size = integer(value, "the size of a tile", given["size"], 1) if value is not None else None
        self._sized(type_, size, node)
        name = self.context.buffers.declare(
            self.site(node), self.hint, type_, None, (address,), size, None, self.span(node)
        )
        return Tile(name)

    def make_tile_group(self, node: ast.Call) -> Group:
        given = self.arguments(node, ("type", "addrs", "mutex_ids", "depth", "fwd_ids", "bwd_ids"))
        type_ = self._type_of(given.get("type"), node)
        mutex = self._mutexes(self.evaluate(given["mutex_ids"]), given["mutex_ids"]) if "mutex_ids" in given else None
        if "depth" in given and (value := self.evaluate(given["depth"])) is not None:
            depth = integer(value, "the depth of a tile group", given["depth"])
        elif mutex is not None:
            depth = len(mutex)
        else:
            raise Unreadable("a tile group needs mutex_ids or a depth", node)
        if "addrs" not in given:
            raise Unreadable("a tile group needs addresses", node)
        addresses = integers(self.evaluate(given["addrs"]), "the address of a tile", given["addrs"])
        if depth < 1 or (len(addresses) > 1 and len(addresses) != depth) or (mutex is not None and len(mutex) != depth):
            raise Unreadable("the depth, addresses and mutex_ids of this tile group do not fit together", node)
        self._sized(type_, None, node)
        name = self.context.buffers.declare(
            self.site(node), self.hint, type_, depth if depth > 1 else None, addresses, None, mutex, self.span(node)
        )
        if depth > 1 and self.nesting:
            span = self.span(node)
            cursor = self.store(("cursor", name), f"{name}_cursor", ir.Int(depth - 1, span=span), node)
            return Group(name, cursor)
        return Group(name)

    def _type_of(self, node: ast.expr | None, call: ast.Call) -> TileType:
        value = self.evaluate(node) if node is not None else None
        if isinstance(value, Decorated) and value.function.path == "pl.TileType":  # made outside of the kernel
            given = dict(zip(_TILE_TYPE, value.arguments, strict=False)) | dict(value.keywords)
            return self._tile_type(given, node or call)
        if not isinstance(value, TileType):
            raise Unreadable("the type of a tile must be a pl.TileType", node or call)
        return value

    def _sized(self, type_: TileType, size: int | None, node: ast.AST) -> None:
        if size is None:
            for dimension in type_.shape:
                integer(dimension, "a dimension of a tile", node, 1)

    def _mutexes(self, value: Value, node: ast.AST) -> tuple[tuple[int, ...], ...] | None:
        if value is None or value == ():
            return None
        if not isinstance(value, tuple):
            raise Unreadable("mutex_ids must be a known list", node)
        return tuple(integers(item, "a mutex id", node, -MOST) for item in value)

    def advance(self, group: Group, move: str, node: ast.Call) -> Tile:
        """`group.next()` and its kin: the tile that it returns, after the statement that moves the cursor."""
        declared = self.context.buffers.found[group.buffer]
        if declared.depth is None:
            return Tile(group.buffer)
        span = self.span(node)
        if self.direct is not None and self.direct[0] is node:
            name = self.context.variable(self.direct[1], self.direct[2])
        else:
            name = self.context.variable(("cursor slot", self.site(node)), f"{group.buffer}_slot")
        if group.cursor is None:
            self.emit(ir.Cursor(name, group.buffer, move, span=span))  # type: ignore[arg-type]
            return Tile(group.buffer, ir.Name(name, span=span))
        cursor = ir.Name(group.cursor, span=span)
        depth = ir.Int(declared.depth, span=span)
        step = {"next": 1, "current": 0, "previous": declared.depth - 1}[move]
        moved = (
            expressions.modulo(expressions.add(cursor, ir.Int(step, span=span), span), depth, span) if step else cursor
        )
        self.emit(ir.Assign(name, moved, span=span))
        if move == "next":
            self.emit(ir.Assign(group.cursor, ir.Name(name, span=span), span=span))
        return Tile(group.buffer, ir.Name(name, span=span))

    # ---------------------------------------------------------------------------------------------------- global memory

    def make_tensor(self, node: ast.Call) -> Tensor:
        given = self.arguments(node, ("ptr", "shape", "stride", "dtype"))
        base = self.evaluate(given["ptr"]) if "ptr" in given else None
        if not isinstance(base, (Tensor, Pointer)):
            raise Unreadable("a tensor view needs a tensor or a pointer", node)
        shape = self.evaluate(given["shape"]) if "shape" in given else ()
        extents = shape if isinstance(shape, tuple) else ()
        for extent in extents:
            if isinstance(extent, Scalar) and isinstance(extent.expr, ir.Name):
                self.context.at_least(extent.expr.id, 0)
        return Tensor(base.name, extents, view=True)

    def make_pointer(self, node: ast.Call) -> Pointer:
        base = self.evaluate(node.args[0]) if node.args else None
        if not isinstance(base, (Tensor, Pointer)):
            raise Unreadable("a pointer is made from a tensor or a pointer", node)
        return Pointer(base.name)

    # ---------------------------------------------------------------------------------------------------------- records

    def make_record(self, node: ast.Call) -> Record:
        if node.args or any(k.arg is None for k in node.keywords):
            raise Unreadable("pl.make_tuple takes named values", node)
        return Record(tuple((str(k.arg), self.evaluate(k.value)) for k in node.keywords))

    def _fields(self, node: ast.Call) -> list[tuple[str, Value, ast.expr]]:
        if any(k.arg is None for k in node.keywords) or not node.keywords:
            raise Unreadable("a struct takes named fields", node)
        return [(str(k.arg), self.evaluate(k.value), k.value) for k in node.keywords]

    def make_struct(self, node: ast.Call) -> Struct:
        names: list[tuple[str, str]] = []
        arrays: list[tuple[str, str, int]] = []
        hint, site = self.hint, self.site(node)
        for field, value, place in self._fields(node):
            if isinstance(value, (float, Opaque)) or _has_floats(value):
                names.append((field, ""))
            elif isinstance(value, tuple):
                ring = self.context.ring((site, field), f"{hint}_{field}", len(value), ("value",), self.span(node))
                arrays.append((field, ring, len(value)))
                for i, item in enumerate(value):
                    self._fill(ring, ir.Int(i, span=self.span(place)), "value", item, place)
            else:
                names.append((field, self.store((site, field), f"{hint}_{field}", self.integer(value, place), place)))
                self.context.record_fields.add(names[-1][1])
        return Struct(hint, tuple(names), tuple(arrays))

    def make_ring(self, node: ast.Call) -> Ring:
        if not node.args:
            raise Unreadable("a struct array needs a size", node)
        size = integer(self.evaluate(node.args[0]), "the size of a struct array", node.args[0])
        if size < 1:
            raise Unreadable("a struct array needs at least one element", node)
        hint, site, span = self.hint, self.site(node), self.span(node)
        fields: list[str] = []
        arrays: list[tuple[str, str, int]] = []
        scalars: list[tuple[str, Value, ast.expr]] = []
        for field, value, place in self._fields(node):
            if isinstance(value, (float, Opaque)) or _has_floats(value):
                arrays.append((field, "", 0))
            elif isinstance(value, tuple):
                ring = self.context.ring((site, field), f"{hint}_{field}", size * len(value), ("value",), span)
                arrays.append((field, ring, len(value)))
                for i in range(size * len(value)):
                    self._fill(ring, ir.Int(i, span=span), "value", value[i % len(value)], place)
            else:
                fields.append(field)
                scalars.append((field, value, place))
        name = self.context.ring(site, hint, size, tuple(fields), span) if fields else hint
        for i in range(size):
            for field, value, place in scalars:
                self._fill(name, ir.Int(i, span=span), field, value, place)
        return Ring(name, size, tuple(fields), tuple(arrays))

    def _fill(self, ring: str, index: ir.Expr, field: str, value: Value, node: ast.AST) -> None:
        """The start value of a record's field; rings are all 0 when the kernel starts."""
        if value == 0 and not isinstance(value, Scalar) and not self.nesting:
            return
        self.emit(ir.StoreField(ring, index, field, self.integer(value, node), span=self.span(node)))

    def assign_field(self, owner: Value, field: str, value: Value, node: ast.AST) -> None:
        """`owner.field = value`."""
        span = self.span(node)
        match owner:
            case Struct(names=names, arrays=arrays):
                for known, variable in names:
                    if known == field:
                        if variable:
                            self.emit(ir.Assign(variable, self.integer(value, node), span=span))
                        return
                self._assign_array(arrays, ir.Int(0, span=span), field, value, node)
            case _ if hasattr(owner, "ring"):
                if field in owner.ring.fields:
                    self.emit(ir.StoreField(owner.ring.name, owner.index, field, self.integer(value, node), span=span))
                    return
                self._assign_array(owner.ring.arrays, owner.index, field, value, node)
            case _:
                raise Unreadable(f"a field of {arithmetic.describe(owner)} cannot be assigned", node)

    def _assign_array(
        self, arrays: tuple[tuple[str, str, int], ...], index: ir.Expr, field: str, value: Value, node: ast.AST
    ) -> None:
        span = self.span(node)
        for known, ring, length in arrays:
            if known != field:
                continue
            if not ring:
                return
            if not isinstance(value, tuple) or len(value) != length:
                raise Unreadable(f"field {field} is an array of {length}", node)
            base = expressions.multiply(index, ir.Int(length, span=span), span)
            for i, item in enumerate(value):
                place = expressions.add(base, ir.Int(i, span=span), span)
                self.emit(ir.StoreField(ring, place, "value", self.integer(item, node), span=span))
            return
        raise Unreadable(f"there is no field {field}", node)


def _has_floats(value: Value) -> bool:
    """Whether an array field holds numbers that are no integers."""
    return isinstance(value, tuple) and any(isinstance(v, (float, Opaque)) for v in value)
