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
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import mngr_strength_attempts as attempts
import mngr_strength_live as live
import mngr_strength_source as source
import mngr_tmr_probe as probe
import pytest

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
Facts = dict[str, object]


class Mutants:
    def __init__(self, *, only: Collection[str] | None, most: int, seconds: float) -> None:
        self._only, self._most, self._seconds = only, most, seconds
        self._prepare = str(probe.JOB.get("prepare", ""))
        product: Sequence[str] = probe.JOB["product"]
        texts = {name: text for name in product if (text := _text(os.path.join(probe.TOP, name))) is not None}
        found = {name: source.Source(name, text) for name, text in texts.items()}
        self._sources = {name: one for name, one in found.items() if one.mutants}
        self._live = live.Live([self._path(name) for name in self._sources])
        self._changes = 0

    def measure(self, plain: Mapping[pytest.Item, float], *, together: bool) -> Iterator[tuple[pytest.Item, Facts]]:
        """What came of each test; `plain` says how long it takes. With `together`, lines that few of them run come
        first; otherwise what is tried with a test does not depend on the others, so that it can be compared with
        another version of it."""
        lines: dict[pytest.Item, Lines] = {}
        for item, why, found in self._lines(plain):
            if why:
                yield item, {"no_mutants": why}
            else:
                lines[item] = found
        runs = Counter((name, line) for found in lines.values() for name in found for line in found[name])
        for item, found in lines.items():
            yield item, self._measured(item, plain[item], found, runs if together else Counter())

    def _measured(self, item: pytest.Item, plain: float, lines: Lines, runs: Mapping[tuple[str, int], int]) -> Facts:
        if not self._sources:
            return {"no_mutants": "no file of the product is in a language that can be changed"}
        left, deadline = self._count(item, plain), time.monotonic() + self._seconds
        unused = self._unused(item, plain)
        tried = []
        for id, name, mutant in self._chosen(lines, runs):
            if name in unused or (self._only is not None and id not in self._only):
                continue
            if not left or time.monotonic() > deadline:
                break
            outcome = self._attempt(item, name, mutant, plain)
            if outcome is not None:
                left -= 1
                text = f"{name}:{mutant.line}: {mutant.text}"
                tried.append((id, text, attempts.result(outcome), name, mutant.line))
        facts: Facts = {"no_mutants": "", "mutants": tried, "lines": {name: sorted(lines[name]) for name in lines}}
        if self._only is None and not any(one[2] == "killed" for one in tried):
            facts["spoiled"] = self._spoiled(item, plain)
        return facts

    def _spoiled(self, item: pytest.Item, plain: float) -> str:
        """What a test does when nothing of the product works. Not known of one that has to be built, since a build
        that fails leaves the program of the last one."""
        texts = {name: _SPOILED[suffix] for name in self._sources if (suffix := self._language(name)) in _SPOILED}
        if self._prepare or len(texts) < len(self._sources):
            return ""
        with self._changed(texts):
            return attempts.attempt(item, seconds=max(_SECONDS_MIN, 5 * plain), first=self._live.spoil)

    def _unused(self, item: pytest.Item, plain: float) -> set[str]:
        """Files in other languages that the test passes without: which lines of these it runs is not known."""
        scripts = [name for name in self._sources if self._language(name) in {*_SPOILED} - {".py"}]
        found = set()
        for name in scripts if not self._prepare and len(scripts) <= _SCRIPTS_MAX else ():
            with self._changed({name: _SPOILED[self._language(name)]}):
                if attempts.attempt(item, seconds=max(_SECONDS_MIN, 5 * plain)) == "passed":
                    found.add(name)
        return found

    def _language(self, name: str) -> str:
        return ".py" if self._sources[name].is_python else os.path.splitext(name)[1] or ".sh"

    def _count(self, item: pytest.Item, plain: float) -> int:
        if self._prepare:
            return min(self._most, _BUILT_MAX)
        if "e2e" in getattr(item, "fixturenames", ()) or plain * _INSIDE_MAX > _INSIDE_SECONDS:
            return self._most
        return max(self._most, _INSIDE_MAX)

    def _chosen(self, lines: Lines, runs: Mapping[tuple[str, int], int]) -> list[tuple[str, str, source.Mutant]]:
        """With their ids, which are the same as long as the file is, in the order in which they are tried: one of each
        line first, and lines that few tests run before others."""
        ranked = []
        for name, found in self._sources.items():
            of_line: Counter[int] = Counter()
            ids = {f"{name}:{mutant.line}:{number}": mutant for number, mutant in enumerate(found.mutants)}
            for id in sorted(ids, key=_rank):
                line = ids[id].line
                if not found.is_python or line in lines.get(name, ()):
                    ranked.append(((of_line[line], runs.get((name, line), 0), _rank(id)), id, name))
                    of_line[line] += 1
        return [(id, name, self._sources[name].mutants[int(id.rpartition(":")[2])]) for _, id, name in sorted(ranked)]

    def _attempt(self, item: pytest.Item, name: str, mutant: source.Mutant, plain: float) -> str | None:
        """None for a mutant that is none: it does not compile, or cannot be built."""
        found, path = self._sources[name], self._path(name)

        def first() -> None:
            if path in self._live.modules:
                self._live.swap(path, found.tree)
                self._live.rebind(path, found.tree, mutant.line)

        with found.changed(mutant) as text:
            try:
                compile(found.tree, name, "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                return None
            with self._changed({name: text}):
                if self._prepare and not self._build():
                    return None
                return attempts.attempt(item, seconds=max(_SECONDS_MIN, 5 * plain), first=first)

    def _lines(self, plain: Mapping[pytest.Item, float]) -> Iterator[tuple[pytest.Item, str, Lines]]:
        """What each test runs, in this process and in others that run the product's files; or why that is not known.
        Of modules that were loaded before the test, assignments outside of functions count if it runs any of the
        file."""
        with tempfile.TemporaryDirectory() as directory:
            log = os.path.join(directory, "lines")
            python = {name: one for name, one in self._sources.items() if one.is_python}
            notes = {name: _NOTE.format(log=log, name=name) for name in python}
            trees = {name: source.noted(one.tree, notes[name]) for name, one in python.items()}
            loaded = {name: path for name in trees if (path := self._path(name)) in self._live.modules}

            def first() -> None:
                for name, path in loaded.items():
                    exec(notes[name], self._live.modules[path].__dict__)
                    self._live.swap(path, trees[name])

            with self._changed({name: source.unparsed(trees[name], one.text) for name, one in python.items()}):
                for item, seconds in plain.items():
                    outcome = attempts.attempt(item, seconds=max(30.0, 20 * seconds), first=first)
                    found = _read_log(log)
                    for name in loaded.keys() & found.keys():
                        found[name].update(live.constants(python[name].tree))
                    yield item, "" if outcome == "passed" else f"while its lines are noted it {outcome}", found

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
                self._write(name, self._sources[name].text, facts, 0)

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
            cwd=probe.TOP,
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
        return os.path.realpath(os.path.join(probe.TOP, name))


def _read_log(log: str) -> Lines:
    """The lines that were noted, which are forgotten then."""
    found: Lines = {}
    if os.path.exists(log):
        with open(log, encoding="utf-8") as file:
            for text in file:
                name, _, line = text.rstrip("\n").rpartition("\t")
                if line.isdigit():
                    found.setdefault(name, set()).add(int(line))
        os.unlink(log)
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
