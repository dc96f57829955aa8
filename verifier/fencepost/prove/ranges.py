"""Ranges: which values can the integers of a program have at all, whatever path is taken?

One interval per slot that holds everywhere.  It is coarse, and enough to see that most remainders have no negative
operand and most indices lie inside their tuple.
"""

from __future__ import annotations

from fencepost import ir
from fencepost.model.program import Enter, MoveCursor, Next, Set, Store
from fencepost.model.shapes import bounds
from fencepost.prove.structure import Structure
from fencepost.prove.values import EVERYTHING, Interval, lower_bound

_PATIENCE = 4  # how often a bound may move before it is taken to move for ever


class Ranges:
    """The ranges of one program."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.compiled = structure.compiled
        self.program = structure.program
        parameters = self.compiled.parameters
        self.slots: list[Interval] = [bounds(self.compiled, p) for p in parameters]
        self.slots += [(value, value) for value in self.program.initial]
        self._moves = [0] * len(self.slots)
        while self._pass():
            pass

    def _pass(self) -> bool:
        """Let every assignment act once; True if some range grew."""
        grown = False
        for pc, i in enumerate(self.program.code):
            match i:
                case Set(slot=slot, value=value):
                    grown |= self._join(slot, self.of(value))
                case Store(base=base, size=size, value=value):
                    new = self.of(value)
                    for slot in range(base, base + size):
                        grown |= self._join(slot, new)
                case MoveCursor(slot=slot, cursor=cursor, depth=depth):
                    grown |= self._join(slot, (0, depth - 1)) | self._join(cursor, (0, depth - 1))
                case Enter(index=index, limit=limit, start=start, stop=stop):
                    loop = next(x for x in self.structure.loops if x.enter == pc)
                    low, high = self.of(start), self.of(stop)
                    if loop.counted:
                        low, high = (0, 0), (0, None)
                    grown |= self._join(index, low) | self._join(limit, high)
                case Next(slot=slot, index=index, limit=limit, step=step):
                    first, last = self.slots[index], self.slots[limit]
                    if step > 0:
                        top = None if last[1] is None else last[1] - 1
                        grown |= self._join(slot, (first[0], top))
                        grown |= self._join(index, (first[0], None if top is None else top + step))
                    else:
                        least = None if last[0] is None else last[0] + 1
                        grown |= self._join(slot, (least, first[1]))
                        grown |= self._join(index, (None if least is None else least + step, first[1]))
        return grown

    def _join(self, slot: int, new: Interval) -> bool:
        old = self.slots[slot]
        low = None if old[0] is None or new[0] is None else min(old[0], new[0])
        high = None if old[1] is None or new[1] is None else max(old[1], new[1])
        if (low, high) == old:
            return False
        self._moves[slot] += 1
        if self._moves[slot] > _PATIENCE:
            low, high = (low if low == old[0] else None), (high if high == old[1] else None)
        self.slots[slot] = low, high
        return True

    # ------------------------------------------------------------------------------------------ expressions

    def of(self, expr: ir.Expr) -> Interval:
        """The range of an expression."""
        match expr:
            case ir.Int(value=value):
                return value, value
            case ir.Name(id=name):
                slot = self.program.names.get(name)
                return self.of(self.compiled.scalars[name]) if slot is None else self.slots[slot]
            case ir.Item(name=name):
                return _hull([(0, 0), *(self.of(v) for v in self.compiled.tuples[name])])
            case ir.Field(ring=ring, field=name):
                return _hull([self.slots[slot] for slot in self.structure.record(ring, name)])
            case ir.Unary(op="-", operand=operand):
                low, high = self.of(operand)
                return None if high is None else -high, None if low is None else -low
            case ir.Binary():
                return self._binary(expr)
            case ir.Choose(then=then, other=other):
                return _hull([self.of(then), self.of(other)])
            case ir.Call(function="min", arguments=arguments):
                given = [self.of(a) for a in arguments]
                return _all([low for low, _ in given], min), _some([high for _, high in given], min)
            case ir.Call(function="max", arguments=arguments):
                given = [self.of(a) for a in arguments]
                return _some([low for low, _ in given], max), _all([high for _, high in given], max)
            case ir.Call(function=function):
                return lower_bound(function), None
            case ir.Compare() | ir.Logic() | ir.Unary():
                return 0, 1
        return EVERYTHING

    def _binary(self, expr: ir.Binary) -> Interval:
        a, b = self.of(expr.left), self.of(expr.right)
        match expr.op:
            case "+":
                return _sum(a, b)
            case "-":
                return _sum(a, (None if b[1] is None else -b[1], None if b[0] is None else -b[0]))
            case "*":
                if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
                    return a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1]
                if None not in (*a, *b):
                    corners = [x * y for x in a for y in b if x is not None and y is not None]
                    return min(corners), max(corners)
            case "%":
                if b[0] is not None and b[0] > 0:
                    return 0, None if b[1] is None else b[1] - 1
            case "//":
                if b[0] is not None and b[0] > 0 and a[0] is not None and a[0] >= 0:
                    return 0 if b[1] is None else a[0] // b[1], None if a[1] is None else a[1] // b[0]
        return EVERYTHING

    def safe(self, expr: ir.Expr) -> bool:
        """Whether evaluating the expression cannot be a fault, whatever path is taken."""
        stack: list[ir.Node] = [expr]
        while stack:
            for node in ir.walk(stack.pop()):
                match node:
                    case ir.Binary(op="//" | "%", left=left, right=right):
                        low, divisor = self.of(left)[0], self.of(right)[0]
                        if low is None or low < 0 or divisor is None or divisor <= 0:
                            return False
                    case ir.Item(name=name, index=index):
                        if not self.within(index, len(self.compiled.tuples[name])):
                            return False
                        stack += self.compiled.tuples[name]
                    case ir.Field(ring=ring, index=index):
                        if not self.within(index, self.program.rings[ring][1]):
                            return False
                    case ir.Name(id=name) if name not in self.program.names:
                        stack.append(self.compiled.scalars[name])
        return True

    def within(self, expr: ir.Expr, size: int) -> bool:
        """Whether the value always lies in 0..size-1."""
        low, high = self.of(expr)
        return low is not None and low >= 0 and high is not None and high < size


def _hull(ranges: list[Interval]) -> Interval:
    return _all([low for low, _ in ranges], min), _all([high for _, high in ranges], max)


def _all(bounds_: list[int | None], pick) -> int | None:  # type: ignore[no-untyped-def]
    """The extreme of all bounds; none if one of them is missing."""
    known = [b for b in bounds_ if b is not None]
    return pick(known) if known and len(known) == len(bounds_) else None


def _some(bounds_: list[int | None], pick) -> int | None:  # type: ignore[no-untyped-def]
    """The extreme of the bounds that exist."""
    known = [b for b in bounds_ if b is not None]
    return pick(known) if known else None


def _sum(a: Interval, b: Interval) -> Interval:
    low = None if a[0] is None or b[0] is None else a[0] + b[0]
    high = None if a[1] is None or b[1] is None else a[1] + b[1]
    return low, high
