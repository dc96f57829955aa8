"""How does an expression of a kernel change with the iteration of a loop?

An integer expression is read as a `Sequence` plus a remainder that is the same in all iterations.  A condition is read
as a `Guard`.  What cannot be read so stays an expression over the iteration number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.pipeline.limits import Unreadable, limit, limited
from fencepost.pipeline.sequence import ALWAYS, All, Compared, Comparison, Guard, Not, Opaque, Sequence, TooLong
from fencepost.pipeline.setting import ITERATION

SOMEWHERE = "somewhere"
"""The function that a front end uses for a place or value that it could not read."""

Rest = tuple[tuple[ir.Expr, int], ...]
"""Terms that do not change in the loop, with their factors."""


@dataclass(frozen=True, slots=True)
class Form:
    """``sequence(i) + sum(factor * term)``."""

    sequence: Sequence
    rest: Rest = ()

    @property
    def value(self) -> int | None:
        """The value of a constant form."""
        fixed = not self.rest and self.sequence.period == 1 and self.sequence.gain == 0
        return self.sequence.values[0] if fixed else None

    @property
    def invariant(self) -> bool:
        return self.sequence.period == 1 and self.sequence.gain == 0

    def plus(self, other: Form) -> Form:
        terms: dict[ir.Expr, int] = dict(self.rest)
        for term, factor in other.rest:
            terms[term] = terms.get(term, 0) + factor
        return Form(self.sequence.plus(other.sequence), _rest(terms))

    def times(self, factor: int) -> Form:
        return Form(self.sequence.times(factor), _rest({term: k * factor for term, k in self.rest}))


def _rest(terms: Mapping[ir.Expr, int]) -> Rest:
    return tuple(sorted(((t, k) for t, k in terms.items() if k), key=lambda item: repr(item[0])))


@dataclass(frozen=True, slots=True)
class Bound:
    """A bind, worked out where it stands: its value as `text` and `form`, what that `reads`, and whether it is
    `computed` (see `Scope`).
    """

    text: ir.Expr
    form: Form | None
    reads: frozenset[str]
    computed: bool


@dataclass(slots=True)
class Scope:
    """What the names in a loop body stand for.

    `constants` are kernel constants and the variables of unrolled loops, `bound` the binds that can be seen.
    `changing` are names whose value the body computes (scalars that it assigns, scheduled binds, buffers that it
    writes); `writes` says how often each was written before this place, for what is read before and after a write is
    not the same.  `hidden` names get a value in the body that cannot be used here.
    """

    variable: str
    start: ir.Expr
    stop: ir.Expr
    constants: Mapping[str, ir.Expr | tuple[ir.Expr, ...]]
    changing: frozenset[str] = frozenset()
    bound: Mapping[str, Bound] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    writes: Mapping[str, int] = field(default_factory=dict)
    _forms: dict[str, Form | None] = field(default_factory=dict)
    _texts: dict[str, ir.Expr] = field(default_factory=dict)

    def extended(
        self, constants: Mapping[str, ir.Expr | tuple[ir.Expr, ...]] | None = None, changing: Iterable[str] = ()
    ) -> Scope:
        """This scope with more constants and more names whose value the body computes; they can be seen now."""
        new = frozenset(changing)
        merged = {**self.constants, **(constants or {})}
        hidden = self.hidden - new - frozenset(constants or ())
        return self._with(constants=merged, changing=self.changing | new, hidden=hidden)

    def hiding(self, names: Iterable[str]) -> Scope:
        """This scope without some names."""
        return self._with(hidden=self.hidden | frozenset(names))

    def binding(self, name: str, value: ir.Expr) -> Scope:
        """This scope with a name for a value, which is worked out here.

        Raises:
            Unreadable: the value is too large, or uses what is hidden.
        """
        found = Bound(self.text(value), self.form(value), self.reads(value), self.computed(value))
        return self._with(bound={**self.bound, name: found}, hidden=self.hidden - {name})

    def _with(
        self,
        constants: Mapping[str, ir.Expr | tuple[ir.Expr, ...]] | None = None,
        changing: frozenset[str] | None = None,
        bound: Mapping[str, Bound] | None = None,
        hidden: frozenset[str] | None = None,
    ) -> Scope:
        return Scope(
            self.variable,
            self.start,
            self.stop,
            self.constants if constants is None else constants,
            self.changing if changing is None else changing,
            self.bound if bound is None else bound,
            self.hidden if hidden is None else hidden,
            self.writes,
        )

    def _visible(self, name: str) -> None:
        if name in self.hidden:
            raise Unreadable(f"{name} is used where it has no value yet, or outside the block that gives it one")

    # ------------------------------------------------------------------------------------------------ integers

    def form(self, expr: ir.Expr) -> Form | None:
        """The expression as a sequence and a remainder, or None.

        Raises:
            Unreadable: the expression is too deep or too large.
        """
        with limited(expr):
            try:
                return self._form(expr)
            except TooLong:
                return None

    def _form(self, expr: ir.Expr) -> Form | None:
        match expr:
            case ir.Int(value):
                return Form(Sequence.constant(value))
            case ir.Name(name):
                return self._name(name)
            case ir.Item(name, index):
                return self._item(expr, name, index)
            case ir.Unary("-", operand):
                inner = self._form(operand)
                return inner.times(-1) if inner is not None else None
            case ir.Binary(op, left, right):
                a, b = self._form(left), self._form(right)
                return self._arithmetic(expr, op, a, b) if a is not None and b is not None else None
            case _:
                return self._fixed(expr)

    def _name(self, name: str) -> Form | None:
        if name == ITERATION:
            return Form(Sequence.linear(1, 0))
        self._visible(name)
        if name == self.variable:
            first = self._form(self.start)
            return first.plus(Form(Sequence.linear(1, 0))) if first is not None else None
        if name in self.changing:
            return None
        if name in self.bound:
            return self.bound[name].form
        if name not in self._forms:
            self._forms[name] = None  # a constant that is defined by itself has no form
            value = self.constants.get(name)
            if value is None:
                self._forms[name] = Form(Sequence.constant(0), ((ir.Name(name), 1),))
            elif not isinstance(value, tuple):
                self._forms[name] = self._form(value)
        return self._forms[name]

    def _item(self, expr: ir.Item, name: str, index: ir.Expr) -> Form | None:
        values = self.constants.get(name)
        place = self._form(index)
        if not isinstance(values, tuple) or place is None or place.rest or place.sequence.gain:
            return self._fixed(expr)
        forms = [self._form(values[v]) if 0 <= v < len(values) else None for v in place.sequence.values]
        numbers = [f.value if f is not None else None for f in forms]
        if any(n is None for n in numbers):
            return self._fixed(expr)
        return Form(Sequence(tuple(n for n in numbers if n is not None)))

    def _arithmetic(self, expr: ir.Expr, op: str, a: Form, b: Form) -> Form | None:
        match op:
            case "+":
                return a.plus(b)
            case "-":
                return a.plus(b.times(-1))
            case "*" if b.value is not None:
                return a.times(b.value)
            case "*" if a.value is not None:
                return b.times(a.value)
            case "//" | "%" if b.value and all(k % b.value == 0 for _, k in a.rest):
                if op == "%":
                    return Form(a.sequence.modulo(b.value))
                whole = {term: k // b.value for term, k in a.rest}
                return Form(a.sequence.floor_divided(b.value), _rest(whole))
            case _:
                return self._fixed(expr) if a.invariant and b.invariant else None

    def _fixed(self, expr: ir.Expr) -> Form | None:
        """An expression that is the same in all iterations, as a remainder."""
        text = self.text(expr)
        return None if _varies(text) else Form(Sequence.constant(0), ((text, 1),))

    # ------------------------------------------------------------------------------------------------ as expressions

    def text(self, expr: ir.Expr) -> ir.Expr:
        """The expression over the iteration number, with constants and replayed binds filled in.

        A name whose value the body computes becomes an unknown function of the iteration.
        """
        with limited(expr):
            result = self._text(expr)
            limit(result)
            return result

    def _text(self, expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Int():
                return expr
            case ir.Name(name):
                return self._name_text(name)
            case ir.Call(name, (ir.Name(first), *_)) if first == ITERATION:
                return expr  # the value of a bind, worked out before
            case ir.Item(name, index) if name in self.changing:
                return self._changing_text(name, (index,))
            case ir.Call(name, arguments) if name in self.changing:
                return self._changing_text(name, arguments)
            case ir.Item(name, index):
                values = self.constants.get(name)
                place = self._text(index)
                if not isinstance(values, tuple):
                    return ir.Item(name, place)
                if isinstance(place, ir.Int) and 0 <= place.value < len(values):
                    return self._text(values[place.value])
                chosen: ir.Expr = ir.Call(name, (place,))  # out of range: anything
                for k, value in enumerate(values):
                    here = ir.Compare(place, (("==", ir.Int(k)),))
                    chosen = ir.Choose(here, self._text(value), chosen)
                return chosen
            case ir.Field(ring, index, name):
                return ir.Call(f"{ring}.{name}", (ir.Name(ITERATION), self._text(index)))
            case ir.Unary(op, operand):
                return ir.Unary(op, self._text(operand))
            case ir.Binary(op, left, right):
                return ir.Binary(op, self._text(left), self._text(right))
            case ir.Compare(first, rest):
                return ir.Compare(self._text(first), tuple((op, self._text(e)) for op, e in rest))
            case ir.Logic(op, operands):
                return ir.Logic(op, tuple(self._text(e) for e in operands))
            case ir.Choose(condition, then, other):
                return ir.Choose(self._text(condition), self._text(then), self._text(other))
            case ir.Call(function, arguments):
                return ir.Call(function, tuple(self._text(e) for e in arguments))

    def _changing_text(self, name: str, place: tuple[ir.Expr, ...] = ()) -> ir.Expr:
        """An unknown function of the iteration; another one behind each write."""
        write = self.writes.get(name, 0)
        return ir.Call(f"{name}#{write}" if write else name, (ir.Name(ITERATION), *map(self._text, place)))

    def _name_text(self, name: str) -> ir.Expr:
        if name == ITERATION:
            return ir.Name(name)
        self._visible(name)
        if name == self.variable:
            first = self._text(self.start)
            step = ir.Name(ITERATION)
            return step if first == ir.Int(0) else ir.Binary("+", first, step)
        if name in self.changing:
            return self._changing_text(name)
        if name in self.bound:
            return self.bound[name].text
        if name not in self._texts:
            self._texts[name] = ir.Name(name)
            value = self.constants.get(name)
            if value is not None and not isinstance(value, tuple):
                text = self._text(value)
                limit(text)
                self._texts[name] = text
        return self._texts[name]

    def fixed(self, expr: ir.Expr) -> bool:
        """Whether the value is surely the same in all iterations."""
        return not self.computed(expr) and not _varies(self.text(expr))

    def computed(self, expr: ir.Expr) -> bool:
        """Whether the value depends on something that the body computes, or that nobody could read (`somewhere`)."""
        return any(
            isinstance(node, ir.Field)
            or (name := _name_of(node)) in self.changing
            or name == SOMEWHERE
            or (name in self.bound and self.bound[name].computed)
            for node in self._mentioned(expr)
        )

    def reads(self, expr: ir.Expr) -> frozenset[str]:
        """All names that the value is made of, also behind constants and binds: scalars, functions, buffers."""
        found = set[str]()
        for node in self._mentioned(expr):
            name = _name_of(node)
            bound = self.bound.get(name)
            found |= {name} if bound is None else bound.reads
        return frozenset(found)

    def _mentioned(self, expr: ir.Expr) -> Iterator[ir.Name | ir.Item | ir.Call | ir.Field]:
        """The places where the expression, or a constant in it, uses a name."""
        found, stack = set[str](), [expr]
        while stack:
            for node in ir.walk(stack.pop()):
                if isinstance(node, (ir.Name, ir.Item, ir.Call, ir.Field)):
                    yield node
                    name = _name_of(node)
                    self._visible(name)
                    value = self.constants.get(name)
                    if value is not None and name not in found:
                        found.add(name)
                        stack += list(value) if isinstance(value, tuple) else [value]

    # ------------------------------------------------------------------------------------------------ conditions

    def guard(self, expr: ir.Expr) -> Guard:
        """The expression as a condition.

        Raises:
            Unreadable: the expression is too deep or too large.
        """
        with limited(expr):
            return self._guard(expr)

    def _guard(self, expr: ir.Expr) -> Guard:
        match expr:
            case ir.Int(value):
                return ALWAYS if value else Not(ALWAYS)
            case ir.Unary("not", operand):
                return Not(self._guard(operand))
            case ir.Logic("and", operands):
                return All(tuple(self._guard(o) for o in operands))
            case ir.Logic("or", operands):
                return Not(All(tuple(Not(self._guard(o)) for o in operands)))
            case ir.Compare(first, rest):
                left = (first, *(operand for _, operand in rest))
                parts = [self._compared(a, op, b) for a, (op, b) in zip(left, rest, strict=False)]
                return parts[0] if len(parts) == 1 else All(tuple(parts))
            case _:
                return Opaque(self.text(expr))

    def _compared(self, left: ir.Expr, op: Comparison, right: ir.Expr) -> Guard:
        try:
            a, b = self._form(left), self._form(right)
            if a is not None and b is not None:
                difference = a.plus(b.times(-1))
                if not difference.rest:
                    return Compared(difference.sequence, op)
                from_end = self._from_end(difference)
                if from_end is not None:
                    return Compared(from_end, op, from_end=True)
        except TooLong:
            pass
        return Opaque(self.text(ir.Compare(left, ((op, right),))))

    def _from_end(self, difference: Form) -> Sequence | None:
        """A form that depends on the distance from the last iteration only, as a sequence of that distance.

        With n trips, n = stop - start; if the remainder is c * n, the form is c * (n - i) + constant.
        """
        first, last = self._form(self.start), self._form(self.stop)
        if first is None or last is None or not first.invariant or not last.invariant:
            return None
        trips = last.plus(first.times(-1))
        if not trips.rest or difference.sequence.period != 1:
            return None
        c = -difference.sequence.gain
        if c == 0 or difference.rest != trips.times(c).rest:
            return None
        offset = difference.sequence.values[0] - c * trips.sequence.values[0]
        return Sequence.linear(c, c + offset)


def _varies(text: ir.Expr) -> bool:
    return any(isinstance(n, ir.Name) and n.id == ITERATION for n in ir.walk(text))


def _name_of(node: ir.Name | ir.Item | ir.Call | ir.Field) -> str:
    match node:
        case ir.Name(name) | ir.Item(name, _) | ir.Call(name, _) | ir.Field(name, _, _):
            return name
