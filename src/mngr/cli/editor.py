"""Let a person write a text or change a file in their editor."""

import os
import shlex
import tempfile

from mngr.cli.app import App
from mngr.cli.output.terminal import is_terminal
from mngr.errors import MngrError, Undecided
from mngr.system.process import ProgramMissing, run_attached


def edit_text(app: App, text: str, about: str) -> str:
    """The text as the person left it, without the lines that begin with `#`; `about` is shown as such lines. The file
    it was written in is private and removed."""
    if app.headless or not is_terminal(app.stdout):
        raise Undecided("cannot open an editor: no terminal", hint="give the text with `--message TEXT`")
    comments = "".join(f"# {line}".rstrip() + "\n" for line in about.split("\n"))
    with tempfile.TemporaryDirectory(prefix="mngr-") as folder:
        path = os.path.join(folder, "message.md")
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{text.rstrip()}\n\n{comments}")
        choose = "choose one: `EDITOR=nano mngr create --edit-message`"
        run_editor(app, path, choose, ", so nothing was made")
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line for line in file.read().split("\n") if not line.startswith("#")]
    return "\n".join(lines).strip("\n ")


def run_editor(app: App, path: str, choose: str, consequence: str = "") -> None:
    """Open the file in $VISUAL, $EDITOR or vi and wait. Raises when the editor cannot be run or fails; `choose` is the
    hint then, `consequence` says what that means."""
    command = app.environ.get("VISUAL") or app.environ.get("EDITOR") or "vi"
    try:
        code = run_attached([*shlex.split(command), path])
    except (ProgramMissing, ValueError):
        raise MngrError(f"the editor `{command}` is not installed or not on PATH", hint=choose) from None
    except OSError as error:
        raise MngrError(f"`{command} {path}` cannot be run: {error.strerror}", hint=choose) from None
    if code != 0:
        raise MngrError(f"the editor `{command}` ended with exit code {code}{consequence}", hint=choose)
