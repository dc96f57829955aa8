"""Row 5 beside refuted rows: is what is wrong wrong at every trip count?"""

from __future__ import annotations

import pytest

from fencepost.engine import check_kernel
from fencepost.findings import Row, Verdict
from fencepost.options import CheckOptions
from fencepost.reading import parse

FLAG = "sync_src 0: MTE2 -> V\nfor t in range(n):\n    use p <- y @ V\nif n * n == {}:\n    sync_src 3: MTE2 -> V"
MUTEX = "mutex_lock 0 @ V\nfor t in range(n):\n    use p <- y @ V\nif n * n == {}:\n    mutex_lock 1 @ V"
LONG = (
    "for t in range(300):\n    load x <- q @ MTE2\n    use p <- x @ V\nfor u in range(n):\n    use p <- z @ V\n"
    "if n * n == {}:\n    load y <- q @ MTE2\n    use p <- y @ V"
)


def _row(body: str) -> Verdict:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    head = "kernel k(n):\n    assume n >= 0\n    buffer x in Vec\n    buffer y in Vec\n    section vector:\n"
    report = check_kernel(parse(head + lines), CheckOptions(timeout=20))
    return next(c.verdict for c in report.checks if c.row is Row.BOUNDARY)


@pytest.mark.parametrize("body", [FLAG, MUTEX])
def test_second_fault_at_one_value(body: str) -> None:
    """At n = 2 where a run shows it, at n = 7777 where none does."""
    assert _row(body.format(4)) is Verdict.REFUTED
    assert _row(body.format(60481729)) is Verdict.UNKNOWN


def test_second_fault_beside_a_long_loop() -> None:
    assert _row(LONG.format(60481729)) is Verdict.UNKNOWN


@pytest.mark.parametrize("body", [FLAG, MUTEX])
def test_the_fault_of_every_run(body: str) -> None:
    assert _row(body.split("\nif")[0]) is Verdict.PROVED


def test_fault_below_a_constant() -> None:
    """It is there for all k that are tried, and gone from 72 on."""
    body = (
        "for t in range(n):\n    for j in range(k):\n        use p <- z @ V\n    if t + k == 71:\n"
        "        load x <- q @ MTE2\n        use p <- x @ V"
    )
    text = "kernel k(n, k):\n    assume n >= 0\n    assume k >= 2\n    buffer x in Vec\n    section vector:\n"
    report = check_kernel(
        parse(text + "".join(f"        {line}\n" for line in body.splitlines())), CheckOptions(timeout=120)
    )
    assert next(c.verdict for c in report.checks if c.row is Row.BOUNDARY) is Verdict.REFUTED
