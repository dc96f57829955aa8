"""Which cells does an access touch?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from fencepost.pipeline.model import Access, At, Loop, Somewhere, Whole
from fencepost.pipeline.setting import Setting

Cell: TypeAlias = tuple[str, int, int]
"""Buffer, version, cell number.  A scalar is a buffer named ``=name``."""

Instance: TypeAlias = tuple[int, int]
"""Statement, iteration."""


def cells(loop: Loop, access: Access, version: int, iteration: int, setting: Setting) -> list[Cell]:
    """The cells that an access touches in one iteration."""
    match access.index:
        case Whole():
            count = loop.buffer[access.buffer].cells
            if count is None:
                raise ValueError(f"{access.buffer} has no end, so it cannot be used as a whole")
            return [(access.buffer, version, n) for n in range(count)]
        case At(cell):
            return [(access.buffer, version, cell(iteration))]
        case Somewhere(expr):
            count = loop.buffer[access.buffer].cells
            place = setting.value(expr, iteration)
            return [(access.buffer, version, place if count is None else place % count)]


def cells_after(loop: Loop, access: Access, used: Iterable[Cell], setting: Setting) -> list[Cell]:
    """The cells that an access touches after the loop; `used` are those that the loop uses, in any version."""
    name = access.buffer
    if isinstance(access.index, Whole) and loop.buffer[name].cells is None:
        return list(dict.fromkeys((name, 0, cell) for buffer, _, cell in used if buffer == name))
    return cells(loop, access, 0, 0, setting)
