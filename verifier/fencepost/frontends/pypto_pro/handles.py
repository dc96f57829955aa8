"""What are the attributes and elements of tiles, tile groups, tensors and records of the kernel language?"""

from __future__ import annotations

import ast

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic, expressions
from fencepost.frontends.pypto_pro.reading import Reading
from fencepost.frontends.pypto_pro.values import (
    Choice,
    Dynamic,
    FieldArray,
    Function,
    Group,
    Method,
    OneOf,
    Opaque,
    ParameterArray,
    Pointer,
    Record,
    Ring,
    RingSlot,
    Scalar,
    Struct,
    Tensor,
    Tile,
    TileType,
    TilingData,
    Unknown,
    Unreadable,
    Value,
    is_integer,
)


class Handles(Reading):
    """Attributes and subscripts of device objects."""

    def attribute(self, owner: Value, name: str, node: ast.expr) -> Value:
        span = self.span(node)
        match owner:
            case Tensor():
                if name == "shape":
                    return self.shape(owner, node)
                return Unknown("", f"the {name} of a tensor")
            case Tile(buffer=buffer):
                type_ = self.context.buffers.found[buffer].type
                return (
                    type_.shape
                    if name == "shape"
                    else type_.dtype
                    if name == "dtype"
                    else Unknown("", f"a tile's {name}")
                )
            case Choice(tiles=tiles):
                return self.attribute(tiles[0], name, node)
            case Group(buffer=buffer):
                if name in ("next", "current", "previous"):
                    return Method(owner, name)
                return self.attribute(Tile(buffer), name, node)
            case TileType():
                return owner.shape if name == "shape" else owner.dtype
            case Record(fields=fields):
                for field, value in fields:
                    if field == name:
                        return value
                raise Unreadable(f"the tuple has no field {name}", node)
            case Struct(names=names, arrays=arrays):
                for field, variable in names:
                    if field == name:
                        return Opaque("", (), varies=True) if not variable else Scalar(ir.Name(variable, span=span))
                for field, ring, length in arrays:
                    if field == name:
                        return FieldArray(ring, ir.Int(0, span=span), length)
                raise Unreadable(f"the struct has no field {name}", node)
            case RingSlot(ring=ring, index=index):
                if name in ring.fields:
                    return Scalar(ir.Field(ring.name, index, name, span=span))
                for field, array, length in ring.arrays:
                    if field == name:
                        if not array:
                            return Opaque("", (), varies=True)
                        return FieldArray(array, expressions.multiply(index, ir.Int(length, span=span), span), length)
                raise Unreadable(f"the struct has no field {name}", node)
            case TilingData():
                return self._tiling_field(owner, name, node)
            case Pointer():
                return Unknown("", f"the {name} of a pointer")
        return super().attribute(owner, name, node)

    def shape(self, tensor: Tensor, node: ast.expr) -> tuple[Value, ...]:
        """The dimensions of a tensor; those known at launch are parameters of the kernel."""
        found: list[Value] = []
        for i, dimension in enumerate(tensor.shape):
            if isinstance(dimension, Dynamic):
                key = ("dimension", tensor.name, i)
                name = self.context.parameter(key, f"{tensor.name}_dim{i}", 0, origin=f"{tensor.name}.shape[{i}]")
                found.append(Scalar(ir.Name(name, span=self.span(node))))
            else:
                found.append(dimension)
        return tuple(found)

    def _tiling_field(self, owner: TilingData, name: str, node: ast.expr) -> Value:
        for field, kind in owner.fields:
            if field != name:
                continue
            hint = f"{owner.name}_{name}"
            key = ("tiling", owner.name, name)
            if "[" in kind:
                length = int(kind[kind.index("[") + 1 : -1])
                function = self.context.function(key, hint, f"{owner.name}.{name}")
                if kind.startswith("float"):
                    return Opaque(function)
                return ParameterArray(function, length)
            if kind == "float":
                return Opaque(self.context.function(key, hint, f"{owner.name}.{name}"))
            values = (0, 1) if kind == "bool" else ()
            parameter = self.context.parameter(key, hint, values=values, origin=f"{owner.name}.{name}")
            return Scalar(ir.Name(parameter, span=self.span(node)), truth=kind == "bool")
        raise Unreadable(f"{owner.name} has no field {name}", node)

    # --------------------------------------------------------------------------------------------------------- elements

    def subscript(self, owner: Value, node: ast.Subscript) -> Value:
        match owner:
            case Tile() | Choice():
                return self._tile_element(owner, node)
            case Tensor():
                return self.tensor_element(owner, self.indices(node.slice), node)
        return super().subscript(owner, node)

    def indices(self, node: ast.expr) -> tuple[ir.Expr, ...]:
        """The indices of a subscript."""
        items = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
        return tuple(self.integer(self.evaluate(i), i) for i in items)

    def _tile_element(self, owner: Tile | Choice, node: ast.Subscript) -> Value:
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not any(isinstance(i, ast.Slice) for i in items):
            return self.tile_element(owner, self.indices(node.slice), node)
        if isinstance(owner, Choice):
            return Choice(owner.selector, tuple(Tile(t.buffer, t.index, True) for t in owner.tiles))
        return Tile(owner.buffer, owner.index, True)

    def tile_element(self, owner: Tile | Choice, indices: tuple[ir.Expr, ...], node: ast.expr) -> Value:
        """A scalar read from a tile."""
        raise NotImplementedError

    def tensor_element(self, owner: Tensor, indices: tuple[ir.Expr, ...], node: ast.expr) -> Value:
        """A scalar read from global memory."""
        raise NotImplementedError

    def item(self, owner: Value, index: Value, node: ast.Subscript) -> Value:
        span = self.span(node)
        if isinstance(owner, Opaque):
            known = not owner.varies and is_integer(index)
            arguments = (*owner.arguments, self.integer(index, node)) if known else ()
            return Opaque(owner.name if known else "", arguments, varies=not known)
        if isinstance(owner, (Group, Ring, FieldArray, ParameterArray)) or (
            isinstance(owner, tuple) and isinstance(index, (Scalar, Unknown, OneOf, Opaque))
        ):
            where = self.integer(index, node)
            match owner:
                case Group(buffer=buffer):
                    return self.slot(buffer, where, node)
                case Ring():
                    return RingSlot(owner, where)
                case FieldArray(ring=ring, offset=offset):
                    return Scalar(ir.Field(ring, expressions.add(offset, where, span), "value", span=span))
                case ParameterArray(function=function):
                    return Scalar(ir.Call(function, (where,), span=span))
                case tuple():
                    return self._picked(owner, where, node)
        return super().item(owner, index, node)

    def slot(self, buffer: str, index: ir.Expr, node: ast.AST) -> Tile:
        """A slot of a tile group."""
        declared = self.context.buffers.found[buffer]
        if declared.depth is None:
            if isinstance(index, ir.Int) and index.value != 0:
                raise Unreadable(f"tile {index.value} of a group of one", node)
            return Tile(buffer)
        return Tile(buffer, index)

    def _picked(self, items: tuple[Value, ...], index: ir.Expr, node: ast.Subscript) -> Value:
        """An element of a compile-time tuple at a device index."""
        span = self.span(node)
        hint = ast.unparse(node.value).split(".")[-1] if isinstance(node.value, (ast.Name, ast.Attribute)) else "items"
        if items and all(isinstance(i, (bool, int)) for i in items):
            name = self.context.tuple_constant(hint, tuple(int(i) for i in items), span)
            return Scalar(ir.Item(name, index, span=span))
        if items and all(isinstance(i, Tile) for i in items):
            return self._picked_tile(items, index, hint, node)
        if items and all(isinstance(i, (bool, int, Scalar)) for i in items):
            value: Value = items[-1]
            for number in range(len(items) - 2, -1, -1):
                test = ir.Compare(index, (("==", ir.Int(number, span=span)),), span=span)
                value = arithmetic.choose(test, items[number], value, node, span)
            return value
        if items and all(isinstance(i, (float, int, Opaque)) for i in items):
            return Opaque("", (), varies=True)
        raise Unreadable("the elements of this tuple cannot be picked at run time", node)

    def _picked_tile(self, tiles: tuple[Tile, ...], index: ir.Expr, hint: str, node: ast.Subscript) -> Value:
        span = self.span(node)
        first = tiles[0]
        if all(t.index is None for t in tiles):
            gathered = self.context.buffers.gather(tiles, hint, span)
            if gathered is not None:
                return Tile(gathered, index, any(t.partial for t in tiles))
        numbers = [t.index.value for t in tiles if isinstance(t.index, ir.Int) and t.buffer == first.buffer]
        if len(numbers) == len(tiles):
            if numbers == list(range(len(tiles))):
                return Tile(first.buffer, index, any(t.partial for t in tiles))
            name = self.context.tuple_constant(f"{hint}_slots", tuple(numbers), span)
            return Tile(first.buffer, ir.Item(name, index, span=span), any(t.partial for t in tiles))
        return Choice(index, tiles)

    @staticmethod
    def _chosen_tile(test: ir.Expr, then: Tile | Choice, other: Tile | Choice, span: ir.Span) -> Tile | Choice:
        """`then if test else other` for tiles."""
        if then == other:
            return then
        match then, other:
            case Tile(index=ir.Node() as first), Tile(index=ir.Node() as second) if then.buffer == other.buffer:
                return Tile(then.buffer, ir.Choose(test, first, second, span=span), then.partial or other.partial)
        tiles: list[Tile] = []
        selectors: list[ir.Expr] = []
        for value in (then, other):
            zero = ir.Int(0, span=span)
            selector = value.selector if isinstance(value, Choice) else zero
            selectors.append(expressions.add(selector, ir.Int(len(tiles), span=span), span))
            tiles += value.tiles if isinstance(value, Choice) else (value,)
        return Choice(ir.Choose(test, selectors[0], selectors[1], span=span), tuple(tiles))

    def choose(self, test: ir.Expr, then: Value, other: Value, node: ast.IfExp) -> Value:
        if isinstance(then, (Tile, Choice)) and isinstance(other, (Tile, Choice)):
            return self._chosen_tile(test, then, other, self.span(node))
        if isinstance(then, (Function, Record, Group)) or isinstance(other, (Function, Record, Group)):
            raise Unreadable("this choice cannot be made at run time", node)
        return super().choose(test, self.operand(then, node), self.operand(other, node), node)
