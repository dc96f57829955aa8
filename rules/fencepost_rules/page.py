"""How is a defect explained?  The page of a rule, read from its module's docstring.

A docstring holds a question (its first line) and the sections below, each a title underlined with dashes.  Bad and
Good each hold one complete kernel, indented by four spaces; in Bad every line that must carry the finding ends with a
comment such as ``# FP206``.  A paragraph ``Consequences: 302, 401`` in Bad lists the codes that other rows report for
the same cause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent, indent
from textwrap import fill as fill_paragraph

SECTIONS = ("What", "Why it hurts", "Bad", "Good", "Suppress")

_TITLE = re.compile(r"^(\S.*)\n-{3,}$", re.MULTILINE)
_CONSEQUENCES = re.compile(r"^Consequences: *(\d{3}(?:, *\d{3})*)$", re.MULTILINE)
_CODE = re.compile(r"`[^`]+`")
_MARK = re.compile(r"[ \t]*# FP\d{3}$", re.MULTILINE)


class PageError(ValueError):
    """A rule's docstring is not a page; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Page:
    """The texts about one rule; prose has one line per paragraph.

    `question` is what the rule answers.  `bad` and `good` are whole kernels as source text; `consequences` are the
    codes that the bad kernel raises beside the rule's own, because other rows report their view of the same cause.
    """

    heading: str
    question: str
    what: str
    why: str
    bad: str
    good: str
    suppress: str
    consequences: tuple[str, ...] = ()

    def marked_lines(self, code: str) -> tuple[int, ...]:
        """Numbers (from 1) of the lines of `bad` that end with the comment ``# FP<code>``."""
        ending = f"# FP{code}"
        return tuple(number for number, line in enumerate(self.bad.splitlines(), 1) if line.endswith(ending))

    def also(self) -> str:
        """A sentence about the consequences; empty if there are none."""
        if not self.consequences:
            return ""
        codes = [f"FP{code}" for code in self.consequences]
        listed = codes[0] if len(codes) == 1 else f"{', '.join(codes[:-1])} and {codes[-1]}"
        return f"This kernel also raises {listed}: each row reports its own view of one cause."

    def __str__(self) -> str:
        """The page for a terminal."""
        parts = (
            f"{self.heading}\n{self.question}",
            _titled("What it means", fill(self.what)),
            _titled("Why it hurts", fill(self.why)),
            _titled("Bad", self.bad, fill(self.also())),
            _titled("Good", self.good),
            _titled("How to suppress it", fill(self.suppress)),
        )
        return "\n\n".join(parts)


def _titled(title: str, *texts: str) -> str:
    body = "\n\n".join(text.rstrip() for text in texts if text)
    return f"{title}\n{indent(body, '  ')}"


def fill(text: str, width: int = 88) -> str:
    """Break the paragraphs of `text` into lines of at most `width` characters, but never inside `code`."""
    glued = _CODE.sub(lambda match: match[0].replace(" ", "\0"), text)
    paragraphs = (
        fill_paragraph(paragraph, width, break_long_words=False, break_on_hyphens=False)
        for paragraph in glued.split("\n\n")
    )
    return "\n\n".join(paragraphs).replace("\0", " ")


def _prose(text: str) -> str:
    """The paragraphs of a section, one line each."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text.strip()))


def parse_page(docstring: str, heading: str) -> Page:
    """Read a page from a module's docstring.

    `heading` is the line that names the rule.  Raises PageError if a section is missing, unknown or out of order.
    """
    pieces = _TITLE.split(docstring.strip())
    question, titles, bodies = pieces[0].strip(), tuple(pieces[1::2]), pieces[2::2]
    if titles != SECTIONS:
        raise PageError(f"{heading}: the sections are {', '.join(titles) or 'none'}; expected {', '.join(SECTIONS)}")
    texts = {title: body.strip("\n") for title, body in zip(titles, bodies, strict=True)}
    empty = [title for title in SECTIONS if not texts[title].strip()]
    if empty or not question:
        raise PageError(f"{heading}: {', '.join(empty) or 'the first line'} is empty")
    found = _CONSEQUENCES.search(texts["Bad"])
    consequences = tuple(re.findall(r"\d{3}", found[1])) if found else ()
    return Page(
        heading=heading,
        question=question,
        what=_prose(texts["What"]),
        why=_prose(texts["Why it hurts"]),
        bad=_kernel(heading, _CONSEQUENCES.sub("", texts["Bad"])),
        good=_kernel(heading, texts["Good"]),
        suppress=_prose(texts["Suppress"]),
        consequences=consequences,
    )


def _kernel(heading: str, text: str) -> str:
    """The kernel of an example section; everything in it must be indented."""
    prose = [line for line in text.splitlines() if line.strip() and not line.startswith("    ")]
    if prose:
        raise PageError(f"{heading}: examples hold a kernel, indented by four spaces, and nothing else: {prose[0]!r}")
    return dedent(text).strip("\n") + "\n"


def without_marks(kernel: str) -> str:
    """A bad kernel without its ``# FP206`` comments."""
    return _MARK.sub("", kernel)
