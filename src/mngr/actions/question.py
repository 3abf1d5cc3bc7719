"""A question that an agent asks, and a message that must not become the answer to it."""

from __future__ import annotations

from collections.abc import Callable

from mngr.actions import find
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent.state import BLOCKED, RUNNING
from mngr.errors import MngrError, TimedOut
from mngr.system import waiting

# A message that is under way while the agent asks something waits so long for the answer.
_HELD_SECONDS = 300.0
_TOLD_SECONDS = 2.0


def asked(agent: AgentView) -> str:
    """What the program asks, when it would take a text, or an Enter, as the answer; else empty. A `scripted` agent is
    answered by messages. A program that waits for a rate limit, or could not log in to its model, takes messages,
    unless its screen asks for the login."""
    reason = agent.status.reason
    if agent.state != BLOCKED or not agent.record.spec.driver:
        return ""
    from mngr.agent.reasons import is_account, is_rate_limit

    takes = is_rate_limit(reason) or (is_account(reason) and "screen" not in agent.status.evidence)
    return "" if takes else reason or "a question"


def works(agent: AgentView) -> bool:
    """Whether the program is one that settings describe, and works: what is typed then would be the answer to whatever
    it asks next. Programs with a driver of their own have a queue."""
    if agent.record.spec.driver != "screen" or agent.state != RUNNING:
        return False
    from mngr.programs import kind, screen

    return kind.READY in agent.record.spec.rules and agent.status.reason in ("", screen.GIVEN)


def hold(
    site: Site,
    agent: AgentView,
    tell: Callable[[str], None],
    *,
    typed: bool = False,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Wait until the agent asks nothing, and can take a message, or `until` says that it has it. Tell the sender what
    is waited for. Raise TimedOut when that takes too long."""
    told, patience = "", waiting.Deadline(_TOLD_SECONDS)

    def free() -> bool:
        nonlocal agent, told
        agent = find.agent(site, agent.id)
        asks, held = asked(agent), not typed and works(agent)
        if asks and asks != told:
            told = asks
            where = "is in its terminal, and is not sent" if typed else "is held"
            tell(f"`{agent.name}` is BLOCKED ({asks}): the message {where} until that is answered")
        elif held and not told and patience.passed:
            told = RUNNING
            tell(f"`{agent.name}` is RUNNING: the message is held until it takes one")
        return until() or (not asks and not held)

    if not waiting.wait_until(free, timeout=_HELD_SECONDS, every=0.3):
        raise TimedOut(
            f"`{agent.name}` is {agent.state} for {_HELD_SECONDS:g} s; the message "
            + ("may be in its input box" if typed else "was not sent"),
            hint=f"`mngr connect {agent.name}` shows it" + ("" if typed else ", then send it again"),
        )


def refuse_blocked(agent: AgentView, *, typed: bool = True) -> None:
    """Raise when the program asks something."""
    reason = asked(agent)
    if not reason:
        return
    if not typed:
        raise MngrError(
            f"`{agent.name}` is BLOCKED ({reason}), and has not begun with the message",
            hint=f"`mngr connect {agent.name}` to answer; its program has the message and continues with it then",
        )
    raise MngrError(
        f"`{agent.name}` is BLOCKED ({reason}), and would treat the message as the answer",
        hint=f"`mngr connect {agent.name}` to answer, then send it again",
    )
