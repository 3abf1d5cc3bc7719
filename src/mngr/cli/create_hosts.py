"""Options of `create` about where the agent runs. This version has one host, this machine: an option that only another
host can honour is refused, one that holds here anyway is accepted."""

from __future__ import annotations

from mngr.cli.app import App
from mngr.cli.parser import Args, BooleanPair, Parser, given
from mngr.errors import UsageError
from mngr.names import no_provider

# For hosts that mngr makes. Not in the help, and refused, so that the error is about the host and not the spelling.
_FOR_OTHER_HOSTS = (
    *(((name,), "store_true") for name in ("--new-host", "--rsync", "--start-on-boot")),
    *(((name,), "store") for name in ("--snapshot", "--rsync-args", "--host-name-style")),
    *(((name,), "append") for name in ("--host-env", "--host-env-file", "--pass-host-env", "--sudo-command")),
    (("--build-arg", "-b"), "append"),
    (("--start-arg", "-s"), "append"),
)


def add_arguments(parser: Parser) -> None:
    where = parser.add_argument_group("where it runs")
    where.add_argument(
        "--provider", metavar="NAME", help="what makes its host: `local`, this machine, is the only one in this version"
    )
    where.add_argument(
        "--plugin",
        "--enable-plugin",
        dest="enable_plugin",
        action="append",
        metavar="NAME",
        help="switch a plugin on for this command (can be repeated)",
    )
    where.add_argument(
        "--disable-plugin", action="append", metavar="NAME", help="switch one off for this command (can be repeated)"
    )
    where.add_argument("--yes", "-y", action="store_true", help="for scripts: answer yes; `create` asks nothing")
    where.add_argument(
        "--auto-start", action=BooleanPair, default=True, help="for scripts: start a host that is off; this one is on"
    )
    where.add_argument(
        "--host-label",
        action="append",
        metavar="KEY=VALUE",
        help="for scripts: a label of a new host; ignored with a note, since this machine has none",
    )
    for names, action in _FOR_OTHER_HOSTS:
        parser.add_argument(*names, action=action, help=None)
    # What holds on this machine anyway, and what templates call the arguments after `--`.
    parser.add_argument("--no-start-on-boot", action="store_true", help=None)
    parser.add_argument("--agent-args", action="append", help=None)


def settle(args: Args, app: App) -> None:
    """Refuse what needs another host, and say what is ignored. Called once, with templates applied."""
    if args.provider not in (None, "local"):
        error = no_provider(args.provider)
        if "provider" not in given(args):
            hint = "a setting says so, see `mngr config list`; `--provider local` overrides it"
            raise UsageError(error.message, hint=hint)
        raise error
    for names, _ in _FOR_OTHER_HOSTS:
        if getattr(args, names[0].lstrip("-").replace("-", "_")):
            raise UsageError(
                f"`{names[0]}` is for hosts that mngr makes, and this version runs agents on this machine only",
                hint=f"leave out `{names[0]}`",
            )
    if args.host_label:
        app.out.note("ignored: `--host-label`, since this machine has no labels; `--label` labels the agent")
    args.rest = args.rest or args.agent_args
    if args.enable_plugin:
        _warn_of_missing(args, app)


def _warn_of_missing(args: Args, app: App) -> None:
    from mngr import installed

    known = {plugin.name for plugin in installed.plugins(app.environ)}
    for name in args.enable_plugin:
        if name.replace("_", "-") not in known:
            app.out.warn(f"no plugin called `{name}` is installed; `mngr plugin add PACKAGE` installs one")
