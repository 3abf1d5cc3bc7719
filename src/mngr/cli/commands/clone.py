"""`mngr clone`: a copy of an agent, conversation included, as a new agent."""

from __future__ import annotations

from mngr.actions import clone as cloning
from mngr.actions.agent import Agent
from mngr.actions.clone import Wish
from mngr.cli.app import App
from mngr.cli.commands.create import deliver, first_message
from mngr.cli.inputs import parse_label, variables
from mngr.cli.parser import Args, BooleanPair, Parser
from mngr.process import hide_arguments

DESCRIPTION = (
    "Copy an agent: its commits, its uncommitted files as uncommitted files, its conversation, command, labels and "
    "variables. The copy has a work dir and a branch `mngr/NEW` of its own, and runs. The source is not touched."
)
EXAMPLES = (
    ("mngr clone fix-login other-way", "go on from here in two directions"),
    ("mngr clone fix-login other-way --no-connect -m 'Try it without the cache'", "with a first message"),
    ("mngr clone fix-login", "with a name made up: fix-login-2"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="the agent to copy: name, id or address")
    parser.add_argument("new", nargs="?", metavar="NEW", help="the new agent's name (default: SOURCE-2)")
    parser.add_rest("ARGS", "arguments for the agent's program, in place of the source's")
    what = parser.add_argument_group("what differs")
    what.add_argument("--message", "-m", metavar="TEXT", help="a message for the new agent")
    what.add_argument("--message-file", metavar="FILE", help="the message, from a file (`-` is stdin)")
    what.add_argument("--edit-message", action="store_true", help="write the message in your editor")
    what.add_argument("--env", action="append", metavar="KEY=VALUE", help="one more variable (can be repeated)")
    what.add_argument(
        "--env-file", action="append", metavar="FILE", help="more variables, KEY=VALUE lines (can be repeated)"
    )
    what.add_argument("--pass-env", action="append", metavar="KEY", help="one more variable of yours (can be repeated)")
    what.add_argument("--label", action="append", metavar="KEY=VALUE", help="one more label (can be repeated)")
    what.add_argument("--project", metavar="NAME", help="its project (default: the source's)")
    then = parser.add_argument_group("and then")
    then.add_argument("--connect", action=BooleanPair, default=True, help="attach to it when it runs")
    then.add_argument("--connect-command", metavar="CMD", help="run this instead of attaching")
    then.add_argument("--dry-run", action="store_true", help="say what would be made, and make nothing")


def run(args: Args, app: App) -> int:
    source = app.fleet.find(args.source)
    return make(args, app, source, Wish(args.new or cloning.free_name(app.fleet, source), tuple(args.rest)))


def make(args: Args, app: App, source: Agent, wish: Wish) -> int:
    """What `create --from AGENT` does too. The result has `source`, the name of the agent that was copied."""
    if args.env:
        hide_arguments(text.partition("=")[2] for text in args.env)
    labels = dict(parse_label(text) for text in args.label)
    wish = wish._replace(env=variables(args, app), labels=labels, project=args.project)
    if args.dry_run:
        branch, _ = cloning.check(app.fleet, source, wish)
        value = {"name": wish.name, "source": source.name, "branch": branch, "dry_run": True}
        where = f" on branch {branch}" if branch else ""
        app.out.emit_object(value, human=f"would clone {source.name} to {wish.name}{where}")
        return 0
    message = first_message(args, app)
    record = cloning.clone(app.fleet, source, wish)
    if message is not None:
        deliver(app, record, message, new=False)
    value = {
        "agent_id": record.id,
        "name": record.name,
        "source": source.name,
        "host_id": record.host,
        "host_name": record.host,
        "work_dir": record.work_dir,
        "branch": record.branch,
        "session": record.session,
    }
    where = f" on branch {record.branch}" if record.branch else ""
    app.out.emit_object(value, human=f"cloned {source.name} to {record.name}{where}")
    if not args.connect:
        return 0
    from mngr.cli import connecting

    return connecting.after_start(app, record, args.connect_command)
