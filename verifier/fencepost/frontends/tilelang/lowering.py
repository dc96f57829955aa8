"""Which operations, loops and branches does the body of a TileLang kernel consist of?

The body is read like the compiler traces it: what is known at compile time is decided, macros are put in place, a
`T.Parallel` nest is one operation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.frontends.tilelang.annotations import BOUNDS, Notes, PipelineNotes
from fencepost.frontends.tilelang.expressions import touched
from fencepost.frontends.tilelang.merge import merged
from fencepost.frontends.tilelang.regions import Extents
from fencepost.frontends.tilelang.state import argument_of
from fencepost.frontends.tilelang.values import (
    Branch,
    Either,
    Function,
    Gap,
    Loop,
    Node,
    Number,
    Op,
    Opaque,
    Pipe,
    Plain,
    Region,
    Several,
    Tensor,
    Value,
)

_MAX_NESTING = 60
_MAX_UNROLLED = 64


@dataclass(slots=True)
class Lowering(PipelineNotes):
    """Lowers statements."""

    def body(self, statements: Iterable[ast.stmt]) -> list[Node]:
        """Lower statements in order; definitions stay in the scope."""
        if self.depth > _MAX_NESTING:
            return [Gap("statements are nested too deeply", ir.NOWHERE)]
        self.depth += 1
        nodes: list[Node] = []
        for statement in statements:
            if self.returned:
                break
            nodes += self._statement(statement)
        self.depth -= 1
        return nodes

    def _inner(self, statements: Iterable[ast.stmt], inside_loop: bool = False) -> tuple[Node, ...]:
        """A block of its own: its definitions end with it, and it does not hold statements of the pipeline."""
        outer, in_pipeline = self.evaluator.scope, self.in_pipeline
        self.evaluator.scope, self.in_pipeline = dict(outer), False
        nodes = tuple(self._maybe(statements))
        self.left = self.scope
        self.evaluator.scope, self.in_pipeline = outer, in_pipeline
        return nodes

    def _maybe(self, statements: Iterable[ast.stmt]) -> list[Node]:
        """Statements that may run any number of times."""
        self.choices += 1
        nodes = self.body(statements)
        self.choices -= 1
        return nodes

    # ------------------------------------------------------------------------------------------------ statements

    def _statement(self, node: ast.stmt) -> list[Node]:
        match node:
            case ast.Expr(ast.Constant()) | ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Global():
                return []
            case ast.Return(value):
                return self._return(node, value)
            case ast.Nonlocal() | ast.Delete() | ast.ClassDef():
                return []
            case ast.Expr(ast.Call() as call) if any(self.hidden(a) for a in (*call.args, *call.keywords)):
                return [self.gap(node, f"what is done inside `{ast.unparse(call)[:60]}`")]
            case ast.Expr(ast.Call() as call):
                return self._call(call)
            case ast.Expr() | ast.Assert():
                acts = self.hidden(node)
                return [self.gap(node, f"what is done inside `{ast.unparse(node)[:60]}`")] if acts else []
            case ast.If(head) | ast.For(iter=head) | ast.While(head) if self.hidden(head):
                return [self.gap(head, f"what is done inside `{ast.unparse(head)[:60]}`")]
            case ast.Assign(targets=written) if any(map(self.hidden, written)):
                return [self.gap(node, f"what is done inside `{ast.unparse(node)[:60]}`")]
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target) if self.hidden(target):
                return [self.gap(node, f"what is done inside `{ast.unparse(node)[:60]}`")]
            case ast.Assign(targets, value):
                return self._assign(node, targets, value)
            case ast.AnnAssign(target, annotation, value):
                return self._annotated(node, target, annotation, value)
            case ast.AugAssign(target, op, value):
                return self._augmented(node, target, op, value)
            case ast.If(test, body, orelse):
                return self._if(node, test, body, orelse)
            case ast.For():
                return [*self._for(node), *self.body(node.orelse)]
            case ast.With(items, body):
                return self._with(node, items, body)
            case ast.While(test, body, orelse):
                loop = self._repeated(node, f"`while {ast.unparse(test)}`", "_", body, [test])
                return [loop, *self.body(orelse)]
            case ast.FunctionDef():
                macro = any(self.word(d.func if isinstance(d, ast.Call) else d) == "macro" for d in node.decorator_list)
                self.scope[node.name] = Function(node, self.scope, macro)
                return []
            case _:
                return [self.gap(node, f"`{_keyword(node)}` in a kernel")]

    def _return(self, node: ast.Return, value: ast.expr | None) -> list[Node]:
        """The end of the function that is put in place."""
        if self.choices:
            return [self.gap(node, "a return that may or may not be reached")]
        self.returned = True
        if value is None:
            return []
        made = self._made(node, "result", value) if self.calls else None
        if made is None:
            self.result = self.evaluator.value(value)
            return []
        self.result = made[1]
        self.returned = True
        return made[0]

    # ------------------------------------------------------------------------------------------------ blocks

    def _if(self, node: ast.If, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> list[Node]:
        value = self.evaluator.truth(test)
        if isinstance(value, (Plain, Several)):
            chosen = bool(value.value) if isinstance(value, Plain) else bool(value.items)
            return self.body(body if chosen else orelse)
        if isinstance(value, (Function, Opaque)):
            value = self.evaluator.as_number(test, Opaque())
        condition = self.evaluator.as_number(test, value)
        span = self.source.span(node)
        first = self._inner(body)
        one = self.left
        second = self._inner(orelse)
        if condition.static:
            self._meet(one, self.left)
        if condition.static and self.in_pipeline and (len(first) != 1 or len(second) > 1):
            text = ast.unparse(test)
            self.assume(f"`if {text}` on line {span.line} is taken as one statement, whatever {text} is")
        return [Branch(((condition, first),), second, span)]

    def _meet(self, one: dict[str, Value], other: dict[str, Value]) -> None:
        """Which buffers names stand for after a choice that the compiler makes."""
        for name in dict.fromkeys((*one, *other)):
            values = tuple(dict.fromkeys(s[name] for s in (one, other) if name in s))
            if all(isinstance(v, (Tensor, Either)) for v in values):
                self.scope[name] = values[0] if len(values) == 1 else Either(values)
            elif name in self.scope and any(v != self.scope[name] for v in values):
                del self.scope[name]

    def _with(self, node: ast.With, items: list[ast.withitem], body: list[ast.stmt]) -> list[Node]:
        words = [self.word(i.context_expr.func) for i in items if isinstance(i.context_expr, ast.Call)]
        for item in items:
            if item.optional_vars is not None:
                self._indices(item.optional_vars)
        entered = [load for i in items for load in touched(self.evaluator.value(i.context_expr))]
        test = [Op("test", (), (), self.source.span(node), others=tuple(entered))] if entered else []
        if "Kernel" in words or not self.in_pipeline:
            return [*test, *self.body(body)]
        inner = (*test, *self._inner(body))
        self.scope.update(self.left)  # names of a `with` block live on
        return [inner[0]] if len(inner) == 1 else [Branch(((None, inner),), (), self.source.span(node))]

    def _indices(self, target: ast.expr) -> None:
        """Names of block and thread numbers: the same for the whole kernel, but not known when it is compiled."""
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        for name in names:
            if isinstance(name, ast.Name):
                self.scope[name.id] = Number(self.evaluator.symbol(name.id).expr, False)

    def _for(self, node: ast.For) -> list[Node]:
        call = node.iter
        if not isinstance(call, ast.Call):
            return self._over_values(node, self.evaluator.value(call))
        word = self.word(call.func)
        if word is None and isinstance(call.func, ast.Name) and call.func.id == "range":
            word = "range"
        names = _targets(node.target)
        match word:
            case "Pipelined":
                return [self._pipelined(node, call, names)]
            case "serial" | "Serial" | "unroll" | "Unroll" | "vectorized" | "Vectorized" | "range":
                return self._counted(node, call, word, names)
            case "thread_binding":  # not a loop: every thread has its own number
                self._indices(node.target)
                return self.body(node.body)
            case "Parallel" | "grid":
                return [self._parallel(node, call, names)]
            case _:
                return [self._some_loop(node, call, names)]

    def _over_values(self, node: ast.For, value: Value) -> list[Node]:
        if isinstance(value, Several) and len(value.items) <= _MAX_UNROLLED and isinstance(node.target, ast.Name):
            nodes: list[Node] = []
            for item in value.items:
                nodes += self._bind(node, node.target.id, item, node.iter)
                nodes += self.body(node.body)
            return nodes
        return [self.gap(node, "a loop over something other than a range")]

    def _bounds(self, call: ast.Call) -> tuple[Number, ...]:
        """Start, stop and step of a counted loop."""
        given = [a for a in call.args if not isinstance(a, ast.Starred)]
        start = argument_of(call, 0, "start")
        stop = argument_of(call, 1, "stop")
        step = argument_of(call, 2, "step")
        if len(given) == 1 and stop is None:
            start, stop = None, given[0]
        numbers = [self.evaluator.number(n) if n is not None else None for n in (start, stop, step)]
        return tuple(n or Number(ir.Int(k), True) for n, k in zip(numbers, (0, 0, 1), strict=True))

    def _counted(self, node: ast.For, call: ast.Call, word: str, names: list[str]) -> list[Node]:
        if word in ("serial", "Serial"):
            notes, problems = self._raw_notes(call)
            if notes or problems:
                first, last, _ = self._bounds(call)
                if any(isinstance(a, ast.Starred) for a in call.args):
                    problems.append(BOUNDS)
                    last = self.evaluator.as_number(call, Opaque())
                return [self._pipe(node, names, (first, last), notes, problems, raw=True)]
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            return [self.gap(node, f"the bounds of `{ast.unparse(call)[:60]}`")]
        bounds = self._bounds(call)
        start, stop, step = (n.expr for n in bounds)
        if word == "range" and isinstance(start, ir.Int) and isinstance(stop, ir.Int) and isinstance(step, ir.Int):
            values = range(start.value, stop.value, step.value or 1)
            if len(values) <= _MAX_UNROLLED:  # Python's own loop: the compiler sees its rounds one after another
                nodes: list[Node] = []
                for value in values:
                    self.scope.update({name: Plain(value) for name in names})
                    nodes += self.body(node.body)
                return nodes
        if not isinstance(step, ir.Int) or step.value == 0:
            return [self.gap(node, "a loop whose step is not constant")]
        name = names[0] if names else "_"
        sure = all(n.static for n in bounds)
        return [self._loop(node, name, node.body, (start, stop, step), sure, _loads(bounds))]

    def _loop(
        self,
        node: ast.stmt,
        name: str,
        body: list[ast.stmt],
        bounds: tuple[ir.Expr, ir.Expr, ir.Expr],
        sure: bool,
        loads: tuple[Region, ...],
    ) -> Loop:
        var = self.fresh_name(name.strip("_") or "i")
        outer, variables = self.evaluator.scope, self.evaluator.variables
        self.evaluator.scope = {**outer, name: Number(ir.Name(var), False)}
        self.evaluator.variables = (*variables, var)
        nodes = self._inner(body)
        self.evaluator.scope, self.evaluator.variables = outer, variables
        return Loop(var, *bounds, nodes, self.source.span(node), sure, loads)

    def _some_loop(self, node: ast.For, call: ast.Call, names: list[str]) -> Node:
        """A loop of a kind that is not known: it runs any number of times."""
        loads = touched(self.evaluator.value(call))
        for name in names:
            number = self.evaluator.as_number(ast.copy_location(ast.Name(name), node), Opaque())
            self.scope[name] = replace(number, static=False, loads=tuple(loads))
        what = f"the loop over {ast.unparse(call.func)}"
        return self._repeated(node, what, names[0] if names else "_", node.body, [call])

    def _repeated(self, node: ast.stmt, what: str, name: str, body: list[ast.stmt], heads: list[ast.expr]) -> Node:
        """A loop that runs any number of times; `heads` are evaluated before each round."""
        before = [load for head in heads for load in touched(self.evaluator.value(head))]
        self.assume(f"{what} on line {self.line(node)} runs any number of times")
        for inner in (n for s in body for n in ast.walk(s)):
            if not isinstance(inner, ast.Name) or not isinstance(inner.ctx, ast.Store):
                continue
            if isinstance(self.scope.get(inner.id), (Plain, Number, Several)):
                del self.scope[inner.id]
        count = self.evaluator.as_number(ast.copy_location(ast.Constant(None), node), Opaque()).expr
        after = [load for head in heads for load in touched(self.evaluator.value(head))]
        loads = tuple(dict.fromkeys((*before, *after)))
        return self._loop(node, name, body, (ir.Int(0), count, ir.Int(1)), False, loads)

    def _parallel(self, node: ast.For, call: ast.Call, names: list[str]) -> Node:
        """A nest of parallel loops is one operation on everything that its elements touch."""
        extents: Extents = {}
        numbers = [self.evaluator.number(a) for a in call.args if not isinstance(a, ast.Starred)]
        sizes = [n.expr for n in numbers]
        outer, variables = self.evaluator.scope, self.evaluator.variables
        self.evaluator.scope = dict(outer)
        for place, name in enumerate(names):
            var = f"{name} of line {node.lineno}"
            self.evaluator.scope[name] = Number(ir.Name(var), False)
            size = sizes[place] if place < len(sizes) else ir.Name("?")
            extents[var] = (ir.Int(0), size)
        self.evaluator.variables = (*variables, *extents)
        in_pipeline, self.in_pipeline = self.in_pipeline, False
        nodes = self._maybe(node.body)
        self.in_pipeline = in_pipeline
        self.evaluator.scope, self.evaluator.variables = outer, variables
        sure = all(n.static for n in numbers) and len(numbers) == len(call.args)
        return merged(nodes, extents, self.source.span(node), sure, _loads(numbers))

    # ------------------------------------------------------------------------------------------------ pipelines

    def _pipelined(self, node: ast.For, call: ast.Call, names: list[str]) -> Pipe:
        start = argument_of(call, 0, "start")
        stop = argument_of(call, 1, "stop")
        if stop is None:
            start, stop = None, start
        notes: Notes = {}
        problems: list[str] = []
        for key, position in (("num_stages", 2), ("order", 3), ("stage", 4)):
            given = argument_of(call, position, key)
            if given is not None:
                self._note(key, given, notes, problems)
        if notes.get("num_stages") == 0:
            del notes["num_stages"]
        raw, more = self._raw_notes(call)
        low = self.evaluator.number(start) if start is not None else Number(ir.Int(0), True)
        high = self.evaluator.number(stop) if stop is not None else Number(ir.Int(0), True)
        if any(isinstance(a, ast.Starred) for a in call.args):
            more.append(BOUNDS)
            high = self.evaluator.as_number(call, Opaque())
        return self._pipe(node, names, (low, high), notes | raw, [*problems, *more], raw=bool(raw))

    def _pipe(
        self,
        node: ast.For,
        names: list[str],
        bounds: tuple[Number, Number],
        notes: Notes,
        problems: list[str],
        raw: bool,
    ) -> Pipe:
        name = names[0] if names else "_"
        var = self.fresh_name(name.strip("_") or "i")
        outer, variables, in_pipeline = self.evaluator.scope, self.evaluator.variables, self.in_pipeline
        self.evaluator.scope = {**outer, name: Number(ir.Name(var), False)}
        self.evaluator.variables = (*variables, var)
        self.in_pipeline = True
        body = tuple(self._maybe(node.body))
        self.evaluator.scope, self.evaluator.variables, self.in_pipeline = outer, variables, in_pipeline
        start, stop = bounds
        sure = start.static and stop.static
        span, loads = self.source.span(node), _loads(bounds)
        return Pipe(var, start.expr, stop.expr, body, span, notes, tuple(problems), sure, raw, loads)


def _targets(target: ast.expr) -> list[str]:
    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return [n.id for n in names if isinstance(n, ast.Name)]


def _loads(numbers: Iterable[Number]) -> tuple[Region, ...]:
    """What several numbers are read from."""
    return tuple(dict.fromkeys(load for n in numbers for load in n.loads))


def _keyword(node: ast.AST) -> str:
    return type(node).__name__.lower()
