"""Is every rule's page whole, and are mistakes in a page told?"""

from __future__ import annotations

import re

import pytest

from fencepost.frontends.kir import read
from fencepost.ir import Kernel
from fencepost_rules import rules
from fencepost_rules.page import PageError, fill, parse_page
from fencepost_rules.rule import Rule

EVERY = pytest.mark.parametrize("known", rules(), ids=lambda known: known.code)

PAGE = """Is it right?

What
----
It is
wrong.

And `stays so`.

Why it hurts
------------
It hurts.

Bad
---

    kernel bad():
        pass  # FP206

Consequences: 302, 401

Good
----

    kernel good():
        pass

Suppress
--------
`# fencepost: ignore[206] reason`
"""


@EVERY
def test_page_is_whole(known: Rule) -> None:
    page = known.page()
    assert page.question.endswith("?")
    assert page.what.endswith(".")
    assert page.why.endswith(".")
    assert page.marked_lines(known.code)
    ways = (f"# fencepost: ignore[{known.code}", "`assume ", "`--target`", "`option credits", "with `assume`")
    assert any(way in page.suppress for way in ways)


@EVERY
def test_marks_and_consequences_are_sound(known: Rule) -> None:
    page = known.page()
    codes = {other.code for other in rules()}
    assert set(re.findall(r"FP(\d{3})", page.bad)) == {known.code}
    assert "FP" not in page.good
    assert set(page.consequences) <= codes - {known.code}
    assert list(page.consequences) == sorted(set(page.consequences))
    assert set(re.findall(r"FP(\d{3})", page.what + page.why + page.suppress)) <= codes


@EVERY
def test_examples_are_kernels_with_names_of_their_own(known: Rule) -> None:
    page = known.page()
    kernels: list[Kernel] = []
    for text in (page.bad, page.good):
        result = read(text, "example.kir")
        assert not result.errors
        kernels += result.kernels
    assert len(kernels) == 2
    assert kernels[0] != kernels[1]


@EVERY
def test_terminal_text_fits_and_holds_everything(known: Rule) -> None:
    text = str(known.page())
    assert text.startswith(f"FP{known.code}  {known.name}: ")
    for title in ("What it means", "Why it hurts", "Bad", "Good", "How to suppress it"):
        assert f"\n\n{title}\n" in text
    assert max(map(len, text.splitlines()[2:])) <= 100
    assert not re.search(r"[ \t]$", text, re.MULTILINE)
    assert "\n\n\n" not in text


def test_parts_of_a_page() -> None:
    page = parse_page(PAGE, "FP206  x")
    assert page.what == "It is wrong.\n\nAnd `stays so`."
    assert page.bad == "kernel bad():\n    pass  # FP206\n"
    assert page.good == "kernel good():\n    pass\n"
    assert page.marked_lines("206") == (2,)
    assert page.marked_lines("20") == ()
    assert page.consequences == ("302", "401")
    assert page.also() == "This kernel also raises FP302 and FP401: each row reports its own view of one cause."


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Why it hurts\n------------\nIt hurts.\n", "", "the sections are What, Bad, Good, Suppress; expected What"),
        ("It hurts.\n", "", "Why it hurts is empty"),
        ("Good\n----", "Fine\n----", "the sections are What, Why it hurts, Bad, Fine, Suppress"),
        ("Consequences: 302, 401", "Consequences: some", "examples hold a kernel"),
        ("Is it right?\n", "", "the first line is empty"),
    ],
)
def test_mistakes_in_a_page_are_told(old: str, new: str, message: str) -> None:
    assert old in PAGE
    with pytest.raises(PageError, match=re.escape(message)):
        parse_page(PAGE.replace(old, new), "FP206  x")


def test_missing_docstring_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import fencepost_rules.release_not_awaited as module

    monkeypatch.setattr(module, "__doc__", None)
    with pytest.raises(PageError, match="has no docstring; was Python started with -OO"):
        module.RULE.page()


def test_code_is_never_broken_over_lines() -> None:
    text = "one two `three four five` six"
    assert fill(text, 12) == "one two\n`three four five`\nsix"
