"""Exploration: does anything go wrong for any parameter values, in a finite number of relative states?

All agents run under one canonical schedule, each blocking as a whole at a wait; if no action can disable another
(persistence, checked on the way) and that run ends, every run ends the same way.  Where control depends on something
unknown the path splits.  A state is compared with those seen before as a relative one (`fencepost.prove.fold`).  When
no new relative state appears, every trip count is covered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from itertools import permutations
from typing import Literal, TypeAlias

from fencepost.findings import Row
from fencepost.model.program import Compiled, compile_kernel
from fencepost.passes.gathered import Gathered
from fencepost.passes.unique import UniqueLoops
from fencepost.prove import parts
from fencepost.prove.explorer import Exploration, Explorer, Trouble
from fencepost.prove.parts import Part

_STATES = 20_000
_FEW = 400  # states after which what agents share is explored apart from what is private
_AGAIN = 1_500  # states of a kernel as it is, where the loosened one may be bad
_LOOSE = 12_000  # states of a loosened kernel, which needs few if it closes at all
_SHARE = 0.7  # of the time, for the parts
_SHORT = 120  # instructions of kernels that are explored as a whole first
_LITTLE = 1  # what is remembered of unknown numbers in a loosened kernel

Enough: TypeAlias = Callable[[Exploration], bool]


def _everything(exploration: Exploration) -> bool:
    return all(exploration.proves(row) for row in Row)


def explore(
    compiled: Compiled,
    deadline: float,
    *,
    credits: Literal["per_slot", "batched"] = "per_slot",
    states: int = _STATES,
    slack: int = 0,
    enough: Enough | None = None,
    counted: bool = True,
) -> Exploration:
    """Explore a kernel for all parameter values.

    Args:
        deadline: `time.monotonic()` after which to give up.
        credits: how FIFO credits travel.
        states: the largest number of states.
        slack: raises every threshold of the folding; the verdict must not depend on it.
        enough: whether an exploration shows what is asked for, so that nothing more is tried; default: all rows.
        counted: whether parts are asked how many signals may be pending at a time.
    """
    few = min(states, _FEW)
    whole = Part(compiled, frozenset(), True)
    short = sum(len(p.code) for p in compiled.programs) <= _SHORT
    if short:
        explored = Explorer(whole, deadline, credits, few, slack).explore()
        if explored.closed or time.monotonic() > deadline:
            return explored
    now = time.monotonic()
    until = now + _SHARE * (deadline - now) if short else deadline
    apart = explore_apart(compiled, until, credits=credits, states=states, slack=slack, enough=enough, counted=counted)
    if apart.closed or few == states or time.monotonic() > deadline:
        return apart
    return Explorer(whole, deadline, credits, states, slack).explore()


def explore_apart(
    compiled: Compiled,
    deadline: float,
    *,
    credits: Literal["per_slot", "batched"] = "per_slot",
    states: int = _STATES,
    slack: int = 0,
    enough: Enough | None = None,
    counted: bool = True,
) -> Exploration:
    """Explore what the agents share, what each keeps to itself, and scalar expressions, one after the other."""
    enough = enough or _everything
    gathered = Gathered().run(compiled.kernel)
    if gathered is not compiled.kernel:
        compiled = compile_kernel(UniqueLoops().run(gathered))
    apart: frozenset[str] = frozenset()
    lanes: list[Exploration] = []
    for group, both in parts.of_lanes(compiled):
        until = time.monotonic() + 0.1 * (deadline - time.monotonic())
        few = min(states, _AGAIN)
        explorers = [Explorer(parts.loosened(p), until, credits, few, slack, _LITTLE, counted) for p in both]
        results = [explorer.explore() for explorer in explorers]
        touched = [explorer.actions.touched() for explorer in explorers]
        meeting = any(a[0] & (b[0] | b[1]) for a, b in permutations(touched, 2))
        if not meeting and all(e.closed and enough(e) for e in results):
            apart |= group
            lanes += results
    several = bool(apart or parts.private(compiled))  # else the shared part is the whole kernel, explored by itself
    shared = parts.shared(compiled, True, apart=apart)
    fewer = parts.shared(compiled, True, flags=False, apart=apart)
    kinds = [[[shared]] if fewer == shared else [[fewer, *parts.flags(compiled)], [shared]]]
    kinds += [[[part]] for part in parts.alone(compiled)]
    found: list[Exploration] = []
    for forms in kinds:
        explored = Exploration(reason="out of time")
        ((part,),) = forms[-1:]
        for kind, form, few in _attempts(forms, part, several, states):
            now = time.monotonic()
            if now > deadline or (kind == "longer" and explored.closed):
                break
            if kind == "exact":
                until, most = (now + 0.25 * (deadline - now), min(few, _AGAIN)) if explored.closed else (deadline, few)
                again = Explorer(part, until, credits, most, slack, counted=counted).explore()
            else:
                loose = (parts.loosened(p, kind == "rows") for p in form)
                again = joined([Explorer(p, deadline, credits, few, slack, _LITTLE, counted).explore() for p in loose])
            explored = again if again.closed or not explored.closed else explored
            if explored.closed and enough(explored):
                break
        if part.checks and not explored.closed:
            # nothing but values of scalars is looked at there
            explored = Exploration(True, troubles=[*explored.troubles, Trouble(("scalar not followed",), {})])
        found.append(explored)
        if not explored.closed:
            break
    return joined([*found, *lanes])


def _attempts(forms: list[list[Part]], part: Part, several: bool, states: int) -> Iterator[tuple[str, list[Part], int]]:
    """How a part is explored until that is enough, and how many states: loosened ("rows": kept to rows), or exact.

    "longer": only if nothing closed before.  If the part is not one of `several`, it is explored exactly by others.
    """
    if not part.checks:
        rows = parts.has_rows(part)
        alone = len(part.compiled.programs) == 1  # then the exact part may have fewer states than the loosened one
        for form in forms[:-1]:
            yield "loose", form, _AGAIN
        yield "loose", [part], min(2 * states, _AGAIN if rows or alone else _LOOSE)
        if rows:
            yield "rows", [part], min(2 * states, _LOOSE)
        if alone:
            yield "exact", [part], min(states, _AGAIN)
            yield "longer", [part], min(2 * states, _LOOSE)
    if several or part.checks:
        yield "exact", [part], states


def joined(found: list[Exploration]) -> Exploration:
    """The explorations of all parts as one: the first is the shared one."""
    shared = found[0]
    result = Exploration(
        closed=all(e.closed for e in found),
        reason=next((e.reason for e in found if not e.closed), ""),
        states=sum(e.states for e in found),
        ends=sum(e.ends for e in found if e.left),
        left=sum(e.left for e in found),
        peaks=shared.peaks,
    )
    seen: set[Hashable] = set()
    for trouble in (t for e in found for t in e.troubles):
        if trouble.fault not in seen:
            seen.add(trouble.fault)
            result.troubles.append(trouble)
    return result
