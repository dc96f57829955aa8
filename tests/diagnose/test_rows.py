"""Is a row refuted whenever its sentence is false?  Every fault of the executor must be told in its rows.

The kernels are those of the rules' pages, as they are and with one statement dropped, doubled, exchanged with its
neighbour, put under `if sub == 0` or on another pipe.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from fencepost import ir
from fencepost.diagnose import edits
from fencepost.diagnose.roles import Protocol
from fencepost.frontends.kir import read
from fencepost.model.executor import Run
from fencepost.model.program import ModelError, compile_kernel
from fencepost.model.shapes import Shape
from fencepost.printer import print_kernel
from fencepost.refutation import refutation
from fencepost.search import Search
from fencepost.validate import validate
from fencepost_rules import rules

EVERY_NTH = 8  # of the mutants, to keep this quick; all of them have been run
PIPES: tuple[ir.Pipe, ...] = ("MTE2", "V", "FIX")


def mutants(kernel: ir.Kernel) -> Iterator[ir.Kernel]:
    """The kernel with one statement changed; a mutant may be ill-formed."""
    yield kernel
    for body in list(edits.bodies(kernel)):
        for i, stmt in enumerate(body):
            if isinstance(stmt, (ir.For, ir.If)):
                continue
            before, after = body[:i], body[i + 1 :]
            yield edits.removed(kernel, stmt)
            yield edits.replace_body(kernel, body, (*before, stmt, replace(stmt), *after))
            if after:
                yield edits.replace_body(kernel, body, (*before, after[0], stmt, *after[1:]))
            condition = ir.Compare(ir.Name("sub"), (("==", ir.Int(0)),))
            yield edits.replace_statements(kernel, {id(stmt): ir.If(((condition, (stmt,)),))})
            if isinstance(stmt, (ir.SetCross, ir.WaitCross, ir.DataOp)):
                for pipe in PIPES:
                    if pipe != stmt.pipe:
                        yield edits.replace_statements(kernel, {id(stmt): replace(stmt, pipe=pipe)})


def broken(search: Search, run: Run) -> Iterator[tuple[str, str]]:
    """(what went wrong, the rows of which one must be refuted)."""
    if run.blocked:
        yield "hang", "3 6 fifo phases"
    protocol = Protocol(run, search.families)
    for left in run.leftovers:
        if run.channels[left.channel].kind == "flag":
            yield "flag left", "4"
        else:
            yield "signal left", "3"
            yield "signal left", "4"
            if protocol.role(left.channel) == "release":
                yield "release left", "2"
    for number in range(len(run.channels)):
        if len(protocol.sets.get(number, [])) != len(protocol.waits.get(number, [])):
            yield "counts", "4"
    for seen, what, rows in (
        (run.overflows, "overflow", "4"),
        (run.mutex_faults, "mutex", "4"),
        (run.races, "unordered", "2"),
        (run.unwritten, "unwritten", "2"),
        (run.illegal, "illegal", "6"),
        (run.outside, "slot", "1"),
        (run.bad_values, "value", "1"),
        (run.phase_faults, "phase", "phases"),
        (run.message_faults, "message", "fifo"),
    ):
        if seen:
            yield what, rows
    if any(race.first.effect.agent[:3] == race.second.effect.agent[:3] == "aiv" for race in run.races):
        yield "sub-cores or pipes", "2"
    meets = {sum(op.effect.meets for op in ops) for ops in run.issued.values()}
    if len(meets) > 1:
        yield "sync_all", "6"


class Watched(Search):
    """A search that notes what goes wrong in its runs: the rows of which one must be refuted, and where."""

    def __init__(self, kernel: ir.Kernel) -> None:
        super().__init__(compile_kernel(kernel), time.monotonic() + 60)
        self.demands: dict[str, tuple[str, Shape]] = {}

    def _judge(self, shape: Shape, runs: list[Run]) -> None:
        for run in runs:
            for what, rows in broken(self, run):
                self.demands.setdefault(rows, (what, shape))
        super()._judge(shape, runs)


@pytest.mark.parametrize("code", [r.code for r in rules() if r.code[0] in "12345678"])
def test_every_fault_is_told_in_its_rows(code: str) -> None:
    page = next(r for r in rules() if r.code == code).page()
    kernels = [k for text in (page.bad, page.good) for k in read(text, "k.kir").kernels]
    for number, mutant in enumerate(m for k in kernels for m in mutants(k)):
        if number % EVERY_NTH or validate(mutant):
            continue
        try:
            search = Watched(mutant)
        except ModelError:
            continue
        outcome = search.quick()
        refuted = {row.id for row in refutation(outcome).rows}
        for rows, (what, shape) in search.demands.items():
            assert refuted & set(rows.split()), f"{what} at {shape.values}: {refuted}\n{print_kernel(mutant)}"
        assert not refuted or search.demands or outcome.facts
