"""Does a kernel with a large constant trip count get the verdict of the kernel with any trip count?"""

from __future__ import annotations

import time

import pytest

import fencepost
from fencepost.engine import check_kernel
from fencepost.findings import Verdict
from fencepost.large import generalised, unbounded
from fencepost.model.executor import run
from fencepost.model.functions import FunctionTable
from fencepost.model.issue import assumed
from fencepost.model.program import compile_kernel
from fencepost.options import CheckOptions
from fencepost.printer import print_expr
from fencepost.reading import parse

TEXT = """\
kernel hand_over():
    READY = (0, 1)
    RELEASE = (2, 3)
    buffer qk[2] in Vec
    section cube:
        for t in range(TRIPS):
            wait_cross_core RELEASE[t % 2] @ FIX
            move qk[t % 2] <- acc @ FIX
            set_cross_core READY[t % 2] @ FIX
        wait_cross_core RELEASE[0] @ FIX
        wait_cross_core RELEASE[1] @ FIX
    section vector:
        set_cross_core RELEASE[0] @ V
        set_cross_core RELEASE[1] @ V
        for t in range(TRIPS):
            wait_cross_core READY[t % 2] @ V
            softmax p <- qk[t % 2] @ V
            set_cross_core RELEASE[t % 2] @ V
"""

PAIRS = TEXT.replace(
    """\
        for t in range(TRIPS):
            wait_cross_core READY[t % 2] @ V
            softmax p <- qk[t % 2] @ V
            set_cross_core RELEASE[t % 2] @ V
""",
    """\
        for t in range(TRIPS // 2):
            wait_cross_core READY[0] @ V
            softmax p <- qk[0] @ V
            set_cross_core RELEASE[0] @ V
            wait_cross_core READY[1] @ V
            softmax p <- qk[1] @ V
            set_cross_core RELEASE[1] @ V
""",
)

LAG = """\
kernel lag():
    buffer qk[2] in Vec
    section cube:
        for t in range(TRIPS):
            if t >= 2:
                wait_cross_core 2 + t % 2 @ FIX
            move qk[t % 2] <- acc @ FIX
            set_cross_core t % 2 @ FIX
    section vector:
        for t in range(TRIPS + 1):
            if t >= 1:
                wait_cross_core (t - 1) % 2 @ V
                softmax p <- qk[(t - 1) % 2] @ V
                if t < TRIPS - 1:
                    set_cross_core 2 + (t - 1) % 2 @ V
"""


def verdict(text: str, trips: int) -> fencepost.Report:
    return fencepost.check(text.replace("TRIPS", str(trips)))


@pytest.mark.parametrize("trips", [10**5, 10**5 + 1, 10**9])
@pytest.mark.parametrize("text", [TEXT, LAG], ids=["hand-over", "lag"])
def test_a_large_trip_count_is_proved(text: str, trips: int) -> None:
    started = time.process_time()
    assert verdict(text, trips).proved
    assert time.process_time() - started < 10


def test_trip_counts_of_which_one_is_half_the_other_are_proved() -> None:
    assert verdict(PAIRS, 10**6).proved


NEST = """\
kernel nest():
    ROUNDS = 4 * 1024
    buffer qk[2] in Vec
    section cube:
        g = 0
        for i in range(200):
            for t in range(ROUNDS):
                wait_cross_core 2 + g % 2 @ FIX
                move qk[g % 2] <- acc @ FIX
                set_cross_core g % 2 @ FIX
                g = g + 1
        wait_cross_core 2 @ FIX
        wait_cross_core 3 @ FIX
    section vector:
        set_cross_core 2 @ V
        set_cross_core 3 @ V
        g = 0
        for i in range(200):
            for t in range(ROUNDS):
                wait_cross_core g % 2 @ V
                softmax p <- qk[g % 2] @ V
                set_cross_core 2 + g % 2 @ V
                g = g + 1
"""


@pytest.mark.parametrize("trips", ["4 * 1024", "100"])
def test_nests_are_proved(trips: str) -> None:
    assert fencepost.check(NEST.replace("4 * 1024", trips)).proved


def test_a_constant_inner_loop_is_proved_beside_a_parameter() -> None:
    text = NEST.replace("nest()", "nest(m)").replace("range(200)", "range(m)")
    assert fencepost.check(text).proved


def codes(report: fencepost.Report) -> set[str]:
    return {finding.code for kernel in report.kernels for finding in kernel.findings}


def test_a_fault_in_the_beginning_of_a_run_without_end_is_refuted() -> None:
    report = verdict(TEXT.replace("move qk[t % 2]", "move qk[(t + 1) % 2]"), 10**9)
    assert codes(report) == {"102", "201"}
    (kernel,) = report.kernels
    assert all(finding.witness is not None and finding.witness.values == () for finding in kernel.findings)


def test_a_missing_wait_is_refuted_by_what_the_beginning_shows() -> None:
    assert codes(verdict(TEXT.replace("            wait_cross_core READY[t % 2] @ V\n", ""), 10**9)) == {"201", "402"}


SILENT = TEXT.replace("            set_cross_core READY[t % 2] @ FIX\n", "")


def test_a_hang_in_the_beginning_is_one_whatever_follows() -> None:
    assert "301" in codes(verdict(SILENT, 10**9))


def test_what_another_pipe_may_still_set_is_no_hang() -> None:
    """The first wait is for a signal that comes a million trips later, from a pipe that waits for nothing."""
    late = """\
kernel late():
    buffer s in Vec
    section cube:
        for t in range(1000000):
            matmul x <- a @ M
        set_cross_core 0 @ M
    section vector:
        wait_cross_core 0 @ V
"""
    assert fencepost.check(late).kernels[0].verdict.value != "refuted"
    kernel = parse(late)
    assert run(kernel, {}, limit=100, cut=True).clean
    assert run(parse(late.replace("set_cross_core 0 @ M", "pass")), {}, limit=100, cut=True).blocked


MISSING = TEXT.replace("        wait_cross_core RELEASE[1] @ FIX\n", "")


def test_what_is_wrong_at_an_end_that_cannot_be_reached_is_told_and_stays_open() -> None:
    (kernel,) = verdict(MISSING, 10**9).kernels
    assert kernel.verdict.value == "unknown" and not kernel.findings
    assert "FP206 if trips = 2 instead" in kernel.unknown[1].reason


def test_what_is_wrong_at_an_end_that_can_be_reached_is_refuted() -> None:
    assert codes(verdict(MISSING, 12_000)) == {"206", "302", "401"}


def test_a_fault_beside_a_parameter_has_the_parameter_as_its_witness() -> None:
    text = NEST.replace("nest()", "nest(m)").replace("range(200)", "range(m)").replace("4 * 1024", str(10**9))
    text = text.replace("move qk[g % 2]", "move qk[(g + 1) % 2]")
    report = fencepost.check(text)
    assert codes(report) == {"102", "201"}
    assert {str(finding.witness) for kernel in report.kernels for finding in kernel.findings} == {"m = 1"}


def test_what_fails_for_few_trips_only_does_not_count() -> None:
    """The last trips of a loop that is shorter than the other one are missing only below 1000 trips."""
    text = TEXT.replace("range(TRIPS)", "range(max(TRIPS, 1000))", 1).replace("range(TRIPS)", "range(TRIPS)", 1)
    assert verdict(text, 10**6).kernels[0].findings == ()
    assert verdict(text, 10**6).kernels[0].verdict.value != "refuted"


@pytest.mark.parametrize("trips", [300, 301, 302, 305, 512])
@pytest.mark.parametrize("text", [TEXT, PAIRS, LAG], ids=["hand-over", "pairs", "lag"])
def test_at_its_values_the_general_kernel_is_the_kernel(text: str, trips: int) -> None:
    kernel = parse(text.replace("TRIPS", str(trips)))
    general = generalised(kernel)
    assert general is not None
    compiled = compile_kernel(general.kernel)
    values = tuple(general.values[p] for p in compiled.parameters)
    assert assumed(compiled, values, FunctionTable())
    one, other = run(kernel, {}), run(general.kernel, general.values)
    assert one.clean == other.clean
    for agent, operations in one.issued.items():
        assert [(op.effect.site, op.effect.arguments, op.task) for op in operations] == [
            (op.effect.site, op.effect.arguments, op.task) for op in other.issued[agent]
        ]


def test_small_constants_stay() -> None:
    assert generalised(parse(TEXT.replace("TRIPS", "0, 512, 128"))) is None
    assert generalised(parse(TEXT.replace("TRIPS", "0, 65536, 128"))) is not None
    assert generalised(parse(TEXT.replace("TRIPS", "64"))) is None
    assert generalised(parse(TEXT.replace("TRIPS", "64")), large=32) is not None


def test_a_run_that_is_cut_says_nothing_about_its_end() -> None:
    whole = run(parse(MISSING.replace("TRIPS", "300")), {})
    cut = run(parse(MISSING.replace("TRIPS", "300")), {}, limit=200, cut=True)
    assert whole.leftovers and whole.whole
    assert cut.clean and not cut.whole and cut.order


@pytest.mark.parametrize("trips", [34, 51, 119, 136])
def test_the_constant_is_among_the_values_that_stand_for_it(trips: int) -> None:
    text = NEAR.format(trips=trips)
    general = generalised(parse(text), 32)
    assert general is not None
    compiled = compile_kernel(general.kernel)
    values = tuple(general.values[p] for p in compiled.parameters)
    assert assumed(compiled, values, FunctionTable())
    assert run(general.kernel, general.values).blocked
    report = fencepost.check(text).kernels[0]
    assert report.verdict.value != "proved"


NEAR = """\
kernel near():
    section cube:
        a = 1
        for b in range({trips}):
            set_cross_core 0 @ FIX
            wait_cross_core 0 @ FIX
        if a // 2 == 0:
            wait_cross_core 0 @ FIX
    section vector:
        for b in range({trips}):
            wait_cross_core 0 @ V
            set_cross_core 0 @ V
"""


BOUNDS = {
    "n <= 4096": [],
    "0 <= n < 4096": ["n >= 0"],
    "n >= 100000": ["n >= 2"],
    "n == 30001": ["n >= 2", "n % 2 == 1"],
    "4096 >= n and n % 4 == 0": ["n % 4 == 0"],
    "n <= m": None,
    "n != 20": None,
}


@pytest.mark.parametrize("assume", BOUNDS)
def test_what_assumes_say_of_large_numbers_is_left_out(assume: str) -> None:
    text = TEXT.replace("hand_over()", "hand_over(n, m)").replace("TRIPS", "n")
    kernel = parse(text.replace("    READY", f"    assume {assume}\n    READY", 1))
    found, left = unbounded(kernel), BOUNDS[assume]
    if left is None:
        assert found is None
    else:
        assert found is not None
        assert [print_expr(a) for a in found.kernel.assumes] == left


@pytest.mark.parametrize("assume", ["n <= 4096", "n >= 1000000", "n == 30000", "n == 1000000"])
def test_large_numbers_in_assumes_are_no_harder(assume: str) -> None:
    text = TEXT.replace("hand_over()", "hand_over(n)").replace("TRIPS", "n")
    report = fencepost.check(text.replace("    READY", f"    assume {assume}\n    READY", 1), timeout=20)
    assert report.proved
    assert "also without n" in report.text()


def test_assumes_that_exclude_each_other_stay_vacuous() -> None:
    text = TEXT.replace("hand_over()", "hand_over(n)").replace("TRIPS", "n")
    report = fencepost.check(text.replace("    READY", "    assume n <= 5000\n    assume n >= 6000\n    READY", 1))
    assert not report.proved
    assert "VACUOUS" in report.text()


def test_a_bound_that_a_proof_needs_is_used() -> None:
    """Of forty slots and no release, the forty-first would be overwritten."""
    text = """\
kernel few(n):
    assume 0 <= n <= {most}
    buffer x[40] in Vec
    section vector:
        for t in range(n):
            load x[t] <- q @ MTE2
"""
    assert fencepost.check(text.format(most=40), timeout=20).proved
    assert "FP101" in fencepost.check(text.format(most=41), timeout=20).text()


SQUARES = """\
kernel squares(n):
    assume n >= 2
    section cube:
        x = {start}
        for t in range({trips}):
            x = x * x
        if x > 5:
            set_cross_core 0 @ M
    section vector:
        barrier V
"""


@pytest.mark.parametrize("start", ["n", "3"])
@pytest.mark.parametrize("trips", ["64", "n"])
def test_squares_of_squares(start: str, trips: str) -> None:
    """Numbers that double their length in each trip are not followed for long, neither in runs nor in proofs."""
    kernel = parse(SQUARES.format(start=start, trips=trips))
    report = check_kernel(kernel, CheckOptions(timeout=3))
    assert report.verdict in (Verdict.REFUTED, Verdict.UNKNOWN)
