"""Puts changed code into a Python process that has loaded the module already."""

from __future__ import annotations

import ast
import gc
import os
import sys
import types
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

_real = lru_cache(maxsize=None)(os.path.realpath)


class Live:
    """The modules of the product that this process has loaded, with their functions as they are now."""

    def __init__(self, paths: Collection[str]) -> None:
        wanted = {_real(path) for path in paths}
        self.modules: dict[str, types.ModuleType] = {}
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and _real(file) in wanted:
                self.modules[_real(file)] = module
        self._functions: dict[str, list[types.FunctionType]] = {}
        for found in gc.get_objects():
            if type(found) is types.FunctionType and (path := _real(found.__code__.co_filename)) in self.modules:
                self._functions.setdefault(path, []).append(found)

    def swap(self, path: str, tree: ast.Module) -> None:
        """Give the functions of a loaded file their new code, which begins in the same lines."""
        code = compile(tree, path, "exec", dont_inherit=True)
        new = {(one.co_name, one.co_firstlineno): one for one in _codes(code)}
        for function in self._functions.get(path, ()):
            old = function.__code__
            other = new.get((old.co_name, old.co_firstlineno))
            if other is not None and other.co_freevars == old.co_freevars:
                function.__code__ = other

    def rebind(self, path: str, tree: ast.Module, line: int) -> None:
        """Run a plain assignment of this line again: the name gets its new value wherever it was imported."""
        module = self.modules[path]
        for statement in _assignments(tree):
            if statement.lineno == line:
                names = [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
                old = {name: module.__dict__.get(name) for name in names}
                exec(compile(ast.Module([statement], []), path, "exec"), module.__dict__)
                for other in self.modules.values():
                    for name, value in old.items():
                        if other.__dict__.get(name, other) is value:
                            other.__dict__[name] = module.__dict__.get(name)

    def spoil(self) -> None:
        """No function of the product works any more in this process."""
        for function in (one for functions in self._functions.values() for one in functions):
            # Code must name the variables of the functions around it.
            names = ", ".join(function.__code__.co_freevars)
            source = f"def around({names}):\n def spoiled(*_, **__):\n  raise RuntimeError({names or 0})\n"
            [code] = (one for one in _codes(compile(source, "spoiled", "exec")) if one.co_name == "spoiled")
            function.__code__ = code


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _assignments(tree: ast.Module) -> Iterator[ast.stmt]:
    """Those of a module to plain names: they are run when it is loaded, and can be run again by themselves."""
    for statement in tree.body:
        targets: Sequence[ast.expr] = statement.targets if isinstance(statement, ast.Assign) else ()
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        if targets and all(isinstance(target, ast.Name) for target in targets):
            yield statement


def constants(tree: ast.Module) -> list[int]:
    """The lines of the plain assignments of a module."""
    return [statement.lineno for statement in _assignments(tree)]
