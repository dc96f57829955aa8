"""Are mutants of right kernels refuted in the right row, and equal ones not?  A small share of the long campaign."""

from __future__ import annotations

import pytest

from campaigns.mutants import all_mutants, campaign, origins, sample
from campaigns.mutations import OPERATORS
from fencepost.validate import validate

CHOSEN = sample(2, seed=7)


@pytest.mark.parametrize("part", range(6))
def test_verdicts(part: int) -> None:
    for result in campaign(CHOSEN[part::6], timeout=5, quick=0.5):
        assert not result.problems, f"{result.origin}, {result.what}:\n{result.text}"


def test_every_operator_finds_something() -> None:
    kernels = origins()
    for operator in OPERATORS:
        assert any(not validate(mutant) for kernel in kernels for _, mutant in operator(kernel)), operator.__name__


def test_there_are_enough_mutants() -> None:
    kernels = origins()
    assert len(kernels) >= 25
    assert sum(len(all_mutants(kernel)) for kernel in kernels[:6]) > 400
