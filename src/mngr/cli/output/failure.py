"""The one place where an error becomes text and an exit code."""

from __future__ import annotations

import errno
import os
import sys

from mngr.cli.app import App
from mngr.cli.output.output import to_json
from mngr.cli.output.terminal import paint, visible, visible_lines, wants_colour
from mngr.cli.parser.scan import option_values
from mngr.errors import BUG, INTERRUPTED, MngrError
from mngr.system.files import disk_error
from mngr.system.interrupts import Terminated

# What a shell reports for a program that ended because nobody reads its output any more.
PIPE_CLOSED = 141


def report(error: BaseException, words: list[str], app: App | None = None) -> int:
    """Print the error once and return the exit code. A closed pipe or a terminal that went away ends quietly."""
    try:
        return _report(error, words, app)
    except OSError as second:
        if not _nobody_reads(second):
            raise
        return _leave_quietly()


def _report(error: BaseException, words: list[str], app: App | None) -> int:
    if _nobody_reads(error):
        return _leave_quietly()
    if isinstance(error.__cause__, KeyboardInterrupt | Terminated):
        error = error.__cause__  # Python wraps what is raised while it makes a class
    if isinstance(error, KeyboardInterrupt):
        shown = MngrError("interrupted" + _so_far(error), exit_code=INTERRUPTED)
    elif isinstance(error, Terminated):
        shown = MngrError(f"ended by signal {error.number}" + _so_far(error), exit_code=128 + error.number)
    elif isinstance(error, MngrError):
        shown = error
    else:
        shown = _disk_error(error) or _bug(error, words, app)
    _print(shown, words, app)
    return shown.exit_code


def _so_far(signal: BaseException) -> str:
    """What was done by then, if whoever was interrupted noted it."""
    return "".join(f": {note}" for note in getattr(signal, "__notes__", ()))


def _print(error: MngrError, words: list[str], app: App | None) -> None:
    sys.stdout.flush()
    form = asked_format(words) if app is None or app.parser is None else app.format
    if form not in ("json", "jsonl"):
        sys.stderr.write(error_text(error, wants_colour(sys.stderr, os.environ)))
        sys.stderr.flush()
        return
    # Standard output holds one document: when the results are there already, the error goes beside them.
    full = app is not None and app.parser is not None and app.out.emitted and form == "json"
    stream = sys.stderr if full else sys.stdout
    stream.write(error_json(error, form))
    stream.flush()


def error_text(error: MngrError, colour: bool = False) -> str:
    """The error as a person reads it."""

    def label(text: str, style: str) -> str:
        return paint(text, style) if colour else text

    if error.exit_code == INTERRUPTED:
        return f"{visible_lines(error.message)}\n"
    first, *more = visible_lines(error.message).split("\n")
    lines = [f"{label('error:', 'bold red')} {first}"]
    lines += [f"  {line}" for line in more]
    if error.details:
        lines += [f"  {line}".rstrip() for line in visible_lines(error.details).split("\n")]
    if error.hint:
        lines.append(f"{label('hint:', 'cyan')} {visible_lines(error.hint)}")
    return "\n".join(lines) + "\n"


def error_json(error: MngrError, form: str) -> str:
    """The error as a script reads it."""
    value: dict[str, str | int] = {"error": error.message, "hint": error.hint, "exit_code": error.exit_code}
    if error.details:
        value["details"] = error.details
    return to_json(value, indent=form == "json") + "\n"


def asked_format(words: list[str]) -> str:
    """The format that the words ask for."""
    return (option_values(words, "--format") or ["human"])[-1]


def _disk_error(error: BaseException) -> MngrError | None:
    if isinstance(error, FileNotFoundError):
        try:
            os.getcwd()
        except FileNotFoundError:
            return MngrError("the directory you are in was deleted", hint="go to another one: `cd ~`")
    return disk_error(error) if isinstance(error, OSError) else None


def _bug(error: BaseException, words: list[str], app: App | None) -> MngrError:
    from mngr.cli.output.crash import save

    environ = os.environ if app is None else app.environ
    path = save(error, words, environ)
    said = visible(str(error).split("\n")[0][:300])
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    details = ""
    if app is not None and app.verbosity > 0:
        import traceback

        details = "".join(traceback.format_exception(error))
    hint = f"please report it with `{path}`" if path else "please report it; `-v` shows where it happened"
    whose = f"plugin `{app.plugin}` or in mngr" if app is not None and app.plugin else "mngr"
    return MngrError(f"this is a bug in {whose}: {what}", hint=hint, details=details, exit_code=BUG)


def _nobody_reads(error: BaseException) -> bool:
    """A closed pipe, or EIO of a terminal that was hung up (which then no longer is a terminal)."""
    if isinstance(error, BrokenPipeError):
        return True
    return isinstance(error, OSError) and error.errno == errno.EIO and error.filename is None and not os.isatty(2)


def _leave_quietly() -> int:
    """Point standard output at nothing, or the interpreter complains when it flushes at the end."""
    try:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
    except (OSError, ValueError):
        pass
    return PIPE_CLOSED
