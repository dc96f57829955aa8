"""Do the marks of an excerpt stand below the characters that they mean?"""

from __future__ import annotations

from fencepost.findings import Finding, Related, Row, Severity
from fencepost.ir import Span
from fencepost.report.excerpt import caret, excerpt
from fencepost.report.style import Style, width


def finding(span: Span, *related: Related) -> Finding:
    return Finding("201", "name", Row.EVENT_POSITION, Severity.ERROR, "message", span, related)


def marked(source: str, span: Span, *related: Related) -> list[str]:
    return excerpt(finding(span, *related), span.file, source, Style())


def under(lines: list[str], mark: str = "^") -> str:
    """The characters of the line above that stand over the marks, by terminal cells."""
    above, below = lines[-2], lines[-1]
    cells = [c for c in above for _ in range(width(c))]
    return "".join(cells[i] for i, c in enumerate(below) if c == mark)


def test_carets_stand_below_the_span() -> None:
    assert under(marked("a\n  wait 3 @ V\n", Span("f", 2, 8, 2, 9))) == "3"


def test_tabs_take_four_cells() -> None:
    assert under(marked("\t\twait 3 @ V\n", Span("f", 1, 3, 1, 7))) == "wait"


def test_wide_characters_take_two_cells() -> None:
    assert under(marked("名前 = 3  # 注\n", Span("f", 1, 6, 1, 7))) == "3"


def test_a_span_over_lines_is_marked_to_the_end_of_its_first() -> None:
    assert under(marked("f(1,\n  2)\n", Span("f", 1, 1, 2, 5))) == "f(1,"


def test_a_long_line_is_clipped_around_the_span() -> None:
    line = "x" * 5000 + "WAIT" + "y" * 5000
    lines = marked(line, Span("f", 1, 5001, 1, 5005))
    assert under(lines) == "WAIT"
    assert max(map(len, lines)) < 140


def test_a_related_place_is_dashed_and_labelled() -> None:
    lines = marked("set\n\n\nwait\n", Span("f", 4, 1, 4, 5), Related(Span("f", 1, 1, 1, 4), "set here"))
    assert lines == ["1 | set", "  | --- set here", "… |", "4 | wait", "  | ^^^^"]


def test_a_label_without_room_stands_below() -> None:
    lines = marked("set\n", Span("f", 1, 1, 1, 4), Related(Span("f", 1, 1, 1, 4), "w" * 120))
    assert lines == ["1 | set", "  | ^^^", "  | ---", "  | " + "w" * 120]


def test_two_places_on_one_line_show_the_line_once() -> None:
    lines = marked("set wait\n", Span("f", 1, 5, 1, 9), Related(Span("f", 1, 1, 1, 4), "set here"))
    assert lines == ["1 | set wait", "  |     ^^^^", "  | --- set here"]


def test_a_place_beyond_the_source_is_named() -> None:
    assert marked("one line\n", Span("f", 9, 1, 9, 2)) == ["at f:9"]
    assert marked("", Span("f", 1, 1, 1, 2)) == ["at f:1"]


def test_the_caret_of_an_input_error() -> None:
    assert caret("ab cd", 4) == ["ab cd", "   ^"]
    assert caret("", 4) == []
    assert caret("x" * 3000, 2000)[1].index("^") < 110
    assert caret("ab", 3) == ["ab", "  ^"]
