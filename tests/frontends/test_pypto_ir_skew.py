"""Does our skew of a printed kernel give the loops that the compiler printed?"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fencepost import ir
from fencepost.frontends.pypto_ir import read
from fencepost.passes.canonical import canonical
from fencepost.passes.skew import LoopOutcome, Reason, Skew, SkewError

CASES = Path(__file__).parents[2].parent / "shared" / "cases" / "pypto_ir" / "skew"
pytestmark = pytest.mark.skipif(not CASES.exists(), reason=f"no cases at {CASES}")

REASONS = {
    "stage is 1": Reason.STAGE_ONE,
    "start or stop not constant": Reason.BOUNDS,
    "trip < 2": Reason.SHORT,
    "producer uses a loop-carried value": Reason.CARRIED_IN,
    "not exactly one push and one pop": Reason.MESSAGES,
    "carried value that cannot be recomputed": Reason.CARRIED_OVER,
    "no top-level push and pop": Reason.NO_PAIR,
}


@cache
def index() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((CASES / "index.json").read_text()) if CASES.exists() else []
    return loaded


def kernels(file: str) -> dict[str, ir.Kernel]:
    result = read((CASES / file).read_text(), file)
    assert not result.errors
    return {k.name: k for k in result.kernels}


# ------------------------------------------------------------------------------------------------ tests


@pytest.mark.parametrize("case", [c for c in index() if c["after"]], ids=lambda c: str(c["name"]))
def test_pair(case: dict[str, Any]) -> None:
    before, after = kernels(case["before"]), kernels(case["after"])
    assert set(before) == set(after)
    outcomes: dict[str, list[LoopOutcome]] = {}
    for name, kernel in before.items():
        skewed = Skew().run(kernel)
        outcomes[name] = list(skewed.loops)
        assert canonical(skewed.kernel) == canonical(after[name])
        assert canonical(skewed.kernel) != canonical(kernel) or all(o.action == "left" for o in skewed.loops)
        assert Skew().run(skewed.kernel).kernel == skewed.kernel
        assert Skew().run(after[name]).kernel == after[name]
    for loop in case["loops"]:
        outcome = outcomes[loop["function"]].pop(0)
        assert outcome.action == loop["outcome"]
        assert outcome.stage == loop["stage"]
        assert outcome.depth == loop.get("depth")
        if "reason" in loop:
            assert outcome.reasons[0] is REASONS[loop["reason"]]
    assert not any(outcomes.values())


@pytest.mark.parametrize("case", [c for c in index() if not c["after"]], ids=lambda c: str(c["name"]))
def test_exception(case: dict[str, Any]) -> None:
    (kernel,) = kernels(case["before"]).values()
    with pytest.raises(SkewError, match="step") as raised:
        Skew().run(kernel)
    assert raised.value.input_error().line == 9
