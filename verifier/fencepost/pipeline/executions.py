"""How often does each execution of a pipelined loop iterate, in one run of the kernel around it?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from fencepost import ir
from fencepost.model.functions import Point
from fencepost.pipeline.forms import SOMEWHERE
from fencepost.pipeline.setting import Setting
from fencepost.pipeline.surroundings import may_jump, written_by

_MAX_STATEMENTS = 20_000


def executions(loop: ir.Pipelined, kernel: ir.Kernel, setting: Setting) -> list[int] | None:
    """The trip counts of all executions of `loop`, in order; None if they depend on what the kernel computes.

    Args:
        setting: the parameters of the run, and its functions.
    """
    walk = _Walk(loop, kernel, setting)
    try:
        for item in kernel.body:
            if not isinstance(item, ir.Section):
                walk.run((item,))
            elif walk.holds_loop(item):
                walk.run(item.body)
    except _Computed:
        return None
    return walk.counts


class _Computed(Exception):
    """What is run next depends on values that are not known here, or there is too much to run."""


class _Walk:
    def __init__(self, loop: ir.Pipelined, kernel: ir.Kernel, setting: Setting) -> None:
        self.loop, self.counts, self.left = loop, list[int](), _MAX_STATEMENTS
        self.values: dict[str, int | None] = dict(setting.names)
        self.changing = {name for item in kernel.body for name in written_by(item)} | {b.name for b in kernel.buffers}
        self.changing |= {r.name for r in kernel.rings}
        points: dict[Point, int] = {}
        table = setting.functions
        self.functions = replace(table, values={**table.values, **table.used}, used={})
        for constant in kernel.constants:
            if not isinstance(constant.value, tuple):
                self.values[constant.name] = self._value(constant.value)
                continue
            found = ((n, self._value(value)) for n, value in enumerate(constant.value))
            points.update(((constant.name, (n,)), value) for n, value in found if value is not None)
        self.functions = replace(self.functions, values={**self.functions.values, **points}, used={})

    def holds_loop(self, node: ir.Node) -> bool:
        return any(n is self.loop for n in ir.walk(node))

    def run(self, body: tuple[ir.Stmt, ...]) -> Literal["break", "continue", ""]:
        """Run statements, up to a jump."""
        for stmt in body:
            self.left -= 1
            if self.left < 0:
                raise _Computed
            match stmt:
                case _ if stmt is self.loop:
                    self.counts.append(max(0, self._sure(stmt.stop) - self._sure(stmt.start)))
                    self._forget(written_by(stmt))
                case ir.Assign(name, value) | ir.Bind(name, value):
                    self.values[name] = self._value(value)
                case ir.Break():
                    return "break"
                case ir.Continue():
                    return "continue"
                case ir.If():
                    if jump := self._branch(stmt):
                        return jump
                case ir.For() | ir.Pipelined() if self.holds_loop(stmt):
                    self._rounds(stmt)
                case _:
                    self._forget(written_by(stmt))
        return ""

    def _branch(self, stmt: ir.If) -> Literal["break", "continue", ""]:
        for condition, arm in (*stmt.branches, (ir.Int(1), stmt.orelse)):
            holds = self._value(condition)
            if holds is None:
                if may_jump(stmt) or self.holds_loop(stmt):
                    raise _Computed
                self._forget(written_by(stmt))
                return ""
            if holds:
                return self.run(arm)
        return ""

    def _rounds(self, owner: ir.For | ir.Pipelined) -> None:
        step = self._sure(owner.step) if isinstance(owner, ir.For) else 1
        if step == 0:
            raise _Computed
        for value in range(self._sure(owner.start), self._sure(owner.stop), step):
            self.values[owner.var] = value
            if self.run(owner.body) == "break":
                break
        self.values[owner.var] = None

    def _forget(self, names: Iterable[str]) -> None:
        self.values.update(dict.fromkeys(names))

    def _sure(self, expr: ir.Expr) -> int:
        value = self._value(expr)
        if value is None:
            raise _Computed
        return value

    def _value(self, expr: ir.Expr) -> int | None:
        for node in ir.walk(expr):
            match node:
                case ir.Name(name) if self.values.get(name) is None:
                    return None
                case ir.Item(name, _) | ir.Field(name, _, _) if name in self.changing:
                    return None
                case ir.Call(name, _) if name == SOMEWHERE:
                    return None
        names = {name: value for name, value in self.values.items() if value is not None}
        return Setting(names, self.functions).value(expr, 0)
