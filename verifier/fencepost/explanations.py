"""Which page explains a code?  The rules have theirs; what is said about suppressions is explained here."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost_rules.registry import UnknownRule, rule

_SUPPRESSIONS = {
    "001": """\
FP001  suppression without a reason  (warning)

A comment accepts a finding but does not say why:

    set_cross_core 2 @ V  # fencepost: ignore[206]

Whoever reads the kernel later can't tell whether the reason still holds. Write it behind the bracket:

    set_cross_core 2 @ V  # fencepost: ignore[206] counters are cleared at launch""",
    "002": """\
FP002  suppression of nothing  (warning)

A comment accepts findings, but its line has none with these codes. Either the defect was mended, and the comment must
go before it hides the next one, or it stands on another line than the finding, or its code is wrong. A comment on a
line of its own speaks of the next line of code.""",
}


class UnknownCode(LookupError):
    """No rule has this code; the message names the nearest one."""

    def __str__(self) -> str:
        return str(self.args[0])


def page(code: str) -> str:
    """Return the page of a rule by its code ("206", "FP206") or name.  Raises UnknownCode."""
    own = _SUPPRESSIONS.get(code.strip().upper().removeprefix("FP"))
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
