"""What does an assignment of a TileLang program define or store?"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.frontends.tilelang.operations import MEMORIES, TENSOR_TYPES
from fencepost.frontends.tilelang.state import State
from fencepost.frontends.tilelang.values import (
    Let,
    Memory,
    Node,
    Number,
    Opaque,
    Plain,
    Region,
    Several,
    Tensor,
    Value,
)


@dataclass(slots=True)
class Definitions(State):
    """Lowers assignments and allocations."""

    def _assign(self, node: ast.Assign, targets: list[ast.expr], value: ast.expr) -> list[Node]:
        nodes: list[Node] = []
        for target in targets:
            nodes += self._store(node, target, value)
        return nodes

    def _store(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> list[Node]:
        match target:
            case ast.Name(name):
                old = self.scope.get(name)
                if isinstance(old, Tensor) and old.scalar and not self._allocates(value):
                    return [self.operation(node, "store", (value,), (Region(old),))]
                return self._define(node, name, value)
            case ast.Subscript(base, index):
                owner = self.evaluator.value(base)
                if isinstance(owner, Region):
                    owner = owner.tensor
                if isinstance(owner, Tensor):
                    region = self.evaluator.region(owner, index)
                    op = self.operation(node, self._store_name(owner, value), (value, *_indices(index)), (region,))
                    return [op]
                return []
            case ast.Tuple(items) | ast.List(items):
                found = self.evaluator.value(value)
                values: tuple[Value, ...] = found.items if isinstance(found, Several) else ()
                for place, item in enumerate(items):
                    if isinstance(item, ast.Name):
                        known = values[place] if place < len(values) else self.evaluator.as_number(item, Opaque())
                        self.scope[item.id] = known
                return []
            case _:
                return []

    def _store_name(self, target: Tensor, value: ast.expr) -> str:
        """Element-wise copies from global to shared memory are copies to the compiler."""
        found = self.evaluator.value(value)
        while isinstance(value, ast.Call) and self.word(value.func) in ("cast", "Cast") and value.args:
            value = value.args[0]
            found = self.evaluator.value(value)
        loaded = isinstance(found, Region) and found.tensor.memory == "global"
        return "copy" if loaded and target.memory == "shared" else "store"

    def _allocates(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Call) and self.word(value.func) in MEMORIES

    def _define(self, node: ast.stmt, name: str, value: ast.expr, bind: bool = False) -> list[Node]:
        if isinstance(value, ast.Call):
            word = self.word(value.func)
            if word in MEMORIES:
                self.scope[name] = self._tensor(name, word, value)
                return self._initialised(node, self.scope[name], value)
            if word in ("view", "reshape") and value.args:
                base = self.evaluator.value(value.args[0])
                if isinstance(base, Region):
                    base = base.tensor
                if isinstance(base, Tensor):
                    self.scope[name] = replace(base, shape=None)
                    return []
            if word in ("match_buffer", *TENSOR_TYPES):
                self.scope[name] = self._parameter(name, value)
                return []
        found = self.evaluator.value(value)
        if isinstance(found, Region):
            found = self.evaluator.as_number(value, found)
        if bind and not isinstance(found, Number):
            found = self.evaluator.as_number(value, found)
            found = replace(found, static=False)
        if isinstance(found, Number) and not found.static and self.in_pipeline:
            fresh, uses = self.fresh_name(name), self.mentioned(value)
            self.lets.add(fresh)
            self.scope[name] = Number(ir.Name(fresh), False)
            return [Let(fresh, found, self.source.span(node), uses)]
        self.scope[name] = found
        return []

    def _initialised(self, node: ast.stmt, tensor: Value, call: ast.Call) -> list[Node]:
        """`alloc_var(dtype, init)` also stores."""
        init = next((k.value for k in call.keywords if k.arg == "init"), None)
        if init is None and isinstance(tensor, Tensor) and tensor.scalar and len(call.args) > 1:
            init = call.args[1]
        if init is None or not isinstance(tensor, Tensor):
            return []
        return [self.operation(node, "store", (init,), (Region(tensor),))]

    def _annotated(
        self, node: ast.AnnAssign, target: ast.expr, annotation: ast.expr, value: ast.expr | None
    ) -> list[Node]:
        if not isinstance(target, ast.Name):
            return self._store(node, target, value) if value is not None else []
        if value is None:
            called = annotation.func if isinstance(annotation, ast.Call) else annotation
            if self.word(called) in TENSOR_TYPES:
                self.scope[target.id] = self._parameter(target.id, annotation)
            return []
        return self._define(node, target.id, value, bind=self.in_pipeline)

    def _augmented(self, node: ast.AugAssign, target: ast.expr, op: ast.operator, value: ast.expr) -> list[Node]:
        whole = ast.BinOp(target, op, value)
        ast.copy_location(whole, node)
        return self._store(node, target, whole)

    def _tensor(self, name: str, word: str, call: ast.Call) -> Tensor:
        memory = MEMORIES[word]
        scope = next((k.value for k in call.keywords if k.arg == "scope"), None)
        if isinstance(scope, ast.Constant) and isinstance(scope.value, str):
            memory = _memory_of(scope.value)
        scalar = word == "alloc_var"
        shape = (ir.Int(1),) if scalar else self._shape(call, word == "empty")
        return Tensor(self.fresh_name(name), memory, shape, scalar)  # type: ignore[arg-type]

    def _shape(self, call: ast.Call, spread_out: bool = False) -> tuple[ir.Expr, ...] | None:
        if not call.args:
            return None
        first = self.evaluator.value(call.args[0])
        if isinstance(first, Several):
            return tuple(self._size(i) for i in first.items)
        if isinstance(first, (Plain, Number)) and not spread_out:
            return (self._size(first),)
        return None

    def _size(self, value: Value) -> ir.Expr:
        match value:
            case Number(expr):
                return expr
            case Plain(bool()):
                return ir.Int(0)
            case Plain(int(number)):
                return ir.Int(number)
            case _:
                return self.evaluator.as_number(ast.Constant(0), Opaque()).expr

    def _parameter(self, name: str, annotation: ast.expr) -> Tensor:
        shape = self._shape(annotation) if isinstance(annotation, ast.Call) else None
        return Tensor(self.fresh_name(name), "global", shape)

    def parameters(self, function: ast.FunctionDef) -> None:
        """Put the parameters of a kernel into the scope: tensors where annotated so, else integers."""
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        for argument in arguments:
            note = argument.annotation
            called = note.func if isinstance(note, ast.Call) else note
            if note is not None and called is not None and self.word(called) in TENSOR_TYPES:
                self.scope[argument.arg] = self._parameter(argument.arg, note)
            else:
                self.scope.pop(argument.arg, None)


def _indices(index: ast.expr) -> list[ast.expr]:
    entries = index.elts if isinstance(index, ast.Tuple) else [index]
    return [e for e in entries if not isinstance(e, ast.Slice)]


def _memory_of(scope: str) -> Memory:
    if scope.startswith(("shared.barrier", "shared.cluster_barrier")):
        return "barrier"
    if scope.startswith("shared"):
        return "shared"
    return "global" if scope == "global" else "fragment"
