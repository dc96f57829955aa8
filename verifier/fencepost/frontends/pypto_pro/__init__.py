"""How does PyPTO-Pro source become kernel IR?

The source is read with `ast` and never imported or executed.
"""

from __future__ import annotations

import ast

from fencepost import ir
from fencepost.findings import InputError
from fencepost.frontends.pypto_pro.assemble import lower_kernel
from fencepost.frontends.pypto_pro.environment import Budget
from fencepost.frontends.pypto_pro.kernels import find_kernels
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.result import ReadResult


def read(text: str, file: str) -> ReadResult:
    """The kernels of a Python text, what is wrong with the text, and what was taken for granted.

    `file` is the name that spans and messages carry.  Never raises for bad input.
    """
    source = Source(text, file)
    tree = source.parse()
    if isinstance(tree, InputError):
        return ReadResult(errors=(tree,))
    kernels: list[ir.Kernel] = []
    assumptions: dict[str, tuple[str, ...]] = {}
    taken: dict[str, int] = {}
    try:
        found = list(find_kernels(source, tree, Budget()))
    except RecursionError:
        return ReadResult(errors=(InputError(file, 1, 1, "the Python text is nested too deeply to be read"),))
    for kernel in found:
        if not _on_device(kernel.node):
            continue
        number = taken[kernel.node.name] = taken.get(kernel.node.name, 0) + 1
        name = kernel.node.name if number == 1 else f"{kernel.node.name}_{number}"
        lowered, notes = lower_kernel(source, kernel, name, Budget())
        kernels.append(lowered)
        if notes:
            assumptions[name] = notes
    return ReadResult(tuple(kernels), (), assumptions)


def _on_device(function: ast.FunctionDef) -> bool:
    """Whether a decorated function holds device code: host functions are sometimes decorated by mistake."""
    names = {n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute)}
    if names & {"section_cube", "section_vector"}:
        return True
    return not any(isinstance(n, ast.Name) and n.id in ("torch", "pytest") for n in ast.walk(function))
