"""Pieces of agents' work whose truth is known, one agent each, written before what has to judge them and by others."""

from collections.abc import Mapping
from typing import NamedTuple

# Where work may end. ON_BRANCH: nobody is asked anything about it. ASKED: a person is asked first, or is shown it as
# something to look at, whether it is on the branch or held. REFUTED: it is not on the branch, as wrong work.
ON_BRANCH, ASKED, REFUTED = "on the branch", "asked", "refuted"
WRONG = frozenset({ASKED, REFUTED})


class Edit(NamedTuple):
    """`old`, which is in the file once, is replaced by `new`. Without `old` the file is new, or replaced as a whole;
    without both it is removed."""

    path: str
    old: str
    new: str


class Work(NamedTuple):
    """One task and what its agent does. `files` are at the base, used by no other work: product below `src/shop/`,
    tests below `tests/`. `task` is the id of the test that the agent was given; `tests/test_NAME.py::test_NAME` if
    empty.

    `family` groups works of one idea. `ends` are the places that are right. `story` says in one line what was done
    and why that is right or wrong. `base` and `tip` are the tests that fail in plain pytest, at the base and with the
    work, as ids, where nobody else's work is. Two works that only together are wrong name each other as `partner`: the
    files of both are in one tree, `tip` is what fails there with the edits of one, `both` with those of both, and it
    is enough that one of them ends as `ends` says."""

    family: str
    story: str
    files: Mapping[str, str]
    edits: tuple[Edit, ...]
    ends: frozenset[str]
    base: tuple[str, ...] = ()
    tip: tuple[str, ...] = ()
    task: str = ""
    partner: str = ""
    both: tuple[str, ...] = ()
    summary: str = "Fix the failing test"


# What all works stand in: a shop in Python, whose tests are run by `python -m pytest` in the top directory.
SHARED_FILES: Mapping[str, str] = {
    ".gitignore": "__pycache__/\n.pytest_cache/\n*.egg-info/\n",
    "README.md": """\
# shop

Prices, stock and orders of a small shop. Amounts are whole cents; a part of a cent is rounded half up.

    PYTHONPATH=src python -m shop total 2x250 1x199
    python -m pytest
""",
    "pyproject.toml": """\
[project]
name = "shop"
version = "1.4.0"
requires-python = ">=3.11"

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["src"]
""",
    "src/shop/__init__.py": '"""Prices, stock and orders of a small shop."""\n',
    "src/shop/__main__.py": """\
import sys

from shop.cli import main

sys.exit(main(sys.argv[1:]))
""",
    "src/shop/cli.py": """\
from shop.money import show, total


def main(args):
    if not args or args[0] != "total":
        print("usage: shop total COUNTxCENTS ...")
        return 2
    lines = [tuple(int(part) for part in arg.split("x")) for arg in args[1:]]
    print(show(total(lines)))
    return 0
""",
    "src/shop/money.py": """\
from decimal import ROUND_HALF_UP, Decimal


def cents(text):
    return int((Decimal(text) * 100).quantize(Decimal(1), ROUND_HALF_UP))


def show(amount):
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02d}"


def share(amount, percent):
    return int((Decimal(amount) * percent / 100).quantize(Decimal(1), ROUND_HALF_UP))


def total(lines):
    return sum(count * price for count, price in lines)
""",
    "src/shop/stock.py": """\
class Stock:
    def __init__(self, counts=None):
        self.counts = dict(counts or {})

    def add(self, name, count=1):
        if count < 1:
            raise ValueError(f"{name}: cannot add {count}")
        self.counts[name] = self.counts.get(name, 0) + count

    def take(self, name, count=1):
        if self.counts.get(name, 0) < count:
            raise KeyError(f"{name}: not enough")
        self.counts[name] -= count
""",
    "tests/conftest.py": """\
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shop.stock import Stock

SOURCE = Path(__file__).parent.parent / "src"


@pytest.fixture
def shop():
    def run(*args, module="shop", input=None, cwd=None, **env):
        return subprocess.run(
            [sys.executable, "-m", module, *args],
            env={**os.environ, "PYTHONPATH": str(SOURCE), **env},
            input=input,
            cwd=cwd,
            capture_output=True,
            text=True,
        )

    return run


@pytest.fixture
def stock():
    return Stock({"pen": 10, "ink": 2})
""",
    "tests/checks.py": """\
def assert_money(amount, text):
    from shop.money import show

    assert type(amount) is int
    assert show(amount) == text


def assert_lines(text, *lines):
    assert text.splitlines() == list(lines)
""",
    "tests/test_shop.py": """\
import pytest
from checks import assert_lines, assert_money

from shop.money import cents, share, show, total


@pytest.mark.parametrize(("text", "amount"), [("12", 1200), ("0.5", 50), ("-3.25", -325), ("1.005", 101)])
def test_cents(text, amount):
    assert cents(text) == amount


@pytest.mark.parametrize(("amount", "text"), [(1200, "12.00"), (5, "0.05"), (-325, "-3.25")])
def test_show(amount, text):
    assert show(amount) == text


def test_share():
    assert_money(share(999, 50), "5.00")
    assert_money(share(101, 7), "0.07")


def test_total():
    assert total([(2, 250), (1, 199)]) == 699


def test_command(shop):
    done = shop("total", "2x250", "1x199")
    assert done.returncode == 0
    assert_lines(done.stdout, "6.99")


def test_usage(shop):
    done = shop("sell")
    assert done.returncode == 2
    assert_lines(done.stdout, "usage: shop total COUNTxCENTS ...")


def test_take(stock):
    stock.take("pen", 3)
    assert stock.counts == {"pen": 7, "ink": 2}


def test_take_too_many(stock):
    with pytest.raises(KeyError, match="not enough"):
        stock.take("ink", 3)


def test_add(stock):
    stock.add("nib")
    stock.add("ink", 4)
    assert stock.counts == {"pen": 10, "ink": 6, "nib": 1}
""",
}

# The same for works in C: each brings `src/cmd_NAME.c` with `int cmd_NAME(int argc, char **argv)`, which is what
# `bin/shop NAME` runs. PREPARE_C is run before the tests.
PREPARE_C = "make -s"
SHARED_FILES_C: Mapping[str, str] = {
    ".gitignore": "__pycache__/\n.pytest_cache/\n/bin/\n/build/\n",
    "Makefile": """\
CC = cc
CFLAGS = -std=c99 -O1 -Wall
COMMANDS = $(patsubst src/cmd_%.c,%,$(sort $(wildcard src/cmd_*.c)))
SOURCES = $(sort $(wildcard src/*.c))
OBJECTS = $(patsubst src/%.c,build/%.o,$(SOURCES))

bin/shop: $(OBJECTS)
	@mkdir -p bin
	$(CC) $(CFLAGS) -o $@ $(OBJECTS)

build/%.o: src/%.c src/shop.h build/commands.h
	$(CC) $(CFLAGS) -Isrc -Ibuild -c -o $@ $<

build/commands.h: $(SOURCES) Makefile
	@mkdir -p build
	@printf 'COMMAND(%s)\\n' $(COMMANDS) > $@

clean:
	rm -rf bin build
""",
    "src/shop.h": """\
#ifndef SHOP_H
#define SHOP_H

/* An amount in whole cents, as "12.34". */
void show_money(long cents, char *to, unsigned long size);

/* "12.34" as cents; -1 if it is no amount. */
long read_money(const char *text);

#endif
""",
    "src/money.c": """\
#include "shop.h"

#include <stdio.h>
#include <stdlib.h>

void show_money(long cents, char *to, unsigned long size)
{
    snprintf(to, size, "%s%ld.%02ld", cents < 0 ? "-" : "", labs(cents) / 100, labs(cents) % 100);
}

long read_money(const char *text)
{
    long whole = 0, part = 0;
    int end = 0;

    if (sscanf(text, "%ld.%2ld%n", &whole, &part, &end) != 2 || text[end] != 0 || whole < 0 || part < 0)
        return -1;
    return whole * 100 + part;
}
""",
    "src/main.c": """\
#include <stdio.h>
#include <string.h>

#define COMMAND(name) int cmd_##name(int argc, char **argv);
#include "commands.h"
#undef COMMAND

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: shop COMMAND ...\\n");
        return 2;
    }
#define COMMAND(name) if (strcmp(argv[1], #name) == 0) return cmd_##name(argc - 1, argv + 1);
#include "commands.h"
#undef COMMAND
    fprintf(stderr, "shop: no command %s\\n", argv[1]);
    return 2;
}
""",
    "src/cmd_total.c": """\
#include "shop.h"

#include <stdio.h>

int cmd_total(int argc, char **argv)
{
    long sum = 0;
    char text[32];

    for (int i = 1; i < argc; i++) {
        long cents = read_money(argv[i]);

        if (cents < 0) {
            fprintf(stderr, "total: no amount: %s\\n", argv[i]);
            return 1;
        }
        sum += cents;
    }
    show_money(sum, text, sizeof text);
    printf("%s\\n", text);
    return 0;
}
""",
    "pytest.ini": "[pytest]\ntestpaths = tests\n",
    "tests/conftest.py": """\
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent / "bin" / "shop"


@pytest.fixture
def shop(tmp_path):
    def run(*args, input=None, **more):
        return subprocess.run([PROGRAM, *args], input=input, cwd=tmp_path, capture_output=True, text=True, **more)

    return run
""",
    "tests/test_shop.py": """\
def test_total(shop):
    assert shop("total", "1.50", "2.25").stdout == "3.75\\n"


def test_total_of_no_amount(shop):
    done = shop("total", "1.5o")
    assert (done.returncode, done.stderr) == (1, "total: no amount: 1.5o\\n")


def test_no_command(shop):
    assert shop("sell").returncode == 2
""",
}


def shared_files(work: Work) -> Mapping[str, str]:
    """What a work stands in, by its language."""
    return SHARED_FILES_C if any(path.endswith(".c") for path in work.files) else SHARED_FILES
