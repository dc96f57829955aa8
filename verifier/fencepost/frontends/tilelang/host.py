"""What do the names of a TileLang program stand for around its kernels?

Modules and factories are not run.  A name has a known value if it is bound once in its scope, outside of loops:
wherever that is, the name stands for this or for nothing at all.  What is called or imported in between, and when, then
does not matter.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from fencepost.frontends.escapes import is_plain
from fencepost.frontends.rebinding import bindings
from fencepost.frontends.tilelang.lowering import Lowering
from fencepost.frontends.tilelang.values import Several, Unread, Value


def enter_module(module: ast.Module, lowering: Lowering) -> None:
    """Put what the names of a module mean into the scope."""
    shared = [n for node in ast.walk(module) if isinstance(node, ast.Global) for n in node.names]
    _collect(module.body, shared, 0, lowering)


def enter_factory(function: ast.FunctionDef, lowering: Lowering) -> None:
    """Put what the names of a function around a kernel mean into the scope."""
    shared = [n for node in ast.walk(function) if isinstance(node, ast.Nonlocal) for n in node.names]
    lowering.evaluator.scope = dict(lowering.scope)
    counts = Counter([*shared, *bindings(function.body)])
    enter_parameters(function, lowering, counts)
    names = {a.arg for a in _arguments(function.args)}
    _collect(function.body, [*shared, *names], function.lineno, lowering, names - counts.keys())


def enter_parameters(function: ast.FunctionDef, lowering: Lowering, counts: Counter[str]) -> None:
    """Put parameters that only the caller knows into the scope; what is bound again has no default."""
    given = function.args
    pairs = [*zip(reversed([*given.posonlyargs, *given.args]), reversed(given.defaults), strict=False)]
    pairs += [(a, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None]
    defaults = {a.arg: d.value for a, d in pairs if isinstance(d, ast.Constant) and isinstance(d.value, int)}
    for argument in _arguments(given):
        name = argument.arg
        default = None if counts[name] else defaults.get(name)
        lowering.scope[name] = Unread(name, function.lineno, not counts[name], True, default)


def _arguments(given: ast.arguments) -> Iterator[ast.arg]:
    yield from (*given.posonlyargs, *given.args, *given.kwonlyargs)
    yield from filter(None, (given.vararg, given.kwarg))


def _collect(
    statements: list[ast.stmt], more: Iterable[str], number: int, lowering: Lowering, kept: Iterable[str] = ()
) -> None:
    """Names that statements bind; `more` bind these, too; `kept` are known already; `number` tells the scope."""
    scope = lowering.scope
    language = lowering.evaluator.language | lowering.evaluator.members.keys()
    language |= {name.partition(".")[0] for name in language}
    counts = Counter([*bindings(statements), *more])
    imported = Counter(bindings(n for n in _all(statements) if isinstance(n, (ast.Import, ast.ImportFrom))))
    repeated = {
        n for loop in _all(statements) if isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) for n in bindings([loop])
    }
    once = {name for name, count in counts.items() if count == 1} - repeated
    for name in counts.keys() - set(kept):
        scope[name] = Unread(name, number, name in once)
        if name in language and imported[name] == counts[name]:
            scope.pop(name)
    lowering.evaluator.loose = lowering.evaluator.loose or any(map(_is_star, _all(statements)))
    for top in statements:
        inside = list(_all([top], loops=False))
        for node in inside:
            _define(node, once, lowering)
        if any(map(_is_star, _all([top]))):
            for name in bindings(statements[: statements.index(top) + 1]):
                scope[name] = Unread(name, number, False)
                if name in language:
                    scope.pop(name)


def _define(node: ast.stmt, once: set[str], lowering: Lowering) -> None:
    match node:
        case ast.FunctionDef(name) if name in once and is_plain(node):
            lowering.scope[name] = lowering.evaluator.function(node, bool(node.decorator_list))
        case ast.Assign(targets, value):
            found = lowering.evaluator.value(value)
            for target in targets:
                for name, known in _targets(target, found):
                    if name in once:
                        lowering.scope[name] = known
        case ast.AnnAssign(ast.Name(name), _, value) if value is not None and name in once:
            lowering.scope[name] = lowering.evaluator.value(value)


def _targets(target: ast.expr, value: Value) -> Iterator[tuple[str, Value]]:
    """The names of a target, each with its value."""
    match target:
        case ast.Name(name):
            yield name, value
        case ast.Tuple(items) | ast.List(items):
            values = value.items if isinstance(value, Several) else ()
            if len(values) == len(items) and not any(isinstance(i, ast.Starred) for i in items):
                for item, known in zip(items, values, strict=True):
                    yield from _targets(item, known)


def _all(statements: Iterable[ast.stmt], loops: bool = True) -> Iterator[ast.stmt]:
    """Statements and those of their blocks, in order; `loops`: of loops, too.  Functions and classes stay closed."""
    stack: list[ast.AST] = []
    stack += [*statements][::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if loops or not isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            blocks = (ast.stmt, ast.ExceptHandler, ast.match_case)
            stack += [n for n in ast.iter_child_nodes(node) if isinstance(n, blocks)][::-1]


def _is_star(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names)
