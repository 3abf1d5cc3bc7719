"""How a project's tests are run, told from its files."""

from pathlib import Path

import pytest

from mngr.tmr.detect import detect, look

C = "CC = gcc\n\nwordcount: wordcount.o\n\t$(CC) -o $@ $<\n\ncheck:\n\tpytest\n"
SHORTCUTS = "help:\n\t@echo\n\ntest:\n\tpytest\n\nlint:\n\truff check\n"
PROJECT = "[project]\nname = 'x'\n"


@pytest.mark.parametrize(
    ("files", "prepare"),
    [
        ({"Makefile": C}, "make"),
        ({"makefile": "help:\n\t@x\nall:\n\tgcc x.c\n"}, "make all"),
        ({"Makefile": "help:\n\t@x\nbuild:\n\t./build.sh\n"}, "make build"),
        ({"Makefile": SHORTCUTS}, None),
        ({"Makefile": "build:\n\tuv build\n", "pyproject.toml": "", "uv.lock": ""}, "uv sync --frozen --quiet"),
        ({"Makefile": C, "uv.lock": ""}, "uv sync --frozen --quiet && make"),
        ({"Makefile": C, "poetry.lock": ""}, "poetry install --quiet && make"),
        ({"CMakeLists.txt": ""}, "cmake -S . -B build && cmake --build build"),
        ({"meson.build": ""}, "{ [ -d build ] || meson setup build; } && meson compile -C build"),
        ({"Cargo.toml": "", "Cargo.lock": ""}, "cargo build --quiet"),
        ({"go.mod": "", "main.go": ""}, "go build ."),
        ({"configure.ac": "", "Makefile.am": ""}, "autoreconf --install && ./configure && make"),
        ({"package.json": '{"scripts": {"build": ""}}', "package-lock.json": ""}, "npm ci --silent && npm run build"),
        ({"package.json": "[]"}, None),
        ({"package.json": "{", "pyproject.toml": PROJECT, "package-lock.json": ""}, "python3 -m venv .venv"),
        ({"Cargo.toml": "", "pyproject.toml": "[build-system]\nrequires = ['maturin']\n"}, "python3 -m venv .venv"),
        ({"README.md": ""}, None),
    ],
)  # fmt: skip
def test_the_usual_builds_are_found(files: dict[str, str], prepare: str | None) -> None:
    found = {guess.key: guess.value for guess in detect(frozenset(files), files)}.get("prepare")
    assert found == prepare or (prepare is not None and found is not None and found.startswith(prepare + " && .venv"))


def test_where_something_is_built_check_runs_the_tests_and_is_no_gate() -> None:
    gates = [
        {guess.key: guess.value for guess in detect(frozenset(["Makefile"]), {"Makefile": text})}.get("gate_command")
        for text in (C, SHORTCUTS, "check:\n\truff check\n")
    ]
    assert gates == [None, "make lint", "make check"]


def test_headers_belong_to_the_product() -> None:
    found = detect(frozenset(["src", "include", "docs"]), {})
    assert [guess.value for guess in found] == ['["src/", "include/"]']


GROUPS = (
    PROJECT + "[dependency-groups]\ntest = ['pytest>=8', {include-group = 'more'}]\nmore = ['x[y]']\ndev = ['ruff']\n"
)
EXTRA = PROJECT + "[project.optional-dependencies]\ntesting = ['x']\n"
HATCH = PROJECT + "[tool.hatch.envs.hatch-test]\nextra-dependencies = ['x']\nfeatures = ['y']\n"
POETRY = PROJECT + "[tool.poetry.group.test.dependencies]\nx = '^1'\n"
PDM = PROJECT + "[tool.pdm.dev-dependencies]\ntest = ['x']\n"
TOX = "[testenv]\ndeps =\n    -r requirements/tests.txt\n    x\n    lint: ruff\n    {[base]deps}\nextras = y\n"
NOX = "import nox\n\ndef tests(session):\n    session.install('-r', 'r.txt', 'x')\n    session.install('-e', '.[y]')\n"
NOX += "\ndef lint(session):\n    session.install('ruff')\n"
SCRIPT = "from setuptools import setup\n\nsetup(name='x', extras_require={'test': ['x'], 'docs': ['sphinx']})\n"


@pytest.mark.parametrize(
    ("files", "installed", "found_in"),
    [
        ({"pyproject.toml": GROUPS}, "'pytest>=8' 'x[y]' --editable .", "pyproject.toml (group test)"),
        ({"pyproject.toml": EXTRA}, "--editable '.[testing]'", "pyproject.toml (extra testing)"),
        ({"pyproject.toml": HATCH}, "x --editable '.[y]'", "pyproject.toml (hatch hatch-test)"),
        ({"pyproject.toml": POETRY}, "x --editable .", "pyproject.toml (poetry test)"),
        ({"pyproject.toml": PDM}, "x --editable .", "pyproject.toml (pdm test)"),
        (
            {"pyproject.toml": PROJECT, "tox.ini": TOX},
            "-r requirements/tests.txt x --editable '.[y]'",
            "pyproject.toml, tox.ini",
        ),
        ({"pyproject.toml": PROJECT, "noxfile.py": NOX}, "-r r.txt x --editable '.[y]'", "pyproject.toml, noxfile.py"),
        ({"setup.py": SCRIPT}, "--editable '.[test]'", "setup.py (extra test)"),
        (
            {"setup.py": "", "setup.cfg": "[options.extras_require]\ntests =\n    x\n"},
            "--editable '.[tests]'",
            "setup.py, setup.cfg (extra tests)",
        ),
        (
            {"setup.py": "", "requirements.txt": "", "requirements/dev.txt": ""},
            "-r requirements.txt -r requirements/dev.txt --editable .",
            "setup.py, requirements.txt, requirements/dev.txt",
        ),
        ({"setup.py": "("}, "--editable .", "setup.py"),
    ],
)
def test_what_the_tests_need_is_read_where_the_project_says_it(
    files: dict[str, str], installed: str, found_in: str
) -> None:
    found = {guess.key: guess for guess in detect(frozenset(files), files)}
    start = "python3 -m venv .venv && .venv/bin/pip install --quiet pytest "
    assert (found["prepare"].value, found["prepare"].because) == (start + installed, found_in)
    assert found["test_command"].value == ".venv/bin/python -m pytest"


def test_a_lock_counts_where_its_program_is() -> None:
    files = {"pyproject.toml": GROUPS, "uv.lock": ""}
    assert detect(frozenset(files), files)[0].value == "uv sync --frozen --quiet --group test"
    assert detect(frozenset(files), files)[1].value == "uv run --no-sync pytest"
    assert detect(frozenset(files), files, ())[0].value.startswith("python3 -m venv .venv")
    assert detect(frozenset(["pdm.lock"]), {})[0].value == "pdm sync --quiet --dev"
    assert [guess.key for guess in detect(frozenset(["ruff.toml"]), {}, ())] == []


def test_the_only_project_below_the_top_is_found_and_any_that_is_named(tmp_path: Path) -> None:
    for name in ("packages/the one", "docs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "packages/the one/pyproject.toml").write_text(PROJECT)
    (tmp_path / "packages/the one/src").mkdir()
    assert [(guess.value.split(" && ")[0], guess.because) for guess in look(str(tmp_path))] == [
        ("cd 'packages/the one'", "packages/the one: pyproject.toml"),
        ("cd 'packages/the one'", "packages/the one: pyproject.toml"),
        ('["packages/the one/src/"]', "packages/the one: src/"),
    ]
    (tmp_path / "packages/other").mkdir()
    (tmp_path / "packages/other/setup.py").write_text("")
    assert look(str(tmp_path)) == []
    assert look(str(tmp_path), "packages/other")[0].value.startswith("cd packages/other && python3 -m venv")
