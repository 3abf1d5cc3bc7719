"""`mngr e2e strength`: what the tests of a project notice, for a person and for programs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.parser.parser import Args
from mngr.errors import UsageError
from mngr.settings.layers import project_root
from mngr.tmr import settings as tmr_settings
from mngr.tmr.measure import strength, strength_project
from mngr.tmr.measure.strength import CANNOT_FAIL, KILLED, NOT_MEASURED, SURVIVED, MeasuredTest, Tried, compare

_SHOWN = 5
_BAR = 20
_MEASURED = "measured"


def run(args: Args, app: App) -> int:
    """`tests`: each with how many changes it noticed; `unnoticed`: changes that every test missed."""
    here = os.path.realpath(os.getcwd())
    top = os.path.realpath(project_root(here, app.host_dir) or here)
    if args.mutants < 0 or args.edits < 0:
        raise UsageError("`--edits` and `--mutants` are at least 0")
    settings = tmr_settings.read(app.settings)
    app.out.note(f"measuring in a copy of `{top}`")
    found = strength_project.measure(
        top,
        settings.environment,
        settings.paths,
        strength_project.Wanted([_from_top(test, here, top) for test in args.tests], args.edits, args.mutants),
        on_measured=lambda one: app.out.note(f"{one.test}: {one.kills} of {len(one.tried)}"),
    )
    if args.mutants and strength.not_run(list(found.values())):
        why = "no test runs the product's files of this copy"
        app.out.warn(f"{why}: say with `[tmr] prepare` how to install them; source mutants do not count")
        found = {test: one._replace(mutants={}, no_mutants=why) for test, one in found.items()}
    rows = [_row(one) for one in found.values()]
    missed = strength.unnoticed(found)
    value = {
        "tests": rows,
        "unnoticed": [{"where": one.where, "change": one.change, "tests": list(one.tests)} for one in missed],
    }
    app.out.emit_object(value, human="\n".join(_shown(rows, missed, everything=args.all)))
    return 0


def _from_top(test: str, here: str, top: str) -> str:
    """A file, directory or id, as it is named from the top of the project."""
    file, separator, name = test.partition("::")
    path = os.path.join(here, file)
    if not os.path.exists(path):
        raise UsageError(f"no test file `{file}`")
    return os.path.relpath(os.path.realpath(path), top) + separator + name


def _row(one: MeasuredTest) -> dict[str, Any]:
    found = compare(None, one)
    word = found.word if found.word in (CANNOT_FAIL, NOT_MEASURED) else _MEASURED
    return {
        "test": one.test,
        "word": word,
        "why": found.why,
        "noticed": one.kills,
        "of": len(one.tried),
        "edits": _counts(list(one.edits.values())),
        "mutants": _counts(list(one.mutants.values())),
        "no_edits": one.no_edits,
        "no_mutants": one.no_mutants,
        "seconds": round(one.seconds, 1),
    }


def _counts(tried: Sequence[Tried]) -> list[int]:
    decided = [one for one in tried if one.result in (KILLED, SURVIVED)]
    return [sum(one.result == KILLED for one in decided), len(decided)]


def _shown(rows: Sequence[dict[str, Any]], missed: Sequence[strength.Unnoticed], *, everything: bool) -> list[str]:
    widest = max((len(row["test"]) for row in rows), default=0)
    lines = []
    for row in rows:
        bar = _bar(row["noticed"], row["of"])
        counts = f"{row['noticed']} of {row['of']} noticed"
        said = {CANNOT_FAIL: f"cannot fail: {row['why']}", NOT_MEASURED: f"not measured: {row['why']}"}.get(row["word"])
        lines.append(f"{row['test']:<{widest}}  {bar}  {said or counts}")
    if not missed:
        return lines
    lines += ["", f"{amount(len(missed), 'change')} that no test noticed:"]
    counted: Counter[str] = Counter()
    for one in missed:
        counted[one.where] += 1
        if everything or counted[one.where] <= _SHOWN:
            lines.append(f"  {one.where}: {one.change}" if one.where.startswith("`") else f"  {one.change}")
    left = sum(max(0, count - _SHOWN) for count in counted.values())
    if left and not everything:
        lines.append(f"  and {left} more: `mngr e2e strength --all`")
    return lines


def _bar(noticed: int, of: int) -> str:
    full = round(_BAR * noticed / of) if of else 0
    return f"[{'#' * full}{'.' * (_BAR - full)}]"
