"""Does our skew of a printed kernel give the loops that the compiler printed?"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fencepost import ir
from fencepost.frontends.pypto_ir import read
from fencepost.passes.skew import LoopOutcome, Reason, Skew, SkewError
from fencepost.passes.skew.names import Flows

CASES = Path(__file__).parents[2].parent / "shared" / "cases" / "pypto_ir" / "skew"
pytestmark = pytest.mark.skipif(not CASES.exists(), reason=f"no cases at {CASES}")

REASONS = {
    "stage is 1": Reason.STAGE_ONE,
    "start or stop not constant": Reason.BOUNDS,
    "trip < 2": Reason.SHORT,
    "producer uses a loop-carried value": Reason.CARRIED_IN,
    "not exactly one push and one pop": Reason.MESSAGES,
    "carried value that cannot be recomputed": Reason.CARRIED_OVER,
    "no top-level push and pop": Reason.NO_PAIR,
}


@cache
def index() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((CASES / "index.json").read_text()) if CASES.exists() else []
    return loaded


def kernels(file: str) -> dict[str, ir.Kernel]:
    result = read((CASES / file).read_text(), file)
    assert not result.errors
    return {k.name: k for k in result.kernels}


# ------------------------------------------------------------------------------------------------ structure


@dataclass
class Canon:
    """A statement list up to names and copies: every value is numbered in the order in which it is computed."""

    flows: Flows = field(default_factory=lambda: Flows(()))
    env: dict[str, Any] = field(default_factory=dict)
    count: int = 0

    def new(self) -> int:
        self.count += 1
        return self.count

    def value(self, name: str) -> Any:
        return self.env.get(name, ("input", name))

    def expr(self, e: ir.Expr) -> Any:
        """Linear combinations in normal form; anything else by its parts."""
        return self._show(self._linear(e))

    def _show(self, linear: dict[Any, int]) -> Any:
        return tuple(sorted(((repr(atom), factor) for atom, factor in linear.items() if factor), key=repr))

    def _linear(self, e: ir.Expr) -> dict[Any, int]:
        match e:
            case ir.Int(value=value):
                return {1: value}
            case ir.Unary(op="-", operand=operand):
                return {k: -v for k, v in self._linear(operand).items()}
            case ir.Binary(op="+" | "-" as op, left=left, right=right):
                out = dict(self._linear(left))
                for k, v in self._linear(right).items():
                    out[k] = out.get(k, 0) + (v if op == "+" else -v)
                return out
            case ir.Binary(op="*", left=left, right=right):
                a, b = self._linear(left), self._linear(right)
                for x, y in ((a, b), (b, a)):
                    if set(x) <= {1}:
                        return {k: v * x.get(1, 0) for k, v in y.items()}
                return {("*", self._show(a), self._show(b)): 1}
            case ir.Name(id=name):
                return {self.value(name): 1}
            case ir.Binary(op=op, left=left, right=right):
                return {(op, self.expr(left), self.expr(right)): 1}
            case ir.Compare(first=first, rest=rest):
                return {("compare", self.expr(first), tuple((op, self.expr(x)) for op, x in rest)): 1}
            case ir.Call(function=function, arguments=arguments):
                return {("call", function, tuple(self.expr(a) for a in arguments)): 1}
        raise AssertionError(e)

    def block(self, stmts: tuple[ir.Stmt, ...]) -> list[Any]:
        out: list[Any] = []
        for s in stmts:
            match s:
                case ir.DataOp(op="copy", writes=(ir.Access(name=target),), reads=(ir.Access(name=source),)):
                    self.env[target] = self.value(source)
                case ir.Assign(name=target, value=ir.Name(id=source)):
                    self.env[target] = self.value(source)
                case ir.Assign(name=target, value=value):
                    out.append(("assign", self.expr(value)))
                    self.env[target] = self.new()
                case ir.DataOp():
                    reads = [self.value(a.name) for a in s.reads]
                    out.append((s.op, s.pipe, reads, [self.expr(e) for e in s.at], len(s.writes)))
                    for a in s.writes:
                        self.env[a.name] = self.new()
                case ir.Push():
                    out.append(("push", s.receiver, self.expr(s.id), self.value(s.value)))
                case ir.Pop():
                    out.append(("pop", s.sender, self.expr(s.id)))
                    self.env[s.value] = self.new()
                case ir.Free():
                    out.append(("free", s.sender, self.expr(s.id), self.value(s.value)))
                case ir.WaitCross() | ir.SetCross():
                    out.append((type(s).__name__, self.expr(s.id), s.pipe, s.mode))
                case ir.If():
                    out.append(self.branches(s))
                case ir.For():
                    out.append(self.loop(s))
                case _:
                    raise AssertionError(s)
        return out

    def branches(self, s: ir.If) -> Any:
        start = dict(self.env)
        arms, ends = [], []
        for condition, body in (*s.branches, (None, s.orelse)):
            self.env = dict(start)
            test = None if condition is None else self.expr(condition)
            arms.append((test, self.block(body)))
            ends.append(self.env)
        self.env = dict(start)
        for name in sorted(set().union(*ends)):
            values = [end.get(name) for end in ends]
            if any(v != start.get(name) for v in values):
                self.env[name] = ("phi", self.count, repr(values))
        return ("if", arms)

    def loop(self, s: ir.For) -> Any:
        bounds = [self.expr(e) for e in (s.start, s.stop, s.step)]
        flow = self.flows.of_all(s.body)
        carried = self.order([n for n in flow.exposed & flow.may if n != s.var], s.body)
        number = self.new()
        before = [self.value(name) for name in carried]
        for k, name in enumerate(carried):
            self.env[name] = ("carried", number, k)
        self.env[s.var] = ("variable", number)
        body = self.block(s.body)
        after = [self.value(name) for name in carried]
        for k, name in enumerate(carried):
            self.env[name] = ("after", number, k)
        return ("for", bounds, None if s.stage is None else self.expr(s.stage), before, body, after)

    def order(self, names: list[str], body: tuple[ir.Stmt, ...]) -> list[str]:
        """Loop-carried names by the statement that first uses them."""
        seen: list[str] = []
        for node in ir.walk(ir.For("", ir.Int(0), ir.Int(0), ir.Int(0), body)):
            reads: list[str] = []
            match node:
                case ir.DataOp(op="copy"):
                    pass
                case ir.DataOp(reads=accesses):
                    reads = [a.name for a in accesses]
                case ir.Name(id=name) | ir.Push(value=name) | ir.Free(value=name):
                    reads = [name]
                case _:
                    pass
            seen += [n for n in reads if n in names and n not in seen]
        return [*seen, *sorted(n for n in names if n not in seen)]


def canon(kernel: ir.Kernel) -> Any:
    out = []
    for item in kernel.body:
        assert isinstance(item, ir.Section)
        if not any(isinstance(s, ir.Unsupported) for s in item.body):
            out.append((item.core, Canon().block(item.body)))
    return out


# ------------------------------------------------------------------------------------------------ tests


@pytest.mark.parametrize("case", [c for c in index() if c["after"]], ids=lambda c: str(c["name"]))
def test_pair(case: dict[str, Any]) -> None:
    before, after = kernels(case["before"]), kernels(case["after"])
    assert set(before) == set(after)
    outcomes: dict[str, list[LoopOutcome]] = {}
    for name, kernel in before.items():
        skewed = Skew().run(kernel)
        outcomes[name] = list(skewed.loops)
        assert canon(skewed.kernel) == canon(after[name])
        assert canon(skewed.kernel) != canon(kernel) or all(o.action == "left" for o in skewed.loops)
        assert Skew().run(skewed.kernel).kernel == skewed.kernel
        assert Skew().run(after[name]).kernel == after[name]
    for loop in case["loops"]:
        outcome = outcomes[loop["function"]].pop(0)
        assert outcome.action == loop["outcome"]
        assert outcome.stage == loop["stage"]
        assert outcome.depth == loop.get("depth")
        if "reason" in loop:
            assert outcome.reasons[0] is REASONS[loop["reason"]]
    assert not any(outcomes.values())


@pytest.mark.parametrize("case", [c for c in index() if not c["after"]], ids=lambda c: str(c["name"]))
def test_exception(case: dict[str, Any]) -> None:
    (kernel,) = kernels(case["before"]).values()
    with pytest.raises(SkewError, match="step") as raised:
        Skew().run(kernel)
    assert raised.value.input_error().line == 9
