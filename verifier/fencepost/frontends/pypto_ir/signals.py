"""How do messages, events, flags and barriers read in kernel IR?"""

from __future__ import annotations

import ast

from fencepost import ir
from fencepost.frontends.pypto_ir.context import Context, Message, Pipe
from fencepost.frontends.pypto_ir.expressions import Unreadable
from fencepost.frontends.pypto_ir.operations import FFTS_MODES, MESSAGES, PUSH
from fencepost.frontends.pypto_ir.program import Constant, NotConstant
from fencepost.frontends.pypto_ir.scope import Variable
from fencepost.frontends.pypto_ir.types import Type


def set_up(ctx: Context, op: str, call: ast.Call) -> None:
    """Read a call that issues nothing: only the declaration of rings says something."""
    if not op.endswith("_initialize_pipe"):
        return
    mask = _integer_keyword(ctx, call, "dir_mask", 3)
    identity = _integer_keyword(ctx, call, "id", 0)
    slots = _integer_keyword(ctx, call, "slot_num", None)
    assert mask is not None
    assert identity is not None
    senders: list[ir.Core] = []
    if mask & 1:
        senders.append("cube")
    if mask & 2:
        senders.append("vector")
    ctx.pipes.append(Pipe(tuple(senders), identity, slots, ctx.span(call)))


def receive(ctx: Context, op: str, call: ast.Call, targets: list[ast.Name], given: Type | None) -> None:
    """Read a pop into a name; `given` is the annotation of that name."""
    sender, identity, split = _ring(ctx, op, call)
    span = ctx.span(call)
    if len(targets) > 1:
        raise Unreadable("a pop gives one value", call)
    memory = given.memory if given is not None else "Vec" if ctx.core == "vector" else "Mat"
    if targets:
        variable = ctx.scope.assign(targets[0].id, False, memory)
    else:
        variable = ctx.scope.temporary("popped", False, memory)
    node = ir.Pop(variable.name, sender, ir.Int(identity, span=span), span=span)
    ctx.popped[variable.name] = identity
    ctx.messages.append(Message(sender, identity, split, node))
    ctx.out.append(node)


def send_or_free(ctx: Context, op: str, call: ast.Call, tile: Variable | ir.Expr | None) -> None:
    """Read a push or a free of `tile`; a free without an id means the ring that its tile came from."""
    other, identity, split = _ring(ctx, op, call)
    span = ctx.span(call)
    if not isinstance(tile, Variable) or tile.scalar:
        raise Unreadable(f"'{op}' needs a tile", call.args[0] if call.args else call)
    if op not in PUSH and not any(k.arg == "id" for k in call.keywords):
        identity = ctx.popped.get(tile.name, identity)
    number = ir.Int(identity, span=span)
    node: ir.Push | ir.Free
    if op in PUSH:
        node = ir.Push(tile.name, other, number, span=span)
        ctx.messages.append(Message(ctx.core, identity, split, node))
    else:
        node = ir.Free(tile.name, other, number, span=span)
        given = any(k.arg == "split" for k in call.keywords)
        ctx.messages.append(Message(other, identity, split if given else None, node))
    ctx.out.append(node)


def _ring(ctx: Context, op: str, call: ast.Call) -> tuple[ir.Core, int, int]:
    """The core at the other end, the id and the split of a message operation."""
    other = MESSAGES[op]
    if other == ctx.core:
        raise Unreadable(f"'{op}' in a function of the {ctx.core} core", call)
    identity = _integer_keyword(ctx, call, "id", 0)
    split = _integer_keyword(ctx, call, "split", 0)
    assert identity is not None
    assert split is not None
    return other, identity, split


def synchronise(ctx: Context, op: str, call: ast.Call) -> None:
    """Read an event, flag or barrier."""
    span = ctx.span(call)
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    core_type = keywords.get("core_type")
    if op in ("sync_set", "sync_wait"):
        given = call.args[0] if call.args else keywords.get("event_id")
        if given is None:
            raise Unreadable("an event id is missing", call)
        event = ctx.expressions.integer(given)
        pipe = _pipe_keyword(ctx, call, "pipe")
        mine = "aic" if ctx.core == "cube" else "aiv"
        if core_type is not None and _constant(ctx, core_type) not in (mine, None):
            ctx.unsupported(call, f"'{op}' for the other core kind")
            return
        if op == "sync_wait":
            ctx.out.append(ir.WaitCross(event, pipe, span=span))
            return
        mode = _integer_keyword(ctx, call, "ffts_mode", 2)
        if mode not in FFTS_MODES:
            raise Unreadable("ffts_mode is 0, 1 or 2", call)
        ctx.out.append(ir.SetCross(event, pipe, FFTS_MODES[mode], span=span))
    elif op in ("sync_src", "sync_dst"):
        if "event_id" not in keywords:
            raise Unreadable("'event_id=' is missing", call)
        event = ctx.expressions.integer(keywords["event_id"])
        source, target = _pipe_keyword(ctx, call, "set_pipe"), _pipe_keyword(ctx, call, "wait_pipe")
        ctx.out.append((ir.SyncSrc if op == "sync_src" else ir.SyncDst)(event, source, target, span=span))
    elif op == "syncall":
        kind = _constant(ctx, core_type) if core_type is not None else "mix"
        if kind != "mix":
            ctx.unsupported(call, "a barrier of one core kind (syncall)")
            return
        ctx.out.append(ir.SyncAll(span=span))
    else:
        pipes: dict[str, ir.Pipe] = {"bar_v": "V", "bar_m": "M"}
        ctx.out.append(ir.Barrier(pipes.get(op, "ALL"), span=span))


def _integer_keyword(ctx: Context, call: ast.Call, name: str, default: int | None) -> int | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            try:
                value = ctx.expressions.constant(keyword.value)
            except NotConstant:
                value = ""
            if value is None:
                return default
            if isinstance(value, bool) or not isinstance(value, int):
                raise Unreadable(f"'{name}' must be a constant integer", keyword.value)
            return value
    return default


def _pipe_keyword(ctx: Context, call: ast.Call, name: str) -> ir.Pipe:
    for keyword in call.keywords:
        if keyword.arg == name:
            word = ctx.module.last(keyword.value)
            if word in ir.PIPES:
                return next(p for p in ir.PIPES if p == word)
            raise Unreadable(f"expected a pipe for '{name}': one of {', '.join(ir.PIPES)}", keyword.value)
    raise Unreadable(f"'{name}=' is missing", call)


def _constant(ctx: Context, node: ast.expr) -> Constant:
    try:
        return ctx.expressions.constant(node)
    except NotConstant:
        raise Unreadable("expected a constant", node) from None
