"""The main verbs once more, in a world where nothing is as it was when they were written: see `HostileUser`."""

from collections.abc import Iterator

import pytest

from tests.support.hostile_world import HostileUser


@pytest.fixture
def user() -> Iterator[HostileUser]:
    made = HostileUser()
    try:
        yield made
    finally:
        made.close()


def test_the_output_may_be_read_slowly_or_not_at_all(user: HostileUser) -> None:
    user.create("foo", "--label", f"long={'x' * 8000}")
    assert user.read_slowly("list", "--format", "json").ok().json["agents"][0]["name"] == "foo"
    assert user.read_slowly("exec", "foo", "seq 20000").ok().stdout.split()[-1] == "20000"
    gone = user.read_by_nobody("list", "--format", "json")
    assert gone.exit_code == 141 and gone.stderr == ""
