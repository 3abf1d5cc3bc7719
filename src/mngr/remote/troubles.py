"""Why a host could not be reached, from what ssh, its login or our program there printed: a hint for a person."""

from __future__ import annotations

# The first text that was printed decides. These are the words of OpenSSH and of the C library, which no locale changes
# in ssh and a far locale may change elsewhere: then there is no hint, and what was printed is shown as it is.
_HINTS = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "`ssh-keygen -F {host}` shows the known key; if the change is right, remove that key: `ssh-keygen -R {host}`",
    ),
    ("Host key verification failed", "check the key of the host once, by hand: `ssh {host}`"),
    ("Permission denied (", "`ssh -v {host} true` shows which keys were offered"),
    ("Could not resolve hostname", "`ssh -G {host}` shows the name and address that ssh uses"),
    ("UNKNOWN port 65535", "`ssh -v {host} true` shows which jump host or proxy it is"),
    ("Connection refused", "check that the host runs and has sshd: `ssh -v {host} true`"),
    ("Connection timed out", "check that the host runs and can be reached: `ssh -v {host} true`"),
    ("No route to host", "check that the host runs and can be reached: `ssh -v {host} true`"),
    ("restricted", "mngr needs a login shell that is not restricted: `ssh {host} 'exec sh -c pwd'` has to work"),
    ("No space left on device", "`ssh {host} df -h .` shows the disk there; make room, or set another `host_dir`"),
    ("Read-only file system", "set another `host_dir` for this provider, one that can be written there"),
    ("Permission denied", "set another `host_dir` for this provider, one that can be written there"),
)


def hint(printed: str, host: str, program: str) -> str:
    """One action for a person, or nothing. `program` is what opens the connection; only `ssh` has hints of its own."""
    if program != "ssh":
        return ""
    found = ((printed.find(words), advice) for words, advice in _HINTS)
    seen = [(at, order, advice) for order, (at, advice) in enumerate(found) if at >= 0]
    return min(seen)[2].format(host=host) if seen else f"see what the login does: `ssh {host} 'echo ok'`"


def printable(data: bytes, at_most: int = 4 << 10) -> str:
    """The end of what another program printed, without what a terminal would act on."""
    text = data[-at_most:].decode("utf-8", "replace")
    return "".join(c for c in text if c in "\n\t" or c.isprintable())
