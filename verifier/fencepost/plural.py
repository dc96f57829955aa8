"""How is a number of things written?"""

from __future__ import annotations


def plural(count: int, word: str) -> str:
    """`1 signal`, `2 signals`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
