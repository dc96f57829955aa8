"""Search: which faults do the boundary shapes of a kernel show, and at which smallest values?

The work is measured in executed operations, so the outcome does not depend on the machine's speed.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from random import Random
from typing import Literal

from fencepost import ir
from fencepost.diagnose.blocks import blocks, blocks_ordered, shared_buffers
from fencepost.diagnose.case import Case
from fencepost.diagnose.causes import Causes
from fencepost.diagnose.diagnosis import Silent, diagnose
from fencepost.diagnose.families import Families
from fencepost.diagnose.messages import early_frees, rings
from fencepost.diagnose.phases import static
from fencepost.diagnose.repair import Repairs, Runner, Signature, signature
from fencepost.diagnose.roles import Protocol
from fencepost.diagnose.signals import explored
from fencepost.diagnose.slots import swapped
from fencepost.facts import Fact
from fencepost.findings import Row, Severity, Undecided
from fencepost.model.classes import Classes
from fencepost.model.effects import Channel, Resolver
from fencepost.model.executor import LimitReached, Run, run
from fencepost.model.functions import Point
from fencepost.model.inputs import units
from fencepost.model.program import Compiled, ModelError, compile_kernel
from fencepost.model.shapes import (
    AXIS,
    FILLINGS,
    Filling,
    Shape,
    Shapes,
    allowed,
    candidates,
    smaller,
    unequal_fillings,
    uses_functions,
)
from fencepost.neighbours import distant, longer, nearest, reductions, samples, scaled, tails
from fencepost.outcome import Kind, Outcome, Seen

_LIMIT = 60_000  # instructions per agent and shape
_PER_SHAPE, _PER_NODE = 50, 4  # what a run costs beside its operations, and a new kernel per node of its IR
_QUICK = 14  # shapes of the quick phase
_QUICK_FILLINGS = 4  # fillings of unknown functions in the quick phase
_SEARCH = 250_000  # operations of the shapes
_UNITS, _UNEQUAL = (1, 2, 3), 4  # further shapes: units per parameter, for up to so many parameters
_PATIENCE = 40_000  # operations of further shapes without a new fault, once there are faults
_COMPLETE = 100_000  # operations spent on smaller shapes than a failing one, in all
_REPAIRS = 300_000  # operations of edited kernels
_TAILS = 150_000  # operations of large shapes, to tell boundary failures
_SHRINK = 40_000  # operations to make one failing shape small
_CHALLENGES, _DISTANT = 60, 250  # draws of large values, and how large they get
_DISTANCE = 12_000  # operations of all of these, and instructions per agent of each
_DIAGNOSES = 16
_LARGER = 6  # fillings with which the use of a channel is looked for
_SWAPS = 8  # clean shapes looked at for warnings: silent tile swaps, frees that come too early elsewhere
_CONTESTS = 8  # shapes whose schedules are explored
_SHARING = 40  # shapes on which blocks are compared
_BLOCKS = 64  # blocks that are compared with one

Judgement = Literal["fails", "clean", "excluded", "too long"]


class Search:
    """One search over the shapes of a kernel, within numbers of operations and a deadline (`time.monotonic`)."""

    def __init__(self, compiled: Compiled, deadline: float) -> None:
        self.compiled = compiled
        self.deadline = deadline
        self.tried = 0
        self.clean = 0
        self.largest: tuple[int, ...] = ()
        self.hung: Shape | None = None
        self.too_long = False
        self.finished = False
        self.peaks: dict[str, int] = {}
        self.undecided: list[Undecided] = []
        self.left: set[tuple[tuple[Channel, int], ...]] = set()
        self.seen: list[Seen] = []
        self.causes = Causes()
        self.known: set[Hashable] = set()
        self.edits: list[tuple[Hashable, ir.Kernel]] = []
        self.families = Families(compiled)
        self.silent = Silent(compiled.kernel)
        self.units = units(compiled)
        self.nodes = sum(1 for _ in ir.walk(compiled.kernel))
        self.functions = uses_functions(compiled.kernel)
        self.classes = Classes(compiled)
        self.shapes = Shapes(compiled)
        self.done: set[Hashable] = set()
        self.spent: dict[str, int] = {"search": 0, "shrink": 0, "repair": 0, "tail": 0, "distant": 0}
        self.diagnoses = 0
        self.completed = 0
        self.explorations = 0
        self.family_of: dict[str, Hashable] = {}
        self._told: set[Hashable] = set()
        self._boundary: set[Hashable] = set()
        self._latest = 0  # operations of shapes when the latest new fact was seen
        self._candidates: list[tuple[int, ...]] | None = None
        self._signatures: dict[Hashable, Signature | None] = {}
        self._sizes: dict[Hashable, int] = {}
        self._points: dict[Hashable, tuple[tuple[Point, int], ...]] = {}
        self._kept: tuple[Hashable, list[Run] | None] | None = None
        self._busy: list[Run] | None = None
        kernel = compiled.kernel
        self._sharing = _SHARING if shared_buffers(kernel) and not blocks_ordered(kernel) else 0
        resolver = Resolver(compiled)
        for fact in (*static(resolver), *rings(resolver)):
            self._add(fact, Shape(()), [])

    # ------------------------------------------------------------------------------------------------ phases

    def quick(self) -> Outcome:
        """Run the smallest shapes: every parameter at its smallest values, alone and together.

        Whether a failure is gone at large trip counts is left to `full`.
        """
        ordered = self.candidates
        equal = [tuple(nearest(self.compiled, p, k) for p in self.compiled.parameters) for k in range(4)]
        equal += [scaled(self.compiled, k) for k in (1, 2)]
        rows = [*ordered[:_QUICK], *sorted({*equal} - {*ordered[:_QUICK]}, key=_size)]
        complete = self._run(rows, FILLINGS[:_QUICK_FILLINGS])
        self.finished = complete and len(ordered) <= _QUICK and not self.functions
        return self.outcome(boundaries=False)

    def full(self) -> Outcome:
        """Run every shape of interest, as far as the budget reaches."""
        far = [row for row in self.candidates if self._is_far(row)]
        if far:  # several units are worth more than the last small values
            near = [row for row in self.candidates if not self._is_far(row)]
            self._run(near, self.shapes.fillings, _SEARCH // 2)
            self._run(far, self.shapes.fillings)
        self.finished = self._run(self.candidates, self.shapes.fillings)
        return self.outcome()

    def further(self) -> Outcome:
        """Run shapes of one to three units per parameter, unequal ones too, also of functions: for faults that a proof
        came upon.
        """
        axes = [
            [nearest(self.compiled, p, k * self.units[p][0]) for k in _UNITS] if p in self.units else [None]
            for p in self.compiled.parameters
        ]
        moving = sum(len(axis) > 1 for axis in axes)
        fillings = unequal_fillings(self.compiled)
        if not self.too_long and moving <= _UNEQUAL and (moving > 1 or fillings):
            names = self.compiled.parameters
            rests = [[nearest(self.compiled, p, 0 if p == "block" else k) for p in names] for k in (0, 1)]
            rows = [
                tuple(r if v is None else v for v, r in zip(values, rest, strict=True))
                for rest in rests[0 if fillings else 1 :]
                for values in product(*axes)
            ]
            ordered = sorted(dict.fromkeys(rows), key=_size)
            self._run(ordered, (*self.shapes.fillings, *fillings), self.spent["search"] + _SEARCH, patient=False)
        return self.outcome()

    def challenge(self) -> Outcome:
        """Run values that lie much further out: a fault there contradicts what seems to be proved."""
        random, top = Random(0), _DISTANT
        for k in range(_CHALLENGES):
            if self.spent["distant"] > _DISTANCE or time.monotonic() > self.deadline:
                break
            filling = self.shapes.fillings[k % len(self.shapes.fillings)]
            shape = self.shapes.at(distant(self.compiled, random, top), filling)
            if not allowed(self.compiled, shape.values, shape.table()):
                continue
            found = self.faults(shape, "distant")
            if found is None:
                top = max(top // 2, AXIS)
            elif found - self.known:
                self._show(shape)
        return self.outcome()

    def run(self) -> Outcome:
        """The whole search."""
        self.quick()
        return self.full()

    def try_values(self, values: Mapping[str, int], functions: Mapping[Point, int] | None = None) -> Judgement:
        """Judge one candidate (of the prover): run it and, if it fails in a new way, make it small first.

        Small means the smallest sum of absolute values, then the order of the parameters, as far as the budget
        reaches.  "fails" includes failures that are known already.
        """
        given = tuple(values.get(p, 0) for p in self.compiled.parameters)
        shape = Shape(given, functions=tuple((functions or {}).items()))
        if not allowed(self.compiled, given, shape.table()):
            return "excluded"
        judged = self.faults(shape, "search")
        if judged is None:
            return "too long"
        if not judged:
            return "clean"
        self._show(shape)
        return "fails"

    @property
    def candidates(self) -> list[tuple[int, ...]]:
        if self._candidates is None:
            self._candidates = candidates(self.compiled)
        return self._candidates

    def _is_far(self, values: tuple[int, ...]) -> bool:
        """Whether some parameter reaches one of its units."""
        pairs = zip(self.compiled.parameters, values, strict=True)
        return any(p in self.units and v >= self.units[p][0] > AXIS for p, v in pairs)

    def _run(
        self,
        rows: Iterable[tuple[int, ...]],
        fillings: tuple[Filling, ...],
        budget: int = _SEARCH,
        patient: bool = True,
    ) -> bool:
        """Run parameter values in order, one of each class.

        False if the budget or the deadline ended it, or, if `patient`, there are faults and nothing new was seen for
        long.
        """
        self._latest = self.spent["search"]
        for values in rows:
            kind = self.classes.of(values)
            for filling in fillings if self.functions else fillings[:1]:
                spent = self.spent["search"]
                if spent > budget or time.monotonic() > self.deadline:
                    return False
                if self._told and patient and spent - self._latest > _PATIENCE:
                    return False
                shape = self.shapes.at(values, filling)
                if (kind, filling) in self.done or not allowed(self.compiled, values, shape.table()):
                    continue
                self.done.add((kind, filling))
                if self.faults(shape, "search", keep=True):
                    self._show(shape)
                runs = self._one(shape)
                if runs is not None and not any(r.functions for r in runs):
                    break  # no function was evaluated: other fillings change nothing
        return True

    def _show(self, shape: Shape) -> None:
        """Record every new fault of a shape at the smallest shape that shows it."""
        while new := (self.faults(shape, "shrink") or frozenset()) - self.known:
            small = self._complete(self._shrink(shape, new), new)
            before = len(self.known)
            self._one(small, late=True)
            if len(self.known) == before:
                return

    def _complete(self, shape: Shape, new: Signature) -> Shape:
        """The first shape that shows one of the faults `new`, at most `shape`; runs those that were left out."""
        fillings = self.shapes.fillings[:_QUICK_FILLINGS]
        passed: set[Hashable] = set()
        for values in smaller(self.compiled, shape.values):
            kind = self.classes.of(values)
            if kind in passed:
                continue
            if self.completed > _COMPLETE or time.monotonic() > self.deadline:
                break
            for filling in fillings:
                one = self.shapes.at(values, filling)
                if not allowed(self.compiled, values, one.table()):
                    continue
                passed.add(kind)
                if (kind, filling) not in self.done:
                    self.done.add((kind, filling))
                    before = self.spent["search"]
                    runs = None if self.faults(one, "search", keep=True) else self._one(one)
                    self.completed += self.spent["search"] - before
                    self.spent["search"] = before
                    if runs is not None and not any(r.functions for r in runs):
                        break
                found = self.faults(one, "shrink")
                if found and found & new:
                    return self._shrink(one, new)
                if found and found - self.known:
                    self._one(self._shrink(one, found - self.known))
        return shape

    def _shrink(self, shape: Shape, new: Signature) -> Shape:
        """A smaller shape that shows one of the faults `new`: one parameter at a time, first far and then by one."""
        before = self.spent["shrink"]

        def fails(one: Shape) -> bool:
            if self.spent["shrink"] - before > _SHRINK or not allowed(self.compiled, one.values, one.table()):
                return False
            judged = self.faults(one, "shrink")
            return judged is not None and bool(judged & new)

        shape = self._explicit(shape)
        improved = True
        while improved:
            improved = False
            for smaller_one in reductions(shape, self.units, self.compiled.parameters):
                if fails(smaller_one):
                    explicit = self._explicit(smaller_one)
                    if _measure(explicit) < _measure(shape):
                        shape, improved = explicit, True
                        break
        return shape

    def _explicit(self, shape: Shape) -> Shape:
        """The shape with the value of every unknown function that its run reads written out."""
        if not self.functions or self.faults(shape, "shrink") is None:
            return shape
        explicit = Shape(shape.values, 0, functions=self._points[self._class(shape)])
        if self._class(explicit) not in self._signatures:  # the same run
            self._copy(self._class(shape), self._class(explicit))
        return explicit

    # ------------------------------------------------------------------------------------------------ one shape

    def execute(self, compiled: Compiled, shape: Shape, account: str, late: bool = False) -> list[Run] | None:
        """Run one shape under every credit scheme that the kernel asks for; None if it is too long or too late.

        `late`: at any time, for it is known what the run shows, and only to be told.
        """
        if self.tried and time.monotonic() > self.deadline and not late:
            return None
        modes: list[Literal["per_slot", "batched"]] = ["per_slot"]
        if compiled.kernel.fifos:
            asked = compiled.kernel.credits
            modes = ["per_slot", "batched"] if asked == "both" else [asked]
        values = dict(zip(compiled.parameters, shape.values, strict=True))
        limit = _DISTANCE if account == "distant" else _LIMIT
        try:
            runs = [run(compiled, values, shape.table(), credits=m, limit=limit) for m in modes]
        except LimitReached:
            self.spent[account] += limit // 10
            return None
        fixed = _PER_SHAPE + 2 * sum(len(program.sites) for program in compiled.programs)
        self.spent[account] += sum(len(ops) for r in runs for ops in r.issued.values()) + fixed
        if compiled is self.compiled:
            for channel in runs[0].channels:
                self.family_of.setdefault(str(channel), self.families.of(channel))
        return runs

    def faults(self, shape: Shape, account: str, keep: bool = False) -> Signature | None:
        """The faults of one shape; None if it is too long.

        `keep`: the runs are wanted next, by `_one`.
        """
        kind = self._class(shape)
        if kind not in self._signatures:
            runs = self.execute(self.compiled, shape, account)
            self._kept = (kind, runs) if keep else None
            if runs is None:
                self._signatures[kind] = None
            else:
                self._note(kind, runs)
        return self._signatures[kind]

    def _class(self, shape: Shape) -> Hashable:
        """Equal for shapes with the same run."""
        return self.classes.of(shape.values), replace(shape, values=())

    def _note(self, kind: Hashable, runs: list[Run]) -> None:
        self._signatures[kind] = signature(runs) | self.silent.faults(runs[0])
        self._sizes[kind] = sum(len(ops) for ops in runs[0].issued.values())
        self._points[kind] = tuple(sorted(runs[0].functions.items()))

    def _copy(self, kind: Hashable, other: Hashable) -> None:
        """Note that the runs of two classes are the same."""
        self._signatures[other] = self._signatures[kind]
        self._sizes[other], self._points[other] = self._sizes[kind], self._points[kind]

    def _one(self, shape: Shape, late: bool = False) -> list[Run] | None:
        """Run one shape and record its outcome."""
        kept, self._kept = self._kept, None
        again = kept is not None and kept[0] == self._class(shape) and _values(kept[1]) == shape.values
        runs = kept[1] if kept is not None and again else self.execute(self.compiled, shape, "search", late)
        if runs is None:
            self.too_long = True
            return None
        self._judge(shape, runs)
        return runs

    def _judge(self, shape: Shape, runs: list[Run]) -> None:
        self.tried += 1
        self.largest = max(self.largest, shape.values, key=_size)
        for r in runs:
            for channel, peak in zip(r.channels, r.peak, strict=True):
                self.peaks[str(channel)] = max(peak, self.peaks.get(str(channel), 0))
        if not runs[0].blocked:
            left = [(runs[0].channels[x.channel], len(x.ops)) for x in runs[0].leftovers]
            self.left.add(tuple(sorted(left, key=str)))
        if self._sharing:
            self._sharing -= 1
            for fact in blocks(runs[0], self._other_blocks(shape)):
                self._add(fact, shape, runs[:1])
                self._sharing = 0
        kind = self._class(shape)
        if self._signatures.get(kind) is None:
            self._note(kind, runs)
        faults = (self._signatures[kind] or frozenset()) | self._contested(runs)
        if not faults:
            self.clean += 1
            if self.clean <= _SWAPS:
                for fact in (*swapped(Protocol(runs[0], self.families)), *early_frees(runs[0])):
                    self._add(fact, shape, runs[:1])
            return
        hung = any(r.blocked for r in runs)
        if hung and (self.hung is None or shape.size < self.hung.size):
            self.hung = shape
        if not faults <= self.known and self.diagnoses < _DIAGNOSES:
            self.known |= faults
            self.diagnoses += 1
            for i, r in enumerate(runs):
                if not r.clean or (i == 0 and self.silent.faults(r)):
                    self._diagnose(shape, r, signature(runs))

    def _other_blocks(self, shape: Shape) -> Iterator[tuple[int, Run]]:
        """Runs of other blocks for the same parameters; without a parameter `block`, all blocks do the same."""
        names = self.compiled.parameters
        if "block" not in names:
            runs = self.execute(self.compiled, shape, "search")
            yield from [(1, runs[0])] if runs else []
            return
        place = names.index("block")
        for block in range(_BLOCKS):
            values = (*shape.values[:place], block, *shape.values[place + 1 :])
            other = replace(shape, values=values)
            if block != shape.values[place] and allowed(self.compiled, values, other.table()):
                runs = self.execute(self.compiled, other, "search")
                yield from [(block, runs[0])] if runs else []

    def _contested(self, runs: list[Run]) -> Signature:
        """Whether the schedules of a run with contested signals differ: they are explored on a few shapes."""
        for r in runs:
            if not r.contested or self.explorations >= _CONTESTS or ("contest", "deadlock") in self.known:
                continue
            self.explorations += 1
            outcome = explored(r)
            if outcome.kind == "deadlock":
                return frozenset({("contest", "deadlock")})
            if outcome.kind == "unknown" and not self.undecided:
                pair = r.contested[0]
                values = ", ".join(f"{p} = {v}" for p, v in r.assignment().items())
                reason = (
                    f"unordered pipes compete for signals (line {pair.first.stmt.span.line} and line "
                    f"{pair.second.stmt.span.line}), and the schedules are too many to explore"
                )
                self.undecided.append(
                    Undecided(Row.PAIRING, reason + (f" at {values}" if values else ""), pair.second.stmt.span)
                )
        return frozenset()

    def _diagnose(self, shape: Shape, r: Run, before: Signature) -> None:
        protocol = Protocol(r, self.families, lambda: self._larger(shape))
        left = max(0, _REPAIRS - self.spent["repair"])
        each = _PER_NODE * self.nodes + self._sizes[self._class(shape)]
        repairs = Repairs(
            self.compiled.kernel, before, self._runner(shape), out_of_time=self._spent_out, affordable=left // each
        )
        case = Case(r, protocol, repairs)
        for cause, edited in self.edits:
            after = repairs.after(edited)
            if after is not None and after <= repairs.before:
                case.explained.append((cause, repairs.before - after))
        for fact in diagnose(case):
            self._add(fact, shape, [r])
        self.edits += repairs.accepted
        self.causes.join(case.aliases)

    def _larger(self, shape: Shape) -> Iterator[Run]:
        """Runs in which loops have trips, to see what a channel is for."""
        larger = longer(self.compiled, shape, 4)
        runs = None if larger is None else self.execute(self.compiled, larger, "repair")
        yield from runs[:1] if runs else ()
        if self._busy is None:
            rows = [scaled(self.compiled, k) for k in (3, 1)]
            made = [self.shapes.at(values, f) for values in rows for f in self.shapes.fillings[:_LARGER]]
            made = [one for one in made if allowed(self.compiled, one.values, one.table())]
            found = [self.execute(self.compiled, one, "repair") for one in made]
            self._busy = [runs[0] for runs in found if runs]
        yield from self._busy

    def _runner(self, witness: Shape) -> Runner:
        """Runs an edited kernel on the witness and on a few other shapes."""
        around = [witness, *samples(self.compiled, witness)]

        def runner(kernel: ir.Kernel) -> Iterator[list[Run]]:
            self._afford(kernel)
            self.spent["repair"] += _PER_NODE * self.nodes
            compiled = compile_kernel(kernel)
            for shape in around:
                self._afford(kernel)
                runs = self.execute(compiled, shape, "repair")
                if runs is None:
                    raise ModelError("too long for a repair", kernel.span)
                yield runs

        return runner

    def _afford(self, kernel: ir.Kernel) -> None:
        """Stop a repair that there is no budget for."""
        if self._spent_out():
            raise ModelError("no budget left for repairs", kernel.span)

    def _spent_out(self) -> bool:
        return self.spent["repair"] > _REPAIRS or time.monotonic() > self.deadline

    def _add(self, fact: Fact, shape: Shape, runs: list[Run]) -> None:
        key = self.causes.key(fact)
        if key not in self._told and fact.severity in (None, Severity.ERROR):
            self._told.add(key)
            self._latest = self.spent["search"]
        self.seen.append(Seen(fact, shape, runs))

    # ------------------------------------------------------------------------------------------------ outcome

    def outcome(self, boundaries: bool = True) -> Outcome:
        """Everything seen so far: one fact per row and cause, related to the others of its cause.

        `boundaries`: also whether they are gone at large trip counts.
        """
        facts = self.causes.settle(self.seen)
        self.spent["tail"] = 0
        for seen in facts if boundaries else ():
            key = self.causes.key(seen.fact)
            seen.boundary = key in self._boundary or self._is_boundary(seen)
            if seen.boundary:
                self._boundary.add(key)  # whatever is found out later, or no more for want of time
        return Outcome(
            facts,
            self.tried,
            self.clean,
            self.largest,
            self.hung,
            self.finished and not self.too_long,
            dict(self.peaks),
            list(self.undecided),
            next(iter(self.left)) if len(self.left) == 1 else (),
        )

    def _is_boundary(self, seen: Seen) -> bool:
        """Whether a failure leaves out infinitely many values of some trip count: it is gone at some large ones."""
        fact, shape = seen.fact, seen.shape
        if fact.static or not fact.faults or fact.severity not in (None, Severity.ERROR):
            return False
        families = self._left(fact.faults)
        for larger in tails(self.compiled, shape):
            found = self.faults(larger, "tail") if self.spent["tail"] <= _TAILS else None
            if found is None or any(_word(f) == "blocked" for f in found):
                continue
            runs_more = self._sizes[self._class(larger)] > self._sizes[self._class(shape)]  # a loop has more trips
            if runs_more and not fact.faults & found and not families & self._left(found):
                return True
        return False

    def _left(self, faults: Signature) -> set[Hashable]:
        """The families of the channels with signals left."""
        return {self.family_of[str(f[1])] for f in faults if isinstance(f, tuple) and f[0] == "leftover"}


def _word(fault: Hashable) -> str:
    return str(fault[0]) if isinstance(fault, tuple) else ""


def _measure(shape: Shape) -> tuple[tuple[int, tuple[int, ...]], int, float]:
    """The order of failing shapes: parameters, then how many function values, then these."""
    return shape.size, len(shape.functions), sum(abs(value) - (value > 0) / 2 for _, value in shape.functions)


def _values(runs: list[Run] | None) -> tuple[int, ...] | None:
    return runs[0].values if runs else None


def _size(values: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return sum(map(abs, values)), values


__all__ = ["Kind", "Outcome", "Search", "Seen"]
