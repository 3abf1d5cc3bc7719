"""Fixtures for all tests."""

from collections.abc import Iterator

import pytest

from tests.support.user import User


@pytest.fixture
def user() -> Iterator[User]:
    """A user in a world of its own; everything it started is ended afterwards."""
    made = User()
    try:
        yield made
    finally:
        made.close()
