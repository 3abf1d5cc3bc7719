#!/usr/bin/env python3
"""A stand-in for `kubectl`: a pod is a directory with a HOME and a tmux directory, and `exec` starts a process there
without the caller's environment. Knows the few commands that a provider by settings uses, and refuses all others.

It reads `PODS`, the directory of the pods, `PODS_MOST`, how many there may be, and `PODS_SLOW`, seconds before `run`
answers, `PODS_BOOT`, seconds before a pod runs commands, and is run as a program, not
imported."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PODS = Path(os.environ["PODS"])


def fail(text: str) -> None:
    sys.exit(f"Error from server: {text}")


def pod(name: str) -> Path:
    if not (PODS / name / "pod.json").exists():
        fail(f'pods "{name}" not found')
    return PODS / name


def environment(place: Path) -> dict[str, str]:
    return {"HOME": str(place / "h"), "TMUX_TMPDIR": str(place / "t"), "PATH": os.environ["PATH"]}


def execute(words: list[str]) -> None:
    flag, name, dashes, *command = words
    if flag not in ("-i", "-it") or dashes != "--":
        fail(f"unknown words {words}")
    place = pod(name)
    if time.time() < (place / "pod.json").stat().st_mtime + float(os.environ.get("PODS_BOOT") or 0):
        fail("dial tcp: connection refused")
    os.chdir("/")
    os.execvpe(command[0], command, environment(place))


def create(words: list[str]) -> None:
    name, *options, dashes, shell, c, keeper = words
    at = options.index("--command")
    given = dict(option.removeprefix("--").split("=", 1) for option in options[:at])
    if dashes != "--" or [shell, c] != ["sh", "-c"] or set(given) != {"image", "labels"}:
        fail(f"unknown words {words}")
    place = PODS / name
    if len(list(PODS.iterdir())) >= int(os.environ.get("PODS_MOST") or 1000):
        fail(f'pods "{name}" is forbidden: exceeded quota')
    for inner in ("h", "t"):
        (place / inner).mkdir(parents=True)
    # A test that is killed leaves it running: the time is a limit for that.
    argv = ["timeout", "900", "sh", "-c", keeper]
    first = subprocess.Popen(
        argv,
        env=environment(place),
        cwd="/",
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    (place / "pod.json.new").write_text(json.dumps({**given, "pid": first.pid}))
    (place / "pod.json.new").rename(place / "pod.json")
    parent, end = os.getppid(), time.monotonic() + float(os.environ.get("PODS_SLOW") or 0)
    while time.monotonic() < end and os.getppid() == parent:  # the pod is there, and its maker does not know yet
        time.sleep(0.05)
    print(f"pod/{name} created")


def listed(words: list[str]) -> None:
    label = words[words.index("-l") + 1] if "-l" in words else None
    for place in sorted(place for place in PODS.iterdir() if (place / "pod.json").exists()):
        facts = json.loads((place / "pod.json").read_text())
        if label in (None, facts["labels"]):
            print(f"{place.name}   {'Running' if alive(facts['pid']) else 'Succeeded'}")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def delete(words: list[str]) -> None:
    place = pod(words[1])
    pid = json.loads((place / "pod.json").read_text())["pid"]
    if alive(pid):
        os.killpg(pid, signal.SIGKILL)
    subprocess.run(["tmux", "-L", "mngr", "kill-server"], env=environment(place), capture_output=True, check=False)
    shutil.rmtree(place)


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    {"exec": execute, "run": create, "get": listed, "delete": delete}[verb](rest)
