"""Random loops that compute with scalars and binds, against an interpreter of their own."""

from __future__ import annotations

import os
from collections import Counter

from random_scalars import problems

FIRST = int(os.environ.get("FENCEPOST_SEED", "0"))


def test_random_scalars() -> None:
    found = list(problems(range(FIRST, FIRST + 150)))
    assert not [problem for _, problem in found if problem]
    verdicts = Counter(verdict.removesuffix(" (never seen)") for verdict, _ in found)
    assert verdicts["proved"] > 60 and verdicts["refuted"] > 12 and verdicts["unknown"] < 30
