"""How does PyPTO-Pro source become kernel IR?

The source is read with `ast` and never imported or executed.
"""

from __future__ import annotations

import ast
import itertools
import math

from fencepost import ir
from fencepost.findings import InputError
from fencepost.frontends.pypto_pro.assemble import Lowered, lower_kernel, unread_kernel
from fencepost.frontends.pypto_pro.interpreter import Budget
from fencepost.frontends.pypto_pro.kernels import FoundKernel, find_kernels, module_scope
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.pypto_pro.unread import has_device_code, unread_functions
from fencepost.frontends.pypto_pro.values import Class, DType, Value
from fencepost.frontends.result import ReadResult

_MAX_VARIANTS = 16


def read(text: str, file: str) -> ReadResult:
    """The kernels of a Python text, what is wrong with the text, and what was taken for granted.

    `file` is the name that spans and messages carry.  Never raises for bad input.
    """
    source = Source(text, file)
    tree = source.parse()
    if isinstance(tree, InputError):
        return ReadResult(errors=(tree,))
    kernels: list[ir.Kernel] = []
    unread: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    assumptions: dict[str, tuple[str, ...]] = {}
    taken: dict[str, int] = {}
    try:
        module = module_scope(source, tree, Budget())
        found = list(find_kernels(source, tree, Budget()))
        unread += unread_functions(tree, module, found)
    except RecursionError:
        return ReadResult(errors=(InputError(file, 1, 1, "the Python text is nested too deeply to be read"),))
    kept = [k for k in found if _on_device(k)]
    for kernel in sorted([*kept, *unread], key=_place):
        node = kernel.node if isinstance(kernel, FoundKernel) else kernel
        number = taken[node.name] = taken.get(node.name, 0) + 1
        name = node.name if number == 1 else f"{node.name}_{number}"
        if not isinstance(kernel, FoundKernel):
            kernels.append(unread_kernel(name, _why_unread(kernel), source.header(kernel), source.header(kernel)))
            continue
        for lowered in _lowered(source, tree, kernel, name):
            kernels.append(lowered.kernel)
            if lowered.notes:
                assumptions[lowered.kernel.name] = lowered.notes
    return ReadResult(tuple(kernels), (), assumptions)


def _lowered(source: Source, tree: ast.Module, kernel: FoundKernel, name: str) -> list[Lowered]:
    """The kernel; or one for each value of its compile-time parameters, if it can only be read with their values."""
    whole = lower_kernel(source, kernel, name, Budget())
    choices = [*kernel.choices, *whole.choices]
    count = math.prod(len(c.values) for c in choices)
    if whole.complete or not choices or count > _MAX_VARIANTS or len(kernel.choices) > 1:
        return [whole]
    variants: list[Lowered] = []
    for values in itertools.product(*(c.values for c in choices)):
        fixed = {choice.name: value for choice, value in zip(choices, values, strict=True)}
        factory = {c.name: fixed.pop(c.name) for c in kernel.choices}
        found = next(k for k in find_kernels(source, tree, Budget(), factory) if k.node is kernel.node)
        words = "_".join(f"{n}_{_word(v)}" for n, v in {**factory, **fixed}.items())
        variants.append(lower_kernel(source, found, f"{name}_{words}", Budget(), fixed))
        if not variants[-1].complete:
            return [whole]
    return variants


def _word(value: Value) -> str:
    """A value as a part of a name."""
    text = value.name if isinstance(value, DType) else value.node.name if isinstance(value, Class) else str(value)
    return "".join(c if c.isalnum() else "_" for c in text)


def _place(kernel: FoundKernel | ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, int]:
    node = kernel.node if isinstance(kernel, FoundKernel) else kernel
    return node.lineno, node.col_offset


def _why_unread(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Why a function with device code is no kernel that can be checked."""
    if isinstance(function, ast.AsyncFunctionDef):
        return f"{function.name} holds device code, but an asynchronous function is not read as a kernel"
    if function.decorator_list:
        words = " or ".join(f"@{ast.unparse(d)}"[:60] for d in function.decorator_list)
        return f"{function.name} holds device code, but {words} is not understood to make a kernel of it"
    return f"{function.name} holds device code, but no decorator makes it a kernel and no kernel here calls it"


def _on_device(kernel: FoundKernel) -> bool:
    """Whether a decorated function holds device code: host functions are sometimes decorated by mistake."""
    if has_device_code(kernel.node, kernel.scope):
        return True
    return not any(isinstance(n, ast.Name) and n.id in ("torch", "pytest") for n in ast.walk(kernel.node))
