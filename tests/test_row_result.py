"""Do the heading of a refuted row, and the evidence of a proved one, tell the smallest values?"""

from __future__ import annotations

import pytest

import fencepost
from fencepost.findings import Finding, Row, Severity, Witness
from fencepost.ir import Span
from fencepost.row_result import codes

ERROR = Finding("301", "name", Row.PAIRING, Severity.ERROR, "message", Span("a.kir", 1))


def finding(code: str, *values: tuple[str, int]) -> Finding:
    return Finding(code, "name", Row.PAIRING, Severity.ERROR, "message", Span("a.kir", 1), (), Witness(values))


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([finding("301", ("n", 3)), finding("302", ("n", 1))], "FP301, FP302 (n = 1)"),
        ([finding("301", ("n", -3)), finding("302", ("n", 2))], "FP301, FP302 (n = 2)"),
        ([finding("301", ("n", 2), ("m", 1)), finding("301", ("n", 1), ("m", 2))], "FP301 (n = 1, m = 2)"),
        ([ERROR, finding("302", ("n", 4))], "FP301, FP302 (n = 4)"),
        ([ERROR, finding("302")], "FP301, FP302"),
    ],
)
def test_a_heading_tells_the_smallest_witness(errors: list[Finding], told: str) -> None:
    assert codes(errors) == told


def test_a_row_of_a_report_tells_its_smallest_witness() -> None:
    """The hang needs n = 3, the leftover n = 1."""
    text = """\
kernel both(n):
    assume n >= 0
    section cube:
        if n == 3:
            wait_cross_core 1 @ FIX
        if n == 1:
            set_cross_core 0 @ FIX
    section vector:
        pass
"""
    kernel = fencepost.check(text).kernels[0]
    rows = {check.row: check.evidence for check in kernel.checks}
    smallest = {f.code: str(f.witness) for f in kernel.findings}
    assert (smallest["301"], smallest["302"]) == ("n = 3", "n = 1")
    assert rows[Row.PAIRING] == "FP301, FP302 (n = 1)"


def test_one_shape_is_no_plural() -> None:
    text = """\
kernel one(n):
    assume n == 2
    section cube:
        for t in range(n):
            set_cross_core 0 @ FIX
    section vector:
        for t in range(n):
            wait_cross_core 0 @ V
"""
    rows = {check.row: check.evidence for check in fencepost.check(text).kernels[0].checks}
    assert rows[Row.BOUNDARY].startswith("1 shape ran (n = 2); ")
