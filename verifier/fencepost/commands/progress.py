"""How far is a run over many files?  A bar on a terminal, nothing when standard error is piped."""

from __future__ import annotations

import sys
from types import TracebackType

_CELLS = 24


class Progress:
    """A context manager that draws `[#####     ] 12/40 file` on standard error."""

    def __init__(self, total: int, quiet: bool = False) -> None:
        self._total = total
        self._done = 0
        self._on = total > 1 and not quiet and sys.stderr.isatty()

    def __enter__(self) -> Progress:
        self._draw("")
        return self

    def step(self, file: str) -> None:
        """One more file is done."""
        self._done += 1
        self._draw(file)

    def _draw(self, file: str) -> None:
        if self._on:
            filled = "#" * (_CELLS * self._done // self._total)
            name = "".join(c if c.isprintable() else "?" for c in file[-40:])
            sys.stderr.write(f"\r\x1b[K[{filled:<{_CELLS}}] {self._done}/{self._total} {name}")
            sys.stderr.flush()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._on:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
