"""The PyPTO kernel IR front end: which kernels does a `@pl.program` text hold, printed or written by hand?

``read(text, file)`` looks at syntax only; nothing is imported and no code of the text runs.
"""

from __future__ import annotations

from fencepost import ir
from fencepost.findings import InputError
from fencepost.frontends.pypto_ir.pairs import KernelReader, pairs
from fencepost.frontends.pypto_ir.program import programs
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.result import ReadResult


def read(text: str, file: str) -> ReadResult:
    """Read every pair of cube and vector functions of `text`; `file` is the name that spans and messages carry.

    Never raises for bad input.  Functions that run on the host, or have nothing to check, give no kernel.
    """
    source = Source(text, file)
    tree = source.parse()
    if isinstance(tree, InputError):
        return ReadResult(errors=(tree,))
    kernels: list[ir.Kernel] = []
    errors: list[InputError] = []
    assumptions: dict[str, tuple[str, ...]] = {}
    used: set[str] = set()
    try:
        found = [(program, pair) for program in programs(tree) for pair in pairs(program)]
    except RecursionError:
        return ReadResult(errors=(InputError(file, 1, 1, "the Python text is nested too deeply to be read"),))
    for program, pair in found:
        name = _unique(pair.name, program.name, used)
        reader = KernelReader(source, program, pair)
        kernel = reader.run(name)
        errors += reader.errors
        if kernel is not None:
            kernels.append(kernel)
            if reader.shared.assumptions:
                assumptions[name] = tuple(reader.shared.assumptions)
    return ReadResult(tuple(kernels), tuple(errors), assumptions)


def _unique(name: str, program: str, used: set[str]) -> str:
    """The name of a kernel: that of its function, with the program's in front if it is taken."""
    wanted = name if name not in used or not program else f"{program}_{name}"
    number, result = 1, wanted
    while result in used:
        number += 1
        result = f"{wanted}_{number}"
    used.add(result)
    return result


__all__ = ["ReadResult", "read"]
