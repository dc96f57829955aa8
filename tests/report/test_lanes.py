"""Does a swim lane show each step in its agent's column?"""

from __future__ import annotations

from fencepost.findings import Step
from fencepost.ir import Span
from fencepost.report.lanes import agents, lanes
from fencepost.report.style import Style


def step(agent: str, text: str, state: str = "done") -> Step:
    return Step(agent, "V", text, Span("f", 7, 1, 7, 2), state)


def test_columns_come_in_the_order_of_the_agents() -> None:
    assert agents([step("aiv1", "a"), step("peer", "b"), step("aic", "c")]) == ["aic", "aiv1", "peer"]


def test_each_step_stands_in_its_column() -> None:
    head, first, second = lanes([step("aic", "set"), step("aiv0", "wait", "waiting")], Style())
    assert [part.strip() for part in head.split("|")] == ["aic", "aiv0"]
    assert [part.strip() for part in first.split("|")] == ["7: V set", ""]
    assert [part.strip() for part in second.split("|")] == ["", "7: STUCK V wait"]


def test_only_the_last_steps_are_shown() -> None:
    steps = [step("aic", f"op{i}") for i in range(30)]
    out = "\n".join(lanes(steps, Style(), limit=5))
    assert "25 earlier steps" in out
    assert "op24" not in out
    assert "op25" in out
    assert "op0" in "\n".join(lanes(steps, Style(), limit=None))


def test_long_steps_are_wrapped_not_cut() -> None:
    words = [f"word{i}" for i in range(40)]
    out = "\n".join(lanes([step("aic", " ".join(words)), step("aiv0", "x")], Style(), cells=60))
    assert all(word in out for word in words)
    assert max(map(len, out.splitlines())) <= 60


def test_no_steps_no_lane() -> None:
    assert lanes([], Style()) == []
