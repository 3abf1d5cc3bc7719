"""The first process of a sandbox with a limit: at the limit it puts the home directory into a volume of Modal, and
ends, and with it the sandbox. The next sandbox of that host begins with what it finds there.

Nobody has to be connected for that, no address has to be public, and no login is in the sandbox."""

from __future__ import annotations

from mngr.providers.command import keeper

PLACE = "/mnt/mngr-kept"
KEPT = ".tgz"
# Between saving at the latest, and Modal's own end of the sandbox.
_MOST_SECONDS_TO_SAVE = 600.0

# Arguments: the file in the volume, and our state directory if it is not `~/.mngr`. A file that cannot be unpacked
# stays in the volume under another name. A file that changes while it is read makes tar end with 1.
_SCRIPT = """\
kept=$1
case $2 in "") state=$HOME/.mngr ;; "~/"*) state=$HOME/${2#"~/"} ;; *) state=$2 ;; esac
case $state in "$HOME"/*) set -- "${HOME#/}" ;; *) set -- "${HOME#/}" "${state#/}" ;; esac
if [ -f "$kept" ]; then
  gzip -t "$kept" && rm -rf --one-file-system "$state" && tar -C / -xzpf "$kept" && rm -f "$kept"
  [ ! -f "$kept" ] || mv "$kept" "$kept.failed"
fi
(
WAIT
)
for process in /proc/[0-9]*; do
  if grep -qs "tmux: server" "$process/comm"; then kill "${process#/proc/}"; fi
done
sleep 1
tar -C / --one-file-system -czpf "$kept.part" -- "$@"
[ $? -gt 1 ] || mv "$kept.part" "$kept"
sync
"""


def command(host: str, host_dir: str, seconds: float, idle_seconds: float) -> list[str]:
    """What the sandbox of this host runs, if Modal ends it after so many seconds. 0: it never counts as idle."""
    longest = seconds - min(_MOST_SECONDS_TO_SAVE, seconds / 4)
    return ["sh", "-c", _SCRIPT.replace("WAIT", keeper(longest, idle_seconds)), "keeper", _file(host), host_dir]


def ready(host: str) -> list[str]:
    """A command that ends when what was kept is unpacked."""
    return ["sh", "-c", 'while [ -f "$0" ]; do sleep 0.1; done', _file(host)]


def _file(host: str) -> str:
    return f"{PLACE}/{host}{KEPT}"
