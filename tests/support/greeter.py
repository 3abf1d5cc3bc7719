"""A small product that is not mngr: the program `greet`, its tutorial and its tests, in a user's repository."""

from typing import Any

from tests.real.test_schemas import validator
from tests.support.user import Ran, User

PROGRAM = """#!/usr/bin/env python3
import argparse

parser = argparse.ArgumentParser(prog="greet", description="Say something kind.")
verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")
hello = verbs.add_parser("hello", help="say hello")
hello.add_argument("--name", "-n", default="you", help="to whom")
hello.add_argument("--loud", "-l", action="store_true", help="with more voice")
bye = verbs.add_parser("bye", help="say good bye")
bye.add_argument("--soon", action="store_true", help="but not for long")
args = parser.parse_args()
text = f"hello, {args.name}" if args.verb == "hello" else "see you" if args.soon else "good bye"
print(text.upper() if args.verb == "hello" and args.loud else text)
"""
TUTORIAL = """#!/bin/sh
set -e

# Saying hello

# say hello to somebody
greet hello --name Ada

# Saying good bye

# it is \\
greet bye \\
    --soon
"""
CONFTEST = """
import pathlib


def e2e_environment(session):
    session.env["PATH"] = f"{pathlib.Path(__file__).parent.parent / 'bin'}:{session.env['PATH']}"
"""
HELLO = '''from mngr.e2e import expect


def test_hello(e2e):
    e2e.write_tutorial_block("""
    # say hello to somebody
    greet hello --name Ada
    """)
    expect(e2e.run("greet hello --name Ada").stdout).to_contain("hello, Ada")
'''
BYE = '''from mngr.e2e import expect


class TestBye:
    def test_soon(self, e2e):
        block = e2e.write_tutorial_block(r"""
        # it is \\
        greet bye \\
            --soon
        """)
        (command,) = block.commands
        expect(e2e.run(command).stdout).to_contain("see you")

    def test_wrong(self, e2e):
        """An option that does not exist.

        Tutorial block:
            # say hello to somebody
            greet hello --name Ada
        """
        expect(e2e.run("greet bye --later")).to_fail()
'''


def add_greeter(user: User, tutorial: str = TUTORIAL, **tests: str) -> None:
    """Commit the product, its tutorial and these test files (by name, without `.py`)."""
    (user.repo / "bin").mkdir()
    (user.repo / "tests").mkdir()
    (user.repo / "bin" / "greet").write_text(PROGRAM)
    (user.repo / "bin" / "greet").chmod(0o755)
    (user.repo / "tutorial.sh").write_text(tutorial)
    (user.repo / "tests" / "conftest.py").write_text(CONFTEST)
    for name, text in tests.items():
        (user.repo / "tests" / f"{name}.py").write_text(text)
    user.env["PATH"] = f"{user.repo / 'bin'}:{user.env['PATH']}"
    user.git("add", ".")
    user.git("commit", "-q", "-m", "Greet")


def document(done: Ran) -> Any:
    """What `mngr tutorial --format json` printed, which fits what it states."""
    validator("tutorial")(done.json)
    return done.json
