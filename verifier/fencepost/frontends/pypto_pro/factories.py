"""Which values may the parameters of a function have that builds kernels, or that calls such a function?

They are those of its calls in the same file, and of parametrisation, if nothing else may call it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.frontends.pypto_pro import arithmetic
from fencepost.frontends.pypto_pro.arguments import bind_arguments, defaults
from fencepost.frontends.pypto_pro.choices import one_of
from fencepost.frontends.pypto_pro.environment import Environment
from fencepost.frontends.pypto_pro.evaluate import bound_names
from fencepost.frontends.pypto_pro.interpreter import Budget, ConstantInterpreter, Leaving
from fencepost.frontends.pypto_pro.values import DType, Module, OneOf, Unknown, Unreadable, Value
from fencepost.frontends.rebinding import assigned_inside, declared_elsewhere, unsteady

_MAX_CALL_PATH = 4
_MAX_CASES = 200
_PASSING = ("pytest.mark.", "pypto.", "functools.lru_cache", "functools.cache")
"""Decorators that hand on the arguments of a call as they are."""


@dataclass(slots=True)
class Factories:
    """The functions of a module that build kernels, and those that call them."""

    tree: ast.Module
    module: Environment
    budget: Budget
    parents: dict[ast.AST, ast.AST] = field(init=False)

    def __post_init__(self) -> None:
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def scope(
        self, factory: ast.FunctionDef, outer: Environment, values: dict[str, Value], inner: ast.FunctionDef
    ) -> Environment:
        """The names inside a factory when something calls the function `inner` that it makes."""
        shared = declared_elsewhere(factory)
        environment = Environment(outer.source, outer, dict(values), factory, shared=shared)
        interpreter = ConstantInterpreter(outer.source, environment, self.budget)
        interpreter.run(factory.body, skip=lambda s: isinstance(s, ast.Return))
        start = next(i for i, s in enumerate(factory.body) if any(n is inner for n in ast.walk(s)))
        changing = unsteady(factory.body, start, values) | shared
        environment.names |= {n: Unknown(n, "it gets another value later") for n in changing}
        return environment

    def parameters(self, function: ast.FunctionDef, notes: list[str], depth: int = 0) -> dict[str, Value]:
        """What the parameters of a host function may be; `notes` get what is taken for granted about its calls."""
        names = [a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)]
        found = None if depth >= _MAX_CALL_PATH or self._called_unseen(function) else self._options(function, depth)
        if found is None:
            return {name: self._unknown(name, function) for name in names}
        options, lines = found
        result: dict[str, Value] = {}
        for name in names:
            values = [v for value in options.get(name, []) for v in _each(value)]
            if not values or any(isinstance(v, Unknown) for v in values):
                result[name] = self._unknown(name, function)
            else:
                value = one_of(tuple(values))
                result[name] = OneOf(value.values, name) if isinstance(value, OneOf) else value
        known = [p for p in names if not isinstance(result[p], Unknown)]
        if known and lines:
            given = ", ".join(f"{p} = {_words(result[p])}" for p in known)
            where = "line" if len(lines) == 1 else "lines"
            places = ", ".join(str(n) for n in sorted(lines))
            notes.append(f"{function.name} is called as in {where} {places}: {given}")
        return result

    @staticmethod
    def _unknown(name: str, function: ast.FunctionDef) -> Unknown:
        return Unknown(name, f"it is a parameter of {function.name}")

    def _options(self, function: ast.FunctionDef, depth: int) -> tuple[dict[str, list[Value]], set[int]] | None:
        """The values that calls and parametrisation give to the parameters, and the lines of the calls.

        None if a call cannot be read.
        """
        spec = function.args
        found: dict[str, list[Value]] = {a.arg: [] for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
        parametrised = self._parametrised(function)
        for name in found.keys() & parametrised.keys():
            found[name].append(parametrised[name])
        if function.name.startswith("test"):  # pytest calls it, too: with fixtures, or default values
            left = defaults(function)
            for name in found.keys() - parametrised.keys():
                found[name].append(self._default(left[name], function) if name in left else Unknown(name))
        lines: set[int] = set()
        for call in self._calls(function.name):
            scope = self._scope_of(call, depth)
            if scope is None:
                return None
            value = ConstantInterpreter(scope.source, scope, self.budget).value
            try:
                bound = bind_arguments(function, call, value, lambda node: self._default(node, function))
            except Unreadable:
                return None
            lines.add(call.lineno)
            for name, values in found.items():
                values.append(bound.get(name, Unknown(name)))
        return found, lines

    def _default(self, node: ast.expr, function: ast.FunctionDef) -> Value:
        """The value of a parameter that a call leaves out."""
        if isinstance(node, ast.Constant):
            return node.value
        if any(isinstance(n, (ast.For, ast.AsyncFor, ast.While)) for n in self._around(function)):
            return Unknown()
        return self.module.defaults.get(id(node), Unknown())

    def _around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def _calls(self, name: str) -> Iterator[ast.Call]:
        """Calls of a function by name."""
        stack: list[ast.AST] = [self.tree]
        while stack:
            node = stack.pop()
            stack += ast.iter_child_nodes(node)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield node

    def _called_unseen(self, function: ast.FunctionDef) -> bool:
        """Whether something may call a function without naming it in the call."""
        if self.module.hidden or isinstance(self.parents[function], ast.ClassDef):
            return True
        interpreter = ConstantInterpreter(self.module.source, self.module, self.budget)
        for decorator in function.decorator_list:
            value = interpreter.value(decorator.func if isinstance(decorator, ast.Call) else decorator)
            if not isinstance(value, Module) or not value.path.startswith(_PASSING):
                return True
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and node.id == function.name and isinstance(node.ctx, ast.Load):
                parent = self.parents[node]
                if not isinstance(parent, ast.Call) or parent.func is not node:
                    return True
        return False

    def _scope_of(self, call: ast.Call, depth: int) -> Environment | None:
        """The names where a call stands, when it is reached; None if they are not known."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        path = [n for n in self._around(call) if isinstance(n, kinds)]
        module = self.module
        if not path:
            scope = Environment(module.source, shared=module.shared, escapes=module.escapes)
            _run_until(self.tree.body, call, scope, self.budget)
            return scope
        caller, *around = path
        inside = any(n is call for s in caller.body for n in ast.walk(s))
        if not isinstance(caller, ast.FunctionDef) or not inside:
            return None
        scope = Environment(module.source, module, function=caller, shared=declared_elsewhere(caller))
        scope.names |= {n: Unknown(n, f"it is a name of {f.name}") for f in around for n in _own_names(f)}
        scope.names |= self.parameters(caller, [], depth + 1)
        scope.names |= {n: Unknown(n, "functions assign it") for n in scope.shared}
        _run_until(caller.body, call, scope, self.budget)
        return scope

    def _parametrised(self, function: ast.FunctionDef) -> dict[str, Value]:
        """Values that `pytest.mark.parametrize` gives the parameters of a test."""
        interpreter = ConstantInterpreter(self.module.source, self.module, self.budget)
        found: dict[str, Value] = {}
        for decorator in function.decorator_list:
            if not isinstance(decorator, ast.Call) or len(decorator.args) < 2:
                continue
            if not isinstance(decorator.func, ast.Attribute) or decorator.func.attr != "parametrize":
                continue
            names, cases = interpreter.value(decorator.args[0]), interpreter.value(decorator.args[1])
            if isinstance(names, str):
                names = tuple(n.strip() for n in names.split(","))
            if not isinstance(names, tuple):
                continue
            direct = len(decorator.args) == 2 and all(k.arg in ("ids", "scope") for k in decorator.keywords)
            rows = tuple(cases) if isinstance(cases, (tuple, dict)) and direct and len(cases) <= _MAX_CASES else ()
            for i, name in enumerate(names):
                column = rows
                if len(names) > 1:
                    fit = (isinstance(row, tuple) and len(row) == len(names) for row in rows)
                    column = tuple(row[i] if fits else Unknown() for row, fits in zip(rows, fit, strict=True))
                found[str(name)] = one_of(column) if column else Unknown()
        return found


def _each(value: Value) -> tuple[Value, ...]:
    return value.values if isinstance(value, OneOf) else (value,)


def _words(value: Value) -> str:
    if isinstance(value, OneOf):
        return " or ".join(_words(v) for v in value.values[:6]) + (" or ..." if len(value.values) > 6 else "")
    if isinstance(value, int) and value.bit_length() < 1000:
        return str(value)
    return f"DT_{value.name}" if isinstance(value, DType) else arithmetic.describe(value)


def _own_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The parameters and variables of a function."""
    return {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)} | set(bound_names(function.body))


def _run_until(body: list[ast.stmt], call: ast.Call, scope: Environment, budget: Budget) -> None:
    """Run the statements of a scope as far as they lead to `call`; loops give the values of all their trips."""
    interpreter = ConstantInterpreter(scope.source, scope, budget)
    while True:
        for stmt in body:
            if not _holds([stmt], call):
                try:
                    interpreter.execute(stmt)
                except Unreadable as problem:
                    interpreter.forget(stmt, problem.reason)
                except Leaving:
                    return
                continue
            scope.names |= {n: Unknown(n) for n in _inner_names(stmt, call)}
            match stmt:
                case ast.For(body=inner) if _holds(inner, call):
                    items = interpreter.value(stmt.iter)
                    cases = tuple(items) if isinstance(items, (tuple, dict)) else ()
                    # what an earlier trip has left
                    scope.names |= {n: Unknown(n) for n in bound_names(inner)}
                    interpreter.bind(stmt.target, one_of(cases) if 0 < len(cases) <= _MAX_CASES else Unknown())
                    body = inner
                case ast.With(body=inner) | ast.Try(body=inner) | ast.If(body=inner) if _holds(inner, call):
                    body = inner
                case ast.If(orelse=inner) if _holds(inner, call):
                    body = inner
                case _:
                    blocks = [n for n in ast.iter_child_nodes(stmt) if isinstance(n, _BLOCKS)]
                    scope.names |= {n: Unknown(n) for n in bound_names(blocks)}
                    if isinstance(stmt, (ast.For, ast.AsyncFor)):
                        scope.names |= {n: Unknown(n) for n in bound_names([stmt.target])}
                    return
            break
        else:
            return


_BLOCKS = (ast.stmt, ast.match_case, ast.ExceptHandler, ast.withitem)


def _holds(body: list[ast.stmt], call: ast.Call) -> bool:
    """Whether a call stands in a block."""
    return any(node is call for stmt in body for node in ast.walk(stmt))


def _inner_names(stmt: ast.stmt, call: ast.Call) -> set[str]:
    """The names that a statement itself may give another value before it comes to `call`."""
    found = assigned_inside(stmt)
    if isinstance(stmt, ast.With):
        found |= set(bound_names(i.optional_vars for i in stmt.items if i.optional_vars is not None))
    for node in ast.walk(stmt):
        match node:
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                given = bound_names(g.target for g in node.generators)
            case ast.Lambda():
                given = [a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)]
            case ast.ClassDef():
                given = bound_names(node.body)
            case ast.ExceptHandler(name=str() as name):
                given = [name]
            case _:
                continue
        if any(n is call for n in ast.walk(node)):
            found |= set(given)
    return found
