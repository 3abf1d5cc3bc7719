"""What product and tests touch outside of the product: files, programs, connections, the stack. Only what is new since
the base counts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from mngr.system import files
from mngr.tmr.measure.measurement import PluginStep

STEP = "touches"
PRODUCT, TEST = "product", "test"
_WORDS = {
    "read": "reads `{}`",
    "write": "writes `{}`",
    "run": "runs `{}`",
    "connect": "connects to `{}`",
    "stack": "looks at the stack of calls (`{}`)",
    "objects": "looks at all objects of the process (`{}`)",
    "code": "runs code made from data (`{}`)",
    "library": "loads a library (`{}`)",
}


class Touch(NamedTuple):
    """`kind` is one of `read`, `write`, `run`, `connect`, `stack`, `objects`, `code` and `library`. `what` is a path
    from the top, below `<tmp>` or `~`, or anywhere; a program; an address. `by` is whose code it is: `product` or
    `test`."""

    kind: str
    what: str
    by: str

    @property
    def words(self) -> str:
        return f"its {self.by} {_WORDS[self.kind].format(self.what)}"


class Touches(NamedTuple):
    """All that some tests and the product under them touched. `unknown` are programs that were started and are not
    Python, or did not say what they touch."""

    seen: frozenset[Touch] = frozenset()
    unknown: tuple[str, ...] = ()


def step(tests: Sequence[str], product: Sequence[str]) -> PluginStep:
    """A step that runs these tests; `product` are the product's files at that commit."""
    return PluginStep(STEP, "mngr_touches", list(tests), {"product": list(product)})


def read(directory: str) -> Touches | None:
    """What a measurement with that step left in its directory; None if it did not come to its end."""
    seen: dict[Touch, None] = {}
    processes, ended = 0, False
    for row in files.read_lines(files.content(os.path.join(directory, f"{STEP}.rows"))):
        touch = Touch(str(row.get("kind")), str(row.get("what")), str(row.get("by")))
        processes += touch.kind == "process"
        ended = ended or touch.kind == "end"
        if touch.kind in _WORDS:
            seen[touch] = None
    started = [touch.what for touch in seen if touch.kind == "run"]
    silent = ["python"] if "python" in started and processes < 2 else []
    unknown = [name for name in dict.fromkeys(started) if name != "python"]
    return Touches(frozenset(seen), (*unknown, *silent)) if ended else None


def new(before: Touches | None, now: Touches | None) -> list[Touch]:
    """What is touched now and was not at the base, what the product does first."""
    if before is None or now is None:
        return []
    return sorted(now.seen - before.seen, key=lambda one: (one.by != PRODUCT, one.kind, one.what))
