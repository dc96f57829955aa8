"""Does every row get the verdict that was shown, and never more?"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

import pytest

import fencepost
from fencepost import prover
from fencepost.engine import CONTRADICTED
from fencepost.findings import KernelReport, Row, Severity, Verdict
from fencepost.model.program import Compiled
from fencepost.prover import Proof


def check(text: str, prove: bool = False) -> KernelReport:
    report = fencepost.check(dedent(text), prove=prove)
    assert not report.errors, report.errors
    (kernel,) = report.kernels
    return kernel


def verdicts(kernel: KernelReport) -> dict[str, str]:
    return {c.row.id: c.verdict.value for c in kernel.checks}


def codes(kernel: KernelReport) -> list[str]:
    return sorted(f.code for f in kernel.findings)


def test_only_shape_proves_every_row() -> None:
    kernel = check(
        """
        kernel once():
            buffer s in Vec

            section cube:
                move s <- a @ FIX
                set_cross_core 0 @ FIX

            section vector:
                wait_cross_core 0 @ V
                exp y <- s @ V
        """
    )
    assert kernel.verdict is Verdict.PROVED
    assert verdicts(kernel)["5"] == "n/a"


def test_nothing_behind_a_hang_is_proved() -> None:
    kernel = check(
        """
        kernel stuck():
            buffer s in Vec

            section cube:
                wait_cross_core 1 @ S
                move s <- a @ FIX
                set_cross_core 0 @ S

            section vector:
                wait_cross_core 0 @ S
                exp y <- s @ V
                set_cross_core 1 @ S
        """
    )
    assert codes(kernel) == ["306"]
    assert verdicts(kernel) == {
        "1": "proved", "2": "unknown", "3": "refuted", "4": "unknown", "5": "n/a", "6": "unknown",
    }  # fmt: skip


def test_cyclic_pops_refute_the_row_of_wait_cycles() -> None:
    """Row 3 has nothing to say about a kernel without signals, except when its messages wait in a circle."""
    kernel = check(
        """
        kernel both_wait():
            fifo down: cube -> vector, slots = 2
            fifo up: vector -> cube, slots = 2

            section cube:
                p <- tpop_from_aiv
                tfree_to_aiv p
                tpush_to_aiv a

            section vector:
                s <- tpop_from_aic
                tfree_to_aic s
                tpush_to_aic e
        """
    )
    assert codes(kernel) == ["306"]
    assert verdicts(kernel)["3"] == "refuted" and verdicts(kernel)["fifo"] == "unknown"


def test_boundary_failure_refutes_row_5_and_its_own_row() -> None:
    kernel = check(
        """
        kernel done(n):
            assume n >= 0

            section cube:
                for t in range(n):
                    if t == n - 1:
                        set_cross_core 0 @ FIX

            section vector:
                wait_cross_core 0 @ V
        """
    )
    assert codes(kernel) == ["301", "401", "501"]
    found = next(f for f in kernel.findings if f.code == "501")
    assert found.row is Row.BOUNDARY and found.trace and str(found.witness) == "n = 0"


def test_boundary_failure_without_a_hang_points_to_its_finding() -> None:
    kernel = check(
        """
        kernel first_round(n):
            assume n >= 1
            buffer s[2] in Vec

            section cube:
                for t in range(n - 1):
                    matmul x <- a @ M
                if n == 1:
                    move s[n + 1] <- a @ FIX
        """
    )
    assert codes(kernel) == ["101"]
    (row,) = (c for c in kernel.checks if c.row is Row.BOUNDARY)
    assert row.verdict is Verdict.REFUTED and "see FP101 (n = 1)" in row.evidence


def test_trace_shows_the_wrong_order() -> None:
    kernel = check(
        """
        kernel no_ready():
            buffer s in Vec

            section cube:
                move s <- a @ FIX
                set_cross_core 0 @ FIX

            section vector:
                exp y <- s @ V
                wait_cross_core 0 @ V
        """
    )
    (found,) = (f for f in kernel.findings if f.code == "205")
    assert [s.text.split()[0] for s in found.trace] == ["exp", "move"]
    assert {s.agent for s in found.trace} == {"aic", "aiv0"}


def test_trace_of_a_hang_ends_with_what_waits() -> None:
    kernel = check(
        """
        kernel nobody():
            section cube:
                set_cross_core 0 @ FIX
                wait_cross_core 1 @ FIX

            section vector:
                wait_cross_core 0 @ V
        """
    )
    (found,) = (f for f in kernel.findings if f.code == "301")
    assert [s.state for s in found.trace][-1] == "waiting"
    pairs = [(found.trace[a].text, found.trace[b].text) for a, b in found.links]
    assert pairs == [("set_cross_core 0", "wait_cross_core 0")]


def test_contested_schedules_leave_the_row_open(monkeypatch: pytest.MonkeyPatch) -> None:
    import fencepost.model.interleave as interleave

    monkeypatch.setattr(interleave.explore, "__defaults__", (1,))
    kernel = check(
        """
        kernel two_waiters():
            section cube:
                set_cross_core 0 @ FIX
                set_cross_core 0 @ FIX

            section vector:
                wait_cross_core 0 @ V
                wait_cross_core 0 @ MTE2
        """
    )
    assert [(f.code, f.severity) for f in kernel.findings] == [("307", Severity.WARNING)]
    assert verdicts(kernel)["3"] == "unknown"
    assert any("too many to explore" in u.reason for u in kernel.unknown)


PROVED = """
    kernel late(n):
        assume n >= 0
        buffer s in Vec
        buffer w in Vec

        section cube:
            if n > {least}:
                move s <- a @ FIX
                set_cross_core 0 @ FIX
                move w <- b @ FIX
                set_cross_core 1 @ FIX

        section vector:
            if n > {least}:
                wait_cross_core {first} @ V
                scale y <- {one} @ V
                wait_cross_core {second} @ V
                add z <- s, y @ V
"""


def test_pairing_is_not_proved_where_accesses_are_not_in_order() -> None:
    right = check(PROVED.format(least=20, first=1, one="w", second=0), prove=True)
    assert verdicts(right)["3"] == "proved"
    wrong = check(PROVED.format(least=20, first=0, one="w", second=1), prove=True)
    assert verdicts(wrong)["3"] == "refuted" and str(wrong.findings[-1].witness) == "n = 21"


def test_sub_core_that_stays_away_is_found_with_the_leftover() -> None:
    kernel = check(
        """
        kernel late_lane(n):
            assume n >= 0

            section cube:
                if n > 20:
                    set_cross_core 0 @ FIX

            section vector:
                if n > 20:
                    if sub == 0:
                        wait_cross_core 0 @ V
        """,
        prove=True,
    )
    assert codes(kernel) == ["302", "401", "601"]


def test_wrong_slot_leaves_the_mapping_open() -> None:
    kernel = check(
        """
        kernel late_slot(n):
            assume n >= 0
            buffer s[2] in Vec

            section cube:
                move s[0] <- a @ FIX
                set_cross_core 0 @ FIX
                if n > 20:
                    move s[1] <- z @ FIX

            section vector:
                wait_cross_core 0 @ V
                scale y <- s[0] @ V
                if n > 20:
                    scale y <- s[1] @ V
        """,
        prove=True,
    )
    assert verdicts(kernel)["2"] == "refuted" and verdicts(kernel)["1"] in ("refuted", "unknown")


LATE = """
kernel late(n):
    assume n >= 0
    FULL = (0, 1, 2, 3)
    FREE = (4, 5, 6, 7)
    buffer s[4] in Mat
    buffer u[2] in Vec

    section cube:
        for i in range(4):
            set_cross_core FREE[i] @ FIX
        for t in range(n):
            wait_cross_core FULL[t % 4] @ FIX
            take x <- s[t % 4] @ FIX
            set_cross_core FREE[t % 4] @ FIX
            wait_cross_core 10 + t % 2 @ FIX
            move u[t % 2] <- x @ FIX
            set_cross_core 8 + t % 2 @ FIX
        wait_cross_core 10 @ FIX
        wait_cross_core 11 @ FIX

    section vector:
        set_cross_core 10 @ V
        set_cross_core 11 @ V
        for t in range(n):
            wait_cross_core FREE[t % 4] @ MTE3
            insert s[t % 4] part sub of 2 <- y @ V
            set_cross_core FULL[t % 4] @ V
            wait_cross_core 8 + t % 2 @ V
            take y <- u[t % 2] @ V
            set_cross_core 10 + t % 2 @ V
        for i in range(4):
            wait_cross_core FREE[i] @ V
"""


def test_a_fault_that_only_the_prover_suspects_is_replayed_beside_other_findings() -> None:
    """The 16th signal on an event comes with the 57th trip, far beyond the shapes that are run first."""
    kernel = check(LATE, prove=True)
    errors = [(f.code, str(f.witness)) for f in kernel.findings if f.severity is Severity.ERROR]
    assert ("402", "n = 57") in errors


FAR = """\
kernel far(n):
    assume n >= 0
    section cube:
        for t in range(n):
            barrier M
            if 7 * t > {bound}:
                set_cross_core 7 @ M
    section vector:
        barrier V
"""


@pytest.mark.challenged
def test_a_run_far_out_contradicts_a_wrong_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the prover says, runs of large values have the last word; they are made small, and nothing is proved."""

    def sure(compiled: Compiled, rows: Sequence[Row], deadline: float) -> Proof:
        return Proof(proved=dict.fromkeys(rows, "surely"))

    monkeypatch.setattr(prover, "prove", sure)
    kernel = check(FAR.format(bound=400), prove=True)
    assert [str(f.witness) for f in kernel.findings if f.code == "302"] == ["n = 59"]
    assert set(verdicts(kernel).values()) == {"n/a", "refuted", "unknown"}
    assert any(CONTRADICTED in check.evidence for check in kernel.checks)
    assert set(verdicts(check(FAR.format(bound=9999), prove=True)).values()) == {"n/a", "proved"}


def test_what_could_not_be_read_may_be_of_any_kind() -> None:
    kernel = check('kernel part():\n    section cube:\n        unsupported "a loop"\n', prove=True)
    assert kernel.verdict is Verdict.UNKNOWN
    assert set(verdicts(kernel).values()) == {"unknown"}
