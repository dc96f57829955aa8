"""Remainders: joined as arithmetic says, and not followed one by one if they are many."""

from __future__ import annotations

from itertools import product
from math import lcm

import pytest

from fencepost.engine import check_kernel
from fencepost.findings import Verdict
from fencepost.options import CheckOptions
from fencepost.prove.values import EVERYTHING, Knowledge, Symbols
from fencepost.reading import parse


def test_two_remainders_at_once() -> None:
    """All numbers with both remainders, and no others."""
    for one, other in product(range(1, 9), repeat=2):
        for a, b in product(range(one), range(other)):
            symbol = Symbols().parameter("n")
            knowledge = Knowledge()
            form = ((symbol, 1),)
            knowledge.learn(form, EVERYTHING, (one, a))
            both = knowledge.learn(form, EVERYTHING, (other, b))
            numbers = [x for x in range(lcm(one, other)) if x % one == a and x % other == b]
            assert both == bool(numbers)
            assert not both or knowledge.residues[symbol] == (lcm(one, other), numbers[0])


@pytest.mark.parametrize("divisor", [20_000, 65_536, 2**31])
def test_large_divisors(divisor: int) -> None:
    """Following every remainder took minutes and all memory."""
    text = f"""kernel k(n):
    assume n >= 0
    section cube:
        if n % {divisor} == 5:
            set_cross_core 0 @ FIX
    section vector:
        if n % {divisor} == 5:
            wait_cross_core 0 @ V
"""
    assert check_kernel(parse(text), CheckOptions(timeout=30)).verdict is Verdict.PROVED
