"""Do path templates claim no more than what the signals of a kernel say?"""

from __future__ import annotations

import time

import pytest

from fencepost.findings import Row, Verdict
from fencepost.model.program import compile_kernel
from fencepost.prove import closed_form, solver
from fencepost.prove.certificate import NotCertified, certify
from fencepost.prove.recheck import recheck
from fencepost.reading import parse
from fencepost.replay import replay

LANES = """
kernel lanes_in_turn(n):
    assume n >= 0
    READY = 5
    RELEASE = 6
    buffer tile in Vec

    section cube:
        for t in range(n):
            if t >= 2:
                wait_cross_core RELEASE @ FIX mode = UNICAST_BLOCK lane = t % 2
            move tile <- x @ FIX
            set_cross_core READY @ FIX mode = UNICAST_BLOCK lane = t % 2
        if n >= 1:
            wait_cross_core RELEASE @ FIX mode = UNICAST_BLOCK lane = (n - 1) % 2
        if n >= 2:
            wait_cross_core RELEASE @ FIX mode = UNICAST_BLOCK lane = n % 2

    section vector:
        for k in range((n + 1 - sub) // 2):
            wait_cross_core READY @ MTE2 mode = UNICAST_BLOCK
            barrier ALL
            softmax p <- tile @ V
            set_cross_core RELEASE @ V mode = UNICAST_BLOCK
"""
"""The cube tells one sub-core after the other, but its move writes the tiles of both."""

OWN_TILES = LANES.replace(
    "            move tile <- x @ FIX\n",
    "            if t % 2 == 0:\n                move tile <- x @ FIX lanes = 0\n"
    "            else:\n                move tile <- x @ FIX lanes = 1\n",
)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_signal_to_one_lane_orders_nothing_on_the_other(n: int) -> None:
    """Only executions that signal an agent have a partner there, though the operation can signal it."""
    assert {fault.kind for fault in replay(parse(LANES), {"n": n}).faults} == {"race"}
    assert replay(parse(OWN_TILES), {"n": n}).clean
    found = closed_form.prove(compile_kernel(parse(LANES)), time.monotonic() + 60)
    assert found.rows[Row.EVENT_POSITION].verdict is Verdict.UNKNOWN


def test_a_lane_computed_at_run_time_is_proved_and_certified() -> None:
    found = certify(parse(OWN_TILES))
    assert recheck(found, lambda text: solver.check(text).answer, parse).problems == ()
    with pytest.raises(NotCertified):
        certify(parse(LANES))
