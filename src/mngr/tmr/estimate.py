"""What a run would do and may cost, before any agent is started. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Seen for agents that read a repository before they change it; without history there is nothing better.
TOKENS_EACH = (20_000, 50_000)


def estimate(tests: Sequence[str], slugs: Sequence[str], *, max_agents: int, workspace_bytes: int) -> dict[str, Any]:
    """`measured` says which of the figures were."""
    at_once = min(max_agents, len(tests))
    return {
        "tasks": [{"task": test, "slug": slug} for test, slug in zip(tests, slugs, strict=True)],
        "agents_at_once": at_once,
        "rounds": -(-len(tests) // at_once) if at_once else 0,
        "disk_mb": round(workspace_bytes * len(tests) / 1e6, 1),
        "tokens_low": TOKENS_EACH[0] * len(tests),
        "tokens_high": TOKENS_EACH[1] * len(tests),
        "measured": ["tasks", "disk_mb"],
    }
