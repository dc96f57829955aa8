"""What do the parts of the reader of one function share?"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.frontends.pypto_ir.expressions import Expressions
from fencepost.frontends.pypto_ir.program import Function, Module
from fencepost.frontends.pypto_ir.scope import NewNames, Scope
from fencepost.frontends.pypto_pro.source import Source

WHILE_LIMIT = "while_limit"
"""The parameter that limits the iterations of while loops."""


@dataclass(slots=True)
class Shared:
    """What the functions of one kernel have in common."""

    names: NewNames
    parameters: dict[str, str] = field(default_factory=dict)
    assumptions: list[str] = field(default_factory=list)
    inputs: set[str] = field(default_factory=set)
    """Tensors of the group's parameter list, by their IR name."""
    written: set[str] = field(default_factory=set)
    """Those of them that some function of the kernel may write."""

    def parameter(self, wanted: str, why: str) -> str:
        """The kernel parameter that stands for something the text does not say."""
        if wanted not in self.parameters:
            self.parameters[wanted] = self.names.declare(wanted)
            self.assume(why)
        return self.parameters[wanted]

    def assume(self, sentence: str) -> None:
        if sentence not in self.assumptions:
            self.assumptions.append(sentence)


@dataclass(frozen=True, slots=True)
class Message:
    """One push, pop or free as written: its ring, and its split code (None: not given; 0: no split)."""

    sender: ir.Core
    id: int
    split: int | None
    node: ir.Push | ir.Pop | ir.Free


@dataclass(frozen=True, slots=True)
class Pipe:
    """One `initialize_pipe` call: directions as senders, id, and slots (None: not given)."""

    senders: tuple[ir.Core, ...]
    id: int
    slots: int | None
    span: ir.Span


@dataclass(slots=True)
class Context:
    """The state of reading one function.

    `out` receives the statements of the block that is being read.  `loops` are the variables of the loops around it.
    """

    source: Source
    module: Module
    function: Function
    core: ir.Core
    scope: Scope
    shared: Shared
    out: list[ir.Stmt] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    pipes: list[Pipe] = field(default_factory=list)
    popped: dict[str, int] = field(default_factory=dict)
    """The pipe id of the message that a name holds."""
    expressions: Expressions = field(init=False)

    def start(self, scalar_call: Callable[[ast.Call], ir.Expr]) -> None:
        """Make `expressions`; `scalar_call` reads a call that is no arithmetic."""
        self.expressions = Expressions(self.source, self.module, self.scope, self._outside, scalar_call)
        self.expressions.assigned = _assigned(self.function.node)

    def span(self, node: ast.AST) -> ir.Span:
        """Where a node of the text stands."""
        return self.source.span(node)

    def unsupported(self, node: ast.AST, what: str) -> None:
        """Something that has no counterpart in kernel IR: nothing that depends on it can be claimed."""
        self.out.append(ir.Unsupported(f"{what} in '{self.function.name}'", span=self.span(node)))

    def _outside(self, name: str, node: ast.AST) -> str:
        """A name that neither the function nor a constant of the text gives a meaning."""
        why = f"{name} is not known from the text: any value"
        if name in self.module.dynamic:
            why = f"{name} is a dynamic size: any value"
        return self.shared.parameter(name, why)


def _assigned(function: ast.FunctionDef) -> frozenset[str]:
    """The names that assignments of a function bind: nowhere in it do they mean a name of the text around it."""
    targets: list[ast.expr] = []
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=given):
                targets += given
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
                targets.append(target)
            case _:
                pass
    return frozenset(n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and _stored(n))


def _stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)
