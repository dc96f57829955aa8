"""Does the row "pipeline" see all of the kernel around a loop, and memory under other names?"""

from __future__ import annotations

import pytest

import fencepost
from fencepost.findings import KernelReport, Row, Verdict

AROUND = """\
kernel k(n):
    assume n >= 1
    buffer a in Vec
    buffer c in Vec
{before}
    section vector:
        clear c <- z @ V
        for i in pipelined(0, n, stage = (0, 1), order = (0, 1)):
            load a <- A @ V at (i)
            add c <- a, c @ V
{after}
"""

SHARED = """\
kernel k(n):
    assume n >= 1
    buffer a in {space} at 0 size 64
    buffer b in {space} at {place} size 64
    section cube:
        for i in pipelined(0, n, stage = (0, 1), order = (0, 1)):
            put a <- A @ {pipe} at (i)
            out r <- b @ {pipe} at (i)
"""

BINDS = """\
kernel k(n):
    assume n >= 1
    buffer a[2] in GM
    section cube:
        put a[0] <- A @ S
        w = 0
        v = 0
        for i in pipelined(0, n, stage = (0, 0), order = (0, 1)):
            bind x = a[0]
            w = x
        {between}
        for j in pipelined(0, n, stage = (0, 0), order = (0, 1)):
            bind y = a[0]
            v = y
        assert v == w
"""


def report(text: str) -> KernelReport:
    found = fencepost.check(text)
    assert not found.errors, found.errors
    return found.kernels[0]


def pipeline(text: str) -> tuple[Verdict, list[str]]:
    kernel = report(text)
    verdict = next(c.verdict for c in kernel.checks if c.row is Row.PIPELINE)
    return verdict, [f.code for f in kernel.findings if f.row is Row.PIPELINE]


@pytest.mark.parametrize(
    ("before", "after", "codes"),
    [
        ("    sync_all", "    sync_all", []),
        ("    sync_all", "    sync_all\n    store r <- a @ V", ["925"]),
        ("    sync_all", "        sync_all\n        store r <- a @ V", ["925"]),
        ("    sync_all", "    section vector:\n        sync_all\n        store r <- a @ V", ["925"]),
    ],
)
def test_what_is_read_behind_the_loop_is_seen_wherever_it_stands(before: str, after: str, codes: list[str]) -> None:
    verdict, found = pipeline(AROUND.format(before=before, after=after))
    assert found == codes
    assert verdict is (Verdict.REFUTED if codes else Verdict.PROVED)


@pytest.mark.parametrize(("space", "pipe"), [("GM", "MTE3"), ("Mat", "MTE2")])
def test_memory_under_two_names_is_not_taken_apart(space: str, pipe: str) -> None:
    assert pipeline(SHARED.format(space=space, pipe=pipe, place=0))[0] is Verdict.UNKNOWN
    assert pipeline(SHARED.format(space=space, pipe=pipe, place=63))[0] is Verdict.UNKNOWN
    assert pipeline(SHARED.format(space=space, pipe=pipe, place=64))[0] is Verdict.PROVED


@pytest.mark.parametrize("between", ["put a[0] <- B @ S", "pass"])
def test_two_binds_need_not_find_the_same_value(between: str) -> None:
    kernel = report(BINDS.format(between=between))
    row = next(c for c in kernel.checks if c.row is Row.SLOT_MAPPING)
    assert row.verdict is not Verdict.PROVED
