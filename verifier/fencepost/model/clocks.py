"""Vector clocks: which operations of every pipe is this one ordered after?

A clock holds one number per pipe: how many of its operations are known to be over.
"""

from __future__ import annotations

from typing import TypeAlias

Clock: TypeAlias = list[int]
Stamp: TypeAlias = tuple[int, ...]
"""A clock that no longer changes."""


def join(clock: Clock, other: Stamp | Clock) -> None:
    """Add to `clock` what `other` knows."""
    for pipe, known in enumerate(other):
        if known > clock[pipe]:
            clock[pipe] = known
