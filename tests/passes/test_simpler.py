"""Do slices, aliases, early answers and flat counters keep every operation, its operands and its order?"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.campaigns.random_kernels import random_kernel

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.model.functions import FunctionTable
from fencepost.model.issue import issue
from fencepost.model.program import compile_kernel
from fencepost.passes.aliases import Aliases
from fencepost.passes.early import Early
from fencepost.passes.flat import Flat
from fencepost.passes.slices import Slices
from fencepost.passes.unique import UniqueLoops
from fencepost.printer import print_kernel
from fencepost.prove.complements import Complements
from fencepost.prove.loosen import simpler


def kernel_of(text: str) -> ir.Kernel:
    result = read(text, "k.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


def body(kernel: ir.Kernel) -> str:
    return print_kernel(kernel).partition("section cube:\n")[2].rstrip()


NEST = """kernel k(rows, columns):
    assume rows >= 0
    assume columns >= 0
    EVENTS = (0, 1)
    buffer b[2] in Mat

    section cube:
        row = 0
        kept = 0
        kept_row = 0
        address = 7
        for r in range(rows):
            for c in range(columns):
                if kept == 0:
                    load b[(kept_row * columns + kept) % 2] <- x @ MTE2
                else:
                    copy b[(kept_row * columns + kept) % 2] <- x @ MTE2
                kept = c
                kept_row = row
                address = address + c
                set_cross_core EVENTS[(row * columns + c) % 2] @ MTE2
            row = row + 1
"""


def test_a_nest_becomes_a_counter_and_answers() -> None:
    kernel = kernel_of(NEST)
    for step in (Slices(), Aliases(), Early(), Flat(), Slices()):
        kernel = step.run(kernel)
    assert (
        body(kernel)
        == """\
        early~0 = (0 * columns + 0) % 2
        flat~0 = 0
        for r in range(rows):
            for c in range(columns):
                copy b[early~0] <- x @ MTE2
                early~0 = flat~0 % 2
                set_cross_core EVENTS[flat~0 % 2] @ MTE2
                flat~0 = flat~0 + 1"""
    )


def test_a_jump_is_no_full_row() -> None:
    jump = "                if c == 3:\n                    break\n"
    text = NEST.replace("                kept = c\n", f"{jump}                kept = c\n")
    kernel = Flat().run(kernel_of(text))
    assert "flat~" not in print_kernel(kernel)


def test_a_row_counted_twice_is_none() -> None:
    kernel = Flat().run(kernel_of(NEST.replace("row = row + 1", "row = row + 2")))
    assert "flat~" not in print_kernel(kernel)


def test_two_sides_of_one_branch() -> None:
    text = """kernel k(n):
    buffer a in Mat
    buffer b in Mat

    section cube:
        for t in range(n):
            if t == 0:
                load a <- x @ MTE2
            if t > 0:
                load b <- x @ MTE2
            if t % 2 == 0:
                load a <- x @ MTE2
            if t % 2 == 2:
                load b <- x @ MTE2
"""
    joined = body(Complements().run(kernel_of(text)))
    assert joined.count("else:") == 1
    assert "if t % 2 == 2:" in joined


def test_a_record_answers_where_it_is_stored() -> None:
    text = """kernel k(n):
    buffer b[2] in Mat
    ring ctx[3](task, first)

    section cube:
        for t in range(n):
            ctx[t % 3].task = t
            ctx[t % 3].first = t
            if t > 0:
                p = (t + 2) % 3
                if ctx[p].first == 0:
                    load b[ctx[p].task % 2] <- x @ MTE2
"""
    kernel = kernel_of(text)
    for step in (Aliases(), Early(), Slices()):
        kernel = step.run(kernel)
    assert (
        body(kernel)
        == """\
        for t in range(n):
            ctx[t % 3].early~2 = t % 2
            ctx[t % 3].early~3 = (t == 0) == 0
            if t > 0:
                if ctx[(t + 2) % 3].early~3 == 0:
                    load b[ctx[(t + 2) % 3].early~2] <- x @ MTE2"""
    )


def issued(kernel: ir.Kernel, values: list[int], table: FunctionTable) -> list[list[object]]:
    """What every agent issues: operations with their operands, repeated accesses left out."""
    compiled = compile_kernel(kernel)
    found: list[list[object]] = []
    for program in compiled.programs:
        operations, _ = issue(compiled, program, values, table, 20_000)
        mine: list[object] = []
        for site, arguments, _ in operations:
            stmt = program.sites[site]
            what = (type(stmt), getattr(stmt, "pipe", None) or (stmt.source, stmt.target), names(stmt), arguments)
            plain = isinstance(stmt, ir.DataOp) and stmt.phase is None
            if not (plain and mine and mine[-1] == what):
                mine.append(what)
        found.append(mine)
    return found


def names(stmt: ir.Stmt) -> object:
    if isinstance(stmt, ir.DataOp):
        return tuple(a.name for a in stmt.writes), tuple(a.name for a in stmt.reads), stmt.phase
    return getattr(stmt, "value", None)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(number=st.integers(1, 100_000))
def test_random_kernels_issue_the_same(number: int, n: int) -> None:
    kernel = UniqueLoops().run(random_kernel(number))
    values = [n] * len(compile_kernel(kernel).parameters)
    before = issued(kernel, values, FunctionTable())
    assert issued(simpler(kernel), values, FunctionTable()) == before
