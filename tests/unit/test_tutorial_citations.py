"""Which blocks test files cite, found without running them."""

from pathlib import Path

import pytest

from mngr.errors import NotFoundError
from mngr.tutorial.citations import Citation, find, in_source

SOURCE = '''
import pytest
from mngr.e2e import E2eSession, expect

def test_plain(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # or see the others
    tool --help
    """)
    expect(e2e.run("tool --help")).to_succeed()


class TestList:
    @pytest.mark.parametrize("words", ["", "--all"])
    async def test_lists(self, session, words):
        """Lists.

        Tutorial block:
            # all of them
            tool list

        Scenario: one is there.
        """
        with session:
            for block in [session.write_tutorial_block("tool later")]:
                block.commands


def test_another_name(any_name):
    any_name.write_tutorial_block("tool one")
    any_name.write_tutorial_block(text="tool " "two")
'''


def texts(source: str) -> list[tuple[str, str]]:
    citations, unreadable = in_source(source.encode(), "test_it.py")
    assert unreadable == []
    return [(citation.test, citation.text) for citation in citations]


def test_calls_and_docstrings_are_citations() -> None:
    assert texts(SOURCE) == [
        ("test_plain", "# or see the others\ntool --help"),
        ("TestList::test_lists", "# all of them\ntool list"),
        ("TestList::test_lists", "tool later"),
        ("test_another_name", "tool one"),
        ("test_another_name", "tool two"),
    ]


def test_tests_that_are_there_on_a_condition_are_tests() -> None:
    source = '''
if shutil.which("tmux"):
    class TestScreens:
        def test_shown(self, e2e):
            """Tutorial block:
                tool show
            """
else:
    def test_hidden(e2e):
        with e2e:
            e2e.write_tutorial_block("tool hide")
'''
    assert texts(source) == [("TestScreens::test_shown", "tool show"), ("test_hidden", "tool hide")]


def test_each_citation_has_its_line() -> None:
    citations, _ = in_source(SOURCE.encode(), "test_it.py")
    lines = SOURCE.split("\n")
    assert [lines[citation.line - 1].strip() for citation in citations] == [
        'e2e.write_tutorial_block("""',
        "Tutorial block:",
        'for block in [session.write_tutorial_block("tool later")]:',
        'any_name.write_tutorial_block("tool one")',
        'any_name.write_tutorial_block(text="tool " "two")',
    ]


@pytest.mark.parametrize("given", ["words", 'f"tool {words}"', "make()", "3", "'tool ' + words", ""])
def test_what_is_no_literal_is_reported(given: str) -> None:
    source = f"def test_a(e2e, words):\n    e2e.write_tutorial_block({given})\n"
    citations, (problem,) = in_source(source.encode(), "test_it.py")
    assert citations == []
    assert problem.line == 2 and "`test_a` cites a block not by a literal" in problem.message


def test_a_docstring_section_ends_where_it_is_no_longer_indented() -> None:
    source = '''
def test_a():
    """Tutorial block:

        tool a
            --b
    Scenario: none
    """
def test_b():
    r"""
    Tutorial block:
    \ttool b \\
    \t  --c
    Tutorial block:
      tool d
    """
def not_a_test():
    """
    Tutorial block:
      tool e
    """
'''
    assert texts(source) == [("test_a", "tool a\n    --b"), ("test_b", "tool b \\\n  --c"), ("test_b", "tool d")]


def test_an_empty_docstring_section_is_reported() -> None:
    _, (problem,) = in_source(b'def test_a():\n    """\n    Tutorial block:\n    """\n', "t.py")
    assert (problem.line, problem.hint) == (3, "indent the text of the block below it")


def test_backslashes_that_python_took_are_noted() -> None:
    (plain,), _ = in_source(b'def test_a(e2e):\n    e2e.write_tutorial_block("""tool \\\n  b""")\n', "t.py")
    (raw,), _ = in_source(b'def test_a(e2e):\n    e2e.write_tutorial_block(r"""tool \\\n  b""")\n', "t.py")
    assert plain == Citation("tool   b", "t.py", 2, "test_a", escaped=True)
    assert raw == Citation("tool \\\n  b", "t.py", 2, "test_a")


def test_a_file_that_is_not_python_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    (tests / "deep").mkdir(parents=True)
    (tests / ".hidden").mkdir()
    (tests / "env").mkdir()
    (tests / "env" / "pyvenv.cfg").touch()
    good = 'def test_a(e2e):\n    e2e.write_tutorial_block("tool a")\n'
    for name in ("test_good.py", "deep/test_more.py", "steps.py", ".hidden/test_x.py", "env/test_x.py", "notes.txt"):
        (tests / name).write_text(good)
    (tests / "test_broken.py").write_text("def test_b(:\n")
    (tests / "test_nul.py").write_bytes(b"\0")
    (tests / "test_cookie.py").write_bytes(b"# coding: latin-1\n# caf\xe9\n" + good.encode())
    (tests / "test_gone.py").symlink_to("nowhere")
    found = find(["tests"], str(tmp_path))
    assert [citation.file for citation in found.citations] == [
        "tests/steps.py",
        "tests/test_cookie.py",
        "tests/test_good.py",
        "tests/deep/test_more.py",
    ]
    assert [(problem.file, problem.line) for problem in found.unreadable] == [
        ("tests/test_broken.py", 1),
        ("tests/test_gone.py", 1),
        ("tests/test_nul.py", 1),
    ]


def test_tests_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no tests at"):
        find(["tests"], str(tmp_path))


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text('def test_a(e2e):\n    e2e.write_tutorial_block("tool a")\n')
    assert len(find([".", "test_a.py"], str(tmp_path)).citations) == 1
