"""Does the row "pipeline" take memory for what it is: cells under their own names, lanes, slots that overlap?"""

from __future__ import annotations

from textwrap import indent

import pytest

from fencepost.findings import Verdict
from fencepost.pipeline.check import check_pipeline, pipelines
from fencepost.pipeline.result import PipelineResult
from fencepost.reading import parse

WRONG, RIGHT = "stage = (1, 0), order = (0, 1)", "stage = (1, 1), order = (0, 1)"

RENAMED = """\
kernel t(n, m):
    assume 0 <= n <= 8
    assume m == 2
    buffer x[8] in Mat
    buffer g in Mat
    buffer A in GM
    buffer G[8] in GM
    section cube:
        load g <- A @ S
        fill x[2] <- () @ S
{body}
"""

LOOP = """\
for k in pipelined(0, n, {notes}):
    add {cell} <- g @ S
    load g <- A @ S at (k)
"""


def check(text: str) -> PipelineResult:
    kernel = parse(text)
    return check_pipeline(pipelines(kernel)[0], kernel)


def renamed(cell: str, notes: str, body: str) -> PipelineResult:
    loop = LOOP.format(cell=cell, notes=notes).strip()
    lines = [indent(loop, line[: -len("LOOP")]) if line.strip() == "LOOP" else line for line in body.splitlines()]
    return check(RENAMED.format(body=indent("\n".join(lines), " " * 8)))


BEHIND = "LOOP\nstore C <- x[2] @ S"
AGAIN = "for t in range(2):\n    store C <- x[2] @ S\n    LOOP"
NEXT = "for t in range(2):\n    LOOP\n    load g <- x[t] @ S"
UNSEEN = "LOOP"


CELLS = ["x[n - 1 - k]", "x[k % 2 + 10 - 4 * m]", "x[k + f(m)]", "x[m - k % 3]", "G[n - 1 - k]"]


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("body", [BEHIND, AGAIN, NEXT])
def test_cells_that_others_see_keep_their_names(cell: str, body: str) -> None:
    """What all accesses of the loop add to a slot may be left out only where nobody else sees the slots."""
    assert renamed(cell, WRONG, body).verdict is Verdict.REFUTED
    assert renamed(cell, RIGHT, body).verdict is Verdict.PROVED


@pytest.mark.parametrize("cell", CELLS[:3])
def test_cells_that_nobody_else_sees_may_have_any_name(cell: str) -> None:
    assert renamed(cell, WRONG, UNSEEN).verdict is Verdict.PROVED


@pytest.mark.parametrize("cell", ["n - 1 - k", "k % 2 + 10 - 4 * m"])
def test_versions_of_cells_with_a_common_remainder(cell: str) -> None:
    """They are told apart as before: the read of another cell needs no version of its own."""
    text = f"""\
kernel t(n, m):
    assume 0 <= n <= 8
    assume m == 2
    buffer x[9] in Mat
    section cube:
        for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
            load x[{cell}] <- A @ S at (k)
            store D <- x[{cell}] @ S at (k)
        store C <- x[2] @ S
"""
    assert [f.code for f in check(text).faults] == ["925"]
    assert check(text.replace("        store C <- x[2] @ S\n", "")).verdict is Verdict.PROVED


LANES = """\
kernel t(n):
    assume 0 <= n <= 8
    buffer q[9] in Vec
    buffer g in Acc
    buffer h in Acc
    buffer A in GM
    buffer C[2] in GM
    section cube:
        load g <- A @ FIX
        move q[1] <- h @ FIX
        for k in pipelined(0, n, stage = (1, 0, 1), order = (0, 1, 2)):
            move {slot} <- g @ FIX lanes = {first}
            load g <- A @ FIX at (k)
            move {slot} <- h @ FIX lanes = {second}
    section vector:
        store C[sub] <- q[1] @ V
"""


@pytest.mark.parametrize("slot", ["q[1]", "q[1] part 0 of 2", "q[k % 2]", "q[n - k]"])
@pytest.mark.parametrize(
    ("first", "second", "right"),
    [
        ("0", "1", False),
        ("1", "0", False),
        ("both", "0", False),
        ("0", "0", True),
        ("1", "1", True),
        ("0", "both", True),
        ("both", "both", True),
    ],
)
def test_a_write_of_one_lane_leaves_the_other(slot: str, first: str, second: str, right: bool) -> None:
    """The first move reads g too late, which matters unless the second overwrites all that it writes."""
    verdict = check(LANES.format(first=first, second=second, slot=slot)).verdict
    assert verdict is (Verdict.PROVED if right else Verdict.REFUTED)


OVERLAP = """\
kernel t(n):
    assume n >= 0
    buffer x[2] in Mat at {place} size {size}
    buffer y in Mat at 1024 size 64
    section cube:
        for k in pipelined(0, n, stage = (1, 0, 1), order = (0, 1, 2)):
            {first}
            {second}
            store C <- x[0] @ S at (k)
"""

PUT = "load x[0] <- A @ S at (k)", "load x[1] <- A @ S at (k)"
GET = "load y <- x[0] @ S", "store D <- x[1] @ S at (k)"


@pytest.mark.parametrize(
    ("place", "size", "both", "verdict"),
    [
        ("0, 64", "128", PUT, Verdict.UNKNOWN),
        ("0, 64", "64 stride 128 rows 2", PUT, Verdict.PROVED),
        ("0, 128", "64 stride 128 rows 2", PUT, Verdict.UNKNOWN),
        ("0, 0", "64", PUT, Verdict.UNKNOWN),
        ("0, 128", "128", PUT, Verdict.PROVED),
        ("0", "128", PUT, Verdict.PROVED),
        ("0", "32 stride 64 rows 2", PUT, Verdict.PROVED),
        ("0, 64", "128", GET, Verdict.PROVED),
    ],
)
def test_slots_that_share_memory(place: str, size: str, both: tuple[str, str], verdict: Verdict) -> None:
    first, second = both
    assert check(OVERLAP.format(place=place, size=size, first=first, second=second)).verdict is verdict


def test_slots_without_a_size() -> None:
    """An error elsewhere; here they only cannot be told apart."""
    text = OVERLAP.format(place="0, 64", size="64", first=PUT[0], second=PUT[1]).replace("0, 64 size 64", "0, 64")
    assert check(text).verdict is Verdict.UNKNOWN
