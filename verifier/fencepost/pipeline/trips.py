"""Which trip counts can a loop have?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fencepost import ir
from fencepost.pipeline.setting import Setting


class Unclear(Exception):
    """The solver could not say whether a trip count is possible; the message says why."""


class Trips(Protocol):
    """The possible trip counts of a loop, and concrete parameters for each."""

    def only(self) -> int | None:
        """The trip count if there is just one."""

    def least(self, at_least: int, residue: int = 0, modulus: int = 1) -> int | None:
        """The least possible trip count n >= `at_least` with n % `modulus` == `residue`, or None.

        Raises:
            Unclear: that is not known.
        """

    def setting(self, trips: int) -> Setting | None:
        """Parameters that make the loop run `trips` times, or None if there are none.

        Raises:
            Unclear: that is not known.
        """

    def given(self, condition: ir.Expr, holds: bool) -> Trips:
        """The trip counts for which, besides, `condition` holds or does not hold."""

    def computed(self, condition: ir.Expr) -> str | None:
        """A name in `condition` whose value the kernel computes before the loop, so that not every one is possible."""


@dataclass(frozen=True, slots=True)
class AnyTrips:
    """Every trip count from 0 on."""

    def only(self) -> int | None:
        return None

    def least(self, at_least: int, residue: int = 0, modulus: int = 1) -> int | None:
        return at_least + (residue - at_least) % modulus

    def setting(self, trips: int) -> Setting | None:
        return Setting()

    def given(self, condition: ir.Expr, holds: bool) -> Trips:
        return self

    def computed(self, condition: ir.Expr) -> str | None:
        return None


ANY_TRIPS = AnyTrips()
