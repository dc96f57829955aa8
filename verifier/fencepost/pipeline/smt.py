"""How is an expression of a kernel written as SMT-LIB text?"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencepost import ir


@dataclass(slots=True)
class Writer:
    """Collects what the texts mention.

    `names` are the integer constants.  Each application of a function gets a constant of its own, in `applications`
    (inner ones first), so that its value can be read from a model: (constant, function, arguments).
    """

    names: dict[str, None] = field(default_factory=dict)
    applications: dict[tuple[str, tuple[ir.Expr, ...]], str] = field(default_factory=dict)
    _functions: dict[tuple[str, int], None] = field(default_factory=dict)
    _equations: list[str] = field(default_factory=list)

    def declarations(self) -> str:
        """Declarations of everything that was mentioned, and the values of applications."""
        lines = [f"(declare-const {quoted(name)} Int)" for name in self.names]
        lines += [f"(declare-const {constant} Int)" for constant in self.applications.values()]
        lines += [f"(declare-fun {quoted(f)} ({' '.join(['Int'] * n)}) Int)" for f, n in self._functions]
        return "\n".join((*lines, *self._equations))

    def integer(self, expr: ir.Expr) -> str:
        """The value of an integer expression; a condition counts as 0 or 1."""
        match expr:
            case ir.Int(value):
                return number(value)
            case ir.Name(name):
                self.names[name] = None
                return quoted(name)
            case ir.Unary("-", operand):
                return f"(- {self.integer(operand)})"
            case ir.Binary("//", left, right):
                return self._divided("div", left, right)
            case ir.Binary("%", left, right):
                return self._divided("mod", left, right)
            case ir.Binary(op, left, right):
                return f"({op} {self.integer(left)} {self.integer(right)})"
            case ir.Choose(condition, then, other):
                return f"(ite {self.condition(condition)} {self.integer(then)} {self.integer(other)})"
            case ir.Call("min" | "max" as function, arguments):
                smaller = "<=" if function == "min" else ">="
                result = self.integer(arguments[0])
                for argument in arguments[1:]:
                    text = self.integer(argument)
                    result = f"(ite ({smaller} {result} {text}) {result} {text})"
                return result
            case ir.Call(function, arguments):
                return self._applied(function, arguments)
            case ir.Item(name, index):
                return self._applied(name, (index,))
            case ir.Field(ring, index, name):
                return self._applied(f"{ring}.{name}", (index,))
            case _:
                return f"(ite {self.condition(expr)} 1 0)"

    def condition(self, expr: ir.Expr) -> str:
        """The truth of an expression."""
        match expr:
            case ir.Compare(first, rest):
                texts = [self.integer(first), *(self.integer(operand) for _, operand in rest)]
                parts = [_compared(op, a, b) for (op, _), a, b in zip(rest, texts, texts[1:], strict=False)]
                return parts[0] if len(parts) == 1 else f"(and {' '.join(parts)})"
            case ir.Logic(op, operands):
                return f"({op} {' '.join(self.condition(o) for o in operands)})"
            case ir.Unary("not", operand):
                return f"(not {self.condition(operand)})"
            case _:
                return f"(distinct {self.integer(expr)} 0)"

    def _divided(self, op: str, left: ir.Expr, right: ir.Expr) -> str:
        a, b = self.integer(left), self.integer(right)
        if isinstance(right, ir.Int) and right.value > 0:
            return f"({op} {a} {b})"
        # SMT-LIB rounds so that the remainder is not negative; the model rounds down and takes x // 0 and x % 0 as 0.
        quotient = f"(ite (= {b} 0) 0 (ite (> {b} 0) (div {a} {b}) (div (- {a}) (- {b}))))"
        return quotient if op == "div" else f"(ite (= {b} 0) 0 (- {a} (* {b} {quotient})))"

    def _applied(self, function: str, arguments: tuple[ir.Expr, ...]) -> str:
        texts = [self.integer(a) for a in arguments]
        key = (function, arguments)
        if key not in self.applications:
            if not arguments:
                self.names[function] = None
                return quoted(function)
            constant = f"|app {len(self.applications)}|"
            self.applications[key] = constant
            self._functions[function, len(arguments)] = None
            self._equations.append(f"(assert (= {constant} ({quoted(function)} {' '.join(texts)})))")
        return self.applications[key]


def _compared(op: str, a: str, b: str) -> str:
    return f"(distinct {a} {b})" if op == "!=" else f"({'=' if op == '==' else op} {a} {b})"


def number(value: int) -> str:
    """An integer as SMT-LIB text."""
    return str(value) if value >= 0 else f"(- {-value})"


def quoted(name: str) -> str:
    """A name as an SMT-LIB symbol."""
    return f"|{name}|"
