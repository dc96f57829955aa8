"""What can a name of a TileLang program stand for while its text is read?"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fencepost import ir

Memory: TypeAlias = Literal["global", "shared", "fragment", "barrier"]


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
    """One index, or a stretch that begins there: the same expression means the same elements."""

    start: ir.Expr


@dataclass(frozen=True, slots=True)
class Vague:
    """Some of the dimension."""


Dim: TypeAlias = Full | Part | Place | Vague


@dataclass(frozen=True, slots=True)
class Tensor:
    """A buffer or a parameter.  `shape` is None where it is not known; `scalar`: made by `alloc_var`."""

    name: str
    memory: Memory
    shape: tuple[ir.Expr, ...] | None = None
    scalar: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """Elements of a tensor; `dims` is None for all of them."""

    tensor: Tensor
    dims: tuple[Dim, ...] | None = None

    @property
    def whole(self) -> bool:
        return self.dims is None or all(isinstance(d, Full) for d in self.dims)


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
    """One of several things; which one is not known."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the same text; `scope` is what its free names mean."""

    node: ast.FunctionDef
    scope: dict[str, Value] = field(compare=False, repr=False)
    is_macro: bool = False


@dataclass(frozen=True, slots=True)
class Opaque:
    """Anything else: a data type, a module, an object of the compiler."""

    text: str = ""


Value: TypeAlias = Tensor | Region | Number | Plain | Several | Either | Function | Opaque


# ------------------------------------------------------------------------------------------------ the lowered program


@dataclass(frozen=True, slots=True)
class Op:
    """One operation on regions.

    `barrier`: synchronises and does nothing else.  `uses`: named scalars in its text.  `conditional`: has a branch.
    `tile`: an operation on tiles, of which the compiler takes the targets to be read as well.
    """

    name: str
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    span: ir.Span
    barrier: bool = False
    uses: tuple[str, ...] = ()
    conditional: bool = False
    tile: bool = False


@dataclass(frozen=True, slots=True)
class Let:
    """A scalar with a name of its own in a pipelined loop; `uses` are other such scalars in its text."""

    name: str
    value: Number
    span: ir.Span
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """`arms` are (condition, body); a condition of None is always true (a block)."""

    arms: tuple[tuple[Number | None, tuple[Node, ...]], ...]
    orelse: tuple[Node, ...]
    span: ir.Span
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """A counted loop; `sure`: it runs at least once, as far as the text tells."""

    var: str
    start: ir.Expr
    stop: ir.Expr
    step: ir.Expr
    body: tuple[Node, ...]
    span: ir.Span
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Pipe:
    """A pipelined loop.

    `problems` say which annotations could not be read.  `raw`: the annotations are those of the pass itself.
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


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that could not be read."""

    reason: str
    span: ir.Span


Node: TypeAlias = Op | Let | Branch | Loop | Pipe | Gap
