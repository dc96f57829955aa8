"""Participation: may the two vector sub-cores issue different cross-core operations?

Decided from the text: a value depends on the sub-core if it is computed from `sub`, or assigned where `sub` decides
whether it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from fencepost import ir

_CROSSES = (ir.SetCross, ir.WaitCross, ir.SyncAll)


def sub_cores_differ(kernel: ir.Kernel) -> bool:
    """Whether `sub` may decide which cross-core operations a sub-core issues, or UNICAST names one sub-core."""
    items = [item for item in kernel.body if not isinstance(item, ir.Section) or item.core == "vector"]
    found = _Dependence()
    while True:
        before = len(found.names)
        found.differ = False
        for item in items:
            found.body(item.body if isinstance(item, ir.Section) else (item,), guarded=False)
        if len(found.names) == before:
            break
    unicast = any(isinstance(n, _CROSSES[:2]) and n.mode == "UNICAST_BLOCK" for n in ir.walk(kernel))
    return unicast or found.differ


class _Dependence:
    """The names and rings whose values depend on the sub-core, collected in any number of walks over the text."""

    def __init__(self) -> None:
        self.names = {"sub"}
        self.differ = False

    def body(self, stmts: Iterable[ir.Stmt], guarded: bool) -> None:
        """Walk statements; `guarded`: the sub-core decides whether they run."""
        for stmt in stmts:
            match stmt:
                case ir.For() | ir.Pipelined():
                    bounds = self._depends(stmt.start) or self._depends(stmt.stop)
                    inside = guarded or bounds or self._left_early(stmt)
                    if inside:
                        self.names.add(stmt.var)
                    self.body(stmt.body, inside)
                case ir.If():
                    inside = guarded
                    for condition, branch in stmt.branches:
                        inside = inside or self._depends(condition)
                        self.body(branch, inside)
                    self.body(stmt.orelse, inside)
                case ir.Assign(name=name, value=value) | ir.Bind(name=name, value=value):
                    self._assign(name, guarded or self._depends(value))
                case ir.StoreField(ring=ring, index=index, value=value):
                    self._assign(ring, guarded or self._depends(index) or self._depends(value))
                case ir.Cursor(name=name, buffer=buffer):
                    self._assign(buffer, guarded)
                    self._assign(name, guarded or buffer in self.names)
                case ir.SetCross(id=id_) | ir.WaitCross(id=id_):
                    self.differ = self.differ or guarded or self._depends(id_)
                case ir.SyncAll():
                    self.differ = self.differ or guarded

    def _left_early(self, loop: ir.For | ir.Pipelined) -> bool:
        """Whether the sub-core may decide when a trip of the loop, or the loop, is left."""
        if not any(isinstance(n, (ir.Break, ir.Continue)) for n in ir.walk(loop)):
            return False
        conditions = (c for n in ir.walk(loop) if isinstance(n, ir.If) for c, _ in n.branches)
        return any(map(self._depends, conditions))

    def _assign(self, name: str, depends: bool) -> None:
        if depends:
            self.names.add(name)

    def _depends(self, expr: ir.Expr) -> bool:
        for node in ir.walk(expr):
            match node:
                case ir.Name(id=name) | ir.Field(ring=name):
                    if name in self.names:
                        return True
        return False
