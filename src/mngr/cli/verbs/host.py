"""`mngr host`: the machines that agents run on."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.create import hosts as create_hosts
from mngr.cli.output.durations import age
from mngr.cli.output.output import Problem, state_style
from mngr.cli.output.table import Column
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import MngrError, UsageError
from mngr.fleet import host_verbs as verbs
from mngr.fleet.known_hosts import KnownHost
from mngr.named_tuples import NamedTuple

DESCRIPTION = (
    "Show and manage the other machines that agents run on: hosts that `ssh` reaches, containers, and hosts of your "
    "own providers (`mngr help providers`). A host is written `HOST` or `HOST.PROVIDER`. It is known from its first "
    "agent until it is destroyed or forgotten. Only hosts that mngr created are destroyed."
)
EXAMPLES = (
    ("mngr host list", "every known host, its state and its agents"),
    ("mngr host prepare box", "check that agents can run there, before the first one"),
    ("mngr host create build.docker --dry-run", "a new container"),
    ("mngr host stop build.docker", "stop its agents, then the container; its files stay"),
    ("mngr host start build.docker", "start it again"),
    ("mngr host destroy build.docker", "remove it with its files, unless work is found only there"),
    ("mngr host forget box", "end the connection to it, and list its agents no longer"),
)


class HostDone(NamedTuple):
    host: str
    provider: str
    ok: bool
    dry_run: bool


class HostFailed(NamedTuple):
    host: str
    ok: bool
    error: str
    hint: str


class CreatedHost(NamedTuple):
    host: str
    provider: str
    image: str
    dry_run: bool


class PreparedHost(NamedTuple):
    host: str
    provider: str
    agents: int
    snapshot: str | None
    dry_run: bool


RESULTS = [{"hosts": [verbs.HostView], "errors": [Problem]}, CreatedHost, PreparedHost, [HostDone, HostFailed]]


def add_arguments(parser: Parser) -> None:
    parser.add_subcommand("list", "Show hosts, their states and agents", default=True)
    made = parser.add_subcommand("create", "Create a host")
    made.add_argument("host", nargs="?", metavar="[HOST].PROVIDER", help="name of the new host, and its provider")
    made.option("--provider NAME", "provider of the host")
    create_hosts.add_new_host_options(made)
    made.add_dry_run()
    _several(parser, "stop", "Stop agents and then their host, keeping its files")
    _several(parser, "start", "Start stopped hosts")
    gone = _several(parser, "destroy", "Remove hosts that mngr created, with their files")
    gone.option("--force, -f", "also if agents run or have work there; it is saved on this machine first")
    gone.option("--discard-work", "lose work that is found only there, also if nobody can look")
    ready = parser.add_subcommand("prepare", "Connect to a host and install what agents need there")
    ready.add_argument("host", metavar="HOST", help="`HOST` or `HOST.PROVIDER`")
    ready.option("--command CMD", "then run this shell command there, e.g. to install packages")
    ready.option("--snapshot NAME", "then keep the host's files, for `mngr create --snapshot`")
    ready.add_dry_run()
    _several(parser, "forget", "Forget hosts and end the connections to them")


def _several(parser: Parser, name: str, summary: str) -> Parser:
    child = parser.add_subcommand(name, summary)
    child.add_argument("hosts", nargs="+", metavar="HOST", help="`HOST` or `HOST.PROVIDER`; `-` reads them from stdin")
    child.add_dry_run()
    return child


def run(args: Args, app: App) -> int | None:
    app.fleet.local.host.is_ours()  # raises when the directory is another program's
    if args.subcommand in _DONE:
        return _each(args, app)
    return {"list": _list, "create": _create, "prepare": _prepare}[args.subcommand](args, app)


_DONE = {"stop": "stopped", "start": "started", "destroy": "destroyed", "forget": "forgot"}


def _each(args: Args, app: App) -> int:
    outcomes: list[tuple[dict[str, str], targets.Done | MngrError]] = []
    shown = set()
    for word in app.names(args.hosts):
        try:
            host = verbs.named(app.fleet.hosts, word)
            text = f"{_DONE[args.subcommand]} {host.name}{_act(args, app, host)}"
        except MngrError as error:
            outcomes.append(({"host": word}, error))
            continue
        text = f"would have {text}" if args.dry_run else text
        outcomes.append(({"host": host.name}, ({"provider": host.provider, "dry_run": args.dry_run}, text)))
        app.out.line(text)
        shown.add(host.name)
    return targets.report(app, outcomes, shown)


def _act(args: Args, app: App, host: KnownHost) -> str:
    """Do to a host what the subcommand says. Returns what else there is to report about it."""
    hosts = app.fleet.hosts
    if args.subcommand == "destroy":
        if args.dry_run:
            verbs.check_destroy(hosts, host, force=args.force, discard=args.discard_work)
        else:
            say_brought(app, verbs.destroy(hosts, host, force=args.force, discard=args.discard_work))
    elif args.subcommand == "stop" and not args.dry_run:
        stopped = verbs.stop(hosts, host)
        return f" and its agents: {', '.join(stopped)}" if stopped else ""
    elif args.subcommand == "start" and not args.dry_run:
        hosts.provider(host.provider).start(host.name)
    elif not args.dry_run:
        verbs.forget(hosts, host)
    return ""


def say_brought(app: App, ids: Sequence[str]) -> None:
    """What came to this machine before its host went."""
    for entry_id in ids:
        verb = "snapshot" if "/" in entry_id else "saved"
        app.out.note(f"its work is on this machine now: `mngr {verb} restore {entry_id}`")


def _list(args: Args, app: App) -> None:
    views, errors = verbs.listing(app.fleet.hosts)
    rows = [view._asdict() for view in views]
    now = time.time()
    columns = [
        Column("NAME", "name"),
        Column("PROVIDER", "provider"),
        Column("STATE", "state", style=state_style),
        Column("AGENTS", "agents", show=lambda row: "" if row["agents"] is None else str(row["agents"]), right=True),
        Column("SEEN", "seen_at", show=lambda row: age(now - row["seen_at"]) if row["seen_at"] else "never"),
        Column("REASON", "reason", flexible=True),
    ]
    app.out.warn_of(errors)
    envelope = {"hosts": rows, "errors": [error.as_json() for error in errors]}
    app.out.emit_rows(rows, columns, envelope=envelope, known=verbs.HostView._fields, empty="No other hosts")


def _create(args: Args, app: App) -> None:
    word = args.host or ""
    address = app.fleet.hosts.address(f"@{word.lstrip('@')}") if word.lstrip("@") else None
    name = address.host if address else None
    provider = (address.provider if address else None) or args.provider
    if not provider:
        raise UsageError("no provider was named", hint="`mngr host create NAME.docker`; `mngr help providers`")
    request = create_hosts.host_request(args, app, name or create_hosts.free_host_name())
    maker = app.fleet.hosts.provider(provider)
    maker.check(request)
    image = request.image
    if not args.dry_run:
        image = app.fleet.hosts.create(provider, request, app.out.note).details.get("image", "")
    verb = "would create" if args.dry_run else "created"
    app.out.emit_object(
        CreatedHost(request.name, provider, image, args.dry_run), human=f"{verb} {request.name}.{provider}"
    )


def _prepare(args: Args, app: App) -> None:
    hosts = app.fleet.hosts
    host = verbs.named(hosts, args.host, new=True)
    agents, kept = 0, None
    if not args.dry_run:
        agents = verbs.prepare(hosts, host, args.command)
        kept = hosts.provider(host.provider).snapshot(host.name, args.snapshot) if args.snapshot else None
    human = f"{'would prepare' if args.dry_run else 'ready:'} {host.name}.{host.provider}"
    app.out.emit_object(PreparedHost(host.name, host.provider, agents, kept, args.dry_run), human=human)
    if kept:
        app.out.note(f"`mngr create NAME@.{host.provider} --snapshot {kept}` starts from it")
