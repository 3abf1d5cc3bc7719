"""Planted works in trees of their own, and what plain pytest says there."""

import importlib
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests import works
from tests.works import PREPARE_C, Edit, Work, shared_files

_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def modules() -> dict[str, dict[str, Work]]:
    """All works, by the module that holds them."""
    names = [module.name for module in pkgutil.iter_modules(works.__path__)]
    return {name: importlib.import_module(f"{works.__name__}.{name}").WORKS for name in names}


def applied(files: Mapping[str, str], edits: Iterable[Edit]) -> dict[str, str]:
    """Files with the edits made; an edit that does not fit is an error."""
    tree = dict(files)
    for edit in edits:
        if edit.old:
            if tree[edit.path].count(edit.old) != 1:
                raise ValueError(f"{edit.path}: not there once: {edit.old!r}")
            tree[edit.path] = tree[edit.path].replace(edit.old, edit.new)
        elif edit.new:
            if tree.get(edit.path) == edit.new:
                raise ValueError(f"{edit.path}: changes nothing")
            tree[edit.path] = edit.new
        else:
            del tree[edit.path]
    return tree


def task(name: str, work: Work) -> str:
    """The id of the test that the agent was given."""
    return work.task or f"tests/test_{name}.py::test_{name}"


def alone(work: Work, partner: Work | None = None) -> dict[str, str]:
    """The base that one work stands in, with the files of its partner."""
    return {**shared_files(work), **work.files, **(partner.files if partner else {})}


def failing(tree: Mapping[str, str], where: Path) -> set[str]:
    """The ids that plain pytest reports as failed, or that end in an error, in a tree that is written for it."""
    for path, text in tree.items():
        (where / path).parent.mkdir(parents=True, exist_ok=True)
        (where / path).write_text(text, encoding="utf-8")
    home = where.parent / f"{where.name}-home"
    home.mkdir()
    # Plugins that only happen to be installed beside pytest are not plain pytest.
    own = {"HOME": str(home), "TMPDIR": str(home), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "1000"}
    env = {**{name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}, **own}
    if "src/main.c" in tree:
        subprocess.run(PREPARE_C.split(), cwd=where, env=env, check=True, capture_output=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE"],
        cwd=where,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode not in (0, 1, 2):
        raise ValueError(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return set(_FAILED.findall(done.stdout))
