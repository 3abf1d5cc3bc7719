"""Another machine that is this one: a user of its own, reached through a pipe with an empty environment."""

from collections.abc import Callable, Sequence
from typing import Any

from mngr.actions import create, destroy, execute, find, lifecycle
from mngr.actions.create import CreateRequest
from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.programs.kind import Kind
from mngr.remote.channel import Channel, Opening
from tests.support.user import User

# Run by a shell on a machine that has no repository yet.
REPOSITORY = """
git config --global user.name far; git config --global user.email far@example.com
git init -q -b main /root/repo && cd /root/repo && git commit -q --allow-empty -m init
"""


def argv(far: User) -> list[str]:
    """A program that runs the shell command line at its end there. Nothing of the caller's environment gets there."""
    known = {name: far.env[name] for name in ("HOME", "PATH", "TMUX_TMPDIR")}
    return ["env", "-i", *(f"{name}={value}" for name, value in known.items()), "sh", "-c"]


def opening(far: User, before: Sequence[str] = ()) -> Opening:
    return Opening("far", [*before, *argv(far)], far.env, seconds=30.0)


def open_channel(far: User) -> Channel:
    return Channel(opening(far))


def call(channel: Channel, verb: Callable[..., Any], *args: object, **options: object) -> Any:
    return channel.call(f"{verb.__module__}:{verb.__name__}", args, options)


def create_one(channel: Channel, request: CreateRequest) -> Record:
    (made,) = call(channel, create.create, [request])
    if isinstance(made, MngrError):
        raise made
    assert isinstance(made, Record)
    return made


def use(channel: Channel, repo: str, name: str = "foo") -> str:
    """Make an agent, look at it, run a command beside it, stop it and destroy it. Returns what the command printed."""
    request = create.CreateRequest(name=name, kind=Kind("command"), rest=("sleep 9999",), source=repo)
    record = create_one(channel, request)
    views, errors = call(channel, find.listing)
    assert ([(view.name, view.state) for view in views], errors) == ([(name, "RUNNING")], [])
    done = call(channel, execute.execute, record.id, "echo $HOME; pwd; git log --format=%s", timeout=60)
    call(channel, lifecycle.stop, record.id)
    assert [view.state for view in call(channel, find.listing)[0]] == ["STOPPED"]
    call(channel, destroy.destroy, record.id)
    assert call(channel, find.listing) == ([], [])
    return done.stdout.decode()
