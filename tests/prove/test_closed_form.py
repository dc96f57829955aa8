"""Do closed forms prove what is right, and never what some run refutes?"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import pytest

from fencepost import ir
from fencepost.discover import Source
from fencepost.findings import Row, Verdict
from fencepost.model.executor import Run, run
from fencepost.model.functions import FunctionTable
from fencepost.model.program import compile_kernel
from fencepost.model.shapes import allowed
from fencepost.passes.serial import Serial
from fencepost.prove.closed_form import ClosedForm, counts, prove
from fencepost.prove.kernels import closed
from fencepost.prove.obligations import ROWS
from fencepost.reading import parse, read

CASES = Path(__file__).resolve().parent.parent / "cases"


@cache
def kernels(file: str) -> dict[str, ir.Kernel]:
    text = (CASES / file).read_text("utf-8")
    found = read(Source(file, text)).result.kernels
    return {k.name: Serial().run(k) for k in found}


def decide(kernel: ir.Kernel) -> ClosedForm:
    return prove(compile_kernel(kernel), time.monotonic() + 120)


def faulty_rows(result: Run) -> set[Row]:
    """Rows whose sentence is false in a run, beyond doubt."""
    found: set[Row] = set()
    if result.bad_values or result.outside:
        found.add(Row.SLOT_MAPPING)
    for race in result.races:
        agents = {race.first.effect.agent, race.second.effect.agent}
        one_sided = (race.first.effect.phase is None) != (race.second.effect.phase is None)
        found.add(Row.PARTICIPANTS if agents == {"aiv0", "aiv1"} else Row.PHASES if one_sided else Row.EVENT_POSITION)
    if result.unwritten:
        found.add(Row.EVENT_POSITION)
    if result.overflows or result.mutex_faults or result.leftovers:
        found.add(Row.COUNTS)
    if result.leftovers or result.contested:
        found.add(Row.PAIRING)
    if result.illegal:
        found.add(Row.PARTICIPANTS)
    if result.message_faults:
        found.add(Row.FIFO)
    if result.phase_faults:
        found.add(Row.PHASES)
    where = {"push": Row.FIFO, "pop": Row.FIFO, "phase": Row.PHASES, "channel": Row.PAIRING, "meet": Row.PARTICIPANTS}
    found |= {where[b.reason] for b in result.blocked if b.reason in where}
    if result.blocked or result.leftovers or result.races or result.unwritten or result.bad_values:
        found.add(Row.BOUNDARY)
    return found


@pytest.mark.parametrize("name", list(kernels("right.kir")))
def test_right_kernels_are_proved(name: str) -> None:
    result = decide(kernels("right.kir")[name])
    assert result.proved, [o.obligation.name for o in result.outcomes if o.answer != "unsat"]


@pytest.mark.parametrize("name", list(kernels("faulty.kir")))
def test_no_row_is_proved_that_a_run_refutes(name: str) -> None:
    kernel = kernels("faulty.kir")[name]
    compiled = compile_kernel(kernel)
    proved = {row for row, r in decide(kernel).rows.items() if r.verdict is Verdict.PROVED}
    modes = ("per_slot", "batched") if kernel.fifos and kernel.credits == "both" else ("per_slot",)
    top = 20 if len(compiled.parameters) < 2 else 4
    shapes = [(n,) * len(compiled.parameters) for n in range(-1, top)]
    shapes += [(n, m) for n in range(4) for m in range(4)] if len(compiled.parameters) == 2 else []
    for values in shapes:
        if not allowed(compiled, values, FunctionTable()):
            continue
        for credits in modes:
            named = dict(zip(compiled.parameters, values, strict=True))
            assert not proved & faulty_rows(run(compiled, named, credits=credits)), values  # type: ignore[arg-type]


def test_every_group_of_obligations_names_its_rows() -> None:
    for kernel in kernels("right.kir").values():
        assert {o.obligation.group for o in decide(kernel).outcomes} <= set(ROWS)
        break


PING_PONG = """
kernel ping_pong(n):
    assume n >= 0
    READY = (0, 1)
    RELEASE = (2, 3)
    buffer qk[2] in Vec

    section cube:
        for t in range(n):
            wait_cross_core RELEASE[t % 2] @ FIX
            move qk[t % 2] <- x @ FIX
            set_cross_core READY[t % 2] @ FIX
        wait_cross_core RELEASE[0] @ FIX
        wait_cross_core RELEASE[1] @ FIX

    section vector:
        set_cross_core RELEASE[0] @ V
        set_cross_core RELEASE[1] @ V
        for t in range(n):
            wait_cross_core READY[t % 2] @ V
            softmax p <- qk[t % 2] @ V
            set_cross_core RELEASE[t % 2] @ V
"""


def test_evidence_is_in_peoples_terms() -> None:
    result = decide(parse(PING_PONG))
    assert result.proved
    assert "RELEASE[0]: ceil(n / 2) + 1 sets and waits" in result.rows[Row.COUNTS].evidence
    assert any("RELEASE[t % 2]" in chain or "READY[t % 2]" in chain for chain in result.chains)


def test_counts_alone() -> None:
    found = counts(compile_kernel(parse(PING_PONG)), time.monotonic() + 60)
    assert {(c.name, c.sets, c.waits) for c in found} == {
        ("READY[0]", "ceil(n / 2)", "ceil(n / 2)"),
        ("READY[1]", "floor(n / 2)", "floor(n / 2)"),
        ("RELEASE[0]", "ceil(n / 2) + 1", "ceil(n / 2) + 1"),
        ("RELEASE[1]", "floor(n / 2) + 1", "floor(n / 2) + 1"),
    }


def test_contradictory_assumes_are_vacuous() -> None:
    result = decide(parse(PING_PONG.replace("assume n >= 0", "assume n >= 0\n    assume n < 0")))
    assert {r.verdict for r in result.rows.values()} == {Verdict.VACUOUS}


def test_a_missing_drain_gives_values_to_replay() -> None:
    text = PING_PONG.replace("        wait_cross_core RELEASE[1] @ FIX\n\n", "\n")
    result = decide(parse(text)).rows[Row.COUNTS]
    assert result.verdict is Verdict.UNKNOWN
    assert (0,) in {c.values for c in result.candidates}


def test_a_loop_that_can_be_left_early_is_unknown() -> None:
    early = "            if t == 7:\n                break\n            softmax"
    text = PING_PONG.replace("            softmax", early)
    result = decide(parse(text))
    assert {r.verdict for r in result.rows.values()} == {Verdict.UNKNOWN}
    assert all("break" in r.reason for r in result.rows.values())


def test_a_deadline_that_has_passed_proves_nothing() -> None:
    result = prove(compile_kernel(parse(PING_PONG)), time.monotonic() - 1)
    assert Verdict.PROVED not in {r.verdict for r in result.rows.values()}


COPIES = """
kernel copies(n):
    assume n >= 0

    section cube:
        for k in range(2):
            e = k
            for t in range(n):
                e = e * e + k
            if e == 3:
                set_cross_core 0 @ FIX
"""


def test_an_unknown_value_differs_from_trip_to_trip_of_the_loops_around_it() -> None:
    kernel = closed(compile_kernel(parse(COPIES)), None)
    (event,) = kernel.traces["aic"].events
    (unknown,) = (a for a in event.domain.atoms() if a.name.startswith("any."))
    assert set(event.indices) <= unknown.symbols
