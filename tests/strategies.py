"""Which kernels could there be?  Hypothesis strategies for random kernels that `fencepost.validate` accepts.

`kernels()` draws every construct of the language, also the rare ones; it makes well-formed kernels, not sensible ones.
`expressions(names)` draws expressions of every kind over given names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from fencepost import ir

# every word that has a meaning somewhere is a name elsewhere
CONTEXTUAL = (
    "task", "phase", "lanes", "lane", "mode", "id", "slots", "size", "at", "stage", "part", "of", "offset", "rows",
    "stride", "mutex", "shared", "range", "pipeline", "pipelined", "ring", "buffer", "fifo", "target", "option", "cube",
    "vector", "order", "kernel", "section", "assume", "bind", "private", "barrier", "sync_all", "unsupported", "next",
    "V", "M", "S", "ALL", "Vec", "GM", "tpop_from_aiv", "set_cross_core", "on", "off", "both", "Partial", "num_stages",
)  # fmt: skip
PLAIN = ("n", "k", "t", "x1", "acc", "_", "größe", "名", "iff", "forty", "In", "x" * 60)
OPERATIONS = ("move", "matmul", "softmax", "store", "part", "offset", "task", "private", "kernel", "at", "größe")

FUNCTIONS = ("need", "kv_len", "min", "max")

Draw = Callable[[st.SearchStrategy[Any]], Any]


def expressions(names: Iterable[str], context: Context | None = None, depth: int = 3) -> st.SearchStrategy[ir.Expr]:
    """Expressions over the integers `names` with up to 2 ** depth leaves; `context` adds its tuples and rings."""
    names = tuple(sorted(names))
    if context is None:
        return _expressions(names, (), (), FUNCTIONS, depth)
    fields = tuple((ring, name) for ring, fields in sorted(context.rings.items()) for name in fields)
    functions = tuple(word for word in FUNCTIONS if word not in context.taken)
    return _expressions(names, tuple(sorted(context.tuples)), fields, functions, depth)


@functools.lru_cache(maxsize=2000)
def _expressions(
    names: tuple[str, ...],
    tuples: tuple[str, ...],
    fields: tuple[tuple[str, str], ...],
    functions: tuple[str, ...],
    depth: int,
) -> st.SearchStrategy[ir.Expr]:
    found: st.SearchStrategy[ir.Expr] = st.integers(-3, 20).map(ir.Int)
    if depth == 3:
        found |= st.integers(-(2**64) + 1, 2**64 - 1).map(ir.Int)
    if names:
        found |= st.sampled_from(names).map(ir.Name)
    if depth == 0:
        return found
    inner = _expressions(names, tuples, fields, functions, depth - 1)
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    found |= (
        st.builds(ir.Unary, st.sampled_from(["-", "not"]), inner)
        | st.builds(ir.Binary, st.sampled_from(["+", "-", "*", "//", "%"]), inner, inner)
        | st.builds(ir.Compare, inner, st.lists(st.tuples(signs, inner), min_size=1, max_size=2).map(tuple))
        | st.builds(ir.Logic, st.sampled_from(["and", "or"]), several)
        | st.builds(ir.Choose, inner, inner, inner)
        | st.builds(ir.Call, st.sampled_from(functions), st.lists(inner, min_size=1, max_size=3).map(tuple))
    )
    if tuples:
        found |= st.builds(ir.Item, st.sampled_from(tuples), inner)
    if fields:
        found |= st.builds(lambda field, index: ir.Field(field[0], index, field[1]), st.sampled_from(fields), inner)
    return found


@dataclass
class Context:
    """What is declared, and what has a value at the place where the next statement is drawn."""

    taken: set[str] = field(default_factory=set)
    integers: list[str] = field(default_factory=list)
    tuples: set[str] = field(default_factory=set)
    rings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    buffers: dict[str, ir.Buffer] = field(default_factory=dict)
    fifos: list[ir.Fifo] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    loop_variables: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    core: ir.Core | None = None
    known: frozenset[str] = frozenset()
    loops: tuple[tuple[str, str], ...] = ()
    popped: frozenset[str] = frozenset()
    deep: int = 0

    def expr(self, depth: int = 2) -> st.SearchStrategy[ir.Expr]:
        names = [*self.integers, *sorted(self.known), "block", *(["sub"] if self.core == "vector" else [])]
        return expressions(names, self, depth)


def names() -> st.SearchStrategy[list[str]]:
    """Different names; which come first is random."""
    every = [*PLAIN, *CONTEXTUAL]
    return st.integers(0, len(every) - 1).map(lambda first: [*every[first:], *every[:first]][::-1])


@st.composite
def kernels(draw: Draw, statements: int = 4) -> ir.Kernel:
    """Well-formed kernels with any construct; about `statements` statements per block at most."""
    pool = list(draw(names()))

    def fresh(count: int) -> list[str]:
        return [pool.pop() for _ in range(count)]

    few = st.integers(0, 3)
    context = Context()
    parameters = fresh(draw(few))
    context.integers = list(parameters)
    context.taken = set(parameters)
    static = Context(integers=context.integers, tuples=context.tuples, taken=context.taken)
    constants: list[ir.Constant] = []
    for name in fresh(draw(few)):
        value: Any = draw(small(static) | st.lists(small(static), min_size=1, max_size=3).map(tuple))
        constants.append(ir.Constant(name, value))
        (context.tuples.add if isinstance(value, tuple) else context.integers.append)(name)
        context.taken.add(name)
    assumes = tuple(draw(st.lists(static.expr(3), max_size=2)))
    buffers = tuple(draw(buffer(static, name)) for name in fresh(draw(few)))
    context.buffers = {b.name: b for b in buffers}
    ids = st.lists(st.tuples(st.sampled_from(["cube", "vector"]), st.integers(0, 3)), unique=True, max_size=3)
    fifos = tuple(
        ir.Fifo(fresh(1)[0], sender, ir.Int(draw(st.integers(1, 9))), ir.Int(number), draw(st.sampled_from([1, 2])))
        for sender, number in draw(ids)
    )
    context.fifos = list(fifos)
    rings = tuple(
        ir.Ring(name, ir.Int(draw(st.integers(1, 8))), tuple(draw(names())[: draw(st.integers(1, 3))]))
        for name in fresh(draw(st.integers(0, 2)))
    )
    context.rings = {r.name: r.fields for r in rings}
    context.taken |= {d.name for d in (*buffers, *fifos, *rings)}
    context.scalars, context.loop_variables, context.values = fresh(3), fresh(4), fresh(4)
    context.taken |= {*context.scalars, *context.loop_variables}
    body: list[ir.Section | ir.Stmt] = []
    known: dict[ir.Core, frozenset[str]] = {"cube": frozenset(), "vector": frozenset()}
    for core in draw(st.lists(st.sampled_from(["cube", "vector", None]), max_size=4)):
        if core is None:
            context.core, context.known = None, known["cube"] & known["vector"]
            before = context.known
            body.extend(draw(block(context, 1)))
            known = {c: (known[c] | context.known) - (before - context.known) for c in known}
        else:
            context.core, context.known = core, known[core]
            body.append(ir.Section(core, draw(block(context, statements))))
            known[core] = context.known
        context.popped = frozenset()
    return ir.Kernel(
        fresh(1)[0],
        tuple(parameters),
        draw(st.sampled_from(["a5", "a3", "a2"])),
        draw(st.booleans()),
        draw(st.sampled_from(["per_slot", "batched", "both"])),
        assumes,
        tuple(constants),
        buffers,
        fifos,
        rings,
        tuple(body),
    )


def small(context: Context) -> st.SearchStrategy[ir.Expr]:
    """Values of constants: those that cannot leave the 64 bits."""
    leaves = st.builds(ir.Int, st.integers(-5, 100))
    if context.integers:
        leaves |= st.builds(ir.Name, st.sampled_from(sorted(context.integers)))
    return leaves | st.builds(ir.Binary, st.just("%"), leaves, st.builds(ir.Int, st.integers(1, 9)))


@st.composite
def buffer(draw: Draw, context: Context, name: str) -> ir.Buffer:
    """A buffer, with or without slots, addresses, a strided region and mutex ids."""
    depth = draw(st.none() | st.integers(1, 3))
    space = draw(st.sampled_from(ir.SPACES))
    size = draw(st.none() | st.integers(1, 4096).map(ir.Int))
    strided = size is not None and draw(st.booleans())
    slots = depth or 1
    addresses = None
    if draw(st.booleans()):
        count = 1 if size is not None and draw(st.booleans()) else slots
        addresses = tuple(ir.Int(draw(st.integers(0, 2**20))) for _ in range(count))
    identity = st.integers(0, 31).map(ir.Int)
    mutex = st.lists(st.lists(identity, max_size=2).map(tuple), min_size=slots, max_size=slots).map(tuple)
    return ir.Buffer(
        name,
        space,
        None if depth is None else ir.Int(depth),
        addresses,
        size,
        ir.Int(draw(st.integers(1, 512))) if strided else None,
        ir.Int(draw(st.integers(1, 16))) if strided else None,
        draw(st.none() | mutex),
        space == "GM" and draw(st.booleans()),
    )


@st.composite
def block(draw: Draw, context: Context, statements: int) -> tuple[ir.Stmt, ...]:
    """A block of statements; `context.known` and `context.popped` are those behind it afterwards."""
    found: list[ir.Stmt] = []
    for _ in range(draw(st.integers(0, statements))):
        statement = draw(statement_(context, statements))
        found.append(statement)
        if isinstance(statement, ir.Break | ir.Continue):
            break
    return tuple(found)


@st.composite
def statement_(draw: Draw, context: Context, statements: int) -> ir.Stmt:
    """One statement that may stand where `context` is."""
    kinds: list[Callable[[Draw, Context, int], ir.Stmt]] = [assign, simple, signal, flag, data, data]
    if context.core is not None and any(True for _ in context.fifos):
        kinds += [message]
    if context.deep < 3:
        kinds += [loop, branch]
    if context.loops and context.loops[-1][0] == "range":
        kinds += [lambda *_: draw(st.sampled_from([ir.Break(), ir.Continue()]))]
    if context.loops and context.loops[-1] == ("pipelined", str(context.deep)):
        kinds += [bind, bind]
    return draw(st.sampled_from(kinds))(draw, context, statements)


def assign(draw: Draw, context: Context, _: int) -> ir.Stmt:
    deep = [b.name for b in context.buffers.values() if b.depth is not None]
    kinds = ["scalar", "scalar", *(["cursor"] if deep else []), *(["field"] if context.rings else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "field":
        ring = draw(st.sampled_from(sorted(context.rings)))
        return ir.StoreField(
            ring, draw(context.expr(1)), draw(st.sampled_from(context.rings[ring])), draw(context.expr())
        )
    name = draw(st.sampled_from(context.scalars))
    value = draw(context.expr())
    context.known |= {name}
    if kind == "cursor":
        return ir.Cursor(name, draw(st.sampled_from(deep)), draw(st.sampled_from(["next", "current", "previous"])))
    return ir.Assign(name, value)


def bind(draw: Draw, context: Context, _: int) -> ir.Stmt:
    name, value = draw(st.sampled_from(context.scalars)), draw(context.expr())
    context.known |= {name}
    return ir.Bind(name, value)


def simple(draw: Draw, context: Context, _: int) -> ir.Stmt:
    pipe: Any = draw(st.sampled_from([*ir.PIPES, "ALL"]))
    reason, condition = draw(st.text(max_size=8)), draw(context.expr())
    made: list[ir.Stmt] = [
        ir.Pass(), ir.SyncAll(), ir.Barrier(pipe), ir.Unsupported(reason), ir.Assert(condition)
    ]  # fmt: skip
    return draw(st.sampled_from(made))


def signal(draw: Draw, context: Context, _: int) -> ir.Stmt:
    mode = draw(st.sampled_from(ir.MODES))
    lane = None
    if context.core == "cube" and mode == "UNICAST_BLOCK":
        lane = draw(st.none() | st.integers(0, 1).map(ir.Int))
    kind = draw(st.sampled_from([ir.SetCross, ir.WaitCross]))
    made: ir.Stmt = kind(draw(context.expr()), draw(st.sampled_from(ir.PIPES)), mode, lane)
    return made


def flag(draw: Draw, context: Context, _: int) -> ir.Stmt:
    identity, pipe, other = draw(context.expr()), draw(st.sampled_from(ir.PIPES)), draw(st.sampled_from(ir.PIPES))
    if draw(st.booleans()):
        pair: ir.Stmt = draw(st.sampled_from([ir.SyncSrc, ir.SyncDst]))(identity, pipe, other)
        return pair
    lock: ir.Stmt = draw(st.sampled_from([ir.MutexLock, ir.MutexUnlock]))(identity, pipe)
    return lock


def data(draw: Draw, context: Context, _: int) -> ir.Stmt:
    def access(written: bool) -> ir.Access:
        inputs = [word for word in ("q", "input", "slots") if word not in context.taken]
        name = draw(st.sampled_from([*context.buffers, *context.values, *([] if written else inputs)]))
        declared = context.buffers.get(name)
        if declared is None:
            return ir.Access(name)
        index = draw(context.expr()) if declared.depth is not None else None
        if draw(st.integers(0, 4)):
            return ir.Access(name, index)
        return ir.Access(name, index, draw(context.expr(1)), ir.Int(draw(st.integers(1, 4))))

    writes = tuple(access(True) for _ in range(draw(st.integers(0, 2))))
    reads = tuple(access(False) for _ in range(draw(st.integers(0, 3))))
    phase = draw(st.sampled_from([None, None, "Partial", "Final"]))
    vec = any(a.name in context.buffers and context.buffers[a.name].space == "Vec" for a in writes)
    return ir.DataOp(
        draw(st.sampled_from(OPERATIONS)),
        writes,
        reads,
        draw(st.sampled_from(ir.PIPES)),
        phase,
        draw(st.sampled_from([None, "Acc", "ST"])) if phase else None,
        draw(st.sampled_from(["both", "0", "1"])) if vec and context.core == "cube" else "both",
        draw(st.none() | context.expr()),
        draw(st.booleans()),
        tuple(draw(st.lists(context.expr(1), max_size=2))),
    )


def message(draw: Draw, context: Context, _: int) -> ir.Stmt:
    ring = draw(st.sampled_from(context.fifos))
    peer: ir.Core = "vector" if context.core == "cube" else "cube"
    value, pipe = draw(st.sampled_from(context.values)), draw(st.sampled_from(ir.PIPES))
    task = draw(st.none() | context.expr())
    if ring.sender == context.core:
        return ir.Push(value, peer, ring.id, pipe, task)
    if context.popped and draw(st.booleans()):
        return ir.Free(draw(st.sampled_from(sorted(context.popped))), peer, ring.id, pipe)
    context.popped |= {value}
    return ir.Pop(value, peer, ring.id, pipe, task)


def loop(draw: Draw, context: Context, statements: int) -> ir.Stmt:
    variable = context.loop_variables[context.deep]
    start, stop = draw(context.expr(1)), draw(context.expr(1))
    kind = draw(st.sampled_from(["range", "range", "pipeline", "pipelined"]))
    known, loops = context.known, context.loops
    context.known |= {variable}
    context.deep += 1
    context.loops = (*loops, (kind, str(context.deep)))
    body = draw(block(context, statements - 1))
    context.deep -= 1
    context.known, context.loops = known, loops
    if kind == "pipelined":
        numbers = st.none() | st.lists(st.integers(-2, 5), max_size=3).map(tuple)
        depth = draw(st.none() | st.integers(0, 4))
        lists = [draw(numbers) for _ in range(5)]
        return ir.Pipelined(variable, start, stop, body, *lists[:2], depth, *lists[2:])
    step = ir.Int(draw(st.sampled_from([1, 1, 2, -1, -3])))
    return ir.For(variable, start, stop, step, body, ir.Int(draw(st.integers(1, 4))) if kind == "pipeline" else None)


def branch(draw: Draw, context: Context, statements: int) -> ir.Stmt:
    known, after = context.known, []
    branches: list[tuple[ir.Expr, tuple[ir.Stmt, ...]]] = []
    context.deep += 1
    for _ in range(draw(st.integers(1, 3))):
        context.known = known
        branches.append((draw(context.expr()), draw(block(context, statements - 1))))
        after.append(context.known)
    context.known = known
    orelse = draw(st.just(()) | block(context, statements - 1))
    after.append(context.known)
    context.deep -= 1
    context.known = frozenset.intersection(*after)
    return ir.If(tuple(branches), orelse)
