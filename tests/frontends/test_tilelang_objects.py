"""TileLang: a buffer that is reached through an object of Python is read there, or it is not known what is read."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from fencepost.findings import Verdict
from fencepost.frontends.tilelang import read
from fencepost.pipeline.check import check_pipeline, pipelines

PROGRAM = """\
import tilelang.language as T
from types import SimpleNamespace


class Box:
    def __init__(self, x):
        self.x = x


@T.prim_func
def main(A: T.Tensor((64, 64), T.float32), B: T.Tensor((64, 64), T.float32), last: T.Tensor((64,), T.float32)):
    with T.Kernel(1, threads=64):
        row = T.alloc_fragment((64,), T.float32)
        tile2 = T.alloc_fragment((64,), T.float32)
        T.clear(row)
{made}
        for k in T.Pipelined(64, stage={stage}, order=[0, 1]):
            for i in T.Parallel(64):
                tile2[i] = {read}
                row[i] = A[k, i]
            T.copy(row, B[k, 0:64])
        T.copy(tile2, last)
"""


def _verdict(made: str, found: str, stage: str = "[0, 1]") -> Verdict:
    text = PROGRAM.format(made=indent(dedent(made), " " * 8), read=found, stage=stage)
    result = read(text, "t.py")
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    return check_pipeline(pipelines(kernel)[0], kernel).verdict


TOLD = {
    "itself": ("", "row[i]"),
    "a list": ("bufs = [row]", "bufs[0][i]"),
    "a tuple": ("bufs = (row, 1)", "bufs[0][i]"),
    "a function": ("def f(j):\n    return row[j]", "f(i)"),
    "a lambda": ("f = lambda j: row[j]", "f(i)"),
}
UNTOLD = {
    "a list with another name": ("bufs = [row]\nother = bufs", "other[0][i]"),
    "a list appended to": ("bufs = []\nbufs.append(row)", "bufs[0][i]"),
    "a list given away": ("bufs = [row]\nfoo(bufs)", "bufs[0][i]"),
    "a list in a tuple": ("bufs = ([row], 1)\nfoo(bufs)", "bufs[0][0][i]"),
    "a comprehension": ("bufs = [b for b in (row, tile2)]", "bufs[0][i]"),
    "a dictionary": ("D = {'a': row}", "D['a'][i]"),
    "a dictionary updated": ("D = {}\nD.update(a=row)", "D['a'][i]"),
    "a default": ("D = {}\nD.setdefault('a', row)", "D['a'][i]"),
    "a method": ("D = {'a': row}", "D.get('a')[i]"),
    "a class": ("bufs = Box(row)", "bufs.x[i]"),
    "a namespace": ("bufs = SimpleNamespace(x=row)", "bufs.x[i]"),
    "an unknown function": ("bufs = foo(row)", "bufs.x[i]"),
    "an object given a buffer": ("bufs = foo()\nbufs.add(row)", "bufs.x[i]"),
    "an object given along": ("bufs = foo()\nbar(bufs, row)", "bufs.x[i]"),
    "a function that gives it": ("def f():\n    return row\nbufs = f()", "bufs[i]"),
}
POINTERS = ['T.access_ptr(row, "r")', "T.address_of(row[0])", "T.address_of(row)", 'row.access_ptr("r")']
NUMBERS = {
    "a tuple": ("c = (1, 2)\nd = c", "d[0]"),
    "a dictionary": ("c = {'a': 1}", "c['a']"),
    "an object": ("c = SimpleNamespace(x=1)", "c.x"),
    "a function": ("def f(j):\n    return j + 1", "f(i)"),
}


@pytest.mark.parametrize(("made", "found"), TOLD.values(), ids=TOLD)
def test_what_the_text_tells_is_read(made: str, found: str) -> None:
    assert _verdict(made, found) is Verdict.REFUTED
    assert _verdict(made, found, "[0, 0]") is Verdict.PROVED


@pytest.mark.parametrize(("made", "found"), UNTOLD.values(), ids=UNTOLD)
def test_what_the_text_does_not_tell_may_be_any_buffer(made: str, found: str) -> None:
    assert _verdict(made, found) in (Verdict.UNKNOWN, Verdict.REFUTED)


@pytest.mark.parametrize("pointer", POINTERS)
@pytest.mark.parametrize("named", [False, True])
def test_a_pointer_is_used_where_it_is_handed_on(pointer: str, named: bool) -> None:
    head, _, _ = PROGRAM.format(made=f"        p = {pointer}" if named else "", stage="[0, 1]", read="").partition(
        "            for i in T.Parallel"
    )
    use = f'T.call_extern("handle", "use", {"p" if named else pointer}, T.access_ptr(tile2, "w"))'
    text = f"{head}            {use}\n            T.copy(A[k, 0:64], row)\n        T.copy(tile2, last)\n"
    (kernel,) = read(text, "t.py").kernels
    assert check_pipeline(pipelines(kernel)[0], kernel).verdict is not Verdict.PROVED


@pytest.mark.parametrize(("made", "found"), NUMBERS.values(), ids=NUMBERS)
def test_objects_of_numbers_hold_no_buffer(made: str, found: str) -> None:
    assert _verdict(made, found) is Verdict.PROVED
