"""How does an observed fact become a finding?  One rule per code: its names, its row, its sentence and its page."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from string import Formatter

from fencepost.facts import Fact
from fencepost.findings import Finding, Row, Severity
from fencepost_rules.page import Page, PageError, parse_page


class SentenceError(LookupError):
    """A fact does not fill the blanks of its rule's sentence: a mistake in the code that made the fact."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One defect that the tool looks for.

    `code` is printed with "FP" before it and never changes its meaning.  `name` is the defect in words joined by
    hyphens; the module of the rule has that name with underscores.  `title` is a short noun phrase or clause.
    `sentence` is the message, with blanks in braces that the values of a fact fill.
    """

    code: str
    name: str
    title: str
    row: Row
    severity: Severity
    sentence: str

    @property
    def module(self) -> str:
        """The module that defines this rule."""
        return f"fencepost_rules.{self.name.replace('-', '_')}"

    @property
    def heading(self) -> str:
        """One line with the code, the name and the title."""
        return f"FP{self.code}  {self.name}: {self.title}  ({self.severity.value}, row {self.row.title})"

    @property
    def blanks(self) -> frozenset[str]:
        """Names of the values that the sentence needs."""
        return frozenset(name for _, name, _, _ in Formatter().parse(self.sentence) if name is not None)

    def page(self) -> Page:
        """The page of this rule, read from the docstring of its module.

        Raises PageError if the docstring is missing (``python -OO`` removes it) or not a page.
        """
        docstring = import_module(self.module).__doc__
        if docstring is None:
            raise PageError(f"FP{self.code}: {self.module} has no docstring; was Python started with -OO?")
        return parse_page(docstring, self.heading)

    def finding(self, fact: Fact) -> Finding:
        """Word a fact; witness and trace are left to the caller.

        Raises SentenceError if the fact is not about this rule, or leaves a blank of the sentence open.
        """
        if fact.code != self.code:
            raise SentenceError(f"FP{self.code} cannot word a fact with the code {fact.code}")
        values = dict(fact.values)
        missing = sorted(self.blanks - values.keys())
        if missing:
            given = ", ".join(sorted(values)) or "nothing"
            raise SentenceError(f"FP{self.code} needs {', '.join(missing)}, but the fact gives {given}")
        return Finding(
            code=self.code,
            name=self.name,
            row=self.row,
            severity=self.severity if fact.severity is None else fact.severity,
            message=self.sentence.format_map(values),
            span=fact.span,
            related=fact.related,
        )
