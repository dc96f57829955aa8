"""How often does Python look for garbage?

Runs and explorations make many objects that stay alive, so looking for garbage among them mostly costs time: a fifth
of the time of a large kernel with Python's usual thresholds.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (50_000, 20, 100)
"""New objects before the youngest are looked at, and looks before those before older ones (Python: 700, 10, 10)."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Garbage is looked for seldom while this lasts; also as a decorator.  The caller's thresholds come back."""
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def never_collected() -> Iterator[None]:
    """Garbage is not looked for while this lasts."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
