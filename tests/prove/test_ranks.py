"""Do rank formulas equal counted executions, for all small parameter values?"""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost import ir
from fencepost.discover import Source
from fencepost.model.functions import FunctionTable
from fencepost.model.program import compile_kernel
from fencepost.model.shapes import allowed
from fencepost.prove.evaluation import function
from fencepost.prove.formulas import Formulas
from fencepost.prove.kernels import Closed, closed
from fencepost.prove.ranks import Summation, Sums
from fencepost.prove.rewrite import Known
from fencepost.prove.runs import concrete
from fencepost.prove.symbolic import counted
from fencepost.prove.terms import Cond, conjoin, const, disjoin, eq, indicator, le, lt, mod, negate, symbol
from fencepost.reading import parse, read

CASES = Path(__file__).resolve().parent.parent / "cases"
T, N = symbol("t@1"), symbol("n")


def kernels(file: str) -> dict[str, ir.Kernel]:
    text = (CASES / file).read_text("utf-8")
    return {k.name: k for k in read(Source(file, text)).result.kernels}


def plain(kernel: ir.Kernel) -> bool:
    """Whether a kernel has neither pipelines nor constructs that closed forms refuse."""
    return not any(isinstance(n, (ir.Pipelined, ir.Break, ir.Unsupported)) for n in ir.walk(kernel))


RIGHT = {name: k for name, k in kernels("right.kir").items() if plain(k)}
FAULTY = {name: k for name, k in kernels("faulty.kir").items() if plain(k)}


# ------------------------------------------------------------------------------------------------ counts of guards

offsets = st.integers(-3, 4)
comparisons = st.one_of(
    st.builds(lambda c: le(const(c) - T), offsets),
    st.builds(lambda c: lt(T, N + c), offsets),
    st.builds(lambda c: eq(T, N + c), offsets),
    st.builds(lambda c: negate(eq(T, const(c))), offsets),
    st.builds(lambda m, c, r: eq(mod(T + c, m), const(r % m)), st.integers(2, 4), offsets, st.integers(0, 3)),
)
guards = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds(lambda a, b: conjoin((a, b)), inner, inner), st.builds(lambda a, b: disjoin((a, b)), inner, inner)
    ),
    max_leaves=3,
)


@given(guards)
def test_a_count_equals_the_counted_trips(guard: Cond) -> None:
    outside = Known([le(-N), le(-T), le(T - N)])
    sums = Sums()
    formula = Summation(sums).before(indicator(guard), "t@1", outside.extended([lt(T, N)]), outside)
    if sums.by_name:
        return  # a sum without a closed form is right by definition
    both = function([formula, indicator(guard)])
    nothing = None
    for n in range(7):
        total = 0
        for t in range(n + 1):
            value, holds = both({"t@1": t, "n": n}, nothing)  # type: ignore[arg-type]
            assert value == total
            total += holds


# ------------------------------------------------------------------------------------------------ whole kernels


def check_counts(kernel: Closed, values: dict[str, int], table: FunctionTable) -> bool:
    """Compare every count at every execution with what was executed before it; False if the run has no values."""
    run = concrete(kernel, values, table)
    if run is None:
        return False
    for agent, steps in run.steps.items():
        seen: Counter[object] = Counter()
        for step in steps:
            event = step.event
            keys = [k for k in event.before if not isinstance(k, int) and k[0] != "renew"]
            here = {**run.parameters, **dict(zip(event.indices, step.indices, strict=True))}
            found = function([event.count(k) for k in keys])(here, run.functions)
            assert dict(zip(keys, found, strict=True)) == {k: seen[k] for k in keys}, (agent, event, values)
            seen.update([event.key, *counted(step.effect)])
        totals = {k: v for k, v in kernel.traces[agent].totals.items() if not isinstance(k, int) and k[0] != "renew"}
        found = function(totals.values())(run.parameters, run.functions)
        assert dict(zip(totals, found, strict=True)) == {k: seen[k] for k in totals}, (agent, values)
    return True


def small(kernel: Closed) -> list[tuple[dict[str, int], FunctionTable]]:
    parameters = kernel.compiled.parameters
    top = 7 if len(parameters) < 2 else 3
    tables = [FunctionTable(), FunctionTable(seed=2)] if kernel.function_names else [FunctionTable()]
    found = []
    for values in product(range(-1, top), repeat=len(parameters)):
        for table in tables:
            if allowed(kernel.compiled, values, FunctionTable(table.values, table.default, table.seed)):
                fresh = FunctionTable(table.values, table.default, table.seed)
                found.append((dict(zip(parameters, values, strict=True)), fresh))
    return found


@pytest.mark.parametrize("name", [*RIGHT, *FAULTY])
def test_counts_of_kernels_equal_counted_executions(name: str) -> None:
    kernel = closed(compile_kernel({**RIGHT, **FAULTY}[name]), None)
    ran = [check_counts(kernel, values, table) for values, table in small(kernel)]
    assert any(ran) or name in FAULTY


# ------------------------------------------------------------------------------------------------ the formulas


def totals(text: str) -> dict[str, str]:
    """The formulas of the cube's waits, by event id."""
    kernel = closed(compile_kernel(parse(text)), None)
    write, trace = Formulas(kernel.sums), kernel.traces["aic"]
    found = {}
    for key, value in trace.totals.items():
        if not isinstance(key, int) and key[0] == "wait":
            assert isinstance(key[1], int)
            channel = kernel.resolver.channels[key[1]]
            if channel.lane == 0:
                found[f"event {channel.id}"] = write.term(value)
    return found


LOOP = """
kernel loop({parameters}):
    IDS = ({ids})
    {assumes}
    section cube:
{body}
"""


@pytest.mark.parametrize(
    ("body", "ids", "expected"),
    [
        ("for t in range(n):\n    wait_cross_core IDS[t % 2] @ FIX", "0, 1", ["ceil(n / 2)", "floor(n / 2)"]),
        ("for t in range(n):\n    if t >= 1:\n        wait_cross_core 5 @ FIX", "0, 1", ["max(n - 1, 0)"]),
        ("for t in range(0, n, 3):\n    wait_cross_core 5 @ FIX", "0, 1", ["ceil(n / 3)"]),
        ("for t in range(n):\n    for j in range(n):\n        wait_cross_core 5 @ FIX", "0, 1", ["n * n"]),
        ("for t in range(n):\n    if t == n - 1:\n        wait_cross_core 5 @ FIX", "0, 1", ["(1 if n >= 1 else 0)"]),
        (
            "for t in range(n):\n    if need(t) > 0:\n        wait_cross_core 5 @ FIX",
            "0, 1",
            ["#(x < n: need(x) >= 1)"],
        ),
        (
            "for t in range(n):\n    for j in range(rows(t)):\n        wait_cross_core 5 @ FIX",
            "0, 1",
            ["sum(x < n: max(rows(x), 0))"],
        ),
    ],
)
def test_counts_read_like_formulas(body: str, ids: str, expected: list[str]) -> None:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    text = LOOP.format(parameters="n", ids=ids, assumes="assume n >= 0", body=lines)
    assert list(totals(text).values()) == expected
