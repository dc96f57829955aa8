"""Which trip counts can a pipelined loop of a kernel have, and for which parameters?"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.model.functions import FunctionTable, Point
from fencepost.pipeline.forms import SOMEWHERE, Form, Scope
from fencepost.pipeline.setting import ITERATION, Setting
from fencepost.pipeline.smt import Writer, number, quoted
from fencepost.pipeline.surroundings import Surroundings
from fencepost.pipeline.trips import Trips, Unclear
from fencepost.prove.solver import Session

_MAX_STEPS = 12
"""Attempts to make the parameters of a witness smaller."""

_TRIPS = "#trips"


def trips_of(loop: ir.Pipelined, around: Surroundings) -> Trips:
    """The possible trip counts of `loop`."""
    scope = around.scope(loop)
    first, last = scope.form(loop.start), scope.form(loop.stop)
    count = last.plus(first.times(-1)) if first is not None and last is not None else None
    free = not around.kernel.assumes and not around.enclosing
    if free and count is not None and count.invariant:
        names = around.kernel.parameters
        if count.value is not None:
            return Simple(names, None, max(0, count.value))
        if len(count.rest) == 1 and count.rest[0][1] in (1, -1):
            term, factor = count.rest[0]
            if isinstance(term, ir.Name) and term.id in names:
                return Simple(names, (term.id, factor, count.sequence.values[0]))
    return Solved(around, scope, loop, count)


def further_round(loop: ir.Pipelined, around: Surroundings) -> ir.Expr:
    """The condition that some loop around `loop` has a round after that in which `loop` is reached.

    A jump may still keep that from being run.
    """
    text = around.scope(loop).extended().text
    parts: list[ir.Expr] = []
    for owner, _ in around.enclosing:
        if not isinstance(owner, ir.If):
            step = text(owner.step) if isinstance(owner, ir.For) else ir.Int(1)
            value, stop = ir.Binary("+", ir.Name(owner.var), step), text(owner.stop)
            up = ir.Logic("and", (ir.Compare(ir.Int(0), (("<", step),)), ir.Compare(value, (("<", stop),))))
            down = ir.Logic("and", (ir.Compare(ir.Int(0), ((">", step),)), ir.Compare(value, ((">", stop),))))
            parts += [up, down]
    return ir.Logic("or", tuple(parts))


@dataclass(frozen=True, slots=True)
class Simple:
    """A constant trip count, or one that a single unconstrained parameter decides.

    `deciding` is (parameter, factor, constant): trips = factor * parameter + constant, or 0 if that is negative.
    """

    parameters: tuple[str, ...]
    deciding: tuple[str, int, int] | None
    constant: int = 0

    def only(self) -> int | None:
        return self.constant if self.deciding is None else None

    def least(self, at_least: int, residue: int = 0, modulus: int = 1) -> int | None:
        if self.deciding is None:
            return self.constant if self.constant >= at_least and self.constant % modulus == residue else None
        return at_least + (residue - at_least) % modulus

    def setting(self, trips: int) -> Setting | None:
        names = dict.fromkeys(self.parameters, 0)
        if self.deciding is None:
            return Setting(names) if trips == self.constant else None
        name, factor, constant = self.deciding
        value = 0 if trips == 0 and constant <= 0 else (trips - constant) * factor
        names[name] = value
        return Setting(names)

    def given(self, condition: ir.Expr, holds: bool) -> Trips:
        return _Constrained(self, ((condition, holds),))

    def computed(self, condition: ir.Expr) -> str | None:
        return _other_name(condition, {*self.parameters, *ir.BUILTINS, ITERATION})


@dataclass(frozen=True)
class _Constrained:
    """Trip counts under further conditions on the parameters."""

    simple: Simple
    conditions: tuple[tuple[ir.Expr, bool], ...]

    def only(self) -> int | None:
        return self.simple.only()

    def least(self, at_least: int, residue: int = 0, modulus: int = 1) -> int | None:
        return self._solver().least(at_least, residue, modulus)

    def setting(self, trips: int) -> Setting | None:
        return self._solver().setting(trips)

    def given(self, condition: ir.Expr, holds: bool) -> Trips:
        return replace(self, conditions=(*self.conditions, (condition, holds)))

    def computed(self, condition: ir.Expr) -> str | None:
        return self.simple.computed(condition)

    def _solver(self) -> _Query:
        simple = self.simple
        count: ir.Expr = ir.Int(simple.constant)
        if simple.deciding is not None:
            name, factor, constant = simple.deciding
            scaled = ir.Binary("*", ir.Int(factor), ir.Name(name))
            count = ir.Call("max", (ir.Int(0), ir.Binary("+", scaled, ir.Int(constant))))
        return _Query(simple.parameters, count, self.conditions)


@dataclass(frozen=True)
class Solved:
    """Trip counts under the assumes of the kernel and the loops and branches around the loop."""

    around: Surroundings
    scope: Scope
    loop: ir.Pipelined
    count: Form | None
    conditions: tuple[tuple[ir.Expr, bool], ...] = ()

    def only(self) -> int | None:
        return max(0, self.count.value) if self.count is not None and self.count.value is not None else None

    def least(self, at_least: int, residue: int = 0, modulus: int = 1) -> int | None:
        return self._query().least(at_least, residue, modulus)

    def setting(self, trips: int) -> Setting | None:
        return self._query().setting(trips)

    def given(self, condition: ir.Expr, holds: bool) -> Trips:
        return replace(self, conditions=(*self.conditions, (condition, holds)))

    def computed(self, condition: ir.Expr) -> str | None:
        around = {owner.var for owner, _ in self.around.enclosing if not isinstance(owner, ir.If)}
        return _other_name(condition, self._known() | around | {ITERATION})

    def _is_settled(self, condition: ir.Expr, known: Container[str]) -> bool:
        """Whether a condition has the same value wherever it stands in a round of the loops around."""
        return _other_name(condition, known) is None and not any(
            isinstance(n, (ir.Item, ir.Field)) or (isinstance(n, ir.Call) and n.function == SOMEWHERE)
            for n in ir.walk(condition)
        )

    def _known(self) -> set[str]:
        kernel = self.around.kernel
        return set(kernel.parameters) | set(ir.BUILTINS) | {c.name for c in kernel.constants}

    def _query(self) -> _Query:
        scope, kernel = self.scope, self.around.kernel
        text = scope.extended().text
        conditions = [(text(a), True) for a in kernel.assumes]
        known = self._known()
        for owner, branch in self.around.enclosing:
            if isinstance(owner, ir.If):
                arms = owner.branches if branch < 0 else owner.branches[: branch + 1]
                conditions += [(text(c), branch >= 0 and c is arms[-1][0]) for c, _ in arms]
                continue
            known.add(owner.var)
            inside: list[tuple[ir.Expr, bool]] = [
                (ir.Compare(text(owner.start), (("<=", ir.Name(owner.var)), ("<", text(owner.stop)))), True)
            ]
            if isinstance(owner, ir.For) and owner.step != ir.Int(1):
                known.add(f"#turn of {owner.var}")
                inside = _strided(owner, text(owner.start), text(owner.stop), _step(owner, text(owner.step)))
            conditions += inside
        conditions += [(c, False) for c in map(text, self.around.passed) if self._is_settled(c, known)]
        span = ir.Binary("-", text(self.loop.stop), text(self.loop.start))
        count = ir.Call("max", (ir.Int(0), span))
        for expr in (count, *(c for c, _ in conditions)):
            if (name := _other_name(expr, known)) is not None:
                raise Unclear(f"how often the loop runs depends on {name}, which the kernel computes")
        names = (*kernel.parameters, *sorted(known - set(kernel.parameters) - {c.name for c in kernel.constants}))
        return _Query(names, count, (*conditions, *self.conditions))


def _other_name(expr: ir.Expr, known: Container[str]) -> str | None:
    """A name in the expression that is not known."""
    names = (n.id for n in ir.walk(expr) if isinstance(n, ir.Name))
    return next((name for name in names if name not in known), None)


def _step(owner: ir.For, step: ir.Expr) -> int:
    match step:
        case ir.Int(value):
            return value
        case ir.Unary("-", ir.Int(value)):
            return -value
    raise Unclear(f"the step of the loop over {owner.var} is not constant")


def _strided(owner: ir.For, start: ir.Expr, stop: ir.Expr, step: int) -> list[tuple[ir.Expr, bool]]:
    variable, turn = ir.Name(owner.var), ir.Name(f"#turn of {owner.var}")
    place = ir.Binary("+", start, ir.Binary("*", ir.Int(step), turn))
    inside = ir.Compare(variable, (("<" if step > 0 else ">", stop),))
    return [
        (ir.Compare(variable, (("==", place),)), True),
        (ir.Compare(ir.Int(0), (("<=", turn),)), True),
        (inside, True),
    ]


@dataclass(frozen=True)
class _Query:
    """Parameters `names`, the trip count as an expression over them, and conditions with their truth."""

    names: tuple[str, ...]
    count: ir.Expr
    conditions: tuple[tuple[ir.Expr, bool], ...]

    def least(self, at_least: int, residue: int, modulus: int) -> int | None:
        writer, base = self._base()
        trips = quoted(_TRIPS)
        base.append(f"(assert (>= {trips} {number(at_least)}))")
        base.append(f"(assert (= (mod {trips} {modulus}) {residue}))")
        session = self._session(writer, base)
        result = None
        while (found := _model(session)) is not None:
            result = found[_TRIPS]
            session.add(f"(assert (< {trips} {number(result)}))")
        return result

    def setting(self, trips: int) -> Setting | None:
        writer, base = self._base()
        base.append(f"(assert (= {quoted(_TRIPS)} {number(trips)}))")
        session = self._session(writer, base)
        values = _model(session)
        if values is None:
            return None
        size = " ".join(f"(abs {quoted(n)})" for n in writer.names if not n.startswith("#")) or "0"
        for _ in range(_MAX_STEPS):
            total = sum(abs(values.get(n, 0)) for n in writer.names if not n.startswith("#"))
            session.add(f"(assert (< (+ 0 {size}) {number(total)}))")
            smaller = _model(session)
            if smaller is None:
                break
            values = smaller
        names = {n: values.get(n, 0) for n in self.names if n in writer.names or n not in ir.BUILTINS}
        setting = Setting({n: v for n, v in names.items() if not n.startswith("#")})
        points: dict[Point, int] = {}
        for (function, arguments), constant in writer.applications.items():
            table = FunctionTable(points)
            place = tuple(Setting(setting.names, table).value(a, 0) for a in arguments)
            points[function, place] = values.get(constant.strip("|"), 0)
        return Setting(setting.names, FunctionTable(points))

    def _base(self) -> tuple[Writer, list[str]]:
        writer = Writer()
        trips = ir.Compare(ir.Name(_TRIPS), (("==", self.count),))
        lines = [f"(assert {writer.condition(trips)})"]
        for condition, holds in self.conditions:
            text = writer.condition(condition)
            lines.append(f"(assert {text})" if holds else f"(assert (not {text}))")
        if "sub" in writer.names:
            lines.append("(assert (<= 0 |sub| 1))")
        if "block" in writer.names:
            lines.append("(assert (<= 0 |block|))")
        return writer, lines

    def _session(self, writer: Writer, lines: list[str]) -> Session:
        session = Session()
        session.add("\n".join((writer.declarations(), *lines)))
        return session


def _model(session: Session) -> dict[str, int] | None:
    """Values of all names for which what was asked so far holds, if there are any."""
    found = session.check()
    if found.answer == "unknown":
        raise Unclear(f"which trip counts are possible was not decided: {found.reason}")
    return found.model if found.answer == "sat" else None
