"""Which operations does the body of a `pipelined` loop consist of, under which conditions, on which cells?

Statements are read in order, so that every expression is understood where it stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from math import lcm
from typing import Literal

from fencepost import ir
from fencepost.model.memory import lay_out
from fencepost.model.program import ModelError, compile_kernel
from fencepost.passes.serial import Serial
from fencepost.pipeline.forms import Scope
from fencepost.pipeline.limits import Unreadable
from fencepost.pipeline.raw import Raw, RawStatement, RawStep, in_rounds
from fencepost.pipeline.sequence import ALWAYS, All, Guard, Not, Opaque
from fencepost.pipeline.surroundings import Surroundings, read_by, written_by

_MAX_UNROLLED = 64
_MAX_NESTING = 40
_MAX_STEPS = 400
_CONSTANT_OPS = frozenset({"fill", "clear"})
_COPY_OPS = frozenset({"copy", "load", "move"})
TILE = "tile_"
"""Operations whose name begins so are tile operations of TileLang: the compiler counts what they write as read, too."""


class Body:
    """The body of a loop; `around` is where it stands (`surroundings.find`).

    Once `statements` has run, `kept` are the names under which values of binds inside statements are kept.

    Raises:
        Unreadable: the body holds something that cannot be taken into account; the error says what and where.
    """

    def __init__(self, pipelined: ir.Pipelined, around: Surroundings) -> None:
        self.node, self.around, self.kernel = pipelined, around, around.kernel
        self.declared = {b.name: b for b in self.kernel.buffers}
        body = [n for stmt in pipelined.body for n in ir.walk(stmt)]
        operations = [n for n in body if isinstance(n, ir.DataOp)]
        self.assigned = {n.name for n in body if isinstance(n, ir.Assign)}
        self.writers = Counter(a.name for n in operations for a in n.writes)
        self.written = self.writers.keys() | self.assigned
        self.read_inside = {name for stmt in pipelined.body for name in read_by(stmt)}
        self.used = {a.name for n in operations for a in (*n.writes, *n.reads)} | self.assigned
        self.binds = {n.name: n for n in pipelined.body if isinstance(n, ir.Bind)}
        self.writes: Counter[str] = Counter()  # how often each name was written up to the statement at hand
        self.sites = 0
        self.kept: set[str] = set()  # values of binds inside statements
        self._apart()
        self.scope = self._outermost(body)
        self.halves = {a.name for n in operations for a in (*n.writes, *n.reads) if self._lanes(n, a) != "both"}
        self.parts = self._part_counts(operations)

    def _outermost(self, body: list[ir.Node]) -> Scope:
        """What can be seen at the beginning of the body.

        Raises:
            Unreadable: a name stands for two things, or what the body gives it is used after the loop.
        """
        given = Counter(n.name for n in self.node.body if isinstance(n, ir.Bind))
        given.update({n.name for n in body if isinstance(n, ir.Bind) and self.binds.get(n.name) is not n})
        given.update({n.var for n in body if isinstance(n, (ir.For, ir.Pipelined))})
        others = {*self.written, *self.declared, *self.kernel.parameters, *(c.name for c in self.kernel.constants)}
        twice = {n for n, count in given.items() if count > 1} | (given.keys() & others)
        for name in sorted(twice | ({self.node.var} & (given.keys() | self.written))):
            raise Unreadable(f"{name} stands for different things in the loop", self.node.span)
        for name in sorted(given.keys() & self.around.read):
            raise Unreadable(f"{name} has its value in the loop only, and is used after it", self.node.span)
        scope = replace(self.around.scope(self.node), writes=self.writes)
        return scope.extended(changing=self.written).hiding(given)

    def _apart(self) -> None:
        """Memory is told apart by buffer and slot: where it has two names, and is written, the loop can't be read."""
        placed = {b.name for b in self.kernel.buffers if b.addresses is not None}
        spread = {b.name for b in self.kernel.buffers if b.addresses is not None and len(b.addresses) > 1}
        used = self.used | self.read_inside
        others = (used | self.around.read | self.around.written) & placed
        written = self.written | self.around.written
        if not used & others or (len(others) < 2 and not self.written & spread):
            return
        try:
            layout = lay_out(compile_kernel(Serial().run(self.kernel)))
        except ModelError as error:
            raise Unreadable(str(error), self.node.span) from error
        for name in sorted(used & others):
            if name in self.written & spread and layout.slots_overlap(name):
                raise Unreadable(f"slots of {name} share memory that is written", self.node.span)
            for other in sorted(others - {name}):
                if {name, other} & written and layout.overlapping(name, (other,)):
                    raise Unreadable(f"{name} and {other} share memory that is written", self.node.span)

    def _lanes(self, op: ir.DataOp, access: ir.Access) -> Literal["both", "0", "1"]:
        """Which instances of a buffer an operation uses, if there is one for each vector sub-core."""
        declared = self.declared.get(access.name)
        return op.lanes if declared is not None and declared.space == "Vec" else "both"

    def _part_counts(self, operations: Iterable[ir.DataOp]) -> dict[str, int]:
        """How many cells a slot has: as many as its parts, twice that for one that is written lane by lane."""
        counts = dict.fromkeys(self.halves, 1)
        for operation in operations:
            for a in (*operation.writes, *operation.reads):
                form = None
                with suppress(Unreadable):  # a count that only an inner block knows
                    form = self.scope.form(a.parts) if a.parts is not None else None
                if form is not None and form.value is not None and form.value > 0:
                    counts[a.name] = lcm(counts.get(a.name, 1), form.value)
        return {name: count * (2 if name in self.halves else 1) for name, count in counts.items()}

    # ------------------------------------------------------------------------------------------------ names

    def is_local(self, name: str) -> bool:
        """Whether a name is allocated in the scope of the loop: the compiler may keep several versions of it."""
        declared = self.declared.get(name)
        if declared is not None:
            return declared.space != "GM"
        return name in self.written and (name in self.assigned | self.kept or self._is_read(name))

    def is_output(self, name: str) -> bool:
        """Whether a name is only written, so that each execution leaves a value of its own."""
        return name not in self.declared and name in self.written and not self.is_local(name)

    def _is_read(self, name: str) -> bool:
        return name in self.read_inside or name in self.around.read

    def known(self) -> set[str]:
        """The names of buffers, values and scalars that may change."""
        return self.declared.keys() | self.written

    # ------------------------------------------------------------------------------------------------ statements

    def statements(self) -> list[RawStatement]:
        """The statements of the body, in order, each with a label of its own."""
        place = _Place(self.scope)
        raw = []
        for stmt in self.node.body:
            if not isinstance(stmt, ir.Pass):
                raw.append(self._statement(stmt, place))
            if isinstance(stmt, ir.Bind):
                place = replace(place, scope=self._bound(stmt, place.scope))
        labels = Counter(r.label for r in raw)
        for r in raw:
            if labels[r.label] > 1 and r.node.span.line:
                r.label += f" (line {r.node.span.line})"
        return raw

    def _bound(self, bind: ir.Bind, scope: Scope) -> Scope:
        """What can be seen after a bind of the body itself: its value, or that it is scheduled."""
        if scope.reads(bind.value) & self.written:
            return scope.extended(changing=(bind.name,))
        return scope.binding(bind.name, bind.value)

    def _statement(self, stmt: ir.Stmt, place: _Place) -> RawStatement:
        match stmt:
            case ir.Bind(name, value):
                step = RawStep(tuple(self._scalars((value,), place.scope)), (), ALWAYS, False)
                return RawStatement(stmt, f"bind {name}", [step], _names(value), bind=name)
            case ir.DataOp(op, writes):
                plain = op.removeprefix(TILE)
                raw = RawStatement(stmt, f"{plain} to {writes[0].name}" if writes else plain, copy=self._is_copy(stmt))
            case ir.If():
                raw = RawStatement(stmt, f"if on line {stmt.span.line}" if stmt.span.line else "if")
                self._mark_copies(stmt, raw)
            case ir.Assign(name):
                raw = RawStatement(stmt, f"assignment to {name}")
            case _:
                what = type(stmt).__name__.lower()
                raw = RawStatement(stmt, f"{what} on line {stmt.span.line}" if stmt.span.line else what)
        self._operations((stmt,), place, raw)
        return raw

    def _is_copy(self, op: ir.DataOp) -> bool:
        def off_chip(name: str) -> bool:
            buffer = self.declared.get(name)
            return name not in self.written if buffer is None else buffer.space == "GM"

        moves = op.op.removeprefix(TILE) in _COPY_OPS and bool(op.reads) and all(off_chip(a.name) for a in op.reads)
        return moves and all(a.name in self.declared and self.declared[a.name].space == "Mat" for a in op.writes)

    def _mark_copies(self, branch: ir.If, raw: RawStatement) -> None:
        """A branch counts as a copy if it brings something in, and all that it does is copying, wherever to."""
        operations = [n for n in ir.walk(branch) if isinstance(n, ir.DataOp) and n.op != "test"]
        if any(map(self._is_copy, operations)):
            others = {n.op.removeprefix(TILE) for n in operations} - _COPY_OPS
            raw.copy = not others
            raw.partly_copy = any(name.startswith(("atomic", "call")) for name in others)

    def _operations(self, body: tuple[ir.Stmt, ...], place: _Place, raw: RawStatement) -> None:
        """Append the operations of `body`, in order, to a statement."""
        if place.nesting > _MAX_NESTING:
            raise Unreadable("statements are nested too deeply", body[0].span if body else raw.node.span)
        for stmt in body:
            match stmt:
                case ir.DataOp():
                    self._operation(stmt, place, raw)
                case ir.Assign(name, value):
                    self._add((value,), [Raw(name, None, None)], place, raw, constant=place.scope.fixed(value))
                case ir.If(branches, orelse):
                    self._branches(branches, orelse, place, raw)
                case ir.For() | ir.Pipelined():
                    self._nested_loop(stmt, place, raw)
                case ir.Bind(name) if name not in self.binds:
                    place = replace(place, scope=self._inner_bind(stmt, place, raw))
                case ir.Assert(condition):
                    self._add((condition,), [self._output(f"assert on line {stmt.span.line}")], place, raw)
                case ir.Pass():
                    pass
                case ir.Unsupported(reason):
                    raise Unreadable(reason, stmt.span)
                case _:
                    raise Unreadable(f"{_WORDS.get(type(stmt), 'this statement')} in a pipelined loop", stmt.span)

    def _add(
        self,
        values: Iterable[ir.Expr],
        writes: Iterable[Raw],
        place: _Place,
        raw: RawStatement,
        reads: Iterable[Raw] = (),
        constant: bool = False,
    ) -> None:
        """Append one operation, which reads `reads` and what `values` are made of."""
        if len(raw.steps) >= _MAX_STEPS:
            raise Unreadable(f"a statement of more than {_MAX_STEPS} operations", raw.node.span)
        operands, written = tuple(reads), tuple(writes)
        read = (*operands, *self._scalars(values, place.scope))
        raw.names |= {name for e in values for name in _names(e)}
        through = tuple(r for r in place.control if r not in read) if written else ()
        raw.steps.append(RawStep(read, written, place.guard, constant and not read, through, operands))
        self.writes.update({w.buffer for w in written})

    def _output(self, name: str) -> Raw:
        """A place of its own for what an operation inside a statement shows to the outside."""
        self.sites += 1
        name = f"{name} ({self.sites})"
        self.written.add(name)
        return Raw(name, None, None)

    def _inner_bind(self, bind: ir.Bind, place: _Place, raw: RawStatement) -> Scope:
        """What can be seen after a bind inside a statement.

        Where its value depends on what the body computes, that is kept under a name of its own.
        """
        scope = place.scope
        if bind.name not in scope.hidden:
            raise Unreadable(f"{bind.name} is bound again in its block", bind.span)
        if not scope.computed(bind.value):
            self._add((bind.value,), (), place, raw)
            return scope.binding(bind.name, bind.value)
        self.sites += 1
        kept = f"{bind.name} ({self.sites})"
        self.kept.add(kept)
        self.written.add(kept)
        self._add((bind.value,), [Raw(kept, None, None, private=True)], place, raw)
        return scope.extended(changing=(kept,)).binding(bind.name, ir.Name(kept))

    def _branches(
        self,
        branches: tuple[tuple[ir.Expr, tuple[ir.Stmt, ...]], ...],
        orelse: tuple[ir.Stmt, ...],
        place: _Place,
        raw: RawStatement,
    ) -> None:
        raw.plain = False
        first, doubtful = len(raw.steps), False
        others: list[Guard] = [place.guard]
        for condition, arm in branches:
            place = self._decided((condition,), place, raw)
            holds = place.scope.guard(condition)
            doubtful = doubtful or place.scope.computed(condition)
            self._operations(arm, place.inside(_all((*others, holds))), raw)
            others.append(Not(holds))
        self._operations(orelse, place.inside(_all(tuple(others))), raw)
        if doubtful:
            raw.steps[first:] = [s.in_doubt() for s in raw.steps[first:]]

    def _decided(self, values: tuple[ir.Expr, ...], place: _Place, raw: RawStatement) -> _Place:
        """Append the reading of what decides whether operations run; they depend on it."""
        reads = self._scalars(values, place.scope)
        raw.names |= {name for e in values for name in _names(e)}
        if not reads:
            return place
        self._add(values, (), place, raw)
        deciding = (r for r in reads if r.buffer in self.written)
        return replace(place, control=tuple(dict.fromkeys((*place.control, *deciding))))

    def _nested_loop(self, stmt: ir.For | ir.Pipelined, place: _Place, raw: RawStatement) -> None:
        step = stmt.step if isinstance(stmt, ir.For) else ir.Int(1)
        bounds = (stmt.start, stmt.stop, step)
        place = self._decided(bounds, place, raw)
        scope = place.scope
        first, last, by = (f.value if f is not None else None for f in map(scope.form, bounds))
        if stmt.var not in scope.hidden:
            raise Unreadable(f"{stmt.var} is the variable of a loop around this one, too", stmt.span)
        guard, doubtful = place.guard, False
        if first is not None and last is not None and by:
            values = range(first, last, by)
            if len(values) <= _MAX_UNROLLED:
                for value in values:
                    self._operations(stmt.body, place.inside(guard, scope.extended({stmt.var: ir.Int(value)})), raw)
                return
        else:
            raw.plain = False
            runs = _runs(stmt.start, stmt.stop, step, by)
            guard, doubtful = _all((guard, Opaque(scope.text(runs)))), scope.computed(runs)
        before, again = len(raw.steps), {w for s in stmt.body for w in written_by(s)}
        self.writes.update(again)  # what is read may be from an earlier round
        self._operations(stmt.body, place.inside(guard, scope.extended(changing=(stmt.var,))), raw)
        self.writes.update({*again, stmt.var})
        raw.steps[before:] = in_rounds([s.in_doubt() if doubtful else s for s in raw.steps[before:]])

    def _operation(self, op: ir.DataOp, place: _Place, raw: RawStatement) -> None:
        scope = place.scope
        accesses = (*op.reads, *op.writes)
        values = [e for a in accesses for e in (a.index, a.part, a.parts) if e is not None]
        values += [*op.at, *(() if op.task is None else (op.task,))]
        reads = [r for a in op.reads for r in self._access(a, scope, self._lanes(op, a))]
        writes = [w for a in op.writes for w in self._access(a, scope, self._lanes(op, a))]
        if op.op.startswith(TILE):
            raw.touched += writes
        for a in op.writes:  # several operations may write one output: each leaves something
            if self.is_output(a.name) and (raw.node is not op or self.writers[a.name] > 1):
                writes.append(self._output(a.name))
        constant = op.op.removeprefix(TILE) in _CONSTANT_OPS and not op.at
        self._add(values, writes, place, raw, reads, constant)

    def _scalars(self, values: Iterable[ir.Expr], scope: Scope) -> list[Raw]:
        """What values are made of: names in their text, and behind binds what the body writes."""
        texts = tuple(values)
        names = {name for e in texts for name in _names(e)} & self.known()
        names |= {name for e in texts for name in scope.reads(e)} & self.written
        return [Raw(name, None, None) for name in sorted(names)]

    def _access(self, access: ir.Access, scope: Scope, lanes: Literal["both", "0", "1"]) -> Iterator[Raw]:
        count = self.parts.get(access.name, 1)
        width = count
        if access.index is None and access.part is None and lanes == "both":
            yield Raw(access.name, None, None)
            return
        by = 2 if access.name in self.halves else 1  # a cell for each lane of a part
        cell: ir.Expr = access.index if access.index is not None else ir.Int(0)
        if count > 1:
            cell = ir.Binary("*", cell, ir.Int(count))
        if access.part is not None:
            parts = scope.form(access.parts) if access.parts is not None else None
            if parts is None or not parts.value or (count // by) % parts.value:
                yield Raw(access.name, None, None, rough=True)
                return
            width = count // parts.value
            cell = ir.Binary("+", cell, ir.Binary("*", access.part, ir.Int(width)))
        for n in range(width) if lanes == "both" else range(int(lanes), width, by):
            place = ir.Binary("+", cell, ir.Int(n)) if n else cell
            form = scope.form(place)
            if form is None and scope.computed(place):
                yield Raw(access.name, None, None, rough=True)
            else:
                yield Raw(access.name, scope.text(place), form)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an operation stands: what names mean there, under which condition it runs, what decided that condition
    (`control`), and in how many blocks it is.
    """

    scope: Scope
    guard: Guard = ALWAYS
    control: tuple[Raw, ...] = ()
    nesting: int = 0

    def inside(self, guard: Guard, scope: Scope | None = None) -> _Place:
        """The beginning of a block here."""
        return _Place(self.scope if scope is None else scope, guard, self.control, self.nesting + 1)


def _runs(start: ir.Expr, stop: ir.Expr, step: ir.Expr, by: int | None) -> ir.Expr:
    """Whether a loop has a round; `by` is the value of its step, if that is known."""
    up, down = (ir.Compare(start, ((op, stop),)) for op in ("<", ">"))
    if by is not None:
        return up if by > 0 else down
    return ir.Choose(ir.Compare(step, ((">", ir.Int(0)),)), up, down)


def _all(guards: tuple[Guard, ...]) -> Guard:
    kept = tuple(g for g in guards if g != ALWAYS)
    return kept[0] if len(kept) == 1 else All(kept)


def _spelling(node: ir.Name | ir.Item | ir.Call) -> str:
    match node:
        case ir.Name(name) | ir.Item(name, _) | ir.Call(name, _):
            return name


def _names(expr: ir.Expr) -> set[str]:
    return {_spelling(n) for n in ir.walk(expr) if isinstance(n, (ir.Name, ir.Item, ir.Call))}


_WORDS: dict[type, str] = {
    ir.SetCross: "a cross-core signal",
    ir.WaitCross: "a cross-core signal",
    ir.SyncSrc: "a flag between pipes",
    ir.SyncDst: "a flag between pipes",
    ir.MutexLock: "a mutex",
    ir.MutexUnlock: "a mutex",
    ir.Barrier: "a barrier",
    ir.SyncAll: "a barrier",
    ir.Push: "a message",
    ir.Pop: "a message",
    ir.Free: "a message",
    ir.Break: "break",
    ir.Continue: "continue",
    ir.Cursor: "a cursor",
    ir.StoreField: "a record ring",
}
