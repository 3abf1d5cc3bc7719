"""New code whose effect is elsewhere, or cannot be read where it stands: code made from data, parts of other modules
that are replaced, comparisons that do not compare. By syntax tree, so that no spelling matters. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from mngr.tmr.judge.changed_file import FUNCTIONS, File, Flag, last_name, parsed

MADE, ELSEWHERE, UNEQUAL = "made-code", "patches-all", "comparison"
KINDS = frozenset({MADE, ELSEWHERE, UNEQUAL})
# What makes code, or any object, of data; those below with a constant name are imports like any other.
_MAKERS = frozenset(
    {"exec", "eval", "compile", "FunctionType", "CodeType", "run_path", "exec_module", "SourceFileLoader"}
)
_LOADERS = {"load": ("marshal", "pickle", "dill", "shelve"), "loads": ("marshal", "pickle", "dill")}
_IMPORTS = frozenset({"import_module", "__import__", "run_module"})
_COMPARES = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"})
_SHOWS = frozenset({"__repr__", "__str__", "__hash__", "__bool__", "__len__", "__instancecheck__", "__subclasscheck__"})


def find(file: File) -> Iterator[Flag]:
    """The flags of one changed file; none for a language other than Python."""
    tree = parsed(file.after) if file.path.endswith(".py") else None
    if tree is None:
        return
    lines = {number for number, _ in file.added()}
    imported = _imported(tree)
    if file.implementation and file.before is not None and (bent := _only_shown(tree, file)):
        told = f"`{file.path}` only changes how its objects are compared or shown, in `{bent}`"
        yield Flag(UNEQUAL, file.path, told)
    for node in ast.walk(tree):
        if getattr(node, "lineno", 0) in lines:
            yield from _made(file, node)
            yield from _elsewhere(file, node, imported)
        if isinstance(node, ast.ClassDef):
            yield from _of_class(file, node, lines)


def _made(file: File, node: ast.AST) -> Iterator[Flag]:
    if not isinstance(node, ast.Call):
        return
    name, function = last_name(node.func), node.func
    of = last_name(function.value) if isinstance(function, ast.Attribute) else ""
    made = name in _MAKERS and of not in ("re", "regex", "sre_compile")
    chosen = name in _IMPORTS and bool(node.args) and not isinstance(node.args[0], ast.Constant)
    if made or chosen or of in _LOADERS.get(name, ()):
        yield Flag(
            MADE, file.path, f"`{file.path}` line {node.lineno} makes code from data: `{cut(node)}`; not looked at"
        )


def _imported(tree: ast.Module) -> set[str]:
    names = [name for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for name in node.names]
    return {(name.asname or name.name).partition(".")[0] for name in names}


def _elsewhere(file: File, node: ast.AST, imported: set[str]) -> Iterator[Flag]:
    """New lines that change a part of another module for everybody who uses it later."""
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        yield from _told(file, [node], imported)
    elif isinstance(node, ast.Call) and last_name(node.func) in ("setattr", "delattr", "__setattr__"):
        yield from _told(file, node.args[:1], imported)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_namespace(node.func.value):
        yield from _told(file, [node.func.value], imported)


def _told(file: File, targets: Sequence[ast.expr], imported: set[str]) -> Iterator[Flag]:
    for target in targets:
        whole = ast.unparse(target)
        own = file.implementation and ".environ" in whole  # a program may set variables for those that it starts
        if root(target) in imported and not own:
            text = f"`{file.path}` line {target.lineno} changes `{cut(target)}`, which other code uses too"
            yield Flag(ELSEWHERE, file.path, text)


def _is_namespace(node: ast.expr) -> bool:
    """`vars(module)`, `module.__dict__`, `sys.modules`."""
    if isinstance(node, ast.Call):
        return last_name(node.func) == "vars" and bool(node.args)
    return last_name(node) in ("__dict__", "modules")


def root(node: ast.AST) -> str:
    """The name that an expression begins with; of `vars(a)` it is `a`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Call):
            node = node.args[0] if last_name(node.func) in ("vars", "getattr") and node.args else node.func
        else:
            node = node.value
    return last_name(node)


def _of_class(file: File, node: ast.ClassDef, lines: set[int]) -> Iterator[Flag]:
    """New methods of a class by which it is equal to, or shown as, whatever the test wants."""

    def told(part: ast.AST, why: str) -> Flag:
        return Flag(UNEQUAL, file.path, f"`{file.path}` line {getattr(part, 'lineno', 0)}: {why}")

    for part in node.body:
        if isinstance(part, FUNCTIONS) and part.name in _COMPARES and len(part.args.args) == 2:
            own, other = (arg.arg for arg in part.args.args)
            returns = [one for one in ast.walk(part) if isinstance(one, ast.Return) and one.lineno in lines]
            for one in [one for one in returns if not _depends(one.value, own, other)][:1]:
                yield told(one, f"`{part.name}` does not look at what it is compared with")
        elif isinstance(part, FUNCTIONS) and part.name in _SHOWS and part.lineno in lines:
            returns = [one for one in ast.walk(part) if isinstance(one, ast.Return)]
            if returns and all(isinstance(one.value, ast.Constant) for one in returns):
                yield told(part, f"`{part.name}` is the same for all objects of `{node.name}`")
        elif isinstance(part, ast.Assign) and part.lineno in lines:
            bent = [last_name(target) for target in part.targets if last_name(target) in _COMPARES | _SHOWS]
            if bent and bent != ["__hash__"]:
                yield told(part, f"`{bent[0]}` of `{node.name}` is replaced")
    calls = [one for top in (*node.decorator_list, *node.body) for one in ast.walk(top) if isinstance(one, ast.Call)]
    for word in [word for call in calls for word in call.keywords if word.arg in ("eq", "compare")]:
        if isinstance(word.value, ast.Constant) and word.value.value is False and word.value.lineno in lines:
            yield told(word.value, f"`{word.arg}=False` takes a part of `{node.name}` out of comparisons")


def _only_shown(tree: ast.Module, file: File) -> str:
    """The method that holds all new lines, if it is one by which objects are compared or shown; or nothing."""
    lines = {number for number, line in file.added() if line.strip()}
    methods = [part for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for part in node.body]
    for part in methods:
        if isinstance(part, FUNCTIONS) and part.name in _COMPARES | _SHOWS:
            inside = {number for number in lines if part.lineno <= number <= (part.end_lineno or 0)}
            if inside and inside == lines:
                return part.name
    return ""


def _depends(value: ast.expr | None, own: str, other: str) -> bool:
    if isinstance(value, ast.Constant) and value.value is False:
        return True
    names = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)} if value is not None else set()
    return "NotImplemented" in names or {own, other} <= names


def cut(node: ast.AST) -> str:
    """The first line of a piece of source, for a person."""
    line = ast.unparse(node).partition("\n")[0]
    return line if len(line) <= 60 else f"{line[:57]}..."
