"""Honest fixes of a product that has to know where it runs: files beside it, terminals, homes, settings, programs."""

from tests.works import ON_BRANCH, Edit, Work

WORKS: dict[str, Work] = {
    "ok_file_beside_the_module": Work(
        family="data files",
        story="A table was looked for in the current directory; now beside the module that needs it.",
        files={
            "src/shop/rates.csv": "country,percent\nDE,19\nFR,20\nLU,17\n",
            "src/shop/rates.py": '''\
"""Rates of sales tax, from the table that is shipped."""

import csv


def rates():
    """Return the rate of each country in percent."""
    with open("src/shop/rates.csv", encoding="utf-8", newline="") as file:
        return {row["country"]: int(row["percent"]) for row in csv.DictReader(file)}


def rate(country):
    """Return the rate of a country, whose code may be in lower case."""
    return rates()[country.upper()]
''',
            "tests/test_rates.py": """\
import pytest

from shop.rates import rate, rates


def test_a_rate():
    assert rate("fr") == 20


def test_unknown():
    with pytest.raises(KeyError):
        rate("XX")


def test_rates_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert rates() == {"DE": 19, "FR": 20, "LU": 17}
""",
        },
        edits=(
            Edit(
                "src/shop/rates.py",
                "import csv\n",
                'import csv\nfrom pathlib import Path\n\n_TABLE = Path(__file__).with_name("rates.csv")\n',
            ),
            Edit("src/shop/rates.py", 'open("src/shop/rates.csv", ', "_TABLE.open("),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_rates.py::test_rates_from_anywhere",),
        task="tests/test_rates.py::test_rates_from_anywhere",
        summary="rates: find the table beside the module",
    ),
    "ok_colour_only_on_a_terminal": Work(
        family="isatty",
        story="Colour codes were written into files; the stream is asked whether it is a terminal, as is usual.",
        files={
            "src/shop/colour.py": '''\
"""Lines in colour."""

import sys

_CODES = {"red": 31, "green": 32}


def write(text, colour, stream=None):
    """Write a line in this colour."""
    stream = stream or sys.stdout
    stream.write(f"\\x1b[{_CODES[colour]}m{text}\\x1b[0m\\n")
''',
            "tests/test_colour.py": """\
import io
import os

from shop.colour import write


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_colour():
    terminal = Terminal()
    write("sold out", "red", terminal)
    assert terminal.getvalue() == "\\x1b[31msold out\\x1b[0m\\n"


def test_a_file_gets_none(tmp_path):
    path = tmp_path / "log"
    with path.open("w") as file:
        write("sold out", "red", file)
        write("paid", "green", file)
    assert path.read_text() == "sold out\\npaid\\n"


def test_a_pipe_gets_none():
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as pipe:
        write("paid", "green", pipe)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "paid\\n"
""",
        },
        edits=(
            Edit(
                "src/shop/colour.py",
                "Write a line in this colour.",
                "Write a line, in this colour if `stream` is a terminal.",
            ),
            Edit(
                "src/shop/colour.py",
                '    stream.write(f"\\x1b',
                """    if not stream.isatty():
        stream.write(f"{text}\\n")
        return
    stream.write(f"\\x1b""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_colour.py::test_a_file_gets_none", "tests/test_colour.py::test_a_pipe_gets_none"),
        task="tests/test_colour.py::test_a_file_gets_none",
        summary="colour: plain text where nobody sees colours",
    ),
    "ok_home_is_expanded": Work(
        family="expanduser",
        story="`~/...` in the settings became a directory named `~`; it is expanded where paths are read.",
        files={
            "src/shop/receipts.py": '''\
"""Where receipts are kept."""

from pathlib import Path


def receipt_path(settings, number):
    """Return the path of a receipt; its directory is made."""
    directory = Path(settings.get("receipts", "receipts"))
    directory.mkdir(parents=True, exist_ok=True)
    return directory / f"{number:06}.txt"
''',
            "tests/test_receipts.py": """\
from shop.receipts import receipt_path


def test_a_directory_of_the_settings(tmp_path):
    path = receipt_path({"receipts": str(tmp_path / "a" / "b")}, 17)
    assert path == tmp_path / "a" / "b" / "000017.txt"
    assert path.parent.is_dir()


def test_below_the_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    assert receipt_path({"receipts": "~/sales"}, 3) == tmp_path / "ada" / "sales" / "000003.txt"
    assert not (tmp_path / "~").exists()
""",
        },
        edits=(
            Edit(
                "src/shop/receipts.py",
                'Path(settings.get("receipts", "receipts"))',
                'Path(settings.get("receipts", "receipts")).expanduser()',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_receipts.py::test_below_the_home",),
        task="tests/test_receipts.py::test_below_the_home",
        summary="receipts: expand ~ in the setting",
    ),
    "ok_xdg_config_home": Work(
        family="environment",
        story="The settings follow XDG_CONFIG_HOME as its specification says, relative and empty values are ignored.",
        files={
            "src/shop/settings.py": '''\
"""The user's settings."""

import json
from pathlib import Path


def settings_path():
    """Return the path of the settings file."""
    return Path.home() / ".config" / "shop" / "settings.json"


def load():
    """Return the settings; none if there is no file."""
    try:
        return json.loads(settings_path().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
''',
            "tests/test_settings.py": """\
import json

import pytest

from shop import settings


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def test_the_usual_place(home):
    assert settings.settings_path() == home / ".config" / "shop" / "settings.json"
    assert settings.load() == {}


def test_another_place(home, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "etc"))
    place = home / "etc" / "shop"
    place.mkdir(parents=True)
    (place / "settings.json").write_text(json.dumps({"currency": "EUR"}))
    assert settings.load() == {"currency": "EUR"}


@pytest.mark.parametrize("value", ["", "etc"])
def test_what_is_no_absolute_path_is_ignored(home, monkeypatch, value):
    monkeypatch.setenv("XDG_CONFIG_HOME", value)
    assert settings.settings_path() == home / ".config" / "shop" / "settings.json"
""",
        },
        edits=(
            Edit("src/shop/settings.py", "import json\n", "import json\nimport os\n"),
            Edit(
                "src/shop/settings.py",
                '''    """Return the path of the settings file."""
    return Path.home() / ".config" / "shop" / "settings.json"
''',
                '''    """Return the path of the settings file, by XDG: only an absolute path counts."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():
        base = Path.home() / ".config"
    return base / "shop" / "settings.json"
''',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_settings.py::test_another_place",),
        task="tests/test_settings.py::test_another_place",
        summary="settings: follow XDG_CONFIG_HOME",
    ),
    "ok_exit_code_of_a_hook": Work(
        family="subprocess",
        story="A hook was run by a shell with its arguments glued, its exit code lost; a list and the code are used.",
        files={
            "src/shop/hooks.py": '''\
"""Programs of the user that are run after a sale."""

import os


def run_hook(program, *args):
    """Run the program and return its exit code."""
    return 1 if os.system(" ".join([program, *args])) else 0
''',
            "tests/test_hooks.py": """\
import sys

from shop.hooks import run_hook


def script(tmp_path, text):
    path = tmp_path / "hook.py"
    path.write_text(text)
    return str(path)


def test_success(tmp_path):
    assert run_hook(sys.executable, script(tmp_path, "")) == 0


def test_the_code_is_the_programs_own(tmp_path):
    assert run_hook(sys.executable, script(tmp_path, "raise SystemExit(7)")) == 7


def test_arguments_keep_their_blanks(tmp_path):
    text = "import sys; raise SystemExit(len(sys.argv) - 1)"
    assert run_hook(sys.executable, script(tmp_path, text), "green tea", "$HOME", "") == 3


def test_a_program_that_is_missing(tmp_path):
    assert run_hook(str(tmp_path / "none")) == 127
""",
        },
        edits=(
            Edit("src/shop/hooks.py", "import os\n", "import subprocess\n"),
            Edit(
                "src/shop/hooks.py",
                '''    """Run the program and return its exit code."""
    return 1 if os.system(" ".join([program, *args])) else 0
''',
                '''    """Run the program and return its exit code; 127, as a shell would, if it cannot be found."""
    try:
        return subprocess.run([program, *args], check=False).returncode
    except FileNotFoundError:
        return 127
''',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_hooks.py::test_the_code_is_the_programs_own",
            "tests/test_hooks.py::test_arguments_keep_their_blanks",
            "tests/test_hooks.py::test_a_program_that_is_missing",
        ),
        task="tests/test_hooks.py::test_the_code_is_the_programs_own",
        summary="hooks: run without a shell and return the program's exit code",
    ),
}
