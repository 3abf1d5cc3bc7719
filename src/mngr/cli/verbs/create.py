"""`mngr create`: workspace, tmux session and launch, then connect."""

from __future__ import annotations

import os
from contextlib import nullcontext

from mngr.actions import create as creating
from mngr.actions.create import CreateRequest
from mngr.cli.app import App
from mngr.cli.create import agents as create_agents
from mngr.cli.create import hosts as create_hosts
from mngr.cli.create.agents import NewAgent, Reused, WouldCreate, WouldReuse, first_message
from mngr.cli.output.output import Problem
from mngr.cli.parser.option_values import (
    HOST_IDLE_MODES,
    IDLE_MODES,
    parse_label,
    parse_limit,
    parse_sandbox,
    parse_windows,
    variables,
)
from mngr.cli.parser.parser import Args, Parser, given
from mngr.errors import FAILED, MngrError, UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import Address, check_name, suggest
from mngr.programs import kind as kinds
from mngr.programs.kind import ASK, KNOWN_AGENTS, PERMISSIONS
from mngr.system.process import hide_arguments
from mngr.workspace.plan import MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 1000  # agents that one command makes
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
    from mngr.cli.verbs import clone

    class CreateRow(NamedTuple):
        name: str
        ok: bool

    failed = (CreateRow, Problem)
    many = [[(NewAgent, Reused, CreateRow), failed], [(WouldCreate, CreateRow), (WouldReuse, CreateRow), failed]]
    return [(NewAgent, Reused), WouldCreate, WouldReuse, *clone.RESULTS, *many]


def add_arguments(parser: Parser) -> None:
    place = "the agent's name (`-` reads names from stdin), its host, and where its copy of the code goes"
    parser.add_argument("address", nargs="?", metavar="NAME[@HOST][:PATH]", help=place)
    parser.add_argument("kind", nargs="?", metavar="TYPE", help="what to run, like `--type`")
    parser.add_rest("ARGS", "arguments for the agent's program")
    what = parser.add_argument_group("what to run")
    what.option("--name, -n NAME ...", "the agent's name (can be repeated: one agent each)")
    what.option("--count N", "create N agents at once, NAME-1 to NAME-N", type=int)
    what.option(
        "--type TYPE",
        "an agent type, or any program on PATH (default: an installed coding agent)",
        safe=KNOWN_AGENTS,
    )
    what.option("--command CMD", "a shell command line; short for `--type command -- CMD`")
    what.option("--message, -m TEXT", "the first message")
    what.option("--message-file FILE", "the first message, from a file (`-` is stdin)")
    what.option("--edit-message", "write the first message in $VISUAL, $EDITOR or vi")
    what.option(
        "--permissions",
        "what a coding agent may do without asking; see `mngr help kinds`",
        choices=PERMISSIONS,
        safe=(ASK,),
    )
    what.option(
        "--[no-]sandbox",
        "hide your home and let it write only its work dir; `mngr help sandbox`",
        default=False,
        safe=(True,),
    )
    what.option("--network", "with `--sandbox`: whether it has a network (default: on)", choices=("on", "off"))
    what.option("--one-shot", "do the task in the first message without a dialog, then exit")
    what.option("--env KEY=VALUE ...", "a variable for the agent")
    what.option("--env-file FILE ...", "variables from a file of KEY=VALUE lines")
    what.option("--pass-env KEY ...", "pass this variable of your environment, also at later starts")
    what.option("--extra-window, -w [NAME=]CMD ...", "run a command in a tmux window beside the agent")
    what.option("--[no-]record", "record the agent's terminal, for `mngr capture --cast`", default=False, safe=(True,))
    where = parser.add_argument_group("workspace")
    source = "the directory to copy (default: the current one), an agent to clone, or the URL of a git repository"
    where.option("--from, --source DIR|AGENT|URL", source, dest="source", default=".")
    where.option("--transfer", "how to copy the code (default: git-worktree, or rsync without git)", choices=MODES)
    where.option("--branch [BASE][:NEW]", "branch to start from and to create; `*` is the name (default: `:mngr/*`)")
    unclean = "include uncommitted changes as a commit (without repositories inside), or leave them out"
    where.option("--include-unclean / --exclude-unclean", unclean)
    where.option("--[no-]ensure-clean", "refuse a source with uncommitted changes, or include them", default=True)
    where.option("--upload-file LOCAL:REMOTE ...", "copy a local file into the agent's work dir")
    where.option(
        "--extra-provision-command CMD ...", "run this in the work dir first; if it fails, no agent is created"
    )
    about = parser.add_argument_group("metadata")
    about.option("--label KEY=VALUE ...", "label of the agent", safe=True)
    about.option("--project NAME", "project of the agent (default: the name of the directory)", safe=True)
    about.option("--template, -t NAME ...", "options from `[create_templates.NAME]` (can be repeated, later ones win)")
    limited = parser.add_argument_group("limits: stop the agent and save its work; `mngr start` resumes it")
    limited.option("--idle-timeout TIME", "maximum idle time, e.g. `30m`, or `off`", type=parse_limit)
    modes = (*IDLE_MODES, *HOST_IDLE_MODES)
    limited.option("--idle-mode MODE", "what counts as idle (default: output); see `mngr help limit`", choices=modes)
    limited.option("--timeout TIME", "maximum run time, e.g. `4h`, or `off`", type=parse_limit)
    create_hosts.add_arguments(parser)
    then = parser.add_argument_group("after creation")
    then.option("--reuse", "use the agent if it already exists, and start it if it is stopped, instead of failing")
    then.option("--[no-]connect", "attach to the agent", default=True, safe=True)
    then.option("--connect-command CMD", "run this command instead of attaching")
    then.option("--dry-run", "show what would be created, without creating it")


def run(args: Args, app: App) -> int:
    _apply_templates(args, app)
    create_hosts.apply_compatibility(args, app)
    _settle_idle_mode(args, app)
    if args.env:
        hide_arguments(text.partition("=")[2] for text in args.env)
    address = create_hosts.address(args.address, app) if args.address not in (None, "-") else None
    if not os.path.isdir(args.source):
        from mngr.cli.create import source as create_source

        code = create_source.run(args, app, address)
        if code is not None:
            return code
    names, many = _names(args, app, address)
    site = create_hosts.place(args, app, address, names)
    if site is None:
        return 0
    with nullcontext() if site.is_local or args.dry_run else app.fleet.hosts.occupied(site):
        expected = _expected(args, app) if args.reuse else None
        used = create_agents.existing(site, names) if args.reuse or args.dry_run else {}
        request = _request(args, app, address) if len(used) < len(names) else None
        message = first_message(args, app) if not (args.dry_run and args.edit_message) else None
        wanted = {
            name: used[name] if request is None or name in used else request._replace(name=name, prompt=message)
            for name in names
        }
        if args.dry_run:
            return create_agents.dry_run(app, site, wanted, expected, many=many)
        made, reused = create_agents.make(app, site, wanted, expected)
        first = made[names[0]]
    code = create_agents.finish(app, made, reused, message, many=many)
    if many or isinstance(first, MngrError):
        if args.connect and "connect" in given(args) and code != FAILED:
            app.out.note(f"not connected, since there are {len(names)}: `mngr connect {names[0]}` attaches to one")
        return code
    if not args.connect:
        return 0
    from mngr.cli import connection

    return connection.after_start(app, first, args.connect_command)


def _expected(args: Args, app: App) -> dict[str, str]:
    """What an existing agent must match to be reused: only what the command line says."""
    expected = {"source": args.source, "transfer": args.transfer, "sandbox": parse_sandbox(args)}
    if args.command is not None or args.kind or "type" in given(args) or args.rest:
        chosen, rest = _kind(args, app)
        expected = {"type": chosen.name, "command": chosen.command_line(rest), **expected}
    return {what: wanted for what, wanted in expected.items() if wanted}


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
        from mngr.cli.parser.defaults import overwrite

        overwrite(app.parser, args, merged, "create_templates." + "+".join(args.template))


def _names(args: Args, app: App, address: Address | None) -> tuple[list[str], bool]:
    """The names, each once, and whether the request is for several agents (even if it yields only one)."""
    names = [*args.name, *([address.name] if address is not None and address.name else [])]
    if len(args.name) == 1 and len(names) > 1:
        raise UsageError(f"the name is given twice: `{names[1]}` and `--name {names[0]}`")
    many = args.address == "-" or len(names) > 1 or args.count is not None
    if many and address is not None and address.path is not None:
        raise UsageError("several agents cannot share one target path", hint="leave out `:PATH`")
    if args.address == "-":
        if args.message_file == "-":
            raise UsageError("standard input cannot hold both the names and the message")
        names += app.stdin.read().split()
        if not names and args.count is None:
            raise UsageError("standard input holds no names")
    if args.count is not None:
        if not 1 <= args.count <= _MOST:
            raise UsageError(f"`--count` is between 1 and {_MOST}, not {args.count}")
        if len(names) > 1:
            raise UsageError("`--count` numbers one name, and there are several", hint="leave out `--count`")
        names = [f"{name}-{number}" for name in names for number in range(1, args.count + 1)]
    names = names or _made_up_names(app, args.count or 1)
    return list(dict.fromkeys(check_name(name) for name in names)), many


def _made_up_names(app: App, count: int) -> list[str]:
    import coolname

    taken = set(app.fleet.local.store.names())
    found: dict[str, None] = {}
    for _ in range(100 * count):
        name = str(coolname.generate_slug(2))
        if name not in taken:
            found[name] = None
        if len(found) == count:
            return list(found)
    raise MngrError("could not generate a free name", hint="name the agent: `mngr create NAME`")


def _request(args: Args, app: App, address: Address | None) -> CreateRequest:
    """What to create, without a name."""
    kind, rest = _kind(args, app)
    unclean = None if args.ensure_clean else "include"
    if args.include_unclean is not None:
        unclean = "include" if args.include_unclean else "exclude"
    uploads: tuple[tuple[str, str], ...] = ()
    if args.upload_file:
        from mngr.actions.provision import parse_upload

        uploads = tuple(map(parse_upload, args.upload_file))
    return CreateRequest(
        name="",
        kind=kind,
        rest=rest,
        source=args.source,
        target=address.path if address else None,
        transfer=args.transfer,
        branch=args.branch,
        unclean=unclean,
        env=variables(args, app),
        labels=dict(parse_label(text) for text in args.label),
        project=args.project,
        record=args.record,
        limits=_limits(args),
        windows=parse_windows(args.extra_window) if args.extra_window else {},
        uploads=uploads,
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
    from mngr.agent.limits import Limits

    return Limits(args.idle_timeout or None, args.idle_mode or IDLE_MODES[0], args.timeout or None).stored()
