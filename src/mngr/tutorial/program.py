"""A command-line program as its own help shows it: its verbs, its options, and a reference made of them.

Nothing of it is run but `--help`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from mngr.errors import MngrError
from mngr.system import process
from mngr.system.process import ProgramMissing, Result, find_program

_SECONDS = 20.0
_MOST_VERBS = 80
_DEEPEST = 2
_LONGEST_REFERENCE = 200_000
_OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z0-9?][\w-]*)")
_OPTIONAL_NO = re.compile(r"--\[no-\]([\w-]+)")
_LISTED = re.compile(r"^[ \t]{1,8}([a-z0-9][\w-]*)(?:, [\w-]+| \([\w, -]+\))*(?:[ \t]{2,}\S.*)?$", re.MULTILINE)
_BRACED = re.compile(r"\{([a-z0-9][\w-]*(?:,[\w-]+)+)\}")


class ProgramHelp:
    """`name` is what an example begins with. Help is asked for once."""

    def __init__(
        self, name: str, environ: Mapping[str, str], cwd: str, run: Callable[..., Result] = process.run
    ) -> None:
        self.name = name
        self._env = {**environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "PAGER": "cat", "MANPAGER": "cat"}
        self._cwd = cwd
        self._run = run
        self._helps: dict[tuple[str, ...], str] = {}

    def help(self, *words: str) -> str:
        """What it says to `--help`; empty if these words are no verb of it. Raises if it is not there or shows none."""
        if words not in self._helps:
            self._helps[words] = self._ask(words)
        return self._helps[words]

    def verbs(self, *words: str) -> list[str]:
        """The verbs that its help lists and that have help of their own."""
        text = self.help(*words)
        listed = [*_LISTED.findall(text), *(verb for group in _BRACED.findall(text) for verb in group.split(","))]
        found = [verb for verb in dict.fromkeys(listed) if verb != "help" and verb not in words]
        return [verb for verb in found[:_MOST_VERBS] if self.help(*words, verb)]

    def options(self, *words: str) -> set[str]:
        """The options in the help of a verb and of all above it."""
        text = "\n".join(self.help(*words[:end]) for end in range(len(words) + 1))
        both = {f"--{no}{name}" for name in _OPTIONAL_NO.findall(text) for no in ("", "no-")}
        return {*_OPTION.findall(text), *both}

    def reference(self) -> str:
        """The help of the program and of its verbs, two deep; what is too long is cut, and says so."""
        text = "\n\n".join(self._collect())
        if len(text) > _LONGEST_REFERENCE:
            text = text[:_LONGEST_REFERENCE] + f"\n... cut: {len(text) - _LONGEST_REFERENCE} more characters\n"
        return text

    def _collect(self, *words: str) -> Iterator[str]:
        yield f"$ {' '.join((self.name, *words))} --help\n{self.help(*words).strip()}"
        for verb in self.verbs(*words) if len(words) < _DEEPEST else ():
            yield from self._collect(*words, verb)

    def _ask(self, words: tuple[str, ...]) -> str:
        try:
            done = self._run([self.name, *words, "--help"], timeout=_SECONDS, cwd=self._cwd, env=self._env)
        except MngrError as error:
            if not words or isinstance(error, ProgramMissing):
                raise
            return ""
        text = (done.stdout.strip() and done.text) or done.stderr.decode(errors="replace")
        if not words and not text.strip():
            raise MngrError(f"`{self.name} --help` says nothing", hint="choose the program: `--program NAME`")
        above = self._helps.get(words[:-1], "").strip() if words else None
        return text if not words or (done.ok and text.strip() not in ("", above)) else ""


def problem(program: ProgramHelp, argv: Sequence[str]) -> str:
    """What the program's help does not know of a command, or nothing."""
    verb: list[str] = []
    words = list(argv[1:])
    while words and not words[0].startswith("-"):
        known = program.verbs(*verb)
        if words[0] not in known:
            if known and not program.help(*verb, words[0]) and _wants_a_verb(program.help(*verb)):
                return f"`{' '.join((program.name, *verb))}` has no verb `{words[0]}`"
            break
        verb.append(words.pop(0))
    options = program.options(*verb)
    for word in words[: words.index("--")] if "--" in words else words:
        name = word.partition("=")[0]
        if not name.startswith("-") or len(name) < 2 or re.fullmatch(r"-[\d.]+", name) or name in options:
            continue
        letters = [f"-{letter}" for letter in name[1:]]
        if name.startswith("--") or not (letters[0] in options or all(letter in options for letter in letters)):
            return f"`{' '.join((program.name, *verb))}` has no option `{name}`"
    return ""


def _wants_a_verb(text: str) -> bool:
    """Whether the usage has a place for a verb: `{a,b}`, COMMAND, VERB; a program may take names and verbs both."""
    usage = re.search(r"(?is)usage:.*?(?:\n\s*\n|\Z)", text)
    return bool(usage and re.search(r"(?i)\{[\w-]+,|\bcommand|\bverb|\bsubcommand|\baction", usage.group()))


def guess(commands: Sequence[str]) -> str | None:
    """The program that a script is about: the one that most of its commands begin with, of those on PATH."""
    words = Counter(command.split(None, 1)[0] for command in commands)
    found = (word for word, _ in words.most_common() if re.fullmatch(r"[\w.+-]+", word) and word not in _EVERYDAY)
    return next(filter(find_program, found), None)


_EVERYDAY = frozenset(
    [
        *("awk", "bash", "cat", "cd", "chmod", "cp", "curl", "echo", "env", "export", "find", "git", "grep", "head"),
        *("ls", "mkdir", "mv", "pip", "printf", "python", "python3", "pwd", "rm", "sed", "set", "sh", "sleep", "sort"),
        *("sudo", "tail", "tee", "test", "touch", "true", "wc", "xargs"),
    ]
)
