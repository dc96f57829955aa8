"""Which data operations, scalar accesses and vector functions does a call stand for?"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic, expressions
from fencepost.frontends.pypto_pro.context import TensorAccess
from fencepost.frontends.pypto_pro.declarations import Declarations
from fencepost.frontends.pypto_pro.operations import OPERATIONS, Role, move_pipe, store_pipe
from fencepost.frontends.pypto_pro.tiles import Footprint, width_of
from fencepost.frontends.pypto_pro.values import (
    Choice,
    DType,
    Group,
    Member,
    Pointer,
    Poison,
    Record,
    Scalar,
    Tensor,
    Tile,
    Unknown,
    Unreadable,
    Value,
    nodes_in,
)

Operand = tuple[Tile | Tensor, Role]

_SIGNATURES = """
    out lhs rhs tmp: add sub mul div rem and_ or_ xor shl shr eq ne lt le gt ge maximum minimum add_relu sub_relu
        add_relu_cast sub_relu_cast mul_cast mul_add_dst fused_mul_add
    out src tmp: abs exp log neg recip relu rsqrt sqrt not_ cast fillpad transpose gathermask sum argmax argmin
    out src scalar: expand_add expand_sub expand_mul expand_div expand_max expand_min expand_expdif
    out src0 src1: partadd partmax partmin partmul
    out src idx tmp: gather scatter
    out src offsets: gatherb
    out src scale offset: quant dequant
    out src alpha: axpy
    out scalar: expands
    out start: fill_index
    out mask lhs rhs tmp: select
    out a b: fused_mul_add_relu
    out a b c: addc subc
    dst src idx tmp: sort32 histogram
    dst src: mrgsort
    src0 src1 dst tmp: mrgsort2
    dst_tile src_tensor: load load_tile
    dst_tensor src_tile: store store_tile
    dst_tile src_tile: move insert
    dst_tile lhs_tile rhs_tile bias_tile: matmul
    dst_tile acc_tile lhs_tile rhs_tile: matmul_acc
    dst_tile lhs_tile rhs_tile scale_a scale_b: matmul_mx
    dst_tile acc_tile lhs_tile rhs_tile scale_a scale_b: matmul_mx_acc
    data: dump_data
"""


def _signatures() -> Iterator[tuple[str, tuple[str, ...]]]:
    parameters: tuple[str, ...] = ()
    for line in _SIGNATURES.strip().splitlines():
        names, colon, operations = line.partition(":")
        if colon:
            parameters = tuple(names.split())
        for operation in (operations if colon else line).split():
            yield operation, parameters


# The operands of an operation that may be given by name, by position.
_PARAMETERS = dict(_signatures())

# Further operands that hold a tile, and keywords that hold none.
_MORE: dict[str, Role] = {"scale": "R", "offset": "R", "tmp": "S", "bias": "R", "fp_tile": "R"}
_SETTING_NAMES = """
    order phase atomic acc_to_vec_mode relu_pre_mode pre_quant_scalar offsets tile_offsets mode target_type dim cmp_mode
    pattern_mode block_len exhausted is_msb workspace shapes loc flag
"""
_SETTINGS = frozenset(_SETTING_NAMES.split())


@dataclass(frozen=True, slots=True)
class _Extent:
    """One dimension of what an access reaches: at most `most` and `valid`; `exact`: just `most`."""

    most: int | None = None
    valid: ir.Expr | None = None
    exact: bool = False


def _access(
    name: str,
    coordinates: tuple[ir.Expr | None, ...],
    extents: tuple[_Extent, ...],
    shape: tuple[int | None, ...],
) -> TensorAccess:
    return TensorAccess(
        name,
        coordinates,
        tuple(e.most for e in extents),
        shape,
        valid=tuple(e.valid for e in extents),
        exact=all(e.exact for e in extents),
    )


def holds_tiles(value: Value) -> bool:
    """Whether a value is a tile or a tile group, or has one among its parts."""
    stack = [value]
    while stack:
        match stack.pop():
            case Tile() | Choice() | Group():
                return True
            case tuple() as items:
                stack.extend(items)
            case dict() as entries:
                stack.extend(entries.values())
            case Record(fields=fields):
                stack.extend(v for _, v in fields)
    return False


def _apart(index: ir.Expr | None, tile: Tile | Choice | Group) -> bool:
    """Whether a slot is surely another one than that of a tile of the same buffer."""
    other = tile.index if isinstance(tile, Tile) else None
    return isinstance(index, ir.Int) and isinstance(other, ir.Int) and index.value != other.value


class DataOperations(Declarations):
    """Operations on tiles and tensors."""

    # --------------------------------------------------------------------------------------------------------- operands

    def operand_value(self, node: ast.expr) -> Value:
        """An operand: a tile, a tensor, or something that holds no memory (None)."""
        try:
            value = self.evaluate(node)
        except Unreadable:
            if self._maybe_memory(node):
                raise
            return None
        if isinstance(value, Group):
            raise Unreadable("a tile group is used where a tile is needed", node)
        if isinstance(value, (Tile, Choice, Tensor)):
            return value
        if isinstance(value, Pointer):
            return Tensor(value.name, (), view=True)
        if isinstance(value, (tuple, Record)) and holds_tiles(value):
            raise Unreadable("several tiles are used where a tile is needed", node)
        if isinstance(value, (Unknown, Poison)) and not isinstance(node, (ast.Constant, ast.BinOp)):
            raise Unreadable(f"this operand is {arithmetic.describe(value)}", node)
        return None

    def _maybe_memory(self, node: ast.expr) -> bool:
        """Whether an operand that cannot be read might be a tile or tensor."""
        if not isinstance(node, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.List, ast.Tuple)):
            return True
        names = self.frame.names
        return any(isinstance(n, ast.Name) and holds_tiles(names.get(n.id)) for n in ast.walk(node))

    def spread(self, operands: list[tuple[Value, Role]], node: ast.AST, emit: Callable[[list[Operand]], None]) -> None:
        """Produce an operation for each tile that an operand may be."""
        for i, (value, role) in enumerate(operands):
            if isinstance(value, Choice):
                branches: list[tuple[ir.Expr, tuple[ir.Stmt, ...]]] = []
                rest: tuple[ir.Stmt, ...] = ()
                span = self.span(node)
                for number, tile in enumerate(value.tiles):
                    with self.collecting() as body:
                        self.spread([*operands[:i], (tile, role), *operands[i + 1 :]], node, emit)
                    if number == len(value.tiles) - 1:
                        rest = tuple(body)
                    else:
                        test = ir.Compare(value.selector, (("==", ir.Int(number, span=span)),), span=span)
                        branches.append((test, tuple(body)))
                self.emit(ir.If(tuple(branches), rest, span=span))
                return
        emit([(value, role) for value, role in operands])

    def access(self, operand: Tile | Tensor, node: ast.AST) -> ir.Access:
        """The access of the IR for an operand."""
        span = self.span(node)
        if isinstance(operand, Tensor):
            return ir.Access(operand.name, span=span)
        return ir.Access(operand.buffer, operand.index, span=span)

    def produce(
        self,
        name: str,
        operands: list[tuple[Value, Role]],
        pipe: ir.Pipe | None,
        node: ast.AST,
        places: list[ast.expr] | None = None,
        phase: tuple[str, str] | None = None,
        mode: str | None = None,
        offset: bool = False,
        where: TensorAccess | None = None,
        footprints: list[Footprint | None] | None = None,
    ) -> None:
        """Produce the data operation `name`."""

        def emit(chosen: list[Operand]) -> None:
            writes: list[ir.Access] = []
            reads: list[ir.Access] = []
            for i, (operand, role) in enumerate(chosen):
                access = self.access(operand, places[i] if places else node)
                if "W" in role or role == "S":
                    writes.append(access)
                if "R" in role:
                    reads.append(access)
                if isinstance(operand, Tile):
                    self._reach(operand, footprints[i] if footprints else None, footprints is not None)
            chosen_pipe = pipe or self._pipe(name, chosen, node)
            lanes = self._lanes(name, chosen, mode)
            operation = ir.DataOp(
                name,
                tuple(dict.fromkeys(writes)),
                tuple(dict.fromkeys(reads)),
                chosen_pipe,
                phase=None if phase is None else phase[1],  # type: ignore[arg-type]
                family=None if phase is None else phase[0],  # type: ignore[arg-type]
                lanes=lanes,
                offset=offset,
                span=self.span(node),
            )
            if where is not None:
                self.context.accesses.setdefault(id(operation), []).append(where)
                self.context.operations.append(operation)
            self.emit(operation)

        self.spread(operands, node, emit)

    def _pipe(self, name: str, operands: list[Operand], node: ast.AST) -> ir.Pipe:
        spaces = [self.context.buffers.space(o.buffer) if isinstance(o, Tile) else None for o, _ in operands]
        if name.startswith("store"):
            if len(spaces) < 2 or spaces[1] is None:
                raise Unreadable("a store needs a tile to store", node)
            return store_pipe(spaces[1])
        if len(spaces) < 2 or spaces[0] is None or spaces[1] is None:
            raise Unreadable(f"{name} needs two tiles", node)
        return move_pipe(spaces[1], spaces[0])

    def _lanes(self, name: str, operands: list[Operand], mode: str | None) -> Literal["both", "0", "1"]:
        if self.core != "cube" or not name.startswith("move") or len(operands) < 2:
            return "both"
        target, source = operands[0][0], operands[1][0]
        if not isinstance(target, Tile) or not isinstance(source, Tile):
            return "both"
        if self.context.buffers.space(target.buffer) != "Vec" or self.context.buffers.space(source.buffer) != "Acc":
            return "both"
        if mode is None:
            self.context.assume("a move from Acc to Vec without acc_to_vec_mode reaches vector sub-core 0 only")
            return "0"
        if mode == "SingleModeVec0":
            return "0"
        return "1" if mode == "SingleModeVec1" else "both"

    # ------------------------------------------------------------------------------------------------------- footprints

    def _reach(self, tile: Tile, footprint: Footprint | None, given: bool) -> None:
        """Note which bytes of its slot an access touches."""
        declared = self.context.buffers.found[tile.buffer]
        if not given:
            footprint = self._valid_footprint(tile)
        if footprint is None:
            declared.whole = True
        else:
            declared.footprints.add(footprint)

    def _valid_footprint(self, tile: Tile) -> Footprint | None:
        """The bytes of the valid part of a row-major tile, when its width is known and narrower than the tile."""
        declared = self.context.buffers.found[tile.buffer]
        type_ = declared.type
        valid = self.valid.get((tile.buffer, tile.index))
        if tile.partial or valid is None or len(valid) != 2 or len(type_.shape) != 2 or type_.space != "Vec":
            return None
        rows, columns = type_.shape
        if type_.layout not in (None, "ND") or not isinstance(type_.dtype, DType):
            return None
        if (
            not isinstance(valid[1], int)
            or not isinstance(rows, int)
            or not isinstance(columns, int)
            or valid[1] >= columns
        ):
            return None
        width = width_of(type_.dtype)
        return Footprint(valid[1] * width, columns * width, rows)

    def set_valid_shape(self, node: ast.Call) -> None:
        """`pl.set_validshape(tile, [rows, columns])`."""
        given = self.arguments(node, ("tile", "shape"))
        if given.keys() != {"tile", "shape"}:
            raise Unreadable("pl.set_validshape takes a tile and a shape", node)
        tile, shape = self.evaluate(given["tile"]), self.evaluate(given["shape"])
        if not isinstance(tile, (Tile, Choice, Group)):
            raise Unreadable(f"a tile is needed here, not {arithmetic.describe(tile)}", given["tile"])
        for each in tile.tiles if isinstance(tile, Choice) else (tile,):
            self.context.narrowed.add(each.buffer)
            self.valid = {k: v for k, v in self.valid.items() if k[0] != each.buffer or _apart(k[1], tile)}
        if isinstance(tile, Tile) and isinstance(shape, tuple) and not tile.partial:
            self.valid[tile.buffer, tile.index] = shape

    def emit(self, stmt: ir.Stmt) -> None:
        """Produce a statement; what depends on a scalar that it changes is no longer known."""
        super().emit(stmt)
        if self.valid and isinstance(stmt, (ir.Assign, ir.Cursor, ir.StoreField)):
            name = None if isinstance(stmt, ir.StoreField) else stmt.name
            self.valid = {
                key: shape
                for key, shape in self.valid.items()
                if not any(
                    isinstance(n, ir.Field) if name is None else isinstance(n, ir.Name) and n.id == name
                    for n in nodes_in((Tile(*key), *shape))
                )
            }

    # ------------------------------------------------------------------------------------------------------- operations

    def data_operation(self, name: str, node: ast.Call) -> None:
        """An operation of the table."""
        operation = OPERATIONS[name]
        node = self._positional(name, node)
        given = {k.arg: k.value for k in node.keywords}
        operands: list[tuple[Value, Role]] = []
        places: list[ast.expr] = []
        roles = operation.roles
        if name in ("maximum", "minimum") and "dim" in given:
            roles = ("W", "R", "S")
        for i, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                raise Unreadable("arguments are unpacked with *", node)
            role: Role = roles[i] if i < len(roles) else "R"
            value = self.operand_value(argument)
            if value is not None and role != "-":
                operands.append((value, role))
                places.append(argument)
        count = len(operands)
        for key in (*_MORE, *(k for k in given if k not in _MORE)):
            if key not in given or key in _SETTINGS:
                continue
            value = self.operand_value(given[key])
            if value is not None and key not in _MORE:
                raise Unreadable(f"pl.{name} has no operand {key} that is understood", given[key])
            if value is not None:
                operands.append((value, _MORE[str(key)]))
                places.append(given[key])
        if not operands:
            raise Unreadable(f"pl.{name} without a tile", node)
        if name == "matmul_acc" or name.endswith("_acc"):
            operands = [(v, "R" if i else r) for i, (v, r) in enumerate(operands)]
        where = None
        if name in ("load", "load_tile", "store", "store_tile"):
            where = self._tensor_access(name, node, operands[:count], given)
        elif name == "insert" or (name == "move" and len(node.args) > 2 and self._space(operands[0][0]) == "Mat"):
            where = self._insertion(node, operands)
        if "atomic" in given and self._member(given["atomic"]) not in (None, "AtomicNone"):
            operands[0] = (operands[0][0], "RW")
            where = None if where is None else replace(where, atomic=True)
        phase = None
        if "phase" in given:
            member = self.evaluate(given["phase"])
            if not isinstance(member, Member):
                raise Unreadable("the phase must be a pl.AccPhase or pl.STPhase", given["phase"])
            if member.name in ("Partial", "Final"):
                phase = ("Acc" if member.family == "AccPhase" else "ST", member.name)
        mode = self._member(given["acc_to_vec_mode"]) if "acc_to_vec_mode" in given else None
        offset = name in ("move", "insert") and (len(node.args) > 2 or "offset" in given)
        self.produce(name, operands, operation.pipe, node, places, phase, mode, offset and phase is not None, where)

    def _positional(self, name: str, node: ast.Call) -> ast.Call:
        """The call with the operands that it gives by name at their positions."""
        parameters = _PARAMETERS.get(name, ())
        named: dict[int, ast.expr] = {}
        rest: list[ast.keyword] = []
        for keyword in node.keywords:
            if keyword.arg is None:
                raise Unreadable("arguments are unpacked with **", node)
            if keyword.arg in parameters:
                named[parameters.index(keyword.arg)] = keyword.value
            else:
                rest.append(keyword)
        if not named:
            return node
        places = range(len(node.args), len(node.args) + len(named))
        if sorted(named) != list(places):
            words = ", ".join(parameters[i] for i in sorted(named))
            raise Unreadable(f"pl.{name} is given {words} by name in a way that is not understood", node)
        return ast.copy_location(ast.Call(node.func, [*node.args, *(named[i] for i in places)], rest), node)

    def _member(self, node: ast.expr) -> str | None:
        value = self.evaluate(node)
        if value is None:
            return None
        if not isinstance(value, Member):
            raise Unreadable(f"an enumeration member is needed here, not {arithmetic.describe(value)}", node)
        return value.name

    def _space(self, value: Value) -> str | None:
        tile = value.tiles[0] if isinstance(value, Choice) else value
        return self.context.buffers.space(tile.buffer) if isinstance(tile, Tile) else None

    def _extent(self, value: Value) -> tuple[_Extent, ...]:
        """Rows and columns of a tile."""
        tile = value.tiles[0] if isinstance(value, Choice) else value
        if not isinstance(tile, Tile) or tile.partial:
            return (_Extent(), _Extent())
        type_ = self.context.buffers.found[tile.buffer].type
        valid = self.valid.get((tile.buffer, tile.index))
        known = valid is not None or tile.buffer not in self.context.narrowed
        found: list[_Extent] = []
        for i, full in enumerate(type_.shape):
            most = full if isinstance(full, int) else None
            exact = known and most is not None
            declared = type_.valid[i] if type_.valid is not None and i < len(type_.valid) else full
            if isinstance(declared, int) and declared > 0:
                most = declared if most is None else min(most, declared)
            elif valid is None:
                exact = False
            now = valid[i] if valid is not None and i < len(valid) else None
            if isinstance(now, int):
                found.append(_Extent(now if most is None else min(most, now), None, known))
            elif isinstance(now, Scalar):
                found.append(_Extent(most, now.expr, False))
            else:
                found.append(_Extent(most, None, exact and now is None))
        return tuple(found)

    def _coordinates(self, node: ast.expr) -> tuple[ir.Expr | None, ...]:
        try:
            value = self.evaluate(node)
        except Unreadable:
            return ()
        if not isinstance(value, tuple):
            return ()
        found: list[ir.Expr | None] = []
        for item in value:
            try:
                found.append(self.integer(item, node))
            except Unreadable:
                found.append(None)
        return tuple(found)

    def _tensor_access(
        self, name: str, node: ast.Call, operands: list[tuple[Value, Role]], given: dict[str | None, ast.expr]
    ) -> TensorAccess | None:
        """Where a load or store reaches in its tensor."""
        tensors = [v for v, _ in operands if isinstance(v, Tensor)]
        tiles = [v for v, _ in operands if isinstance(v, (Tile, Choice))]
        if len(tensors) != 1 or not tiles:
            raise Unreadable(f"pl.{name} needs a tile and a tensor", node)
        tensor = tensors[0]
        place = node.args[2] if len(node.args) > 2 else given.get("offsets", given.get("tile_offsets"))
        coordinates = self._coordinates(place) if place is not None else ()
        shape = tuple(d if isinstance(d, int) else None for d in tensor.shape)
        if tensor.view or len(coordinates) != len(shape):
            return TensorAccess(tensor.name, (), (), ())
        order = self.evaluate(given["order"]) if "order" in given else None
        axes = order if isinstance(order, tuple) else tuple(range(max(len(shape) - 2, 0), len(shape)))
        extents = [_Extent(1, None, True)] * len(shape)
        moved = list(coordinates)
        type_ = self.context.buffers.found[tiles[0].buffer].type if isinstance(tiles[0], Tile) else None
        for axis, extent, full in zip(
            axes, self._extent(tiles[0]), type_.shape if type_ else (None, None), strict=False
        ):
            if not isinstance(axis, int) or not 0 <= axis < len(shape):
                return TensorAccess(tensor.name, (), (), ())
            extents[axis] = extent
            if name.endswith("_tile"):
                old = moved[axis]
                whole = isinstance(full, int) and old is not None
                moved[axis] = expressions.multiply(old, ir.Int(full), self.span(node)) if whole else None  # type: ignore[arg-type]
        return _access(tensor.name, tuple(moved), tuple(extents), shape)

    def _insertion(self, node: ast.Call, operands: list[tuple[Value, Role]]) -> TensorAccess | None:
        """Where an insertion reaches in its target tile."""
        given = {k.arg: k.value for k in node.keywords}
        place = node.args[2] if len(node.args) > 2 else given.get("offset")
        target = operands[0][0]
        if place is None or not isinstance(target, Tile) or len(operands) < 2:
            return None
        shape = self.context.buffers.found[target.buffer].type.shape
        coordinates = self._coordinates(place)
        extents = self._extent(operands[1][0])
        if len(coordinates) != 2 or len(extents) != 2:
            return None
        return _access(target.buffer, coordinates, extents, tuple(d if isinstance(d, int) else None for d in shape))
