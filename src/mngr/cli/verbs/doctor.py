"""`mngr doctor`: check this machine."""

from __future__ import annotations

import os
from typing import Any

from mngr.actions import doctor
from mngr.actions.doctor import FAIL, NOTE, OK, UNKNOWN, WARN, Check
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.terminal import visible
from mngr.cli.parser import settings_check
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import MngrError
from mngr.fleet.fleet import Fleet

# It reports what is wrong with the settings.
READS_SETTINGS = False

DESCRIPTION = (
    "Check the programs, directories, settings and records that mngr needs, the coding agents that it knows, and the "
    "known hosts. Changes nothing. Exits with 1 if a check failed; warnings and notes are not failures. `mngr gc "
    "--dry-run` shows what interrupted commands left behind."
)
EXAMPLES = (
    ("mngr doctor", "one line per check, with hints"),
    ("mngr doctor --format json", "for a script"),
)

_STYLES = {OK: "", NOTE: "dim", WARN: "yellow", FAIL: "red", UNKNOWN: "magenta"}
_SHOWN_ITEMS = 10


def results() -> list[Any]:
    return [{"checks": [Check], "ok": bool}]


def add_arguments(parser: Parser) -> None:
    pass


def run(args: Args, app: App) -> int:
    fleet = Fleet(environ=app.environ, cwd=_here())
    checks = doctor.examine(fleet.local, lambda: settings_check.check(app)) + _hosts(fleet)
    failed = sum(check.status == FAIL for check in checks)
    if app.out.human:
        _print(app, checks, failed)
    else:
        app.out.emit_rows(checks, (), envelope={"checks": checks, "ok": not failed})
    return 1 if failed else 0


def _hosts(fleet: Fleet) -> list[Check]:
    """A check for each known host. One that does not answer is a warning: this machine is ready without it."""
    if not os.path.isdir(fleet.local.host.dir) or fleet.alone:
        return []
    try:
        others = [site for site in fleet.hosts.sites() if not site.is_local]
        answers = fleet.hosts.ask_each(others, lambda site: site.run(doctor.examine_host))
    except MngrError as error:
        return [Check("hosts", WARN, error.message, error.hint)]
    finally:
        fleet.close()
    return [
        Check(f"host {site.name}", WARN, answer.message, answer.hint)
        if isinstance(answer, MngrError)
        else answer._replace(name=f"host {site.name}")
        for site, answer in answers
    ]


def _print(app: App, checks: list[Check], failed: int) -> None:
    left = max(len(check.name) for check in checks)
    indent = " " * (left + 11)
    for check in checks:
        app.out.line(f"{check.status:7}  {check.name:{left}}  {visible(check.found)}", _STYLES[check.status])
        for item in check.items[:_SHOWN_ITEMS]:
            app.out.line(f"{indent}{visible(item)}")
        if len(check.items) > _SHOWN_ITEMS:
            app.out.line(f"{indent}and {len(check.items) - _SHOWN_ITEMS} more; `--format json` lists all")
        if check.hint:
            app.out.line(f"{indent}hint: {visible(check.hint)}")
    warnings = sum(check.status == WARN for check in checks)
    more = f" ({amount(warnings, 'warning')})" if warnings else ""
    if failed:
        app.out.line(f"\nThis machine is not ready: {amount(failed, 'check')} failed{more}", "bold red")
    else:
        app.out.line(f"\nThis machine is ready{more}", "green")


def _here() -> str:
    """The current directory, or the root if the current directory was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"
