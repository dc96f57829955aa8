"""Does the pass agree with a compiler's pass on every recorded loop?"""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fencepost import ir
from fencepost.model.functions import FunctionTable
from fencepost.model.program import compile_kernel
from fencepost.model.values import Computed, Event, Received, Sent, Values, trace
from fencepost.passes.skew import LoopOutcome, Reason, Skew, Skewed, SkewError

ORACLE = Path(__file__).parents[2].parent / "shared" / "cases" / "skew_oracle.json"
pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason=f"no oracle at {ORACLE}")

REASONS = {
    "no push+pop pair at the top level of the body": Reason.NO_PAIR,
    "stage 1": Reason.STAGE_ONE,
    "start or stop is not a constant": Reason.BOUNDS,
    "fewer than two iterations": Reason.SHORT,
    "producer half uses a loop-carried value": Reason.CARRIED_IN,
    "not exactly one push and one pop at the top level": Reason.MESSAGES,
    "carried value cannot be recomputed": Reason.CARRIED_OVER,
}


@cache
def oracle() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(ORACLE.read_text())
    return loaded


def rows() -> list[dict[str, Any]]:
    return [*oracle()["rows"], *oracle()["named"]] if ORACLE.exists() else []


def nested_rows() -> list[dict[str, Any]]:
    return list(oracle()["nested"]) if ORACLE.exists() else []


def expression(text: str) -> ir.Expr:
    def convert(node: ast.expr) -> ir.Expr:
        match node:
            case ast.Constant(value=int(value)):
                return ir.Int(value)
            case ast.Name(id=name):
                return ir.Name(name)
            case ast.BinOp(left=left, op=op, right=right):
                symbol = {"Add": "+", "Sub": "-", "Mult": "*", "FloorDiv": "//", "Mod": "%"}[type(op).__name__]
                return ir.Binary(symbol, convert(left), convert(right))  # type: ignore[arg-type]
            case ast.Compare(left=left, ops=[ast.Lt()], comparators=[right]):
                return ir.Compare(convert(left), (("<", convert(right)),))
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                return ir.Compare(convert(left), (("==", convert(right)),))
            case ast.Call(func=ast.Name(id=function), args=arguments):
                return ir.Call(function, tuple(convert(a) for a in arguments))
        raise AssertionError(ast.dump(node))

    return convert(ast.parse(text, mode="eval").body)


def bound(value: int | str) -> ir.Expr:
    return ir.Int(value) if isinstance(value, int) else ir.Name(value)


class Translator:
    """One JSON body as kernel IR.  The line of a statement's span is its index, its column tells nested ones apart."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.core: ir.Core = "cube" if row["core"] == "aic" else "vector"
        self.peer: ir.Core = "vector" if self.core == "cube" else "cube"
        self.carried = dict(zip(row.get("yields", ()), row.get("iter_args", ()), strict=True))

    def body(self, stmts: list[dict[str, Any]], line: int | None = None) -> tuple[ir.Stmt, ...]:
        return tuple(
            self.statement(s, ir.Span("", i if line is None else line, 0 if line is None else i + 1))
            for i, s in enumerate(stmts)
        )

    def statement(self, s: dict[str, Any], span: ir.Span) -> ir.Stmt:
        target = self.carried.get(s.get("def", ""), s.get("def", ""))
        match s["op"]:
            case "load":
                read = ir.Access(s.get("from", "src"))
                at = (expression(s["at"]),)
                return ir.DataOp("load", (ir.Access(target),), (read,), "MTE2", at=at, span=span)
            case "add":
                reads = tuple(ir.Access(a) for a in s["args"])
                return ir.DataOp("add", (ir.Access(target),), reads, "V", span=span)
            case "store":
                reads = tuple(ir.Access(a) for a in s["args"])
                writes = (ir.Access(target),) if target else ()
                return ir.DataOp("store", writes, reads, "MTE3", at=(expression(s["at"]),), span=span)
            case "scalar":
                return ir.Assign(target, expression(s["expr"]), span=span)
            case "scalar_call":
                return ir.Assign(target, ir.Call("block_index", ()), span=span)
            case "push":
                return ir.Push(s["args"][0], self.peer, task=ir.Name("i"), span=span)
            case "pop":
                return ir.Pop(target, self.peer, task=ir.Name("i"), span=span)
            case "tfree":
                return ir.Free(s["args"][0], self.peer, span=span)
            case "if":
                return ir.If(((expression(s["cond"]), self.body(s["body"], span.line)),), span=span)
            case "for":
                inner = self.body(s["body"], span.line)
                return ir.For(s["var"], ir.Int(0), ir.Int(s["n"]), ir.Int(1), inner, span=span)
        raise AssertionError(s)


def kernel(row: dict[str, Any]) -> ir.Kernel:
    t = Translator(row)
    loop = ir.For(
        "i", bound(row["start"]), bound(row["stop"]), bound(row["step"]), t.body(row["body"]), ir.Int(row["stage"])
    )
    tail = tuple(ir.DataOp("keep", (), (ir.Access(name),), "S") for name in row.get("iter_args", ()))
    fifos = (ir.Fifo("c2v", "cube", ir.Int(2)), ir.Fifo("v2c", "vector", ir.Int(2)))
    return ir.Kernel("k", ("n",), fifos=fifos, body=(ir.Section(t.core, (loop, *tail)),))


def events(skewed: ir.Kernel, row: dict[str, Any], values: Values) -> list[Event]:
    agent = "aic" if row["core"] == "aic" else "aiv0"
    return trace(compile_kernel(skewed), agent, (4,), FunctionTable(default=2), values, 100_000)


def stream(found: list[Event], kind: type[Sent] | type[Received]) -> list[tuple[int, int, int | None]]:
    return [(e.stmt.span.line, e.stmt.span.column, e.task) for e in found if isinstance(e, kind)]


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row["id"]))
def test_row(row: dict[str, Any]) -> None:
    expected = row["expected"]
    before = kernel(row)
    if expected["outcome"] == "error":
        with pytest.raises(SkewError, match="step"):
            Skew().run(before)
        return
    skewed = Skew().run(before)
    (outcome,) = skewed.loops
    assert outcome.action == expected["outcome"]
    assert Skew().run(skewed.kernel).kernel == skewed.kernel
    if outcome.action != "skewed":
        wanted = [REASONS[r] for r in (expected["reason"], *expected.get("also", ()))]
        assert outcome.reasons[0] == wanted[0]
        assert set(wanted) <= set(outcome.reasons)
    if "trip" in expected:
        assert outcome.trip == expected["trip"]
    if outcome.action == "skewed":
        check_skewed(row, before, skewed, outcome)
    elif outcome.action == "demoted":
        section = skewed.kernel.body[0]
        assert isinstance(section, ir.Section)
        (loop, *_) = section.body
        start, stop, step = (bound(row[k]) for k in ("start", "stop", "step"))
        assert loop == ir.For("i", start, stop, step, Translator(row).body(row["body"]))
    else:
        assert skewed.kernel == before


def check_skewed(row: dict[str, Any], before: ir.Kernel, skewed: Skewed, outcome: LoopOutcome) -> None:
    expected = row["expected"]
    halves, schedule = outcome.halves, outcome.schedule
    assert halves is not None
    assert schedule is not None
    assert outcome.depth == expected["depth"]
    assert list(halves.produce) == expected["produce"]
    assert list(halves.consume) == expected["consume"]
    assert list(halves.recomputed) == expected["recomputed"]
    assert list(schedule.prologue) == expected["prologue"]
    assert list(schedule.epilogue) == expected["epilogue"]
    steady = expected["steady"]
    assert schedule.steady == range(steady["start"], steady["stop"], steady["step"])
    assert len(schedule.steady) == steady["iterations"]
    assert list(schedule.produce_offsets) == steady["produce_offsets"]
    assert list(schedule.consume_offsets) == steady["consume_offsets"]

    # The printed program says the same as the schedule: the source iteration of every top-level statement.
    section = skewed.kernel.body[0]
    assert isinstance(section, ir.Section)
    loop = next(s for s in section.body if isinstance(s, ir.For) and s.var == "i")
    at = section.body.index(loop)
    lines = [s.span.line for s in section.body[:at]]
    assert lines == [*halves.produce] * schedule.depth
    assert [s.span.line for s in loop.body] == [*halves.produce] * schedule.depth + [*halves.consume] * schedule.depth

    values = Values()
    was, now = events(before, row, values), events(skewed.kernel, row, values)
    for kind, key in ((Sent, "push_order_changed"), (Received, "pop_order_changed")):
        assert sorted(map(str, stream(was, kind))) == sorted(map(str, stream(now, kind)))
        assert (stream(was, kind) != stream(now, kind)) == expected[key]
    messages = [e for e in now if isinstance(e, Sent | Received)]
    first = messages[0]
    assert ("push" if isinstance(first, Sent) else "pop") == expected["first_message"]
    ahead = next(i for i, e in enumerate(messages) if type(e) is not type(first))
    assert ahead == expected["run_ahead"]
    if not outcome.hidden:
        # Same messages in the same order, same stored results per statement in the same order.
        assert [e.value for e in was if isinstance(e, Sent)] == [e.value for e in now if isinstance(e, Sent)]
        for line in range(len(row["body"])):
            assert stored(was, line) == stored(now, line)


def stored(found: list[Event], line: int) -> list[tuple[Any, ...]]:
    return [
        (e.op, e.at, e.reads) for e in found if isinstance(e, Computed) and e.op == "store" and e.stmt.span.line == line
    ]


@pytest.mark.parametrize("row", nested_rows(), ids=lambda row: str(row["id"]))
def test_nested(row: dict[str, Any]) -> None:
    core: ir.Core = "cube" if row["core"] == "aic" else "vector"
    peer: ir.Core = "vector" if core == "cube" else "cube"
    outer, inner = row["outer"], row["inner"]
    both = ir.Binary("+", ir.Binary("*", ir.Name("o"), ir.Int(100)), ir.Name("c"))
    body = (
        ir.DataOp("load", (ir.Access("x"),), (ir.Access("src"),), "MTE2", at=(both,)),
        ir.Push("x", peer, task=both),
        ir.Pop("y", peer, task=both),
        ir.DataOp("store", (), (ir.Access("y"),), "MTE3", at=(both,)),
    )

    def loop(var: str, kind: dict[str, Any], inside: tuple[ir.Stmt, ...]) -> ir.For:
        stage = ir.Int(kind["stage"]) if kind["kind"] == "pipeline" else None
        return ir.For(var, ir.Int(0), ir.Int(kind["trip"]), ir.Int(1), inside, stage)

    fifos = (ir.Fifo("c2v", "cube", ir.Int(2)), ir.Fifo("v2c", "vector", ir.Int(2)))
    nest = loop("o", outer, (loop("c", inner, body),))
    before = ir.Kernel("k", fifos=fifos, body=(ir.Section(core, (nest,)),))
    skewed = Skew().run(before)
    assert Skew().run(skewed.kernel).kernel == skewed.kernel

    expected = row["expected"]
    outcomes = {o.loop.var: o for o in skewed.loops}
    for var, want in (("c", expected["inner"]), ("o", expected["outer"])):
        if want["outcome"] == "ordinary loop":
            assert var not in outcomes
            continue
        assert outcomes[var].action == want["outcome"]
        assert outcomes[var].depth == want.get("depth")
        if "reason" in want:
            assert outcomes[var].reasons[0] == REASONS[want["reason"]]
    compiled = compile_kernel(skewed.kernel)
    now = trace(compiled, "aic" if core == "cube" else "aiv0", (), FunctionTable(), Values(), 100_000)
    pushes = [e.task for e in now if isinstance(e, Sent)]
    pops = [e.task for e in now if isinstance(e, Received)]
    assert pushes == [o * 100 + c for o, c in expected["push_order"]]
    assert (pushes != sorted(pushes)) == expected["push_order_changed"]  # type: ignore[type-var]
    assert (pops != sorted(pops)) == expected["pop_order_changed"]  # type: ignore[type-var]
    messages = [e for e in now if isinstance(e, Sent | Received)]
    ahead = next(i for i, e in enumerate(messages) if type(e) is not type(messages[0]))
    assert ahead == expected["run_ahead"]
