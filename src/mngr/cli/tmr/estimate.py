"""`mngr tmr --dry-run`: the tasks, the disk, and what may be spent. Starts no agent of a task and keeps nothing."""

from __future__ import annotations

import tempfile
from typing import Any

from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.table import Column
from mngr.errors import MngrError
from mngr.system.git import Git
from mngr.tmr import plan
from mngr.tmr.measure.diagnosis import advice
from mngr.tmr.measure.measurer import Measurer
from mngr.tmr.run_request import RunRequest

_PREPARE = "`mngr config set tmr.prepare 'CMD' --scope project`"
# Seen for agents that read a repository before they change it; without history there is nothing better.
_TOKENS_EACH = (20_000, 50_000)
_COLUMNS = [Column("TASK", "slug"), Column("TEST", "task", flexible=True)]


def show(app: App, request: RunRequest) -> int:
    git = Git.of_user(request.repo)
    with tempfile.TemporaryDirectory(prefix="mngr-tmr-") as draft:
        environment = request.settings.environment
        measurer = Measurer(app.fleet, None, repo=request.repo, directory=draft, environment=environment, at_once=1)
        try:
            found = plan.collect(measurer, request.base, paths=request.paths, args=request.args)
        except MngrError as error:
            if draft not in error.hint:
                raise
            hint = advice(error.message.partition("): ")[2]) or _PREPARE  # the draft is gone by then
            raise MngrError(error.message, details=error.details, hint=hint) from None
    tests = plan.functions(found.tests, [*found.chosen, *(item.id for item in found.broken)])
    slugs, at_once = plan.slugs(tests), min(request.limits.max_agents, len(tests))
    low, high = (each * len(tests) for each in _TOKENS_EACH)
    facts: dict[str, Any] = {
        "tasks": [{"task": test, "slug": slugs[test]} for test in tests],
        "agents_at_once": at_once,
        "rounds": -(-len(tests) // at_once) if at_once else 0,
        "disk_mb": round(_size(git, request.base) * len(tests) / 1e6, 1),
        "tokens_low": low,
        "tokens_high": high,
        "measured": ["tasks", "disk_mb"],
        "broken": [{"task": item.id, "why": item.signature} for item in found.broken],
        "base": request.base,
        "type": request.workers.type,
        "dry_run": True,
    }
    if not app.out.human:
        app.out.emit_object(facts)
        return 0
    app.out.emit_rows(facts["tasks"], _COLUMNS)
    of_type = f" of type `{request.workers.type}`" if request.workers.type else ""
    app.out.line(f"{amount(len(tests), 'task')}, at most {amount(at_once, 'agent')}{of_type} at once")
    disk = f"about {facts['disk_mb']:g} MB" if facts["disk_mb"] >= 1 else "less than 1 MB"
    app.out.line(f"disk: {disk} for their copies of the code")
    app.out.line(f"tokens: {low:,} to {high:,}, a rough guess: 20,000 to 50,000 per agent to read the code")
    for item in found.broken:
        app.out.warn(f"`{item.id}` cannot be collected: {item.signature}")
    if found.broken:
        app.out.note(f"hint: the code may need to be prepared first: {_PREPARE}")
    if request.failing:
        app.out.note("`--failing` leaves out passing tests; which ones pass is known only after running them")
    return 0


def _size(git: Git, commit: str) -> int:
    """The bytes of all files at a commit: what a copy takes, its repository shared or packed beside that."""
    listed = git.must("ls-tree", "-r", "-l", "-z", commit).split("\0")
    sizes = [line.partition("\t")[0].split()[3] for line in listed if line]
    return sum(int(size) for size in sizes if size.isdigit())
