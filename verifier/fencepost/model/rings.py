"""When does a message ring of a given size make two cores wait for each other for ever?

The closed forms here are proved in docs/skew.md for every trip count; they answer what the executor can only answer
for one.  `depth` is how many iterations a skewed loop runs ahead; its trip count is a multiple of it, at least twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Literal

Credits = Literal["per_slot", "batched"]
Peer = Literal["sequential", "skewed"]
"""What the other core does: pop, push per iteration, or the same skewed loop (both push first)."""


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring of `slots` slots whose credits travel one by one or in batches.

    A push with index n is *guarded* if it waits for the receiver: if n >= slots and n is a multiple of `batch`.  It
    goes on when at least n - `window` messages have been released.
    """

    slots: int
    credits: Credits

    @property
    def batch(self) -> int:
        """How many releases make one credit."""
        if self.credits == "per_slot":
            return 1
        return self.slots if self.slots <= 2 else self.slots // 2

    @property
    def window(self) -> int:
        """How many messages may be unreleased when a guarded push goes on."""
        return (-(-self.slots // self.batch) - 1) * self.batch

    @property
    def unguarded(self) -> bool:
        """Whether a push can overtake the release of the slot that it writes: the batches do not fill the ring."""
        return self.slots % self.batch != 0


def first_hang(ring: Ring, depth: int, peer: Peer, frees_after_push: bool = False) -> int | None:
    """The smallest index of a push at which a loop skewed by `depth` hangs with its peer, None if it never does.

    The loop hangs if its trip count is larger than that index.  `frees_after_push`: a sequential peer gives the slot
    back only after its own push (with credits one by one this moves the index, never whether the loop hangs).
    """
    batch, window = ring.batch, ring.window
    if peer == "skewed":
        least, lag = ring.slots, window + 1
    elif batch == 1:
        late = 1 if frees_after_push else 0
        least, lag = ring.slots + window + 2 - late, 2 * window + 3 - late
    else:
        least, lag = ring.slots + window + batch, 2 * window + batch + 1
    # The smallest multiple n of `batch` with n >= least and n mod depth >= lag - depth.
    first = -(-least // batch) * batch
    for n in range(first, first + batch * (depth // gcd(batch, depth)), batch):
        if n % depth >= lag - depth:
            return n
    return None


def hangs(ring: Ring, depth: int, trips: int, peer: Peer, frees_after_push: bool = False) -> bool:
    """Whether a loop of `trips` iterations, skewed by `depth`, hangs with its peer."""
    first = first_hang(ring, depth, peer, frees_after_push)
    return first is not None and trips > first


def one_way_hangs(ring: Ring, pushes: int, pops: int) -> bool:
    """Whether a core that only pushes and one that only pops (and frees) end up waiting."""
    last = (pushes - 1) // ring.batch * ring.batch  # the last push that may wait
    return pops > pushes or (last >= ring.slots and last - ring.window > pops)


def largest_safe_depth(ring: Ring, peer: Peer, limit: int, trips: int | None = None) -> int:
    """The largest depth up to `limit` such that neither it nor a smaller one hangs, 0 if even depth 1 does.

    With `trips`, depths that the skew cannot use for so many iterations are left out; without, the answer holds for
    any number of iterations.
    """
    safe = 0
    for depth in range(1, limit + 1):
        if trips is not None and (trips % depth or trips < 2 * depth):
            continue
        first = first_hang(ring, depth, peer)
        if first is not None and (trips is None or trips > first):
            break
        safe = depth
    return safe
