"""What `mngr tmr` and `mngr demo` print as JSON, in the forms of `mngr.cli.output.schemas`."""

from __future__ import annotations

from typing import Any, NotRequired

from mngr.tmr.judge.changed_file import Flag

_RUN = {
    **dict.fromkeys(("run", "base"), str),
    **dict.fromkeys(("tasks", "tokens", "unpriced"), int),
    **dict.fromkeys(("cost_usd", "began_at", "seconds"), float),
    **dict.fromkeys(("verdicts", "baseline"), dict[str, int]),
    "exit_code": int | None,
    "canary": {"test": NotRequired[str | None], "why": NotRequired[str]},
    "integration": Any,
    "waits_until": float | None,
    "paused": str | None,
    "not_stopped": [str],
    "hosts": [
        {
            **dict.fromkeys(("host", "provider", "state", "because"), str),
            **dict.fromkeys(("agents", "working", "lost"), int),
            "since": float,
        }
    ],
    "directory": str,
}
_ROW = {
    **dict.fromkeys(("task", "slug", "status", "verdict", "why", "summary", "place", "commit"), str),
    **dict.fromkeys(("agent", "after", "host"), str | None),
    "lost_hosts": [str],
    **dict.fromkeys(("attempts", "tokens", "unpriced"), int),
    **dict.fromkeys(("cost_usd", "seconds"), float),
    **dict.fromkeys(("effect", "escalations"), Any),
    "claim": dict.fromkeys(("status", "before", "after"), str | None),
    "flags": [Flag],
    "files": [str],
    "new_tests": [str],
}
_ESTIMATE = {
    "tasks": [{"task": str, "slug": str}],
    **dict.fromkeys(("agents_at_once", "rounds", "tokens_low", "tokens_high"), int),
    "disk_mb": float,
    "measured": [str],
    "broken": [{"task": str, "why": str}],
    **dict.fromkeys(("base", "type"), str),
    "dry_run": bool,
}
FINISHED = {**_RUN, "report": str, "rows": [_ROW]}
SETTING = {**dict.fromkeys(("key", "value", "because", "what"), str), "written": bool}
ALL: list[Any] = [
    FINISHED,
    {**_RUN, "state": str, "rows": [_ROW]},
    _RUN,
    _ESTIMATE,
    {"path": str, "settings": [SETTING], "dry_run": bool},
    {"run": str, "dropped": [str]},
    {"path": str, "run": str, "tasks": int, "files": dict[str, str], "player": str | None},
    {"url": str, "port": int, "run": str, "directory": str},
]
