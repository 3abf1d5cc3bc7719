"""A copy of this very project, with a scripted agent for each of its session tests: what `mngr tmr` works on for us."""

import json
import re
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.tmr import NO_CHANGE, OUTCOME
from tests.support.user import User

ROOT = Path(__file__).parents[2]
_NOT_COPIED = shutil.ignore_patterns(".*_cache", ".hypothesis", "__pycache__")
_TEST = re.compile(r"^def (test_\w+)\(.*\) -> None:$", re.MULTILINE)


class Ourselves:
    """The copy is committed, as it is here and now. Tests named `improved`, or each `every`-th, get an assertion;
    the others are left alone."""

    def __init__(self, user: User, improved: Iterable[str] = (), *, every: int = 0) -> None:
        self.user = user
        self.repo = user.root / "mngr"
        self.scripts = user.root / "scripts"
        self.scripts.mkdir()
        shutil.copytree(ROOT, self.repo, symlinks=True, ignore=_not_copied)
        (self.repo / ".mngr").mkdir()
        shutil.copy(ROOT / ".mngr" / "settings.toml", self.repo / ".mngr")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "mngr"]):
            user.git(*words, cwd=self.repo)
        user.trust(self.repo)
        found = [
            (path.relative_to(self.repo), name)
            for path in sorted((self.repo / "tests" / "sessions").glob("test_*.py"))
            for name in _TEST.findall(path.read_text())
        ]
        self.improved = {*improved, *(name for _, name in found[::every])} if every else set(improved)
        for path, name in found:
            script = _improvement(path, name) if name in self.improved else NO_CHANGE
            (self.scripts / f"{name}.script").write_text(script)

    def from_inside_an_agent(self, *words: str, host_dir: Path | None = None, timeout: float) -> dict[str, Any]:
        """Let an agent called `outer` run `mngr tmr` in the copy; returns what it printed as JSON."""
        result = self.user.root / "result.json"
        self.user.trust(self.repo, host_dir=host_dir)
        line = ["mngr", "tmr", *words, "--type", "scripted", "--integrator", "none", "--no-record"]
        line += ["--format", "json", "--", f"{self.scripts}/{{name}}.script"]
        own = f"MNGR_HOST_DIR={shlex.quote(str(host_dir))} " if host_dir else ""
        command = f"{own}{shlex.join(line)} >{shlex.quote(str(result))}"
        self.user.mngr("create", "outer", "--no-connect", "--command", command, cwd=self.repo).ok()
        waited = self.user.mngr("wait", "outer", "DONE", "--timeout", f"{timeout:g}", timeout=timeout + 60)
        screen = self.user.mngr("capture", "outer", "--history", "200").stdout
        assert waited.exit_code == 0, f"{waited}\n{screen}\n{result.read_text()}"
        found: dict[str, Any] = json.loads(result.read_text())
        return found


def _not_copied(directory: str, names: list[str]) -> set[str]:
    at_top = {".git", ".mngr", ".programs", ".venv", "dist"} if Path(directory) == ROOT else set()
    return _NOT_COPIED(directory, names) | at_top


def _improvement(path: Path, name: str) -> str:
    claim = [{"kind": "test", "commit": "{head}", "summary": f"{name} looks closer", "importance": 1}]
    # A command more, whose answer is looked at: that is noticed.
    looks = 'expect(e2e.run("mngr --version").stdout).to_contain("mngr")'
    insertion = f"sed -i 's|^def {name}(.*$|&\\n    {looks}|' {path}"
    return f"wait\nrun! {insertion}\ncommit Look closer\n" + OUTCOME.format(
        status="done", changes=json.dumps(claim), summary="an assertion more"
    )
