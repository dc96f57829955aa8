"""What do the verbs show of a kernel's pipelined loops: the program as rewritten, and its steps for concrete values?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fencepost import ir

_MOST = 64  # trips of a loop whose steps are shown
_DEEPEST = 256  # depth of a loop that is shown


def programs(kernel: ir.Kernel) -> Iterator[str]:
    """Lines that show every pipelined loop as the compiler rewrites it: prologue, steady state, epilogue."""
    from fencepost.pipeline.check import pipelines, plan_of
    from fencepost.pipeline.show import program_text

    for loop in pipelines(kernel):
        plan = plan_of(loop, kernel)
        if plan is None:
            yield f"line {loop.span.line}: the loop over {loop.var} is not pipelined (`check` says why)"
            continue
        if plan.depth > _DEEPEST:
            head = f"line {loop.span.line}: the loop over {loop.var}"
            yield f"{head} has depth {plan.depth}, more than is shown ({_DEEPEST})"
            continue
        yield f"line {loop.span.line}: the loop over {loop.var}, pipelined at depth {plan.depth}:"
        yield from ("    " + line for line in program_text(plan, "trips").splitlines())


def steps(kernel: ir.Kernel, values: Mapping[str, int]) -> Iterator[str]:
    """Lines that show which iteration of each statement runs in which step of every pipelined loop."""
    from fencepost.pipeline.check import pipelines, plan_of
    from fencepost.pipeline.show import lanes_text

    for loop in pipelines(kernel):
        plan, trips = plan_of(loop, kernel), _trips(loop, kernel, values)
        head = f"line {loop.span.line}: the loop over {loop.var}"
        if plan is None:
            yield f"{head} is not pipelined (`check` says why)"
        elif trips is None:
            yield f"{head}: its trips depend on more than the parameters"
        elif trips > _MOST:
            yield f"{head}: {trips} trips, more than are shown ({_MOST})"
        elif plan.depth > _DEEPEST:
            yield f"{head} has depth {plan.depth}, more than is shown ({_DEEPEST})"
        else:
            count = f"{trips} trip{'' if trips == 1 else 's'}"
            yield f"{head}, {count} at depth {plan.depth} (iteration of each statement):"
            yield from ("    " + line for line in lanes_text(plan, trips).splitlines())


def _trips(loop: ir.Pipelined, kernel: ir.Kernel, values: Mapping[str, int]) -> int | None:
    """How often a loop runs whose bounds depend on parameters and constants only."""
    from fencepost import ir
    from fencepost.scope import Names

    given = tuple(ir.Constant(name, ir.Int(value)) for name, value in values.items())
    names = Names(replace(kernel, parameters=(), constants=(*given, *kernel.constants)))
    start, stop = names.constant(loop.start), names.constant(loop.stop)
    return None if start is None or stop is None else max(0, stop - start)
