"""Pipelined loops in kernel IR text: from the text to faults with spans and witnesses."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from textwrap import dedent, indent
from typing import cast

import pytest

from fencepost import ir
from fencepost.findings import Verdict
from fencepost.frontends.kir import read
from fencepost.pipeline.check import check_pipeline, pipelines
from fencepost.pipeline.result import PipelineResult


def _kernel(text: str) -> ir.Kernel:
    result = read(text, "t.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


def _check(text: str) -> PipelineResult:
    kernel = _kernel(text)
    return check_pipeline(pipelines(kernel)[0], kernel)


def _loop(annotations: str, body: str, header: str = "", stop: str = "n") -> PipelineResult:
    declared = indent(dedent(header).strip("\n"), "    ")
    return _check(
        f"kernel t(n):\n{declared}\n    section vector:\n        for k in pipelined(0, {stop}, {annotations}):\n"
        + indent(dedent(body).strip("\n"), " " * 12)
        + "\n"
    )


TILES = "buffer s in Vec\nbuffer u in Vec"
LOAD_STORE = "load s <- A @ MTE2\nstore C <- s @ MTE3"


def _codes(result: PipelineResult) -> list[str]:
    return [f.code for f in result.faults]


def test_plain_pipeline() -> None:
    result = _loop("stage = (0, 1), order = (0, 1)", LOAD_STORE, TILES)
    assert result.verdict is Verdict.PROVED and not result.faults
    assert result.evidence.startswith("depth 2, s 2 versions")


def test_global_memory_has_no_versions() -> None:
    result = _loop("stage = (0, 1), order = (0, 1)", "load g <- A @ MTE2\nstore C <- g @ MTE3", "buffer g in GM")
    assert _codes(result) == ["921"]
    fault = result.faults[0]
    assert fault.witness is not None and fault.witness.values == (("n", 2),)
    assert fault.spans[0].line == 6  # the reader comes first
    assert "with 2 trips, store to C of iteration 0 reads g from load to g of iteration 1" in fault.message


def test_slot_by_hand() -> None:
    """A ring of two slots in global memory is as good as two versions."""
    body = "load g[k % 2] <- A @ MTE2\nstore C <- g[k % 2] @ MTE3"
    assert _loop("stage = (0, 1), order = (0, 1)", body, "buffer g[2] in GM").verdict is Verdict.PROVED
    assert _loop("stage = (0, 2), order = (1, 0)", body, "buffer g[2] in GM").verdict is Verdict.PROVED
    assert _codes(_loop("stage = (0, 2), order = (0, 1)", body, "buffer g[2] in GM")) == ["921"]


def test_condition_of_the_last_iteration() -> None:
    body = """
    load s <- A @ MTE2
    if k == n - 1:
        store C <- s @ MTE3
    """
    assert _loop("stage = (0, 1), order = (0, 1)", body, TILES).verdict is Verdict.PROVED
    guarded = """
    if k == n - 1:
        load s <- A @ MTE2
    store C <- s @ MTE3
    """
    result = _loop("stage = (0, 1), order = (0, 1)", guarded, TILES)
    assert result.verdict is Verdict.PROVED  # what nobody has written is the same in both programs


def test_unknown_condition() -> None:
    body = """
    if need(k) > 0:
        load s <- A @ MTE2
    if need(k) > 0:
        store C <- s @ MTE3
    """
    assert _loop("stage = (0, 1), order = (0, 1)", body, TILES).verdict is Verdict.PROVED
    other = body.replace("need(k) > 0:\n        store", "wanted(k) > 0:\n        store")
    kernel = "clear s <- () @ V\n" + dedent(other)
    assert _loop("stage = (0, 0, 1), order = (0, 1, 2)", kernel, TILES).verdict is Verdict.PROVED


def test_unknown_condition_refuted() -> None:
    text = """
    kernel t(n):
        buffer s in Vec
        section vector:
            load s <- A @ MTE2
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                if need(k) > 0:
                    load s <- A @ MTE2 at (k)
                store C <- s @ MTE3
    """
    result = _check(dedent(text))
    assert _codes(result) == ["924"]
    assert result.faults[0].witness is not None
    assert result.faults[0].witness.functions


def test_only_trip_counts_that_the_kernel_allows() -> None:
    body = """
    load s <- A @ MTE2
    add u <- u, s @ V
    store C <- s @ MTE3
    """
    notes = "stage = (0, 1, 3), order = (0, 1, 2)"
    text = "buffer s in Vec\nbuffer u in GM"
    assert _codes(_loop(notes, body, text)) == ["926"]
    assert _loop(notes, body, f"assume n >= 3\n{text}").verdict is Verdict.PROVED
    assert _loop(notes, body, text, stop="8").verdict is Verdict.PROVED
    assert _codes(_loop(notes, body, text, stop="2")) == ["926"]


def test_witness_obeys_the_assumes() -> None:
    text = """
    kernel t(n, m):
        assume n == 2 * m + 3
        buffer g in GM
        section vector:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                load g <- A @ MTE2
                store C <- g @ MTE3
    """
    result = _check(dedent(text))
    assert result.faults[0].witness is not None
    values = dict(result.faults[0].witness.values)
    assert values["n"] == 2 * values["m"] + 3 and values["n"] >= 2


def test_loop_inside_a_loop() -> None:
    text = """
    kernel t(n, m):
        buffer s in Vec
        section vector:
            for q in range(m):
                for k in pipelined(0, q + n, stage = (0, 1), order = (0, 1)):
                    load s <- A @ MTE2
                    store C <- s @ MTE3
                store D <- s @ MTE3
    """
    result = _check(dedent(text))
    assert _codes(result) == ["925"]
    assert result.faults[0].witness is not None
    values = dict(result.faults[0].witness.values)
    assert values["m"] >= 1 and set(values) == {"n", "m"}


def test_binds() -> None:
    body = """
    bind row = k * 2
    load s <- A @ MTE2 at (row)
    store C <- s @ MTE3 at (row)
    """
    assert _loop("stage = (0, 1), order = (1, 0)", body, TILES).verdict is Verdict.PROVED
    assert _codes(_loop("stage = (3, 0, 1), order = (1, 2, 0)", body, TILES)) == ["910"]


def test_binds_that_read_a_buffer() -> None:
    """The value of a bind may be an element of a buffer; the body of the test puts it there by hand."""

    def check(stage: tuple[int, ...], order: tuple[int, ...]) -> list[str]:
        kernel = _kernel(
            "kernel t(n):\n    buffer s in Vec\n    section vector:\n"
            "        for k in pipelined(0, n, stage = (0, 1, 1), order = (0, 1, 2)):\n"
            "            load s <- A @ MTE2\n            bind value = 0\n            store C <- A @ MTE3 at (value)\n"
        )
        (loop,) = pipelines(kernel)
        bind = replace(cast(ir.Bind, loop.body[1]), value=ir.Item("s", ir.Int(0)))
        loop = replace(loop, body=(loop.body[0], bind, loop.body[2]), stage=stage, order=order)
        section = replace(cast(ir.Section, kernel.body[0]), body=(loop,))
        return _codes(check_pipeline(loop, replace(kernel, body=(section,))))

    assert check((0, 1), (0, 1)) == ["901", "906"]
    assert check((0, 1, 1), (0, 1, 2)) == ["934"]
    assert check((0, 1, 2), (0, 1, 2)) == ["905"]


def test_statements_of_several_operations() -> None:
    body = """
    if k % 2 == 0:
        load s <- A @ MTE2
        store C <- s @ MTE3
    else:
        load s <- B @ MTE2
        store C <- s @ MTE3
    store D <- A @ MTE3
    """
    assert _loop("stage = (0, 1), order = (0, 1)", body, TILES).verdict is Verdict.PROVED
    nested = """
    for j in range(4):
        load t[j] <- A @ MTE2 at (k, j)
    for j in range(4):
        store C <- t[3 - j] @ MTE3
    """
    result = _loop("stage = (0, 1), order = (0, 1)", nested, "buffer t[4] in Vec")
    assert result.verdict is Verdict.PROVED
    part = nested.replace("range(4):\n        load", "range(3):\n        load")
    assert _loop("stage = (0, 1), order = (0, 1)", part, "buffer t[4] in Vec").verdict is Verdict.PROVED


def test_parts_of_a_slot() -> None:
    body = """
    load s part 0 of 2 <- A @ MTE2
    load s part 1 of 2 <- B @ MTE2
    store C <- s @ MTE3
    """
    assert _loop("stage = (0, 0, 1), order = (1, 0, 2)", body, TILES).verdict is Verdict.PROVED
    same = body.replace("part 1", "part 0")
    assert _codes(_loop("stage = (0, 0, 1), order = (1, 0, 2)", same, TILES)) == ["920"]


@pytest.mark.parametrize("operation", ["set_cross_core 0 @ V", "barrier V", "sync_src 0: V -> MTE3"])
def test_unreadable(operation: str) -> None:
    result = _loop("stage = (0, 1), order = (0, 1)", f"load s <- A @ MTE2\n{operation}", TILES)
    assert result.verdict is Verdict.UNKNOWN and result.unknown[0].span.line == 7


def test_no_annotations() -> None:
    assert _loop("num_stages = 3", LOAD_STORE, TILES).verdict is Verdict.PROVED
    assert _codes(_loop("order = (0, 1)", LOAD_STORE, TILES)) == ["908"]


def test_deep_expressions() -> None:
    """An expression that is too large to be read is an answer, not a crash."""
    deep: ir.Expr = ir.Name("k")
    for _ in range(3000):
        deep = ir.Binary("+", deep, ir.Int(1))
    load = ir.DataOp("load", (ir.Access("t", deep),), (ir.Access("A"),), "MTE2")
    store = ir.DataOp("store", (ir.Access("C"),), (ir.Access("t", deep),), "MTE3")
    loop = ir.Pipelined("k", ir.Int(0), ir.Name("n"), (load, store), (0, 1), (0, 1))
    kernel = ir.Kernel("deep", ("n",), buffers=(ir.Buffer("t", "GM", ir.Int(4)),), body=(loop,))
    result = check_pipeline(loop, kernel)
    assert result.verdict is Verdict.UNKNOWN and "too large" in result.evidence


def test_constants_through_many_others() -> None:
    names = [f"c{n}" for n in range(4000)]
    constants = [ir.Constant("c0", ir.Int(1))]
    constants += [ir.Constant(b, ir.Binary("+", ir.Name(a), ir.Int(1))) for a, b in pairwise(names)]
    body = (ir.DataOp("load", (ir.Access("t", ir.Name("c3999")),), (ir.Access("A"),), "MTE2"),)
    loop = ir.Pipelined("k", ir.Int(0), ir.Name("n"), body, (0,), (0,))
    buffers = (ir.Buffer("t", "GM", ir.Int(4)),)
    kernel = ir.Kernel("chain", ("n",), constants=tuple(constants), buffers=buffers, body=(loop,))
    assert check_pipeline(loop, kernel).verdict is Verdict.UNKNOWN


def test_large_kernels() -> None:
    """Large buffers and long inner loops do not make the check slow."""
    body = """
    load s <- A @ MTE2
    for j in range(1000):
        move t[j] <- s @ V
    store C <- t[0] @ MTE3
    """
    result = _loop("stage = (0, 0, 1), order = (0, 1, 2)", body, "buffer s in Vec\nbuffer t[100000] in Vec")
    assert result.verdict is Verdict.UNKNOWN
    nest = "for i in range(40):\n    for j in range(40):\n        move u <- s @ V\n"
    result = _loop("stage = (0, 1), order = (0, 1)", f"load s <- A @ MTE2\n{nest}", TILES)
    assert result.verdict is Verdict.UNKNOWN and "more than 400 operations" in result.evidence


def test_deep_nesting() -> None:
    inner: ir.Stmt = ir.DataOp("load", (ir.Access("s"),), (ir.Access("A"),), "MTE2")
    for _ in range(3000):
        inner = ir.If(((ir.Int(1), (inner,)),))
    loop = ir.Pipelined("k", ir.Int(0), ir.Name("n"), (inner,), (0,), (0,))
    kernel = ir.Kernel("deep", ("n",), buffers=(ir.Buffer("s", "Vec"),), body=(loop, inner))
    assert check_pipeline(loop, kernel).verdict is Verdict.UNKNOWN
