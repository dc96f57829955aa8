"""Mending: what is a kernel like without a fault that is known, so that the rest can be proved?

A kernel that leaves signals is continued by the waits that it lacks; a kernel that hangs where a loop makes no trip is
looked at where the loops do; an id that may be out of range is what the executor takes instead.  Nothing that the
original executes is changed, so what holds for the mended kernel holds for every run of the original as far as it goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.diagnose.edits import replace_statements
from fencepost.diagnose.families import Families
from fencepost.model.classes import Classes
from fencepost.model.effects import Channel
from fencepost.model.program import Compiled, compile_kernel
from fencepost.model.shapes import bounds, uses_functions
from fencepost.outcome import Outcome
from fencepost.passes.decisive import Decisive
from fencepost.rewrite import rebuild

_MOST = 4  # waits added per signal, and loops that are told apart


@dataclass(frozen=True, slots=True)
class Mended:
    """The kernel without the fault, and in words what a proof about it holds for."""

    kernel: ir.Kernel
    told: str


def mended(compiled: Compiled, outcome: Outcome) -> Mended | None:
    """The kernel without the hang, leftovers and bad ids of its runs; None if it cannot be mended in these ways."""
    kernel, told = compiled.kernel, []
    if outcome.hung is not None:
        busy = running(compiled, outcome.hung.values)
        if busy is None:
            return None
        kernel, told = busy.kernel, [busy.told]
    wild = [seen.fact for seen in outcome.facts if seen.fact.code == "101"]
    outside = {span for fact in wild for span in (fact.span, *(place.span for place in fact.related))}
    limited = bounded(compiled, kernel, outside)
    if limited != kernel:
        kernel = limited
        told.append("ids outside a tuple taken as 0")
    if outcome.left:
        kept = drained(compiled, kernel, dict(outcome.left))
        if kept is None:
            return None
        kernel = kept
        told.append("whether or not the signals left at the end are awaited")
    return Mended(kernel, "; ".join(told)) if told else None


# ------------------------------------------------------------------------------------------------ leftovers


def drained(compiled: Compiled, kernel: ir.Kernel, left: dict[Channel, int]) -> ir.Kernel | None:
    """The kernel with waits for the signals `left` at its end, in the section of their receiver."""
    families = Families(compiled)
    added: dict[ir.Core, list[ir.Stmt]] = {"cube": [], "vector": []}
    seen: set[Channel] = set()
    for channel, count in left.items():
        if channel in seen:
            continue
        twins = [c for c in left if _alike(c, channel)]
        vector = channel.kind == "cross" or channel.sender.startswith("aiv")
        if count > _MOST or any(left[c] != count for c in twins) or len(twins) != (2 if vector else 1):
            return None
        seen.update(twins)
        receiver = channel.sender if channel.kind == "flag" else channel.receiver
        core: ir.Core = "vector" if receiver.startswith(("aiv", "vector")) else "cube"
        if channel.kind == "flag":
            source, target = channel.pipes
            wait: ir.Stmt = ir.SyncDst(ir.Int(channel.id), source, target)  # type: ignore[arg-type]
        elif channel.kind == "cross":
            pipes = {s.pipe for s in _waits(kernel, core) if channel.id in (families.values(s.id) or {channel.id})}
            if len(pipes) > 1:
                return None
            wait = ir.WaitCross(ir.Int(channel.id), pipes.pop() if pipes else "S")
        else:
            return None
        added[core] += [wait] * count
    more = tuple(ir.Section(core, tuple(body)) for core, body in added.items() if body)
    return replace(kernel, body=(*kernel.body, *more))


def _alike(one: Channel, two: Channel) -> bool:
    """Whether two channels are one signal, seen by different sub-cores."""
    cores = [c.sender.startswith("aiv") for c in (one, two)]
    return (one.kind, one.id, one.pipes) == (two.kind, two.id, two.pipes) and cores[0] == cores[1]


def _waits(kernel: ir.Kernel, core: ir.Core) -> Iterator[ir.WaitCross]:
    for item in kernel.body:
        if not isinstance(item, ir.Section) or item.core == core:
            yield from (n for n in ir.walk(item) if isinstance(n, ir.WaitCross))


# ------------------------------------------------------------------------------------------------ ids out of range


def bounded(compiled: Compiled, kernel: ir.Kernel, outside: set[ir.Span]) -> ir.Kernel:
    """The kernel with the elements of tuples at the places `outside` chosen by cases: 0 where there is no element."""

    def change(node: ir.Node) -> ir.Node:
        if not isinstance(node, ir.Item) or node.span not in outside:
            return node
        chosen: ir.Expr = ir.Int(0, span=node.span)
        for number, element in reversed(list(enumerate(compiled.tuples[node.name]))):
            here = ir.Compare(node.index, (("==", ir.Int(number)),), span=node.span)
            chosen = ir.Choose(here, element, chosen, span=node.span)
        return chosen

    return replace(kernel, body=tuple(rebuild(item, change) for item in kernel.body))  # type: ignore[misc]


# ------------------------------------------------------------------------------------------------ hangs without trips


def running(compiled: Compiled, hung: tuple[int, ...]) -> Mended | None:
    """The kernel where all loops go round that make no trip at the parameter values `hung`.

    None unless every run in which one of these loops makes no trip is the one at `hung`.
    """
    classes = Classes(compiled)
    idle: dict[ir.Expr, list[ir.For]] = {}
    for loop, trips in _loops(compiled):
        if classes.settled(trips) and classes.value(trips, hung) <= 0:
            idle.setdefault(trips, []).append(loop)
    if not 0 < len(idle) <= _MOST or not all(_sure(compiled, trips) for trips in idle):
        return None
    if not all(_constant(compiled, loops) for loops in idle.values()):
        return None
    kernel, told = compiled.kernel, []
    for number, (trips, loops) in enumerate(idle.items()):
        kernel = _positive(kernel, trips, f"trips_{number}")
        told.append(f"the loop in line {loops[0].span.line} goes round")
    return Mended(kernel, f"proved where {' and '.join(told)}; elsewhere all runs are one, which was looked at")


def _loops(compiled: Compiled) -> Iterator[tuple[ir.For, ir.Expr]]:
    """The loops that count from 0, with the expression that says how often they go round."""
    for core in ("cube", "vector"):
        items = [i for i in compiled.kernel.body if not isinstance(i, ir.Section) or i.core == core]
        given: dict[str, list[ir.Expr | None]] = {}
        for node in (n for item in items for n in ir.walk(item)):
            match node:
                case ir.Assign(name=name, value=value):
                    given.setdefault(name, []).append(value)
                case ir.For(var=name) | ir.Pipelined(var=name) | ir.Cursor(name=name) | ir.Bind(name=name):
                    given.setdefault(name, []).append(None)
        for node in (n for item in items for n in ir.walk(item)):
            if isinstance(node, ir.For) and node.start == ir.Int(0) and node.step == ir.Int(1):
                stop = node.stop
                values = given.get(stop.id, []) if isinstance(stop, ir.Name) else []
                yield node, values[0] if len(values) == 1 and values[0] is not None else stop


def _sure(compiled: Compiled, expr: ir.Expr) -> bool:
    """Whether evaluating the expression can never go wrong: no operand of % or // is negative, nor a divisor 0."""
    for node in ir.walk(_plain(compiled, expr)):
        match node:
            case ir.Binary(op="%" | "//", left=left, right=right):
                low, divisor = _least(compiled, left), _least(compiled, right)
                if low is None or low < 0 or divisor is None or divisor < 1:
                    return False
            case ir.Item() | ir.Field():
                return False
    return True


def _plain(compiled: Compiled, expr: ir.Expr) -> ir.Expr:
    """The expression with the kernel's constants written out."""

    def change(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Name) and node.id in compiled.scalars and node.id not in compiled.parameters:
            return _plain(compiled, compiled.scalars[node.id])
        return node

    return rebuild(expr, change)  # type: ignore[return-value]


def _least(compiled: Compiled, expr: ir.Expr) -> int | None:
    """A lower bound of an expression, if one is known."""
    match expr:
        case ir.Int(value=value):
            return value
        case ir.Name(id=name) if name in compiled.parameters:
            return bounds(compiled, name)[0]
        case ir.Name(id=name) if name in compiled.scalars:
            return _least(compiled, compiled.scalars[name])
        case ir.Binary(op="+" | "*" | "//" as op, left=left, right=right):
            a, b = _least(compiled, left), _least(compiled, right)
            if a is None or b is None:
                return None
            if op == "+":
                return a + b
            return (a * b if op == "*" else 0) if a >= 0 and b >= (op == "//") else None
        case ir.Binary(op="-", left=left, right=ir.Int(value=value)):
            a = _least(compiled, left)
            return None if a is None else a - value
        case ir.Call(function="max", arguments=arguments):
            return max((low for a in arguments if (low := _least(compiled, a)) is not None), default=None)
        case ir.Call(function="min", arguments=arguments):
            lows = [_least(compiled, a) for a in arguments]
            known = [low for low in lows if low is not None]
            return min(known) if len(known) == len(lows) else None
    return None


def _constant(compiled: Compiled, idle: Iterable[ir.For]) -> bool:
    """Whether, without the loops `idle`, the kernel does the same for all parameter values."""
    nothing: dict[int, ir.Stmt] = {id(loop): ir.Pass(span=loop.span) for loop in idle}
    kernel = replace_statements(compiled.kernel, nothing)
    while True:
        before = kernel
        kernel = _tidied(compiled, Decisive().run(kernel))
        if kernel == before:
            break
    rest = compile_kernel(kernel)
    return not uses_functions(replace(kernel, assumes=())) and not Classes(rest).any


def _tidied(compiled: Compiled, kernel: ir.Kernel) -> ir.Kernel:
    """The kernel without scalars, cursors and loops that no operation depends on and that cannot go wrong."""
    read = {n.id for item in kernel.body for n in ir.walk(item) if isinstance(n, ir.Name)}
    moved = {n.buffer for item in kernel.body for n in ir.walk(item) if isinstance(n, ir.Cursor) and n.name in read}

    def idle(stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Assign(name=name, value=value):
                return name not in read and _sure(compiled, value)
            case ir.Cursor(name=name, buffer=buffer):
                return name not in read and buffer not in moved
        return isinstance(stmt, ir.Pass)

    def body(stmts: tuple[ir.Stmt, ...]) -> Iterator[ir.Stmt]:
        for stmt in stmts:
            if idle(stmt):
                continue
            if isinstance(stmt, ir.For) and _counts_only(compiled, stmt):
                yield from _counted(stmt)
            else:
                yield stmt

    def change(node: ir.Node) -> ir.Node:
        match node:
            case ir.Section(body=stmts) | ir.For(body=stmts):
                return replace(node, body=tuple(body(stmts)) or (ir.Pass(span=node.span),))
        return node

    return replace(kernel, body=tuple(rebuild(item, change) for item in kernel.body))  # type: ignore[misc]


def _counts_only(compiled: Compiled, loop: ir.For) -> bool:
    """Whether a loop does nothing but assign scalars, and cannot go wrong."""
    values = [s.value for s in loop.body if isinstance(s, ir.Assign)]
    plain = all(isinstance(s, (ir.Assign, ir.Pass)) for s in loop.body)
    return plain and all(_sure(compiled, e) for e in (loop.start, loop.stop, loop.step, *values))


def _counted(loop: ir.For) -> list[ir.Stmt]:
    """What is left of a loop that only assigns scalars: values that nobody may rely on."""
    names = dict.fromkeys(s.name for s in loop.body if isinstance(s, ir.Assign))
    return [ir.Assign(name, ir.Call("after_the_loop", (ir.Int(i),)), span=loop.span) for i, name in enumerate(names)]


def _positive(kernel: ir.Kernel, trips: ir.Expr, name: str) -> ir.Kernel:
    """The kernel with any number above 0 in the place of an expression over parameters."""
    if isinstance(trips, ir.Name) and trips.id in kernel.parameters:
        return replace(kernel, assumes=(*kernel.assumes, _above_zero(trips.id)))
    taken = {n.id for n in ir.walk(kernel) if isinstance(n, ir.Name)} | {*kernel.parameters}
    while name in taken:
        name += "_"
    constant = next((c for c in kernel.constants if isinstance(trips, ir.Name) and c.name == trips.id), None)

    def change(node: ir.Node) -> ir.Node:
        if constant is not None:
            return replace(constant, value=ir.Name(name)) if node == constant else node
        return ir.Name(name) if node == trips else node

    constants = tuple(rebuild(c, change) for c in kernel.constants)
    body = kernel.body if constant is not None else tuple(rebuild(item, change) for item in kernel.body)
    return replace(
        kernel,
        parameters=(*kernel.parameters, name),
        assumes=(*kernel.assumes, _above_zero(name)),
        constants=constants,  # type: ignore[arg-type]
        body=body,  # type: ignore[arg-type]
    )


def _above_zero(name: str) -> ir.Expr:
    return ir.Compare(ir.Name(name), ((">=", ir.Int(1)),))


__all__ = ["Mended", "bounded", "drained", "mended", "running"]
