"""How do the tests of the PyPTO-Pro front end write kernels, and look at what they become?"""

from __future__ import annotations

import textwrap

from fencepost import ir
from fencepost.frontends.pypto_pro import read
from fencepost.frontends.result import ReadResult
from fencepost.printer import print_kernel
from fencepost.validate import validate

TENSORS = (
    "a: pl.Tensor[[pl.DYNAMIC, 64], pl.DT_FP16], b: pl.Tensor[[64, 64], pl.DT_FP16], "
    "out: pl.Tensor[[64, 64], pl.DT_FP16]"
)

TYPES = """
def tile(space, rows=64, columns=64, dtype=pl.DT_FP16):
    return pl.TileType(shape=[rows, columns], dtype=dtype, target_memory=space)

VEC = pl.TileType(shape=[64, 64], dtype=pl.DT_FP16, target_memory=pl.MemorySpace.Vec)
MAT = pl.TileType(shape=[64, 64], dtype=pl.DT_FP16, target_memory=pl.MemorySpace.Mat)
ACC = pl.TileType(shape=[64, 64], dtype=pl.DT_FP32, target_memory=pl.MemorySpace.Acc)
"""


def program(body: str, before: str = "", parameters: str = TENSORS, jit: str = "") -> str:
    """The text of a module with one kernel."""
    parts = ["import pypto_pro.language as pl", "from pypto_pro.language import Vf as vf", TYPES.strip()]
    parts.append(textwrap.dedent(before).strip())
    parts.append(f"@pl.jit({jit})\ndef kernel({parameters}):")
    return "\n".join(parts) + "\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


def result(text: str) -> ReadResult:
    """What reading the text gives; every kernel must be valid."""
    found = read(text, "k.py")
    for kernel in found.kernels:
        assert not validate(kernel), (validate(kernel), print_kernel(kernel))
    return found


def lowered(text: str) -> ir.Kernel:
    """The one kernel of a text, all of which can be read."""
    found = result(text)
    assert not found.errors
    (kernel,) = found.kernels
    assert not unread(kernel), unread(kernel)
    return kernel


def unread(kernel: ir.Kernel) -> list[str]:
    """What could not be read, with the lines."""
    return [f"{n.span.line}: {n.reason}" for n in ir.walk(kernel) if isinstance(n, ir.Unsupported)]


def section(kernel: ir.Kernel, core: str = "vector") -> list[str]:
    """The lines of a section as kernel IR text, without their common indentation."""
    lines = print_kernel(kernel).splitlines()
    header = f"    section {core}:"
    if header not in lines:
        return []
    found = []
    for line in lines[lines.index(header) + 1 :]:
        if not line.startswith("        "):
            break
        found.append(line[8:])
    return found


def head(kernel: ir.Kernel) -> list[str]:
    """The lines before the sections, without indentation."""
    lines = print_kernel(kernel).splitlines()
    end = next((i for i, line in enumerate(lines) if line.strip().startswith("section ")), len(lines))
    return [line.strip() for line in lines[1:end] if line.strip()]


def vector(body: str, before: str = "", parameters: str = TENSORS, jit: str = "") -> list[str]:
    """The vector section of a kernel whose body is all in that section."""
    whole = "with pl.section_vector():\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return section(lowered(program(whole, before, parameters, jit)))


def cube(body: str, before: str = "", parameters: str = TENSORS, jit: str = "") -> list[str]:
    """The cube section of a kernel whose body is all in that section."""
    whole = "with pl.section_cube():\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return section(lowered(program(whole, before, parameters, jit)), "cube")


def block(text: str) -> list[str]:
    """The lines of a text, without their common indentation."""
    return textwrap.dedent(text).strip("\n").splitlines()


def places(kernel: ir.Kernel, kind: type[ir.Node]) -> list[tuple[int, int, int, int, tuple[int, ...]]]:
    """Line, column, end line, end column of the nodes of one kind, and the lines of the calls that led to them."""
    return [
        (n.span.line, n.span.column, n.span.end_line, n.span.end_column, tuple(v.line for v in n.span.via))
        for n in ir.walk(kernel)
        if isinstance(n, kind)
    ]
