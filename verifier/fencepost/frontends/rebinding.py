"""Which names of a Python text may get another value, or what they stand for change, without an assignment to them?"""

from __future__ import annotations

import ast
import builtins as python
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

NAMESPACES = frozenset({"globals", "locals", "vars"})
"""Functions that give all names of a scope, if they get no argument."""

_ANYTHING = frozenset({"exec", "eval", "builtins", "__builtins__"})
_FRAMES = frozenset({"__globals__", "f_globals", "f_locals", "f_builtins", "_getframe", "currentframe"})
_PATCHING = frozenset({"setattr", "delattr", "patch"})
_FRAMEWORKS = frozenset({"tilelang", "tvm", "torch", "triton", "typing", "functools"})
_LOOKING = frozenset({"len", "sorted", "list", "tuple", "set", "print", "str", "repr"})


def bindings(nodes: Iterable[ast.AST], everywhere: bool = False) -> Iterator[str]:
    """The names that some statements bind, once for each place where they do.

    Args:
        nodes: the statements; blocks in them count, too.
        everywhere: also those of the functions, classes and comprehensions inside, which are names of their own.
    """
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        inside = list(ast.iter_child_nodes(node))
        match node:
            case ast.FunctionDef(name=name, args=given) | ast.AsyncFunctionDef(name=name, args=given):
                yield name
                if not everywhere:
                    inside = [given, *node.decorator_list, *filter(None, [node.returns])]
            case ast.ClassDef(name=name):
                yield name
                if not everywhere:
                    inside = [*node.bases, *node.keywords, *node.decorator_list]
            case ast.Lambda(given) if not everywhere:
                inside = [given]
            case ast.comprehension(iter=over, ifs=conditions) if not everywhere:
                inside = [over, *conditions]
            case ast.AnnAssign(ast.Name(), note, None):
                inside = [note]
            case ast.arg(arg=name) if everywhere:
                yield name
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                yield name
            case ast.MatchMapping(rest=str() as name) | ast.ExceptHandler(name=str() as name):
                yield name
            case ast.Global(names) | ast.Nonlocal(names):
                yield from names
            case ast.alias(name=name, asname=other) if name != "*":
                yield (other or name).partition(".")[0]
        stack += inside[::-1]


def assigned_inside(stmt: ast.stmt) -> set[str]:
    """The names that `:=` binds in the expressions of a statement, without those of statements inside it."""
    found: set[str] = set()
    stack = [n for n in ast.iter_child_nodes(stmt) if not isinstance(n, ast.stmt)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.NamedExpr):
            found.add(node.target.id)
        if isinstance(node, ast.Lambda):
            stack.append(node.args)
        elif not isinstance(node, ast.stmt):
            stack += ast.iter_child_nodes(node)
    return found


def declared_global(tree: ast.AST) -> set[str]:
    """The names that functions or classes declare to be those of the module: they may assign them."""
    return {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}


def declared_elsewhere(function: ast.AST) -> set[str]:
    """The names that a function, or one inside it, declares to be those of a scope around it."""
    kinds = (ast.Global, ast.Nonlocal)
    return {name for node in ast.walk(function) if isinstance(node, kinds) for name in node.names}


def unsteady(body: Sequence[ast.stmt], start: int, given: Iterable[str] = ()) -> set[str]:
    """The names of a scope that may have several values from its statement number `start` on.

    A name that is bound once has no other value when it is read; that of a built-in function has one from the start.

    Args:
        body: the statements of the scope.
        start: the first statement during or after which the names are read.
        given: names that have a value before: parameters.
    """
    later = Counter(bindings(body[start:]))
    loops = [n for n in _own_nodes(body[start:]) if isinstance(n, (ast.For, ast.AsyncFor, ast.While))]
    several = {*bindings(body[:start]), *given, *dir(python), *bindings(loops)}
    found = {name for name, count in later.items() if count > 1 or name in several}
    return found | ({*later, *several} if any(map(_takes_all, _own_nodes(body[start:]))) else set())


def _own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of statements, without those of functions inside."""
    stack = list(body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            stack += ast.iter_child_nodes(node)


def _takes_all(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)


def hidden_change(tree: ast.Module, module: str) -> str | None:
    """What may change any name of the module, with its line; None if nothing can.

    Args:
        tree: the text.
        module: the name under which the text can be imported.
    """
    harmless = set(_looks(tree, module))
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    found: list[tuple[int, str]] = []
    while stack:
        node, inside = stack.pop()
        word = None if id(node) in harmless else _word(node, inside, module)
        if word is not None:
            found.append((getattr(node, "lineno", 0), word))
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        stack += [(child, inside) for child in ast.iter_child_nodes(node)]
    if not found:
        return None
    line, word = min(found)
    return f"{word} on line {line} may change it"


def _word(node: ast.AST, inside: bool, module: str) -> str | None:
    """What a node is called, if it may change any name of the module; `inside`: in a function."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in _ANYTHING:
            return name
        case ast.Name(id=name, ctx=ast.Load()) if name in NAMESPACES:
            return None if inside and name != "globals" else f"{name}()"  # a function has a copy of its own
        case ast.Attribute(attr="modules"):
            return "sys.modules"
        case ast.Attribute(value=ast.Name(id="inspect"), attr="stack"):
            return "inspect.stack"
        case ast.Attribute(attr=name) if name in _FRAMES:
            return name
        case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__")):
            return "an import of some module" if _may_be_own(node.args[0] if node.args else None, module) else None
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[first, *_]) if name in _PATCHING:
            texts = [n.value for n in ast.walk(first) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            named = any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(first))
            return name if named or any({module, "__main__"} & {*text.split(".")} for text in texts) else None
        case ast.Import(names=names):
            return next((f"import {a.name}" for a in names if _is_own(a.name, module)), None)
        case ast.ImportFrom(module="sys" | "inspect" | "builtins" as origin, names=names):
            words = {"modules", "stack", *_FRAMES, *_ANYTHING, *NAMESPACES}
            return next((f"{origin}.{a.name}" for a in names if a.name in words), None)
        case ast.ImportFrom(module=origin, names=names) if not _is_foreign(origin, node.level):
            own = any(_is_own(name, module) for name in (origin or "", *(a.name for a in names)))
            return f"an import from {origin or '.'}" if own else None
    return None


def _may_be_own(name: ast.expr | None, module: str) -> bool:
    """Whether the name of a module may be that of the text itself."""
    return not (isinstance(name, ast.Constant) and isinstance(name.value, str)) or _is_own(name.value, module)


def _is_foreign(origin: str | None, level: int) -> bool:
    """Whether an import is from a framework, which holds no program that is read here."""
    return not level and (origin or "").partition(".")[0] in _FRAMEWORKS


def imports_all(tree: ast.AST) -> bool:
    """Whether the text takes all names of a module that is not of the language."""
    stars = (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and any(a.name == "*" for a in n.names))
    return any((n.module or "").partition(".")[0] not in ("tilelang", "tvm") for n in stars)


def _is_own(name: str, module: str) -> bool:
    return name.rpartition(".")[2] in ("__main__", module)


def _looks(tree: ast.Module, module: str) -> Iterator[int]:
    """What only looks at the names of a namespace, or is none, by id."""
    for node in ast.walk(tree):
        looked: list[ast.expr] = []
        match node:
            case ast.Compare(ops=ops, comparators=others):
                looked = [o for op, o in zip(ops, others, strict=True) if isinstance(op, (ast.In, ast.NotIn))]
            case ast.Call(func=ast.Attribute(value=base, attr="keys")):
                looked = [base]
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _LOOKING:
                looked = list(arguments)
            case ast.For(iter=over) | ast.comprehension(iter=over):
                looked = [over]
            case ast.Subscript(value=ast.Attribute() as base, slice=key) if not _may_be_own(key, module):
                looked = [base]
        for expression in looked:
            match expression:
                case ast.Call(func=ast.Name() as called, args=[], keywords=[]):
                    yield id(called)
                case ast.Attribute(attr="modules"):
                    yield id(expression)
        match node:
            case ast.Call(func=ast.Name(id="vars") as called, args=[_]):  # changes what it is given, if anything
                yield id(called)
            case ast.Call(func=ast.Attribute(attr="modules") as method):  # of a neural network
                yield id(method)
