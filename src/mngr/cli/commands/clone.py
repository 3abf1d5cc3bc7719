"""`mngr clone`: a copy of an agent, conversation included, as a new agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mngr.actions import clone as cloning
from mngr.actions.agent import Agent
from mngr.actions.clone import CloneRequest
from mngr.actions.site import Site
from mngr.cli.app import App
from mngr.cli.create_agents import NewAgent, deliver, first_message, new_agent
from mngr.cli.option_values import parse_label, variables
from mngr.cli.parser import Args, Parser
from mngr.errors import UsageError
from mngr.names import Address
from mngr.process import hide_arguments
from mngr.providers.provider import HostRequest

if TYPE_CHECKING:
    from mngr.fleet.moves import Moved

DESCRIPTION = (
    "Copy an agent: its commits, its uncommitted files as uncommitted files, its conversation, command, labels and "
    "variables. The copy gets its own work dir and branch `mngr/NEW`, and is started, also on another host: "
    "`NEW@HOST`. The source is not changed."
)
EXAMPLES = (
    ("mngr clone fix-login other-way", "continue the work in two directions"),
    ("mngr clone fix-login other-way --no-connect -m 'Try it without the cache'", "with a first message"),
    ("mngr clone fix-login", "with a generated name: fix-login-2"),
    ("mngr clone fix-login other-way@box", "to another host"),
)


class Cloned(NamedTuple):
    """The name of the agent that was copied."""

    source: str


class WouldClone(NamedTuple):
    name: str
    source: str
    branch: str | None
    dry_run: bool


RESULTS = [(NewAgent, Cloned), WouldClone]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="the agent to copy: name, id or address")
    parser.add_argument("new", nargs="?", metavar="NEW", help="the new agent's name or address (default: SOURCE-2)")
    parser.add_rest("ARGS", "arguments for the agent's program, in place of the source's")
    what = parser.add_argument_group("changes to the copy")
    what.option("--message, -m TEXT", "message for the new agent")
    what.option("--message-file FILE", "file with the message (`-` is stdin)")
    what.option("--edit-message", "write the message in $VISUAL, $EDITOR or vi")
    what.option("--env KEY=VALUE ...", "additional variable")
    what.option("--env-file FILE ...", "file with additional KEY=VALUE lines")
    what.option("--pass-env KEY ...", "pass this variable of your environment")
    what.option("--label KEY=VALUE ...", "additional label")
    what.option("--project NAME", "project (default: that of the source)")
    then = parser.add_argument_group("after creation")
    then.option("--[no-]connect", "attach to the agent", default=True)
    then.option("--connect-command CMD", "run this command instead of attaching")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    source = app.fleet.find(args.source)
    address = app.fleet.hosts.address(args.new) if args.new and "@" in args.new else None
    name = args.new if address is None else address.name
    if address is not None and address.path is not None:
        raise UsageError("a clone chooses its own work dir", hint="leave out `:PATH`")
    return make(args, app, source, CloneRequest(name or "", tuple(args.rest)), address)


def make(args: Args, app: App, source: Agent, wish: CloneRequest, address: Address | None = None) -> int:
    """Also used by `create --from AGENT`. Without a name, the copy gets one; without an address, it is on the host of
    its source."""
    if address is not None and (address.host or address.provider) and not args.dry_run:
        hosts = app.fleet.hosts
        wanted = HostRequest(wish.name or source.name)
        target = hosts.place(address.host, address.provider, wanted, app.out.note)
    elif address is not None and address.host:
        target = app.fleet.hosts.site(address.host, address.provider)
    else:
        target = source.site
    if not wish.name:
        wish = wish._replace(name=target.run(cloning.free_name, source.name))
    if args.env:
        hide_arguments(text.partition("=")[2] for text in args.env)
    labels = dict(parse_label(text) for text in args.label)
    wish = wish._replace(env=variables(args, app), labels=labels, project=args.project)
    if args.dry_run:
        if target is source.site:
            branch, _ = source.site.run(cloning.check, source.id, wish)
        else:
            record = source.site.run(cloning.check_source, source.id, wish.name)
            target.run(cloning.check_free, wish.name, source.name)
            branch = f"mngr/{wish.name}" if record.git else None
        where = f" on branch {branch}" if branch else ""
        app.out.emit_object(
            WouldClone(wish.name, source.name, branch, True), human=f"would clone {source.name} to {wish.name}{where}"
        )
        return 0
    message = first_message(args, app)
    agent = _copied(app, source, target, wish)
    record = agent.record
    if message is not None:
        deliver(agent, message, new=False)
    where = f" on branch {record.branch}" if record.branch else ""
    at = "" if agent.site is source.site else f"@{agent.site.name}"
    result = {**new_agent(agent)._asdict(), "source": source.name}
    app.out.emit_object(result, human=f"cloned {source.name} to {record.name}{at}{where}")
    if not args.connect:
        return 0
    from mngr.cli import connection

    return connection.after_start(app, agent, args.connect_command)


def _copied(app: App, source: Agent, target: Site, wish: CloneRequest) -> Agent:
    if target is source.site:
        return Agent(target, target.run(cloning.clone, source.id, wish))
    from mngr.fleet import moves

    with app.fleet.hosts.occupied(target):
        done = moves.clone(source, target, wish)
    say_left_out(app, done)
    return done.agent


def say_left_out(app: App, done: Moved) -> None:
    for path, megabytes in done.left_out:
        app.out.note(f"not copied: `{path}` ({megabytes:.0f} MB, ignored by git)")
