"""`create --from` with something that is not a directory: an agent, which is cloned, or the address of a repository."""

import os

from mngr.actions.clone import CloneRequest
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser.parser import Args, given
from mngr.errors import UsageError
from mngr.fleet.agent import Agent
from mngr.names import Address, suggest
from mngr.workspace import sources
from mngr.workspace.plan import MIRROR, NONE

# What `clone` has too; everything else of `create` is the source agent's.
_CARRIED = frozenset(
    {
        *("address", "name", "source", "message", "message_file", "edit_message", "env", "env_file", "pass_env"),
        *("label", "project", "connect", "connect_command", "dry_run", "kind", "type"),
        *("provider", "yes", "auto_start", "host_label", "enable_plugin", "disable_plugin", "no_start_on_boot"),
    }
)


def run(args: Args, app: App, address: Address | None) -> int | None:
    """The exit code when all is done; None when `create` continues with `args.source`, now a directory."""
    if sources.is_url(args.source):
        args.transfer = args.transfer or MIRROR
        args.project = args.project or sources.project(args.source)
        if args.dry_run:
            raise UsageError(
                "`--dry-run` does not clone, so it cannot inspect a remote repository",
                hint="leave out `--dry-run`, or clone the repository and use `--from DIR`",
            )
        app.fleet.local.host.prepare()
        args.source = sources.bring(app.fleet.local.host, args.source)
        return None
    agents = {key: agent for agent in targets.listed(app) for key in (agent.name, agent.id)}
    if args.source not in agents:
        raise UsageError(
            f"`{args.source}` is neither a directory nor an agent",
            hint=suggest(args.source, tuple(agents), "agent") or "`mngr list` shows the agents",
        )
    source = agents[args.source]
    kind = args.kind or (args.type if "type" in given(args) else None)
    if args.command is not None or kind not in (None, source.record.spec.kind):
        _begin_at_files(args, app, source)
        return None
    _refuse_others(args, app)
    from mngr.cli.verbs import clone

    names = [*args.name, *([address.name] if address is not None and address.name else [])]
    if args.address == "-" or len(names) > 1 or (address is not None and address.path is not None):
        raise UsageError("one agent is cloned to one new agent", hint=f"`mngr clone {source.name} NEW`")
    return clone.make(args, app, source, CloneRequest(names[0] if names else "", tuple(args.rest)), address)


def _begin_at_files(args: Args, app: App, source: Agent) -> None:
    """Another program cannot continue the conversation: the agent's work dir is a source directory like any other."""
    record = source.record
    if record.workspace.transfer != NONE and os.path.isdir(os.path.join(record.workspace.work_dir, ".git")):
        args.transfer = args.transfer or MIRROR  # a repository that goes when its agent is destroyed
    args.source, args.project = record.workspace.work_dir, args.project or record.spec.project
    app.out.note(f"starts from the files of `{source.name}`, without its conversation: the program is a different one")


def _refuse_others(args: Args, app: App) -> None:
    assert app.parser is not None
    known = {option.dest: option for option in app.parser.options}
    for dest in sorted(given(args) - _CARRIED - app.parser.everywhere):
        shown = known[dest].names[0] if known[dest].names else known[dest].shown_name
        raise UsageError(
            f"`{shown}` cannot be used with `--from {args.source}`: a clone keeps it from its source",
            hint="`mngr clone --help` shows what can differ; `--from DIR` creates an unrelated agent",
        )
