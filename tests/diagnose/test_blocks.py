"""Blocks that share memory: what is refuted, what is proved, and what stays open?"""

from __future__ import annotations

import pytest

from fencepost.engine import check_kernel
from fencepost.findings import KernelReport, Row, Verdict
from fencepost.options import CheckOptions
from fencepost.reading import parse


def _checked(body: str, head: str = "") -> KernelReport:
    lines = "".join(f"    {line}\n" for line in head.splitlines())
    text = f"kernel k(n):\n    assume n >= 0\n{lines}    section vector:\n"
    return check_kernel(parse(text + "".join(f"        {line}\n" for line in body.splitlines())), CheckOptions())


def _row(report: KernelReport, row: Row) -> Verdict:
    return next(c.verdict for c in report.checks if c.row is row)


@pytest.mark.parametrize(
    ("size", "body"),
    [
        (2, "store g[sub] <- y @ MTE3"),  # every block writes both slots
        (64, "for t in range(n):\n    store g[(2 * block + sub) % 64] <- y @ MTE3"),  # blocks 0 and 32
        (8, "load x <- g[sub] @ MTE2\nstore g[sub + 2] <- y @ MTE3"),
    ],
)
def test_one_slot_for_two_blocks(size: int, body: str) -> None:
    report = _checked(body, f"assume n <= 8\nbuffer g[{size}] in GM shared")
    assert _row(report, Row.EVENT_POSITION) is Verdict.REFUTED
    assert "209" in {f.code for f in report.findings}


def test_slots_of_their_own() -> None:
    report = _checked(
        "for t in range(n):\n    store g[2 * block + sub] <- y @ MTE3", "assume block < 24\nbuffer g[48] in GM shared"
    )
    assert report.verdict is Verdict.PROVED


def test_only_read() -> None:
    assert _checked("load x <- g[0] @ MTE2", "buffer g[4] in GM shared").verdict is Verdict.PROVED


@pytest.mark.parametrize(
    "body",
    [
        "if f(0) > 9000:\n    store g[sub] <- y @ MTE3",  # no run that is tried comes there
        "sync_all\nstore g[sub] <- y @ MTE3",  # what sync_all orders between blocks is not looked at
    ],
)
def test_neither_shown_nor_refuted(body: str) -> None:
    report = _checked(body, "buffer g[4] in GM shared")
    assert _row(report, Row.EVENT_POSITION) is Verdict.UNKNOWN
    assert _row(report, Row.PARTICIPANTS) is Verdict.PROVED
