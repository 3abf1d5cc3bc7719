"""`mngr tmr review`: walk through the fixes of a run, keep or drop each, and build the branch anew."""

from __future__ import annotations

from mngr.cli.app import App
from mngr.cli.parser import Args
from mngr.cli.terminal import is_terminal
from mngr.cli.text import amount
from mngr.cli.tmr import ending
from mngr.cli.tmr.starting import broken_off, find, task_named, working
from mngr.errors import MngrError, Undecided, UsageError
from mngr.mapreduce.run import Run
from mngr.process import checked
from mngr.records import TYPE_CHECKING
from mngr.tmr.summary import flagged
from mngr.tools.git import Git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_STYLES = {"diff ": "bold", "--- ": "bold", "+++ ": "bold", "@@": "cyan", "+": "green", "-": "red"}


def review(args: Args, app: App) -> int:
    found = find(app, args.run)
    integration = found.phase("integrate")
    if integration is None:
        raise MngrError(f"run `{found.id}` is not integrated yet", hint=f"`mngr tmr resume {found.id}`")
    dropped = {task_named(found, name).slug for name in args.drop or ()}
    fixes = [commit for commit in integration["commits"] if commit["kind"] == "implementation"]
    there = {slug for commit in fixes for slug in commit["slugs"]}.union(integration["accepted"])
    if strange := sorted(dropped - there.union(integration["dropped"])):
        raise UsageError(
            f"there is no fix of `{strange[0]}` to drop",
            hint=f"fixes are of: {', '.join(f'`{slug}`' for slug in sorted(there))}" if there else "",
        )
    if not dropped:
        dropped = _ask(app, found, fixes)
    if not dropped:
        app.out.emit_object({"run": found.id, "dropped": []}, human="the branch stays as it is")
        return 0
    with broken_off(app, found), working(app, found) as work:
        found.resume()
        work.integrate(drop=sorted(dropped))
        code = work.exit_code()
        found.note("finished", exit_code=code, summary={"why": "reviewed", "because": "built anew after a review"})
    return ending.show(app, found, code)


def _ask(app: App, run: Run, fixes: list[Mapping[str, Any]]) -> set[str]:
    """One fix after the other: what it is for, what it was measured to do, its diff; then keep or drop. Whoever quits
    drops none."""
    if not fixes:
        return set()
    if app.headless or not is_terminal(app.stdout):
        raise Undecided(
            "there are fixes to look at, and nobody can be asked",
            hint=f"name those to drop: `mngr tmr review {run.id} --drop TASK`",
        )
    git = Git(app.fleet.host, str(run.state.facts["repo"]))
    dropped: set[str] = set()
    for number, commit in enumerate(fixes, 1):
        _show(app, run, git, commit, f"{number} of {len(fixes)}")
        answer = _answer(app)
        if answer == "q":
            return set()
        if answer == "n":
            dropped |= set(commit["slugs"])
    return dropped


def _answer(app: App) -> str:
    """`y`, `n` or `q`, asked again until it is one; Enter is a yes."""
    while True:
        answer = app.ask("keep it?", "[Y]es, [n]o, [q]uit without any change:").lower()
        if answer in ("", "y", "yes", "n", "no", "q", "quit"):
            return answer[:1] or "y"


def _show(app: App, run: Run, git: Git, commit: Mapping[str, Any], place: str) -> None:
    out = app.out
    out.line(f"\n{place}: {commit['title']}", "bold")
    out.line(f"  by {', '.join(commit['agents'])}")
    out.line(f"  rank {commit['rank']}: {commit['because']}")
    for task in (task for task in run.state.tasks.values() if task.slug in commit["slugs"]):
        claim = ((task.last.collected if task.last else None) or {}).get("outcome") or {}
        for line in str(claim.get("summary", "")).split("\n"):
            out.line(f"  | {line}", "dim")
        for flag in flagged(task):
            out.line(f"  look at this: {flag}", "yellow")
    if commit["needed_by"]:
        out.line(f"  {amount(len(commit['needed_by']), 'later commit')} built on it would go too", "yellow")
    shown = git.run("show", "--stat", "--patch", "--format=", "--no-color", "--no-ext-diff", commit["id"])
    for line in checked(shown).text.split("\n"):  # in our own colours: an agent's line may hold others
        out.line(line, next((style for start, style in _STYLES.items() if line.startswith(start)), ""))
