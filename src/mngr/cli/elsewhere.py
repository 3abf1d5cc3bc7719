"""`create --from` with something that is not a directory: an agent, which is cloned, or the address of a repository."""

from __future__ import annotations

import os

from mngr.actions import clone as cloning
from mngr.actions import find
from mngr.actions.agent import Agent
from mngr.actions.clone import Wish
from mngr.cli.app import App
from mngr.cli.parser import Args, given
from mngr.errors import UsageError
from mngr.names import Address, suggest
from mngr.workspaces import sources
from mngr.workspaces.plan import MIRROR, NONE

# What `clone` has too; everything else of `create` is the source agent's.
_CARRIED = frozenset(
    {
        *("address", "name", "source", "message", "message_file", "edit_message", "env", "env_file", "pass_env"),
        *("label", "project", "connect", "connect_command", "dry_run", "kind", "type"),
        *("provider", "yes", "auto_start", "host_label", "enable_plugin", "disable_plugin", "no_start_on_boot"),
    }
)


def run(args: Args, app: App, address: Address | None) -> int | None:
    """The exit code when all is done; None when `create` is to go on, from a directory that is here now."""
    if sources.is_url(args.source):
        args.transfer = args.transfer or MIRROR
        args.project = args.project or sources.project(args.source)
        if not args.dry_run:
            app.fleet.host.prepare()
            args.source = sources.bring(app.fleet.host, args.source)
            return None
        raise UsageError(
            "`--dry-run` makes nothing, so it cannot tell what a repository elsewhere holds",
            hint="leave out `--dry-run`, or clone it yourself and use `--from DIR`",
        )
    agents = {key: agent for agent in find.listing(app.fleet).agents for key in (agent.name, agent.id)}
    if args.source not in agents:
        raise UsageError(
            f"`{args.source}` is not a directory, and no agent is called that",
            hint=suggest(args.source, tuple(agents), "agent") or "`mngr list` shows the agents",
        )
    source = agents[args.source]
    if _runs_something_else(args, source):
        _begin_at_files(args, app, source)
        return None
    _refuse_others(args, app)
    return _clone(args, app, source, address)


def _runs_something_else(args: Args, source: Agent) -> bool:
    kind = args.kind or (args.type if "type" in given(args) else None)
    return args.command is not None or kind not in (None, source.record.kind)


def _begin_at_files(args: Args, app: App, source: Agent) -> None:
    """Another program cannot continue the conversation: the agent's work dir is a source directory like any other."""
    record = source.record
    if record.transfer != NONE and os.path.isdir(os.path.join(record.work_dir, ".git")):
        args.transfer = args.transfer or MIRROR  # a repository that goes when its agent is destroyed
    args.source = record.work_dir
    args.project = args.project or record.project
    app.out.note(f"begins at the files of `{source.name}`, without its conversation: it is another program")


def _clone(args: Args, app: App, source: Agent, address: Address | None) -> int:
    from mngr.cli.commands import clone

    names = [*args.name, *([address.name] if address is not None and address.name else [])]
    if args.address == "-" or len(names) > 1 or (address is not None and address.path is not None):
        raise UsageError("one agent is cloned to one new agent", hint=f"`mngr clone {source.name} NEW`")
    name = names[0] if names else cloning.free_name(app.fleet, source)
    return clone.make(args, app, source, Wish(name, tuple(args.rest)))


def _refuse_others(args: Args, app: App) -> None:
    known = {option.dest: option for option in app.parser.options} if app.parser is not None else {}
    everywhere = app.parser.everywhere if app.parser is not None else set()
    for dest in sorted(given(args) - _CARRIED - everywhere):
        option = known.get(dest)
        shown = option.names[0] if option is not None and option.names else option.shown_name if option else dest
        raise UsageError(
            f"`{shown}` makes no sense with `--from {args.source}`: a clone has what its source has",
            hint="`mngr clone --help` shows what can differ, `--from DIR` begins anew",
        )
