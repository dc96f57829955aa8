"""Does another model checker agree?  A kernel at concrete values as Promela, checked by spin.

    python -m tests.campaigns.promela kernel.kir -p n=3          # print the model and the verdicts
    python -m tests.campaigns.promela --count 200 --seed 1       # random pipelines against the executor

Every pipe of every agent becomes a process that walks the agent's whole program and performs the operations of its own
pipe only; what an operation waits for (signals, earlier operations of the scalar unit, locks, barriers, messages,
accumulator flags) becomes the guard of an atomic step.  Deadlock and leftovers are compared; memory is not modelled.
Needs `spin` and `gcc` (Debian: apt-get install spin gcc).
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fencepost import ir
from fencepost.model.executor import Run, run
from fencepost.model.functions import FunctionTable, Point
from fencepost.reading import parse

AGENTS = ("aic", "aiv0", "aiv1")
IDS = 16
AVAILABLE = shutil.which("spin") is not None and shutil.which("gcc") is not None


class Unsupported(Exception):
    """Something in the kernel has no translation."""


class TooLarge(Exception):
    """The state space does not fit."""


@dataclass(frozen=True)
class Answer:
    """What spin found: "clean", "deadlock" (an invalid end state) or "leftover" (a counter is not 0 at the end).

    `seconds` are processor seconds of the search, without the translation and the compiler.
    """

    verdict: Literal["clean", "deadlock", "leftover"]
    states: int
    seconds: float
    megabytes: float


# ------------------------------------------------------------------------------------------------ translation


@dataclass
class Model:
    """The translation of one kernel at one shape."""

    kernel: ir.Kernel
    values: Mapping[str, int]
    functions: Mapping[Point, int] = field(default_factory=dict)
    credits: str = "per_slot"
    counters: set[str] = field(default_factory=set)  # global, one per id, must be 0 at the end
    helpers: set[str] = field(default_factory=set)  # global, free
    labels: int = 0

    def __post_init__(self) -> None:
        self.constants = {c.name: c.value for c in self.kernel.constants}
        self.buffers = {b.name: b for b in self.kernel.buffers}
        if any(b.addresses is not None and (b.mutex is not None or b.space == "Acc") for b in self.kernel.buffers):
            raise Unsupported("buffers with addresses")
        self.auto = self.kernel.auto_mutex and self.kernel.target == "a5"

    def text(self) -> str:
        """The Promela source."""
        processes = [p for agent in AGENTS for p in self.agent(agent)]
        declared = [f"short {name}[{IDS}] = 0;" for name in sorted(self.counters)]
        declared += [f"int {name} = 0;" for name in sorted(self.helpers)]
        sums = " && ".join(f"{name}[{i}] == 0" for name in sorted(self.counters) for i in range(IDS)) or "true"
        monitor = f"active proctype monitor() {{\nend_wait:\n  (finished == {len(processes)}) -> assert({sums})\n}}\n"
        return "\n".join(["int finished = 0;", *declared, *processes, monitor])

    def program(self, agent: str) -> list[ir.Stmt]:
        core = "cube" if agent == "aic" else "vector"
        found: list[ir.Stmt] = []
        for item in self.kernel.body:
            if not isinstance(item, ir.Section):
                found.append(item)
            elif item.core == core:
                found += item.body
        return found

    def matters(self, stmt: ir.Node) -> bool:
        """Whether an operation can wait or make others wait."""
        if not isinstance(stmt, ir.DataOp) or stmt.phase is not None or stmt.pipe == "S":
            return True
        buffers = [self.buffers.get(a.name) for a in (*stmt.writes, *stmt.reads)]
        return self.auto and any(b is not None and b.mutex is not None for b in buffers)

    def agent(self, agent: str) -> Iterator[str]:
        body = self.program(agent)
        nodes = [n for stmt in body for n in ir.walk(stmt)]
        drains = any(isinstance(n, ir.SyncAll) or (isinstance(n, ir.Barrier) and n.pipe == "ALL") for n in nodes)
        pipes = sorted({pipe_of(n) for n in nodes if is_operation(n) and (drains or self.matters(n))})
        for pipe in pipes:
            yield Process(self, agent, pipe, pipes, nodes).text(body)


def is_operation(node: ir.Node) -> bool:
    return isinstance(node, (
        ir.SetCross, ir.WaitCross, ir.SyncSrc, ir.SyncDst, ir.MutexLock, ir.MutexUnlock, ir.Barrier, ir.SyncAll,
        ir.DataOp, ir.Push, ir.Pop, ir.Free,
    ))  # fmt: skip


def pipe_of(node: ir.Node) -> str:
    match node:
        case ir.SyncSrc(source=pipe) | ir.SyncDst(target=pipe):
            return pipe
        case ir.Barrier() | ir.SyncAll():
            return "S"
    return node.pipe  # type: ignore[attr-defined, no-any-return]


class Process:
    """One pipe of one agent."""

    def __init__(self, model: Model, agent: str, pipe: str, pipes: list[str], nodes: list[ir.Node]) -> None:
        self.model = model
        self.agent = agent
        self.pipe = pipe
        self.pipes = pipes
        self.lines: list[str] = []
        self.locals: dict[str, int] = {}
        self.drains = any(isinstance(n, ir.SyncAll) or (isinstance(n, ir.Barrier) and n.pipe == "ALL") for n in nodes)
        self.scalar = any(is_operation(n) and pipe_of(n) == "S" for n in nodes)
        self.loops: list[str] = []
        self.depth = 1

    def text(self, body: list[ir.Stmt]) -> str:
        self.block(body)
        sizes = {f"r_{r.name}_{f}": self.constant(r.size) for r in self.model.kernel.rings for f in r.fields}
        declared = [f"  int {name} = {value};" for name, value in sorted(self.locals.items())]
        declared += [f"  int {name}[{size}] = 0;" for name, size in sizes.items()]
        head = f"active proctype {self.agent}_{self.pipe}() {{"
        return "\n".join([head, *declared, *self.lines, "  finished++", "}"])

    def add(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def local(self, name: str, value: int = 0) -> str:
        self.locals.setdefault(name, value)
        return name

    def constant(self, expr: ir.Expr) -> int:
        if isinstance(expr, ir.Int):
            return expr.value
        if isinstance(expr, ir.Name) and isinstance(self.model.constants.get(expr.id), ir.Int):
            value = self.model.constants[expr.id]
            assert isinstance(value, ir.Int)
            return value.value
        raise Unsupported("a size that is not a number")

    # ------------------------------------------------------------------------------------------ control

    def block(self, body: list[ir.Stmt] | tuple[ir.Stmt, ...]) -> None:
        self.depth += 1
        for stmt in body:
            self.statement(stmt)
        self.add("skip;")
        self.depth -= 1

    def statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Assign(name=name, value=value):
                self.add(f"{self.local('v_' + name)} = {self.expr(value)};")
            case ir.StoreField(ring=ring, index=index, field=name, value=value):
                self.add(f"r_{ring}_{name}[{self.expr(index)}] = {self.expr(value)};")
            case ir.Cursor(name=name, buffer=buffer, move=move):
                self.cursor(name, buffer, move)
            case ir.For():
                self.loop(stmt)
            case ir.If(branches=branches, orelse=orelse):
                for condition, body in branches:
                    self.add("if")
                    self.add(f":: ({self.expr(condition)}) ->")
                    self.block(body)
                    self.add(":: else ->")
                self.block(orelse)
                for _ in branches:
                    self.add("fi;")
            case ir.Break():
                self.add("break;")
            case ir.Continue():
                self.add(f"goto {self.loops[-1]};")
            case ir.Pass() | ir.Assert():
                pass
            case _ if is_operation(stmt):
                self.operation(stmt)
            case _:
                raise Unsupported(type(stmt).__name__)

    def cursor(self, name: str, buffer: str, move: str) -> None:
        depth = self.model.buffers[buffer].depth
        size = 1 if depth is None else self.constant(depth)
        at = self.local(f"cursor_{buffer}", size - 1)
        if move == "next":
            self.add(f"{at} = ({at} + 1) % {size};")
        back = f"({at} + {size - 1}) % {size}" if move == "previous" else at
        self.add(f"{self.local('v_' + name)} = {back};")

    def loop(self, stmt: ir.For) -> None:
        self.model.labels += 1
        number = self.model.labels
        step = self.constant(stmt.step) if not isinstance(stmt.step, ir.Unary) else -self.constant(stmt.step.operand)
        index, limit = self.local(f"next_{number}"), self.local(f"stop_{number}")
        self.add(f"{limit} = {self.expr(stmt.stop)}; {index} = {self.expr(stmt.start)};")
        self.add("do")
        self.add(f":: ({index} {'<' if step > 0 else '>'} {limit}) ->")
        self.depth += 1
        self.add(f"{self.local('v_' + stmt.var)} = {index}; {index} = {index} + ({step});")
        self.loops.append(f"again_{number}")
        self.block(stmt.body)
        self.loops.pop()
        self.depth -= 1
        self.lines.append(f"again_{number}: skip")
        self.add(":: else -> break")
        self.add("od;")

    # ------------------------------------------------------------------------------------------ operations

    def operation(self, stmt: ir.Node) -> None:
        """Perform an operation of this pipe, or note that one of another pipe was issued."""
        model, pipe = self.model, pipe_of(stmt)
        taken, given = self.locks(stmt)
        guards, effects = self.guards_and_effects(stmt) if pipe == self.pipe else ([], [])
        if pipe == self.pipe:
            if self.scalar and pipe != "S":
                guards.append(f"{self.shared('scalar')} >= {self.local('scalar_before')}")
            if pipe == "S" and not isinstance(stmt, ir.SyncAll):
                effects.append(f"{self.shared('scalar')}++")
            for mutex in taken:
                for other in self.pipes:
                    if other != pipe:
                        before = self.local(f"unlocks_{mutex}_{other}")
                        guards.append(f"{self.shared(f'unlocked_{mutex}_{other}')} >= {before}")
            effects += [f"{self.shared(f'unlocked_{m}_{pipe}')}++" for m in given]
            if self.drains:
                effects.append(f"{self.shared(f'done_{pipe}')}++")
            condition = " && ".join(f"({g})" for g in guards) or "true"
            if condition != "true" or effects:
                self.add(f"atomic {{ {' -> '.join([condition, '; '.join(effects)] if effects else [condition])} }};")
        else:
            notes = [f"{self.local(f'unlocks_{m}_{pipe}')}++" for m in given]
            if pipe == "S":
                notes.append(f"{self.local('scalar_before')}++")
            if self.drains:
                notes.append(f"{self.local(f'issued_{pipe}')}++")
            for note in notes:
                self.add(f"{note};")
        if isinstance(stmt, ir.SyncAll) and self.pipe == "S":
            everyone = [a for a in AGENTS if model.program(a)]
            met = self.local("met")
            model.helpers |= {f"arrived_{a}" for a in everyone}
            conditions = " && ".join(f"arrived_{a} >= {met}" for a in everyone)
            self.add(f"{met}++; arrived_{self.agent}++; ({conditions});")
            self.add(f"{self.shared('scalar')}++;")

    def shared(self, name: str) -> str:
        self.model.helpers.add(f"{self.agent}_{name}")
        return f"{self.agent}_{name}"

    def guards_and_effects(self, stmt: ir.Node) -> tuple[list[str], list[str]]:
        match stmt:
            case ir.SetCross() | ir.WaitCross():
                return self.counted(*self.cross(stmt), sets=isinstance(stmt, ir.SetCross))
            case (
                ir.SyncSrc(id=ident, source=source, target=target) | ir.SyncDst(id=ident, source=source, target=target)
            ):
                name = f"flag_{self.agent}_{source}_{target}"
                return self.counted([name], self.expr(ident), sets=isinstance(stmt, ir.SyncSrc))
            case ir.Barrier(pipe="ALL") | ir.SyncAll():
                others = [p for p in self.pipes if p != self.pipe]
                return [f"{self.shared(f'done_{p}')} >= {self.local(f'issued_{p}')}" for p in others], []
            case ir.Push() | ir.Pop() | ir.Free():
                return self.message(stmt)
            case ir.DataOp() if stmt.phase is not None:
                return self.phase(stmt)
        return [], []

    def counted(self, names: list[str], ident: str, *, sets: bool) -> tuple[list[str], list[str]]:
        """Guards and effects of taking or giving one token of each counter."""
        self.model.counters |= set(names)
        places = [f"{name}[{ident}]" for name in names]
        return ([], [f"{p}++" for p in places]) if sets else ([f"{p} > 0" for p in places], [f"{p}--" for p in places])

    def cross(self, stmt: ir.SetCross | ir.WaitCross) -> tuple[list[str], str]:
        """The counters of a signal, and its id."""
        sets, ident = isinstance(stmt, ir.SetCross), self.expr(stmt.id)
        if stmt.mode in ("INTER_SUBBLOCK", "INTER_BLOCK"):
            group = ["aic"] if self.agent == "aic" else ["aiv0", "aiv1"]
            ends = [(self.agent, p) if sets else (p, self.agent) for p in group]
            return [f"{stmt.mode}_{a}_{b}" for a, b in ends], ident
        lanes = [self.agent]
        if self.agent == "aic":
            lanes = ["aiv0", "aiv1"]
            if stmt.mode == "UNICAST_BLOCK":
                lane = 0 if stmt.lane is None else self.constant(stmt.lane)
                if isinstance(stmt.id, ir.Int) and stmt.id.value >= IDS:
                    lane, ident = 1, str(stmt.id.value - IDS)
                lanes = [f"aiv{lane}"]
        word = "down" if sets == (self.agent == "aic") else "up"
        return [f"{word}_{a}" for a in lanes], ident

    def locks(self, stmt: ir.Node) -> tuple[list[int], list[int]]:
        match stmt:
            case ir.MutexLock(id=ident):
                return [self.constant(ident)], []
            case ir.MutexUnlock(id=ident):
                return [], [self.constant(ident)]
            case ir.DataOp() if self.model.auto:
                ids: set[int] = set()
                for access in (*stmt.writes, *stmt.reads):
                    buffer = self.model.buffers.get(access.name)
                    if buffer is None or buffer.mutex is None:
                        continue
                    if len(buffer.mutex) > 1:
                        raise Unsupported("a mutex that depends on the slot")
                    if stmt.phase is not None and buffer.space == "Acc":
                        continue
                    ids |= {self.constant(i) for i in buffer.mutex[0]}
                return sorted(ids), sorted(ids)
        return [], []

    def message(self, stmt: ir.Push | ir.Pop | ir.Free) -> tuple[list[str], list[str]]:
        model = self.model
        here, there = ("cube", "vector") if self.agent == "aic" else ("vector", "cube")
        sender = here if isinstance(stmt, ir.Push) else there
        fifo = next(f for f in model.kernel.fifos if f.sender == sender and f.id == stmt.id)
        lanes = [0, 1][: fifo.lanes] if self.agent == "aic" else [n for n in [int(self.agent[3])] if n < fifo.lanes]
        slots, guards, effects = self.constant(fifo.slots), [], []
        early = model.kernel.target != "a5"
        for lane in lanes:
            name = f"{fifo.name}_{lane}"
            pushed, freed = f"pushed_{name}", f"freed_{name}"
            model.helpers |= {pushed, freed}
            model.counters.add("messages_" + name)
            if isinstance(stmt, ir.Push):
                guards.append(self.room(pushed, freed, slots))
                effects += [f"{pushed}++", f"messages_{name}[0]++"]
            elif isinstance(stmt, ir.Pop):
                guards.append(f"messages_{name}[0] > 0")
                effects += [f"messages_{name}[0]--"] + ([f"{freed}++"] if early else [])
            elif not early:
                effects.append(f"{freed}++")
        return guards, effects

    def room(self, pushed: str, freed: str, slots: int) -> str:
        if self.model.credits == "per_slot":
            return f"{pushed} < {slots} || {freed} >= {pushed} - {slots} + 1"
        period = slots if slots <= 2 else slots // 2
        first = -(-slots // period) * period  # the first push that waits
        taken = f"(({pushed} - {first}) / {period} + 1)"
        return f"{pushed} < {slots} || {pushed} % {period} != 0 || {freed} / {period} >= {taken}"

    def phase(self, stmt: ir.DataOp) -> tuple[list[str], list[str]]:
        produce = stmt.pipe == "M"
        guards, effects = [], []
        for access in stmt.writes if produce else stmt.reads:
            buffer = self.model.buffers.get(access.name)
            if buffer is not None and buffer.space == "Acc":
                if access.index is not None:
                    raise Unsupported("phases of several accumulators")
                name = f"unit_{access.name}"
                self.model.counters.add(name)
                guards.append(f"{name}[0] == {0 if produce else 1}")
                if stmt.phase == "Final":
                    effects.append(f"{name}[0] = {1 if produce else 0}")
        return guards, effects

    # ------------------------------------------------------------------------------------------ expressions

    def expr(self, expr: ir.Expr) -> str:
        match expr:
            case ir.Int(value=value):
                return f"({value})" if value < 0 else str(value)
            case ir.Name(id="sub"):
                return "1" if self.agent == "aiv1" else "0"
            case ir.Name(id=name) if name in self.model.values:
                return f"({self.model.values[name]})"
            case ir.Name(id="block"):
                return "0"
            case ir.Name(id=name):
                value = self.model.constants.get(name)
                if value is not None and not isinstance(value, tuple):
                    return self.expr(value)
                return self.local(f"v_{name}")
            case ir.Item(name=name, index=index):
                values = self.model.constants[name]
                assert isinstance(values, tuple)
                at, text = self.expr(index), self.expr(values[-1])
                for i in reversed(range(len(values) - 1)):
                    text = f"({at} == {i} -> {self.expr(values[i])} : {text})"
                return text
            case ir.Field(ring=ring, index=index, field=name):
                return f"r_{ring}_{name}[{self.expr(index)}]"
            case ir.Unary(op=op, operand=operand):
                return f"({'!' if op == 'not' else '-'}{self.expr(operand)})"
            case ir.Binary(op=op, left=left, right=right):
                return f"({self.expr(left)} {'/' if op == '//' else op} {self.expr(right)})"
            case ir.Compare(first=first, rest=rest):
                parts, left = [], first
                for op, right in rest:
                    parts.append(f"{self.expr(left)} {op} {self.expr(right)}")
                    left = right
                return f"({' && '.join(parts)})"
            case ir.Logic(op=op, operands=operands):
                return f"({(' && ' if op == 'and' else ' || ').join(map(self.expr, operands))})"
            case ir.Choose(condition=condition, then=then, other=other):
                return f"({self.expr(condition)} -> {self.expr(then)} : {self.expr(other)})"
            case ir.Call(function=function, arguments=arguments):
                return self.call(function, [self.expr(a) for a in arguments])
        raise Unsupported(type(expr).__name__)

    def call(self, function: str, arguments: list[str]) -> str:
        if function in ("min", "max"):
            text = arguments[0]
            for other in arguments[1:]:
                text = f"({text} {'<' if function == 'min' else '>'} {other} -> {text} : {other})"
            return text
        text = "1"
        for (name, point), value in self.model.functions.items():
            if name == function and len(point) == len(arguments):
                same = " && ".join(f"{a} == {p}" for a, p in zip(arguments, point, strict=True)) or "true"
                text = f"({same} -> ({value}) : {text})"
        return text


# ------------------------------------------------------------------------------------------------ spin


def promela(result: Run) -> str:
    """The Promela source of the kernel of a run, at the values of the run.

    Raises:
        Unsupported: the kernel holds something without a translation.
    """
    return Model(result.compiled.kernel, result.assignment(), result.functions, result.credits).text()


def verify(text: str, memory: int = 1024, seconds: float = 20, optimised: bool = False) -> Answer:
    """Let spin search the whole state space of a model; `optimised` code pays for large models only.

    Raises:
        TooLarge: more than `memory` megabytes or `seconds`.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "model.pml"
        source.write_text(text)
        _call(["spin", "-a", "model.pml"], folder)
        level = "-O2" if optimised else "-O0"
        _call(["gcc", level, "-w", "-DSAFETY", f"-DMEMLIM={memory}", "-DVECTORSZ=8192", "-o", "pan", "pan.c"], folder)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            output = _call(["./pan", "-m500000", "-w20"], folder, seconds)
        except subprocess.TimeoutExpired:
            raise TooLarge(f"more than {seconds} s") from None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    states = re.search(r"(\d+) states, stored", output)
    used = re.search(r"([\d.]+)\s+total actual memory usage", output)
    if states is None:
        raise RuntimeError(output[-2000:])
    verdict: Literal["clean", "deadlock", "leftover"] = "clean"
    if error := re.search(r"pan:\d+: (invalid end state|assertion violated)", output):
        verdict = "deadlock" if error[1] == "invalid end state" else "leftover"
    elif "Search not completed" in output:
        raise TooLarge(f"more than {memory} MB")
    elif "max search depth too small" in output:
        raise TooLarge("deeper than the search")
    return Answer(verdict, int(states[1]), took, float(used[1]) if used else 0.0)


def _call(command: list[str], folder: str, seconds: float = 600) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode and command[0] != "./pan":
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def executor_says(result: Run) -> Literal["clean", "deadlock", "leftover"]:
    """The verdict of a run in the words of `Answer`."""
    if result.blocked:
        return "deadlock"
    messages = any(f.kind == "left" for f in result.message_faults)
    return "leftover" if result.leftovers or result.phase_faults or messages else "clean"


def compare(kernel: ir.Kernel, values: Mapping[str, int], functions: FunctionTable | None = None) -> list[str]:
    """Differences between spin and the executor at one shape; None of them may be there."""
    found = []
    for credits in ("per_slot", "batched") if kernel.fifos else ("per_slot",):
        result = run(kernel, values, functions, credits=credits)  # type: ignore[arg-type]
        if result.contested or result.bad_values or result.outside or result.illegal:
            raise Unsupported("the run has faults that the model does not know")
        answer, said = verify(promela(result)), executor_says(result)
        if answer.verdict != said:
            found.append(f"{dict(values)}, {credits}: executor {said}, spin {answer.verdict}")
    return found


def main() -> int:
    from .random_kernels import random_kernel

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("-p", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not AVAILABLE:
        print("spin or gcc is not installed")
        return 2
    if options.file:
        values = {name: int(value) for name, _, value in (p.partition("=") for p in options.p)}
        result = run(parse(options.file.read_text("utf-8")), values)
        text = promela(result)
        print(text)
        answer = verify(text)
        print(f"/* spin: {answer}; executor: {executor_says(result)} */")
        return int(answer.verdict != executor_says(result))
    compared, differences, skipped, large = 0, 0, 0, 0
    for number in range(options.seed, options.seed + options.count):
        kernel = random_kernel(number)
        for size in (0, 1, 2):
            try:
                found = compare(kernel, dict.fromkeys(kernel.parameters, size), FunctionTable(seed=1))
            except Unsupported:
                skipped += 1
                continue
            except TooLarge:
                large += 1
                continue
            compared += 1
            differences += len(found)
            for line in found:
                print(f"kernel {number}: {line}")
        if (number - options.seed) % 10 == 9:
            print(f"... kernel {number}: {compared} shapes compared, {differences} differences", flush=True)
    print(f"{compared} shapes compared, {skipped} not translated, {large} too large, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
