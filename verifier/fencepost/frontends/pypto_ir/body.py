"""How does the body of one kernel function read in kernel IR?

Loop-carried values (`init_values`, `pl.yield_`) become names that are written again at the end of each iteration; the
value that the loop or branch yields is written to that name directly where nothing reads the old value any more.
"""

from __future__ import annotations

import ast
import zlib
from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.frontends.pypto_ir.coalesce import coalesce
from fencepost.frontends.pypto_ir.expressions import Expressions, Unreadable
from fencepost.frontends.pypto_ir.operations import (
    FFTS_MODES,
    FREE,
    MESSAGES,
    POP,
    PUSH,
    SCALAR_RESULTS,
    SETUP,
    SYNCHRONISATION,
    named,
    pipe_of,
)
from fencepost.frontends.pypto_ir.program import Constant, Function, Module, NotConstant
from fencepost.frontends.pypto_ir.scope import NewNames, Scope, Variable
from fencepost.frontends.pypto_ir.types import Type, read_type
from fencepost.frontends.pypto_pro.source import Source

WHILE_LIMIT = "while_limit"


@dataclass(slots=True)
class Shared:
    """What the functions of one kernel have in common."""

    names: NewNames
    parameters: dict[str, str] = field(default_factory=dict)
    assumptions: list[str] = field(default_factory=list)
    inputs: set[str] = field(default_factory=set)
    """Tensors of the group's parameter list, by their IR name."""
    written: set[str] = field(default_factory=set)
    """Those of them that some function of the kernel may write."""

    def parameter(self, wanted: str, why: str) -> str:
        """The kernel parameter that stands for something the text does not say."""
        if wanted not in self.parameters:
            self.parameters[wanted] = self.names.declare(wanted)
            self.assume(why)
        return self.parameters[wanted]

    def assume(self, sentence: str) -> None:
        if sentence not in self.assumptions:
            self.assumptions.append(sentence)


@dataclass(frozen=True, slots=True)
class Message:
    """One push, pop or free as written: which ring it belongs to and how many sub-cores it names."""

    sender: ir.Core
    id: int
    split: int
    node: ir.Push | ir.Pop | ir.Free


@dataclass(frozen=True, slots=True)
class Pipe:
    """One `initialize_pipe` call: directions as senders, id, and slots (None: not given)."""

    senders: tuple[ir.Core, ...]
    id: int
    slots: int | None
    span: ir.Span


class BodyReader:
    """Reads one function.  `run` may be called once."""

    def __init__(
        self, source: Source, module: Module, function: Function, core: ir.Core, scope: Scope, shared: Shared
    ) -> None:
        self.source = source
        self.module = module
        self.function = function
        self.core = core
        self.scope = scope
        self.shared = shared
        self.messages: list[Message] = []
        self.pipes: list[Pipe] = []
        self.expressions = Expressions(source, module, scope, self._outside, self._scalar_call)
        self._out: list[ir.Stmt] = []
        self._loops: list[str] = []

    def run(self) -> tuple[ir.Stmt, ...]:
        """Return the statements of the function.

        Raises:
            Unreadable: the text cannot be read at some place.
        """
        return coalesce(self._block(self.function.node.body, top=True))

    # -------------------------------------------------------------------------------------------- statements

    def _block(self, stmts: list[ast.stmt], top: bool = False) -> tuple[ir.Stmt, ...]:
        saved, self._out = self._out, []
        for index, stmt in enumerate(stmts):
            if isinstance(stmt, ast.If) and _returns(stmt) and not self._loops:
                self._if_with_return(stmt, stmts[index + 1 :])
                break
            if isinstance(stmt, ast.Return):
                if not top and index + 1 < len(stmts):
                    raise Unreadable("statements after a return are never executed", stmts[index + 1])
                if self._loops:
                    self._unsupported(stmt, "a return inside a loop")
                break
            self._statement(stmt)
        out, self._out = self._out, saved
        return tuple(out)

    def _if_with_return(self, stmt: ast.If, rest: list[ast.stmt]) -> None:
        """`if c: ...; return` before other statements: they belong to the other branch."""
        then, other = stmt.body, stmt.orelse
        if _ends(then):
            other = [*other, *rest] if not _ends(other) else other
        elif _ends(other):
            then = [*then, *rest]
        else:
            self._unsupported(stmt, "a return nested inside a branch")
            return
        condition = self.expressions.integer(stmt.test)
        self._out.append(
            ir.If(((condition, self._block(then, True)),), self._block(other, True), span=self.source.span(stmt))
        )

    def _statement(self, stmt: ast.stmt) -> None:
        match stmt:
            case ast.Pass():
                pass
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=ast.Call() as call):
                self._call_statement(call, [], None)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value, annotation=annotation):
                self._assign([target], value, read_type(annotation, self.module))
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
                self._out.append(ir.Break(span=self.source.span(stmt)))
            case ast.Continue():
                self._out.append(ir.Continue(span=self.source.span(stmt)))
            case ast.With(body=body):
                self._out += self._block(body)
            case _:
                self._unsupported(stmt, f"a statement of kind {type(stmt).__name__}")

    def _names(self, targets: list[ast.expr]) -> list[ast.Name]:
        for target in targets:
            if not isinstance(target, ast.Name):
                raise Unreadable("only plain names can be assigned", target)
        return [t for t in targets if isinstance(t, ast.Name)]

    def _unsupported(self, node: ast.AST, what: str) -> None:
        self._out.append(ir.Unsupported(f"{what} in '{self.function.name}'", span=self.source.span(node)))

    # -------------------------------------------------------------------------------------------- assignments

    def _assign(self, targets: list[ast.Name], value: ast.expr, given: Type | None) -> None:
        span = self.source.span(value)
        if self._yielded(value) is not None:
            return  # read where its block ends
        if isinstance(value, ast.Call):
            self._call_statement(value, targets, given)
            return
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets) > 1:
            held = [self._hold(v) for v in value.elts]
            for target, item in zip(targets, held, strict=True):
                self._write(target.id, item, span)
            return
        if len(targets) != 1:
            raise Unreadable("several names are assigned from one value that is no call", value)
        name = targets[0].id
        variable = self.expressions.variable(value)
        if variable is not None and not variable.scalar:
            self._write(name, variable, span)
        elif given is not None and not given.integer:
            self._out.append(self._opaque(name, value, given))
        else:
            try:
                expr = self.expressions.integer(value)
            except Unreadable:
                if given is not None:
                    raise
                self._out.append(self._opaque(name, value, None))
                return
            self._out.append(ir.Assign(self.scope.assign(name, True).name, expr, span=span))

    def _hold(self, node: ast.expr) -> Variable | ir.Expr:
        """An operand that is about to be copied: a tile or tensor, or a scalar expression."""
        variable = self.expressions.variable(node)
        if variable is not None and not variable.scalar:
            return variable
        if isinstance(node, ast.Call) and not self._scalar_result(node):
            target = ast.copy_location(ast.Name(self.scope.unbound("yielded"), ast.Store()), node)
            self._call_statement(node, [target], None)
            found = self.scope.find(target.id)
            assert isinstance(found, Variable)
            return found
        return self.expressions.integer(node)

    def _write(self, name: str, value: Variable | ir.Expr, span: ir.Span) -> None:
        if isinstance(value, Variable):
            target = self.scope.assign(name, value.scalar, value.memory)
        else:
            target = self.scope.assign(name, True)
        self._out += self._moved(target, value, span)

    def _moved(self, target: Variable, value: Variable | ir.Expr, span: ir.Span) -> list[ir.Stmt]:
        """`target := value`, nothing if they are one variable."""
        if isinstance(value, Variable) and not value.scalar:
            if value.name == target.name:
                return []
            written, read = ir.Access(target.name, span=span), ir.Access(value.name, span=span)
            return [ir.DataOp("copy", (written,), (read,), "S", span=span)]
        expr = ir.Name(value.name, span=span) if isinstance(value, Variable) else value
        if isinstance(expr, ir.Name) and expr.id == target.name:
            return []
        return [ir.Assign(target.name, expr, span=span)]

    def _opaque(self, name: str, value: ast.expr, given: Type | None) -> ir.Stmt:
        """A value that is neither an integer nor the result of an operation (floating-point arithmetic, say)."""
        reads: list[str] = []
        text = ast.unparse(value)
        for node in ast.walk(value):
            if isinstance(node, ast.Name):
                found = self.scope.find(node.id)
                if isinstance(found, Variable) and found.name not in reads:
                    reads.append(found.name)
        pattern = ast.parse(text, mode="eval").body
        for node in ast.walk(pattern):
            if isinstance(node, ast.Name):
                found = self.scope.find(node.id)
                if isinstance(found, Variable):
                    node.id = f"operand{reads.index(found.name)}"
        span = self.source.span(value)
        op = f"value_{zlib.crc32(ast.unparse(pattern).encode()):08x}"
        target = self.scope.assign(name, False, given.memory if given else None)
        accesses = tuple(ir.Access(r, span=span) for r in reads)
        return ir.DataOp(op, (ir.Access(target.name, span=span),), accesses, "S", span=span)

    # -------------------------------------------------------------------------------------------- loops and branches

    def _yielded(self, value: ast.expr | None) -> list[ast.expr] | None:
        """The values of a `yield_` call, None for any other expression."""
        if isinstance(value, ast.Call) and self.module.last(value.func) == "yield_":
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
        call = stmt.iter
        path = self.module.path(call.func)
        word = path[-1] if path else call.func.id if isinstance(call.func, ast.Name) else ""
        keywords = {k.arg: k.value for k in call.keywords if k.arg}
        targets = stmt.target.elts if isinstance(stmt.target, ast.Tuple) else [stmt.target]
        if word == "while_":
            carried = self._names(list(targets))
            self._while_with_values(stmt, carried, keywords)
            return
        if word not in ("range", "pipeline", "parallel", "unroll", "spmd"):
            self._unsupported(stmt, f"a loop over '{ast.unparse(call.func)}'")
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
            stage = self.expressions.integer(given)
        loop_variable = self.scope.temporary(variable.id, True)
        names = self._carry(stmt, carried, keywords.get("init_values"))
        self.scope.enter([(variable.id, loop_variable), *zip([c.id for c in carried], names, strict=True)])
        body, results = self._loop_body(stmt.body, names, loop_variable.name, stmt)
        self.scope.leave()
        self._out.append(
            ir.For(loop_variable.name, start, stop, step, body, stage, span=self._header(stmt))
        )
        self._results(results, names, stmt)

    def _header(self, stmt: ast.For | ast.While) -> ir.Span:
        whole = self.source.span(stmt)
        head = self.source.span(stmt.iter if isinstance(stmt, ast.For) else stmt.test)
        return replace(whole, end_line=head.end_line, end_column=head.end_column)

    def _bounds(self, call: ast.Call, keywords: dict[str, ast.expr]) -> tuple[ir.Expr, ir.Expr, ir.Expr]:
        span = self.source.span(call)
        given = [self.expressions.integer(a) for a in call.args]
        named_bounds = {k: self.expressions.integer(keywords[k]) for k in ("start", "stop", "step") if k in keywords}
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
            value = self._hold(node)
            scalar = value.scalar if isinstance(value, Variable) else True
            memory = value.memory if isinstance(value, Variable) else None
            target = self.scope.temporary(name.id, scalar, memory)
            self._out += self._moved(target, value, self.source.span(node))
            names.append(target)
        return names

    def _loop_body(
        self, stmts: list[ast.stmt], names: list[Variable], variable: str, stmt: ast.stmt
    ) -> tuple[tuple[ir.Stmt, ...], list[str]]:
        """The statements of a loop body, and the names that receive the loop's results."""
        inner, results, values, last = self._end(stmts)
        if len(values) != len(names):
            raise Unreadable(f"the loop carries {len(names)} values and yields {len(values)}", last or stmt)
        self._loops.append(variable)
        body = list(self._block(inner))
        saved, self._out = self._out, body
        self._yield(names, values, last)
        body, self._out = self._out, saved
        self._loops.pop()
        return tuple(body), results

    def _results(self, results: list[str], names: list[Variable], stmt: ast.stmt) -> None:
        """Bind the names that receive a loop's results: to the loop-carried variables, which nothing else uses now."""
        for name, variable in zip(results, names, strict=False):
            if self.scope.find(name) is None:
                self.scope.same(name, variable)
            else:
                self._write(name, variable, self.source.span(stmt))

    def _yield(self, targets: list[Variable], values: list[ast.expr], last: ast.stmt | None) -> None:
        """Write the yielded values to their names, all at once: a value that an earlier write destroys is saved."""
        span = self.source.span(last) if last is not None else ir.NOWHERE
        held = [self._hold(v) for v in values]
        for index, value in enumerate(held):
            before = {t.name for t in targets[:index]}
            if isinstance(value, Variable) and not value.scalar:
                destroyed = value.name in before
            else:
                expr = ir.Name(value.name) if isinstance(value, Variable) else value
                destroyed = any(isinstance(n, ir.Name) and n.id in before for n in ir.walk(expr))
            if destroyed:
                scalar = value.scalar if isinstance(value, Variable) else True
                saved = self.scope.temporary(f"{targets[index].name}_next", scalar)
                at = len(self._out)
                self._out[at:at] = self._moved(saved, value, span)
                held[index] = saved
        for target, value in zip(targets, held, strict=True):
            self._out += self._moved(target, value, span)

    def _if(self, stmt: ast.If) -> None:
        span = self.source.span(stmt)
        condition = self.expressions.integer(stmt.test)
        arms: list[tuple[ir.Stmt, ...]] = []
        found: list[str] = []
        for body in (stmt.body, stmt.orelse):
            inner, results, values, last = self._end(body)
            if found and results and results != found:
                raise Unreadable("the two branches yield to different names", last or stmt)
            found = found or results
            arm = list(self._block(inner))
            saved, self._out = self._out, arm
            held = [self._hold(v) for v in values]
            targets = []
            for name, value in zip(results, held, strict=False):
                scalar = value.scalar if isinstance(value, Variable) else True
                targets.append(self.scope.assign(name, scalar, value.memory if isinstance(value, Variable) else None))
            self._yield(targets, values if results else [], last)
            arm, self._out = self._out, saved
            arms.append(tuple(arm))
        then, other = arms
        self._out.append(ir.If(((condition, then),), other, span=replace(span, end_line=span.line)))

    def _while(self, stmt: ast.While, test: ast.expr, body: list[ast.stmt]) -> None:
        if stmt.orelse:
            raise Unreadable("a while loop with an else branch", stmt.orelse[0])
        inner, _ = self._loop_body(body, [], "", stmt)
        self._spin(stmt, test, inner)

    def _while_with_values(self, stmt: ast.For, carried: list[ast.Name], keywords: dict[str, ast.expr]) -> None:
        """`for (a, b) in pl.while_(init_values=(x, y)):` whose body starts with `pl.cond(test)`."""
        names = self._carry(stmt, carried, keywords.get("init_values"))
        match stmt.body:
            case [ast.Expr(value=ast.Call(func=function, args=[test])), *rest] if self.module.last(function) == "cond":
                pass
            case _:
                raise Unreadable("the body of a pl.while_ loop starts with pl.cond(...)", stmt)
        self.scope.enter(zip([c.id for c in carried], names, strict=True))
        body, results = self._loop_body(rest, names, "", stmt)
        self._spin(stmt, test, body)
        self.scope.leave()
        self._results(results, names, stmt)

    def _spin(self, stmt: ast.For | ast.While, test: ast.expr, body: tuple[ir.Stmt, ...]) -> None:
        """A while loop: at most so many iterations as a parameter says, left when the condition is false."""
        span = self._header(stmt)
        limit = self.shared.parameter(
            WHILE_LIMIT, f"while loops end; they are followed for any number {WHILE_LIMIT} of iterations"
        )
        counter = self.scope.temporary("spin", True)
        leave = ir.If(
            ((ir.Unary("not", self.expressions.integer(test), span=span), (ir.Break(span=span),)),), span=span
        )
        self._out.append(
            ir.For(counter.name, ir.Int(0), ir.Name(limit, span=span), ir.Int(1), (leave, *body), span=span)
        )

    # -------------------------------------------------------------------------------------------- calls

    def _call_statement(self, call: ast.Call, targets: list[ast.Name], given: Type | None) -> None:
        path = self.module.path(call.func)
        op = path[-1] if path else ""
        if op in ("yield_", "cond"):
            if op == "yield_":
                raise Unreadable("pl.yield_ may only end a loop body or a branch", call)
            raise Unreadable("pl.cond may only start the body of a pl.while_ loop", call)
        if op in SETUP:
            self._setup(op, call)
        elif op in MESSAGES:
            self._message(op, call, targets, given)
        elif op in SYNCHRONISATION:
            self._synchronise(op, call)
        elif path is None and not _is_scalar_builtin(call):
            self._unsupported(call, f"a call of '{ast.unparse(call.func)[:60]}'")
            for target in targets:
                self.scope.assign(target.id, False)
        elif len(targets) == 1 and (given.integer if given is not None else self._scalar_result(call)):
            expr = self.expressions.integer(call)
            self._tile_operands(call)
            variable = self.scope.assign(targets[0].id, True)
            self._out.append(ir.Assign(variable.name, expr, span=self.source.span(call)))
        else:
            self._operation(op, call, targets, given)

    def _scalar_result(self, call: ast.Call) -> bool:
        """Whether a call without a type annotation gives a scalar."""
        if _is_scalar_builtin(call):
            return True
        path = self.module.path(call.func)
        if path is None or path[-1] not in SCALAR_RESULTS:
            return False
        if path[-1] in ("min", "max", "cast"):
            if len(path) > 1:
                return False
            try:
                for argument in call.args[: 1 if path[-1] == "cast" else None]:
                    self.expressions.integer(argument)
            except Unreadable:
                return False
        return True

    def _scalar_call(self, call: ast.Call) -> ir.Expr:
        """A call inside a scalar expression that is no arithmetic: something that only a run knows."""
        span = self.source.span(call)
        path = self.module.path(call.func)
        if path is None:
            raise Unreadable(f"a call of '{ast.unparse(call.func)[:60]}' has no meaning for scalars", call)
        op = path[-1]
        if op == "get_subblock_idx":
            return ir.Name("sub", span=span) if self.core == "vector" else ir.Int(0, span=span)
        if op.startswith("get_"):
            self.shared.assume(f"{op}() gives the same value on every core of a block")
            return ir.Call(op, (), span=span)
        arguments: list[ir.Expr] = []
        about: list[str] = []
        for node in [*call.args, *(k.value for k in call.keywords)]:
            for item in node.elts if isinstance(node, ast.List | ast.Tuple) else [node]:
                variable = self.expressions.variable(item)
                if variable is not None and not variable.scalar:
                    about.append(variable.name)
                elif not self.expressions.is_constant(item) or isinstance(self.expressions.constant(item), int):
                    arguments.append(self.expressions.integer(item))
        name = "_".join([op, *about])
        for variable_name in about:
            if variable_name in self.shared.written or variable_name not in self.shared.inputs:
                # Not a plain input: the value may be another one each time, and on each core.
                name = f"{name}_{self.function.name}_{span.line}"
                arguments += [ir.Name(v, span=span) for v in self._loops if v]
                break
            self.shared.assume(f"every core reads the same value from {variable_name}")
        return ir.Call(name, tuple(arguments), span=span)

    def _tile_operands(self, call: ast.Call) -> None:
        """A scalar that is read from a tile: the tile is in use here."""
        span = self.source.span(call)
        reads: list[str] = []
        for node in ast.walk(call):
            if isinstance(node, ast.Name):
                found = self.scope.find(node.id)
                if isinstance(found, Variable) and not found.scalar and found.name not in (*reads, *self.shared.inputs):
                    reads.append(found.name)
        if reads:
            self._out.append(ir.DataOp("read", (), tuple(ir.Access(r, span=span) for r in reads), "S", span=span))

    def _operation(self, op: str, call: ast.Call, targets: list[ast.Name], given: Type | None) -> None:
        """A data operation: tiles and tensors are read, integers are operands, other constants belong to its name."""
        span = self.source.span(call)
        reads: list[Variable] = []
        at: list[ir.Expr] = []
        constants: list[tuple[str, Constant]] = []
        operands = [("", position, node) for position, node in enumerate(call.args)]
        operands += [(k.arg or "", -1, k.value) for k in call.keywords if k.arg != "attrs"]
        for keyword, position, node in operands:
            if op == "load" and position >= 2 and self.expressions.is_constant(node):
                shape = self.expressions.constant(node)
                if not (position == 3 and constants and constants[-1][1] == shape):
                    constants.append((keyword, shape))
                continue
            self._operand(keyword, node, reads, at, constants)
        memory = given.memory if given is not None else None
        if memory is None:
            memory = next((str(v) for k, v in constants if k == "target_memory"), None)
        source = reads[0].memory if reads else None
        writes = [self.scope.assign(t.id, False, memory) for t in targets]
        self._out.append(
            ir.DataOp(
                named(op, constants),
                tuple(ir.Access(w.name, span=span) for w in writes),
                tuple(ir.Access(r.name, span=span) for r in reads),
                pipe_of(op, self.core, source, memory),
                at=tuple(at),
                span=span,
            )
        )

    def _operand(
        self,
        keyword: str,
        node: ast.expr,
        reads: list[Variable],
        at: list[ir.Expr],
        constants: list[tuple[str, Constant]],
    ) -> None:
        variable = self.expressions.variable(node)
        if variable is not None and not variable.scalar:
            reads.append(variable)
            return
        if isinstance(node, ast.List | ast.Tuple):
            for item in node.elts:
                self._operand(keyword, item, reads, at, constants)
            return
        try:
            value = self.expressions.constant(node)
        except NotConstant:
            pass
        else:
            if isinstance(value, bool) or not isinstance(value, int):
                constants.append((keyword, value))
                return
        if isinstance(node, ast.Call) and not self._scalar_result(node) and self.module.path(node.func) is not None:
            held = self._hold(node)
            if isinstance(held, Variable) and not held.scalar:
                reads.append(held)
                return
        try:
            at.append(self.expressions.integer(node))
        except Unreadable:
            name = self.scope.unbound("operand")
            self._out.append(self._opaque(name, node, None))
            found = self.scope.find(name)
            assert isinstance(found, Variable)
            reads.append(found)

    # -------------------------------------------------------------------------------------------- messages, signals

    def _integer_keyword(self, call: ast.Call, name: str, default: int | None) -> int | None:
        for keyword in call.keywords:
            if keyword.arg == name:
                try:
                    value = self.expressions.constant(keyword.value)
                except NotConstant:
                    value = ""
                if value is None:
                    return default
                if isinstance(value, bool) or not isinstance(value, int):
                    raise Unreadable(f"'{name}' must be a constant integer", keyword.value)
                return value
        return default

    def _setup(self, op: str, call: ast.Call) -> None:
        if not op.endswith("_initialize_pipe"):
            return
        mask = self._integer_keyword(call, "dir_mask", 3)
        identity = self._integer_keyword(call, "id", 0)
        slots = self._integer_keyword(call, "slot_num", None)
        assert mask is not None
        assert identity is not None
        senders: list[ir.Core] = []
        if mask & 1:
            senders.append("cube")
        if mask & 2:
            senders.append("vector")
        self.pipes.append(Pipe(tuple(senders), identity, slots, self.source.span(call)))

    def _message(self, op: str, call: ast.Call, targets: list[ast.Name], given: Type | None) -> None:
        span = self.source.span(call)
        other = MESSAGES[op]
        if other == self.core:
            raise Unreadable(f"'{op}' in a function of the {self.core} core", call)
        identity = self._integer_keyword(call, "id", 0)
        split = self._integer_keyword(call, "split", 0)
        assert identity is not None
        assert split is not None
        number = ir.Int(identity, span=span)
        node: ir.Push | ir.Pop | ir.Free
        if op in POP:
            if len(targets) > 1:
                raise Unreadable("a pop gives one value", call)
            memory = given.memory if given is not None else "Vec" if self.core == "vector" else "Mat"
            variable = (
                self.scope.assign(targets[0].id, False, memory)
                if targets
                else self.scope.temporary("popped", False, memory)
            )
            node = ir.Pop(variable.name, other, number, span=span)
        else:
            if not call.args:
                raise Unreadable(f"'{op}' needs a tile", call)
            value = self._hold(call.args[0])
            if not isinstance(value, Variable) or value.scalar:
                raise Unreadable(f"'{op}' needs a tile", call.args[0])
            kind = ir.Push if op in PUSH else ir.Free
            node = kind(value.name, other, number, span=span)
        sender: ir.Core = self.core if op in PUSH else other
        if op not in FREE or any(k.arg == "split" for k in call.keywords):
            self.messages.append(Message(sender, identity, split, node))
        else:
            self.messages.append(Message(sender, identity, -1, node))
        self._out.append(node)

    def _constant(self, node: ast.expr) -> Constant:
        try:
            return self.expressions.constant(node)
        except NotConstant:
            raise Unreadable("expected a constant", node) from None

    def _pipe_keyword(self, call: ast.Call, name: str) -> ir.Pipe:
        for keyword in call.keywords:
            if keyword.arg == name:
                word = self.module.last(keyword.value)
                if word in ir.PIPES:
                    return next(p for p in ir.PIPES if p == word)
                raise Unreadable(f"expected a pipe for '{name}': one of {', '.join(ir.PIPES)}", keyword.value)
        raise Unreadable(f"'{name}=' is missing", call)

    def _synchronise(self, op: str, call: ast.Call) -> None:
        span = self.source.span(call)
        keywords = {k.arg: k.value for k in call.keywords if k.arg}
        core_type = keywords.get("core_type")
        if op in ("sync_set", "sync_wait"):
            given = call.args[0] if call.args else keywords.get("event_id")
            if given is None:
                raise Unreadable("an event id is missing", call)
            event = self.expressions.integer(given)
            pipe = self._pipe_keyword(call, "pipe")
            mine = "aic" if self.core == "cube" else "aiv"
            if core_type is not None and self._constant(core_type) not in (mine, None):
                self._unsupported(call, f"'{op}' for the other core kind")
                return
            if op == "sync_wait":
                self._out.append(ir.WaitCross(event, pipe, span=span))
                return
            mode = self._integer_keyword(call, "ffts_mode", 2)
            if mode not in FFTS_MODES:
                raise Unreadable("ffts_mode is 0, 1 or 2", call)
            self._out.append(ir.SetCross(event, pipe, FFTS_MODES[mode], span=span))
        elif op in ("sync_src", "sync_dst"):
            if "event_id" not in keywords:
                raise Unreadable("'event_id=' is missing", call)
            event = self.expressions.integer(keywords["event_id"])
            source, target = self._pipe_keyword(call, "set_pipe"), self._pipe_keyword(call, "wait_pipe")
            self._out.append((ir.SyncSrc if op == "sync_src" else ir.SyncDst)(event, source, target, span=span))
        elif op == "syncall":
            kind = self._constant(core_type) if core_type is not None else "mix"
            if kind != "mix":
                self._unsupported(call, "a barrier of one core kind (syncall)")
                return
            self._out.append(ir.SyncAll(span=span))
        else:
            pipes: dict[str, ir.Pipe] = {"bar_v": "V", "bar_m": "M"}
            self._out.append(ir.Barrier(pipes.get(op, "ALL"), span=span))

    def _outside(self, name: str, node: ast.AST) -> str:
        """A name that neither the function nor a constant of the text gives a meaning."""
        why = f"{name} is not known from the text: any value"
        if name in self.module.dynamic:
            why = f"{name} is a dynamic size: any value"
        return self.shared.parameter(name, why)


def _is_scalar_builtin(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("min", "max", "abs", "int", "bool")


def _ends(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return)


def _returns(stmt: ast.If) -> bool:
    return any(isinstance(node, ast.Return) for part in (stmt.body, stmt.orelse) for s in part for node in ast.walk(s))
