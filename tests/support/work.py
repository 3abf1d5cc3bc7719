"""A repository with agents' branches for the tests of integration, and gates that need no test runner."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mngr.system.git import Git
from mngr.system.process import Result
from mngr.tmr.branch.conflict import Conflict
from mngr.tmr.branch.gate import GateFailure, GateResult
from mngr.tmr.branch.integrated import Integrated
from mngr.tmr.branch.unit import Unit, VerifiedWork

Content = str | bytes | None | tuple[str, str]
DATE = "1700000000 +0100"
LINES = "".join(f"line {number}\n" for number in range(1, 41))
FILES: dict[str, Content] = {
    "src/app.py": LINES,
    "src/other.py": "other = 1\n",
    "tests/test_app.py": LINES,
    "README.md": "# App\n",
    "tutorial.sh": "app --help\n",
}


class CountingGit(Git):
    """git in an environment of its own, which remembers what it was asked to do."""

    def __init__(self, directory: str, env: Mapping[str, str]) -> None:
        super().__init__(directory, ["-C", directory], env, {})
        self.calls: list[str] = []

    def run(self, *words: str, **options: Any) -> Result:
        self.calls.append(" ".join(words))
        return super().run(*words, **options)


class Project:
    """A small project at its base commit. `work` makes what an agent would have left."""

    def __init__(self, files: Mapping[str, Content], object_format: str = "sha1") -> None:
        self.root = Path(tempfile.mkdtemp(prefix="mngr-t-"))
        self.repo = self.root / "repo"
        self.repo.mkdir()
        who = {"NAME": "Person", "EMAIL": "person@example.com", "DATE": DATE}
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.env |= {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in who.items()}
        self.env |= {"HOME": str(self.root), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        self.run("init", "-q", "-b", "main", f"--object-format={object_format}")
        own = {"HOME": str(self.root), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        self.git = CountingGit(str(self.repo), own)
        self.base = self.commit(files, parent="")
        self.run("update-ref", "refs/heads/main", self.base)
        self.run("reset", "-q", "--hard")

    def close(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, *words: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self.repo,
            env={**self.env, **(env or {})},
            input=input,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, f"git {words}: {done.stderr.decode()}"
        return done.stdout.decode(errors="surrogateescape").removesuffix("\n")

    def blob(self, data: str | bytes) -> str:
        return self.run("hash-object", "-w", "--stdin", input=data.encode() if isinstance(data, str) else data)

    def commit(self, files: Mapping[str, Content], parent: str | None = None, author: str = "Person") -> str:
        """A commit made with an index of its own. A tuple is a mode and the content, None takes a file away."""
        parent = self.base if parent is None else parent
        env = {"GIT_INDEX_FILE": str(self.root / "index"), "GIT_AUTHOR_NAME": author}
        (self.root / "index").unlink(missing_ok=True)
        if parent:
            self.run("read-tree", parent, env=env)
        gone, come = [], []
        for path, content in files.items():
            if content is None:
                gone.append(f"0 {'0' * 40}\t{path}\0")
                continue
            mode, data = content if isinstance(content, tuple) else ("100644", content)
            oid = data if mode == "160000" else self.blob(data)
            come.append(f"{mode} {oid!s}\t{path}\0")
        lines = "".join(gone + come).encode(errors="surrogateescape")
        self.run("update-index", "-z", "--index-info", input=lines, env=env)
        parents = ["-p", parent] if parent else []
        return self.run("commit-tree", self.run("write-tree", env=env), *parents, "-m", "work", env=env)

    def work(
        self,
        name: str,
        files: Mapping[str, Content],
        *,
        importance: int | None = None,
        effect: tuple[str, ...] | None = None,
        alone: bool | None = None,
        summary: str = "",
    ) -> VerifiedWork:
        tip = self.commit(files, author=f"Agent {name}")
        task = f"tests/test_{name}.py::test_{name}"
        return VerifiedWork(task, name, f"r1-{name}-1", tip, importance, effect, summary, alone)

    def show(self, commit: str, path: str) -> str:
        return self.run("show", f"{commit}:{path}")

    def paths(self, commit: str) -> list[str]:
        return self.run("ls-tree", "-r", "-z", "--name-only", commit).split("\0")[:-1]

    def state(self) -> tuple[str, ...]:
        """What belongs to the user: HEAD, refs outside ours, settings, index, status."""
        refs = self.run("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/main", "refs/tags")
        git = self.repo / ".git"
        parts = [(git / "HEAD").read_text(), (git / "config").read_text(), self.run("ls-files", "-s")]
        return (*parts, refs, self.run("status", "--porcelain", "--ignored"))


class TextGate:
    """Red when a rule over the files of a commit says so. Knows nothing about tests, but names its rules as such."""

    def __init__(self, project: Project, rules: Mapping[str, Callable[[Callable[[str], str]], bool]]) -> None:
        self.project = project
        self.rules = rules
        self.asked: list[tuple[str, tuple[str, ...], bool, tuple[str, ...]]] = []

    def check(
        self, commit: str, units: tuple[Unit, ...], *, final: bool = False, focus: tuple[str, ...] = ()
    ) -> GateResult:
        self.asked.append((commit, tuple(unit.slug for unit in units), final, focus))
        there = set(self.project.paths(commit))

        def read(path: str) -> str:
            return self.project.show(commit, path) if path in there else ""

        wanted = {name: rule for name, rule in self.rules.items() if not focus or name in focus}
        failures = tuple(GateFailure(name, f"{name} says no") for name, rule in wanted.items() if not rule(read))
        return GateResult(not failures, failures)


class Answers:
    """A resolver that gives prepared content for the paths of a conflict, for all or by slug; None has no answer."""

    def __init__(self, project: Project, content: Mapping[str, Content] | None, **more: Mapping[str, Content]) -> None:
        self.project = project
        self.content = content
        self.more = more
        self.conflicts: list[Conflict] = []
        self.rounds: list[list[str]] = []

    def resolve(self, conflicts: Sequence[Conflict]) -> list[str | None]:
        self.conflicts += conflicts
        self.rounds.append([conflict.unit.slug for conflict in conflicts])
        return [self._answer(conflict) for conflict in conflicts]

    def _answer(self, conflict: Conflict) -> str | None:
        content = self.more.get(conflict.unit.slug, self.content)
        if content is None:
            return None
        commit = self.project.commit(content, parent=conflict.tip)
        return self.project.run("rev-parse", f"{commit}^{{tree}}")


def edited(number: int, text: str) -> str:
    return LINES.replace(f"line {number}\n", f"{text}\n")


def trailers(project: Project, commit: str) -> list[tuple[str, str]]:
    lines = project.run("log", "-1", "--format=%(trailers:only,unfold)", commit).splitlines()
    return [(line.split(": ", 1)[0], line.split(": ", 1)[1]) for line in lines if line]


def summary(done: Integrated) -> list[tuple[str, tuple[str, ...]]]:
    return [(commit.kind.value, commit.slugs) for commit in done.commits]
