"""Is every rule found, by code and by name, and does it word its facts?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.facts import Fact
from fencepost.findings import Related, Row, Severity
from fencepost.ir import Span
from fencepost.verdicts import row_of
from fencepost_rules import rules
from fencepost_rules.registry import UnknownRule, nearest, rule
from fencepost_rules.rule import Rule, SentenceError

ROOT = Path(__file__).resolve().parents[2]

CODES = [
    *range(101, 106),
    *range(201, 210),
    *range(301, 308),
    *range(401, 406),
    *range(501, 505),
    *range(601, 607),
    *range(701, 709),
    *range(801, 808),
]

BLANKS = {
    "101": "name index depth agent",
    "102": "buffer slot other_slot agent other_agent round",
    "103": "buffer slot other_slot agent other_agent round",
    "104": "detail agent",
    "105": "condition agent",
    "201": "buffer slot reader writer",
    "202": "buffer slot reader writer",
    "203": "buffer slot first second",
    "204": "sync access buffer slot",
    "205": "sync access buffer slot",
    "206": "channel count sets waits",
    "207": "sync access pipe needed buffer slot",
    "208": "buffer slot first second agent",
    "209": "buffer slot first second block other",
    "301": "sync channel sets rank",
    "302": "channel count sets waits",
    "303": "sync channel detail",
    "304": "channel mode other_mode",
    "305": "channel first second",
    "306": "detail",
    "307": "channel first second what",
    "401": "channel sets waits",
    "402": "channel pending capacity",
    "403": "channel sets waits",
    "404": "flag detail",
    "405": "mutex detail",
    "501": "detail when",
    "502": "detail when",
    "503": "guard other",
    "504": "bound other",
    "601": "channel agent other_agent count other_count",
    "602": "buffer slot first second",
}
"""What a fact of each code gives; a code of rows 6, FIFO and phases that is not listed gives a detail."""

SPAN = Span("k.kir", 7, 3, 7, 30)


def test_every_code_of_the_rows_has_a_rule() -> None:
    codes = [known.code for known in rules()]
    assert [code for code in codes if not code.startswith("9")] == [str(code) for code in CODES]
    assert codes == sorted(set(codes))


def test_names_and_titles_are_unique() -> None:
    names = [known.name for known in rules()]
    titles = [known.title for known in rules()]
    assert len(set(names)) == len(names)
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("known", rules(), ids=lambda known: known.code)
def test_rule_stands_in_its_module_and_row(known: Rule) -> None:
    assert sys.modules[known.module].RULE is known
    assert known.row is row_of(known.code)


@pytest.mark.parametrize("known", [k for k in rules() if not k.code.startswith("9")], ids=lambda known: known.code)
def test_sentence_uses_only_what_facts_give(known: Rule) -> None:
    given = BLANKS.get(known.code, "detail").split()
    assert known.blanks <= set(given)
    fact = Fact(known.code, SPAN, tuple((name, f"<{name}>") for name in given))
    finding = known.finding(fact)
    assert all(f"<{name}>" in finding.message for name in known.blanks)
    assert not finding.message.endswith(".")
    assert len(known.sentence) < 180


def test_finding_carries_the_fact() -> None:
    related = (Related(SPAN, "the other end"),)
    values = (("channel", "event 2"), ("count", "1"), ("sets", "4"), ("waits", "3"))
    finding = rule("206").finding(Fact("206", SPAN, values, related))
    assert (finding.code, finding.name, finding.row) == ("206", "release-not-awaited", Row.EVENT_POSITION)
    assert (finding.severity, finding.span, finding.related) == (Severity.ERROR, SPAN, related)
    assert "event 2" in finding.message
    assert "4 set, 3 awaited, 1 left" in finding.message
    assert finding.witness is None


def test_fact_may_override_the_severity() -> None:
    fact = Fact("306", SPAN, (("detail", "x"),), severity=Severity.WARNING)
    assert rule("306").finding(fact).severity is Severity.WARNING


def test_braces_in_values_are_left_alone() -> None:
    assert rule("306").finding(Fact("306", SPAN, (("detail", "{x}"),))).message == "cyclic wait: {x}"


def test_open_blank_is_a_clear_error() -> None:
    with pytest.raises(SentenceError, match="FP206 needs count, waits, but the fact gives channel, sets"):
        rule("206").finding(Fact("206", SPAN, (("channel", "x"), ("sets", "1"))))


def test_fact_of_another_code_is_a_clear_error() -> None:
    with pytest.raises(SentenceError, match="FP206 cannot word a fact with the code 302"):
        rule("206").finding(Fact("302", SPAN, ()))


@pytest.mark.parametrize("text", ["206", "FP206", "fp206", " FP206 ", "release-not-awaited", "Release-Not-Awaited"])
def test_lookup(text: str) -> None:
    assert rule(text).code == "206"


@pytest.mark.parametrize(
    ("text", "near"),
    [("216", "206"), ("FP219", "209"), ("release-not-waited", "206"), ("drift-cursor", "103")],
)
def test_unknown_code_names_the_nearest(text: str, near: str) -> None:
    assert nearest(text).code == near
    with pytest.raises(UnknownRule) as caught:
        rule(text)
    assert str(caught.value) == f"no rule {text!r}; did you mean FP{near} ({rule(near).title})?"


@pytest.mark.parametrize("text", ["", " ", "FP", "1206", "-206", "FP2O6", "²06", "0"])
def test_no_text_is_too_strange(text: str) -> None:
    with pytest.raises(UnknownRule, match="did you mean FP"):
        rule(text)


def test_registry_needs_neither_solver_nor_parser() -> None:
    program = (
        "import sys, fencepost_rules.registry as r; r.rules(); r.rule('206').page()\n"
        "print([m for m in ('z3', 'lark', 'jinja2', 'tabulate') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": f"{ROOT / 'verifier'}:{ROOT / 'rules'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
