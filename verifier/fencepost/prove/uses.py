"""Uses: in which ways does an expression look at the integers of a program?

An expression is seen as linear forms over the slots of the program.  What it does with them is recorded as *uses*: a
form whose sign matters, a slot whose residue matters, and so on.  A change of the slots that no use can tell changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd, lcm
from typing import Literal, TypeAlias

from fencepost import ir
from fencepost.prove.ranges import Ranges
from fencepost.prove.structure import Structure
from fencepost.prove.values import OPAQUE, Level, described

FIXED = 1 << 60
"""A threshold that nothing reaches: the value must stay as it is."""

_ALTERNATIVES = 48  # forms that one expression may take
_COEFFICIENT = 64  # larger coefficients are not followed


@dataclass(frozen=True, slots=True)
class Named:
    """What is no slot: "function" (values of a family), "argument" (of an unknown function), "task" (rounds), "below".

    `unique`: the family has one member only.
    """

    kind: Literal["function", "argument", "task", "below"]
    name: str = ""
    position: int = 0
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Quotient:
    """`inner // divisor` on plain integers."""

    inner: Form
    divisor: int


@dataclass(frozen=True, slots=True)
class Product:
    """The product of two values, each of which takes one of some forms."""

    left: tuple[Form, ...]
    right: tuple[Form, ...]


Node: TypeAlias = int | Named
Term: TypeAlias = Node | Quotient | Product


@dataclass(frozen=True, slots=True)
class Form:
    """A sum of coefficient times term, plus something between `low` and `high` (None: unbounded) that never changes.

    `small`: taken only while one of these nodes lies below its threshold.
    """

    terms: tuple[tuple[Term, int], ...]
    low: int | None = 0
    high: int | None = 0
    small: frozenset[tuple[Term, int]] = frozenset()

    @property
    def constant(self) -> int | None:
        return self.low if not self.terms and self.low == self.high else None

    @property
    def idle(self) -> bool:
        """Whether the form is only taken while all of it is too small to be shifted, if the thresholds are kept."""
        small = {term for term, _ in self.small}
        return all(term in small for term, _ in self.terms)


BELOW = Named("below")
"""Stands for a part of a sum that may be too small, so that the others may not be taken to be large."""

UNKNOWN = Form((), None, None)
ONE = Form((), 1, 1)

Shape: TypeAlias = tuple[tuple[Node, int], ...]

Key: TypeAlias = tuple[str, Node | Shape, Level | None, bool]
"""(kind, node or shape, level, later); `later`: in a later run of the level than the current one."""


@dataclass(slots=True)
class Uses:
    """Everything that may be asked of the slots from some point on.

    "sign" (shape): the sign of the shape plus a constant in an interval.  "above" (node): the node is compared with
    constants below the threshold.  "residue" (node): its residue modulo a number.  "natural" (node): only whether it
    lies below the threshold, together with all other "natural" nodes of the agent.
    """

    facts: dict[Key, tuple[int | None, int | None] | int]

    def __init__(self) -> None:
        self.facts = {}

    # ------------------------------------------------------------------------------------------ recording

    def _raise(self, key: Key, value: int) -> None:
        old = self.facts.get(key)
        assert old is None or isinstance(old, int)
        if old is None or value > old:
            self.facts[key] = value

    def above(self, node: Node, threshold: int, level: Level | None, later: bool = False) -> None:
        self._raise(("above", node, level, later), max(threshold, 0))

    def natural(self, node: Node, threshold: int, level: Level | None, later: bool = False) -> None:
        self._raise(("natural", node, level, later), max(threshold, 0))

    def residue(self, node: Node, modulus: int, level: Level | None, later: bool = False) -> None:
        key: Key = ("residue", node, level, later)
        old = self.facts.get(key, 1)
        assert isinstance(old, int)
        self.facts[key] = lcm(old, modulus)

    def fix(self, terms: Iterable[tuple[Term, int]], level: Level | None, later: bool = False) -> None:
        """The values of the terms must not change at all."""
        for term, _ in terms:
            match term:
                case Quotient(inner=inner):
                    self.fix(inner.terms, level, later)
                case Product(left=left, right=right):
                    for form in (*left, *right):
                        self.fix(form.terms, level, later)
                case _:
                    self.above(term, FIXED, level, later)

    def _keep(self, form: Form, level: Level | None, later: bool) -> None:
        """What makes a form idle must hold at this level, too."""
        mine = {term for term, _ in form.terms}
        for term, threshold in form.small:
            if term in mine:
                self.above(_node(term), threshold, level, later)

    def sign(self, form: Form, level: Level | None, later: bool = False) -> None:
        """The sign of the form matters, and of the form plus any constant between its `low` and `high`."""
        if form.idle:
            self._keep(form, level, later)
            return
        terms = form.terms
        if any(isinstance(t, (Quotient, Product)) or abs(c) > _COEFFICIENT for t, c in terms):
            if len(terms) == 1 and isinstance(terms[0][0], Quotient):
                self.beyond(form, 0, level, later)
            else:
                self.fix(terms, level, later)
        elif len(terms) == 1:
            self.above(_node(terms[0][0]), _reach(form), level, later)
        else:
            shape, low, high = _shape(form)
            key: Key = ("sign", shape, level, later)
            old = self.facts.get(key)
            if isinstance(old, tuple):
                low = None if low is None or old[0] is None else min(low, old[0])
                high = None if high is None or old[1] is None else max(high, old[1])
            self.facts[key] = (low, high)

    def beyond(self, form: Form, threshold: int, level: Level | None, later: bool = False) -> None:
        """The form is compared with constants below the threshold; above it all of its values are alike."""
        if form.idle:
            self._keep(form, level, later)
            return
        terms = form.terms
        if len(terms) == 1 and threshold < FIXED:
            term, coefficient = terms[0]
            if isinstance(term, Quotient):
                least = (_reach(form) + threshold) * term.divisor
                inner = term.inner
                simple = len(inner.terms) == 1 and inner.terms[0][1] == 1 and inner.low is not None
                if _reach(form) >= FIXED or not simple or (coefficient < 0 and threshold > 0):
                    self.fix(terms, level, later)
                else:
                    self.beyond(inner, least, level, later)
                return
            if not isinstance(term, Product):
                if coefficient > 0 and form.low is not None:
                    self.above(term, -((form.low - threshold) // coefficient), level, later)
                else:
                    self.above(term, FIXED, level, later)
                return
        if threshold >= FIXED or form.low is None or form.high is None:
            self.same(form, level, later)
        else:
            self.sign(Form(terms, form.low - threshold, form.high + threshold), level, later)

    def same(self, form: Form, level: Level | None, later: bool = False) -> None:
        """The value of the form matters exactly."""
        if form.idle:
            self._keep(form, level, later)
            return
        if len(form.terms) == 1 or any(isinstance(t, (Quotient, Product)) for t, _ in form.terms):
            self.fix(form.terms, level, later)
        else:
            self.sign(Form(form.terms, None, None), level, later)

    def modulo(self, form: Form, modulus: int, level: Level | None, later: bool = False) -> None:
        """The residue of the form matters."""
        if form.idle:
            self._keep(form, level, later)
            return
        for term, coefficient in form.terms:
            needed = modulus // gcd(coefficient, modulus)
            if needed == 1:
                continue
            match term:
                case Quotient(inner=inner, divisor=divisor):
                    self.modulo(inner, needed * divisor, level, later)
                case Product(left=left, right=right):
                    for factor in (*left, *right):
                        self.modulo(factor, needed, level, later)
                case _:
                    self.residue(term, needed, level, later)

    def least(self, form: Form, threshold: int, level: Level | None, later: bool = False) -> None:
        """Only whether the form lies below the threshold matters."""
        if form.idle:
            self._keep(form, level, later)
        elif len(form.terms) == 1 or form.low is None or any(c <= 0 for _, c in form.terms):
            self.beyond(form, threshold, level, later)
        else:
            self.summand(form, threshold, level, later)

    def summand(self, form: Form, threshold: int, level: Level | None, later: bool = False) -> None:
        """Whether the form lies below the threshold matters, together with all else that is "natural".

        A sum with positive coefficients is large if all of its terms are.  What may not be is kept as it is, and then
        nothing may be taken to be large (`BELOW`).
        """
        if form.idle:
            self._keep(form, level, later)
        if form.low is None or (not form.terms and form.low < threshold) or any(c <= 0 for _, c in form.terms):
            self.fix(form.terms, level, later)
            self.natural(BELOW, 0, None)
            return
        needed = max(threshold - form.low, 0)
        for term, _ in form.terms:
            match term:
                case Quotient(inner=inner, divisor=divisor):
                    self.summand(inner, needed * divisor, level, later)
                case Product(left=left, right=right) if needed == 0:
                    for factor in (*left, *right):
                        self.summand(factor, 0, level, later)
                case Product():
                    self.fix(form.terms, level, later)
                    self.natural(BELOW, 0, None)
                case _:
                    self.natural(term, needed, level, later)

    # ------------------------------------------------------------------------------------------ reading

    def nodes(self) -> set[Node]:
        found: set[Node] = set()
        for kind, what, _, _ in self.facts:
            if kind == "sign":
                assert isinstance(what, tuple)
                found.update(node for node, _ in what)
            else:
                assert not isinstance(what, tuple)
                found.add(what)
        return found


def _node(term: Term) -> Node:
    assert isinstance(term, (int, Named))
    return term


def _reach(form: Form) -> int:
    """From this value of its single term on, the sign of a form does not change any more."""
    if form.low is None or form.high is None:
        return FIXED
    (_, coefficient) = form.terms[0]
    return max(abs(form.low), abs(form.high)) // abs(coefficient) + 1


def _order(item: tuple[Node, int]) -> tuple[int, int, str, str, int]:
    node = item[0]
    if isinstance(node, int):
        return (0, node, "", "", 0)
    return (1, 0, node.kind, node.name, node.position)


def _shape(form: Form) -> tuple[Shape, int | None, int | None]:
    """The terms in a fixed order, the first coefficient positive; the interval goes along."""
    terms = sorted(((_node(t), c) for t, c in form.terms), key=_order)
    if terms[0][1] > 0:
        return tuple(terms), form.low, form.high
    low = None if form.high is None else -form.high
    high = None if form.low is None else -form.low
    return tuple((n, -c) for n, c in terms), low, high


def combine(a: Form, b: Form, factor: int = 1) -> Form:
    """`a + factor * b`."""
    terms = dict(a.terms)
    for term, c in b.terms:
        while term in terms and not _exact(term):
            # two values that the term stands for need not be the same one
            both = (Form(((term, 1),)),)
            term = Product(both, both)
        terms[term] = terms.get(term, 0) + factor * c
    low, high = (b.low, b.high) if factor >= 0 else (b.high, b.low)
    return Form(
        tuple((t, c) for t, c in terms.items() if c),
        None if a.low is None or low is None else a.low + factor * low,
        None if a.high is None or high is None else a.high + factor * high,
        a.small | b.small,
    )


def _exact(term: Term) -> bool:
    """Whether a term stands for one value, whatever the constants in it are."""
    match term:
        case Named(unique=unique):
            return unique
        case Quotient(inner=inner):
            return _settled(inner)
        case Product(left=left, right=right):
            return len(left) == len(right) == 1 and _settled(left[0]) and _settled(right[0])
    return True


def _settled(form: Form) -> bool:
    return form.low is not None and form.low == form.high and all(_exact(term) for term, _ in form.terms)


ZERO = Form(())


def _opaque(term: Term) -> bool:
    """Whether a term stands for any result of an operation."""
    return isinstance(term, (Quotient, Product)) or (isinstance(term, Named) and term.name in OPAQUE)


def _picked(one: tuple[Form, ...], two: tuple[Form, ...], largest: bool) -> list[tuple[Form, ...]]:
    """The options of min or max; of a counter and a constant, one is taken only while the counter is small."""
    if len(one) == 1 and len(two) == 1:
        for fixed, moving in ((one[0], two[0]), (two[0], one[0])):
            if fixed.constant is None or len(moving.terms) != 1 or moving.low is None or moving.high is None:
                continue
            term, coefficient = moving.terms[0]
            if isinstance(term, (Quotient, Product)):
                continue
            threshold = abs(fixed.constant) + max(abs(moving.low), abs(moving.high)) + 1
            small = frozenset([(term, threshold)])
            if (coefficient > 0) == largest:
                return [(Form((), fixed.low, fixed.high, small),), (moving,)]
            return [(fixed,), (Form(moving.terms, moving.low, moving.high, small),)]
    return [one, two]


class Reader:
    """Reads the expressions of one program; `uses` collects what they look at."""

    def __init__(self, structure: Structure, ranges: Ranges) -> None:
        self.structure = structure
        self.ranges = ranges
        self.program = structure.program
        self.compiled = structure.compiled
        self.parameters = len(self.compiled.parameters)
        self.uses = Uses()
        self.remember = 1

    def at(self, expr: ir.Expr, level: Level | None) -> Level | None:
        return self.structure.level(expr) or level

    def forms(self, expr: ir.Expr, level: Level | None = None) -> tuple[Form, ...]:
        """The forms that an expression may take.

        `level` is where comparisons inside are decided that look at no counter.
        """
        match expr:
            case ir.Int(value=value):
                return (Form((), value, value),)
            case ir.Name(id=name):
                return self._name(name, level)
            case ir.Item(name=name, index=index):
                values = self.compiled.tuples[name]
                self.exact(self.forms(index), len(values), self.structure.level(index))
                return self._any([f for v in values for f in self.forms(v, level)])
            case ir.Field(ring=ring, index=index, field=name):
                slots = self.structure.record(ring, name)
                self.exact(self.forms(index), len(slots), self.structure.level(index))
                return tuple(Form(((slot, 1),)) for slot in slots)
            case ir.Unary(op="-", operand=operand):
                return tuple(combine(ZERO, f, -1) for f in self.forms(operand, level))
            case ir.Unary(operand=operand):
                self.truth(operand, level)
                return (Form((), 0, 1),)
            case ir.Binary():
                return self._binary(expr, level)
            case ir.Compare(first=first, rest=rest):
                left = self.forms(first, level)
                for _, operand in rest:
                    right = self.forms(operand, level)
                    self.compare(left, right, self.at(expr, level))
                    left = right
                return (Form((), 0, 1),)
            case ir.Logic(operands=operands):
                for operand in operands:
                    self.truth(operand, level)
                return (Form((), 0, 1),)
            case ir.Choose(condition=condition, then=then, other=other):
                self.truth(condition, level)
                return self._any([*self.forms(then, level), *self.forms(other, level)])
            case ir.Call(function="min" | "max", arguments=arguments):
                options = [self.forms(a, level) for a in arguments]
                for i, one in enumerate(options):
                    for two in options[i + 1 :]:
                        self.compare(one, two, self.at(expr, level))
                if len(options) == 2:
                    options = _picked(options[0], options[1], expr.function == "max")
                return self._any([f for option in options for f in option])
            case ir.Call(function=function, arguments=arguments):
                home = self.structure.level(expr)
                for position, argument in enumerate(arguments):
                    self.argument(function, position, self.forms(argument, level), home)
                return (Form(((Named("function", function), 1),)),)

    def _name(self, name: str, level: Level | None) -> tuple[Form, ...]:
        slot = self.program.names.get(name)
        if slot is None:
            return self.forms(self.compiled.scalars[name], level)
        if name == "sub":
            return (Form((), 0, 1),)
        return (Form(((slot, 1),)),)

    def _any(self, forms: list[Form]) -> tuple[Form, ...]:
        """All of the forms; those without terms together."""
        found = dict.fromkeys(f for f in forms if f.terms or f.small)
        plain = [f for f in forms if not f.terms and not f.small]
        if plain:
            lows, highs = [f.low for f in plain], [f.high for f in plain]
            low = None if None in lows else min(x for x in lows if x is not None)
            high = None if None in highs else max(x for x in highs if x is not None)
            found[Form((), low, high)] = None
        if len(found) > _ALTERNATIVES:
            return (Form(((Product(tuple(found), (ONE,)), 1),)),)
        return tuple(found)

    # ------------------------------------------------------------------------------------------ what is asked

    def truth(self, expr: ir.Expr, level: Level | None) -> None:
        """Whether the expression is zero matters."""
        forms = self.forms(expr, level)
        if not isinstance(expr, (ir.Compare, ir.Logic)):
            for form in forms:
                self._sign(form, self.at(expr, level))

    def compare(self, left: Iterable[Form], right: Iterable[Form], level: Level | None) -> None:
        right = tuple(right)
        for a in left:
            for b in right:
                self._sign(combine(a, b, -1), level)

    def _sign(self, form: Form, level: Level | None) -> None:
        self.uses.sign(form, level)
        unknown = [not isinstance(t, int) or self.structure.symbolic[t] for t, _ in form.terms]
        if all(unknown) or (level is None and any(unknown)):
            for bound in (form.low, form.high):
                if bound is not None and abs(bound) < 64:
                    self.remember = max(self.remember, abs(bound) + 1)

    def exact(self, forms: Iterable[Form], size: int, level: Level | None) -> None:
        """The forms pick one of `size` things; outside of 0..size-1 all values are alike."""
        for form in forms:
            if form.low is None or form.high is None:
                self.uses.same(form, level)
            elif len(form.terms) == 1:
                self.uses.beyond(form, size, level)
            else:
                self.uses.sign(Form(form.terms, form.low - size, form.high), level)

    def same(self, forms: Iterable[Form], level: Level | None) -> None:
        for form in forms:
            self.uses.same(form, level)

    def argument(self, function: str, position: int, forms: Iterable[Form], home: Level | None) -> None:
        """The forms are arguments of an unknown function: equal arguments, equal value."""
        node = Named("argument", function, position)
        for form in forms:
            if any(isinstance(t, (Quotient, Product)) for t, _ in form.terms):
                self.uses.fix((*form.terms, (node, 1)), home)
            elif not form.terms:
                self.uses.above(node, FIXED, home)
            else:
                self.uses.sign(combine(form, Form(((node, 1),)), -1), home)

    def round(self, forms: Iterable[Form]) -> None:
        """The forms are rounds, which are compared with other rounds."""
        node = Named("task")
        for form in forms:
            if any(isinstance(t, (Quotient, Product)) for t, _ in form.terms):
                self.uses.fix((*form.terms, (node, 1)), None)
            elif not form.terms:
                self.uses.above(node, FIXED, None)
            else:
                self.uses.sign(combine(form, Form(((node, 1),)), -1), None)

    # ------------------------------------------------------------------------------------------ arithmetic

    def _symbolic(self, form: Form) -> bool:
        """Whether the form may hold an unknown number."""
        return any(not isinstance(t, int) or self.structure.symbolic[t] for t, _ in form.terms)

    def _unknown(self, form: Form) -> bool:
        """Whether the form consists of unknown numbers and constants alone."""
        return bool(form.terms) and all(
            isinstance(t, Named) or (isinstance(t, int) and t < self.parameters) for t, _ in form.terms
        )

    def _binary(self, expr: ir.Binary, level: Level | None) -> tuple[Form, ...]:
        lefts, rights = self.forms(expr.left, level), self.forms(expr.right, level)
        where = self.at(expr, level)
        match expr.op:
            case "+" | "-":
                sign = 1 if expr.op == "+" else -1
                return self._any([combine(a, b, sign) for a in lefts for b in rights])
            case "*":
                return self._product(lefts, rights, where)
            case "%":
                return self._remainder(expr, lefts, rights, where)
            case _:
                return self._quotient(expr, lefts, rights, where)

    def _product(self, lefts: tuple[Form, ...], rights: tuple[Form, ...], level: Level | None) -> tuple[Form, ...]:
        for a, b in ((lefts, rights), (rights, lefts)):
            if len(a) == 1 and a[0].constant is not None:
                return tuple(combine(ZERO, f, a[0].constant) for f in b)
        if not any(f.terms for f in (*lefts, *rights)):
            bounds = [(f.low, f.high) for f in (*lefts, *rights)]
            if all(low is not None and high is not None and low >= 0 for low, high in bounds):
                top = max(h for _, h in bounds if h is not None)
                return (Form((), 0, top * top),)
            return (UNKNOWN,)
        found = [Form(((Product(lefts, rights), 1),))]
        if any(map(self._symbolic, lefts)) and any(map(self._symbolic, rights)):
            # the product of two unknown numbers is an unknown number of its own, known by its factors
            for form in (*lefts, *rights):
                self.uses.fix([t for t in form.terms if not self._free(t[0])], level)
            found.append(Form(((Named("function", "*"), 1),)))
        return tuple(found)

    def _family(self, op: str, left: Form, right: Form) -> Named:
        """The family of an opaque result; all results of the operation if the operands are not known in all detail."""
        texts: list[str] = []
        unique = True
        for form in (left, right):
            known = form.low is not None and form.low == form.high
            if not known or not all(self._free(t) and not _opaque(t) for t, _ in form.terms):
                return Named("function", op)
            names = self.compiled.parameters
            assert form.low is not None
            terms: list[tuple[str, int]] = []
            for term, c in form.terms:
                if isinstance(term, int):
                    terms.append((names[term], c))
                else:
                    assert isinstance(term, Named)
                    terms.append((term.name, c))
                    unique = unique and term.unique
            texts.append(described(form.low, terms) if terms else str(form.low))
        return Named("function", f"{op}({', '.join(texts)})", unique=unique)

    def _free(self, term: Term) -> bool:
        return isinstance(term, Named) or (isinstance(term, int) and term < self.parameters)

    def _negative(self, expr: ir.Binary) -> bool:
        """Whether the left operand may be negative, which is reported."""
        low = self.ranges.of(expr.left)[0]
        return low is None or low < 0

    def _remainder(
        self, expr: ir.Binary, lefts: tuple[Form, ...], rights: tuple[Form, ...], level: Level | None
    ) -> tuple[Form, ...]:
        moduli = [f.constant for f in rights]
        if any(m is None or m <= 0 for m in moduli):
            for form in (*lefts, *rights):
                self.uses.fix(form.terms, level)
            return (UNKNOWN, Form(((Named("function", "%"), 1),)))
        for m in moduli:
            assert m is not None
            for form in lefts:
                self.uses.modulo(form, m, level)
                if self._negative(expr):
                    self.uses.least(form, 0, level)
        return (Form((), 0, max(m for m in moduli if m is not None) - 1),)

    def _quotient(
        self, expr: ir.Binary, lefts: tuple[Form, ...], rights: tuple[Form, ...], level: Level | None
    ) -> tuple[Form, ...]:
        divisor = rights[0].constant if len(rights) == 1 else None
        if divisor is None or divisor <= 0:
            for form in (*lefts, *rights):
                self.uses.fix([t for t in form.terms if not self._free(t[0])], level)
                self._sign(form, level)
            symbols = [Form(((self._family("//", a, b), 1),)) for a in lefts for b in rights]
            return self._any([UNKNOWN, *symbols])
        found: list[Form] = []
        for form in lefts:
            if self._negative(expr):
                self.uses.least(form, 0, level)
            if not form.terms:
                low, high = form.low, form.high
                found.append(
                    Form((), None if low is None else low // divisor, None if high is None else high // divisor)
                )
            elif self._unknown(form):
                found.append(Form(((self._family("//", form, rights[0]), 1),)))
            else:
                found.append(Form(((Quotient(form, divisor), 1),)))
                if self._symbolic(form):
                    self.uses.fix([t for t in form.terms if not self._free(t[0])], level)
                    found.append(Form(((Named("function", "//"), 1),)))
        return self._any(found)
