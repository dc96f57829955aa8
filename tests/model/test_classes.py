"""Which parameter values give the same run?"""

from __future__ import annotations

from textwrap import dedent

from hypothesis import given
from hypothesis import strategies as st

from fencepost.frontends.kir import read
from fencepost.model.classes import Classes
from fencepost.model.executor import run
from fencepost.model.functions import FunctionTable
from fencepost.model.inputs import function_units
from fencepost.model.program import Compiled, compile_kernel

TILES = """
    kernel tiles(rows, cols, cores):
        assume rows >= 0 and cols >= 0 and cores >= 1
        IDS = (0, 1, rows % 3)
        row_tiles = (rows + 15) // 16

        section cube:
            mine = max(row_tiles - block + cores - 1, 0) // cores
            for t in range(mine):
                for k in range(cols // 16):
                    matmul a <- b @ M
                    set_cross_core {id} @ FIX
                {more}
"""


def compiled(text: str) -> Compiled:
    result = read(dedent(text), "k.kir")
    assert not result.errors, result.errors
    return compile_kernel(result.kernels[0])


def issued(kernel: Compiled, values: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
    done = run(kernel, dict(zip(kernel.parameters, values, strict=True)))
    return [(op.effect.site, op.effect.arguments) for ops in done.issued.values() for op in ops]


def test_values_of_one_unit_are_one_class() -> None:
    classes = Classes(compiled(TILES.format(id="0", more="pass")))
    assert classes.of((0, 40, 1, 0)) != classes.of((1, 40, 1, 0)) == classes.of((16, 47, 1, 0))
    assert classes.of((16, 40, 1, 0)) != classes.of((17, 40, 1, 0))
    assert classes.any


def test_a_parameter_among_scalars_of_the_run_counts_by_its_value() -> None:
    classes = Classes(compiled(TILES.format(id="0", more="if t * 16 < cols:\n                    barrier M")))
    assert classes.of((16, 40, 1, 0)) != classes.of((16, 41, 1, 0))
    functions = Classes(compiled(TILES.format(id="0", more="for i in range(f(cols)):\n                    barrier M")))
    assert functions.of((16, 40, 1, 0)) != functions.of((16, 41, 1, 0))


def test_bad_values_are_told_apart() -> None:
    classes = Classes(
        compiled(TILES.format(id="0", more="pass").replace("assume rows >= 0 and cols >= 0 and", "assume"))
    )
    assert classes.of((16, -1, 1, 0)) != classes.of((16, -20, 1, 0))
    assert classes.of((16, 5, 1, 0)) != classes.of((16, -1, 1, 0))


def test_no_parameter_makes_a_difference() -> None:
    assert not Classes(compiled("kernel k(n):\n    section cube:\n        barrier M\n")).any


@given(
    st.sampled_from(["0", "IDS[2]", "IDS[k % 3]", "rows % 5", "(k + rows) % 7"]),
    st.tuples(*[st.integers(0, 70)] * 2, st.integers(1, 3), st.integers(0, 3)),
    st.tuples(*[st.integers(0, 70)] * 2, st.integers(1, 3), st.integers(0, 3)),
)
def test_one_class_is_one_run(id_: str, one: tuple[int, ...], two: tuple[int, ...]) -> None:
    kernel = compiled(TILES.format(id=id_, more="pass"))
    classes = Classes(kernel)
    if classes.of(one) == classes.of(two):
        assert issued(kernel, one) == issued(kernel, two)


def test_fillings_of_unknown_functions() -> None:
    table = FunctionTable(default=1, slope=2, units={"length": 128})
    assert [table("start", (i,)) for i in range(3)] == [1, 3, 5]
    assert [table("length", (i,)) for i in range(3)] == [1, 257, 513]  # one, three and five tiles
    assert function_units(compiled(READS)) == {"length": 16}


READS = """
    kernel reads(n):
        section cube:
            for w in range(start(block), start(block + 1)):
                for t in range((length(w) + 15) // 16):
                    matmul a <- b @ M
"""
