"""Does every statement of an agent's program stand where it means something, with a value in every name it reads?

The program of one core kind (its sections and what stands outside them, in text order) is followed along all paths:
a scalar may be read only where every path has assigned it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from fencepost import ir
from fencepost.assignment import Loop, State, Written
from fencepost.scope import Mistake, Names
from fencepost.spelling import STATEMENT_WORDS, is_name, suggestion

_PEER: dict[ir.Core, ir.Core] = {"cube": "vector", "vector": "cube"}
_AGENT: dict[ir.Core, str] = {"cube": "aic", "vector": "aiv"}
_Place = ir.Core | None
"""Where a statement stands: in a section of that core kind, or (None) outside the sections, where all agents run it."""


def check_agent(kernel: ir.Kernel, core: ir.Core, names: Names) -> Iterator[Mistake]:
    """Yield the mistakes in the program of `core`; what stands outside the sections is seen by both core kinds."""
    agent = _Agent(kernel, core, names)
    yield from agent.run(kernel)


class _Agent:
    def __init__(self, kernel: ir.Kernel, core: ir.Core, names: Names) -> None:
        self._core = core
        self._names = names
        self._place: _Place = None
        self._loops: list[Loop] = []
        self._written = Written()
        self._missing_fifos: set[tuple[ir.Core, int]] = set()
        self._fifos = {(fifo.sender, names.constant(fifo.id)) for fifo in kernel.fifos}
        for item in kernel.body:
            if isinstance(item, ir.Section):
                if item.core == core:
                    self._written.add(item.body)
            else:
                self._written.add((item,))
        self._unset = self._written.scalars | self._written.loop_variables
        self._reused = self._written.scalars & self._written.loop_variables
        self._state = State(set(names.integers) - {"sub"})

    def run(self, kernel: ir.Kernel) -> Iterator[Mistake]:
        for item in kernel.body:
            if not isinstance(item, ir.Section):
                yield from self._statement(item)
            elif item.core == self._core:
                self._place = item.core
                if self._core == "vector":
                    self._state.known.add("sub")
                yield from self._block(item.body)
                self._state.known.discard("sub")
                self._place = None

    def _where(self) -> str:
        return f"the {self._place} section" if self._place else "code outside the sections, which the cube runs too"

    # ------------------------------------------------------------------------------------------------------- control
    def _block(self, body: tuple[ir.Stmt, ...]) -> Iterator[Mistake]:
        for statement in body:
            yield from self._statement(statement)

    def _statement(self, statement: ir.Stmt) -> Iterator[Mistake]:
        match statement:
            case ir.Assign(name=name, value=value):
                yield from self._read(value)
                yield from self._assign(name, statement.span)
            case ir.StoreField(ring=ring, index=index, field=field, value=value):
                yield from self._names.field(ring, field, statement.span)
                yield from self._read(index)
                yield from self._read(value)
            case ir.Cursor():
                yield from self._cursor(statement)
            case ir.For() | ir.Pipelined():
                yield from self._loop(statement)
            case ir.Bind(name=name, value=value):
                if not self._loops or self._loops[-1].kind != "pipelined":
                    yield Mistake(statement.span, "'bind' stands only in the body of a 'pipelined' loop")
                yield from self._read(value, elements=True)
                yield from self._assign(name, statement.span)
            case ir.If():
                yield from self._if(statement)
            case ir.Break() | ir.Continue():
                yield from self._leave(statement)
            case ir.Assert(condition=condition):
                yield from self._read(condition)
            case ir.SetCross() | ir.WaitCross():
                yield from self._read(statement.id)
                yield from self._lane(statement)
            case ir.SyncSrc(id=id) | ir.SyncDst(id=id) | ir.MutexLock(id=id) | ir.MutexUnlock(id=id):
                yield from self._read(id)
            case ir.DataOp():
                yield from self._data_op(statement)
            case ir.Push() | ir.Pop() | ir.Free():
                yield from self._message(statement)
            case ir.Pass() | ir.Barrier() | ir.SyncAll() | ir.Unsupported():
                pass
            case _:
                assert_never(statement)

    def _if(self, statement: ir.If) -> Iterator[Mistake]:
        state, mark = self._state, self._state.mark()
        reachable = state.reachable
        outcomes: list[dict[str, bool] | None] = []
        if not statement.branches:
            yield Mistake(statement.span, "an 'if' without a condition")
        for condition, body in (*statement.branches, (None, statement.orelse)):
            if condition is not None:
                yield from self._read(condition)
            yield from self._block(body)
            outcomes.append(state.changes(mark) if state.reachable else None)
            state.undo(mark)
            state.reachable = reachable
        state.merge(outcomes)

    def _loop(self, loop: ir.For | ir.Pipelined) -> Iterator[Mistake]:
        yield from self._read(loop.start)
        yield from self._read(loop.stop)
        kind = "pipelined"
        if isinstance(loop, ir.For):
            kind = "range" if loop.stage is None else "pipeline"
            yield from self._step_and_stage(loop)
        yield from self._target(loop.var, loop.span)
        state = self._state
        if self._reused:
            inner = Written()
            inner.add(loop.body)
            for name in inner.loop_variables:
                state.forget(name)  # undefined in a second round
        reachable, here = state.reachable, Loop(kind, loop.var, self._surely_runs(loop), state.mark())
        state.assign(loop.var)
        self._loops.append(here)
        yield from self._block(loop.body)
        self._loops.pop()
        last = state.changes(here.mark) if state.reachable else None
        state.undo(here.mark)
        state.merge([last, *here.continues, *here.breaks] if here.runs else [{}])
        state.reachable = reachable
        state.forget(loop.var)

    def _surely_runs(self, loop: ir.For | ir.Pipelined) -> bool:
        """Whether the loop has at least one round for all parameter values."""
        start, stop = self._names.constant(loop.start), self._names.constant(loop.stop)
        step = self._names.constant(loop.step) if isinstance(loop, ir.For) else 1
        if start is None or stop is None or not step:
            return False
        return start < stop if step > 0 else start > stop

    def _step_and_stage(self, loop: ir.For) -> Iterator[Mistake]:
        kind = "range" if loop.stage is None else "pipeline"
        for expr, what in ((loop.step, "step"), (loop.stage, "stage")):
            if expr is None:
                continue
            yield from self._read(expr)
            value = self._names.constant(expr)
            if value is None:
                if not self._names.uses_unknown(expr) or what == "step":
                    yield Mistake(expr.span, f"the {what} of a {kind} must be a constant")
            elif what == "step" and value == 0:
                yield Mistake(expr.span, f"the step of a {kind} must not be zero")
            elif what == "stage" and value < 1:
                yield Mistake(expr.span, f"the stage of a pipeline must be at least 1, not {value}")

    def _leave(self, statement: ir.Break | ir.Continue) -> Iterator[Mistake]:
        word = "break" if isinstance(statement, ir.Break) else "continue"
        if not self._loops:
            yield Mistake(statement.span, f"'{word}' outside a loop")
            return
        loop, state = self._loops[-1], self._state
        if loop.kind != "range":
            yield Mistake(statement.span, f"'{word}' in a '{loop.kind}' loop: all its rounds run to their end")
        if loop.runs and state.reachable:
            (loop.breaks if word == "break" else loop.continues).append(state.changes(loop.mark))
        state.reachable = False

    # ------------------------------------------------------------------------------------------------------- scalars
    def _read(self, expr: ir.Expr, elements: bool = False) -> Iterator[Mistake]:
        known, loops = self._state.known, self._written.loop_variables
        return self._names.check(expr, known, self._where(), self._unset, loops, elements)

    def _assign(self, name: str, span: ir.Span) -> Iterator[Mistake]:
        yield from self._target(name, span)
        self._state.assign(name)

    def _target(self, name: str, span: ir.Span) -> Iterator[Mistake]:
        """What is wrong with giving the scalar `name` a value."""
        if name in self._names.kinds:
            kind = self._names.kinds[name]
            advice = "; choose another name" if kind in ("parameter", "constant") else ""
            yield Mistake(span, f"'{name}' is a {kind} and cannot be assigned{advice}", name)
        elif name in ir.BUILTINS:
            yield Mistake(span, f"'{name}' is built in and cannot be assigned; choose another name", name)
        elif not is_name(name):
            yield Mistake(span, f"'{name}' cannot be a name", name)
        elif any(loop.var == name for loop in self._loops):
            yield Mistake(span, f"'{name}' is the variable of a loop around this place; choose another name", name)

    def _cursor(self, cursor: ir.Cursor) -> Iterator[Mistake]:
        buffer = self._names.buffers.get(cursor.buffer)
        if buffer is None:
            yield self._no_buffer(cursor.buffer, cursor.span)
        elif buffer.depth is None:
            text = f"'{buffer.name}' has one slot and no cursor; declare it as {buffer.name}[1] to walk over its slots"
            yield Mistake(cursor.span, text, buffer.name)
        yield from self._assign(cursor.name, cursor.span)

    def _no_buffer(self, name: str, span: ir.Span) -> Mistake:
        names = self._names
        if name in names.kinds:
            return Mistake(span, f"'{name}' is a {names.kinds[name]}, not a buffer", name)
        return Mistake(span, f"unknown buffer '{name}'{suggestion(name, names.buffers)}", name)

    # ---------------------------------------------------------------------------------------------- signals and data
    def _lane(self, statement: ir.SetCross | ir.WaitCross) -> Iterator[Mistake]:
        if statement.lane is None:
            return
        yield from self._read(statement.lane)
        if statement.mode != "UNICAST_BLOCK":
            yield Mistake(statement.lane.span, "'lane' needs 'mode = UNICAST_BLOCK'; other modes reach both sub-cores")
        elif self._place != "cube":
            yield Mistake(statement.lane.span, f"'lane' is written in the cube section only, not in {self._where()}")
        value = self._names.constant(statement.lane)
        if value not in (None, 0, 1):
            yield Mistake(statement.lane.span, f"a lane is 0 or 1 (aiv0 or aiv1), not {value}")

    def _data_op(self, op: ir.DataOp) -> Iterator[Mistake]:
        if not is_name(op.op) or op.op in STATEMENT_WORDS:
            yield Mistake(op.span, f"'{op.op}' cannot be the name of a data operation")
        for access in op.writes:
            yield from self._access(access)
            yield from self._value(access.name, access.span)
        for access in op.reads:
            yield from self._access(access)
            kind = self._names.kinds.get(access.name)
            if kind in ("ring", "fifo") or access.name in self._names.tuples:
                yield Mistake(access.span, f"'{access.name}' is a {kind}, not a buffer or value", access.name)
        for expr in (op.task, *op.at):
            if expr is not None:
                yield from self._read(expr)
        if op.family is not None and op.phase is None:
            yield Mistake(op.span, "a phase family without a phase")
        if op.lanes != "both":
            spaces = [self._names.buffers[a.name].space for a in op.writes if a.name in self._names.buffers]
            if self._place != "cube":
                yield Mistake(op.span, f"'lanes' is written in the cube section only, not in {self._where()}")
            elif "Vec" not in spaces:
                yield Mistake(op.span, "'lanes' chooses the vector sub-cores of a write into Vec; this one writes none")

    def _access(self, access: ir.Access) -> Iterator[Mistake]:
        name, buffer = access.name, self._names.buffers.get(access.name)
        if (access.part is None) != (access.parts is None):
            yield Mistake(access.span, f"'{name}': a part needs its number and their count: part i of n", name)
        if buffer is None:
            if access.index is not None:
                yield self._no_buffer(name, access.span)
            elif access.part is not None:
                yield Mistake(access.span, f"'{name}' is a value, only slots of buffers have parts", name)
            elif not is_name(name):
                yield Mistake(access.span, f"'{name}' cannot be a name", name)
        elif buffer.depth is not None and access.index is None:
            yield Mistake(access.span, f"'{name}' has slots; choose one: {name}[e]", name)
        elif buffer.depth is None and access.index is not None:
            yield Mistake(access.span, f"'{name}' is declared without slots and takes no index", name)
        for expr in (access.index, access.part, access.parts):
            if expr is not None:
                yield from self._read(expr)
        if access.parts is not None:
            count = self._names.constant(access.parts)
            if count is not None and count < 1:
                yield Mistake(access.parts.span, f"the number of parts must be at least 1, not {count}")

    def _value(self, name: str, span: ir.Span) -> Iterator[Mistake]:
        """What is wrong with writing the buffer or value `name`."""
        kind = self._names.kinds.get(name)
        if kind is None and (name in self._unset or name in ir.BUILTINS):
            kind = "scalar"
        if kind is not None and kind != "buffer":
            yield Mistake(span, f"'{name}' is a {kind}; data goes into buffers and values of other names", name)

    # ----------------------------------------------------------------------------------------------------------- FIFO
    def _message(self, statement: ir.Push | ir.Pop | ir.Free) -> Iterator[Mistake]:
        match statement:
            case ir.Push(receiver=peer):
                word, sender = f"tpush_to_{_AGENT[peer]}", _PEER[peer]
            case ir.Pop(sender=peer):
                word, sender = f"tpop_from_{_AGENT[peer]}", peer
            case ir.Free(sender=peer):
                word, sender = f"tfree_to_{_AGENT[peer]}", peer
            case _:
                assert_never(statement)
        yield from self._read(statement.id)
        if not isinstance(statement, ir.Free) and statement.task is not None:
            yield from self._read(statement.task)
        if self._place is None:
            yield Mistake(statement.span, f"'{word}' outside the sections: each core kind has its own end of a FIFO")
            return
        if self._place == peer:
            other = word.replace(_AGENT[peer], _AGENT[_PEER[peer]])
            yield Mistake(statement.span, f"'{word}' in the {peer} section: its peer is the other one ('{other}')")
            return
        yield from self._fifo(statement, sender)
        if isinstance(statement, ir.Pop):
            if statement.value in self._names.buffers:
                yield Mistake(statement.span, f"'{statement.value}' is a buffer; a message gets a name of its own")
            else:
                yield from self._value(statement.value, statement.span)
        elif isinstance(statement, ir.Free):
            if statement.value not in self._written.popped:
                hint = suggestion(statement.value, sorted(self._written.popped))
                text = f"'{statement.value}' is no message: nothing in this program pops it{hint}"
                yield Mistake(statement.span, text, statement.value)
        elif not is_name(statement.value):
            yield Mistake(statement.span, f"'{statement.value}' cannot be a name")

    def _fifo(self, statement: ir.Push | ir.Pop | ir.Free, sender: ir.Core) -> Iterator[Mistake]:
        """A message needs a declared ring for its direction and id."""
        identity = self._names.constant(statement.id)
        if identity is None:
            yield Mistake(statement.id.span, "the id of a message must be a constant")
        elif (sender, identity) not in self._fifos and (sender, identity) not in self._missing_fifos:
            self._missing_fifos.add((sender, identity))
            shown = f", id = {identity}" if identity else ""
            text = (
                f"no fifo is declared for {sender} -> {_PEER[sender]} with id {identity}; "
                f"declare one: fifo NAME: {sender} -> {_PEER[sender]}, slots = N{shown}"
            )
            yield Mistake(statement.span, text, "fifo")
