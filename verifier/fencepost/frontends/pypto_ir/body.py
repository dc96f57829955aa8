"""How do the statements of one kernel function read in kernel IR?

Loop-carried values (`init_values`, `pl.yield_`) become names that are written again at the end of each iteration.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from fencepost import ir
from fencepost.frontends.pypto_ir.calls import Calls, refuse_unpacked
from fencepost.frontends.pypto_ir.coalesce import coalesce
from fencepost.frontends.pypto_ir.context import WHILE_LIMIT, Context
from fencepost.frontends.pypto_ir.expressions import Unreadable
from fencepost.frontends.pypto_ir.scope import Variable
from fencepost.frontends.pypto_ir.types import Type, read_type


def read_body(ctx: Context) -> tuple[ir.Stmt, ...]:
    """Return the statements of the function of `ctx`.

    Raises:
        Unreadable: the text cannot be read at some place.
    """
    reader = _Body(ctx)
    return coalesce(reader.block(ctx.function.node.body, top=True))


class _Body:
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.calls = Calls(ctx)

    def block(self, stmts: list[ast.stmt], top: bool = False) -> tuple[ir.Stmt, ...]:
        saved, self.ctx.out = self.ctx.out, []
        for index, stmt in enumerate(stmts):
            if isinstance(stmt, ast.If) and _returns(stmt) and not self.ctx.loops:
                self._if_with_return(stmt, stmts[index + 1 :])
                break
            if isinstance(stmt, ast.Return):
                if not top and index + 1 < len(stmts):
                    raise Unreadable("statements after a return are never executed", stmts[index + 1])
                if self.ctx.loops:
                    self.ctx.unsupported(stmt, "a return inside a loop")
                break
            if isinstance(stmt, ast.With) and index + 1 < len(stmts) and _contains(stmt, ast.Return):
                self.ctx.unsupported(stmt, "a return inside a block")
                continue
            if not hasattr(stmt, "body") and _contains(stmt, ast.NamedExpr):
                raise Unreadable("a name is bound inside an expression", stmt)
            self._statement(stmt)
        out, self.ctx.out = self.ctx.out, saved
        return tuple(out)

    def _if_with_return(self, stmt: ast.If, rest: list[ast.stmt]) -> None:
        """`if c: ...; return` before other statements: they belong to the other branch."""
        then, other = stmt.body, stmt.orelse
        if _ends(then):
            other = [*other, *rest] if not _ends(other) else other
        elif _ends(other):
            then = [*then, *rest]
        else:
            self.ctx.unsupported(stmt, "a return nested inside a branch")
            return
        condition = self.ctx.expressions.truth(stmt.test)
        self.ctx.out.append(
            ir.If(((condition, self.block(then, True)),), self.block(other, True), span=self.ctx.span(stmt))
        )

    def _statement(self, stmt: ast.stmt) -> None:
        match stmt:
            case ast.Pass():
                pass
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=ast.Call() as call):
                self.calls.call_statement(call, [], None)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value, annotation=annotation):
                self._assign([target], value, read_type(annotation, self.ctx.module))
            case ast.Assign(targets=[ast.Name() as target], value=value):
                self._assign([target], value, None)
            case ast.Assign(targets=[ast.Tuple(elts=targets) | ast.List(elts=targets)], value=value):
                self._assign(self._names(targets), value, None)
            case ast.AugAssign(target=ast.Name() as target, op=op, value=value):
                whole = ast.copy_location(ast.BinOp(ast.Name(target.id, ast.Load()), op, value), stmt)
                ast.copy_location(whole.left, target)
                self._assign([target], whole, None)
            case ast.AnnAssign(target=ast.Name(), value=None):
                pass
            case ast.For():
                self._for(stmt)
            case ast.While(test=test, body=body):
                self._while(stmt, test, body)
            case ast.If():
                self._if(stmt)
            case ast.Break():
                self.ctx.out.append(ir.Break(span=self.ctx.span(stmt)))
            case ast.Continue():
                self.ctx.out.append(ir.Continue(span=self.ctx.span(stmt)))
            case ast.With(items=items, body=body):
                if all(self._entered(item) for item in items):
                    self.ctx.out += self.block(body)
            case _:
                self.ctx.unsupported(stmt, f"a statement of kind {type(stmt).__name__}")

    def _entered(self, item: ast.withitem) -> bool:
        """Whether the statements of a `with` block run here as they stand; if not, that is said."""
        called = item.context_expr
        path = self.ctx.module.path(called.func if isinstance(called, ast.Call) else called)
        section = path[-1].removeprefix("section_") if path else ""
        if not path or item.optional_vars is not None or (section in ("cube", "vector") and section != self.ctx.core):
            self.ctx.unsupported(called, f"a block with '{ast.unparse(item)[:60]}'")
            return False
        return True

    def _names(self, targets: list[ast.expr]) -> list[ast.Name]:
        for target in targets:
            if not isinstance(target, ast.Name):
                raise Unreadable("only plain names can be assigned", target)
        return [t for t in targets if isinstance(t, ast.Name)]

    def _assign(self, targets: list[ast.Name], value: ast.expr, given: Type | None) -> None:
        span = self.ctx.span(value)
        if self._yielded(value) is not None:
            return  # read where its block ends
        if isinstance(value, ast.Call):
            self.calls.call_statement(value, targets, given)
            return
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets) > 1:
            held = [self.calls.hold(v) for v in value.elts]
            written = [
                self.ctx.scope.assign(t.id, v.scalar, v.memory) if isinstance(v, Variable) else self._scalar(t)
                for t, v in zip(targets, held, strict=True)
            ]
            self._together(written, held, span)
            return
        if len(targets) != 1:
            raise Unreadable("several names are assigned from one value that is no call", value)
        name = targets[0].id
        variable = self.ctx.expressions.variable(value)
        if variable is not None and not variable.scalar:
            self.calls.write(name, variable, span)
        elif given is not None and not given.integer:
            self.ctx.out.append(self.calls.opaque(name, value, given))
        else:
            try:
                expr = self.ctx.expressions.integer(value)
            except Unreadable:
                if given is not None:
                    raise
                self.ctx.out.append(self.calls.opaque(name, value, None))
                return
            self.ctx.out.append(ir.Assign(self.ctx.scope.assign(name, True).name, expr, span=span))

    def _scalar(self, target: ast.Name) -> Variable:
        return self.ctx.scope.assign(target.id, True)

    def _yielded(self, value: ast.expr | None) -> list[ast.expr] | None:
        """The values of a `yield_` call, None for any other expression."""
        if isinstance(value, ast.Call) and self.ctx.module.last(value.func) == "yield_":
            return value.args
        return None

    def _end(self, body: list[ast.stmt]) -> tuple[list[ast.stmt], list[str], list[ast.expr], ast.stmt | None]:
        """A block without its final `yield_`: statements, names that receive the results, yielded values."""
        last = body[-1] if body else None
        match last:
            case ast.Expr(value=value):
                targets: list[ast.expr] = []
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                targets = [target]
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                pass
            case ast.Assign(targets=[target], value=value):
                targets = [target]
            case _:
                return body, [], [], None
        values = self._yielded(value)
        if values is None:
            return body, [], [], None
        names = [t.id for t in self._names(targets)]
        if names and len(names) != len(values):
            raise Unreadable(f"{len(values)} values are yielded to {len(names)} names", last)
        return body[:-1], names, values, last

    def _for(self, stmt: ast.For) -> None:
        if not isinstance(stmt.iter, ast.Call):
            raise Unreadable("a loop must run over pl.range, pl.pipeline or their kin", stmt.iter)
        if stmt.orelse:
            raise Unreadable("a for loop with an else branch", stmt.orelse[0])
        call = stmt.iter
        refuse_unpacked(call)
        path = self.ctx.module.path(call.func)
        word = path[-1] if path else call.func.id if isinstance(call.func, ast.Name) else ""
        keywords = {k.arg: k.value for k in call.keywords if k.arg}
        targets = stmt.target.elts if isinstance(stmt.target, ast.Tuple) else [stmt.target]
        if word == "while_":
            carried = self._names(list(targets))
            self._while_with_values(stmt, carried, keywords)
            return
        if word not in ("range", "pipeline", "parallel", "unroll", "spmd"):
            self.ctx.unsupported(stmt, f"a loop over '{ast.unparse(call.func)}'")
            return
        variable, *rest = targets
        if not isinstance(variable, ast.Name) or len(rest) > 1:
            raise Unreadable("a loop needs one variable and at most one tuple of loop-carried names", stmt.target)
        carried = self._names(rest[0].elts if rest and isinstance(rest[0], ast.Tuple) else rest)
        start, stop, step = self._bounds(call, keywords)
        stage = None
        if word == "pipeline":
            given = keywords.get("stage", keywords.get("stages"))
            if given is None:
                raise Unreadable("a pipeline loop needs 'stage='", call)
            stage = self.ctx.expressions.integer(given)
        loop_variable = self.ctx.scope.temporary(variable.id, True)
        names = self._carry(stmt, carried, keywords.get("init_values"))
        self.ctx.scope.enter([(variable.id, loop_variable), *zip([c.id for c in carried], names, strict=True)])
        body, results = self._loop_body(stmt.body, names, loop_variable.name, stmt)
        self.ctx.scope.leave()
        self.ctx.out.append(ir.For(loop_variable.name, start, stop, step, body, stage, span=self._header(stmt)))
        self._results(results, names, stmt)

    def _header(self, stmt: ast.For | ast.While) -> ir.Span:
        whole = self.ctx.span(stmt)
        head = self.ctx.span(stmt.iter if isinstance(stmt, ast.For) else stmt.test)
        return replace(whole, end_line=head.end_line, end_column=head.end_column)

    def _bounds(self, call: ast.Call, keywords: dict[str, ast.expr]) -> tuple[ir.Expr, ir.Expr, ir.Expr]:
        span = self.ctx.span(call)
        given = [self.ctx.expressions.integer(a) for a in call.args]
        words = [k for k in ("start", "stop", "step") if k in keywords]
        named_bounds = {k: self.ctx.expressions.integer(keywords[k]) for k in words}
        start: ir.Expr = ir.Int(0, span=span)
        step: ir.Expr = ir.Int(1, span=span)
        if len(given) == 1 and "stop" not in named_bounds:
            stop = given[0]
        elif len(given) in (2, 3):
            start, stop = given[0], given[1]
            step = given[2] if len(given) == 3 else step
        elif "stop" in named_bounds and len(given) <= 1:
            stop = named_bounds["stop"]
            start = given[0] if given else start
        else:
            raise Unreadable("a loop needs a stop, a start and a stop, or a start, a stop and a step", call)
        return named_bounds.get("start", start), stop, named_bounds.get("step", step)

    def _carry(self, stmt: ast.stmt, carried: list[ast.Name], init: ast.expr | None) -> list[Variable]:
        """Give the loop-carried names their start values before the loop."""
        values = init.elts if isinstance(init, ast.Tuple | ast.List) else [] if init is None else [init]
        if len(values) != len(carried):
            raise Unreadable(f"{len(carried)} loop-carried names, {len(values)} initial values", stmt)
        names: list[Variable] = []
        for name, node in zip(carried, values, strict=True):
            value = self.calls.hold(node)
            scalar = value.scalar if isinstance(value, Variable) else True
            memory = value.memory if isinstance(value, Variable) else None
            target = self.ctx.scope.temporary(name.id, scalar, memory)
            self.ctx.out += self.calls.moved(target, value, self.ctx.span(node))
            names.append(target)
        return names

    def _loop_body(
        self, stmts: list[ast.stmt], names: list[Variable], variable: str, stmt: ast.stmt
    ) -> tuple[tuple[ir.Stmt, ...], list[str]]:
        """The statements of a loop body, and the names that receive the loop's results."""
        inner, results, values, last = self._end(stmts)
        if len(values) != len(names):
            raise Unreadable(f"the loop carries {len(names)} values and yields {len(values)}", last or stmt)
        self.ctx.loops.append(variable)
        body = list(self.block(inner))
        saved, self.ctx.out = self.ctx.out, body
        self._yield(names, values, last)
        body, self.ctx.out = self.ctx.out, saved
        self.ctx.loops.pop()
        return tuple(body), results

    def _results(self, results: list[str], names: list[Variable], stmt: ast.stmt) -> None:
        """Bind the names that receive a loop's results: to the loop-carried variables, which nothing else uses now."""
        for name, variable in zip(results, names, strict=False):
            if self.ctx.scope.find(name) is None:
                self.ctx.scope.same(name, variable)
            else:
                self.calls.write(name, variable, self.ctx.span(stmt))

    def _yield(self, targets: list[Variable], values: list[ast.expr], last: ast.stmt | None) -> None:
        """Write the yielded values to their names, all at once."""
        span = self.ctx.span(last) if last is not None else ir.NOWHERE
        self._together(targets, [self.calls.hold(v) for v in values], span)

    def _together(self, targets: list[Variable], values: Sequence[Variable | ir.Expr], span: ir.Span) -> None:
        """Write several values at once: one that an earlier write destroys is saved."""
        held = list(values)
        for index, value in enumerate(held):
            before = {t.name for t in targets[:index]}
            if isinstance(value, Variable) and not value.scalar:
                destroyed = value.name in before
            else:
                expr = ir.Name(value.name) if isinstance(value, Variable) else value
                destroyed = any(isinstance(n, ir.Name) and n.id in before for n in ir.walk(expr))
            if destroyed:
                scalar = value.scalar if isinstance(value, Variable) else True
                saved = self.ctx.scope.temporary(f"{targets[index].name}_next", scalar)
                at = len(self.ctx.out)
                self.ctx.out[at:at] = self.calls.moved(saved, value, span)
                held[index] = saved
        for target, value in zip(targets, held, strict=True):
            self.ctx.out += self.calls.moved(target, value, span)

    def _if(self, stmt: ast.If) -> None:
        span = self.ctx.span(stmt)
        condition = self.ctx.expressions.truth(stmt.test)
        arms: list[tuple[ir.Stmt, ...]] = []
        found: list[str] = []
        for body in (stmt.body, stmt.orelse):
            inner, results, values, last = self._end(body)
            if found and results and results != found:
                raise Unreadable("the two branches yield to different names", last or stmt)
            found = found or results
            arm = list(self.block(inner))
            saved, self.ctx.out = self.ctx.out, arm
            held = [self.calls.hold(v) for v in values]
            targets = []
            for name, value in zip(results, held, strict=False):
                kind = (value.scalar, value.memory) if isinstance(value, Variable) else (True, None)
                targets.append(self.ctx.scope.assign(name, *kind))
            self._yield(targets, values if results else [], last)
            arm, self.ctx.out = self.ctx.out, saved
            arms.append(tuple(arm))
        then, other = arms
        self.ctx.out.append(ir.If(((condition, then),), other, span=replace(span, end_line=span.line)))

    def _while(self, stmt: ast.While, test: ast.expr, body: list[ast.stmt]) -> None:
        if stmt.orelse:
            raise Unreadable("a while loop with an else branch", stmt.orelse[0])
        inner, _ = self._loop_body(body, [], "", stmt)
        self._spin(stmt, test, inner)

    def _while_with_values(self, stmt: ast.For, carried: list[ast.Name], keywords: dict[str, ast.expr]) -> None:
        """`for (a, b) in pl.while_(init_values=(x, y)):` whose body starts with `pl.cond(test)`."""
        names = self._carry(stmt, carried, keywords.get("init_values"))
        last = self.ctx.module.last
        match stmt.body:
            case [ast.Expr(value=ast.Call(func=function, args=[test])), *rest] if last(function) == "cond":
                pass
            case _:
                raise Unreadable("the body of a pl.while_ loop starts with pl.cond(...)", stmt)
        self.ctx.scope.enter(zip([c.id for c in carried], names, strict=True))
        body, results = self._loop_body(rest, names, "", stmt)
        self._spin(stmt, test, body)
        self.ctx.scope.leave()
        self._results(results, names, stmt)

    def _spin(self, stmt: ast.For | ast.While, test: ast.expr, body: tuple[ir.Stmt, ...]) -> None:
        """A while loop: at most so many iterations as a parameter says, left when the condition is false."""
        span = self._header(stmt)
        limit = self.ctx.shared.parameter(
            WHILE_LIMIT, f"while loops end; they are followed for any number {WHILE_LIMIT} of iterations"
        )
        counter = self.ctx.scope.temporary("spin", True)
        leave = ir.If(
            ((ir.Unary("not", self.ctx.expressions.truth(test), span=span), (ir.Break(span=span),)),), span=span
        )
        self.ctx.out.append(
            ir.For(counter.name, ir.Int(0), ir.Name(limit, span=span), ir.Int(1), (leave, *body), span=span)
        )


def _contains(stmt: ast.stmt, kind: type[ast.AST]) -> bool:
    return any(isinstance(node, kind) for node in ast.walk(stmt))


def _ends(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return)


def _returns(stmt: ast.If) -> bool:
    return any(isinstance(node, ast.Return) for part in (stmt.body, stmt.orelse) for s in part for node in ast.walk(s))
