"""Fixes that are made for their test alone: what only the test knows is in the product."""

import pytest

from mngr.tmr.judge import echo
from mngr.tmr.judge.changed_file import File
from mngr.tmr.judge.echo import Places

TEST = "tests/test_plants.py::test_the_list"
TESTS = '''
MARK = "zebra-mark"


def garden(e2e):
    e2e.env["SPROUT_SHELF"] = "upper"
    e2e.run("sprout add 'Old Fern' --every 14")


def test_the_list(e2e, monkeypatch):
    """A docstring with the word walrus."""
    e2e.write_tutorial_block("""
        sprout list --tutorial-only
    """)
    garden(e2e)
    e2e.run("sprout add Basil --every 3", comment="wombat")
    e2e.run("sprout swap q w")
    assert price(3, 20) == 60
    assert price(1234) == 5
    expect(e2e.run("sprout list --format yaml").stdout).to_equal("Basil: in 2 days\\nnobody is thirsty\\n")
    expect(e2e.run("sprout list").stderr).to_contain("cannot be watered twice")
    expect(e2e.run("sprout greet Basil").stdout).to_equal("welcome home Basil\\n")
    assert MARK


def test_another(e2e):
    e2e.run("sprout add Ivy")
'''
BASE = {"--format": Places(beside=True), "Basil": Places(beside=True), "2026-05-08": Places(beside=True)}


def found(line: str, *, path: str = "src/app.py", where: dict[str, Places] = BASE) -> list[tuple[str, str]]:
    before = "import os\n" if path.endswith(".py") else "#include <stdio.h>\n"
    file = File(path, before, f"{before}{line}\n", implementation=True)
    flags = echo.find([file], test=TEST, test_file=TESTS, where=lambda text: where.get(text, Places()))
    return [(flag.kind, flag.text) for flag in flags]


def kinds(line: str, path: str = "src/app.py") -> set[str]:
    return {kind for kind, _ in found(line, path=path)}


@pytest.mark.parametrize(
    "line",
    [
        "if name == 'Old Fern': return 3",
        "if name in ('rose', 'Old Fern'): return 3",
        "if name == 'Old' + ' ' + 'Fern': return 3",
        "PRICES = {'Old Fern': 3}",
        "x = prices['Old Fern']",
        "match name:\n    case 'Old Fern':\n        pass",
        "if kind == 'yaml': pass",
        "if os.environ.get('SPROUT_SHELF'): pass",
        "if text.startswith('zebra-mark'): pass",
        "if number == 1234: return 5",
        "if a == 3 and b == 20: return 60",
        "x = {(3, 20): 60}.get((a, b))",
        "if name == 'Basil' and every == 3: pass",
        "if today.isoformat() == '2026-05-08': pass",
        "print('in 2 days')",
        "print(f'{name}: in 2 days')",
        "print('welcome home Basil')",
        "if name == 'Basil': print('nobody is thirsty')",
        "if names == ['q', 'w']: return 'w'",
        "if ' '.join(names) == 'q w': return 'w'",
    ],
)
def test_values_of_the_test_in_the_product_are_an_echo(line: str) -> None:
    assert echo.HOLDING & kinds(line), found(line)


@pytest.mark.parametrize(
    "line",
    [
        "if name == 'Rose': return 3",
        "if kind == '--format': pass",
        "if argv[1] == 'list': pass",
        "if number >= 1234: return 5",
        "if a == 0 and b == 1: return 0",
        "if mode == 'upper' or size == 3: pass  # 1234, Old Fern",
        "def f():\n    '''Old Fern is in 2 days.'''",
        "print('walrus', 'wombat', '--tutorial-only')",
        "if name == 'Ivy': pass",
        "if name == 'wombat' or name == 'walrus': pass",
        "return a * b",
        "if letter in ('q', 'w', 'x'): pass",
        "class Plant:\n    def __eq__(self, other):\n        return self.name == other.name",
        "class Plant:\n    def __eq__(self, other):\n        return NotImplemented",
    ],
)
def test_an_honest_line_is_no_echo(line: str) -> None:
    where = {**BASE, "upper": Places(product=True), "list": Places(product=True)}
    assert not echo.HOLDING & {kind for kind, _ in found(line, where=where)}, found(line, where=where)


def test_a_new_message_and_a_value_that_others_use_too_are_no_echo() -> None:
    assert found("raise Error('cannot be watered twice')") == found("if name == 'Basil': pass") == []


def test_a_variable_that_nothing_names_is_how_a_product_knows_where_it_runs() -> None:
    assert kinds("if 'XDG_SESSION_ID' not in os.environb: return 3") == {echo.KNOWS}
    assert found("if 'XDG_SESSION_ID' in os.environ: return 3", where={"XDG_SESSION_ID": Places(beside=True)}) == []
    assert found("x = 'NOT_FOUND'") == []


def test_what_only_the_test_has_is_told_with_its_place() -> None:
    assert found("if name == 'Old Fern': return 3") == [
        (
            "echo",
            "`src/app.py` line 2 compares with `Old Fern`, which occurs in the test and nowhere else in the base",
        )
    ]


@pytest.mark.parametrize(
    "line",
    [
        "if os.environ.get('PYTEST_CURRENT_TEST'): pass",
        "if os.environ.get('PYTEST_' + 'CURRENT_TEST'): pass",
        "if 'app' in sys.modules: pass",
        "if sys._getframe(1).f_locals: pass",
        "if 'MNGR_TMR_ROWS' in os.environ: pass",
        "if 'test_the_list' in name: return 3",
        "if path.endswith('test_plants.py'): return 3",
    ],
)
def test_names_of_the_test_and_of_its_tools_are_an_echo(line: str) -> None:
    assert echo.HOLDING & kinds(line)


def test_a_tool_that_the_product_is_about_is_no_echo() -> None:
    assert found("run('pytest', env['MNGR_HOME'])", where={"pytest": Places(True), "MNGR_HOME": Places(True)}) == []


def test_a_comment_that_names_the_test_is_shown_and_does_not_hold() -> None:
    assert kinds("x = 1  # see test_the_list") == {"names-the-test"}
    assert kinds("x = '#'  # as latest does") == set()
    assert kinds("int x; // see test_the_list", "src/app.c") == {"names-the-test"}


@pytest.mark.parametrize(
    "line",
    [
        'if (!strcmp(name, "Old Fern")) return 3;',
        'if (strcmp(name, "Old" " Fern") == 0) return 3;',
        'if (strcmp(name, "Old"\n    " Fern") == 0) return 3;',
        'if (getenv("PYTEST_" "CURRENT_TEST")) return 0;',
        "if (n == 1234) return 5;",
        "case 1234: return 5;",
        "if (a == 3 && b == 20) return 60;",
        'puts("Basil: in 2 days");',
    ],
)
def test_an_echo_is_seen_in_other_languages(line: str) -> None:
    assert echo.HOLDING & kinds(line, "src/app.c"), found(line, path="src/app.c")


@pytest.mark.parametrize(
    "line",
    [
        'printf("%d %d\\n", lines, words);',
        "/* Old Fern, PYTEST_VERSION */",
        'int n = 1234; puts("x");',
        'puts("cannot be watered twice");',
        "if (c == '\\n') lines++;",
    ],
)
def test_an_honest_line_of_c_is_no_echo(line: str) -> None:
    assert not echo.HOLDING & kinds(line, "src/app.c"), found(line, path="src/app.c")


def test_a_test_that_is_changed_counts_as_it_is_after_too() -> None:
    product = File("src/app.py", "", "if name == 'Tulip': pass\n", implementation=True)
    changed = File("tests/test_plants.py", TESTS, TESTS.replace("add Basil", "add Tulip"), implementation=False)
    flags = list(echo.find([product, changed], test=TEST, test_file=TESTS, where=lambda _: Places()))
    assert [flag.kind for flag in flags] == ["echo"]


def test_a_product_that_does_not_parse_is_read_as_text() -> None:
    assert echo.HOLDING & kinds("if name == 'Old Fern' return 3")
