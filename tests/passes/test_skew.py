"""Is a skewed loop what the description of the pass says, and does it still compute the same?"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost import ir
from fencepost.model.executor import Run, run
from fencepost.model.functions import FunctionTable
from fencepost.model.program import compile_kernel
from fencepost.model.values import Computed, Event, Freed, Received, Sent, Values, trace
from fencepost.passes.skew import MAX_NESTING, Reason, Skew, SkewError
from fencepost.passes.skew.identity import mark
from fencepost.passes.skew.loops import Schedule, depth_for
from fencepost.rewrite import copy, rebuild

I = ir.Name("i")  # noqa: E741
FIFOS = (ir.Fifo("down", "cube", ir.Int(2)), ir.Fifo("up", "vector", ir.Int(2)))


def op(name: str, write: str | None, *reads: str, at: tuple[ir.Expr, ...] = ()) -> ir.DataOp:
    return ir.DataOp(name, (ir.Access(write),) if write else (), tuple(ir.Access(r) for r in reads), "MTE2", at=at)


def produce() -> tuple[ir.Stmt, ...]:
    return (op("qk", "s", "q", at=(I,)), ir.Push("s", "vector"))


def consume() -> tuple[ir.Stmt, ...]:
    return (ir.Pop("p", "vector"), op("sv", "o", "p"), op("store", None, "o", at=(I,)))


def pipeline(body: tuple[ir.Stmt, ...], trip: int, stage: int, start: int = 0, step: int = 1) -> ir.For:
    return ir.For("i", ir.Int(start), ir.Int(start + trip * step), ir.Int(step), body, ir.Int(stage))


def cube(*body: ir.Stmt, **rest: Any) -> ir.Kernel:
    return ir.Kernel("k", fifos=FIFOS, body=(ir.Section("cube", body),), **rest)


def body_of(kernel: ir.Kernel) -> tuple[ir.Stmt, ...]:
    (section,) = kernel.body
    assert isinstance(section, ir.Section)
    return section.body


def listing(stmts: tuple[ir.Stmt, ...]) -> list[str]:
    """Statements in a few letters: `qk s_1 (i + 1)`, `push s_1`, ..."""

    def text(e: ir.Expr) -> str:
        match e:
            case ir.Int(value=value):
                return str(value)
            case ir.Name(id=name):
                return name
            case ir.Binary(op=sign, left=left, right=right):
                return f"{text(left)} {sign} {text(right)}"
        raise AssertionError(e)

    out = []
    for s in stmts:
        match s:
            case ir.DataOp():
                names = " ".join(a.name for a in (*s.writes, *s.reads) if a.name != "q")
                out.append(f"{s.op} {names}" + "".join(f" ({text(e)})" for e in s.at))
            case ir.Push(value=value):
                out.append(f"push {value}")
            case ir.Pop(value=value):
                out.append(f"pop {value}")
            case ir.For():
                assert s.stage is None
                out.append(f"for {s.var} in range({text(s.start)}, {text(s.stop)}, {text(s.step)})")
                out += ["  " + line for line in listing(s.body)]
            case _:
                raise AssertionError(s)
    return out


def test_eight_trips_stage_two() -> None:
    skewed = Skew().run(cube(pipeline((*produce(), *consume()), 8, 2)))
    assert listing(body_of(skewed.kernel)) == [
        "qk s (0)", "push s",
        "qk s_1 (1)", "push s_1",
        "for i in range(2, 8, 2)",
        "  qk s_2 (i)", "  push s_2",
        "  qk s_3 (i + 1)", "  push s_3",
        "  pop p", "  sv o p", "  store o (i - 2)",
        "  pop p_1", "  sv o_1 p_1", "  store o_1 (i - 1)",
        "pop p_2", "sv o_2 p_2", "store o_2 (6)",
        "pop p_3", "sv o_3 p_3", "store o_3 (7)",
    ]  # fmt: skip
    assert str(skewed.loops[0]) == "loop i, stage 2: skewed at depth 2"


def test_three_trips_fall_back_to_depth_one() -> None:
    skewed = Skew().run(cube(pipeline((*produce(), *consume()), 3, 2)))
    assert listing(body_of(skewed.kernel)) == [
        "qk s (0)", "push s",
        "for i in range(1, 3, 1)",
        "  qk s_1 (i)", "  push s_1",
        "  pop p", "  sv o p", "  store o (i - 1)",
        "pop p_1", "sv o_1 p_1", "store o_1 (2)",
    ]  # fmt: skip


def test_stage_four_with_six_trips() -> None:
    skewed = Skew().run(cube(pipeline((*produce(), *consume()), 6, 4)))
    assert listing(body_of(skewed.kernel)) == [
        "qk s (0)", "push s", "qk s_1 (1)", "push s_1", "qk s_2 (2)", "push s_2",
        "for i in range(3, 6, 3)",
        "  qk s_3 (i)", "  push s_3", "  qk s_4 (i + 1)", "  push s_4", "  qk s_5 (i + 2)", "  push s_5",
        "  pop p", "  sv o p", "  store o (i - 3)",
        "  pop p_1", "  sv o_1 p_1", "  store o_1 (i - 2)",
        "  pop p_2", "  sv o_2 p_2", "  store o_2 (i - 1)",
        "pop p_3", "sv o_3 p_3", "store o_3 (3)",
        "pop p_4", "sv o_4 p_4", "store o_4 (4)",
        "pop p_5", "sv o_5 p_5", "store o_5 (5)",
    ]  # fmt: skip


def test_consumer_side_is_demoted() -> None:
    body = (ir.Pop("s", "cube"), op("softmax", "p", "s"), ir.Push("p", "cube"))
    before = ir.Kernel("k", fifos=FIFOS, body=(ir.Section("vector", (pipeline(body, 4, 2),)),))
    skewed = Skew().run(before)
    assert listing(body_of(skewed.kernel)) == [
        "for i in range(0, 4, 1)", "  pop s", "  softmax p s", "  push p",
    ]  # fmt: skip
    assert str(skewed.loops[0]) == (
        "loop i, stage 2: demoted to a plain loop: "
        "the consume half uses a value of the produce half that cannot be recomputed (s)"
    )


@pytest.mark.parametrize(
    ("stage", "trip", "depth"),
    [(2, 8, 2), (2, 3, 1), (3, 8, 2), (4, 6, 3), (4, 10, 2), (4, 8, 2), (4, 7, 1), (6, 12, 4), (6, 10, 5), (9, 2, 1)],
)
def test_depth(stage: int, trip: int, depth: int) -> None:
    assert depth_for(stage, trip) == depth


@given(st.integers(-9, 9), st.sampled_from([-3, -2, -1, 1, 2, 3]), st.integers(2, 40), st.integers(2, 12))
def test_every_iteration_is_produced_and_consumed_once_in_order(start: int, step: int, trip: int, stage: int) -> None:
    s = Schedule(start, step, trip, depth_for(stage, trip))
    iterations = [start + i * step for i in range(trip)]
    assert [*s.prologue, *(v + d for v in s.steady for d in s.produce_offsets)] == iterations
    assert [*(v + d for v in s.steady for d in s.consume_offsets), *s.epilogue] == iterations
    assert len(s.steady) >= 1


# ------------------------------------------------------------------------------------------------ names


def test_loop_carried_value_keeps_its_name() -> None:
    body = (*produce(), ir.Pop("p", "vector"), op("add", "acc", "acc", "p"))
    skewed = Skew().run(cube(pipeline(body, 4, 2), op("store", None, "acc")))
    assert listing(body_of(skewed.kernel))[-5:] == [
        "pop p_2", "add acc acc p_2", "pop p_3", "add acc acc p_3", "store acc",
    ]  # fmt: skip


def test_value_read_after_the_loop_is_that_of_the_last_iteration() -> None:
    skewed = Skew().run(cube(pipeline((*produce(), *consume()), 2, 2), op("last", None, "s", "o")))
    assert listing(body_of(skewed.kernel)) == [
        "qk s (0)", "push s",
        "for i in range(1, 2, 1)",
        "  qk s (i)", "  push s",
        "  pop p", "  sv o p", "  store o (i - 1)",
        "pop p_1", "sv o p_1", "store o (1)",
        "last s o",
    ]  # fmt: skip


def test_value_after_the_loop_that_either_half_may_compute() -> None:
    again = ir.If(((ir.Compare(ir.Call("f", (I,)), (("<", ir.Int(0)),)), (op("redo", "s"),)),))
    body = (*produce(), *consume(), again)
    (outcome,) = Skew().run(cube(pipeline(body, 4, 2), op("last", None, "s"))).loops
    assert outcome.reasons == (Reason.CARRIED_OVER,)
    (outcome,) = Skew().run(cube(pipeline(body, 4, 2))).loops
    assert outcome.action == "skewed"


def test_new_names_avoid_every_name_of_the_kernel() -> None:
    kernel = cube(pipeline((*produce(), *consume()), 2, 2), parameters=("s_1",), buffers=(ir.Buffer("p_1", "Vec"),))
    names = {s.value for s in ir.walk(Skew().run(kernel).kernel) if isinstance(s, ir.Push | ir.Pop)}
    assert names == {"s", "s_2", "p", "p_2"}


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (ir.If(((ir.Compare(I, (("<", ir.Int(2)),)), (ir.Break(),)),)), Reason.JUMPS),
        (ir.Assign("i", ir.Int(1)), Reason.VARIABLE),
        (ir.Push("o", "vector"), Reason.MESSAGES),
        (op("peek", None, "s"), Reason.CARRIED_OVER),
    ],
)
def test_reasons(extra: ir.Stmt, reason: Reason) -> None:
    before = cube(pipeline((*produce(), *consume(), extra), 4, 2))
    (outcome,) = Skew().run(before).loops
    assert outcome.action == "demoted"
    assert outcome.reasons[0] is reason


def test_break_of_an_inner_loop_does_not_matter() -> None:
    inner = ir.For("j", ir.Int(0), ir.Int(3), ir.Int(1), (ir.Break(),))
    (outcome,) = Skew().run(cube(pipeline((*produce(), *consume(), inner), 4, 2))).loops
    assert outcome.action == "skewed"


def test_cursor_in_the_produce_half_is_loop_carried() -> None:
    qk = ir.DataOp("qk", (ir.Access("s"),), (ir.Access("kb", ir.Name("slot")),), "M")
    body = (ir.Cursor("slot", "kb", "next"), qk, ir.Push("s", "vector"), *consume())
    before = cube(pipeline(body, 4, 2), buffers=(ir.Buffer("kb", "Mat", ir.Int(2)),))
    (outcome,) = Skew().run(before).loops
    assert outcome.reasons == (Reason.CARRIED_IN,)


def test_constants_fold_in_bounds() -> None:
    loop = ir.For("i", ir.Int(0), ir.Name("N"), ir.Int(1), (*produce(), *consume()), ir.Name("F"))
    n = ir.Constant("N", ir.Binary("*", ir.Int(2), ir.Int(4)))
    (outcome,) = Skew().run(cube(loop, constants=(n, ir.Constant("F", ir.Int(2))))).loops
    assert outcome.depth == 2
    (outcome,) = Skew().run(cube(loop, parameters=("N",), constants=(ir.Constant("F", ir.Int(2)),))).loops
    assert outcome.reasons == (Reason.BOUNDS,)


@pytest.mark.parametrize("step", [ir.Int(0), ir.Name("n")])
def test_bad_step(step: ir.Expr) -> None:
    loop = ir.For("i", ir.Int(0), ir.Int(4), step, (*produce(), *consume()), ir.Int(2))
    with pytest.raises(SkewError, match="step"):
        Skew().run(cube(loop))


@pytest.mark.parametrize("stage", [ir.Int(0), ir.Int(-1), ir.Name("n")])
def test_bad_stage(stage: ir.Expr) -> None:
    loop = ir.For("i", ir.Int(0), ir.Int(4), ir.Int(1), (*produce(), *consume()), stage)
    with pytest.raises(SkewError, match="stage"):
        Skew().run(cube(loop))


def test_deep_nesting_is_an_error_and_deep_expressions_are_not() -> None:
    deep: ir.Stmt = ir.Pass()
    for _ in range(MAX_NESTING + 1):
        deep = ir.If(((ir.Int(1), (deep,)),))
    with pytest.raises(SkewError, match="nested"):
        Skew().run(cube(deep))
    long: ir.Expr = I
    for _ in range(5000):
        long = ir.Binary("+", long, ir.Int(1))
    body = (op("qk", "s", at=(long,)), ir.Push("s", "vector"), *consume())
    assert Skew().run(cube(pipeline(body, 4, 2))).loops[0].action == "skewed"


def test_a_skew_too_long_to_be_written_is_an_error() -> None:
    body = (op("make", "s"), ir.Push("s", "vector"), ir.Pop("p", "vector"), op("store", None, "p"))
    with pytest.raises(SkewError, match="makes 400,000 statements"):
        Skew().run(cube(pipeline(body, 1_000_000, 50_001)))
    assert Skew(max_depth=10).run(cube(pipeline(body, 1_000_000, 50_001))).loops[0].depth == 10
    for level in range(60):  # a loop around a skewed one is skewed as well, and doubles it
        body = (replace(pipeline(body, 2, 2), var=f"i{level}"),)
    with pytest.raises(SkewError, match="statements of this loop"):
        Skew().run(cube(*body))


# ------------------------------------------------------------------------------------------------ random bodies

SCALARS, TILES = ("a", "b"), ("s", "t", "u")


@st.composite
def scalars(draw: st.DrawFn) -> ir.Expr:
    left = draw(st.sampled_from([I, *(ir.Name(n) for n in SCALARS), ir.Int(2)]))
    sign = draw(st.sampled_from(["+", "-", "*"]))
    value: ir.Expr = ir.Binary(sign, left, draw(st.sampled_from([ir.Int(3), I])))  # type: ignore[arg-type]
    if draw(st.integers(0, 9)) == 0:
        value = ir.Call("unknown", (value,))
    return value


@st.composite
def plain(draw: st.DrawFn) -> ir.Stmt:
    if draw(st.booleans()):
        return ir.Assign(draw(st.sampled_from(SCALARS)), draw(scalars()))
    write = draw(st.sampled_from([*TILES, None]))
    reads = draw(st.lists(st.sampled_from([*TILES, "p"]), max_size=2))
    return op("store" if write is None else "make", write, *reads, at=(draw(scalars()),))


@st.composite
def statements(draw: st.DrawFn, depth: int = 2) -> ir.Stmt:
    kind = draw(st.integers(0, 5))
    if kind == 0 and depth:
        inner = tuple(draw(st.lists(statements(depth - 1), min_size=1, max_size=3)))
        other = tuple(draw(st.lists(plain(), max_size=2)))
        return ir.If(((ir.Compare(draw(scalars()), (("<", ir.Int(3)),)), inner),), other)
    if kind == 1 and depth:
        inner = tuple(draw(st.lists(statements(depth - 1), min_size=1, max_size=3)))
        return ir.For(draw(st.sampled_from(["j", "k"])), ir.Int(0), ir.Int(2), ir.Int(1), inner)
    return draw(plain())


@st.composite
def kernels(draw: st.DrawFn) -> ir.Kernel:
    before = draw(st.lists(plain(), max_size=3))
    parts = [draw(st.lists(statements(), max_size=3)) for _ in range(3)]
    push, pop = ir.Push(draw(st.sampled_from(TILES)), "vector"), ir.Pop("p", "vector")
    first, second = (push, pop) if draw(st.booleans()) else (pop, push)
    free = [ir.Free("p", "vector")] if draw(st.booleans()) else []
    middle = [*free, *parts[1]] if first is pop else parts[1]
    if draw(st.booleans()):  # an address that both halves need
        choices: list[ir.Expr] = [I, ir.Binary("*", I, ir.Int(3)), ir.Call("min", (I, ir.Int(4)))]
        address = draw(st.sampled_from(choices))
        row = (ir.Name("a"),)
        parts[0] = [ir.Assign("a", address), op("make", push.value, at=row)]
        parts[2] = [*parts[2][:1], op("store", None, "p", at=row), *parts[2][1:]]
    body = (*parts[0], first, *middle, second, *parts[2])
    if draw(st.integers(0, 2)) == 0:  # a second round trip
        more = draw(st.lists(statements(), max_size=2))
        body = (*body, ir.Push(draw(st.sampled_from(TILES)), "vector"), *more, ir.Pop("r", "vector"))
        body = (*body, op("store", None, draw(st.sampled_from(["r", *TILES]))))
    trip, stage = draw(st.integers(2, 9)), draw(st.integers(2, 5))
    loop = pipeline(body, trip, stage, draw(st.integers(-2, 2)), draw(st.sampled_from([-2, 1, 3])))
    after = op("end", None, *draw(st.lists(st.sampled_from(TILES), max_size=3)), at=(draw(scalars()),))
    prepared = [ir.Assign(n, ir.Int(7 + k)) for k, n in enumerate(SCALARS)]
    no_i: dict[str, ir.Expr] = {"i": ir.Int(5)}
    stmts: list[ir.Stmt] = [*prepared]
    stmts += [s if s is loop else copy(s, no_i, {}) for s in (*before, loop, after)]
    return numbered(cube(*stmts))


def numbered(kernel: ir.Kernel) -> ir.Kernel:
    """The same kernel with a line of its own for every statement."""
    count = iter(range(1, 10_000))

    def mark(node: ir.Node) -> ir.Node:
        return replace(node, span=ir.Span(line=next(count))) if isinstance(node, ir.DataOp | ir.Push) else node

    marked = rebuild(kernel, mark)
    assert isinstance(marked, ir.Kernel)
    return marked


def results(kernel: ir.Kernel, values: Values) -> tuple[dict[int, list[Any]], list[Any], list[Any]]:
    found: list[Event] = trace(compile_kernel(kernel), "aic", (), FunctionTable(seed=3), values, 100_000)
    stores: dict[int, list[Any]] = defaultdict(list)
    for e in found:
        if isinstance(e, Computed) and e.op in ("store", "end"):
            stores[e.stmt.span.line].append((e.at, e.reads))
    return (
        stores,
        [e.value for e in found if isinstance(e, Sent)],
        [(type(e), e.value) for e in found if isinstance(e, Received | Freed)],
    )


@settings(max_examples=200, deadline=None)
@given(kernels())
def test_random_loops_compute_the_same(before: ir.Kernel) -> None:
    skewed = Skew().run(before)
    assert Skew().run(skewed.kernel).kernel == skewed.kernel
    values = Values()
    was, now = results(before, values), results(skewed.kernel, values)
    assert was[1] == now[1]  # same messages in the same order
    assert was[2] == now[2]
    assert was[0] == now[0]  # same stored results, store by store


@settings(max_examples=200, deadline=None)
@given(kernels())
def test_random_grouped_loops_compute_the_same(before: ir.Kernel) -> None:
    grouped = Skew(group=True).run(before)
    values = Values()
    assert results(before, values) == results(grouped.kernel, values)


@settings(max_examples=60, deadline=None)
@given(kernels())
def test_random_loops_and_a_peer_in_the_executor(before: ir.Kernel) -> None:
    """Same messages in the same order on every ring, same operations on every core, and nothing hangs."""
    loop = next(s for s in body_of(before) if isinstance(s, ir.For) and s.stage is not None)
    assert isinstance(loop.start, ir.Int)
    assert isinstance(loop.stop, ir.Int)
    assert isinstance(loop.step, ir.Int)
    take, give = ir.Pop("z", "cube"), ir.Push("z", "cube")
    messages = [s for s in loop.body if isinstance(s, ir.Push | ir.Pop)]
    answers: list[ir.Stmt] = [take if isinstance(s, ir.Push) else give for s in messages]
    trips = len(range(loop.start.value, loop.stop.value, loop.step.value))
    rounds = [answers]
    if answers and answers[0] is give:  # what pops first runs ahead after the skew, so all it pops must be there
        rounds = [[s for s in answers if s is give], [s for s in answers if s is take]]
    server = ir.Section(
        "vector", tuple(ir.For("i", ir.Int(0), ir.Int(trips), ir.Int(1), tuple(part)) for part in rounds if part)
    )
    rings = tuple(replace(f, slots=ir.Int(64)) for f in FIFOS)
    pair = replace(before, target="a3", fifos=rings, body=(*before.body, server))
    marked = mark(pair).kernel
    was, now = run(marked, {}), run(Skew().run(marked).kernel, {})
    for result in (was, now):
        assert not result.blocked
        assert {f.kind for f in result.message_faults} <= {"round"}  # the marks of both ends differ
    assert [[op.task for op in ring] for ring in (*was.pushes, *was.pops)] == [
        [op.task for op in ring] for ring in (*now.pushes, *now.pops)
    ]
    assert done(was) == done(now)


def done(result: Run) -> dict[int | None, int]:
    """How often each operation of the text ran; recomputed scalars are none."""
    return Counter(op.task for op in result.order if isinstance(op.stmt, ir.DataOp))
