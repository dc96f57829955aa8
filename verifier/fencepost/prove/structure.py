"""Structure: which loops and counters does a program have, and which comparisons belong to one run of a counter?

A comparison of a counter with an unknown number is decided for one *run* of the counter: one entry of its loop, or one
trip of the loop around several entries.  The run is named by a level, which all agents share, and its number (epoch).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencepost import ir
from fencepost.model.program import (
    Compiled,
    Emit,
    Enter,
    Instruction,
    Jump,
    ModelError,
    MoveCursor,
    Next,
    Program,
    Require,
    Set,
    Stop,
    Store,
    Test,
    constant,
)
from fencepost.prove.values import Level


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop: its instructions `head` (Next) and `end`, its level (None: constant bounds), its depth, its step.

    `linked`: its start continues from other values instead of a constant.  `counted`: its start is not constant, but
    nobody reads its variable, so only the number of trips matters.
    """

    number: int
    enter: int
    head: int
    end: int
    level: Level | None
    depth: int
    linked: bool
    counted: bool
    step: int

    @property
    def fresh(self) -> bool:
        """Whether entering it starts a new run of its level."""
        return self.level is not None and not self.linked


@dataclass(slots=True)
class Structure:
    """The result for one program.

    `levels[slot]` is the run that the counter in a slot belongs to (None: no counter).  `symbolic[slot]`: the slot may
    hold an unknown number.
    """

    compiled: Compiled
    program: Program
    loops: list[Loop] = field(default_factory=list)
    levels: list[Level | None] = field(default_factory=list)
    symbolic: list[bool] = field(default_factory=list)
    _slots: dict[int, tuple[frozenset[int], ir.Expr]] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------------ expressions

    def slots(self, expr: ir.Expr) -> frozenset[int]:
        """The slots that an expression may read."""
        known = self._slots.get(id(expr))
        if known is None:
            # The expression is kept alive, so that its id stays its own.
            known = self._slots[id(expr)] = (frozenset(self._read(expr)), expr)
        return known[0]

    def _read(self, expr: ir.Expr) -> set[int]:
        found: set[int] = set()
        names = self.program.names
        for node in ir.walk(expr):
            if isinstance(node, ir.Name):
                if node.id in names:
                    found.add(names[node.id])
                elif node.id in self.compiled.scalars:
                    found |= self.slots(self.compiled.scalars[node.id])
            elif isinstance(node, ir.Item):
                for value in self.compiled.tuples[node.name]:
                    found |= self.slots(value)
            elif isinstance(node, ir.Field):
                found |= set(self.record(node.ring, node.field))
        return found

    def record(self, ring: str, name: str) -> range:
        """The slots of one field of all records of a ring."""
        base, size, fields = self.program.rings[ring]
        at = base + size * fields.index(name)
        return range(at, at + size)

    def level(self, expr: ir.Expr) -> Level | None:
        """The level at which comparisons in an expression are decided: the deepest one of the slots that it reads."""
        best: Level | None = None
        for slot in sorted(self.slots(expr)):
            if rank(self.levels[slot]) > rank(best):
                best = self.levels[slot]
        return best

    def functions(self, expr: ir.Expr) -> set[str]:
        """The unknown functions that an expression calls."""
        found: set[str] = set()
        stack: list[ir.Node] = [expr]
        while stack:
            for node in ir.walk(stack.pop()):
                if isinstance(node, ir.Call) and node.function not in ir.INTERPRETED:
                    found.add(node.function)
                elif isinstance(node, ir.Name) and node.id not in self.program.names:
                    if node.id in self.compiled.scalars:
                        stack.append(self.compiled.scalars[node.id])
                elif isinstance(node, ir.Item):
                    stack += self.compiled.tuples[node.name]
        return found

    def is_constant(self, expr: ir.Expr) -> bool:
        """Whether an expression is the same integer in every run."""
        try:
            scalars = {k: v for k, v in self.compiled.scalars.items() if k not in self.program.names}
            constant(expr, scalars, "")
        except ModelError:
            return False
        return True


def analyse(compiled: Compiled, program: Program) -> Structure:
    found = Structure(compiled, program, levels=[None] * len(program.slots), symbolic=[False] * len(program.slots))
    found.loops = _loops(found)
    _find_levels(found)
    _find_symbolic(found)
    return found


def rank(level: Level | None) -> int:
    """How deep a level lies: a run of a deeper level is shorter."""
    if level is None:
        return 0
    depth = level[-1]
    assert isinstance(depth, int)
    return 2 * depth + (2 if level[0] == "C" else 1)


def expressions(i: Instruction) -> tuple[ir.Expr, ...]:
    """The expressions that an instruction evaluates."""
    match i:
        case Set(value=value):
            return (value,)
        case Store(index=index, value=value):
            return (index, value)
        case Test(condition=condition) | Require(condition=condition):
            return (condition,)
        case Enter(start=start, stop=stop):
            return (start, stop)
        case Emit(arguments=arguments, task=task):
            return arguments if task is None else (*arguments, task)
    return ()


def successors(code: tuple[Instruction, ...], pc: int) -> tuple[int, ...]:
    match code[pc]:
        case Jump(target=target):
            return (target,)
        case Test(target=target) | Next(target=target):
            return (pc + 1, target)
        case Stop():
            return ()
    return (pc + 1,)


# ---------------------------------------------------------------------------------------------- loops


def _loops(s: Structure) -> list[Loop]:
    code, program = s.program.code, s.program
    read = frozenset().union(*(s.slots(e) for i in code for e in expressions(i))) if code else frozenset()
    found: list[Loop] = []
    stack: list[tuple[int, bool]] = []  # (end, symbolic)
    for pc, instruction in enumerate(code):
        while stack and stack[-1][0] <= pc:
            stack.pop()
        if not isinstance(instruction, Enter):
            continue
        head = pc + 1
        following = code[head]
        assert isinstance(following, Next)
        end = following.target
        fixed = s.is_constant(instruction.start)
        symbolic = not (fixed and s.is_constant(instruction.stop))
        depth = sum(inner for _, inner in stack) + symbolic
        level: Level | None = None
        if symbolic:
            shared = any(
                isinstance(i, Emit) and not isinstance(program.sites[i.site], ir.DataOp) for i in code[head:end]
            )
            level = ("L", depth) if shared else ("X", program.agent, instruction.loop, depth)
        counted = symbolic and not fixed and following.slot not in read
        linked = not fixed and not counted
        found.append(Loop(instruction.loop, pc, head, end, level, depth, linked, counted, following.step))
        stack.append((end, symbolic))
    return found


def _around(s: Structure, pc: int) -> list[Loop]:
    """The loops with unknown bounds whose body an instruction belongs to, outermost first."""
    return [x for x in s.loops if x.level is not None and x.head < pc < x.end]


# ---------------------------------------------------------------------------------------------- levels


def _assignments(s: Structure) -> list[tuple[int, int, ir.Expr]]:
    """(instruction, slot, value) for all scalars and fields."""
    found: list[tuple[int, int, ir.Expr]] = []
    for pc, i in enumerate(s.program.code):
        if isinstance(i, Set):
            found.append((pc, i.slot, i.value))
        elif isinstance(i, Store):
            found += [(pc, i.base + k, i.value) for k in range(i.size)]
    return found


def _find_levels(s: Structure) -> None:
    for loop in s.loops:
        following = s.program.code[loop.head]
        assert isinstance(following, Next)
        for slot in (following.slot, following.index, following.limit):
            s.levels[slot] = loop.level
    assignments = _assignments(s)
    for slot in sorted({slot for _, slot, _ in assignments}):
        level = _counter(s, [(pc, value) for pc, to, value in assignments if to == slot], slot)
        if rank(level) > rank(s.levels[slot]):
            s.levels[slot] = level
    changed = True
    while changed:
        changed = False
        flows = [(slot, value) for _, slot, value in assignments]
        for i in s.program.code:
            if isinstance(i, Enter):
                flows += [(slot, e) for slot in (i.index, i.limit) for e in (i.start, i.stop)]
        for slot, value in flows:
            level = s.level(value)
            if rank(level) > rank(s.levels[slot]):
                s.levels[slot] = level
                changed = True


def _counter(s: Structure, assignments: list[tuple[int, ir.Expr]], slot: int) -> Level | None:
    """The level of a scalar that is counted on from its own value; None for any other."""
    counts = [pc for pc, value in assignments if slot in s.slots(value)]
    if not counts:
        return None
    depth = max((len(_around(s, pc)) for pc, value in assignments if slot not in s.slots(value)), default=0)
    inside = [[x for x in _around(s, pc) if x.depth > depth] for pc in counts]
    if not any(inside):
        return None
    innermost = {loops[-1].enter if loops else -1 for loops in inside}
    if len(innermost) == 1 and all(len(loops) == 1 for loops in inside):
        return inside[0][0].level
    return ("C", depth)


# ---------------------------------------------------------------------------------------------- unknown numbers


def _find_symbolic(s: Structure) -> None:
    parameters = len(s.compiled.parameters)
    for slot in range(parameters):
        s.symbolic[slot] = True
    flows = [(slot, value) for _, slot, value in _assignments(s)]
    copies: list[tuple[int, int]] = []
    for loop in s.loops:
        enter, following = s.program.code[loop.enter], s.program.code[loop.head]
        assert isinstance(enter, Enter) and isinstance(following, Next)
        flows += [(enter.index, enter.start), (enter.limit, enter.stop)]
        copies.append((following.slot, enter.index))
        if loop.counted:
            s.symbolic[enter.limit] = True
    changed = True
    while changed:
        changed = False
        for slot, value in flows:
            if not s.symbolic[slot] and (s.functions(value) or any(s.symbolic[x] for x in s.slots(value))):
                s.symbolic[slot] = changed = True
        for slot, source in copies:
            if s.symbolic[source] and not s.symbolic[slot]:
                s.symbolic[slot] = changed = True


def cursors(program: Program) -> frozenset[int]:
    """The slots that hold cursors of buffers."""
    return frozenset(i.cursor for i in program.code if isinstance(i, MoveCursor))
