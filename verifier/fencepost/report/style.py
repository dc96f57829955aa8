"""How does text become safe and coloured for a terminal?"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from fencepost.findings import Severity, Verdict

Colour: TypeAlias = Literal["bold", "dim", "red", "green", "yellow", "cyan"]

_ANSI: dict[Colour, str] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


@dataclass(frozen=True, slots=True)
class Style:
    """Paints text when `colour` is on; otherwise returns it as it is."""

    colour: bool = False

    def paint(self, text: str, *colours: Colour) -> str:
        if not self.colour or not text:
            return text
        return f"\x1b[{';'.join(_ANSI[c] for c in colours)}m{text}\x1b[0m"

    def verdict(self, verdict: Verdict, text: str | None = None) -> str:
        """Paint a verdict, or `text` in the verdict's colour."""
        return self.paint(verdict.value if text is None else text, _verdict_colour(verdict))

    def severity(self, severity: Severity, text: str) -> str:
        return self.paint(text, "bold", _severity_colour(severity))


def _verdict_colour(verdict: Verdict) -> Colour:
    match verdict:
        case Verdict.PROVED:
            return "green"
        case Verdict.REFUTED:
            return "red"
        case Verdict.UNKNOWN | Verdict.VACUOUS:
            return "yellow"
        case Verdict.NOT_APPLICABLE:
            return "dim"
        case _:
            assert_never(verdict)


def _severity_colour(severity: Severity) -> Colour:
    match severity:
        case Severity.ERROR:
            return "red"
        case Severity.WARNING:
            return "yellow"
        case Severity.NOTE:
            return "cyan"
        case _:
            assert_never(severity)


def safe(text: str) -> str:
    """Replace control characters, which a hostile source may hold, by their visible pictures."""
    if text.isprintable():
        return text
    return "".join(_picture(c) for c in text)


def _picture(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def width(text: str) -> int:
    """Number of terminal cells that printable text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)


def fit(text: str, cells: int) -> str:
    """Cut text to at most `cells` terminal cells, marking the cut, and pad it to exactly that many."""
    if width(text) > cells:
        while text and width(text) > cells - 1:
            text = text[:-1]
        text += "…"
    return text + " " * (cells - width(text))
