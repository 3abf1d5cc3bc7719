"""mngr: run many coding agents in parallel, anywhere, and trust what comes back.

`mngr.Fleet` has the verbs of the command line as methods; `mngr.MngrError` is what they raise.
"""

__version__ = "0.1.0"
__all__ = ["Agent", "Fleet", "MngrError", "__version__"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.errors import MngrError
    from mngr.fleet.agent import Agent
    from mngr.fleet.fleet import Fleet


def __getattr__(name: str) -> object:
    """Import the library when it is first asked for: the command line pays only for what it uses."""
    if name == "Fleet":
        from mngr.fleet.fleet import Fleet

        return Fleet
    if name == "Agent":
        from mngr.fleet.agent import Agent

        return Agent
    if name == "MngrError":
        from mngr.errors import MngrError

        return MngrError
    raise AttributeError(f"module 'mngr' has no attribute {name!r}")
