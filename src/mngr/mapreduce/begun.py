"""Which runs a user of this state directory began, or trusted. A run is in a directory of the project, so a clone may
bring one, with commands in its ledger: nothing of such a run counts before its user has seen it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from mngr.errors import Undecided
from mngr.mapreduce.ledger import FILE
from mngr.mapreduce.run import Run, all_of
from mngr.settings import trust
from mngr.settings.trust import Claim
from mngr.settings.values import toml_text
from mngr.system import inside

MARK = "begun"  # in the directory of a run: what nobody who made a copy of the ledger knows
_MARK_BYTES = 100
# What a ledger is full of and nothing obeys.
_TOLD = frozenset({"run", "version", "pid", "recipe", "base"})


def note(host_dir: str, root: str, directory: str) -> None:
    """Note that the user of this state directory began the run there, in the project at `root`. Twice is safe."""
    mark = os.urandom(16).hex()
    inside.write(directory, MARK, mark.encode())
    trust.remember(host_dir, [_claim(root, directory, mark)])


def is_noted(host_dir: str, root: str, directory: str) -> bool:
    try:
        mark = (inside.read(directory, MARK, _MARK_BYTES) or b"").decode(errors="replace")
    except inside.UnsafePath:
        return False
    return bool(mark) and trust.is_trusted(host_dir, _claim(root, directory, mark))


def unknown(host_dir: str, root: str) -> Sequence[Run]:
    """The runs in the project at `root` that are not noted, oldest first."""
    return [Run(place) for place in all_of(root) if not is_noted(host_dir, root, place)]


def claim(root: str, run: Run) -> Claim:
    """What a run would do that the user did not begin: everything that its ledger says it was asked for, and a checksum
    of all that it says."""
    facts = {name: value for name, value in run.state.facts.items() if name not in _TOLD}
    name = os.path.relpath(run.directory, root)
    lines = [f"{key} = {toml_text(value)}" for key, value in sorted(_leaves(facts))]
    return Claim(root, name, (*lines, *trust.of_files(root, os.path.join(name, FILE)).lines))


def refused(claim: Claim) -> Undecided:
    return Undecided(
        f"the run in `{claim.name}` was not begun by you on this machine, and you have not trusted it",
        details="\n".join(claim.lines),
        hint="if you want to go on with what it was asked to do: `mngr config trust`",
    )


def _claim(root: str, directory: str, mark: str) -> Claim:
    return Claim(root, os.path.realpath(directory), (mark,))


def _leaves(tree: Mapping[str, object], above: str = "") -> Iterator[tuple[str, str]]:
    """Every value that says something, as text, with its dotted key."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{name}.")
        elif value not in (None, "", [], {}, False):
            yield f"{above}{name}", value if isinstance(value, str) else str(value)
