"""How are numbers of things, and values, written?"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ROW = 4  # values of a function that stand together from this number on


def plural(count: int, word: str) -> str:
    """`1 signal`, `2 signals`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def assignments(pairs: Iterable[tuple[str, int]]) -> str:
    """Values by name as text: ``n = 3, need(0..69) = 0, need(70) = 5``; a row of equal ones stands together."""
    found: list[tuple[str, list[int], int]] = []  # name, the first and last argument, value
    for name, value in pairs:
        match = re.fullmatch(r"(\w+)\((-?\d+)\)", name)
        if match is None:
            found.append((name, [], value))
        elif found and found[-1][1] and found[-1][::2] == (match[1], value) and found[-1][1][1] == int(match[2]) - 1:
            found[-1][1][1] += 1
        else:
            found.append((match[1], [int(match[2])] * 2, value))
    return ", ".join(part for name, ends, value in found for part in _assigned(name, ends, value))


def _assigned(name: str, ends: list[int], value: int) -> list[str]:
    if not ends:
        return [f"{name} = {value}"]
    first, last = ends
    if last - first + 1 < _ROW:
        return [f"{name}({k}) = {value}" for k in range(first, last + 1)]
    return [f"{name}({first}..{last}) = {value}"]
