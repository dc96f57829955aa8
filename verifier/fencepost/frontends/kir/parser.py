"""Which parser reads kernel IR?  Lark's, with the tables that were made of the grammar when it was last changed.

Making the tables takes Lark longer than everything else that a small kernel needs, so they are kept beside the grammar.
Where they do not fit the grammar or the installed Lark they are made anew.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

import lark

from fencepost.frontends.kir.build import Builder
from fencepost.frontends.kir.indent import Indenter
from fencepost.resources import resource

GRAMMAR = "grammar/kernel_ir.lark"
KEPT = "grammar/kernel_ir.json"


def parser(indenter: Indenter, builder: Builder) -> lark.Lark:
    """The parser, whose tokens pass through `indenter` and whose rules are built by `builder`."""
    grammar = resource(GRAMMAR).read_text(encoding="utf-8")
    try:
        kept = json.loads(resource(KEPT).read_text(encoding="utf-8"))
        if kept["made of"] == origin(grammar):
            # what the stand-alone parsers call that Lark generates
            load: Any = lark.Lark._load_from_dict
            return cast(lark.Lark, load(**_numbered(kept["tables"]), postlex=indenter, transformer=builder))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, AssertionError, lark.exceptions.LarkError):
        pass  # missing or damaged: the grammar says it all
    return _made(grammar, postlex=indenter, transformer=builder)


def kept_text() -> str:
    """The text of the kept tables, as they should be."""
    grammar = resource(GRAMMAR).read_text(encoding="utf-8")
    data, memo = _made(grammar, postlex=Indenter()).memo_serialize([lark.lexer.TerminalDef, lark.grammar.Rule])
    data["options"] = {k: v for k, v in data["options"].items() if k != "postlex"}
    tables = {"data": data, "memo": memo}
    return json.dumps({"made of": origin(grammar), "tables": tables}, separators=(",", ":"), sort_keys=True) + "\n"


def _made(grammar: str, **given: Any) -> lark.Lark:
    return lark.Lark(
        grammar, parser="lalr", lexer="contextual", keep_all_tokens=True, maybe_placeholders=False, **given
    )


def origin(grammar: str) -> str:
    """What tables are made of: the version of Lark, and a hash of the grammar."""
    return f"lark {lark.__version__}, {hashlib.sha256(grammar.encode()).hexdigest()}"


def _numbered(value: Any) -> Any:
    """What JSON read, with numbers for keys where they are numbers."""
    if isinstance(value, dict):
        return {int(k) if k.isdecimal() else k: _numbered(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_numbered(v) for v in value]
    return value
