"""What a command gets beside its arguments: settings, output, and a way to ask. Reads nothing until it is used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mngr.cli.catalog import VERBS
from mngr.cli.output.output import Output
from mngr.cli.output.terminal import columns, is_terminal, visible_lines, wants_colour
from mngr.errors import MngrError, Undecided

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from mngr.cli.parser.parser import Args, Parser
    from mngr.fleet.fleet import Fleet
    from mngr.settings.layers import Settings
    from mngr.settings.trust import Claim

_SHOW_SETTINGS = ("", "config", "doctor")
_NO = ("", "0", "false", "no", "off")


def safe_option(verb: str, key: str, value: object) -> bool:
    """Whether an untrusted repository may set this; the verb is loaded only if one tries."""
    from mngr.cli.parser.defaults import is_safe

    return is_safe(verb, key, value)


class App:
    """One run of one verb. `configure` sets what the options say; until then everything has its default."""

    def __init__(self, environ: Mapping[str, str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> None:
        self.environ = environ
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.verb = ""
        self.plugin = ""  # whose verb it is, if not our own
        self.parser: Parser | None = None
        self.overrides: list[str] = []
        self.format = "human"
        self.verbosity = 0
        self.incomplete = False  # whether something that may have been meant could not be seen
        self._headless_flag = False
        self._settings: Settings | None = None
        self._fleet: Fleet | None = None
        self._out: Output | None = None

    def configure(self, args: Args) -> None:
        """Take over the options that every verb has. Raises for an invalid format."""
        self.format = args.format
        self.verbosity = -1 if args.quiet else args.verbose
        self._headless_flag = args.headless
        self._out = None
        _ = self.out

    @property
    def host_dir(self) -> str:
        """Where agents live; it need not exist."""
        from mngr.settings.layers import host_dir

        return host_dir(self.environ)

    @property
    def settings(self) -> Settings:
        """All settings that hold in this directory, with those of `-S`. Raises when a file cannot be read."""
        if self._settings is None:
            from mngr.settings.layers import load

            found = load(
                host_dir=self.host_dir,
                cwd=os.getcwd(),
                environ=self.environ,
                overrides=self.overrides,
                safe_option=self._safe_option,
            )
            if found.ignored or {*found.named("commands")} - {entry.name for entry in VERBS}:
                from mngr.cli.parser.settings_check import tell_ignored

                tell_ignored(found, self.environ, self.overrides)
            found.ask = self._ask_for_trust
            self._settings = found
        return self._settings

    def _safe_option(self, verb: str, key: str, value: object) -> bool:
        """As `safe_option`. To load other verbs than the one that runs takes time, and nobody reads their options but
        the verbs that show settings."""
        return (verb == self.verb or self.verb in _SHOW_SETTINGS) and safe_option(verb, key, value)

    def _ask_for_trust(self, claims: Sequence[Claim]) -> bool:
        from mngr.cli import trust_prompt

        return trust_prompt.asked_in_passing(self, claims)

    @property
    def fleet(self) -> Fleet:
        """The agents, seen with this run's settings."""
        if self._fleet is None:
            from mngr.fleet.fleet import Fleet

            self._fleet = Fleet(environ=self.environ, settings=self.settings)
        return self._fleet

    @property
    def out(self) -> Output:
        if self._out is None:
            self._out = Output(
                self.format,
                self.stdout,
                self.stderr,
                quiet=self.verbosity < 0,
                colour=wants_colour(self.stdout, self.environ),
                columns=columns(self.stdout, self.environ),
            )
        return self._out

    def read_stdin(self) -> str:
        """All of standard input. Bytes that are not UTF-8 stay what they are, in every locale."""
        if reconfigure := getattr(self.stdin, "reconfigure", None):
            reconfigure(encoding="utf-8", errors="surrogateescape")
        return self.stdin.read()

    def names(self, words: Sequence[str]) -> list[str]:
        """The words, with `-` replaced by the words of standard input."""
        return [name for word in words for name in (self.read_stdin().split() if word == "-" else [word])]

    @property
    def headless(self) -> bool:
        """Whether nobody can be asked."""
        return self.asked_headless or not is_terminal(self.stdin)

    @property
    def asked_headless(self) -> bool:
        """Whether the option, the variable or the setting says never to ask."""
        if self._headless_flag or self.environ.get("MNGR_HEADLESS", "").strip().lower() not in _NO:
            return True
        try:
            return self.settings.get("headless") is True
        except MngrError:
            return False  # `mngr config edit` opens a file that cannot be read

    def confirm(self, question: str, *, hint: str = "") -> bool:
        """Ask yes or no; no is the default. Raises `Undecided` when nobody can be asked."""
        return self.ask(question, "[y/N]", hint=hint).lower() in ("y", "yes")

    def ask(self, question: str, answers: str, *, hint: str = "") -> str:
        """Ask for one line; empty at the end of input. Raises `Undecided` when nobody can be asked."""
        if self.headless:
            raise Undecided(f"cannot ask: {question}", hint=hint or "run it in a terminal, without `--headless`")
        self.stdout.flush()
        self.stderr.write(f"{visible_lines(question)} {answers} ")
        self.stderr.flush()
        answer = self.stdin.readline()
        if not answer:
            self.stderr.write("\n")
        return answer.strip()

    def print_help(self, parser: Parser) -> None:
        wide = columns(self.stdout, self.environ)
        text = parser.help_text(min(wide or 80, 100), wants_colour(self.stdout, self.environ))
        self.stdout.write(text)
