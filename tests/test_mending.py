"""Are rows of a refuted kernel still decided, where the known fault has nothing to do with them?"""

from __future__ import annotations

import time
from textwrap import dedent

from fencepost.engine import check_kernel
from fencepost.findings import KernelReport, Row, Verdict
from fencepost.frontends.kir import read
from fencepost.mending import mended
from fencepost.model.program import compile_kernel
from fencepost.options import CheckOptions
from fencepost.search import Search


def report(text: str) -> KernelReport:
    result = read(dedent(text), "k.kir")
    assert not result.errors, result.errors
    return check_kernel(result.kernels[0], CheckOptions(timeout=60))


def verdicts(text: str) -> dict[str, str]:
    return {c.row.id: c.verdict.value for c in report(text).checks if c.verdict is not Verdict.NOT_APPLICABLE}


def told(text: str) -> str | None:
    result = read(dedent(text), "k.kir")
    compiled = compile_kernel(result.kernels[0])
    found = mended(compiled, Search(compiled, time.monotonic() + 60).run())
    return None if found is None else found.told


EPILOGUE = """
    kernel epilogue(n):
        assume n >= 0
        READY = (0, 1)
        buffer qk[2] in Vec

        section cube:
            for t in range(n):
                move qk[t % 2] <- x @ FIX
                set_cross_core READY[t % 2] @ FIX
                if t > 0:
                    wait_cross_core 2 @ FIX
            {last}

        section vector:
            for t in range(n):
                wait_cross_core READY[t % 2] @ V
                exp p <- qk[t % 2] @ V
                set_cross_core 2 @ V
"""


def test_a_hang_without_trips_leaves_the_other_rows_decided() -> None:
    text = EPILOGUE.format(last="wait_cross_core 2 @ FIX")
    assert verdicts(text) == {
        "1": "proved", "2": "proved", "3": "refuted", "4": "refuted", "5": "refuted", "6": "proved",
    }  # fmt: skip
    slots = next(c for c in report(text).checks if c.row is Row.SLOT_MAPPING)
    assert "goes round" in slots.evidence and "elsewhere all runs are one" in slots.evidence


def test_a_hang_that_other_values_show_too_is_not_mended_away() -> None:
    text = EPILOGUE.format(last="if n != 3:\n                wait_cross_core 2 @ FIX")
    found = verdicts(text)
    assert found["3"] == "refuted" and found["1"] != "refuted"
    more = EPILOGUE.format(
        last="wait_cross_core 2 @ FIX\n            for i in range(n // 7):\n                wait_cross_core 3 @ FIX"
    )
    assert verdicts(more)["2"] == "unknown"


def test_what_runs_without_trips_must_be_one_run() -> None:
    last = "for i in range(m):\n                matmul a <- b @ M\n            wait_cross_core 2 @ FIX"
    assert told(EPILOGUE.format(last=last).replace("epilogue(n)", "epilogue(n, m)")) is None
    last = "if m > 4:\n                matmul a <- b @ M\n            wait_cross_core 2 @ FIX"
    assert told(EPILOGUE.format(last=last).replace("epilogue(n)", "epilogue(n, m)")) is None


def test_trips_whose_number_can_go_wrong_are_not_taken_for_granted() -> None:
    text = EPILOGUE.format(last="wait_cross_core 2 @ FIX").replace("range(n)", "range((n - 9) // 2)")
    assert told(text) is None


DRAIN = """
    kernel drain(n):
        assume n >= 0
        buffer qk[2] in Vec

        section cube:
            for t in range(n):
                wait_cross_core 2 + t % 2 @ FIX
                move qk[t % 2] <- x @ FIX
                set_cross_core t % 2 @ FIX

        section vector:
            set_cross_core 2 @ V
            set_cross_core 3 @ V
            for t in range(n):
                wait_cross_core t % 2 @ V
                exp p <- qk[{read}] @ V
                set_cross_core 2 + t % 2 @ V
            {more}
"""


def test_signals_left_by_every_run_leave_the_other_rows_decided() -> None:
    assert verdicts(DRAIN.format(read="t % 2", more="pass")) == {
        "1": "proved", "2": "refuted", "3": "refuted", "4": "refuted", "5": "proved", "6": "proved",
    }  # fmt: skip


def test_a_slot_fault_beside_the_leftover_is_still_found() -> None:
    found = verdicts(DRAIN.format(read="(t + 1) % 2", more="pass"))
    assert found["1"] == "refuted" and found["2"] == "refuted"


def test_leftovers_that_differ_from_run_to_run_are_not_mended() -> None:
    more = "for i in range(n):\n                set_cross_core 5 @ V"
    assert told(DRAIN.format(read="t % 2", more=more)) is None
    assert told(DRAIN.format(read="t % 2", more="pass")) is not None


FLAG = """
    kernel flags(n):
        assume n >= 0
        buffer qk[2] in Vec
        buffer acc in Acc
        buffer other in Vec

        section cube:
            for t in range(n):
                matmul acc <- a @ M
                sync_src 0: M -> FIX
                sync_dst 0: M -> FIX
                move qk[t % 2] <- acc @ FIX
                set_cross_core t % 2 @ FIX
                wait_cross_core 2 @ M

        section vector:
            for t in range(n):
                wait_cross_core t % 2 @ V
                exp {out} <- qk[t % 2] @ V
                set_cross_core 2 @ V
                store o <- {out} @ MTE3
"""


def test_pipes_of_one_core_say_nothing_about_slots_and_sub_cores() -> None:
    assert verdicts(FLAG.format(out="other")) == {
        "1": "proved", "2": "refuted", "3": "proved", "4": "proved", "5": "proved", "6": "proved",
    }  # fmt: skip


def test_an_id_out_of_range_leaves_the_other_rows_decided() -> None:
    text = """
        kernel barrier_of_sub_cores(slot, on):
            assume 0 <= on <= 1
            IDS = (0, 1)
            buffer g in GM

            section vector:
                if sub == 0:
                    store g <- x @ MTE3
                if on == 1:
                    set_cross_core IDS[slot] @ MTE3 mode = INTER_SUBBLOCK
                    wait_cross_core IDS[slot] @ MTE2 mode = INTER_SUBBLOCK
                if sub == 1:
                    load y <- g @ MTE2
    """
    assert verdicts(text) == {
        "1": "refuted", "2": "refuted", "3": "proved", "4": "proved", "5": "proved", "6": "refuted",
    }  # fmt: skip
    (outside,) = [f for f in report(text).findings if f.code == "101"]
    assert [place.message.split(":")[0] for place in outside.related] == ["likewise"]


def test_more_signals_than_are_counted_prove_nothing() -> None:
    text = """
        kernel many(m):
            assume m >= 0

            section cube:
                for i in range(m // 128):
                    set_cross_core 0 @ FIX
                set_cross_core 1 @ FIX

            section vector:
                wait_cross_core 1 @ V
                for i in range(min(m // 128, 16)):
                    wait_cross_core 0 @ V
    """
    found = {f.code: str(f.witness) for f in report(text).findings}
    assert found == {"302": "m = 2176", "401": "m = 2176", "402": "m = 2048"}
