"""Checker: what does each agent of a kernel do, if the formulas that a certificate gives for its loops are right?

A second symbolic execution, on plain terms.  It finds no formula itself: at the head of every loop it takes the given
ones, and claims what proves them by induction.  A claim is a list of conditions that must not hold together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from fencepost import ir
from fencepost.model.effects import Effect, Resolver
from fencepost.model.program import constant, site_arguments
from fencepost.prove.plainterms import (
    Term,
    add,
    both,
    conjuncts,
    either,
    eq,
    ite,
    le,
    lt,
    make,
    minus,
    no,
    short,
    subst,
)

Claim = tuple[str, tuple[Term, ...]]
COMPARISONS: dict[str, Callable[[Term, Term], Term]] = {
    "==": eq, "!=": lambda a, b: no(eq(a, b)),
    "<": lt, "<=": le, ">": lambda a, b: lt(b, a), ">=": lambda a, b: le(b, a),
}  # fmt: skip
Formulas = dict[str, Term]
"""The values at the head of a loop as terms in its index; None: nothing is known of this one."""


class Rejected(Exception):
    """The certificate does not fit the kernel; the message says where."""


def fields_of(item: Any, *names: str) -> list[Any]:
    """The values of an object that has exactly these fields."""
    if not isinstance(item, dict) or item.keys() != set(names):
        raise Rejected(f"not an object with the fields {', '.join(names)}")
    return [item[name] for name in names]


@dataclass(frozen=True, eq=False)
class Event:
    """One operation in one copy of an unrolled loop; its executions are the values of `indices` that satisfy `path`.

    `before` counts what its agent did earlier.  `does` holds everything that is counted, with its condition.  `place`
    orders the executions of an agent lexicographically.
    """

    name: str
    agent: str
    stmt: Any
    indices: tuple[str, ...]
    place: tuple[Term, ...]
    path: tuple[Term, ...]
    arguments: tuple[Term, ...]
    task: Term | None
    effects: tuple[Effect, ...]
    before: Mapping[str, Term]
    does: Mapping[str, Term]

    @property
    def pipe(self) -> str:
        flag = {ir.SyncSrc: "source", ir.SyncDst: "target"}.get(type(self.stmt), "pipe")
        return "S" if isinstance(self.stmt, (ir.Barrier, ir.SyncAll)) else str(getattr(self.stmt, flag))


@dataclass
class Walk:
    """Executes one agent's statements, numbered in text order by identity.

    The environment holds scalars, records, cursors, and counters ("set 0").
    """

    resolver: Resolver
    agent: str
    loops: dict[str, Formulas]
    operands: dict[str, list[tuple[int, ...]]]
    claims: list[Claim] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    env: dict[str, Term] = field(default_factory=dict)
    _path: tuple[Term, ...] = ()
    _depth: int = 0  # how much of the path holds for the whole trip of the innermost loop
    _left: Term = "false"  # whether `continue` has ended the trip
    _changed: set[str] = field(default_factory=set)
    _indices: tuple[str, ...] = ()
    _place: tuple[Term, ...] = ()
    _copies: str = ""

    def __post_init__(self) -> None:
        self.compiled = self.resolver.compiled
        core = "cube" if self.agent == "aic" else "vector"
        items = [i for i in self.compiled.kernel.body if not isinstance(i, ir.Section) or i.core == core]
        self.body = tuple(s for item in items for s in (item.body if isinstance(item, ir.Section) else (item,)))
        nodes = (node for stmt in self.body for node in ir.walk(stmt) if isinstance(node, ir.Stmt))
        self.numbers = {id(node): number for number, node in enumerate(nodes)}
        self.env |= {p: f"${plain(p)}" for p in self.compiled.parameters} | {"sub": int(self.agent == "aiv1")}
        self.env |= {f"cursor of {name}": depth - 1 for name, depth in self.compiled.depths.items()}

    def run(self) -> Walk:
        """Execute everything."""
        self._block(self.body)
        return self

    def demand(self, name: str, safe: Term) -> None:
        """Claim something of every value of the indices with which control is here."""
        self.claims.append((f"{self.agent}: {name}", (*self._path, no(safe))))

    def _put(self, values: Mapping[str, Term]) -> None:
        """Assign where control is here, and leave things alone elsewhere."""
        here = both(*self._path[self._depth :])
        self.env |= {key: ite(here, short(value), self.env.get(key, 0)) for key, value in values.items()}
        self._changed |= values.keys()

    def _block(self, body: tuple[ir.Stmt, ...]) -> None:
        path = self._path
        for stmt in body:
            if self._left != "false":
                self._path = (*path, no(self._left))
            if "false" not in self._path:
                self._statement(stmt)
        self._path = path

    def _statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Assign(name=name, value=value) | ir.Bind(name=name, value=value):
                self._put({name: self.integer(value)})
            case ir.StoreField(ring=ring, index=index, field=name, value=value):
                where, new = self.integer(index), self.integer(value)
                records = self._records(ring, name, where)
                self._put({r: ite(eq(where, i), new, self.env.get(r, 0)) for i, r in enumerate(records)})
            case ir.Cursor(name=name, buffer=buffer, move=move):
                cursor, step = f"cursor of {buffer}", {"next": 1, "previous": -1, "current": 0}[move]
                where = make("mod", add(self.env[cursor], step), self.compiled.depths[buffer])
                self._put({name: where, cursor: where} if move == "next" else {name: where})
            case ir.If(branches=((test, body), *more), orelse=orelse):
                condition, rest = self.truth(test), (ir.If(tuple(more), orelse),) if more else orelse
                self._under(condition, self._block, body)
                self._under(no(condition), self._block, rest)
            case ir.For():
                self._loop(stmt)
            case ir.Assert(condition=test):
                self.demand("assert", self.truth(test))
            case ir.Continue():
                self._left = either(self._left, both(*self._path[self._depth :]))
            case ir.Break() | ir.Unsupported() | ir.Pipelined():
                raise Rejected(f"{type(stmt).__name__.lower()} is not certified")
            case _ if not isinstance(stmt, ir.Pass):
                self._operation(stmt)

    def _operation(self, stmt: Any) -> None:
        number, task = self.numbers[id(stmt)], getattr(stmt, "task", None)
        arguments = tuple(map(self.integer, site_arguments(stmt, frozenset(self.compiled.depths))))
        name, effects, legal, does = (
            f"{self.agent}.{number}{self._copies}",
            list[Effect](),
            list[Term](),
            dict[str, Term](),
        )
        for values in self.operands.pop(name, ()) if arguments else [()]:
            condition = both(*(eq(a, value) for a, value in zip(arguments, values, strict=True)))
            effects.append(self.resolver.effect(self.agent, number, stmt, values))
            does |= {key: either(does.get(key, "false"), condition) for key in actions(effects[-1])}
            legal += [] if effects[-1].illegal else [condition]
        if effects or not isinstance(stmt, ir.DataOp) or stmt.phase is not None:
            self.demand(f"operands of {name}", either(*legal))
        renewed = (stmt.value,) if isinstance(stmt, ir.Pop) else (a.name for a in getattr(stmt, "writes", ()))
        popped = {site.value for site in self.compiled.program(self.agent).sites if isinstance(site, ir.Pop)}
        does |= {f"run {name}": "true", **{f"renew {value}": "true" for value in renewed if value in popped}}
        self.events.append(Event(
            name, self.agent, stmt, self._indices, (*self._place, number), self._path, arguments,
            None if task is None else self.integer(task), tuple(effects), dict(self.env), does,
        ))  # fmt: skip
        here = self._path[self._depth :]
        uncounted = ("acquire ", "leave ", "adds ")
        counted = {key: both(*here, condition) for key, condition in does.items() if not key.startswith(uncounted)}
        self.env |= {key: add(self.env.get(key, 0), ite(condition, 1, 0)) for key, condition in counted.items()}
        self._changed |= counted.keys()

    def _loop(self, stmt: ir.For) -> None:
        lo, hi = self.integer(stmt.start), self.integer(stmt.stop)
        step = constant(stmt.step, self.compiled.scalars, "loop step")
        extent = make("div", add(minus(hi, lo) if step > 0 else minus(lo, hi), abs(step) - 1), abs(step))
        number, left, place, copies = self.numbers[id(stmt)], self._left, self._place, self._copies
        name = f"{self.agent}.{number}{copies}"
        if name in self.loops:
            self._symbolic(stmt, name, extent, lo, step)
        elif not isinstance(extent, int) or extent > 1_000:
            raise Rejected(f"nothing is said about loop {name}")
        else:
            for k in range(extent):
                self._copies, self._place, self._left = f"{copies}.{k}", (*place, number, k), "false"
                self._put({stmt.var: add(lo, k * step)})
                self._block(stmt.body)
        self._left, self._place, self._copies = left, place, copies

    def _symbolic(self, stmt: ir.For, name: str, extent: Term, lo: Term, step: int) -> None:
        formulas, number = self.loops.pop(name), self.numbers[id(stmt)]
        x, indices, path = f"{plain(stmt.var)}@{number}{self._copies}", self._indices, self._path
        before, changed, depth = self.env, self._changed, self._depth

        def at(trip: Term) -> dict[str, Term]:
            change, free = subst({x: trip}), (trip, *indices)
            return {key: (f"any.{name}.{plain(key)}", *free) if f is None else change(f) for key, f in formulas.items()}

        def claim(what: str, trip: Term) -> None:
            for key, value in at(trip).items():
                if formulas[key] is not None:
                    self.demand(f"{what} of loop {name}, {key}", eq(value, self.env.get(key, 0)))

        claim("start", 0)
        self.env, self._changed = {**before, **at(x), stmt.var: add(lo, make("*", x, step))}, set()
        self._path, self._indices, self._place = (
            (*path, le(0, x), lt(x, extent)),
            (*indices, x),
            (*self._place, number, x),
        )
        self._depth, self._left = len(self._path), "false"
        self._block(stmt.body)
        if formulas.keys() != self._changed - {stmt.var}:
            raise Rejected(f"loop {name} changes other things: {sorted(formulas.keys() ^ self._changed)}")
        claim("step", add(x, 1))
        self.env, self._changed, self._depth, self._path, self._indices = before, changed, depth, path, indices
        gone = (f"after.{name}", *indices) if indices else f"after.{name}"
        self._put({**at(ite(lt(0, extent), extent, 0)), stmt.var: gone})

    def integer(self, expr: ir.Expr) -> Term:
        """The value of an expression, as the executor computes it; what it would refuse is claimed not to happen."""
        match expr:
            case ir.Int(value=value):
                return value
            case ir.Name(id=name):
                return (
                    self.integer(self.compiled.scalars[name])
                    if name in self.compiled.scalars
                    else self.env.get(name, 0)
                )
            case ir.Item(name=name, index=index):
                return self._element([self.integer(e) for e in self.compiled.tuples[name]], self.integer(index))
            case ir.Field(ring=ring, index=index, field=name):
                where = self.integer(index)
                return self._element([self.env.get(record, 0) for record in self._records(ring, name, where)], where)
            case ir.Unary(op="-", operand=operand):
                return minus(self.integer(operand))
            case ir.Binary(op=op, left=left, right=right):
                a, b = self.integer(left), self.integer(right)
                if op in ("%", "//"):
                    self.demand(f"operands of {op}", both(le(0, a), lt(0, b)))
                return arithmetic(op, a, b)
            case ir.Choose(condition=condition, then=then, other=other):
                c = self.truth(condition)
                return ite(c, self._under(c, self.integer, then), self._under(no(c), self.integer, other))
            case ir.Call(function="min" | "max" as f, arguments=arguments):
                least = f == "min"
                return reduce(lambda a, b: ite(le(a, b), *((a, b) if least else (b, a))), map(self.integer, arguments))
            case ir.Call(function=f, arguments=arguments):
                return (f"f.{plain(f)}", *map(self.integer, arguments)) if arguments else f"f.{plain(f)}"
        return ite(self.truth(expr), 1, 0)

    def truth(self, expr: ir.Expr) -> Term:
        """Whether an expression is true."""
        match expr:
            case ir.Unary(op="not", operand=operand):
                return no(self.truth(operand))
            case ir.Compare(first=first, rest=rest):
                found, left = "true", self.integer(first)
                for op, operand in rest:
                    right = self._under(found, self.integer, operand)
                    found, left = both(found, COMPARISONS[op](left, right)), right
                return found
            case ir.Logic(op=op, operands=operands):
                found = "true"  # for "or": that all so far are false
                for operand in operands:
                    holds = self._under(found, self.truth, operand)
                    found = both(found, no(holds) if op == "or" else holds)
                return no(found) if op == "or" else found
        return no(eq(self.integer(expr), 0))

    def _under(self, condition: Term, visit: Callable[[Any], Any], what: Any) -> Any:
        """Do something where a condition holds, and only there."""
        path, self._path = self._path, (*self._path, *conjuncts(condition))
        found = visit(what)
        self._path = path
        return found

    def _records(self, ring: str, name: str, index: Term) -> list[str]:
        size = self.compiled.program(self.agent).rings[ring][1]
        self.demand("record", both(le(0, index), lt(index, size)))
        return [f"{ring}[{i}].{name}" for i in range(size)]

    def _element(self, values: list[Term], at: Term) -> Term:
        self.demand("index", both(le(0, at), lt(at, len(values))))
        return reduce(lambda found, i: ite(eq(at, i), values[i], found), reversed(range(len(values) - 1)), values[-1])


def plain(name: str) -> str:
    """A name in letters of SMT-LIB; different names stay different."""
    return "".join(c if (c.isalnum() and c.isascii()) or c == "_" else f"!{ord(c):x}!" for c in name)


def arithmetic(op: str, a: Term, b: Term) -> Term:
    """Products and quotients of two unknowns are functions of which nothing is known."""
    if op in ("+", "-"):
        return add(a, b) if op == "+" else minus(a, b)
    if op == "*" and not isinstance(a, int) and not isinstance(b, int):
        return ("op.product", *sorted((a, b), key=repr))
    if op == "*" or (isinstance(b, int) and b > 0):
        return make({"*": "*", "//": "div", "%": "mod"}[op], a, b)
    return ("op.quotient" if op == "//" else "op.remainder", a, b)


def actions(effect: Effect) -> list[str]:
    """Everything that an operation does, apart from touching memory."""
    stmt, (role, final) = effect.stmt, effect.phase or ("", False)
    read = {cell for touch in effect.reads for cell in touch.cells}
    done: dict[str, Iterable[object]] = {
        "set": effect.sets, "wait": effect.waits, "acquire": effect.locks, "leave": effect.unlocks,
        "lock": effect.arguments if isinstance(stmt, ir.MutexLock) else (),
        "unlock": effect.arguments if isinstance(stmt, ir.MutexUnlock) else (),
        type(stmt).__name__.lower(): [f"{ring} {lane}" for ring, lane in effect.rings],
        "meet": range(effect.meets),
        role: effect.phased,
        "raise" if role == "produce" else "lower": effect.phased if final else (),
        "adds": [cell for cell in effect.phased if role == "produce" and cell in read],
    }  # fmt: skip
    return [f"{verb} {thing}" for verb, things in done.items() for thing in things]
