"""Runs at the start of a Python that a test started, as its `sitecustomize`; then the project's own, if it has one."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys


def _next() -> None:
    """Load the `sitecustomize` that this one is in front of."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [place for place in sys.path if os.path.abspath(place) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _prepare() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    if os.path.exists(os.path.join(here, "mngr_clock.py")):
        import mngr_clock

        mngr_clock.shift()
        del sys.modules["mngr_clock"]


_prepare()
_next()
