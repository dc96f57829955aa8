"""Is an annotated pipeline turned into the loop that it has to equal?"""

from __future__ import annotations

from textwrap import dedent

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.model.executor import run
from fencepost.model.functions import FunctionTable
from fencepost.passes.serial import Serial
from fencepost.printer import print_kernel


def kernel(text: str) -> ir.Kernel:
    result = read(dedent(text), "t.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


PIPELINED = """
    kernel gather(n, m):
        buffer table in Vec
        buffer tile[2] in Vec
        section vector:
            for q in range(m):
                for k in pipelined(1, n, stage = (0, 0, 1), order = (0, 1, 2)):
                    load table <- index @ S
                    bind row = table[k % 4] + q
                    if row > 0:
                        load tile[row % 2] <- a @ S at (row)
"""


def test_loops_and_binds() -> None:
    serial = Serial().run(kernel(PIPELINED))
    expected = kernel("""
    kernel gather(n, m):
        buffer table in Vec
        buffer tile[2] in Vec
        section vector:
            for q in range(m):
                for k in range(1, n):
                    load table <- index @ S
                    read () <- table @ S
                    row = value(k % 4, q, k, 1) + q
                    if row > 0:
                        load tile[row % 2] <- a @ S at (row)
    """)
    assert print_kernel(serial) == print_kernel(expected).replace("value(", "table(")


def test_a_kernel_without_pipelines_is_left_alone() -> None:
    plain = kernel("kernel t(n):\n    section vector:\n        for k in range(n):\n            add a <- b @ V\n")
    assert Serial().run(plain) is plain


def test_what_is_read_from_a_buffer_is_unknown() -> None:
    """The slot index depends on the value that was read, which may be negative."""
    serial = Serial().run(kernel(PIPELINED.replace("if row > 0:", "if row > -9:")))
    ran = run(serial, {"n": 2, "m": 1}, FunctionTable(default=-1))
    assert {bad.kind for bad in ran.bad_values} == {"negative"}


def test_two_binds_are_unknown_values_of_their_own_if_anything_is_written() -> None:
    text = """
    kernel twice(n):
        buffer a[2] in GM
        section cube:
            for k in pipelined(0, n, stage = (0, 0, 0), order = (0, 1, 2)):
                bind x = a[0]
                {between}
                bind y = a[0]
    """
    written = print_kernel(Serial().run(kernel(text.format(between="put a[0] <- A @ S"))))
    assert "x = a(0, k, 1)" in written
    assert "y = a(0, k, 2)" in written
    untouched = print_kernel(Serial().run(kernel(text.format(between="put r <- A @ S"))))
    assert "x = a(0, k)" in untouched and "y = a(0, k)" in untouched
