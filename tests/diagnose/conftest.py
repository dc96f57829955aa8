"""What do the tests of the diagnosis share: kernels as text, and what the search says about them."""

from __future__ import annotations

import time
from collections.abc import Callable
from textwrap import dedent, indent

import pytest

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.model.program import compile_kernel
from fencepost.search import Outcome, Search


def parsed(text: str) -> ir.Kernel:
    """The one kernel of a text; its indentation does not matter."""
    result = read(dedent(text), "k.kir")
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    return kernel


def started(text: str) -> Search:
    return Search(compile_kernel(parsed(text)), time.monotonic() + 60)


@pytest.fixture
def kernel() -> Callable[[str], ir.Kernel]:
    """Reads one kernel."""
    return parsed


@pytest.fixture
def start() -> Callable[[str], Search]:
    """A search over one kernel that has not run yet."""
    return started


@pytest.fixture
def search() -> Callable[[str], Outcome]:
    """The outcome of a whole search over one kernel."""
    return lambda text: started(text).run()


HAND_OVER = """
kernel hand_over(n):
    assume n >= 0
    READY = (0, 1)
    RELEASE = (2, 3)
    buffer qk[2] in Vec

    section cube:
{cube}

    section vector:
{vector}
"""

CUBE = """
for t in range(n):
    wait_cross_core RELEASE[t % 2] @ FIX
    move qk[t % 2] <- x @ FIX
    set_cross_core READY[t % 2] @ FIX
wait_cross_core RELEASE[0] @ FIX
wait_cross_core RELEASE[1] @ FIX
"""

VECTOR = """
set_cross_core RELEASE[0] @ V
set_cross_core RELEASE[1] @ V
for t in range(n):
    wait_cross_core READY[t % 2] @ V
    exp p <- qk[t % 2] @ V
    set_cross_core RELEASE[t % 2] @ V
"""


@pytest.fixture
def hand_over() -> Callable[..., str]:
    """The two-slot hand-over with credits, with replacements: `hand_over(cube=[(old, new), ...], vector=[...])`."""

    def build(cube: list[tuple[str, str]] | None = None, vector: list[tuple[str, str]] | None = None) -> str:
        sides = []
        for text, changes in ((CUBE, cube or []), (VECTOR, vector or [])):
            for old, new in changes:
                assert old in text, old
                text = text.replace(old, new, 1)
            sides.append(indent(text.strip(), " " * 8))
        return HAND_OVER.format(cube=sides[0], vector=sides[1])

    return build
