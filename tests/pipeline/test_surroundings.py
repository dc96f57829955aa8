"""Does the row "pipeline" see all of the kernel around a loop, and memory under other names?"""

from __future__ import annotations

from textwrap import indent

import pytest

import fencepost
from fencepost.findings import KernelReport, Row, Verdict
from fencepost.pipeline.check import check_pipeline, pipelines, suggestion_for
from fencepost.reading import parse

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


LOOP = """
for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
    load x <- A @ MTE2 at (t, k)
    use O <- x, O @ MTE2
"""

REPEATED = """
kernel t(m, n):
    assume m >= 0
    assume n >= 0
    buffer A in GM
    buffer P in GM
    buffer O in GM
    buffer x in Mat
    buffer y in Mat
    section cube:
        fill x <- zero @ MTE2
        fill O <- zero @ MTE2
        c = 0
        for t in range(m):
{round}
{after}
"""

STORE, FILL = "store P <- x @ MTE2", "fill x <- zero @ MTE2"


def repeated(round_: str, after: str = "pass") -> tuple[Verdict, list[str]]:
    text = REPEATED.format(round=indent(round_.strip(), " " * 12), after=indent(after, " " * 8))
    kernel = parse(text)
    found = check_pipeline(pipelines(kernel)[0], kernel)
    return found.verdict, [f.code for f in found.faults]


@pytest.mark.parametrize(
    ("round_", "after", "right"),
    [
        (f"{LOOP}{FILL}", STORE, True),
        (f"{LOOP}if f(t) == 1:\n    break\n{FILL}", STORE, False),
        (f"{LOOP}if f(t) == 1:\n    continue\n{FILL}", STORE, False),
        (f"{LOOP}{FILL}\nif f(t) == 1:\n    break", STORE, True),
        (f"{LOOP}if f(t) == 1:\n    {FILL}\n    break\nelse:\n    {FILL}", STORE, True),
        (f"{LOOP}if f(t) == 1:\n    if f(n) == 1:\n        break\n    {FILL}\nelse:\n    {FILL}", STORE, False),
        (f"{LOOP}for j in range(3):\n    if j == f(t):\n        break\n{FILL}", STORE, True),
        (f"{LOOP}for j in range(3):\n    {FILL}\n    break", STORE, False),
        (f"if t > 0:\n    {STORE}\n{LOOP}if f(t) == 1:\n    continue\n{FILL}", "pass", False),
        (f"if t > 0:\n    {STORE}\n{LOOP}if f(t) == 1:\n    break\n{FILL}", "pass", True),
        (f"if t > 0:\n    {STORE}\n{LOOP}{FILL}\nif f(t) == 1:\n    continue", "pass", True),
        (f"if f(t) == 1:\n    break\n{LOOP}{FILL}", STORE, True),
        (f"if f(t) == 1:\n    continue\n{LOOP}", STORE, False),
        (f"{LOOP}break\n{STORE}", "pass", True),
        (f"{LOOP}if f(t) == 1:\n    break\nelse:\n    continue\n{STORE}", FILL, True),
    ],
)
def test_jumps_skip_what_stands_behind_them(round_: str, after: str, right: bool) -> None:
    assert repeated(round_, after) == ((Verdict.PROVED, []) if right else (Verdict.REFUTED, ["925"]))


INNER = indent(LOOP.strip(), "    ")


@pytest.mark.parametrize(
    ("round_", "right"),
    [
        (f"if f(t) == 1:\n{INNER}\nelse:\n    pass", True),
        (f"if f(t) == 1:\n{INNER}\nelse:\n    {STORE}", False),
        (f"if f(t) == 1:\n    {STORE}\nelse:\n{INNER}", False),
        (f"if f(t) == 1:\n{INNER}\n    {FILL}\nelse:\n    {STORE}", True),
        (f"if f(t) == 1:\n    {STORE}\n{INNER}", False),
        (f"if f(t) == 1:\n    {FILL}\n    {STORE}\n{INNER}", True),
        (f"if t == 0:\n    {STORE}\nelif f(t) == 1:\n{INNER}", False),
        (f"for u in range(2):\n    if u == 0:\n        {STORE}\n    else:\n{indent(INNER, '    ')}", False),
        (f"for u in range(2):\n    {STORE}\n{INNER}", False),
        (f"{STORE}\nfor u in range(2):\n{INNER}", False),
        (f"{FILL}\nfor u in range(2):\n{INNER}", True),
    ],
)
def test_what_another_round_reads_is_seen(round_: str, right: bool) -> None:
    assert repeated(round_) == ((Verdict.PROVED, []) if right else (Verdict.REFUTED, ["925"]))


COUNT = """
for k in pipelined(0, n, stage = (1, 0), order = (0, 1)):
    c = k
    c = k + 100
"""
COUNTED = indent(COUNT.strip(), "    ")


@pytest.mark.parametrize(
    ("round_", "right"),
    [
        (COUNT, True),
        (f"if c == 0:\n{COUNTED}", False),
        (f"if n == 5:\n    pass\nelif c == 0:\n{COUNTED}", False),
        (f"if c == 0:\n    pass\nelse:\n{COUNTED}", False),
        (f"for u in range(c, 3):\n{COUNTED}", False),
        (f"c = 3\nfor u in range(c):\n{COUNTED}", True),
        (f"c = 3\nif c == 3:\n{COUNTED}", True),
        (f"for u in range(2):\n    c = 3\n    if c == 3:\n{indent(COUNTED, '    ')}", True),
        (f"if c == 3:\n    break\n{COUNT}", False),
    ],
)
def test_conditions_and_bounds_around_the_loop_are_read_again(round_: str, right: bool) -> None:
    """Where trip counts depend on what the loop computes, nothing is decided."""
    verdict, codes = repeated(round_)
    assert (verdict is Verdict.PROVED) is right
    assert codes in ([], ["920"])


def test_part_of_a_buffer_is_no_fill() -> None:
    assert repeated(f"{LOOP}fill x part 0 of 2 <- zero @ MTE2", STORE) == (Verdict.REFUTED, ["925"])


def test_few_trips_where_the_trip_count_is_not_known() -> None:
    """The trip count depends on a scalar: the loop is judged without it."""
    body = "for k in pipelined(0, n, stage = (0, 1, 2), order = (0, 1, 2)):\n    "
    body += "load x <- A @ MTE2 at (k)\n    move y <- x @ MTE2\n    use P <- y @ MTE2 at (k)"
    assert repeated(f"if c == 0:\n{indent(body, '    ')}\nc = f(t)")[0] is Verdict.PROVED


@pytest.mark.parametrize("cells", [50, 100, 1001])
def test_an_array_that_is_read_behind_the_loop(cells: int) -> None:
    text = f"""\
kernel t(n):
    assume 0 <= n <= {cells}
    buffer s[{cells}] in Vec
    section vector:
        for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
            load s[k] <- A @ MTE2 at (k)
            store C <- s[k] @ MTE3 at (k)
        store D <- s[3] @ MTE3
"""
    kernel = parse(text)
    found = check_pipeline(pipelines(kernel)[0], kernel)
    assert found.verdict is (Verdict.REFUTED if cells < 1000 else Verdict.UNKNOWN)


JUMPS = """\
kernel early(n, m):
    assume n >= 0
    assume m >= 0
    buffer g in Vec
    section vector:
        fill g <- () @ V
        s = 0
        {before}
            for k in pipelined(0, {trips}, stage = (1, 0), order = (1, 0)):
                store C <- g @ MTE3 at (k)
                load g <- A @ MTE2 at (k)
            {after}
"""


@pytest.mark.parametrize(
    ("before", "trips", "after", "expected"),
    [
        ("for t in range(1):|if n > 0:|    continue", "n", "pass", "proved"),
        ("for t in range(1):|if n > 1:|    continue", "n", "pass", "refuted (1, 0)"),
        ("for t in range(m):|if m < 3:|    pass|elif n > 0:|    break", "n", "pass", "refuted (1, 1)"),
        ("for t in range(m):|if m < 1:|    pass|elif n > 0:|    break", "n", "pass", "proved"),
        ("for t in range(m):|if n < 1:|    pass|else:|    continue", "n", "pass", "proved"),
        ("for t in range(3):|if t > 0:|    break", "t", "pass", "proved"),
        ("for t in range(3):|if t > 1:|    break", "t", "pass", "refuted (0, 0)"),
        ("for t in range(3):|pass", "t", "break", "unknown"),  # the second round would show it
        ("for t in range(3):|pass", "t + 1", "break", "refuted (0, 0)"),
        ("for t in range(3):|if s > 0:|    continue", "n", "s = 1", "refuted (1, 0)"),
        ("for t in range(3):|if s == 0:|    s = 1|    continue", "n - t", "pass", "refuted (3, 0)"),
        ("for t in range(1):|if somewhere(0) > 0:|    continue", "n", "pass", "unknown"),
        ("for t in range(1):|for u in range(2):|    if n > 0:|        break", "n", "pass", "refuted (1, 0)"),
    ],
)
def test_a_round_that_ends_early_does_not_reach_the_loop(before: str, trips: str, after: str, expected: str) -> None:
    kernel = parse(JUMPS.format(before=before.replace("|", "\n            "), trips=trips, after=after))
    result = check_pipeline(pipelines(kernel)[0], kernel)
    errors = [f for f in result.faults if f.severity.value == "error"]
    values = {tuple(value for _, value in f.witness.values) for f in errors if f.witness is not None}
    assert " ".join([result.verdict.value, *map(str, sorted(values)[:1])]) == expected


def test_too_few_trips_for_the_pipeline_are_skipped() -> None:
    kernel = parse("""\
kernel early(n, m):
    assume n >= 0
    buffer a in Mat
    buffer acc in Acc
    section cube:
        clear acc <- () @ M
        for t in range(m):
            if n < 3:
                continue
            for k in pipelined(0, n, stage = (0, 1, 3), order = (0, 1, 2)):
                load a <- A @ MTE2 at (k)
                matmul acc <- acc, a @ M
                store C <- B @ FIX at (k)
        store D <- acc @ FIX
""")
    assert check_pipeline(pipelines(kernel)[0], kernel).verdict is Verdict.PROVED


NEXT = """\
kernel once(n, m, p):
    assume n >= 0
    assume {assumed}
    buffer x in Vec
    section vector:
        fill x <- () @ V
        {around}
            {before}
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1), async_producers = (0, 1)):
                load D <- A @ MTE2 at (k)
                store C <- x @ MTE3 at (k)
            {after}
"""


@pytest.mark.parametrize(
    ("assumed", "around", "before", "after", "expected"),
    [
        ("m >= 0", "for t in range(m):", "fill x <- () @ V", "pass", "refuted (1, 2, 0)"),
        ("0 <= m <= 1", "for t in range(m):", "fill x <- () @ V", "pass", "proved"),
        ("m >= 0", "for t in range(m):", "pass", "fill x <- () @ V", "refuted (1, 1, 0)"),
        ("m == 1", "if m == 1:", "fill x <- () @ V", "pass", "proved"),
        ("0 <= m <= 1", "for t in range(m, -1, -1):", "fill x <- () @ V", "pass", "refuted (1, 1, 0)"),
        ("m == 0", "for t in range(m, -1, -1):", "fill x <- () @ V", "pass", "proved"),
        ("p == 1", "for t in range(m):", "fill x <- () @ V", "if p == 0:|    break", "refuted (1, 2, 1)"),
        ("p == 0", "for t in range(m):", "fill x <- () @ V", "if p == 0:|    break", "unknown"),
    ],
)
def test_what_only_the_next_execution_overwrites(
    assumed: str, around: str, before: str, after: str, expected: str
) -> None:
    after = after.replace("|", "\n            ")
    kernel = parse(NEXT.format(assumed=assumed, around=around, before=before, after=after))
    result = check_pipeline(pipelines(kernel)[0], kernel)
    values = {tuple(value for _, value in f.witness.values) for f in result.faults if f.witness is not None}
    assert " ".join([result.verdict.value, *map(str, values)]) == expected
    if result.verdict is Verdict.PROVED:
        assert suggestion_for(pipelines(kernel)[0], kernel) is None


@pytest.mark.parametrize(("most", "codes"), [(1, []), (2, ["922"])])
def test_what_only_the_next_execution_reads(most: int, codes: list[str]) -> None:
    """With one trip each, executions of the loop accumulate one after the other, in the version of iteration 0."""
    kernel = parse(f"""\
kernel sums(n, m):
    assume 0 <= n <= {most}
    assume 0 <= m <= 1
    buffer acc in Vec
    section vector:
        clear acc <- () @ V
        for t in range(m):
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                add acc <- acc, A @ V
                store C <- acc @ MTE3 at (k)
""")
    result = check_pipeline(pipelines(kernel)[0], kernel)
    assert sorted(f.code for f in result.faults if f.severity.value == "error") == codes
    assert all(dict(f.witness.values)["m"] == 1 for f in result.faults if f.witness is not None)
