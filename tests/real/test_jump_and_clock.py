"""Hosts that are reached through another, and hosts whose clock is an hour off: nothing a user sees differs."""

import os
import pwd
import subprocess
import time
from collections.abc import Iterator

import pytest

from mngr.agent.record import seconds_of
from tests.support.sshd import Sshd, program
from tests.support.user import User

# Every program of a login sees another time of the day; how long things take is as it is.
_CLOCK = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long ahead(void) { const char *text = getenv("CLOCK_AHEAD"); return text ? atol(text) : 0; }
int clock_gettime(clockid_t which, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, which, now);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead();
    return failed;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}
"""
HOUR = 3600


@pytest.fixture
def far() -> Iterator[User]:
    made = User()
    try:
        yield made
    finally:
        made.close()


def another_clock(far: User, ahead: int) -> dict[str, str]:
    """The environment of logins that have it, also for the tmux server, which gets little of an environment."""
    source, library, tmux = far.root / "clock.c", far.root / "clock.so", far.root / "clock" / "tmux"
    source.write_text(_CLOCK)
    subprocess.run([program("cc"), "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    tmux.parent.mkdir()
    tmux.write_text(f'#!/bin/sh\nLD_PRELOAD={library} CLOCK_AHEAD={ahead} exec {program("tmux")} "$@"\n')
    tmux.chmod(0o755)
    path = f"{tmux.parent}:{far.env['PATH']}"
    return {"LD_PRELOAD": str(library), "CLOCK_AHEAD": str(ahead), "PATH": path}


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_ages_are_right_on_a_host_whose_clock_is_an_hour_off(user: User, far: User, ahead: int) -> None:
    with Sshd(far, environ=another_clock(far, ahead)) as box:
        user.env.update(box.client.env(user.env))
        began = time.time()
        user.mngr("create", "foo@box", "--no-connect", "--command", "cat").ok()
        there = float(user.mngr("exec", "foo", "date +%s").ok().stdout)
        assert abs(there - time.time() - ahead) < HOUR / 2, "the host has another time"
        agent = user.agent("foo")
        moments = [seconds_of(agent[name]) for name in ("create_time", "start_time", "state_since")]
        assert all(began - 60 < moment < time.time() + 60 for moment in moments), (began, moments)
        assert all(agent[name] < HOUR / 2 for name in ("runtime_seconds", "idle_seconds"))
        assert "1 h" not in user.mngr("list").ok().stdout
        assert "foo" not in user.mngr("cleanup", "--dry-run", "--older-than", "30m").ok().stdout
        user.mngr("snapshot", "create", "foo", "kept").ok()
        assert "1 h" not in user.mngr("snapshot", "list").ok().stdout
        user.mngr("limit", "foo", "--timeout", "50m").ok()
        assert user.state("foo") == "RUNNING"
        box.close()
        agent = user.agent("foo")
        assert agent["state"] == "UNKNOWN"
        assert "RUNNING" in agent["state_reason"] and " h ago" not in agent["state_reason"]
        moments = [seconds_of(agent[name]) for name in ("create_time", "start_time", "state_since")]
        assert all(began - 60 < moment < time.time() + 60 for moment in moments), (began, moments)


def test_a_host_behind_a_jump_host_is_like_any_other(user: User, far: User) -> None:
    gate = User()
    try:
        login = pwd.getpwuid(os.getuid()).pw_name
        # The gate lets connections through and nothing else: a shell there would end at once.
        with Sshd(far, name="inner") as inner, Sshd(gate, name="gate", extra=["ForceCommand /bin/false"]) as outer:
            outer.client.add("box", "127.0.0.1", port=inner.port, login=login, more=["ProxyJump gate"])
            outer.client.trust("127.0.0.1", port=inner.port)
            user.env.update(outer.client.env(user.env))
            user.mngr("create", "foo@box", "--no-connect", "--command", "cat").ok()
            user.mngr("message", "foo", "-m", "hello").ok()
            user.mngr("exec", "foo", "echo two > two; git add two; git commit -qm two; echo 3 > three").ok()
            user.mngr("pull", "foo").ok()
            assert user.git("log", "-1", "--format=%s", "mngr/foo") == "two"
            user.mngr("pull", "foo:three", "got").ok()
            assert (user.repo / "got").read_text() == "3\n"
            assert "Accepted publickey" in outer.log()
            outer.close()
            inner.drop()
            agent = user.agent("foo")
            assert agent["state"] == "UNKNOWN", agent
            stopped = user.mngr("stop", "foo").failed(6)
            assert "the way to `box` is closed: a jump host" in stopped.stderr or "refuse" in stopped.stderr, stopped
    finally:
        gate.close()
