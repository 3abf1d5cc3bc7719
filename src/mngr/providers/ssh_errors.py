"""What ssh prints when it cannot connect, as errors with a hint. Pure: the one place that knows ssh's words."""

from __future__ import annotations

import re

from mngr.errors import MngrError
from mngr.process import quote
from mngr.remote.channel import Unreached


class NeedsPerson(Unreached):
    """ssh wants an answer that only a person can give: a password, a passphrase, whether to trust a host key."""


_OFFENDING = re.compile(r"Offending \S+ key in (.+):\d+")
_CHANGED = re.compile(r"Host key for (\S+) has changed")
# Words of ssh, and what they mean for a host. The hint is that of the channel.
_MESSAGES = (
    ("Could not resolve hostname", "no host is called `{}`"),
    ("Too many authentication failures", "`{}` refused too many keys"),
    ("Connection refused", "`{}` refuses connections"),
    ("timed out", "`{}` does not answer"),
    ("No route to host", "`{}` does not answer"),
    ("Network is unreachable", "`{}` does not answer"),
    ("Bad configuration option", "ssh cannot read its configuration for `{}`"),
    ("UNKNOWN port 65535", "the way to `{}` is closed: a jump host or proxy does not let the connection through"),
    ("Connection closed by", "`{}` closed the connection before the login"),
    ("Connection reset", "`{}` closed the connection before the login"),
)


def explain(host: str, error: MngrError) -> MngrError:
    """The same error with a message and a hint that fit what ssh printed; an unknown one is returned as it is."""
    said = error.details
    shown = quote(host)
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in said:
        return Unreached(
            f"the host key of `{host}` has changed: this may be another machine",
            hint=f"`{_that_shows_the_key(said, shown)}` shows the known key; "
            "`ssh-keygen -R` removes it if the change is right",
            details=said,
        )
    if "Host key verification failed" in said or "host key is known for" in said:
        return NeedsPerson(
            f"the host key of `{host}` is not known yet",
            hint=f"check and accept it in a terminal: `mngr host prepare {shown}`",
            details=said,
        )
    if "Permission denied (" in said:
        return NeedsPerson(
            f"`{host}` refused the login",
            hint=f"if it needs a password or a passphrase, give it in a terminal: `mngr host prepare {shown}`",
            details=said,
        )
    for words, message in _MESSAGES:
        if words in said:
            return Unreached(message.format(host), hint=error.hint, details=said)
    return error


def _that_shows_the_key(said: str, host: str) -> str:
    name, file = _CHANGED.search(said), _OFFENDING.search(said)
    at = f" -f {quote(file[1])}" if file else ""
    return f"ssh-keygen -l -F {quote(name[1]) if name else host}{at}"
