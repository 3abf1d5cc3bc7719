"""The JSON that verbs really print fits the schema that they state."""

import json
from collections.abc import Callable
from typing import Any

import fastjsonschema
import pytest

from mngr.cli import catalog
from mngr.cli.output import schemas
from tests.support.user import User

# Verbs that print no document: they attach, follow or print scripts.
WITHOUT_JSON = {"connect", "completion"}


def stated_schema(verb: str) -> dict[str, Any]:
    entry = catalog.find(verb)
    stated = schemas.schema(entry) if entry else None
    assert stated is not None, f"`mngr {verb}` has no `RESULTS`"
    return stated


def validator(verb: str) -> Callable[[Any], Any]:
    compiled: Callable[[Any], Any] = fastjsonschema.compile(stated_schema(verb))
    return compiled


def fits(user: User, *words: str, exit_code: int = 0, input: str | None = None) -> Any:
    """Run a verb for JSON, check it against its schema, and return the document."""
    done = user.mngr(*words, "--format", "json", input=input)
    assert done.exit_code == exit_code, f"{words}: {done}"
    document = done.json
    validator(words[0])(document)
    return document


def test_every_verb_states_a_schema_or_prints_no_json() -> None:
    assert {verb.name for verb in catalog.VERBS if schemas.schema(verb) is None} == WITHOUT_JSON


def test_a_schema_refuses_what_is_not_in_it() -> None:
    check = validator("rename")
    good = {"id": "a", "old": "b", "name": "c", "dry_run": False}
    check(good)
    for bad in ({**good, "more": 1}, {**good, "name": 3}, {key: good[key] for key in ("id", "old", "name")}):
        with pytest.raises(fastjsonschema.JsonSchemaValueException):
            check(bad)


def test_an_error_is_a_document_too(user: User) -> None:
    for verb in ("exec", "merge", "rename"):
        words = {"exec": ["exec", "nobody", "true"], "rename": ["rename", "nobody", "x"]}.get(verb, [verb, "nobody"])
        fits(user, *words, exit_code=1)


def test_life_of_agents(user: User) -> None:
    fits(user, "list")
    fits(user, "create", "a", "--no-connect", "--command", "cat", "--dry-run")
    fits(user, "create", "a", "--no-connect", "--command", "cat", "--label", "team=x")
    fits(user, "create", "b", "--no-connect", "--command", "exit 3", "--transfer", "git-mirror")
    fits(user, "create", "a", "--no-connect", "--command", "cat", "--reuse")
    fits(user, "create", "a", "--no-connect", "--command", "cat", "--reuse", "--dry-run")
    fits(user, "create", "a", "--count", "2", "--no-connect", "--command", "cat", "--dry-run")
    fits(user, "create", "-n", "a", "-n", "c", "--no-connect", "--command", "cat", exit_code=3)
    fits(user, "create", "-n", "a", "-n", "c", "--no-connect", "--command", "cat", "--reuse", "--dry-run")
    user.mngr("destroy", "c").ok()
    fits(user, "wait", "b", "FAILED")
    assert len(fits(user, "list")["agents"]) == 2
    fits(user, "list", "--explain", "a")
    fits(user, "message", "a", "b", "-m", "hello", exit_code=3)
    fits(user, "exec", "a", "b", "echo x; false", exit_code=1)
    fits(user, "capture", "a")
    fits(user, "event", "b")
    fits(user, "snapshot", "create", "a", "b", "--dry-run")
    fits(user, "snapshot", "create", "a", "b", "both")
    fits(user, "label", "a", "k=v")
    fits(user, "rename", "a", "c", "--dry-run")
    fits(user, "rename", "a", "c")
    fits(user, "stop", "b", "c", "--dry-run")
    fits(user, "stop", "b", "c")
    fits(user, "start", "c", "--dry-run")
    fits(user, "start", "c")
    fits(user, "list", "--stopped")
    fits(user, "doctor")
    fits(user, "help", "--commands")


def test_limits_conversations_and_leftovers(user: User) -> None:
    user.create("a", "--timeout", "1h", command="cat")
    fits(user, "limit", "a")
    fits(user, "limit", "a", "--idle-timeout", "2h", "--dry-run")
    fits(user, "limit", "a", "--enforce")
    fits(user, "message", "a", "-m", "hello")
    assert len(fits(user, "transcript", "a")) == 1
    assert fits(user, "usage")["usage"] == []
    assert fits(user, "usage", "a")["usage"][0]["cost_usd"] == 0
    fits(user, "usage", "nobody", exit_code=1)
    (user.host_dir / "locks" / f"agent-{'0' * 32}").touch()
    assert len(fits(user, "gc", "--dry-run")["leftovers"]) == 1
    fits(user, "gc")
    fits(user, "cleanup", "--all", "--dry-run")
    fits(user, "cleanup", "--all", "--yes")
    fits(user, "cleanup", "--all", "--destroy", "--dry-run")
    fits(user, "cleanup", "--all", "--destroy", "--yes")


def test_moving_work(user: User) -> None:
    user.create("a", "--transfer", "git-mirror")
    user.mngr("exec", "a", "echo x > x; git add x; git commit -qm x; echo y > y; mkdir d; echo z > d/z").ok()
    fits(user, "diff", "a")
    fits(user, "pull", "a", "--dry-run")
    fits(user, "pull", "a")
    fits(user, "pull", "a:y")
    fits(user, "pull", "a", "--artifacts")
    (user.repo / "y").unlink()
    fits(user, "merge", "a", "--dry-run")
    fits(user, "merge", "a")
    fits(user, "push", "a")
    fits(user, "push", "a:new", "README.md")
    fits(user, "git", "pull", "a", "--dry-run")
    fits(user, "git", "push", "a", "--dry-run")
    fits(user, "rsync", "a:y", "./y", "--dry-run")


def test_destroying_and_restoring(user: User) -> None:
    user.create("a")
    user.create("b")
    user.mngr("exec", "a", "echo x > x; git add x; git commit -qm x; echo y > y").ok()
    fits(user, "destroy", "a", "b", "--force", "--dry-run")
    fits(user, "destroy", "a", "b", exit_code=3)
    fits(user, "destroy", "a", "--force")
    fits(user, "saved", "list")
    fits(user, "saved", "show", "a")
    fits(user, "saved", "restore", "a", "--dry-run")
    fits(user, "saved", "restore", "a")
    fits(user, "saved", "restore", "a-1", "--to", "elsewhere", "--branch", "other")


def test_settings(user: User) -> None:
    fits(user, "config", "set", "tmux.history_lines", "500")
    fits(user, "config", "get", "tmux.history_lines")
    fits(user, "config", "list")
    fits(user, "config", "path")
    fits(user, "config", "path", "--scope", "user")
    fits(user, "config", "explain", "tmux.history_lines")
    fits(user, "config", "unset", "tmux.history_lines")
    user.mngr("config", "set", "--scope", "project", "tmr.prepare", "true").ok()
    fits(user, "config", "untrust")
    fits(user, "config", "trust", "--yes")


def test_lines_of_json_are_the_items_of_the_document(user: User) -> None:
    user.create("a")
    (document,) = user.mngr("list", "--format", "json").ok().json["agents"]
    (line,) = user.mngr("list", "--format", "jsonl").ok().stdout.splitlines()
    assert json.loads(line).keys() == document.keys()


def test_the_schema_is_printed_for_scripts(user: User) -> None:
    assert user.mngr("list", "--schema").ok().json == stated_schema("list")
    assert "prints no JSON" in user.mngr("connect", "--schema").failed(2).stderr
