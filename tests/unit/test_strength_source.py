"""Source mutants: small changes of the product's code."""

import ast
import sys

from mngr.tmr.measure.measurement import PROBE

sys.path.append(PROBE)  # its modules stand alone

import mngr_strength_source as source

PYTHON = '''\
"""Not this."""
from __future__ import annotations
import os

LIMIT = 3


def price(count: int, name: str = "tea") -> str:
    """Nor this."""
    if count > LIMIT and not name:
        raise ValueError(f"no {name} left")
    os.environ["X"] = name
    return sorted(
        [name],
        key=len,
    )[-1] + "b"
'''
C = """\
#include <stdio.h>
/* not == this */
int main(int argc, char **argv) {
    if (argc == 2 && argv[1]) { // not == this
        printf("one word\\n");
    }
    return 0;
}
"""


def changed(path: str, text: str) -> dict[str, str]:
    """The new code by what was changed."""
    found, one = {}, source.Source(path, text)
    for mutant in one.mutants:
        with one.changed(mutant) as new:
            found[mutant.text] = new
    return found


def test_python_is_changed_by_its_meaning_and_still_compiles() -> None:
    found = changed("p.py", PYTHON)
    for new in found.values():
        compile(new, "p.py", "exec")
    assert "if count >= LIMIT and (not name):" in found["comparison: count > LIMIT → count >= LIMIT"]
    assert any("if count > LIMIT or not name:" in new for new in found.values())
    assert "and (not not name):" in found["not dropped: not name → not not name"]
    assert any("f'op {name} mfgu'" in new or ("f'op {name} left'" in new) for new in found.values())
    assert "LIMIT = 4" in found["constant: 3 → 4"]
    assert ")[+1] + " in found["minus dropped: -1 → +1"]
    assert any(text.startswith("argument dropped: sorted([name], key=len)") for text in found)
    assert "statement dropped: os.environ['X'] = name" in found
    assert any(text.startswith("returned value: return sorted(") for text in found)


def test_a_mutant_leaves_the_tree_as_it_was_and_the_lines_of_functions() -> None:
    one = source.Source("p.py", PYTHON)
    before = ast.dump(one.tree, include_attributes=True)
    for mutant in one.mutants:
        with one.changed(mutant):
            compiled = compile(one.tree, "p.py", "exec")
        assert [part.co_firstlineno for part in compiled.co_consts if hasattr(part, "co_code")] == [8]
    assert ast.dump(one.tree, include_attributes=True) == before


def test_docstrings_annotations_and_imports_stay() -> None:
    for new in changed("p.py", PYTHON).values():
        assert new.startswith('"""Not this."""\nfrom __future__ import annotations\nimport os\n')
        assert "count: int, name: str" in new and '"""Nor this."""' in new


def test_other_languages_are_changed_line_by_line() -> None:
    found = changed("p.c", C)
    assert "if (argc != 2 && argv[1]) { // not == this" in found["comparison: == → !="]
    assert 'printf("pof word\\n");' in found["text: one → pof"]
    assert all("/* not == this */" in new and "#include <stdio.h>" in new for new in found.values())
    assert {"boolean operator: && → ||", "constant: 2 → 3", "constant: 0 → 1"} <= found.keys()
    assert "        ;\n" in found['statement dropped: printf("one word\\n"); → ;']
    assert changed("p.png", C) == {} and changed("p.py", "not python (") == {}


def test_lines_that_run_are_noted() -> None:
    notes: list[int] = []
    known: dict[str, object] = {"note": notes.append}
    tree = source.noted(source.Source("p.py", PYTHON).tree, "__mngr_ran__ = note")
    exec(compile(tree, "p.py", "exec"), known)
    assert notes == [3, 5, 8]
    price = known["price"]
    assert callable(price) and price(1) == "teab"
    assert notes[3:] == [10, 12, 13]
