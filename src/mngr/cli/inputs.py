"""Values that several verbs read: texts from files or stdin, labels, limits."""

from mngr.cli.app import App
from mngr.errors import UsageError

IDLE_MODES = ("output", "user", "agent")  # those of `mngr.agents.limits`, which only limited agents need


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
    from mngr.cli.ages import parse_duration

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


def parse_windows(texts: list[str]) -> dict[str, str]:
    """`[NAME=]CMD` of each window, by name; one without a name gets one that is free."""
    from mngr.names import is_name

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
