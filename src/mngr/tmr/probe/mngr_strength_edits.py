"""Output edits of one test: its commands are recorded, then answered from the record with one edit at a time."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Set

import mngr_strength_attempts as attempts
import pytest

_REPLAYS = 2  # without an edit, that must pass
_SECONDS_MIN = 2.0


def measure(item: pytest.Item, row: Callable[..., None], *, most: int, only: Set[str] | None, seconds: float) -> str:
    """In a process of its own: rows for one test."""
    try:
        from mngr.e2e import edits, replay
    except ImportError as error:
        row("replay", id=item.nodeid, why=f"the mngr of the project cannot replay: {error}", commands=[])
        return "done"
    recorder = replay.Recorder()
    replay.set_tape(recorder)
    outcome = attempts.outcome(item, attempts.sibling(item))
    record = recorder.record()
    began = time.monotonic()

    def player(played: replay.CommandRecord) -> Callable[[], None]:
        def first() -> None:
            replay.skip_time()
            replay.set_tape(replay.Player(played))

        return first

    gc.collect()
    gc.freeze()
    limit, why = _SECONDS_MIN, ""
    if outcome != "passed":
        why = f"the recorded run {outcome}"
    elif record.screens:
        why = "a full-screen program cannot be replayed"
    for _ in range(0 if why else _REPLAYS):
        began = time.monotonic()
        outcome = attempts.attempt(item, seconds=30, first=player(record), warm=True)
        limit = max(limit, 5 * (time.monotonic() - began))
        if outcome != "passed":
            why = f"the replay without an edit: {outcome}"
    chosen = [] if why else edits.edits(record, most)
    total = 0 if why else len(edits.edits(record, 1 << 30))
    commands = [{"text": answer.command, "digest": edits.digest(answer)} for answer in record.answers]
    row("replay", id=item.nodeid, why=why, commands=commands, edits=total)
    began = time.monotonic()
    chosen = [edit for edit in chosen if only is None or f"{edit.command} {edit.id}" in only]
    firsts = [player(edits.edited(record, edit)) for edit in chosen]
    for edit, outcome in zip(chosen, attempts.in_turn(item, firsts, plain=player(record), seconds=limit), strict=True):
        row("edit", id=item.nodeid, command=edit.command, edit=edit.id, text=edit.text, result=result(outcome))
        if time.monotonic() - began > seconds:
            row("cut", id=item.nodeid, how="edits", why=f"more than {seconds:g} s")
            break
    _end(item)
    return "done"


def result(outcome: str) -> str:
    """A test that is skipped or does not end noticed nothing."""
    if outcome in ("failed", attempts.CRASHED):
        return "killed"
    return "timeout" if outcome == attempts.TIMEOUT else "survived"


def _end(item: pytest.Item) -> None:
    """Tear down what the fixtures of modules and sessions made, and let `e2e` clean up."""
    from mngr.e2e import replay, run

    replay.set_tape(None)
    item.session._setupstate.teardown_exact(None)
    run.finish(item.config, 0)
