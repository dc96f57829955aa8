"""Does every loop have a variable of its own?

Two loops with one variable name share nothing but the name, yet an analysis by name would tie their counters together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.rewrite import rebuild


@dataclass(frozen=True, slots=True)
class UniqueLoops:
    """The pass: the same kernel in which the second and later loops of a variable get a name of their own.

    A loop variable is undefined after its loop and never assigned inside it, so renaming it changes nothing.
    """

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel; the object itself if every loop has its own variable already."""
        seen: dict[str, int] = {}

        def change(node: ir.Node) -> ir.Node:
            if not isinstance(node, ir.For):
                return node
            count = seen[node.var] = seen.get(node.var, 0) + 1
            return node if count == 1 else _renamed(node, f"{node.var}~{count}")

        changed = rebuild(kernel, change)
        assert isinstance(changed, ir.Kernel)
        return changed


def _renamed(loop: ir.For, name: str) -> ir.For:
    def change(node: ir.Node) -> ir.Node:
        return replace(node, id=name) if isinstance(node, ir.Name) and node.id == loop.var else node

    body = tuple(rebuild(stmt, change) for stmt in loop.body)
    return replace(loop, var=name, body=body)  # type: ignore[arg-type]
