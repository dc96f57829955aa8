"""Does a kernel's large constant matter, or may it be any number?  The kernel with parameters where constants were.

A loop of 100000 trips is no harder than one of n trips, if nobody counts them.  What holds for all values of the new
parameters holds for the constants, which are among them.  What fails for some values says nothing about the constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from fencepost import ir
from fencepost.printer import print_expr
from fencepost.rewrite import constant, rebuild
from fencepost.scope import binary

LARGE = 256  # a smaller constant may well be a tile size, and its trips can be followed one by one
SMALLER = 32  # for nests of loops that are long together
_NEAR = 16  # constants that differ by no more stand for the same number of trips
_PARTS = 8  # a constant may be up to this part of another one
_PERIOD = 1024  # of the residue that is kept of a constant
_MOST = 3  # new parameters


@dataclass(slots=True)
class _Parameter:
    """A new parameter: its name, the constant that it replaces, how it is divided, and its least value.

    From the least value on, what stands where constants stood is at least two.
    """

    name: str
    value: int
    parts: set[int] = field(default_factory=set)
    least: int = 2


@dataclass(frozen=True, slots=True)
class General:
    """A kernel with new parameters; at `values` it is the kernel that it was made from."""

    kernel: ir.Kernel
    values: dict[str, int]
    told: str


def generalised(kernel: ir.Kernel, large: int = LARGE) -> General | None:
    """The kernel with parameters in place of its constant trip counts from `large` on, or None if it has none.

    The new parameters are bounded from below, and have the residues that the constants have.
    """
    named = {c.name: c.value for c in kernel.constants if not isinstance(c.value, tuple)}
    scalars: dict[str, int] = {}
    for name, value in named.items():
        number = constant(value, scalars)
        if number is not None:
            scalars[name] = number

    def folded(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Name) and scalars.get(node.id, 0) >= large - _NEAR:
            return ir.Int(scalars[node.id], span=node.span)
        if isinstance(node, ir.Binary) and isinstance(node.left, ir.Int) and isinstance(node.right, ir.Int):
            number = binary(node.op, node.left.value, node.right.value)
            return node if number is None else ir.Int(number, span=node.span)
        return node

    body = tuple(rebuild(part, folded) for part in kernel.body)
    nodes = [node for part in body for node in ir.walk(part)]
    parameters = _parameters(nodes, kernel, large)
    if not parameters:
        return None
    fixed = _fixed(nodes)

    def opened(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Int) and id(node) not in fixed:
            return _as_parameter(node, parameters)
        return node

    body = tuple(rebuild(part, opened) for part in body)
    period = _period(nodes)
    assumes: list[ir.Expr] = []
    told = []
    for p in parameters:
        trips = ir.Name(p.name, span=kernel.span)
        if p.value < p.least:
            raise AssertionError(f"{p.value} is not among the values of {p.name} that stand for it")
        rhythm = math.lcm(period, *p.parts)
        assumes.append(ir.Compare(trips, ((">=", ir.Int(p.least)),)))
        fact = f"{p.name} >= {p.least}"
        if 1 < rhythm <= _PERIOD:
            residue = ir.Binary("%", trips, ir.Int(rhythm))
            assumes.append(ir.Compare(residue, (("==", ir.Int(p.value % rhythm)),)))
            fact += f" with {p.name} % {rhythm} == {p.value % rhythm}"
        told.append(f"every {fact} in place of {p.value}")
    general = replace(
        kernel,
        parameters=(*kernel.parameters, *(p.name for p in parameters)),
        assumes=(*kernel.assumes, *assumes),
        body=body,  # type: ignore[arg-type]
    )
    return General(general, {p.name: p.value for p in parameters}, f"for {' and '.join(told)}")


def unbounded(kernel: ir.Kernel, large: int = SMALLER) -> General | None:
    """The kernel without what its assumes say of parameters and large numbers, or None if they say nothing of that.

    What holds for more values holds for those that are assumed.  That a parameter is a large number becomes that it is
    at least two, with the residue that the number has.
    """
    period = _period([node for part in kernel.body for node in ir.walk(part)])
    assumes: list[ir.Expr] = []
    dropped: list[str] = []
    for assume in kernel.assumes:
        for fact in _comparisons(assume):
            match fact:
                case ir.Compare(first=ir.Name() as name, rest=((op, ir.Int(value=value)),)) if value >= large:
                    dropped.append(print_expr(fact))
                    if op == "==" or op.startswith(">"):
                        assumes.append(ir.Compare(name, ((">=", ir.Int(2)),)))
                    if op == "==" and period > 1:
                        residue = ir.Binary("%", name, ir.Int(period))
                        assumes.append(ir.Compare(residue, (("==", ir.Int(value % period)),)))
                case _:
                    assumes.append(fact)
    if not dropped:
        return None
    return General(replace(kernel, assumes=tuple(assumes)), {}, f"also without {' and '.join(dict.fromkeys(dropped))}")


_TURNED: dict[str, Literal["<", "<=", ">", ">=", "==", "!="]] = {
    "<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!=",
}  # fmt: skip


def _comparisons(assume: ir.Expr) -> Iterator[ir.Expr]:
    """The parts of a conjunction, comparisons with two sides each, numbers on the right."""
    match assume:
        case ir.Logic(op="and", operands=operands):
            for operand in operands:
                yield from _comparisons(operand)
        case ir.Compare(first=first, rest=rest):
            for op, second in rest:
                if isinstance(first, ir.Int):
                    yield ir.Compare(second, ((_TURNED[op], first),), span=assume.span)
                else:
                    yield ir.Compare(first, ((op, second),), span=assume.span)
                first = second
        case _:
            yield assume


def _parameters(nodes: list[ir.Node], kernel: ir.Kernel, large: int) -> list[_Parameter]:
    """One parameter for each family of large constants that bound loops or are assigned, the largest first."""
    used = {n.id for n in nodes if isinstance(n, ir.Name)} | {*kernel.parameters}
    used |= {str(getattr(n, key)) for n in nodes for key in ("name", "var") if hasattr(n, key)}
    found: list[_Parameter] = []
    for value in sorted({*_bounds(nodes, large)}, reverse=True):
        if _match(value, found) is not None or len(found) == _MOST:
            continue
        number = len(found)
        while (name := f"trips{number or ''}") in used:
            number += 1
        used.add(name)
        found.append(_Parameter(name, value))
    return found


def _bounds(nodes: list[ir.Node], large: int) -> Iterator[int]:
    """The integers that bound loops of at least `large` trips: as bounds, summands of them, minima, maxima or choices,
    and what is assigned to names in such places."""
    steps: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ir.For | ir.Pipelined):
            step = abs(node.step.value) if isinstance(node, ir.For) and isinstance(node.step, ir.Int) else 1
            for leaf in (*_leaves(node.start), *_leaves(node.stop)):
                if isinstance(leaf, ir.Name):
                    steps[leaf.id] = min(step, steps.get(leaf.id, step))
                elif isinstance(leaf, ir.Int) and leaf.value >= large * step:
                    yield leaf.value
    for node in nodes:
        if isinstance(node, ir.Assign) and node.name in steps:
            for leaf in _leaves(node.value):
                if isinstance(leaf, ir.Int) and leaf.value >= large * steps[node.name]:
                    yield leaf.value


def _leaves(expression: ir.Expr) -> Iterator[ir.Expr]:
    """What an expression is a sum, a minimum, a maximum or a choice of."""
    stack = [expression]
    while stack:
        match stack.pop():
            case ir.Binary(op="+" | "-", left=left, right=right):
                stack += [left, right]
            case ir.Call(function="min" | "max", arguments=arguments):
                stack += arguments
            case ir.Choose(then=then, other=other):
                stack += [then, other]
            case leaf:
                yield leaf


def _fixed(nodes: list[ir.Node]) -> set[int]:
    """The integers that stay: factors, divisors, steps, and what is not about control."""
    parts: list[ir.Node | None] = []
    for node in nodes:
        match node:
            case ir.Binary(op="*" | "//" | "%", left=left, right=right):
                parts += [x for x in (left, right) if isinstance(x, ir.Int)]
            case ir.For(step=step):
                parts.append(step)
            case ir.Access(part=part, parts=of):
                parts += [part, of]
            case ir.DataOp(at=at):
                parts += at
            case _:
                pass
    return {id(inner) for part in parts if part is not None for inner in ir.walk(part)}


def _period(nodes: list[ir.Node]) -> int:
    """The least common multiple of the moduli and steps, as far as it stays small."""
    period = 1
    for node in nodes:
        match node:
            case ir.Binary(op="%" | "//", right=ir.Int(value=value)) | ir.For(step=ir.Int(value=value)) if value > 0:
                if math.lcm(period, value) <= _PERIOD:
                    period = math.lcm(period, value)
            case _:
                pass
    return period


def _match(value: int, parameters: list[_Parameter]) -> tuple[_Parameter, int, int] | None:
    """The parameter of which a value is a part up to a small distance, the part and the distance."""
    if value < 2:  # smaller than anything that may stand for a parameter
        return None
    for parameter in parameters:
        for part in range(1, _PARTS + 1):
            distance = value - parameter.value // part
            if parameter.value % part == 0 and abs(distance) <= _NEAR < parameter.value // part:
                return parameter, part, distance
    return None


def _as_parameter(node: ir.Int, parameters: list[_Parameter]) -> ir.Expr:
    """The integer in terms of the parameters; itself if it is not near any of them."""
    found = _match(node.value, parameters)
    if found is None:
        return node
    parameter, part, distance = found
    parameter.parts.add(part)
    parameter.least = max(parameter.least, part * (2 - distance))
    expression: ir.Expr = ir.Name(parameter.name, span=node.span)
    if part > 1:
        expression = ir.Binary("//", expression, ir.Int(part), span=node.span)
    if distance:
        expression = ir.Binary("+" if distance > 0 else "-", expression, ir.Int(abs(distance)), span=node.span)
    return expression
