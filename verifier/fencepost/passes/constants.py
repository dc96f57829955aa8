"""Which constants of a kernel can have a bad value?  Their expressions stand where their names stood.

`K = (n - 9) % 2` is worked out wherever K is used, and is a fault where n is below 9.  Who looks at an expression for
what can be bad in it must see that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from fencepost import ir
from fencepost.rewrite import rebuild


def can_be_bad(expr: ir.Expr) -> bool:
    """Whether working out an expression can be a fault, if its names have good values."""
    return any(
        isinstance(n, ir.Item | ir.Field) or (isinstance(n, ir.Binary) and n.op in ("//", "%")) for n in ir.walk(expr)
    )


@dataclass(frozen=True, slots=True)
class Constants:
    """The pass: the same kernel without uses of constants whose value can be bad."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel; the object itself if it has no such constant."""
        bad: dict[str, ir.Expr] = {}

        def expanded(node: ir.Node) -> ir.Node:
            return bad.get(node.id, node) if isinstance(node, ir.Name) else node

        for constant in kernel.constants:
            if not isinstance(constant.value, tuple):
                value = rebuild(constant.value, expanded)
                assert isinstance(value, ir.Expr)
                if can_be_bad(value):
                    bad[constant.name] = value
        if not bad:
            return kernel
        constants = tuple(
            replace(c, value=tuple(cast(ir.Expr, rebuild(v, expanded)) for v in c.value))
            if isinstance(c.value, tuple)
            else c
            for c in kernel.constants
        )
        body = tuple(rebuild(item, expanded) for item in kernel.body)
        return replace(kernel, constants=constants, body=body)  # type: ignore[arg-type]
