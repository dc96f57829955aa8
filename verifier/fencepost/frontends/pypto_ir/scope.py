"""What does a name of the source text stand for at this place?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.frontends.pypto_ir.program import Constant
from fencepost.spelling import RESERVED


@dataclass(frozen=True, slots=True)
class Variable:
    """A name of the kernel IR: a scalar, or a tile or tensor (an SSA value) in the memory space `memory`."""

    name: str
    scalar: bool
    memory: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A constant of the text."""

    value: Constant


Meaning = Variable | Known


@dataclass(slots=True)
class NewNames:
    """Names of one kernel, each handed out once; those of a half are private to it.

    `whole`: names of the kernel.  `used`: those and the names of all halves.  `own`: names of this half.
    """

    whole: set[str] = field(default_factory=lambda: {*RESERVED, *ir.BUILTINS, *ir.INTERPRETED})
    used: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)

    def half(self) -> NewNames:
        """The names of one half."""
        return NewNames(self.whole, self.used)

    def fresh(self, wanted: str) -> str:
        """Return a name of this half: `wanted`, or `wanted_2`, `wanted_3`, ... if it is taken."""
        name = _free(wanted, self.whole, self.own)
        self.own.add(name)
        self.used.add(name)
        return name

    def declare(self, wanted: str) -> str:
        """Return a name of the whole kernel."""
        name = _free(wanted, self.whole, self.used)
        self.whole.add(name)
        return name


def _free(wanted: str, *taken: set[str]) -> str:
    name, number = wanted, 1
    while any(name in names for names in taken):
        number += 1
        name = f"{wanted}_{number}"
    return name


class Scope:
    """The names of one function: an ordinary name belongs to the function, a loop variable or loop-carried name to its
    loop."""

    def __init__(self, names: NewNames, given: dict[str, Meaning]) -> None:
        self._names = names
        self._layers: list[dict[str, Meaning]] = [given]

    def find(self, name: str) -> Meaning | None:
        """What `name` means here, None if nothing in this function binds it."""
        for layer in reversed(self._layers):
            if name in layer:
                return layer[name]
        return None

    def assign(self, name: str, scalar: bool, memory: str | None = None) -> Variable:
        """The variable that an assignment to `name` writes here; assigned again, a name keeps its variable."""
        for layer in reversed(self._layers):
            known = layer.get(name)
            if isinstance(known, Variable) and known.scalar == scalar:
                layer[name] = replace(known, memory=memory or known.memory)
                return known
            if known is not None:
                return self._bind(layer, name, scalar, memory)
        return self._bind(self._layers[0], name, scalar, memory)

    def _bind(self, layer: dict[str, Meaning], name: str, scalar: bool, memory: str | None) -> Variable:
        variable = Variable(self._names.fresh(name), scalar, memory)
        layer[name] = variable
        return variable

    def same(self, name: str, variable: Variable) -> None:
        """Let `name`, which nothing binds yet, stand for a variable that exists already."""
        self._layers[0][name] = variable

    def unbound(self, wanted: str) -> str:
        """A name of the text that nothing binds."""
        name, number = wanted, 1
        while self.find(name) is not None:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def temporary(self, wanted: str, scalar: bool, memory: str | None = None) -> Variable:
        """A variable that the text has no name for."""
        return Variable(self._names.fresh(wanted), scalar, memory)

    def enter(self, bound: Iterable[tuple[str, Variable]]) -> None:
        """Begin a loop whose own names are `bound`."""
        self._layers.append(dict(bound))

    def leave(self) -> None:
        """End the innermost loop: its own names mean again what they meant before."""
        self._layers.pop()
