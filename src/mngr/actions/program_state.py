"""The state of an agent whose program has a driver: what its events tell, what its own files tell, and what it shows
when it does not get ready."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mngr.actions.site import Site
from mngr.agents.kinds import driver
from mngr.agents.record import Record
from mngr.agents.state import BLOCKED, STARTING, Status
from mngr.errors import MngrError
from mngr.tools.tmux import Pane

# A program shows a dialog at once or not at all; before, its screen is being drawn.
_DRAWN_SECONDS = 1.0
_QUIET_SECONDS = 3.0
_LINES = 12


def look(site: Site, record: Record, pane: Pane, status: Status, events: Sequence[Mapping[str, Any]]) -> Status:
    """What its events say, corrected by its driver. Where that is not possible, the evidence says why: what is wrong
    with one agent must not keep the others from being seen."""
    try:
        known = driver.find(record.driver)
        place = site.place(record, pane)
        seen = known.look(place, status, events)
    except Exception as error:  # noqa: BLE001 (whatever the program wrote, or when it ended at this moment)
        return status._replace(evidence=f"what its program says itself cannot be read: {error}; {status.evidence}")
    age = time.time() - seen.since
    if seen.state != STARTING or age < _DRAWN_SECONDS:
        return seen
    try:
        screen = driver.plain(place.screen())
    except MngrError:
        return seen  # it ended at this moment
    for pattern, reason in known.dialogs:
        if re.search(pattern, screen):
            return seen._replace(state=BLOCKED, reason=reason, evidence=f"screen: it shows `{pattern}`")
    if age < known.ready_seconds or time.time() - pane.active_at < _QUIET_SECONDS:
        return seen
    shown = [line.strip() for line in screen.split("\n") if line.strip(" │─╭╮╰╯|+-")]
    reason = "not ready, and shows: " + " / ".join(shown[-_LINES:]) if shown else "not ready, and shows nothing"
    return seen._replace(state=BLOCKED, reason=reason[:1000], evidence="screen: nothing that its driver knows")
