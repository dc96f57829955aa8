"""Is this kernel well formed, whatever front end it comes from?

A kernel without mistakes here has a meaning under the execution model, and its text can be read back.  What is wrong
only for some parameter values, or only in relation to another agent, is the business of the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fencepost import ir
from fencepost.findings import InputError
from fencepost.flow import check_agent
from fencepost.scope import Mistake, Names, depth_mistake
from fencepost.spelling import is_name

_ALL: tuple[ir.Core, ...] = ("cube", "vector")


def validate(kernel: ir.Kernel) -> tuple[InputError, ...]:
    """Return every mistake of `kernel` in text order, without excerpts; empty for a well-formed kernel.

    Never raises; never recurses deeper than the nesting limits that it enforces first.
    """
    return tuple(InputError(m.span.file, m.span.line, m.span.column, m.message) for m in mistakes(kernel))


def mistakes(kernel: ir.Kernel, unread: Collection[str] = ()) -> list[Mistake]:
    """As `validate`, with spans.  `unread` holds names in lines that could not be read: nothing is said about them."""
    too_deep = depth_mistake(kernel)
    if too_deep is not None:
        return [too_deep]
    names = Names(kernel)
    found: dict[tuple[ir.Span, str], Mistake] = {}
    for mistake in _all(kernel, names):
        if mistake.about not in unread:
            found.setdefault((mistake.span, mistake.message), mistake)
    return sorted(found.values(), key=lambda m: (m.span.line, m.span.column))


def _all(kernel: ir.Kernel, names: Names) -> Iterator[Mistake]:
    yield from names.mistakes
    yield from _parameters(kernel)
    for condition in kernel.assumes:
        yield from names.static(condition, "an assume")
    for buffer in kernel.buffers:
        yield from _buffer(buffer, names)
    yield from _fifos(kernel, names)
    for ring in kernel.rings:
        yield from _ring(ring, names)
    for core in _ALL:
        yield from check_agent(kernel, core, names)


def _parameters(kernel: ir.Kernel) -> Iterator[Mistake]:
    if not is_name(kernel.name):
        yield Mistake(kernel.span, f"'{kernel.name}' cannot be the name of a kernel")


# ---------------------------------------------------------------------------------------------------- declarations


def _positive(expr: ir.Expr | None, what: str, names: Names) -> Iterator[Mistake]:
    """`expr` may depend on parameters, but if it is a constant it must be at least 1."""
    if expr is None:
        return
    yield from names.static(expr, what)
    value = names.constant(expr)
    if value is not None and value < 1:
        yield Mistake(expr.span, f"{what} must be at least 1, not {value}")


def _buffer(buffer: ir.Buffer, names: Names) -> Iterator[Mistake]:
    name = buffer.name
    yield from _positive(buffer.depth, f"the number of slots of '{name}'", names)
    yield from _positive(buffer.size, f"the size of '{name}'", names)
    yield from _positive(buffer.stride, f"the stride of '{name}'", names)
    yield from _positive(buffer.rows, f"the number of rows of '{name}'", names)
    for address in buffer.addresses or ():
        yield from names.static(address, f"an address of '{name}'")
        value = names.constant(address)
        if value is not None and value < 0:
            yield Mistake(address.span, f"an address of '{name}' is negative: {value}")
    if (buffer.stride is None) != (buffer.rows is None):
        yield Mistake(buffer.span, f"'{name}': stride and rows belong together: 'stride BYTES rows N'")
    elif buffer.stride is not None and buffer.size is None:
        yield Mistake(buffer.span, f"'{name}': a strided buffer needs the size of a row: 'size BYTES'")
    if buffer.shared and buffer.space != "GM":
        yield Mistake(buffer.span, f"'{name}': only GM can be shared between blocks, not {buffer.space}")
    slots = 1 if buffer.depth is None else names.constant(buffer.depth)
    if buffer.addresses is not None and not buffer.addresses:
        yield Mistake(buffer.span, f"'{name}': 'at' needs an address")
    if buffer.addresses and slots is not None:
        given = len(buffer.addresses)
        if given not in (1, slots):
            text = f"'{name}': {_count(slots, 'slot')}, {_count(given, 'address')}; give one per slot, or the first one"
            yield Mistake(buffer.span, text)
        elif given < slots and buffer.size is None:
            yield Mistake(buffer.span, f"'{name}': with one address for {slots} slots give their 'size BYTES' too")
    if buffer.mutex is not None:
        if slots is not None and len(buffer.mutex) != slots:
            given = len(buffer.mutex)
            text = f"'{name}': {_count(slots, 'slot')}, mutex ids for {given}; give one id (or tuple of ids) per slot"
            yield Mistake(buffer.span, text)
        for ids in buffer.mutex:
            for identity in ids:
                yield from names.static(identity, f"a mutex id of '{name}'")


def _count(number: int, noun: str) -> str:
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{number} {noun if number == 1 else plural}"


def _fifos(kernel: ir.Kernel, names: Names) -> Iterator[Mistake]:
    seen: dict[tuple[ir.Core, int], ir.Fifo] = {}
    for fifo in kernel.fifos:
        yield from _positive(fifo.slots, f"the number of slots of fifo '{fifo.name}'", names)
        if names.constant(fifo.slots) is None and not names.uses_unknown(fifo.slots):
            yield Mistake(fifo.slots.span, f"the number of slots of fifo '{fifo.name}' must be a constant")
        if fifo.lanes not in (1, 2):
            yield Mistake(fifo.span, f"fifo '{fifo.name}' has 1 or 2 lanes, not {fifo.lanes}")
        yield from names.static(fifo.id, f"the id of fifo '{fifo.name}'")
        identity = names.constant(fifo.id)
        if identity is None:
            if not names.uses_unknown(fifo.id):
                yield Mistake(fifo.id.span, f"the id of fifo '{fifo.name}' must be a constant")
            continue
        other = seen.setdefault((fifo.sender, identity), fifo)
        if other is not fifo:
            text = f"fifo '{other.name}' (line {other.span.line}) already has this direction and id {identity}"
            yield Mistake(fifo.span, text)


def _ring(ring: ir.Ring, names: Names) -> Iterator[Mistake]:
    yield from _positive(ring.size, f"the size of ring '{ring.name}'", names)
    if not ring.fields:
        yield Mistake(ring.span, f"ring '{ring.name}' has no field")
    seen: set[str] = set()
    for field in ring.fields:
        if not is_name(field):
            yield Mistake(ring.span, f"'{field}' cannot be the name of a field")
        if field in seen:
            yield Mistake(ring.span, f"ring '{ring.name}' declares the field '{field}' twice")
        seen.add(field)
