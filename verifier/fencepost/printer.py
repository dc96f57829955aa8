"""How is a kernel written down?  The one printer of the kernel IR: reading its text back gives the same kernel.

It prints valid kernels (see `fencepost.validate`); nothing here is recursive, so depth does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

from fencepost import ir

INDENT = "    "

# binding strength of the operators, as in Python
_CHOOSE, _OR, _AND, _NOT, _COMPARE, _SUM, _TERM, _UNARY, _ATOM = range(9)
_BINARY = {"+": _SUM, "-": _SUM, "*": _TERM, "//": _TERM, "%": _TERM}


def print_kernels(kernels: Iterable[ir.Kernel]) -> str:
    """The text of several kernels, one blank line between two."""
    return "\n".join(print_kernel(kernel) for kernel in kernels)


def print_kernel(kernel: ir.Kernel, note: Callable[[ir.Node], str] | None = None) -> str:
    """The text of `kernel`, with a line end at its end.

    `note` gives the comment (without ``#``) to put behind a declaration or statement; "" for none.
    """
    lines: list[str] = []

    def line(depth: int, text: str, node: ir.Node) -> None:
        comment = note(node) if note else ""
        lines.append(INDENT * depth + text + (f"  # {comment}" if comment else ""))

    line(0, f"kernel {kernel.name}({', '.join(kernel.parameters)}):", kernel)
    declared = len(lines)
    if kernel.target != "a5":
        lines.append(f"{INDENT}target {kernel.target}")
    if not kernel.auto_mutex:
        lines.append(f"{INDENT}option auto_mutex = off")
    if kernel.credits != "both":
        lines.append(f"{INDENT}option credits = {kernel.credits}")
    for condition in kernel.assumes:
        line(1, f"assume {print_expr(condition)}", condition)
    for constant in kernel.constants:
        line(1, f"{constant.name} = {_constant_value(constant.value)}", constant)
    for buffer in kernel.buffers:
        line(1, _buffer(buffer), buffer)
    for fifo in kernel.fifos:
        line(1, _fifo(fifo), fifo)
    for ring in kernel.rings:
        line(1, f"ring {ring.name}[{print_expr(ring.size)}]({', '.join(ring.fields)})", ring)
    for item in kernel.body:
        if isinstance(item, ir.Section):
            if len(lines) > declared:
                lines.append("")
            line(1, f"section {item.core}:", item)
            _block(item.body, 2, line)
        elif isinstance(item, ir.Assign):
            line(1, f"private {print_statement(item)}", item)
        else:
            _block((item,), 1, line)
    if len(lines) == declared:
        lines.append(f"{INDENT}...")
    return "\n".join(lines) + "\n"


def _block(body: tuple[ir.Stmt, ...], depth: int, line: Callable[[int, str, ir.Node], None]) -> None:
    """Print the statements of a block at `depth`; an empty block is written `...`."""
    stack: list[Iterator[tuple[int, str, ir.Node, tuple[ir.Stmt, ...] | None]]] = [_lines(body, depth, ir.Pass())]
    while stack:
        for at, text, node, inner in stack[-1]:
            line(at, text, node)
            if inner is not None:
                stack.append(_lines(inner, at + 1, node))
                break
        else:
            stack.pop()


def _lines(
    body: tuple[ir.Stmt, ...], depth: int, owner: ir.Node
) -> Iterator[tuple[int, str, ir.Node, tuple[ir.Stmt, ...] | None]]:
    """The lines of a block: depth, text, node, and the block that a header opens."""
    if not body:
        yield depth, "...", owner, None
    for statement in body:
        if isinstance(statement, ir.If):
            word = "if"
            for condition, inner in statement.branches:
                yield depth, f"{word} {print_expr(condition)}:", statement, inner
                word = "elif"
            if statement.orelse:
                yield depth, "else:", statement, statement.orelse
        elif isinstance(statement, ir.For | ir.Pipelined):
            yield depth, print_statement(statement), statement, statement.body
        else:
            yield depth, print_statement(statement), statement, None


def print_statement(statement: ir.Stmt) -> str:
    """One statement on one line; of a compound statement the (first) header."""
    match statement:
        case ir.Assign(name=name, value=value):
            return f"{name} = {print_expr(value)}"
        case ir.StoreField(ring=ring, index=index, field=field, value=value):
            return f"{ring}[{print_expr(index)}].{field} = {print_expr(value)}"
        case ir.Cursor(name=name, buffer=buffer, move=move):
            return f"{name} = {buffer}.{move}()"
        case ir.For():
            return _for(statement)
        case ir.Pipelined():
            return _pipelined(statement)
        case ir.Bind(name=name, value=value):
            return f"bind {name} = {print_expr(value)}"
        case ir.If(branches=branches):
            return f"if {print_expr(branches[0][0])}:"
        case ir.Pass():
            return "pass"
        case ir.Break():
            return "break"
        case ir.Continue():
            return "continue"
        case ir.Assert(condition=condition):
            return f"assert {print_expr(condition)}"
        case ir.SetCross():
            return f"set_cross_core {_cross(statement)}"
        case ir.WaitCross():
            return f"wait_cross_core {_cross(statement)}"
        case ir.SyncSrc(id=id, source=source, target=target):
            return f"sync_src {print_expr(id)}: {source} -> {target}"
        case ir.SyncDst(id=id, source=source, target=target):
            return f"sync_dst {print_expr(id)}: {source} -> {target}"
        case ir.MutexLock(id=id, pipe=pipe):
            return f"mutex_lock {print_expr(id)} @ {pipe}"
        case ir.MutexUnlock(id=id, pipe=pipe):
            return f"mutex_unlock {print_expr(id)} @ {pipe}"
        case ir.Barrier(pipe=pipe):
            return f"barrier {pipe}"
        case ir.SyncAll():
            return "sync_all"
        case ir.DataOp():
            return _data_op(statement)
        case ir.Push(value=value, receiver=receiver):
            return f"tpush_to_{_AGENT[receiver]} {value}{_message(statement)}"
        case ir.Pop(value=value, sender=sender):
            return f"{value} <- tpop_from_{_AGENT[sender]}{_message(statement)}"
        case ir.Free(value=value, sender=sender):
            return f"tfree_to_{_AGENT[sender]} {value}{_message(statement)}"
        case ir.Unsupported(reason=reason):
            return f"unsupported {json.dumps(reason, ensure_ascii=False)}"
        case _:
            assert_never(statement)


_AGENT: dict[ir.Core, str] = {"cube": "aic", "vector": "aiv"}


def _for(loop: ir.For) -> str:
    start, stop, step = print_expr(loop.start), print_expr(loop.stop), print_expr(loop.step)
    if loop.stage is not None:
        return f"for {loop.var} in pipeline({start}, {stop}, {step}, stage = {print_expr(loop.stage)}):"
    bounds = [start, stop, step] if step != "1" else [start, stop] if start != "0" else [stop]
    return f"for {loop.var} in range({', '.join(bounds)}):"


def _pipelined(loop: ir.Pipelined) -> str:
    keys = ""
    for key in ("stage", "order", "async_stages", "async_producers", "async_producer_groups", "replayable"):
        value: tuple[int, ...] | None = getattr(loop, key)
        if value is not None:
            keys += f", {key} = {_tuple(str(number) for number in value)}"
    if loop.num_stages is not None:
        keys += f", num_stages = {loop.num_stages}"
    return f"for {loop.var} in pipelined({print_expr(loop.start)}, {print_expr(loop.stop)}{keys}):"


def _cross(statement: ir.SetCross | ir.WaitCross) -> str:
    text = f"{print_expr(statement.id)} @ {statement.pipe}"
    if statement.mode != "INTRA_BLOCK":
        text += f" mode = {statement.mode}"
    if statement.lane is not None:
        text += f" lane = {print_expr(statement.lane)}"
    return text


def _data_op(op: ir.DataOp) -> str:
    text = f"{op.op} {_operands(op.writes)} <- {_operands(op.reads)} @ {op.pipe}"
    if op.phase is not None:
        text += f" phase = {op.family}Phase.{op.phase}" if op.family is not None else f" phase = {op.phase}"
    if op.lanes != "both":
        text += f" lanes = {op.lanes}"
    if op.task is not None:
        text += f" task = {print_expr(op.task)}"
    if op.at:
        text += f" at ({', '.join(map(print_expr, op.at))})"
    return text + (" offset" if op.offset else "")


def _operands(accesses: tuple[ir.Access, ...]) -> str:
    return ", ".join(print_access(access) for access in accesses) or "()"


def print_access(access: ir.Access) -> str:
    """One operand of a data operation."""
    text = access.name if access.index is None else f"{access.name}[{print_expr(access.index)}]"
    if access.part is not None and access.parts is not None:
        text += f" part {print_expr(access.part)} of {print_expr(access.parts)}"
    return text


def _message(statement: ir.Push | ir.Pop | ir.Free) -> str:
    text = "" if statement.id == ir.Int(0) else f" id = {print_expr(statement.id)}"
    if statement.pipe != "S":
        text += f" @ {statement.pipe}"
    if not isinstance(statement, ir.Free) and statement.task is not None:
        text += f" task = {print_expr(statement.task)}"
    return text


def _constant_value(value: ir.Expr | tuple[ir.Expr, ...]) -> str:
    return _tuple(print_expr(item) for item in value) if isinstance(value, tuple) else print_expr(value)


def _tuple(items: Iterable[str]) -> str:
    """A tuple as in Python: one item takes a comma."""
    texts = list(items)
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _buffer(buffer: ir.Buffer) -> str:
    text = f"buffer {buffer.name}"
    if buffer.depth is not None:
        text += f"[{print_expr(buffer.depth)}]"
    text += f" in {buffer.space}"
    if buffer.addresses is not None:
        text += f" at {', '.join(print_expr(address) for address in buffer.addresses)}"
    if buffer.size is not None:
        text += f" size {print_expr(buffer.size)}"
    if buffer.stride is not None and buffer.rows is not None:
        text += f" stride {print_expr(buffer.stride)} rows {print_expr(buffer.rows)}"
    if buffer.mutex is not None:
        slots = [print_expr(ids[0]) if len(ids) == 1 else _tuple(map(print_expr, ids)) for ids in buffer.mutex]
        text += f" mutex ({', '.join(slots)})"
    return text + (" shared" if buffer.shared else "")


def _fifo(fifo: ir.Fifo) -> str:
    receiver = "vector" if fifo.sender == "cube" else "cube"
    text = f"fifo {fifo.name}: {fifo.sender} -> {receiver}, slots = {print_expr(fifo.slots)}"
    if fifo.id != ir.Int(0):
        text += f", id = {print_expr(fifo.id)}"
    return text + (f", lanes = {fifo.lanes}" if fifo.lanes != 2 else "")


# ---------------------------------------------------------------------------------------------------- expressions


def print_expr(expr: ir.Expr) -> str:
    """The text of an expression, with the parentheses that reading it back needs and no others."""
    out: list[str] = []
    stack: list[str | tuple[ir.Expr, int]] = [(expr, _CHOOSE)]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            out.append(part)
            continue
        node, least = part
        strength, parts = _parts(node)
        if strength < least:
            parts = ["(", *parts, ")"]
        stack.extend(reversed(parts))
    return "".join(out)


def _parts(node: ir.Expr) -> tuple[int, list[str | tuple[ir.Expr, int]]]:
    """The binding strength of `node`, and its text with the operands still to print (node, least strength)."""
    match node:
        case ir.Int(value=value):
            return (_ATOM if value >= 0 else _UNARY), [str(value)]
        case ir.Name(id=id):
            return _ATOM, [id]
        case ir.Item(name=name, index=index):
            return _ATOM, [f"{name}[", (index, _CHOOSE), "]"]
        case ir.Field(ring=ring, index=index, field=field):
            return _ATOM, [f"{ring}[", (index, _CHOOSE), f"].{field}"]
        case ir.Unary(op="-", operand=operand):
            if isinstance(operand, ir.Int) and operand.value >= 0:
                return _UNARY, [f"-({operand.value})"]  # `-5` is the literal
            return _UNARY, ["-", (operand, _UNARY)]
        case ir.Unary(operand=operand):
            return _NOT, ["not ", (operand, _NOT)]
        case ir.Binary(op=op, left=left, right=right):
            strength = _BINARY[op]
            return strength, [(left, strength), f" {op} ", (right, strength + 1)]
        case ir.Compare(first=first, rest=rest):
            parts: list[str | tuple[ir.Expr, int]] = [(first, _SUM)]
            for sign, operand in rest:
                parts += [f" {sign} ", (operand, _SUM)]
            return _COMPARE, parts
        case ir.Logic(op=op, operands=operands):
            strength = _OR if op == "or" else _AND
            return strength, _joined(operands, f" {op} ", strength + 1)
        case ir.Choose(condition=condition, then=then, other=other):
            return _CHOOSE, [(then, _OR), " if ", (condition, _OR), " else ", (other, _CHOOSE)]
        case ir.Call(function=function, arguments=arguments):
            return _ATOM, [f"{function}(", *_joined(arguments, ", ", _CHOOSE), ")"]
        case _:
            assert_never(node)


def _joined(operands: tuple[ir.Expr, ...], sign: str, least: int) -> list[str | tuple[ir.Expr, int]]:
    parts: list[str | tuple[ir.Expr, int]] = []
    for operand in operands:
        if parts:
            parts.append(sign)
        parts.append((operand, least))
    return parts
