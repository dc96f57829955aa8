"""Do the methods together prove what the first of them leaves open?"""

from __future__ import annotations

import pytest

from fencepost.engine import check_kernel
from fencepost.findings import KernelReport, Row, Verdict
from fencepost.options import CheckOptions
from fencepost.reading import parse

TAIL = """\
kernel tail(rows, cols):
    assume rows >= 0
    assume cols >= 0
    FULL = (0, 1)
    FREE = (2, 3)
    buffer tile[2] in Vec
    section cube:
        task = 0
        for r in range({rows}):
            for c in range((cols + 3) // 4):
                wait_cross_core FREE[task % 2] @ FIX
                move tile[task % 2] <- acc @ FIX
                set_cross_core FULL[task % 2] @ FIX
                task = task + 1
        for i in range(2):
            wait_cross_core FREE[i] @ FIX
    section vector:
        task = 0
        for i in range(2):
            set_cross_core FREE[i] @ V
        for r in range({rows}):
            for c in range(cols // 4):
                wait_cross_core FULL[task % 2] @ V
                exp y <- tile[task % 2] @ V
                set_cross_core FREE[task % 2] @ V
                task = task + 1
            if cols % 4 {left}:
                wait_cross_core FULL[task % 2] @ V
                exp y <- tile[task % 2] @ V
                set_cross_core FREE[task % 2] @ V
                task = task + 1
"""

LEFT = """\
kernel left(n, m):
    assume n >= 0
    assume m >= 0
    FULL = (0, 1)
    FREE = (2, 3)
    buffer tile[2] in Vec
    section cube:
        for t in range(n):
            if t {op} m:
                break
            wait_cross_core FREE[t % 2] @ FIX
            move tile[t % 2] <- acc @ FIX
            set_cross_core FULL[t % 2] @ FIX
        for i in range(2):
            wait_cross_core FREE[i] @ FIX
    section vector:
        for i in range(2):
            set_cross_core FREE[i] @ V
        for t in range(min(n, m)):
            wait_cross_core FULL[t % 2] @ V
            exp y <- tile[t % 2] @ V
            set_cross_core FREE[t % 2] @ V
"""


def _check(text: str) -> KernelReport:
    return check_kernel(parse(text), CheckOptions(timeout=30))


@pytest.mark.parametrize("rows", ["1", "rows"])
def test_a_tail_that_the_other_side_rounds_up(rows: str) -> None:
    assert _check(TAIL.format(rows=rows, left="!= 0")).verdict is Verdict.PROVED
    wrong = _check(TAIL.format(rows=rows, left="> 1"))
    assert wrong.verdict is Verdict.REFUTED
    assert {check.row for check in wrong.checks if check.verdict is Verdict.PROVED} <= {Row.PARTICIPANTS}


@pytest.mark.parametrize("op", ["==", ">="])
def test_a_loop_that_is_left_where_the_other_side_takes_the_smaller_bound(op: str) -> None:
    right = _check(LEFT.format(op=op))
    assert right.verdict is Verdict.PROVED
    assert any("of a table" in check.evidence for check in right.checks)
    assert _check(LEFT.format(op=op).replace("t " + op, "t + 1 " + op)).verdict is Verdict.REFUTED


FLAT = """
kernel flat(m, n):
    assume m >= 0
    assume n >= 1
    buffer acc[2] in Acc
    section cube:
        for i in range(m * n):
            k = i % n
            if k == 0:
                if n == 1:
                    matmul acc[(i // n) % 2] <- a, b @ M phase = Final
                else:
                    matmul acc[(i // n) % 2] <- a, b @ M phase = Partial
            elif k == {last}:
                matmul_acc acc[(i // n) % 2] <- acc[(i // n) % 2], a, b @ M phase = Final
            else:
                matmul_acc acc[(i // n) % 2] <- acc[(i // n) % 2], a, b @ M phase = Partial
            if k == n - 1:
                store out <- acc[(i // n) % 2] @ FIX phase = Final
"""


@pytest.mark.parametrize(("last", "verdict"), [("n - 1", Verdict.PROVED), ("n - 2", Verdict.REFUTED)])
def test_a_loop_over_all_pairs_of_two_indices(last: str, verdict: Verdict) -> None:
    assert _check(FLAT.format(last=last)).verdict is verdict
