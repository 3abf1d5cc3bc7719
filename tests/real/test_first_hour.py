"""What somebody types in the first hour: in the wrong place, with a slip, without having read much."""

import re
import sys
from io import StringIO
from pathlib import Path

import pytest

from mngr.cli.app import App
from mngr.cli.verbs.demo import Tour
from mngr.demo.sample import DemoDirectory
from mngr.mapreduce import begun
from mngr.mapreduce import run as runs
from tests.support import e2e_runs
from tests.support.browser import BROWSER, browser, go
from tests.support.user import User, wait_for


def test_the_home_directory_is_not_copied_by_accident(user: User) -> None:
    for place in (user.home, "/"):
        ran = user.mngr("create", "foo", "--no-connect", "--command", "sleep 99", cwd=place).failed()
        assert "whole home directory" in ran.stderr and "`cd` to a project first" in ran.stderr
    assert user.agents() == []
    user.mngr("create", "foo", "--no-connect", "--transfer", "none", "--command", "sleep 99", cwd=user.home).ok()
    (user.home / "plain").mkdir()
    user.mngr("create", "bar", "--no-connect", "--command", "sleep 99", cwd=user.home / "plain").ok()
    assert user.agent("bar")["transfer"] == "rsync"


def test_what_nobody_committed_is_not_taken_by_the_verb_that_the_hint_names_for_commits(user: User) -> None:
    user.create("foo", command="echo idea > idea.txt; sleep 999")
    user.mngr("exec", "foo", "until [ -s idea.txt ]; do sleep 0.05; done").ok()
    refused = user.mngr("destroy", "foo").failed()
    assert "collect it with `mngr pull foo --files DIR`," in refused.stderr
    user.mngr("pull", "foo", "--files", "taken").ok()
    assert (user.repo / "taken" / "idea.txt").read_text() == "idea\n"
    user.mngr("exec", "foo", "git add . && git commit -qm idea").ok()
    assert "collect it with `mngr merge foo`," in user.mngr("destroy", "foo").failed().stderr
    user.mngr("destroy", "foo", "--force").ok()
    assert re.search(
        r"reason: destroy, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", user.mngr("saved", "show", "foo-1").ok().stdout, re.M
    )


def test_a_state_with_a_slip_is_recognised(user: User) -> None:
    user.create("foo")
    for word in ("DNOE", "done"):
        assert "if you mean the state, type `DONE`;" in user.mngr("wait", "foo", word).failed().stderr
    assert "state" not in user.mngr("wait", "fooo", "DONE").failed().stderr


def test_types_of_the_settings_are_named_once(user: User) -> None:
    user.host_dir.mkdir(mode=0o700, exist_ok=True)
    (user.host_dir / "settings.toml").write_text('[agent_types.claude.env]\nA = "1"\n')
    refused = user.mngr("create", "foo", "no-such-program", "--no-connect").failed(2)
    assert refused.stderr.count("`claude`") == 1


def test_an_agent_without_git_says_how_to_send_files(user: User) -> None:
    (user.home / "plain").mkdir()
    user.mngr("create", "foo", "--no-connect", "--command", "sleep 99", cwd=user.home / "plain").ok()
    assert "`mngr push foo:PATH FILE`" in user.mngr("push", "foo").failed().stderr


def test_stopping_a_run_that_is_over_leaves_it_as_it_is(user: User) -> None:
    made = runs.new(str(user.repo), id="r", recipe="tmr", base=user.git("rev-parse", "HEAD"), repo=str(user.repo))
    begun.note(str(user.host_dir), str(user.repo), made.directory)
    made.note("phase", name="integrate", status="began")
    made.note("phase", name="integrate", status="ended", data={})
    made.note("finished", exit_code=0)
    files = [path for path in Path(made.directory).rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    assert user.mngr("tmr", "stop").ok().stdout == "run `r` is finished\n"
    assert {path: path.read_bytes() for path in files} == before


def test_a_demo_that_has_no_place_says_so(user: User) -> None:
    (user.root / "file").write_text("")
    ran = user.mngr("demo", "--dir", str(user.root / "file" / "demo")).failed()
    assert "cannot create `" in ran.stderr and "file/demo`: Not a directory" in ran.stderr and "--dir DIR" in ran.stderr


def test_the_last_commands_of_the_demo_can_be_typed_where_it_was_begun(user: User) -> None:
    repository = user.root / "a demo" / "sprout"
    repository.mkdir(parents=True)
    user.git("init", "-q", cwd=repository)
    shown = StringIO()
    app = App(user.env, StringIO(), shown, StringIO())
    Tour(app, DemoDirectory(str(repository.parent)), "scripted", None).say_goodbye({"branch": "tmr/demo"}, keep=False)
    typed = [line.removeprefix("$ ") for line in shown.getvalue().splitlines() if line.startswith("$ ")]
    assert typed[1:] == ["git log -p main..tmr/demo", "mngr tmr review"]
    script = f"{typed[0]}; git rev-parse --show-toplevel; echo $MNGR_HOST_DIR"
    lines = user.run(["sh", "-euc", script], cwd=user.root).ok().stdout.splitlines()
    assert lines == [str(repository), str(repository.parent / "host")]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_the_names_of_runs_can_be_read_on_a_phone(user: User) -> None:
    run = e2e_runs.make_run(user.repo / ".mngr" / "e2e", "20261116-171033-7407")
    e2e_runs.make_test(run, "tests/test_a.py::test_a")
    address = Path(user.mngr("e2e", "report").ok().stdout.strip()).as_uri()
    with browser() as chromium:
        page = chromium.tab(viewport={"width": 390, "height": 844})
        go(page, address)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        link = page.locator("tbody a").first
        assert link.inner_text() == "20261116-171033-7407"
        assert link.evaluate("(link) => link.getClientRects().length") <= 2
        chromium.forget()


def test_a_terminal_of_an_agent_that_has_ended_says_so(user: User) -> None:
    user.create("works")
    user.create("ends", command="true")
    user.wait_for_state("ends", "DONE")
    shown = {name: _status_line(user, name) for name in ("works", "ends")}
    assert shown["works"] == "detach: C-b d"
    wait_for(lambda: _status_line(user, "ends") == "it has ended - detach: C-b d", "the status line to tell the end")


def _status_line(user: User, name: str) -> str:
    return user.tmux("display-message", "-p", "-t", f"=mngr-{name}:", "#{T:status-right}").ok().stdout.strip()


def test_a_command_that_does_not_end_points_to_the_line_of_the_test(user: User) -> None:
    (user.repo / "test_it.py").write_text("def test_it(e2e):\n    e2e.run('sleep 99', timeout=0.1)\n")
    ran = user.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]).failed()
    assert "e2e.run('sleep 99', timeout=0.1)" in ran.stdout and "test_it.py:2: CommandTimedOut" in ran.stdout
    assert "did not end within 0.1 s" in ran.stdout and "Running(" not in ran.stdout


def test_events_are_for_people_to_read(user: User) -> None:
    user.mngr("create", "foo", "--type", "scripted", "--no-connect").ok()
    user.mngr("message", "foo", "-m", "say hello").ok()
    shown = user.mngr("event", "foo", "--format", "human", env={"TZ": "XXX-3"}).ok().stdout.splitlines()
    stated = [str(event["timestamp"]) for event in user.events("foo")]
    assert "prompt  bytes=9" in "\n".join(shown) and "sha256" not in "\n".join(shown)
    hours = [(int(line[11:13]) - int(moment[11:13])) % 24 for line, moment in zip(shown, stated, strict=False)]
    assert set(hours) == {3} and {line[19:21] for line in shown} == {"  "}


def test_the_filter_that_a_hint_shows_is_one(user: User) -> None:
    refused = user.mngr("list", "--include", "state = DONE").failed(2)
    shown = re.search(r"for example `(.*)`; ", refused.stderr)
    assert shown is not None
    user.mngr("list", "--include", shown[1]).ok()


def test_tests_for_agents_are_looked_for_in_a_project(user: User) -> None:
    assert "`cd` to your project" in user.mngr("tmr", cwd=user.home).failed(2).stderr
    (user.repo / "a.txt").write_text("")
    refused = user.mngr("tmr", "--type", "scripted", "--dry-run").failed()
    assert "1 uncommitted change that agents would not see: `a.txt`\n" in refused.stderr
    (user.repo / "b.txt").write_text("")
    assert "see: `a.txt`, ...\n" in user.mngr("tmr", "--type", "scripted", "--dry-run").failed().stderr


def test_a_key_in_the_settings_counts_as_a_login(user: User) -> None:
    (user.home / "bin").mkdir()
    (user.home / "bin" / "claude").write_text("#!/bin/sh\necho '2.1.325 (Claude Code)'\n")
    (user.home / "bin" / "claude").chmod(0o755)
    env = {name: "" for name in user.env if name.startswith(("ANTHROPIC", "CLAUDE"))}
    env["PATH"] = f"{user.home}/bin:{user.env['PATH']}"
    assert "but you are not logged in" in _line_of(user.mngr("doctor", env=env).stdout, "claude")
    user.mngr("config", "set", "--scope", "user", "agent_types.claude.env.ANTHROPIC_AUTH_TOKEN", "any").ok()
    assert "login: " in _line_of(user.mngr("doctor", env=env).stdout, "claude")


def _line_of(text: str, check: str) -> str:
    return next(line for line in text.splitlines() if line.split()[1:2] == [check])
