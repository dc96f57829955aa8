"""The reference executor: what happens when a kernel runs on concrete values?

It is the execution model (`machine`, `agent`, `signals`, `messages`, `accesses`).  One canonical run decides a concrete
shape, because with one waiting and one setting pipe per channel the k-th set meets the k-th wait in every run; where
that premise fails the run says so (`Contested`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from fencepost import ir
from fencepost.garbage import never_collected
from fencepost.model.functions import FunctionTable
from fencepost.model.issue import LimitReached
from fencepost.model.machine import Machine
from fencepost.model.outcome import (
    Blocked,
    Contested,
    Leftover,
    MessageFault,
    MutexFault,
    Op,
    Overflow,
    PhaseFault,
    Race,
    Run,
    Unwritten,
)
from fencepost.model.program import Compiled, compile_kernel

DEFAULT_LIMIT = 1_000_000


def run(
    kernel: ir.Kernel | Compiled,
    values: Mapping[str, int],
    functions: FunctionTable | None = None,
    *,
    credits: Literal["per_slot", "batched"] = "per_slot",
    limit: int = DEFAULT_LIMIT,
    cut: bool = False,
) -> Run:
    """Execute a kernel on concrete values.

    Args:
        kernel: the kernel, or its compiled form (reuse it for many runs).
        values: one integer per parameter; `block` defaults to 0.
        functions: values of uninterpreted functions; every point is 1 by default.
        credits: how FIFO credits travel.
        limit: the largest number of instructions per agent.
        cut: run only the beginning if there are more; what is wrong in it is wrong in every longer run.

    Raises:
        ModelError: the kernel cannot be modelled.
        LimitReached: the run is longer than `limit`, and not to be cut.
        KeyError: a parameter has no value.
    """
    compiled = kernel if isinstance(kernel, Compiled) else compile_kernel(kernel)
    given = tuple(values.get("block", 0) if p == "block" else values[p] for p in compiled.parameters)
    table = functions if functions is not None else FunctionTable()
    weak: frozenset[int] = frozenset()
    while True:
        with never_collected():
            result = Machine(compiled, given, table, credits, limit, weak, cut).run()
        contested = weak | {c.channel for c in result.contested if c.channel is not None}
        if contested == weak:
            return result
        weak = contested


__all__ = [
    "DEFAULT_LIMIT",
    "Blocked",
    "Contested",
    "Leftover",
    "LimitReached",
    "Machine",
    "MessageFault",
    "MutexFault",
    "Op",
    "Overflow",
    "PhaseFault",
    "Race",
    "Run",
    "Unwritten",
    "run",
]
