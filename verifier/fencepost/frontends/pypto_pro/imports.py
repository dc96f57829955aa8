"""Which names does an import bind, and to what?"""

from __future__ import annotations

import ast

from fencepost.frontends.pypto_pro.values import Module

_CANONICAL = {
    "pypto_pro.language": "pl",
    "pypto_pro": "pypto_pro",
    "pypto_pro.language.Vf": "vf",
    "pl.Vf": "vf",
}


def imports(stmt: ast.Import | ast.ImportFrom) -> dict[str, Module]:
    """The names that an import binds."""
    found: dict[str, Module] = {}
    for alias in stmt.names:
        if isinstance(stmt, ast.ImportFrom):
            found[alias.asname or alias.name] = imported(stmt.module or "", alias.name)
        else:
            path = alias.name if alias.asname else alias.name.split(".")[0]
            found[alias.asname or path] = Module(_CANONICAL.get(path, path))
    return found


def imported(module: str, name: str) -> Module:
    """What `from module import name` binds."""
    path = f"{module}.{name}"
    if path in _CANONICAL:
        return Module(_CANONICAL[path])
    if module == "pypto_pro.language":
        return Module(f"pl.{name}")
    return Module(path)
