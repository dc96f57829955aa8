"""Are the kept tables those of the grammar, and does reading work without them?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.frontends.kir import tables
from fencepost.frontends.kir.build import Builder
from fencepost.resources import resource

ROOT = Path(__file__).resolve().parent.parent.parent
GRAMMAR = resource(tables.GRAMMAR).read_text("utf-8")


def test_the_kept_tables_are_those_of_the_grammar(request: pytest.FixtureRequest) -> None:
    golden = request.getfixturevalue("golden")
    golden.check(ROOT / tables.KEPT, tables.text(tables.made(GRAMMAR)))


def test_reading_needs_no_lark_where_the_tables_are_kept() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'verifier')!r}); from fencepost.reading import parse; "
    code += "parse('kernel one(n):\\n    x = n\\n'); print('lark' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


@pytest.mark.parametrize(
    "kept",
    [
        None,
        "",
        "{",
        "[]",
        "null",
        '{"grammar": "of another grammar"}',
        json.dumps({**tables.made(GRAMMAR), "rules": [[1, "no_such_method", "start"]]}),
        json.dumps({**tables.made(GRAMMAR), "states": [10**6]}),
        json.dumps({**tables.made(GRAMMAR), "follow": []}),
    ],
    ids=["missing", "empty", "cut off", "a list", "null", "other grammar", "other rules", "other states", "other form"],
)
def test_tables_that_cannot_be_used_are_made_anew(
    kept: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = Builder()
    wanted = tables.load(builder)
    (tmp_path / "grammar").mkdir()
    (tmp_path / tables.GRAMMAR).write_text(GRAMMAR, "utf-8")
    if kept is not None:
        (tmp_path / tables.KEPT).write_text(kept, "utf-8")
    monkeypatch.setattr(tables, "resource", tmp_path.joinpath)
    found = tables.load(builder)
    assert (found.start, found.end, found.terminals, found.ignored) == (
        wanted.start, wanted.end, wanted.terminals, wanted.ignored
    )  # fmt: skip
    assert found.actions == wanted.actions


def test_rules_that_the_automaton_does_not_know_are_refused() -> None:
    with pytest.raises(ValueError, match="may be empty"):
        tables.made('start: empty "a"\nempty:\n%declare NEWLINE\n')
    with pytest.raises(ValueError, match="inlined"):
        tables.made('start: _two\n_two: "a" "b"\n%declare NEWLINE\n')
