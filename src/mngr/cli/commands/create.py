"""`mngr create`: workspace, tmux session and launch, then connect."""

from __future__ import annotations

import os

from mngr.actions import create as creating
from mngr.actions.create import NameTaken, Request
from mngr.agents.kinds import kind as kinds
from mngr.agents.kinds.kind import PERMISSIONS
from mngr.agents.record import Record
from mngr.cli import create_hosts, created
from mngr.cli.app import App
from mngr.cli.inputs import HOST_IDLE_MODES, IDLE_MODES, parse_label, parse_limit, parse_windows, read_text, variables
from mngr.cli.parser import Args, BooleanPair, Parser, apply_template, given
from mngr.errors import MngrError, UsageError
from mngr.names import Address, parse_address, suggest
from mngr.process import hide_arguments
from mngr.records import TYPE_CHECKING
from mngr.workspaces.plan import MODES

if TYPE_CHECKING:
    from typing import Any

    from mngr.actions.reuse import Expected

EXAMPLES = (
    ("mngr create fix-login", "your coding agent, in a worktree on branch mngr/fix-login"),
    ("mngr create fix-login claude --message 'Fix the login test'", "with a first message"),
    ("mngr create fix-login claude --permissions edits", "may edit files without asking"),
    ("mngr create server --no-connect --command 'npm start'", "any command, in the background"),
    ("mngr create bar --transfer git-mirror --branch main:", "in a repository of its own, from main"),
    ("mngr create night --no-connect --idle-timeout 30m --timeout 8h", "stopped when either is over"),
    ("mngr create w --count 100 --no-connect --command 'sleep 9999'", "w-1 to w-100, at once"),
    ("mngr create web -w server='npm run dev' -w logs='tail -F log'", "with windows beside it"),
    ("mngr create fix-login --no-connect --record", "with its terminal recorded, for `mngr capture --cast`"),
    ("mngr create other-way --from fix-login", "a copy of an agent, like `mngr clone`"),
    ("mngr create --type command -- sleep 100", "an exact argument list, with a name made up"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "address",
        nargs="?",
        metavar="NAME[:PATH]",
        help="the agent's name (made up when left out), and where its copy goes; `-` reads names from stdin",
    )
    parser.add_argument("kind", nargs="?", metavar="TYPE", help="what to run, like `--type`")
    parser.add_rest("ARGS", "arguments for the agent's program")
    what = parser.add_argument_group("what to run")
    what.add_argument(
        "--name", "-n", action="append", metavar="NAME", help="the agent's name (can be repeated: one agent each)"
    )
    what.add_argument("--count", type=int, metavar="N", help="so many agents at once, NAME-1 to NAME-N")
    what.add_argument(
        "--type", metavar="TYPE", help="an agent type, or any program on PATH (default: an installed coding agent)"
    )
    what.add_argument("--command", metavar="CMD", help="a shell command line; short for `--type command -- CMD`")
    what.add_argument("--message", "-m", metavar="TEXT", help="the first message")
    what.add_argument("--message-file", metavar="FILE", help="the first message, from a file (`-` is stdin)")
    what.add_argument("--edit-message", action="store_true", help="write the first message in $VISUAL, $EDITOR or vi")
    what.add_argument(
        "--permissions",
        choices=PERMISSIONS,
        help="what a coding agent may do: ask first, edit files, edit and run tests and commit while the rest is "
        "denied (`tests`), or everything (default: as it is set up)",
    )
    what.add_argument(
        "--one-shot", action="store_true", help="do the task of the first message without a dialog, and end"
    )
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
        "--extra-window",
        "-w",
        action="append",
        metavar="[NAME=]CMD",
        help="a command in a window of its own beside the agent (can be repeated)",
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
        metavar="DIR|AGENT|URL",
        help="the directory to copy (default: this one), an agent to clone, or the address of a git repository",
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
    where.add_argument(
        "--upload-file",
        action="append",
        metavar="LOCAL:REMOTE",
        help="a file of yours to put into its work dir (can be repeated)",
    )
    where.add_argument(
        "--extra-provision-command",
        action="append",
        metavar="CMD",
        help="run this in its work dir before it starts; if it fails, nothing is made (can be repeated)",
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
        choices=(*IDLE_MODES, *HOST_IDLE_MODES),
        metavar="MODE",
        help="idle is: no `output` (the default), nothing from the `user`, or the `agent` waits; see `mngr help limit`",
    )
    limited.add_argument("--timeout", type=parse_limit, metavar="TIME", help="when it ran for so long; or `off`")
    create_hosts.add_arguments(parser)
    then = parser.add_argument_group("and then")
    then.add_argument(
        "--reuse", action="store_true", help="if it exists already, use it (started if need be) instead of failing"
    )
    then.add_argument("--connect", action=BooleanPair, default=True, help="attach to it when it runs")
    then.add_argument("--connect-command", metavar="CMD", help="run this instead of attaching")
    then.add_argument("--dry-run", action="store_true", help="say what would be made, and make nothing")


def run(args: Args, app: App) -> int:
    _apply_templates(args, app)
    create_hosts.settle(args, app)
    _settle_idle_mode(args, app)
    if args.env:
        hide_arguments(text.partition("=")[2] for text in args.env)
    address = _address(args)
    if not os.path.isdir(args.source):
        from mngr.cli import elsewhere

        code = elsewhere.run(args, app, address)
        if code is not None:
            return code
    names, many = _names(args, app, address)
    if many:
        from mngr.cli import many as several

        expected = _expected(args, app) if args.reuse else None
        return several.run(args, app, names, lambda name: _request(args, app, address, name), expected)
    (name,) = names
    if args.dry_run:
        return _dry_run(args, app, address, name)
    request = None if _exists(args, app, name) else _request(args, app, address, name)
    message = first_message(args, app)
    if request is not None:
        request = request._replace(prompt=message)
    record, reused = _made_or_reused(args, app, name, request)
    if message is not None:
        deliver(app, record, message, new=not reused)
    app.out.emit_object(created.row(record, reused), human=created.line(record, reused))
    if not args.connect:
        return 0
    from mngr.cli import connecting

    return connecting.after_start(app, record, args.connect_command)


def _made_or_reused(args: Args, app: App, name: str, request: Request | None) -> tuple[Record, bool]:
    if request is not None:
        try:
            return creating.create(app.fleet, request), False
        except NameTaken:
            if not args.reuse:
                raise
    from mngr.actions import reuse

    found = reuse.existing(app.fleet, (name,))
    if name not in found:
        raise MngrError(f"`{name}` was destroyed at this moment", hint="run it again")
    return reuse.use(app.fleet, found[name], _expected(args, app)), True


def _exists(args: Args, app: App, name: str) -> bool:
    if not args.reuse:
        return False
    from mngr.actions import reuse

    return bool(reuse.existing(app.fleet, (name,)))


def _expected(args: Args, app: App) -> Expected:
    """What an agent that exists has to be to be used: as far as it was said."""
    from mngr.actions.reuse import Expected

    kind = args.kind or (args.type if "type" in given(args) else None)
    if args.command is None and not kind and not args.rest:
        return Expected(source=args.source, transfer=args.transfer)
    chosen, rest = _kind(args, app)
    return Expected(chosen.name, chosen.command_line(rest), args.source, args.transfer)


def deliver(app: App, record: Record, message: str, *, new: bool = True) -> None:
    """See to the first message: a `new` agent may have begun with it."""
    from mngr.actions import find
    from mngr.actions import message as messages

    try:
        send = messages.first if new else messages.deliver
        send(app.fleet, find.agent(app.fleet, record.id), message)
    except MngrError as error:
        raise MngrError(
            f"`{record.name}` runs, but its first message was not delivered: {error.message}",
            hint=error.hint,
            exit_code=error.exit_code,
        ) from None


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


def _address(args: Args) -> Address | None:
    address = parse_address(args.address) if args.address not in (None, "-") else None
    if address is not None and address.host not in (None, "local"):
        raise UsageError(f"no host is called `{address.host}`", hint="agents run on this machine: leave out `@HOST`")
    return address


def _names(args: Args, app: App, address: Address | None) -> tuple[list[str], bool]:
    """The names, and whether this is about many agents, be it by chance only one."""
    names = [*args.name, *([address.name] if address is not None and address.name else [])]
    if args.name and len(names) > len(args.name) and len(args.name) == 1:
        raise UsageError(f"the name is given twice: `{names[1]}` and `--name {names[0]}`")
    many = args.address == "-" or len(names) > 1 or args.count is not None
    if many and address is not None and address.path is not None:
        raise UsageError("many agents cannot share one target path", hint="leave out `:PATH`")
    if not many:
        return names or [_made_up_name(app)], False
    from mngr.cli import many as several

    return several.names(args, app, names, lambda: _made_up_name(app)), True


def _request(args: Args, app: App, address: Address | None, name: str) -> Request:
    kind, rest = _kind(args, app)
    return Request(
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
    """A mode of hosts becomes one of ours; where none fits, there is no limit."""
    if args.idle_mode in HOST_IDLE_MODES:
        args.idle_mode, note = HOST_IDLE_MODES[args.idle_mode]
        args.idle_timeout = args.idle_timeout if args.idle_mode else None
        if note:
            app.out.note(note)


def _limits(args: Args) -> dict[str, Any]:
    if not (args.idle_timeout or args.timeout):
        if args.idle_mode and "idle_mode" in given(args):
            raise UsageError("`--idle-mode` makes no sense without `--idle-timeout`", hint="add `--idle-timeout 30m`")
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
        from mngr.cli.editing import edit_text

        text = edit_text(app, text or "", "The agent's first message. Lines that begin with # are left out.")
        if not text:
            raise MngrError("the message is empty, so nothing was made")
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


def _dry_run(args: Args, app: App, address: Address | None, name: str) -> int:
    if _exists(args, app, name):
        from mngr.cli import many as several

        return several.dry_run_reuse(app, name, _expected(args, app))
    request = _request(args, app, address, name)
    if not args.edit_message:
        request = request._replace(prompt=first_message(args, app))
    plan, command = creating.preview(app.fleet, request)
    app.out.emit_object(created.dry_run_row(request, plan, command), human=created.dry_run_text(request, plan, command))
    return 0
