"""`mngr create`: workspace, tmux session and launch, then connect."""

from __future__ import annotations

from mngr.actions import create as creating
from mngr.actions.create import Request
from mngr.agents.kinds import kind as kinds
from mngr.agents.launch import parse_variable
from mngr.agents.record import Record
from mngr.cli.app import App
from mngr.cli.inputs import IDLE_MODES, parse_label, parse_limit, read_text
from mngr.cli.parser import Args, BooleanPair, Parser, apply_template, given
from mngr.errors import MngrError, UsageError
from mngr.names import parse_address, suggest
from mngr.records import TYPE_CHECKING
from mngr.workspaces.plan import MODES

if TYPE_CHECKING:
    from typing import Any


EXAMPLES = (
    ("mngr create fix-login", "your coding agent, in a worktree on branch mngr/fix-login"),
    ("mngr create fix-login claude --message 'Fix the login test'", "with a first message"),
    ("mngr create server --no-connect --command 'npm start'", "any command, in the background"),
    ("mngr create bar --transfer git-mirror --branch main:", "in a repository of its own, from main"),
    ("mngr create night --no-connect --idle-timeout 30m --timeout 8h", "stopped when either is over"),
    ("mngr create fix-login --no-connect --record", "with its terminal recorded, for `mngr capture --cast`"),
    ("mngr create --type command -- sleep 100", "an exact argument list, with a name made up"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "address",
        nargs="?",
        metavar="NAME[:PATH]",
        help="the agent's name (made up when left out), and where its copy goes",
    )
    parser.add_argument("kind", nargs="?", metavar="TYPE", help="what to run, like `--type`")
    parser.add_rest("ARGS", "arguments for the agent's program")
    what = parser.add_argument_group("what to run")
    what.add_argument("--name", "-n", metavar="NAME", help="the agent's name")
    what.add_argument(
        "--type", metavar="TYPE", help="an agent type, or any program on PATH (default: an installed coding agent)"
    )
    what.add_argument("--command", metavar="CMD", help="a shell command line; short for `--type command -- CMD`")
    what.add_argument("--message", "-m", metavar="TEXT", help="the first message")
    what.add_argument("--message-file", metavar="FILE", help="the first message, from a file (`-` is stdin)")
    what.add_argument("--env", action="append", metavar="KEY=VALUE", help="a variable for the agent (can be repeated)")
    what.add_argument(
        "--env-file", action="append", metavar="FILE", help="variables from a file of KEY=VALUE lines (can be repeated)"
    )
    what.add_argument(
        "--pass-env",
        action="append",
        metavar="KEY",
        help="a variable of yours, kept for later starts too (can be repeated)",
    )
    what.add_argument(
        "--record", action=BooleanPair, default=False, help="record its terminal, for `mngr capture --cast`"
    )
    where = parser.add_argument_group("its copy of the code")
    where.add_argument(
        "--from",
        "--source",
        dest="source",
        default=".",
        metavar="DIR",
        help="the directory to copy (default: this one)",
    )
    where.add_argument("--transfer", choices=MODES, help="how to copy it (default: git-worktree, or rsync without git)")
    where.add_argument(
        "--branch", metavar="[BASE][:NEW]", help="branch to begin at and to make; `*` is the name (default: `:mngr/*`)"
    )
    where.add_argument(
        "--include-unclean",
        action=BooleanPair,
        negative=("--exclude-unclean",),
        default=None,
        help="carry uncommitted changes along as a commit, or leave them out",
    )
    where.add_argument(
        "--ensure-clean",
        action=BooleanPair,
        default=True,
        help="refuse a source with uncommitted changes; `--no-ensure-clean` includes them",
    )
    about = parser.add_argument_group("about it")
    about.add_argument("--label", action="append", metavar="KEY=VALUE", help="a label (can be repeated)")
    about.add_argument("--project", metavar="NAME", help="its project (default: the name of the directory)")
    about.add_argument(
        "--template",
        "-t",
        action="append",
        metavar="NAME",
        help="options from `[create_templates.NAME]` (can be repeated, later ones win)",
    )
    limited = parser.add_argument_group("when to stop it (its work is saved, and `mngr start` goes on)")
    limited.add_argument(
        "--idle-timeout", type=parse_limit, metavar="TIME", help="when it was idle for so long, such as `30m`; or `off`"
    )
    limited.add_argument(
        "--idle-mode",
        choices=IDLE_MODES,
        default=IDLE_MODES[0],
        help="idle is: no `output` (the default), nothing from the `user`, or the `agent` waits; see `mngr help limit`",
    )
    limited.add_argument("--timeout", type=parse_limit, metavar="TIME", help="when it ran for so long; or `off`")
    then = parser.add_argument_group("and then")
    then.add_argument("--connect", action=BooleanPair, default=True, help="attach to it when it runs")
    then.add_argument("--connect-command", metavar="CMD", help="run this instead of attaching")
    then.add_argument("--dry-run", action="store_true", help="say what would be made, and make nothing")


def run(args: Args, app: App) -> int:
    _apply_templates(args, app)
    request = _request(args, app)
    if args.dry_run:
        return _dry_run(app, request)
    message = _message(args, app)
    record = creating.create(app.fleet, request)
    if message is not None:
        from mngr.actions import find
        from mngr.actions import message as messages

        try:
            messages.deliver(app.fleet, find.agent(app.fleet, record.id), message)
        except MngrError as error:
            raise MngrError(
                f"`{record.name}` runs, but its first message was not delivered: {error.message}",
                hint=error.hint,
                exit_code=error.exit_code,
            ) from None
    _report(app, record)
    if not args.connect:
        return 0
    from mngr.cli import connecting

    return connecting.after_create(app, record, args.connect_command)


def _apply_templates(args: Args, app: App) -> None:
    known = app.settings.names("create_templates")
    merged: dict[str, Any] = {}
    for name in args.template:
        if name not in known:
            raise UsageError(
                f"no template is called `{name}`",
                hint=suggest(name, tuple(known), "template") or "`mngr help settings` shows how to write one",
            )
        merged.update(app.settings.table(("create_templates", name)))
    if merged and app.parser is not None:
        apply_template(app.parser, args, merged, "create_templates." + "+".join(args.template))


def _request(args: Args, app: App) -> Request:
    address = parse_address(args.address) if args.address is not None else None
    if address is not None and address.provider not in (None, "local"):
        raise UsageError(f"provider `{address.provider}` cannot make hosts")
    if address is not None and address.host not in (None, "local"):
        raise UsageError(f"no host is called `{address.host}`", hint="agents run on this machine: leave out `@HOST`")
    if args.name is not None and address is not None and address.name:
        raise UsageError(f"the name is given twice: `{address.name}` and `--name {args.name}`")
    kind, rest = _kind(args, app)
    return Request(
        name=args.name if args.name is not None else (address.name if address else None) or _made_up_name(app),
        kind=kind,
        rest=rest,
        source=args.source,
        target=address.path if address else None,
        transfer=args.transfer,
        branch=args.branch,
        unclean=_unclean(args),
        env=_env(args, app),
        labels=dict(parse_label(text) for text in args.label),
        project=args.project,
        record=args.record,
        limits=_limits(args),
        extra_paths={path: str(value.value) for path, value in app.settings.table("workspace.extra_paths").items()},
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


def _limits(args: Args) -> dict[str, Any]:
    if not (args.idle_timeout or args.timeout):
        if "idle_mode" in given(args):
            raise UsageError("`--idle-mode` makes no sense without `--idle-timeout`", hint="add `--idle-timeout 30m`")
        return {}
    from mngr.agents.limits import Limits

    return Limits(args.idle_timeout or None, args.idle_mode, args.timeout or None).stored()


def _unclean(args: Args) -> str | None:
    if args.include_unclean is not None:
        return "include" if args.include_unclean else "exclude"
    return None if args.ensure_clean else "include"


def _env(args: Args, app: App) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in args.env_file:
        found.update(_env_lines(path))
    for name in args.pass_env:
        if name not in app.environ:
            raise UsageError(f"`--pass-env {name}`: no such variable is set here")
        found.update([parse_variable(f"{name}={app.environ[name]}")])
    found.update(parse_variable(text) for text in args.env)
    return found


def _env_lines(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`--env-file {path}` cannot be read: {error}") from None
    found = {}
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        try:
            name, value = parse_variable(line.removeprefix("export "))
        except UsageError:
            raise UsageError(f"line {number} of `{path}` is not KEY=VALUE") from None
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        found[name] = value[1:-1] if quoted else value
    return found


def _message(args: Args, app: App) -> str | None:
    if args.message is not None and args.message_file is not None:
        raise UsageError("`--message` and `--message-file` cannot be used together")
    if args.message_file is None:
        text = args.message
    else:
        text = read_text(args.message_file, app)
    if text is not None:
        from mngr.actions.message import clean

        clean(text)
    return str(text) if text is not None else None


def _made_up_name(app: App) -> str:
    import coolname

    taken = set(app.fleet.store.names())
    for _ in range(100):
        name = str(coolname.generate_slug(2))
        if name not in taken:
            return name
    raise MngrError("no free name could be made up", hint="name the agent: `mngr create NAME`")


def _dry_run(app: App, request: Request) -> int:
    plan, command = creating.preview(app.fleet, request)
    value = {
        "name": request.name,
        "type": request.kind.name,
        "command": command,
        "transfer": plan.transfer,
        "source": plan.source,
        "branch": plan.branch,
        "base_branch": plan.base_branch,
        "base_commit": plan.start,
        "dry_run": True,
    }
    where = f"{plan.transfer} of {plan.source}" + (
        f", branch {plan.branch} from {(plan.start or '')[:10]}" if plan.branch else ""
    )
    app.out.emit_object(value, human=f"would create {request.name}: {where}\nrunning: {command}")
    return 0


def _report(app: App, record: Record) -> None:
    value = {
        "agent_id": record.id,
        "name": record.name,
        "host_id": record.host,
        "host_name": record.host,
        "work_dir": record.work_dir,
        "branch": record.branch,
        "session": record.session,
    }
    branch = f" on branch {record.branch}" if record.branch else ""
    app.out.emit_object(value, human=f"created {record.name}{branch}")
