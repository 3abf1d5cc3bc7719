"""Rules about our own source that no linter has."""

import ast
from collections.abc import Iterator
from pathlib import Path

import mngr

ROOT = Path(mngr.__file__).parent


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def test_a_python_that_mngr_starts_looks_for_no_module_in_the_current_directory() -> None:
    """Which is a clone, as a rule, and may hold a `socket.py`. `-I` and `-P` leave it out."""
    found = []
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.List) and node.elts and ast.unparse(node.elts[0]) == "sys.executable":
                options = [part.value for part in node.elts[1:2] if isinstance(part, ast.Constant)]
                if options not in (["-I"], ["-P"]):
                    found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert not found, found
