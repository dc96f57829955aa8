"""The rewritten program as text."""

from __future__ import annotations

from textwrap import dedent

from fencepost.frontends.kir import read
from fencepost.pipeline.check import check_pipeline, pipelines, plan_of, suggestion_for
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.show import lanes, lanes_text, program_text

KERNEL = """
kernel multiply(n):
    buffer a in Mat
    buffer acc in Acc
    section cube:
        for k in pipelined(0, n, {}):
            bind row = k * 2
            load a <- A @ MTE2 at (row)
            gemm acc <- a, acc @ M
        store C <- acc @ FIX
"""


def _plan(notes: str) -> Plan:
    (kernel,) = read(dedent(KERNEL.format(notes)), "m.kir").kernels
    (loop,) = pipelines(kernel)
    assert not check_pipeline(loop, kernel).faults
    plan = plan_of(loop, kernel)
    assert plan is not None
    return plan


def test_program() -> None:
    plan = _plan("stage = (0, 2), order = (0, 1), async_stages = (0)")
    assert program_text(plan) == dedent(
        """\
        prologue:
            bind row (0)
            load to a (0)
            commit
            bind row (1)
            load to a (1)
            commit
        body, for t in 2 .. n - 1:
            bind row (t)
            load to a (t)
            commit
            wait 2
            gemm to acc (t - 2)
        epilogue:
            wait 1
            gemm to acc (n - 2)
            wait 0
            gemm to acc (n - 1)
        versions: a 3"""
    )


def test_lanes() -> None:
    plan = _plan("stage = (0, 1), order = (1, 0)")
    assert lanes_text(plan, 3) == dedent(
        """\
        step        load to a  gemm to acc
        prologue 0  0
        body 1      1          0
        body 2      2          1
        epilogue 3             2"""
    )
    assert [lane.runs for lane in lanes(plan, 2)] == [((1, 0),), ((2, 0), (1, 1)), ((2, 1),)]


def test_lanes_with_waits() -> None:
    text = lanes_text(_plan("stage = (0, 1), order = (0, 1), async_stages = (0)"), 2)
    assert text.splitlines()[2].endswith("commit after load to a  wait 1 before gemm to acc")


def test_loop_of_one_stage() -> None:
    assert program_text(_plan("stage = (1, 1), order = (0, 1)")) == dedent(
        """\
        for i in 0 .. n - 1:
            load to a
            gemm to acc"""
    )


def test_suggestion_for_a_kernel() -> None:
    (kernel,) = read(dedent(KERNEL.format("stage = (1, 0), order = (0, 1)")), "m.kir").kernels
    (loop,) = pipelines(kernel)
    found = suggestion_for(loop, kernel)
    assert found is not None and found.text == "stage = (0, 1), order = (0, 1)"
    (kernel,) = read(dedent(KERNEL.format("stage = (0, 1), order = (0, 1)")), "m.kir").kernels
    assert suggestion_for(pipelines(kernel)[0], kernel) is None
