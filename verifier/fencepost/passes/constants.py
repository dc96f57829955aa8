"""Which constants of a kernel can have a bad value?

`K = (n - 9) % 2` is worked out wherever K is used, and is a fault where n is below 9.  Who takes an expression out must
look for what can be bad in it, in its constants too.
"""

from __future__ import annotations

from fencepost import ir


def bad_constants(kernel: ir.Kernel) -> frozenset[str]:
    """The constants of which some value may be bad: with a remainder, a quotient, or an element of a tuple or ring."""
    bad: set[str] = set()
    for constant in kernel.constants:
        values = constant.value if isinstance(constant.value, tuple) else (constant.value,)
        if any(can_be_bad(value, bad) for value in values):
            bad.add(constant.name)
    return frozenset(bad)


def can_be_bad(expr: ir.Expr, bad: frozenset[str] | set[str]) -> bool:
    """Whether working out an expression can be a fault; `bad` are the constants that can be."""
    return any(
        isinstance(n, ir.Item | ir.Field)
        or (isinstance(n, ir.Name) and n.id in bad)
        or (isinstance(n, ir.Binary) and n.op in ("//", "%"))
        for n in ir.walk(expr)
    )
