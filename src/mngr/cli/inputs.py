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
