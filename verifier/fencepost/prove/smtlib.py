"""SMT-LIB: which text asks the solver whether conditions can hold together?

Opaque sums enter with instances of their laws at the terms of the query: S(0) = 0, S(x + 1) = S(x) + body(x); x < y
implies S(x) + body(x) <= S(y) if no summand is negative, and S(y) - S(x) <= c * (y - x) if none exceeds c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import permutations

from fencepost.prove.ranks import Sum, Sums
from fencepost.prove.rewrite import Known, substitute
from fencepost.prove.terms import ONE, ZERO, Atom, Cond, Lin, conjoin, disjoin, eq, le, lt, negate, symbol

_POINTS = 12  # terms of one sum beyond which its laws are not instantiated for all pairs


@dataclass(slots=True)
class Language:
    """Prints queries about one kernel.

    `assumed` holds the facts of the kernel; `asked` decides whether conditions can't hold together, for sums whose
    growth is not plain from their form.
    """

    sums: Sums
    assumed: Known
    asked: Callable[[list[Cond]], bool] = field(default=lambda conditions: False)
    _grows: dict[str, bool] = field(default_factory=dict)

    def text(self, conditions: Iterable[Cond]) -> str:
        """Declarations and assertions that are satisfiable exactly if the conditions can hold together."""
        asserted = [
            c for condition in conditions for c in (condition.parts if condition.kind == "and" else (condition,))
        ]
        asserted = list({c.text: c for c in asserted if c.kind != "true"}.values())
        asserted += self._laws(asserted)
        symbols: set[str] = set()
        functions: dict[str, int] = {}
        for condition in asserted:
            symbols |= condition.symbols
            for atom in condition.atoms():
                if atom.kind == "apply":
                    functions[atom.name] = len(atom.terms)
        lines = [f"(declare-fun {name} ({' '.join(['Int'] * functions[name])}) Int)" for name in sorted(functions)]
        lines += [f"(declare-fun {name} () Int)" for name in sorted(symbols)]
        lines += [f"(assert {condition.text})" for condition in asserted]
        return "\n".join(lines) + "\n"

    def grows(self, sum_: Sum) -> bool:
        """Whether no summand from index 0 on is negative."""
        found = self._grows.get(sum_.name)
        if found is None:
            self._grows[sum_.name] = False  # for sums inside the summand
            negative = le(sum_.body + ONE)
            found = self._grows[sum_.name] = (
                sum_.grows
                or self.assumed.nonpositive(-sum_.body)
                or self.asked([*self.assumed.facts, le(-symbol(sum_.symbols[0])), negative])
            )
        return found

    def _laws(self, asserted: list[Cond]) -> list[Cond]:
        if not self.sums.by_name:
            return []
        laws: list[Cond] = []
        points: dict[str, dict[str, Atom]] = {}
        self._collect(asserted, points)
        for _ in range(2):
            known = {name: dict(found) for name, found in points.items()}
            laws = [law for name, found in known.items() for law in self._of(self.sums.by_name[name], found)]
            self._collect(laws, points)
            if {n: set(p) for n, p in points.items()} == {n: set(p) for n, p in known.items()}:
                break
        return list({law.text: law for law in laws if law.kind != "true"}.values())

    def _collect(self, conditions: list[Cond], points: dict[str, dict[str, Atom]]) -> None:
        for condition in conditions:
            for atom in condition.atoms():
                if atom.kind == "apply" and atom.name in self.sums.by_name:
                    points.setdefault(atom.name, {})[atom.text] = atom

    def _of(self, sum_: Sum, points: dict[str, Atom]) -> list[Cond]:
        laws: list[Cond] = []
        grows = self.grows(sum_)
        most = sum_.body.bounds[1]  # no summand is larger
        for atom in points.values():
            at, value = atom.terms[0], Lin(0, ((atom, 1),))
            laws.append(disjoin((negate(eq(at)), eq(value))))
            if grows:
                laws.append(disjoin((lt(at, ZERO), le(-value))))
            if most is not None:
                laws.append(disjoin((lt(at, ZERO), le(value - at * most))))
        if len(points) > _POINTS:
            return laws
        for one, other in permutations(points.values(), 2):
            if one.terms[1:] != other.terms[1:]:
                continue
            a, b = one.terms[0], other.terms[0]
            step = substitute(sum_.body, dict(zip(sum_.symbols, one.terms, strict=True)), self.sums.rebuild)
            reached = Lin(0, ((one, 1),)) + step
            laws.append(disjoin((negate(eq(a + 1, b)), eq(reached, Lin(0, ((other, 1),))))))
            later = negate(conjoin((le(-a), lt(a, b))))
            if grows:
                laws.append(disjoin((later, le(reached - Lin(0, ((other, 1),))))))
            if most is not None:
                laws.append(disjoin((later, le(Lin(0, ((other, 1),)) - Lin(0, ((one, 1),)) - (b - a) * most))))
        return laws
