"""`mngr doctor` on machines that lack something."""

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.support.user import MNGR, Ran, User, wait_for

NAMES = [
    "python", "tmux", "git", "rsync", "sandbox", "state directory", "disk", "settings",
    "agent records", "tmux server", "coding agents", "claude", "codex", "opencode",
]  # fmt: skip


def checks(ran: Ran) -> dict[str, dict[str, Any]]:
    """The checks by name. The document, the exit code and each other agree."""
    found = ran.json
    by_name = {check["name"]: check for check in found["checks"]}
    assert list(by_name) == NAMES
    assert found["ok"] == all(check["status"] != "fail" for check in by_name.values())
    assert ran.exit_code == (0 if found["ok"] else 1)
    assert all(check["hint"] for check in by_name.values() if check["status"] in ("warn", "fail"))
    return by_name


def doctor(user: User, **env: str) -> dict[str, dict[str, Any]]:
    return checks(user.mngr("doctor", "--format", "json", env=env))


def status(user: User, **env: str) -> dict[str, str]:
    return {name: check["status"] for name, check in doctor(user, **env).items()}


def path_with(user: User, *programs: str) -> Path:
    """A directory for PATH with links to these programs and no others."""
    place = user.root / "bin"
    place.mkdir()
    for program in programs:
        real = shutil.which(program)
        assert real, f"{program} is not on this machine"
        (place / program).symlink_to(real)
    return place


def program(place: Path, name: str, script: str) -> None:
    path = place / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def log_in(user: User) -> None:
    (user.home / ".codex").mkdir()
    (user.home / ".codex" / "auth.json").write_text('{"OPENAI_API_KEY": "sk-test"}')


def snapshot(root: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(root))] = (info.st_mode, info.st_mtime_ns, content)
    return found


def test_a_new_machine_is_ready_and_nothing_is_made_on_it(user: User) -> None:
    place = path_with(user, "tmux", "git", "rsync")
    log_in(user)
    program(place, "codex", "echo codex-cli 0.166.0")
    before = snapshot(user.home), snapshot(user.repo)
    found = doctor(user, PATH=str(place))
    absent = {"claude", "opencode"}
    assert {check["status"] for name, check in found.items() if name not in {*absent, "sandbox"}} == {"ok"}
    assert found["coding agents"]["found"] == "codex"
    assert "0.166.0" in found["codex"]["found"] and "API key" in found["codex"]["found"]
    for name in absent:
        assert found[name]["status"] == "note" and "npm install" in found[name]["hint"]
    assert not user.host_dir.exists()
    assert (snapshot(user.home), snapshot(user.repo)) == before


def test_every_check_is_one_aligned_line_with_its_hint_below(user: User) -> None:
    ran = user.mngr("doctor", env={"PATH": str(path_with(user, "tmux", "git"))}).ok()
    lines = ran.stdout.splitlines()
    column = lines[0].index("python")
    seen = [line[column:].split("  ")[0] for line in lines if line[:1].isalpha() and line[7:9] == "  "]
    assert seen == NAMES
    at = next(number for number, line in enumerate(lines) if line.startswith("warn     rsync "))
    assert lines[at + 1].strip().startswith("hint: needed for `--transfer rsync`")
    assert lines[at + 1].index("hint:") == lines[at].index("not installed")
    assert lines[-1] == "This machine is ready (2 warnings)"
    assert ran.stderr == ""


def test_without_tmux_it_fails_and_says_how_to_install_it(user: User) -> None:
    found = doctor(user, PATH=str(path_with(user, "git", "rsync")))
    assert found["tmux"]["status"] == "fail" and "apt-get install tmux" in found["tmux"]["hint"]
    assert found["tmux server"]["status"] == "unknown"
    assert found["git"]["status"] == "ok"


def test_without_git_or_any_program_it_still_answers(user: User) -> None:
    found = doctor(user, PATH=str(path_with(user)))
    assert {name for name, check in found.items() if check["status"] == "fail"} == {"tmux", "git"}
    assert found["rsync"]["status"] == found["coding agents"]["status"] == "warn"


def test_old_programs_are_named_with_their_version(user: User) -> None:
    place = path_with(user, "rsync")
    program(place, "tmux", 'echo "tmux 3.1c"')
    program(place, "git", 'echo "git version 2.34.1"')
    found = doctor(user, PATH=str(place))
    assert (found["tmux"]["status"], found["tmux"]["found"]) == ("fail", "3.1c is too old")
    assert found["git"]["status"] == "warn" and found["git"]["found"].startswith("2.34.1 works")


def test_a_program_that_cannot_say_its_version_fails_with_what_it_said(user: User) -> None:
    place = path_with(user, "git", "rsync")
    program(place, "tmux", "echo tmux: no such library >&2; exit 127")
    found = doctor(user, PATH=str(place))
    assert found["tmux"]["status"] == "fail" and "no such library" in found["tmux"]["found"]
    assert found["tmux server"]["status"] == "fail" and found["tmux server"]["items"] == ["tmux: no such library"]


def test_a_tmux_server_that_does_not_answer_fails_and_leaves_the_rest_unknown(user: User) -> None:
    user.create("foo")
    folder = user.tmux_dir / f"tmux-{os.getuid()}"
    real = int(user.tmux("display-message", "-p", "#{pid}").ok().stdout)
    user.tmux("kill-server")
    wait_for(lambda: not Path(f"/proc/{real}").exists(), "the real server to be gone")
    with socket.socket(socket.AF_UNIX) as server:
        (folder / "mngr").unlink(missing_ok=True)
        server.bind(str(folder / "mngr"))
        server.listen()  # it takes the connection and says nothing
        found = doctor(user, PATH=_with_impatient_tmux(user))
    assert found["tmux server"]["status"] == "fail"
    assert found["agent records"]["status"] == "ok"


def _with_impatient_tmux(user: User) -> str:
    """A PATH whose tmux gives up after a second, as a person would."""
    place = path_with(user, "git", "rsync", "timeout")
    program(place, "tmux", f'exec timeout -s KILL 1 {shutil.which("tmux")} "$@"')
    return str(place)


def test_a_socket_path_that_is_too_long_for_tmux_is_explained(user: User) -> None:
    long = user.root / ("x" * 120)
    long.mkdir()
    found = doctor(user, TMUX_TMPDIR=str(long))["tmux server"]
    assert found["status"] == "fail" and "shorter directory" in found["hint"]


def test_the_state_directory_of_another_program_fails_and_stays_as_it_is(user: User) -> None:
    user.host_dir.mkdir()
    (user.host_dir / "data.json").write_text("{}")
    before = snapshot(user.home)
    found = doctor(user)
    assert found["state directory"]["status"] == "fail" and "MNGR_HOST_DIR" in found["state directory"]["hint"]
    assert found["agent records"]["status"] == "unknown"
    assert snapshot(user.home) == before


def test_a_state_directory_that_cannot_be_one_fails(user: User) -> None:
    assert status(user, MNGR_HOST_DIR=str(user.repo / "README.md"))["state directory"] == "fail"
    assert status(user, MNGR_HOST_DIR=str(user.repo / "README.md" / "below"))["state directory"] == "fail"
    (user.root / "link").symlink_to(user.root / "nowhere")
    assert status(user, MNGR_HOST_DIR=str(user.root / "link"))["state directory"] == "fail"


def test_a_state_directory_open_to_others_is_a_warning_and_is_not_changed(user: User) -> None:
    user.create("foo")
    assert status(user)["state directory"] == "ok"
    user.host_dir.chmod(0o755)
    found = doctor(user)["state directory"]
    assert (found["status"], found["hint"]) == ("warn", f"`chmod 700 {user.host_dir}`")
    assert user.host_dir.stat().st_mode & 0o777 == 0o755


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_state_directory_that_cannot_be_written_fails(user: User) -> None:
    user.home.chmod(0o500)
    try:
        assert status(user)["state directory"] == "fail"
    finally:
        user.home.chmod(0o700)


def test_broken_settings_fail_with_the_way_to_mend_them(user: User) -> None:
    user.host_dir.mkdir(mode=0o700)
    settings = user.host_dir / "settings.toml"
    settings.write_text("[tmux\n")
    found = doctor(user)["settings"]
    assert found["status"] == "fail" and "not valid TOML" in found["found"]
    assert "mngr config edit --scope user" in found["hint"]
    settings.write_text("[commands.stop]\ngraceful = true\ntimout = '2m'\n")
    found = doctor(user)["settings"]
    assert found["status"] == "fail" and "`commands.stop.timout`" in found["found"]
    settings.write_text("[commands.stop]\ntimeout = '2m'\n")
    assert doctor(user)["settings"]["status"] == "ok"


def test_running_agents_are_no_reason_for_a_word(user: User) -> None:
    user.create("foo")
    user.create("copy", "--transfer", "git-mirror")
    user.create("short", command="true")
    user.create("failed", command="exit 3")
    user.create("rests")
    user.mngr("stop", "rests").ok()
    user.mngr("rename", "foo", "bar").ok()
    user.wait_for_state("short", "DONE")
    user.wait_for_state("failed", "FAILED")
    before = snapshot(user.host_dir)
    found = doctor(user)
    programs = {"coding agents", "claude", "codex", "opencode"}
    assert {name for name, check in found.items() if check["status"] not in ("ok",)} <= programs
    assert found["agent records"]["found"] == "5 readable"
    assert snapshot(user.host_dir) == before


def test_a_corrupt_record_is_named_and_left_as_it_is(user: User) -> None:
    agent = user.create("foo")
    record = user.host_dir / "agents" / agent["id"] / "agent.json"
    record.write_text("{")
    found = doctor(user)
    assert found["agent records"]["status"] == "fail"
    assert len(found["agent records"]["items"]) == 1 and str(record) in found["agent records"]["items"][0]
    assert record.read_text() == "{"


def test_lines_of_json_and_templates_give_one_check_each(user: User) -> None:
    lines = user.mngr("doctor", "--format", "jsonl").ok().stdout.splitlines()
    assert [json.loads(line)["name"] for line in lines] == NAMES
    assert user.mngr("doctor", "--format", "{name}={status}").ok().stdout.startswith("python=ok\ntmux=ok\n")


def test_it_works_in_a_directory_that_was_removed(user: User) -> None:
    ran = user.run(["sh", "-c", 'mkdir x && cd x && rmdir ../x && exec "$0" doctor --format json', MNGR])
    assert checks(ran)["tmux"]["status"] == "ok"


def test_agent_programs_that_cannot_be_used_are_warnings_with_both_versions(user: User) -> None:
    place = path_with(user, "tmux", "git", "rsync", "sleep")
    log_in(user)
    for script, said in (
        ("echo codex-cli 0.99.5", "0.99.5 is too old: mngr needs 0."),
        ("echo codex-cli; exit 0", "does not tell its version"),
        ("echo no such library >&2; exit 127", "does not tell its version"),
    ):
        program(place, "codex", script)
        found = doctor(user, PATH=str(place))["codex"]
        assert found["status"] == "warn" and said in found["found"], found
        assert "npm install -g @openai/codex" in found["hint"]
    program(place, "codex", "echo codex-cli 99.0.0")
    found = doctor(user, PATH=str(place))["codex"]
    assert found["status"] == "note" and "99.0.0, newer than 0." in found["found"]
    (user.home / ".codex" / "auth.json").unlink()
    found = doctor(user, PATH=str(place))["codex"]
    assert found["status"] == "warn" and "not logged in" in found["found"]
    assert not user.host_dir.exists()


def test_agent_programs_are_asked_at_the_same_time(user: User) -> None:
    """Each waits for the others, so that one after the other would never tell a version."""
    place = path_with(user, "tmux", "git", "rsync", "sleep", "touch")
    mark = user.root / "asked"
    mark.mkdir()
    for name in ("codex", "opencode"):
        others = f"{mark}/codex {mark}/opencode"
        wait = f"for at in {others}; do until [ -e $at ]; do sleep 0.01; done; done"
        program(place, name, f"touch {mark}/{name}; {wait}; echo 99.1.2")
    found = doctor(user, PATH=str(place))
    assert "99.1.2" in found["codex"]["found"] and "99.1.2" in found["opencode"]["found"]
