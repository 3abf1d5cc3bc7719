"""What came of the demo, as a page of Markdown and as JSON. Pure."""

from collections.abc import Sequence
from typing import Any

from mngr.demo.cast import Part
from mngr.demo.place import Place, Tests
from mngr.demo.timeline import SECONDS_PER_MARK, Span, strip
from mngr.records import NamedTuple


class Work(NamedTuple):
    """What one agent did. `commits` are pairs of an id and a subject."""

    part: Part
    commits: tuple[tuple[str, str], ...]
    files: tuple[str, ...]
    spans: tuple[Span, ...]


class Outcome(NamedTuple):
    place: Place
    work: tuple[Work, ...]
    before: Tests
    after: Tests
    base: str
    head: str
    seconds_worked: float
    seconds: float
    kept: bool
    commands: tuple[str, ...]


def as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "directory": outcome.place.directory,
        "repository": outcome.place.repository,
        "host_dir": outcome.place.host_dir,
        "report": outcome.place.report,
        "base": outcome.base,
        "head": outcome.head,
        "seconds": round(outcome.seconds, 3),
        "agents_kept": outcome.kept,
        "tests": {"before": outcome.before._asdict(), "after": outcome.after._asdict()},
        "agents": [
            {
                "name": work.part.name,
                "task": work.part.task,
                "transfer": work.part.transfer,
                "commits": [{"commit": commit, "subject": subject} for commit, subject in work.commits],
                "files": list(work.files),
                "states": [
                    {"state": span.state, "reason": span.reason, "at_seconds": round(span.at, 3)} for span in work.spans
                ],
            }
            for work in outcome.work
        ],
    }


def markdown(outcome: Outcome) -> str:
    summary = (
        f"They worked at the same time, for {outcome.seconds_worked:.1f} s, each in its own copy of the code. "
        f"All of it is merged into `main` (`{outcome.head[:10]}`). "
        f"Before: {outcome.before.sentence}. After: {outcome.after.sentence}."
    )
    lines = [
        "# What five agents did to `bill`",
        "",
        summary,
        "",
        "## Work",
        "",
        *_table(
            ("agent", "task", "its copy", "commits", "files"),
            [
                (
                    work.part.name,
                    work.part.task,
                    work.part.transfer,
                    "<br>".join(f"`{commit}` {subject}" for commit, subject in work.commits),
                    " ".join(f"`{path}`" for path in work.files),
                )
                for work in outcome.work
            ],
        ),
        "",
        "## States",
        "",
        f"One mark is {SECONDS_PER_MARK:g} s: `·` STARTING, `━` RUNNING, `!` BLOCKED, `─` WAITING or DONE.",
        "",
        "```text",
        *_strips(outcome),
        "```",
        "",
        *_table(
            ("agent", "since", "state", "why"),
            [
                (work.part.name if at == 0 else "", f"{span.at:.1f} s", span.state, span.reason)
                for work in outcome.work
                for at, span in enumerate(work.spans)
            ],
        ),
        "",
        "## Commands",
        "",
        "To do it again by hand, begin where the agents began:",
        "",
        "```sh",
        *outcome.commands[:2],
        f"git switch -q -c again {outcome.base[:10]} && git branch -q -D mngr/add-json",
        "```",
        "",
        "And then:",
        "",
        "```sh",
        *outcome.commands[2:],
        "```",
    ]
    return "\n".join(lines) + "\n"


def _strips(outcome: Outcome) -> list[str]:
    wide = max(len(work.part.name) for work in outcome.work)
    return [
        f"{work.part.name:<{wide}}  " + "".join(marks for _, marks in strip(work.spans, outcome.seconds_worked))
        for work in outcome.work
    ]


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [titles, ["---"] * len(titles), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
