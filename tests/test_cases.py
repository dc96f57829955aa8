"""Does the tool decide our own right and faulty kernels: verdict, row, code, smallest values?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import fencepost
from fencepost.findings import KernelReport, Severity, Verdict

HERE = Path(__file__).parent / "cases"


@cache
def reports(file: str) -> dict[str, KernelReport]:
    """The reports of all kernels of a file, by name."""
    result = fencepost.check(HERE / file)
    assert not result.errors
    return {kernel.name: kernel for kernel in result.kernels}


def kernels(file: str) -> list[str]:
    return re.findall(r"^kernel (\w+)", (HERE / file).read_text("utf-8"), re.MULTILINE)


def expectations() -> Iterator[tuple[str, str, str, str | None]]:
    """(kernel, codes, rows, values) of every `expect` comment."""
    pending: list[tuple[str, str, str | None]] = []
    for line in (HERE / "faulty.kir").read_text("utf-8").splitlines():
        if found := re.fullmatch(r"# expect (\S+) in (\S+)(?: at (.+))?", line):
            pending.append((found[1], found[2], found[3]))
        elif found := re.match(r"kernel (\w+)", line):
            yield from ((found[1], *expected) for expected in pending)
            pending = []


HARD = {"drain_in_last_trip", "backwards", "two_loops", "pairs_and_tail"}
"""Right kernels that take the provers long; on a slow machine they may stay unknown, but never more than that."""


@pytest.mark.parametrize("name", kernels("right.kir"))
def test_right_kernels(name: str) -> None:
    kernel = reports("right.kir")[name]
    assert not kernel.findings
    assert kernel.verdict in ({Verdict.PROVED, Verdict.UNKNOWN} if name in HARD else {Verdict.PROVED})


@pytest.mark.parametrize(("name", "codes", "rows", "values"), list(expectations()))
def test_faulty_kernels(name: str, codes: str, rows: str, values: str | None) -> None:
    kernel = reports("faulty.kir")[name]
    assert kernel.verdict is Verdict.REFUTED
    verdicts = {check.row.id: check.verdict for check in kernel.checks}
    assert Verdict.REFUTED in {verdicts[row] for row in rows.split("|")}
    matching = [f for f in kernel.findings if f.code in codes.split("|") and f.severity is Severity.ERROR]
    assert matching
    if values is not None:
        wanted = tuple((name, int(value)) for name, value in re.findall(r"(\w+) = (-?\d+)", values))
        assert wanted in [f.witness.values for f in matching if f.witness is not None]
        assert all(f.replayed for f in matching if f.witness is not None)


def test_every_faulty_kernel_has_an_expectation() -> None:
    assert {name for name, *_ in expectations()} == set(kernels("faulty.kir"))


def test_every_code_of_the_execution_model_has_a_faulty_kernel() -> None:
    covered = {code for _, codes, _, _ in expectations() for code in codes.split("|")}
    rows = {
        "101 102 103 104 105 201 202 203 204 205 206 207 208 301 302 303 304 305 306 307 401 402 404 405",
        "501 502 503 504 601 602 603 604 605 606 702 703 706 801 802 803 804 805 806 807",
    }
    assert covered >= set(" ".join(rows).split())
