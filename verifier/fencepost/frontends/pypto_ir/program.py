"""Which kernel functions does a Python text declare, of which kind, and what do their names mean?

Only syntax is looked at: nothing is imported and no code of the text runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Constant: TypeAlias = "int | float | str | bool | tuple[Constant, ...] | None"

KINDS = ("AIC", "AIV", "Group", "InCore")


@dataclass(frozen=True, slots=True)
class Function:
    """One decorated function: `kind` is the word after `FunctionType.`; "Opaque" when the decorator has none."""

    name: str
    kind: str
    node: ast.FunctionDef
    attributes: dict[str, Constant]

    @property
    def parameters(self) -> list[ast.arg]:
        """The parameters without `self`."""
        given = [*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs]
        return given[1:] if given and given[0].arg == "self" and given[0].annotation is None else given


class NotConstant(Exception):
    """The expression is not a constant that the syntax alone gives."""


@dataclass(slots=True)
class Module:
    """The names of a text that matter: the language module, its members imported by name, and integer constants."""

    roots: dict[str, tuple[str, ...]] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    dynamic: set[str] = field(default_factory=set)

    def path(self, node: ast.expr) -> tuple[str, ...] | None:
        """The path of a dotted name inside the kernel language (`("tile", "load")`), None for any other expression."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        full = (node.id, *reversed(parts))
        for length in range(len(full), 0, -1):
            known = self.roots.get(".".join(full[:length]))
            if known is not None:
                return (*known, *full[length:])
        return None

    def last(self, node: ast.expr) -> str:
        """The last word of a dotted name inside the kernel language, "" for any other expression."""
        return (self.path(node) or ("",))[-1]

    def lookup(self, name: str) -> Constant:
        """The constant that `name` stands for.

        Raises:
            NotConstant: it stands for none.
        """
        if name not in self.constants:
            raise NotConstant
        return self.constants[name]

    def inner(self) -> Module:
        """A copy for a nested scope."""
        return Module(dict(self.roots), dict(self.constants), set(self.dynamic))


@dataclass(frozen=True, slots=True)
class Program:
    """The kernel functions of one class (or of one scope without a class), in text order."""

    name: str
    functions: tuple[Function, ...]
    module: Module


LANGUAGE = ("pypto", "language")


def programs(tree: ast.Module) -> Iterator[Program]:
    """Yield every program of the text, wherever it is nested, in text order."""
    yield from _scope(tree.body, Module(), "")


def _scope(body: list[ast.stmt], module: Module, name: str) -> Iterator[Program]:
    loose: list[Function] = []
    inner: list[Program] = []
    for stmt in body:
        if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            module.constants.pop(stmt.name, None)
        match stmt:
            case ast.Import() | ast.ImportFrom():
                _imports(stmt, module)
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                _assign(target, value, module)
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                _assign(target, value, module)
            case ast.ClassDef(name=class_name, body=members):
                mine = module.inner()
                found = []
                for member in members:
                    match member:
                        case ast.Assign(targets=[ast.Name(id=target)], value=value):
                            _assign(target, value, mine)
                        case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                            _assign(target, value, mine)
                        case ast.FunctionDef() | ast.ClassDef():
                            pass
                        case _:
                            _forget(member, mine)
                    function = _function(member, mine) if isinstance(member, ast.FunctionDef) else None
                    if function is not None:
                        found.append(function)
                    elif isinstance(member, ast.FunctionDef):
                        inner.extend(_scope(member.body, mine.inner(), member.name))
                    elif isinstance(member, ast.ClassDef):
                        inner.extend(_scope([member], mine.inner(), class_name))
                if found:
                    inner.append(Program(class_name, tuple(found), mine))
            case ast.FunctionDef():
                function = _function(stmt, module)
                if function is not None:
                    loose.append(function)
                else:
                    for node in ast.walk(stmt):
                        for bound in node.names if isinstance(node, ast.Global | ast.Nonlocal) else ():
                            module.constants.pop(bound, None)
                    inner.extend(_scope(stmt.body, module.inner(), stmt.name))
            case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try():
                for node in ast.walk(stmt):
                    if isinstance(node, ast.Import | ast.ImportFrom):
                        _imports(node, module)
                for part in (getattr(stmt, "body", []), getattr(stmt, "orelse", []), getattr(stmt, "finalbody", [])):
                    inner.extend(_scope(part, module.inner(), name))
                _forget(stmt, module)
            case _:
                _forget(stmt, module)
    if loose:
        yield Program(name, tuple(loose), module)
    yield from inner


def _forget(stmt: ast.stmt, module: Module) -> None:
    """What a statement that may or may not run assigns, or changes in place, is no constant afterwards."""
    for node in ast.walk(stmt):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                module.constants.pop(name, None)
            case ast.Subscript(value=base, ctx=ast.Store() | ast.Del()) | ast.Call(func=ast.Attribute(value=base)):
                _changed(base, module)
            case _:
                pass
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id == "print"):
            for argument in (*node.args, *(k.value for k in node.keywords)):
                _changed(argument, module)


def _changed(node: ast.expr, module: Module) -> None:
    """A list may have been changed in place: no name of it, or of something that holds it, is a constant now."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
        node = node.value
    value = module.constants.get(node.id) if isinstance(node, ast.Name) else None
    if isinstance(value, tuple):
        for name in [n for n, other in module.constants.items() if _holds(other, value)]:
            del module.constants[name]


def _holds(whole: Constant, part: Constant) -> bool:
    stack = [whole]
    while stack:
        one = stack.pop()
        if one is part:
            return True
        stack += one if isinstance(one, tuple) else ()
    return False


def _imports(stmt: ast.Import | ast.ImportFrom, module: Module) -> None:
    for alias in stmt.names:
        module.constants.pop(alias.asname or alias.name.partition(".")[0], None)
    language = ".".join(LANGUAGE)
    if isinstance(stmt, ast.Import):
        for alias in stmt.names:
            if alias.name == language:
                module.roots[alias.asname or language] = ()
            elif alias.name == LANGUAGE[0]:
                module.roots[f"{alias.asname or alias.name}.{LANGUAGE[1]}"] = ()
    elif stmt.module == LANGUAGE[0]:
        for alias in stmt.names:
            if alias.name == LANGUAGE[1]:
                module.roots[alias.asname or alias.name] = ()
    elif stmt.module == language:
        for alias in stmt.names:
            module.roots[alias.asname or alias.name] = (alias.name,)


def _assign(name: str, value: ast.expr, module: Module) -> None:
    if isinstance(value, ast.Call) and module.last(value.func) == "dynamic":
        module.dynamic.add(name)
        return
    try:
        module.constants[name] = evaluate(value, module)
    except NotConstant:
        module.constants.pop(name, None)


def _function(node: ast.FunctionDef, module: Module) -> Function | None:
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        path = module.path(call.func if call else decorator)
        if path is None or path[-1] != "function":
            continue
        kind = level = ""
        attributes: dict[str, Constant] = {}
        for keyword in call.keywords if call else ():
            word = module.last(keyword.value)
            if keyword.arg == "type":
                kind = word
            elif keyword.arg == "level":
                level = word
            elif keyword.arg == "attrs":
                attributes.update(attribute_dict(keyword.value, module))
        if not kind and level in ("AIC", "AIV"):
            kind = level
        for stmt in node.body:
            match stmt:
                case ast.Expr(value=ast.Call(func=called, args=[given])) if module.last(called) == "func_attr":
                    attributes.update(attribute_dict(given, module))
                case _:
                    pass
        return Function(node.name, kind or "Opaque", node, attributes)
    return None


def attribute_dict(node: ast.expr, module: Module) -> dict[str, Constant]:
    """The entries of a dictionary display that are constants; a member of the language counts as its last word."""
    found: dict[str, Constant] = {}
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                try:
                    found[key.value] = evaluate(value, module)
                except NotConstant:
                    found[key.value] = None
    return found


def evaluate(node: ast.expr, module: Module) -> Constant:
    """The value of a constant expression: literals, named constants, tuples, lists, and arithmetic on them.

    A member of the kernel language (`pl.SplitMode.UP_DOWN`) counts as its last word.

    Raises:
        NotConstant: it is no such expression.
    """
    match node:
        case ast.Constant(value=int() | float() | str() | bool() | None as value):
            return value
        case ast.Name(id=name):
            return module.lookup(name)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(evaluate(item, module) for item in items)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = evaluate(operand, module)
            if isinstance(inner, int | float):
                return -inner
        case ast.BinOp(left=left, op=op, right=right):
            a, b = evaluate(left, module), evaluate(right, module)
            if isinstance(a, int | float) and isinstance(b, int | float):
                return _arithmetic(op, a, b)
        case ast.Subscript(value=base, slice=index):
            whole, at = evaluate(base, module), evaluate(index, module)
            if isinstance(whole, tuple) and isinstance(at, int) and -len(whole) <= at < len(whole):
                return whole[at]
        case ast.Call(func=function, args=[value, *_]) if module.last(function) == "const":
            return evaluate(value, module)
        case ast.Attribute():
            path = module.path(node)
            if path is not None and path:
                return path[-1]
        case _:
            pass
    raise NotConstant


def _arithmetic(op: ast.operator, a: int | float, b: int | float) -> Constant:
    match op:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.FloorDiv() if b:
            return a // b
        case ast.Mod() if b:
            return a % b
        case ast.Div() if b:
            return a / b
    raise NotConstant
