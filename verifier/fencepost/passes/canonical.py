"""Are two kernels the same up to names, copies and the way in which sums are written?

Every computed value is numbered in the order of the text, copies vanish, integer expressions become linear
combinations.  Kernels with equal canonical forms execute the same operations on the same values, for all parameters.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost import ir
from fencepost.defuse import Flows

Form: TypeAlias = Hashable
_Linear: TypeAlias = dict[Hashable, int]
_ONE: Hashable = "1"


def canonical(kernel: ir.Kernel) -> Form:
    """The canonical form of what each core executes; declarations and annotations (`task`, spans) do not count."""
    sections: dict[str, list[ir.Stmt]] = {}
    for item in kernel.body:
        for core in ("cube", "vector"):
            if not isinstance(item, ir.Section):
                sections.setdefault(core, []).append(item)
            elif item.core == core:
                sections.setdefault(core, []).extend(item.body)
    buffers = [b.name for b in kernel.buffers]
    return tuple((core, _Canon(Flows(buffers)).block(tuple(body))) for core, body in sorted(sections.items()))


@dataclass(slots=True)
class _Canon:
    flows: Flows
    values: dict[str, Hashable] = field(default_factory=dict)
    count: int = 0

    def new(self) -> int:
        self.count += 1
        return self.count

    def value(self, name: str) -> Hashable:
        return self.values.get(name, ("input", name))

    def block(self, stmts: tuple[ir.Stmt, ...]) -> Form:
        return tuple(form for form in map(self.statement, stmts) if form is not None)

    def statement(self, stmt: ir.Stmt) -> Form | None:
        match stmt:
            case ir.DataOp(op="copy", writes=(target,), reads=(source,)) if self.flows.values((target, source)) == {
                target.name,
                source.name,
            }:
                self.values[target.name] = self.value(source.name)
                return None
            case ir.Assign(name=name, value=ir.Name(id=other)):
                self.values[name] = self.value(other)
                return None
            case ir.Assign(name=name, value=value) | ir.Bind(name=name, value=value):
                form: Form = ("assign", self.expr(value))
                self.values[name] = self.new()
                return form
            case ir.DataOp():
                return self.operation(stmt)
            case ir.Push():
                return ("push", stmt.receiver, stmt.pipe, self.expr(stmt.id), self.value(stmt.value))
            case ir.Pop():
                form = ("pop", stmt.sender, stmt.pipe, self.expr(stmt.id))
                self.values[stmt.value] = self.new()
                return form
            case ir.Free():
                return ("free", stmt.sender, stmt.pipe, self.expr(stmt.id), self.value(stmt.value))
            case ir.If():
                return self.branches(stmt)
            case ir.For():
                return self.loop(stmt)
            case ir.Pass():
                return None
            case ir.Barrier(pipe=pipe):
                return ("barrier", pipe)
            case ir.SetCross(id=event, pipe=pipe, mode=mode) | ir.WaitCross(id=event, pipe=pipe, mode=mode):
                lane = None if stmt.lane is None else self.expr(stmt.lane)
                return (type(stmt).__name__, self.expr(event), pipe, mode, lane)
            case ir.SyncSrc() | ir.SyncDst():
                return (type(stmt).__name__, self.expr(stmt.id), stmt.source, stmt.target)
            case ir.MutexLock() | ir.MutexUnlock():
                return (type(stmt).__name__, self.expr(stmt.id), stmt.pipe)
            case ir.Break() | ir.Continue() | ir.SyncAll():
                return (type(stmt).__name__,)
            case ir.Assert(condition=condition):
                return ("assert", self.expr(condition))
            case ir.Cursor(name=name, buffer=buffer, move=move):
                self.values[name] = self.new()
                return ("cursor", buffer, move)
            case ir.StoreField(ring=ring, index=index, field=name, value=value):
                return ("field", ring, name, self.expr(index), self.expr(value))
            case ir.Pipelined() | ir.Unsupported():
                return ("opaque", stmt)

    def operation(self, stmt: ir.DataOp) -> Form:
        reads = tuple(self.access(a) for a in stmt.reads)
        known = self.flows.values(stmt.writes)
        writes = tuple(("value",) if a.name in known else self.access(a) for a in stmt.writes)
        for access in stmt.writes:
            if access.name in known:
                self.values[access.name] = self.new()
        at = tuple(self.expr(e) for e in stmt.at)
        return (stmt.op, stmt.pipe, stmt.phase, stmt.family, stmt.lanes, stmt.offset, writes, reads, at)

    def access(self, access: ir.Access) -> Form:
        operands = tuple(None if e is None else self.expr(e) for e in (access.index, access.part, access.parts))
        return (self.value(access.name), operands)

    def branches(self, stmt: ir.If) -> Form:
        start = dict(self.values)
        arms: list[Form] = []
        ends: list[dict[str, Hashable]] = []
        for condition, body in (*stmt.branches, (None, stmt.orelse)):
            self.values = dict(start)
            test = None if condition is None else self.expr(condition)
            arms.append((test, self.block(body)))
            ends.append(self.values)
        self.values = dict(start)
        number = self.new()
        for name in sorted(set().union(*ends)):
            found = tuple(end.get(name) for end in ends)
            if any(v != start.get(name) for v in found):
                self.values[name] = found[0] if len(set(found)) == 1 else ("either", number, found)
        return ("if", tuple(arms))

    def loop(self, stmt: ir.For) -> Form:
        bounds = tuple(self.expr(e) for e in (stmt.start, stmt.stop, stmt.step))
        flow = self.flows.of_all(stmt.body)
        carried = self.first_uses([n for n in flow.exposed & flow.may if n != stmt.var], stmt.body)
        number = self.new()
        before = tuple(self.value(name) for name in carried)
        for k, name in enumerate(carried):
            self.values[name] = ("carried", number, k)
        self.values[stmt.var] = ("variable", number)
        body = self.block(stmt.body)
        after = tuple(self.value(name) for name in carried)
        for k, name in enumerate(carried):
            self.values[name] = ("after", number, k)
        stage = None if stmt.stage is None else self.expr(stmt.stage)
        return ("for", bounds, stage, before, body, after)

    def first_uses(self, names: list[str], body: tuple[ir.Stmt, ...]) -> list[str]:
        """Loop-carried names in the order in which the body first uses them."""
        seen: list[str] = []
        for stmt in body:
            for node in ir.walk(stmt):
                reads: tuple[str, ...] = ()
                match node:
                    case ir.DataOp(op="copy"):
                        pass
                    case ir.DataOp(reads=accesses):
                        reads = tuple(a.name for a in accesses)
                    case ir.Name(id=name) | ir.Push(value=name) | ir.Free(value=name):
                        reads = (name,)
                    case _:
                        pass
                seen += [n for n in dict.fromkeys(reads) if n in names and n not in seen]
        return [*seen, *sorted(n for n in names if n not in seen)]

    # -------------------------------------------------------------------------------------------- expressions

    def expr(self, expr: ir.Expr) -> Form:
        return _form(self.linear(expr))

    def linear(self, expr: ir.Expr) -> _Linear:
        match expr:
            case ir.Int(value=value):
                return {_ONE: value}
            case ir.Name(id=name):
                return {self.value(name): 1}
            case ir.Unary(op="-", operand=operand):
                return {atom: -factor for atom, factor in self.linear(operand).items()}
            case ir.Binary(op="+" | "-" as op, left=left, right=right):
                total = dict(self.linear(left))
                for atom, factor in self.linear(right).items():
                    total[atom] = total.get(atom, 0) + (factor if op == "+" else -factor)
                return total
            case ir.Binary(op="*", left=left, right=right):
                a, b = self.linear(left), self.linear(right)
                for x, y in ((a, b), (b, a)):
                    if set(x) <= {_ONE}:
                        return {atom: factor * x.get(_ONE, 0) for atom, factor in y.items()}
                return {("*", _form(a), _form(b)): 1}
            case ir.Binary(op=op, left=left, right=right):
                return {(op, self.expr(left), self.expr(right)): 1}
            case ir.Unary(op=op, operand=operand):
                return {(op, self.expr(operand)): 1}
            case ir.Item(name=name, index=index):
                return {("item", name, self.expr(index)): 1}
            case ir.Field(ring=ring, index=index, field=name):
                return {("field", ring, self.expr(index), name): 1}
            case ir.Compare(first=first, rest=rest):
                return {("compare", self.expr(first), tuple((op, self.expr(x)) for op, x in rest)): 1}
            case ir.Logic(op=op, operands=operands):
                return {(op, tuple(self.expr(x) for x in operands)): 1}
            case ir.Choose(condition=condition, then=then, other=other):
                return {("choose", self.expr(condition), self.expr(then), self.expr(other)): 1}
            case ir.Call(function=function, arguments=arguments):
                return {("call", function, tuple(self.expr(a) for a in arguments)): 1}


def _form(linear: _Linear) -> Form:
    return tuple(sorted(((atom, factor) for atom, factor in linear.items() if factor), key=repr))
