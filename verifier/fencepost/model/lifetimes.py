"""Lifetimes: is a popped message used after its slot was freed?

Program order of one agent decides it, since a freed slot may be overwritten at once; no timing is involved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol, TypeVar

from fencepost import ir


class Issued(Protocol):
    """An operation in program order."""

    @property
    def stmt(self) -> ir.Node: ...


Operation = TypeVar("Operation", bound=Issued)


def misused(
    ops: Iterable[Operation], buffers: frozenset[str]
) -> Iterator[tuple[Literal["use-after-free", "freed-twice"], Operation, Operation]]:
    """Yield (kind, operation, the free before it) for every use of a popped value after its free.

    Args:
        ops: what one agent issues, in order.
        buffers: names of buffers; every other name that an operation touches is a private value.
    """
    popped: set[str] = set()
    freed: dict[str, Operation] = {}
    for op in ops:
        match op.stmt:
            case ir.Pop(value=value):
                popped.add(value)
                freed.pop(value, None)
            case ir.Free(value=value):
                if value in freed:
                    yield "freed-twice", op, freed[value]
                elif value in popped:
                    freed[value] = op
            case ir.Push(value=value):
                if value in freed:
                    yield "use-after-free", op, freed[value]
            case ir.DataOp(reads=reads, writes=writes):
                for access in reads:
                    if access.name in freed and access.name not in buffers:
                        yield "use-after-free", op, freed[access.name]
                for access in writes:
                    if access.name not in buffers:
                        popped.discard(access.name)
                        freed.pop(access.name, None)
