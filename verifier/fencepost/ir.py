"""The kernel IR: what is a kernel, as immutable data?

Everything the tool verifies is one `Kernel`.  Front ends build it, passes rewrite it, the model runs it and the
provers reason about it; nothing downstream knows where it came from.  Every node carries a `Span`; spans never take
part in equality, so ``parse(print(kernel)) == kernel``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

# ------------------------------------------------------------------------------------------------ source positions


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source text.

    Lines and columns are 1-based and count characters (not bytes); the end is exclusive.  `via` is the call path
    that led here when a helper function was inlined: the call sites, outermost first.
    """

    file: str = "<unknown>"
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    via: tuple[Span, ...] = ()


NOWHERE = Span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A syntax node; `span` says where it stands in the user's file."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


# ------------------------------------------------------------------------------------------------ vocabulary

Pipe: TypeAlias = Literal["S", "MTE1", "MTE2", "MTE3", "M", "V", "FIX"]
PIPES: tuple[Pipe, ...] = ("S", "MTE1", "MTE2", "MTE3", "M", "V", "FIX")

Space: TypeAlias = Literal["GM", "Mat", "Vec", "Left", "Right", "Acc", "Bias", "Scaling"]
SPACES: tuple[Space, ...] = ("GM", "Mat", "Vec", "Left", "Right", "Acc", "Bias", "Scaling")

Mode: TypeAlias = Literal["INTRA_BLOCK", "UNICAST_BLOCK", "INTER_SUBBLOCK", "INTER_BLOCK"]
MODES: tuple[Mode, ...] = ("INTRA_BLOCK", "UNICAST_BLOCK", "INTER_SUBBLOCK", "INTER_BLOCK")

Core: TypeAlias = Literal["cube", "vector"]
"""The two core kinds.  A message direction is named by its sender."""

# ------------------------------------------------------------------------------------------------ expressions


@dataclass(frozen=True, slots=True)
class Int(Node):
    value: int


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A parameter, constant, loop variable, scalar, or one of the built-in `block` and `sub`."""

    id: str


@dataclass(frozen=True, slots=True)
class Item(Node):
    """`IDS[index]`: an element of a constant tuple; negative indices are out of range."""

    name: str
    index: Expr


@dataclass(frozen=True, slots=True)
class Field(Node):
    """`ring[index].field`: reads one field of a record ring."""

    ring: str
    index: Expr
    field: str


@dataclass(frozen=True, slots=True)
class Unary(Node):
    op: Literal["-", "not"]
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Integer arithmetic; `//` and `%` are Python's floor forms."""

    op: Literal["+", "-", "*", "//", "%"]
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A chained comparison: `first op0 operand0 op1 operand1 ...`."""

    first: Expr
    rest: tuple[tuple[Literal["<", "<=", ">", ">=", "==", "!="], Expr], ...]


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """`and` / `or` over two or more operands, with short-circuit evaluation."""

    op: Literal["and", "or"]
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Choose(Node):
    """`then if condition else other`."""

    condition: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`min(...)`, `max(...)`, or an unknown function: one fixed integer per argument tuple, equal on all agents."""

    function: str
    arguments: tuple[Expr, ...]


Expr: TypeAlias = Int | Name | Item | Field | Unary | Binary | Compare | Logic | Choose | Call

INTERPRETED = ("min", "max")
BUILTINS = ("block", "sub")

# ------------------------------------------------------------------------------------------------ statements


@dataclass(frozen=True, slots=True)
class Access(Node):
    """One operand of a data operation: a slot of a buffer, or (no such buffer) an SSA value.

    `index` is None for a buffer declared without `[DEPTH]` and for SSA values.  `part`/`parts`: only the part-th of
    `parts` disjoint parts of the slot.
    """

    name: str
    index: Expr | None = None
    part: Expr | None = None
    parts: Expr | None = None


@dataclass(frozen=True, slots=True)
class Assign(Node):
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class StoreField(Node):
    """`ring[index].field = value`."""

    ring: str
    index: Expr
    field: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Cursor(Node):
    """`name = buffer.next()` and its kin: the slot number through the buffer's cursor."""

    name: str
    buffer: str
    move: Literal["next", "current", "previous"]


@dataclass(frozen=True, slots=True)
class For(Node):
    """`for var in range(start, stop, step)`.  `stage` is the F of `pipeline(..., stage = F)`, None for `range`."""

    var: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Stmt, ...]
    stage: Expr | None = None


@dataclass(frozen=True, slots=True)
class Pipelined(Node):
    """`for var in pipelined(lo, hi, ...)`: an annotated software pipeline (checks 9xx).

    A field is None where the key is absent.  Which binds are computed again at each use is derived; `replayable`
    (a flag per statement) overrides that.
    """

    var: str
    start: Expr
    stop: Expr
    body: tuple[Stmt, ...]
    stage: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None
    num_stages: int | None = None
    async_stages: tuple[int, ...] | None = None
    async_producers: tuple[int, ...] | None = None
    async_producer_groups: tuple[int, ...] | None = None
    replayable: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Bind(Node):
    """`bind name = value`: a scalar alias in the body of a `Pipelined` loop.

    In the value, and nowhere else, an `Item` may name a buffer: it stands for an element of that slot.
    """

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class If(Node):
    """`if`/`elif` branches in order, then the `else` body (empty: none)."""

    branches: tuple[tuple[Expr, tuple[Stmt, ...]], ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Pass(Node):
    pass


@dataclass(frozen=True, slots=True)
class Break(Node):
    pass


@dataclass(frozen=True, slots=True)
class Continue(Node):
    pass


@dataclass(frozen=True, slots=True)
class Assert(Node):
    condition: Expr


@dataclass(frozen=True, slots=True)
class SetCross(Node):
    """`set_cross_core id @ pipe [mode = M] [lane = 0/1]`; `lane` only on the cube side of UNICAST_BLOCK."""

    id: Expr
    pipe: Pipe
    mode: Mode = "INTRA_BLOCK"
    lane: Expr | None = None


@dataclass(frozen=True, slots=True)
class WaitCross(Node):
    """`wait_cross_core id @ pipe [mode = M] [lane = 0/1]`."""

    id: Expr
    pipe: Pipe
    mode: Mode = "INTRA_BLOCK"
    lane: Expr | None = None


@dataclass(frozen=True, slots=True)
class SyncSrc(Node):
    """`sync_src id: source -> target` sets a binary flag on pipe `source`."""

    id: Expr
    source: Pipe
    target: Pipe


@dataclass(frozen=True, slots=True)
class SyncDst(Node):
    """`sync_dst id: source -> target` blocks pipe `target` until the flag is set, then clears it."""

    id: Expr
    source: Pipe
    target: Pipe


@dataclass(frozen=True, slots=True)
class MutexLock(Node):
    id: Expr
    pipe: Pipe


@dataclass(frozen=True, slots=True)
class MutexUnlock(Node):
    id: Expr
    pipe: Pipe


@dataclass(frozen=True, slots=True)
class Barrier(Node):
    """`barrier PIPE` or `barrier ALL`."""

    pipe: Pipe | Literal["ALL"]


@dataclass(frozen=True, slots=True)
class SyncAll(Node):
    pass


@dataclass(frozen=True, slots=True)
class DataOp(Node):
    """`op writes <- reads @ pipe [phase = P] [lanes = L] [task = T] [offset]`.

    `phase` is "Partial" or "Final"; `family` is "Acc" or "ST" when the text names it (`AccPhase.Final`), else None
    (taken from the operation).  `lanes`: the vector sub-cores that a cube `move` into Vec reaches.  `offset`: the
    operation carries an offset operand (rule 806).  `at`: scalar operands such as the coordinates of a load or store
    (`at (row, 0)`); they tell two executions apart and say nothing about slots.
    """

    op: str
    writes: tuple[Access, ...]
    reads: tuple[Access, ...]
    pipe: Pipe
    phase: Literal["Partial", "Final"] | None = None
    family: Literal["Acc", "ST"] | None = None
    lanes: Literal["both", "0", "1"] = "both"
    task: Expr | None = None
    offset: bool = False
    at: tuple[Expr, ...] = ()

    @property
    def renames(self) -> bool:
        """Whether it only gives a value another name, if neither name is a buffer: a copy without scalar operands."""
        return self.op == "copy" and not self.at and len(self.writes) == len(self.reads) == 1


@dataclass(frozen=True, slots=True)
class Push(Node):
    """`tpush_to_<receiver> value [id = k]`; `receiver` is the peer's core kind."""

    value: str
    receiver: Core
    id: Expr = Int(0)
    pipe: Pipe = "S"
    task: Expr | None = None


@dataclass(frozen=True, slots=True)
class Pop(Node):
    """`value <- tpop_from_<sender> [id = k]`."""

    value: str
    sender: Core
    id: Expr = Int(0)
    pipe: Pipe = "S"
    task: Expr | None = None


@dataclass(frozen=True, slots=True)
class Free(Node):
    """`tfree_to_<sender> value [id = k]` frees the slot of a popped message; `sender` is the core that pushed it."""

    value: str
    sender: Core
    id: Expr = Int(0)
    pipe: Pipe = "S"


@dataclass(frozen=True, slots=True)
class Unsupported(Node):
    """`unsupported "reason"`: a construct that the front end could not read; verdicts that depend on it are unknown."""

    reason: str


Stmt: TypeAlias = (
    Assign
    | StoreField
    | Cursor
    | For
    | Pipelined
    | Bind
    | If
    | Pass
    | Break
    | Continue
    | Assert
    | SetCross
    | WaitCross
    | SyncSrc
    | SyncDst
    | MutexLock
    | MutexUnlock
    | Barrier
    | SyncAll
    | DataOp
    | Push
    | Pop
    | Free
    | Unsupported
)

# ------------------------------------------------------------------------------------------------ declarations


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """`NAME = EXPR` or `NAME = (EXPR, ...)` at kernel level."""

    name: str
    value: Expr | tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Buffer(Node):
    """`buffer name[depth] in space [at a, ...] [size B] [stride B rows N] [mutex (ids)] [shared]`.

    `depth` is None when `[DEPTH]` is omitted (one slot, used without an index).  `addresses` holds one byte address
    per slot, or one for all (slots then follow each other by `size`).  `size` is the byte length of one slot's row
    (of the slot, without `stride`).  `stride`/`rows`: a slot is `rows` runs of `size` bytes, `stride` bytes apart.
    `mutex` holds one tuple of ids per slot; None means no automatic order.
    """

    name: str
    space: Space
    depth: Expr | None = None
    addresses: tuple[Expr, ...] | None = None
    size: Expr | None = None
    stride: Expr | None = None
    rows: Expr | None = None
    mutex: tuple[tuple[Expr, ...], ...] | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Fifo(Node):
    """`fifo name: sender -> receiver, slots = N [, id = k] [, lanes = 1/2]`; `lanes` counts the vector sub-cores."""

    name: str
    sender: Core
    slots: Expr
    id: Expr = Int(0)
    lanes: int = 2


@dataclass(frozen=True, slots=True)
class Ring(Node):
    """`ring name[size](field, ...)`: records of integers, 0 at the start, one copy per agent."""

    name: str
    size: Expr
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section(Node):
    """`section cube:` / `section vector:`: a program of that core kind."""

    core: Core
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Kernel(Node):
    """A whole kernel.  `body` keeps sections and statements outside them in text order."""

    name: str
    parameters: tuple[str, ...] = ()
    target: Literal["a5", "a3", "a2", "gpu"] = "a5"
    auto_mutex: bool = True
    credits: Literal["per_slot", "batched", "both"] = "both"
    assumes: tuple[Expr, ...] = ()
    constants: tuple[Constant, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    fifos: tuple[Fifo, ...] = ()
    rings: tuple[Ring, ...] = ()
    body: tuple[Section | Stmt, ...] = ()


# ------------------------------------------------------------------------------------------------ walking


_FIELDS: dict[type, tuple[str, ...]] = {}
_PLAIN = ("str", "int", "bool", "Literal", "Core", "Pipe", "Mode", "Span")  # how annotations without nodes begin


def parts(node: Node) -> tuple[str, ...]:
    """The names of the fields of `node` that may hold nodes."""
    kind = type(node)
    names = _FIELDS.get(kind)
    if names is None:
        names = tuple(f.name for f in fields(node) if not str(f.type).startswith(_PLAIN))
        _FIELDS[kind] = names
    return names


def children(node: Node) -> list[Node]:
    """Return the direct child nodes of `node` in field order (text order)."""
    found: list[Node] = []
    for name in parts(node):
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif value.__class__ is tuple and value:
            _inside(value, found)
    return found


def _inside(value: tuple[object, ...], found: list[Node]) -> None:
    for item in value:
        if isinstance(item, Node):
            found.append(item)
        elif item.__class__ is tuple:
            _inside(item, found)


def walk(node: Node) -> Iterator[Node]:
    """Yield `node` and everything below it, in text order, without recursion."""
    stack: list[Node] = [node]
    while stack:
        current = stack.pop()
        yield current
        names = _FIELDS.get(current.__class__)
        for name in reversed(parts(current) if names is None else names):
            value = getattr(current, name)
            if value.__class__ is tuple:
                if value:
                    found: list[Node] = []
                    _inside(value, found)
                    found.reverse()
                    stack += found
            elif isinstance(value, Node):
                stack.append(value)
