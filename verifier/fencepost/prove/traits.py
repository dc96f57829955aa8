"""Traits: what may still be asked of the scalars of an agent, from each of its instructions on?

Only the search for state tables uses this, and only to guess which states are alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import lcm

from fencepost import ir
from fencepost.model.program import (
    Compiled,
    Emit,
    Enter,
    Instruction,
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
from fencepost.prove.plainvalues import plain

_LARGEST = 24  # of common multiples of moduli


@dataclass
class Traits:
    """Names are those of `Machine.start`.

    `live` and `reachable` belong to an instruction.  `moduli`: by which remainders of a scalar are taken; `exact`:
    below which its values are told apart.  `calls`: where unknown functions are called.  `loops`: the loop of each
    variable.
    """

    compiled: Compiled
    live: list[frozenset[str]] = field(default_factory=list)
    reachable: list[frozenset[int]] = field(default_factory=list)
    moduli: dict[str, int] = field(default_factory=dict)
    exact: dict[str, int] = field(default_factory=dict)
    calls: dict[str, list[tuple[int, tuple[ir.Expr, ...]]]] = field(default_factory=dict)
    loops: dict[str, int] = field(default_factory=dict)
    rings: dict[str, tuple[int, int, tuple[str, ...]]] = field(default_factory=dict)
    _names: dict[int, frozenset[str]] = field(default_factory=dict)

    def names(self, expr: ir.Expr) -> frozenset[str]:
        """The scalars that an expression reads."""
        if id(expr) not in self._names:
            found: set[str] = set()
            for node in self.inside(expr):
                if isinstance(node, ir.Name):
                    found.add(node.id)
                elif isinstance(node, ir.Field):
                    found |= {f"{node.ring}[{k}].{node.field}" for k in range(self.rings[node.ring][1])}
            self._names[id(expr)] = frozenset(found)
        return self._names[id(expr)]

    def inside(self, expr: ir.Expr) -> list[ir.Node]:
        """The nodes of an expression, and of the constants that it names."""
        found: list[ir.Node] = []
        todo: list[ir.Node] = [expr]
        while todo:
            for node in ir.walk(todo.pop()):
                found.append(node)
                if isinstance(node, ir.Name) and node.id in self.compiled.scalars:
                    todo.append(self.compiled.scalars[node.id])
                if isinstance(node, ir.Item):
                    todo += self.compiled.tuples[node.name]
        return found


def expressions(i: Instruction) -> tuple[ir.Expr, ...]:
    """What an instruction evaluates."""
    match i:
        case Set(value=value):
            return (value,)
        case Store(index=index, value=value):
            return index, value
        case Test(condition=condition) | Require(condition=condition):
            return (condition,)
        case Enter(start=start, stop=stop):
            return start, stop
        case Emit(arguments=arguments, task=task):
            return arguments if task is None else (*arguments, task)
    return ()


def following(i: Instruction, pc: int) -> tuple[int, ...]:
    match i:
        case Jump(target=target):
            return (target,)
        case Test(target=target) | Next(target=target):
            return pc + 1, target
        case Stop():
            return ()
    return (pc + 1,)


def traits_of(compiled: Compiled, program: Program, finer: bool) -> Traits:
    """Work out the traits of a program.  `finer`: values below all constants are told apart."""
    found = Traits(compiled, rings=program.rings)
    _live(program, found)
    for pc, i in enumerate(program.code):
        if isinstance(i, Next):
            found.loops[program.slots[i.slot]] = i.loop
        for e in expressions(i):
            for node in found.inside(e):
                if isinstance(node, ir.Call) and node.function not in ir.INTERPRETED:
                    found.calls.setdefault(f"f.{plain(node.function)}", []).append((pc, node.arguments))
    _asked(program, found, finer)
    return found


def _live(program: Program, found: Traits) -> None:
    code = program.code
    live: list[frozenset[str]] = [frozenset()] * len(code)
    reachable: list[frozenset[int]] = [frozenset()] * len(code)
    changed = True
    while changed:
        changed = False
        for pc in reversed(range(len(code))):
            i = code[pc]
            after = frozenset[str]().union(*(live[n] for n in following(i, pc)))
            reads = frozenset[str]().union(*(found.names(e) for e in expressions(i)))
            match i:
                case Set(slot=slot):
                    after -= {program.slots[slot]}
                case Enter(loop=loop):
                    after -= {f"next {loop}", f"limit {loop}"}
                case MoveCursor(slot=slot, cursor=cursor):
                    after -= {program.slots[slot]}
                    reads = frozenset({program.slots[cursor]})
                case Next(slot=slot, loop=loop, target=target):
                    after = (live[pc + 1] - {program.slots[slot]}) | live[target]
                    reads = frozenset({f"next {loop}", f"limit {loop}"})
            reach = frozenset({pc}).union(*(reachable[n] for n in following(i, pc)))
            if (now := after | reads) != live[pc] or reach != reachable[pc]:
                live[pc], reachable[pc], changed = now, reach, True
    slots = frozenset(program.slots)
    found.live = [frozenset(n for n in some if n in slots or n[:5] in ("next ", "limit")) for some in live]
    found.reachable = reachable


def _asked(program: Program, found: Traits, finer: bool) -> None:
    """By which remainders scalars are asked for, and which values are told apart: here, and in what is computed."""
    numbers = [n.value for i in program.code for e in expressions(i) for n in found.inside(e) if isinstance(n, ir.Int)]
    largest = min(8, max((abs(n) for n in numbers), default=0)) + 2
    flows: list[tuple[str, frozenset[str]]] = []
    for i in program.code:
        match i:
            case Set(slot=slot, value=value):
                flows.append((program.slots[slot], _outside(found, value)))
            case Store(base=base, size=size, value=value):
                flows += [(program.slots[base + k], _outside(found, value)) for k in range(size)]
            case Enter(loop=loop, start=start, stop=stop):
                flows.append((f"next {loop}", _outside(found, start)))
                if isinstance(stop, ir.Int) and stop.value <= 8:
                    found.exact[f"next {loop}"] = stop.value + 1
            case Next(slot=slot, loop=loop):
                flows.append((program.slots[slot], frozenset({f"next {loop}"})))
            case Emit(arguments=arguments):
                for e in arguments:
                    for name in _outside(found, e):
                        found.exact[name] = max(found.exact.get(name, 0), 33)
        for e in expressions(i):
            for node in found.inside(e):
                _ask(node, found)
        if isinstance(i, Test):
            for name in _outside(found, i.condition):
                found.exact[name] = max(found.exact.get(name, 0), 2)
    if finer:
        for name in [*program.slots, *(f"next {i.loop}" for i in program.code if isinstance(i, Enter))]:
            found.exact[name] = max(found.exact.get(name, 0), largest)
    changed = True
    while changed:
        changed = False
        for name, sources in flows:
            for source in sources:
                modulus = lcm(found.moduli.get(source, 1), found.moduli.get(name, 1))
                most = max(found.exact.get(source, 0), found.exact.get(name, 0))
                if modulus <= _LARGEST and (modulus, most) != (found.moduli.get(source, 1), found.exact.get(source, 0)):
                    found.moduli[source], found.exact[source], changed = modulus, most, True


def _ask(node: ir.Node, found: Traits) -> None:
    match node:
        case ir.Binary(op="%" | "//", left=left, right=ir.Int(value=modulus)) if 1 < modulus <= _LARGEST:
            for name in found.names(left):
                if (many := lcm(found.moduli.get(name, 1), modulus)) <= _LARGEST:
                    found.moduli[name] = many
        case ir.Item(index=index) | ir.Field(index=index):
            for name in _outside(found, index):
                found.exact[name] = max(found.exact.get(name, 0), 33)
        case ir.Compare(first=first, rest=rest):
            sides = [first, *(e for _, e in rest)]
            limits = [e.value for e in sides if isinstance(e, ir.Int) and abs(e.value) <= 16]
            for name in (n for e in sides for n in _outside(found, e)) if limits else ():
                found.exact[name] = max(found.exact.get(name, 0), max(limits) + 1)


def _outside(found: Traits, expr: ir.Expr) -> frozenset[str]:
    """The scalars that an expression reads outside of remainders, quotients, indices and unknown functions."""
    names: set[str] = set()
    stack: list[ir.Node] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Binary) and node.op in ("%", "//"):
            continue
        if isinstance(node, ir.Call) and node.function not in ir.INTERPRETED:
            continue
        if isinstance(node, ir.Item):
            continue
        if isinstance(node, ir.Field):
            names |= found.names(node) - found.names(node.index)
            continue
        if isinstance(node, ir.Name):
            if node.id in found.compiled.scalars:
                stack.append(found.compiled.scalars[node.id])
            else:
                names.add(node.id)
        stack += ir.children(node)
    return frozenset(names)
