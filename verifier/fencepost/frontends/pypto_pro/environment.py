"""What do the names of a module, or of a function that builds kernels, stand for at compile time?

A scope is executed statement by statement by the constant interpreter; nothing is imported and no user code runs.
What the interpreter cannot know becomes `Unknown`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic
from fencepost.frontends.pypto_pro.evaluate import Evaluator, bound_names
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.pypto_pro.values import (
    Class,
    Decorated,
    Function,
    Module,
    OneOf,
    Scalar,
    Unknown,
    Unreadable,
    Value,
)

_MAX_STEPS = 50_000
_MAX_DEPTH = 40

_CANONICAL = {
    "pypto_pro.language": "pl",
    "pypto_pro": "pypto_pro",
    "pypto_pro.language.Vf": "vf",
    "pl.Vf": "vf",
}


@dataclass(eq=False, slots=True)
class Environment:
    """One scope: its names, and the scope around it."""

    source: Source
    parent: Environment | None = None
    names: dict[str, Value] = field(default_factory=dict)
    function: ast.FunctionDef | None = None
    defaults: dict[int, Value] = field(default_factory=dict)  # of the functions defined here, by the expressions' ids

    def find(self, name: str) -> Value:
        """The value of a name.

        Raises:
            KeyError: no scope defines it.
        """
        scope: Environment | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        raise KeyError(name)

    def default(self, node: ast.expr) -> Value:
        """The default value of a parameter of a function defined here, as it was when the function was defined.

        Raises:
            Unreadable: it is not known.
        """
        if id(node) not in self.defaults:
            raise Unreadable("this default value is not known", node)
        return self.defaults[id(node)]

    def outermost(self) -> Environment:
        """The scope of the module."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


class Leaving(Exception):
    """Host code leaves the block that is being executed."""


class _Return(Leaving):
    def __init__(self, value: Value) -> None:
        self.value = value


class _Break(Leaving):
    pass


class _Continue(Leaving):
    pass


@dataclass(slots=True)
class Budget:
    """Steps left for one file: constant evaluation always ends."""

    steps: int = _MAX_STEPS
    depth: int = 0


class ConstantInterpreter(Evaluator):
    """Executes statements of host code over compile-time values."""

    def __init__(self, source: Source, environment: Environment, budget: Budget) -> None:
        super().__init__(source)
        self.environment = environment
        self.budget = budget

    # ---------------------------------------------------------------------------------------------------- statements

    def run(self, body: Iterable[ast.stmt], skip: Callable[[ast.stmt], bool] | None = None) -> None:
        """Execute a scope's statements; a statement that cannot be read makes the names it binds unknown."""
        for stmt in body:
            if skip is not None and skip(stmt):
                continue
            try:
                self.execute(stmt)
            except Unreadable as problem:
                self._forget(stmt, problem.reason)
            except (_Break, _Continue):
                return

    def _forget(self, stmt: ast.stmt, reason: str) -> None:
        for name in bound_names([stmt]):
            self.environment.names[name] = Unknown(name, reason)

    def execute(self, stmt: ast.stmt) -> None:
        self.budget.steps -= 1
        if self.budget.steps < 0 and not isinstance(stmt, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            raise Unreadable("constant evaluation takes too long", stmt)
        names = self.environment.names
        match stmt:
            case ast.FunctionDef():
                self.environment.defaults |= {id(d): self.value(d) for d in defaults(stmt).values()}
                names[stmt.name] = Function(stmt, self.environment, tuple(self.value(d) for d in stmt.decorator_list))
            case ast.ClassDef():
                names[stmt.name] = Class(stmt, self.environment)
            case ast.Import() | ast.ImportFrom():
                names |= imports(stmt)
            case ast.Assign():
                value = self.value(stmt.value)
                for target in stmt.targets:
                    self.bind(target, value)
            case ast.AnnAssign() if stmt.value is not None:
                self.bind(stmt.target, self.value(stmt.value))
            case ast.AugAssign():
                old = self.value(_load(stmt.target))
                self.bind(stmt.target, arithmetic.binary(stmt.op, old, self.value(stmt.value), stmt, ir.NOWHERE))
            case ast.If():
                self._if(stmt)
            case ast.For():
                self._for(stmt)
            case ast.While():
                self._while(stmt)
            case ast.With():
                self.run(stmt.body)
            case ast.Try():
                self.run([*stmt.body, *stmt.orelse, *stmt.finalbody])
            case ast.Return():
                raise _Return(None if stmt.value is None else self.value(stmt.value))
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=owner)))):
                if isinstance(names.get(owner), (tuple, dict, list)):
                    names[owner] = Unknown(owner, "it is changed by a method call")

    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign `value` to a target."""
        match target:
            case ast.Name(id=name):
                self.environment.names[name] = named(value, name, id(target))
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                items = unpack(value, len(elts))
                for elt, item in zip(elts, items, strict=True):
                    if isinstance(elt, ast.Starred):
                        self.bind(elt.value, Unknown())
                    else:
                        self.bind(elt, item)
            case ast.Subscript(value=ast.Name(id=name)):
                self.environment.names[name] = Unknown(name, "one of its elements is assigned")

    def _if(self, stmt: ast.If) -> None:
        test = self.value(stmt.test)
        if isinstance(test, (Unknown, OneOf, Scalar)):
            before = dict(self.environment.names)
            self.run(stmt.body)
            then = dict(self.environment.names)
            self.environment.names = before
            self.run(stmt.orelse)
            for name in bound_names([stmt]):
                a, b = then.get(name, Unknown(name)), self.environment.names.get(name, Unknown(name))
                self.environment.names[name] = a if same(a, b) else union(name, a, b)
            return
        body = stmt.body if arithmetic.condition(test, stmt, ir.NOWHERE) else stmt.orelse
        for inner in body:
            self.execute(inner)

    def _for(self, stmt: ast.For) -> None:
        items = self.value(stmt.iter)
        if isinstance(items, dict):
            items = tuple(items)
        if not isinstance(items, tuple) or len(items) > 10_000:
            raise Unreadable("the loop runs over something unknown", stmt)
        for item in items:
            self.bind(stmt.target, item)
            try:
                for inner in stmt.body:
                    self.execute(inner)
            except _Continue:
                continue
            except _Break:
                return
        for inner in stmt.orelse:
            self.execute(inner)

    def _while(self, stmt: ast.While) -> None:
        while True:
            test = self.value(stmt.test)
            if isinstance(test, (Unknown, OneOf, Scalar)):
                raise Unreadable("the loop depends on something unknown", stmt)
            if not test:
                return
            try:
                for inner in stmt.body:
                    self.execute(inner)
            except _Continue:
                continue
            except _Break:
                return

    # --------------------------------------------------------------------------------------------------- expressions

    def value(self, node: ast.expr) -> Value:
        """The value of an expression; `Unknown` where it cannot be read."""
        try:
            return self.evaluate(node)
        except Unreadable as problem:
            return Unknown("", problem.reason)

    def lookup(self, node: ast.Name) -> Value:
        try:
            return self.environment.find(node.id)
        except KeyError:
            return self.builtin(node)

    def call_function(self, function: Function, node: ast.Call) -> Value:
        values = bind_arguments(function.node, node, self.value, function.scope.default)
        return call_constant(function, values, self.budget, node)

    def call_language(self, function: Module, node: ast.Call) -> Value:
        if any(k.arg is None for k in node.keywords):
            raise Unreadable("keyword arguments are unpacked", node)
        keywords = tuple((str(k.arg), self.value(k.value)) for k in node.keywords)
        return Decorated(function, keywords, tuple(self.value(a) for a in node.args))


def call_constant(function: Function, values: dict[str, Value], budget: Budget, node: ast.AST) -> Value:
    """The result of a host function for compile-time arguments.

    Raises:
        Unreadable: it cannot be evaluated.
    """
    if budget.depth >= _MAX_DEPTH:
        raise Unreadable("functions call each other too deeply", node)
    scope = Environment(function.scope.source, function.scope, dict(values), function.node)
    interpreter = ConstantInterpreter(function.scope.source, scope, budget)
    budget.depth += 1
    try:
        for stmt in function.node.body:
            interpreter.execute(stmt)
    except _Return as result:
        return result.value
    except (_Break, _Continue):
        raise Unreadable("a loop is left outside of it", node) from None
    finally:
        budget.depth -= 1
    return None


def defaults(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """The default values of parameters."""
    spec = function.args
    parameters = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    found = dict(zip(reversed(parameters), reversed(spec.defaults), strict=False))
    return found | {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}


def bind_arguments(
    function: ast.FunctionDef,
    call: ast.Call,
    value: Callable[[ast.expr], Value],
    default: Callable[[ast.expr], Value] | None = None,
) -> dict[str, Value]:
    """Parameter values of a call.  `value` gives those of arguments, `default` (if not `value` too) those left out.

    Raises:
        Unreadable: the arguments do not fit, or are unpacked.
    """
    spec = function.args
    if spec.vararg is not None or spec.kwarg is not None:
        raise Unreadable(f"{function.name} takes any number of arguments", call)
    parameters = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    bound: dict[str, Value] = {}
    for i, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            raise Unreadable("arguments are unpacked with *", call)
        if i >= len(parameters):
            raise Unreadable(f"{function.name} takes {len(parameters)} arguments, {len(call.args)} are given", call)
        bound[parameters[i]] = value(argument)
    allowed = {*parameters, *(a.arg for a in spec.kwonlyargs)}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise Unreadable("arguments are unpacked with **", call)
        if keyword.arg not in allowed or keyword.arg in bound:
            raise Unreadable(f"{function.name} has no free parameter {keyword.arg}", call)
        bound[keyword.arg] = value(keyword.value)
    left = defaults(function)
    for parameter in (*parameters, *(a.arg for a in spec.kwonlyargs)):
        if parameter not in bound:
            if parameter not in left:
                raise Unreadable(f"{function.name} needs a value for {parameter}", call)
            bound[parameter] = (default or value)(left[parameter])
    return bound


def imports(stmt: ast.Import | ast.ImportFrom) -> dict[str, Value]:
    """The names that an import binds."""
    found: dict[str, Value] = {}
    for alias in stmt.names:
        if isinstance(stmt, ast.ImportFrom):
            found[alias.asname or alias.name] = imported(stmt.module or "", alias.name)
        else:
            path = alias.name if alias.asname else alias.name.split(".")[0]
            found[alias.asname or path] = Module(_CANONICAL.get(path, path))
    return found


def imported(module: str, name: str) -> Value:
    """What `from module import name` binds."""
    path = f"{module}.{name}"
    if path in _CANONICAL:
        return Module(_CANONICAL[path])
    if module == "pypto_pro.language":
        return Module(f"pl.{name}")
    return Module(path)


def named(value: Value, name: str, origin: object) -> Value:
    """The value with the name that the user gives it, when it has none."""
    if isinstance(value, Unknown) and not value.name:
        return Unknown(name, value.reason, origin)
    if isinstance(value, OneOf) and not value.name:
        return OneOf(value.values, name, origin)
    return value


def unpack(value: Value, count: int) -> list[Value]:
    """`count` elements of a value that is unpacked; unknown where it is."""
    if isinstance(value, tuple) and len(value) == count:
        return list(value)
    if isinstance(value, OneOf) and all(isinstance(v, tuple) and len(v) == count for v in value.values):
        return [one_of(tuple(v[i] for v in value.values)) for i in range(count)]
    return [Unknown()] * count


def one_of(values: tuple[Value, ...]) -> Value:
    """One of several values; itself when they are all the same."""
    found: list[Value] = []
    for value in values:
        if not any(same(value, other) for other in found):
            found.append(value)
    return found[0] if len(found) == 1 else OneOf(tuple(found))


def union(name: str, a: Value, b: Value) -> Value:
    """A value that is `a` or `b`."""
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return Unknown(name, "it depends on something unknown")
    parts = (*(a.values if isinstance(a, OneOf) else (a,)), *(b.values if isinstance(b, OneOf) else (b,)))
    result = one_of(parts)
    return OneOf(result.values, name) if isinstance(result, OneOf) else result


def same(a: Value, b: Value) -> bool:
    """Whether two compile-time values are equal, without mixing 1, 1.0 and True."""
    return type(a) is type(b) and bool(a == b)


def _load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    raise Unreadable("this assignment is not supported", target)
