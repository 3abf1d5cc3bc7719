"""What unattended agents may do: stated before they start, never guessed."""

from __future__ import annotations

from mngr.cli.app import App
from mngr.errors import UsageError
from mngr.programs import kind as kinds
from mngr.programs.kind import Kind


def check(app: App, name: str, permissions: str | None, *, chosen_later: bool = False) -> Kind:
    """Refuse agents of this type unless it is known what they may do without asking."""
    kind = kinds.resolve(name, app.settings)
    if permissions and not kind.driver:
        raise UsageError(f"`--permissions` is for coding agents, and `{name}` is not one that mngr knows")
    if not (permissions or chosen_later or kind.permissions) and kind.driver in kinds.KNOWN_AGENTS:
        raise UsageError(
            f"`--permissions` is missing: agents of type `{kind.name}` run unattended, on this machine, as you",
            hint="`--permissions tests`: edit files, run tests and commit, everything else is denied; "
            "`--permissions bypass`: run anything. "
            f"For all runs: `mngr config set --scope user agent_types.{kind.name}.permissions tests`",
        )
    return kind
