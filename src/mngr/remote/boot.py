"""First contact with a host: find its Python, send our program if the host does not have it, start `serve` there.

One POSIX `sh` line does it, so that any login shell can run it. A random token marks the first byte of ours: login
shells print greetings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache

from mngr.errors import UNREACHED, MngrError, UsageError
from mngr.named_tuples import NamedTuple
from mngr.system.process import quote

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What runs on the agent's host; the command line, the pipeline and its pages stay here.
_DIRECTORIES = ("actions", "agent", "programs", "remote", "settings", "system", "workspace")
_NEAR_ONLY = ("plugins.py", "settings/edit.py")
_PYTHONS = "python3 python3.14 python3.13 python3.12 python3.11 python3.10"
_START = """import sys
sys.path.insert(0, sys.argv[1])
from mngr.remote.serve import main
main()
"""
# Takes the zip from the stream, exactly as many bytes as it has, and unpacks it where nobody sees half of it.
_UNPACK = """import io, os, shutil, sys, zipfile
place = sys.argv[1]
def read(size):
    data = b""
    while len(data) < size:
        part = os.read(0, min(size - len(data), 65536))
        if not part:
            sys.exit(1)
        data += part
    return data
data = read(int(read(10)))
draft = "%s.%d.draft" % (place, os.getpid())
state = os.path.dirname(os.path.dirname(place))
try:
    os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
    # The rooms and drafts of another mngr, which prepares this directory right now, are ours too.
    ours = {"lib", "settings.toml", "agents", "locks", "worktrees", "clones", "saved", "snapshots"}
    others = [name for name in os.listdir(state) if name not in ours and not name.endswith(".draft")]
    if others and not os.path.exists(os.path.join(state, "format")):
        sys.stderr.write("%s was written by another program" % state)
        sys.exit(1)
    zipfile.ZipFile(io.BytesIO(data)).extractall(draft)
    for name, text in (("python", sys.executable), ("path", sys.argv[3])):
        with open(os.path.join(draft, name), "w") as file:
            file.write(text.replace(chr(10), "") + chr(10))
    os.rename(draft, place)
except OSError as error:
    shutil.rmtree(draft, True)
    if not os.path.isdir(place):
        sys.stderr.write("mngr cannot be unpacked to %s: %s" % (place, error.strerror))
        sys.exit(1)
os.umask(int(sys.argv[2], 8))
os.execv(sys.executable, [sys.executable, "-I", "-S", "-X", "utf8", os.path.join(place, "start.py"), place])
"""
# `$d` is the state directory, `$l` our program in it, `$p` the Python that unpacked it, `$q` the PATH of a login shell,
# which is asked once, `$m` the umask that verbs get: the user's, if he can read what he writes. No single quote,
# backslash or newline: csh and fish read this line too. A Python is tried, since a version manager leaves names that do
# not run.
_LINE = (
    "m=$(umask); case $m in *0[0-7][0-7]) ;; *) m=077;; esac; umask 77; "
    "h=${{HOME:-$(getent passwd $(id -u) | cut -d: -f6)}}; d={state}; export HOME=$h MNGR_HOST_DIR=$d; "
    'l=$d/lib/{key}; if [ -r "$l/path" ]; then read -r q < "$l/path"; else '
    't=; command -v timeout >/dev/null 2>&1 && t="timeout 5"; '
    'q=$($t "${{SHELL:-sh}}" -lc env </dev/null 2>/dev/null | grep ^PATH=/ | tail -n 1); '
    "case $q in PATH=/*) q=${{q#PATH=}} ;; *) q= ;; esac; fi; "
    "PATH=$PATH:$q:{programs}; export PATH; "
    "n=; for n in tmux git; do command -v $n >/dev/null 2>&1 || break; n=; done; "
    'if [ -z "$n" ]; then if [ -e "$l/python" ]; then read -r p < "$l/python"; if [ -x "$p" ]; then '
    'echo "{token} ready"; umask $m; exec "$p" -I -S -X utf8 "$l/start.py" "$l"; fi; fi; '
    'for p in {pythons}; do $p -I -S -c "import sys; sys.exit(sys.version_info < (3, 10))" >/dev/null 2>&1 && '
    'echo "{token} send" && exec $p -I -S -c '
    '"import os; exec(bytes().join(os.read(0, 1) for i in range({unpack})))" "$l" "$m" "$q"; done; n=python3; fi; '
    'ID=; [ -e /etc/os-release ] && . /etc/os-release; echo "{token} missing $n $ID"; exit 127'
)
# Where programs are that a person's login shell finds, and the shell of a connection does not.
_PROGRAMS = "$h/.local/bin:$h/bin:$h/.cargo/bin:$h/.npm-global/bin:/usr/local/bin:/opt/homebrew/bin"
# What runs on the host beside our program finds the same programs. Ours is there: a channel was open before.
_FIND = (
    "h=${{HOME:-$(getent passwd $(id -u) | cut -d: -f6)}}; d={state}; export HOME=$h; l=$d/lib/{key}; q=; "
    'if [ -r "$l/path" ]; then read -r q < "$l/path"; fi; PATH=$PATH:$q:{programs}; export PATH; '
)
_TERMINAL = (
    'read -r p < "$l/python"; exec "$p" -I -S -c '
    '"import sys; sys.path.insert(0, sys.argv[1]); from mngr.remote.terminal import far; far()" "$l"'
)
_INSTALL = {
    **dict.fromkeys(("debian", "ubuntu", "raspbian", "linuxmint"), "apt-get install -y {}"),
    **dict.fromkeys(("fedora", "rhel", "centos", "rocky", "almalinux", "amzn"), "dnf install -y {}"),
    "alpine": "apk add {}",
    "arch": "pacman -Sy --noconfirm {}",
}

_NEEDED = "python3 tmux git rsync"


class Program(NamedTuple):
    """Our program as another host gets it: its name by content, and its files."""

    key: str
    files: dict[str, bytes]

    def zipped(self) -> bytes:
        import io
        import zipfile

        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.files.items():
                archive.writestr(name, data)
        return target.getvalue()


@cache
def program() -> Program:
    """The half of this package that runs on an agent's host. Read once per process, for all hosts."""
    import zlib  # `hashlib` takes two milliseconds to import; nobody gains by making two versions look alike

    files = {f"mngr/{name}": _read(os.path.join(PACKAGE, name)) for name in sorted(_names())}
    files["start.py"] = _START.encode()
    first, second = 0, 1
    for name, data in files.items():
        for part in (b"%d %d %s" % (len(name), len(data), name.encode()), data):
            first, second = zlib.crc32(part, first), zlib.adler32(part, second)
    return Program(f"{first:08x}{second:08x}", files)


def _names() -> Iterator[str]:
    yield from (name for name in os.listdir(PACKAGE) if name.endswith(".py") and name not in _NEAR_ONLY)
    for top in _DIRECTORIES:
        for directory, inner, names in os.walk(os.path.join(PACKAGE, top)):
            inner[:] = [name for name in inner if name != "__pycache__"]
            here = os.path.relpath(directory, PACKAGE)
            yield from (path for name in names if (path := os.path.join(here, name)) not in _NEAR_ONLY)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def load(found: Program) -> bytes:
    """What a host gets that asks for our program: the few lines that unpack it, and the program."""
    zipped = found.zipped()
    return _UNPACK.encode() + b"%010d" % len(zipped) + zipped


def line(key: str, token: str, state_dir: str = "") -> str:
    """What the host's login shell is given to run. `state_dir` is the state directory there, by default `~/.mngr`."""
    words = {"key": key, "pythons": _PYTHONS, "programs": _PROGRAMS, "token": token, "unpack": len(_UNPACK)}
    script = _LINE.format(state=state_word(state_dir), **words)
    return f"exec sh -c {quote(script)}"


def greeting(seen: bytes, token: bytes) -> tuple[bytes, list[str] | None, bytes]:
    """What a login printed before our token, the words after it once their line is whole, and what follows."""
    before, found, after = seen.partition(token)
    line, end, rest = after.partition(b"\n")
    return before, line.decode("ascii", "replace").split() if found and end else None, rest


def terminal_line(key: str, state_dir: str = "") -> str:
    """What the host's login shell is given to run `mngr.remote.terminal.far`."""
    return f"exec sh -c {quote(finding(key, state_dir) + _TERMINAL)}"


def finding(key: str, state_dir: str = "") -> str:
    """Shell commands after which the programs of the host are found, for a POSIX shell."""
    return _FIND.format(state=state_word(state_dir), key=key, programs=_PROGRAMS)


def state_word(state_dir: str) -> str:
    """The state directory of a host as a word of a shell there, in which `$h` is the home directory."""
    if any(character in state_dir for character in "'\"\\$`!\n"):
        raise UsageError(f"the state directory {state_dir!r} has characters that a login shell may change")
    return f'"$h/{state_dir[2:]}"' if state_dir.startswith("~/") else f'"{state_dir}"' if state_dir else "$h/.mngr"


class Missing(MngrError):
    """A program that we need is not on the host. `install` installs all that we need there, if that is known."""

    exit_code = UNREACHED
    install = ""


def missing(words: Sequence[str], host: str) -> Missing:
    """What a host lacks, with the command that installs it there."""
    name, system = words[0], words[1] if len(words) > 1 else ""
    install = _INSTALL.get(system, "")
    what = "Python 3.10 or newer" if name == "python3" else f"`{name}`"
    found = Missing(
        f"`{host}` has no {what} on its PATH",
        hint=f"install it there: `{install.format(name)}`" if install else f"install `{name}` there",
    )
    found.install = "apt-get update && DEBIAN_FRONTEND=noninteractive " if "apt" in install else ""
    found.install += install.format(_NEEDED)
    return found
