"""The driver of programs that report to mngr themselves: they write their states, prompts, usage and transcript to the
agent's state directory. The scripted kind does, and kinds of plugins may."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mngr.agent import events
from mngr.agent.record import Record
from mngr.json_values import count
from mngr.programs import driver
from mngr.programs.driver import AgentContext, Driver, LaunchCommand, ModelUsage, Wording
from mngr.system.files import MOST_BYTES, last_lines, read_lines

TRANSCRIPT = "transcript.jsonl"
_MOST_LINES = 500_000


class ReportingDriver(Driver):
    def takes_prompt(self, record: Record) -> bool:
        return record.spec.one_shot

    def prepare(self, agent: AgentContext, *, prompted: bool) -> LaunchCommand:
        if not agent.record.spec.one_shot:
            return LaunchCommand(agent.record.spec.command)
        return LaunchCommand(driver.one_shot(agent, agent.record.spec.rules["one_shot"]))

    def wording(self, text: str) -> Wording:
        """Such programs report the digest of a prompt."""
        import hashlib

        return Wording(text, hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest())

    def mark(self, agent: AgentContext) -> int:
        try:
            return os.lstat(os.path.join(agent.state_dir, events.FILE)).st_size
        except FileNotFoundError:
            return 0

    def received(self, agent: AgentContext, mark: int = 0) -> list[str]:
        data = agent.host.read_from(os.path.join(agent.state_dir, events.FILE), mark)
        return [str(event.get("text_sha256")) for event in read_lines(data) if event.get("type") == "prompt"]

    def transcript(self, agent: AgentContext) -> list[dict[str, Any]]:
        return _lines(agent, TRANSCRIPT)

    def usage(self, agent: AgentContext) -> list[ModelUsage]:
        return [_usage(event) for event in _lines(agent, events.FILE) if event.get("type") == "usage"]


DRIVER = ReportingDriver()


def _lines(agent: AgentContext, name: str) -> list[dict[str, Any]]:
    data, _ = agent.host.read_tail(os.path.join(agent.state_dir, name), MOST_BYTES)
    return read_lines(last_lines(data, _MOST_LINES))


def _usage(event: Mapping[str, Any]) -> ModelUsage:
    cost = event.get("cost_usd")
    known = isinstance(cost, int | float) and cost == cost and abs(cost) < 1e9
    tokens = {name: count(event.get(name)) for name in ModelUsage._fields if name.endswith("_tokens")}
    at, model = str(event.get("timestamp") or ""), str(event.get("model") or "")
    return ModelUsage(at, model, **tokens, cost_usd=max(0.0, float(cost)) if known and cost is not None else None)
