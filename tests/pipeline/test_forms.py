"""Expressions as sequences and guards against their plain evaluation."""

from __future__ import annotations

from random import Random

from fencepost import ir
from fencepost.model.functions import FunctionTable
from fencepost.pipeline.forms import Scope
from fencepost.pipeline.setting import ITERATION, Setting
from fencepost.pipeline.smt import Writer, quoted
from fencepost.pipeline.smt import number as literal
from fencepost.prove.solver import check

K, N = ir.Name("k"), ir.Name("n")


def _integer(r: Random, depth: int) -> ir.Expr:
    if depth == 0 or r.random() < 0.25:
        return r.choice((K, K, ir.Int(r.randint(-3, 5)), N, ir.Name("p"), ir.Name("TWO")))
    kind = r.random()
    if kind < 0.15:
        return ir.Unary("-", _integer(r, depth - 1))
    if kind < 0.4:
        divisor = ir.Int(r.choice((-3, -2, 1, 2, 3, 4)))
        op = r.choice(("//", "%"))
        return ir.Binary("//" if op == "//" else "%", _integer(r, depth - 1), divisor)
    if kind < 0.45:
        return ir.Item("IDS", ir.Binary("%", _integer(r, depth - 1), ir.Int(3)))
    if kind < 0.5:
        return ir.Call("f", (_integer(r, depth - 1),))
    if kind < 0.55:
        return ir.Choose(_condition(r, depth - 1), _integer(r, depth - 1), _integer(r, depth - 1))
    left, right = _integer(r, depth - 1), _integer(r, depth - 1)
    return r.choice((ir.Binary("+", left, right), ir.Binary("-", left, right), ir.Binary("*", left, right)))


def _condition(r: Random, depth: int) -> ir.Expr:
    kind = r.random()
    if depth > 0 and kind < 0.2:
        return ir.Unary("not", _condition(r, depth - 1))
    if depth > 0 and kind < 0.4:
        return ir.Logic(r.choice(("and", "or")), (_condition(r, depth - 1), _condition(r, depth - 1)))
    first, second = _integer(r, max(depth - 1, 0)), _integer(r, max(depth - 1, 0))
    op = r.choice(("<", "<=", ">", ">=", "==", "!="))
    return ir.Compare(first, ((op, second),))


def _plain(expr: ir.Expr, k: int, names: dict[str, int], table: FunctionTable) -> int:
    """The value of an expression with the loop variable as it is."""
    filled = {**names, "k": k, "TWO": 2}

    def tuples(name: str, arguments: tuple[int, ...]) -> int:
        if name == "IDS" and 0 <= arguments[0] < 3:
            return (4, 7, 5)[arguments[0]]
        return table(name, arguments)

    class Tuples(FunctionTable):
        def __call__(self, name: str, arguments: tuple[int, ...]) -> int:
            return tuples(name, arguments)

    return Setting(filled, Tuples()).value(expr, 0)


def test_expressions() -> None:
    sequences = 0
    for seed in range(1200):
        r = Random(seed)
        start, trips = r.randint(0, 3), r.randint(0, 7)
        first: ir.Expr = ir.Int(start)
        last: ir.Expr = r.choice((N, ir.Binary("+", N, ir.Int(1)), ir.Int(start + trips)))
        names = {"p": r.randint(-2, 4), "n": start + trips - (1 if isinstance(last, ir.Binary) else 0)}
        constants = {"TWO": ir.Int(2), "IDS": (ir.Int(4), ir.Int(7), ir.Int(5))}
        scope = Scope("k", first, last, constants)
        table = FunctionTable(seed=seed, low=-3, high=9)
        setting = Setting(names, table)
        number, condition = _integer(r, 3), _condition(r, 2)
        form, text, guard = scope.form(number), scope.text(number), scope.guard(condition)
        for i in range(trips):
            wanted = _plain(number, start + i, names, table)
            assert setting.value(text, i) == wanted, f"seed {seed}"
            if form is not None:
                sequences += 1
                rest = sum(factor * setting.value(term, i) for term, factor in form.rest)
                assert form.sequence(i) + rest == wanted, f"seed {seed}"
            truth = bool(_plain(condition, start + i, names, table))
            assert guard.holds(i, trips, setting) == truth, f"seed {seed}, iteration {i} of {trips}"
    assert sequences > 1000


def test_solver_text() -> None:
    """The SMT-LIB text of an expression has the value of the expression."""
    for seed in range(60):
        r = Random(seed)
        number = Scope("k", ir.Int(0), N, {"TWO": ir.Int(2)}).text(_integer(r, 3))
        names = {"n": r.randint(-4, 6), "p": r.randint(-4, 6), ITERATION: r.randint(0, 5)}
        table = FunctionTable(seed=seed, low=-3, high=9)
        wanted = Setting(names, table).value(number, names[ITERATION])
        writer = Writer()
        text = writer.integer(number)
        lines = [writer.declarations()]
        for name, value in names.items():
            if name in writer.names:
                lines.append(f"(assert (= {quoted(name)} {literal(value)}))")
        for (function, arguments), value in table.used.items():
            applied = f"({quoted(function)} {' '.join(map(literal, arguments))})"
            lines.append(f"(assert (= {applied} {literal(value)}))")
        lines.append(f"(assert (distinct {text} {literal(wanted)}))")
        assert check("\n".join(lines)).answer == "unsat", f"seed {seed}"
