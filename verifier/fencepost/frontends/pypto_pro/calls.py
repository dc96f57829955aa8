"""What does a call of the kernel language do?"""

from __future__ import annotations

import ast

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic, expressions
from fencepost.frontends.pypto_pro.elements import Elements
from fencepost.frontends.pypto_pro.operations import BARRIERS, NO_EFFECT, OPERATIONS
from fencepost.frontends.pypto_pro.values import (
    Decorated,
    Group,
    Member,
    Method,
    Module,
    Opaque,
    Scalar,
    Tensor,
    Unreadable,
    Value,
)

# Event ids of the barrier of all cores of one kind; a kernel may not use them otherwise.
_CORE_BARRIER = {"cube": 11, "vector": 12}


class Calls(Elements):
    """Calls of `pl.*`."""

    def call_language(self, function: Module, node: ast.Call) -> Value:
        path = function.path.removeprefix("pl.")
        if function.path.startswith("vf."):
            raise Unreadable("vector instructions belong into a @pl.vector_function", node)
        if path in NO_EFFECT:
            if path == "set_validshape":
                self.set_valid_shape(node)
            return None
        if path in BARRIERS:
            self.emit(ir.Barrier(BARRIERS[path], span=self.span(node)))
            return None
        if path.startswith(("system.", "mutex.")):
            return self._system(path.split(".", 1)[1], node)
        name = path.removeprefix("block.")
        if name in OPERATIONS:
            self.data_operation(name, node)
            return None
        match name:
            case "TileType":
                return self.make_tile_type(node)
            case "make_tile":
                return self.make_tile(node)
            case "make_tile_group":
                return self.make_tile_group(node)
            case "make_tuple":
                return self.make_record(node)
            case "struct":
                return self.make_struct(node)
            case "struct_array":
                return self.make_ring(node)
            case "make_tensor":
                return self.make_tensor(node)
            case "make_ptr" | "addptr":
                return self.make_pointer(node)
            case "min" | "max":
                values = tuple(self._extreme_operand(a) for a in node.args)
                return arithmetic.extreme(name, values, node, self.span(node))
            case "const" | "constexpr":
                return self.evaluate(node.args[0]) if node.args else None
            case "get_block_idx" | "get_block_num" | "get_subblock_idx" | "get_subblock_num":
                return self._position(name, node)
            case "get_spr":
                return Opaque("", (), varies=True)
            case "getval" | "setval":
                return self._element(name, node)
            case "ssbuf_store" | "ssbuf_load":
                self.shared_scalars(name, node)
                return None
            case "simt.launch":
                self.launch(node)
                return None
            case "range":
                raise Unreadable("pl.range stands only in a for statement", node)
            case "pipeline.PipelineConfig":
                return Decorated(function, tuple((str(k.arg), self.evaluate(k.value)) for k in node.keywords))
        raise Unreadable(f"pl.{path} is not known", node)

    def _extreme_operand(self, node: ast.expr) -> Value:
        value = self.evaluate(node)
        return value if isinstance(value, tuple) else self.operand(value, node)

    def call_method(self, target: Method, node: ast.Call) -> Value:
        if isinstance(target.owner, Group):
            return self.advance(target.owner, target.name, node)
        return super().call_method(target, node)

    # -------------------------------------------------------------------------------------------------- where am I

    def _position(self, name: str, node: ast.Call) -> Value:
        span = self.span(node)
        block, sub = ir.Name("block", span=span), ir.Name("sub", span=span)
        match name:
            case "get_block_num":
                parameter = self.context.parameter(("cores",), "block_num", 1, origin="the number of cores")
                return Scalar(ir.Name(parameter, span=span))
            case "get_subblock_num":
                return 2 if self.core == "vector" and self.context.mixed else 1
            case "get_subblock_idx":
                if self.core == "vector" and self.context.mixed:
                    return Scalar(sub)
                return 0
        if self.core == "cube":
            return Scalar(block)
        return Scalar(ir.Binary("+", ir.Binary("*", block, ir.Int(2, span=span), span=span), sub, span=span))

    # ------------------------------------------------------------------------------------------------- synchronisation

    def _system(self, name: str, node: ast.Call) -> Value:
        span = self.span(node)
        match name:
            case "set_cross_core" | "wait_cross_core":
                given = self.arguments(node, ("pipe", "event_id", "sync_mode"))
                id_ = self._id(given, "event_id", node)
                pipe = self._pipe_of(given, "pipe", node)
                mode = self._member(given["sync_mode"]) if "sync_mode" in given else "INTRA_BLOCK"
                if mode not in ir.MODES:
                    raise Unreadable(f"{mode} is no mode of cross-core signals", given["sync_mode"])
                lane = None
                if mode == "UNICAST_BLOCK" and self.core == "cube":
                    id_, lane = self._unicast(id_, node)
                make = ir.SetCross if name == "set_cross_core" else ir.WaitCross
                self.emit(make(id_, pipe, mode, lane, span=span))
            case "sync_src" | "sync_dst":
                given = self.arguments(node, ("set_pipe", "wait_pipe", "event_id"))
                id_ = self._id(given, "event_id", node)
                make_flag = ir.SyncSrc if name == "sync_src" else ir.SyncDst
                source, target = self._pipe_of(given, "set_pipe", node), self._pipe_of(given, "wait_pipe", node)
                self.emit(make_flag(id_, source, target, span=span))
            case "mutex_lock" | "mutex_unlock":
                given = self.arguments(node, ("pipe", "mutex_id"))
                id_ = self._id(given, "mutex_id", node)
                make_lock = ir.MutexLock if name == "mutex_lock" else ir.MutexUnlock
                self.emit(make_lock(id_, self._pipe_of(given, "pipe", node), span=span))
            case "sync_all":
                self._sync_all(node)
            case _:
                raise Unreadable(f"pl.system.{name} is not known", node)
        return None

    def _unicast(self, id_: ir.Expr, node: ast.Call) -> tuple[ir.Expr, ir.Expr | None]:
        """The id and the sub-core of a signal between the cube and one vector sub-core: ids from 16 mean sub-core 1."""
        constant = self.context.constants.get(id_.name) if isinstance(id_, ir.Item) else None
        items = constant.value if constant is not None and isinstance(constant.value, tuple) else (id_,)
        lanes = {i.value // 16 for i in items if isinstance(i, ir.Int)}
        if len(lanes) != 1 or not all(isinstance(i, ir.Int) for i in items):
            raise Unreadable("the sub-core that this signal is for is not known", node)
        (lane,) = lanes
        if lane not in (0, 1):
            return id_, None
        return expressions.subtract(id_, ir.Int(16 * lane, span=id_.span), id_.span), ir.Int(lane, span=id_.span)

    def _id(self, given: dict[str, ast.expr], key: str, node: ast.Call) -> ir.Expr:
        if key not in given:
            raise Unreadable(f"{key} is missing", node)
        return self.integer(self.evaluate(given[key]), given[key])

    def _pipe_of(self, given: dict[str, ast.expr], key: str, node: ast.Call) -> ir.Pipe:
        value = self.evaluate(given[key]) if key in given else None
        if not isinstance(value, Member) or value.name not in ir.PIPES:
            raise Unreadable(f"{key} must be one of pl.PipeType.{', '.join(ir.PIPES)}", given.get(key, node))
        return value.name

    def _sync_all(self, node: ast.Call) -> None:
        given = self.arguments(node, ("workspaces", "core_type", "mode"))
        span = self.span(node)
        kind = self._member(given["core_type"]) if "core_type" in given else "MIX"
        mode = self._member(given["mode"]) if "mode" in given else "HARD"
        if mode != "HARD":
            self.context.assume("a soft sync_all orders all cores as a hard one does; its workspaces are not looked at")
        if kind == "MIX":
            self.emit(ir.SyncAll(span=span))
            return
        if kind != {"vector": "AIV_ONLY", "cube": "AIC_ONLY"}[self.core]:
            raise Unreadable(f"sync_all of {kind} in a {self.core} section", node)
        id_ = ir.Int(_CORE_BARRIER[self.core], span=span)
        self.context.assume(
            f"sync_all of the {self.core} cores waits for all pipes and signals in mode INTER_BLOCK (event {id_.value})"
        )
        self.emit(ir.Barrier("ALL", span=span))
        self.emit(ir.SetCross(id_, "S", "INTER_BLOCK", span=span))
        self.emit(ir.WaitCross(id_, "S", "INTER_BLOCK", span=span))

    # --------------------------------------------------------------------------------------------------------- elements

    def _element(self, name: str, node: ast.Call) -> Value:
        given = self.arguments(node, ("container", "offset", "value"))
        if "container" not in given or "offset" not in given:
            raise Unreadable(f"pl.{name} needs a tile or tensor and an offset", node)
        owner = self.operand_value(given["container"])
        if owner is None:
            raise Unreadable(f"pl.{name} needs a tile or tensor", node)
        value = self.evaluate(given["offset"])
        items = value if isinstance(value, tuple) else (value,)
        indices = tuple(self.integer(item, given["offset"]) for item in items)
        if name == "setval":
            self.scalar_write(owner, indices, node)
            return None
        if isinstance(owner, Tensor):
            flat = Tensor(owner.name, owner.shape if len(indices) == len(owner.shape) else (), owner.view)
            return self.tensor_element(flat, indices, node)
        return self.tile_element(owner, indices, node)
