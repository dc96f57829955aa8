"""Which statements of the kernel IR does the body of a kernel become, as one kind of core runs it?

Helpers are inlined: handles go by reference, scalars by value.  What cannot be read becomes `unsupported`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic, expressions
from fencepost.frontends.pypto_pro.arguments import bind_arguments, defaults
from fencepost.frontends.pypto_pro.choices import unpack
from fencepost.frontends.pypto_pro.context import Context, Core, Restart
from fencepost.frontends.pypto_pro.environment import Environment
from fencepost.frontends.pypto_pro.evaluate import bound_names
from fencepost.frontends.pypto_pro.imports import imports
from fencepost.frontends.pypto_pro.interpreter import Budget, call_constant, is_generator
from fencepost.frontends.pypto_pro.loops import Exit, Loops
from fencepost.frontends.pypto_pro.reading import Frame, Names, Valid
from fencepost.frontends.pypto_pro.values import (
    FieldArray,
    Function,
    Module,
    Opaque,
    Poison,
    Scalar,
    Unknown,
    Unreadable,
    Value,
    names_in,
)

_MAX_INLINE = 60
_RESULT = "<result>"


@dataclass(frozen=True, slots=True)
class _Arm:
    """A branch of an `if`: its statements, how they are left, and what holds after them."""

    condition: ir.Expr | None
    out: tuple[ir.Stmt, ...]
    exit: Exit
    names: Names
    valid: Valid


class Lowering(Loops):
    """One reading of a kernel's body."""

    def __init__(
        self, context: Context, scope: Environment, core: Core, written: frozenset[str], budget: Budget
    ) -> None:
        super().__init__(context, scope, core)
        self.written = written
        self.budget = budget
        self.whole: ast.expr | None = None
        self.returning: dict[int, set[int]] = {}
        self.captured: dict[int, tuple[Environment, Frame]] = {}  # scopes of functions of the kernel, by their ids

    def run(self, names: Names) -> tuple[ir.Stmt, ...]:
        """The statements of the kernel for this core."""
        self.frame.names = names
        self.body(self.frame.function.body)
        return tuple(self.out)

    def written_tensors(self) -> frozenset[str]:
        return self.written

    # ------------------------------------------------------------------------------------------------------- statements

    def body(self, body: Sequence[ast.stmt]) -> Exit:
        """Read statements until one leaves the block; says how."""
        for i, stmt in enumerate(body):
            self.context.count()
            try:
                if self._returns(stmt):
                    if isinstance(stmt, ast.With):
                        return self.body([*(stmt.body if self._entered(stmt) else ()), *body[i + 1 :]])
                    if isinstance(stmt, ast.If):
                        return self._returning_if(stmt, body[i + 1 :])
                    if isinstance(stmt, ast.Return) and i == len(body) - 1 and body is self.frame.function.body:
                        return self._tail(stmt)
                exit_ = self.statement(stmt)
            except Unreadable as problem:
                self.unreadable(problem)
                self._poison(stmt, problem)
                exit_ = None
            if exit_ is not None:
                return exit_
        return None

    def _poison(self, stmt: ast.stmt, problem: Unreadable) -> None:
        for name in bound_names([stmt]):
            self.frame.names[name] = Poison(problem.reason)

    def statement(self, stmt: ast.stmt) -> Exit:
        match stmt:
            case ast.Assign():
                self._assign(stmt)
            case ast.AnnAssign():
                if stmt.value is not None:
                    self._bind(stmt.target, self._right(stmt.value, stmt.target), stmt)
            case ast.AugAssign():
                self._augmented(stmt)
            case ast.Expr():
                self._expression(stmt)
            case ast.If():
                return self._if(stmt)
            case ast.For():
                self.loop(stmt)
            case ast.With():
                return self._with(stmt)
            case ast.Return():
                return self._return(stmt)
            case ast.Break() | ast.Continue():
                return self._leave(stmt)
            case ast.Pass():
                pass
            case ast.Import() | ast.ImportFrom():
                self._import(stmt)
            case ast.Assert():
                self._assert(stmt)
            case ast.FunctionDef():
                self._define(stmt)
            case ast.AsyncFunctionDef() | ast.ClassDef():
                problem = Unreadable(f"this statement ({type(stmt).__name__.lower()}) is not supported", stmt)
                self.frame.names[stmt.name] = Poison(problem.reason)
                raise problem
            case ast.While():
                raise Unreadable("a while loop is not supported", stmt)
            case _:
                raise Unreadable(f"this statement ({type(stmt).__name__.lower()}) is not supported", stmt)
        return None

    def _decorators(self, stmt: ast.FunctionDef) -> tuple[Value, ...]:
        found: list[Value] = []
        for decorator in stmt.decorator_list:
            try:
                named = decorator.func if isinstance(decorator, ast.Call) else decorator
                found.append(self.evaluate(named))
            except Unreadable as problem:
                found.append(Unknown("", problem.reason))
        return tuple(found)

    def _import(self, stmt: ast.Import | ast.ImportFrom) -> None:
        """The names of the language, and of the modules whose functions are known, are bound; others hold nothing."""
        for name, value in imports(stmt).items():
            self.frame.names.pop(name, None)
            if value.path.split(".")[0] in ("pl", "vf", "math", "pypto_pro"):
                self.frame.names[name] = value

    def _define(self, stmt: ast.FunctionDef) -> None:
        """A function inside of the kernel: it knows what the names around it hold now."""
        scope = Environment(self.frame.scope.source, self.frame.scope, dict(self.frame.names))
        self.captured[id(scope)] = (scope, self.frame)
        for parameter, node in defaults(stmt).items():
            value = self._argument(node)
            if not self.settled(value):
                value = self.held(("default", self.site(node)), f"{parameter}_default", value, stmt)
            scope.defaults[id(node)] = value
        self.frame.names[stmt.name] = Function(stmt, scope, self._decorators(stmt))

    def _check_captured(self, function: Function, node: ast.Call) -> None:
        """Refuse the call of a function that uses names which have been assigned again since it was defined."""
        own = {
            *bound_names(function.node.body),
            *(a.arg for a in ast.walk(function.node.args) if isinstance(a, ast.arg)),
        }
        used = {n.id for n in ast.walk(function.node) if isinstance(n, ast.Name)} - own - {function.node.name}
        scope: Environment | None = function.scope
        while scope is not None and id(scope) in self.captured:
            now = self.captured[id(scope)][1].names
            for name in sorted(used):
                a, b = scope.names.get(name), now.get(name)
                if (name in now) != (name in scope.names) or type(a) is not type(b) or a != b:
                    raise Unreadable(f"{name} has been assigned since {function.node.name} was defined", node)
            used -= scope.names.keys()
            scope = scope.parent

    def _right(self, node: ast.expr, target: ast.expr) -> Value:
        """The value of an assignment's right side."""
        if isinstance(target, ast.Name):
            self.hint = target.id
            key = self.key(target.id)
            self.direct = None if key in self.context.selectors else (node, key, target.id)
        try:
            return self._whole(node)
        finally:
            self.hint, self.direct = "tile", None

    def _assign(self, stmt: ast.Assign) -> None:
        value = self._right(stmt.value, stmt.targets[0])
        for target, kept in zip(
            stmt.targets, self._apart(stmt.targets, [value] * len(stmt.targets), stmt), strict=True
        ):
            self._bind(target, kept, stmt)

    def _bind(self, target: ast.expr, value: Value, stmt: ast.stmt) -> None:
        match target:
            case ast.Name(id=name):
                if isinstance(value, Unknown) and not value.name and not self.nesting:
                    value = Unknown(name, value.reason, self.site(target))
                self.assign(name, value, stmt)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                if isinstance(value, tuple) and len(value) != len(elts):
                    raise Unreadable(f"{len(value)} values for {len(elts)} names", target)
                for elt, item in zip(elts, self._apart(elts, unpack(value, len(elts)), stmt), strict=True):
                    self._bind(elt, item, stmt)
            case ast.Attribute(value=owner, attr=field):
                self.assign_field(self.evaluate(owner), field, value, target)
            case ast.Subscript(value=owner):
                self._bind_item(self.evaluate(owner), target, value)
            case _:
                raise Unreadable("this assignment is not supported", target)

    def _apart(self, targets: list[ast.expr], values: list[Value], stmt: ast.stmt) -> list[Value]:
        """The values for several targets, kept from being overwritten by the assignments to earlier targets."""
        found: list[Value] = []
        written: set[str] = set()
        fields = False
        for i, (target, value) in enumerate(zip(targets, values, strict=True)):
            if written & set(names_in(value)) or (fields and not arithmetic.constant(value)):
                value = self.held((self.site(target), i), f"{ast.unparse(target)}_next", value, stmt)
            found.append(value)
            if isinstance(target, ast.Name):
                written |= self.own_scalars(self.key(target.id), value)
            else:
                fields = True
        return found

    def _bind_item(self, owner: Value, target: ast.Subscript, value: Value) -> None:
        if isinstance(owner, FieldArray):
            index = self.integer(self.evaluate(target.slice), target.slice)
            span = self.span(target)
            place = expressions.add(owner.offset, index, span)
            self.emit(ir.StoreField(owner.ring, place, "value", self.integer(value, target), span=span))
            return
        if not isinstance(owner, Opaque):
            self.scalar_write(owner, self.indices(target.slice), target)

    def _augmented(self, stmt: ast.AugAssign) -> None:
        target = stmt.target
        load = ast.copy_location(_reading(target), target)
        value = self.binary(stmt.op, self.evaluate(load), self.evaluate(stmt.value), load)
        self._bind(target, value, stmt)

    def _expression(self, stmt: ast.Expr) -> None:
        if isinstance(stmt.value, ast.Constant):
            return
        if not isinstance(stmt.value, ast.Call):
            raise Unreadable("an expression without effect is not supported", stmt)
        self._whole(stmt.value)

    def _assert(self, stmt: ast.Assert) -> None:
        truth = self.test(stmt.test)
        if truth is True:
            return
        condition = truth if not isinstance(truth, bool) else ir.Int(0, span=self.span(stmt.test))
        self.emit(ir.Assert(condition, span=self.span(stmt)))

    def _with(self, stmt: ast.With) -> Exit:
        return self.body(stmt.body) if self._entered(stmt) else None

    def _entered(self, stmt: ast.With) -> bool:
        """Whether this core runs the body of a with statement."""
        if len(stmt.items) != 1:
            raise Unreadable("one section per with statement", stmt)
        context = stmt.items[0].context_expr
        if isinstance(context, ast.Call):
            target = self.evaluate(context.func)
            if isinstance(target, Module) and target.path in ("pl.section_cube", "pl.section_vector"):
                return target.path == f"pl.section_{self.core}"
        raise Unreadable("only pl.section_cube() and pl.section_vector() are understood here", context)

    # --------------------------------------------------------------------------------------------------------- branches

    def _if(self, stmt: ast.If) -> Exit:
        return self._branch(stmt, stmt.body, stmt.orelse)

    def _returning_if(self, stmt: ast.If, rest: Sequence[ast.stmt]) -> Exit:
        """An `if` with a return inside: what follows belongs to the branches that do not return."""
        if self.frame.loops:
            truth = self.test(stmt.test)
            if not isinstance(truth, bool):
                raise Unreadable("a return inside a loop is not supported", stmt)
        body = [*stmt.body] if _leaves(stmt.body) else [*stmt.body, *rest]
        orelse = [*stmt.orelse] if _leaves(stmt.orelse) else [*stmt.orelse, *rest]
        return self._branch(stmt, body, orelse, last=not self.frame.loops)

    def _branch(self, stmt: ast.If, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], last: bool = False) -> Exit:
        """An `if` with its `elif` branches, which follow in `orelse`.  `last`: the function ends with its branches."""
        span = self.span(stmt)
        truth = self.test(stmt.test)
        before, valid = self.frame.names, self.valid
        arms: list[_Arm] = []
        while not isinstance(truth, bool):
            arms.append(self._arm(truth, body, before, valid))
            self.frame.names, self.valid = dict(before), dict(valid)
            match orelse:
                case [ast.If() as inner] if not self._returns(inner):
                    with self.collecting() as effects:
                        truth = self.test(inner.test)
                    if effects:  # they happen only if the earlier tests fail
                        truth, body = True, orelse
                    else:
                        body, orelse = inner.body, inner.orelse
                case _:
                    truth = False
        if not arms:
            return self.body(body if truth else orelse)
        rest = self._arm(None, body if truth else orelse, before, valid)
        branches = tuple((a.condition, a.out) for a in arms if a.condition is not None)
        self.emit(ir.If(branches, rest.out, span=span))
        arms.append(rest)
        self.valid = {k: v for k, v in rest.valid.items() if all(a.valid.get(k) == v for a in arms)}
        if last and any(a.exit == "return" for a in arms) and any(a.exit is None for a in arms):
            results = [a.names.get(_RESULT) if a.exit == "return" else None for a in arms]
            self.frame.names = arms[0].names
            for result in results[1:]:
                results[0] = self.meet(self.key(_RESULT), _RESULT, results[0], result)
            self.frame.names[_RESULT] = results[0]
            return "return"
        going = [a for a in arms if a.exit is None] or [a for a in arms if a.exit == "return"] or arms[-1:]
        self.frame.names = going[0].names
        for arm in going[1:]:
            self.frame.names = self.joined(self.frame.names, arm.names)
        return going[0].exit

    def _arm(self, condition: ir.Expr | None, body: Sequence[ast.stmt], names: Names, valid: Valid) -> _Arm:
        """One branch of an `if`, read from what holds before it."""
        self.frame.names, self.valid = dict(names), dict(valid)
        with self.collecting() as out:
            exit_ = self.body(body)
        return _Arm(condition, tuple(out), exit_, self.frame.names, self.valid)

    def _returns(self, stmt: ast.stmt) -> bool:
        """Whether a return stands somewhere in the statement, outside of nested functions."""
        function = self.frame.function
        if id(function) not in self.returning:
            self.returning[id(function)] = _around_returns(function)
        return id(stmt) in self.returning[id(function)]

    def _leave(self, stmt: ast.Break | ast.Continue) -> Exit:
        if not self.frame.loops:
            raise Unreadable("outside of a loop", stmt)
        loop = self.frame.loops[-1]
        if isinstance(stmt, ast.Break):
            loop.breaks.append(dict(self.frame.names))
            self.emit(ir.Break(span=self.span(stmt)))
            return "break"
        loop.continues.append(dict(self.frame.names))
        self.emit(ir.Continue(span=self.span(stmt)))
        return "continue"

    def _return(self, stmt: ast.Return) -> Exit:
        if self.frame.loops:
            raise Unreadable("a return inside a loop is not supported", stmt)
        value = None if stmt.value is None else self._whole(stmt.value)
        key = self.key(_RESULT)
        self.frame.names[_RESULT] = self.held(key, f"{self.frame.function.name}_result", value, stmt)
        return "return"

    def _tail(self, stmt: ast.Return) -> Exit:
        """A return that ends the function: the only way out of it."""
        self.frame.names[_RESULT] = None if stmt.value is None else self._whole(stmt.value)
        return "return"

    def _whole(self, node: ast.expr) -> Value:
        """The value of an expression that is all that its statement evaluates."""
        self.whole = node
        return self.evaluate(node)

    # -------------------------------------------------------------------------------------------------------- functions

    def call_function(self, function: Function, node: ast.Call) -> Value:
        self._check_captured(function, node)
        if any(self._is_language(d, "vector_function") for d in function.decorators):
            self.vector_function(function, node)
            return None
        if any(self._is_language(d, "simt.function") for d in function.decorators):
            raise Unreadable(f"{function.node.name} is a SIMT function; it is launched, not called", node)
        for decorator in function.decorators:
            if not self._is_language(decorator, None):
                raise Unreadable(f"what {function.node.name} does is changed by a decorator", node)
        if is_generator(function.node):
            raise Unreadable(f"{function.node.name} is a generator", node)
        if len(self.frames) > _MAX_INLINE:
            raise Unreadable("functions call each other too deeply", node)
        if any(f.function is function.node for f in self.frames):
            raise Unreadable(f"{function.node.name} calls itself", node)
        bound = bind_arguments(function.node, node, self._argument, function.scope.default)
        if _is_pure(function, set()):
            constant = self._constant_call(function, bound, node)
            if constant is not None:
                return constant[0]
        return self._inlined(function, bound, node)

    def _argument(self, node: ast.expr) -> Value:
        try:
            return self.evaluate(node)
        except Unreadable as problem:
            self.unreadable(problem)
            return Poison(problem.reason)

    @staticmethod
    def _is_language(decorator: Value, name: str | None) -> bool:
        """Whether a decorator is the language's `name`, or any of its decorators."""
        target = getattr(decorator, "function", decorator)
        return isinstance(target, Module) and (
            target.path.startswith("pl.") if name is None else target.path == f"pl.{name}"
        )

    def _constant_call(self, function: Function, bound: Names, node: ast.Call) -> tuple[Value] | None:
        """The result of a helper that only computes on known values."""
        if not all(arithmetic.constant(v) for v in bound.values()):
            return None
        try:
            value = call_constant(function, bound, self.budget, node)
        except Unreadable:
            return None
        return (value,) if arithmetic.constant(value) else None

    def _changes_record(self, stmt: ir.Stmt) -> bool:
        fields = self.context.record_fields
        return any(
            isinstance(n, ir.StoreField) or (isinstance(n, ir.Assign) and n.name in fields) for n in ir.walk(stmt)
        )

    def _inlined(self, function: Function, bound: Names, node: ast.Call) -> Value:
        caller = self.frame
        frame = Frame(function.node, function.scope, {}, (*caller.via, caller.scope.source.span(node)))
        changed = set(bound_names(function.node.body))
        direct = node is self.whole
        before = len(self.out)
        self.frames.append(frame)
        try:
            for parameter, value in bound.items():
                simple = not isinstance(value, Scalar) or _short(value.expr)
                if parameter in changed or not simple or self.is_shared(value):
                    self.assign(parameter, value, node)
                else:
                    frame.names[parameter] = value
            self.body(function.node.body)
            value = frame.names.get(_RESULT)
        finally:
            self.frames.pop()
        if direct:
            return value
        if any(self._changes_record(stmt) for stmt in self.out[before:]):
            raise Unreadable("a helper that changes a struct is called inside of an expression", node)
        if self.settled(value):
            return value
        return self.held(("result", self.site(node)), f"{function.node.name}_result", value, node)


def read_core(make: Callable[[], Lowering], arguments: Callable[[], Names]) -> tuple[ir.Stmt, ...]:
    """The statements of a kernel for one core, read again for as long as reading it teaches something new."""
    while True:
        try:
            return make().run(arguments())
        except Restart:
            continue


def _short(expr: ir.Expr) -> bool:
    """Whether an argument is short enough to stand for its parameter wherever that is used."""
    match expr:
        case ir.Int() | ir.Name():
            return True
        case ir.Binary(op="+" | "-", left=ir.Name(), right=ir.Int()):
            return True
    return False


def _reading(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
    raise Unreadable("this assignment is not supported", target)


def _around_returns(function: ast.FunctionDef) -> set[int]:
    """The return statements of a function and the statements around them, by their ids."""
    found: set[int] = set()
    stack: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(stmt, ()) for stmt in function.body]
    while stack:
        node, around = stack.pop()
        if isinstance(node, ast.Return):
            found |= {id(node), *(id(n) for n in around)}
        elif isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            inner = (*around, node)
            stack += [(child, inner) for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a block always ends with a return."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, ast.Return)


def _is_pure(function: Function, seen: set[int]) -> bool:
    """Whether a helper only computes: neither it nor the helpers it calls call something for its effect."""
    if id(function.node) in seen:
        return True
    seen.add(id(function.node))
    for node in ast.walk(function.node):
        match node:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Expr() | ast.With() | ast.Call(func=ast.Attribute()) | ast.Global() | ast.Nonlocal():
                return False
            case ast.Call(func=ast.Name(id=name)):
                try:
                    target = function.scope.find(name)
                except KeyError:
                    continue
                if not isinstance(target, Function) or target.decorators or not _is_pure(target, seen):
                    return False
    return True
