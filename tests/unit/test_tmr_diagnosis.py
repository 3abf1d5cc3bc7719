"""What the output of builds and tests says about the cause."""

import pytest

from mngr.tmr.measure.baseline import BROKEN, FAIL, PASS, SKIPPED, BaselineTest, all_fail
from mngr.tmr.measure.diagnosis import advice, error_line, of_machine

GCC = """\
cc -O2 -c -o wordcount.o wordcount.c
wordcount.c: In function 'main':
wordcount.c:12:5: error: expected ';' before 'return'
   12 |     return 0;
make: *** [Makefile:4: wordcount.o] Error 1
"""
NO_GCC = "gcc -o x x.c\nmake: gcc: No such file or directory\nmake: *** [Makefile:2: x] Error 127\n"
HEADER = "a.c:1:10: fatal error: zlib.h: No such file or directory"
CMAKE = "CMake Error at x:2 (project):\n  No CMAKE_C_COMPILER could be found.\n"
RUST = "error[E0425]: cannot find value `x`\n --> src/main.rs:2:5\nerror: could not compile `a`\n"


@pytest.mark.parametrize(
    ("log", "line", "hint"),
    [
        (GCC, "wordcount.c:12:5: error: expected ';' before 'return'", "fix it"),
        (NO_GCC, "make: gcc: No such file or directory", "install `gcc`"),
        ("sh: 1: cmake: not found\n", "sh: 1: cmake: not found", "install `cmake`"),
        ("bash: line 1: cargo: command not found\n", "bash: line 1: cargo: command not found", "install `cargo`"),
        ("env: ‘meson’: No such file or directory", "env: ‘meson’: No such file or directory", "install `meson`"),
        (".mngr/task/job/job.sh: 37: cargo: not found\n", "cargo: not found", "install `cargo`"),
        (RUST, "src/main.rs:2:5: error[E0425]: cannot find value `x`", "fix it"),
        ("# a\n./main.go:3:1: syntax error: x\n", "./main.go:3:1: syntax error: x", "fix it"),
        ("src/a.ts(3,1): error TS1005: ';' expected.\n", "src/a.ts(3,1): error TS1005: ';' expected.", "fix it"),
        ("make: *** No rule to make target 'x'.  Stop.\n", "make: *** No rule to make target 'x'.  Stop.", ""),
        ("one\ntwo\n\n", "two", ""),
        ("", "", ""),
        (HEADER, HEADER, "install the library that brings `zlib.h`"),
        (CMAKE, "No CMAKE_C_COMPILER could be found.", "install a"),
    ],
)  # fmt: skip
def test_the_line_that_names_the_cause_is_found_in_the_log_of_a_build(log: str, line: str, hint: str) -> None:
    assert error_line(log) == line
    assert advice(line).startswith(hint) and bool(advice(line)) == bool(hint)


def failed(*signatures: str) -> dict[str, BaselineTest]:
    return {
        f"t.py::test_{number}": BaselineTest(FAIL, ("failed",), text, f"E {text}")
        for number, text in enumerate(signatures)
    }


MISSING = "FileNotFoundError: [Errno 0] No such file or directory: './wordcount'"


@pytest.mark.parametrize(
    ("measured", "cause"),
    [
        (failed(MISSING, MISSING), "something that the tests run is missing: all with"),
        (failed("a SyntaxError: x", "b SyntaxError: y"), "the code has a syntax error: 1 with"),
        (failed("assert 0 == 0", "assert 0 == 0", "KeyError: 'a'"), "most of them fail alike, 2 with `assert 0 == 0`"),
        (failed("a", "b", "c"), "for example with `a`"),
        (failed("a", "b"), None),
        (failed(MISSING), None),
        ({**failed(MISSING, MISSING), "x": BaselineTest(PASS)}, None),
        (
            {**failed(MISSING), "x": BaselineTest(BROKEN, (), "ImportError: x"), "y": BaselineTest(SKIPPED)},
            "something that",
        ),
        ({"y": BaselineTest(SKIPPED)}, None),
    ],
)
def test_a_baseline_in_which_everything_fails_has_a_cause(measured: dict[str, BaselineTest], cause: str | None) -> None:
    found = all_fail(measured)
    assert found is None if cause is None else found is not None and found.text.startswith(cause), found


def test_a_machine_without_room_is_told_from_work_that_is_wrong() -> None:
    assert (
        of_machine("E  OSError: [Errno 28] No space left on device: 'x'")
        == "E  OSError: [Errno 28] No space left on device: 'x'"
    )
    assert of_machine("fatal: Unable to create '/r/.git/index.lock': File exists.").startswith("fatal:")
    assert of_machine(GCC) == "" and of_machine("E  assert 0 == 1") == ""
