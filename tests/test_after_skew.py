"""Is a kernel judged after the skew pass as well, and are the reasons named?"""

from __future__ import annotations

import time

import pytest

from fencepost.after_skew import judge, safe_depth
from fencepost.checking import check
from fencepost.findings import KernelReport, Row, Severity, Verdict
from fencepost.frontends.kir import read
from fencepost.model.shapes import Shape

TEXT = """kernel pair({parameters}):
    fifo down: cube -> vector, slots = {slots}
    fifo up: vector -> cube, slots = {slots}
    {option}

    section cube:
        for t in pipeline(0, {trips}, 1, stage = {stage}):
            qk s <- q @ M at (t)
            tpush_to_aiv s
            {extra}
            p <- tpop_from_aiv
            sv o <- p @ M
            tfree_to_aiv p

    section vector:
        for t in range({trips}):
            s <- tpop_from_aic
            exp e <- s @ V
            tfree_to_aic s
            {answer}
            tpush_to_aic e
"""

SECOND = "if {when}:\n                qk z <- q @ M\n                tpush_to_aiv z"
TAKEN = "if {when}:\n                z <- tpop_from_aic\n                tfree_to_aic z"


def text(
    slots: int = 2, trips: int | str = 8, stage: int = 2, when: str = "", parameters: str = "", option: str = ""
) -> str:
    extra, answer = (s.format(when=when) if when else "nop x <- y @ S" for s in (SECOND, TAKEN))
    return TEXT.format(
        slots=slots, trips=trips, stage=stage, parameters=parameters, option=option, extra=extra, answer=answer
    )


def report(source: str) -> KernelReport:
    found = check(source)
    assert not found.errors, found.errors
    (kernel,) = found.kernels
    return kernel


def row(kernel: KernelReport, which: Row) -> Verdict:
    return next(c.verdict for c in kernel.checks if c.row is which)


def messages(kernel: KernelReport, code: str) -> list[str]:
    return [f.message for f in kernel.findings if f.code == code]


def test_right_as_written_and_after_the_skew() -> None:
    kernel = report(text())
    assert row(kernel, Row.FIFO) is row(kernel, Row.SKEW) is Verdict.PROVED
    evidence = next(c.evidence for c in kernel.checks if c.row is Row.SKEW)
    assert "loop t, stage 2: skewed at depth 2" in evidence
    assert not kernel.findings


def test_too_deep_for_the_ring() -> None:
    kernel = report(text(trips=6, stage=4))
    assert row(kernel, Row.FIFO) is Verdict.PROVED
    assert row(kernel, Row.SKEW) is Verdict.REFUTED
    found = messages(kernel, "702")
    assert found
    for message in found:
        assert "runs 3 iterations ahead, the largest safe depth is 2 (stage 3 or less)" in message
        assert "with credits in batches depth 3 hangs from 6 trips on" in message


def test_trip_counts_matter_with_batches() -> None:
    assert row(report(text(slots=8, trips=14, stage=8)), Row.SKEW) is Verdict.PROVED
    kernel = report(text(slots=8, trips=21, stage=8))
    assert row(kernel, Row.SKEW) is Verdict.REFUTED
    assert "depth 7 hangs from 21 trips on" in messages(kernel, "702")[0]
    option = "option credits = per_slot"
    assert row(report(text(slots=8, trips=21, stage=8, option=option)), Row.SKEW) is Verdict.PROVED


def test_a_demoted_loop_is_noted() -> None:
    kernel = report(text(trips="n", parameters="n"))
    (note,) = [f for f in kernel.findings if f.code == "704"]
    assert note.severity is Severity.NOTE
    assert note.row is Row.SKEW
    assert note.message == "loop t, stage 2: demoted to a plain loop: start or stop is not a constant"
    assert row(kernel, Row.SKEW) is Verdict.PROVED


def test_a_message_that_the_pass_does_not_see() -> None:
    kernel = report(text(slots=8, when="t < 2"))
    assert row(kernel, Row.FIFO) is Verdict.PROVED
    assert row(kernel, Row.SKEW) is Verdict.REFUTED
    (order,) = messages(kernel, "701")
    assert order == (
        "after the skew, pop number 1 of the ring cube -> vector receives the message of line 9 (t = 1); "
        "as written it takes that of line 12 (t = 0)"
    )
    (hidden,) = [f for f in kernel.findings if f.code == "705"]
    assert hidden.span.line == 12
    assert hidden.replayed


@pytest.mark.parametrize("when", ["t < 0", "t > 7"])
def test_a_hidden_message_that_is_never_sent_changes_nothing(when: str) -> None:
    kernel = report(text(slots=8, when=when))
    assert row(kernel, Row.SKEW) is Verdict.PROVED


def test_the_smallest_values_that_show_it() -> None:
    kernel = report(text(slots=8, when="t + 3 < n", parameters="n"))
    (hidden,) = [f for f in kernel.findings if f.code == "705"]
    assert hidden.witness is not None
    assert hidden.witness.values == (("n", 4),)


def test_a_hidden_message_on_a_ring_of_its_own() -> None:
    source = text(slots=8, when="t < 2").replace("tpush_to_aiv z", "tpush_to_aiv z id = 1")
    source = source.replace("z <- tpop_from_aic", "z <- tpop_from_aic id = 1")
    source = source.replace("tfree_to_aic z", "tfree_to_aic z id = 1")
    source = source.replace("    fifo up", "    fifo side: cube -> vector, slots = 8, id = 1\n    fifo up")
    assert row(report(source), Row.SKEW) is Verdict.PROVED


def test_no_depth_helps() -> None:
    (kernel,) = read(text(slots=1, trips=4, stage=2), "k.kir").kernels
    judgement = judge(kernel, time.monotonic() + 10)
    assert safe_depth(kernel, judgement.skewed, Shape(())) == 1
    loop = "for t in range(4):\n            s"
    crossed = text(slots=1, trips=4).replace(loop, "tpush_to_aic a\n        tpush_to_aic b\n        " + loop)
    (kernel,) = read(crossed, "k.kir").kernels
    assert safe_depth(kernel, judge(kernel, time.monotonic() + 10).skewed, Shape(())) == 0


def test_a_step_that_cannot_be_read() -> None:
    source = text().replace("pipeline(0, 8, 1,", "pipeline(0, 8, 0,")
    assert check(source).errors


MEMORY = """kernel accumulate():
    fifo down: cube -> vector, slots = 4
    fifo up: vector -> cube, slots = 4

    section cube:
        for t in pipeline(0, 4, 1, stage = 2):
            {wait}
            load a <- g @ MTE2 at ({load}, 0)
            tpush_to_aiv a
            p <- tpop_from_aiv
            store g_next <- p, g @ FIX at ({store}, 0)
            tfree_to_aiv p

    section vector:
        for t in range(4):
            s <- tpop_from_aic
            exp e <- s @ V
            tfree_to_aic s
            tpush_to_aic e
"""


@pytest.mark.parametrize(
    ("load", "store", "expected"),
    [
        ("t", "t + 1", "the load of line 8 (t = 1) runs before the store of line 11 (t = 0)"),
        ("t", "t", ""),
        ("t", "t + 8", ""),
        ("t + 1", "t", ""),
        ("t", "0", ""),
    ],
)
def test_a_load_that_runs_ahead_of_a_store(load: str, store: str, expected: str) -> None:
    kernel = report(MEMORY.format(load=load, store=store, wait="nop x <- y @ S"))
    assert row(kernel, Row.FIFO) is Verdict.PROVED
    assert row(kernel, Row.SKEW) is (Verdict.REFUTED if expected else Verdict.PROVED)
    found = messages(kernel, "705")
    assert len(found) == (1 if expected else 0)
    assert all(expected in message for message in found)


def test_a_barrier_that_stays_behind() -> None:
    kernel = report(MEMORY.format(load="t", store="t", wait="barrier ALL"))
    assert row(kernel, Row.SKEW) is Verdict.PROVED
    (warning,) = [f for f in kernel.findings if f.code == "705"]
    assert warning.severity is Severity.WARNING
    assert warning.span.line == 7


BUFFERS = """kernel k({parameters}):
    {buffers}
    fifo up: vector -> cube, slots = 16
    fifo down: cube -> vector, slots = 16

    section vector:
        {before}
        for t in pipeline(0, 8, 1, stage = 3):
            {load}
            cast x <- {source} @ V
            tpush_to_aic {message}
            y <- tpop_from_aic
            {after}
            store o <- y, out @ V at (t, 0)
            tfree_to_aic y

    section cube:
        for t in range(8):
            u <- tpop_from_aiv
            {peer}
            matmul v <- u @ M
            tfree_to_aiv u
            tpush_to_aiv v
"""


def skewed(
    buffers: str = "buffer b in Vec",
    before: str = "load b <- q0 @ V",
    load: str = "load b <- q @ V",
    source: str = "b",
    message: str = "x",
    after: str = "add z <- y, y @ V",
    parameters: str = "",
    peer: str = "add w <- u, u @ V",
) -> KernelReport:
    return report(
        BUFFERS.format(
            buffers=buffers.replace("\n", "\n    "),
            before=before,
            load=load,
            source=source,
            message=message,
            after=after,
            parameters=parameters,
            peer=peer,
        )
    )


NOTHING = "nop n0 <- n1 @ S"


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"parameters": "n"},
        {"load": NOTHING, "after": "load b <- q @ V at (t)"},
        {"buffers": "buffer b in Vec at 0 size 64\nbuffer c in Vec at 32 size 64", "load": "load c <- q @ V at (t)"},
        {"buffers": "buffer b[2] in Vec", "before": "load b[0] <- q0 @ V", "load": NOTHING, "source": "b[0]",
         "after": "load b[t % 2] <- q @ V at (t)"},
        {"source": "p", "message": "b"},
        {"buffers": "buffer b[2] in Vec", "before": NOTHING, "load": NOTHING, "source": "p", "message": "b",
         "after": "load b[t % 2] <- q @ V at (t)"},
        {"source": "b part 0 of 2", "load": "load b part 0 of 2 <- q @ V"},
        {"load": "load l <- g @ V", "source": "l", "after": "store h <- y, g @ V"},
    ],
)  # fmt: skip
def test_memory_that_no_value_ties(parts: dict[str, str]) -> None:
    """The compiler follows values only: a write to a buffer stays behind, and what runs ahead reads what was before."""
    kernel = skewed(**parts)
    assert row(kernel, Row.SKEW) is Verdict.REFUTED
    (found,) = [f for f in kernel.findings if f.code == "705"]
    assert "no value ties the two" in found.message
    assert found.replayed


@pytest.mark.parametrize(
    "parts",
    [
        {"load": NOTHING},
        {"load": NOTHING, "parameters": "n"},
        {"buffers": "buffer b in Vec\nbuffer c in Vec", "load": "load c <- q @ V at (t)", "parameters": "n"},
        {"buffers": "buffer b in Vec at 0 size 64\nbuffer c in Vec at 64 size 64", "load": "load c <- q @ V at (t)"},
        # The same slot only in one iteration, in which the order stays.
        {"buffers": "buffer b[8] in Vec", "before": "for i in range(8):\n            load b[i] <- q0 @ V at (i)",
         "load": "i = 7 - t", "source": "b[t]", "after": "load b[7 - i] <- q @ V at (t)", "parameters": "n"},
        {"buffers": "buffer b[2] in Vec", "before": "load b[1] <- q0 @ V", "load": NOTHING, "source": "b[1]",
         "after": "load b[2 * t % 2] <- q @ V at (t)", "parameters": "n"},
        {"before": "load b part 1 of 2 <- q @ V", "source": "b part 1 of 2", "load": "load b part 0 of 2 <- q @ V"},
        {"before": "load b <- q @ V"},  # another write, the same value
        {"load": "load l <- g @ V at (t, 0)", "source": "l", "after": "store h <- y, g @ V at (t, 0)",
         "parameters": "n"},
    ],
)  # fmt: skip
def test_memory_whose_order_does_not_matter(parts: dict[str, str]) -> None:
    kernel = skewed(**parts)
    assert row(kernel, Row.SKEW) is Verdict.PROVED, [u.reason for u in kernel.unknown]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"load": "if n * n > 777777777:\n                load b <- q @ V at (t)", "parameters": "n"}, "no difference"),
        ({"before": "load b <- q @ V", "parameters": "n"}, "no difference"),
        ({"load": "if f(t) > 777:\n                load b <- q @ V at (t)"}, "no difference"),
        ({"load": "load l <- g @ V at (t, 0)", "source": "l", "peer": "store h <- u, g @ FIX at (t, 0)"}, "agents"),
        ({"load": "load l <- g @ V at (t, sub)", "source": "l", "after": "store h <- y, g @ V at (t, 1 - sub)"},
         "agents"),
        ({"load": "load l <- g @ V at (t, 0)", "source": "l", "after": "store h <- y, g @ V at (t)"}, "unequal"),
        ({"load": "view w <- g @ S at (t)\n            load l <- w @ V at (0)", "source": "l",
          "after": "store h <- y, g @ V at (t)"}, "unequal"),
    ],
)  # fmt: skip
def test_memory_of_which_too_little_is_known(parts: dict[str, str], reason: str) -> None:
    kernel = skewed(**parts)
    assert row(kernel, Row.SKEW) is Verdict.UNKNOWN
    assert any(reason in unknown.reason for unknown in kernel.unknown if unknown.row is Row.SKEW)


def test_the_last_store_to_a_place() -> None:
    """Nobody loads it in the kernel, but what it holds in the end is another value."""
    kernel = skewed(load="store h <- q1, g @ V at (0)\n            store l <- q2, g @ V at (0)", source="l")
    (found,) = [f for f in kernel.findings if f.code == "705"]
    assert "the store of line 9 (t = 7) comes last at a place where, as written, the store of line 10" in found.message
