"""What the provider `ray` decides without a cluster."""

import pytest

from mngr.errors import MngrError, UsageError
from mngr.providers.ray import cluster, provider


def test_resources_that_no_node_has_are_refused_by_name() -> None:
    nodes = [{"CPU": 4.0, "memory": 1e9}, {"CPU": 2.0, "builder": 1.0}]
    cluster._check_possible({"CPU": 4.0}, nodes)
    with pytest.raises(MngrError, match="can ever have builder=2") as refused:
        cluster._check_possible({"CPU": 1.0, "builder": 2.0}, nodes)
    assert "builder=1" in refused.value.hint
    with pytest.raises(MngrError, match="cpus=4, builder=1"):
        cluster._check_possible({"CPU": 4.0, "builder": 1.0}, nodes)


@pytest.mark.parametrize(
    ("record", "has_actor", "state"),
    [
        ({}, True, "QUEUED"),
        ({}, False, "GONE"),
        ({"created_at": 4e9}, False, "QUEUED"),
        ({"node": "a", "address": "1"}, True, "RUNNING"),
        ({"node": "a", "address": "1"}, False, "RUNNING"),
        ({"node": "old", "address": "1"}, False, "RUNNING"),
        ({"node": "old", "address": "2"}, True, "GONE"),
    ],
)
def test_the_state_of_a_host_follows_from_its_record_and_the_nodes(
    record: dict[str, object], has_actor: bool, state: str
) -> None:
    assert cluster._state(record, has_actor, {"a": "1"}) == state


def test_memory_has_units_and_other_amounts_do_not() -> None:
    assert provider._amount("memory", "4g") == 4 << 30
    assert provider._amount("memory", "1048576") == 1 << 20
    assert provider._amount("cpus", "0.5") == 0.5
    for key, text in (("memory", "4x"), ("cpus", "2g"), ("cpus", "")):
        with pytest.raises(UsageError):
            provider._amount(key, text)
