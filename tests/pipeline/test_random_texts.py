"""Random loops as kernel texts, against an interpreter of their own."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from random_texts import examine, problems

FIRST = int(os.environ.get("FENCEPOST_SEED", "0"))


def test_random_texts() -> None:
    verdicts: Counter[str] = Counter()
    assert not list(problems(range(FIRST, FIRST + 150), verdicts))
    assert verdicts["proved"] > 30 and verdicts["refuted"] > 20 and verdicts["unknown"] <= 5


@pytest.mark.parametrize("seed", [119, 141, 153])
def test_the_smallest_trip_count_is_told(seed: int) -> None:
    """A cause that shows early only together with others keeps its early trip count."""
    assert examine(seed) == ("refuted", "")


def test_memory_that_is_less_plain() -> None:
    verdicts: Counter[str] = Counter()
    assert not list(problems(range(FIRST, FIRST + 150), verdicts, memory=True))
    assert verdicts["proved"] > 30 and verdicts["refuted"] > 20 and verdicts["unknown"] <= 5


@pytest.mark.parametrize("seed", [99, 382, 787])
def test_slots_with_a_common_term_and_lanes(seed: int) -> None:
    assert examine(seed, memory=True)[1] == ""
