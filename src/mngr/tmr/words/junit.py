"""A run as JUnit XML: one case for each task, for programs that read test results. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from mngr.mapreduce.state import RunState
from mngr.tmr.judge import verdict
from mngr.tmr.words import places

_GOOD = verdict.INTEGRATED | {verdict.UNCHANGED}


def xml(state: RunState) -> bytes:
    """A good verdict is a passed case; work that is blocked, not started or set aside is a skipped one, all others
    failed."""
    rows = places.rows(state)
    skipped = [found for found in rows if _is_skipped(found)]
    failed = [found for found in rows if found not in skipped and found["verdict"] not in _GOOD]
    suite = ET.Element(
        "testsuite",
        name=f"mngr tmr {state.facts.get('run', '')}",
        tests=str(len(rows)),
        failures=str(len(failed)),
        skipped=str(len(skipped)),
        errors="0",
        time=f"{state.last_at - state.began_at:.3f}",
    )
    for found in rows:
        file, _, name = found["task"].partition("::")
        case = ET.SubElement(
            suite, "testcase", classname=_xml(file), name=_xml(name or file), time=f"{found['seconds']:.3f}"
        )
        if found in skipped:
            ET.SubElement(case, "skipped", message=_xml(f"{found['verdict']}: {found['why']}"))
        elif found in failed:
            ET.SubElement(case, "failure", message=_xml(f"{found['verdict']}: {found['why']}"))
        text = "\n".join(filter(None, [found["verdict"], found["why"], *(flag["text"] for flag in found["flags"])]))
        ET.SubElement(case, "system-out").text = _xml(text)
    return bytes(ET.tostring(suite, encoding="utf-8", xml_declaration=True))


def _is_skipped(found: Mapping[str, Any]) -> bool:
    aside = found["place"] in (places.SET_ASIDE, places.DROPPED) and found["verdict"] in _GOOD
    return aside or found["verdict"] in (verdict.BLOCKED, verdict.NOT_STARTED)


def _xml(text: str) -> str:
    """Without the characters that XML cannot have."""
    return "".join(
        c if c in "\t\n" or "\x20" <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff" else "?" for c in text
    )
