"""What can a name of a kernel's source stand for while the kernel is read?

Plain Python values (int, float, bool, str, None, tuple, dict) stand for themselves; everything else is one of the
classes here.  Integers that are known only on the device are `Scalar`s: expressions of the kernel IR.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from fencepost import ir

if TYPE_CHECKING:
    from fencepost.frontends.pypto_pro.environment import Environment

Value: TypeAlias = Any
"""A Python constant, a tuple or dict of values, or one of the classes below."""


class Fixed(tuple[Value, ...]):
    """A tuple of Python, which nothing changes in place; other tuples here may stand for lists."""

    __slots__ = ()


class Unreadable(Exception):
    """A construct that cannot be read; becomes `unsupported` in the IR, at `node`."""

    def __init__(self, reason: str, node: ast.AST) -> None:
        super().__init__(reason)
        self.reason = reason
        self.node = node


@dataclass(frozen=True, slots=True)
class Scalar:
    """An integer known on the device only.  `truth`: the expression is a comparison or a logic operation."""

    expr: ir.Expr
    truth: bool = False


@dataclass(frozen=True, slots=True)
class Opaque:
    """A device value that is no integer expression (a float, say).

    It is named, so that a decision that depends on it becomes an uninterpreted function of `arguments`.  `varies`: it
    differs from time to time in a way that no arguments tell, so nothing can be decided by it.
    """

    name: str
    arguments: tuple[ir.Expr, ...] = ()
    varies: bool = False


@dataclass(frozen=True, slots=True)
class OneOf:
    """A compile-time value that is one of several.

    `name` is what the user calls it; values with one name and one `origin` are the same value.
    """

    values: tuple[Value, ...]
    name: str = ""
    origin: object = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A compile-time value that is not known: an argument of a factory, the result of a foreign function.

    `name` is what the user calls it; values with one name and one `origin` are the same value.  Without a name, nothing
    is known about which other value it equals.
    """

    name: str = ""
    reason: str = "its value is not known here"
    origin: object = None


@dataclass(frozen=True, slots=True)
class Poison:
    """What a name holds after something that could not be read assigned it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Member:
    """An enumeration member of the language: `PipeType.FIX`, `MemorySpace.Vec`, `TensorLayout.NZ`."""

    family: str
    name: str


@dataclass(frozen=True, slots=True)
class DType:
    name: str


@dataclass(frozen=True, slots=True)
class Dynamic:
    """`pl.DYNAMIC` or `pl.STATIC`: a tensor dimension known at launch."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module or namespace by its canonical dotted path; `pl` is the kernel language, `vf` its vector functions."""

    path: str

    @property
    def is_language(self) -> bool:
        """Whether it is the kernel language, or something in it."""
        return self.path.partition(".")[0] in ("pl", "vf")


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A function of the user's module with the scope it was defined in."""

    node: ast.FunctionDef
    scope: Environment
    decorators: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Class:
    """A class of the user's module.  `opaque`: why its members are not what its body assigns, if they may not be."""

    node: ast.ClassDef
    scope: Environment
    opaque: str | None = None


@dataclass(frozen=True, slots=True)
class Decorated:
    """A decorator or other call of the language that is kept as it was written: `pl.jit(...)`."""

    function: Module
    keywords: tuple[tuple[str, Value], ...] = ()
    arguments: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Method:
    """`owner.name`, called next."""

    owner: Value
    name: str


# ------------------------------------------------------------------------------------------------------ device memory


@dataclass(frozen=True, slots=True)
class TileType:
    """Shape, element type and memory space of a tile.  Dimensions are ints or unknown values."""

    shape: tuple[Value, ...]
    dtype: Value
    space: str
    layout: str | None = None
    valid: tuple[Value, ...] | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """A slot of a buffer.  `index` is None for a buffer of one slot.  `partial`: a view of some rows or columns."""

    buffer: str
    index: ir.Expr | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several tiles, picked on the device by the value of `selector` (0, 1, ...)."""

    selector: ir.Expr
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A tile group: a buffer with a cursor.  `cursor` names the scalar that replaces the cursor, if one does."""

    buffer: str
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Tensor:
    """A view of global memory.  `name` is the kernel parameter it belongs to; `view` if it is not that parameter."""

    name: str
    shape: tuple[Value, ...]
    view: bool = False


@dataclass(frozen=True, slots=True)
class Pointer:
    """A raw pointer into the global memory of parameter `name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Record:
    """`pl.make_tuple(...)`: named values, immutable."""

    fields: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Struct:
    """`pl.struct(...)`: a mutable record.  Its fields live in variables (`names`) or small rings (`arrays`)."""

    name: str
    names: tuple[tuple[str, str], ...]
    arrays: tuple[tuple[str, str, int], ...] = ()  # field, ring, length


@dataclass(frozen=True, slots=True)
class Ring:
    """`pl.struct_array(...)`.  `arrays` are the array fields: name, ring that holds them, length."""

    name: str
    size: int
    fields: tuple[str, ...]
    arrays: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RingSlot:
    ring: Ring
    index: ir.Expr


@dataclass(frozen=True, slots=True)
class FieldArray:
    """An array field: elements `offset`.. of a ring with the one field `value`."""

    ring: str
    offset: ir.Expr
    length: int


@dataclass(frozen=True, slots=True)
class TilingData:
    """A tiling dataclass argument of the kernel: its integer fields are kernel parameters."""

    name: str
    fields: tuple[tuple[str, str], ...]  # field, kind: "int", "float", "bool" or "int[4]"


@dataclass(frozen=True, slots=True)
class ParameterArray:
    """An array field of a tiling dataclass: an uninterpreted function of the index."""

    function: str
    length: int


@dataclass(frozen=True, slots=True)
class Pointed:
    """A tile inside a vector function plus an element offset; only its tile matters outside."""

    tile: Value
    offset: Value = field(default=0)


def nodes_in(value: Value) -> Iterator[ir.Node]:
    """Every node of the IR in the expressions that a value refers to."""
    stack = [value]
    while stack:
        current = stack.pop()
        match current:
            case ir.Node():
                yield current
                stack.extend(ir.children(current))
            case Scalar(expr=expr):
                stack.append(expr)
            case tuple():
                stack.extend(current)
            case Tile(index=index) if index is not None:
                stack.append(index)
            case Choice(selector=selector, tiles=tiles):
                stack += [selector, *tiles]
            case Record(fields=fields):
                stack.extend(v for _, v in fields)
            case RingSlot(index=index):
                stack.append(index)
            case FieldArray(offset=offset):
                stack.append(offset)
            case Opaque(arguments=arguments):
                stack.extend(arguments)
            case Tensor(shape=shape):
                stack.extend(shape)


def names_in(value: Value) -> Iterator[str]:
    """Names of IR scalars that a value refers to."""
    return (node.id for node in nodes_in(value) if isinstance(node, ir.Name))


def is_integer(value: Value) -> bool:
    """Whether the value is an integer (or a truth value), known or not."""
    return isinstance(value, (bool, int, Scalar))


Caller: TypeAlias = Callable[[ast.Call], Value]
