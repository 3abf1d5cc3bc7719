"""Fixtures for all tests."""

import signal
from collections.abc import Iterator

import pytest

from tests.support.user import User

# A job in the background of a script starts with these ignored, and children would inherit that: tests that end a
# command with them would wait for ever.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture
def user() -> Iterator[User]:
    """A user in a world of its own; everything it started is ended afterwards."""
    made = User()
    try:
        yield made
    finally:
        made.close()
