"""Options of `create` about where the agent runs: this machine, a named host, or one that a provider makes."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mngr.actions.site import Site
from mngr.cli.app import App
from mngr.cli.parser.option_values import parse_label, variables
from mngr.cli.parser.parser import Args, Group, Parser, given
from mngr.errors import UsageError
from mngr.names import Address, parse_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.providers.provider import HostRequest

# What only a new host can have.
_FOR_NEW_HOSTS = (
    *("new_host", "image", "snapshot", "build_arg", "start_arg"),
    *("host_env", "host_env_file", "pass_host_env"),
)


def add_arguments(parser: Parser) -> None:
    where = parser.add_argument_group("where it runs")
    where.option("--provider NAME", "provider of the host (default: `local`, this machine)")
    where.option("--plugin, --enable-plugin NAME ...", "enable a plugin for this command", dest="enable_plugin")
    where.option("--disable-plugin NAME ...", "disable a plugin for this command")
    where.option("--yes, -y", "no effect, for scripts: `create` asks nothing")
    where.option("--[no-]auto-start", "no effect, for scripts: the host is running", default=True)
    where.option("--new-host", "create the host: `NAME@HOST.PROVIDER --new-host`, or like `NAME@.PROVIDER`")
    add_new_host_options(where)
    # What is true of this machine anyway, and what templates call the arguments after `--`.
    parser.option("--no-start-on-boot", None)
    parser.option("--agent-args AGENT-ARGS ...", None)


def add_new_host_options(parser: Parser | Group) -> None:
    """For `create` and `host create`."""
    parser.option("--image NAME", "image of the new host")
    parser.option("--snapshot ID", "start the new host from this snapshot: `mngr host prepare --snapshot`")
    parser.option("--build-arg, -b ARG ...", "build the image of the new host with this argument, e.g. a directory")
    parser.option("--start-arg, -s ARG ...", "argument for the program that starts the new host")
    parser.option("--host-label KEY=VALUE ...", "label of the new host")
    parser.option("--host-env KEY=VALUE ...", "variable of the new host, for all its agents")
    parser.option("--host-env-file FILE ...", "variables of the new host, from a file")
    parser.option("--pass-host-env KEY ...", "pass this variable of your environment to the new host")


def host_request(args: Args, app: App, name: str) -> HostRequest:
    """The new host that the options describe."""
    from mngr.providers.provider import HostRequest

    named = Args()
    named.env, named.env_file, named.pass_env = args.host_env, args.host_env_file, args.pass_host_env
    return HostRequest(
        name,
        image=args.image or "",
        snapshot=args.snapshot or "",
        build_args=tuple(args.build_arg),
        start_args=tuple(args.start_arg),
        labels=dict(parse_label(text) for text in args.host_label),
        env=variables(named, app),
    )


def free_host_name() -> str:
    return f"mngr-{os.urandom(3).hex()}"


def apply_compatibility(args: Args, app: App) -> None:
    """Take over what templates call the arguments after `--`, and warn of plugins that are not installed."""
    args.rest = args.rest or args.agent_args
    if args.enable_plugin:
        from mngr import installed

        known = {plugin.name for plugin in installed.plugins()}
        for name in args.enable_plugin:
            if name.replace("_", "-") not in known:
                app.out.warn(f"plugin `{name}` is not installed; `mngr plugin add PACKAGE` installs one")


def address(text: str, app: App) -> Address:
    """Where to make an agent, taken apart."""
    return app.fleet.hosts.address(text) if "@" in text else parse_address(text)


def place(args: Args, app: App, address: Address | None, names: Sequence[str]) -> Site | None:
    """Where the agents are made. A new host is made here, and destroyed again if no agent gets there. A dry run makes
    none: it reports the agents that would be made on one, and returns None."""
    host, provider = (address.host, address.provider) if address is not None else (None, None)
    if provider is not None and "provider" in given(args) and args.provider != provider:
        raise UsageError(f"the provider is given twice: `{address}` and `--provider {args.provider}`")
    if host is None or "provider" in given(args):
        provider = provider or args.provider
    if provider in (None, "local") or not (host is None or args.new_host):
        _refuse_host_options(args, app)
        return app.fleet.local if host is None else app.fleet.hosts.site(host, provider)
    hosts, maker = app.fleet.hosts, app.fleet.hosts.provider(provider)
    request = host_request(args, app, host or names[0])
    pool = maker.pool() if host is None else []
    if pool:
        _refuse_host_options(args, app)
    if args.dry_run:
        if not pool:
            maker.check(request)
        for name in names:
            app.out.line(f"would create {name} on a host of provider {provider}")
        return None
    if host is not None:
        return hosts.site(hosts.create(provider, request, app.out.note).name, provider)
    return hosts.place(None, provider, request, app.out.note)


def _refuse_host_options(args: Args, app: App) -> None:
    for name in _FOR_NEW_HOSTS:
        if getattr(args, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"`{option}` needs a new host", hint=f"`mngr create NAME@.docker {option} ...`")
    if args.host_label:
        app.out.note("ignored: `--host-label`, since only new hosts get labels; `--label` labels the agent")
