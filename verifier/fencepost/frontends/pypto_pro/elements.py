"""What do scalar accesses to tiles and tensors, and vector functions, read and write?"""

from __future__ import annotations

import ast

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic, expressions
from fencepost.frontends.pypto_pro.arguments import bind_arguments
from fencepost.frontends.pypto_pro.context import TensorAccess
from fencepost.frontends.pypto_pro.dataops import DataOperations, holds_tiles
from fencepost.frontends.pypto_pro.operations import Role
from fencepost.frontends.pypto_pro.tiles import Footprint, width_of
from fencepost.frontends.pypto_pro.values import (
    Choice,
    DType,
    Function,
    Group,
    Opaque,
    Scalar,
    Struct,
    Tensor,
    Tile,
    Unreadable,
    Value,
)
from fencepost.frontends.pypto_pro.vector_functions import VectorScan


class Elements(DataOperations):
    """Operations on pipe S, and calls of the user's vector functions."""

    # ---------------------------------------------------------------------------------------------------------- scalars

    def tile_element(self, owner: Tile | Choice, indices: tuple[ir.Expr, ...], node: ast.expr) -> Value:
        """A scalar read from a tile: its content is not known, so every execution may give another value."""
        self.produce("getval", [(owner, "R")], "S", node)
        name = self._space_name(owner)
        return self._unknown_read(name, indices, node)

    def _space_name(self, owner: Tile | Choice) -> str:
        return owner.buffer if isinstance(owner, Tile) else owner.tiles[0].buffer

    def _unknown_read(self, name: str, indices: tuple[ir.Expr, ...], node: ast.expr) -> Value:
        """A value that is fixed only for this place, this core and these trips of the loops around it."""
        trips = tuple(ir.Name(v) for v in self.loop_variables())
        more = (ir.Name("sub"),) if self.core == "vector" else ()
        function = self.context.function(
            (self.core, self.site(node), self.loop_variables()),
            f"{name}_value",
            f"a value read from {name} at line {getattr(node, 'lineno', 0)}",
        )
        return Scalar(ir.Call(function, (*indices, *trips, *more), span=self.span(node)))

    def loop_variables(self) -> tuple[str, ...]:
        """The scalars that tell the trips of the loops around the current statement apart."""
        raise NotImplementedError

    def tensor_element(self, owner: Tensor, indices: tuple[ir.Expr, ...], node: ast.expr) -> Value:
        """A scalar read from global memory: one fixed value per index, unless the kernel writes the tensor."""
        span = self.span(node)
        where = TensorAccess(
            owner.name,
            tuple(indices),
            (1,) * len(indices),
            tuple(d if isinstance(d, int) else None for d in owner.shape),
            scalar=True,
        )
        if len(indices) != len(owner.shape):
            where = TensorAccess(owner.name, (), (), (), scalar=True)
        self.produce("getval", [(Tensor(owner.name, ()), "R")], "S", node, where=where)
        if owner.name in self.context.tensor_types and self.context.tensor_types[owner.name] == "float":
            return Opaque("", (), varies=True)
        if owner.name in self.written_tensors():
            return self._unknown_read(owner.name, indices, node)
        indices = self._linear(owner, indices, span)
        key = ("tensor", owner.name, len(indices), owner.view and len(owner.shape))
        function = self.context.element_function(key, owner.name)
        self.context.assume(
            f"{owner.name} holds the same values for every core, and nothing changes them while the kernel runs"
        )
        return Scalar(ir.Call(function, indices, span=span))

    def written_tensors(self) -> frozenset[str]:
        """Tensors that the kernel writes."""
        raise NotImplementedError

    def _linear(self, owner: Tensor, indices: tuple[ir.Expr, ...], span: ir.Span) -> tuple[ir.Expr, ...]:
        """One running index instead of several, where the dimensions are known."""
        if len(indices) < 2 or len(indices) != len(owner.shape):
            return indices
        inner = owner.shape[1:]
        if not all(isinstance(d, int) for d in inner):
            return indices
        total = indices[0]
        for index, size in zip(indices[1:], inner, strict=True):
            total = expressions.add(expressions.multiply(total, ir.Int(size, span=span), span), index, span)
        return (total,)

    def scalar_write(self, owner: Value, indices: tuple[ir.Expr, ...], node: ast.AST) -> None:
        """A scalar written to a tile or to global memory."""
        where = None
        if isinstance(owner, Tensor):
            fits = len(indices) == len(owner.shape)
            shape = tuple(d if isinstance(d, int) else None for d in owner.shape)
            where = TensorAccess(
                owner.name,
                tuple(indices) if fits else (),
                (1,) * len(indices) if fits else (),
                shape if fits else (),
                scalar=True,
            )
        elif not isinstance(owner, (Tile, Choice)):
            raise Unreadable(f"an element of {arithmetic.describe(owner)} cannot be assigned", node)
        self.produce("setval", [(owner, "W")], "S", node, where=where)

    def shared_scalars(self, name: str, node: ast.Call) -> None:
        """`pl.ssbuf_store(struct, offset)` and `pl.ssbuf_load`: the memory through which the cores pass scalars."""
        if len(node.args) != 2:
            raise Unreadable(f"pl.{name} takes a struct and an offset", node)
        struct, offset = self.evaluate(node.args[0]), self.evaluate(node.args[1])
        if not isinstance(struct, Struct):
            raise Unreadable("a struct is needed here", node.args[0])
        fields = len(struct.names) + sum(length for _, _, length in struct.arrays)
        known = isinstance(offset, int)
        where = TensorAccess("ssbuf", (self.integer(offset, node),), (8 * fields if known else None,), (None,))
        role: Role = "W" if name == "ssbuf_store" else "R"
        self.produce(name, [(Tensor("ssbuf", ()), role)], "S", node, where=where)
        if name == "ssbuf_load":
            for field, variable in struct.names:
                if variable:
                    value = self._unknown_read(f"ssbuf_{field}", (), node)
                    self.emit(ir.Assign(variable, self.integer(value, node), span=self.span(node)))
            for field, ring, length in struct.arrays:
                for i in range(length):
                    value = self._unknown_read(f"ssbuf_{field}", (ir.Int(i),), node)
                    self.emit(ir.StoreField(ring, ir.Int(i), "value", self.integer(value, node), span=self.span(node)))

    # ------------------------------------------------------------------------------------------------- vector functions

    def vector_function(self, function: Function, node: ast.Call) -> None:
        """A call of a `@pl.vector_function`: one operation on pipe V."""
        places: dict[str, ast.expr] = {}

        def value(argument: ast.expr) -> Value:
            try:
                found = self.evaluate(argument)
            except Unreadable:
                if self._maybe_memory(argument):
                    raise
                return None
            if isinstance(found, Group):
                raise Unreadable("a tile group is passed to a vector function", argument)
            if not isinstance(found, (Tile, Choice)) and holds_tiles(found):
                raise Unreadable("several tiles are passed to a vector function as one argument", argument)
            return found

        bound = bind_arguments(function.node, node, value, function.scope.default)
        parameters = [a.arg for a in function.node.args.args]
        for parameter, argument in zip(parameters, node.args, strict=False):
            places[parameter] = argument
        places |= {str(k.arg): k.value for k in node.keywords}
        tiles = {p: v for p, v in bound.items() if isinstance(v, (Tile, Choice))}
        constants = {p: v for p, v in bound.items() if isinstance(v, (bool, int, Tile, Choice))}
        scan = VectorScan({p: constants.get(p, v) for p, v in bound.items()}, set(tiles))
        # parameters that are the same tile share one record of uses, so that a store through one settles the other
        shared: dict[Value, str] = {}
        for parameter, tile in tiles.items():
            scan.uses[parameter] = scan.uses[shared.setdefault(tile, parameter)]
        uses = scan.run(function)
        operands: list[tuple[Value, Role]] = []
        nodes: list[ast.expr] = []
        prints: list[Footprint | None] = []
        for tile, parameter in shared.items():
            use = uses[parameter]
            if not use.reads and not use.writes:
                continue
            role: Role = "RW" if use.reads and use.writes else "W" if use.writes else "R"
            operands.append((tile, role))
            nodes.append(places.get(parameter, node))
            first = tile.tiles[0] if isinstance(tile, Choice) else tile
            dtype = self.context.buffers.found[first.buffer].type.dtype
            prints.append(use.footprint(width_of(dtype)) if isinstance(dtype, DType) and not first.partial else None)
        if operands:
            self.produce(function.node.name, operands, "V", node, nodes, footprints=prints)

    def launch(self, node: ast.Call) -> None:
        """`pl.simt.launch(...)`: runs on pipe V and may touch every tile and tensor that it is given."""
        operands: list[tuple[Value, Role]] = []
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            for item in argument.elts if isinstance(argument, (ast.Tuple, ast.List)) else [argument]:
                value = self.evaluate(item)
                if isinstance(value, (Tile, Choice, Tensor)):
                    operands.append((value, "RW"))
                elif holds_tiles(value):
                    raise Unreadable("several tiles are passed to a SIMT function as one argument", item)
        if operands:
            self.produce("simt_launch", operands, "V", node, where=None)
