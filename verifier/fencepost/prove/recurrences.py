"""Recurrences: which formula in the trip number gives each value at the start of a trip?

One trip was executed on placeholders; every value after it is a term in them.  Counters become sums, cursors become
remainders of sums, values that a trip computes afresh are those of the trip before, rings roll.  A value that follows
none of these laws becomes an unknown function of the indices, which is sound and rarely useful.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fencepost.prove.events import Loop
from fencepost.prove.expressions import Env, Key, State
from fencepost.prove.ranks import Summation
from fencepost.prove.rewrite import Known, Replacement, Substitution
from fencepost.prove.rings import Anything, Base, RingState, Rolling, roll
from fencepost.prove.terms import ZERO, Lin, apply, choose, const, eq, le, mod, symbol

_LARGEST = 16  # the largest size of a cursor that is wrapped by hand


@dataclass(slots=True)
class Recurrences:
    """The values at the head of one loop, as formulas in its index.

    `before` is the state in front of the loop, `outer` the indices of the loops around it.  `inside` holds facts about
    every trip, `outside` facts about every value of the index from 0 to the number of trips.  `guessing`: the state in
    front is itself a placeholder, and cursors may be taken to be in range.
    """

    summation: Summation
    loop: Loop
    agent: str
    before: State
    outer: tuple[str, ...]
    inside: Known
    outside: Known
    guessing: bool = False
    solved: dict[Key, Lin] = field(default_factory=dict)
    unsolved: set[Key] = field(default_factory=set)
    _rings: dict[int, Base] = field(default_factory=dict)
    _names: dict[str, int] = field(default_factory=dict)

    def placeholders(self, changed: set[int]) -> tuple[Env, dict[int, RingState]]:
        """Values for a trial trip: a placeholder for whatever the body can change."""
        env: Env = {k: v for k, v in self.before.env.items() if isinstance(k, int)}
        fields = dict(self.before.rings)
        for slot in sorted(changed):
            name = f"v{slot}?{self.loop.index}"
            self._names[name] = slot
            if slot in fields:
                fields[slot] = RingState(Anything(name), fields[slot].size)
            else:
                env[slot] = symbol(name)
        return env, fields

    def solve_values(self, env: Env, fields: dict[int, RingState]) -> None:
        """Find the formulas of slots and rings from the state after a trip on placeholders."""
        open_ = dict(self._names)
        progress = True
        while progress and open_:
            progress = False
            for name, slot in list(open_.items()):
                change = self._change(open_)
                if slot in fields:
                    found = self._ring(name, slot, fields[slot], change, open_)
                else:
                    found = self._value(name, slot, change.lin(env[slot]), open_)
                if found:
                    del open_[name]
                    progress = True
        for slot in open_.values():
            unknown = f"any.{self.agent}.{self.loop.index}.{slot}"
            terms = tuple(map(symbol, (self.loop.index, *self.outer)))
            if slot in fields:
                self._rings[slot] = Anything(unknown, terms)
            else:
                self.solved[slot] = apply(unknown, terms)
                self.unsolved.add(slot)

    def solve_counts(self, env: Env) -> None:
        """Find the formulas of the counters from what one trip adds to them."""
        for key, grown in env.items():
            if not isinstance(key, int):
                self.solved[key] = self.before.env.get(key, ZERO) + self._sum(grown)

    @property
    def rolled(self) -> list[int]:
        """The fields of rings that the loop changes."""
        return list(self._rings)

    def at(self, trip: Lin, known: Known) -> tuple[Env, dict[int, RingState]]:
        """Every value at the start of a trip."""
        change = Substitution({self.loop.index: trip}, self.summation.sums.rebuild)
        env = {**self.before.env, **{k: known.lin(change.lin(v)) for k, v in self.solved.items()}}
        fields = dict(self.before.rings)
        for slot, base in self._rings.items():
            fields[slot] = RingState(_moved(base, trip, change), fields[slot].size)
        return env, fields

    def _change(self, open_: dict[str, int]) -> Substitution:
        """Replaces the placeholders that are solved."""
        values = {n: self.solved.get(s, ZERO) for n, s in self._names.items() if n not in open_}
        x = symbol(self.loop.index)
        fields = {n: _moved(self._rings[s], x) for n, s in self._names.items() if s in self._rings}

        def rebuild(name: str, terms: tuple[Lin, ...]) -> Lin:
            base = fields.get(name)
            return self.summation.sums.rebuild(name, terms) if base is None else base.read(terms[0])

        return Substitution(values, rebuild)

    # -------------------------------------------------------------------------------------------- laws

    def _value(self, name: str, slot: int, after: Lin, open_: dict[str, int]) -> bool:
        """Solve one scalar; False if no law fits yet."""
        entry = self.before.env[slot]
        own = symbol(name)
        index = symbol(self.loop.index)
        others = [n for n in open_ if n != name and n in after.symbols]
        if others:
            return False
        if after == own:
            self.solved[slot] = entry
        elif name not in after.symbols:
            earlier = Substitution({self.loop.index: index - 1}, self.summation.sums.rebuild).lin(after)
            self.solved[slot] = choose(le(-index + 1), earlier, entry)
        elif name not in (after - own).symbols:
            self.solved[slot] = entry + self._sum(after - own)
        elif name not in (after + own).symbols and self.loop.index not in (after + own).symbols:
            self.solved[slot] = choose(eq(mod(index, 2)), entry, after + own - entry)
        else:
            return self._cyclic(name, slot, after, entry) or self._wrapped(name, slot, after, entry)
        return True

    def _cyclic(self, name: str, slot: int, after: Lin, entry: Lin) -> bool:
        """A cursor: each trip adds something, modulo a constant."""
        wrapped = [a for a in after.atoms() if a.kind == "mod" and name in a.symbols]
        moduli = {a.number for a in wrapped}
        if len(moduli) != 1:
            return False
        size = moduli.pop()
        plain = after
        for atom in wrapped:
            plain = Replacement(atom, atom.terms[0], self.summation.sums.rebuild).lin(plain)
        grown = plain - symbol(name)
        if name in grown.symbols:
            return False
        self._modulo(slot, entry, grown, size)
        return True

    def _wrapped(self, name: str, slot: int, after: Lin, entry: Lin) -> bool:
        """A cursor by hand: one more, and back to 0 at a constant."""

        def at(k: int) -> Lin:
            return Substitution({name: const(k)}, self.summation.sums.rebuild).lin(after)

        grown = at(0)
        for size in range(2, _LARGEST + 1):
            top = size - 1
            if at(top) == const(top) - grown * top:
                self._modulo(slot, entry, grown, size)
                return True
            if at(top) != grown + top:
                return False
        return False

    def _modulo(self, slot: int, entry: Lin, grown: Lin, size: int) -> None:
        """The value grows by `grown` on every trip, modulo `size`."""
        form = mod(entry + self._sum(grown), size)
        low, high = self.outside.bounds(entry)
        if not self.guessing and (low is None or high is None or low < 0 or high >= size):
            form = choose(le(-symbol(self.loop.index) + 1), form, entry)
        self.solved[slot] = form

    def _sum(self, body: Lin) -> Lin:
        return self.summation.before(body, self.loop.index, self.inside, self.outside)

    def _ring(self, name: str, slot: int, after: RingState, change: Substitution, open_: dict[str, int]) -> bool:
        """Solve one field of a ring; False if it does not roll, or not yet."""
        entry = self.before.rings[slot]
        body = after.rewritten(change)
        if body.base != Anything(name):
            return False
        if not body.stores:
            self._rings[slot] = entry
            return True
        old = apply(f"old.{self.agent}.{self.loop.index}.{slot}", tuple(map(symbol, (self.loop.index, *self.outer))))

        def pending(term: Lin) -> bool:
            return any(n in term.symbols for n in open_)

        found = roll(entry, body, self.loop.index, old, self.summation.sums.rebuild, pending)
        if found is not None:
            self._rings[slot] = found
        return found is not None


def _moved(base: Base, trip: Lin, change: Substitution | None = None) -> Base:
    """The content of a field at the start of a trip."""
    if isinstance(base, Rolling):
        return replace(base, trips=trip)
    return base if change is None else base.rewritten(change)


__all__ = ["Recurrences"]
