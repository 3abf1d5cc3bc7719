"""What a person changes when a run is resumed: limits, the type of its agents, what those may do."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from mngr.agents.kinds import kind as kinds
from mngr.agents.kinds import repository_trust
from mngr.cli import permissions
from mngr.cli.app import App
from mngr.cli.durations import parse_duration
from mngr.cli.parser import Args
from mngr.errors import MngrError, UsageError
from mngr.tools.git import Git


def of(args: Args, app: App, top: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of the run that the options change, by the names that the run has for them."""
    at_least_one(args, "max_agents", "max_jobs")
    limits = {name: getattr(args, name) for name in ("budget_usd", "budget_tokens", "max_agents")}
    limits["deadline"] = time.time() + parse_duration(args.deadline) if args.deadline else None
    found = {
        "limits": {name: value for name, value in limits.items() if value is not None},
        "settings": {"max_jobs": args.max_jobs} if args.max_jobs is not None else {},
        "workers": _workers(args, app, top, facts["workers"]),
    }
    integrator = facts.get("integrator")
    if integrator is not None and integrator["type"] == facts["workers"]["type"]:
        found["integrator"] = found["workers"]
    return {name: value for name, value in found.items() if value}


def _workers(args: Args, app: App, top: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments for the program of another type are not for this one."""
    changed: dict[str, Any] = {}
    if args.type is not None and args.type != before["type"]:
        changed = {"type": args.type, "args": []}
    if args.permissions is not None:
        changed["permissions"] = args.permissions
    if changed:
        type = str(changed.get("type", before["type"]))
        kept = before["permissions"] if kinds.resolve(type, app.settings).driver else ""
        check_kind(app, top, type, args.permissions or kept)
        changed["permissions"] = args.permissions or kept
    return changed


def at_least_one(args: Args, *names: str) -> None:
    for name in names:
        value = getattr(args, name)
        if value is not None and value < 1:
            raise UsageError(f"`--{name.replace('_', '-')}` must be at least 1")


def check_kind(app: App, top: str, name: str, given: str | None, *, chosen_later: bool = False) -> None:
    """Refuse agents of this type unless their permissions are given and the repository at `top`, whose files they obey,
    is trusted."""
    kind = permissions.check(app, name, given, chosen_later=chosen_later)
    repository_trust.check(kind.driver, app.host_dir, app.environ, top, top)


def check_identity(app: App, git: Git, name: str, *, given: Mapping[str, str]) -> None:
    """Refuse coding agents that could not commit, because git has no name and e-mail address for them."""
    if not kinds.resolve(name, app.settings).driver or {"GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"} <= given.keys():
        return
    if not (git.ok("var", "GIT_AUTHOR_IDENT") and git.ok("var", "GIT_COMMITTER_IDENT")):
        raise MngrError(
            "git has no user name and e-mail address, so agents could not commit their work",
            hint="`git config --global user.name 'YOUR NAME' && git config --global user.email YOU@EXAMPLE.COM`",
        )
