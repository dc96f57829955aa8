"""Which loop, reduced to its accesses, is a `pipelined` loop of a kernel?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from math import lcm

from fencepost import ir
from fencepost.model.memory import lay_out
from fencepost.model.program import compile_kernel
from fencepost.passes.serial import Serial
from fencepost.pipeline.forms import Scope, Unreadable
from fencepost.pipeline.model import Access, Annotations, Buffer, Loop, Statement, Step
from fencepost.pipeline.raw import Raw, RawStatement, RawStep, Shape
from fencepost.pipeline.sequence import ALWAYS, All, Guard, Not, Opaque
from fencepost.pipeline.surroundings import Surroundings

_MAX_UNROLLED = 64
_MAX_NESTING = 40
_MAX_CELLS = 64
_MAX_STEPS = 400
_CONSTANT_OPS = frozenset({"fill", "clear"})
_COPY_OPS = frozenset({"copy", "load", "move"})
TILE = "tile_"
"""Operations whose name begins so are tile operations of TileLang: the compiler counts what they write as read, too."""


def build(pipelined: ir.Pipelined, around: Surroundings) -> Loop:
    """The loop in terms of statements, buffers and accesses; `around` is where it stands (`surroundings.find`).

    Raises:
        Unreadable: the body holds something that cannot be taken into account; the error says what and where.
    """
    return _Builder(pipelined, around).loop()


class _Builder:
    def __init__(self, pipelined: ir.Pipelined, around: Surroundings) -> None:
        self.node, self.around, self.kernel = pipelined, around, around.kernel
        self.declared = {b.name: b for b in self.kernel.buffers}
        body = [n for stmt in pipelined.body for n in ir.walk(stmt)]
        operations = [n for n in body if isinstance(n, ir.DataOp)]
        self.assigned = {n.name for n in body if isinstance(n, ir.Assign)}
        self.written = {a.name for n in operations for a in n.writes} | self.assigned
        self.used = {a.name for n in operations for a in (*n.writes, *n.reads)} | self.assigned
        self.read_inside = {a.name for n in operations for a in n.reads}
        self._apart()
        self.binds = {n.name: n for n in pipelined.body if isinstance(n, ir.Bind)}
        replayed = {name: b.value for name, b in self.binds.items() if not self._buffers(b.value, self.written)}
        scheduled = self.binds.keys() - replayed.keys()
        self.scope = around.scope(pipelined).extended(replayed, self.written | scheduled)
        self.parts = self._part_counts(operations)

    def _apart(self) -> None:
        """Buffers are told apart by name: those that share memory with another one, and are written, can't be read."""
        placed = {b.name for b in self.kernel.buffers if b.addresses is not None}
        others = (self.used | self.around.read | self.around.written) & placed
        written = self.written | self.around.written
        if len(others) < 2 or not self.used & others:
            return
        layout = lay_out(compile_kernel(Serial().run(self.kernel)))
        for name in sorted(self.used & others):
            for other in sorted(others - {name}):
                if {name, other} & written and layout.overlapping(name, (other,)):
                    raise Unreadable(f"{name} and {other} share memory that is written", self.node.span)

    def _part_counts(self, operations: Iterable[ir.DataOp]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for operation in operations:
            for a in (*operation.writes, *operation.reads):
                form = self.scope.form(a.parts) if a.parts is not None else None
                if form is not None and form.value is not None and form.value > 0:
                    counts[a.name] = lcm(counts.get(a.name, 1), form.value)
        return counts

    def _buffers(self, expr: ir.Expr, names: Iterable[str]) -> set[str]:
        """Which of `names` the value of an expression is read from."""
        found = (n for n in ir.walk(expr) if isinstance(n, (ir.Name, ir.Item, ir.Call)))
        return {_spelling(n) for n in found} & set(names)

    # ------------------------------------------------------------------------------------------------ statements

    def loop(self) -> Loop:
        raw = [self._statement(stmt) for stmt in self.node.body if not isinstance(stmt, ir.Pass)]
        labels = Counter(r.label for r in raw)
        for r in raw:
            if labels[r.label] > 1 and r.node.span.line:
                r.label += f" (line {r.node.span.line})"
        sizes = {name: self._cells(name) for name in self.used | self._read_by_binds}
        shapes = self._shapes(raw, sizes)
        statements = tuple(self._finished(r, shapes) for r in raw)
        buffers = tuple(self._buffer(name, shapes[name]) for name in sorted(shapes))
        first = self.scope.form(self.node.start)
        loop = Loop(
            statements,
            buffers,
            Annotations(
                self.node.stage,
                self.node.order,
                self.node.num_stages,
                self.node.async_stages,
                self.node.async_producers,
                self.node.async_producer_groups,
                self.node.replayable,
            ),
            first.value if first is not None else None,
            variable=self.node.var,
            span=self.node.span,
        )
        return replace(loop, after=self._after(loop))

    @cached_property
    def _read_by_binds(self) -> set[str]:
        names = self.declared.keys() | self.written
        return {name for b in self.binds.values() for name in self._buffers(b.value, names)}

    def _statement(self, stmt: ir.Stmt) -> RawStatement:
        match stmt:
            case ir.Bind(name, value):
                reads = tuple(Raw(b, None, None) for b in sorted(self._buffers(value, self._known())))
                step = RawStep(reads, (), ALWAYS, False)
                return RawStatement(stmt, f"bind {name}", [step], _names(value), bind=name)
            case ir.DataOp(op, writes):
                plain = op.removeprefix(TILE)
                raw = RawStatement(stmt, f"{plain} to {writes[0].name}" if writes else plain, copy=self._is_copy(stmt))
            case ir.If():
                raw = RawStatement(stmt, f"if on line {stmt.span.line}" if stmt.span.line else "if")
            case ir.Assign(name):
                raw = RawStatement(stmt, f"assignment to {name}")
            case _:
                what = type(stmt).__name__.lower()
                raw = RawStatement(stmt, f"{what} on line {stmt.span.line}" if stmt.span.line else what)
        self._operations((stmt,), self.scope, ALWAYS, raw, 0)
        return raw

    def _known(self) -> set[str]:
        return self.declared.keys() | self.written

    def _is_copy(self, op: ir.DataOp) -> bool:
        def off_chip(name: str) -> bool:
            buffer = self.declared.get(name)
            return name not in self.written if buffer is None else buffer.space == "GM"

        moves = op.op.removeprefix(TILE) in _COPY_OPS and bool(op.reads) and all(off_chip(a.name) for a in op.reads)
        return moves and all(a.name in self.declared and self.declared[a.name].space == "Mat" for a in op.writes)

    def _operations(
        self, body: tuple[ir.Stmt, ...], scope: Scope, guard: Guard, raw: RawStatement, nesting: int
    ) -> None:
        """Append the operations of `body`, in order, to a statement."""
        if nesting > _MAX_NESTING:
            raise Unreadable("statements are nested too deeply", body[0].span if body else raw.node.span)
        for stmt in body:
            match stmt:
                case ir.DataOp():
                    self._operation(stmt, scope, guard, raw)
                case ir.Assign(name, value):
                    raw.names |= _names(value)
                    raw.steps.append(RawStep(tuple(self._scalars((value,))), (Raw(name, None, None),), guard, False))
                case ir.If(branches, orelse):
                    self._branches(branches, orelse, scope, guard, raw, nesting)
                case ir.For() | ir.Pipelined():
                    self._nested_loop(stmt, scope, guard, raw, nesting)
                case ir.Bind(name, value) if name not in self.binds:
                    scope = scope.extended({name: scope.text(value)})
                case ir.Pass() | ir.Assert():
                    pass
                case ir.Unsupported(reason):
                    raise Unreadable(reason, stmt.span)
                case _:
                    raise Unreadable(f"{_WORDS.get(type(stmt), 'this statement')} in a pipelined loop", stmt.span)

    def _branches(
        self,
        branches: tuple[tuple[ir.Expr, tuple[ir.Stmt, ...]], ...],
        orelse: tuple[ir.Stmt, ...],
        scope: Scope,
        guard: Guard,
        raw: RawStatement,
        nesting: int,
    ) -> None:
        raw.plain = False
        first, doubtful = len(raw.steps), False
        others: list[Guard] = [guard]
        for condition, arm in branches:
            raw.names |= _names(condition)
            reads = self._scalars((condition,))
            if reads:
                raw.steps.append(RawStep(tuple(reads), (), guard, False))
            holds = scope.guard(condition)
            doubtful = doubtful or scope.computed(condition)
            self._operations(arm, scope, _all((*others, holds)), raw, nesting + 1)
            others.append(Not(holds))
        self._operations(orelse, scope, _all(tuple(others)), raw, nesting + 1)
        if doubtful:
            raw.steps[first:] = [s.in_doubt() for s in raw.steps[first:]]

    def _nested_loop(
        self, stmt: ir.For | ir.Pipelined, scope: Scope, guard: Guard, raw: RawStatement, nesting: int
    ) -> None:
        step = stmt.step if isinstance(stmt, ir.For) else ir.Int(1)
        bounds = [scope.form(e) for e in (stmt.start, stmt.stop, step)]
        raw.names |= _names(stmt.start) | _names(stmt.stop)
        first, last, by = (f.value if f is not None else None for f in bounds)
        if first is not None and last is not None and by:
            values = range(first, last, by)
            if len(values) <= _MAX_UNROLLED:
                for value in values:
                    inside = replace(
                        scope, constants={**scope.constants, stmt.var: ir.Int(value)}, _forms={}, _texts={}
                    )
                    self._operations(stmt.body, inside, guard, raw, nesting + 1)
                return
        else:
            raw.plain = False
            guard = _all((guard, Opaque(scope.text(ir.Compare(stmt.start, (("<", stmt.stop),))))))
        inside = scope.extended(changing=(stmt.var,))
        self._operations(stmt.body, inside, guard, raw, nesting + 1)

    def _operation(self, op: ir.DataOp, scope: Scope, guard: Guard, raw: RawStatement) -> None:
        texts = [e for a in (*op.reads, *op.writes) for e in (a.index, a.part) if e is not None] + list(op.at)
        raw.names |= {name for e in texts for name in _names(e)}
        reads = [r for a in op.reads for r in self._access(a, scope)]
        reads += self._scalars(texts)
        writes = [w for a in op.writes for w in self._access(a, scope)]
        constant = op.op.removeprefix(TILE) in _CONSTANT_OPS and not reads and not op.at
        if len(raw.steps) >= _MAX_STEPS:
            raise Unreadable(f"a statement of more than {_MAX_STEPS} operations", op.span)
        raw.steps.append(RawStep(tuple(reads), tuple(writes), guard, constant))
        if op.op.startswith(TILE):
            raw.touched += writes

    def _scalars(self, texts: Iterable[ir.Expr]) -> list[Raw]:
        names = {name for e in texts for name in self._buffers(e, self._known())}
        return [Raw(name, None, None) for name in sorted(names)]

    def _access(self, access: ir.Access, scope: Scope) -> Iterator[Raw]:
        count = self.parts.get(access.name, 1)
        width = count
        if access.index is None and access.part is None:
            yield Raw(access.name, None, None)
            return
        cell: ir.Expr = access.index if access.index is not None else ir.Int(0)
        if count > 1:
            cell = ir.Binary("*", cell, ir.Int(count))
        if access.part is not None:
            parts = scope.form(access.parts) if access.parts is not None else None
            if parts is None or not parts.value or count % parts.value:
                yield Raw(access.name, None, None, rough=True)
                return
            width = count // parts.value
            cell = ir.Binary("+", cell, ir.Binary("*", access.part, ir.Int(width)))
        for n in range(width):
            place = ir.Binary("+", cell, ir.Int(n)) if n else cell
            form = scope.form(place)
            if form is None and scope.computed(place):
                yield Raw(access.name, None, None, rough=True)
            else:
                yield Raw(access.name, scope.text(place), form)

    # ------------------------------------------------------------------------------------------------ buffers

    def _cells(self, name: str) -> int | None:
        """The number of cells of a buffer; None for an array without a known end."""
        buffer = self.declared.get(name)
        count = self.parts.get(name, 1)
        if buffer is None or buffer.depth is None:
            return count
        depth = self.scope.form(buffer.depth)
        return depth.value * count if depth is not None and depth.value is not None else None

    def _shapes(self, raw: list[RawStatement], sizes: dict[str, int | None]) -> dict[str, Shape]:
        """How the accesses to each buffer name its cells."""
        found: dict[str, list[Raw]] = {name: [] for name in sizes}
        for statement in raw:
            for step in statement.steps:
                for access in (*step.reads, *step.writes):
                    found.setdefault(access.buffer, []).append(access)
        return {name: self._shape(name, accesses, sizes.get(name, 1)) for name, accesses in found.items()}

    def _shape(self, name: str, accesses: list[Raw], cells: int | None) -> Shape:
        whole = any(a.cell is None for a in accesses)
        forms = [a.form for a in accesses if a.cell is not None]
        rests = {f.rest for f in forms if f is not None}
        # A remainder that all accesses share only renames the cells.
        same = not whole and len(rests) == 1 and all(f is not None for f in forms)
        declared = self.declared.get(name)
        if declared is None and name in self.written and not self._is_local(name):
            return Shape(None, stream=True)
        if whole and (cells is None or cells > _MAX_CELLS or not forms):
            return Shape(1, flat=True)
        if any(f is not None and f.sequence.gain for f in forms) and not whole:
            cells = None
        return Shape(cells, same=same)

    @staticmethod
    def _step(raw: RawStep, shapes: dict[str, Shape]) -> Step:
        reads = [shapes[a.buffer].access(a) for a in raw.reads]
        writes = tuple(shapes[a.buffer].access(a) for a in raw.writes)
        reads += [w for w in writes if w.rough]  # which cells are written is not known: the others keep what they hold
        return Step(tuple(dict.fromkeys(reads)), writes, raw.guard, constant=raw.constant and not reads)

    def _finished(self, raw: RawStatement, shapes: dict[str, Shape]) -> Statement:
        steps = tuple(self._step(step, shapes) for step in raw.steps)
        guard: Guard = ALWAYS
        if steps and steps[0].guard != ALWAYS and len({s.guard for s in steps}) == 1:
            guard = steps[0].guard
            steps = tuple(replace(s, guard=ALWAYS) for s in steps)
        single = len(steps) == 1 and steps[0].guard == ALWAYS
        uses = tuple(name for name in self.binds if name in raw.names and name != raw.bind)
        return Statement(
            raw.label,
            tuple(a for s in steps for a in s.reads),
            tuple(a for s in steps for a in s.writes),
            guard,
            raw.bind,
            uses,
            constant=single and steps[0].constant,
            plain=raw.plain,
            copy=raw.copy,
            inner=() if single else steps,
            touched=tuple(shapes[a.buffer].access(a) for a in raw.touched),
            span=raw.node.span,
        )

    def _buffer(self, name: str, shape: Shape) -> Buffer:
        local = self._is_local(name)
        initialised = not local or name in self.around.written or self.around.repeated
        return Buffer(name, local, shape.cells, initialised)

    def _is_local(self, name: str) -> bool:
        declared = self.declared.get(name)
        if declared is not None:
            return declared.space != "GM"
        return name in self.written and (name in self.assigned or self._is_read(name))

    def _is_read(self, name: str) -> bool:
        return name in self.read_inside or name in self.around.read or name in self._read_by_binds

    def _after(self, loop: Loop) -> tuple[Access, ...]:
        """The local buffers whose contents are used once the loop has ended."""
        local = [b.name for b in loop.buffers if b.local and b.name in loop.written]
        used = set(self.around.read)
        if self.around.repeated:
            # The next execution of the loop starts with what this one left, unless that is overwritten before.
            used |= loop.carried - self.around.refilled
        return tuple(Access(name) for name in local if name in used)


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
