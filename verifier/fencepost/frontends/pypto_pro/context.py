"""What do the readings of one kernel share: names, parameters, buffers, rings, constants, assumptions?

A kernel is read twice, once as the cube core runs it and once as the vector cores do.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

from fencepost import ir
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.pypto_pro.tiles import Buffers, fresh_name

_MAX_RESTARTS = 60
_MAX_STEPS = 50_000


class Restart(Exception):
    """Something was learnt that changes what was read before; the kernel is read again."""


class TooLarge(Exception):
    """Reading the kernel takes too long."""


@dataclass(slots=True)
class Parameter:
    """A parameter of the kernel IR.

    `least` is a lower bound; `values` the allowed values, when they are few; `note` what is assumed if it is used.
    """

    name: str
    least: int | None = None
    values: tuple[int, ...] = ()
    origin: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class TensorAccess:
    """One access to global memory, or an insertion into a tile: coordinates and extents per dimension.

    A coordinate is None where it could not be read; an extent is None where it is not known, else the most that the
    access reaches.  `valid` narrows extents by sizes known on the device; `exact`: the extents are what it reaches.
    `atomic`: it adds to what is there, so the order among such accesses does not matter.
    """

    name: str
    coordinates: tuple[ir.Expr | None, ...]
    extents: tuple[int | None, ...]
    shape: tuple[int | None, ...]
    scalar: bool = False
    valid: tuple[ir.Expr | None, ...] = ()
    exact: bool = False
    atomic: bool = False


@dataclass(eq=False, slots=True)
class Context:
    """Everything about one kernel that both readings share."""

    source: Source
    kernel: ast.FunctionDef
    auto_mutex: bool = True
    mixed: bool = True  # both kinds of section occur
    taken: set[str] = field(default_factory=set)
    assumptions: list[str] = field(default_factory=list)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    keys: dict[object, str] = field(default_factory=dict)
    rings: dict[str, ir.Ring] = field(default_factory=dict)
    constants: dict[str, ir.Constant] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)  # uninterpreted function -> what it stands for
    record_fields: set[str] = field(default_factory=set)  # scalars that are fields of structs
    narrowed: set[str] = field(default_factory=set)  # buffers whose valid shape is set somewhere
    selectors: dict[object, list[str]] = field(default_factory=dict)
    preferred: dict[object, str] = field(default_factory=dict)  # key of a parameter -> the user's name for it
    accesses: dict[int, list[TensorAccess]] = field(default_factory=dict)
    operations: list[ir.DataOp] = field(default_factory=list)  # keeps the keys of `accesses` alive
    tensor_types: dict[str, str] = field(default_factory=dict)
    restarts: int = 0
    steps: int = 0
    buffers: Buffers = field(init=False)

    def __post_init__(self) -> None:
        self.buffers = Buffers(self.taken, self.assumptions)

    def assume(self, sentence: str) -> None:
        """Note what is taken for granted."""
        if sentence not in self.assumptions:
            self.assumptions.append(sentence)

    def parameter(
        self,
        key: object,
        hint: str,
        least: int | None = None,
        values: tuple[int, ...] = (),
        origin: str = "",
        note: str = "",
    ) -> str:
        """The name of the parameter that stands for `key`."""
        full = ("parameter", key)
        if full not in self.keys:
            name = self.preferred.get(key) or fresh_name(hint, self.taken)
            self.keys[full] = name
            self.parameters[name] = Parameter(name, least, values, origin or hint, note)
        return self.keys[full]

    def at_least(self, name: str, least: int) -> None:
        """Note a lower bound of a parameter (an extent of a tensor, say), if it is one."""
        parameter = self.parameters.get(name)
        if parameter is not None and parameter.least is None and not parameter.values:
            parameter.least = least

    def prefer(self, key: object, name: str) -> None:
        """Call the parameter for `key` by the user's own name for it, if that name is free."""
        if key not in self.preferred and name not in self.taken:
            self.preferred[key] = fresh_name(name, self.taken)

    def variable(self, key: object, hint: str) -> str:
        """The scalar of the IR for a variable of the source."""
        full = ("variable", key)
        if full not in self.keys:
            self.keys[full] = fresh_name(hint, self.taken)
        return self.keys[full]

    def tuple_constant(self, hint: str, values: tuple[int, ...], span: ir.Span) -> str:
        """The name of a constant tuple of integers."""
        full = ("tuple", hint, values)
        if full not in self.keys:
            name = fresh_name(hint, self.taken)
            self.keys[full] = name
            items = tuple(ir.Int(v, span=span) for v in values)
            self.constants[name] = ir.Constant(name, items, span=span)
        return self.keys[full]

    def ring(self, key: object, hint: str, size: int, fields: tuple[str, ...], span: ir.Span) -> str:
        """The name of a ring of records."""
        full = ("ring", key)
        if full not in self.keys:
            name = fresh_name(hint, self.taken)
            self.keys[full] = name
            self.rings[name] = ir.Ring(name, ir.Int(size, span=span), fields, span=span)
        return self.keys[full]

    def function(self, key: object, hint: str, meaning: str) -> str:
        """The name of an uninterpreted function; `meaning` says what it stands for."""
        full = ("function", key)
        if full not in self.keys:
            self.keys[full] = fresh_name(hint, self.taken)
        name = self.keys[full]
        self.functions[name] = meaning
        return name

    def element_function(self, key: object, tensor: str) -> str:
        """The uninterpreted function for the elements of a tensor that the kernel does not write."""
        full = ("function", key)
        if full not in self.keys:
            self.keys[full] = tensor if tensor not in self.functions else fresh_name(tensor, self.taken)
        self.functions[self.keys[full]] = f"the elements of {tensor}"
        return self.keys[full]

    def stable(self, name: str) -> bool:
        """Whether an IR name keeps its value throughout."""
        return name in self.parameters or name in self.constants or name in ("block", "sub")

    def count(self) -> None:
        """Count a statement that is read.

        Raises:
            TooLarge: there have been too many.
        """
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise TooLarge

    def restart(self) -> None:
        """Read the kernel again with what was learnt."""
        self.restarts += 1
        if self.restarts > _MAX_RESTARTS:
            raise TooLarge
        raise Restart


Core = Literal["cube", "vector"]
