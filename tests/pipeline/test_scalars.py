"""Does the row "pipeline" follow scalars and binds through inner blocks, conditions, bounds, slots and places?"""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from fencepost import ir
from fencepost.findings import Verdict
from fencepost.pipeline.check import check_pipeline, pipelines
from fencepost.pipeline.result import PipelineResult
from fencepost.pipeline.surroundings import read_by
from fencepost.reading import parse

DECLARED = """
buffer A in GM
buffer O in GM
buffer g[100] in GM
buffer x in Vec
buffer y in Vec
buffer idx in Vec
"""


def _result(
    notes: str, body: str, before: str = "c = 7", after: str = "pass", header: str = DECLARED
) -> PipelineResult:
    def block(text: str, depth: int) -> str:
        return indent(dedent(text).strip("\n"), " " * depth) + "\n"

    text = f"kernel t(n):\n    assume 0 <= n <= 90\n{block(header, 4)}    section vector:\n"
    text += block("fill O <- zero @ V\nfill idx <- zero @ V\nfill x <- zero @ V\nfill y <- zero @ V", 8)
    text += block(before, 8) + f"        for k in pipelined(0, n, {notes}):\n" + block(body, 12) + block(after, 8)
    kernel = parse(text)
    return check_pipeline(pipelines(kernel)[0], kernel)


def _outcome(notes: str, body: str, before: str = "c = 7", after: str = "pass") -> str:
    result = _result(notes, body, before, after)
    return " ".join([result.verdict.value, *sorted({f.code for f in result.faults if f.severity.value == "error"})])


FORWARD = "stage = (0, 1), order = (0, 1)"
BACKWARD = "stage = (1, 0), order = (0, 1)"


# ------------------------------------------------------------------------------------------------ binds in inner blocks

SLOTS = """
if 1 == 1:
    bind s = {first}
    load x <- g[s] @ MTE2
if 1 == 1:
    bind s = {second}
    store g[s] <- x @ MTE3
"""


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("k", "k + 1", "refuted 921"),
        ("k + 1", "k", "proved"),
        ("k", "k", "proved"),
        ("f(k)", "k", "refuted 921"),
        ("3", "3", "refuted 921"),
        ("3", "4", "proved"),
        ("n - k", "n - k - 1", "refuted 921"),
        ("k % 3 + 1", "k % 3 + 4", "proved"),
    ],
)
def test_a_bind_in_an_inner_block_is_worth_its_value(first: str, second: str, expected: str) -> None:
    assert _outcome(FORWARD, SLOTS.format(first=first, second=second)) == expected
    plain = f"load x <- g[{first}] @ MTE2\nstore g[{second}] <- x @ MTE3"
    assert _outcome(FORWARD, plain) == expected


def test_binds_of_binds() -> None:
    body = """
    bind t = k + 1
    if 1 == 1:
        bind s = t - 1
        if 2 == 2:
            bind r = s + {0}
            load x <- g[r] @ MTE2
    if 1 == 1:
        bind r = t
        store g[r] <- x @ MTE3
    """
    assert _outcome(FORWARD, body.format(0)) == "refuted 921"
    assert _outcome(FORWARD, body.format(1)) == "proved"


USES = [
    "use O <- O @ V at (s)",
    "use O <- O @ V task = s",
    "use O <- O, g[s] @ V",
    "use g[s] <- A @ V",
    "if s == 1:\n    use O <- O @ V",
    "if k < 0:\n    pass\nelif s == 1:\n    use O <- O @ V",
    "if s == 1:\n    pass\nelse:\n    use O <- O @ V",
    "for j in range(s):\n    use O <- O @ V at (j)",
    "for j in range(s, 3):\n    use O <- O @ V at (j)",
    "for j in range(s, 0, -1):\n    use O <- O @ V at (j)",
    "for j in range(3):\n    use O <- O @ V at (j, s)",
    "for j in range(n):\n    use O <- O @ V at (j, s)",
    "use O part s % 2 of 2 <- A @ V",
    "use O <- O @ V at (f(s))",
    "assert s >= 0",
    "d = s\nuse O <- O @ V at (d)",
]
READERS = [
    "if 1 == 1:\n    bind s = c\n{0}",
    "if 1 == 1:\n    bind r = c + 1\n    bind s = r * 2\n{0}",
    "if 1 == 1:\n    bind s = c\n    if k >= 0:\n    {0}",
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("reader", READERS)
def test_what_a_bind_reads_its_users_read(use: str, reader: str) -> None:
    text = reader.format(indent(use, "    ").replace("\n", "\n    " if "k >= 0" in reader else "\n"))
    assert _outcome(BACKWARD, f"c = f(k)\n{text}") == "refuted 903"
    assert _outcome(FORWARD, f"c = f(k)\n{text}") != "refuted 903"


@pytest.mark.parametrize("use", USES)
def test_what_a_bind_reads_from_a_buffer_its_users_read(use: str) -> None:
    body = f"load idx <- A @ MTE2 at (k)\nif 1 == 1:\n    bind s = idx[0]\n{indent(use, '    ')}"
    assert _outcome(BACKWARD, body) == "refuted 903"


@pytest.mark.parametrize("use", USES)
def test_scalars_are_read_wherever_they_stand(use: str) -> None:
    body = "s = f(k)\nif 1 == 1:\n" + indent(use, "    ")
    assert _outcome(BACKWARD, body, before="s = 7") == "refuted 903"
    assert _outcome(FORWARD, body, before="s = 7") in ("proved", "unknown")


def test_the_value_of_a_bind_is_that_of_its_place() -> None:
    """What the bind read may be overwritten before it is used; a value that comes late is found all the same."""
    body = """
    if 1 == 1:
        bind s = idx[0]
        load idx <- A @ MTE2 at (k)
        use O <- O @ V at (s)
    load idx <- A @ MTE2 at (k, 1)
    """
    assert _outcome(FORWARD, body).startswith("refuted")
    assert _outcome("stage = (0, 0), order = (0, 1)", body) == "proved"


def test_a_scheduled_bind_is_used_through_a_bind() -> None:
    body = """
    load idx <- A @ MTE2 at (k)
    bind t = idx[0]
    if 1 == 1:
        bind s = t
        use O <- O @ V at (s)
    """
    assert _outcome("stage = (0, 0, 1), order = (0, 1, 2)", body) == "refuted 905"


@pytest.mark.parametrize(
    ("body", "before", "after"),
    [
        ("if k % 2 == 0:\n    bind s = k\nelse:\n    bind s = k + 1\nload x <- g[s] @ MTE2", "s = 0", "pass"),
        ("load x <- g[s] @ MTE2\nif 1 == 1:\n    bind s = k\n    use O <- x @ V at (s)", "s = 0", "pass"),
        ("load x <- g[s] @ MTE2\nbind s = k\nuse O <- x @ V at (s)", "s = 0", "pass"),
        ("bind s = k\nload x <- g[s] @ MTE2\nbind s = k + 1\nuse O <- x @ V at (s)", "pass", "pass"),
        ("if 1 == 1:\n    bind s = k\n    bind s = s + 1\n    load x <- g[s] @ MTE2\nuse O <- x @ V", "pass", "pass"),
        ("bind s = k\nload x <- g[s] @ MTE2\nuse O <- x @ V", "s = 0", "use O <- O @ V at (s)"),
        ("bind s = k\nload x <- g[s] @ MTE2\nuse O <- x @ V", "s = 0", "if s == 2:\n    use O <- O @ V"),
        ("if 1 == 1:\n    bind s = k\n    load x <- g[s] @ MTE2\nuse O <- x @ V", "s = 0", "assert s == 0"),
        ("if 1 == 1:\n    bind s = k\n    load x <- g[s] @ MTE2\ns = k", "s = 0", "pass"),
    ],
)
def test_binds_that_are_no_names_for_one_value_are_not_read(body: str, before: str, after: str) -> None:
    assert _outcome(FORWARD, body, before, after) == "unknown"


def test_a_name_may_be_bound_in_two_blocks_and_elsewhere() -> None:
    body = (
        "if 1 == 1:\n    bind s = k\n    load x <- g[s] @ MTE2\nif 1 == 1:\n    bind s = k\n    use O <- x @ V at (s)"
    )
    assert _outcome(FORWARD, body, "s = 0\nuse O <- O @ V at (s)", "s = 1\nuse O <- O @ V at (s)") == "proved"


# ------------------------------------------------------------------------------------------------ scalars in the loop


def test_the_first_value_of_a_scalar_is_that_before_the_loop() -> None:
    body = "if 1 == 1:\n    if k >= 5:\n        c = k\nuse O <- O @ V at (c)"
    assert _outcome(FORWARD, body) == "refuted 924"
    assert _outcome("stage = (0, 0), order = (0, 1)", body) == "proved"


def test_a_condition_is_another_one_after_its_scalar_has_changed() -> None:
    """The two conditions read the same, but the second decides by what the first statement left."""
    body = """
    if c == 0:
        load x <- A @ MTE2 at (k)
    c = f(k)
    if c == 0:
        use O <- x, O @ V
    """
    notes = "stage = (0, 0, 1), order = (0, 1, 2)"
    assert _outcome(notes, body) != "proved"


def test_a_loop_of_unknown_length_fills_nothing_for_sure() -> None:
    body = """
    for j in range(c):
        load x <- A @ MTE2 at (k)
    c = f(k)
    for j in range(c):
        use O <- x, O @ V
    """
    assert _outcome("stage = (0, 0, 1), order = (0, 1, 2)", body) != "proved"
    assert _outcome("stage = (1, 1, 1), order = (0, 1, 2)", body) == "proved"


@pytest.mark.parametrize(
    ("bounds", "expected"), [("p, 0, -1", "refuted 921"), ("p, 0", "proved"), ("0, p", "refuted 921")]
)
def test_loops_that_count_down_run(bounds: str, expected: str) -> None:
    text = f"""
    kernel t(n, p):
        assume p >= 1
        assume n >= 0
        buffer O in GM
        section vector:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                for j in range({bounds}):
                    load O <- A @ MTE2 at (k)
                store C <- O @ MTE3
    """
    kernel = parse(dedent(text))
    result = check_pipeline(pipelines(kernel)[0], kernel)
    assert " ".join([result.verdict.value, *(f.code for f in result.faults)]) == expected


def test_a_later_round_reads_what_an_earlier_one_left() -> None:
    """One round of the inner loop would show x to O, but not y, which comes from the wrong iteration."""
    body = """
    load y <- A @ MTE2 at (k)
    for j in range(n):
        use O <- x, O @ V
        move x <- y @ V
    load y <- A @ MTE2 at (k, 1)
    fill x <- zero @ V
    """
    assert _outcome("stage = (0, 1, 0, 1), order = (0, 2, 1, 3)", body) == "refuted 923"
    assert _outcome("stage = (0, 1, 1, 1), order = (0, 1, 2, 3)", body) == "proved"


def test_each_store_to_an_output_counts() -> None:
    """The last of the stores of a statement does not hide what the others show."""
    body = """
    load x <- A @ MTE2 at (k)
    load y <- A @ MTE2 at (k)
    if 1 == 1:
        store C <- x @ MTE3
        store C <- y @ MTE3
    load x <- A @ MTE2 at (k, 1)
    """
    assert _outcome("stage = (0, 0, 1, 0), order = (0, 1, 2, 3)", body) == "refuted 923"
    assert _outcome("stage = (0, 0, 1, 1), order = (0, 1, 2, 3)", body) == "proved"


def test_asserts_see_what_they_read() -> None:
    body = "c = k\nassert c == k\nc = k + 1"
    assert _outcome("stage = (0, 1, 0), order = (0, 1, 2)", body).startswith("refuted")
    assert _outcome("stage = (0, 0, 1), order = (0, 1, 2)", body) == "proved"


def test_a_bind_reads_memory_under_another_name() -> None:
    header = "buffer a[2] in GM at 0 size 64\nbuffer b[2] in GM at {0} size 64\nbuffer O in GM\nbuffer x in Vec\n" + (
        "buffer y in Vec\nbuffer idx in Vec"
    )
    body = "bind s = a[0]\nuse O <- A @ V at (s)\nput b[0] <- A @ MTE3"
    assert _result(FORWARD, body, header=header.format(64)).verdict is Verdict.UNKNOWN
    assert _result(FORWARD, body, header=header.format(128)).verdict is Verdict.PROVED


# ------------------------------------------------------------------------------------------------ behind the loop

SCALAR = "s = k\ns = k + 100"
READS = [
    "if s == 100:\n    use O <- A @ V",
    "if n == 0:\n    pass\nelif s == 100:\n    use O <- A @ V",
    "for j in range(s):\n    use O <- A @ V",
    "for j in range(s, 300):\n    use O <- A @ V",
    "for j in range(3):\n    if j == s:\n        break\n    use O <- A @ V",
    "fill g[s] <- zero @ V",
    "use O <- g[s] @ V",
    "use O part s % 2 of 2 <- A @ V",
    "use O <- A @ V task = s",
    "use O <- A @ V at (s)",
    "assert s == 99",
    "z = s",
    "set_cross_core s % 4 @ V",
    "wait_cross_core s % 4 @ V",
    "sync_src s % 4: V -> MTE3",
    "sync_dst s % 4: V -> MTE3",
    "mutex_lock s % 4 @ V",
    "mutex_unlock s % 4 @ V",
    "ring[s % 4].f = 1",
    "ring[0].f = s",
    "z = ring[s % 4].f",
    "use O <- A @ V at (IDS[s % 3])",
    "use O <- A @ V at (h(s))",
    "tpush_to_aic O task = s",
    "u <- tpop_from_aic task = s",
    "s = s + 1",
]


@pytest.mark.parametrize("read", READS)
def test_every_read_behind_the_loop_counts(read: str) -> None:
    header = DECLARED + "IDS = (4, 7, 5)\nring ring[4](f)\nfifo up: vector -> cube, slots = 2\n"
    header += "fifo down: cube -> vector, slots = 2\n"
    result = _result(BACKWARD, SCALAR, before="s = 0\nz = 0", after=read, header=header)
    assert result.verdict is Verdict.REFUTED and [f.code for f in result.faults] == ["920"]
    again = _result(BACKWARD, SCALAR, before="s = 0\nz = 0", after=f"s = 3\n{read}", header=header)
    assert again.verdict is Verdict.PROVED


def test_reads_are_seen_wherever_they_stand() -> None:
    """All kinds of statement at once: a name that is read in any of them is read."""
    body = [n for text in READS for n in ir.walk(parse(_kernel_of(text))) if isinstance(n, ir.Section)]
    assert all("s" in set(read_by(section)) for section in body)


def _kernel_of(statement: str) -> str:
    header = DECLARED + "IDS = (4, 7, 5)\nring ring[4](f)\nfifo up: vector -> cube, slots = 2\n"
    header += "fifo down: cube -> vector, slots = 2\n"
    text = f"kernel t(n):\n{indent(header.strip(), '    ')}\n    section vector:\n        s = 0\n        z = 0\n"
    return text + indent(statement, "        ") + "\n"


def test_a_store_does_not_hide_that_of_another_statement() -> None:
    body = "store C <- x @ MTE3 at (k, 0)\nstore C <- y @ MTE3 at (k, 1)\nload x <- A @ MTE2 at (k)"
    assert _outcome("stage = (0, 1, 1), order = (0, 1, 2)", body) == "refuted 921"
    assert _outcome("stage = (0, 1, 0), order = (0, 1, 2)", body) == "proved"


def test_values_of_binds_are_no_buffers_with_versions() -> None:
    body = "c = f(k)\nif 1 == 1:\n    bind s = c\n    use O <- O @ V at (s)"
    (fault,) = (f for f in _result(FORWARD + ", num_stages = 3", body).faults if f.code == "930")
    assert "versions: c 2)" in fault.message


def test_a_scalar_from_before_the_loop_need_not_have_every_value() -> None:
    """The loop is wrong if c is 0, which it is not; where it is wrong either way, that is told."""
    body = "if c == 0:\n    store C <- g[k] @ MTE3\nload g[k + 1] <- A @ MTE2"
    notes = "stage = (0, 1), order = (0, 1)"
    assert _outcome(notes, body) == "unknown"
    assert _outcome(notes, body.replace("c == 0", "n == 4")).startswith("refuted")
    either = body.replace("\nload", "\nelse:\n    store D <- g[k] @ MTE3\nload")
    assert _outcome(notes, either).startswith("refuted")
    assert _outcome(notes, body.replace("c == 0", "k == c")) == "unknown"
