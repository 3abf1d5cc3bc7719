"""Bring home what an agent made: outcome file, commits, uncommitted work, artifacts, conversation, terminal.

Nothing that an agent left can do harm here: links are not followed, sizes are limited, and what cannot be had is a
problem in words beside what could.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from mngr import secrets
from mngr.errors import MngrError
from mngr.fleet.agent import Agent
from mngr.json_values import plain
from mngr.system import files, tree_removal
from mngr.system.git import Git
from mngr.tmr import outcome
from mngr.tmr.masking import mask_files
from mngr.tmr.measure.diagnosis import of_machine

_WORK = ("commits", "uncommitted work")


def harvest(git: Git, agent: Agent, *, task: str, directory: str, ref: str) -> Mapping[str, Any]:
    """Files go to `directory`, the agent's commit to `ref` of the repository `git`, what it did not commit to
    `ref`-uncommitted. Twice is safe. Returns the facts, as JSON; `problems` are what could not be brought. Raises where
    a full disk or a lock is in the way of the work itself: that is to be tried again."""
    files.make_private_dir(directory)
    problems: list[str] = []

    def attempt(what: str, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except (MngrError, OSError) as error:
            if what in _WORK and of_machine(f"{error}\n{getattr(error, 'details', '')}"):
                raise
            problems.append(f"{what}: {error}")
            return None

    tip = attempt("commits", lambda: fetch_commits(git, agent, ref))
    uncommitted = attempt("uncommitted work", lambda: _uncommitted(git, agent, ref))
    claim, claim_problem = _claim(agent, task, directory)
    attempt("artifacts", lambda: _artifacts(agent, os.path.join(directory, "artifacts")))
    said = attempt("transcript", agent.transcript) or ()
    lines = b"".join(files.json_bytes(entry) for entry in said)
    files.write_atomic(os.path.join(directory, "transcript.jsonl"), lines)
    if agent.record.spec.recorded:
        cast = attempt("recording", agent.recording)
        if cast:
            files.write_atomic(os.path.join(directory, "agent.cast"), cast)
    screen = attempt("screen", agent.capture)
    if screen:
        files.write_atomic(os.path.join(directory, "screen.txt"), screen.encode(errors="replace"))
    mask_files(directory, agent.secrets())
    return {
        "tip": tip,
        "uncommitted": uncommitted,
        "outcome": claim,
        "outcome_problem": claim_problem,
        "outcome_at": agent.outcome_at(),
        "recorded": os.path.exists(os.path.join(directory, "agent.cast")),
        "problems": problems,
    }


def fetch_commits(git: Git, agent: Agent, ref: str) -> str:
    """Fetch the agent's commits to `ref`, and return the last of them."""
    tip = agent.pull(into="none").commit
    git.must("update-ref", ref, tip)
    git.run("update-ref", "-d", f"refs/mngr/pulled/{agent.name}")
    return tip


def _uncommitted(git: Git, agent: Agent, ref: str) -> str | None:
    commit = agent.pull_uncommitted()
    if commit is not None:
        git.must("update-ref", f"{ref}-uncommitted", commit)
        git.run("update-ref", "-d", f"refs/mngr/pulled/{agent.name}-uncommitted")
    return commit


def _claim(agent: Agent, task: str, directory: str) -> tuple[Mapping[str, Any] | None, str]:
    """What the outcome file says, without secrets, since commits and pull requests will say it too; and what is wrong
    with it. The file itself is kept, cut when it is huge."""
    try:
        data = agent.outcome(at_most=outcome.MAX_BYTES)
        if data is not None:
            files.write_atomic(os.path.join(directory, "outcome.json"), data)
        found = outcome.parse(data, task, agent.record.workspace.work_dir)
        return secrets.mask_fields(plain(found), agent.secrets()), ""
    except outcome.UnreadableOutcome as wrong:
        return None, secrets.mask(str(wrong), agent.secrets())
    except MngrError as error:
        return None, f"the outcome file could not be read: {error}"


def _artifacts(agent: Agent, target: str) -> None:
    """Links among them are removed: whoever reads the report must not be led elsewhere."""
    tree_removal.remove_tree(target)
    agent.pull_artifacts(target)
    for place, directories, names in os.walk(target):
        for name in [*directories, *names]:
            path = os.path.join(place, name)
            if os.path.islink(path) or not (os.path.isfile(path) or os.path.isdir(path)):
                os.unlink(path)
