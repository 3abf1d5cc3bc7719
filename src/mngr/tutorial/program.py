"""A command-line program as its own help shows it: its verbs, its options, and a reference made of them.

Nothing of it is run but `--help`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from mngr import process
from mngr.errors import MngrError
from mngr.process import ProgramMissing, Result, find_program

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

    def help(self, words: Sequence[str] = ()) -> str:
        """What it says to `--help`; empty if these words are no verb of it. Raises if it is not there or shows none."""
        key = tuple(words)
        if key not in self._helps:
            self._helps[key] = self._ask(key)
        return self._helps[key]

    def verbs(self, words: Sequence[str] = ()) -> list[str]:
        """The verbs that its help lists and that have help of their own."""
        text = self.help(words)
        listed = [*_LISTED.findall(text), *(verb for group in _BRACED.findall(text) for verb in group.split(","))]
        found = [verb for verb in dict.fromkeys(listed) if verb != "help" and verb not in words]
        return [verb for verb in found[:_MOST_VERBS] if self.help((*words, verb))]

    def options(self, words: Sequence[str]) -> set[str]:
        """The options in the help of a verb and of all above it."""
        found: set[str] = set()
        for end in range(len(words) + 1):
            text = self.help(words[:end])
            found.update(_OPTION.findall(text))
            found.update(f"--{no}{name}" for name in _OPTIONAL_NO.findall(text) for no in ("", "no-"))
        return found

    def reference(self) -> str:
        """The help of the program and of its verbs, two deep; what is too long is cut, and says so."""
        parts: list[str] = []
        self._collect((), parts)
        text = "\n\n".join(parts)
        if len(text) > _LONGEST_REFERENCE:
            text = text[:_LONGEST_REFERENCE] + f"\n... cut: {len(text) - _LONGEST_REFERENCE} more characters\n"
        return text

    def _collect(self, words: tuple[str, ...], parts: list[str]) -> None:
        parts.append(f"$ {' '.join((self.name, *words))} --help\n{self.help(words).strip()}")
        if len(words) < _DEEPEST:
            for verb in self.verbs(words):
                self._collect((*words, verb), parts)

    def _ask(self, words: tuple[str, ...]) -> str:
        try:
            done = self._run([self.name, *words, "--help"], timeout=_SECONDS, cwd=self._cwd, env=self._env)
        except ProgramMissing:
            raise
        except MngrError:
            if not words:
                raise
            return ""
        text = (done.stdout.strip() and done.text) or done.stderr.decode(errors="replace")
        if not words:
            if not text.strip():
                raise MngrError(f"`{self.name} --help` says nothing", hint="give its reference: `--reference FILE`")
            return text
        above = self._helps.get(words[:-1], "")
        return text if done.ok and text.strip() and text.strip() != above.strip() else ""


def problem(program: ProgramHelp, argv: Sequence[str]) -> str:
    """What the program's help does not know of a command, or nothing."""
    verb: list[str] = []
    words = list(argv[1:])
    while words and not words[0].startswith("-"):
        known = program.verbs(verb)
        if words[0] not in known:
            if known and not program.help((*verb, words[0])) and _wants_a_verb(program.help(verb)):
                return f"`{' '.join((program.name, *verb))}` has no verb `{words[0]}`"
            break
        verb.append(words.pop(0))
    options = program.options(verb)
    for word in words:
        if word == "--":
            break
        name = word.partition("=")[0]
        if not name.startswith("-") or len(name) < 2 or re.fullmatch(r"-[\d.]+", name) or name in options:
            continue
        letters = [f"-{letter}" for letter in name[1:]]
        if name.startswith("--") or not (letters[0] in options or all(letter in options for letter in letters)):
            return f"`{' '.join((program.name, *verb))}` has no option `{name}`"
    return ""


_USAGE_VERB = re.compile(r"(?i)usage:.*?(?:\n\s*\n|\Z)", re.DOTALL)


def _wants_a_verb(text: str) -> bool:
    """Whether the usage has a place for a verb: `{a,b}`, COMMAND, VERB; a program may take names and verbs both."""
    usage = _USAGE_VERB.search(text)
    return bool(usage and re.search(r"(?i)\{[\w-]+,|\bcommand|\bverb|\bsubcommand|\baction", usage.group()))


def guess(commands: Sequence[str]) -> str | None:
    """The program that a script is about: the one that most of its commands begin with, of those on PATH."""
    counts: dict[str, int] = {}
    for command in commands:
        word = command.split(None, 1)[0]
        if re.fullmatch(r"[\w.+-]+", word) and word not in _EVERYDAY:
            counts[word] = counts.get(word, 0) + 1
    return next((word for word in sorted(counts, key=lambda word: -counts[word]) if find_program(word)), None)


_EVERYDAY = frozenset(
    [
        *("cd", "echo", "printf", "export", "set", "test", "true", "false", "rm", "mkdir", "cat", "ls", "cp", "mv"),
        *("touch", "grep", "sed", "awk", "sleep", "git", "sh", "bash", "if", "for", "while", "case", "until", "source"),
        *("eval", "exec", "unset", "read", "alias", "pwd", "head", "tail", "sort", "wc", "tee", "xargs", "find"),
        *("chmod", "ln", "env", "sudo", "command", "python", "python3", "pip", "curl"),
    ]
)
