"""Every verb of an agent gives the same on this machine and through a channel: one list, run for both."""

import json
import threading
from collections.abc import Iterator

import pytest

from mngr.actions import create, find, snapshots, transcript, wait
from mngr.actions.site import Site
from mngr.agent.limits import Limits
from mngr.errors import MngrError, NotFoundError, TimedOut
from mngr.fleet.agent import Agent
from mngr.remote.channel import Opening, Unreached
from mngr.remote.site import RemoteSite, sent
from mngr.settings import layers as config
from mngr.transfer.create import request_for
from tests.support import far as far_machine
from tests.support.user import User, wait_for


@pytest.fixture
def far() -> Iterator[User]:
    made = User()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(params=["local", "pipe"])
def site(request: pytest.FixtureRequest, far: User) -> Iterator[Site]:
    settings = config.load(host_dir=str(far.host_dir), cwd=str(far.repo), environ=far.env)
    if request.param == "local":
        yield Site(environ=far.env, cwd=str(far.repo), settings=settings)
        return
    local = Site(environ={}, cwd="/", settings=settings)
    remote = RemoteSite("far", "pipe", lambda: far_machine.opening(far), local)
    yield remote
    remote.close()


def make(site: Site, far: User, name: str = "foo", command: str = "cat", **more) -> Agent:
    request = request_for(site, name, command=command, source=str(far.repo), **more)
    (made,) = site.run(create.create, [request])
    if isinstance(made, MngrError):
        raise made
    return Agent(site, made)


def test_create_list_and_find(site, far):
    agent = make(site, far, labels={"a": "ü \udcff"})
    views, errors = site.run(find.listing)
    assert [view.name for view in views] == ["foo"]
    assert errors == []
    assert views[0].record == agent.record
    assert agent.state == "RUNNING"
    assert site.run(find.records, ["foo"]) == [agent.record]
    assert json.dumps(agent.as_json())


def test_an_agent_that_is_missing_is_the_same_error(site, far):
    make(site, far)
    with pytest.raises(NotFoundError, match="no agent named `fo`") as raised:
        site.run(find.records, ["fo"])
    assert "the closest name is `foo`" in raised.value.hint
    assert raised.value.exit_code == 1


def test_message_capture_and_events(site, far):
    agent = make(site, far)
    sent_message = agent.message("hello\nwörld")
    assert sent_message.acknowledged is None
    wait_for(lambda: agent.capture().count("wörld") >= 2, "the echo")
    types = [event["type"] for event in agent.events()]
    assert types[:2] == ["created", "started"]
    assert "message_delivered" in types
    assert agent.transcript().entries[0]["text"] == "hello\nwörld"
    assert site.run(transcript.events, agent.id) == agent.events()


def test_exec(site, far):
    agent = make(site, far)
    done = agent.exec("pwd; printf '\\377' >&2; exit 3", timeout=60)
    assert (done.exit_code, done.text, done.stderr) == (3, agent.record.workspace.work_dir, b"\xff")


def test_wait(site, far):
    agent = make(site, far, command="sleep 0.3")
    (view,) = site.run(wait.until, [agent.id], ["DONE"], any_of=False, timeout=60)
    assert view.state == "DONE"
    with pytest.raises(TimedOut):
        site.run(wait.until, [make(site, far, "bar").id], ["DONE"], any_of=False, timeout=0.2)


def test_watch_yields_each_change(site, far):
    changes = site.run(wait.watch)
    assert next(changes)[0] == []
    make(site, far)
    assert any(views and views[0].name == "foo" for views, _ in changes)


def test_stop_start_archive_rename_and_label(site, far):
    agent = make(site, far)
    agent.stop()
    assert agent.now().state == "STOPPED"
    assert agent.start()[0].now().state == "RUNNING"
    agent.archive()
    assert agent.now().record.life.archived_at is not None
    assert agent.rename("bar").name == "bar"
    assert agent.label({"team": "x"}, ["none"]).record.spec.labels == {"team": "x"}


def test_a_limit_stops_the_agent(site, far):
    agent = make(site, far)
    agent.limit(Limits(run_seconds=1.0))
    wait_for(lambda: agent.now().state == "STOPPED", "the limit to stop it", 30)
    assert "limit_failed" not in [event["type"] for event in agent.events()]


def test_diff_snapshot_and_destroy(site, far):
    agent = make(site, far)
    agent.exec("echo more >> README.md; git commit -qam more; echo new > new", timeout=60)
    assert b"+more" in agent.diff()
    assert b"+new" in agent.diff()
    entry = agent.snapshot("first")
    assert site.run(snapshots.survey) == ([entry], {})
    with pytest.raises(MngrError, match="work that is found nowhere else"):
        agent.destroy()
    assert agent.destroy(force=True).entry is not None
    assert site.run(find.listing) == ([], [])


def test_each_verb_is_one_request(far):
    settings = config.load(host_dir=str(far.host_dir), cwd=str(far.repo), environ=far.env)
    local = Site(environ={}, cwd="/", settings=settings)
    site = RemoteSite("far", "pipe", lambda: far_machine.opening(far), local)
    agent = make(site, far)
    counted = {}
    for name, act in (
        ("list", lambda: site.run(find.listing)),
        ("message", lambda: agent.message("hi")),
        ("exec", lambda: agent.exec("true", timeout=60)),
        ("stop", agent.stop),
        ("destroy", lambda: agent.destroy(force=True)),
    ):
        before = site.requests
        act()
        counted[name] = site.requests - before
    assert counted == dict.fromkeys(("list", "message", "exec", "stop", "destroy"), 1)
    site.close()


def test_only_settings_that_a_host_needs_are_sent(far):
    (far.repo / ".mngr").mkdir()
    far.host_dir.mkdir()
    (far.host_dir / "settings.toml").write_text('[tmux]\nsession_prefix = "x-"\n[agent_types.a.env]\nKEY = "secret"\n')
    settings = config.load(host_dir=str(far.host_dir), cwd=str(far.repo), environ=far.env)
    assert sent(settings)["tmux.session_prefix"] == "x-"
    assert "secret" not in repr(sent(settings))


def test_threads_that_wait_for_the_same_connection_do_not_each_wait_for_its_failure(far):
    tried = far.root / "tried"
    opening = Opening("far", ["sh", "-c", f"echo x >> {tried}; exec sleep 60"], far.env, seconds=3.0)
    remote = RemoteSite("far", "pipe", lambda: opening, Site(environ=far.env, cwd=str(far.repo)))
    errors: list[str] = []

    def ask() -> None:
        with pytest.raises(Unreached) as raised:
            remote.run(find.listing)
        errors.append(raised.value.message)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == ["`far` did not answer within 3 s"] * 6
    assert tried.read_text().count("x") == 1
    ask()
    assert tried.read_text().count("x") == 2, "who asks later tries again"
