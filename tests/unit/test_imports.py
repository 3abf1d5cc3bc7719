"""What the quick verbs may load. Every module costs time at each start, so one is added here only on purpose."""

import sys
from collections.abc import Iterator

import pytest

from tests.support.user import User

# Public modules of the standard library, by their first name, that any quick verb may load.
STDLIB = frozenset(
    {
        *("collections", "copyreg", "encodings", "enum", "errno", "fcntl", "functools", "itertools", "json", "keyword"),
        *("operator", "re", "reprlib", "select", "signal", "types", "contextlib", "abc", "warnings", "zlib"),
    }
)

# How many modules of ours a quick verb may load, packages counted. Lower a number when a verb gets lighter.
BOUNDS = {"create": 54, "list": 45, "message": 46, "exec": 44, "capture": 41, "stop": 47}

# The first word is where to write the answer: standard output belongs to the verb.
PROGRAM = """
import sys
before = set(sys.modules)
from mngr.cli.main import main
code = main(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write("\\n".join(set(sys.modules) - before))
sys.exit(code)
"""


@pytest.fixture(scope="module")
def loaded() -> Iterator[dict[str, set[str]]]:
    """The modules that each verb loads beyond those of `python -c pass`, all run on one real agent."""
    user = User()
    answer = user.root / "modules"
    found = {}
    try:
        for words in (
            ["create", "foo", "--no-connect", "--command", "cat"],
            ["list"],
            ["message", "foo", "-m", "hello"],
            ["exec", "foo", "true"],
            ["capture", "foo"],
            ["stop", "foo"],
        ):
            user.run([sys.executable, "-c", PROGRAM, str(answer), *words]).ok()
            found[words[0]] = set(answer.read_text().split())
        yield found
    finally:
        user.close()


@pytest.mark.parametrize("verb", BOUNDS)
def test_a_quick_verb_loads_few_modules_of_ours(loaded, verb):
    ours = sorted(name for name in loaded[verb] if _is_ours(name))
    assert len(ours) <= BOUNDS[verb], f"`mngr {verb}` loads {len(ours)} modules of mngr: {' '.join(ours)}"


@pytest.mark.parametrize("verb", BOUNDS)
def test_a_quick_verb_loads_nothing_heavy(loaded, verb):
    """Nothing of others, and of the standard library only what is listed."""
    surprises = sorted(name for name in loaded[verb] if not _is_ours(name) and not _is_allowed(name))
    assert not surprises, f"`mngr {verb}` now loads {', '.join(surprises)}: import it inside the function that needs it"


def test_a_third_party_module_is_never_allowed():
    assert not _is_allowed("rich.console")
    assert not _is_allowed("tomlkit")


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == "mngr"


def _is_allowed(name: str) -> bool:
    """A private module of the standard library comes with a public one, which is the one to judge."""
    first = name.partition(".")[0]
    return first in sys.stdlib_module_names and (first.startswith("_") or first in STDLIB)
