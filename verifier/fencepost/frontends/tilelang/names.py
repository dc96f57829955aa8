"""Which symbol stands for which unknown value of a TileLang program?"""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.frontends.tilelang.signs import Bounds, bounds_of
from fencepost.spelling import is_name

_RESERVED = frozenset((*ir.BUILTINS, *ir.INTERPRETED))


@dataclass(slots=True)
class Names:
    """The names of a kernel that is read, each given once.

    A symbol belongs to what is unknown (a key), so two unknown values have one symbol only if they surely are one
    value.  `symbols` are the integers that are chosen outside of the kernel, `naturals` those among them that are
    never negative; `unknowns` the values that could not be read, by line; `defaults` the defaults of parameters.

    `running` are the names (or the numbers, for `somewhere`) of scalars that the running program has.

    `ranges` are the bounds of loop variables and of scalars that are computed from them.

    `read` are the scalars (or their numbers, for `somewhere`) that the program reads from memory.

    `part` is a number of its own for each evaluation of a part of the text: a macro that is put in place twice is
    evaluated twice, and so is the body of a loop of Python.
    """

    taken: set[str] = field(default_factory=set)
    symbols: dict[str, None] = field(default_factory=dict)
    naturals: set[str] = field(default_factory=set)
    unknowns: dict[str, int] = field(default_factory=dict)
    defaults: dict[str, int] = field(default_factory=dict)
    running: set[str | int] = field(default_factory=set)
    ranges: dict[str, Bounds] = field(default_factory=dict)
    read: set[str | int] = field(default_factory=set)
    part: int = 0
    _parts: int = 0
    _spelled: dict[Hashable, str] = field(default_factory=dict)

    def bounds(self) -> Mapping[str, Bounds]:
        """Between which bounds the names lie, as far as that is known."""
        return ChainMap(self.ranges, dict.fromkeys(self.naturals, (0, None)))

    def counts(self, name: str, start: ir.Expr, stop: ir.Expr, step: int = 1) -> None:
        """Keep the bounds of a loop variable."""
        (first, _), (_, end) = (bounds_of(e, self.bounds()) for e in (start, stop))
        if step > 0:
            self.ranges[name] = first, None if end is None else end - 1
        else:
            (_, last), (end, _) = (bounds_of(e, self.bounds()) for e in (start, stop))
            self.ranges[name] = None if end is None else end + 1, last

    def fresh(self, wish: str) -> str:
        """A name that nothing in the kernel has yet."""
        found, n = wish, 1
        while found in self.taken:
            n += 1
            found = f"{wish}_{n}"
        self.taken.add(found)
        return found

    def is_read(self, expr: ir.Expr) -> bool:
        """Whether a scalar is read from memory as it is: the compiler takes it for an index from the beginning."""
        match expr:
            case ir.Name(name):
                return name in self.read
            case ir.Call("somewhere", (ir.Int(number), *_)):
                return number in self.read
            case ir.Call(function):
                return function.startswith("value_of_")
            case _:
                return False

    def of(self, key: Hashable, wish: str) -> str:
        """The name of an unknown value; the same for the same key."""
        found = self._spelled.get(key)
        if found is None:
            found = self.fresh(wish if is_name(wish) and wish not in _RESERVED else f"{wish}_")
            self._spelled[key] = found
        return found

    def symbol(self, key: Hashable, wish: str) -> ir.Name:
        """An integer that is chosen outside of the kernel."""
        name = self.of(key, wish)
        self.symbols[name] = None
        return ir.Name(name)

    def next_part(self) -> int:
        """Begin another evaluation of some text; the number of the part so far is given back, to be set behind it."""
        before = self.part
        self._parts += 1
        self.part = self._parts
        return before


def site(node: ast.AST) -> Hashable:
    """Where an expression stands; no other one is of this kind and stands there."""
    return (
        type(node).__name__,
        getattr(node, "lineno", 0),
        getattr(node, "col_offset", 0),
        getattr(node, "end_lineno", 0),
        getattr(node, "end_col_offset", 0),
    )
