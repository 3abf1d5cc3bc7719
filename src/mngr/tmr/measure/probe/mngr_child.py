"""Runs at the start of a Python that a test started, as its `sitecustomize`, with what is beside it; then the
project's own, if it has one."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PARTS = ("mngr_clock", "mngr_lines", "mngr_touched")


def _next() -> None:
    """Load the `sitecustomize` that this one is in front of."""
    path = [place for place in sys.path if os.path.abspath(place) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


for _name in _PARTS:
    if os.path.exists(os.path.join(_HERE, f"{_name}.py")):
        importlib.import_module(_name).begin(_HERE)
        del sys.modules[_name]
_next()
