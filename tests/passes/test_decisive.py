"""Are scalars that decide nothing taken out, and no others?"""

from __future__ import annotations

from fencepost.frontends.kir import read
from fencepost.passes.decisive import Decisive
from fencepost.printer import print_kernel

TEXT = """kernel k(n):
    IDS = (0, 1)
    buffer b[2] in Vec

    section vector:
        step = 16
        for t in range(n):
            row = t * step
            line = row + 1
            slot = t % 2
            half = row // 2
            last = t + 1
            flag = 1
            load b[slot] <- x @ MTE2 at (row, line)
            load y <- x @ MTE2 at (row % 7)
            if last == n:
                set_cross_core IDS[flag] @ V
"""

AFTER = """kernel k(n):
    IDS = (0, 1)
    buffer b[2] in Vec

    section vector:
        step = 16
        for t in range(n):
            row = t * step
            slot = t % 2
            half = row // 2
            last = t + 1
            flag = 1
            load b[slot] <- x @ MTE2
            load y <- x @ MTE2 at (row % 7)
            if last == n:
                set_cross_core IDS[flag] @ V
"""


def test_what_decides_stays() -> None:
    result = read(TEXT, "k.kir")
    assert not result.errors
    (kernel,) = result.kernels
    assert print_kernel(Decisive().run(kernel)) == AFTER


def test_addresses_only() -> None:
    text = TEXT.replace("            half = row // 2\n", "").replace(" at (row % 7)", " at (row)")
    (kernel,) = read(text, "k.kir").kernels
    after = print_kernel(Decisive().run(kernel))
    assert "row" not in after
    assert "step" not in after
    assert "line" not in after


def test_nothing_to_take_out() -> None:
    text = "kernel k(n):\n    section cube:\n        for t in range(n):\n            barrier M\n"
    (kernel,) = read(text, "k.kir").kernels
    assert Decisive().run(kernel) is kernel
