"""bubblewrap (`bwrap`): whether it works here, and mounts as its arguments. Linux only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence

from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.system import process
from mngr.system.process import ProgramMissing, find_program

READ_ONLY, WRITABLE = "--ro-bind", "--bind"
SYSTEM = ("/usr", "/etc", "/opt", "/nix", "/gnu", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# What only root can read: an agent of root must not.
_SECRET = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d")
_SECRET_DIRS = ("/etc/ssh", "/etc/ssl/private", "/etc/wireguard", "/etc/NetworkManager/system-connections")
# The monitor outside must outlive what the terminal sends to the program inside, which gets the defaults back.
SIGNALS = "HUP INT QUIT TERM"
INSIDE = ["env", f"--default-signal={SIGNALS.replace(' ', ',')}", "sh", "-c"]
_ISOLATED = ["--unshare-all", "--cap-drop", "ALL", "--unsetenv", "TMUX", "--unsetenv", "TMUX_PANE"]
_PROBE_SECONDS = 20.0
# What the kernel is set to when user namespaces are switched off, and what allows them.
_SWITCHES = {
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "user/max_user_namespaces": ("0", "10000"),
}


class Mount(NamedTuple):
    """`how` is one of the words above; `source` is where it comes from, by default the same path."""

    path: str
    how: str = READ_ONLY
    source: str = ""


def arguments(mounts: Iterable[Mount], *, network: bool, env: Mapping[str, str]) -> list[str]:
    """A new world with the programs of this system, read-only, and these mounts. A mount lies over those above it."""
    words = [*_ISOLATED, *(["--share-net"] if network else [])]
    for path in SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    if os.geteuid() == 0:
        for path in (*_SECRET, *_SECRET_DIRS):
            if os.path.isdir(path):
                words += ["--tmpfs", path]
            elif os.path.exists(path):
                words += ["--ro-bind", "/dev/null", path]
    name_servers = os.path.realpath("/etc/resolv.conf")
    if network and not name_servers.startswith("/etc/"):
        words += ["--ro-bind-try", name_servers, name_servers]
    words += ["--proc", "/proc", "--dev", "/dev", "--dir", "/var", "--symlink", "/tmp", "/var/tmp"]
    for mount in sorted(mounts, key=lambda mount: mount.path.split("/")):
        words += [f"{mount.how}-try", mount.source or mount.path, mount.path]
    for name, value in env.items():
        words += ["--setenv", name, value]
    return words


def is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top.rstrip('/')}/")


def check() -> None:
    """Raise unless a sandbox can be made here, with what to do about it. Makes one for a moment."""
    if sys.platform != "linux":
        raise MngrError("a sandbox needs Linux", hint="leave out `--sandbox`, and use a container or another account")
    if find_program("bwrap") is None:
        raise ProgramMissing("bwrap")
    words = ["bwrap", *arguments((), network=False, env={}), "--chdir", "/", *INSIDE, "true"]
    tried = process.run(words, timeout=_PROBE_SECONDS)
    if not tried.ok:
        said = tried.error_text or tried.text
        hint = advice(said, {name: _kernel(name) for name in _SWITCHES})
        raise MngrError("bubblewrap cannot make a sandbox on this machine", hint=hint, details=said)


def advice(said: str, facts: Mapping[str, str]) -> str:
    """What to do, by what `bwrap` said and what the kernel is set to."""
    if "default-signal" in said:
        return "the `env` of GNU coreutils 8.31 or later is needed"
    for name, (off, on) in _SWITCHES.items():
        if facts.get(name) == off:
            allow = f"sudo sysctl -w {name.replace('/', '.')}={on}"
            return f"user namespaces are switched off; allow them: `{allow}`"
    return "it needs user namespaces; a container must allow them: `docker run --security-opt seccomp=unconfined ...`"


def shares_terminal() -> bool:
    """Whether a program in a sandbox may have our terminal: older kernels let it type there in our name."""
    return _kernel("dev/tty/legacy_tiocsti") == "0"


def _kernel(name: str) -> str:
    try:
        with open(f"/proc/sys/{name}", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def file_form(words: Sequence[str]) -> bytes:
    """Arguments as `bwrap --args` reads them."""
    return b"".join(os.fsencode(word) + b"\0" for word in words)
