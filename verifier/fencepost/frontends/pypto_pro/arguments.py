"""Which argument of a call belongs to which parameter of a function?"""

from __future__ import annotations

import ast
from collections.abc import Callable

from fencepost.frontends.pypto_pro.values import Unreadable, Value


def defaults(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """The default values of parameters."""
    spec = function.args
    parameters = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    found = dict(zip(reversed(parameters), reversed(spec.defaults), strict=False))
    return found | {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}


def bind_arguments(
    function: ast.FunctionDef,
    call: ast.Call,
    value: Callable[[ast.expr], Value],
    default: Callable[[ast.expr], Value] | None = None,
) -> dict[str, Value]:
    """Parameter values of a call.  `value` gives those of arguments, `default` (if not `value` too) those left out.

    Raises:
        Unreadable: the arguments do not fit, or are unpacked.
    """
    spec = function.args
    if spec.vararg is not None or spec.kwarg is not None:
        raise Unreadable(f"{function.name} takes any number of arguments", call)
    parameters = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    bound: dict[str, Value] = {}
    for i, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            raise Unreadable("arguments are unpacked with *", call)
        if i >= len(parameters):
            raise Unreadable(f"{function.name} takes {len(parameters)} arguments, {len(call.args)} are given", call)
        bound[parameters[i]] = value(argument)
    allowed = {*parameters, *(a.arg for a in spec.kwonlyargs)}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise Unreadable("arguments are unpacked with **", call)
        if keyword.arg not in allowed or keyword.arg in bound:
            raise Unreadable(f"{function.name} has no free parameter {keyword.arg}", call)
        bound[keyword.arg] = value(keyword.value)
    left = defaults(function)
    for parameter in (*parameters, *(a.arg for a in spec.kwonlyargs)):
        if parameter not in bound:
            if parameter not in left:
                raise Unreadable(f"{function.name} needs a value for {parameter}", call)
            bound[parameter] = (default or value)(left[parameter])
    return bound
