"""Random `pipelined` loops as kernel IR text, and what they compute, by an interpreter of their own.

    python tests/pipeline/random_texts.py --seed 1 --count 2000
    python tests/pipeline/random_texts.py --seed 1 --count 2000 --scalars
    python tests/pipeline/random_texts.py --seed 1 --count 2000 --memory

The second form takes the loops and the interpreter of `random_scalars`; in the third one, slots of a buffer are moved
by a common term, share memory, or are written for one of the two sub-cores.
The interpreter takes the syntax tree, stage, order and the number of versions of each buffer; it shares no code with
the checker's own executor.  What is proved must compute what the serial loop computes for 0 to 8 trips; witnesses
must differ at their trip count and at none below.  The exit status is 1 if not.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

for _folder in ("verifier", "rules", "tests/pipeline"):
    sys.path.insert(0, str(Path(__file__).parents[2] / _folder))

import random_scalars  # noqa: E402

from fencepost import ir  # noqa: E402
from fencepost.findings import Severity, Verdict  # noqa: E402
from fencepost.pipeline.check import check_pipeline, pipelines, plan_of  # noqa: E402
from fencepost.pipeline.result import PipelineResult  # noqa: E402
from fencepost.reading import parse  # noqa: E402

TRIPS = range(9)

CONDITIONS = ("k == 0", "k == n - 1", "k % 2 == 0", "k % 3 != 1", "k >= 2", "k + 1 < n", "k > 0 and k % 2 == 1", "f(k)")
SLOTS = ("k % 2", "k % 3", "(k + 1) % 2", "k // 2 % 2", "0", "1")
PLACES = ("k", "k", "k - 1", "k - 2", "k + 1", "2 * k", "k // 2")


def random_text(seed: int) -> str:
    """A kernel with one loop of 1 to 6 statements: copies, in-place updates, atomics, branches, nested loops."""
    r = Random(seed)
    depths = {f"s{i}": r.choice((0, 0, 2, 3)) for i in range(r.randint(1, 3))}
    lines = ["kernel loop(n):", "    assume n >= 0"]
    lines += [f"    buffer {name}{f'[{depth}]' if depth else ''} in Vec" for name, depth in depths.items()]
    lines += ["    buffer G in GM", "    section vector:"]
    if r.random() < 0.3:
        lines.append(f"        fill {_local(r, depths, '0')} <- () @ V")
    body: list[list[str]] = [_statement(r, depths, 0) for _ in range(r.randint(1, 6))]
    count = len(body)
    last = r.randint(0, 4)
    stage = [r.randint(0, last) for _ in range(count)]
    if r.random() < 0.7:
        stage.sort()
    order = list(range(count))
    if r.random() < 0.4:
        r.shuffle(order)
    comma = "," if count == 1 else ""
    notes = f"stage = ({', '.join(map(str, stage))}{comma}), order = ({', '.join(map(str, order))}{comma})"
    lines.append(f"        for k in pipelined(0, n, {notes}):")
    lines += [f"            {line}" for text in body for line in text]
    if r.random() < 0.15:
        lines.append(f"        store D <- {_local(r, depths, '0')} @ MTE3")
    return "\n".join(lines) + "\n"


def memory_text(seed: int) -> str:
    """A random kernel in which memory is less plain, and more of it is read behind the loop."""
    r = Random(seed)
    lines = random_text(seed).splitlines()
    names = [m[1] for line in lines if (m := re.match(r"    buffer (s\d)", line))]
    halves = r.random() < 0.4
    for name in names:
        kind = r.choice(("moved", "reversed", "shared", "plain"))
        for n, line in enumerate(lines):
            depth = int(m[1]) if (m := re.match(rf"    buffer {name}\[(\d)\] in Vec", line)) else 0
            if depth and kind == "moved":
                lines[n] = f"    buffer {name}[{depth + 1}] in Vec"
            elif depth and kind == "reversed":
                lines[n] = f"    buffer {name}[9] in Vec"
            elif depth and kind == "shared":
                lines[n] += f" at {', '.join(str(r.choice((32, 64)) * k) for k in range(depth))} size 64"
            elif line.startswith(" " * 12) and kind in ("moved", "reversed"):
                lines[n] = re.sub(
                    rf"{name}\[(.*?)\]", rf"{name}[\1 + m]" if kind == "moved" else f"{name}[n - 1 - k]", line
                )
            if halves and re.match(rf" +\w+ {name}\b.* <-", line) and line.startswith(" " * 12) and r.random() < 0.5:
                lines[n] = re.sub(r"( @ \w+)", rf"\1 lanes = {r.choice('01')}", lines[n], count=1)
    if r.random() < 0.6:
        name = r.choice(names)
        slot = f"[{r.randint(0, 1)}]" if any(line.startswith(f"    buffer {name}[") for line in lines) else ""
        lines.append(f"        store D <- {name}{slot} @ MTE3")
    lines[:2] = ["kernel loop(n, m):", "    assume 0 <= n <= 8", "    assume 0 <= m <= 1"]
    text = "\n".join(lines) + "\n"
    return text.replace("section vector:", "section cube:") if halves else text


def _local(r: Random, depths: dict[str, int], slot: str | None = None) -> str:
    name = r.choice(list(depths))
    if not depths[name]:
        return name
    return f"{name}[{slot or r.choice([s for s in SLOTS if s != 'k % 3' or depths[name] > 2])}]"


def _statement(r: Random, depths: dict[str, int], nesting: int) -> list[str]:
    kind = r.random()
    if kind < 0.2 and nesting < 2:
        text = [f"if {r.choice(CONDITIONS)}:", *_indented(_statement(r, depths, nesting + 1))]
        if r.random() < 0.5:
            text += ["else:", *_indented(_statement(r, depths, nesting + 1))]
        return text
    if kind < 0.25 and nesting < 2:
        return [
            f"for j{nesting} in range({r.choice(('2', '3', '0'))}):",
            *_indented(_statement(r, depths, nesting + 1)),
        ]
    local, place = _local(r, depths), r.choice(PLACES)
    if kind < 0.45:
        return [f"load {local} <- {r.choice('AAG')} @ MTE2 at ({place})"]
    if kind < 0.65:
        return [f"store {r.choice('CCG')} <- {local} @ MTE3 at ({place})"]
    if kind < 0.8:
        return [f"add {local} <- {local}, {_local(r, depths)} @ V"]
    if kind < 0.88:
        return [f"atomic_add G <- G, {local} @ MTE3"]
    if kind < 0.95:
        return [f"mul {local} <- {_local(r, depths)} @ V"]
    return [f"fill {local} <- () @ V"]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


# ------------------------------------------------------------------------------------------------ what it computes

Memory = dict[tuple[object, ...], object]
Terms = dict[object, int]


class Interpreter:
    """Runs one loop; a value is what computed it: a tuple with the values that went in, as a number of `terms`."""

    def __init__(
        self,
        kernel: ir.Kernel,
        loop: ir.Pipelined,
        trips: int,
        versions: dict[str, int],
        truth: int,
        m: int,
        terms: Terms,
    ) -> None:
        self.kernel, self.loop, self.trips, self.versions, self.truth = kernel, loop, trips, versions, truth
        self.terms = terms
        self.m = m
        self.places = {
            b.name: [e.value for e in b.addresses if isinstance(e, ir.Int)] for b in kernel.buffers if b.addresses
        }
        self.twice = {b.name for b in kernel.buffers if b.space == "Vec"}  # once for each sub-core
        self.memory: Memory = {}
        self.version = 0
        inside = set(map(id, ir.walk(loop)))
        filled = {a.name for n in ir.walk(kernel) if isinstance(n, ir.DataOp) and id(n) not in inside for a in n.writes}
        self.empty = {b.name for b in kernel.buffers if b.space != "GM"} - filled

    def value(self, expr: ir.Expr, env: dict[str, int]) -> int:
        match expr:
            case ir.Int(value):
                return value
            case ir.Name(name):
                return {"n": self.trips, "m": self.m}.get(name, env.get(name, 0))
            case ir.Unary(op, operand):
                return -self.value(operand, env) if op == "-" else int(not self.value(operand, env))
            case ir.Binary(op, left, right):
                a, b = self.value(left, env), self.value(right, env)
                return {"+": a + b, "-": a - b, "*": a * b, "//": a // b if b else 0, "%": a % b if b else 0}[op]
            case ir.Compare(first, rest):
                a, truth = self.value(first, env), True
                for op, operand in rest:
                    b = self.value(operand, env)
                    truth &= {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op]
                    a = b
                return int(truth)
            case ir.Logic(op, operands):
                values = [bool(self.value(o, env)) for o in operands]
                return int(all(values) if op == "and" else any(values))
            case ir.Call("f", (argument,)):
                return (self.truth >> self.value(argument, env)) & 1
        raise AssertionError(expr)

    def cells(self, access: ir.Access, env: dict[str, int], lanes: str = "both") -> list[tuple[object, ...]]:
        name = access.name
        if name == "C":  # an output: each iteration leaves a value of its own
            return [("C", 0, env["k"])]
        version = self.version % self.versions.get(name, 1)
        slot = 0 if access.index is None else self.value(access.index, env)
        units = [slot]
        if name in self.places:  # slots of 64 bytes, in units of 32
            units = [self.places[name][slot] // 32 + n for n in range(2)]
        copies = range(2) if name in self.twice and lanes == "both" else [int(lanes)] if name in self.twice else [0]
        return [(name, version, unit, copy) for unit in units for copy in copies]

    def held(self, cell: tuple[object, ...]) -> object:
        """What is in a cell; a local buffer holds nothing before it is written, in any version but the first."""
        first = cell[1] == 0 and cell[0] not in self.empty
        return self.memory.get(cell, ("before", cell) if first else ())

    def run(self, body: tuple[ir.Stmt, ...], env: dict[str, int], label: tuple[object, ...]) -> None:
        for number, stmt in enumerate(body):
            here = (*label, number)
            match stmt:
                case ir.DataOp(op, writes, reads):
                    at = tuple(self.value(e, env) for e in stmt.at)
                    inputs = tuple(self.held(c) for a in reads for c in self.cells(a, env, stmt.lanes))
                    constant = op == "fill"
                    term = (op, label[0], number) if constant else (op, here, tuple(sorted(env.items())), at, inputs)
                    value = self.terms.setdefault(term, len(self.terms))
                    for a in writes:
                        for place, cell in enumerate(self.cells(a, env, stmt.lanes)):
                            self.memory[cell] = (value, place, here if constant else None)
                        if a.name == "C":  # and so does each statement, in each round of a loop
                            self.memory["C", here, tuple(sorted(env.items()))] = value
                case ir.If(branches, orelse):
                    arms = [(arm, k) for k, (c, arm) in enumerate(branches) if self.value(c, env)]
                    arm, k = arms[0] if arms else (orelse, -1)
                    self.run(arm, env, (*here, k))
                case ir.For():
                    for j in range(self.value(stmt.start, env), self.value(stmt.stop, env)):
                        self.run(stmt.body, {**env, stmt.var: j}, here)

    def iteration(self, number: int, k: int, split: bool) -> None:
        self.version = k if split else 0
        self.run((self.loop.body[number],), {"k": k}, (number,))

    def serial(self) -> Memory:
        for k in range(self.trips):
            for number in range(len(self.loop.body)):
                self.iteration(number, k, False)
        return self.memory

    def pipelined(self) -> Memory:
        stage, order = self.loop.stage, self.loop.order
        assert stage is not None and order is not None
        if len(set(stage)) == 1:
            return self.serial()
        last, emitted = max(stage), sorted(range(len(stage)), key=lambda s: order[s])
        times = [*range(last), *range(last, self.trips), *range(self.trips, self.trips + last)]
        for t in times:
            for number in emitted:
                if 0 <= t - stage[number] < self.trips:
                    self.iteration(number, t - stage[number], True)
        return self.memory


def differs(
    kernel: ir.Kernel,
    loop: ir.Pipelined,
    trips: int,
    versions: dict[str, int],
    truth: int,
    m: int = 0,
    whole: bool = False,
) -> bool:
    """Whether the two programs leave something different where it can be seen; in a `whole` buffer that is read later,
    or in the slot that is.
    """
    local = {b.name for b in kernel.buffers if b.space != "GM"}
    names = {a.name for n in ir.walk(kernel) if isinstance(n, ir.DataOp) for a in (*n.writes, *n.reads)}
    after = [a for n in ir.walk(kernel) if isinstance(n, ir.DataOp) and n.writes[0].name == "D" for a in n.reads]
    terms: Terms = {}
    one, other = (Interpreter(kernel, loop, trips, v, truth, m, terms) for v in ({}, versions))
    before, result = one.serial(), other.pipelined()
    one.version = other.version = 0
    seen = [c for c in {*before, *result} if c[0] not in local and c[0] in names]
    if whole:
        seen += [c for c in {*before, *result} if c[0] in {a.name for a in after} and c[1] == 0]
    else:
        seen += [c for a in after for c in one.cells(a, {})]
    return any(one.held(c) != other.held(c) for c in seen)


def examine(seed: int, memory: bool = False) -> tuple[str, str]:
    """The verdict on one random loop, and what is wrong with it (empty: nothing)."""
    kernel = parse(memory_text(seed) if memory else random_text(seed))
    loop = pipelines(kernel)[0]
    result = check_pipeline(loop, kernel)
    plan = plan_of(loop, kernel)
    if plan is None and memory and "share memory" in result.evidence:
        return "shared", ""
    if plan is None:
        return "rejected", "" if result.verdict is Verdict.REFUTED else f"rejected, but {result.verdict}"
    unknown = any(isinstance(n, ir.Call) and n.function == "f" for n in ir.walk(loop))
    tables = (0, -1, 0b0101010101, 0b0011001100, 0b1110001011) if unknown else (0,)
    moves = range(2) if memory else range(1)

    def bad(whole: bool) -> list[int]:
        cases = [(f, m, whole) for f in tables for m in moves]
        return [t for t in TRIPS if any(differs(kernel, loop, t, plan.versions, *case) for case in cases)]

    return result.verdict.value, _judged(result, bad(False), bad(True), unknown)


def _judged(result: PipelineResult, bad: list[int], near: list[int], unknown: bool) -> str:
    """`near`: trip counts with a difference in a buffer that is read later; which of its slots is not always told."""
    if result.verdict is Verdict.PROVED and bad:
        return f"proved, but {bad[0]} trips differ"
    shown = [f.trips for f in result.faults if f.trips is not None and f.severity is Severity.ERROR]
    if shown and not unknown:
        first = min(shown)
        if first in TRIPS and first not in (*bad[:1], *near[:1]):
            return f"witness of {first} trips, but {bad[:1]} differ"
    return ""


def problems(seeds: range, verdicts: Counter[str], memory: bool = False) -> Iterator[str]:
    """What is wrong with the loops of some seeds; counts their verdicts."""
    for seed in seeds:
        verdict, problem = examine(seed, memory)
        verdicts[verdict] += 1
        if problem:
            yield f"seed {seed}: {problem}"


def main() -> int:
    """Examine a range of seeds and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=2000, help="random loops")
    parser.add_argument("--scalars", action="store_true", help="loops that compute with scalars and binds")
    parser.add_argument("--memory", action="store_true", help="loops with less plain memory")
    args = parser.parse_args()
    verdicts: Counter[str] = Counter()
    seeds = range(args.seed, args.seed + args.count)
    if args.scalars:
        results = list(random_scalars.problems(seeds))
        verdicts.update(verdict for verdict, _ in results)
        found = [problem for _, problem in results if problem]
    else:
        found = list(problems(seeds, verdicts, args.memory))
    print("\n".join([*found, ", ".join(f"{count} {word}" for word, count in verdicts.most_common())]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
