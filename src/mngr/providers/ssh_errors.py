"""What ssh, or our program at its other end, prints when it cannot be used, as errors with a hint. Pure: the one place
that knows ssh's words, which no locale changes. What is unknown is shown as it was printed."""

from __future__ import annotations

import re

from mngr.errors import MngrError
from mngr.process import quote
from mngr.remote.channel import Unreached


class NeedsPerson(Unreached):
    """ssh wants an answer that only a person can give: a password, a passphrase, whether to trust a host key."""


_OFFENDING = re.compile(r"Offending \S+ key in (.+):\d+")
_CHANGED = re.compile(r"Host key for (\S+) has changed")
_REACH = "check that the host runs and can be reached: `ssh -v {} true`"
_NOT_KNOWN = "the host key of `{}` is not known yet", "check and accept it in a terminal: `mngr host prepare {}`"
_SILENT = "`{}` does not answer", _REACH
_CLOSED = "`{}` closed the connection before the login", _REACH
_NOT_WRITABLE = "", "set another `host_dir` for this provider, one that can be written there"
# Words that were printed, what they mean for a host (empty: the message stays), and what a person can do.
_MEANINGS = {
    "Host key verification failed": _NOT_KNOWN,
    "host key is known for": _NOT_KNOWN,
    "Permission denied (": (
        "`{}` refused the login",
        "if it needs a password or a passphrase, give it in a terminal: `mngr host prepare {}`",
    ),
    "Could not resolve hostname": ("no host is called `{}`", "`ssh -G {}` shows the name and address that ssh uses"),
    "Too many authentication failures": ("`{}` refused too many keys", "`ssh -v {} true` shows which were offered"),
    "Connection refused": ("`{}` refuses connections", "check that the host runs and has sshd: `ssh -v {} true`"),
    "timed out": _SILENT,
    "No route to host": _SILENT,
    "Network is unreachable": _SILENT,
    "Bad configuration option": ("ssh cannot read its configuration for `{}`", "`ssh -G {}` shows what it reads"),
    "UNKNOWN port 65535": (
        "the way to `{}` is closed: a jump host or proxy does not let the connection through",
        "`ssh -v {} true` shows which jump host or proxy it is",
    ),
    "Connection closed by": _CLOSED,
    "Connection reset": _CLOSED,
    "restricted": ("", "mngr needs a login shell that is not restricted: `ssh {} 'exec sh -c pwd'` has to work"),
    "No space left on device": ("", "`ssh {} df -h .` shows the disk there; make room, or set another `host_dir`"),
    "Read-only file system": _NOT_WRITABLE,
    "Permission denied": _NOT_WRITABLE,
}


def explain(host: str, error: MngrError) -> MngrError:
    """The same error with a message and a hint that fit what was printed."""
    said, shown = error.details, quote(host)
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in said:
        name, file = _CHANGED.search(said), _OFFENDING.search(said)
        at = f" -f {quote(file[1])}" if file else ""
        shows = f"`ssh-keygen -l -F {quote(name[1]) if name else shown}{at}` shows the known key"
        return Unreached(
            f"the host key of `{host}` has changed: this may be another machine",
            hint=f"{shows}; `ssh-keygen -R` removes it if the change is right",
            details=said,
        )
    found = next((meaning for words, meaning in _MEANINGS.items() if words in said), None)
    if found is None and error.hint:
        return error
    message, hint = found or ("", "see what the login does: `ssh {} 'echo ok'`")
    kind = NeedsPerson if "mngr host prepare" in hint else Unreached
    return kind(message.format(host) or error.message, hint=hint.format(shown), details=said)
