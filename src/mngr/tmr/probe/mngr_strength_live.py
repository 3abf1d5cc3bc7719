"""Puts changed source into a Python process that has loaded the module already, and notes which lines a test runs."""

from __future__ import annotations

import ast
import gc
import os
import sys
import threading
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

_real = cache(os.path.realpath)


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

    def swap(self, path: str, source: str, line: int) -> None:
        """Give the functions of a loaded file their new code; a statement outside of functions is run again."""
        path = _real(path)
        if path not in self.modules:
            return
        code = compile(source, path, "exec", dont_inherit=True)
        new = {(one.co_name, one.co_firstlineno): one for one in _codes(code)}
        for function in self._functions.get(path, ()):
            old = function.__code__
            other = new.get((old.co_name, old.co_firstlineno))
            if other is not None and other.co_freevars == old.co_freevars:
                function.__code__ = other
        self._rebind(self.modules[path], path, source, line)

    def spoil(self) -> None:
        """No function of the product works any more in this process."""
        for functions in self._functions.values():
            for function in functions:
                names = ", ".join(function.__code__.co_freevars)
                source = f"def spoiled(*given, **more):\n  {names or 0}\n  raise RuntimeError('spoiled by mngr')\n"
                if names:  # code must name the variables of the functions around it
                    source = f"def around({names}):\n" + "".join(f" {line}\n" for line in source.splitlines())
                [code] = (one for one in _codes(compile(source, "spoiled", "exec")) if one.co_name == "spoiled")
                if code.co_freevars == function.__code__.co_freevars:
                    function.__code__ = code

    def _rebind(self, module: types.ModuleType, path: str, source: str, line: int) -> None:
        """Of a plain assignment: the name gets its new value wherever it was imported."""
        for statement in ast.parse(source).body:
            if statement.lineno == line and is_assignment(statement):
                names = [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
                old = {name: module.__dict__.get(name) for name in names}
                exec(compile(ast.Module([statement], []), path, "exec"), module.__dict__)
                for other in self.modules.values():
                    for name, value in old.items():
                        if other.__dict__.get(name, other) is value:
                            other.__dict__[name] = module.__dict__.get(name)


def is_assignment(statement: ast.stmt) -> bool:
    """Of a value to plain names: such a statement can be run again by itself."""
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Name) for target in statement.targets)
    return (
        isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None
    )


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def trace(paths: Mapping[str, str], note: Callable[[str, int], None]) -> None:
    """From now on, in all threads: call `note` with a file's name and each of its lines that is run. `paths` are the
    names of files by their real paths."""
    names: dict[str, str | None] = {}

    def on_call(frame: types.FrameType, event: str, _: object) -> Any:
        file = frame.f_code.co_filename
        if file not in names:
            names[file] = paths.get(_real(file))
        name = names[file]
        if name is None:
            return None

        def on_line(frame: types.FrameType, event: str, _: object) -> Any:
            note(name, frame.f_lineno)
            return on_line

        return on_line

    threading.settrace(on_call)
    sys.settrace(on_call)


def constants(source: str) -> Sequence[int]:
    """The lines of the plain assignments of a module: run when it was loaded, and able to run again."""
    return [statement.lineno for statement in ast.parse(source).body if is_assignment(statement)]
