"""Why a model does not answer, as one reason for all programs. The first words of a reason name its class; a limit
names the time at which it ends. Pure."""

from __future__ import annotations

import math
import re
import time

from mngr.agents.reasons import CREDIT, LOGIN, MODEL, RATE_LIMIT

_LONGEST = 300
_LIMITED = (429, 529)
_REFUSED = (401, 403)
_UNPAID = 402
_CREDIT = (
    r"credit balance|(?:out of|no|insufficient) credits?|insufficient.?(?:quota|funds|balance)"
    r"|payment required|billing (?:hard )?limit|spend(?:ing)? limit"
)
_MODEL = (
    r"selected model|model[_ ]not[_ ]found|\bmodel\b[^.]{0,80}(?:not exist|not found|not supported|no longer|retired"
    r"|deprecated|not available|no access)"
)
_LIMIT = (
    r"rate.?limit|usage limit|hit your [\w ]{0,20}limit|limit (?:was )?(?:reached|exceeded)|too.?many.?requests"
    r"|quota|exhausted|overloaded"
)


def reason(text: str, said_at: float, status: int | None = None, kind: str = "") -> str:
    """The reason why a turn failed with this text and this HTTP status; `kind` is the class, if the program knows it.
    Empty when the text names nothing that a person or time could fix."""
    from mngr.agents import retry_time  # rarely needed

    text = shortened(text)
    until = retry_time.until(text, said_at)
    if kind == CREDIT or status == _UNPAID or (until is None and _found(_CREDIT, text)):
        return f"{CREDIT}: {text}"
    if kind == MODEL or (status not in _LIMITED and _found(_MODEL, text)):
        return f"{MODEL}: {text}"
    if kind == RATE_LIMIT or status in _LIMITED or (status is None and not kind and _found(_LIMIT, text)):
        return limited(text, until)
    return f"{LOGIN}: {text}" if kind == LOGIN or status in _REFUSED else ""


def limited(text: str, until: float | None) -> str:
    """`rate limit: retry at 2026-11-18T03:00:00Z: TEXT`, which `retry_time` reads."""
    return ": ".join(filter(None, (RATE_LIMIT, retry_at(until) if until is not None else "", text)))


def retry_at(moment: float) -> str:
    return f"retry at {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(math.ceil(moment)))}"


def _found(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
