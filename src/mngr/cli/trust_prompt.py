"""Ask the user to trust what a repository wants to run or grant, and `mngr config trust` and `untrust`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from mngr.actions import restore
from mngr.cli.app import App, safe_option
from mngr.cli.output.terminal import visible
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import MngrError, UsageError
from mngr.named_tuples import NamedTuple
from mngr.programs import repository_trust
from mngr.settings import layers as config
from mngr.settings import trust
from mngr.settings.trust import Claim
from mngr.settings.values import Key, format_key
from mngr.system.state_dir import StateDir
from mngr.workspace.work.entry import SavedEntry


class TrustedFile(NamedTuple):
    file: str
    lines: tuple[str, ...]


class Trusted(NamedTuple):
    root: str
    trusted: list[TrustedFile]


class Untrusted(NamedTuple):
    """`removed`: how many answers were forgotten."""

    root: str
    removed: int


def results() -> list[Any]:
    return [Trusted, Untrusted]


def add_subcommands(parser: Parser) -> None:
    trust = parser.add_subcommand("trust", "Show what this project's files run or grant, and let them (`help trust`)")
    trust.option("--yes, -y", "do not ask")
    parser.add_subcommand("untrust", "Undo `trust` for this repository")


def asked_in_passing(app: App, claims: Sequence[Claim]) -> bool:
    """For a verb that needs it: show and ask in a terminal. False when nobody can be asked."""
    if app.headless:
        return False
    _ask(app, claims, refused="`mngr config trust` asks again; options you type win over it")
    _remember(app, claims)
    return True


def trust_made(app: App, root: str) -> None:
    """Trust the settings of a project that mngr itself has just made."""
    claim = _claim(app, "project", root)
    if claim is not None and claim.lines:
        _remember(app, [claim])


def trust_here(args: Args, app: App) -> None:
    """`mngr config trust`: everything in this project that needs it and does not have it."""
    from mngr.mapreduce import begun

    root = _root(app)
    files = [claim for claim in repository_trust.claims(root) if not trust.is_trusted(app.host_dir, claim)]
    runs = begun.unknown(app.host_dir, root)
    claims = [*app.settings.claims(), *files, *(begun.claim(root, run) for run in runs)]
    if not claims:
        app.out.emit_object(Trusted(root, []), human="nothing in this project needs trust")
        return
    if not args.yes:
        _ask(app, claims, hint="read the lines above, then `mngr config trust --yes`", refused="nothing was changed")
    _remember(app, claims)
    for run in runs:
        begun.note(app.host_dir, root, run.directory)
    files_trusted = [TrustedFile(claim.name, claim.lines) for claim in claims]
    app.out.emit_object(Trusted(root, files_trusted), human=f"trusted {_names(claims)} as it is now")


def untrust_here(args: Args, app: App) -> None:
    """`mngr config untrust`: forget what was trusted of this repository, in all of its worktrees."""
    root = _root(app)
    removed = trust.forget(app.host_dir, root)
    text = f"nothing of `{root}` is trusted any more" if removed else f"nothing of `{root}` was trusted"
    app.out.emit_object(Untrusted(root, removed), human=text)


@contextmanager
def changed_by_user(app: App, scope: str, cwd: str = "") -> Iterator[None]:
    """Around a change that the user makes to a settings file through mngr: a project's file that they trusted, or that
    needed no trust, stays trusted. On any error the answer is as it was."""
    before = _claim(app, scope, cwd)
    yield
    if before is None or (before.lines and not trust.is_trusted(app.host_dir, before)):
        return
    after = _claim(app, scope, cwd)
    if after is not None and after.lines:
        with suppress(MngrError):  # the state directory is another program's: no verb would use these settings with it
            _remember(app, [after])


def accepted(app: App, *, trusted: bool) -> Callable[[SavedEntry], SavedEntry]:
    """Return a function that asks whether an agent may run what another host says, and returns the entry without these
    claims. The function raises if the answer is no, or if nobody can be asked."""

    def accept(entry: SavedEntry) -> SavedEntry:
        if entry.claims and not trusted:
            if app.headless:
                restore.refuse_claims(entry)
            app.stdout.flush()
            app.stderr.write(f"{visible(entry.name)} was not made from this machine as its host says that it is:\n")
            for line in entry.claims:
                app.stderr.write(f"  {visible(line)}\n")
            if not app.confirm("Let it run this?"):
                raise MngrError(f"`{entry.name}` was left where it is", hint="nothing was changed")
        return entry._replace(claims=())

    return accept


def tell_withheld(app: App, key: Key = ()) -> None:
    """Note that some settings do not count, and why."""
    untrusted = app.settings.untrusted_keys(key)
    if untrusted:
        names = ", ".join(f"`{format_key(one)}`" for one in untrusted)
        app.out.note(f"not in force until you trust them: {names}; `mngr config trust` shows them")


def _claim(app: App, scope: str, cwd: str = "") -> Claim | None:
    """What a project's settings file needs trust for; None for the user's own, and for one that cannot be read."""
    if scope == "user":
        return None
    try:
        return trust.of_settings(
            config.read_scope(scope, app.host_dir, cwd or os.getcwd(), app.environ, [], safe_option)
        )
    except MngrError:
        return None


def _root(app: App) -> str:
    root = config.project_root(os.getcwd(), app.host_dir)
    if root is None:
        raise UsageError("this directory is not part of a project", hint="`cd` to the repository that you mean")
    return root


def _ask(app: App, claims: Sequence[Claim], *, refused: str, hint: str = "") -> None:
    """Show what needs trust and ask for it. Raises when the answer is no, with the hint `refused`."""
    app.stdout.flush()
    for claim in claims:
        app.stderr.write(f"{visible(os.path.join(claim.root, claim.name))}:\n")
        for line in claim.lines:
            app.stderr.write(f"  {visible(line)}\n")
    app.stderr.write("These can run commands as you, or let agents do more without asking.\n")
    if not app.confirm("Trust this?", hint=hint):
        raise MngrError(f"{_names(claims)} is not trusted", hint=refused)


def _remember(app: App, claims: Sequence[Claim]) -> None:
    StateDir(app.host_dir).is_ours()  # another program's is not written to
    trust.remember(app.host_dir, claims)


def _names(claims: Sequence[Claim]) -> str:
    return " and ".join(f"`{claim.name}`" for claim in claims)
