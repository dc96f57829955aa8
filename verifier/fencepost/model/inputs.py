"""Inputs: which parameters decide what, and in which units do they count?

All of this is read off the text and only guides the choice of values to try; nothing is proved with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fencepost import ir
from fencepost.model.once import once
from fencepost.model.program import Compiled, ModelError, constant

_SMALL, _LARGE = 8, 1 << 16  # units worth trying: small ones are covered by plain values
_UNITS = 2  # units per parameter
_THRESHOLDS = 3  # constants per parameter, that something is compared with
_FAR, _DEEP = 1_000, 5_000  # the largest of them, and of numbers of slots: runs of so many trips are short enough


@once
def used_names(compiled: Compiled) -> frozenset[str]:
    """The names that make a difference: the text or an assume that is more than a bound mentions them."""
    kernel = compiled.kernel
    roots: list[ir.Node] = [*kernel.body, *kernel.buffers, *kernel.fifos, *kernel.rings]
    roots += (a for a in kernel.assumes if not _is_bound(a))
    return frozenset(_closure(compiled, roots, {}))


def _is_bound(assume: ir.Expr) -> bool:
    """Whether an assume compares one name with constants, so that bounds say all of it."""
    if not isinstance(assume, ir.Compare) or any(op == "!=" for op, _ in assume.rest):
        return False
    sides = (assume.first, *(side for _, side in assume.rest))
    numbers = sum(isinstance(s, ir.Int) or (isinstance(s, ir.Unary) and isinstance(s.operand, ir.Int)) for s in sides)
    return numbers == len(sides) - 1 and sum(isinstance(s, ir.Name) for s in sides) == 1


@once
def loop_inputs(compiled: Compiled) -> frozenset[str]:
    """The parameters that some trip count depends on, and the unknown functions (`f()`) that do."""
    roots: list[ir.Node] = []
    for node in ir.walk(compiled.kernel):
        match node:
            case ir.For() | ir.Pipelined():
                roots += (node.start, node.stop)
            case ir.If() if any(isinstance(n, ir.Break) for n in ir.walk(node)):
                roots += (condition for condition, _ in node.branches)
    found = _closure(compiled, roots, _bindings(compiled))
    return frozenset(n for n in found if n in compiled.parameters or n.endswith("()"))


def units(compiled: Compiled) -> dict[str, tuple[int, ...]]:
    """Parameter -> the constants that it is divided by, or counted in by a loop, smallest first."""
    return {name: numbers for name, numbers in _units(compiled).items() if name in compiled.parameters}


def function_units(compiled: Compiled) -> dict[str, int]:
    """Unknown function -> the smallest constant that its values are divided by, or counted in by a loop."""
    return {name[:-2]: numbers[0] for name, numbers in _units(compiled).items() if name.endswith("()")}


@once
def _units(compiled: Compiled) -> dict[str, tuple[int, ...]]:
    bindings = _bindings(compiled)
    found: dict[str, set[int]] = {}
    for unit, parts in _divisions(compiled):
        for name in _closure(compiled, parts, bindings, arguments=False):
            found.setdefault(name, set()).add(unit)
    return {name: tuple(sorted(numbers)[:_UNITS]) for name, numbers in found.items()}


def thresholds(compiled: Compiled, least: int) -> dict[str, tuple[int, ...]]:
    """Parameter -> constants from `least` on that something is compared with which depends on it, smallest first.

    An index is compared with the number of slots or elements.
    """
    return {name: numbers for name, numbers in _thresholds(compiled, least).items() if name in compiled.parameters}


def function_thresholds(compiled: Compiled, least: int) -> tuple[int, ...]:
    """The same constants for values of unknown functions, of all functions together."""
    found = _thresholds(compiled, least).items()
    return tuple(sorted({number for name, numbers in found if name.endswith("()") for number in numbers}))


def _thresholds(compiled: Compiled, least: int) -> dict[str, tuple[int, ...]]:
    bindings = _bindings(compiled)
    found: dict[str, set[int]] = {}
    for number, sides in (*_comparisons(compiled), *_sizes(compiled)):
        if number >= least:
            for name in _closure(compiled, sides, bindings, arguments=False):
                found.setdefault(name, set()).add(number)
    return {name: tuple(sorted(numbers)[:_THRESHOLDS]) for name, numbers in found.items()}


def _comparisons(compiled: Compiled) -> Iterator[tuple[int, tuple[ir.Node, ...]]]:
    for node in (n for item in compiled.kernel.body for n in ir.walk(item) if isinstance(n, ir.Compare)):
        sides = (node.first, *(side for _, side in node.rest))
        for side in sides:
            try:
                number = abs(constant(side, compiled.scalars, "threshold"))
            except ModelError:
                continue
            if number <= _FAR:
                yield number, sides


def _sizes(compiled: Compiled) -> Iterator[tuple[int, tuple[ir.Node, ...]]]:
    for node in (n for item in compiled.kernel.body for n in ir.walk(item)):
        match node:
            case ir.Access(name, index) if index is not None:
                size = compiled.depths.get(name, 0)
            case ir.Item(name, index):
                size = len(compiled.tuples[name])
            case _:
                continue
        if size <= _DEEP:
            yield size, (index,)


def _divisions(compiled: Compiled) -> Iterator[tuple[int, tuple[ir.Node, ...]]]:
    for node in ir.walk(compiled.kernel):
        match node:
            case ir.Binary(op="//" | "%", left=left, right=right):
                parts: tuple[ir.Node, ...] = (left,)
            case ir.For(start=start, stop=stop, step=right):
                parts = (start, stop)
            case _:
                continue
        try:
            unit = abs(constant(right, compiled.scalars, "unit"))
        except ModelError:
            continue
        if _SMALL <= unit <= _LARGE:
            yield unit, parts


def _bindings(compiled: Compiled) -> dict[str, list[ir.Node]]:
    """What each scalar of the text may be computed from."""
    found: dict[str, list[ir.Node]] = {}
    for node in ir.walk(compiled.kernel):
        match node:
            case ir.Assign(name=name, value=value) | ir.Bind(name=name, value=value):
                found.setdefault(name, []).append(value)
            case ir.StoreField(ring=ring, value=value):
                found.setdefault(ring, []).append(value)
            case ir.For(var=var, start=start, stop=stop) | ir.Pipelined(var=var, start=start, stop=stop):
                found.setdefault(var, []).extend((start, stop))
    return found


def _closure(
    compiled: Compiled, roots: Iterable[ir.Node], bindings: dict[str, list[ir.Node]], *, arguments: bool = True
) -> set[str]:
    """Every name that the roots depend on through constants and `bindings`; unknown functions as `f()`.

    `arguments`: also through the arguments of unknown functions.
    """
    found: set[str] = set()
    pending = list(roots)
    while pending:
        node = pending.pop()
        name = ""
        match node:
            case ir.Name(id=name) | ir.Item(name=name) | ir.Field(ring=name):
                pass
            case ir.Call(function=function) if function not in ir.INTERPRETED:
                name = f"{function}()"
        if arguments or not name.endswith("()"):
            pending += ir.children(node)
        if name and name not in found:
            found.add(name)
            pending += bindings.get(name, ())
            pending += (compiled.scalars[name],) if name in compiled.scalars else compiled.tuples.get(name, ())
    return found
