"""`mngr clone`: a copy of an agent, conversation included, as a new agent."""

from collections.abc import Sequence

from mngr.actions import clone as cloning
from mngr.actions.clone import CloneRequest
from mngr.actions.site import Site
from mngr.cli.app import App
from mngr.cli.create.agents import NewAgent, deliver, first_message, new_agent
from mngr.cli.parser.option_values import TRUST_HOST, parse_label, variables
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple
from mngr.names import Address
from mngr.providers.provider import HostRequest

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
    what.option("--label KEY=VALUE ...", "additional label", safe=True)
    what.option("--project NAME", "project (default: that of the source)", safe=True)
    what.option(*TRUST_HOST)
    then = parser.add_argument_group("after creation")
    then.option("--[no-]connect", "attach to the agent", default=True, safe=True)
    then.option("--connect-command CMD", "run this command instead of attaching")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    source = app.fleet.find(args.source)
    address = app.fleet.hosts.address(args.new) if args.new and "@" in args.new else None
    name = args.new if address is None else address.name
    if address is not None and address.path is not None:
        raise UsageError("a clone chooses its own work dir", hint="leave out `:PATH`")
    return make(args, app, source, CloneRequest(name or "", tuple(args.rest)), address, trust_host=args.trust_host)


def make(
    args: Args,
    app: App,
    source: Agent,
    request: CloneRequest,
    address: Address | None = None,
    *,
    trust_host: bool = False,
) -> int:
    """Also used by `create --from AGENT`. Without a name, the copy gets one; without an address, it is on the host of
    its source."""
    labels = dict(parse_label(text) for text in args.label)
    request = request._replace(env=variables(args, app), labels=labels, project=args.project)
    target = source.site
    if address is not None and (address.host or (address.provider and not args.dry_run)):
        wanted = HostRequest(request.name or source.name)
        target = app.fleet.hosts.place(address.host, address.provider, wanted, app.out.note)
    if not request.name:
        request = request._replace(name=target.run(cloning.free_name, source.name))
    if args.dry_run:
        return _dry_run(app, source, target, request)
    message = first_message(args, app)
    if target is source.site:
        agent = source.clone(**request._asdict())
    else:
        from mngr.cli.trust_prompt import accepted
        from mngr.transfer import moves

        with app.fleet.hosts.occupied(target):
            done = moves.clone(source.site, source.id, target, request, accepted(app, trusted=trust_host))
        say_left_out(app, done.left_out)
        agent = Agent(target, done.record)
    if message is not None:
        deliver(agent, message, new=False)
    at = "" if target is source.site else f"@{target.name}"
    result = {**new_agent(agent)._asdict(), "source": source.name}
    app.out.emit_object(result, human=f"cloned {source.name} to {agent.name}{at}{_on(agent.record.workspace.branch)}")
    if not args.connect:
        return 0
    from mngr.cli import connection

    return connection.after_start(app, agent, args.connect_command)


def _dry_run(app: App, source: Agent, target: Site, request: CloneRequest) -> int:
    if target is source.site:
        branch, _ = source.check_clone(request)
    else:
        from mngr.transfer import moves

        branch = f"mngr/{request.name}" if moves.check(source.site, source.id, target, request.name).git else None
    human = f"would clone {source.name} to {request.name}{_on(branch)}"
    app.out.emit_object(WouldClone(request.name, source.name, branch, True), human=human)
    return 0


def _on(branch: str | None) -> str:
    return f" on branch {branch}" if branch else ""


def say_left_out(app: App, files: Sequence[tuple[str, float]]) -> None:
    for path, megabytes in files:
        app.out.note(f"not copied: `{path}` ({megabytes:.0f} MB, ignored by git)")
