"""Mutex ids of a declaration that the target has not: no proof method overlooks them."""

from __future__ import annotations

import time

import pytest

from fencepost.engine import check_kernel
from fencepost.findings import Row, Verdict
from fencepost.model.program import compile_kernel
from fencepost.options import CheckOptions
from fencepost.prove import closed_form
from fencepost.prove.explore import explore
from fencepost.prover import prepared
from fencepost.reading import parse

KERNEL = """\
kernel k(n, m):
    assume n >= 0
    assume 0 <= m <= 100
    buffer x[2] in Vec mutex {ids}
    section vector:
        for i in range(n):
            if m < 2:
                load x[{slot}] <- g @ MTE2
                add x[{slot}] <- x[{slot}] @ V
"""


@pytest.mark.parametrize("slot", ["i % 2", "m"])
@pytest.mark.parametrize(("ids", "right"), [("(30, 31)", True), ("(31, 32)", False), ("(0 - 1, 0)", False)])
def test_mutexes_that_do_not_exist(ids: str, right: bool, slot: str) -> None:
    kernel = parse(KERNEL.format(ids=ids, slot=slot))
    report = check_kernel(kernel, CheckOptions())
    assert report.verdict is (Verdict.PROVED if right else Verdict.REFUTED)
    assert {f.code for f in report.findings} == (set() if right else {"603"})
    proof = closed_form.prove(compile_kernel(kernel), time.monotonic() + 60)
    explored = explore(compile_kernel(prepared(kernel)), time.monotonic() + 60)
    participants = next(r for r in proof.rows.values() if r.row is Row.PARTICIPANTS)
    assert (participants.verdict is Verdict.PROVED) == explored.proves(Row.PARTICIPANTS) == right


def test_slots_that_nobody_touches() -> None:
    """A mutex that is never taken harms nobody."""
    text = KERNEL.format(ids="(31, 32)", slot="0")
    assert check_kernel(parse(text), CheckOptions()).verdict is Verdict.PROVED
