"""Runs of end-to-end tests as the plugin leaves them on disk, made by hand: any size, any age, any hostile text."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mngr.e2e.artifacts import slug_of
from mngr.system import files

START = 1_790_000_000.0

# What a page must show and never obey.
HOSTILE = (
    '<script>window.hacked=1</script><img src=x onerror="window.hacked=1"></script>'
    "\u2028\u2029\x1b]0;title\x07\x1b[999999999C\x00\u202e__proto__ javascript:window.hacked=1 </pre>-->"
)


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _put(path, json.dumps(value))


def _put(path: Path, text: str) -> None:
    """Who watches the directory sees a file whole, or not at all."""
    files.write_atomic(str(path), text.encode(), mode=0o644)


def _lines(values: Sequence[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def make_run(base: Path, name: str, *, started_at: float = START, ended: bool = True, **more: Any) -> Path:
    facts = {
        "schema": 1,
        "id": name,
        "name": name,
        "started_at": started_at,
        "ended_at": started_at + 42.5 if ended else None,
        "root": "/project",
        "args": ["tests", "-n", "4"],
        "python": "3.12.4",
        "exit_status": 1 if ended else None,
    }
    write(base / name / "run.json", {**facts, **more})
    (base / name / "tests").mkdir(exist_ok=True)
    return base / name


def make_test(
    run: Path,
    node_id: str,
    *,
    outcome: str | None = "passed",
    events: Sequence[Mapping[str, Any]] = (),
    blocks: Sequence[str] = (),
    started_at: float = START,
    duration: float = 0.5,
    doc: str = "",
    failure: Mapping[str, str] | None = None,
    line: int = 10,
) -> Path:
    file, _, name = node_id.partition("::")
    path = run / "tests" / slug_of(node_id)
    facts = {"schema": 1, "node_id": node_id, "file": file, "line": line, "name": name, "doc": doc}
    write(path / "test.json", {**facts, "started_at": started_at})
    _put(path / "transcript.jsonl", _lines(events))
    for number, block in enumerate(blocks, start=1):
        (path / ("tutorial_block.txt" if number == 1 else f"tutorial_block-{number}.txt")).write_text(block)
    if outcome is not None:
        phases = {"setup": 0.02, "call": duration - 0.03, "teardown": 0.01}
        times = {"started_at": started_at, "ended_at": started_at + duration, "duration": duration, "phases": phases}
        write(path / "result.json", {"schema": 1, "outcome": outcome, **times, "failure": failure})
    return path


def command(number: int, text: str, at: float, *, comment: str = "", exit_code: int = 0, **output: str) -> list[Any]:
    """The events of one command that ran for 0.2 s. `output` is by stream."""
    return [
        {"time": START + at, "type": "command", "number": number, "command": text, "comment": comment, "cwd": "/repo"},
        *(
            {"time": START + at + 0.1, "type": "output", "number": number, "stream": stream, "text": printed}
            for stream, printed in output.items()
        ),
        {
            "time": START + at + 0.2,
            "type": "exit",
            "number": number,
            "exit_code": exit_code,
            "duration": 0.2,
            "timed_out": False,
        },
    ]


def expectation(number: int | None, text: str, at: float, passed: bool = True) -> dict[str, Any]:
    return {"time": START + at, "type": "expect", "number": number, "text": text, "passed": passed}


def screens(count: int, every: float = 1.0) -> list[list[Any]]:
    """A full-screen program that draws a new screen from time to time."""
    events: list[list[Any]] = [[0.05, "o", "\x1b[?1049h\x1b[2J"]]
    for number in range(count):
        rows = "".join(f"\r\n  \x1b[3{row % 7 + 1}mitem {row}\x1b[0m" for row in range(1, 9))
        text = f"\x1b[H\x1b[7m garden  screen {number} \x1b[0m\r\n{rows}\r\n\r\n  \x1b[1mq\x1b[0m leaves"
        events.append([round(0.1 + number * every, 3), "o", text])
    return [*events, [round(0.1 + count * every, 3), "o", "\x1b[?1049lbye\r\n"]]


def make_cast(test: Path, name: str, events: Sequence[Any], *, started_at: float, title: str = "", **more: Any) -> Path:
    path = test / name
    lines = [{"version": 2, "width": 80, "height": 24, "timestamp": int(started_at)}, *events]
    facts = {
        "schema": 1,
        "recording": name,
        "kind": "spawn",
        "number": None,
        "title": title,
        "started_at": started_at,
        "columns": 80,
        "rows": 24,
        "ended_at": started_at + 6,
        "exit_code": 0,
    }
    write(test / f"{name}.json", {**facts, **more})
    _put(path, _lines(lines))  # after what belongs to it
    return path


def make_sample(base: Path) -> Path:
    """Two runs; the newer one has every outcome, a test with two recordings, and a hostile one."""
    old = make_run(base, "2026-09-20-monday", started_at=START - 90_000, exit_status=0)
    make_test(old, "tests/test_help.py::test_help_succeeds", started_at=START - 90_000)
    run = make_run(base, "2026-09-21-nightly")
    _garden(run)
    _failing(run)
    make_test(
        run,
        "tests/test_help.py::test_hostile",
        doc=HOSTILE,
        blocks=[HOSTILE],
        events=[*command(1, HOSTILE, 0.1, comment=HOSTILE, stdout=HOSTILE * 3, stderr=HOSTILE)],
        outcome="error",
        failure={"phase": "teardown", "message": HOSTILE, "signature": "x", "text": HOSTILE},
    )
    make_test(run, "tests/test_other.py::TestCases::test_skipped", outcome="skipped", duration=0.04)
    make_test(run, "tests/test_other.py::TestCases::test_known_bug[two words]", outcome="xfailed")
    make_test(run, "tests/test_other.py::test_fixed_by_chance", outcome="xpassed")
    make_test(run, "tests/test_other.py::test_killed", outcome=None, events=command(1, "sleep 100", 0.1)[:1])
    return run


def _garden(run: Path) -> None:
    block = (
        "# Look around in the garden\nsprout garden   # q leaves it\n\n# then pick\nsprout pick --all \\\n    --dry-run"
    )
    events = [
        {"time": START, "type": "block", "text": block},
        *command(
            1,
            "sprout list --colour",
            0.4,
            comment="what is there",
            stdout="\x1b[1mNAME     STATE\x1b[0m\n\x1b[32mrose\x1b[0m     \x1b[38;5;208mblooming\x1b[0m\n"
            "\x1b[31mtulip\x1b[0m    \x1b[38;2;120;80;200mdormant\x1b[0m\n\x1b[7mreverse\x1b[0m \x1b[4munder\x1b[0m\n"
            "10 %\r50 %\r100 %\n",
            stderr="warning: \x1b[33mthe soil is dry\x1b[0m\n",
        ),
        expectation(1, "exit code is 0", 0.7),
        expectation(1, "stdout contains 'rose'", 0.71),
        {
            "time": START + 1.0,
            "type": "spawn",
            "number": 2,
            "command": "sprout garden",
            "comment": "the full screen",
            "recording": "garden.cast",
        },
        {"time": START + 3.2, "type": "keys", "number": 2, "keys": "Down Down Enter"},
        expectation(None, "screen shows 'screen 3'", 4.3),
        *command(3, "sprout pick --all \\\n    --dry-run", 5.4, stdout="would pick 2\n"),
        {"time": START + 6.9, "type": "keys", "number": 2, "keys": "q"},
        {"time": START + 7.2, "type": "exit", "number": 2, "exit_code": 0, "duration": 6.2, "timed_out": False},
        {"time": START + 7.3, "type": "note", "text": "everything below happens in the second bed"},
        *command(4, "sprout water tulip", 7.4, exit_code=3, stderr="error: no water\n"),
        expectation(4, "exit code is 3", 7.7),
    ]
    doc = "The garden opens, reacts to keys and closes."
    node_id = "tests/sessions/test_garden.py::test_the_garden_reacts_to_keys"
    test = make_test(run, node_id, events=events, blocks=[block], duration=7.9, doc=doc, line=31)
    make_cast(test, "garden.cast", screens(6), started_at=START + 1.0, title="sprout garden", number=2)
    more = [[0.0, "o", "$ "], [0.5, "o", "sprout water tulip\r\n"], [1.0, "o", "\x1b[31merror: no water\x1b[0m\r\n$ "]]
    make_cast(test, "connect.cast", more, started_at=START + 7.0, title="agent bed-2", kind="connect")


def _failing(run: Path) -> None:
    message = "AssertionError: expected stdout to contain 'ready'\n  seen: 'not ready: 3 of 4'"
    make_test(
        run,
        "tests/test_start.py::test_start_reports_ready",
        outcome="failed",
        duration=12.34,
        blocks=["sprout start"],
        events=[
            *command(1, "sprout start", 0.1, stdout="not ready: 3 of 4\n"),
            expectation(1, "stdout contains 'ready'", 0.4, False),
        ],
        failure={
            "phase": "call",
            "message": message,
            "signature": "AssertionError expected stdout",
            "text": "def test_start_reports_ready(e2e):\n>       expect(result.stdout).to_contain('ready')\n"
            f"\x1b[31mE   {message}\x1b[0m",
        },
    )
