"""What an orchestrator costs that holds a hundred channels on which nothing happens. Linux only: reads /proc."""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from mngr.actions import wait
from mngr.errors import MngrError
from mngr.mapreduce.clock import MACHINE
from mngr.remote.channel import Channel, Opening

CHANNELS = 100
_WATCHED_SECONDS = 30.0
MOST_MEGABYTES = 150.0
MOST_CPU_PERCENT = 5.0


@contextmanager
def idle_channels(count: int) -> Iterator[list[Channel]]:
    """Channels to this many programs of ours, each started by a shell with an environment of its own. On each, one call
    waits for events of agents, as the watch of a run does."""
    home = tempfile.mkdtemp(prefix="mngr-channels-")
    words = ["env", "-i", f"HOME={home}", f"PATH={os.environ['PATH']}", f"TMUX_TMPDIR={home}", "sh", "-c"]
    opening = Opening("far", words, dict(os.environ), seconds=120.0)
    channels: list[Channel] = []
    try:
        channels.append(Channel(opening))  # the first one brings our program there
        with ThreadPoolExecutor(4) as pool:
            channels += pool.map(lambda _: Channel(opening), range(count - 1))
        for channel in channels:
            threading.Thread(target=_follow, args=(channel,), daemon=True).start()
        yield channels
    finally:
        for channel in channels:
            channel.close()
        shutil.rmtree(home, ignore_errors=True)


def _follow(channel: Channel) -> None:
    verb = wait.changed_agents
    try:
        for _ in channel.call(f"{verb.__module__}:{verb.__name__}", (), {}):
            pass
    except MngrError:
        return  # the channel was closed


def measured(count: int = CHANNELS, seconds: float = _WATCHED_SECONDS) -> dict[str, float]:
    """CPU, memory, threads and open files of this process: before the channels, and while they do nothing."""
    before = _status()
    began = time.monotonic()
    with idle_channels(count) as channels, tempfile.TemporaryDirectory() as quiet:
        opened = time.monotonic() - began
        time.sleep(5.0)
        cpu, began = time.process_time(), time.monotonic()
        for _ in MACHINE.wakes([quiet], threading.Event()):  # as the loop of an engine waits
            if time.monotonic() - began >= seconds:
                break
        spent = (time.process_time() - cpu) / (time.monotonic() - began)
        now = _status()
        lost = sum(channel.lost for channel in channels)
    figures = {"channels": float(count), "lost": float(lost), "open_seconds": opened, "cpu_percent": spent * 100}
    return {**figures, **now, **{f"{name}_before": value for name, value in before.items()}}


def _status() -> dict[str, float]:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "megabytes": int(lines["VmRSS"].split()[0]) / 1024,
        "threads": float(lines["Threads"]),
        "files": float(len(os.listdir("/proc/self/fd"))),
    }


def shown(found: dict[str, float]) -> str:
    return (
        "{channels:.0f} channels on which nothing happens ({lost:.0f} lost, opened in {open_seconds:.0f} s):\n"
        "  {cpu_percent:.2f} % of a core, {megabytes:.0f} MB ({megabytes_before:.0f} before), "
        "{threads:.0f} threads, {files:.0f} open files"
    ).format(**found)


def is_within(found: dict[str, float]) -> bool:
    light = found["megabytes"] <= MOST_MEGABYTES and found["cpu_percent"] <= MOST_CPU_PERCENT
    return light and not found["lost"]
