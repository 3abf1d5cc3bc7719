"""`mngr migrate`: move an agent to another host, conversation included."""

from mngr.cli.app import App
from mngr.cli.parser.option_values import TRUST_HOST
from mngr.cli.parser.parser import Args, Parser
from mngr.cli.trust_prompt import accepted
from mngr.cli.verbs import destroy
from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple
from mngr.providers.provider import HostRequest
from mngr.system import interrupts
from mngr.transfer import moves

DESCRIPTION = (
    "Move an agent to another host: its commits, its uncommitted files, its conversation, events, command, labels, "
    "limits and variables. It is stopped, made again on the other host with its id, compared with the original, "
    "started there if it ran, and only then destroyed where it was. On failure it stays where it is and runs again. "
    "An agent with ignored files above 10 MB (`saved.ignored_max_mb`) is refused, since they would not go along."
)
EXAMPLES = (
    ("mngr migrate fix-login @box", "from this machine, or any other, to `box`; `@local` is this machine"),
    ("mngr migrate fix-login login@.docker", "to a new container, under another name"),
)


class Migrated(NamedTuple):
    """`source_host`: the host that it was on."""

    agent_id: str
    name: str
    source_host: str
    host_name: str
    work_dir: str
    branch: str | None
    dry_run: bool


RESULTS = [Migrated]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="name, id or address")
    parser.add_argument("to", metavar="[NEW]@HOST", help="where to; with NEW, under another name")
    parser.option(*TRUST_HOST)
    parser.add_dry_run()


def run(args: Args, app: App) -> None:
    hosts, source = app.fleet.hosts, app.fleet.find(args.agent)
    address = hosts.address(args.to)
    if address.path is not None or not (address.host or address.provider):
        raise UsageError(
            f"`{args.to}` is not a host",
            hint=f"`mngr migrate {source.name} @HOST`; `mngr rename OLD NEW` gives an agent another name",
        )
    name = address.name or source.name
    new = address.host is None and address.provider != "local"
    if args.dry_run and new:
        app.out.line(f"would migrate {source.name} to a host of provider {address.provider}")
        return
    target = hosts.place(address.host, address.provider, HostRequest(name), app.out.note)
    if target is source.site:
        raise UsageError(f"`{source.name}` is on `{target.name}` already", hint="`mngr list` shows where agents are")
    if args.dry_run:
        record = moves.check_migrate(source.site, source.id, target, name)
    else:
        interrupts.outlive_terminal()
        with hosts.occupied(target):
            record = moves.migrate(source.site, source.id, target, name, accepted(app, trusted=args.trust_host))
    verb = "would migrate" if args.dry_run else "migrated"
    app.out.emit_object(
        Migrated(
            record.id,
            name,
            source.site.name,
            target.name,
            record.workspace.work_dir,
            record.workspace.branch,
            args.dry_run,
        ),
        human=f"{verb} {source.name} from {source.site.name} to {target.name}",
    )
    if not args.dry_run:
        destroy.leave(app, [source])
