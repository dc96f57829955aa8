"""What do the names of a module, or of a function that builds kernels, stand for at compile time?

A scope is executed statement by statement by the constant interpreter; nothing is imported and no user code runs.
What the interpreter cannot know becomes `Unknown`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic
from fencepost.frontends.pypto_pro.evaluate import Evaluator, bound_names
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.pypto_pro.values import (
    Class,
    Decorated,
    Function,
    Method,
    Module,
    OneOf,
    Scalar,
    Unknown,
    Unreadable,
    Value,
)

_MAX_STEPS = 50_000
_MAX_DEPTH = 40

_READING = ("get", "keys", "values", "items", "index", "count", "copy")  # methods of containers that change nothing

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
    shared: set[str] = field(default_factory=set)  # names that functions defined here assign
    changed: dict[int, Value] = field(default_factory=dict)  # in the module's scope: what is changed in place, by id

    def find(self, name: str) -> Value:
        """The value of a name.

        Raises:
            KeyError: no scope defines it.
        """
        scope: Environment | None = self
        while scope is not None:
            if name in scope.names:
                value = scope.names[name]
                changed = self.outermost().changed
                if changed and any(id(part) in changed for part in mutable_parts(value)):
                    return Unknown(name, "it is changed in place", ("changed", id(value)))
                return value
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
        try:
            self._block(body, skip)
        except Leaving:
            return

    def _block(self, body: Iterable[ast.stmt], skip: Callable[[ast.stmt], bool] | None = None) -> None:
        for stmt in body:
            if skip is not None and skip(stmt):
                continue
            try:
                self.execute(stmt)
            except Unreadable as problem:
                self._forget(stmt, problem.reason)

    def _forget(self, stmt: ast.stmt, reason: str) -> None:
        """What a statement that is not executed may assign or change becomes unknown."""
        self._disturb([stmt])
        for name in _bound(stmt):
            self.environment.names[name] = Unknown(name, reason)

    def execute(self, stmt: ast.stmt) -> None:
        self.budget.steps -= 1
        if self.budget.steps < 0 and not isinstance(stmt, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            raise Unreadable("constant evaluation takes too long", stmt)
        names = self.environment.names
        match stmt:
            case ast.FunctionDef():
                self.environment.defaults |= {id(d): self.value(d) for d in defaults(stmt).values()}
                self._share(stmt)
                names[stmt.name] = Function(stmt, self.environment, tuple(self.value(d) for d in stmt.decorator_list))
            case ast.ClassDef():
                scope = Environment(self.environment.source, self.environment)
                ConstantInterpreter(self.source, scope, self.budget).run(stmt.body)
                names[stmt.name] = Class(stmt, scope)
            case ast.Import() | ast.ImportFrom():
                names |= imports(stmt)
            case ast.Assign():
                value = self.value(stmt.value)
                for target in stmt.targets:
                    self.bind(target, value)
            case ast.AnnAssign(value=given):
                if given is not None:
                    self.bind(stmt.target, self.value(given))
            case ast.AugAssign(target=ast.Subscript(value=owner) | ast.Attribute(value=owner)):
                self.value(stmt.value)
                self._change(owner)
            case ast.AugAssign():
                self._change(stmt.target)
                old = self.value(_load(stmt.target))
                self.bind(stmt.target, arithmetic.binary(stmt.op, old, self.value(stmt.value), stmt, ir.NOWHERE))
            case ast.If():
                self._if(stmt)
            case ast.For():
                self._for(stmt)
            case ast.While():
                self._while(stmt)
            case ast.With():
                for item in stmt.items:
                    self.value(item.context_expr)
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars, Unknown())
                self._block(stmt.body)
            case ast.Try():
                self._try(stmt)
            case ast.Return():
                raise _Return(None if stmt.value is None else self.value(stmt.value))
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.Expr():
                self._disturb([stmt])
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, (ast.Subscript, ast.Attribute)):
                        self._change(target.value)
                    elif isinstance(target, ast.Name):
                        names[target.id] = Unknown(target.id, "it is deleted")
                    else:
                        raise Unreadable("this statement is not supported", stmt)
            case ast.Pass() | ast.Global() | ast.Nonlocal():
                pass
            case ast.Assert() | ast.Raise():
                self._disturb([stmt])
            case _:
                raise Unreadable(f"this statement ({type(stmt).__name__.lower()}) is not supported", stmt)

    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign `value` to a target."""
        match target:
            case ast.Name(id=name):
                shared = name in self.environment.shared
                value = Unknown(name, "functions assign it") if shared else named(value, name, id(target))
                self.environment.names[name] = value
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                items = unpack(value, len(elts))
                for elt, item in zip(elts, items, strict=True):
                    if isinstance(elt, ast.Starred):
                        self.bind(elt.value, Unknown())
                    else:
                        self.bind(elt, item)
            case ast.Subscript(value=owner) | ast.Attribute(value=owner):
                self._change(owner)
            case _:
                raise Unreadable("this assignment is not supported", target)

    def _if(self, stmt: ast.If) -> None:
        test = self.value(stmt.test)
        if isinstance(test, (Unknown, OneOf, Scalar)):
            self._either(stmt.body, stmt.orelse, stmt)
            return
        body = stmt.body if arithmetic.condition(test, stmt, ir.NOWHERE) else stmt.orelse
        for inner in body:
            self.execute(inner)

    def _either(self, body: list[ast.stmt], orelse: list[ast.stmt], stmt: ast.stmt) -> None:
        """One of two blocks is executed; it is not known which."""
        before = dict(self.environment.names)
        leaves = False
        found: list[dict[str, Value]] = []
        for block in (body, orelse):
            self.environment.names = dict(before)
            try:
                self._block(block)
            except Leaving:
                leaves = True
            found.append(self.environment.names)
        then, other = found
        for name in {*then, *other}:
            a, b = then.get(name, Unknown(name)), other.get(name, Unknown(name))
            other[name] = a if a is b or same(a, b) else union(name, a, b)
        if leaves:
            raise Unreadable("it is not known whether the block is left here", stmt)

    def _try(self, stmt: ast.Try) -> None:
        """A handler that goes on does so after any part of the body; what is imported is taken to be there."""
        before = dict(self.environment.names)
        self._block([*stmt.body, *stmt.orelse])
        after = dict(self.environment.names)
        for handler in stmt.handlers:
            if not isinstance(handler.body[-1], (ast.Raise, ast.Return, ast.Continue, ast.Break)):
                for name in after.keys() & {n for s in stmt.body for n in _bound(s)}:
                    old = before.get(name, Unknown(name))
                    if old is not after[name] and not same(old, after[name]):
                        self.environment.names[name] = union(name, old, after[name])
                self._either([], handler.body, stmt)
        self.environment.names |= {n: v for n, v in after.items() if isinstance(v, Module)}
        self._block(stmt.finalbody)

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
            self._disturb([node])
            for name in _bound(node):
                self.environment.names[name] = Unknown(name, problem.reason)
            return Unknown("", problem.reason)

    def evaluate(self, node: ast.expr) -> Value:
        if isinstance(node, ast.NamedExpr):
            value = self.evaluate(node.value)
            self.environment.names[node.target.id] = Unknown(node.target.id, "it is assigned inside of an expression")
            return value
        return super().evaluate(node)

    def lookup(self, node: ast.Name) -> Value:
        try:
            return self.environment.find(node.id)
        except KeyError:
            return self.builtin(node)

    def call_function(self, function: Function, node: ast.Call) -> Value:
        for decorator in function.decorators:
            target = getattr(decorator, "function", decorator)
            if not isinstance(target, Module) or not target.path.startswith(("functools.", "pl.")):
                raise Unreadable(f"what {function.node.name} does is changed by a decorator", node)
        values = bind_arguments(function.node, node, self.value, function.scope.default)
        return call_constant(function, values, self.budget, node)

    def call_method(self, target: Method, node: ast.Call) -> Value:
        value = super().call_method(target, node)
        if isinstance(target.owner, (tuple, dict)) and target.name not in _READING:
            self._mark(target.owner)
        return value

    # ------------------------------------------------------------------------------------------------ changes in place

    def _share(self, stmt: ast.FunctionDef) -> None:
        """The names outside of a function that it may assign are not known, whenever it is called."""
        for node in ast.walk(stmt):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                scope: Environment | None = self.environment
                while scope is not None:
                    if (scope.parent is None) == isinstance(node, ast.Global):
                        scope.shared |= {*node.names}
                        scope.names |= {n: Unknown(n, "functions assign it") for n in node.names if n in scope.names}
                    scope = scope.parent

    def _mark(self, value: Value) -> None:
        """The value, and all that has a part of it in common, is no longer known."""
        for part in mutable_parts(value):
            self.environment.outermost().changed[id(part)] = part

    def _change(self, owner: ast.expr) -> None:
        """What an expression stands for is changed in place."""
        root = _root(owner)
        if root is not None:
            try:
                self._mark(self.environment.find(root))
            except KeyError:
                return
        elif not isinstance(owner, ast.Constant):
            try:
                self._mark(self.evaluate(owner))
            except Unreadable:
                return

    def _disturb(self, nodes: Iterable[ast.AST]) -> None:
        """What code that is not executed changes in place is no longer known."""
        changes = _Changes(self.environment, set())
        for node in nodes:
            changes.scan(node)
        for value in changes.values:
            self._mark(value)

    def call_language(self, function: Module, node: ast.Call) -> Value:
        if any(k.arg is None for k in node.keywords):
            raise Unreadable("keyword arguments are unpacked", node)
        keywords = tuple((str(k.arg), self.value(k.value)) for k in node.keywords)
        return Decorated(function, keywords, tuple(self.value(a) for a in node.args))


class _Changes:
    """What code may change in place, through the functions that it calls by name."""

    def __init__(self, scope: Environment, seen: set[int], own: frozenset[str] = frozenset(), depth: int = 0) -> None:
        """`own` names the locals of the function whose code is scanned, `depth` calls down."""
        self.depth = depth
        self.scope = scope
        self.seen = seen
        self.own = own
        self.aliases: dict[str, set[str]] = {}
        self.values: list[Value] = []
        self.locals: set[str] = set()

    def scan(self, code: ast.AST) -> None:
        nodes = list(ast.walk(code))
        for node in nodes:
            match node:
                case ast.Assign(targets=[*targets], value=value):
                    for target in targets:
                        self._alias(target, value)
                case ast.For(target=target, iter=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._alias(target, value)
        for node in nodes:
            match node:
                case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()):
                    self._changed(_root(owner))
                case ast.Attribute(value=owner, ctx=ast.Store() | ast.Del()):
                    self._changed(_root(owner))
                case ast.AugAssign(target=ast.Name(id=name)):
                    self._changed(name)
                case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method not in _READING:
                    self._changed(_root(owner), method=True)
                case ast.Call(func=ast.Name(id=name)) if name not in self.own:
                    self._called(name, node)

    def _alias(self, target: ast.expr, value: ast.expr) -> None:
        root = _root(value)
        if isinstance(target, ast.Name) and root is not None and target.id in self.own:
            self.aliases.setdefault(target.id, set()).add(root)

    def _changed(self, root: str | None, method: bool = False) -> None:
        stack, done = [root], set[str]()
        while stack:
            name = stack.pop()
            if name is None or name in done:
                continue
            done.add(name)
            if name in self.own:
                self.locals.add(name)
                stack += self.aliases.get(name, ())
                continue
            try:
                value = self.scope.find(name)
            except KeyError:
                continue
            if not (method and isinstance(value, Class)):
                self.values.append(value)

    def _called(self, name: str, call: ast.Call) -> None:
        try:
            function = self.scope.find(name)
        except KeyError:
            return
        if not isinstance(function, Function) or id(function.node) in self.seen:
            return
        if self.depth >= _MAX_DEPTH:  # anything may be changed
            scope: Environment | None = self.scope
            while scope is not None:
                self.values += scope.names.values()
                scope = scope.parent
            self.locals |= self.own
            return
        self.seen.add(id(function.node))
        parameters = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
        every = {a.arg for a in ast.walk(function.node.args) if isinstance(a, ast.arg)}
        own = frozenset({*every, *bound_names(function.node.body)})
        inner = _Changes(function.scope, self.seen, own, self.depth + 1)
        for stmt in function.node.body:
            inner.scan(stmt)
        self.values += inner.values
        given = [*zip(parameters, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
        for parameter, argument in given:
            if parameter in inner.locals:
                self._changed(_root(argument))


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


def mutable_parts(value: Value) -> Iterator[Value]:
    """The lists, dictionaries and classes that a value consists of: what may be changed in place."""
    stack = [value]
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        match current:
            case tuple():
                yield current
                stack.extend(current)
            case dict():
                yield current
                stack.extend(current.values())
            case OneOf(values=values):
                stack.extend(values)
            case Class():
                yield current


def _root(node: ast.expr) -> str | None:
    """The name that an element or a member is taken from."""
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _bound(code: ast.AST) -> set[str]:
    """All names that a piece of code may bind."""
    found: set[str] = set(bound_names([code])) if isinstance(code, ast.stmt) else set()
    for node in ast.walk(code):
        match node:
            case ast.NamedExpr(target=ast.Name(id=name)):
                found.add(name)
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                found.add(name)
            case ast.MatchMapping(rest=str() as name) | ast.ExceptHandler(name=str() as name):
                found.add(name)
    match code:
        case ast.AsyncFunctionDef(name=name):
            return {name}
    return found
