"""The rules: which facts are defects, and how are they explained?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fencepost_rules.rule import Rule


def rules() -> tuple[Rule, ...]:
    """All rules, sorted by code.  Needs neither the solver nor the parser."""
    from fencepost_rules import registry

    return registry.rules()
