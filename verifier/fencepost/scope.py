"""What does each name that a kernel declares mean, and may an expression use it?

`Names` holds the declarations of one kernel: it resolves names in expressions, evaluates constants, and knows what is
near a misspelt name.  Which scalars have a value at a statement is followed by `fencepost.flow`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from typing import assert_never, get_args

from fencepost import ir
from fencepost.spelling import is_name, suggestion

MAX_NESTING = 100
"""Statements may stand inside this many others (as in Python)."""

MAX_EXPRESSION = 200
"""Expressions may nest this deep; a sum of n terms has depth n."""

VALUE_LIMIT = 2**64
"""Integers of the kernel text and values of constants stay below this; the device has 64-bit scalars."""

SUGGESTIONS, CANDIDATES = 50, 1000
"""How many names of a kernel are compared with known ones, and with how many at most."""

_EXPRESSIONS = get_args(ir.Expr)
_COMPOUND = (ir.If, ir.For, ir.Pipelined)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake; `about` is the name that it is about, if it is about one."""

    span: ir.Span
    message: str
    about: str = ""


_FIELDS: dict[type, tuple[str, ...]] = {}


def child_nodes(node: ir.Node) -> list[ir.Node]:
    """The direct children of `node` in text order (`ir.children`, for whole files)."""
    names = _FIELDS.get(type(node))
    if names is None:
        names = _FIELDS[type(node)] = tuple(f.name for f in fields(node) if f.name != "span")
    found: list[ir.Node] = []
    pending: list[object] = [getattr(node, name) for name in reversed(names)]
    while pending:
        value = pending.pop()
        if isinstance(value, ir.Node):
            found.append(value)
        elif isinstance(value, tuple):
            pending.extend(reversed(value))
    return found


def depth_mistake(kernel: ir.Kernel) -> Mistake | None:
    """The first place that is nested too deep for the tools behind the front ends, or None."""
    stack: list[tuple[ir.Node, int, int]] = [(kernel, 0, 0)]
    while stack:
        node, statements, expressions = stack.pop()
        if isinstance(node, _EXPRESSIONS):
            expressions += 1
            if expressions > MAX_EXPRESSION:
                return Mistake(node.span, f"an expression is nested more than {MAX_EXPRESSION} deep")
        elif isinstance(node, _COMPOUND):
            statements += 1
            if statements > MAX_NESTING:
                return Mistake(node.span, f"blocks are nested more than {MAX_NESTING} deep")
        for child in reversed(child_nodes(node)):
            stack.append((child, statements, expressions))
    return None


class Names:
    """The declared names of one kernel.  `mistakes` says what is wrong with the declarations themselves."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.buffers = {buffer.name: buffer for buffer in kernel.buffers}
        self.rings = {ring.name: ring for ring in kernel.rings}
        self.fifos = {fifo.name: fifo for fifo in kernel.fifos}
        self.integers: set[str] = {*kernel.parameters, *ir.BUILTINS}
        self._static: set[str] = {*kernel.parameters, "block"}
        self.tuples: set[str] = set()
        self._scalars = {item.name for item in kernel.body if isinstance(item, ir.Assign)}
        self.kinds: dict[str, str] = {}
        self.mistakes: list[Mistake] = []
        self._values: dict[str, int | None] = {}
        self._elements: dict[str, tuple[int | None, ...]] = {}
        self._reported: set[str] = set()
        self._suggestions = SUGGESTIONS
        self._lines: dict[str, int] = {}
        for parameter in kernel.parameters:
            self._declare(parameter, "parameter", kernel.span)
        constants = {constant.name for constant in kernel.constants}
        self._later = set(constants)
        for constant in kernel.constants:
            self._declare(constant.name, "constant", constant.span)
            self._define(constant)
            self._later.discard(constant.name)
        declarations: tuple[ir.Buffer | ir.Fifo | ir.Ring, ...] = (*kernel.buffers, *kernel.fifos, *kernel.rings)
        for declared in declarations:
            self._declare(declared.name, type(declared).__name__.lower(), declared.span)

    def _declare(self, name: str, kind: str, span: ir.Span) -> None:
        if name in ir.BUILTINS:
            self.mistakes.append(Mistake(span, built_in(name), name))
        elif not is_name(name):
            self.mistakes.append(Mistake(span, f"'{name}' cannot be a name", name))
        elif name in self.kinds:
            line = self._lines[name]
            where = f" (line {line})" if line and line != span.line else ""
            self.mistakes.append(Mistake(span, f"'{name}' is already declared as a {self.kinds[name]}{where}", name))
        else:
            self.kinds[name] = kind
            self._lines[name] = span.line

    def _define(self, constant: ir.Constant) -> None:
        """Check and evaluate a constant, then make it known."""
        value = constant.value
        items = value if isinstance(value, tuple) else (value,)
        values: list[int | None] = []
        for item in items:
            self.mistakes.extend(self.static(item, f"the constant '{constant.name}'"))
            found = self.constant(item)
            if found is not None and abs(found) >= VALUE_LIMIT:
                self.mistakes.append(Mistake(item.span, f"the constant '{constant.name}' does not fit into 64 bits"))
                found = None
            values.append(found)
        if isinstance(value, tuple):
            self.tuples.add(constant.name)
            self._elements[constant.name] = tuple(values)
            if not value:
                self.mistakes.append(Mistake(constant.span, f"the tuple '{constant.name}' is empty"))
        else:
            self.integers.add(constant.name)
            self._static.add(constant.name)
            self._values[constant.name] = values[0]

    # --------------------------------------------------------------------------------------------------- constants
    def constant(self, expr: ir.Expr) -> int | None:
        """The value of `expr` if it depends on nothing, else None (also for a division by zero)."""
        match expr:
            case ir.Int(value=value):
                return value
            case ir.Name(id=id):
                return self._values.get(id)
            case ir.Item(name=name, index=index):
                at, elements = self.constant(index), self._elements.get(name, ())
                return elements[at] if at is not None and 0 <= at < len(elements) else None
            case ir.Field():
                return None
            case ir.Unary(op=op, operand=operand):
                inner = self.constant(operand)
                return None if inner is None else -inner if op == "-" else int(not inner)
            case ir.Binary(op=op, left=left, right=right):
                return binary(op, self.constant(left), self.constant(right))
            case ir.Compare(first=first, rest=rest):
                values = [self.constant(first), *(self.constant(operand) for _, operand in rest)]
                known = [value for value in values if value is not None]
                if len(known) < len(values):
                    return None
                return int(all(_compare(sign, a, b) for (sign, _), a, b in zip(rest, known, known[1:], strict=False)))
            case ir.Logic(op=op, operands=operands):
                for operand in operands:
                    truth = self.constant(operand)
                    if truth is None:
                        return None
                    if bool(truth) == (op == "or"):
                        return int(bool(truth))
                return int(op == "and")
            case ir.Choose(condition=condition, then=then, other=other):
                chosen = self.constant(condition)
                return None if chosen is None else self.constant(then if chosen else other)
            case ir.Call(function=function, arguments=arguments):
                values = [self.constant(argument) for argument in arguments]
                known = [value for value in values if value is not None]
                if function not in ir.INTERPRETED or not known or len(known) < len(values):
                    return None
                return min(known) if function == "min" else max(known)
            case _:
                assert_never(expr)

    def uses_unknown(self, expr: ir.Expr) -> bool:
        """Whether `expr` uses a name that has no meaning at the kernel level (which is reported elsewhere)."""
        for node in ir.walk(expr):
            if isinstance(node, ir.Name) and node.id not in self.integers:
                return True
            if isinstance(node, ir.Item) and node.name not in self.tuples:
                return True
        return False

    # -------------------------------------------------------------------------------------------------- expressions
    def static(self, expr: ir.Expr, where: str) -> Iterator[Mistake]:
        """What is wrong with an expression of the kernel level, which sees parameters and constants only."""
        yield from self.check(expr, self._static, where)
        for node in ir.walk(expr):
            if isinstance(node, ir.Field) and node.ring in self.rings:
                text = f"{where} cannot read the ring '{node.ring}': each agent has its own"
                yield Mistake(node.span, text, node.ring)

    def check(
        self,
        expr: ir.Expr,
        known: Collection[str],
        where: str,
        unset: Collection[str] = (),
        loops: Collection[str] = (),
        elements: bool = False,
    ) -> Iterator[Mistake]:
        """What is wrong with the names in `expr`.

        `known` are the integers that have a value here, `unset` the scalars that some statement of this agent assigns,
        `loops` those of them that are loop variables.  `where` names the place in a message.  `elements`: the
        expression may read an element of a buffer (`tile[2]`).
        """
        stack: list[ir.Node] = [expr]
        while stack:
            node = stack.pop()
            if isinstance(node, ir.Name):
                if node.id not in known:
                    yield from self._once(node.id, self._not_an_integer(node, where, unset, loops))
                continue
            if isinstance(node, ir.Int):
                if abs(node.value) >= VALUE_LIMIT:
                    yield Mistake(node.span, "this integer does not fit into 64 bits")
                continue
            if isinstance(node, ir.Item):
                if node.name not in self.tuples and not (elements and node.name in self.buffers):
                    yield from self._once(node.name, self._not_a_tuple(node, known))
            elif isinstance(node, ir.Field):
                yield from self.field(node.ring, node.field, node.span)
            elif isinstance(node, ir.Call):
                if node.function in ir.INTERPRETED and not node.arguments:
                    yield Mistake(node.span, f"'{node.function}' needs arguments", node.function)
                elif node.function in self.kinds or node.function in ir.BUILTINS:
                    kind = self.kinds.get(node.function, "built-in value")
                    yield Mistake(node.span, f"'{node.function}' is a {kind}, not a function", node.function)
            elif isinstance(node, ir.Logic) and len(node.operands) < 2:
                yield Mistake(node.span, f"'{node.op}' needs two operands")
            elif isinstance(node, ir.Compare) and not node.rest:
                yield Mistake(node.span, "a comparison needs two operands")
            stack.extend(reversed(child_nodes(node)))

    def _once(self, name: str, mistake: Mistake) -> Iterator[Mistake]:
        """A name is reported where it first goes wrong."""
        if name not in self._reported:
            self._reported.add(name)
            yield mistake

    def _near(self, name: str, *known: Collection[str]) -> str:
        """A suggestion, as long as a kernel does not have more of them than anyone reads."""
        if self._suggestions == 0 or sum(map(len, known)) > CANDIDATES:
            return ""
        self._suggestions -= 1
        return suggestion(name, sorted(set().union(*known)))

    def _not_an_integer(self, node: ir.Name, where: str, unset: Collection[str], loops: Collection[str]) -> Mistake:
        name = node.id
        if name == "sub":
            text = f"'sub' is undefined in {where}: only the vector section runs on a sub-core"
        elif name in self.tuples:
            text = f"'{name}' is a tuple; choose an element: {name}[e]"
        elif name in self._later:
            text = f"the constant '{name}' is defined only below; a constant can use earlier ones"
        elif name in self.kinds:
            text = f"'{name}' is a {self.kinds[name]}, not an integer"
        elif name in self._scalars and not unset:
            text = f"'{name}' is assigned more than once and so a scalar; {where} can use constants only"
        elif name in loops:
            text = f"the loop variable '{name}' is undefined after its loop"
        elif name in unset:
            text = f"'{name}' may be unset here: not every path to this place assigns it"
        else:
            text = f"unknown name '{name}' in {where}{self._near(name, self.integers, self.tuples, unset)}"
        return Mistake(node.span, text, name)

    def _not_a_tuple(self, node: ir.Item, known: Collection[str]) -> Mistake:
        name = node.name
        if name in self._later:
            text = f"the constant '{name}' is defined only below; a constant can use earlier ones"
        elif name in self.rings:
            text = f"'{name}' is a ring; read a field: {name}[e].{''.join(self.rings[name].fields[:1]) or 'field'}"
        elif name in self.kinds and self.kinds[name] != "constant":
            text = f"'{name}' is a {self.kinds[name]}, not a tuple of integers"
        elif name in known or name in self.kinds:
            text = f"'{name}' is an integer, not a tuple"
        else:
            text = f"unknown tuple '{name}'{self._near(name, self.tuples, self.rings)}"
        return Mistake(node.span, text, name)

    def field(self, name: str, field: str, span: ir.Span) -> Iterator[Mistake]:
        """What is wrong with naming `field` of the ring `name`."""
        ring = self.rings.get(name)
        if ring is None:
            kind = f"'{name}' is a {self.kinds[name]}, not a ring" if name in self.kinds else f"unknown ring '{name}'"
            yield from self._once(name, Mistake(span, kind + suggestion(name, self.rings), name))
        elif field not in ring.fields:
            yield Mistake(span, f"ring '{name}' has no field '{field}'{suggestion(field, ring.fields)}", name)


def built_in(name: str) -> str:
    """What to say about the declaration of `block` or `sub`."""
    return f"'{name}' is built in (the {'block' if name == 'block' else 'sub-core'} index); choose another name"


def binary(op: str, left: int | None, right: int | None) -> int | None:
    """The value of `+ - * // %`; None if a side is unknown, the divisor 0, or the numbers too large."""
    if left is None or right is None or max(abs(left), abs(right)) >= VALUE_LIMIT**2:
        return None
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "//":
            return left // right if right else None
        case _:
            return left % right if right else None


def _compare(sign: str, left: int, right: int) -> bool:
    match sign:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "==":
            return left == right
        case _:
            return left != right
