"""Why a program's model does not answer, as one reason for all programs: its first words say who or what helps, and a
limit says the point in time at which it is over, never how long it still lasts. Pure."""

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
    """Of a turn that failed with this text and this HTTP status; `kind` is the class if the program itself knows it.
    Empty when neither a person nor time is known to help."""
    from mngr.agents import retry_time  # which most looks at an agent do without

    text = _short(text)
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


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
