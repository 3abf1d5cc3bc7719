"""Output edits of one test: its commands are recorded, then answered from the record with one edit at a time."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Set
from typing import Any

import mngr_strength_attempts as attempts
import pytest

_REPLAYS = 2  # without an edit, that must pass
_SECONDS_MIN = 2.0


def measure(item: pytest.Item, *, most: int, only: Set[str] | None, seconds: float) -> dict[str, Any]:
    """In a process of its own: what came of the edits of one test, or why there are none."""
    try:
        from mngr.e2e import edits, replay, run
    except ImportError as error:
        return {"no_edits": f"the mngr of the project cannot replay: {error}"}
    recorder = replay.Recorder()
    replay.set_tape(recorder)
    outcome = attempts.outcome(item, attempts.sibling(item))
    record = recorder.record()

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
    began = time.monotonic()
    chosen = [] if why else edits.edits(record, most)
    chosen = [edit for edit in chosen if only is None or f"{edit.command} {edit.id}" in only]
    firsts = [player(edits.edited(record, edit)) for edit in chosen]
    tried = []
    for edit, outcome in zip(chosen, attempts.in_turn(item, firsts, plain=player(record), seconds=limit), strict=True):
        tried.append((edit.command, edit.id, edit.text, attempts.result(outcome)))
        if time.monotonic() - began > seconds:
            break
    # Tear down what the fixtures of modules and sessions made, and let `e2e` clean up.
    replay.set_tape(None)
    item.session._setupstate.teardown_exact(None)
    run.finish(item.config, 0)
    commands = [(answer.command, edits.digest(answer)) for answer in record.answers]
    return {"no_edits": why, "commands": commands, "edits": tried}
