"""Which record rings only hand values on to later trips?  They become delay lines of scalars.

A ring of m records, written at `t % m` and read at `(t + m - d) % m`, holds what was written d trips ago.  Scalars that
are moved on with `t` say so without a slot number.  A value that is m trips old is lost: an unknown that nobody may ask
about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar, cast

from fencepost import ir
from fencepost.rewrite import constant, rebuild

LOST = "lost~"

_N = TypeVar("_N", bound=ir.Node)


@dataclass(frozen=True, slots=True)
class Delays:
    """The pass.  Where a program asks about a function called `LOST`..., it cannot be followed."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel with delay lines in the place of such rings."""
        sizes = {ring.name: constant(ring.size, {}) for ring in kernel.rings}
        items: list[ir.Section | ir.Stmt] = []
        for number, item in enumerate(kernel.body):
            if isinstance(item, ir.Section):
                for ring in kernel.rings:
                    size = sizes[ring.name]
                    line = None if size is None else _line(item.body, ring, size, number)
                    if line is not None:
                        item = replace(item, body=line.block(item.body))
            items.append(item)
        return replace(kernel, body=tuple(items))


def _line(body: tuple[ir.Stmt, ...], ring: ir.Ring, size: int, section: int) -> _Line | None:
    """How a ring is written and read in a program; None if it is no delay line."""
    counters: set[str] = set()
    used = False
    for stmt in body:
        for node in ir.walk(stmt):
            if isinstance(node, ir.Compare | ir.Binary) and _apart(node, ring.name):
                return None
            match node:
                case ir.DataOp(task=task) | ir.Push(task=task) | ir.Pop(task=task) if task is not None:
                    return None
                case ir.StoreField(ring=ring.name, index=ir.Int()):
                    pass
                case ir.StoreField(ring=ring.name, index=index) | ir.Field(ring=ring.name, index=index):
                    used = True
                    place = _place(index, size)
                    if place is None:
                        return None
                    if isinstance(node, ir.StoreField) and place[1]:
                        return None
                    counters.add(place[0])
    if not used or len(counters) != 1:
        return None
    (counter,) = counters
    fields = {
        n.field
        for stmt in body
        for n in ir.walk(stmt)
        if isinstance(n, ir.StoreField | ir.Field) and n.ring == ring.name
    }
    line = _Line(ring.name, size, counter, tuple(sorted(fields)), section)
    return line if line.fits(body) else None


def _apart(node: ir.Node, ring: str) -> bool:
    """Whether an expression reads one field of two records: both may be lost, and need not agree."""
    places: dict[str, set[ir.Expr]] = {}
    for n in ir.walk(node):
        if isinstance(n, ir.Field) and n.ring == ring:
            places.setdefault(n.field, set()).add(n.index)
    return any(len(indices) > 1 for indices in places.values())


def _place(index: ir.Expr, size: int) -> tuple[str, int] | None:
    """(counter, c) for an index `(counter + c) % size`."""
    match index:
        case ir.Binary(op="%", left=ir.Name(id=name), right=ir.Int(value=modulus)) if modulus == size:
            return name, 0
        case ir.Binary(
            op="%", left=ir.Binary(op="+", left=ir.Name(id=name), right=ir.Int(value=c)), right=ir.Int(value=modulus)
        ) if modulus == size:
            return name, c % size
    return None


@dataclass(frozen=True, slots=True)
class _Line:
    ring: str
    size: int
    counter: str
    fields: tuple[str, ...]
    section: int

    def fits(self, body: tuple[ir.Stmt, ...]) -> bool:
        """Whether the counter only counts on by one, and starts anew only where all records are alike."""
        return self._fits(body, top=True)

    def _fits(self, body: tuple[ir.Stmt, ...], top: bool) -> bool:
        for k, stmt in enumerate(body):
            match stmt:
                case ir.Assign(name=self.counter, value=value) if value not in self._steps():
                    if not isinstance(value, ir.Int):
                        return False
                    if not (top and self._untouched(body[:k])) and self._alike(body, k) is None:
                        return False
                case ir.StoreField(ring=self.ring, index=ir.Int()):
                    if not any(self._resets(body, j) for j in range(*self._window(body, k))):
                        return False
                case ir.Cursor(name=self.counter):
                    return False
                case ir.For(var=var, body=inner):
                    if var == self.counter or not self._fits(inner, False):
                        return False
                case ir.If(branches=branches, orelse=orelse):
                    if not all(self._fits(arm, False) for arm in (*(b for _, b in branches), orelse)):
                        return False
        return True

    def _steps(self) -> tuple[ir.Expr, ir.Expr]:
        one, name = ir.Int(1), ir.Name(self.counter)
        return ir.Binary("+", name, one), ir.Binary("+", one, name)

    def _untouched(self, body: tuple[ir.Stmt, ...]) -> bool:
        """Whether all records are still as at the start."""
        return not any(isinstance(n, ir.StoreField) and n.ring == self.ring for stmt in body for n in ir.walk(stmt))

    def _resets(self, body: tuple[ir.Stmt, ...], k: int) -> bool:
        stmt = body[k]
        return isinstance(stmt, ir.Assign) and stmt.name == self.counter and self._alike(body, k) is not None

    def _alike(self, body: tuple[ir.Stmt, ...], k: int) -> dict[str, ir.Expr] | None:
        """What every field is after the run of assignments around the statement k, if all records agree in it."""
        start, end = self._window(body, k)
        found: dict[str, dict[int, ir.Expr]] = {name: {} for name in self.fields}
        written: set[str] = set()
        for stmt in body[start:end]:
            match stmt:
                case ir.StoreField(ring=self.ring, index=ir.Int(value=slot), field=name, value=ir.Int() as value):
                    found[name][slot] = value
                    written.add(name)
                case ir.StoreField(ring=self.ring):
                    return None
                case _ if any(isinstance(n, ir.Field) and n.ring == self.ring for n in ir.walk(stmt)):
                    return None
        for name in written:
            if len(found[name]) != self.size or len(set(found[name].values())) != 1:
                return None
        if written != set(self.fields):
            return None  # what is not written again would change its place
        return {name: found[name][0] for name in written}

    def _window(self, body: tuple[ir.Stmt, ...], k: int) -> tuple[int, int]:
        """The run of assignments around the statement k."""
        start, end = k, k + 1
        while start > 0 and isinstance(body[start - 1], ir.Assign | ir.StoreField):
            start -= 1
        while end < len(body) and isinstance(body[end], ir.Assign | ir.StoreField):
            end += 1
        return start, end

    # ------------------------------------------------------------------------------------------ the new program

    def _name(self, name: str, delay: int) -> str:
        return f"{self.ring}~{name}~{delay}"

    def block(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """The program with scalars; they are 0 at the start, as the records are."""
        zero = [ir.Assign(self._name(name, d), ir.Int(0)) for name in self.fields for d in range(self.size)]
        return (*zero, *self._block(body))

    def _block(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        found: list[ir.Stmt] = []
        for stmt in body:
            match stmt:
                case ir.StoreField(ring=self.ring, index=ir.Int(value=slot), field=name, value=value):
                    if slot == 0:
                        found += [ir.Assign(self._name(name, d), value, span=stmt.span) for d in range(self.size)]
                case ir.StoreField(ring=self.ring, field=name, value=value):
                    found.append(ir.Assign(self._name(name, 0), self._read(value), span=stmt.span))
                case ir.Assign(name=self.counter, value=value) if value in self._steps():
                    found += self._moved(stmt)
                    found.append(stmt)
                case ir.For(body=inner):
                    shell = self._read(replace(stmt, body=()))
                    found.append(replace(shell, body=self._block(inner)))
                case ir.If(branches=branches, orelse=orelse):
                    arms = tuple((self._read(condition), self._block(arm)) for condition, arm in branches)
                    found.append(replace(stmt, branches=arms, orelse=self._block(orelse)))
                case _:
                    found.append(self._read(stmt))
        return tuple(found)

    def _moved(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        found: list[ir.Stmt] = []
        for name in self.fields:
            for delay in range(self.size - 1, 0, -1):
                value = ir.Name(self._name(name, delay - 1))
                found.append(ir.Assign(self._name(name, delay), value, span=stmt.span))
            lost = ir.Call(f"{LOST}{self.section}~{self.ring}~{name}", ())
            found.append(ir.Assign(self._name(name, 0), lost, span=stmt.span))
        return found

    def _read(self, node: _N) -> _N:
        def change(current: ir.Node) -> ir.Node:
            if isinstance(current, ir.Field) and current.ring == self.ring:
                place = _place(current.index, self.size)
                assert place is not None
                return ir.Name(self._name(current.field, (self.size - place[1]) % self.size), span=current.span)
            return current

        return cast(_N, rebuild(node, change))
