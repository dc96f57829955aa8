"""Issue order: which operations does one agent issue for concrete parameters, and in what order?

Nothing here depends on signals or timing.  Expressions are translated once per program into Python lambdas over the
agent's state, so a kernel runs at the speed of ordinary Python arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from fencepost import ir
from fencepost.model.functions import FunctionTable
from fencepost.model.once import once
from fencepost.model.program import (
    Compiled,
    Emit,
    Enter,
    Jump,
    MoveCursor,
    Next,
    Program,
    Require,
    Set,
    Stop,
    Store,
    Test,
)


class LimitReached(Exception):
    """The run is larger than the limit on instructions and operations; the message says what was reached where.

    `issued` and `bad` are what came before.
    """

    def __init__(self, message: str, issued: list[Issued] | None = None, bad: list[BadValue] | None = None) -> None:
        super().__init__(message)
        self.issued, self.bad = issued or [], bad or []


@dataclass(frozen=True, slots=True)
class BadValue:
    """A value that the model does not allow, seen while `agent` evaluated an expression.

    `kind`: "negative" (operand of % or //), "zero" (division), "index" (tuple or record ring), "assert".  `node` is the
    expression or statement, `value` the index or operand.
    """

    kind: Literal["negative", "zero", "index", "assert"]
    agent: str
    span: ir.Span
    message: str
    node: ir.Node
    value: int


_BITS = 4_096
LARGEST = 1 << _BITS
"""Scalars stay below, in a run and in a proof: a few squares would take all time and memory."""

_TOO_LONG = f"a number of more than {_BITS:,} bits"

Issued = tuple[int, tuple[int, ...], int | None]
"""Site, operands, task."""


@dataclass(slots=True)
class Evaluator:
    """The helpers that translated expressions call; collects bad values once per place."""

    agent: str
    function: FunctionTable
    nodes: list[ir.Node]
    faults: dict[tuple[str, int], BadValue] = field(default_factory=dict)

    def note(self, kind: Literal["negative", "zero", "index", "assert"], k: int, value: int, message: str) -> None:
        if (kind, k) not in self.faults:
            node = self.nodes[k]
            self.faults[kind, k] = BadValue(kind, self.agent, node.span, message, node, value)

    def mod(self, a: int, b: int, k: int) -> int:
        if a < 0 or b <= 0:
            return self._divide("%", a, b, k)
        return a % b

    def div(self, a: int, b: int, k: int) -> int:
        if a < 0 or b <= 0:
            return self._divide("//", a, b, k)
        return a // b

    def _divide(self, op: str, a: int, b: int, k: int) -> int:
        if b == 0:
            self.note("zero", k, b, f"the right operand of {op} is 0")
            return 0
        side = f"the left operand of {op} is {a}" if a < 0 else f"the right operand of {op} is {b}"
        self.note("negative", k, a if a < 0 else b, f"{side}: the device rounds towards zero, the model down")
        return a % b if op == "%" else a // b

    def item(self, values: tuple[int, ...], index: int, k: int) -> int:
        if 0 <= index < len(values):
            return values[index]
        self.note("index", k, index, f"index {index} is outside a tuple of {len(values)}")
        return 0

    def record(self, index: int, size: int, k: int) -> int:
        if 0 <= index < size:
            return index
        self.note("index", k, index, f"record {index} is outside a ring of {size}")
        return 0


def issue(
    compiled: Compiled, program: Program, values: tuple[int, ...], function: FunctionTable, limit: int
) -> tuple[list[Issued], list[BadValue]]:
    """Run one agent's program on the parameter values `values` (order of `compiled.parameters`).

    Args:
        limit: the largest number of instructions to execute.

    Raises:
        LimitReached: the program is longer than `limit`, or a scalar reaches `LARGEST`.
    """
    code, nodes = _translate(_Key(compiled, program))
    e = Evaluator(program.agent, function, nodes)
    v: list[int] = [*values, *program.initial]
    issued: list[Issued] = []
    pc, left = 0, limit
    while True:
        i = code[pc]
        kind = i[0]
        pc += 1
        left -= 1
        if left < 0:
            message = f"{program.agent} executes more than {limit:,} instructions"
            raise LimitReached(message, issued, list(e.faults.values()))
        if kind == 0:  # Emit
            issued.append((i[1], i[2](v, e), None if i[3] is None else int(i[3](v, e))))
        elif kind == 10:  # Emit with constant operands
            issued.append(i[1])
        elif kind == 1:  # Next
            _, slot, index, bound, step, target = i
            at = v[index]
            if at < v[bound] if step > 0 else at > v[bound]:
                v[slot] = at
                v[index] = at + step
            else:
                pc = target
        elif kind == 2:  # Test
            if not i[1](v, e):
                pc = i[2]
        elif kind == 3:  # Jump
            pc = i[1]
        elif kind == 4:  # Set
            v[i[1]] = number = int(i[2](v, e))
            if not -LARGEST < number < LARGEST:
                raise LimitReached(f"{program.agent} computes {_TOO_LONG}", issued, list(e.faults.values()))
        elif kind == 5:  # MoveCursor
            _, slot, cursor, depth, move = i
            at = v[cursor]
            if move == "next":
                at = v[cursor] = (at + 1) % depth
            elif move == "previous":
                at = (at - 1) % depth
            v[slot] = at
        elif kind == 6:  # Store
            _, base, size, at_, value, k = i
            v[base + e.record(at_(v, e), size, k)] = number = int(value(v, e))
            if not -LARGEST < number < LARGEST:
                raise LimitReached(f"{program.agent} computes {_TOO_LONG}", issued, list(e.faults.values()))
        elif kind == 7:  # Enter
            v[i[1]], v[i[2]] = int(i[3](v, e)), int(i[4](v, e))
        elif kind == 8:  # Require
            if not i[1](v, e):
                e.note("assert", i[2], 0, "the assertion is false")
        else:  # Stop
            return issued, list(e.faults.values())


def assumed(compiled: Compiled, values: tuple[int, ...], function: FunctionTable) -> bool:
    """Whether the values satisfy every assume of the kernel."""
    facts, nodes = _facts(compiled)
    evaluator = Evaluator("", function, nodes)
    return all(fact(values, evaluator) for fact in facts)


@once
def _facts(compiled: Compiled) -> tuple[list[Callable[..., Any]], list[ir.Node]]:
    translator = Translator(compiled, {p: i for i, p in enumerate(compiled.parameters)}, {})
    return [as_function(translator.text(a)) for a in compiled.kernel.assumes], translator.nodes


class _Key:
    """Identity of a compiled program, for the translation cache."""

    def __init__(self, compiled: Compiled, program: Program) -> None:
        self.compiled, self.program = compiled, program

    def __hash__(self) -> int:
        return id(self.program)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.program is self.program


@lru_cache(maxsize=64)
def _translate(key: _Key) -> tuple[list[tuple[Any, ...]], list[ir.Node]]:
    program = key.program
    t = Translator(key.compiled, program.names, program.rings)
    code: list[tuple[Any, ...]] = []
    for instruction in program.code:
        match instruction:
            case Emit(site=site, arguments=arguments, task=None) if all(isinstance(a, ir.Int) for a in arguments):
                code.append((10, (site, tuple(a.value for a in arguments if isinstance(a, ir.Int)), None)))
            case Emit(site=site, arguments=arguments, task=task):
                operands = as_function("(" + "".join(f"{t.text(a)}, " for a in arguments) + ")")
                code.append((0, site, operands, None if task is None else as_function(t.text(task))))
            case Next():
                i = instruction
                code.append((1, i.slot, i.index, i.limit, i.step, i.target))
            case Test(condition=condition, target=target):
                code.append((2, as_function(t.text(condition)), target))
            case Jump(target=target):
                code.append((3, target))
            case Set(slot=slot, value=value):
                code.append((4, slot, as_function(t.text(value))))
            case MoveCursor():
                code.append((5, instruction.slot, instruction.cursor, instruction.depth, instruction.move))
            case Store():
                k = t.place(instruction.node)
                at, value_ = as_function(t.text(instruction.index)), as_function(t.text(instruction.value))
                code.append((6, instruction.base, instruction.size, at, value_, k))
            case Enter():
                start, stop = as_function(t.text(instruction.start)), as_function(t.text(instruction.stop))
                code.append((7, instruction.index, instruction.limit, start, stop))
            case Require(condition=condition, node=node):
                code.append((8, as_function(t.text(condition)), t.place(node)))
            case Stop():
                code.append((9,))
    return code, t.nodes


@lru_cache(maxsize=4096)
def as_function(text: str) -> Callable[..., Any]:
    """The text of a translated expression as a function of the state and the evaluator."""
    return eval(f"lambda v, e: {text}", {"__builtins__": {"min": min, "max": max, "bool": bool, "int": int}})  # type: ignore[no-any-return]


@dataclass(slots=True)
class Translator:
    """Kernel IR expressions as Python source over the state `v` and the evaluator `e`.

    Only integers and slot numbers enter the text, never a name from the input.  The usual case is inline; what must be
    noted is left to the evaluator.  `x7` holds the operand of the node at place 7.
    """

    compiled: Compiled
    names: dict[str, int]
    rings: dict[str, tuple[int, int, tuple[str, ...]]]
    nodes: list[ir.Node] = field(default_factory=list)

    def place(self, node: ir.Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def text(self, expr: ir.Expr) -> str:
        match expr:
            case ir.Int(value=value):
                return f"({value})"
            case ir.Name(id=name):
                if name in self.names:
                    return f"v[{self.names[name]}]"
                return self.text(self.compiled.scalars[name])
            case ir.Item(name=name, index=index):
                values = "".join(f"{self.text(x)}, " for x in self.compiled.tuples[name])
                k, length = self.place(expr), len(self.compiled.tuples[name])
                where = f"(x{k} := {self.text(index)})"
                return f"(({values})[x{k}] if 0 <= {where} < {length} else e.item(({values}), x{k}, {k}))"
            case ir.Field(ring=ring, index=index, field=name):
                base, size, fields = self.rings[ring]
                at = base + size * fields.index(name)
                return f"v[{at} + e.record({self.text(index)}, {size}, {self.place(expr)})]"
            case ir.Unary(op=op, operand=operand):
                return f"({op} {self.text(operand)})"
            case ir.Binary(op="%" | "//" as op, left=left, right=ir.Int(value=divisor)) if divisor > 0:
                k, call = self.place(expr), "e.mod" if op == "%" else "e.div"
                return f"(x{k} {op} {divisor} if (x{k} := {self.text(left)}) >= 0 else {call}(x{k}, {divisor}, {k}))"
            case ir.Binary(op="%" | "//" as op, left=left, right=right):
                call = "e.mod" if op == "%" else "e.div"
                return f"{call}({self.text(left)}, {self.text(right)}, {self.place(expr)})"
            case ir.Binary(op=op, left=left, right=right):
                return f"({self.text(left)} {op} {self.text(right)})"
            case ir.Compare(first=first, rest=rest):
                return f"({self.text(first)}{''.join(f' {op} {self.text(x)}' for op, x in rest)})"
            case ir.Logic(op=op, operands=operands):
                return "bool(" + f" {op} ".join(self.text(x) for x in operands) + ")"
            case ir.Choose(condition=condition, then=then, other=other):
                return f"({self.text(then)} if {self.text(condition)} else {self.text(other)})"
            case ir.Call(function=function, arguments=arguments):
                values = "".join(f"{self.text(x)}, " for x in arguments)
                if function in ir.INTERPRETED:
                    return f"{function}({values})" if len(arguments) > 1 else f"({values[:-2]})"
                # The name is the function's identity; repr() keeps any text inside a string literal.
                return f"e.function({function!r}, ({values}))"
