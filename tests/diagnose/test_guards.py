"""Guards of the two sides that another guard would repair, but that do not differ."""

from __future__ import annotations

from pathlib import Path

from fencepost.engine import check_kernel
from fencepost.options import CheckOptions
from fencepost.reading import parse

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_race_alone_shows_no_difference() -> None:
    """With eight heads, one guard in place of another leaves out the rounds that meet in a slot."""
    text = (EXAMPLES / "attention_two_slots.kir").read_text()
    report = check_kernel(parse(text), CheckOptions(values=(("heads", 8),), prove=False, timeout=120))
    assert {f.code for f in report.findings} == {"202"}
