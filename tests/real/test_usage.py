"""`mngr usage` on real agents: what they say they used, what that costs, and what stays when they go."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mngr.fleet.fleet import Fleet
from mngr.mapreduce import observations
from mngr.mapreduce.state import AttemptUsage
from tests.support.records import edit_record
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(300)  # many commands, one after another
PRICES = '[prices."own-model"]\ninput = 2.0\noutput = 10.0\ncache_read = 0.5\ncache_write = 2.5\n'


def script(user: User, name: str, text: str) -> str:
    path = user.root / f"{name}.script"
    path.write_text(text)
    return str(path)


def spend(user: User, name: str, *usage: str, words: tuple[str, ...] = ()) -> None:
    """A scripted agent that used so much, and now waits."""
    text = "".join(f"usage {line}\n" for line in usage)
    user.mngr("create", name, "--no-connect", "--type", "scripted", *words, "--", script(user, name, text)).ok()
    user.wait_for_state(name, "WAITING")


def say(user: User, name: str, text: str) -> None:
    """A message, and the turn that it began is over."""
    user.mngr("message", name, "-m", text).ok()
    user.mngr("wait", name).ok()


def usage(user: User, *words: str) -> Any:
    return user.mngr("usage", *words, "--format", "json").ok().json


def rows(user: User, *words: str) -> dict[str, dict[str, Any]]:
    found = usage(user, *words)
    rows = {row["name"]: row for row in found["usage"]}
    assert len(rows) == len(found["usage"])
    for field in ("answers", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "unpriced"):
        assert found["total"][field] == sum(row[field] for row in rows.values())
    return rows


def books(user: User) -> list[dict[str, Any]]:
    path: Path = user.host_dir / "usage.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in lines if "model" in line]


def test_what_a_program_says_wins_and_a_price_that_nobody_knows_is_not_zero(user: User) -> None:
    user.host_dir.mkdir()
    (user.host_dir / "settings.toml").write_text(PRICES)
    spend(user, "told", "input=1000 output=100 cache_read=70 cost=0.25 model=own-model", words=("--project", "shop"))
    spend(user, "own", "input=1000000 output=100000 cache_read=200000 cache_write=40000 model=own-model")
    spend(user, "listed", "input=1000 output=100 cache_read=5000 cache_write=200 model=claude-sonnet-4-5-20250929")
    spend(user, "odd", "input=5 model=nobody-knows-this-one", "input=7")
    user.create("none")
    found = rows(user)
    assert list(found) == ["own", "told", "listed", "odd"], "the dearest first, and none that used nothing"
    assert found["told"]["cost_usd"] == 0.25
    assert found["own"]["cost_usd"] == pytest.approx(2.0 + 1.0 + 0.1 + 0.1)
    assert found["listed"]["cost_usd"] == pytest.approx(0.00675)
    assert (found["odd"]["cost_usd"], found["odd"]["unpriced"], found["odd"]["answers"]) == (None, 2, 2)
    assert found["own"]["id"] == user.agent("own")["id"]
    total = usage(user)["total"]
    assert total["cost_usd"] == pytest.approx(3.2 + 0.25 + 0.00675) and total["unpriced"] == 2

    assert rows(user, "none")["none"]["answers"] == 0, "one that was named has its row"
    by_model = rows(user, "--by", "model")
    assert set(by_model) == {"own-model", "claude-sonnet-4-5-20250929", "nobody-knows-this-one", ""}
    assert by_model["own-model"]["answers"] == 2
    assert {name: row["answers"] for name, row in rows(user, "--by", "type").items()} == {"scripted": 5}
    assert rows(user, "--by", "project")["shop"]["input_tokens"] == 1000
    day, *rest = sorted(rows(user, "--by", "day"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day) and len(rest) < 2, "one, or two around midnight"
    assert set(rows(user, "--since", "1h")) == set(found) and rows(user, "--since", "0s") == {}
    assert rows(user, "--since", day).keys() == found.keys()
    lines = user.mngr("usage", "told", "odd", "--format", "{name} {cost_usd}").ok().stdout.splitlines()
    assert lines == ["told 0.25", "odd "]
    assert "2 answers by models without a known price" in user.mngr("usage").ok().stderr


def test_the_table_lines_up_and_ends_with_the_total(user: User) -> None:
    spend(user, "cheap", "input=5 output=1 cost=0.004")
    spend(user, "dear", "input=1234567 output=89000 cache_read=9876543 cost=12.5")
    spend(user, "odd", "input=5")
    lines = user.mngr("usage").ok().stdout.splitlines()
    assert len({len(line) for line in lines}) == 1, "every line ends with a number on the right"
    assert re.split(r"  +", lines[0]) == [
        "AGENT", "ANSWERS", "INPUT", "CACHE READ", "CACHE WRITE", "OUTPUT", "COST", "UNPRICED",
    ]  # fmt: skip
    assert re.split(r"  +", lines[1]) == ["dear", "1", "1,234,567", "9,876,543", "0", "89,000", "$12.5000", "0"]
    assert re.split(r"  +", lines[3]) == ["odd", "1", "5", "0", "0", "0", "unknown", "1"]
    assert re.split(r"  +", lines[-1]) == ["total", "3", "1,234,577", "9,876,543", "0", "89,001", "$12.5040", "1"]


def test_without_any_usage_it_says_so(user: User) -> None:
    assert user.mngr("usage").ok().stdout == "No usage\n"
    assert not user.host_dir.exists()
    assert "no agent named `nobody`" in user.mngr("usage", "nobody").failed().stderr
    assert "is not a length of time" in user.mngr("usage", "--since", "soon").failed(2).stderr
    assert "invalid day" in user.mngr("usage", "--since", "2026-99-01").failed(2).stderr


def test_what_a_destroyed_agent_used_stays_in_the_books(user: User) -> None:
    spend(user, "gone", "input=10 output=2 cost=0.5 model=a", "input=3 model=b", words=("--project", "shop"))
    spend(user, "stays", "input=1 cost=0.25 model=a")
    before = {by: usage(user, "--by", by)["total"] for by in ("agent", "project", "day", "model", "type")}
    user.mngr("destroy", "gone").ok()
    lines = books(user)
    assert [(line["agent"], line["model"], line["answers"], line["cost_usd"]) for line in lines] == [
        ("gone", "a", 1, 0.5),
        ("gone", "b", 1, None),
    ]
    for by, total in before.items():
        assert usage(user, "--by", by)["total"] == total, by
    found = rows(user)
    assert list(found) == ["stays", "destroyed agents"]
    assert found["destroyed agents"]["id"] is None
    assert rows(user, "--by", "model")["a"]["cost_usd"] == 0.75
    assert rows(user, "--by", "project")["shop"]["answers"] == 2
    user.mngr("config", "set", 'prices."b".input', "1000").ok()
    assert rows(user, "--by", "model")["b"]["cost_usd"] == pytest.approx(0.003), "a price that came later"


def test_a_clone_counts_from_its_creation_on(user: User) -> None:
    user.mngr("create", "first", "--no-connect", "--type", "scripted").ok()
    say(user, "first", "usage input=100 cost=1")
    user.mngr("clone", "first", "second", "--no-connect").ok()
    assert rows(user, "second")["second"]["answers"] == 0
    say(user, "second", "usage input=7 cost=2")
    assert {name: row["input_tokens"] for name, row in rows(user).items()} == {"first": 100, "second": 7}
    user.mngr("destroy", "first", "second").ok()
    assert rows(user)["destroyed agents"]["input_tokens"] == 107


def test_nothing_counts_twice_after_restoring(user: User) -> None:
    spend(user, "foo", "input=10 cost=1")
    user.mngr("snapshot", "create", "foo", "before").ok()
    say(user, "foo", "usage input=20 cost=2")
    user.mngr("stop", "foo").ok()
    total = usage(user)["total"]
    assert total["input_tokens"] == 30

    user.mngr("snapshot", "restore", "before").ok()
    assert usage(user)["total"] == total and set(rows(user)) == {"foo"}, "what was paid stays paid"
    user.mngr("snapshot", "restore", "before", "--as", "bar").ok()
    assert usage(user)["total"] == total, "what the new one brought along was another's"
    user.mngr("exec", "foo", "echo x > x").ok()
    user.mngr("destroy", "foo", "--force").ok()
    assert usage(user)["total"] == total
    user.mngr("saved", "restore", "foo-1").ok()
    assert usage(user)["total"] == total
    assert rows(user)["foo"]["input_tokens"] == 30, "it has its old id, so what is in the books is its own"
    user.mngr("destroy", "foo", "bar", "--force").ok()
    assert usage(user)["total"] == total


def test_damaged_books_are_read_around_and_an_unreadable_agent_is_told(user: User) -> None:
    spend(user, "foo", "input=10 cost=1")
    spend(user, "bar", "input=5 cost=1")
    user.mngr("destroy", "foo").ok()
    with (user.host_dir / "usage.jsonl").open("ab") as file:
        file.write(b'{"agent_id": "x", "answers": -1}\n{"agent_id": 5}\n[]\n{"agent_id": "agent-y", "ans')
    record = user.host_dir / "agents" / str(user.agent("bar")["id"]) / "agent.json"
    good = record.read_bytes()
    record.write_bytes(b"{")
    found = usage(user)
    assert found["total"]["input_tokens"] == 10 and str(record) in found["errors"][0]["error"]
    assert str(record) in user.mngr("usage").ok().stderr
    record.write_bytes(good)
    user.mngr("destroy", "bar").ok()
    assert usage(user)["total"]["input_tokens"] == 15


def test_a_driver_that_is_not_there_is_told_beside_the_others(user: User) -> None:
    spend(user, "foo", "input=10 cost=1")
    spend(user, "bar", "input=5 cost=1")
    record = user.host_dir / "agents" / str(user.agent("bar")["id"]) / "agent.json"
    edit_record(record, driver="of-tomorrow")
    found = usage(user)
    assert [row["name"] for row in found["usage"]] == ["foo"]
    assert "`bar`" in found["errors"][0]["error"] and "of-tomorrow" in found["errors"][0]["error"]
    user.mngr("destroy", "bar").ok()


def test_from_python(user: User) -> None:
    spend(user, "foo", "input=10 output=3 cost=1 model=m")
    fleet = Fleet(environ=user.env, cwd=str(user.repo))
    report = fleet.usage(["foo"])
    assert [(row.name, row.totals.answers, row.totals.cost_usd) for row in report.rows] == [("foo", 1, 1.0)]
    assert [row.name for row in fleet.usage(by="model").rows] == ["m"]
    assert fleet.usage(since=4e9).rows == []


def test_a_run_counts_what_its_agents_used_also_when_they_are_gone(user: User) -> None:
    spend(user, "foo", "input=10 output=3 cache_read=100 cache_write=5 cost=1", "input=1 model=nobody-knows")
    fleet = Fleet(environ=user.env, cwd=str(user.repo))
    agent_id = fleet.find("foo").id
    used = AttemptUsage(16, 3, 100, 1.0, 1)
    assert observations.usage(fleet.local, agent_id) == used
    record = user.host_dir / "agents" / agent_id / "agent.json"
    good = record.read_bytes()
    record.write_bytes(b"")
    assert observations.usage(fleet.local, agent_id) is None, "what cannot be read is not nothing"
    record.write_bytes(good)
    fleet.find("foo").destroy()
    assert observations.usage(fleet.local, agent_id) == used


ACME = """#!/bin/sh
while printf 'ready> '; read -r tokens; do
    at=$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)
    answer='"role": "assistant", "id": "'$at'", "model": "own-model", "usage": {"input": '$tokens'}'
    printf '{"timestamp": "%s", "message": {%s}}\\n' "$at" "$answer" >> "$1/talk.jsonl"
done
"""


def test_a_conversation_that_is_copied_or_taken_back_counts_once(user: User) -> None:
    """With a program that keeps its own record, as all but the scripted agent do."""
    (user.root / "acme").write_text(ACME)
    (user.root / "acme").chmod(0o755)
    kind = f"[agent_types.acme]\ncommand = '{user.root}/acme {{home}}'\nready = 'ready>$'\nrecord = '*.jsonl'\n"
    user.host_dir.mkdir()
    (user.host_dir / "settings.toml").write_text(kind + PRICES)

    def use(name: str, tokens: int, total: int) -> None:
        user.wait_for_state(name, "WAITING")
        user.mngr("message", name, "-m", str(tokens)).ok()
        wait_for(lambda: used().get(name) == total, f"{name} to have used {total}")

    def used() -> dict[str, int]:
        return {name: row["input_tokens"] for name, row in rows(user).items()}

    user.mngr("create", "a", "--no-connect", "--type", "acme").ok()
    use("a", 100, 100)
    user.mngr("snapshot", "create", "a", "before").ok()
    use("a", 20, 120)
    user.mngr("clone", "a", "b", "--no-connect").ok()
    assert used() == {"a": 120}
    use("b", 3, 3)
    user.mngr("snapshot", "restore", "before").ok()
    assert used() == {"a": 120, "b": 3}, "what was paid stays paid"
    use("a", 5, 125)
    user.mngr("snapshot", "restore", "before", "--as", "c").ok()
    assert used() == {"a": 125, "b": 3}
    assert usage(user)["total"]["cost_usd"] == pytest.approx(128 * 2.0 / 1e6)
    user.mngr("destroy", "a", "b", "c", "--force").ok()
    assert used() == {"destroyed agents": 128}
    assert usage(user)["total"]["cost_usd"] == pytest.approx(128 * 2.0 / 1e6)
