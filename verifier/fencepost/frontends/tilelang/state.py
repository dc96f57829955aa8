"""What is known while the body of a TileLang kernel is lowered?"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.rebinding import bindings
from fencepost.frontends.tilelang.expressions import Evaluator
from fencepost.frontends.tilelang.names import Names
from fencepost.frontends.tilelang.operations import BARRIERS, MEMORIES, OPERATIONS
from fencepost.frontends.tilelang.values import Function, Gap, Node, Op, Plain, Region, Tensor, Unread, Value, mentioned

_LOOKING = frozenset(
    {"len", "isinstance", "type", "str", "repr", "id", "getattr", "hasattr", "print", "tuple", "list", "dict"}
)
"""Functions of Python that do nothing to their arguments."""

_ACTING = {*OPERATIONS, *BARRIERS, *MEMORIES} - {"assume"}


@dataclass(slots=True)
class State(ABC):
    """`evaluator` holds the scope; `assumed` collects what was taken for granted.

    `calls` the macros that are being put in place; `unrewritten`: the innermost one is a function of Python that the
    compiler does not rewrite, so that its `range` is no loop of the program.  `in_pipeline`: the statements at hand are
    those of a pipeline.

    `choices` counts the branches and loops around the statement at hand, within the function that is put in place;
    `returned`: that function has ended; `result` is what it gave.  `left` is the
    scope with which the last block of its own has ended.  `frames` are the scopes of the functions that have called
    the one that is put in place.  `reached` are the expressions that name the loops which were read, by id.
    """

    source: Source
    evaluator: Evaluator
    assumed: dict[str, None] = field(default_factory=dict)
    depth: int = 0
    calls: tuple[str, ...] = ()
    unrewritten: bool = False
    in_pipeline: bool = False
    choices: int = 0
    returned: bool = False
    result: Value = field(default_factory=lambda: Plain(None))
    left: dict[str, Value] = field(default_factory=dict)
    frames: dict[int, dict[str, Value]] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)

    @property
    def scope(self) -> dict[str, Value]:
        return self.evaluator.scope

    @property
    def names(self) -> Names:
        return self.evaluator.names

    def enter(self, function: ast.FunctionDef) -> None:
        """Begin to put a function in place: it has names of its own, which have no values yet."""
        part = self.names.part
        arguments = (node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg))
        own = {name: Unread(name, -1 - part, bound=False) for name in (*arguments, *bindings(function.body))}
        self.evaluator.scope, self.evaluator.frame = {**self.scope, **own}, part

    @abstractmethod
    def body(self, statements: Iterable[ast.stmt]) -> list[Node]:
        """Lower statements in order; definitions stay in the scope."""

    @abstractmethod
    def is_running(self, expr: ir.Expr) -> bool:
        """Whether a scalar is surely one of the program, and not one that Python computes."""

    @abstractmethod
    def _inlined(self, call: ast.Call, function: Function) -> list[Node]:
        """Put a function of the text in place of a call; `result` is what it returns."""

    def gap(self, node: ast.AST, reason: str) -> Gap:
        return Gap(reason, self.source.span(node))

    def word(self, node: ast.expr) -> str | None:
        """The name of a member of the language."""
        return self.evaluator.called(node)

    def acts(self, node: ast.AST) -> bool:
        """Whether a call does something besides giving a value, or an expression binds a name."""
        if isinstance(node, ast.NamedExpr):
            return True
        if not isinstance(node, ast.Call):
            return False
        if self.word(node.func) in _ACTING:
            return True
        function = self.function(node)
        return function is not None and self._effects(function)

    def is_foreign(self, call: ast.Call) -> bool:
        """Whether a function that the text does not tell gets a buffer as a whole."""
        looking = self.evaluator.builtin(call.func) in _LOOKING
        if self.word(call.func) is not None or self.function(call) is not None or looking:
            return False
        names = [a.id for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Name)]
        found = [self.scope.get(n) for n in names]
        return any(isinstance(f, Tensor) and not f.scalar for f in found)

    def function(self, call: ast.Call) -> Function | None:
        """The function of the same text that is called."""
        found = self.scope.get(call.func.id) if isinstance(call.func, ast.Name) else None
        return found if isinstance(found, Function) else None

    def hidden(self, node: ast.AST) -> bool:
        """Whether something acts inside an expression."""
        return any(self.acts(n) for n in ast.walk(node))

    def _effects(self, function: Function) -> bool:
        """Whether a function holds operations, allocations or stores, itself or through those that it calls."""
        seen: set[int] = set()
        stack = [function]
        while stack:
            one = stack.pop()
            if id(one.node) in seen:
                continue
            seen.add(id(one.node))
            for node in (n for s in one.node.body for n in ast.walk(s)):
                match node:
                    case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Nonlocal() | ast.Global():
                        return True
                    case ast.Call(ast.Name(name)):
                        called = one.scope.get(name, self.scope.get(name))
                        if isinstance(called, Function):
                            stack.append(called)
                    case ast.Call(called_member) if self.word(called_member) in _ACTING:
                        return True
        return False

    def line(self, node: ast.AST) -> int:
        return self.source.span(node).line

    def assume(self, text: str) -> None:
        self.assumed[text] = None

    def operation(self, node: ast.AST, name: str, values: tuple[ast.expr, ...], writes: tuple[Region, ...]) -> Op:
        """An operation that computes from some values."""
        numbers = [self.evaluator.number(v) for v in values]
        found = dict.fromkeys(load for n in numbers for load in n.loads)
        return Op(name, tuple(found), writes, self.source.span(node), names=mentioned(numbers))


def argument_of(call: ast.Call, position: int | None, keyword: str | None) -> ast.expr | None:
    """An argument of a call, by keyword or by position."""
    for given in call.keywords:
        if keyword is not None and given.arg == keyword:
            return given.value
    if position is not None and position < len(call.args):
        argument = call.args[position]
        if not any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
            return argument
    return None
