"""Do verdicts on random kernels agree with all runs on small values?  A small share of the long campaign."""

from __future__ import annotations

import pytest

from campaigns.random_kernels import campaign, random_kernel
from fencepost.printer import print_kernel
from fencepost.reading import parse


@pytest.mark.parametrize("first", range(1, 121, 12))
def test_verdicts(first: int) -> None:
    for result in campaign(range(first, first + 12), timeout=5, quick=0.5):
        assert not result.problems, f"kernel {result.number}:\n{result.text}"


@pytest.mark.parametrize("number", [3181])
def test_what_was_wrong_once(number: int) -> None:
    (result,) = campaign([number], timeout=5, quick=0.5)
    assert not result.problems, f"kernel {result.number}:\n{result.text}"


@pytest.mark.parametrize("first", range(1000, 1200, 50))
def test_printed_kernels_read_back(first: int) -> None:
    for number in range(first, first + 50):
        kernel = random_kernel(number)
        assert parse(print_kernel(kernel)) == kernel
