"""What is the smallest kernel that still shows it?  Greedy reduction of a kernel under a predicate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fencepost import ir
from fencepost.printer import print_kernel
from fencepost.reading import parse
from fencepost.validate import validate

from .editing import bodies, expressions, inner, substitute, with_body

Predicate = Callable[[ir.Kernel], bool]


def reduce(kernel: ir.Kernel, shows: Predicate, rounds: int = 40) -> ir.Kernel:
    """The kernel after every simplification that keeps `shows` true; spans are those of its printed text."""
    for _ in range(rounds):
        for candidate in _simpler(kernel):
            if not validate(candidate):
                fresh = parse(print_kernel(candidate))
                if _holds(shows, fresh):
                    kernel = fresh
                    break
        else:
            return kernel
    return kernel


def _holds(shows: Predicate, kernel: ir.Kernel) -> bool:
    try:
        return shows(kernel)
    except Exception:  # a candidate may break the tool in another way: not the one looked for
        return False


def _simpler(kernel: ir.Kernel) -> Iterator[ir.Kernel]:
    """Candidates, the largest cuts first."""
    for path, body in bodies(kernel):
        for size in (len(body) // 2, len(body) // 4, 1):
            if size == 0 or (path == () and size == len(body)):
                continue
            for at in range(0, len(body), size):
                rest = (*body[:at], *body[at + size :])
                yield with_body(kernel, path, rest or ((ir.Pass(),) if path else ()))
    for path, body in bodies(kernel):
        for i, stmt in enumerate(body):
            if isinstance(stmt, (ir.If, ir.For)):
                for some in inner(stmt):
                    yield with_body(kernel, path, (*body[:i], *some, *body[i + 1 :]))
    for name in ("assumes", "constants", "buffers", "fifos", "rings"):
        items = getattr(kernel, name)
        for i in range(len(items)):
            yield replace(kernel, **{name: (*items[:i], *items[i + 1 :])})
    used = {n.id for n in ir.walk(kernel) if isinstance(n, ir.Name)}
    yield from (
        replace(kernel, parameters=tuple(q for q in kernel.parameters if q != p))
        for p in kernel.parameters
        if p not in used
    )
    for path, body in bodies(kernel):
        for i, stmt in enumerate(body):
            for node in expressions(stmt) if not isinstance(stmt, ir.Section) else ():
                for new in _smaller(node, kernel):
                    yield with_body(kernel, path, (*body[:i], substitute(stmt, node, new), *body[i + 1 :]))


def _smaller(node: ir.Node, kernel: ir.Kernel) -> Iterator[ir.Expr]:
    match node:
        case ir.Name(id=name) if name not in ir.BUILTINS:
            yield ir.Int(0)
        case ir.Binary(left=left, right=right):
            yield left
            yield right
        case ir.Item(name=name, index=ir.Int(value=value)):
            values = next((c.value for c in kernel.constants if c.name == name), ())
            if isinstance(values, tuple) and 0 <= value < len(values):
                yield values[value]
        case ir.Logic(operands=operands):
            yield from operands
        case ir.Choose(then=then, other=other):
            yield then
            yield other
        case ir.Call(function="min" | "max", arguments=arguments):
            yield from arguments
