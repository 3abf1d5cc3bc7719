"""End-to-end tests of any command-line program: a pytest plugin with sessions, expectations and artifacts.

`from mngr.e2e import E2eSession, expect` is all that a test needs; the fixture is called `e2e`. Nothing is loaded
before it is asked for.
"""

__all__ = ["CommandTimedOut", "E2eSession", "Ran", "expect"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.e2e.command import CommandTimedOut, Ran
    from mngr.e2e.expectation import expect
    from mngr.e2e.session import E2eSession

_HOMES = {
    "CommandTimedOut": "mngr.e2e.command",
    "E2eSession": "mngr.e2e.session",
    "Ran": "mngr.e2e.command",
    "expect": "mngr.e2e.expectation",
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is first asked for: pytest loads this package in every project."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mngr.e2e' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
