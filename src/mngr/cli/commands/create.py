"""`mngr create`: workspace, tmux session and launch, then connect."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any, NamedTuple

from mngr.actions import create as creating
from mngr.actions.agent import Agent
from mngr.actions.create import CreateRequest, NameTaken
from mngr.actions.site import Site
from mngr.agents.kinds import kind as kinds
from mngr.agents.kinds.kind import PERMISSIONS
from mngr.cli import create_hosts, create_report
from mngr.cli.app import App
from mngr.cli.create_report import NewAgent, Reused, WouldCreate, WouldReuse
from mngr.cli.option_values import (
    HOST_IDLE_MODES,
    IDLE_MODES,
    parse_label,
    parse_limit,
    parse_sandbox,
    parse_windows,
    read_text,
    variables,
)
from mngr.cli.output import Problem
from mngr.cli.parser import Args, Parser, apply_template, given
from mngr.errors import MngrError, UsageError
from mngr.names import Address, suggest
from mngr.process import hide_arguments
from mngr.workspaces.plan import MODES

EXAMPLES = (
    ("mngr create fix-login", "your coding agent, in a worktree on branch mngr/fix-login"),
    ("mngr create fix-login claude --message 'Fix the login test'", "with a first message"),
    ("mngr create fix-login claude --permissions edits", "may edit files without asking"),
    ("mngr create fix-login claude --permissions bypass --sandbox", "may do everything, in a sandbox"),
    ("mngr create server --no-connect --command 'npm start'", "any command, in the background"),
    ("mngr create bar --transfer git-mirror --branch main:", "in a repository of its own, from main"),
    ("mngr create night --no-connect --idle-timeout 30m --timeout 8h", "stopped after 30 idle minutes or 8 hours"),
    ("mngr create w --count 100 --no-connect --command 'sleep 9999'", "w-1 to w-100, at once"),
    ("mngr create web -w server='npm run dev' -w logs='tail -F log'", "with windows beside it"),
    ("mngr create fix-login --no-connect --record", "with its terminal recorded, for `mngr capture --cast`"),
    ("mngr create fix-login@.docker --image debian:12 --dry-run", "in a new container; `NAME@HOST` uses ssh"),
    ("mngr create other-way --from fix-login", "a copy of an agent, like `mngr clone`"),
    ("mngr create --type command -- sleep 100", "an exact argument list, with a generated name"),
)


def results() -> list[Any]:
    from mngr.cli.commands import clone

    class CreateRow(NamedTuple):
        name: str
        ok: bool

    failed = (CreateRow, Problem)
    many = [[(NewAgent, Reused, CreateRow), failed], [(WouldCreate, CreateRow), (WouldReuse, CreateRow), failed]]
    return [(NewAgent, Reused), WouldCreate, WouldReuse, *clone.results(), *many]


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "address",
        nargs="?",
        metavar="NAME[@HOST][:PATH]",
        help="the agent's name (default: generated), its host (default: this machine), and where its copy goes; "
        "`-` reads names from stdin",
    )
    parser.add_argument("kind", nargs="?", metavar="TYPE", help="what to run, like `--type`")
    parser.add_rest("ARGS", "arguments for the agent's program")
    what = parser.add_argument_group("what to run")
    what.option("--name, -n NAME ...", "the agent's name (can be repeated: one agent each)")
    what.option("--count N", "create N agents at once, NAME-1 to NAME-N", type=int)
    what.option("--type TYPE", "an agent type, or any program on PATH (default: an installed coding agent)")
    what.option("--command CMD", "a shell command line; short for `--type command -- CMD`")
    what.option("--message, -m TEXT", "the first message")
    what.option("--message-file FILE", "the first message, from a file (`-` is stdin)")
    what.option("--edit-message", "write the first message in $VISUAL, $EDITOR or vi")
    what.option(
        "--permissions",
        "what a coding agent may do: ask first, edit files, edit and run tests and commit while the rest is "
        "denied (`tests`), or everything (default: as it is set up)",
        choices=PERMISSIONS,
    )
    what.option(
        "--[no-]sandbox",
        "run it with bubblewrap: your home is hidden, only its work dir can be written (implies `--transfer "
        "git-mirror`); see `mngr help sandbox`",
        default=False,
    )
    what.option("--network", "with `--sandbox`: whether it has a network (default: on)", choices=("on", "off"))
    what.option("--one-shot", "do the task in the first message without a dialog, then exit")
    what.option("--env KEY=VALUE ...", "a variable for the agent")
    what.option("--env-file FILE ...", "variables from a file of KEY=VALUE lines")
    what.option("--pass-env KEY ...", "pass this variable of your environment, also at later starts")
    what.option("--extra-window, -w [NAME=]CMD ...", "run a command in a tmux window beside the agent")
    what.option("--[no-]record", "record the agent's terminal, for `mngr capture --cast`", default=False)
    where = parser.add_argument_group("workspace")
    where.option(
        "--from, --source DIR|AGENT|URL",
        "the directory to copy (default: the current one), an agent to clone, or the URL of a git repository",
        dest="source",
        default=".",
    )
    where.option("--transfer", "how to copy the code (default: git-worktree, or rsync without git)", choices=MODES)
    where.option(
        "--branch [BASE][:NEW]",
        "branch to start from and branch to create; `*` is the agent's name (default: `:mngr/*`)",
    )
    where.option(
        "--include-unclean / --exclude-unclean",
        "include uncommitted changes as a commit, or leave them out",
        default=None,
    )
    where.option(
        "--[no-]ensure-clean",
        "refuse a source with uncommitted changes; `--no-ensure-clean` includes them",
        default=True,
    )
    where.option("--upload-file LOCAL:REMOTE ...", "copy a local file into the agent's work dir")
    where.option(
        "--extra-provision-command CMD ...",
        "run this in the work dir before the agent starts; if it fails, no agent is created",
    )
    about = parser.add_argument_group("metadata")
    about.option("--label KEY=VALUE ...", "label of the agent")
    about.option("--project NAME", "project of the agent (default: the name of the directory)")
    about.option("--template, -t NAME ...", "options from `[create_templates.NAME]` (can be repeated, later ones win)")
    limited = parser.add_argument_group("limits: stop the agent and save its work; `mngr start` resumes it")
    limited.option("--idle-timeout TIME", "maximum idle time, e.g. `30m`, or `off`", type=parse_limit)
    limited.option(
        "--idle-mode MODE",
        "idle is: no `output` (the default), nothing from the `user`, or the `agent` waits; see `mngr help limit`",
        choices=(*IDLE_MODES, *HOST_IDLE_MODES),
    )
    limited.option("--timeout TIME", "maximum run time, e.g. `4h`, or `off`", type=parse_limit)
    create_hosts.add_arguments(parser)
    then = parser.add_argument_group("after creation")
    then.option("--reuse", "use the agent if it already exists, and start it if it is stopped, instead of failing")
    then.option("--[no-]connect", "attach to the agent", default=True)
    then.option("--connect-command CMD", "run this command instead of attaching")
    then.option("--dry-run", "show what would be created, without creating it")


def run(args: Args, app: App) -> int:
    _apply_templates(args, app)
    create_hosts.settle(args, app)
    _settle_idle_mode(args, app)
    if args.env:
        hide_arguments(text.partition("=")[2] for text in args.env)
    address = create_hosts.address(args.address, app) if args.address not in (None, "-") else None
    if not os.path.isdir(args.source):
        from mngr.cli import create_source

        code = create_source.run(args, app, address)
        if code is not None:
            return code
    names, many = _names(args, app, address)
    if args.dry_run and create_hosts.is_new(args, address):
        return create_hosts.dry_run(args, app, address, names)
    site = create_hosts.place(args, app, address, names)
    with nullcontext() if site.is_near or args.dry_run else app.fleet.hosts.occupied(site):
        if many:
            from mngr.cli import bulk_create as several

            expected = _expected(args, app) if args.reuse else None
            return several.run(args, app, site, names, lambda name: _request(args, app, address, name), expected)
        (name,) = names
        if args.dry_run:
            return _dry_run(args, app, site, address, name)
        request = None if _exists(args, site, name) else _request(args, app, address, name)
        message = first_message(args, app)
        if request is not None:
            request = request._replace(prompt=message)
        agent, reused = _made_or_reused(args, app, site, name, request)
    if message is not None:
        deliver(agent, message, new=not reused)
    app.out.emit_object(create_report.row(agent, reused), human=create_report.line(agent, reused))
    if not args.connect:
        return 0
    from mngr.cli import connection

    return connection.after_start(app, agent, args.connect_command)


def _made_or_reused(args: Args, app: App, site: Site, name: str, request: CreateRequest | None) -> tuple[Agent, bool]:
    if request is not None:
        try:
            return Agent(site, creating.create_on(site, request)), False
        except NameTaken:
            if not args.reuse:
                raise
    from mngr.actions import reuse

    found = site.run(reuse.existing, (name,))
    if name not in found:
        raise MngrError(f"`{name}` was just destroyed", hint="run it again")
    return Agent(site, site.run(reuse.use, found[name].id, _expected(args, app))), True


def _exists(args: Args, site: Site, name: str) -> bool:
    if not args.reuse:
        return False
    from mngr.actions import reuse

    return bool(site.run(reuse.existing, (name,)))


def _expected(args: Args, app: App) -> dict[str, str]:
    """What an existing agent must match to be reused: only what the command line says."""
    expected = {"source": args.source, "transfer": args.transfer, "sandbox": parse_sandbox(args)}
    if args.command is not None or args.kind or "type" in given(args) or args.rest:
        chosen, rest = _kind(args, app)
        expected = {"type": chosen.name, "command": chosen.command_line(rest), **expected}
    return {what: wanted for what, wanted in expected.items() if wanted}


def deliver(agent: Agent, message: str, *, new: bool = True) -> None:
    """Deliver the first message, unless a `new` agent was started with it."""
    from mngr.actions import message as messages

    try:
        agent.site.run(messages.first if new else messages.deliver, agent.id, message)
    except MngrError as error:
        raise MngrError(
            f"`{agent.name}` runs, but its first message was not delivered: {error.message}",
            hint=error.hint,
            exit_code=error.exit_code,
        ) from None


def _apply_templates(args: Args, app: App) -> None:
    known = app.settings.names("create_templates")
    merged: dict[str, Any] = {}
    for name in args.template:
        if name not in known:
            raise UsageError(
                f"no template named `{name}`",
                hint=suggest(name, tuple(known), "template") or "`mngr help settings` shows how to write one",
            )
        merged.update(app.settings.table(("create_templates", name)))
    if merged and app.parser is not None:
        apply_template(app.parser, args, merged, "create_templates." + "+".join(args.template))


def _names(args: Args, app: App, address: Address | None) -> tuple[list[str], bool]:
    """The names, and whether the request is for several agents (even if it yields only one)."""
    names = [*args.name, *([address.name] if address is not None and address.name else [])]
    if args.name and len(names) > len(args.name) and len(args.name) == 1:
        raise UsageError(f"the name is given twice: `{names[1]}` and `--name {names[0]}`")
    many = args.address == "-" or len(names) > 1 or args.count is not None
    if many and address is not None and address.path is not None:
        raise UsageError("several agents cannot share one target path", hint="leave out `:PATH`")
    if not many:
        return names or [_made_up_name(app)], False
    from mngr.cli import bulk_create as several

    return several.names(args, app, names, lambda: _made_up_name(app)), True


def _request(args: Args, app: App, address: Address | None, name: str) -> CreateRequest:
    kind, rest = _kind(args, app)
    return CreateRequest(
        name=name,
        kind=kind,
        rest=rest,
        source=args.source,
        target=address.path if address else None,
        transfer=args.transfer,
        branch=args.branch,
        unclean=_unclean(args),
        env=variables(args, app),
        labels=dict(parse_label(text) for text in args.label),
        project=args.project,
        record=args.record,
        limits=_limits(args),
        windows=parse_windows(args.extra_window) if args.extra_window else {},
        uploads=_uploads(args),
        provision=tuple(args.extra_provision_command),
        permissions=args.permissions or "",
        one_shot=args.one_shot,
        sandbox=parse_sandbox(args),
        extra_paths=creating.extra_paths(app.settings),
    )


def _kind(args: Args, app: App) -> tuple[kinds.Kind, tuple[str, ...]]:
    """What to run. A type on the command line beats one from settings, and so does a command."""
    rest = tuple(args.rest)
    named = args.kind or (args.type if args.type and (args.command is None or "type" in given(args)) else None)
    if args.kind and "type" in given(args) and args.type != args.kind:
        raise UsageError(f"the type is given twice: `{args.kind}` and `--type {args.type}`")
    if args.command is not None:
        if named not in (None, "command"):
            raise UsageError(f"`--command` is for agents of type `command`, not `{named}`")
        if rest:
            raise UsageError("`--command` and `-- ARGS` both say what to run", hint="use one of them")
        return kinds.resolve("command", app.settings), (args.command,)
    return kinds.resolve(named or kinds.default_name(app.settings), app.settings, app.out.warn), rest


def _settle_idle_mode(args: Args, app: App) -> None:
    """Replace an idle mode of hosts by the nearest one of agents; without one, there is no idle limit."""
    if args.idle_mode in HOST_IDLE_MODES:
        args.idle_mode, note = HOST_IDLE_MODES[args.idle_mode]
        args.idle_timeout = args.idle_timeout if args.idle_mode else None
        if note:
            app.out.note(note)


def _limits(args: Args) -> dict[str, Any]:
    if not (args.idle_timeout or args.timeout):
        if args.idle_mode and "idle_mode" in given(args):
            raise UsageError("`--idle-mode` requires `--idle-timeout`", hint="add `--idle-timeout 30m`")
        return {}
    from mngr.agents.limits import Limits

    return Limits(args.idle_timeout or None, args.idle_mode or IDLE_MODES[0], args.timeout or None).stored()


def _uploads(args: Args) -> tuple[tuple[str, str], ...]:
    if not args.upload_file:
        return ()
    from mngr.actions.provision import parse_upload

    return tuple(map(parse_upload, args.upload_file))


def _unclean(args: Args) -> str | None:
    if args.include_unclean is not None:
        return "include" if args.include_unclean else "exclude"
    return None if args.ensure_clean else "include"


def first_message(args: Args, app: App) -> str | None:
    if args.message is not None and args.message_file is not None:
        raise UsageError("`--message` and `--message-file` cannot be used together")
    text = args.message if args.message_file is None else read_text(args.message_file, app)
    if args.edit_message:
        from mngr.cli.editor import edit_text

        text = edit_text(app, text or "", "The agent's first message. Lines that begin with # are left out.")
        if not text:
            raise MngrError("the message is empty, so no agent was created")
    if text is not None:
        from mngr.actions.message import clean

        clean(text)
    return str(text) if text is not None else None


def _made_up_name(app: App) -> str:
    import coolname

    taken = set(app.fleet.local.store.names())
    for _ in range(100):
        name = str(coolname.generate_slug(2))
        if name not in taken:
            return name
    raise MngrError("could not generate a free name", hint="name the agent: `mngr create NAME`")


def _dry_run(args: Args, app: App, site: Site, address: Address | None, name: str) -> int:
    if _exists(args, site, name):
        from mngr.cli import bulk_create as several

        return several.dry_run_reuse(app, site, name, _expected(args, app))
    request = _request(args, app, address, name)
    if not args.edit_message:
        request = request._replace(prompt=first_message(args, app))
    request = creating.preview(site, request)
    app.out.emit_object(create_report.dry_run_row(request), human=create_report.dry_run_text(request))
    return 0
