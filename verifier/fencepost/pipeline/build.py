"""Which loop, reduced to its accesses, is a `pipelined` loop of a kernel?"""

from __future__ import annotations

from dataclasses import replace

from fencepost import ir
from fencepost.pipeline.gather import Body
from fencepost.pipeline.model import Access, Annotations, At, Buffer, Loop, Statement, Step
from fencepost.pipeline.raw import Raw, RawStatement, RawStep, Shape
from fencepost.pipeline.sequence import ALWAYS, Guard, Sequence
from fencepost.pipeline.surroundings import Surroundings

_MAX_CELLS = 64
_MAX_AFTER = 1000
"""Cells of a buffer that are looked at one by one after the loop."""


def build(pipelined: ir.Pipelined, around: Surroundings) -> Loop:
    """The loop in terms of statements, buffers and accesses; `around` is where it stands (`surroundings.find`).

    Raises:
        Unreadable: the body holds something that cannot be taken into account; the error says what and where.
    """
    return _Builder(Body(pipelined, around)).loop()


class _Builder:
    def __init__(self, body: Body) -> None:
        self.body, self.node, self.around = body, body.node, body.around

    def loop(self) -> Loop:
        raw = self.body.statements()
        sizes = {name: self._cells(name) for name in self.body.used | (self.body.read_inside & self.body.known())}
        shapes = self._shapes(raw, sizes)
        statements = tuple(self._finished(r, shapes) for r in raw)
        buffers = tuple(self._buffer(name, shapes[name]) for name in sorted(shapes))
        first = self.body.scope.form(self.node.start)
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
            repeated=self.around.followed,
            variable=self.node.var,
            span=self.node.span,
        )
        later = [b.name for b in loop.buffers if b.name in self.around.overwritten]
        return replace(
            loop,
            after=tuple(a for name in self._after(loop) for a in self._later(loop, name, shapes, False)),
            read_later=self._read_later(loop),
            written_later=tuple(a for name in later for a in self._later(loop, name, shapes, True)),
        )

    # ------------------------------------------------------------------------------------------------ buffers

    def _cells(self, name: str) -> int | None:
        """The number of cells of a buffer; None for an array without a known end."""
        buffer = self.body.declared.get(name)
        count = self.body.parts.get(name, 1)
        if buffer is None or buffer.depth is None:
            return count
        depth = self.body.scope.form(buffer.depth)
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
        same = not whole and len(rests) == 1 and all(f is not None for f in forms)
        declared = self.body.declared.get(name)
        if declared is None and self.body.is_output(name):
            return Shape(None, stream=True)
        if whole and (cells is None or cells > _MAX_CELLS or not forms):
            return Shape(1, flat=True)
        if same and rests != {()}:
            # A remainder that all accesses share renames the cells: others, who see them under their own names, may
            # see any that the loop uses.
            return Shape(None, same=True)
        if any(f is not None and f.sequence.gain for f in forms) and not whole:
            if not self.body.is_local(name) or not (name in self.around.read or self.around.repeated):
                cells = None
            elif cells is None or cells > _MAX_AFTER:
                return Shape(1, flat=True)
        return Shape(cells, same=same)

    @staticmethod
    def _step(raw: RawStep, shapes: dict[str, Shape]) -> Step:
        reads = [shapes[a.buffer].access(a) for a in (*raw.reads, *raw.through)]
        writes = tuple(shapes[a.buffer].access(a) for a in raw.writes)
        reads += [w for w in writes if w.rough]  # which cells are written is not known: the others keep what they hold
        return Step(tuple(dict.fromkeys(reads)), writes, raw.guard, constant=raw.constant and not reads)

    def _finished(self, raw: RawStatement, shapes: dict[str, Shape]) -> Statement:
        steps = tuple(self._step(step, shapes) for step in raw.steps)
        seen = dict.fromkeys(shapes[a.buffer].access(a) for s in raw.steps for a in s.reads)
        unseen = dict.fromkeys(a for s in steps for a in s.reads if a not in seen)
        guard: Guard = ALWAYS
        if steps and steps[0].guard != ALWAYS and len({s.guard for s in steps}) == 1:
            guard = steps[0].guard
            steps = tuple(replace(s, guard=ALWAYS) for s in steps)
        single = len(steps) == 1 and steps[0].guard == ALWAYS
        uses = tuple(name for name in self.body.binds if name in raw.names and name != raw.bind)
        return Statement(
            raw.label,
            (*seen, *unseen),
            tuple(a for s in steps for a in s.writes),
            guard,
            raw.bind,
            uses,
            constant=single and steps[0].constant,
            plain=raw.plain,
            copy=raw.copy,
            partly_copy=raw.partly_copy,
            inner=() if single else steps,
            unseen=len(unseen),
            fetched=tuple(dict.fromkeys(shapes[a.buffer].access(a) for s in raw.steps for a in s.operands)),
            touched=tuple(shapes[a.buffer].access(a) for a in raw.touched),
            span=raw.node.span,
        )

    def _buffer(self, name: str, shape: Shape) -> Buffer:
        local = self.body.is_local(name)
        initialised = not local or name in self.around.written or self.around.repeated
        return Buffer(name, local, shape.cells, initialised, name in self.body.kept)

    def _after(self, loop: Loop) -> tuple[str, ...]:
        """The local buffers whose contents are used once the loop has ended."""
        local = [b.name for b in loop.buffers if b.local and b.name in loop.written]
        used = set(self.around.read)
        if self.around.followed:
            # The next execution of the loop starts with what this one left, unless that is overwritten before.
            used |= loop.carried - self.around.refilled - self.body.kept
        return tuple(name for name in local if name in used)

    def _later(self, loop: Loop, name: str, shapes: dict[str, Shape], written: bool) -> tuple[Access, ...]:
        """What is read, or `written`, of a buffer once the loop has ended: all of it, unless slots have numbers."""
        slots, shape = self.around.slots(name, written), shapes[name]
        used = [a.index for s in loop.statements for a in (*s.reads, *s.writes) if a.buffer == name]
        moving = any(isinstance(index, At) and index.cell.gain for index in used)
        if slots is None or moving or shape.cells is None or shape.flat:
            return (Access(name),)
        count = self.body.parts.get(name, 1)
        cells = (slot * count + part for slot in sorted(slots) for part in range(count))
        return tuple(Access(name, At(Sequence.constant(cell))) for cell in cells)

    def _read_later(self, loop: Loop) -> frozenset[str]:
        """The buffers that are not local and read once the loop has ended."""
        again = {a.buffer for s in loop.statements for a in s.reads} if self.around.followed else set[str]()
        return frozenset(b.name for b in loop.buffers if not b.local and b.name in self.around.read | again)
