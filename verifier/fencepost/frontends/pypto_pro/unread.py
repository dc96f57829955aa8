"""Which functions of a text hold device code, but are neither read as kernels nor reached from one?"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from fencepost.frontends.pypto_pro.environment import Environment
from fencepost.frontends.pypto_pro.kernels import FoundKernel
from fencepost.frontends.pypto_pro.values import Class, Decorated, Function, Module, OneOf, Value

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SECTIONS = frozenset({"section_cube", "section_vector"})
_DEVICE = _SECTIONS | {
    "set_cross_core", "wait_cross_core", "sync_src", "sync_dst", "mutex_lock", "mutex_unlock", "sync_all", "bar_all",
}  # fmt: skip
"""What stands only in kernels, and in functions that they call: a function with a section is no mere helper."""
_GLOBAL_MEMORY = frozenset({"Tensor", "Ptr"})


def unread_functions(
    tree: ast.Module, module: Environment, kernels: Iterable[FoundKernel]
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The innermost functions that hold device code which no kernel reaches, in text order.

    Args:
        tree: the text.
        module: the names of the module.
        kernels: all kernels that are found in the text.
    """
    covered = _reached(kernels)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    named = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called}
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if id(node) in covered:
            continue
        if isinstance(node, _FUNCTIONS):
            wrapped = bool(node.decorator_list) or node.name in named
            own = list(_own_nodes(node))
            words = _DEVICE if wrapped else _SECTIONS
            if any(_is_device(n, module, words) for n in own) or (wrapped and _is_kernel_like(node, module)):
                yield node
        stack += list(ast.iter_child_nodes(node))[::-1]


def has_device_code(function: ast.FunctionDef, scope: Environment) -> bool:
    """Whether a function, or one inside it, holds what stands only in kernels."""
    return any(_is_device(n, scope) for n in ast.walk(function))


def _is_device(node: ast.AST, scope: Environment, words: Collection[str] = _DEVICE) -> bool:
    match node:
        case ast.Attribute(attr=name):
            return name in words
        case ast.Name(id=name):
            try:
                value = scope.find(name)
            except KeyError:
                return name in words
            if isinstance(value, Module):
                return value.path.rpartition(".")[2] in words
            return name in words and not isinstance(value, Function)
    return False


def _is_kernel_like(function: ast.FunctionDef | ast.AsyncFunctionDef, scope: Environment) -> bool:
    """Whether a function takes global memory, and no decorator of the language says that it is no kernel."""
    for decorator in function.decorator_list:
        value = _resolved(decorator.func if isinstance(decorator, ast.Call) else decorator, scope)
        if isinstance(value, Module) and value.is_language and value.path not in ("pl.jit", "pl.kernel"):
            return False
    notes = [a.annotation for a in ast.walk(function.args) if isinstance(a, ast.arg) and a.annotation is not None]
    for note in notes:
        for node in ast.walk(note):
            value = _resolved(node, scope) if isinstance(node, ast.expr) else None
            if isinstance(value, Module) and value.is_language and value.path.rpartition(".")[2] in _GLOBAL_MEMORY:
                return True
    return False


def _resolved(node: ast.expr, scope: Environment) -> Value:
    """What a dotted name stands for; None if that is not known."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    try:
        value = scope.find(node.id)
    except KeyError:
        return None
    return Module(".".join([value.path, *reversed(parts)])) if isinstance(value, Module) else None


def _own_nodes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of functions inside."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if not isinstance(node, _FUNCTIONS):
            yield node
            stack += ast.iter_child_nodes(node)


def _reached(kernels: Iterable[FoundKernel]) -> set[int]:
    """The kernels, and the functions that they may call, by id."""
    covered: set[int] = set()
    stack: list[tuple[ast.AST, Environment]] = []
    for kernel in kernels:
        stack.append((kernel.node, kernel.scope))
        for value in kernel.options.values():
            stack += ((f.node, f.scope) for f in _functions(value))
    while stack:
        node, scope = stack.pop()
        if id(node) in covered:
            continue
        covered.add(id(node))
        members = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        for name in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}:
            try:
                value = scope.find(name)
            except KeyError:
                continue
            stack += ((f.node, f.scope) for f in _functions(value, members))
    return covered


def _functions(value: Value, members: Iterable[str] = ()) -> Iterator[Function]:
    """The functions in a value; of a class, its `members`."""
    stack = [value]
    while stack:
        match stack.pop():
            case Function() as function:
                yield function
            case Class(scope=scope):
                stack += [scope.names[m] for m in members if m in scope.names]
            case Decorated(keywords=keywords, arguments=arguments):
                stack += [*(v for _, v in keywords), *arguments]
            case tuple() as items:
                stack += items
            case dict() as items:
                stack += items.values()
            case OneOf(values=values):
                stack += values
