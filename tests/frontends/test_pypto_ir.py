"""What does the PyPTO kernel IR front end make of a text, and what does it say about a bad one?"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from fencepost import ir
from fencepost.frontends.pypto_ir import read
from fencepost.frontends.result import ReadResult
from fencepost.printer import print_kernel
from fencepost.validate import validate

CASES = Path(__file__).parents[2].parent / "shared" / "cases" / "pypto_ir"

HEAD = "import pypto.language as pl\n\n@pl.program\nclass P:\n"
TILE = "pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec]"


def half(body: str, kind: str = "AIV", name: str = "f", parameters: str = "") -> str:
    given = ", ".join(["src: pl.Tensor[[64, 16], pl.FP32]", "dst: pl.Out[pl.Tensor[[64, 16], pl.FP32]]", parameters])
    text = f"@pl.function(type=pl.FunctionType.{kind})\ndef {name}({given.rstrip(', ')}):\n"
    return textwrap.indent(text + textwrap.indent(textwrap.dedent(body).strip("\n"), "    "), "    ") + "\n\n"


def one(text: str) -> ir.Kernel:
    result = read(text, "k.py")
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    assert not validate(kernel)
    return kernel


def section(kernel: ir.Kernel, core: str = "vector") -> list[str]:
    """The lines of a section as kernel IR text."""
    lines = print_kernel(kernel).splitlines()
    at = lines.index(f"    section {core}:")
    out = []
    for line in lines[at + 1 :]:
        if not line:
            break
        out.append(line[8:])
    return out


def body(text: str, parameters: str = "") -> list[str]:
    return section(one(HEAD + half(text, parameters=parameters)))


def errors(text: str) -> list[str]:
    return [e.message for e in read(text, "k.py").errors]


# ------------------------------------------------------------------------------------------------ pairs

GROUP = HEAD + textwrap.indent(
    textwrap.dedent(
        """
        @pl.function(type=pl.FunctionType.AIC)
        def left(self, w: pl.Tensor[[64, 16], pl.FP16], n: pl.Scalar[pl.INDEX], k: pl.Scalar[pl.INDEX]):
            a = pl.system.reserve_buffer(name="ring", size=64, base=-1)
            pl.system.aic_initialize_pipe(a, a, dir_mask=3, slot_size=64, slot_num=3, id=2)
            for i in pl.range(n):
                x: pl.Tile[[16, 16], pl.FP16, pl.Mem.Mat] = pl.tile.load(w, [i * k, 0], [16, 16], [16, 16])
                y: pl.Tile[[16, 16], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(x, x)
                pl.tile.tpush_to_aiv(y, split=1, id=2)

        @pl.function(type=pl.FunctionType.AIV)
        def right(self, out: pl.Out[pl.Tensor[[64, 16], pl.FP32]], m: pl.Scalar[pl.INDEX]):
            pl.system.aiv_initialize_pipe(0, 0, dir_mask=3, slot_size=64, slot_num=3, id=2)
            for i in pl.range(m):
                y: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec] = pl.tile.tpop_from_aic(split=1, id=2)
                pl.tile.store(y, [i * 16, 0], out)
                pl.system.tfree_to_aic(y, split=1, id=2)

        @pl.function(type=pl.FunctionType.Group)
        def both(self, g: pl.Tensor[[64, 16], pl.FP16], r: pl.Out[pl.Tensor[[64, 16], pl.FP32]],
                 trips: pl.Scalar[pl.INDEX]):
            self.left(g, trips, 16)
            self.right(r, trips)
            return r
        """
    ),
    "    ",
)


def test_a_group_is_one_kernel_and_arguments_go_by_position() -> None:
    kernel = one(GROUP)
    assert kernel.name == "both"
    assert kernel.parameters == ("trips",)
    assert kernel.fifos == (ir.Fifo("c2v2", "cube", ir.Int(3), ir.Int(2), 2),)
    assert section(kernel, "cube") == [
        "for i in range(trips):",
        "    load_16x16 x <- g @ MTE2 at (i * 16, 0)",
        "    matmul y <- x, x @ M",
        "    tpush_to_aiv y id = 2",
    ]
    assert section(kernel, "vector") == [
        "for i in range(trips):",
        "    y <- tpop_from_aic id = 2",
        "    store () <- y, r @ MTE3 at (i * 16, 0)",
        "    tfree_to_aic y id = 2",
    ]


def test_halves_without_a_group_are_matched_by_the_buffers_they_import() -> None:
    text = HEAD + half(
        "pl.system.import_peer_buffer(name='b', peer_func='zwei')\nx = pl.load(src, [0, 0], [1], [1])\n"
        "pl.tpush_to_aiv(x, split=0)",
        "AIC",
        "eins",
    )
    text += half("y = pl.tpop_from_aic(split=0)", "AIV", "drei") + half("y = pl.tpop_from_aic(split=0)", "AIV", "zwei")
    result = read(text, "k.py")
    assert [(k.name, [s.core for s in k.body if isinstance(s, ir.Section)]) for k in result.kernels] == [
        ("eins", ["cube", "vector"]),
        ("drei", ["vector", "cube"]),
    ]
    (alone,) = [s for s in result.kernels[1].body if isinstance(s, ir.Section) and s.core == "cube"]
    assert isinstance(alone.body[0], ir.Unsupported)
    assert "not in this text" in alone.body[0].reason


def test_a_vector_function_without_messages_needs_no_peer() -> None:
    kernel = one(HEAD + half("x = pl.load(src, [0, 0], [16, 16], [16, 16])\npl.store(x, [0, 0], dst)"))
    assert [s.core for s in kernel.body if isinstance(s, ir.Section)] == ["vector"]


def test_host_functions_give_no_kernel() -> None:
    text = HEAD + half("x = pl.slice(src, [16, 16], [0, 0])", "Opaque") + half("self.f(src, dst)", "Orchestration", "g")
    assert read(text, "k.py") == ReadResult()


@pytest.mark.parametrize(
    ("head", "prefix"),
    [
        ("import pypto.language as lang", "lang."),
        ("from pypto import language as pl", "pl."),
        ("import pypto.language", "pypto.language."),
        ("import pypto", "pypto.language."),
        ("from pypto.language import function, FunctionType, tile, Tensor, FP32", ""),
    ],
)
def test_the_language_under_any_name(head: str, prefix: str) -> None:
    text = f"""{head}
@{prefix}function(type={prefix}FunctionType.AIV)
def f(src: {prefix}Tensor[[4], {prefix}FP32]):
    x = {prefix}tile.load(src, [0], [4], [4])
    y = {prefix}tile.exp(x)
"""
    assert section(one(text)) == ["load_4 x <- src @ MTE2 at (0)", "exp y <- x @ V"]


# ------------------------------------------------------------------------------------------------ values

LOAD = f"x: {TILE} = pl.tile.load(src, [0, 0], [16, 16], [16, 16])\n"


def test_loop_carried_values() -> None:
    lines = body(
        LOAD
        + f"""
for i, (acc, k) in pl.range(4, init_values=(x, 0)):
    y: {TILE} = pl.tile.add(acc, x)
    k2: pl.Scalar[pl.INDEX] = k + 2
    acc_r, k_r = pl.yield_(y, k2)
z: {TILE} = pl.tile.muls(acc_r, 0.5)
pl.tile.store(z, [k_r, 0], dst)
"""
    )
    assert lines == [
        "load_16x16 x <- src @ MTE2 at (0, 0)",
        "copy acc <- x @ S",
        "k = 0",
        "for i in range(4):",
        "    add acc <- acc, x @ V",
        "    k = k + 2",
        "muls_0p5 z <- acc @ V",
        "store () <- z, dst @ MTE3 at (k, 0)",
    ]


def test_values_that_change_places_are_written_at_once() -> None:
    lines = body(
        LOAD
        + """
for i, (a, b) in pl.range(3, init_values=(x, src)):
    p, q = pl.yield_(b, a)
pl.tile.store(p, [0, 0], dst)
"""
    )
    assert lines[2:] == [
        "for i in range(3):",
        "    copy b_next <- a @ S",
        "    copy a <- b @ S",
        "    copy b <- b_next @ S",
        "store () <- a, dst @ MTE3 at (0, 0)",
    ]


def test_a_yielded_value_that_is_used_again_is_copied() -> None:
    lines = body(
        LOAD
        + """
for i, (a,) in pl.range(3, init_values=(x,)):
    y = pl.tile.exp(a)
    pl.tile.store(a, [i, 0], dst)
    r = pl.yield_(y)
"""
    )
    assert lines[2:] == [
        "    exp y <- a @ V",
        "    store () <- a, dst @ MTE3 at (i, 0)",
        "    copy a <- y @ S",
    ]


def test_branches_yield() -> None:
    lines = body(
        LOAD
        + """
if n < 2:
    y = pl.tile.exp(x)
    r = pl.yield_(y)
else:
    r = pl.yield_(x)
pl.tile.store(r, [0, 0], dst)
""",
        "n: pl.Scalar[pl.INDEX]",
    )
    assert lines[1:] == [
        "if n < 2:",
        "    exp r <- x @ V",
        "else:",
        "    copy r <- x @ S",
        "store () <- r, dst @ MTE3 at (0, 0)",
    ]


def test_names_go_by_scope() -> None:
    lines = body(
        """
i = 7
for i in pl.range(2):
    x = pl.tile.load(src, [i, 0], [16, 16], [16, 16])
for i, (x,) in pl.range(3, init_values=(src,)):
    x2 = pl.tile.store(x, [i, 0], x)
    x3 = pl.yield_(x2)
pl.tile.store(x, [i, 0], x3)
"""
    )
    assert lines == [
        "i = 7",
        "for i_2 in range(2):",
        "    load_16x16 x <- src @ MTE2 at (i_2, 0)",
        "copy x_2 <- src @ S",
        "for i_3 in range(3):",
        "    store x_2 <- x_2, x_2 @ MTE3 at (i_3, 0)",
        "store () <- x, x_2 @ MTE3 at (i, 0)",
    ]


def test_names_assigned_again_are_one_variable() -> None:
    lines = body(
        LOAD
        + """
row = 0
for i in pl.range(4):
    x = pl.tile.add(x, x)
    row += 16
    dst = pl.tile.store(x, [row, 0], dst)
"""
    )
    assert lines[1:] == [
        "row = 0",
        "for i in range(4):",
        "    add x <- x, x @ V",
        "    row = row + 16",
        "    store dst <- x, dst @ MTE3 at (row, 0)",
    ]


def test_constants_that_change_a_value_belong_to_the_operation() -> None:
    lines = body(
        LOAD
        + """
a = pl.tile.cast(x, target_type=pl.FP16, mode="round", attrs={"pipeline_membership": "0:1"})
b = pl.tile.move(x, target_memory=pl.Mem.Vec, blayout=pl.TileLayout.col_major)
c = pl.tile.slice(x, [8, 16], [n, 0])
d = pl.tile.adds(x, -1.5)
""",
        "n: pl.Scalar[pl.INDEX]",
    )
    assert lines[1:] == [
        "cast_FP16_round a <- x @ V",
        "move b <- x @ V",
        "slice c <- x @ V at (8, 16, n, 0)",
        "adds_m1p5 d <- x @ V",
    ]


def test_scalars_read_from_memory() -> None:
    kernel = one(
        HEAD
        + half(
            LOAD
            + """
n = pl.tensor.read(lens, [2])
for i in pl.range(n):
    m: pl.Scalar[pl.INDEX] = pl.tile.read(x, [i])
    pl.tile.store(x, [m, 0], dst)
""",
            parameters="lens: pl.Tensor[[8], pl.INT32]",
        )
    )
    assert section(kernel)[1:] == [
        "n = read_lens(2)",
        "for i in range(n):",
        "    read () <- x @ S",
        "    m = read_x_f_11(i, i)",
        "    store () <- x, dst @ MTE3 at (m, 0)",
    ]


def test_early_return() -> None:
    lines = body(
        LOAD
        + """
if n == 0:
    return
pl.tile.store(x, [0, 0], dst)
""",
        "n: pl.Scalar[pl.INDEX]",
    )
    assert lines[1:] == ["if n == 0:", "    ...", "else:", "    store () <- x, dst @ MTE3 at (0, 0)"]


def test_while_loops() -> None:
    for text in (
        "k = 0\nwhile k < n:\n    k = k + 1\n    pl.tile.store(x, [k, 0], dst)\n",
        "for (k,) in pl.while_(init_values=(0,)):\n    pl.cond(k < n)\n    k2 = k + 1\n"
        "    pl.tile.store(x, [k2, 0], dst)\n    r = pl.yield_(k2)\n",
    ):
        kernel = one(HEAD + half(LOAD + text, parameters="n: pl.Scalar[pl.INDEX]"))
        assert kernel.parameters == ("n", "while_limit")
        head = ["k = 0", "for spin in range(while_limit):", "    if not k < n:", "        break"]
        assert section(kernel)[1:5] == head


def test_synchronisation() -> None:
    lines = body(
        """
pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=3)
pl.system.sync_dst(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=3)
pl.system.sync_set(n % 2, pipe=pl.PipeType.MTE3, ffts_mode=2)
pl.system.sync_wait(5, pipe=pl.PipeType.V, core_type="aiv")
pl.system.bar_v()
pl.system.bar_all()
pl.system.syncall()
""",
        "n: pl.Scalar[pl.INDEX]",
    )
    assert lines == [
        "sync_src 3: MTE2 -> V",
        "sync_dst 3: MTE2 -> V",
        "set_cross_core n % 2 @ MTE3",
        "wait_cross_core 5 @ V",
        "barrier V",
        "barrier ALL",
        "sync_all",
    ]


def test_pipes_of_the_cube() -> None:
    kernel = one(
        HEAD
        + half(
            """
a: pl.Tile[[16, 16], pl.FP16, pl.Mem.Mat] = pl.tile.load(src, [0, 0], [16, 16], [16, 16])
l: pl.Tile[[16, 16], pl.FP16, pl.Mem.Left] = pl.tile.move(a, target_memory=pl.Mem.Left)
c: pl.Tile[[16, 16], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(l, l)
v: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tile.move(c, target_memory=pl.Mem.Vec)
pl.tile.store(c, [0, 0], dst)
""",
            "AIC",
        )
    )
    (cube,) = kernel.body
    assert isinstance(cube, ir.Section)
    assert [s.pipe for s in cube.body if isinstance(s, ir.DataOp)] == ["MTE2", "MTE1", "M", "FIX", "FIX"]


def test_constants_of_the_text() -> None:
    text = f"""
import pypto.language as pl
N = 4
SHAPE = [N * 4, 16]
M = pl.dynamic("M")

def build(stages, tile=16):
    F = 2

    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.AIV)
        def f(src: pl.Tensor[[M, 16], pl.FP32]):
            for i in pl.pipeline(N + 1, stage=F):
                x: {TILE} = pl.tile.load(src, [i * tile, M], SHAPE, SHAPE)
    return P
"""
    kernel = one(text)
    assert kernel.parameters == ("tile", "M")
    assert kernel.assumes == (ir.Compare(ir.Name("M"), ((">=", ir.Int(0)),)),)
    assert section(kernel) == [
        "for i in pipeline(0, 5, 1, stage = 2):",
        "    load_16x16 x <- src @ MTE2 at (i * tile, M)",
    ]
    assert read(text, "k.py").assumptions["f"] == (
        "tile is not known from the text: any value",
        "M is a dynamic size: any value",
    )


def test_programs_are_found_wherever_they_stand() -> None:
    text = "import pypto.language as pl\n\nclass TestSuite:\n    N = 3\n\n    def test_one(self):\n"
    inside = "@pl.program\nclass Q:\n" + half(f"for i in pl.range(N):\n    x: {TILE} = pl.load(src, [i], [4], [4])")
    kernel = one(text + textwrap.indent(inside, "        ") + "        run(Q)\n")
    assert section(kernel)[0] == "for i in range(3):"


# ------------------------------------------------------------------------------------------------ mistakes


PIPES = "expected a pipe for 'pipe': one of S, MTE1, MTE2, MTE3, M, V, FIX"


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("for i in range_(4):\n    pass", None, 0, 0),
        ("for i in pl.pipeline(4):\n    pass", "a pipeline loop needs 'stage='", 7, 18),
        ("for i in src:\n    pass", "a loop must run over pl.range, pl.pipeline or their kin", 7, 18),
        ("for i, (a,) in pl.range(4, init_values=()):\n    pass", "1 loop-carried names, 0 initial values", 7, 9),
        ("for i, (a,) in pl.range(4, init_values=(src,)):\n    pass", "the loop carries 1 values and yields 0", 7, 9),
        ("x = pl.tpop_from_aiv(split=0)", "'tpop_from_aiv' in a function of the vector core", 7, 13),
        ("pl.tpush_to_aic(3, split=0)", "'tpush_to_aic' needs a tile", 7, 25),
        ("pl.system.sync_wait(1, pipe=pl.Q)", PIPES, 7, 37),
        ("größe = 1; y: pl.Scalar[pl.INDEX] = größe + 'ä'", "expected a scalar expression, found \"'ä'\"", 7, 53),
        ("pl.tpush_to_aic(src, split=0, id=n)", "'id' must be a constant integer", 7, 42),
        ("pl.yield_(src)\nx = 1", "pl.yield_ may only end a loop body or a branch", 7, 9),
    ],
)
def test_mistakes(text: str, message: str | None, line: int, column: int) -> None:
    result = read(HEAD + half(text, parameters="n: pl.Scalar[pl.INDEX]"), "k.py")
    if message is None:  # not an error of the text: read, but nothing can be claimed about it
        assert not result.errors
        assert any(isinstance(n, ir.Unsupported) for n in ir.walk(result.kernels[0]))
        return
    assert not result.kernels
    (error,) = result.errors
    assert (error.message, error.line, error.column) == (message, line, column)
    assert error.excerpt


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tpop_from_aic(split=1", "tpop_from_aic(split=0",
         "this end of the ring has split=0, the one in line 13 has split=1"),
        ("slot_num=3, id=2)\n        for i in pl.range(m)", "slot_num=5, id=2)\n        for i in pl.range(m)",
         "the halves declare rings of 3 and 5 slots for pipe id 2"),
    ],
)  # fmt: skip
def test_halves_that_disagree(old: str, new: str, message: str) -> None:
    assert old in GROUP
    result = read(GROUP.replace(old, new), "k.py")
    assert [e.message for e in result.errors] == [message]
    assert [k.name for k in result.kernels] == ["both"]


def test_every_mistaken_kernel_is_reported_and_the_others_are_read() -> None:
    bad = "for i in pl.pipeline(4):\n    pass"
    text = HEAD + half(bad, name="a") + half("pass", name="b") + half(bad, name="c")
    result = read(text, "k.py")
    assert [k.name for k in result.kernels] == ["b"]
    assert [e.line for e in result.errors] == [7, 16]


@pytest.mark.parametrize(
    "text",
    [
        "class P(:\n",
        "x = '\\ud800'\n" * 2,
        "\tx = 1\n  y = 2\n",
        "(" * 3000,
        HEAD + half("x: pl.Scalar[pl.INDEX] = " + "(" * 150 + "1" + ")" * 150),
        HEAD + half("x: pl.Scalar[pl.INDEX] = " + " + ".join(["1"] * 3000)),
        HEAD + half("x: pl.Scalar[pl.INDEX] = " + "-" * 900 + "1"),
        HEAD + half("\n".join("    " * i + "if n:" for i in range(60)) + "\n" + "    " * 60 + "pass"),
        "",
        "\ufeffimport pypto.language as pl\r\n",
    ],
)
def test_strange_text_does_not_crash(text: str) -> None:
    read(text, "k.py")


def test_a_long_sum_is_read() -> None:
    lines = body("x: pl.Scalar[pl.INDEX] = " + " + ".join(["n"] * 150), "n: pl.Scalar[pl.INDEX]")
    assert lines[0].count("n") == 150


def test_nothing_is_executed() -> None:
    text = "import pypto.language as pl\nraise SystemExit\n" + HEAD.removeprefix("import pypto.language as pl\n")
    assert read(text + half("pass"), "k.py").kernels


# ------------------------------------------------------------------------------------------------ recorded texts


@pytest.mark.skipif(not CASES.exists(), reason=f"no cases at {CASES}")
@pytest.mark.parametrize("file", sorted(CASES.glob("*/*.py")), ids=lambda p: str(p.name))
def test_recorded_texts(file: Path) -> None:
    from fencepost.frontends import kir

    result = read(file.read_text(), file.name)
    assert not result.errors
    for kernel in result.kernels:
        if "dynamic_step" not in file.name:
            assert not validate(kernel)
            again = kir.read(print_kernel(kernel), "k.kir")
            assert again.kernels == (kernel,)
    if file.parent.name == "pairs" and not file.name.endswith(".source.py"):
        for kernel in result.kernels:
            assert {s.core for s in kernel.body if isinstance(s, ir.Section)} == {"cube", "vector"}
            assert kernel.target == ("a2" if ".910B." in file.name else "a5")
            assert all(f.slots == ir.Int(2) for f in kernel.fifos)
