"""`mngr e2e`: look at what end-to-end tests did, command by command, and measure what they notice."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.parser.parser import Args, Parser
from mngr.settings.layers import project_root

if TYPE_CHECKING:
    from mngr.report.e2e_runs import E2eRuns

DESCRIPTION = (
    "Show the runs of tests that use the pytest fixture `e2e`: results, tutorial blocks, transcripts and terminal "
    "recordings, where a click on a command jumps to its moment. Recordings need the player of `pip install "
    "'mngr[pages]'`. `strength` measures what any test notices."
)
EXAMPLES = (
    ("mngr e2e serve", "in the browser, live while pytest runs; stop with Ctrl-C"),
    ("mngr e2e report", "as files that open from disk, in .mngr/e2e/report"),
    ("mngr e2e report .mngr/e2e/nightly --output site", "one run, to another directory"),
    ("mngr e2e strength tests/test_one.py", "measure what these tests notice"),
)
_STRENGTH = (
    "For each test: how many changes it notices, which no test notices, and whether it can fail at all. Commands of "
    "the fixture `e2e` are recorded once and answered from the record with one edit: another exit code, a line "
    "dropped, a number changed. All tests are run with one change in the product's code as well. Everything happens in "
    "a copy of the project; `[tmr] test_command`, `prepare` and `paths` say how it is built and tested."
)
_STRENGTH_EXAMPLES = (
    ("mngr e2e strength", "all tests of the project in the current directory"),
    ("mngr e2e strength tests/test_one.py::test_one --all", "one test, with all it misses"),
    ("mngr e2e strength --mutants 0 --format json", "only edits of output, for a program"),
)
_REPORT = "report"


def results() -> list[Any]:
    measured = {
        **dict.fromkeys(("test", "word", "why", "no_edits", "no_mutants"), str),
        **dict.fromkeys(("noticed", "of"), int),
        "edits": [int],
        "mutants": [int],
        "seconds": float,
    }
    return [
        {"path": str, "runs": int, "tests": int, "player": str | None},
        {"url": str, "port": int, "directory": str},
        {"tests": [measured], "unnoticed": [{"where": str, "change": str, "tests": [str]}]},
    ]


def add_arguments(parser: Parser) -> None:
    report = parser.add_subcommand("report", "Write pages that open from disk, without a network")
    report.add_argument("dir", nargs="?", metavar="DIR", help="an e2e directory or one run (default: .mngr/e2e)")
    report.option("--output, -o OUT", "output directory (default: `report` in DIR)")
    serve = parser.add_subcommand("serve", "Show the pages live on this machine, until Ctrl-C")
    serve.add_argument("dir", nargs="?", metavar="DIR", help="an e2e directory or one run (default: .mngr/e2e)")
    serve.option("--port N", "port to listen on (default: a free one)")
    strength = parser.add_subcommand(
        "strength",
        "Measure what tests notice: change the product's answers and code, one change at a time",
        description=_STRENGTH,
        examples=_STRENGTH_EXAMPLES,
    )
    strength.words("tests", "TESTS", "files, directories or ids of tests (default: all)")
    strength.option("--edits N", "maximum number of output edits per test", type=int, default=300)
    strength.option("--mutants N", "number of code changes per test that runs commands", type=int, default=20)
    strength.option("--all", "list every change that no test noticed")


def run(args: Args, app: App) -> int:
    if args.subcommand == "strength":
        from mngr.cli import e2e_strength

        return e2e_strength.run(args, app)
    from mngr.cli.output import pages
    from mngr.report.e2e_runs import E2eRuns

    directory = os.path.abspath(args.dir) if args.dir else _usual(app)
    source = E2eRuns(directory)
    if args.subcommand == "report":
        return _report(args, app, source, directory)
    missing = f"`{directory}` does not exist yet; runs appear as soon as pytest writes them"
    note = "" if os.path.isdir(directory) else missing
    return pages.serve(app, source, pages.parse_port(args.port or "0"), {"directory": directory}, note)


def _usual(app: App) -> str:
    from mngr.e2e.artifacts import usual_place

    here = os.getcwd()
    return usual_place(here, project_root(here, app.host_dir) or here)


def _report(args: Args, app: App, source: E2eRuns, directory: str) -> int:
    """`path` of the index.html, how many `runs` and `tests` it shows, and the `player` in it, if any."""
    from mngr.cli.output import pages
    from mngr.report import site

    source.check()
    path = site.write(source, args.output, (directory, _REPORT))
    runs, tests = source.counts()
    counted = f"{amount(tests, 'test')} in {amount(runs, 'run')}"
    return pages.show_written(app, path, counted, {"runs": runs, "tests": tests})
