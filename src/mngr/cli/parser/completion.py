"""What may come next on a command line: the answer to `mngr __complete WORDS...`, whose last word is being typed.

One candidate a line, with a tab and what it means; `:files` and `:folders` leave the rest to the shell. Asks no tmux
and no git, says nothing of errors, and changes nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from mngr.cli import catalog
from mngr.cli.catalog import Verb
from mngr.cli.main import WITH_VALUE, split
from mngr.cli.parser.parser import Option, Parser
from mngr.cli.parser.scan import Scan
from mngr.errors import UsageError

Candidate = tuple[str, str]
FILES, FOLDERS = ":files", ":folders"


def answer(words: list[str]) -> int:
    """Print the candidates. A Tab key must never be answered with an error, so there is none."""
    try:
        lines = [
            f"{word}\t{text.partition(chr(10))[0]}".rstrip("\t") + "\n"
            for word, text in dict(candidates(words)).items()
            if word.isprintable()
        ]
        sys.stdout.write("".join(lines))
    except Exception:  # noqa: BLE001 (see above)
        return 1
    return 0


def candidates(words: Sequence[str]) -> Iterator[Candidate]:
    *before, current = words or [""]
    try:
        options, verb, rest = split(before)
    except UsageError:  # an unknown option, or one whose value comes next
        return _matching(_option_values(before[-1]), current) if before[-1] in WITH_VALUE else iter(())
    if verb is not None:
        from mngr.cli import plugin_verbs

        entry = plugin_verbs.find(verb, os.environ, warn=plugin_verbs.silent)
        return _of_verb(entry, options + rest, current) if entry else iter(())
    return _matching(_global_options() if current.startswith("-") else verbs(), current)


def verbs() -> Iterator[Candidate]:
    from mngr.cli import plugin_verbs

    for entry in (*catalog.VERBS, *plugin_verbs.for_help(os.environ, warn=plugin_verbs.silent)):
        yield entry.name, entry.summary


class _Walk(Scan):
    """A verb's words taken apart without judging them: half a line is wrong by nature. `pending` is the option whose
    value is being typed."""

    pending: Option | None = None

    def _long(self, word: str) -> None:
        with suppress(UsageError):
            super()._long(word)

    def _short(self, word: str) -> None:
        with suppress(UsageError):
            super()._short(word)

    def _following(self, option: Option, spelling: str) -> str:
        if self.words:
            return self.words.pop(0)
        self.pending = option
        return ""

    def _enter(self, word: str) -> None:
        if word in self.parser.subcommands:
            self.parser = self.parser.subcommands[word]
        else:
            self.positionals.append(word)

    def _enter_default(self) -> None:
        """The next word may still name another part."""

    def parsers(self) -> list[Parser]:
        """Those whose options can be typed here: with no part named, also that of the default part."""
        parser = self.parser
        default = parser.subcommands.get(parser.default_subcommand or "")
        return [*([default] if default else []), *parser.chain()]

    def positional(self) -> Option | None:
        """The positional argument that the next word is for."""
        left = len(self.positionals)
        for option in (option for option in self.parser.options if not option.names):
            if option.nargs in ("*", "+") or left == 0:
                return option
            left -= 1
        return None


def _of_verb(entry: Verb, words: list[str], current: str) -> Iterator[Candidate]:
    from mngr.cli.dispatch import command_parser

    walk = _Walk(command_parser(entry), words)
    walk.read()
    if "--" in words:
        return iter([(FILES, "")])
    if walk.pending is not None:
        return _matching(_values(walk.pending, walk), current)
    if current.startswith("--") and "=" in current:
        spelling, _, value = current.partition("=")
        option = walk._find(spelling)
        found = _matching(_values(option, walk), value) if option and option.nargs != 0 else iter(())
        return ((word if word in (FILES, FOLDERS) else f"{spelling}={word}", text) for word, text in found)
    if current.startswith("-"):
        return _matching(_options(walk), current)
    parts = ((name, part.summary) for name, part in walk.parser.subcommands.items())
    option = walk.positional()
    return _matching([*parts, *(_values(option, walk) if option else ())], current)


def _matching(found: Iterable[Candidate], current: str) -> Iterator[Candidate]:
    return ((word, text) for word, text in found if word.startswith(current) or word in (FILES, FOLDERS))


def _options(walk: _Walk) -> Iterator[Candidate]:
    typed = {one.option.dest for one in walk.options}
    for parser in walk.parsers():
        for option in parser.options:
            again = option.repeatable or option.how == "count"
            if not option.hidden and (again or option.dest not in typed):
                for spelling in option.spellings:
                    if spelling.startswith("--") or len(option.names) == 1:
                        yield spelling, option.help


def _global_options() -> Iterator[Candidate]:
    for names, _, text in catalog.OPTIONS:
        yield names.split(", ")[-1], text


def _option_values(spelling: str) -> Iterable[Candidate]:
    from mngr.cli.parser import candidates as known

    return known.formats() if spelling == "--format" else known.settings()


def _values(option: Option, walk: _Walk) -> Iterable[Candidate]:
    """What an option or a positional argument can be, as far as anybody knows."""
    if option.choices is not None:
        return [(choice, "") for choice in option.choices]
    from mngr.cli.parser import candidates as known

    command = walk.parser.prog.removeprefix("mngr ")
    return known.of(command, option.dest, option.shown_name, walk.positionals if not option.names else [])
