"""Random kernels with phases: is the verdict for all trip counts what the runs of small ones show?

All kernels are explored for all parameter values, every fifth is checked as a whole, as are some with harder shapes.
`FENCEPOST_SEED` and `FENCEPOST_COUNT` choose other kernels, and more of them.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from itertools import product

import pytest
from random_phases import random_kernel, random_nest

from fencepost import ir
from fencepost.checking import check_source
from fencepost.discover import Source
from fencepost.findings import KernelReport, Row, Verdict
from fencepost.frontends.kir import read
from fencepost.model.executor import Run, run
from fencepost.model.outcome import Race
from fencepost.model.program import compile_kernel
from fencepost.options import CheckOptions
from fencepost.prover import explorations

FIRST = int(os.environ.get("FENCEPOST_SEED", "0"))
COUNT = int(os.environ.get("FENCEPOST_COUNT", "150"))
BLOCKS, SUMS = 6, 5


def runs(kernel: ir.Kernel) -> dict[tuple[int, int], Run]:
    """The runs of all small values that the kernel allows."""
    compiled = compile_kernel(kernel)
    least = next(b.value for a in kernel.assumes for b in ir.walk(a) if isinstance(b, ir.Int))  # `assume n >= least`
    return {(n, m): run(compiled, {"n": n, "m": m}) for n, m in product(range(least, BLOCKS), range(SUMS))}


def breaks_phases(one: Run) -> bool:
    """Whether the sentence of the row is false: a hand-over that hangs, is left open, or comes too early."""
    return bool(one.blocked or one.phase_faults or early(one) or any(phased(r) for r in one.races))


def phased(race: Race) -> bool:
    """Whether one side of an unordered pair has a phase and the other none."""
    return (race.first.effect.phase is None) != (race.second.effect.phase is None)


def early(one: Run) -> bool:
    """Whether a sum goes on after its Final."""
    last: dict[int, bool] = {}
    for op in one.issued.get("aic", []):
        if op.effect.phase is None or op.effect.phase[0] != "produce":
            continue
        read = {c for touch in op.effect.reads for c in touch.cells}
        if any(last.get(c) for c in op.effect.phased if c in read):
            return True
        last.update(dict.fromkeys(op.effect.phased, op.effect.phase[1]))
    return False


def smallest(report: KernelReport) -> tuple[int, ...] | None:
    """The smallest values that show a finding of the row; each must have been replayed."""
    found = [f for f in report.findings if f.row is Row.PHASES and f.witness is not None]
    assert all(f.replayed for f in found)
    values = [tuple(v for _, v in f.witness.values) for f in found if f.witness is not None]
    return min(values, key=lambda v: (sum(v), v), default=None)


def test_what_is_proved_holds_in_every_run() -> None:
    proved = broken = 0
    for seed in range(FIRST, FIRST + COUNT):
        text = random_kernel(seed)
        (kernel,) = read(text, "k.kir").kernels
        outcomes = runs(kernel)
        wrong = [values for values, one in outcomes.items() if breaks_phases(one)]
        explored = list(explorations(compile_kernel(kernel), time.monotonic() + 20, 2_000))
        holds = all(e.proves(Row.PHASES) for e in explored)
        assert not (holds and wrong), f"seed {seed}, broken at {wrong[:3]}:\n{text}"
        proved, broken = proved + holds, broken + bool(wrong)
    assert proved > COUNT // 8 and broken > COUNT // 4
    assert proved + broken >= COUNT - COUNT // 10


@pytest.mark.parametrize("make", [random_kernel, random_nest])
def test_verdicts_and_smallest_witnesses(make: Callable[[int], str]) -> None:
    counts: Counter[Verdict] = Counter()
    for seed in range(FIRST, FIRST + COUNT, 5 if make is random_kernel else 10):
        text = make(seed)
        (kernel,) = read(text, "k.kir").kernels
        report = check_source(Source("k.kir", text), CheckOptions(timeout=5)).report.kernels[0]
        outcomes = runs(kernel)
        wrong = [values for values, one in outcomes.items() if breaks_phases(one)]
        verdict = next(c.verdict for c in report.checks if c.row is Row.PHASES)
        counts[verdict] += 1
        where = f"seed {seed}, {verdict.value}, broken at {wrong[:3]}:\n{text}"
        if wrong:
            assert verdict is Verdict.REFUTED, where
            assert smallest(report) == min(wrong, key=lambda v: (sum(v), v)), where
        if report.verdict is Verdict.PROVED:
            assert all(one.clean for one in outcomes.values()), where
    assert counts[Verdict.UNKNOWN] <= max(2, counts.total() // 20)
