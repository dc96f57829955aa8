"""How are pieces of Python syntax written, each part of them standing at some place of the user's text?"""

from __future__ import annotations

import ast
from typing import TypeVar

from fencepost.frontends.pypto_pro.context import Core

_AnyNode = TypeVar("_AnyNode", bound=ast.AST)


def at(node: _AnyNode, place: ast.AST) -> _AnyNode:
    """The node, with every part of it that has no position put at `place`."""
    for inner in ast.walk(node):
        if "lineno" in inner._attributes and not hasattr(inner, "lineno"):
            ast.copy_location(inner, place)
    return node


def name(name: str) -> ast.Name:
    """The use of a variable."""
    return ast.Name(name, ast.Load())


def assign(variable: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    """`variable = value`."""
    return at(ast.Assign([ast.Name(variable, ast.Store())], value), place)


def compare(variable: str, op: ast.cmpop, number: int) -> ast.expr:
    """`variable op number`."""
    return ast.Compare(name(variable), [op], [ast.Constant(number)])


def section(core: Core, body: list[ast.stmt]) -> ast.stmt:
    """A section for a core, opened by a name that no user can write."""
    stmt = ast.With([ast.withitem(ast.Call(name(f"<{core}>"), [], []))], body)
    return at(stmt, body[0])


def is_arithmetic(node: ast.expr) -> bool:
    """Whether an argument is made of names, numbers and arithmetic only."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.BinOp(left=left, right=right):
            return is_arithmetic(left) and is_arithmetic(right)
        case ast.UnaryOp(operand=operand):
            return is_arithmetic(operand)
    return False


class Replacing(ast.NodeTransformer):
    """Puts other statements in the place of some."""

    def __init__(self, statements: dict[int, list[ast.stmt]]) -> None:
        self.statements = statements

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        return self.statements.get(id(node), node)
