"""`mngr create --transfer git-mirror` of a repository with submodules: the copy has them from the user's checkout, and
nothing is fetched."""

from pathlib import Path

import pytest

from tests.support.user import User

ALLOWED = ("-c", "protocol.file.allow=always")


def library(user: User, name: str) -> Path:
    place = user.root / name
    place.mkdir()
    user.git("init", "-q", "-b", "main", cwd=place)
    (place / f"{name}.txt").write_text(f"of {name}\n")
    user.git("add", "-A", cwd=place)
    user.git("commit", "-q", "-m", name, cwd=place)
    return place


@pytest.fixture
def origin(user: User) -> Path:
    """The repository of a user with a submodule in a submodule, whose first homes are gone."""
    inner, outer = library(user, "inner"), library(user, "outer")
    user.git(*ALLOWED, "submodule", "--quiet", "add", str(inner), "deep/in", cwd=outer)
    user.git("commit", "-q", "-m", "inner", cwd=outer)
    user.git(*ALLOWED, "submodule", "--quiet", "add", str(outer), "vendor/lib")
    user.git(*ALLOWED, "submodule", "--quiet", "update", "--init", "--recursive")
    user.git("commit", "-q", "-m", "submodules")
    for place in (inner, outer):
        place.rename(f"{place}.gone")
    return user.repo


def mirror(user: User, name: str, *more: str) -> Path:
    return Path(user.create(name, "--transfer", "git-mirror", *more)["work_dir"])


@pytest.mark.parametrize("more", [(), ("--sandbox",)])
def test_a_copy_has_the_submodules_of_the_checkout(user: User, origin: Path, more: tuple[str, ...]) -> None:
    work = mirror(user, "foo", *more)
    assert (work / "vendor/lib/deep/in/inner.txt").read_text() == "of inner\n"
    for path in ("vendor/lib", "vendor/lib/deep/in"):
        assert user.git("rev-parse", "HEAD", cwd=work / path) == user.git("rev-parse", "HEAD", cwd=origin / path)
        assert user.git("remote", cwd=work / path) == ""
    assert user.git("status", "--porcelain", cwd=work) == ""
    assert user.git("status", "--porcelain") == ""
    assert "would destroy foo" in user.mngr("destroy", "foo", "--dry-run").ok().stdout
    user.mngr("destroy", "foo").ok()


@pytest.mark.parametrize("path", ["vendor/lib", "vendor/lib/deep/in"])
def test_work_in_a_submodule_of_a_copy_is_not_lost(user: User, origin: Path, path: str) -> None:
    work = mirror(user, "foo")
    (work / path / "new.txt").write_text("PRECIOUS\n")
    user.git("add", "-A", cwd=work / path)
    user.git("commit", "-q", "-m", "new", cwd=work / path)
    assert "with work of its own" in user.mngr("destroy", "foo").failed().stderr
    user.mngr("destroy", "foo", "--force").ok()
    user.mngr("saved", "restore", "foo").ok()
    assert (user.work_dir("foo") / path / "new.txt").read_text() == "PRECIOUS\n"


def test_a_submodule_that_is_not_checked_out_is_named(user: User, origin: Path) -> None:
    user.git("submodule", "--quiet", "deinit", "-f", "deep/in", cwd=origin / "vendor/lib")
    words = ("create", "foo", "--no-connect", "--transfer", "git-mirror", "--command", "sleep 9")
    said = user.mngr(*words).failed().stderr
    assert "the submodule `vendor/lib/deep/in` is not checked out" in said and "submodule update --init" in said
    user.git("config", "submodule.deep/in.active", "false", cwd=origin / "vendor/lib")
    assert not list((mirror(user, "foo") / "vendor/lib/deep/in").iterdir())


def test_a_commit_that_the_checkout_does_not_have_is_named(user: User, origin: Path) -> None:
    user.git("update-index", "--cacheinfo", f"160000,{'1' * 40},vendor/lib")
    user.git("commit", "-q", "-m", "a commit from elsewhere")
    words = ("create", "foo", "--no-connect", "--transfer", "git-mirror", "--command", "sleep 9")
    assert "does not have commit 1111111111" in user.mngr(*words, "--exclude-unclean").failed().stderr
    assert (mirror(user, "foo", "--branch", "main~1:before") / "vendor/lib/outer.txt").exists()


def test_uncommitted_changes_in_a_submodule_are_not_left_out_in_silence(user: User, origin: Path) -> None:
    (origin / "vendor/lib/outer.txt").write_text("changed\n")
    words = ("create", "foo", "--no-connect", "--transfer", "git-mirror", "--command", "sleep 9")
    assert "uncommitted changes: `vendor/lib`" in user.mngr(*words).failed().stderr
    assert "`vendor/lib` is a submodule" in user.mngr(*words, "--include-unclean").failed().stderr
    user.git("commit", "-qam", "changed", cwd=origin / "vendor/lib")
    work = mirror(user, "foo", "--include-unclean")  # the new commit in it
    assert (work / "vendor/lib/outer.txt").read_text() == "changed\n"
    assert (mirror(user, "bar", "--exclude-unclean") / "vendor/lib/outer.txt").read_text() == "of outer\n"


def test_other_ways_to_copy_say_what_to_do(user: User, origin: Path) -> None:
    for transfer in ("git-worktree", "rsync"):
        ran = user.mngr("create", "foo", "--no-connect", "--transfer", transfer, "--command", "sleep 9").failed()
        assert "has submodules" in ran.stderr and "--transfer git-mirror" in ran.stderr
    user.create("foo", "--transfer", "none")


def test_a_list_that_includes_other_files_is_not_followed(user: User, origin: Path) -> None:
    """Nor is a path that leads out of the repository."""
    text = (origin / ".gitmodules").read_text()
    (user.root / "more").write_text('[submodule "x"]\n\tpath = vendor/x\n')
    lines = f'[include]\n\tpath = {user.root}/more\n[submodule "up"]\n\tpath = ../up\n'
    (origin / ".gitmodules").write_text(text + lines)
    user.git("commit", "-qam", "odd")
    work = mirror(user, "foo")
    assert (work / "vendor/lib/outer.txt").exists() and not (work / "vendor/x").exists()
