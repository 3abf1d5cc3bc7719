"""Which versions of agent programs are refused, with programs that are a line of shell."""

import json
import os
from pathlib import Path

import pytest

from mngr.actions.doctor import judge
from mngr.errors import MngrError
from mngr.programs import versions
from mngr.programs.driver import AgentProgram
from mngr.system.state_dir import FORMAT, FORMAT_FILE
from mngr.system.waiting import wait_until

PROGRAM = AgentProgram(
    "acme", "npm install -g acme", oldest="1.9.0", tried="2.1.325", broken={"2.0.7": "it eats prompts"}
)


@pytest.fixture
def host_dir(tmp_path: Path) -> str:
    place = tmp_path / "host"
    place.mkdir()
    (place / FORMAT_FILE).write_text(FORMAT)
    return str(place)


def acme(tmp_path: Path, version: str, more: str = "") -> str:
    """The program; every time it runs is a line in `ran`."""
    path = tmp_path / "acme"
    draft = tmp_path / "acme.draft"
    draft.write_text(f"#!/bin/sh\necho x >> {tmp_path}/ran\n{more}\necho '{version}'\n")
    draft.chmod(0o755)
    draft.replace(path)
    return str(path)


def runs(tmp_path: Path) -> int:
    path = tmp_path / "ran"
    return len(path.read_text().splitlines()) if path.exists() else 0


def refused(path: str, host_dir: str) -> MngrError:
    with pytest.raises(MngrError) as caught:
        versions.check(PROGRAM, path, host_dir)
    return caught.value


@pytest.mark.parametrize("said", ["1.8.99", "acme-cli 1.8.12 (build 7)", "v0.99.0", "1.8"])
def test_one_too_old_is_refused_with_both_versions_and_how_to_install(tmp_path: Path, host_dir: str, said: str) -> None:
    error = refused(acme(tmp_path, said), host_dir)
    assert "is too old" in error.message and "1.9.0" in error.message
    assert "npm install -g acme" in error.hint and "2.1.325" in error.hint


def test_one_that_is_known_not_to_work_is_refused_with_the_reason(tmp_path: Path, host_dir: str) -> None:
    error = refused(acme(tmp_path, "2.0.7"), host_dir)
    assert error.message == "`acme` 2.0.7 cannot be used: it eats prompts"
    assert "2.1.325" in error.hint and "npm install -g acme" in error.hint


@pytest.mark.parametrize("said", ["1.9.0", "1.10.0 (Acme)", "2.1.325", "99.0.1", "", "no version today", "7"])
def test_good_newer_and_unreadable_ones_are_let_through(tmp_path: Path, host_dir: str, said: str) -> None:
    versions.check(PROGRAM, acme(tmp_path, said), host_dir)


def test_one_that_fails_or_is_gone_is_let_through(tmp_path: Path, host_dir: str) -> None:
    versions.check(PROGRAM, acme(tmp_path, "1.0.0", "exit 1"), host_dir)
    versions.check(PROGRAM, str(tmp_path / "nowhere"), host_dir)
    assert not os.path.exists(f"{host_dir}/programs.json")


def test_the_version_is_asked_once_until_the_file_changes(tmp_path: Path, host_dir: str) -> None:
    for _ in range(3):
        versions.check(PROGRAM, acme_once(tmp_path), host_dir)
    assert runs(tmp_path) == 1
    old = os.stat(tmp_path / "acme")
    path = acme(tmp_path, "1.8.0")

    def changed() -> bool:
        """The clock of a file system ticks some hundred times a second."""
        os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
        return os.stat(path).st_ctime_ns != old.st_ctime_ns

    assert wait_until(changed, timeout=60)
    assert os.stat(path).st_size == old.st_size and os.stat(path).st_mtime_ns == old.st_mtime_ns
    refused(path, host_dir)
    refused(path, host_dir)
    assert runs(tmp_path) == 2
    assert len(json.loads(Path(f"{host_dir}/programs.json").read_text())) == 1


def acme_once(tmp_path: Path) -> str:
    path = tmp_path / "acme"
    return str(path) if path.exists() else acme(tmp_path, "2.0.0")


def test_a_link_is_the_file_that_it_leads_to(tmp_path: Path, host_dir: str) -> None:
    path = acme(tmp_path, "2.0.0")
    (tmp_path / "link").symlink_to(path)
    assert versions.known(str(tmp_path / "link"), host_dir) == versions.known(path, host_dir) == "2.0.0"
    assert runs(tmp_path) == 1


@pytest.mark.parametrize("content", ["", "{", "[1]", "null", '{"/nowhere": {}}', '{"/nowhere": 3}', "[" * 100_000])
def test_a_damaged_file_of_versions_is_written_anew(tmp_path: Path, host_dir: str, content: str) -> None:
    Path(f"{host_dir}/programs.json").write_text(content)
    path = acme(tmp_path, "2.0.0")
    assert versions.known(path, host_dir) == versions.known(path, host_dir) == "2.0.0"
    assert runs(tmp_path) == 1
    assert list(json.loads(Path(f"{host_dir}/programs.json").read_text())) == [os.path.realpath(path)]


def test_nothing_is_written_to_a_directory_that_is_not_ours(tmp_path: Path) -> None:
    path = acme(tmp_path, "2.0.0")
    place = tmp_path / "theirs"
    assert versions.known(path, str(place)) == "2.0.0" and not place.exists()
    place.mkdir()
    assert versions.known(path, str(place)) == "2.0.0" and list(place.iterdir()) == []


def test_what_doctor_says_about_a_program() -> None:
    def said(version: str, login: str = "with a key") -> tuple[str, str]:
        check = judge(PROGRAM, "/bin/acme", version, login)
        assert check.status in ("ok", "unknown") or check.hint
        return check.status, check.found

    assert said("2.1.325") == ("ok", "2.1.325; login: with a key")
    assert said("2.1.324")[0] == "ok"
    assert said("2.2.0") == ("note", "2.2.0, newer than 2.1.325, the last that was tried; login: with a key")
    assert said("1.8.9") == ("warn", "1.8.9 is too old: mngr needs 1.9.0 or later")
    assert said("2.0.7", "") == ("warn", "2.0.7 cannot be used: it eats prompts")
    assert said("2.1.0", "") == ("warn", "2.1.0, but you are not logged in")
    assert said("") == ("warn", "/bin/acme does not tell its version")
