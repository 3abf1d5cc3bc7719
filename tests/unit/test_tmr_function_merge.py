"""Two versions of a test file become one, function by function."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.tmr.branch.function_merge import merged, shadowed

BASE = dedent(
    '''
    """Tests of the app."""

    import os
    from app import (
        add,
        sub,
    )
    from lib import one

    LIMIT = 3


    # Adds.
    @pytest.mark.slow
    def test_add():
        assert add(1, 2) == LIMIT  # three


    class TestSub:
        """Of a class."""

        def test_sub(self):
            assert sub(2, 1) == 1

        # The other way round.
        @staticmethod
        def test_back():
            assert sub(1, 2) == -1


    if os.environ.get("MORE"):
        more = 1
    '''
).lstrip()


def three(ours: str | None, theirs: str | None, base: str = BASE) -> str | None:
    found = merged(base.encode(), (ours or base).encode(), (theirs or base).encode())
    assert found is None or isinstance(found, bytes)
    return None if found is None else found.decode()


def test_two_that_append_a_test_at_the_end_are_both_there() -> None:
    a, b = "\n\ndef test_a():\n    assert 1\n", "\n\n@mark\nasync def test_b():\n    assert 2\n"
    assert three(BASE + a, BASE + b) == BASE + a + b
    assert three(BASE + b, BASE + a) == BASE + b + a


def test_changes_of_neighbours_are_both_there_with_decorators_and_comments() -> None:
    ours = BASE.replace("# Adds.\n@pytest.mark.slow", "# Adds small numbers.\n@pytest.mark.fast")
    theirs = BASE.replace("LIMIT = 3", "LIMIT = 1 + 2").replace("if os.environ", "if not os.environ")
    both = three(ours, theirs)
    assert both == three(theirs, ours)
    assert both == ours.replace("LIMIT = 3", "LIMIT = 1 + 2").replace("if os.environ", "if not os.environ")


def test_methods_of_one_class_are_merged_one_by_one() -> None:
    ours = BASE.replace("sub(2, 1) == 1", "sub(3, 1) == 2")
    new = "\n    def test_new(self):\n        assert True\n"
    theirs = BASE.replace("== -1\n", f"== -1\n{new}")
    assert three(ours, theirs) == theirs.replace("sub(2, 1) == 1", "sub(3, 1) == 2")
    first = BASE.replace('class."""\n', f'class."""\n{new}')
    assert three(first, theirs) is None, "the same name twice in other places"
    assert three(first.replace("test_new", "test_first"), theirs) == theirs.replace(
        'class."""\n', f'class."""\n{new.replace("test_new", "test_first")}'
    )


def test_new_imports_of_both_sides_are_united() -> None:
    ours = BASE.replace("import os\n", "import os\nimport sys\n").replace("import one", "import One, one")
    theirs = BASE.replace("import os\n", "import json\nimport os\nimport re\n").replace("import one", "import one, two")
    both = three(
        ours.replace("    add,\n", "    add,\n    mul,\n"), theirs.replace("    sub,\n", "    div,\n    sub,\n")
    )
    assert both is not None
    assert (
        both[: both.index("LIMIT")]
        == dedent(
            '''
        """Tests of the app."""

        import json
        import os
        import re
        import sys
        from app import (
            add,
            div,
            mul,
            sub,
        )
        from lib import One, one, two

        '''
        ).lstrip()
    )


def test_a_long_import_is_written_in_lines() -> None:
    base = "from package.module import alpha\n"
    ours, theirs = (f"from package.module import alpha, {name * 30}\n" for name in "bc")
    assert three(ours, theirs, base) == "from package.module import (\n    alpha,\n    {},\n    {},\n)\n".format(
        "b" * 30, "c" * 30
    )


def test_a_file_that_both_sides_made_is_merged_too() -> None:
    ours, theirs = (f"import pytest\n\n\ndef test_{name}():\n    assert {name!r}\n" for name in "ab")
    assert merged(b"", ours.encode(), theirs.encode()) == f"{ours}\n\ndef test_b():\n    assert 'b'\n".encode()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (("== LIMIT", "== 4"), ("== LIMIT", "== 5")),  # the same function
        (("LIMIT = 3", "LIMIT = 4"), ("LIMIT = 3", "LIMIT = 5")),
        (("more = 1", "more = 2"), ("if os", "if not os")),  # the same statement
        (("# Adds.", "# One."), ("# Adds.", "# Two.")),
        (("import one", "import *"), ("import one", "import one, two")),
        (("def test_add():\n    assert add(1, 2)", "def test_gone():\n    assert add(1, 2)"), ("== LIMIT", "== 5")),
        (("LIMIT = 3", "LIMIT = 3; more = 2"), ("== -1", "== 0")),  # two statements in a line
        (("LIMIT = 3", "LIMIT = ("), ("== -1", "== 0")),  # no Python
        (("LIMIT = 3", "LIMIT = 3\nLIMIT = 4"), ("LIMIT = 3", "LIMIT = 3\nLIMIT = 5")),
        (("LIMIT = 3", "LIMIT = 3\rmore = 2"), ("== -1", "== 0")),
    ],
)
def test_what_both_sides_changed_and_odd_forms_are_left_to_git(ours: tuple[str, str], theirs: tuple[str, str]) -> None:
    assert BASE.replace(*ours) != BASE != BASE.replace(*theirs)
    assert three(BASE.replace(*ours), BASE.replace(*theirs)) is None
    assert three(BASE.replace(*theirs), BASE.replace(*ours)) is None


def test_names_that_a_file_has_twice_are_told_apart_by_their_order() -> None:
    functions = "\n\n@property\ndef x(self): ...\n\n\n@x.setter\ndef x(self): ...\n"
    base = "from lib import one\nfrom lib import two as other\n" + functions
    ours, theirs = base.replace("import one", "import one, three"), base.replace("@x.setter", "@x.deleter")
    assert three(ours, theirs, base) == ours.replace("@x.setter", "@x.deleter")
    assert three(ours, theirs.replace("@property", "@cached"), base.replace("@property", "@old")) is None


def test_moved_functions_are_left_to_git() -> None:
    one, two = "def one():\n    pass\n", "def two():\n    pass\n"
    assert three(two + one, one.replace("pass", "1") + two, one + two) is None


def test_line_ends_and_the_end_of_the_file_stay_as_they_are() -> None:
    one, two = "def one():\r\n    return 1\r\n", "\r\ndef two():\r\n    return 2"
    ours, theirs = (one + two).replace("return 1", "return 11"), (one + two).replace("return 2", "return 22")
    assert three(ours, theirs, one + two) == ours.replace("return 2", "return 22")
    more = "\r\n\r\ndef three():\r\n    return 3\r\n"
    assert three(ours, one + two + more, one + two) == ours + more


def test_hidden_definitions_are_named() -> None:
    assert shadowed(BASE.encode()) == frozenset()
    twice = BASE + BASE[BASE.index("class") : BASE.index("if os")]
    assert shadowed(twice.encode()) == {"TestSub"}
    assert shadowed(b"class A:\n    def x(self): ...\n    def x(self): ...\n") == {"A.x"}
    assert shadowed(b"def (") == frozenset()


WORDS = ("alpha", "beta", "gamma", "delta", "rho", "sigma", "tau", "phi")
Module = list[tuple[str, int]]


def function(name: str, version: int, indent: str = "") -> str:
    """Each version has another form: a comment above, a decorator, a text in lines, a comment at its end."""
    comment = f"{indent}# About {name}.\n" if version % 2 else ""
    decorator = f'{indent}@mark("{version}",\n{indent}      "x")\n' if version % 3 else ""
    text = f'{indent}    """Text\n# no comment\n\ndef {name}(): no function\n"""\n' if version % 5 == 4 else ""
    return f"{comment}{decorator}{indent}def test_{name}():\n{text}{indent}    assert {version}  # end\n"


def module(functions: Module, methods: Module) -> str:
    top = "".join(f"\n\n{function(*one)}" for one in functions)
    inside = "".join(f"\n{function(name, version, '    ')}" for name, version in methods)
    return f'"""Head."""\n\nimport os\n{top}\n\nclass TestIt:\n    kind = 1\n{inside}\n\nLAST = 1\n'


@st.composite
def cases(draw: st.DrawFn) -> tuple[Module, Module, Module, Module]:
    """A module, and what each of two sides makes of functions that the other side leaves alone; then both."""
    base: Module = []
    ours: Module = []
    theirs: Module = []
    both: Module = []
    for name in WORDS:
        version = draw(st.integers(0, 9))
        what = draw(st.sampled_from(("same", "change", "remove", "add", "add twice")))
        mine, other = (ours, theirs) if draw(st.booleans()) else (theirs, ours)
        if what in ("same", "change", "remove"):
            base.append((name, version))
            other.append((name, version))
        if what == "same":
            mine.append((name, version))
            both.append((name, version))
        elif what == "change":
            mine.append((name, version + 10))
            both.append((name, version + 10))
        elif what == "add":
            mine.append((f"{name}_new", version))
        elif what == "add twice":
            ours.append((f"{name}_ours", version))
            theirs.append((f"{name}_theirs", version))
    # In one place, what ours adds comes before what theirs adds.
    known = {name for name, _ in both}
    places: dict[str, list[Module]] = {}
    for number, side in enumerate((ours, theirs)):
        last = ""
        for name, version in side:
            if name in known:
                last = name
            elif name not in dict(base):
                places.setdefault(last, [[], []])[number].append((name, version))
    whole: Module = [one for added in places.get("", ()) for one in added]
    for name, version in both:
        whole += [(name, version), *(one for added in places.get(name, ()) for one in added)]
    return base, ours, theirs, whole


@given(cases(), cases())
def test_merging_disjoint_edits_is_doing_both(functions: tuple[Module, ...], methods: tuple[Module, ...]) -> None:
    base, ours, theirs, both = (module(*pair) for pair in zip(functions, methods, strict=True))
    assert three(ours, theirs, base) == both
