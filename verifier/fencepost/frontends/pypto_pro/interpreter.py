"""What does host code compute at compile time?

Statements are executed one by one over compile-time values; nothing is imported and no user code runs.  What the
interpreter cannot know becomes `Unknown`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic
from fencepost.frontends.pypto_pro.arguments import bind_arguments, defaults
from fencepost.frontends.pypto_pro.choices import named, same, union, unpack
from fencepost.frontends.pypto_pro.environment import Changing, Environment
from fencepost.frontends.pypto_pro.evaluate import Evaluator, bound_names
from fencepost.frontends.pypto_pro.imports import imports
from fencepost.frontends.pypto_pro.library import BUILTINS
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
from fencepost.frontends.rebinding import assigned_inside, bindings, declared_elsewhere

_MAX_STEPS = 50_000
_MAX_DEPTH = 40  # calls inside each other that are followed
_HOOKS = ("__set_name__", "__init_subclass__", "__get__")
_CHECKS = ("enum.unique", "typing.final")  # decorators that give back the class


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
    """Steps left for one file: constant evaluation always ends.

    `depth` counts calls in progress; `inside` are the names that expressions of statements bind.
    """

    steps: int = _MAX_STEPS
    depth: int = 0
    inside: dict[ast.stmt, set[str]] = field(default_factory=dict)


class ConstantInterpreter(Evaluator):
    """Executes statements of host code over compile-time values."""

    def __init__(self, source: Source, environment: Environment, budget: Budget) -> None:
        super().__init__(source)
        self.environment = environment
        self.budget = budget
        self.inside: set[str] = set()  # what expressions of the statement at hand have surely bound

    # ---------------------------------------------------------------------------------------------------- statements

    def run(self, body: Iterable[ast.stmt], skip: Callable[[ast.stmt], bool] | None = None) -> None:
        """Execute a scope's statements; a statement that cannot be read makes the names it binds unknown."""
        for stmt in body:
            if skip is not None and skip(stmt):
                continue
            try:
                self.execute(stmt)
            except Unreadable as problem:
                self.forget(stmt, problem.reason)
            except Leaving:
                return

    def _block(self, body: Iterable[ast.stmt]) -> None:
        """Execute a block inside a scope; what cannot be read may not be what leaves it."""
        for stmt in body:
            try:
                self.execute(stmt)
            except Unreadable as problem:
                if _may_leave(stmt):
                    raise
                self.forget(stmt, problem.reason)

    def forget(self, stmt: ast.stmt, reason: str) -> None:
        """What a statement that is not executed may assign or change becomes unknown."""
        self._share(stmt)
        for name in _bound(stmt):
            self.environment.names[name] = Unknown(name, reason)
        if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(stmt)):
            self._imported_all(reason)

    def execute(self, stmt: ast.stmt) -> None:
        """Execute a statement; names that expressions in it may or may not have bound are unknown."""
        outer, self.inside = self.inside, set()
        try:
            self._execute(stmt)
        finally:
            for name in self._assigned_inside(stmt) - self.inside:
                self.environment.names[name] = Unknown(name, "it is assigned inside of an expression")
            self.inside = outer

    def _assigned_inside(self, stmt: ast.stmt) -> set[str]:
        found = self.budget.inside.get(stmt)
        if found is None:
            found = self.budget.inside[stmt] = assigned_inside(stmt)
        return found

    def _execute(self, stmt: ast.stmt) -> None:
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
                self._share(stmt)
                scope = Environment(self.environment.source, self.environment)
                ConstantInterpreter(self.source, scope, self.budget).run(stmt.body)
                names[stmt.name] = self._class(stmt, scope)
            case ast.ImportFrom(module=origin, names=[ast.alias(name="*")]):
                self._imported_all(f"{origin} may define it")
            case ast.Import() | ast.ImportFrom():
                names |= imports(stmt)
            case ast.Assign():
                value = self.value(stmt.value)
                for target in stmt.targets:
                    self.bind(target, value)
            case ast.AnnAssign(value=given):
                if given is not None:
                    self.bind(stmt.target, self.value(given))
            case ast.AugAssign(target=ast.Subscript() | ast.Attribute()):
                self.value(stmt.value)
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
                self._with(stmt)
            case ast.Try():
                self._try(stmt)
            case ast.Return():
                raise _Return(None if stmt.value is None else self.value(stmt.value))
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.Expr(value=ast.NamedExpr() as value):
                self.value(value)
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        names[target.id] = Unknown(target.id, "it is deleted")
                    elif not isinstance(target, (ast.Subscript, ast.Attribute)):
                        raise Unreadable("this statement is not supported", stmt)
            case ast.Pass() | ast.Global() | ast.Nonlocal() | ast.Expr() | ast.Assert() | ast.Raise():
                pass
            case _:
                raise Unreadable(f"this statement ({type(stmt).__name__.lower()}) is not supported", stmt)

    def _class(self, stmt: ast.ClassDef, scope: Environment) -> Value:
        """What a class is whose body has run in `scope`.

        A base, a decorator or a metaclass decides what its members are; those of IntEnum are the integers themselves.
        """
        if any(isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name in _HOOKS for n in ast.walk(stmt)):
            return Class(stmt, scope, "the class has methods that change its members")
        if any(not self._keeps_members(d) for d in stmt.decorator_list):
            return Class(stmt, scope, "a decorator may change it")
        match [self.value(base) for base in stmt.bases if not self._is_object(base)]:
            case _ if stmt.keywords:
                return Class(stmt, scope, "a metaclass or base may change it")
            case []:
                return Class(stmt, scope)
            case [Module(path="enum.IntEnum")] if not any(map(_is_function, stmt.body)):
                kept = {n: int(v) if isinstance(v, int) else Unknown(n) for n, v in scope.names.items()}
                scope.names = kept
                return Class(stmt, scope)
        return Class(stmt, scope, "its base decides what it is")

    def _is_object(self, base: ast.expr) -> bool:
        """Whether a base is the one that all classes have."""
        if not isinstance(base, ast.Name) or base.id != "object":
            return False
        try:
            self.environment.find(base.id)
        except KeyError:
            return True
        return False

    def _keeps_members(self, decorator: ast.expr) -> bool:
        """Whether a decorator of a class leaves the values of its members alone."""
        called = isinstance(decorator, ast.Call)
        value = self.value(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if isinstance(decorator, ast.Call) and any(k.arg in (None, "slots") for k in decorator.keywords):
            return False
        return isinstance(value, Module) and value.path in ("dataclasses.dataclass", *(() if called else _CHECKS))

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
            case ast.Subscript() | ast.Attribute():
                pass
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

    def _with(self, stmt: ast.With) -> None:
        """What is around a block may end it anywhere and go on: `suppress`."""
        before = dict(self.environment.names)
        for item in stmt.items:
            self.value(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, Unknown())
        try:
            self._block(stmt.body)
        except Leaving:
            raise Unreadable("it is not known whether the block is left here", stmt) from None
        self._cut([*stmt.items[1:], *stmt.body], before)

    def _try(self, stmt: ast.Try) -> None:
        """A handler that goes on does so after any part of the body; what is imported is taken to be there."""
        before = dict(self.environment.names)
        going = [h for h in stmt.handlers if not _raises(h)]
        try:
            self._block([*stmt.body, *stmt.orelse])
        except Leaving:
            if going:
                raise Unreadable("it is not known whether the block is left here", stmt) from None
            self._block(stmt.finalbody)
            raise
        after = dict(self.environment.names)
        if going:
            self._cut([*stmt.body, *stmt.orelse], before)
        for handler in stmt.handlers:
            if handler not in going:  # something around may go on after it
                self.environment.names |= {n: Unknown(n, "a handler assigns it") for n in bindings([handler])}
                continue
            if isinstance(handler.body[-1], (ast.Return, ast.Continue, ast.Break)):
                raise Unreadable("it is not known whether the block is left here", stmt)
            if handler.name is not None:
                self.environment.names[handler.name] = Unknown(handler.name, "it is an exception, if anything")
            self._either([], handler.body, stmt)
        self.environment.names |= {n: v for n, v in after.items() if isinstance(v, Module)}
        self._block(stmt.finalbody)

    def _cut(self, code: list[ast.AST], before: dict[str, Value]) -> None:
        """Some code may have ended anywhere: what it binds may have the value from before, or any in between."""
        counts = Counter(bindings(code))
        loops = [n for part in code for n in ast.walk(part) if isinstance(n, (ast.For, ast.AsyncFor, ast.While))]
        several = {*bindings(loops), *(n for n, count in counts.items() if count > 1)}
        names, outer = self.environment.names, self.environment.parent
        for name in counts.keys() & names.keys():
            new = names[name]
            try:
                old = before[name] if name in before or outer is None else outer.find(name)
            except KeyError:  # it is this, or nothing
                old = new if name not in BUILTINS else Unknown(name)
            if name in several:
                names[name] = Unknown(name, "it may have any of several values")
            elif old is not new and not same(old, new):
                names[name] = union(name, old, new)

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
                break
            try:
                for inner in stmt.body:
                    self.execute(inner)
            except _Continue:
                continue
            except _Break:
                return
        for inner in stmt.orelse:
            self.execute(inner)

    # --------------------------------------------------------------------------------------------------- expressions

    def value(self, node: ast.expr) -> Value:
        """The value of an expression; `Unknown` where it cannot be read."""
        try:
            return self.evaluate(node)
        except Unreadable as problem:
            for name in _bound(node):
                self.environment.names[name] = Unknown(name, problem.reason)
            return Unknown("", problem.reason)

    def evaluate(self, node: ast.expr) -> Value:
        if isinstance(node, ast.NamedExpr):
            value = self.evaluate(node.value)
            self.bind(node.target, value)
            self.inside.add(node.target.id)
            return value
        value = super().evaluate(node)
        if isinstance(value, Unknown) and isinstance(value.origin, Changing):  # another one at another time
            return Unknown(value.name, value.reason, object())
        return value

    def perhaps(self, node: ast.expr, reached: Value, test: bool = False) -> Value:
        if reached is True:
            return super().perhaps(node, reached, test)
        known = set(self.inside)
        value = super().perhaps(node, reached, test)
        for name in _bound(node):
            self.environment.names[name] = Unknown(name, "it is assigned inside of an expression")
        self.inside = known
        return value

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
        if is_generator(function.node):
            return Unknown("", f"{function.node.name} is a generator")
        values = bind_arguments(function.node, node, self.value, function.scope.default)
        return call_constant(function, values, self.budget, node)

    # ------------------------------------------------------------------------------------------------ other scopes

    def _imported_all(self, reason: str) -> None:
        """Any name may be another one, but those of modules."""
        names = self.environment.names
        names |= {n: Unknown(n, reason) for n, value in names.items() if not isinstance(value, Module)}

    def _share(self, stmt: ast.stmt) -> None:
        """The names outside of functions and classes that they may assign are not known, whenever they are called."""
        for node in ast.walk(stmt):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                scope: Environment | None = self.environment
                while scope is not None:
                    if (scope.parent is None) == isinstance(node, ast.Global):
                        scope.shared |= {*node.names}
                        scope.names |= {n: Unknown(n, "functions assign it") for n in node.names if n in scope.names}
                    scope = scope.parent

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
    shared = declared_elsewhere(function.node)
    scope = Environment(function.scope.source, function.scope, dict(values), function.node, shared=shared)
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


def is_generator(function: ast.FunctionDef) -> bool:
    """Whether a call of a function runs none of it."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if _is_function(node) or isinstance(node, ast.Lambda):
            continue
        stack += ast.iter_child_nodes(node)
    return False


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def _may_leave(stmt: ast.stmt) -> bool:
    """Whether something in a statement may leave the block that it is in."""
    stack: list[tuple[ast.AST, bool]] = [(stmt, False)]
    while stack:
        node, in_loop = stack.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                continue
            case ast.Return():
                return True
            case ast.Break() | ast.Continue() if not in_loop:
                return True
            case ast.For() | ast.AsyncFor() | ast.While():
                stack += [*((n, True) for n in node.body), *((n, in_loop) for n in node.orelse)]
            case _:
                stack += [(n, in_loop) for n in ast.iter_child_nodes(node)]
    return False


def _raises(handler: ast.ExceptHandler) -> bool:
    """Whether nothing after a handler follows on it."""
    leaving = (ast.Return, ast.Continue, ast.Break)
    return isinstance(handler.body[-1], ast.Raise) and not any(isinstance(n, leaving) for n in ast.walk(handler))


def _load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    raise Unreadable("this assignment is not supported", target)


def _bound(code: ast.AST) -> set[str]:
    """All names that a piece of code may bind."""
    found = set(bound_names([code]))
    for node in ast.walk(code):
        if isinstance(node, ast.stmt):
            found |= assigned_inside(node)
        elif isinstance(node, ast.NamedExpr):
            found.add(node.target.id)
    return found
