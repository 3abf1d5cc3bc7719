"""What `[tmr] prepare` made, kept for further copies: when it is, for which commits, and that it is the same there."""

import os
import subprocess
from pathlib import Path

import pytest

from mngr.system.git import Git
from mngr.tmr.measure import prepared
from mngr.tmr.measure.measurement import Measurement, Shell, SuiteEnvironment, script
from mngr.tmr.measure.prepared import PreparedFiles

FILES = {
    "requirements.txt": "one\n",
    "src/shop.py": "A = 1\n",
    "tests/test_a.py": "def test_a():\n    pass\n",
    "tests/conftest.py": "",
    "run.sh": "true\n",
}
DEPS = "mkdir -p .deps/empty; cat requirements.txt >.deps/ready; ln -sf ready .deps/link"


class Copy:
    """A checkout at a path that is used again and again, and the script of a job run there."""

    def __init__(self, root: Path) -> None:
        self.root, self.top = root, root / "copy"
        self.origin = root / "origin"
        self.origin.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write(FILES)
        self.base = self.commit()

    def git(self, *words: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(["git", *identity, *words], cwd=self.origin, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            (self.origin / path).parent.mkdir(parents=True, exist_ok=True)
            (self.origin / path).write_text(text)

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")
        return self.git("rev-parse", "HEAD")

    def changed(self, *words: str) -> str:
        """A commit on the base, after a shell command."""
        self.git("checkout", "-q", "-B", "work", self.base)
        subprocess.run(["sh", "-c", *words], cwd=self.origin, check=True)
        return self.commit()

    def run(
        self, prepare: str, then: str = "true", *, at: str = "", given: PreparedFiles | None = None, keeps: bool = False
    ) -> Path:
        """Make the copy anew at a commit and run a job there; the directory of its results."""
        subprocess.run(["rm", "-rf", str(self.top)], check=True)
        subprocess.run(["git", "clone", "-q", "-n", str(self.origin), str(self.top)], check=True)
        subprocess.run(["git", "-C", str(self.top), "checkout", "-q", at or self.base], check=True)
        job = self.top / ".mngr" / "task" / "job"
        job.mkdir(parents=True)
        out = self.root / f"out{len(list(self.root.glob('out*')))}"
        out.mkdir()
        wanted = Measurement("x", self.base, [Shell("then", then)])
        for name, data in script(SuiteEnvironment("true", prepare=prepare), wanted, given, keeps=keeps).items():
            (job / name).write_bytes(data.replace(b"kept_min=2", b"kept_min=0"))
        if given is not None:
            (job / prepared.ARCHIVE).write_bytes(Path(given.archive).read_bytes())
        env = {"PATH": os.environ["PATH"], "MNGR_ARTIFACTS_DIR": str(out)}
        subprocess.run(["sh", str(job / "job.sh")], cwd=self.top, env=env, check=True, timeout=60)
        return out

    def kept(self, prepare: str) -> PreparedFiles:
        out = self.run(prepare, keeps=True)
        found = prepared.read(str(out), self.base)
        assert found is not None, ((out / "prepared.not").read_text(), (out / "prepare.log").read_text())
        return found


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


SHOWN = "find . -path ./.git -prune -o -path ./.mngr/task -prune -o -printf '%p %y %m %l\\n' | sort; cat .deps/*"


def test_a_copy_that_is_given_the_files_is_the_same_as_one_that_is_prepared(copy: Copy) -> None:
    prepare = f"{DEPS}; pwd >.deps/where; echo changed >run.sh; echo in the home >$HOME/.conf"
    kept = copy.kept(prepare)
    assert kept.inputs is not None and {"requirements.txt", "run.sh"} <= kept.inputs
    assert not kept.inputs & {"src/shop.py", "tests/test_a.py", "tests/conftest.py"}
    then = f"{SHOWN}; cat $HOME/.conf; git status --short; [ src/shop.py -nt .deps/ready ] || echo older"
    fresh, given = copy.run(prepare, then), copy.run("false", then, given=kept)
    assert (given / "then.log").read_text() == (fresh / "then.log").read_text()
    assert "older" in (given / "then.log").read_text()
    assert "nothing that `prepare` reads is changed" in (given / "prepare.log").read_text()


CHANGES = {
    "the product": ("echo 'A = 2' >src/shop.py", True),
    "a test": ("echo >>tests/test_a.py", True),
    "the shared part of tests": ("echo >>tests/conftest.py", True),
    "a new test beside others": ("echo >tests/test_b.py", True),
    "a test that is gone": ("git rm -q tests/test_a.py", True),
    "what it reads": ("echo two >>requirements.txt", False),
    "a new file": ("echo >setup.cfg", False),
    "a new test where there is none": ("echo >src/test_b.py", False),
    "a file that is gone": ("git rm -q src/shop.py", False),
    "a name": ("git mv src/shop.py src/store.py", False),
    "a mode": ("chmod +x src/shop.py", False),
    "a link": ("rm src/shop.py; ln -s /etc/passwd src/shop.py", False),
    "a new link": ("ln -s /etc tests/test_b.py", False),
    "a way to check out": ("echo '* text' >.gitattributes", False),
}


def test_the_files_fit_the_commits_that_leave_all_that_is_read_as_it_is(copy: Copy) -> None:
    kept = copy.kept(DEPS)
    commits = {name: copy.changed(command) for name, (command, _) in CHANGES.items()}
    git = Git.of_user(str(copy.origin))
    assert {name: kept.fits(git, commit) for name, commit in commits.items()} == {
        name: fits for name, (_, fits) in CHANGES.items()
    }
    blind = kept._replace(inputs=None)  # the dates of access are not kept on this disk
    assert blind.fits(git, copy.base) and not any(blind.fits(git, commit) for commit in commits.values())


READS = {
    "cat": "cat src/shop.py >/dev/null",
    "cp": "cp src/shop.py .deps/shop.py",
    "tar": "tar -cf .deps/all.tar src",
    "python": "python3 -c \"import sys; sys.path[:0] = ['src']; import shop\"",
    "ln": "ln src/shop.py .deps/shop.py",
    "mv": "mv src/shop.py .deps/shop.py; cp .deps/shop.py src/shop.py",
    "append": "echo >>src/shop.py",
    "sh": ". ./src/shop.py",
}


@pytest.mark.parametrize("how", READS)
def test_a_file_that_is_used_in_any_way_is_an_input(copy: Copy, how: str) -> None:
    kept = copy.kept(f"{DEPS}; {READS[how]} || :")
    assert kept.inputs is not None and "src/shop.py" in kept.inputs
    assert not kept.fits(Git.of_user(str(copy.origin)), copy.changed("echo 'A = 2' >src/shop.py"))


def test_git_tells_what_it_knows_without_reading_the_code(copy: Copy) -> None:
    kept = copy.kept(f"{DEPS}; git status --short; git describe --always --dirty >.deps/version")
    assert kept.inputs is not None and "src/shop.py" not in kept.inputs


UNSEEN = {
    "archive": "git archive HEAD src | tar -x -C .deps",
    "another repository": "git clone -q . .deps/copy",
    "an environment of its own": 'env -i PATH="$PATH" git show HEAD:src/shop.py >.deps/shop.py',
}


@pytest.mark.parametrize("how", UNSEEN)
def test_code_that_git_gave_is_an_input_that_nobody_saw(copy: Copy, how: str) -> None:
    assert copy.kept(f"{DEPS}; {UNSEEN[how]}").inputs is None


NOT_KEPT = {
    "it makes no files in its copy": "true",
    "it leaves a process": f"{DEPS}; setsid sleep 5 >/dev/null 2>&1 &",
    "it deletes files of the code": f"{DEPS}; rm src/shop.py",
    "it changes the repository": f"{DEPS}; echo >.git/hooks/post-checkout",
}


@pytest.mark.parametrize("why", NOT_KEPT)
def test_what_a_copy_of_the_files_would_lack_is_not_kept(copy: Copy, why: str) -> None:
    out = copy.run(NOT_KEPT[why], keeps=True)
    assert (out / "prepared.not").read_text().strip() == why
    assert prepared.read(str(out), copy.base) is None


def test_a_prepare_that_writes_beside_a_python_or_to_the_path_is_not_kept(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    (copy.root / "env" / "bin").mkdir(parents=True)
    packages = copy.root / "env" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{copy.root}/env/bin:{os.environ['PATH']}")
    for place in (copy.root / "env" / "bin", packages):
        out = copy.run(f"{DEPS}; pwd >{place}/editable.pth", keeps=True)
        assert "editable.pth" in (out / "prepared.not").read_text()


def test_files_that_somebody_changed_are_not_used(copy: Copy) -> None:
    kept = copy.kept(DEPS)
    Path(kept.archive).write_bytes(b"something else")
    out = copy.run(f"{DEPS}; echo prepared again", SHOWN, given=kept)
    assert "prepared again" in (out / "prepare.log").read_text()


def test_a_prepare_that_fails_keeps_nothing(copy: Copy) -> None:
    out = copy.run(f"{DEPS}; false", keeps=True)
    assert prepared.read(str(out), copy.base) is None and (out / "prepare.exit").read_text() == "1\n"
