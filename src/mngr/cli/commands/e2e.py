"""`mngr e2e`: look at what end-to-end tests did, command by command, and measure what they notice."""

from __future__ import annotations

import os

from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.cli.text import amount
from mngr.config import project_root
from mngr.errors import UsageError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from mngr.report.e2e_runs import E2eRuns

DESCRIPTION = (
    "Show the runs of tests that use the pytest fixture `e2e`: results, tutorial blocks, transcripts and terminal "
    "recordings, where a click on a command jumps to its moment. Recordings need the player of `pip install "
    "'mngr[pages]'`. `strength` measures what any test notices."
)
EXAMPLES = (
    ("mngr e2e serve", "in the browser, live while pytest runs; Ctrl-C ends it"),
    ("mngr e2e report", "as files that open from disk, in .mngr/e2e/report"),
    ("mngr e2e report .mngr/e2e/nightly --output site", "one run, somewhere else"),
    ("mngr e2e strength tests/test_one.py", "what would these tests notice, and what not?"),
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


def add_arguments(parser: Parser) -> None:
    report = parser.add_subcommand("report", "Write pages that open from disk, without a network")
    report.add_argument("dir", nargs="?", metavar="DIR", help="an e2e directory or one run (default: .mngr/e2e)")
    report.add_argument("--output", "-o", metavar="OUT", help="where to (default: `report` in that directory)")
    serve = parser.add_subcommand("serve", "Show the pages live on this machine, until Ctrl-C")
    serve.add_argument("dir", nargs="?", metavar="DIR", help="an e2e directory or one run (default: .mngr/e2e)")
    serve.add_argument("--port", metavar="N", help="listen on this port (default: one that is free)")
    strength = parser.add_subcommand(
        "strength",
        "Measure what tests notice: change the product's answers and code, one change at a time",
        description=_STRENGTH,
        examples=_STRENGTH_EXAMPLES,
    )
    strength.add_argument("tests", nargs="*", metavar="TESTS", help="files, directories or ids of tests (default: all)")
    strength.add_argument("--edits", type=int, default=300, metavar="N", help="most edits of output per test")
    strength.add_argument(
        "--mutants", type=int, default=20, metavar="N", help="changes of code per test that runs commands"
    )
    strength.add_argument("--all", action="store_true", help="list every change that no test noticed")


def run(args: Args, app: App) -> int:
    if args.subcommand == "strength":
        from mngr.cli import e2e_strength

        return e2e_strength.run(args, app)
    from mngr.report.e2e_runs import E2eRuns

    directory = os.path.abspath(args.dir) if args.dir else _usual(app)
    source = E2eRuns(directory)
    run_it = _report if args.subcommand == "report" else _serve
    return run_it(args, app, source, directory)


def _usual(app: App) -> str:
    from mngr.e2e.artifacts import usual_place

    here = os.getcwd()
    return usual_place(here, project_root(here, app.host_dir) or here)


def _report(args: Args, app: App, source: E2eRuns, directory: str) -> int:
    """`path` of the index.html, how many `runs` and `tests` it shows, and the `player` in it, if any."""
    from mngr.report import player, site

    source.check()
    path = site.write(source, args.output or os.path.join(directory, _REPORT))
    runs, tests = source.counts()
    found = player.find()
    value = {"path": path, "runs": runs, "tests": tests, "player": found.origin if found else None}
    app.out.emit_object(value, human=path)
    app.out.note(f"{amount(tests, 'test')} in {amount(runs, 'run')}")
    _tell_player(app, found is not None)
    return 0


def _serve(args: Args, app: App, source: E2eRuns, directory: str) -> int:
    from mngr.report import player
    from mngr.report.server import Server

    server = Server(source, _port(args.port))
    try:
        value = {"url": server.url, "port": server.server_port, "directory": directory}
        app.out.emit_object(value, human=server.url)
        app.out.flush()
        if not os.path.isdir(directory):
            app.out.note(f"`{directory}` is not there yet; runs show up as soon as pytest writes them")
        _tell_player(app, player.find() is not None)
        app.out.note("Ctrl-C ends it")
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
    return 0


def _tell_player(app: App, found: bool) -> None:
    from mngr.report.player import HINT

    if not found:
        app.out.note(f"recordings are not shown, since the player is not installed: `{HINT}`")


def _port(text: str | None) -> int:
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and int(text) < 65536):
        raise UsageError(f"`{text}` is no port", hint="a number from 1 to 65535, or leave `--port` out")
    return int(text)
