"""The parts of an agent's record."""

import json

from mngr.agent import record
from mngr.agent.record import AgentLife, AgentSpec, AgentWorkspace, Record
from tests.support.records import make_record


def test_no_two_parts_have_a_field_of_one_name() -> None:
    names = (*Record._fields, *AgentSpec._fields, *AgentWorkspace._fields, *AgentLife._fields)
    assert len(set(names)) == len(names)


def test_a_field_is_changed_in_its_part_and_a_part_as_a_whole() -> None:
    made = make_record(branch="x", stop_reason="why")
    other = make_record(command="vim", labels={"a": "b"}, number=3)
    changed = made.changed(spec=other.spec, base_branch="main", name="b")
    assert (changed.spec, changed.name) == (other.spec, "b")
    assert changed.workspace == made.workspace._replace(base_branch="main")
    assert changed.life == made.life


def test_a_record_of_the_first_version_is_read() -> None:
    made = make_record(branch="x", labels={"a": "b"}, allowed_commands=("make",), creator=(5, "1"))
    flat = {"version": 1, "id": made.id, "name": made.name, "future": 1}
    for part in (made.spec, made.workspace, made.life):
        flat |= part._asdict()
    found = record.parse(json.dumps(flat).encode(), "agent.json")
    assert found == made._replace(extra={"future": 1})
    assert record.parse(record.dump(found), "agent.json") == found


def test_keys_of_a_newer_version_are_kept_where_they_were() -> None:
    value = record.as_json(make_record())
    value["spec"] = {**value["spec"], "later": [1]}
    found = record.parse(json.dumps({**value, "more": 2}).encode(), "agent.json")
    assert found.extra == {"more": 2, "spec": {"later": [1]}}
    written = json.loads(record.dump(found.changed(stop_reason="why")))
    assert (written["spec"]["later"], written["more"]) == ([1], 2)
