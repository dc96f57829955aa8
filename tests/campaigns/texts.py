"""How do tests write small kernels and run them?"""

from __future__ import annotations

from textwrap import dedent
from typing import Literal

from fencepost import ir
from fencepost.model.executor import Run, run
from fencepost.model.functions import FunctionTable
from fencepost.reading import parse


def kernel(text: str) -> ir.Kernel:
    """The one kernel in an indented text."""
    return parse(dedent(text).lstrip("\n"))


def execute(
    text: str | ir.Kernel,
    credits: Literal["per_slot", "batched"] = "per_slot",
    functions: FunctionTable | None = None,
    **values: int,
) -> Run:
    """The run of a kernel on concrete values."""
    return run(kernel(text) if isinstance(text, str) else text, values, functions, credits=credits)


def sections(cube: str = "", vector: str = "", declarations: str = "") -> ir.Kernel:
    """A kernel without parameters from the lines of its sections; `;` separates statements of one line."""

    def lines(text: str, indent: str) -> str:
        found = ""
        for line in dedent(text).splitlines():
            inner = line[: len(line) - len(line.lstrip())]
            found += "".join(f"{indent}{inner}{part.strip()}\n" for part in line.split(";") if part.strip())
        return found

    text = "kernel small():\n" + lines(declarations, "    ")
    for name, body in (("cube", cube), ("vector", vector)):
        if body.strip():
            text += f"    section {name}:\n{lines(body, '        ')}"
    return parse(text)


def blocked(result: Run) -> list[str]:
    """Where a run hangs: `agent pipe reason` of every waiting pipe, sorted."""
    return sorted(f"{b.op.effect.agent} {b.op.effect.pipe[1]} {b.reason}" for b in result.blocked)


def peaks(result: Run) -> dict[str, int]:
    """The largest number of signals that can be pending, by channel."""
    return {str(c): p for c, p in zip(result.channels, result.peak, strict=True) if p}


def races(result: Run) -> set[tuple[str, str, str]]:
    """Unordered accesses as (kind, operation, operation), by the names of the operations."""
    return {(r.kind, r.first.stmt.op, r.second.stmt.op) for r in result.races}  # type: ignore[attr-defined]
