"""One run of `mngr tmr` over a project of an odd shape."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from typing import Any

from tests.support.odd_projects import OddProject
from tests.support.tmr import OUTCOME
from tests.support.user import User

_LIBRARY = "def four():\n    return 4\n"
_ALLOWED = ("-c", "protocol.file.allow=always")


class OddRun:
    """A repository of this shape in the user's, and its agents."""

    def __init__(self, user: User, project: OddProject) -> None:
        self.user, self.project = user, project
        self.repo = user.repo
        plain = f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider"
        self.words = {"plain": plain, "python": shlex.quote(sys.executable)}
        if project.world == "sha256":
            shutil.rmtree(f"{self.repo}/.git")
            user.git("init", "-q", "--object-format=sha256", "-b", "main")
        self.write(project.product, project.source)
        if project.text:
            self.write(project.tests, project.text)
        self.write(".gitignore", "__pycache__/\n.pytest_cache/\n*.so\n/calc\n*.egg-info/\n/.venv/\n")
        self.write(".mngr/settings.toml", self.settings())
        for path, text in project.files.items():
            self.write(path, text)
        self.commit()
        getattr(self, f"_{project.world}", lambda: None)()
        user.trust()
        self.scripts = user.root / "scripts"
        self.scripts.mkdir()
        for test, text in self.agents().items():
            (self.scripts / f"{test}.script").write_text(text)

    def settings(self) -> str:
        settings = {
            "test_command": self.words["plain"],
            "env.PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "env.PYTHONPATH": self.project.path,
            **self.project.settings,
        }
        lines = [
            f"{key} = {value if value.startswith('[') else json.dumps(value.format(**self.words))}"
            for key, value in settings.items()
        ]
        return "\n".join(["[tmr]", "baseline_repeats = 1", "max_jobs = 2", *lines]) + "\n"

    def agents(self) -> dict[str, str]:
        """The scripts, by the last part of the id of the test."""
        project = self.project
        unchanged = "wait\n" + OUTCOME.format(status="done", changes="[]", summary="good as it is")
        scripts = {project.named.format("z_guard"): unchanged}
        for name, (place, old, new) in project.edits.items():
            path = place.format(product=project.product, tests=project.tests)
            kind = "test" if name == "word" else "implementation"
            change = f'[{{"kind": "{kind}", "commit": "{{head}}", "summary": "{name}", "importance": 2}}]'
            claim = OUTCOME.format(status="done", changes=change, summary=name)
            edit = f"wait\nreplace {path} <<END\n{old}\n====\n{new}\nEND\ncommit Work on {name}\n"
            scripts[project.named.format(name)] = edit + claim
        return scripts

    def _submodules(self) -> None:
        library = self.user.root / "library"
        library.mkdir()
        self.user.git("init", "-q", "-b", "main", cwd=library)
        (library / "library.py").write_text(_LIBRARY)
        self.user.git("add", "-A", cwd=library)
        self.user.git("commit", "-q", "-m", "library", cwd=library)
        self.user.git(*_ALLOWED, "submodule", "--quiet", "add", str(library), "vendor/lib")
        self.commit()
        library.rename(f"{library}.gone")

    def _clone(self, *words: str) -> None:
        self.write("more", "one more commit\n")
        self.commit()
        whole = self.user.root / "whole"
        subprocess.run(["mv", str(self.repo), str(whole)], check=True)
        self.user.git("config", "uploadpack.allowFilter", "true", cwd=whole)
        clone = ["git", "clone", "-q", *words, f"file://{whole}", str(self.repo)]
        subprocess.run(clone, check=True, env=self.user.env)

    def _shallow(self) -> None:
        self._clone("--depth=1")

    def _partial(self) -> None:
        self._clone("--filter=blob:none")

    def _worktree(self) -> None:
        whole = self.user.root / "whole"
        subprocess.run(["mv", str(self.repo), str(whole)], check=True)
        self.user.git("worktree", "add", "-q", "-b", "work", str(self.repo), cwd=whole)

    def write(self, path: str, text: str) -> None:
        place = self.user.repo / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def commit(self) -> None:
        self.user.git("add", "-A")
        self.user.git("commit", "-q", "-m", "an odd project")

    def tmr(self, *more: str) -> dict[str, Any]:
        words = ("tmr", "--name", "r1", "--type", "scripted", "--timeout", "300s", "--max-agents", "4")
        options = ("--integrator", "none", "--no-record", "--format", "json")
        script = f"{self.scripts}/{{name}}.script"
        found: dict[str, Any] = self.user.mngr(*words, *options, *more, "--", script, timeout=300).failed(3).json
        return found
