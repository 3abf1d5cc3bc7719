"""What a run is asked for: options become a request, and what cannot work is refused before anything is paid for."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from mngr.actions import agent_process
from mngr.cli import permissions
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.durations import parse_duration
from mngr.cli.parser.option_values import parse_sandbox, variables
from mngr.cli.parser.parser import Args
from mngr.errors import MngrError, UsageError
from mngr.mapreduce.limits import RunLimits
from mngr.programs import kind as kinds
from mngr.programs import repository_trust
from mngr.system import bubblewrap, process
from mngr.system import git as git_tool
from mngr.system.git import Git, Repo
from mngr.tmr import settings as tmr_settings
from mngr.tmr.judge.paths import folders
from mngr.tmr.recipe import Workers, check_prompt
from mngr.tmr.run_request import RunRequest


def asked(args: Args, app: App, repo: Repo) -> RunRequest:
    _check_git()
    limits = _limits(args)._replace(lost_seconds=app.settings.number("tmr.lost_seconds", 120))
    git = Git.of_user(repo.top)
    base = git.commit_of(args.base)
    if base is None:
        raise UsageError(f"no branch or commit named `{args.base}`")
    status = git_tool.status(repo.top)
    dirty = [path for path in status.dirty if not path.startswith(".mngr/")]
    if dirty and base == status.head and not args.exclude_unclean:
        raise MngrError(
            f"`{repo.top}` has {amount(len(dirty), 'uncommitted change')} that agents would not see: `{dirty[0]}`"
            + (", ..." if len(dirty) > 1 else ""),
            hint="commit them, or leave them out: `--exclude-unclean`",
        )
    _check_branch(git, args.branch or f"tmr/{args.name or 'run'}")
    chosen = args.type or _default_type(app, needed=not args.dry_run)
    if chosen:
        check_kind(app, repo.top, chosen, args.permissions, chosen_later=args.dry_run)
        check_identity(app, git, chosen, given=variables(args, app))
    if args.provider:
        _check_provider(app, args)
    elif args.snapshot:
        raise UsageError("`--snapshot` needs `--provider`")
    settings = tmr_settings.read(app.settings, elsewhere=bool(args.provider))
    if sandbox := parse_sandbox(args):
        check_sandbox(app, args.transfer, here=not args.provider)
        settings = settings._replace(environment=settings.environment._replace(sandbox=sandbox))
    settle_trust(app, limits)
    prompt = args.prompt or (os.path.join(repo.top, settings.prompt) if settings.prompt else "")
    if prompt:
        check_prompt(prompt)
    workers = Workers(
        type=chosen,
        args=tuple(args.rest),
        transfer=args.transfer,
        env=variables(args, app),
        record=args.record,
        prompt=os.path.abspath(prompt) if prompt else "",
        more=args.instructions or "",
        permissions=args.permissions or "",
        sandbox="on" if sandbox else "",
    )
    integrator = None
    # A scripted agent follows the script of its test, which knows nothing of conflicts.
    alone = chosen == "scripted" and args.integrator is None and not args.integrator_arg
    if args.integrator != "none" and not alone:
        type = args.integrator or chosen
        if type:
            check_kind(app, repo.top, type, args.permissions, chosen_later=args.dry_run)
        rest = tuple(args.integrator_arg or ()) or (workers.args if type == chosen else ())
        integrator = workers._replace(type=type, args=rest, prompt="")
    if args.failing and not args.baseline:
        raise UsageError(
            "`--failing` needs the baseline, which says which tests fail", hint="leave out `--no-baseline`"
        )
    words = [*(["-k", args.keyword] if args.keyword else []), *(["-m", args.mark] if args.mark else [])]
    return RunRequest(
        repo=repo.top,
        base=base,
        branch=args.branch or "",
        settings=settings,
        workers=workers,
        integrator=integrator,
        paths=tuple(_in_repository(app, repo, path) for path in args.tests),
        args=tuple(words),
        failing=args.failing,
        baseline=args.baseline,
        canary=args.canary,
        limits=limits,
        provider=args.provider or "",
        agents_per_host=args.agents_per_host,
        snapshot=args.snapshot or "",
    )


_GIT_NEEDED = (2, 38)


def _check_git() -> None:
    """Integration merges without a work tree, which an older git cannot do."""
    words = process.run(["git", "version"], timeout=60).text.split()
    found = tuple(int(part) for part in words[2].split(".")[:2] if part.isdigit()) if len(words) > 2 else ()
    if len(found) == 2 and found < _GIT_NEEDED:
        raise MngrError(f"`mngr tmr` needs git 2.38 or later, and this is {words[2]}", hint="install a newer git")


def _check_provider(app: App, args: Args) -> None:
    """Refuse a provider that cannot be used, before anything is spent."""
    from mngr.providers.provider import HostRequest

    if args.provider == "local":
        raise UsageError("`--provider local` is this machine", hint="leave out `--provider`")
    if args.transfer == "git-worktree":
        raise UsageError("agents on other machines cannot share your repository", hint="leave out `--transfer`")
    provider = app.fleet.hosts.provider(args.provider)
    if args.snapshot and provider.pool():
        raise UsageError(f"`--snapshot` is for new hosts; those of `{args.provider}` exist already")
    if not provider.pool():
        provider.require("create")
        provider.check(HostRequest("new", snapshot=args.snapshot or ""))


def check_sandbox(app: App, transfer: str, *, here: bool) -> None:
    """Raise when agents and test runs cannot have one. Reads what would be read later, as `settle_trust` does."""
    if transfer == "git-worktree":
        raise UsageError(
            "a worktree shares its repository with yours, so an agent in a sandbox cannot have one",
            hint="leave out `--transfer git-worktree`",
        )
    if here:
        bubblewrap.check()
    app.settings.table("sandbox")


def settle_trust(app: App, limits: RunLimits) -> None:
    """Read now what would be read later, in the middle of the run, when nobody can be asked to trust it."""
    agent_process.tmux_options(app.fleet.local)
    if limits.budget_usd is not None:
        app.settings.table("prices")


def _check_branch(git: Git, name: str) -> None:
    """Refuse a branch that cannot be created, before anything is spent."""
    if not git.ok("check-ref-format", f"refs/heads/{name}") or name.startswith("-"):
        raise UsageError(f"invalid branch name `{name}`")
    above = [parent for parent in folders(name) if git.has_branch(parent)]
    below = git.must("for-each-ref", "--count=1", "--format=%(refname:short)", f"refs/heads/{name}/")
    if above or below:
        raise UsageError(
            f"the branch `{name}` cannot be created: branch `{below or above[0]}` is in the way",
            hint="choose another name: `--branch NAME`",
        )


def _default_type(app: App, *, needed: bool) -> str:
    """A coding agent that is installed. What is only tried out needs none."""
    try:
        return kinds.default_name(app.settings)
    except UsageError as error:
        if needed:
            hint = "choose one: `--type TYPE`; `mngr doctor` shows what is installed"
            raise UsageError(error.message, hint=hint) from None
        return ""


def _limits(args: Args) -> RunLimits:
    _at_least_one(args, "max_agents", "max_launching", "max_attempts", "agents_per_host")
    timeout = parse_duration(args.timeout)
    return RunLimits(
        max_agents=args.max_agents,
        max_launching=args.max_launching,
        max_attempts=args.max_attempts,
        timeout_seconds=timeout,
        warn_seconds=min(300.0, timeout / 5),
        stall_seconds=parse_duration(args.stall),
        budget_usd=args.budget_usd,
        budget_tokens=args.budget_tokens,
        deadline=time.time() + parse_duration(args.deadline) if args.deadline else None,
        when_over=args.when_over,
        checkpoint_seconds=max(1.0, parse_duration(args.checkpoint)),
    )


def _in_repository(app: App, repo: Repo, path: str) -> str:
    """A path as typed here, as it is from the top of the repository, where the tests are run."""
    file, colons, rest = path.partition("::")
    full = os.path.realpath(os.path.join(app.fleet.local.cwd, file))
    top = os.path.realpath(repo.top)
    if full != top and not full.startswith(top + "/"):
        raise UsageError(f"`{path}` is not inside this repository")
    if not os.path.exists(full):
        raise UsageError(f"`{file}` does not exist")
    return os.path.relpath(full, top) + colons + rest


def changes(args: Args, app: App, top: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of the run that the options change, by the names that the run has for them."""
    _at_least_one(args, "max_agents", "max_jobs")
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


def _at_least_one(args: Args, *names: str) -> None:
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
