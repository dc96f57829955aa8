"""How does a call, or another computation of values, read in kernel IR?"""

from __future__ import annotations

import ast
import zlib

from fencepost import ir
from fencepost.frontends.pypto_ir.context import Context
from fencepost.frontends.pypto_ir.expressions import Unreadable
from fencepost.frontends.pypto_ir.operations import (
    MESSAGES,
    POP,
    SCALAR_RESULTS,
    SETUP,
    SYNCHRONISATION,
    named,
    pipe_of,
)
from fencepost.frontends.pypto_ir.program import Constant, NotConstant
from fencepost.frontends.pypto_ir.scope import Variable
from fencepost.frontends.pypto_ir.signals import receive, send_or_free, set_up, synchronise
from fencepost.frontends.pypto_ir.types import Type


class Calls:
    """Reads calls and values of one function."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        ctx.start(self._scalar_call)

    def call_statement(self, call: ast.Call, targets: list[ast.Name], given: Type | None) -> None:
        refuse_unpacked(call)
        path = self.ctx.module.path(call.func)
        op = path[-1] if path else ""
        if op in ("yield_", "cond"):
            if op == "yield_":
                raise Unreadable("pl.yield_ may only end a loop body or a branch", call)
            raise Unreadable("pl.cond may only start the body of a pl.while_ loop", call)
        if op in SETUP:
            set_up(self.ctx, op, call)
        elif op in POP:
            receive(self.ctx, op, call, targets, given)
        elif op in MESSAGES:
            send_or_free(self.ctx, op, call, self.hold(call.args[0]) if call.args else None)
        elif op in SYNCHRONISATION:
            synchronise(self.ctx, op, call)
        elif path is None and not _is_scalar_builtin(call):
            self.ctx.unsupported(call, f"a call of '{ast.unparse(call.func)[:60]}'")
            for target in targets:
                self.ctx.scope.assign(target.id, False)
        elif len(targets) == 1 and (given.integer if given is not None else self._scalar_result(call)):
            expr = self.ctx.expressions.integer(call)
            self._tile_operands(call)
            variable = self.ctx.scope.assign(targets[0].id, True)
            self.ctx.out.append(ir.Assign(variable.name, expr, span=self.ctx.span(call)))
        else:
            self._operation(op, call, targets, given)

    def _scalar_result(self, call: ast.Call) -> bool:
        """Whether a call without a type annotation gives a scalar."""
        if _is_scalar_builtin(call):
            return True
        path = self.ctx.module.path(call.func)
        if path is None or path[-1] not in SCALAR_RESULTS:
            return False
        if path[-1] in ("min", "max", "cast"):
            if len(path) > 1:
                return False
            try:
                for argument in call.args[: 1 if path[-1] == "cast" else None]:
                    self.ctx.expressions.integer(argument)
            except Unreadable:
                return False
        return True

    def _scalar_call(self, call: ast.Call) -> ir.Expr:
        """A call inside a scalar expression that is no arithmetic: something that only a run knows."""
        refuse_unpacked(call)
        span = self.ctx.span(call)
        path = self.ctx.module.path(call.func)
        if path is None:
            raise Unreadable(f"a call of '{ast.unparse(call.func)[:60]}' has no meaning for scalars", call)
        op = path[-1]
        if op == "get_subblock_idx":
            return ir.Name("sub", span=span) if self.ctx.core == "vector" else ir.Int(0, span=span)
        if op.startswith("get_"):
            self.ctx.shared.assume(f"{op}() gives the same value on every core of a block")
            return ir.Call(op, (), span=span)
        arguments: list[ir.Expr] = []
        about: list[str] = []
        for node in [*call.args, *(k.value for k in call.keywords)]:
            for item in node.elts if isinstance(node, ast.List | ast.Tuple) else [node]:
                variable = self.ctx.expressions.variable(item)
                if variable is not None and not variable.scalar:
                    about.append(variable.name)
                elif not self.ctx.expressions.is_constant(item) or isinstance(self.ctx.expressions.constant(item), int):
                    arguments.append(self.ctx.expressions.integer(item))
        name = "_".join([op, *about])
        for variable_name in about:
            if variable_name in self.ctx.shared.written or variable_name not in self.ctx.shared.inputs:
                # Not a plain input: the value may be another one each time, and on each core.
                name = f"{name}_{self.ctx.function.name}_{span.line}"
                arguments += [ir.Name(v, span=span) for v in self.ctx.loops if v]
                break
            self.ctx.shared.assume(f"every core reads the same value from {variable_name}")
        return ir.Call(name, tuple(arguments), span=span)

    def _tile_operands(self, call: ast.Call) -> None:
        """A scalar that is read from a tile: the tile is in use here."""
        span = self.ctx.span(call)
        reads: list[str] = []
        for node in ast.walk(call):
            found = self.ctx.scope.find(node.id) if isinstance(node, ast.Name) else None
            if not isinstance(found, Variable) or found.scalar or found.name in reads:
                continue
            if found.name not in self.ctx.shared.inputs:
                reads.append(found.name)
        if reads:
            self.ctx.out.append(ir.DataOp("read", (), tuple(ir.Access(r, span=span) for r in reads), "S", span=span))

    def _operation(self, op: str, call: ast.Call, targets: list[ast.Name], given: Type | None) -> None:
        """A data operation: tiles and tensors are read, integers are operands, other constants belong to its name."""
        span = self.ctx.span(call)
        reads: list[Variable] = []
        at: list[ir.Expr] = []
        constants: list[tuple[str, Constant]] = []
        operands = [("", position, node) for position, node in enumerate(call.args)]
        operands += [(k.arg or "", -1, k.value) for k in call.keywords if k.arg != "attrs"]
        for keyword, position, node in operands:
            if op == "load" and position >= 2 and self.ctx.expressions.is_constant(node):
                shape = self.ctx.expressions.constant(node)
                if not (position == 3 and constants and constants[-1][1] == shape):
                    constants.append((keyword, shape))
                continue
            self._operand(keyword, node, reads, at, constants)
        memory = given.memory if given is not None else None
        if memory is None:
            memory = next((str(v) for k, v in constants if k == "target_memory"), None)
        source = reads[0].memory if reads else None
        writes = [self.ctx.scope.assign(t.id, False, memory) for t in targets]
        self.ctx.out.append(
            ir.DataOp(
                named(op, constants),
                tuple(ir.Access(w.name, span=span) for w in writes),
                tuple(ir.Access(r.name, span=span) for r in reads),
                pipe_of(op, self.ctx.core, source, memory),
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
        variable = self.ctx.expressions.variable(node)
        if variable is not None and not variable.scalar:
            reads.append(variable)
            return
        if isinstance(node, ast.List | ast.Tuple):
            for item in node.elts:
                self._operand(keyword, item, reads, at, constants)
            return
        try:
            value = self.ctx.expressions.constant(node)
        except NotConstant:
            pass
        else:
            if isinstance(value, bool) or not isinstance(value, int):
                constants.append((keyword, value))
                return
        if isinstance(node, ast.Call) and not self._scalar_result(node) and self.ctx.module.path(node.func) is not None:
            held = self.hold(node)
            if isinstance(held, Variable) and not held.scalar:
                reads.append(held)
                return
        try:
            at.append(self.ctx.expressions.integer(node))
        except Unreadable:
            name = self.ctx.scope.unbound("operand")
            self.ctx.out.append(self.opaque(name, node, None))
            found = self.ctx.scope.find(name)
            assert isinstance(found, Variable)
            reads.append(found)

    def hold(self, node: ast.expr) -> Variable | ir.Expr:
        """An operand that is about to be copied: a tile or tensor, or a scalar expression."""
        variable = self.ctx.expressions.variable(node)
        if variable is not None and not variable.scalar:
            return variable
        if isinstance(node, ast.Call) and not self._scalar_result(node):
            target = ast.copy_location(ast.Name(self.ctx.scope.unbound("yielded"), ast.Store()), node)
            self.call_statement(node, [target], None)
            found = self.ctx.scope.find(target.id)
            assert isinstance(found, Variable)
            return found
        return self.ctx.expressions.integer(node)

    def write(self, name: str, value: Variable | ir.Expr, span: ir.Span) -> None:
        if isinstance(value, Variable):
            target = self.ctx.scope.assign(name, value.scalar, value.memory)
        else:
            target = self.ctx.scope.assign(name, True)
        self.ctx.out += self.moved(target, value, span)

    def moved(self, target: Variable, value: Variable | ir.Expr, span: ir.Span) -> list[ir.Stmt]:
        """`target := value`, nothing if they are one variable."""
        if isinstance(value, Variable) and not value.scalar:
            if value.name == target.name:
                return []
            if value.name in self.ctx.popped:
                self.ctx.popped[target.name] = self.ctx.popped[value.name]
            written, read = ir.Access(target.name, span=span), ir.Access(value.name, span=span)
            return [ir.DataOp("copy", (written,), (read,), "S", span=span)]
        expr = ir.Name(value.name, span=span) if isinstance(value, Variable) else value
        if isinstance(expr, ir.Name) and expr.id == target.name:
            return []
        return [ir.Assign(target.name, expr, span=span)]

    def opaque(self, name: str, value: ast.expr, given: Type | None) -> ir.Stmt:
        """A value that is neither an integer nor the result of an operation (floating-point arithmetic, say)."""
        reads: list[str] = []
        text = ast.unparse(value)
        for node in ast.walk(value):
            if isinstance(node, ast.Name):
                found = self.ctx.scope.find(node.id)
                if isinstance(found, Variable) and found.name not in reads:
                    reads.append(found.name)
        pattern = ast.parse(text, mode="eval").body
        for node in ast.walk(pattern):
            if isinstance(node, ast.Name):
                found = self.ctx.scope.find(node.id)
                if isinstance(found, Variable):
                    node.id = f"operand{reads.index(found.name)}"
        span = self.ctx.span(value)
        op = f"value_{zlib.crc32(ast.unparse(pattern).encode()):08x}"
        target = self.ctx.scope.assign(name, False, given.memory if given else None)
        accesses = tuple(ir.Access(r, span=span) for r in reads)
        return ir.DataOp(op, (ir.Access(target.name, span=span),), accesses, "S", span=span)


def refuse_unpacked(call: ast.Call) -> None:
    """Arguments behind `*` and `**` are not read.

    Raises:
        Unreadable: the call has such arguments.
    """
    for node in call.args:
        if isinstance(node, ast.Starred):
            raise Unreadable("arguments behind '*' cannot be read", node)
    for keyword in call.keywords:
        if keyword.arg is None:
            raise Unreadable("arguments behind '**' cannot be read", keyword.value)


def _is_scalar_builtin(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("min", "max", "abs", "int", "bool")
