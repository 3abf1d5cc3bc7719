"""Source mutants of the tests: which lines each of them runs, then the test with one change in one of these lines.

Changes the product's files in place, one at a time, and restores them.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import mngr_strength_attempts as attempts
import mngr_strength_live as live
import mngr_strength_source as source
import pytest
from mngr_strength_edits import result

# A test that starts no commands takes milliseconds, so that it can have many.
_INSIDE_MAX, _INSIDE_SECONDS = 100, 30.0
_BUILT_MAX = 8  # mutants for which the product has to be built
_SCRIPTS_MAX = 20
_SECONDS_MIN = 2.0
_BUILD_SECONDS = 300.0
_FILE_MAX = 400_000
_SPOILED = {
    ".py": "raise RuntimeError('spoiled by mngr')\n",
    ".sh": "exit 97\n",
    ".js": "throw new Error('spoiled by mngr');\n",
    ".rb": "raise 'spoiled by mngr'\n",
    ".pl": "die 'spoiled by mngr';\n",
}
_NOTE = """
def __mngr_ran__(line, known=set()):
    if line not in known:
        known.add(line)
        import os
        file = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, ({name!r} + chr(9) + str(line) + chr(10)).encode())
        os.close(file)
"""

Lines = dict[str, set[int]]


class Mutants:
    def __init__(
        self,
        row: Callable[..., None],
        *,
        top: str,
        product: Sequence[str],
        prepare: str,
        only: Collection[str] | None,
        most: int,
        seconds: float,
    ) -> None:
        self._row, self._top, self._prepare = row, top, prepare
        self._only, self._most, self._seconds = only, most, seconds
        self._texts = {name: text for name in product if (text := _text(os.path.join(top, name))) is not None}
        self._mutants = {name: found for name, text in self._texts.items() if (found := source.mutants(name, text))}
        self._live = live.Live([self._path(name) for name in self._mutants])
        self._python = {name for name in self._mutants if source.is_python(name, self._texts[name])}
        self._changes = 0

    def measure(self, plain: Mapping[pytest.Item, float], *, together: bool) -> None:
        """`plain` says how long each test takes. With `together`, lines that few of them run come first; otherwise what
        is tried with a test does not depend on the others, so that it can be compared with another version of it."""
        lines = self._lines(plain)
        runs = Counter((name, line) for found in lines.values() for name in found for line in found[name])
        runs = runs if together else Counter()
        for item, seconds in plain.items():
            began = time.monotonic()
            if item in lines:
                self._measure(item, seconds, lines[item], runs)
            self._row("measured", id=item.nodeid, seconds=round(time.monotonic() - began, 3))

    def _measure(self, item: pytest.Item, plain: float, lines: Lines, runs: Mapping[tuple[str, int], int]) -> None:
        chosen = self._chosen(lines, runs)
        if not self._mutants:
            self._row("mutants", id=item.nodeid, why="no file of the product is in a language that can be changed")
            return
        shown = {name: sorted(found) for name, found in lines.items()}
        self._row("lines", id=item.nodeid, lines=shown)
        self._row("mutants", id=item.nodeid, why="")
        left, deadline = self._count(item, plain), time.monotonic() + self._seconds
        unused = self._unused(item, plain)
        chosen = [(name, mutant) for name, mutant in chosen if name not in unused]
        noticed = False
        for name, mutant in chosen:
            id = self.id(name, mutant)
            if self._only is not None and id not in self._only:
                continue
            if not left or time.monotonic() > deadline:
                break
            outcome = self._attempt(item, name, mutant, plain)
            if outcome is not None:
                left -= 1
                noticed = noticed or result(outcome) == "killed"
                facts = {"file": name, "line": mutant.line, "text": f"{name}:{mutant.line}: {mutant.text}"}
                self._row("mutant", id=item.nodeid, mutant=id, result=result(outcome), **facts)
        if not noticed and self._only is None:
            self._spoil(item, plain)

    def _spoil(self, item: pytest.Item, plain: float) -> None:
        """Whether a test fails when nothing of the product works. Not known of one that has to be built, since a build
        that fails leaves the program of the last one."""
        texts = {name: _SPOILED[suffix] for name in self._mutants if (suffix := self._language(name)) in _SPOILED}
        if not self._prepare and len(texts) == len(self._mutants):
            with self._changed(texts):
                outcome = attempts.attempt(item, seconds=max(_SECONDS_MIN, 5 * plain), first=self._live.spoil)
            self._row("spoiled", id=item.nodeid, outcome=outcome)

    def _unused(self, item: pytest.Item, plain: float) -> set[str]:
        """Files in other languages that the test passes without: which lines of these it runs is not known."""
        scripts = [name for name in self._mutants if name not in self._python and self._language(name) in _SPOILED]
        if self._prepare or len(scripts) > _SCRIPTS_MAX:
            return set()
        found = set()
        for name in scripts:
            with self._changed({name: _SPOILED[self._language(name)]}):
                if attempts.attempt(item, seconds=max(_SECONDS_MIN, 5 * plain)) == "passed":
                    found.add(name)
        return found

    def _language(self, name: str) -> str:
        return ".py" if name in self._python else os.path.splitext(name)[1] or ".sh"

    def _count(self, item: pytest.Item, plain: float) -> int:
        if self._prepare:
            return min(self._most, _BUILT_MAX)
        if "e2e" in getattr(item, "fixturenames", ()) or plain * _INSIDE_MAX > _INSIDE_SECONDS:
            return self._most
        return max(self._most, _INSIDE_MAX)

    def id(self, name: str, mutant: source.Mutant) -> str:
        """The same as long as the file is the same."""
        return f"{name}:{mutant.line}:{mutant.start}-{mutant.end}:{mutant.new.strip()}"

    def _chosen(self, lines: Lines, runs: Mapping[tuple[str, int], int]) -> list[tuple[str, source.Mutant]]:
        """In the order in which they are tried: one of each line first, and lines that few tests run before others."""
        ranked = []
        for name, found in self._mutants.items():
            of_line: Counter[int] = Counter()
            for mutant in sorted(found, key=lambda one: _rank(self.id(name, one))):
                if name in self._python and mutant.line not in lines.get(name, ()):
                    continue
                key = (of_line[mutant.line], runs.get((name, mutant.line), 0), _rank(self.id(name, mutant)))
                of_line[mutant.line] += 1
                ranked.append((key, name, mutant))
        return [(name, mutant) for _, name, mutant in sorted(ranked, key=lambda one: one[0])]

    def _attempt(self, item: pytest.Item, name: str, mutant: source.Mutant, plain: float) -> str | None:
        """None for a mutant that is none: it does not compile, or is in code that this process ran long ago."""
        text = mutant.apply(self._texts[name])
        if name in self._python:
            try:
                compile(text, name, "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                return None
        with self._changed({name: text}):
            if self._prepare and not self._build():
                return None

            def first() -> None:
                self._live.swap(self._path(name), text, mutant.line)

            return attempts.attempt(item, seconds=max(_SECONDS_MIN, 5 * plain), first=first)

    def _lines(self, plain: Mapping[pytest.Item, float]) -> dict[pytest.Item, Lines]:
        """What each test runs, in this process and in others that run the product's files. Tests that do not pass while
        they are watched are left out."""
        found: dict[pytest.Item, Lines] = {}
        loaded = {path: name for name in self._mutants if (path := self._path(name)) in self._live.modules}
        with tempfile.TemporaryDirectory() as directory:
            log = os.path.join(directory, "lines")
            noting = {
                name: source.noted(self._texts[name], _NOTE.format(log=log, name=name))
                for name in self._python
                if self._path(name) not in loaded
            }
            with self._changed(noting):
                for item, seconds in plain.items():
                    outcome = attempts.attempt(
                        item, seconds=max(30.0, 20 * seconds), first=lambda: live.trace(loaded, _noter(log))
                    )
                    if outcome == "passed":
                        found[item] = self._with_constants(_read_log(log), loaded)
                    else:
                        self._row("mutants", id=item.nodeid, why=f"while its lines are noted it {outcome}")
                    if os.path.exists(log):
                        os.unlink(log)
        return found

    def _with_constants(self, lines: Lines, loaded: Mapping[str, str]) -> Lines:
        """Of modules that were loaded before the test: assignments outside of functions, if it runs any of the file."""
        for name in loaded.values():
            if lines.get(name):
                lines[name].update(live.constants(self._texts[name]))
        return lines

    @contextmanager
    def _changed(self, texts: Mapping[str, str]) -> Iterator[None]:
        """Files with other texts. Each gets a time of its own, so that no compiled file is taken for the new one."""
        self._changes += 1
        before = {name: os.stat(self._path(name)) for name in texts}
        try:
            for name, text in texts.items():
                self._write(name, text, before[name], 10 * self._changes)
            yield
        finally:
            for name, facts in before.items():
                self._write(name, self._texts[name], facts, 0)

    def _write(self, name: str, text: str, facts: os.stat_result, later: int) -> None:
        path = self._path(name)
        with open(path, "w", encoding="utf-8", newline="", errors="surrogateescape") as file:
            file.write(text)
        # A build must see that the file is new; an interpreter must not take it for the one it compiled.
        at = facts.st_mtime_ns if not later else max(facts.st_mtime_ns, time.time_ns()) + later * 1_000_000_000
        os.utime(path, ns=(facts.st_atime_ns, time.time_ns() if self._prepare else at))

    def _build(self) -> bool:
        done = subprocess.Popen(
            ["/bin/sh", "-c", self._prepare],
            cwd=self._top,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return done.wait(_BUILD_SECONDS) == 0
        except subprocess.TimeoutExpired:
            os.killpg(done.pid, signal.SIGKILL)
            done.wait()
            return False

    def _path(self, name: str) -> str:
        return os.path.realpath(os.path.join(self._top, name))


def _noter(log: str) -> Callable[[str, int], None]:
    known: set[tuple[str, int]] = set()

    def note(name: str, line: int) -> None:
        if (name, line) not in known:
            known.add((name, line))
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"{name}\t{line}\n")

    return note


def _read_log(log: str) -> Lines:
    found: Lines = {}
    if os.path.exists(log):
        with open(log, encoding="utf-8") as file:
            for text in file:
                name, _, line = text.rstrip("\n").rpartition("\t")
                if line.isdigit():
                    found.setdefault(name, set()).add(int(line))
    return found


def _text(path: str) -> str | None:
    """None for what is no file of text of a sensible size."""
    try:
        if os.path.islink(path) or os.path.getsize(path) > _FILE_MAX:
            return None
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def _rank(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
