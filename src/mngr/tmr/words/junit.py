"""A run as JUnit XML: one case for each task, for programs that read test results. Pure."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from mngr.tmr.judge import verdict
from mngr.tmr.run_view import DROPPED, SET_ASIDE, RunView, TaskView
from mngr.tmr.words.summary import seconds_on

_GOOD = verdict.INTEGRATED | {verdict.UNCHANGED}


def xml(run: RunView) -> bytes:
    """A good verdict is a passed case; work that is blocked, not started or set aside is a skipped one, all others
    failed."""
    rows = run.tasks
    skipped = [found for found in rows if _is_skipped(found)]
    failed = [found for found in rows if found not in skipped and found.word not in _GOOD]
    suite = ET.Element(
        "testsuite",
        name=f"mngr tmr {run.id}",
        tests=str(len(rows)),
        failures=str(len(failed)),
        skipped=str(len(skipped)),
        errors="0",
        time=f"{run.state.last_at - run.state.began_at:.3f}",
    )
    for found in rows:
        file, _, name = found.id.partition("::")
        case = ET.SubElement(
            suite, "testcase", classname=_xml(file), name=_xml(name or file), time=f"{seconds_on(found.task):.3f}"
        )
        if found in skipped:
            ET.SubElement(case, "skipped", message=_xml(f"{found.word}: {found.why}"))
        elif found in failed:
            ET.SubElement(case, "failure", message=_xml(f"{found.word}: {found.why}"))
        text = "\n".join(filter(None, [found.word, found.why, *found.flags]))
        ET.SubElement(case, "system-out").text = _xml(text)
    return bytes(ET.tostring(suite, encoding="utf-8", xml_declaration=True))


def _is_skipped(found: TaskView) -> bool:
    aside = found.place.word in (SET_ASIDE, DROPPED) and found.word in _GOOD
    return aside or found.word in (verdict.BLOCKED, verdict.NOT_STARTED)


def _xml(text: str) -> str:
    """Without the characters that XML cannot have."""
    return "".join(
        c if c in "\t\n" or "\x20" <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff" else "?" for c in text
    )
