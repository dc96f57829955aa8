"""Which operations, loops and branches does the body of a TileLang kernel consist of?

The body is read like the compiler traces it: what is known at compile time is decided, macros are put in place, a
`T.Parallel` nest is one operation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.frontends.escapes import is_plain
from fencepost.frontends.pypto_pro.evaluate import bound_names
from fencepost.frontends.rebinding import bindings
from fencepost.frontends.tilelang.annotations import BOUNDS, Notes
from fencepost.frontends.tilelang.blocks import Blocks
from fencepost.frontends.tilelang.merge import merged
from fencepost.frontends.tilelang.names import site
from fencepost.frontends.tilelang.operations import BLOCKS, LAUNCHES, THREADS
from fencepost.frontends.tilelang.state import argument_of
from fencepost.frontends.tilelang.traits import holds, touched
from fencepost.frontends.tilelang.values import (
    Branch,
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
    Value,
    names_of,
)

_MAX_NESTING = 60
_MAX_UNROLLED = 64
_ONE = ir.Int(1)


@dataclass(slots=True)
class Lowering(Blocks):
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
            nodes += self._noticed(statement)
        self.depth -= 1
        return nodes

    def _noticed(self, statement: ast.stmt) -> list[Node]:
        """Lower a statement; the names that one binds which could not be read may stand for anything then."""
        before = dict(self.scope)
        nodes = self._statement(statement)
        if len(nodes) == 1 and isinstance(nodes[0], Gap):
            for name in bindings([statement]):
                if self.scope.get(name) is before.get(name):
                    self.scope[name] = self.evaluator.untold()
        return nodes

    # ------------------------------------------------------------------------------------------------ statements

    def _statement(self, node: ast.stmt) -> list[Node]:
        match node:
            case ast.Expr(ast.Constant()) | ast.Pass() | ast.Global():
                return []
            case ast.Import() | ast.ImportFrom() | ast.Delete() | ast.ClassDef():
                for name in bound_names([node]):
                    self.scope[name] = Opaque(name)
                return []
            case ast.Return(value):
                return self._return(node, value)
            case ast.Nonlocal():
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
            case ast.With(items) if any(self.hidden(i) for i in items):
                return [self.gap(node, f"what is done inside `with {ast.unparse(items[0])[:60]}`")]
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
                loop = self._repeated(node, f"`while {ast.unparse(test)}`", ["_"], body, [test])
                return [loop, *self.body(orelse)]
            case ast.FunctionDef():
                function = self.evaluator.function(node, bool(node.decorator_list))
                self.scope[node.name] = function if is_plain(node) else Opaque(node.name)
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
            self.reached.update(id(n) for s in (orelse if chosen else body) for n in ast.walk(s))  # there is no loop
            return self.body(body if chosen else orelse)
        if isinstance(value, (Function, Opaque)):
            value = self.evaluator.as_number(test, Opaque())
        condition = self.evaluator.as_number(test, value)
        span = self.source.span(node)
        first, second = self._choose(node, condition, body, orelse)
        if condition.static and self.in_pipeline and (len(first) != 1 or len(second) > 1):
            text = ast.unparse(test)
            self.assume(f"`if {text}` on line {span.line} is taken as one statement, whatever {text} is")
        return [Branch(((condition, first),), second, span)]

    def _with(self, node: ast.With, items: list[ast.withitem], body: list[ast.stmt]) -> list[Node]:
        calls = [i.context_expr for i in items if isinstance(i.context_expr, ast.Call)]
        words = [self.word(c.func) for c in calls]
        if len(calls) < len(items) or not BLOCKS.issuperset(words):
            return self._conditional_with(node, items, body)
        for item, word in zip(items, words, strict=True):
            if item.optional_vars is not None and word not in LAUNCHES:
                return [self.gap(node, f"what `with {ast.unparse(item)[:60]}` gives")]
            if item.optional_vars is not None:
                self._indices(item.optional_vars)
        entered = [load for call in calls for load in touched(self.evaluator.value(call))]
        test = [Op("test", (), (), self.source.span(node), others=tuple(entered))] if entered else []
        if LAUNCHES.intersection(words) or not self.in_pipeline:
            return [*test, *self.body(body)]
        inner = (*test, *self._inner(body))
        self.scope.update(self.left)  # names of a `with` block live on
        return [inner[0]] if len(inner) == 1 else [Branch(((None, inner),), (), self.source.span(node))]

    def _conditional_with(self, node: ast.With, items: list[ast.withitem], body: list[ast.stmt]) -> list[Node]:
        """A `with` whose body need not run once each time; `with a, b` is `with a: with b`."""
        if len(items) > 1:
            within = ast.copy_location(ast.With(items[1:], body), node)
            return self._with(node, items[:1], [within])
        (item,) = items
        call, name = item.context_expr, f"`with {ast.unparse(item.context_expr)[:60]}`"
        word = self.word(call.func) if isinstance(call, ast.Call) else None
        arguments = call.args if isinstance(call, ast.Call) and not call.keywords else []
        single = len(arguments) == 1 and item.optional_vars is None and not isinstance(arguments[0], ast.Starred)
        if word == "While" and single:
            return [self._repeated(node, name, ["_"], body, arguments)]
        if word in THREADS and item.optional_vars is None:
            self.assume(f"{name} on line {self.line(node)} runs its body or not, whichever may be")
            condition = self.evaluator.anything(node, "threads", touched(self.evaluator.value(call)), noted=True)
            return [Branch(((condition, self._arm(node, body)),), (), self.source.span(node))]
        arms = self._arms(body) if word == "If" and single else None
        if arms is None:
            return [self.gap(node, f"when the body of {name} runs")]
        condition = self.evaluator.as_number(arguments[0], self.evaluator.truth(arguments[0]))
        first, second = (self._arm(node, arm) for arm in arms)
        return [Branch(((condition, first),), second, self.source.span(node))]

    def _arms(self, body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]] | None:
        """The bodies of `T.Then` and `T.Else`; None if something else is there, too."""
        found: dict[str | None, list[ast.stmt]] = {}
        for inner in body:
            match inner:
                case ast.With([ast.withitem(ast.Call(func, [], []), None), *others], statements):
                    word = self.word(func)
                    if word in found or word not in ("Then", "Else") or "Else" in found:
                        return None
                    within = ast.copy_location(ast.With(others, statements), inner)
                    found[word] = [within] if others else statements
                case _:
                    return None
        return found.get("Then", []), found.get("Else", [])

    def _arm(self, node: ast.AST, body: list[ast.stmt]) -> tuple[Node, ...]:
        """A part that may not run; it is traced in any case, or its names end with it."""
        nodes, before = self._inner(body), dict(self.scope)
        self.scope.update(self.left)
        self._meet(node, before, self.left)
        return nodes

    def _indices(self, target: ast.expr) -> None:
        """Names of block and thread numbers: the same for the whole kernel, but not known when it is compiled."""
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        for name in names:
            if isinstance(name, ast.Name):
                key = ("number", site(name), self.names.part)
                self.scope[name.id] = number = replace(self.evaluator.symbol(key, name.id, natural=True), static=False)
                self.names.running |= {*names_of((number.expr,))}

    def _for(self, node: ast.For) -> list[Node]:
        call = node.iter
        if not isinstance(call, ast.Call):
            return self._over_values(node, self.evaluator.value(call))
        word = self.word(call.func)
        if word is None and self.evaluator.builtin(call.func) == "range":
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
            case None if self.in_pipeline:
                return [self.gap(node, f"how many statements the loop over `{ast.unparse(call)[:60]}` is")]
            case _:
                return [self._some_loop(node, call, names)]

    def _over_values(self, node: ast.For, value: Value) -> list[Node]:
        if isinstance(value, Several) and len(value.items) <= _MAX_UNROLLED and isinstance(node.target, ast.Name):
            nodes: list[Node] = []
            part = self.names.part
            for item in value.items:
                self.names.next_part()
                nodes += self._bind(node, node.target.id, item, node.iter)
                nodes += self.body(node.body)
            self.names.part = part
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
        sure = _runs(start, stop, step)
        if word == "range" and self.unrewritten:
            return self._unrolled(node, (start, stop, step), names)
        if not isinstance(step, ir.Int) or step.value == 0:
            return [self.gap(node, "a loop whose step is not constant")]
        name = names[0] if names else "_"
        loop = self._loop(node, name, node.body, (start, stop, step), sure, _loads(bounds))
        self._outlive(bindings([node]))
        return [loop]

    def _unrolled(self, node: ast.For, bounds: tuple[ir.Expr, ir.Expr, ir.Expr], names: list[str]) -> list[Node]:
        """Python's own loop, of a function that the compiler does not rewrite: it sees the rounds one after another."""
        values = [b.value for b in bounds if isinstance(b, ir.Int)]
        if len(values) < 3 or not values[2] or len(range(*values)) > _MAX_UNROLLED:
            return [self.gap(node, f"how many statements the loop over `{ast.unparse(node.iter)[:60]}` is")]
        nodes: list[Node] = []
        part = self.names.part
        for value in range(*values):
            self.names.next_part()
            self.scope.update({name: Plain(value) for name in names})
            nodes += self.body(node.body)
        self.names.part = part
        return nodes

    def _loop(
        self,
        node: ast.stmt,
        name: str,
        body: list[ast.stmt],
        bounds: tuple[ir.Expr, ir.Expr, ir.Expr],
        sure: bool,
        loads: tuple[Region, ...],
        unknown: Iterable[str] = (),
        once: bool = True,
    ) -> Loop:
        """`unknown` are names that stand for something else in each round; `once`: the body is surely traced once."""
        var = self.names.fresh(name.strip("_") or "i")
        outer, variables = self.evaluator.scope, self.evaluator.variables
        self.evaluator.scope = {**outer, name: Number(ir.Name(var), False)}
        self.evaluator.variables = (*variables, var)
        if once:
            self.names.running.add(var)
        if once and isinstance(bounds[2], ir.Int):
            self.names.counts(var, bounds[0], bounds[1], bounds[2].value)
        self.scope.update((other, self.evaluator.anything(node, other, loads)) for other in unknown)
        nodes = self._inner(body)
        self.evaluator.scope, self.evaluator.variables = outer, variables
        return Loop(var, *bounds, nodes, self.source.span(node), sure, loads)

    def _some_loop(self, node: ast.For, call: ast.Call, names: list[str]) -> Node:
        """A loop of a kind that is not known: it runs any number of times."""
        what = f"the loop over {ast.unparse(call.func)}"
        return self._repeated(node, what, names or ["_"], node.body, [call])

    def _repeated(
        self, node: ast.stmt, what: str, names: list[str], body: list[ast.stmt], heads: list[ast.expr]
    ) -> Node:
        """A loop that runs any number of times; `heads` are evaluated before each round, and give values to `names`."""
        before = [load for head in heads for load in touched(self.evaluator.value(head))]
        self.assume(f"{what} on line {self.line(node)} runs any number of times")
        stored = (n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self._forget(bindings(body))
        changed = [
            n for n in stored if isinstance(found := self.scope.get(n), (Plain, Number, Several)) and not holds(found)
        ]
        for name in dict.fromkeys((*names, *changed)):
            self.scope[name] = self.evaluator.anything(node, name, before)
        count = self.evaluator.anything(node, "rounds").expr
        after = [load for head in heads for load in touched(self.evaluator.value(head))]
        loads = tuple(dict.fromkeys((*before, *after)))
        unknown = dict.fromkeys((*names[1:], *changed))
        loop = self._loop(node, names[0], body, (ir.Int(0), count, ir.Int(1)), False, loads, unknown, once=False)
        self._undecided(node, bindings(body))
        return loop

    def _parallel(self, node: ast.For, call: ast.Call, names: list[str]) -> Node:
        """A nest of parallel loops is one operation on everything that its elements touch."""
        extents: dict[str, tuple[ir.Expr, ir.Expr]] = {}
        numbers = [self.evaluator.number(a) for a in call.args if not isinstance(a, ast.Starred)]
        sizes = [n.expr for n in numbers]
        outer, variables = self.evaluator.scope, self.evaluator.variables
        self.evaluator.scope = dict(outer)
        for place, name in enumerate(names):
            var = f"{name} of line {node.lineno}"
            self.evaluator.scope[name] = Number(ir.Name(var), False)
            size = sizes[place] if place < len(sizes) else ir.Name("?")
            extents[var] = (ir.Int(0), size)
            self.names.counts(var, ir.Int(0), size)
        self.evaluator.variables = (*variables, *extents)
        self.names.running |= extents.keys()
        in_pipeline, self.in_pipeline = self.in_pipeline, False
        nodes = self._maybe(node.body)
        self.in_pipeline, self.left = in_pipeline, self.scope
        self.evaluator.scope, self.evaluator.variables = outer, variables
        self._outlive(bindings([node]))
        doubts = frozenset(var for var, (start, stop) in extents.items() if not _runs(start, stop))
        known = len(numbers) == len(call.args) == len(names)
        of_sizes = names_of(sizes)
        return merged(nodes, extents, self.source.span(node), doubts if known else None, _loads(numbers), of_sizes)

    # ------------------------------------------------------------------------------------------------ pipelines

    def _pipelined(self, node: ast.For, call: ast.Call, names: list[str]) -> Pipe:
        self.reached.add(id(call.func))
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
        var = self.names.fresh(name.strip("_") or "i")
        outer, variables, in_pipeline = self.evaluator.scope, self.evaluator.variables, self.in_pipeline
        self.evaluator.scope = {**outer, name: Number(ir.Name(var), False)}
        self.evaluator.variables = (*variables, var)
        self.in_pipeline = True
        self.names.counts(var, bounds[0].expr, bounds[1].expr)
        self.names.running.add(var)
        body = tuple(self._maybe(node.body))
        self.left = self.scope
        self.evaluator.scope, self.evaluator.variables, self.in_pipeline = outer, variables, in_pipeline
        self._outlive(bindings([node]))
        start, stop = bounds
        sure = _runs(start.expr, stop.expr)
        span, loads = self.source.span(node), _loads(bounds)
        return Pipe(var, start.expr, stop.expr, body, span, notes, tuple(problems), sure, raw, loads)


def _targets(target: ast.expr) -> list[str]:
    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return [n.id for n in names if isinstance(n, ast.Name)]


def _runs(start: ir.Expr, stop: ir.Expr, step: ir.Expr = _ONE) -> bool:
    """Whether a loop runs at least once, whatever the caller chooses."""
    if not isinstance(start, ir.Int) or not isinstance(stop, ir.Int) or not isinstance(step, ir.Int):
        return False
    return start.value < stop.value if step.value > 0 else step.value < 0 and start.value > stop.value


def _loads(numbers: Iterable[Number]) -> tuple[Region, ...]:
    """What several numbers are read from."""
    return tuple(dict.fromkeys(load for n in numbers for load in n.loads))


def _keyword(node: ast.AST) -> str:
    return type(node).__name__.lower()
