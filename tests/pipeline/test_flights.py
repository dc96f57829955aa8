"""Is an asynchronous statement left alone until it was awaited: with what it fills, and with what it reads?"""

from __future__ import annotations

from textwrap import indent

import pytest

from fencepost.findings import Verdict
from fencepost.pipeline.check import check_pipeline, pipelines, plan_of
from fencepost.pipeline.explore import outcome
from fencepost.pipeline.result import PipelineResult
from fencepost.pipeline.setting import Setting
from fencepost.pipeline.unawaited import unawaited
from fencepost.reading import parse

KERNEL = """\
kernel t(n):
    assume n >= 0
    buffer a in Mat
    buffer b in Mat
    buffer G in GM
    buffer D in GM
    buffer E in GM
    section cube:
        c = 0
        fill G <- () @ S
        fill E <- () @ S
        fill b <- () @ S
{body}
    section vector:
        {other} @ V
"""

LOOP = "for k in pipelined(0, n, stage = {stage}, order = {order}, async_producers = {marks}):\n"


def check(statements: str, stage: str, order: str, marks: str, around: str = "LOOP", other: str = "load v <- E") -> str:
    """The verdict and the codes that it rests on; `around` is where the loop stands, `other` in the vector section."""
    lines = [line.strip() for line in statements.split(";")]
    loop = LOOP.format(stage=stage, order=order, marks=marks) + indent("\n".join(lines), "    ")
    place = [indent(loop, line[: -len("LOOP")]) if line.strip() == "LOOP" else line for line in around.splitlines()]
    kernel = parse(KERNEL.format(body=indent("\n".join(place), " " * 8), other=other))
    node = pipelines(kernel)[0]
    plan = plan_of(node, kernel)
    assert plan is not None
    for trips in range(7):
        assert bool(unawaited(plan, trips, Setting())) == outcome(plan, trips, Setting()).hazard
    return _shown(check_pipeline(node, kernel))


def _shown(result: PipelineResult) -> str:
    codes = sorted({f.code for f in result.faults if f.severity.value == "error"})
    assert (result.verdict is Verdict.REFUTED) == bool(codes)
    return " ".join([result.verdict.value, *codes])


LOAD, SHOW = "load a <- G @ MTE2 at (k)", "store D <- a @ MTE2 at (k)"
OVERWRITE = "store G <- E @ MTE2 at (k)"


@pytest.mark.parametrize(
    ("statements", "stage", "order", "marks", "expected"),
    [
        # What a copy reads is overwritten while it is under way, or after it was awaited, or it is not asynchronous.
        (f"{LOAD}; {OVERWRITE}; {SHOW}", "(0, 0, 1)", "(0, 1, 2)", "(1, 0, 0)", "refuted 931"),
        (f"{LOAD}; {SHOW}; {OVERWRITE}", "(0, 1, 1)", "(2, 0, 1)", "(1, 0, 0)", "proved"),
        (f"{LOAD}; {OVERWRITE}; {SHOW}", "(0, 0, 1)", "(0, 1, 2)", "(0, 0, 0)", "proved"),
        # So is an asynchronous store of a local buffer.
        ("store D <- b @ MTE2 at (k); load b <- E @ MTE2 at (k)", "(0, 1)", "(1, 0)", "(1, 0)", "refuted 931"),
        ("store D <- b @ MTE2 at (k); load b <- E @ MTE2 at (k)", "(0, 1)", "(1, 0)", "(0, 0)", "proved"),
        # What a copy fills is written again.
        (f"{LOAD}; load a <- E @ S at (k); {SHOW}", "(0, 0, 1)", "(0, 1, 2)", "(1, 0, 0)", "refuted 931"),
        (f"{LOAD}; load a <- E @ S at (k); {SHOW}", "(0, 0, 1)", "(0, 1, 2)", "(0, 0, 0)", "proved"),
        # Asynchronous statements act in the order of their issue.
        (f"{LOAD}; load a <- E @ S at (k); {SHOW}", "(0, 0, 1)", "(0, 1, 2)", "(1, 1, 0)", "proved"),
        # Places are read at the issue.
        (f"load a <- E @ MTE2 at (c); c = k; {SHOW}", "(0, 0, 1)", "(0, 1, 2)", "(1, 0, 0)", "proved"),
    ],
)
def test_writes_in_the_loop(statements: str, stage: str, order: str, marks: str, expected: str) -> None:
    assert check(statements, stage, order, marks) == expected


OUT = "load a <- E @ MTE2 at (k); store D <- a @ MTE2 at (k); store G <- b @ MTE2 at (k)"
WAITS, FLIES = ("(0, 1, 1)", "(0, 1, 2)", "(1, 0, 0)"), ("(0, 1, 1)", "(0, 1, 2)", "(1, 0, 1)")


@pytest.mark.parametrize(
    ("around", "other", "flying"),
    [
        ("LOOP", "load v <- E", "proved"),
        ("LOOP\nfill b <- () @ S", "load v <- E", "refuted 931"),  # read by the store
        ("LOOP\nfill G <- () @ S", "load v <- E", "refuted 931"),  # filled by the store
        ("LOOP\nload b <- G @ S", "load v <- E", "refuted 931"),
        ("LOOP\nload c0 <- b @ S", "load v <- E", "proved"),
        ("fill b <- () @ S\nLOOP", "load v <- E", "proved"),
        ("LOOP", "load v <- G", "refuted 931"),
        ("LOOP", "fill G <- ()", "refuted 931"),
        ("for t in range(3):\n    LOOP", "load v <- E", "proved"),
        ("for t in range(3):\n    fill b <- () @ S\n    LOOP", "load v <- E", "refuted 931"),
        (
            "for t in range(3):\n    if t == 0:\n        LOOP\n    else:\n        fill b <- () @ S",
            "load v <- E",
            "refuted 931",
        ),
    ],
)
def test_use_after_the_loop(around: str, other: str, flying: str) -> None:
    assert check(OUT, *FLIES, around, other) == flying
    assert check(OUT, *WAITS, around, other) == "proved"


@pytest.mark.parametrize("slots", [("f(k)", "h(k)"), ("k", "k - 1")])
def test_what_an_instance_did_itself_may_be_elsewhere(slots: tuple[str, str]) -> None:
    """An asynchronous statement of two steps: the second one reads what another iteration's first one fills."""
    kernel = parse(f"""\
kernel t(n):
    assume n >= 0
    buffer A in GM
    buffer B in GM
    buffer C in GM
    buffer Z[1000] in GM
    buffer x[1000] in Mat
    section cube:
        for k in pipelined(0, n, stage = (0, 1), order = (0, 1), async_stages = (0)):
            if g(k) > 0:
                load x[{slots[0]}] <- A @ MTE2 at (k)
                store Z[k] <- x[{slots[1]}] @ MTE2
            store C <- B, C @ FIX
""")
    assert _shown(check_pipeline(pipelines(kernel)[0], kernel)) == "refuted 929"


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ("fill b[3] <- () @ S", "proved"),
        ("fill b[1] <- () @ S", "refuted 931"),
        ("for i in range(4):\n            fill b[i] <- () @ S", "refuted 931"),
        ("move v <- b[1] @ MTE1", "proved"),
    ],
)
def test_only_slots_that_are_in_use_must_be_left_alone(after: str, verdict: str) -> None:
    kernel = parse(f"""\
kernel t(n):
    assume 0 <= n
    buffer b[4] in Mat
    buffer c in Mat
    buffer D in GM
    buffer E in GM
    section cube:
        fill E <- () @ S
        fill b[0] <- () @ S
        fill b[1] <- () @ S
        for k in pipelined(0, n, stage = (0, 1), order = (0, 1), async_producers = (0, 1)):
            load c <- E @ MTE2 at (k)
            store D <- b[k % 2] @ MTE2 at (k)
        {after}
""")
    assert _shown(check_pipeline(pipelines(kernel)[0], kernel)) == verdict


@pytest.mark.parametrize(("slot", "verdict"), [(3, "proved"), (1, "refuted 925")])
def test_only_slots_that_are_read_after_the_loop_must_be_right(slot: int, verdict: str) -> None:
    """The loop leaves its slots in the version of its last iterations; slot 3 is not one of them."""
    kernel = parse(f"""\
kernel t(n):
    assume 0 <= n
    buffer b[4] in Mat
    buffer D in GM
    buffer E in GM
    section cube:
        fill E <- () @ S
        for i in range(4):
            fill b[i] <- () @ S
        for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
            load b[k % 2] <- E @ MTE2 at (k)
            store D <- b[k % 2] @ MTE3 at (k)
        store D <- b[{slot}] @ MTE3
""")
    assert _shown(check_pipeline(pipelines(kernel)[0], kernel)) == verdict


LATE = """\
kernel late(n, m):
    assume n >= 0
    assume 0 <= m <= 1
    buffer x[60] in Vec
    section vector:
        for i in range(60):
            fill x[i] <- () @ V
        for k in pipelined(0, n, stage = (0, 1), order = (0, 1), async_producers = (1, 0)):
            {flying} @ MTE3 at (k)
            store D <- B @ MTE3 at (k)
        fill x[{later}] <- () @ V
"""


@pytest.mark.parametrize(
    ("flying", "later", "verdict"),
    [
        ("store C <- x[max(0, min(f(k), 1))]", 0, "refuted 931"),
        ("store C <- x[max(m, min(k, 1))]", 0, "refuted 931"),
        ("store C <- x[min(m, k * k * 9)]", 1, "unknown"),  # m = 1 is what it takes; m = 0 is what is tried
        ("store C <- x[k % 2]", 1, "refuted 931"),
        ("store C <- x[k % 50]", 49, "refuted 931"),
        ("store C <- x[k % 50]", 50, "proved"),
        ("store C <- x[0]", 1, "proved"),
        ("load x[max(0, min(f(k), 1))] <- A", 1, "refuted 931"),
        ("load x[k % 60] <- A", 7, "refuted 931"),
    ],
)
def test_slots_that_change_and_are_written_after_the_loop(flying: str, later: int, verdict: str) -> None:
    """Of the buffers that the loop only reads, those that are written behind it count, whatever is known of them."""
    kernel = parse(LATE.format(flying=flying, later=later))
    assert _shown(check_pipeline(pipelines(kernel)[0], kernel)) == verdict
