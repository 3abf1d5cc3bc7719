"""How a project's tests are run, told from its files."""

import pytest

from mngr.tmr.detect import detect

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
