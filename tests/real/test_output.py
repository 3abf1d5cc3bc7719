"""What scripts rely on: formats, filters, fields, exit codes, and names that go from one verb to the next."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.test_destroy import commit_in
from tests.support.terminals import on_a_terminal
from tests.support.user import User

AGENT_FIELDS = {
    *("id", "name", "type", "command", "work_dir", "initial_branch", "create_time", "start_time", "runtime_seconds"),
    *("idle_seconds", "state", "pid", "labels", "project", "host", "state_reason", "state_since", "exit_code"),
}


def make_three(user: User) -> User:
    """Three agents: one runs for the backend, one runs for nobody, one has failed."""
    user.create("api", "--label", "team=backend", "--project", "shop", "--transfer", "none")
    user.create("web", "--transfer", "none")
    user.create("bad", "--transfer", "none", command="exit 3")
    user.wait_for_state("bad", "FAILED")
    return user


@pytest.fixture
def three(user: User) -> User:
    return make_three(user)


@pytest.fixture(scope="module")
def looked_at() -> Iterator[User]:
    """The same three, for tests that only look at them."""
    user = User()
    try:
        yield make_three(user)
    finally:
        user.close()


def names(user: User, *words: str) -> list[str]:
    return user.mngr("list", *words, "--format", "{name}").ok().stdout.split()


def test_an_empty_listing_says_so(user: User) -> None:
    assert user.mngr("list").ok().stdout == "No agents found\n"
    assert user.mngr("list", "--format", "json").ok().json == {"agents": [], "errors": []}
    assert user.mngr("list", "--format", "jsonl").ok().stdout == ""
    assert user.mngr("list", "--format", "{name}").ok().stdout == ""
    assert not user.host_dir.exists()


def test_json_has_the_documented_keys(looked_at: User) -> None:
    agents = looked_at.mngr("list", "--format", "json").ok().json["agents"]
    for agent in agents:
        assert set(agent) >= AGENT_FIELDS
        assert {"id", "name", "provider_name", "state"} <= set(agent["host"])
    lines = looked_at.mngr("list", "--format", "jsonl").ok().stdout.splitlines()
    assert [set(json.loads(line)) for line in lines] == [set(agent) for agent in agents]


def test_a_template_is_a_line_for_each(looked_at: User) -> None:
    shown = looked_at.mngr("list", "--format", r"{name}\t{host.name}\t{labels.team}{{}}", "--sort", "name").ok().stdout
    assert shown == "api\tlocal\tbackend{}\nbad\tlocal\t{}\nweb\tlocal\t{}\n"
    ran = looked_at.mngr("list", "--format", "{nam}").failed(2)
    assert "`nam`" in ran.stderr and "`name`" in ran.stderr
    assert "format" in looked_at.mngr("list", "--format", "yaml").failed(2).stderr


def test_a_table_has_the_fields_that_are_asked_for(looked_at: User) -> None:
    lines = looked_at.mngr("list", "--fields", "name,state,host.name", "--sort", "name").ok().stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["NAME", "STATE", "HOST.NAME"],
        ["api", "RUNNING", "local"],
        ["bad", "FAILED", "local"],
        ["web", "RUNNING", "local"],
    ]
    assert "`state`" in looked_at.mngr("list", "--fields", "name,stat").failed(2).stderr


def test_sort(looked_at: User) -> None:
    assert names(looked_at, "--sort", "create_time desc") == ["bad", "web", "api"]
    assert names(looked_at, "--sort", "create_time") == ["api", "web", "bad"]
    assert names(looked_at, "--sort", "exit_code")[0] == "bad"
    assert names(looked_at) == ["bad", "api", "web"]  # who needs me comes first
    assert names(looked_at, "--sort", "name desc", "--limit", "2") == ["web", "bad"]
    looked_at.mngr("list", "--sort", "name sideways").failed(2)
    assert "`name`" in looked_at.mngr("list", "--sort", "nane").failed(2).stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--running",), ["api", "web"]),
        (("--failed",), ["bad"]),
        (("--failed", "--running"), ["api", "bad", "web"]),
        (("--active",), ["api", "web"]),
        (("--stopped",), []),
        (("--label", "team"), ["api"]),
        (("--label", "team=backend"), ["api"]),
        (("--label", "team=other"), []),
        (("--project", "shop"), ["api"]),
        (("--project", "shop", "--project", "repo"), ["api", "bad", "web"]),
        (("--provider", "local"), ["api", "bad", "web"]),
        (("web", "api"), ["api", "web"]),
        (("--include", 'labels.team == "backend"'), ["api"]),
        (("--exclude", 'labels.team == "backend"'), ["bad", "web"]),
        (("--include", 'host.provider == "local" && state == "FAILED"'), ["bad"]),
        (("--include", 'host.provider == "modal"'), []),
        (("--include", "idle_seconds < 600.0"), ["api", "web"]),
        (("--include", "idle_seconds > 600"), []),
        (("--include", "exit_code == 3"), ["bad"]),
        (("--include", 'type == "command"', "--include", 'name.startsWith("w")'), ["web"]),
        (("--include", 'name in ["api", "bad"]'), ["api", "bad"]),
        (("--include", 'name.matches("^.[ep]")'), ["api", "web"]),
        (("--include", "has(labels.team)"), ["api"]),
    ],
)
def test_filters(looked_at: User, words: tuple[str, ...], expected: list[str]) -> None:
    assert sorted(names(looked_at, *words)) == expected


@pytest.mark.parametrize("agents", [True, False])
def test_bad_filters_are_usage_errors_with_or_without_agents(user: User, agents: bool) -> None:
    if agents:
        user.create("foo", "--transfer", "none")
    ran = user.mngr("list", "--include", 'stat == "RUNNING"').failed(2)
    assert "there is no field `stat` (position 1)" in ran.stderr and "the closest field is `state`" in ran.stderr
    assert "cannot be read" in user.mngr("stop", "--include", 'state == "').failed(2).stderr
    assert "yes-or-no" in user.mngr("list", "--exclude", "name").failed(2).stderr


def test_ids_go_from_list_to_other_verbs(three: User) -> None:
    ids = three.mngr("list", "--ids", "--running").ok().stdout
    assert len(ids.split()) == 2
    assert three.mngr("list", "-", "--format", "{name}", input=ids).ok().stdout.split() == ["api", "web"]
    three.mngr("destroy", "-", input=ids).ok()
    assert names(three) == ["bad"]
    three.mngr("destroy", "-", input="").ok()
    assert names(three) == ["bad"]


def test_verbs_report_each_target_in_json(three: User) -> None:
    rows: list[dict[str, Any]] = three.mngr("stop", "api", "web", "--format", "json").ok().json
    assert [(row["name"], row["ok"], row["stopped"]) for row in rows] == [("api", True, True), ("web", True, True)]
    lines = three.mngr("start", "api", "web", "--format", "jsonl").ok().stdout.splitlines()
    assert [json.loads(line)["started"] for line in lines] == [True, True]
    assert three.mngr("label", "api", "a=b", "--format", "json").ok().json[0]["labels"] == {"team": "backend", "a": "b"}
    assert three.mngr("rename", "api", "api2", "--format", "json").ok().json["name"] == "api2"
    assert three.mngr("stop", "web", "--format", "{name}:{stopped}").ok().stdout == "web:true\n"


def test_exec_that_streams_ends_at_its_timeout_with_all_that_it_started(user: User) -> None:
    user.create("foo")
    quick = user.mngr("exec", "foo", "--stream", "--timeout", "1h", "echo out; exit 3").failed()
    assert quick.stdout == "out\n"
    ran = user.mngr("exec", "foo", "--stream", "--timeout", "1s", "echo out; sleep 9996; echo never").failed(4)
    assert ran.stdout == "out\n"
    assert "did not end within 1 s" in ran.stderr
    commands = [Path(f"/proc/{pid}/cmdline") for pid in user.processes()]
    assert not [path for path in commands if path.exists() and b"9996" in path.read_bytes()]


def test_exec_reports_output_and_exit_codes(three: User) -> None:
    assert three.mngr("exec", "api", "echo out; echo err >&2").ok() == (0, "out\n", "err\n")
    ran = three.mngr("exec", "api", "exit 5").failed(1)
    assert "exit code 5" in ran.stderr
    results = three.mngr("exec", "api", "exit 5", "--format", "json").failed(1).json["results"]
    assert results == [{"agent": "api", "success": False, "exit_code": 5, "stdout": "", "stderr": ""}]
    three.mngr("exec", "--all", 'test "$MNGR_AGENT_NAME" != web').failed(3)
    three.mngr("exec", "--all", "false").failed(1)
    ran = three.mngr("exec", "--all", "echo $MNGR_AGENT_NAME", "--format", "json").ok()
    assert sorted(row["stdout"] for row in ran.json["results"]) == ["api\n", "bad\n", "web\n"]
    three.mngr("exec", "api", "sleep 9", "--timeout", "0.2s").failed(4)
    assert three.mngr("exec", "api", "--", "printf", "%s|", "a b", "$HOME").ok().stdout == "a b|$HOME|"
    assert three.mngr("exec", "api", "pwd", "--cwd", ".git").ok().stdout == f"{three.repo}/.git\n"


def test_errors_are_objects_in_json(user: User) -> None:
    ran = user.mngr("stop", "nobody", "--format", "json").failed()
    assert set(ran.json) >= {"error", "hint", "exit_code"}
    assert (ran.json["exit_code"], ran.stderr) == (1, "")
    assert user.mngr("list", "--bogus", "--format", "json").failed(2).json["exit_code"] == 2
    assert user.mngr("--format", "jsonl", "wait", "nobody").failed().json["exit_code"] == 1
    assert user.mngr("creat", "--format", "json").failed(2).json["hint"].startswith("the closest verb is `create`")


def test_part_of_the_work_failed_is_told_in_json_too(user: User) -> None:
    for name in ("a1", "a2"):
        user.create(name)
    commit_in(user, "a1")
    ran = user.mngr("destroy", "a1", "a2", "--format", "json").failed(3)
    rows = {row["name"]: row for row in ran.json}
    assert (rows["a1"]["ok"], rows["a2"]["ok"]) == (False, True)
    assert "found nowhere else" in rows["a1"]["error"] and "--force" in rows["a1"]["hint"]


def test_typos_suggest_the_nearest(user: User) -> None:
    assert "`destroy`" in user.mngr("destory", "x").failed(2).stderr
    assert "`--transfer`" in user.mngr("create", "x", "--transfr", "none").failed(2).stderr
    assert "`git-mirror`" in user.mngr("create", "x", "--transfer", "git-miror").failed(2).stderr


def test_aliases_do_the_same(user: User) -> None:
    user.mngr("c", "foo", "--no-connect", "--command", "cat").ok()
    assert "foo" in user.mngr("ls").ok().stdout
    user.mngr("msg", "foo", "-m", "hi").ok()
    assert user.mngr("x", "foo", "echo hi").ok().stdout == "hi\n"
    user.mngr("mv", "foo", "bar").ok()
    user.mngr("s", "bar").ok()
    user.mngr("rm", "bar").ok()
    assert user.agents() == []


def test_quiet_says_only_results(user: User) -> None:
    ran = user.mngr("create", "foo", "-q", "--command", "sleep 9").ok()
    assert (ran.stdout, ran.stderr) == ("created foo on branch mngr/foo\n", "")


EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil/\x1b\\\\x1b[2J\x9b31m\u202e"


def test_nothing_of_an_agent_reaches_the_terminal_as_a_command(user: User) -> None:
    """File names, contents, subjects, what it printed; with colours, which stay."""
    work_dir = Path(user.create("foo", command=f"printf '%s' {shlex.quote(EVIL)}; sleep 9999")["work_dir"])
    (work_dir / "README.md").write_text(f"{EVIL}\rnew\n")
    (work_dir / f"{EVIL.replace('/', '')}name").write_text("x\n")
    user.git("add", "-A", cwd=work_dir)
    user.git("commit", "-qm", f"subject {EVIL}", cwd=work_dir)
    (work_dir / "more").write_text(f"{EVIL}\n")
    user.mngr("snapshot", "create", "foo", "--name", "s").ok()
    verbs = [
        ["diff", "foo"],
        ["diff", "foo", "--stat"],
        ["diff", "foo", "--name-only"],
        ["pull", "foo", "--dry-run"],
        ["pull", "foo", "--files", "--dry-run", "."],
        ["capture", "foo"],
        ["capture", "foo", "--colors"],
        ["snapshot", "list"],
        ["event", "foo"],
        ["destroy", "foo", "--dry-run"],
        ["destroy", "foo"],
        ["destroy", "foo", "--force"],
        ["saved", "show", "foo-1"],
        ["saved", "show", "foo-1", "--patch"],
        ["saved", "list"],
    ]
    for words in verbs:
        for colour in ("", "1"):
            shown = on_a_terminal(user, *words, NO_COLOR=colour).stdout
            rest = re.sub(r"\x1b\[[0-9;]*m", "", shown) if not colour else shown
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", rest), (words, shown)
    assert "\x1b[" in on_a_terminal(user, "saved", "show", "foo-1", "--patch", NO_COLOR="").stdout
