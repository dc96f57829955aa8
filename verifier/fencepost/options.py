"""What did the user ask of a check: which kernel variant, which rules, how much time?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fencepost.findings import Severity
from fencepost.ir import Expr, Kernel

TargetName: TypeAlias = Literal["a5", "a3", "a2"]
TARGETS: tuple[TargetName, ...] = ("a5", "a3", "a2")


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Options of one check; every field has the default of the command line.

    `target` overrides the kernel's own target if that has cores and pipes.  `values` fixes parameters ((name, value)
    pairs), `assume` adds facts about parameters to the kernel's own assumes.  `select`/`ignore` are codes or prefixes
    of codes without "FP" ("206", "2"); an empty `select` means all.  `severity` replaces the severity of codes.
    `timeout` is in seconds per kernel.  `prove` False stops after the search for counterexamples, so nothing with
    parameters is ever proved.  `before` holds kernels as they were before a transformation: a kernel of the same name
    is compared with its own.  `suggest` looks for a right schedule of every pipelined loop that has none.
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
