"""The first process of a sandbox: at a limit it puts the home directory into a volume of Modal, in which each host has
a directory, and ends, and with it the sandbox. The next sandbox of that host begins with what it finds there.

Nobody has to be connected for that, no address has to be public, and no login is in the sandbox."""

from __future__ import annotations

from mngr.providers import keeper

PLACE = "/mnt/mngr-kept"
KEPT = "home.tgz"
_FILE = f"{PLACE}/{KEPT}"
READY = ("sh", "-c", 'while [ -f "$0" ]; do sleep 0.1; done', _FILE)  # ends when what was kept is unpacked
# Between saving at the latest, and Modal's own end of the sandbox.
_MOST_SECONDS_TO_SAVE = 600.0

# Arguments: the file in the volume, and our state directory if it is not `~/.mngr`. A file that cannot be unpacked
# stays in the volume under another name. A file that changes while it is read makes tar end with 1. The sandbox goes on
# when its files could not be saved, or when somebody began to use it meanwhile.
_SCRIPT = """\
kept=$1 HOME=${HOME:-/root}
case $2 in "") state=$HOME/.mngr ;; "~/"*) state=$HOME/${2#"~/"} ;; *) state=$2 ;; esac
case $state in "$HOME"/*) set -- "${HOME#/}" ;; *) set -- "${HOME#/}" "${state#/}" ;; esac
if [ -f "$kept" ]; then
  gzip -t "$kept" && rm -rf --one-file-system "$state" && tar -C / -xzpf "$kept" && rm -f "$kept"
  [ ! -f "$kept" ] || mv "$kept" "$kept.failed"
fi
begin=$(date +%s)
is_old() { [ $(($(date +%s) - begin)) -ge LONGEST ]; }
while :; do
  idle=0
  until is_old || [ $idle -gt IDLE ]; do
    sleep STEP
    if is_used; then idle=0; else idle=$((idle + STEP)); fi
  done
  if is_old; then why="its host is as old as it may get (limit max_hours)"
  else why="its host was not used (limit idle_stop_minutes)"; fi
  ask end_all "$why"
  tar -C / --one-file-system -czpf "$kept.part" -- "$@"
  if [ $? -le 1 ]; then
    if is_old || ! is_used; then break; fi
  fi
done
mv "$kept.part" "$kept"
sync
"""
_NEVER = 10**9


def command(host_dir: str, seconds: float, idle_seconds: float, waiting_seconds: float) -> list[str]:
    """What a sandbox runs that Modal ends after `seconds`. `idle_seconds` 0: it is never idle."""
    longest = seconds - min(_MOST_SECONDS_TO_SAVE, seconds / 4)
    step = max(1, min(30, round((idle_seconds or longest) / 4)))
    script = keeper.functions(host_dir, waiting_seconds) + _SCRIPT
    for name, value in (("LONGEST", longest), ("IDLE", idle_seconds or _NEVER), ("STEP", step)):
        script = script.replace(name, f"{value:.0f}")
    return ["sh", "-c", script, "keeper", _FILE, host_dir]
