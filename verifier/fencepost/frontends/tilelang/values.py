"""What can a name of a TileLang program stand for while its text is read?"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fencepost import ir

Memory: TypeAlias = Literal["global", "shared", "fragment", "barrier", "value", "untold"]


@dataclass(frozen=True, slots=True)
class Full:
    """All of one dimension."""


@dataclass(frozen=True, slots=True)
class Part:
    """From `low` to before `high`, both constant."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Place:
    """One index, or (`stop` is given) the stretch from `start` to before `stop`: equal expressions, equal elements."""

    start: ir.Expr
    stop: ir.Expr | None = None


@dataclass(frozen=True, slots=True)
class Vague:
    """Some of the dimension."""


Dim: TypeAlias = Full | Part | Place | Vague


@dataclass(frozen=True, slots=True)
class Tensor:
    """A buffer or a parameter.  `shape` is None where it is not known; `scalar`: made by `alloc_var`.

    In the memory "value" is what a `Let` defines: a scalar that never changes.
    """

    name: str
    memory: Memory
    shape: tuple[ir.Expr, ...] | None = None
    scalar: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """Elements of a tensor; `dims` is None for all of them.

    `at` are the elements that are read to know which ones are meant, as in `x[table[i]]`.  `element`: one that is named
    by indices alone.
    """

    tensor: Tensor
    dims: tuple[Dim, ...] | None = None
    at: tuple[Region, ...] = ()
    element: bool = field(default=False, compare=False)

    @property
    def whole(self) -> bool:
        return self.dims is None or all(isinstance(d, Full) for d in self.dims)


UNTOLD = Region(Tensor("untold", "untold"))
"""Some elements of some tensors, of which the text does not tell more: what an object of Python may lead to."""


@dataclass(frozen=True, slots=True)
class Number:
    """An integer (or some other scalar) as an expression.

    `static`: known when the kernel is compiled, so the program never sees it as a variable.  `loads`: the elements
    that its value is read from.
    """

    expr: ir.Expr
    static: bool
    loads: tuple[Region, ...] = ()


@dataclass(frozen=True, slots=True)
class Plain:
    """A Python value: an integer, a string, None, ..."""

    value: object


@dataclass(frozen=True, slots=True)
class Several:
    """A tuple or a list; `changeable`: a list, whose items may be others later."""

    items: tuple[Value, ...]
    changeable: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Either:
    """One of several things; which one is not known, but read from `loads` and told by the scalars `names`."""

    items: tuple[Value, ...]
    loads: tuple[Region, ...] = field(default=(), compare=False)
    names: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the same text; `scope` is what its free names mean.

    `defaults` are the values of its parameters that need not be given.  `home`: the call of the function that it was
    made in, None if that is no part of the kernel.
    """

    node: ast.FunctionDef
    scope: dict[str, Value] = field(compare=False, repr=False)
    is_macro: bool = False
    defaults: dict[str, Value] = field(default_factory=dict, compare=False, repr=False)
    home: int | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """What a name of some `scope` stands for, of which the text does not tell more; equal ones are one value.

    `steady`: it has one value as long as the scope lives.  `bound`: it has a value.  `default`: the one that it has if
    the caller gives none.
    """

    name: str
    scope: int
    steady: bool = True
    bound: bool = True
    default: int | None = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """Anything else: a data type, a module, an object of the compiler.

    `made` stands for what is inside where that may be something else in each round of a loop.
    """

    text: str = ""
    made: Number | None = field(default=None, compare=False)


def deep(regions: Iterable[Region]) -> tuple[Region, ...]:
    """Some regions, and all that is read to know which elements are meant."""
    found: dict[Region, None] = {}
    stack = list(regions)[::-1]
    while stack:
        region = stack.pop()
        if region not in found:
            found[region] = None
            stack += region.at[::-1]
    return tuple(found)


def mentioned(values: Iterable[Value]) -> tuple[str, ...]:
    """The names in the scalars that some values are or hold."""
    found: dict[str, None] = {}
    stack = list(values)[::-1]
    while stack:
        match stack.pop():
            case Number(expr):
                found |= dict.fromkeys(names_of((expr,)))
            case Opaque(_, Number() as made):
                stack.append(made)
            case Several(items):
                stack += items[::-1]
            case Either(items, _, names):
                found |= dict.fromkeys(names)
                stack += items[::-1]
    return tuple(found)


def names_of(exprs: Iterable[ir.Expr | None]) -> tuple[str, ...]:
    """The names in some expressions, without those of values that are read from somewhere: what is read says more."""
    found: dict[str, None] = {}
    stack: list[ir.Node] = list(filter(None, exprs))[::-1]
    while stack:
        match stack.pop():
            case ir.Name(name):
                found[name] = None
            case ir.Call("somewhere"):
                pass
            case node:
                stack += ir.children(node)[::-1]
    return tuple(found)


Value: TypeAlias = Tensor | Region | Number | Plain | Several | Either | Function | Opaque | Unread


# ------------------------------------------------------------------------------------------------ the lowered program


@dataclass(frozen=True, slots=True)
class Op:
    """One operation on regions.

    `reads` and `writes` are its operands.  `others` are elements that it reads besides: to know how often to run, and
    the like.  `barrier`: synchronises and does nothing else.  `conditional`: has a branch.  `tile`: an operation on
    tiles, of which the compiler takes the targets to be read as well.  `names`: those in the scalars that say what it
    does and stores.  `computes`: elements of shared memory, from elements of global memory.
    """

    name: str
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    span: ir.Span
    barrier: bool = False
    conditional: bool = False
    tile: bool = False
    others: tuple[Region, ...] = ()
    names: tuple[str, ...] = ()
    computes: bool = False

    @property
    def besides(self) -> tuple[Region, ...]:
        """All that is read but the operands, what their subscripts read included."""
        subscripts = (r for region in (*self.reads, *self.writes) for r in region.at)
        return deep((*self.others, *subscripts))


@dataclass(frozen=True, slots=True)
class Let:
    """A scalar with a name of its own; `variables` are the loop variables around it."""

    name: str
    value: Number
    span: ir.Span
    variables: tuple[str, ...] = ()

    @property
    def region(self) -> Region:
        """What reads it."""
        return Region(Tensor(self.name, "value"))


@dataclass(frozen=True, slots=True)
class Branch:
    """`arms` are (condition, body); a condition of None is always true (a block)."""

    arms: tuple[tuple[Number | None, tuple[Node, ...]], ...]
    orelse: tuple[Node, ...]
    span: ir.Span


@dataclass(frozen=True, slots=True)
class Loop:
    """A counted loop; `sure`: it runs at least once, as far as the text tells.  Its bounds are read from `loads`."""

    var: str
    start: ir.Expr
    stop: ir.Expr
    step: ir.Expr
    body: tuple[Node, ...]
    span: ir.Span
    sure: bool = True
    loads: tuple[Region, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipe:
    """A pipelined loop.

    `problems` say which annotations could not be read.  `raw`: the annotations are those of the pass itself.  The
    bounds are read from `loads`.
    """

    var: str
    start: ir.Expr
    stop: ir.Expr
    body: tuple[Node, ...]
    span: ir.Span
    notes: dict[str, tuple[int, ...] | int]
    problems: tuple[str, ...] = ()
    sure: bool = True
    raw: bool = False
    loads: tuple[Region, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that could not be read."""

    reason: str
    span: ir.Span


Node: TypeAlias = Op | Let | Branch | Loop | Pipe | Gap
