"""Are the kept tables those of the grammar, and does reading work without them?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.frontends.kir import parser as kir
from fencepost.frontends.kir.build import Builder
from fencepost.frontends.kir.indent import Indenter
from fencepost.resources import resource

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = json.loads(resource(kir.KEPT).read_text("utf-8"))


def test_the_kept_tables_are_those_of_the_grammar(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        (ROOT / kir.KEPT).write_text(kir.kept_text(), "utf-8")
    wanted = kir.origin(resource(kir.GRAMMAR).read_text("utf-8"))
    kept = json.loads(resource(kir.KEPT).read_text("utf-8"))["made of"]
    assert kept.split(", ")[1] == wanted.split(", ")[1]
    loaded = kir.parser(Indenter(), Builder()).source_path == "<deserialized>"
    assert loaded == (kept == wanted)  # made anew for another Lark


@pytest.mark.parametrize(
    "kept",
    [
        None,
        "",
        "{",
        "[]",
        "null",
        json.dumps({**KEPT, "made of": "another grammar"}),
        json.dumps({**KEPT, "tables": {}}),
        json.dumps({**KEPT, "tables": {"data": {}, "memo": KEPT["tables"]["memo"]}}),
        json.dumps({**KEPT, "tables": {"data": KEPT["tables"]["data"], "memo": {"1": 2}}}),
    ],
    ids=["missing", "empty", "cut off", "a list", "null", "other grammar", "no tables", "no data", "no rules"],
)
def test_tables_that_cannot_be_used_are_made_anew(
    kept: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "grammar").mkdir()
    (tmp_path / kir.GRAMMAR).write_text(resource(kir.GRAMMAR).read_text("utf-8"), "utf-8")
    if kept is not None:
        (tmp_path / kir.KEPT).write_text(kept, "utf-8")
    monkeypatch.setattr(kir, "resource", tmp_path.joinpath)
    made = kir.parser(Indenter(), Builder())
    assert made.source_path != "<deserialized>"
    assert {t.name for t in made.terminals} >= {"NAME"}
