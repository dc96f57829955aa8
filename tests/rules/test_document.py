"""Does docs/checks.md say what the rules say?"""

from __future__ import annotations

from pathlib import Path

from fencepost_rules import rules
from fencepost_rules.document import document

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "checks.md"


def test_document_is_up_to_date() -> None:
    written = DOCUMENT.read_text(encoding="utf-8")
    assert written == document(), "run: python -m fencepost_rules.document > docs/checks.md"


def test_document_has_every_rule_and_works_as_markdown() -> None:
    text = document()
    for known in rules():
        assert f"\n### FP{known.code}\n" in text
        assert f"[FP{known.code}](#fp{known.code})" in text
    assert text.count("```") % 2 == 0
    assert max(map(len, (line for line in text.splitlines() if not line.startswith("|")))) <= 120
