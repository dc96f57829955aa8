"""Is each way in which a kernel can be ill-formed found, at its place, and is nothing else found?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.validate import validate

HEAD = """\
kernel k(n, m):
    READY = (0, 1)
    LIMIT = 4
    buffer qk[2] in Vec
    buffer acc in Acc
    fifo down: cube -> vector, slots = 2
    fifo up: vector -> cube, slots = 2, id = 3
    ring ctx[4](slot, valid)
"""
LINE = HEAD.count("\n") + 2


def mistakes(text: str) -> list[tuple[int, int, str]]:
    return [(error.line, error.column, error.message) for error in read(text, "k.kir").errors]


def section(core: str, *lines: str) -> list[tuple[int, int, str]]:
    """The mistakes in a section, with lines and columns counted within it."""
    text = f"{HEAD}    section {core}:\n" + "".join(f"        {line}\n" for line in lines)
    return [(line - LINE + 1, column - 8, message) for line, column, message in mistakes(text)]


def cube(*lines: str) -> list[tuple[int, int, str]]:
    return section("cube", *lines)


def vector(*lines: str) -> list[tuple[int, int, str]]:
    return section("vector", *lines)


def declared(*lines: str) -> list[tuple[int, int, str]]:
    """The mistakes in lines of the kernel level behind the declarations of `HEAD`."""
    found = mistakes(HEAD + "".join(f"    {line}\n" for line in lines))
    return [(line - LINE + 2, column - 4, message) for line, column, message in found]


# ------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["x = limit"], (1, 5, "unknown name 'limit' in the cube section; did you mean 'LIMIT'?")),
        (["x = a_name_like_no_other"], (1, 5, "unknown name 'a_name_like_no_other' in the cube section")),
        (["x = READY"], (1, 5, "'READY' is a tuple; choose an element: READY[e]")),
        (["x = LIMIT[0]"], (1, 5, "'LIMIT' is an integer, not a tuple")),
        (["x = REDY[0]"], (1, 5, "unknown tuple 'REDY'; did you mean 'READY'?")),
        (["x = qk[0]"], (1, 5, "'qk' is a buffer, not a tuple of integers")),
        (["x = qk + 1"], (1, 5, "'qk' is a buffer, not an integer")),
        (["x = ctx[0]"], (1, 5, "'ctx' is a ring; read a field: ctx[e].slot")),
        (["x = ctx[0].slott"], (1, 5, "ring 'ctx' has no field 'slott'; did you mean 'slot'?")),
        (["x = ctxx[0].slot"], (1, 5, "unknown ring 'ctxx'; did you mean 'ctx'?")),
        (["ctx[0].valit = 1"], (1, 1, "ring 'ctx' has no field 'valit'; did you mean 'valid'?")),
        (["qk[0].slot = 1"], (1, 1, "'qk' is a buffer, not a ring")),
        (["x = n(3)"], (1, 5, "'n' is a parameter, not a function")),
        (["x = min()"], (1, 5, "'min' needs arguments")),
        (["x = sub"], (1, 5, "'sub' is undefined in the cube section: only the vector section runs on a sub-core")),
        (["n = 3"], (1, 1, "'n' is a parameter and cannot be assigned; choose another name")),
        (["READY = 3"], (1, 1, "'READY' is a constant and cannot be assigned; choose another name")),
        (["qk = 3"], (1, 1, "'qk' is a buffer and cannot be assigned")),
        (["block = 3"], (1, 1, "'block' is built in and cannot be assigned; choose another name")),
        (["for m in range(n):", "    pass"], (1, 1, "'m' is a parameter and cannot be assigned; choose another name")),
        (["for t in range(n):", "    t = 1"],
         (2, 5, "'t' is the variable of a loop around this place; choose another name")),
        (["for t in range(n):", "    for t in range(m):", "        pass"],
         (2, 5, "'t' is the variable of a loop around this place; choose another name")),
        (["move x <- qq[0] @ FIX"], (1, 11, "unknown buffer 'qq'; did you mean 'qk'?")),
        (["move x <- ctx @ FIX"], (1, 11, "'ctx' is a ring, not a buffer or value")),
        (["move n <- x @ FIX"], (1, 6, "'n' is a parameter; data goes into buffers and values of other names")),
        (["s = qk.next()", "move s <- x @ FIX"],
         (2, 6, "'s' is a scalar; data goes into buffers and values of other names")),
        (["s = qkk.next()"], (1, 1, "unknown buffer 'qkk'; did you mean 'qk'?")),
        (["s = acc.next()"],
         (1, 1, "'acc' has one slot and no cursor; declare it as acc[1] to walk over its slots")),
    ],
)  # fmt: skip
def test_names(lines: list[str], expected: tuple[int, int, str]) -> None:
    assert cube(*lines) == [expected]


def test_a_name_is_reported_where_it_first_goes_wrong() -> None:
    assert cube("x = y", "x = y + z", "x = z") == [
        (1, 5, "unknown name 'y' in the cube section"),
        (2, 9, "unknown name 'z' in the cube section"),
    ]


def test_what_is_built_in() -> None:
    assert vector("x = sub + block + max(1, f(n, f()))", "x = x // LIMIT % 2") == []
    assert cube("x = block") == []
    assert declared("if sub == 0:", "    pass") == [
        (1, 4, "'sub' is undefined in code outside the sections, which the cube runs too: only the vector section runs "
               "on a sub-core"),
    ]  # fmt: skip


# -------------------------------------------------------------------------------------------------- definite values


UNSET = "'x' may be unset here: not every path to this place assigns it"


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["y = x", "x = 1"], 1),
        (["if n:", "    x = 1", "y = x"], 3),
        (["if n:", "    x = 1", "elif m:", "    pass", "else:", "    x = 2", "y = x"], 7),
        (["for t in range(n):", "    x = 1", "y = x"], 3),
        (["for t in range(2):", "    if n:", "        break", "    x = 1", "y = x"], 5),
        (["for t in range(2):", "    if n:", "        continue", "    x = 1", "y = x"], 5),
        (["for t in range(3, 3):", "    x = 1", "y = x"], 3),
        (["for t in range(n):", "    y = x", "    x = 1"], 2),
        (["x = 1", "for t in range(n):", "    y = x", "    for x in range(m):", "        pass"], 3),
    ],
)
def test_a_scalar_may_be_unset(lines: list[str], line: int) -> None:
    (found,) = cube(*lines)
    assert found[0] == line
    assert found[2] in (UNSET, "the loop variable 'x' is undefined after its loop")


@pytest.mark.parametrize(
    "lines",
    [
        ["if n:", "    x = 1", "else:", "    x = 2", "y = x"],
        ["if n:", "    x = 1", "elif m:", "    x = 3", "else:", "    x = 2", "y = x"],
        ["for t in range(2):", "    x = t", "y = x"],
        ["for t in range(LIMIT, 0, -2):", "    x = t", "y = x"],
        ["for t in range(2):", "    x = t", "    if n:", "        break", "y = x"],
        ["for t in range(n):", "    if m:", "        x = 1", "    else:", "        break", "    y = x"],
        ["for t in range(n):", "    if m:", "        continue", "    else:", "        x = 1", "    y = x"],
        ["x = 0", "for t in range(n):", "    x = x + 1", "y = x"],
        ["for t in range(n):", "    x = t", "for t in range(n):", "    y = t"],
        ["for x in range(n):", "    y = x", "x = 3", "y = x"],
    ],
)
def test_a_scalar_has_a_value(lines: list[str]) -> None:
    assert cube(*lines) == []


def test_a_loop_variable_is_undefined_after_its_loop() -> None:
    message = "the loop variable 't' is undefined after its loop"
    assert cube("for t in range(4):", "    pass", "x = t") == [(3, 5, message)]
    assert cube("t = 0", "for t in range(n):", "    pass", "x = t") == [(4, 5, message)]


def test_sections_of_one_core_follow_each_other() -> None:
    text = "kernel k():\n  section cube:\n    x = 1\n  section vector:\n    y = 1\n  section cube:\n    z = x\n"
    assert mistakes(text) == []
    assert mistakes(text + "    w = y\n") == [(8, 9, "unknown name 'y' in the cube section")]
    text = "kernel k(n):\n  if n:\n    x = 1\n  else:\n    x = 2\n  section cube:\n    y = x\n  private z = y\n"
    assert mistakes(text) == [(8, 15, "unknown name 'y' in code outside the sections, which the cube runs too")]


# --------------------------------------------------------------------------------------------------------- statements


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["move qk <- x @ FIX"], (1, 6, "'qk' has slots; choose one: qk[e]")),
        (["move acc[0] <- x @ FIX"], (1, 6, "'acc' is declared without slots and takes no index")),
        (["move x part 0 of 2 <- acc @ FIX"], (1, 6, "'x' is a value, only slots of buffers have parts")),
        (["move acc part 0 of 0 <- x @ FIX"], (1, 20, "the number of parts must be at least 1, not 0")),
        (["move acc <- x @ FIX lanes = 0"],
         (1, 1, "'lanes' chooses the vector sub-cores of a write into Vec; this one writes none")),
        (["set_cross_core 0 @ FIX lane = 0"],
         (1, 31, "'lane' needs 'mode = UNICAST_BLOCK'; other modes reach both sub-cores")),
        (["set_cross_core 0 @ FIX mode = UNICAST_BLOCK lane = 2"],
         (1, 52, "a lane is 0 or 1 (aiv0 or aiv1), not 2")),
        (["for t in range(0, n, 0):", "    pass"], (1, 22, "the step of a range must not be zero")),
        (["for t in range(0, n, LIMIT - 4):", "    pass"], (1, 22, "the step of a range must not be zero")),
        (["for t in range(0, n, m):", "    pass"], (1, 22, "the step of a range must be a constant")),
        (["for t in pipeline(0, n, 1, stage = 0):", "    pass"],
         (1, 36, "the stage of a pipeline must be at least 1, not 0")),
        (["for t in pipeline(0, n, 1, stage = m):", "    pass"], (1, 36, "the stage of a pipeline must be a constant")),
        (["break"], (1, 1, "'break' outside a loop")),
        (["if n:", "    continue"], (2, 5, "'continue' outside a loop")),
        (["for t in pipeline(0, 8, 1, stage = 2):", "    if t:", "        break"],
         (3, 9, "'break' in a 'pipeline' loop: all its rounds run to their end")),
        (["for t in pipelined(0, n):", "    continue"],
         (2, 5, "'continue' in a 'pipelined' loop: all its rounds run to their end")),
        (["bind x = 3"], (1, 1, "'bind' stands only in the body of a 'pipelined' loop")),
        (["tpush_to_aic x"], (1, 1, "'tpush_to_aic' in the cube section: its peer is the other one ('tpush_to_aiv')")),
        (["tpush_to_aiv x id = 5"],
         (1, 1, "no fifo is declared for cube -> vector with id 5; declare one: "
                "fifo NAME: cube -> vector, slots = N, id = 5")),
        (["x <- tpop_from_aiv"],
         (1, 1, "no fifo is declared for vector -> cube with id 0; declare one: "
                "fifo NAME: vector -> cube, slots = N")),
        (["tpush_to_aiv x id = n"], (1, 21, "the id of a message must be a constant")),
        (["msg <- tpop_from_aiv id = 3", "tfree_to_aiv mgs id = 3"],
         (2, 1, "'mgs' is no message: nothing in this program pops it; did you mean 'msg'?")),
        (["acc <- tpop_from_aiv id = 3"], (1, 1, "'acc' is a buffer; a message gets a name of its own")),
    ],
)  # fmt: skip
def test_statements(lines: list[str], expected: tuple[int, int, str]) -> None:
    assert cube(*lines) == [expected]


def test_what_belongs_to_the_cube() -> None:
    assert vector("move qk[0] <- x @ V lanes = 1") == [
        (1, 1, "'lanes' is written in the cube section only, not in the vector section")
    ]
    assert vector("set_cross_core 0 @ V mode = UNICAST_BLOCK lane = 0") == [
        (1, 50, "'lane' is written in the cube section only, not in the vector section")
    ]
    assert cube("move qk[0] <- x @ FIX lanes = 1", "set_cross_core 0 @ FIX mode = UNICAST_BLOCK lane = n % 2") == []
    assert declared("tpush_to_aiv x") == [
        (1, 1, "'tpush_to_aiv' outside the sections: each core kind has its own end of a FIFO")
    ]


def test_loops_inside_pipelines_may_be_left() -> None:
    assert cube("for t in pipeline(0, 8, 1, stage = 2):", "    for u in range(n):", "        break") == []
    assert cube("for t in pipelined(0, n):", "    bind a = t + 1", "    move x <- y @ FIX task = a") == []


# -------------------------------------------------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("buffer acc in Vec", 1, "'acc' is already declared as a buffer (line 5)"),
        ("LIMIT = 5", 1, "'LIMIT' is already declared as a constant (line 3)"),
        ("n = 5", 1, "'n' is already declared as a parameter (line 1)"),
        ("buffer n in Vec", 1, "'n' is already declared as a parameter (line 1)"),
        ("ring qk[2](a)", 1, "'qk' is already declared as a buffer (line 4)"),
        ("sub = 3", 1, "'sub' is built in (the sub-core index); choose another name"),
        ("A = A + 1", 5, "the constant 'A' is defined only below; a constant can use earlier ones"),
        ("A = sub", 5, "'sub' is undefined in the constant 'A': only the vector section runs on a sub-core"),
        ("A = ctx[0].slot", 5, "the constant 'A' cannot read the ring 'ctx': each agent has its own"),
        ("A = ()", 1, "the tuple 'A' is empty"),
        ("A = 18446744073709551615 * 2", 5, "the constant 'A' does not fit into 64 bits"),
        ("assume k > 0", 8, "unknown name 'k' in an assume"),
        ("buffer b[0] in Vec", 10, "the number of slots of 'b' must be at least 1, not 0"),
        ("buffer b[LIMIT - 5] in Vec", 10, "the number of slots of 'b' must be at least 1, not -1"),
        ("buffer b in Vec shared", 1, "'b': only GM can be shared between blocks, not Vec"),
        ("buffer b[2] in Vec at 0, 1, 2", 1, "'b': 2 slots, 3 addresses; give one per slot, or the first one"),
        ("buffer b[2] in Vec at 0", 1, "'b': with one address for 2 slots give their 'size BYTES' too"),
        ("buffer b in Vec at -8 size 8", 20, "an address of 'b' is negative: -8"),
        ("buffer b in Vec stride 8 rows 2", 1, "'b': a strided buffer needs the size of a row: 'size BYTES'"),
        ("buffer b[2] in Vec mutex (1)", 1, "'b': 2 slots, mutex ids for 1; give one id (or tuple of ids) per slot"),
        ("fifo f: cube -> vector, slots = 2", 1, "fifo 'down' (line 6) already has this direction and id 0"),
        ("fifo f: cube -> vector, slots = 0, id = 1", 33, "the number of slots of fifo 'f' must be at least 1, not 0"),
        ("fifo f: cube -> vector, slots = n, id = 1", 33, "the number of slots of fifo 'f' must be a constant"),
        ("fifo f: cube -> vector, slots = 2, id = n", 41, "the id of fifo 'f' must be a constant"),
        ("ring r[2](a, a)", 1, "ring 'r' declares the field 'a' twice"),
        ("ring r[0](a)", 8, "the size of ring 'r' must be at least 1, not 0"),
    ],
)
def test_declarations(line: str, column: int, message: str) -> None:
    assert declared(line) == [(1, column, message)]


def test_declarations_may_follow_their_use() -> None:
    assert mistakes("kernel k(n):\n  assume n < TOP\n  buffer b[TOP] in Vec\n  TOP = 4\n") == []


def test_a_constant_that_is_assigned_again_is_a_scalar() -> None:
    text = "kernel k(n):\n  c = 0\n  section cube:\n    c = c + 1\n"
    assert mistakes(text) == []
    message = "'c' is assigned more than once and so a scalar; the number of slots of 'b' can use constants only"
    assert mistakes(text + "  buffer b[c] in Vec\n") == [(5, 12, message)]


def test_a_constant_expression_may_use_anything_constant() -> None:
    text = "(min(LIMIT, 9) if LIMIT == 4 and not 1 > 2 else 0) - READY[1] * -(2) // 2 % 7"
    assert cube(f"for t in range(0, n, {text}):", "    pass") == []
    assert cube("for t in range(0, n, 4 // 0):", "    pass") == [(1, 22, "the step of a range must be a constant")]


# ---------------------------------------------------------------------------------------- kernels of other front ends


def kernel(*body: ir.Stmt, core: ir.Core = "cube", **parts: tuple[ir.Node, ...]) -> ir.Kernel:
    return ir.Kernel("k", ("n",), body=(ir.Section(core, body),), **parts)  # type: ignore[arg-type]


def messages(made: ir.Kernel) -> list[str]:
    return [error.message for error in validate(made)]


N, ONE = ir.Name("n"), ir.Int(1)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (ir.Kernel("a b"), "'a b' cannot be the name of a kernel"),
        (ir.Kernel("k", ("a.b",)), "'a.b' cannot be a name"),
        (kernel(ir.Assign("not", ONE)), "'not' cannot be a name"),
        (kernel(ir.DataOp("a.b", (), (), "S")), "'a.b' cannot be the name of a data operation"),
        (kernel(ir.DataOp("buffer", (), (), "S")), "'buffer' cannot be the name of a data operation"),
        (kernel(ir.DataOp("f", (), (ir.Access("x y"),), "S")), "'x y' cannot be a name"),
        (kernel(ir.DataOp("f", (), (), "S", family="ST")), "a phase family without a phase"),
        (kernel(ir.DataOp("f", (), (ir.Access("b", None, ONE),), "S"), buffers=(ir.Buffer("b", "GM"),)),
         "'b': a part needs its number and their count: part i of n"),
        (kernel(ir.If(())), "an 'if' without a condition"),
        (kernel(ir.Assert(ir.Logic("and", (N,)))), "'and' needs two operands"),
        (kernel(ir.Assert(ir.Compare(N, ()))), "a comparison needs two operands"),
        (kernel(ir.Assert(ir.Int(2**64))), "this integer does not fit into 64 bits"),
        (kernel(buffers=(ir.Buffer("b", "GM", stride=ONE),)),
         "'b': stride and rows belong together: 'stride BYTES rows N'"),
        (kernel(buffers=(ir.Buffer("b", "GM", addresses=()),)), "'b': 'at' needs an address"),
        (kernel(rings=(ir.Ring("r", ONE, ()),)), "ring 'r' has no field"),
        (kernel(fifos=(ir.Fifo("f", "cube", ONE, lanes=3),)), "fifo 'f' has 1 or 2 lanes, not 3"),
    ],
)  # fmt: skip
def test_what_no_text_can_say(made: ir.Kernel, message: str) -> None:
    assert messages(made) == [message]


def nested(depth: int, wrap: Callable[[ir.Stmt], ir.Stmt]) -> ir.Kernel:
    body: ir.Stmt = ir.Pass()
    for _ in range(depth):
        body = wrap(body)
    return kernel(body)


def test_nesting_is_limited() -> None:
    def wrap(inner: ir.Stmt) -> ir.Stmt:
        return ir.If(((N, (inner,)),))

    assert messages(nested(100, wrap)) == []
    assert messages(nested(101, wrap)) == ["blocks are nested more than 100 deep"]
    assert messages(nested(50_000, wrap)) == ["blocks are nested more than 100 deep"]
    expr: ir.Expr = N
    for _ in range(199):
        expr = ir.Binary("+", expr, ONE)
    assert messages(kernel(ir.Assert(expr))) == []
    assert messages(kernel(ir.Assert(ir.Unary("-", expr)))) == ["an expression is nested more than 200 deep"]
