"""The door of the program: global options, the verb, and every error printed once. Imports a verb only to run it."""

import os
import sys

from mngr import __version__
from mngr.cli import catalog
from mngr.errors import UsageError

FLAGS = ("-q", "--quiet", "-v", "--verbose", "--headless")
WITH_VALUE = ("--format", "-S", "--setting")
STOP_HERE = ("-h", "--help", "--version")


def start() -> None:
    """The console script. Leaves without tearing the interpreter down, which would take a tenth of the time."""
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        # git and tmux give names as UTF-8, and Python would open others, or none.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 1  # a result that could not be written is none
    os._exit(code)


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit code. Never raises, except what ends the interpreter on purpose."""
    words = sys.argv[1:] if argv is None else list(argv)
    _replace_closed_streams()
    try:
        code = _run(words, last=argv is None)
        sys.stdout.flush()
        return code
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 (the one handler reports all)
        from mngr.system import interrupts

        if argv is None:
            interrupts.leave()
        from mngr.cli.output.failure import report

        return report(error, words)


def _run(words: list[str], last: bool) -> int:
    """`last` says that this process ends with the command, and no signal may come between the two."""
    before, verb, after = split(words)
    if before and before[-1] in STOP_HERE:
        return _print_version() if before[-1] == "--version" else _print_help(words)
    if verb is None:
        from mngr.cli import overview

        sys.stdout.write(overview.SHORT)
        return 0
    if verb == "__complete":
        from mngr.cli.parser.completion import answer

        return answer(after)
    entry = catalog.find(verb) or _of_plugin(verb, words)
    from mngr.system import interrupts

    interrupts.install()
    from mngr.cli.dispatch import run_command

    code = run_command(entry, before + after)
    if last:
        sys.stdout.flush()
        interrupts.leave()
    return code


def split(words: list[str]) -> tuple[list[str], str | None, list[str]]:
    """The options before the verb, the verb, and all that follows it. Stops at `--help` and `--version`."""
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("-") or word == "-":
            return words[:at], word, words[at + 1 :]
        at += 1
        name, equals, _ = word.partition("=")
        if word in STOP_HERE:
            return words[:at], None, []
        if word in FLAGS or (equals and name in WITH_VALUE) or _is_short_group(word):
            continue
        if word not in WITH_VALUE:
            raise _unknown_option(word)
        if at == len(words):
            raise UsageError(f"`{word}` needs a value", hint="`mngr --help` shows the options")
        at += 1
    return words, None, []


def _is_short_group(word: str) -> bool:
    """`-qv`, or `-Skey=value` in one word."""
    return (len(word) > 2 and word[:2] == "-S") or (len(word) > 1 and all(f"-{letter}" in FLAGS for letter in word[1:]))


def _replace_closed_streams() -> None:
    """Python has None for a stream that was closed before the start, as by `mngr list >&-`."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 (open until the end)
        sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 (open until the end)
        sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 (open until the end)


def _print_version() -> int:
    sys.stdout.write(f"mngr {__version__}\n")
    return 0


def _print_help(words: list[str]) -> int:
    from mngr import installed
    from mngr.cli import overview
    from mngr.cli.output.terminal import wants_colour

    added: tuple[catalog.Verb, ...] = ()
    if installed.plugins():
        from mngr.cli import plugin_verbs
        from mngr.cli.parser.scan import option_values

        added = plugin_verbs.for_help(os.environ, option_values(words, "-S", "--setting"))
    sys.stdout.write(overview.full(wants_colour(sys.stdout, os.environ), added))
    return 0


def _of_plugin(word: str, words: list[str]) -> catalog.Verb:
    """The verb of this name that a plugin adds, or the error that there is none."""
    from mngr.cli import plugin_verbs
    from mngr.cli.parser import compatibility
    from mngr.cli.parser.scan import option_values
    from mngr.names import nearest

    added = plugin_verbs.entries(os.environ, option_values(words, "-S", "--setting"))
    for entry in added:
        if word in (entry.name, *entry.aliases):
            return entry
    known = [*catalog.words(), *(name for entry in added for name in (entry.name, *entry.aliases))]
    close = nearest(word, known)
    start = f"the closest verb is `{close}`; " if close else ""
    hint = compatibility.VERBS.get(word) or f"{start}`mngr --help` shows all"
    raise UsageError(f"{_quoted(word)} is not a verb of mngr", hint=hint)


def _unknown_option(word: str) -> UsageError:
    from mngr.names import nearest

    name = word.partition("=")[0]
    close = nearest(name, [*FLAGS, *WITH_VALUE, *STOP_HERE])
    start = f"the closest is `{close}`; " if close else ""
    return UsageError(
        f"{_quoted(name)} is not an option of mngr itself",
        hint=f"{start}options of a verb come after it: `mngr VERB {name}`"
        if name.isprintable()
        else "`mngr --help` shows all",
    )


def _quoted(word: str) -> str:
    from mngr.cli.output.terminal import visible

    return f"`{visible(word)}`"


if __name__ == "__main__":
    start()
