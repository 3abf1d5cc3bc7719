"""Values that several verbs read: texts from files or stdin, labels, limits, variables."""

from __future__ import annotations

from mngr.cli.app import App
from mngr.cli.parser.parser import Args, given
from mngr.errors import UsageError
from mngr.names import is_name
from mngr.system.process import hide_arguments

IDLE_MODES = ("output", "user", "agent")  # those of `mngr.agent.limits`, which only limited agents need
# Modes of hosts, as scripts name them: what comes nearest for an agent on this machine (none: no limit), and a note.
HOST_IDLE_MODES = {
    "io": ("output", ""),
    "ssh": ("user", "`--idle-mode ssh` is `user` here: idle means that no message comes and nobody types a key"),
    "run": (None, "`--idle-mode run` needs no `--idle-timeout` here: the agent is DONE when its command ends"),
    "disabled": (None, ""),
}


# Of verbs that bring an agent from another host.
TRUST_HOST = ("--trust-host", "run what the other host says that it runs, where that was not given from here")


def read_text(path: str, app: App) -> str:
    if path == "-":
        return app.read_stdin()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`{path}` cannot be read: {error}") from None


def parse_limit(text: str) -> float:
    """Seconds of a limit; `off` is 0."""
    from mngr.cli.output.durations import parse_duration

    if text.strip().lower() == "off":
        return 0.0
    try:
        seconds = parse_duration(text)
    except UsageError as error:
        raise UsageError(error.message, hint=f"{error.hint}, or `off`") from None
    if seconds < 1:
        raise UsageError(f"a limit is at least 1 s, not {text}", hint="`off` means no limit")
    return seconds


def parse_label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key or not key.isprintable() or key != key.strip():
        raise UsageError(f"{text!r} is not a label", hint="for example `--label team=backend`")
    return key, value


def parse_sandbox(args: Args) -> str:
    """The sandbox that `--sandbox` and `--network` ask for, as the record has it."""
    if args.network == "off" and not args.sandbox and "network" in given(args):
        raise UsageError("`--network off` requires `--sandbox`", hint="add `--sandbox`")
    return ("no-network" if args.network == "off" else "on") if args.sandbox else ""


def parse_windows(texts: list[str]) -> dict[str, str]:
    """`[NAME=]CMD` of each window, by name; one without a name gets one that is free."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, command = text.partition("=")
        if not equals or not is_name(name):
            name, command = next(f"window-{n}" for n in range(1, len(texts) + 2) if f"window-{n}" not in found), text
        elif name.isupper():
            raise UsageError(
                f"`{name}` would be a variable, not a window: its name is all upper case",
                hint=f"`--env {name}=VALUE` sets a variable; a window is `-w {name.lower()}='CMD'`",
            )
        if not command.strip():
            raise UsageError(f"window `{name}` has no command", hint="for example `-w server='npm run dev'`")
        if name in found:
            raise UsageError(f"two windows are called `{name}`")
        found[name] = command
    return found


def variables(args: Args, app: App) -> dict[str, str]:
    """What `--env-file`, `--pass-env` and `--env` give. The process list does not show the values from here on."""
    from mngr.agent.launch import parse_variable

    if args.env:
        hide_arguments(value if equals else text for text in args.env for _, equals, value in [text.partition("=")])
    found: dict[str, str] = {}
    for path in args.env_file:
        found.update(_env_lines(path))
    for name in args.pass_env:
        if name not in app.environ:
            from mngr.cli.plugin_verbs import warn_once

            warn_once(f"`--pass-env {name}` is skipped: the variable is not set")
            continue
        found.update([parse_variable(f"{name}={app.environ[name]}")])
    found.update(parse_variable(text) for text in args.env)
    return found


def _env_lines(path: str) -> dict[str, str]:
    from mngr.agent.launch import parse_variable

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
