"""Do the design tables of a protocol say what the kernel does?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.cli import main
from fencepost.plan import Plan, plan
from fencepost.reading import parse
from fencepost.replay import Refused

SCORES = """\
kernel scores(n):
    assume n >= 0
    READY = (0, 1)
    RELEASE = (2, 3)
    buffer tile[2] in Vec at 0x100, 0x200 size 256
    section cube:
        for t in range(n):
            wait_cross_core RELEASE[t % 2] @ FIX
            move tile[t % 2] <- acc @ FIX
            set_cross_core READY[t % 2] @ FIX
        wait_cross_core RELEASE[0] @ FIX
        wait_cross_core RELEASE[1] @ FIX
    section vector:
        set_cross_core RELEASE[0] @ V
        set_cross_core RELEASE[1] @ V
        for t in range(n):
            wait_cross_core READY[t % 2] @ V
            softmax weights <- tile[t % 2] @ V
            set_cross_core RELEASE[t % 2] @ V
"""
MESSAGES = """\
kernel ring(n):
    fifo down: cube -> vector, slots = 2
    section cube:
        for t in range(n):
            matmul s <- q, k @ M
            tpush_to_aiv s
    section vector:
        for t in range(n):
            s <- tpop_from_aic
            exp e <- s @ V
            tfree_to_aic s
"""


def table(planned: Plan, title: str) -> list[dict[str, str]]:
    found = next(t for t in planned.tables if t.title == title)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def test_shared_data() -> None:
    (row,) = table(plan(parse(SCORES)), "Shared data and slots")
    assert row == {
        "buffer": "tile",
        "space": "Vec at 256, 512",
        "slots": "2",
        "written by": "line 9: aic FIX move [t % 2]",
        "read by": "line 18: aiv V softmax [t % 2]",
    }


def test_sync_points_say_what_they_guard() -> None:
    rows = table(plan(parse(SCORES)), "Sync points")
    assert [row["line"] for row in rows] == ["8", "10", "11", "12", "14", "15", "17", "19"]
    assert rows[0]["stands"] == "before write of tile[0] (line 9, FIX)"
    assert rows[1]["stands"] == "after write of tile[0] (line 9, FIX)"
    assert rows[2]["stands"] == "" and rows[2]["times"] == "1"


def test_events() -> None:
    rows = table(plan(parse(SCORES)), "Events")
    assert [(r["group"], r["id"]) for r in rows] == [("RELEASE", "2"), ("RELEASE", "3"), ("READY", "0"), ("READY", "1")]
    release, ready = rows[0], rows[2]
    assert release["says"] == "tile[0] is free" and ready["says"] == "tile[0] is full"
    assert release["used again"] == "1 set before the first use" and ready["used again"] == "after RELEASE 2"
    assert release["set at"] == "line 14 V, line 19 V" and release["awaited at"] == "line 8 FIX, line 11 FIX"
    assert ready["direction"] == "cube -> aiv0, aiv1" and ready["sets, waits"] == "2 = 2"


def test_the_steady_state_uses_every_slot_once() -> None:
    planned = plan(parse(SCORES))
    assert planned.values == {"n": 4} and planned.rounds == 2
    moves = [s.text for s in planned.steady.steps if s.text.startswith("move")]
    assert sorted(moves) == ["move tile[0] <- acc", "move tile[1] <- acc"]
    assert {s.agent for s in planned.steady.steps} == {"aic", "aiv0"}  # aiv1 does the same


def test_messages() -> None:
    planned = plan(parse(MESSAGES))
    (row,) = table(planned, "Messages")
    assert row["pushed at"] == "line 6 S" and row["freed at"] == "line 11 S"
    assert row["direction"] == "cube -> vector" and row["messages"] == str(planned.values["n"])
    assert planned.rounds == 2


def test_chosen_values() -> None:
    planned = plan(parse(SCORES), {"n": 40})
    assert planned.values == {"n": 40} and planned.rounds == 2
    assert plan(parse(SCORES), {"n": 1}).rounds == 0
    with pytest.raises(Refused, match="no parameter 'm'; there is n"):
        plan(parse(SCORES), {"m": 1})
    with pytest.raises(Refused, match="no run of scores with n = -1"):
        plan(parse(SCORES), {"n": -1})


def test_faults_and_gaps_are_told() -> None:
    faulty = SCORES.replace("        wait_cross_core RELEASE[1] @ FIX\n", "")
    assert plan(parse(faulty)).notes == ("the run has faults, see `fencepost check`",)
    (note,) = plan(parse(SCORES + '        unsupported "a call"\n')).notes
    assert note == "line 20 could not be read: a call"


def test_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scores.kir"
    file.write_text(SCORES)
    assert main(["plan", str(file)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("scores   read off the run with n = 4\n") and "Steady state, 2 rounds" in text
    assert main(["plan", "--format", "markdown", str(file)]) == 0
    markdown = capsys.readouterr().out
    assert markdown.startswith("## scores\n") and "| buffer" in markdown and "```" in markdown
    assert main(["plan", "--format", "json", str(file)]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    assert [t["title"] for t in data["tables"]] == ["Shared data and slots", "Sync points", "Events"]
    assert data["steady"]["rounds"] == 2 and data["notes"] == []
    assert main(["plan", str(file), "-p", "n=-3"]) == 2
    assert "no run of scores with n = -3" in capsys.readouterr().err


def test_a_very_deep_pipeline_is_not_written_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "deep.kir"
    file.write_text(
        "kernel deep(n):\n    assume n >= 0\n    buffer x in Mat\n"
        "    for k in pipelined(0, n, stage = (0, 1000000), order = (0, 1)):\n"
        "        load x <- A @ MTE2 at (k)\n        store B <- x @ MTE3 at (k)\n"
    )
    for verb in (["plan"], ["lower"], ["run", "-p", "n=3"]):
        main([verb[0], str(file), *verb[1:]])
        assert "has depth 1000001, more than is shown (256)" in capsys.readouterr().out
