"""Which kernels does a PyPTO-Pro text hold, where do they stand in it, and what is known about their parameters?"""

from __future__ import annotations

from tests.frontends.pypto_pro import TYPES, block, head, lowered, places, program, result, section, unread, vector

from fencepost import ir
from fencepost.frontends.pypto_pro import read
from fencepost.printer import print_kernel

WAIT = "pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id={})"


def test_a_small_kernel() -> None:
    kernel = lowered(
        program(
            """
            rows = a.shape[0]
            x = pl.make_tile(MAT, addr=0)
            acc = pl.make_tile(ACC, addr=0)
            y = pl.make_tile_group(type=VEC, addrs=0x100, mutex_ids=[0, 1])
            with pl.section_cube():
                for i in pl.range(rows // 64):
                    pl.load(x, a, [i * 64, 0])
                    pl.system.wait_cross_core(pipe=pl.PipeType.FIX, event_id=2 + i % 2)
                    pl.move(y[i % 2], acc, acc_to_vec_mode=pl.AccToVecMode.DualModeSplitM)
                    pl.system.set_cross_core(pipe=pl.PipeType.FIX, event_id=i % 2)
            with pl.section_vector():
                for i in pl.range(rows // 64):
                    pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=i % 2)
                    t = y.next()
                    pl.add(t, t, t)
                    pl.system.set_cross_core(pipe=pl.PipeType.V, event_id=2 + i % 2)
            """
        )
    )
    assert print_kernel(kernel).splitlines() == block(
        """
        kernel kernel(rows):
            assume rows >= 0
            buffer x in Mat at 0 size 8192
            buffer acc in Acc at 0 size 16384
            buffer y[2] in Vec at 256 size 8192 mutex (0, 1)

            section cube:
                for i in range(rows // 64):
                    load x <- a @ MTE2
                    wait_cross_core i % 2 + 2 @ FIX
                    move y[i % 2] <- acc @ FIX
                    set_cross_core i % 2 @ FIX

            section vector:
                for i in range(rows // 64):
                    wait_cross_core i % 2 @ V
                    t = y.next()
                    add y[t] <- y[t] @ V
                    set_cross_core i % 2 + 2 @ V
        """
    )
    assert kernel.auto_mutex and kernel.target == "a5"


def test_a_text_without_kernels() -> None:
    assert result("import pypto_pro.language as pl\n\ndef f(x):\n    return x\n") == result("")


def test_errors_in_the_text() -> None:
    found = read("import pypto_pro.language as pl\n@pl.jit()\ndef kernel(:\n    pass\n", "k.py")
    (error,) = found.errors
    assert (error.file, error.line, error.excerpt) == ("k.py", 3, "def kernel(:")
    assert "not valid Python" in error.message
    assert not found.kernels


def test_decorators() -> None:
    text = TYPES.join(["import pypto_pro.language as pl\njit = pl.jit(auto_mutex=False)\n", ""])
    for decorator in ("@jit", "@pl.jit", '@pl.jit(arch="a3", auto_mutex=False)', "@other", "@pl.jit(**given)"):
        text += f"{decorator}\ndef kernel():\n    with pl.section_vector():\n        {WAIT.format(0)}\n"
    found = result(text)
    assert [k.name for k in found.kernels] == ["kernel", "kernel_2", "kernel_3", "kernel_4", "kernel_5"]
    assert [k.auto_mutex for k in found.kernels] == [False, True, False, True, True]
    assert "@other is not understood to make a kernel of it" in unread(found.kernels[3])[0]
    assert found.kernels[2].target == "a3"
    assert unread(found.kernels[4]) == ["27: the options of this kernel could not be read"]


def test_other_names_for_the_language() -> None:
    text = (
        "from pypto_pro import language as device\nfrom pypto_pro.language import jit, section_vector as on_vector\n"
        "@jit()\ndef kernel():\n    with on_vector():\n"
        "        device.system.wait_cross_core(pipe=device.PipeType.V, event_id=3)\n"
    )
    assert section(lowered(text)) == ["wait_cross_core 3 @ V"]


def test_code_outside_of_sections_runs_on_both_cores() -> None:
    kernel = lowered(
        program(
            """
            pl.system.bar_all()
            with pl.section_vector():
                pl.system.bar_v()
            with pl.section_cube():
                pl.system.bar_m()
            """
        )
    )
    assert section(kernel, "vector") == ["barrier ALL", "barrier V"]
    assert section(kernel, "cube") == ["barrier ALL", "barrier M"]
    assert [s.core for s in kernel.body if isinstance(s, ir.Section)] == ["vector", "cube"]


# ------------------------------------------------------------------------------------------------------------ constants


def test_constants_of_the_module() -> None:
    before = """
        import math
        from dataclasses import dataclass

        ROWS = 128
        HALF = ROWS // 2
        IDS = (4, 5, 6)
        TABLE = {"first": 7, HALF: 8}

        @dataclass
        class Config:
            EVENT = IDS[1] + 1

        def pick(n):
            total = 0
            for i in range(n):
                if i % 2 == 0:
                    continue
                total += i
            return total

        if HALF > 10:
            LAST = min(15, math.ceil(14.2))
        else:
            LAST = -1
    """
    ids = ("IDS[-1]", 'TABLE["first"]', "TABLE[HALF]", "Config.EVENT", "pick(5)", "LAST", "int(HALF / 8)", "len(IDS)")
    body = "\n".join(WAIT.format(i) for i in ids)
    assert vector(body, before) == [f"wait_cross_core {n} @ V" for n in (6, 7, 8, 6, 4, 15, 8, 3)]


def test_a_tuple_indexed_at_run_time_is_a_constant() -> None:
    kernel = lowered(
        program(
            f"""
            with pl.section_vector():
                for i in pl.range(a.shape[0]):
                    {WAIT.format("IDS[i % 3]")}
                    {WAIT.format("(3, 1)[i % 2]")}
            """,
            "IDS = (7, 2, 9)",
        )
    )
    assert "IDS = (7, 2, 9)" in head(kernel)
    assert section(kernel)[1:] == ["    wait_cross_core IDS[i % 3] @ V", "    wait_cross_core items[i % 2] @ V"]


def test_a_factory_takes_its_arguments_from_its_calls() -> None:
    text = program("pass") + (
        "def make(depth, *, first=3):\n"
        "    last = first + depth\n"
        "    @pl.jit()\n"
        "    def inner():\n"
        "        with pl.section_vector():\n"
        f"            {WAIT.format('last')}\n"
        "    return inner\n"
        "\nKERNEL = make(4)\n"
    )
    found = result(text)
    assert section(found.kernels[1]) == ["wait_cross_core 7 @ V"]
    assert any("depth = 4" in note for note in found.assumptions["inner"])


def test_a_factory_without_calls_has_unknown_arguments() -> None:
    text = program("pass") + (
        "def make(first):\n    @pl.jit()\n    def inner():\n        with pl.section_vector():\n"
        f"            {WAIT.format('first + 1')}\n    return inner\n"
    )
    found = result(text)
    assert found.kernels[1].parameters == ("first",)
    assert section(found.kernels[1]) == ["wait_cross_core first + 1 @ V"]
    assert any(note.startswith("first may be any integer") for note in found.assumptions["inner"])


def test_one_kernel_for_each_argument_that_sizes_depend_on() -> None:
    text = program("pass") + (
        "def make(rows):\n    @pl.jit()\n    def inner(a: pl.Tensor[[64, 64], pl.DT_FP16]):\n"
        "        x = pl.make_tile(tile(pl.MemorySpace.Vec, rows), addr=0)\n"
        "        with pl.section_vector():\n            pl.load(x, a, [0, 0])\n    return inner\n"
        "\nsmall, large = make(16), make(32)\n"
    )
    found = result(text)
    assert sorted(k.name for k in found.kernels[1:]) == ["inner_rows_16", "inner_rows_32"]
    assert [head(k) for k in sorted(found.kernels[1:], key=lambda k: k.name)] == [
        ["buffer x in Vec at 0 size 2048"],
        ["buffer x in Vec at 0 size 4096"],
    ]


# ----------------------------------------------------------------------------------------------------------- parameters


def test_only_parameters_that_matter_are_kept() -> None:
    kernel = lowered(
        program(
            f"""
            rows, columns = a.shape[0], a.shape[1]
            scaled = rows * 3
            with pl.section_vector():
                for i in pl.range(columns):
                    {WAIT.format("n")}
            """,
            parameters="a: pl.Tensor[[pl.DYNAMIC, pl.DYNAMIC], pl.DT_FP16], n: pl.DT_INT32, m: pl.DT_INT32, f: float",
        )
    )
    assert kernel.parameters == ("n", "a_dim1")
    assert head(kernel) == ["assume a_dim1 >= 0"]


def test_kinds_of_scalar_arguments() -> None:
    kernel = lowered(
        program(
            f"""
            with pl.section_vector():
                if flag:
                    {WAIT.format(1)}
                if big > 3:
                    {WAIT.format(2)}
                if factor > 1.5:
                    {WAIT.format(3)}
            """,
            parameters="flag: pl.Scalar[pl.DT_BOOL], big: pl.DT_UINT32, factor: pl.Scalar[pl.DT_FP32]",
        )
    )
    assert head(kernel) == ["assume 0 <= flag <= 1", "assume big >= 0"]
    assert section(kernel)[::2] == ["if flag:", "if big > 3:", "if more_factor_1_5() != 0:"]


def test_fields_of_a_tiling_class_are_parameters() -> None:
    before = """
        from dataclasses import dataclass

        @dataclass
        class Tiling:
            rounds: int
            on: bool
            scale: float
            ids: "int[4]"
    """
    kernel = lowered(
        program(
            f"""
            with pl.section_vector():
                for i in pl.range(tiling.rounds):
                    if tiling.on:
                        {WAIT.format("tiling.ids[i % 4]")}
            """,
            before,
            "tiling: Tiling",
        )
    )
    assert kernel.parameters == ("tiling_rounds", "tiling_on")
    assert section(kernel)[0] == "for i in range(tiling_rounds):"
    assert section(kernel)[-1].strip() == "wait_cross_core tiling_ids(i % 4) @ V"


def test_tiling_keys() -> None:
    before = """
        class Key:
            MODE = TilingKeyField(bits=2, values=[0, 1, 3])
            FIXED = TilingKeyField(bits=1, values=[1])
    """
    kernel = lowered(
        program(
            f"""
            with pl.section_vector():
                if MODE == 1:
                    {WAIT.format(1)}
                if FIXED == 1:
                    {WAIT.format(2)}
                if MODE == 2:
                    {WAIT.format(3)}
            """,
            "from pypto_pro.runtime import TilingKeyField\n" + before.replace("        ", ""),
            jit="tiling_key=Key",
        )
    )
    assert kernel.parameters == ("MODE",)
    assert head(kernel) == ["assume MODE == 0 or MODE == 1 or MODE == 3"]
    assert section(kernel) == ["if MODE == 1:", "    wait_cross_core 1 @ V", "wait_cross_core 2 @ V"]


def test_where_am_i() -> None:
    body = f"""
        core = pl.get_block_idx() // pl.get_subblock_num()
        half = pl.get_subblock_idx()
        with pl.section_cube():
            {WAIT.format("core % 8").replace("PipeType.V", "PipeType.FIX")}
        with pl.section_vector():
            for i in pl.range(core, a.shape[0], pl.get_block_num()):
                if half == 1:
                    {WAIT.format("core % 8")}
    """
    kernel = lowered(program(body))
    assert section(kernel, "cube") == ["wait_cross_core block % 8 @ FIX"]
    assert section(kernel) == block(
        """
        i_trips = max(a_dim0 - block + block_num - 1, 0) // block_num
        for i_trip in range(i_trips):
            if sub == 1:
                wait_cross_core block % 8 @ V
        """
    )
    assert "assume block_num >= 1" in head(kernel)


def test_a_vector_kernel_has_no_sub_blocks() -> None:
    assert vector(WAIT.format("pl.get_subblock_num() + pl.get_subblock_idx()")) == ["wait_cross_core 1 @ V"]


# --------------------------------------------------------------------------------------------------------------- places


def test_columns_count_characters() -> None:
    text = program("with pl.section_vector():\n    'größe'; pl.system.bar_v()\n")
    kernel = lowered(text)
    line = text.splitlines().index("        'größe'; pl.system.bar_v()") + 1
    assert places(kernel, ir.Barrier) == [(line, 18, line, 35, ())]


def test_helpers_tell_the_calls_that_led_to_them() -> None:
    text = program(
        """
        with pl.section_vector():
            outer(4)
            outer(
                5,
            )
        """,
        f"""
        def inner(x):
            {WAIT.format("x")}

        def outer(x):
            inner(x + 1)
        """,
    )
    kernel = lowered(text)
    lines = text.splitlines()
    wait = next(i for i, line in enumerate(lines, 1) if "wait_cross_core" in line)
    call = next(i for i, line in enumerate(lines, 1) if "inner(x + 1)" in line)
    first = next(i for i, line in enumerate(lines, 1) if "outer(4)" in line)
    assert [(line, via) for line, _, _, _, via in places(kernel, ir.WaitCross)] == [
        (wait, (first, call)),
        (wait, (first + 1, call)),
    ]
    (_, second) = [n.span.via[0] for n in ir.walk(kernel) if isinstance(n, ir.WaitCross)]
    assert (second.line, second.end_line, second.file) == (first + 1, first + 3, "k.py")


def test_what_cannot_be_read_is_left_as_a_mark() -> None:
    text = program(
        f"""
        with pl.section_vector():
            while a.shape[0] > 3:
                pl.system.bar_v()
            x = unknown_function(4)
            pl.no_such_operation(x)
            for i in pl.range(3):
                pl.system.bar_m()
            {WAIT.format("y + 1")}
        """
    )
    (kernel,) = result(text).kernels
    line = text.splitlines().index("        while a.shape[0] > 3:") + 1
    assert unread(kernel) == [
        f"{line}: a while loop is not supported",
        f"{line + 2}: the name unknown_function is not defined in this file",
        f"{line + 3}: pl.no_such_operation is not known",
        f"{line + 6}: the name y is not defined in this file",
    ]
    assert "    barrier M" in section(kernel)
