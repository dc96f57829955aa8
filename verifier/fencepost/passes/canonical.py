"""Are two kernels the same up to names, copies and the way in which sums are written?

Every computed value is numbered in the order of the text, copies vanish, constants are replaced by what they stand for,
integer expressions become linear combinations.  Kernels with equal canonical forms execute the same operations on the
same values in the same memory, for all parameters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost import ir
from fencepost.defuse import Flows, names, stored

Form: TypeAlias = Hashable
_Linear: TypeAlias = dict[Hashable, int]
_ONE: Hashable = "1"


def canonical(kernel: ir.Kernel) -> Form:
    """The canonical form of what each core executes, of the memory, rings and options that it is executed with.

    Annotations (`task`, spans), assumes (see `fencepost.narrowed`) and the names of constants, values and fifos do not
    count.  Statements that could not be read count by the reason alone: of a kernel that has any, equal forms prove
    nothing.
    """
    constants = {c.name: c.value for c in kernel.constants}
    sections: dict[str, list[ir.Stmt]] = {}
    for item in kernel.body:
        for core in ("cube", "vector"):
            if not isinstance(item, ir.Section):
                sections.setdefault(core, []).append(item)
            elif item.core == core:
                sections.setdefault(core, []).extend(item.body)
    buffers = [b.name for b in kernel.buffers]
    programs = tuple(
        (core, _Canon(Flows(buffers), constants).block(tuple(body))) for core, body in sorted(sections.items())
    )
    return (_Canon(Flows(buffers), constants).declarations(kernel), programs)


@dataclass(slots=True)
class _Jumps:
    """What the names hold at the jumps of the innermost loop, in text order; only names that its body may write."""

    names: tuple[str, ...]
    ends: list[dict[str, Hashable]] = field(default_factory=list)


@dataclass(slots=True)
class _Canon:
    """The forms of one core's statements.

    `values` says what each name holds at this place of the text; a name that is not in it holds what it is given from
    outside.  `jumps` belong to the loops around this place.
    """

    flows: Flows
    constants: Mapping[str, ir.Expr | tuple[ir.Expr, ...]]
    values: dict[str, Hashable] = field(default_factory=dict)
    jumps: list[_Jumps] = field(default_factory=list)
    count: int = 0

    def new(self) -> int:
        self.count += 1
        return self.count

    def value(self, name: str) -> Hashable:
        known = self.values.get(name)
        if known is not None:
            return known
        constant = self.constants.get(name)
        match constant:
            case None:
                return ("input", name)
            case tuple():
                return ("tuple", self.exprs(constant))
            case _:
                return ("constant", self.expr(constant))

    def exprs(self, expressions: Iterable[ir.Expr | None]) -> Form:
        return tuple(None if e is None else self.expr(e) for e in expressions)

    def declarations(self, kernel: ir.Kernel) -> Form:
        """What is declared and changes what is executed."""
        buffers = (
            (
                b.name,
                b.space,
                self.exprs((b.depth, b.size, b.stride, b.rows)),
                None if b.addresses is None else self.exprs(b.addresses),
                None if b.mutex is None else tuple(self.exprs(ids) for ids in b.mutex),
                b.shared,
            )
            for b in kernel.buffers
        )
        fifos = ((f.sender, self.exprs((f.id, f.slots)), f.lanes) for f in kernel.fifos)
        rings = ((r.name, self.expr(r.size), r.fields) for r in kernel.rings)
        options = (tuple(sorted(kernel.parameters)), kernel.target, kernel.auto_mutex, kernel.credits)
        return (options, *(tuple(sorted(declared, key=repr)) for declared in (buffers, fifos, rings)))

    def block(self, stmts: tuple[ir.Stmt, ...]) -> Form:
        return tuple(form for form in map(self.statement, stmts) if form is not None)

    def statement(self, stmt: ir.Stmt) -> Form | None:
        match stmt:
            case ir.DataOp(renames=True, writes=(target,), reads=(source,)) if self.flows.values((target, source)) == {
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
            case ir.SyncAll():
                return ("SyncAll",)
            case ir.Break() | ir.Continue():
                if self.jumps:
                    self.jumps[-1].ends.append({name: self.value(name) for name in self.jumps[-1].names})
                return (type(stmt).__name__,)
            case ir.Assert(condition=condition):
                return ("assert", self.expr(condition))
            case ir.Cursor(name=name, buffer=buffer, move=move):
                self.values[name] = self.new()
                return ("cursor", buffer, move)
            case ir.StoreField(ring=ring, index=index, field=name, value=value):
                return ("field", ring, name, self.expr(index), self.expr(value))
            case ir.Pipelined():
                return self.opaque(stmt)
            case ir.Unsupported():
                return ("unsupported", stmt)

    def operation(self, stmt: ir.DataOp) -> Form:
        reads = tuple(self.access(a) for a in stmt.reads)
        known = self.flows.values(stmt.writes)
        place = stored(stmt)
        writes = tuple(
            self.access(a) if a.name not in known else ("place", a.name) if a is place else ("value",)
            for a in stmt.writes
        )
        for access in stmt.writes:
            if access.name in known:
                self.values[access.name] = self.new()
        at = tuple(self.expr(e) for e in stmt.at)
        return (stmt.op, stmt.pipe, stmt.phase, stmt.family, stmt.lanes, stmt.offset, writes, reads, at)

    def access(self, access: ir.Access) -> Form:
        return (self.value(access.name), self.exprs((access.index, access.part, access.parts)))

    def opaque(self, stmt: ir.Pipelined) -> Form:
        """A statement that is compared as it stands, with what the names in it hold."""
        flow = self.flows.of(stmt)
        used = flow.exposed.union(*(names(e) for e in _expressions(stmt)))
        tuples = {n.name for n in ir.walk(stmt) if isinstance(n, ir.Item)} & self.constants.keys()
        held = tuple((name, self.value(name)) for name in sorted(used | flow.may | tuples))
        number = self.new()
        for name in flow.may:
            self.values[name] = ("opaque", number, name)
        return ("opaque", stmt, held)

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
            outside = self.value(name)
            found = tuple(end.get(name, outside) for end in ends)
            if any(v != outside for v in found):
                self.values[name] = found[0] if len(set(found)) == 1 else _one("either", number, found)
        return ("if", tuple(arms))

    def loop(self, stmt: ir.For) -> Form:
        """A loop; what a name holds behind it depends on what it held before, at the end of the body and at jumps."""
        bounds = self.exprs((stmt.start, stmt.stop, stmt.step))
        flow = self.flows.of_all(stmt.body)
        carried = self.first_uses([n for n in flow.exposed & flow.may if n != stmt.var], stmt.body)
        written = tuple(sorted(flow.may | {stmt.var}))
        number = self.new()
        outside = {name: self.value(name) for name in written}
        for k, name in enumerate(carried):
            self.values[name] = ("carried", number, k)
        self.values[stmt.var] = ("variable", number)
        self.jumps.append(_Jumps(written))
        body = self.block(stmt.body)
        ends = [{name: self.value(name) for name in written}, *self.jumps.pop().ends]
        for name in written:
            self.values[name] = _one("after", number, outside[name], tuple(end[name] for end in ends))
        for k, name in enumerate(carried):
            self.values[name] = ("after", number, k)
        stage = None if stmt.stage is None else self.expr(stmt.stage)
        before = tuple(outside[name] for name in carried)
        return ("for", bounds, stage, before, body, tuple(tuple(end[name] for name in carried) for end in ends))

    def first_uses(self, names: list[str], body: tuple[ir.Stmt, ...]) -> list[str]:
        """Loop-carried names in the order in which the body first uses them."""
        seen: list[str] = []
        for stmt in body:
            for node in ir.walk(stmt):
                reads: tuple[str, ...] = ()
                match node:
                    case ir.DataOp(renames=True):
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
                held = self.value(name)
                match held:
                    case ("constant", tuple() as form):
                        return dict(form)
                return {held: 1}
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
                return self.item(name, self.linear(index))
            case ir.Field(ring=ring, index=index, field=name):
                return {("field", ring, self.expr(index), name): 1}
            case ir.Compare(first=first, rest=rest):
                return {("compare", self.expr(first), tuple((op, self.expr(x)) for op, x in rest)): 1}
            case ir.Logic(op=op, operands=operands):
                return {(op, tuple(self.expr(x) for x in operands)): 1}
            case ir.Choose(condition=condition, then=then, other=other):
                return {("choose", self.expr(condition), self.expr(then), self.expr(other)): 1}
            case ir.Call(function=function, arguments=arguments):
                return {("call", function, self.exprs(arguments)): 1}

    def item(self, name: str, index: _Linear) -> _Linear:
        """An element of a constant tuple; of a buffer (in the value of a bind), its name stands for it."""
        elements = self.constants.get(name)
        if not isinstance(elements, tuple):
            return {("item", name, _form(index)): 1}
        at = index.get(_ONE, 0)
        if set(index) <= {_ONE} and 0 <= at < len(elements):
            return self.linear(elements[at])
        return {("item", self.exprs(elements), _form(index)): 1}


def _one(*description: Hashable) -> Hashable:
    """A value that others make up, as one short text, so that values of values stay short."""
    return (description[0], hashlib.sha256(repr(description).encode()).hexdigest())


def _expressions(node: ir.Node) -> Iterable[ir.Expr]:
    return (n for n in ir.walk(node) if isinstance(n, ir.Name | ir.Field))


def _form(linear: _Linear) -> Form:
    return tuple(sorted(((atom, factor) for atom, factor in linear.items() if factor), key=repr))
