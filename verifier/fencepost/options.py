"""What did the user ask of a check: which kernel variant, which rules, how much time?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from operator import index
from typing import Literal, TypeAlias, get_args

from fencepost.findings import Severity
from fencepost.ir import Expr, Kernel

TargetName: TypeAlias = Literal["a5", "a3", "a2"]
TARGETS: tuple[TargetName, ...] = ("a5", "a3", "a2")


def severity_of(value: object) -> Severity:
    """Read "error", "warning" or "note".  Raises ValueError."""
    try:
        return Severity(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a severity; there are {', '.join(s.value for s in Severity)}") from None


def integers(values: Mapping[str, int]) -> dict[str, int]:
    """The values of parameters as plain integers.  Raises TypeError for another value, and for a name that is none."""
    plain: dict[str, int] = {}
    for name, value in values.items():
        try:
            plain[name] = index(value)
        except TypeError:
            raise TypeError(f"{name} = {value!r} is not an integer") from None
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is not the name of a parameter")
    return plain


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Options of one check; every field has the default of the command line.

    `target` overrides the kernel's own target if that has cores and pipes.  `values` fixes parameters ((name, value)
    pairs), `assume` adds facts about parameters to the kernel's own assumes.  `select`/`ignore` are codes or prefixes
    of codes without "FP" ("206", "2"); an empty `select` means all.  `severity` replaces the severity of codes.
    `timeout` is in seconds per kernel.  `prove` False stops after the search for counterexamples, so nothing with
    parameters is ever proved.  `before` holds kernels as they were before a transformation: a kernel of the same name
    is compared with its own.  `suggest` looks for a right schedule of every pipelined loop that has none.

    Raises ValueError or TypeError for a field that makes no sense.
    """

    target: TargetName | None = None
    values: tuple[tuple[str, int], ...] = ()
    assume: tuple[Expr, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: tuple[tuple[str, Severity], ...] = ()
    timeout: float = 30.0
    prove: bool = True
    suggest: bool = False
    before: tuple[Kernel, ...] = ()

    def __post_init__(self) -> None:
        if self.target is not None and self.target not in TARGETS:
            raise ValueError(f"target {self.target!r}: expected one of {', '.join(TARGETS)}")
        seconds = self.timeout
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < inf:
            raise ValueError(f"timeout {seconds!r}: expected a positive number of seconds")
        integers(dict(self.values))
        for fact in self.assume:
            if not isinstance(fact, get_args(Expr)):
                raise TypeError(f"assume: {fact!r} is not an expression of the IR; `parse_assume` reads a text")
        for code, level in self.severity:
            if not isinstance(level, Severity):
                raise TypeError(f"severity: {code} = {level!r} is not a Severity")
