"""Values that several verbs read: texts from files or stdin, labels."""

from mngr.cli.app import App
from mngr.errors import UsageError


def read_text(path: str, app: App) -> str:
    if path == "-":
        return app.read_stdin()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`{path}` cannot be read: {error}") from None


def parse_label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key or not key.isprintable() or key != key.strip():
        raise UsageError(f"{text!r} is not a label", hint="for example `--label team=backend`")
    return key, value
