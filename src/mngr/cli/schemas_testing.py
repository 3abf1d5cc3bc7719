"""What the JSON of the verbs around tests looks like, in the short form of `schemas`, which holds the others."""

from __future__ import annotations

from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_TUTORIAL_PROBLEM = {
    "kind": "text",
    "message": "text",
    "file": "text",
    "line": "int",
    "block": "text?",
    "section": "text?",
    "test": "text?",
    "text": "text?",
    "diff": "text?",
    "hint": "text?",
}
_TALK = {
    "agent": "text?",
    "branch": "text?",
    "work_dir": "text?",
    "end": "text?",
    "rounds": [{"number": "int", "state": "text", "missing": "int"}],
}
_PROPOSAL = {"heading": "text", "text": "text?", "problem": "text?", "kind": "text?"}

_TMR = {
    "run": "text",
    "base": "text",
    "exit_code": "int?",
    "tasks": "int",
    "verdicts": {"*": "int"},
    "baseline": {"*": "int"},
    "canary": {"?test": "text?", "?why": "text"},
    "integration": "any",
    "tokens": "int",
    "cost_usd": "number",
    "unpriced": "int",
    "waits_until": "number?",
    "paused": "text?",
    "not_stopped": ["text"],
    "began_at": "number",
    "seconds": "number",
}
_TMR_ROW = {
    "task": "text",
    "slug": "text",
    "status": "text",
    "verdict": "text",
    "why": "text",
    "agent": "text?",
    "attempts": "int",
    "claim": {"status": "text?", "before": "text?", "after": "text?"},
    "after": "text?",
    "flags": [{"kind": "text", "path": "text", "text": "text"}],
    "files": ["text"],
    "new_tests": ["text"],
    "effect": "any",
    "escalations": "any",
    "summary": "text",
    "tokens": "int",
    "cost_usd": "number",
    "unpriced": "int",
    "seconds": "number",
    "place": "text",
    "commit": "text",
}
_TMR_RUN = {
    "run": "text",
    "state": "text",
    "age": "text",
    "tasks": "int",
    "verdicts": {"*": "int"},
    "verdicts_text": "text",
    "branch": "text",
    "exit_code": "int?",
    "directory": "text",
}


FORMS: dict[str, list[Any]] = {
    "tmr": [
        {**_TMR, "directory": "text", "report": "text", "rows": [_TMR_ROW]},
        {**_TMR, "state": "text", "directory": "text", "rows": [_TMR_ROW]},
        {**_TMR, "directory": "text"},
        {"runs": [_TMR_RUN]},
        {
            "tasks": [{"task": "text", "slug": "text"}],
            "agents_at_once": "int",
            "rounds": "int",
            "disk_mb": "number",
            "tokens_low": "int",
            "tokens_high": "int",
            "measured": ["text"],
            "broken": [{"task": "text", "why": "text"}],
            "base": "text",
            "type": "text",
            "dry_run": "bool",
        },
        {
            "path": "text",
            "settings": [{"key": "text", "value": "text", "because": "text", "written": "bool", "what": "text"}],
            "dry_run": "bool",
        },
        {"run": "text", "dropped": ["text"]},
        {"path": "text", "run": "text", "tasks": "int", "files": {"*": "text"}, "player": "text?"},
        {"url": "text", "port": "int", "run": "text", "directory": "text"},
    ],
    "tutorial": [
        {
            "script": "text",
            "blocks": [
                {
                    "id": "text",
                    "kind": "text",
                    "section": "text",
                    "first_line": "int",
                    "last_line": "int",
                    "text": "text",
                    "commands": ["text"],
                    "comment_only": "bool",
                    "preamble": "bool",
                    "heading": "text?",
                    "unfinished": "text?",
                }
            ],
        },
        {
            "script": "text",
            "ok": "bool",
            "blocks": "int",
            "cited": "int",
            "commands": "int",
            "commands_run": "int?",
            "runs": "any",
            "uncommitted": ["text"],
            "sections": [
                {
                    "section": "text",
                    "line": "int",
                    "blocks": "int",
                    "cited": "int",
                    "commands": "int",
                    "run": "int?",
                }
            ],
            "problems": [_TUTORIAL_PROBLEM],
        },
        {
            "script": "text",
            "before": "int",
            **_TALK,
            "ok": "bool",
            "problems": [_TUTORIAL_PROBLEM],
            "flags": [{"kind": "text", "path": "text", "text": "text"}],
            "prompt": "text?",
            "dry_run": "bool",
        },
        {
            "script": "text",
            "program": "text",
            "validated_by": "text",
            **_TALK,
            "headings": ["text"],
            "kept": [_PROPOSAL],
            "dropped": [_PROPOSAL],
            "rejected": [_PROPOSAL],
            "unfilled": ["text"],
            "prompt": "text?",
            "dry_run": "bool",
        },
        {"skills": [{"agent": "text", "path": "text", "found": "text", "kept": "text?", "dry_run": "bool"}]},
    ],
    "e2e": [
        {"path": "text", "runs": "int", "tests": "int", "player": "text?"},
        {"url": "text", "port": "int", "directory": "text"},
        {
            "tests": [
                {
                    "test": "text",
                    "word": "text",
                    "why": "text",
                    "noticed": "int",
                    "of": "int",
                    "edits": ["int"],
                    "mutants": ["int"],
                    "no_edits": "text",
                    "no_mutants": "text",
                    "seconds": "number",
                }
            ],
            "unnoticed": [{"where": "text", "change": "text", "tests": ["text"]}],
        },
    ],
    "demo": [
        {
            **_TMR,
            "directory": "text",
            "report": "text",
            "rows": [_TMR_ROW],
            "repository": "text",
            "host_dir": "text",
            "agents_kept": "bool",
        }
    ],
}
