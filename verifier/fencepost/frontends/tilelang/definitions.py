"""What does an assignment of a TileLang program define or store?"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.frontends.tilelang.operations import MEMORIES, TENSOR_TYPES
from fencepost.frontends.tilelang.signs import bounds_of
from fencepost.frontends.tilelang.state import State
from fencepost.frontends.tilelang.traits import touched
from fencepost.frontends.tilelang.values import (
    UNTOLD,
    Either,
    Let,
    Memory,
    Node,
    Number,
    Op,
    Opaque,
    Plain,
    Region,
    Several,
    Tensor,
    Value,
    mentioned,
)

_MAX_ITEMS = 64


@dataclass(slots=True)
class Definitions(State):
    """Lowers assignments and allocations."""

    def _assign(self, node: ast.Assign, targets: list[ast.expr], value: ast.expr) -> list[Node]:
        nodes: list[Node] = []
        made = self._made(node, _label(targets[0]), value)
        if made is None:
            for target in targets:
                nodes += self._store(node, target, value)
            return nodes
        nodes, result = made
        for target in targets:
            nodes += self._put(node, target, result, value)
        return nodes

    # ------------------------------------------------------------------------------------------------ what acts

    def _made(self, node: ast.stmt, name: str, value: ast.expr) -> tuple[list[Node], Value] | None:
        """What an expression does that allocates or calls functions which act, and its value; None for any other."""
        foreign = self.in_pipeline and isinstance(value, ast.Call) and self.is_foreign(value)
        if not foreign and not self.hidden(value):
            return None
        match value:
            case ast.Call() if any(self.hidden(a) for a in (*value.args, *value.keywords)):
                pass
            case ast.Call() if self.word(value.func) in MEMORIES:
                tensor = self._tensor(name, str(self.word(value.func)), value)
                return self._initialised(node, tensor, value), tensor
            case ast.Call():
                function = self.function(value)
                if function is not None:
                    nodes = self._inlined(value, function)
                    return nodes, self.result
            case ast.Tuple(items) | ast.List(items):
                return self._made_each(node, [(name, i) for i in items], isinstance(value, ast.List))
            case ast.ListComp(element, [ast.comprehension(ast.Name(index), over, [], 0)]):
                rounds = self._rounds(over)
                if rounds is not None and not self.hidden(over):
                    outer, self.evaluator.scope = self.evaluator.scope, dict(self.scope)
                    nodes = []
                    given: list[Value] = []
                    for item in rounds:
                        self.scope[index] = item
                        part = self.names.next_part()
                        more, found = self._made_each(node, [(name, element)])
                        self.names.part = part
                        nodes += more
                        given += found.items
                    self.evaluator.scope = outer
                    return nodes, Several(tuple(given), True)
        return [self.gap(value, f"what `{ast.unparse(value)[:60]}` does")], Opaque()

    def _made_each(
        self, node: ast.stmt, parts: list[tuple[str, ast.expr]], changeable: bool = False
    ) -> tuple[list[Node], Several]:
        nodes: list[Node] = []
        items: list[Value] = []
        for name, part in parts:
            made = self._made(node, name, part)
            nodes += made[0] if made is not None else []
            items.append(made[1] if made is not None else self.evaluator.value(part))
        return nodes, Several(tuple(items), changeable)

    def _rounds(self, over: ast.expr) -> list[Value] | None:
        """The values that a comprehension runs through, if the text tells them."""
        if isinstance(over, ast.Call) and self.evaluator.builtin(over.func) == "range":
            numbers = [self.evaluator.number(a).expr for a in over.args]
            bounds = [n.value for n in numbers if isinstance(n, ir.Int)]
            plain = not over.keywords and 1 <= len(over.args) <= 3 and len(bounds) == len(numbers)
            if plain and (len(bounds) < 3 or bounds[2]) and len(range(*bounds)) <= _MAX_ITEMS:
                return [Plain(i) for i in range(*bounds)]
            return None
        found = self.evaluator.value(over)
        return list(found.items) if isinstance(found, Several) and len(found.items) <= _MAX_ITEMS else None

    # ------------------------------------------------------------------------------------------------ targets

    def _put(self, node: ast.stmt, target: ast.expr, value: Value, text: ast.expr) -> list[Node]:
        """Give a value that is known already to a target."""
        match target:
            case ast.Name(name):
                old = self.scope.get(name)
                if isinstance(old, Tensor) and old.scalar and not isinstance(value, (Tensor, Several)):
                    number = self.evaluator.as_number(text, value)
                    names = mentioned((number,))
                    return [Op("store", number.loads, (Region(old),), self.source.span(node), names=names)]
                return self._bind(node, name, value, text)
            case ast.Tuple(items) | ast.List(items) if isinstance(value, Several) and len(items) == len(value.items):
                if not any(isinstance(i, ast.Starred) for i in items):
                    nodes: list[Node] = []
                    for item, one in zip(items, value.items, strict=True):
                        nodes += self._put(node, item, one, text)
                    return nodes
        for inner in ast.walk(target):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self.scope.pop(inner.id, None)
        return [self.gap(node, f"an assignment to `{ast.unparse(target)[:60]}`")]

    def _store(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> list[Node]:
        match target:
            case ast.Name(name):
                old = self.scope.get(name)
                if isinstance(old, Tensor) and old.scalar:
                    return [self.operation(node, "store", (value,), (Region(old),))]
                return self._define(node, name, value)
            case ast.Subscript(base, index):
                owner = self.evaluator.value(base)
                if isinstance(owner, Region):
                    owner = owner.tensor
                if isinstance(owner, Either) and _tensors(owner):
                    done = self.operation(node, "store", (value,), ())
                    inner = touched(self.evaluator.value(index))
                    return [replace(done, writes=tuple(touched(owner)), others=tuple(inner))]
                if isinstance(owner, Tensor):
                    region = self.evaluator.region(owner, index)
                    name = self._store_name(owner, value)
                    done = self.operation(node, name, (value,), (region,))
                    loaded = any(r.tensor.memory == "global" for r in done.reads)
                    return [replace(done, computes=loaded and owner.memory == "shared" and name != "copy")]
                if isinstance(owner, (Several, Opaque)) and self.evaluator.settled(value, index):
                    return []  # nothing of the program: entries of it are read as unknown
                return [self.gap(node, f"an assignment to `{ast.unparse(target)[:60]}`")]
            case ast.Tuple(items) | ast.List(items) if all(isinstance(i, ast.Name) for i in items):
                found = self.evaluator.value(value)
                names = [i.id for i in items if isinstance(i, ast.Name)]
                stored = any(isinstance(old, Tensor) and old.scalar for old in map(self.scope.get, names))
                if stored:
                    return [self.gap(node, f"an assignment to several variables, `{ast.unparse(target)[:60]}`")]
                if isinstance(found, Several):
                    now = replace(found, items=tuple(self._current(value, i) for i in found.items))
                    return self._put(node, target, now, value)
                for item in items:
                    if isinstance(item, ast.Name):
                        self.scope[item.id] = self.evaluator.as_number(item, Opaque())
                return []
            case _:
                return self._put(node, target, self.evaluator.value(value), value)

    def _store_name(self, target: Tensor, value: ast.expr) -> str:
        """Element-wise copies from global to shared memory are copies to the compiler, also where they are masked."""
        stack, copied = [value], False
        while stack:
            node = stack.pop()
            match node:
                case ast.Call(args=[first, *_]) if self.word(node.func) in ("cast", "Cast"):
                    stack.append(first)
                case ast.Call(args=[_, first, second]) if self.word(node.func) in ("if_then_else", "Select"):
                    stack += [first, second]
                case ast.IfExp(_, first, second):
                    stack += [first, second]
                case _:
                    found = self.evaluator.value(node)
                    loaded = isinstance(found, Region) and found.tensor.memory == "global"
                    if not loaded and touched(found):
                        return "store"
                    copied = copied or loaded
        return "copy" if copied and target.memory == "shared" else "store"

    def _define(self, node: ast.stmt, name: str, value: ast.expr, bind: bool = False) -> list[Node]:
        if isinstance(value, ast.Call):
            word = self.word(value.func)
            if word in ("view", "reshape") and value.args:
                base = self.evaluator.value(value.args[0])
                if isinstance(base, Region):
                    if base.at:
                        return [self.gap(value, f"which part `{ast.unparse(value)[:60]}` is")]
                    base = base.tensor
                if isinstance(base, Tensor):
                    self.scope[name] = replace(base, shape=None)
                    return []
            if word == "make_tensor" and value.args:
                pointer = self.evaluator.value(value.args[0])
                if self.evaluator.variables and not isinstance(pointer, Tensor) and touched(pointer):
                    return [self.gap(value, f"which tensor `{ast.unparse(value)[:60]}` is")]
                shape = self._dims(value.args[1]) if len(value.args) > 1 else None
                own = pointer.name if isinstance(pointer, Tensor) else self.names.fresh(name)
                self.scope[name] = Tensor(own, "global", shape)
                return []
            if word in ("match_buffer", *TENSOR_TYPES):
                self.scope[name] = self._parameter(name, value)
                return []
        return self._bind(node, name, self._current(value, self.evaluator.value(value)), value, bind)

    def _bind(self, node: ast.AST, name: str, found: Value, value: ast.expr, bind: bool = False) -> list[Node]:
        """Give a name to a value.  What is read from memory is read here, and not where the name is used."""
        if isinstance(found, Region) and found.element:
            found = self.evaluator.as_number(value, found)
        if bind and not isinstance(found, Number):
            found = self.evaluator.as_number(value, found)
            found = replace(found, static=False)
        if isinstance(found, Number) and UNTOLD in found.loads:  # an object that leads to tensors is no scalar
            self.scope[name] = found
            return []
        if isinstance(found, Number) and not bind and self._is_variable(found):
            self.scope[name] = found
            return []
        if isinstance(found, Number) and (found.loads or (not found.static and self.in_pipeline)):
            let = Let(self.names.fresh(name), found, self.source.span(node), self.evaluator.variables)
            self.names.ranges[let.name] = bounds_of(found.expr, self.names.bounds())
            if self.names.is_read(found.expr):
                self.names.read.add(let.name)
            if self.is_running(found.expr):
                self.names.running.add(let.name)
            expr = ir.Name(let.name) if self.in_pipeline else found.expr
            self.scope[name] = Number(expr, False, (let.region,))
            return [let]
        self.scope[name] = found
        return []

    def _current(self, node: ast.expr, found: Value) -> Value:
        """What a variable of the program holds, which is what another name gets; anything else as it is."""
        variable = isinstance(found, Tensor) and found.scalar
        return self.evaluator.as_number(node, found) if variable else found

    def _is_variable(self, found: Number) -> bool:
        """Whether a scalar is a variable of the program already: another name for it is no statement."""
        return isinstance(found.expr, ir.Name) and found.expr.id in self.names.running

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
            if self._is_tensor(annotation):
                self.scope[target.id] = self._parameter(target.id, annotation)
            return []
        made = self._made(node, target.id, value)
        if made is not None:
            return [*made[0], *self._put(node, target, made[1], value)]
        return self._define(node, target.id, value, bind=self.in_pipeline)

    def _augmented(self, node: ast.AugAssign, target: ast.expr, op: ast.operator, value: ast.expr) -> list[Node]:
        if self.hidden(value):
            return [self.gap(value, f"what `{ast.unparse(value)[:60]}` does")]
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
        return Tensor(self.names.fresh(name), memory, shape, scalar)  # type: ignore[arg-type]

    def _shape(self, call: ast.Call, spread_out: bool = False) -> tuple[ir.Expr, ...] | None:
        if not call.args:
            return None
        return self._dims(call.args[0], spread_out)

    def _dims(self, node: ast.expr, spread_out: bool = False) -> tuple[ir.Expr, ...] | None:
        first = self.evaluator.value(node)
        if isinstance(first, Several):
            return tuple(self._size(i) for i in first.items)
        if isinstance(first, (Plain, Number)) and not spread_out:
            return (self._size(first),)
        return None

    def _size(self, value: Value) -> ir.Expr:
        """The size of a dimension, which is not negative."""
        match value:
            case Number(ir.Name(name) as expr):
                if not self.choices and name in self.names.symbols:
                    self.names.naturals.add(name)
                return expr
            case Number(expr):
                return expr
            case Plain(int(number)):
                return ir.Int(number)
            case _:
                return self.evaluator.symbol(object(), "size", natural=True).expr

    def _parameter(self, name: str, annotation: ast.expr) -> Tensor:
        shape = self._shape(annotation) if isinstance(annotation, ast.Call) else None
        match annotation:
            case ast.Subscript(_, ast.Tuple([first, *_])):
                shape = self._dims(first)
        return Tensor(self.names.fresh(name), "global", shape)

    def _is_tensor(self, annotation: ast.expr) -> bool:
        """Whether an annotation says `T.Tensor(...)`, `T.Tensor[...]` or their kin."""
        match annotation:
            case ast.Call(named) | ast.Subscript(named):
                return self.word(named) in TENSOR_TYPES
            case _:
                return self.word(annotation) in TENSOR_TYPES

    def parameters(self, function: ast.FunctionDef) -> None:
        """Put the parameters of a kernel into the scope that are tensors, by their annotations."""
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        for argument in arguments:
            note = argument.annotation
            if note is not None and self._is_tensor(note):
                self.scope[argument.arg] = self._parameter(argument.arg, note)


def _tensors(either: Either) -> bool:
    """Whether every thing that is open to choice is a tensor."""
    return all(isinstance(i, (Tensor, Region)) or (isinstance(i, Either) and _tensors(i)) for i in either.items)


def _label(target: ast.expr) -> str:
    """The name that a buffer gets that is made for a target."""
    return next((n.id for n in ast.walk(target) if isinstance(n, ast.Name)), "buffer")


def _memory_of(scope: str) -> Memory:
    if scope.startswith(("shared.barrier", "shared.cluster_barrier")):
        return "barrier"
    if scope.startswith("shared"):
        return "shared"
    return "global" if scope == "global" else "fragment"
