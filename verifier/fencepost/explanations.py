"""Which page explains a code?  The rules have theirs; the others are explained here."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.codes import NO_REASON, UNDECIDED, UNUSED
from fencepost_rules.registry import UnknownRule, rule

_OWN = {
    UNDECIDED: """\
FP000  undecided row

A row of the report is unknown: no defect was found, and no proof either. The text report gives the reason below the
row; SARIF, which holds nothing but findings, shows it as FP000. It is no finding: no option and no comment can leave it
out. The exit status is 3 if there is nothing worse.

More time (--timeout), fixed parameters (-p) or a further assume (--assume) often decide it.""",
    NO_REASON[0]: """\
FP001  suppression without a reason  (warning)

A comment accepts a finding but does not say why:

    set_cross_core 2 @ V  # fencepost: ignore[206]

Whoever reads the kernel later can't tell whether the reason still holds. Write it behind the bracket:

    set_cross_core 2 @ V  # fencepost: ignore[206] counters are cleared at launch""",
    UNUSED[0]: """\
FP002  suppression of nothing  (warning)

A comment accepts findings, but its line has none with these codes. Either the defect was mended, and the comment must
go before it hides the next one, or it stands on another line than the finding, or its code is wrong: no rule has it, or
it is only the beginning of one. A comment on a line of its own speaks of the next line of code.""",
}


class UnknownCode(LookupError):
    """No rule has this code; the message names the nearest one."""

    def __str__(self) -> str:
        return str(self.args[0])


def page(code: str) -> str:
    """Return the page of a rule by its code ("206", "FP206") or name.  Raises UnknownCode."""
    own = _OWN.get(code.strip().upper().removeprefix("FP"))
    if own is not None:
        return own
    try:
        return str(rule(code).page())
    except UnknownRule as error:
        raise UnknownCode(str(error)) from None


def pages(codes: Iterable[str]) -> dict[str, str]:
    """Return the pages of those of `codes` that have one."""
    found = {}
    for code in codes:
        try:
            found[code] = page(code)
        except UnknownCode:
            continue
    return found
