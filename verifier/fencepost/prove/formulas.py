"""Formulas: how does a term read in people's terms?  `ceil(n / 2) + 1`, not `(+ (div (+ n 1) 2) 1)`."""

from __future__ import annotations

from fencepost.prove.ranks import Sums
from fencepost.prove.terms import ONE, ZERO, Atom, Cond, Lin


class Formulas:
    """Writes terms of one kernel; opaque sums are written as what they sum."""

    def __init__(self, sums: Sums) -> None:
        self.sums = sums

    def term(self, term: Lin) -> str:
        """A linear form, larger atoms last."""
        found = self._minimum(term)
        if found is not None:
            return found
        positive = [(a, k) for a, k in term.parts if k > 0]
        negative = [(a, k) for a, k in term.parts if k < 0]
        text = " + ".join(self._scaled(a, k) for a, k in positive)
        if not text and not negative:
            return str(term.constant)
        for atom, k in negative:
            text = f"{text} - {self._scaled(atom, -k)}" if text else f"-{self._scaled(atom, -k)}"
        if term.constant:
            sign = "+" if term.constant > 0 else "-"
            text = f"{text} {sign} {abs(term.constant)}"
        return text

    def _minimum(self, term: Lin) -> str | None:
        """`a - max(a - b, 0)` is min(a, b), and `b + max(a - b, 0)` is max(a, b)."""
        for atom, k in term.parts:
            if atom.kind != "pos" or k not in (1, -1):
                continue
            rest = term - Lin(0, ((atom, k),))
            other = rest - atom.terms[0] * (1 if k < 0 else -1) if k < 0 else rest + atom.terms[0]
            if k == 1 and not rest.parts and rest.constant == 0:
                return f"max({self.term(atom.terms[0])}, 0)"
            if not other.parts or not rest.parts:
                name = "min" if k < 0 else "max"
                pair = (rest, other) if rest.parts else (other, rest)
                return f"{name}({self.term(pair[0])}, {self.term(pair[1])})"
        return None

    def _scaled(self, atom: Atom, k: int) -> str:
        text = self.atom(atom)
        return text if k == 1 else f"{k} * {text}"

    def atom(self, atom: Atom) -> str:
        """One atom, bracketed where it stands among others."""
        match atom.kind:
            case "symbol":
                return plain(atom.name)
            case "div":
                return self._quotient(atom.terms[0], atom.number)
            case "mod":
                inner = self.term(atom.terms[0])
                return f"({inner}) % {atom.number}" if " " in inner else f"{inner} % {atom.number}"
            case "pos":
                return f"max({self.term(atom.terms[0])}, 0)"
            case "choice":
                assert atom.condition is not None
                then, other = (self.term(t) for t in atom.terms)
                return f"({then} if {self.condition(atom.condition)} else {other})"
        if atom.name in self.sums.by_name:
            return self._sum(atom)
        arguments = ", ".join(map(self.term, atom.terms))
        operator = {"op.product": " * ", "op.quotient": " // ", "op.remainder": " % "}.get(atom.name)
        if operator is not None:
            return "(" + operator.join(f"({self.term(t)})" if t.parts[1:] else self.term(t) for t in atom.terms) + ")"
        return f"{plain(atom.name.removeprefix('f.'))}({arguments})"

    def _quotient(self, inner: Lin, m: int) -> str:
        rounded, numerator = ("ceil", inner - (m - 1)) if inner.constant == m - 1 else ("floor", inner)
        text = self.term(numerator)
        lone = len(numerator.parts) == 1 and not numerator.constant and numerator.parts[0][1] == 1
        return f"{rounded}({text} / {m})" if lone else f"{rounded}(({text}) / {m})"

    def _sum(self, atom: Atom) -> str:
        """An opaque sum: a product, a number of trips with a property, or a sum over trips."""
        sum_ = self.sums.by_name[atom.name]
        top = self.term(atom.terms[0])
        index, outer = sum_.symbols[0], sum_.symbols[1:]
        if sum_.symbols[0] not in sum_.body.symbols and not outer:
            body = self.term(sum_.body)
            return f"{_wrapped(top)} * {_wrapped(body)}"
        names = {index: "x", **{s: f"y{i}" for i, s in enumerate(outer)}}
        if len(sum_.body.parts) == 1 and not sum_.body.constant:
            only, k = sum_.body.parts[0]
            if k == 1 and only.kind == "choice" and only.terms == (ONE, ZERO) and only.condition is not None:
                return f"#(x < {top}: {_renamed(self.condition(only.condition), names)})"
        return f"sum(x < {top}: {_renamed(self.term(sum_.body), names)})"

    def condition(self, condition: Cond) -> str:
        """A comparison with everything on the side where it is positive."""
        match condition.kind:
            case "true" | "false":
                return condition.kind
            case "and" | "or":
                return f" {condition.kind} ".join(
                    f"({self.condition(p)})" if p.kind in ("and", "or") else self.condition(p) for p in condition.parts
                )
        assert condition.term is not None
        left = Lin(0, tuple((a, k) for a, k in condition.term.parts if k > 0))
        right = Lin(0, tuple((a, -k) for a, k in condition.term.parts if k < 0))
        operator, c = {"le": "<=", "eq": "==", "ne": "!="}[condition.kind], condition.term.constant
        if not left.parts:
            flipped = {"<=": ">="}.get(operator, operator)
            return f"{self.term(right)} {flipped} {c}"
        if not right.parts:
            return f"{self.term(left)} {operator} {-c}"
        if operator == "<=" and c > 0:
            return f"{self.term(left + (c - 1))} < {self.term(right)}"
        return f"{self.term(left)} {operator} {self.term(right - c)}"


def plain(name: str) -> str:
    """A symbol as people know it: a loop index without its loop."""
    return name.split("@")[0].rstrip("!")


def _wrapped(text: str) -> str:
    return f"({text})" if " " in text and not text.endswith(")") else text


def _renamed(text: str, names: dict[str, str]) -> str:
    for name, new in names.items():
        text = text.replace(name, new)
    return text
