"""Which compile-time parameters does a tiling key give a kernel, and which values may they take?"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from fencepost.frontends.pypto_pro.interpreter import ConstantInterpreter
from fencepost.frontends.pypto_pro.values import Class, Decorated, OneOf, Unknown, Value

_REFUSED: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.NotEq: operator.ne,
    ast.Eq: operator.eq,
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
}


def tiling_keys(options: dict[str, Value], interpreter: ConstantInterpreter) -> dict[str, Value]:
    """The compile-time parameters that a tiling-key class and a `datatype` option define."""
    names: dict[str, Value] = {}
    class_ = options.get("tiling_key")
    if isinstance(class_, Class) and class_.opaque is None:
        for stmt in class_.node.body:
            if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name):
                value = interpreter.value(stmt.value)
                keywords = dict(value.keywords) if isinstance(value, Decorated) else {}
                allowed = keywords.get("values")
                if isinstance(allowed, tuple) and all(isinstance(v, int) for v in allowed) and allowed:
                    allowed = _allowed(class_.node, stmt.targets[0].id, allowed, interpreter)
                    name = stmt.targets[0].id
                    names[name] = allowed[0] if len(allowed) == 1 else OneOf(tuple(allowed), name)
    types = options.get("datatype")
    if isinstance(types, dict):
        for name in types.values():
            if isinstance(name, str):
                names[name] = Unknown(name, "it is chosen at launch")
    return names


def _allowed(
    class_: ast.ClassDef, field: str, values: tuple[int, ...], interpreter: ConstantInterpreter
) -> tuple[int, ...]:
    """The values of a tiling-key field that simple tests in `is_valid` let pass."""
    for stmt in class_.body:
        if not isinstance(stmt, ast.FunctionDef) or stmt.name != "is_valid":
            continue
        local = _key_names(class_, stmt)
        for test in stmt.body:
            match test:
                case ast.If(
                    test=ast.Compare(
                        left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=int() as bound)]
                    ),
                    body=[ast.Return(value=ast.Constant(value=False))],
                    orelse=[],
                ) if local.get(name) == field:
                    refused = _REFUSED.get(type(op))
                    if refused is not None:
                        values = tuple(v for v in values if not refused(v, bound)) or values
                case ast.Assign() | ast.If() | ast.Expr() | ast.Return():
                    continue
                case _:
                    break
    return values


def _key_names(class_: ast.ClassDef, function: ast.FunctionDef) -> dict[str, str]:
    """Which local name of `is_valid` stands for which field: the key is unpacked in the order of the fields."""
    fields = [
        s.targets[0].id
        for s in class_.body
        if isinstance(s, ast.Assign)
        and len(s.targets) == 1
        and isinstance(s.targets[0], ast.Name)
        and isinstance(s.value, ast.Call)
    ]
    for stmt in function.body:
        if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Tuple):
            names = [e.id for e in stmt.targets[0].elts if isinstance(e, ast.Name)]
            if len(names) == len(fields):
                return dict(zip(names, fields, strict=True))
    return {}
