"""Random kernels around one `pipelined` loop that compute with scalars, and what they show, by an interpreter.

Scalars and binds decide slots, places, conditions and bounds, inside the loop and behind it; binds stand in inner
blocks and read buffers; the loop may stand in another one that is left early.  The interpreter runs the whole section
from the syntax tree; of the checker it takes the schedule and the number of versions of each buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from fencepost import ir
from fencepost.findings import Verdict
from fencepost.pipeline.check import check_pipeline, pipelines, plan_of
from fencepost.pipeline.schedule import Plan
from fencepost.reading import parse

TRIPS = range(7)
TABLES = (0, 1, 2, 3, 4, 5)
"""Seeds of the values of unknown functions, and of what a condition makes of the contents of a buffer."""


# ------------------------------------------------------------------------------------------------ texts


@dataclass
class _Writer:
    r: Random
    depths: dict[str, int]
    names: list[str] = field(default_factory=lambda: ["p", "q"])  # scalars and binds that can be read
    variables: list[str] = field(default_factory=list)
    binds: int = 0

    def value(self, memory: bool = False) -> str:
        r = self.r
        if memory and r.random() < 0.4:
            name = r.choice(list(self.depths))
            return f"{name}[{self.slot(name) if self.depths[name] else 0}]"
        kind, name = r.random(), r.choice(self.names)
        if kind < 0.4:
            return name
        if kind < 0.6:
            return r.choice([*self.variables, "f(1)", "n"])
        if kind < 0.8:
            return f"f({r.choice([*self.variables, name])})"
        return r.choice([f"{name} + 1", f"{name} % 2", f"{v} + {name}" if (v := _last(self.variables)) else name, "1"])

    def slot(self, name: str) -> str:
        plain = [f"{v} % 2" for v in self.variables] + ["0", "1"]
        return self.r.choice([*plain, f"({self.value()}) % {self.depths[name] or 1}"])

    def buffer(self) -> str:
        name = self.r.choice(list(self.depths))
        return f"{name}[{self.slot(name)}]" if self.depths[name] else name

    def condition(self) -> str:
        r = self.r
        if r.random() < 0.25:
            return r.choice(["1 == 1", "n > 2", *(f"{v} > 0" for v in self.variables)])
        return f"{self.value()} {r.choice(('==', '<', '!='))} {r.choice(('0', '1', self.value()))}"

    def operation(self) -> str:
        r = self.r
        kind = r.random()
        if kind < 0.3:
            return f"load {self.buffer()} <- {r.choice('AAG')} @ MTE2 at ({self.value()})"
        if kind < 0.7:
            return f"store {r.choice('CCG')} <- {self.buffer()} @ MTE3 at ({self.value()})"
        if kind < 0.75:
            return f"assert {self.condition()}"
        if kind < 0.8:
            return f"fill {self.buffer()} <- () @ V"
        return f"mul {self.buffer()} <- {', '.join(self.buffer() for _ in range(r.randint(1, 2)))} @ V"

    def use(self) -> list[str]:
        """Something behind the loop that shows what it left."""
        r = self.r
        name, store = r.choice("pq"), f"    store D <- {self.buffer()} @ MTE3"
        return r.choice(
            [
                [f"if {name} {r.choice(('==', '<'))} {r.randint(0, 2)}:", store],
                [f"for j in range({name}):", store],
                [f"store D <- A @ MTE3 at ({name})"],
                [f"assert {name} == f(n)"],
                [f"p = {name} + 1", *(line[4:] for line in (store + " at (p)",))],
                [store[4:]],
            ]
        )

    def statement(self, nesting: int, pipelined: bool) -> list[str]:
        r = self.r
        kind = r.random()
        if kind < 0.2:
            name = r.choice("pq")
            value = self.value()
            return [f"{name} = {value if value != name else 'f(0)'}"]
        if kind < 0.5 and nesting < 2:
            text = [f"if {self.condition()}:", *self.block(nesting, pipelined)]
            if r.random() < 0.3:
                text += [f"elif {self.condition()}:", *self.block(nesting, pipelined)]
            if r.random() < 0.3:
                text += ["else:", *self.block(nesting, pipelined)]
            return text
        if kind < 0.65 and nesting < 2:
            variable = f"j{len(self.variables)}"
            stop = r.choice(("2", self.value(), self.value(), "n", f"0, {self.value()}, 2", f"{self.value()}, 0, -1"))
            self.variables.append(variable)
            text = [f"for {variable} in range({stop}):", *self.block(nesting, pipelined)]
            self.variables.pop()
            return text
        return [self.operation()]

    def block(self, nesting: int, pipelined: bool) -> list[str]:
        known, lines = len(self.names), list[str]()
        for _ in range(self.r.randint(1, 2)):
            if pipelined and self.r.random() < 0.4 and not (self.variables and self.variables[-1] != "k"):
                name = f"b{self.binds % 5}"
                if name not in self.names:
                    self.binds += 1
                    lines.append(f"bind {name} = {self.value(memory=True)}")
                    self.names.append(name)
                    continue
            lines += self.statement(nesting + 1, pipelined)
        if lines[-1].startswith("bind"):
            lines += self.statement(nesting + 1, pipelined)
        del self.names[known:]
        return [f"    {line}" for line in lines]


def _last(names: list[str]) -> str | None:
    return names[-1] if names else None


def random_text(seed: int) -> str:
    """A kernel with scalars p and q, and one loop of 1 to 4 statements that stands alone or in another loop."""
    r = Random(seed)
    w = _Writer(r, {f"s{i}": r.choice((0, 0, 2)) for i in range(r.randint(1, 3))})
    lines = ["kernel loop(n):", "    assume n >= 0"]
    lines += [f"    buffer {name}{f'[{depth}]' if depth else ''} in Vec" for name, depth in w.depths.items()]
    lines += ["    buffer G in GM", "    section vector:", "        p = 0", f"        q = {r.randint(0, 2)}"]
    lines += [f"        fill {_whole(w, name)} <- () @ V" for name in w.depths if r.random() < 0.7]
    outer = r.random() < 0.4
    indent = "        "
    if outer:
        lines.append(f"{indent}for t in range({r.randint(2, 3)}):")
        w.variables.append("t")
        indent += "    "
        lines += [f"{indent}{line}" for line in _beside(w)]
        if r.random() < 0.3:
            lines.append(f"{indent}if {w.condition()}:")
            indent += "    "
            lines += [f"{indent}{line}" for line in _beside(w)]
    lines += [f"{indent}{line}" for line in _loop(w)]
    if outer:
        lines += [f"{indent}{line}" for line in _beside(w)]
        if len(indent) > 12 and r.random() < 0.6:
            lines += [f"{indent[4:]}else:", f"{indent}pass", *(f"{indent}{line}" for line in _beside(w))]
        w.variables.pop()
    lines += [f"        {line}" for line in (*_beside(w), *w.use())]
    return "\n".join(lines) + "\n"


def _whole(w: _Writer, name: str) -> str:
    return f"{name}[{w.r.randint(0, 1)}]" if w.depths[name] else name


def _beside(w: _Writer) -> list[str]:
    """Statements around the loop; in another loop, one of them may jump."""
    lines = [line for _ in range(w.r.choice((0, 1, 1, 2))) for line in w.statement(1, False)]
    if w.variables and w.r.random() < 0.3:
        place = w.r.randint(0, len(lines))
        if all(not line.startswith((" ", "el")) for line in lines[place : place + 1]):
            lines[place:place] = [f"if {w.condition()}:", f"    {w.r.choice(('break', 'continue'))}"]
    return lines


def _loop(w: _Writer) -> list[str]:
    r, body, entries = w.r, list[list[str]](), 0
    w.variables.append("k")
    for number in range(r.randint(2, 4)):
        if r.random() < 0.25:
            w.binds += 1
            body.append([f"bind t{number} = {r.choice(('k', 'k + 1', 'f(k)', 'k % 2', 'n - k'))}"])
            w.names.append(f"t{number}")
            continue
        body.append(w.statement(0, True))
        entries += 1
    if not entries:
        body.append([w.operation()])
        entries = 1
    w.variables.pop()
    del w.names[2:]
    last = r.choice((1, 1, 1, 2, 2, 3))
    stage = sorted(r.randint(0, last) for _ in range(entries))
    order = list(range(entries))
    if r.random() < 0.3:
        r.shuffle(stage)
    if r.random() < 0.4:
        r.shuffle(order)
    comma = "," if entries == 1 else ""
    notes = f"stage = ({', '.join(map(str, stage))}{comma}), order = ({', '.join(map(str, order))}{comma})"
    return [f"for k in pipelined(0, n, {notes}):", *(f"    {line}" for text in body for line in text)]


# ------------------------------------------------------------------------------------------------ what it shows


class _Jump(Exception):
    def __init__(self, leaves: bool) -> None:
        self.leaves = leaves


Cell = tuple[str, int, int]
Shown = dict[object, object]


class TooLong(Exception):
    """More operations than an example is worth."""


class Interpreter:
    """Runs the section for one trip count; `plan`: with the loop as the compiler makes it, else as it is written."""

    def __init__(self, kernel: ir.Kernel, trips: int, table: int, terms: dict[object, int], plan: Plan | None) -> None:
        self.kernel, self.trips, self.table, self.terms, self.plan = kernel, trips, table, terms, plan
        self.loop = pipelines(kernel)[0]
        self.replayed = {s.name: s for n, s in enumerate(self.loop.body) if isinstance(s, ir.Bind)}
        inner = [n for n in ir.walk(kernel) if isinstance(n, ir.Assign)]
        self.scalars = {n.name for n in inner}
        self.declared = {b.name for b in kernel.buffers}
        self.memory: dict[Cell, int] = {}
        self.shown: Shown = {}
        self.events = 0
        self.iteration: int | None = None
        self.steps = 0

    def number(self, term: object) -> int:
        return self.terms.setdefault(term, len(self.terms))

    def some(self, *what: object) -> int:
        """A small number that depends on the table and on nothing else but `what`."""
        return Random(repr((self.table, *what))).randint(0, 2) if self.table else 1

    def cell(self, name: str, slot: int = 0) -> Cell:
        versions = self.plan.versions.get(name, 1) if self.plan is not None and self.iteration is not None else 1
        return name, (self.iteration or 0) % versions if versions > 1 else 0, slot

    def held(self, cell: Cell) -> int:
        if cell not in self.memory:
            if cell[0] in self.scalars:
                return -3  # another version of a scalar, which nobody has written
            self.memory[cell] = self.number(("before", cell) if cell[0] == "G" else "nothing")
        return self.memory[cell]

    def value(self, expr: ir.Expr, env: Mapping[str, int]) -> int:
        match expr:
            case ir.Int(value):
                return value
            case ir.Name("n"):
                return self.trips
            case ir.Name(name) if name in env:
                return env[name]
            case ir.Name(name) if name in self.scalars:
                return self.held(self.cell(name))
            case ir.Name(name):
                return self.value(self.replayed[name].value, env)
            case ir.Item(name, index):
                return self.some("held", self.held(self.cell(name, self.value(index, env))))
            case ir.Unary(_, operand):
                return -self.value(operand, env)
            case ir.Binary(op, left, right):
                a, b = self.value(left, env), self.value(right, env)
                return {"+": a + b, "-": a - b, "%": a % b if b else 0}[op]
            case ir.Compare(first, ((op, second),)):
                a, b = self.value(first, env), self.value(second, env)
                return int({"<": a < b, ">": a > b, "==": a == b, "!=": a != b}[op])
            case ir.Call("f", (argument,)):
                return self.some("f", self.value(argument, env))
        raise AssertionError(expr)

    def show(self, what: object, label: tuple[object, ...]) -> None:
        if self.iteration is None:  # outside of the loop everything happens in one order
            self.events += 1
            label = (self.events, label)
        self.shown[label] = what

    def run(self, body: tuple[ir.Stmt, ...], env: dict[str, int], label: tuple[object, ...]) -> None:
        """`env` holds loop variables and binds, `label` the place and the rounds of the loops around it."""
        for n, stmt in enumerate(body):
            self.steps += 1
            if self.steps > 4000:
                raise TooLong
            self.statement(stmt, env, (*label, n))

    def statement(self, stmt: ir.Stmt, env: dict[str, int], label: tuple[object, ...]) -> None:
        match stmt:
            case ir.Assign(name, value) | ir.Bind(name, value) if isinstance(stmt, ir.Assign) or name in self.scalars:
                self.memory[self.cell(name)] = self.value(value, env)
            case ir.Bind(name, value):
                env[name] = self.value(value, env)
            case ir.Assert(condition):
                self.show(bool(self.value(condition, env)), label)
            case ir.DataOp():
                self.operation(stmt, env, label)
            case ir.If(branches, orelse):
                arms = ((arm, k) for k, (condition, arm) in enumerate(branches) if self.value(condition, env))
                arm, k = next(arms, (orelse, -1))
                self.run(arm, dict(env), (*label, k))
            case ir.For():
                start, stop, step = (self.value(e, env) for e in (stmt.start, stmt.stop, stmt.step))
                for j in range(start, stop, step):
                    try:
                        self.run(stmt.body, {**env, stmt.var: j}, (*label, j))
                    except _Jump as jump:
                        if jump.leaves:
                            break
            case ir.Pipelined():
                self.whole_loop(env, label)
            case ir.Break() | ir.Continue():
                raise _Jump(isinstance(stmt, ir.Break))

    def operation(self, op: ir.DataOp, env: dict[str, int], label: tuple[object, ...]) -> None:
        reads = [self.cell(a.name, self.value(a.index, env) if a.index is not None else 0) for a in op.reads]
        at = tuple(self.value(e, env) for e in op.at)
        inputs = tuple(self.held(c) if c[0] in self.declared else 0 for c in reads)
        name = op.writes[0].name
        what = self.number((op.op, label if op.op != "fill" else op.span.line, at, inputs))
        if name in self.declared:
            index = op.writes[0].index
            self.memory[self.cell(name, self.value(index, env) if index is not None else 0)] = what
            return
        self.show(what, label)
        if self.iteration is not None:
            self.shown["last", name, label[: self.depth + 1]] = what

    def whole_loop(self, env: dict[str, int], label: tuple[object, ...]) -> None:
        self.depth = len(label)
        plan = self.plan
        if plan is None or not plan.rewritten:
            for k in range(self.trips):
                inner = {**env, self.loop.var: k}
                self.iteration = k
                for n, stmt in enumerate(self.loop.body):
                    self.statement(stmt, dict(inner), (*label, k, n)) if not isinstance(stmt, ir.Bind) else None
        else:
            self.memory = {c: v for c, v in self.memory.items() if c[1] == 0}
            last = plan.last_stage
            for t in (*range(last), *range(last, self.trips), *range(self.trips, self.trips + last)):
                steady = last <= t < self.trips
                for slot in plan.emitted:
                    k = t - slot.stage
                    if steady or 0 <= k < self.trips:
                        self.iteration = k
                        self.statement(self.loop.body[slot.number], {**env, self.loop.var: k}, (*label, k, slot.number))
        self.iteration = None

    def result(self) -> Shown:
        section = next(item for item in self.kernel.body if isinstance(item, ir.Section))
        self.run(section.body, {}, ())
        return {**self.shown, "G": self.held(("G", 0, 0)), "events": self.events}


def differs(kernel: ir.Kernel, plan: Plan, trips: int, table: int) -> bool:
    """Whether the two programs show something different."""
    terms: dict[object, int] = {}
    try:
        before, after = (Interpreter(kernel, trips, table, terms, p).result() for p in (None, plan))
    except TooLong:
        return False
    return before != after


def examine(seed: int) -> tuple[str, str]:
    """The verdict on one random loop, and what is wrong with it (empty: nothing)."""
    kernel = parse(random_text(seed))
    loop = pipelines(kernel)[0]
    result = check_pipeline(loop, kernel)
    plan = plan_of(loop, kernel)
    if plan is None:
        return "rejected" if result.verdict is Verdict.REFUTED else "unread", ""
    bad = [(trips, table) for trips in TRIPS for table in TABLES if differs(kernel, plan, trips, table)]
    if result.verdict in (Verdict.PROVED, Verdict.VACUOUS) and bad:
        return result.verdict.value, f"{result.verdict}, but {bad[0][0]} trips with table {bad[0][1]} differ"
    shown = "" if bad else " (never seen)"
    return result.verdict.value + (shown if result.verdict is not Verdict.PROVED else ""), ""


def problems(seeds: range) -> Iterator[tuple[str, str]]:
    """The verdict on each of some loops, and what is wrong with it."""
    for seed in seeds:
        verdict, problem = examine(seed)
        yield verdict, f"seed {seed}: {problem}" if problem else ""
