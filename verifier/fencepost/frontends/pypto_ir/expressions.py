"""How does a scalar expression of the text read in kernel IR?"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fencepost import ir
from fencepost.frontends.pypto_ir.program import Constant, Module, NotConstant, evaluate
from fencepost.frontends.pypto_ir.scope import Known, Scope, Variable
from fencepost.frontends.pypto_pro.source import Source

_ARITHMETIC: dict[type[ast.operator], Literal["+", "-", "*", "//", "%"]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_OTHER_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Div: "quotient",
    ast.Pow: "power",
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
    ast.BitAnd: "bit_and",
    ast.BitOr: "bit_or",
    ast.BitXor: "bit_xor",
}
_COMPARE: dict[type[ast.cmpop], Literal["<", "<=", ">", ">=", "==", "!="]] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


class Unreadable(Exception):
    """The text cannot be read; `node` is where."""

    def __init__(self, message: str, node: ast.AST) -> None:
        super().__init__(message)
        self.message = message
        self.node = node


@dataclass(slots=True)
class Expressions:
    """Scalar expressions of one function.

    `outside` gives the name of a kernel parameter for a name that the function does not bind.  `call` reads a call that
    is no arithmetic: it may emit statements first.  `assigned` are the names that the function itself assigns.
    """

    source: Source
    module: Module
    scope: Scope
    outside: Callable[[str, ast.AST], str]
    call: Callable[[ast.Call], ir.Expr]
    assigned: frozenset[str] = frozenset()

    def constant(self, node: ast.expr) -> Constant:
        """The value of a constant expression.

        Raises:
            NotConstant: it depends on something that only a run knows.
        """
        return evaluate(node, self._visible())

    def is_constant(self, node: ast.expr) -> bool:
        """Whether `constant` gives a value."""
        try:
            self.constant(node)
        except NotConstant:
            return False
        return True

    def _visible(self) -> Module:
        return _Shadowed(self.module, self.scope, self.assigned)

    def variable(self, node: ast.expr) -> Variable | None:
        """The variable that an expression is, None if it is anything but the name of one."""
        if isinstance(node, ast.Name):
            found = self.scope.find(node.id)
            return found if isinstance(found, Variable) else None
        return None

    def integer(self, node: ast.expr) -> ir.Expr:
        """The kernel IR of an integer (or truth) expression.

        Raises:
            Unreadable: it is no scalar expression.
        """
        span = self.source.span(node)
        match node:
            case ast.Constant(value=bool(value)):
                return ir.Int(int(value), span=span)
            case ast.Constant(value=int(value)):
                return ir.Int(value, span=span)
            case ast.Name(id=name):
                return self._name(name, node, span)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if not isinstance(value, bool):
                return ir.Int(-value, span=span)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return ir.Unary("-", self.integer(operand), span=span)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.integer(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ir.Unary("not", self.truth(operand), span=span)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return ir.Call("bit_not", (self.integer(operand),), span=span)
            case ast.BinOp():
                return self._binary(node, span)
            case ast.BoolOp(op=op, values=values):
                return self._logic(node, op, values, span)
            case ast.Compare(left=left, ops=ops, comparators=comparators) if all(type(o) in _COMPARE for o in ops):
                rest = tuple((_COMPARE[type(o)], self.integer(c)) for o, c in zip(ops, comparators, strict=True))
                return ir.Compare(self.integer(left), rest, span=span)
            case ast.IfExp(test=test, body=then, orelse=other):
                return ir.Choose(self.truth(test), self.integer(then), self.integer(other), span=span)
            case ast.Call():
                return self._call(node, span)
            case ast.Subscript() | ast.Attribute():
                return self._constant(node, span)
        raise Unreadable(f"expected a scalar expression, found {ast.unparse(node)[:60]!r}", node)

    def truth(self, node: ast.expr) -> ir.Expr:
        """The kernel IR of an expression of which only the truth matters.

        Raises:
            Unreadable: it is no scalar expression.
        """
        if isinstance(node, ast.BoolOp):
            word: Literal["and", "or"] = "and" if isinstance(node.op, ast.And) else "or"
            return ir.Logic(word, tuple(self.truth(v) for v in node.values), span=self.source.span(node))
        return self.integer(node)

    def _logic(self, node: ast.BoolOp, op: ast.boolop, values: list[ast.expr], span: ir.Span) -> ir.Expr:
        """`a and b`, `a or b` as a value: that of the operand that decides."""
        if all(_is_test(v) for v in values):
            return self.truth(node)
        *before, last = [self.integer(v) for v in values]
        result = last
        for value in reversed(before):
            first, second = (value, result) if isinstance(op, ast.Or) else (result, value)
            if isinstance(value, ir.Int):
                result = first if value.value else second
            else:
                result = ir.Choose(value, first, second, span=span)
        return result

    def _name(self, name: str, node: ast.expr, span: ir.Span) -> ir.Expr:
        meaning = self.scope.find(name)
        if meaning is None and name in self.assigned:
            raise Unreadable(f"'{name}' is read before it is assigned", node)
        if meaning is None and name in self.module.constants:
            meaning = Known(self.module.constants[name])
        if isinstance(meaning, Known):
            if isinstance(meaning.value, int):
                return ir.Int(int(meaning.value), span=span)
            raise Unreadable(f"'{name}' is not an integer", node)
        if isinstance(meaning, Variable):
            if not meaning.scalar:
                raise Unreadable(f"'{name}' is not an integer", node)
            return ir.Name(meaning.name, span=span)
        return ir.Name(self.outside(name, node), span=span)

    def _binary(self, node: ast.BinOp, span: ir.Span) -> ir.Expr:
        # A sum of many terms leans to the left: walk down that side in a loop.
        chain: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            chain.append(left)
            left = left.left
        result = self.integer(left)
        for part in reversed(chain):
            here = self.source.span(part)
            right = self.integer(part.right)
            symbol = _ARITHMETIC.get(type(part.op))
            if symbol in ("+", "-", "*") and isinstance(result, ir.Int) and isinstance(right, ir.Int):
                a, b = result.value, right.value
                result = ir.Int(a + b if symbol == "+" else a - b if symbol == "-" else a * b, span=here)
            elif symbol is not None:
                result = ir.Binary(symbol, result, right, span=here)
            elif type(part.op) in _OTHER_ARITHMETIC:
                result = ir.Call(_OTHER_ARITHMETIC[type(part.op)], (result, right), span=here)
            else:
                raise Unreadable("this operator has no meaning for scalars", part)
        return result

    def _call(self, node: ast.Call, span: ir.Span) -> ir.Expr:
        path = self.module.path(node.func)
        builtin = node.func.id if isinstance(node.func, ast.Name) else None
        word = path[-1] if path else builtin
        if (path is not None and len(path) == 1) or builtin in ("min", "max", "abs", "int", "bool"):
            if word in ("min", "max") and len(node.args) >= 2:
                return ir.Call(word, tuple(self.integer(a) for a in node.args), span=span)
            if word == "const" and node.args:
                return self._constant(node, span)
            if word == "abs" and len(node.args) == 1:
                value = self.integer(node.args[0])
                return ir.Call("max", (value, ir.Unary("-", value, span=span)), span=span)
            if word in ("cast", "int", "bool") and node.args:
                return self.integer(node.args[0])
        return self.call(node)

    def _constant(self, node: ast.expr, span: ir.Span) -> ir.Expr:
        try:
            value = self.constant(node)
        except NotConstant:
            value = None
        if isinstance(value, int):
            return ir.Int(int(value), span=span)
        raise Unreadable(f"expected an integer, found {ast.unparse(node)[:60]!r}", node)


def _is_test(node: ast.expr) -> bool:
    """Whether an expression is either true or false and has no other value."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool()):
            return True
        case ast.BoolOp(values=values):
            return all(_is_test(v) for v in values)
        case _:
            return False


class _Shadowed(Module):
    """The names of a text as a function sees them: its own variables hide constants of the same name."""

    def __init__(self, module: Module, scope: Scope, assigned: frozenset[str]) -> None:
        super().__init__(module.roots, module.constants, module.dynamic)
        self._scope = scope
        self._assigned = assigned

    def lookup(self, name: str) -> Constant:
        meaning = self._scope.find(name)
        if isinstance(meaning, Known):
            return meaning.value
        if meaning is not None or name in self._assigned:
            raise NotConstant
        return super().lookup(name)
