"""`mngr doctor`: is this machine ready, and is anything left over?"""

from __future__ import annotations

import os

from mngr.actions import doctor
from mngr.actions.doctor import FAIL, NOTE, OK, UNKNOWN, WARN, Check
from mngr.actions.fleet import Fleet
from mngr.cli.app import App
from mngr.cli.commands import config
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.cli.terminal import visible
from mngr.cli.text import amount

# It has to say what is wrong with the settings.
READS_SETTINGS = False

DESCRIPTION = (
    "Look at the programs, directories, settings, records and sessions that mngr needs, at the coding agents that it "
    "knows, and at what was left behind. Nothing is changed. Exits with 1 when a check failed; a warning or a note is "
    "no failure."
)
EXAMPLES = (
    ("mngr doctor", "every check on a line, with what to do below it"),
    ("mngr doctor --format json", "the same for a script"),
)

_STYLES = {OK: "", NOTE: "dim", WARN: "yellow", FAIL: "red", UNKNOWN: "magenta"}
_SHOWN_ITEMS = 10


def add_arguments(parser: Parser) -> None:
    pass


def run(args: Args, app: App) -> int:
    fleet = Fleet(environ=app.environ, cwd=_here())
    checks = doctor.examine(fleet, lambda: config.check(app))
    failed = sum(check.status == FAIL for check in checks)
    if app.out.human:
        _print(app, checks)
        _print_sum(app, checks, failed)
    else:
        rows = [check.as_json() for check in checks]
        app.out.emit_rows(rows, (Column("NAME", "name"),), envelope={"checks": rows, "ok": not failed})
    return 1 if failed else 0


def _print(app: App, checks: list[Check]) -> None:
    left = max(len(check.name) for check in checks)
    indent = " " * (left + 11)
    for check in checks:
        app.out.line(f"{check.status:7}  {check.name:{left}}  {visible(check.found)}", _STYLES[check.status])
        for item in check.items[:_SHOWN_ITEMS]:
            app.out.line(f"{indent}{visible(item)}")
        if len(check.items) > _SHOWN_ITEMS:
            app.out.line(f"{indent}and {len(check.items) - _SHOWN_ITEMS} more; `--format json` has all")
        if check.hint:
            app.out.line(f"{indent}hint: {visible(check.hint)}")


def _print_sum(app: App, checks: list[Check], failed: int) -> None:
    warnings = sum(check.status == WARN for check in checks)
    more = f" ({amount(warnings, 'warning')})" if warnings else ""
    if failed:
        app.out.line(f"\nThis machine is not ready: {amount(failed, 'check')} failed{more}", "bold red")
    else:
        app.out.line(f"\nThis machine is ready{more}", "green")


def _here() -> str:
    """The current directory, or the root when it was removed under our feet."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"
