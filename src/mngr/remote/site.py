"""A site on another machine: the same verbs, run there by our program at the other end of a channel."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from mngr.actions.site import RemotePath, Site
from mngr.errors import MngrError
from mngr.remote import boot, shapes
from mngr.remote.channel import BEAT_SECONDS, Channel, Opening, Unreached
from mngr.system.git import with_config
from mngr.system.process import CommandFailed, join, quote
from mngr.system.waiting import wait_until

if TYPE_CHECKING:
    from mngr.settings.layers import Settings

P = ParamSpec("P")
T = TypeVar("T")

# The settings that verbs read on the agent's host. Everything else stays here: it may hold secrets and paths.
_SENT = ("tmux.session_prefix", "tmux.history_lines", "record.max_mb", "saved.ignored_max_mb")
# How long a verb may show no progress; those of `_LOOKS` change nothing and wait for nobody.
_VERB_SECONDS = 600.0
_LOOK_SECONDS = 60.0
_LOOKS = frozenset(f"mngr.actions.{name}" for name in ("find", "screen", "transcript", "outcome", "usage"))
# The stream of verbs and a copy that runs beside it are lost at the same moment, and noticed at nearly the same.
_LOST_SECONDS = 1.5
# What git and rsync call the host; the program that they run to reach it knows which one is meant.
_ALIAS = "mngr"
# What a host calls our terminal when it does not know the name that we have for it.
_COMMON_TERM = "xterm-256color"
# A host is not trusted: what it sends is checked before it is kept, and starts nothing here.
# A POSIX shell runs the line there, whatever the login shell is.
_SCRIPT = """\
#!/bin/sh
# {what}
shift
line=$(printf '%s' {find}"$*" | sed "s/'/'\\\\\\\\''/g")
exec {argv} "exec sh -c '$line'"
"""
_CAREFUL_GIT = {"transfer.fsckObjects": "true", "core.hooksPath": os.devnull, "fetch.recurseSubmodules": "false"}


class RemoteSite(Site):
    """A site that is reached through what `opening` gives. The channel opens with the first verb and is held until
    `close`. The site's files, records and tmux server are not here: only verbs reach them."""

    def __init__(self, name: str, provider: str, opening: Callable[[], Opening], local: Site) -> None:
        self.name, self.provider = name, provider
        self.environ, self.cwd = local.environ, local.cwd
        self.__dict__["settings"] = local.settings
        self._local = local
        self._how = opening
        self._channel: Channel | None = None
        self._lock = threading.Lock()
        self._failure: MngrError | None = None
        self._failed_at = 0.0
        self.requests = 0  # how many calls were sent to the host so far

    @property
    def local(self) -> Site:
        return self._local

    @cached_property
    def _opening(self) -> Opening:
        """Raises when the provider is not there any more."""
        return self._how()

    def run(self, verb: Callable[Concatenate[Site, P], T], *args: P.args, **options: P.kwargs) -> T:
        """Run a verb on the agent's host: one request and its answer. Raises what the verb raises there, and Unreached
        when no answer came; then the verb may or may not be done."""
        annotation = verb.__annotations__.get("return", "object")
        patience = self._patience(verb, options)
        channel = self._open()
        self.requests += 1
        found = channel.call(f"{verb.__module__}:{verb.__name__}", args, options, patience)
        if isinstance(found, Iterator):
            return cast("T", self._checked(found, annotation))
        if not shapes.fits(found, annotation):
            raise self._wrong()
        return cast("T", found)

    def _patience(self, verb: Callable[..., object], options: Mapping[str, object]) -> float | None:
        """Seconds without an answer or progress after which a verb is given up; None where nothing may happen for as
        long as the caller wants: one that follows, or waits without a timeout."""
        longest = self.settings.number("hosts.verb_seconds", _VERB_SECONDS)
        wanted = [options.get(name, 0.0) for name in ("timeout", "graceful_seconds")]
        if verb.__name__.startswith("follow") or wanted[0] is None:
            return None
        base = min(longest, _LOOK_SECONDS) if verb.__module__ in _LOOKS else longest
        return base + sum(float(some) for some in wanted if isinstance(some, int | float))

    def _checked(self, items: Iterator[object], annotation: object) -> Iterator[object]:
        for item in items:
            if not shapes.fits([item], annotation):
                raise self._wrong()
            yield item

    def _wrong(self) -> Unreached:
        return Unreached(f"`{self.name}` sent something that is not an answer", details="it has another form")

    def hang_up(self) -> None:
        """Begin to end the connection; `close` waits for its end."""
        if self._channel is not None:
            self._channel.hang_up()

    def close(self) -> None:
        """End the connection. Agents keep running; the next verb opens a new connection."""
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    @contextmanager
    def carrying(self) -> Iterator[None]:
        try:
            yield
        except CommandFailed as error:
            if not wait_until(lambda: self._channel is None or self._channel.lost, timeout=_LOST_SECONDS):
                raise
            raise Unreached(
                f"the connection to `{self.name}` was lost: {error.message}",
                details=error.details,
                hint="nothing was changed; when the host answers again (`mngr host list`), try once more",
            ) from None

    def git_path(self, directory: str) -> RemotePath:
        how = {"GIT_SSH_COMMAND": f"sh {quote(self._script())}", "GIT_SSH_VARIANT": "simple"}
        env = with_config({**self._opening.env, **how, "GIT_ALLOW_PROTOCOL": "ssh"}, _CAREFUL_GIT)
        return RemotePath(f"{_ALIAS}:{directory}", env)

    def rsync_path(self, path: str) -> RemotePath:
        return RemotePath(f"{_ALIAS}:{path}", {**self._opening.env, "RSYNC_RSH": f"sh {quote(self._script())}"})

    def terminal_argv(self, argv: Sequence[str]) -> list[str]:
        kind = self.environ.get("TERM") or _COMMON_TERM
        known = f"infocmp {quote(kind)} >/dev/null 2>&1 && TERM={quote(kind)} || TERM={_COMMON_TERM}; export TERM"
        line = f"{known}; exec {join(argv)}"
        if self._opening.terminal:
            return [*self._opening.terminal, line]
        there = boot.terminal_line(boot.program().key, self._opening.state_dir)
        return [sys.executable, "-P", "-m", "mngr.remote.terminal", line, *self._opening.argv, there]

    def _script(self) -> str:
        """A script that runs a shell command line on the host, as `ssh HOST COMMAND` does, for git and rsync."""
        host = self._local.host
        path = os.path.join(host.dir, "hosts", self.provider, f"{self.name}.sh")
        what = f"HOST COMMAND...: run the command line on {self.name!r}"
        find = boot.finding(boot.program().key, self._opening.state_dir)
        text = _SCRIPT.format(what=what, find=quote(find), argv=join(self._opening.argv))
        try:
            if host.read(path) == text.encode("utf-8", "surrogateescape"):
                return path
        except FileNotFoundError:
            host.make_dir(os.path.dirname(path))
        host.write(path, text.encode("utf-8", "surrogateescape"), 0o700)
        return path

    def _open(self) -> Channel:
        """The open channel. Whoever waited while another thread tried to connect in vain gets the same error: to a host
        that does not answer, each try takes long."""
        began = time.monotonic()
        with self._lock:
            if self._channel is None or self._channel.lost:
                if self._failure is not None and began <= self._failed_at:
                    raise self._failure
                try:
                    self._channel = self._connected()
                except MngrError as error:
                    self._failure, self._failed_at = error, time.monotonic()
                    raise
                self.clock_skew = self._channel.clock_skew
            return self._channel

    def _connected(self) -> Channel:
        for recover in (self._opening.recover, self._opening.recover, None):
            try:
                longest = self.settings.number("hosts.verb_seconds", _VERB_SECONDS)
                return Channel(self._opening, sent(self.settings), min(BEAT_SECONDS, longest / 4))
            except (Unreached, boot.Missing) as error:
                if recover is None:
                    raise
                recover(error)
        raise AssertionError


def sent(settings: Settings) -> dict[str, object]:
    """The settings that are sent to a host."""
    return {key: found for key in _SENT if (found := settings.get(key)) is not None}
