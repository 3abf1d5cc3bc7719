"""Runs of `mngr tmr` as they are on disk, made by hand: any number of tasks, any verdict, any hostile text."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mngr.agent.record import timestamp
from mngr.mapreduce import begun
from mngr.tmr.judge import verdict
from mngr.tmr.plan import slugs
from tests.support import e2e_runs
from tests.support.user import User

ON_BRANCH = ("fixed", "fixed together", "new behaviour", "expectation changed", "stronger", "same", "improved")
START = 1_790_000_000.0
TEST = '''"""Plants."""


def test_number_{number}(e2e):
    """It counts to {number}."""
    e2e.write_tutorial_block("""
        # Count plants
        sprout count {number}
    """)
    assert True
'''


class Made(NamedTuple):
    """A task of a made run. `text` is put wherever an agent can put text."""

    test: str
    verdict: str
    text: str = "all is well"
    before: str = "fail"
    after: str = "passed"
    claimed: str = "passed"
    flags: Sequence[Mapping[str, str]] = ()
    escalations: Sequence[Mapping[str, Any]] = ()
    signature: str = "AssertionError: no plant"
    attempts: int = 1
    measured: Mapping[str, Any] = {}  # more of its verdict
    e2e: bool = False  # whether the verified run of its test was kept

    @property
    def slug(self) -> str:
        return slugs([self.test])[self.test]


def many(count: int) -> list[Made]:
    """Tasks of all verdicts, in about the shares that a run has."""
    words = [verdict.FIXED] * 6 + [verdict.IMPROVED] * 6 + [verdict.UNCHANGED] * 4
    words += [verdict.REFUTED, verdict.FAILED, verdict.BLOCKED, verdict.HELD]
    made = []
    for number in range(count):
        word = words[number % len(words)]
        escalation = {
            "kind": "contradiction",
            "summary": f"case {number}",
            "locations": [["README.md", 3]],
            "evidence": "x",
        }
        made.append(
            Made(
                f"tests/test_{number // 10}.py::test_number_{number}",
                word,
                before="pass" if word in (verdict.IMPROVED, verdict.UNCHANGED) else "fail",
                after="failed" if word == verdict.REFUTED else "passed",
                flags=[{"kind": "skip", "path": "tests/a.py", "text": "a new `skip`"}] if word == verdict.HELD else [],
                escalations=[escalation] if number % 50 == 0 else [],
                signature=f"AssertionError: kind {number % 17}",
                attempts=1 + (number % 25 == 0),
            )
        )
    return made


def make_repository(path: Path, tasks: Sequence[Made]) -> tuple[str, dict[str, str]]:
    """Commits in a repository, which is made when it is not there: a base with the tests, and one for each task on top
    of it. Returns their ids. They are found again when they were made before."""
    path.mkdir(parents=True, exist_ok=True)
    if not (path / ".git").exists():
        subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True)
    words = ["git", "-C", str(path), "for-each-ref", "--format=%(refname) %(objectname)", "refs/made"]
    refs = dict(line.split() for line in subprocess.check_output(words, text=True).splitlines())
    if refs:
        return refs["refs/made/1"], {task.slug: refs[f"refs/made/{number}"] for number, task in enumerate(tasks, 2)}
    who = b"committer mngr <mngr@localhost> 1790000000 +0000\n"
    sources: dict[str, str] = {}
    for number, task in enumerate(tasks):
        file = task.test.partition("::")[0]
        sources[file] = sources.get(file, "") + TEST.format(number=number)
    stream = b"commit refs/made/1\nmark :1\n" + who + b"data 4\nbase\n"
    for file, text in {**sources, "src/sprout.py": "PLANTS = 0\n"}.items():
        stream += f"M 100644 inline {file}\ndata {len(text.encode())}\n{text}\n".encode()
    for number, task in enumerate(tasks, 2):
        body = f"PLANTS = {number}\n# {task.text}\n".encode()
        subject = f"Count to {number} {task.text}".encode()
        stream += f"commit refs/made/{number}\nmark :{number}\n".encode() + who
        stream += f"data {len(subject)}\n".encode() + subject + b"\nfrom :1\n"
        stream += f"M 100644 inline src/sprout.py\ndata {len(body)}\n".encode() + body + b"\n"
    subprocess.run(["git", "-C", str(path), "fast-import", "--quiet"], input=stream, check=True)
    return make_repository(path, tasks)


def begin_run(user: User, name: str, tasks: Sequence[Made], *, over: bool = True, started_at: float = START) -> Path:
    """The same as one that this user began."""
    made = make_run(user.repo, name, tasks, over=over, started_at=started_at)
    begun.note(str(user.host_dir), str(user.repo), str(made))
    return made


def make_run(repo: Path, name: str, tasks: Sequence[Made], *, over: bool = True, started_at: float = START) -> Path:
    """The run in a repository that holds no other tasks; returns its directory."""
    base, tips = make_repository(repo, tasks)
    directory = repo / ".mngr" / "runs" / name
    (directory / "jobs").mkdir(parents=True)
    ledger = _Ledger(started_at)
    env = {
        "workers": {"type": "scripted", "env": {}},
        "settings": {},
        "limits": {"max_agents": 20},
    }
    ledger.add("run", run=name, version=1, pid=1, recipe="tmr", repo=str(repo), base=base, **env)
    for phase, data in {
        "collect": {"tests": len(tasks), "chosen": len(tasks), "broken": []},
        "canary": {"test": tasks[0].test, "why": ""},
        "baseline": {"fail": sum(task.before == "fail" for task in tasks)},
        "select": {"tasks": len(tasks), "left_out": 0},
    }.items():
        ledger.add("phase", name=phase, status="began")
        ledger.add("phase", name=phase, status="ended", data=data)
    for task in tasks:
        ledger.add("task", task=task.test, slug=task.slug, data={})
    ledger.add("concurrency", limit=20, because="none to 20: the run begins")
    for task in tasks:
        _attempts(ledger, directory, task, tips[task.slug])
    if over:
        ledger.add("decision", what="made one", because="the changes are identical", about=[tasks[0].slug])
        ledger.add("phase", name="integrate", status="began")
        ledger.add("phase", name="integrate", status="ended", data=integration(base, tasks, tips))
        ledger.add("finished", exit_code=3, summary={"why": "", "because": ""})
    (directory / "private.json").write_text(json.dumps({"env": {"TOKEN": "quite-secret-value"}}))
    (directory / "ledger.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in ledger.entries))
    _phases(directory, tasks)
    return directory


class _Ledger:
    def __init__(self, at: float) -> None:
        self.at = at
        self.entries: list[dict[str, Any]] = []

    def add(self, type: str, **data: Any) -> None:
        self.at += 0.05
        self.entries.append({"at": timestamp(self.at), "type": type, **data})


def _attempts(ledger: _Ledger, directory: Path, task: Made, tip: str) -> None:
    for number in range(1, task.attempts + 1):
        about = {"task": task.test, "number": number}
        agent = f"{directory.name}-{task.slug}-{number}"
        ledger.add("attempt", **about, agent=agent)
        ledger.add("started", **about, agent_id=f"agent-{number:032x}")
        _files(directory, task, number, ledger.at)
        last = number == task.attempts
        reason, because = ("outcome", f"it wrote its outcome: {task.text}") if last else ("crash", "it was killed")
        ledger.add("usage", **about, input_tokens=20_000, output_tokens=900, cache_read_tokens=9000, cost_usd=0.07)
        ledger.add("ended", **about, reason=reason, because=because, retry=not last)
        ledger.add("collected", **about, data=_collected(task, tip))
        ledger.add("released", **about)
        if last:
            ledger.add("verdict", **about, data=_verdict(task))


def _collected(task: Made, tip: str) -> dict[str, Any]:
    claim = {
        "status": "blocked" if task.verdict == verdict.BLOCKED else "done",
        "changes": [{"kind": "implementation", "commit": tip, "summary": task.text, "importance": 3}],
        "before": "failed",
        "after": task.claimed,
        "blocked_reason": task.text,
        "blocked_needs": task.text,
        "escalations": list(task.escalations),
        "summary": f"## Why\n\nBecause `{task.text}`",
    }
    return {"tip": tip, "uncommitted": None, "outcome": claim, "outcome_problem": "", "recorded": True, "problems": []}


def _verdict(task: Made) -> dict[str, Any]:
    return {
        "verdict": task.verdict,
        "reasons": [f"as measured: {task.text}"],
        "flags": list(task.flags),
        "files": ["src/sprout.py"],
        "after": task.after,
        "new": [],
        "changed": [],
        "lost": [],
        "gate_exit": 0,
        "seconds": 1.5,
        "implementation": True,
        "effect": [task.test],
        "stands_alone": None,
        **({"e2e": f"jobs/verify-{task.slug}/e2e"} if task.e2e else {}),
        **task.measured,
    }


def _files(directory: Path, task: Made, number: int, at: float) -> None:
    place = directory / "tasks" / task.slug / str(number)
    (place / "artifacts").mkdir(parents=True)
    (place / "artifacts" / "notes.txt").write_text(task.text, encoding="utf-8", errors="replace")
    said: list[dict[str, Any]] = [
        {"timestamp": timestamp(at), "role": "user", "text": "You work alone on one test.\n" + "Rules.\n" * 60}
    ]
    for step in range(6):
        now = timestamp(at + step + 1)
        said.append({"timestamp": now, "role": "assistant", "text": f"step {step}: {task.text}"})
        said.append({"timestamp": now, "role": "tool_call", "tool": "run", "input": f"pytest -q {step} {task.text}"})
        said.append(
            {
                "timestamp": now,
                "role": "tool_result",
                "text": f"\x1b[32m{step} passed\x1b[0m {task.text}",
                "exit_code": 0,
            }
        )
    (place / "transcript.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said))
    cast: list[Any] = [{"version": 2, "width": 80, "height": 24, "timestamp": int(at)}]
    cast += [[step * 0.2, "o", f"\x1b[3{step % 8}mscreen {step}\x1b[0m {task.text[:40]}\r\n"] for step in range(100)]
    (place / "agent.cast").write_text("".join(json.dumps(line) + "\n" for line in cast))
    (place / "screen.txt").write_text(f"$ \n{task.text}\n", encoding="utf-8", errors="replace")
    (place / "outcome.json").write_text(json.dumps({"task": task.test}))
    job = directory / "jobs" / f"verify-{task.slug}"
    job.mkdir(exist_ok=True)
    (job / "test.log").write_text(f"collected 1 item\n{task.text}\n1 passed\n", encoding="utf-8", errors="replace")
    (job / "test.exit").write_text("0\n")
    if task.e2e and number == 1:
        _verified_run(job / "e2e", task, at)


def _verified_run(place: Path, task: Made, at: float) -> None:
    run = e2e_runs.make_run(place, "verified", started_at=at)
    shown = e2e_runs.command(1, "sprout add Fern", at - e2e_runs.START, comment="a plant", stdout="added Fern\n")
    shown += e2e_runs.command(2, f"sprout count {task.text}", at + 1 - e2e_runs.START, stdout="1 plant\n")
    test = e2e_runs.make_test(run, task.test, events=shown, blocks=["# Count plants\nsprout count"], started_at=at)
    screens = [[number / 2, "o", f"$ sprout {number}\r\n"] for number in range(6)]
    e2e_runs.make_cast(test, "commands.cast", screens, started_at=at, title="commands")


def _phases(directory: Path, tasks: Sequence[Made]) -> None:
    tests = [
        {"id": task.test, "file": task.test.partition("::")[0], "line": 4, "name": "n", "doc": task.text, "body": "b"}
        for task in tasks
    ]
    (directory / "collect.json").write_text(json.dumps({"tests": tests, "chosen": [], "broken": []}))
    measured = {}
    for task in tasks:
        failed = task.before == "fail"
        words = {"signature": task.signature, "text": f"E  {task.text}"} if failed else {"signature": "", "text": ""}
        measured[task.test] = {
            "verdict": task.before,
            "runs": ["failed" if failed else "passed"],
            "seconds": 0.1,
            **words,
        }
    (directory / "baseline.json").write_text(json.dumps({"tests": measured}))
    rows = directory / "jobs" / "gate-1-final-1"
    rows.mkdir(exist_ok=True)
    facts = {"seconds": 0.1, "text": "", "signature": ""}
    lines = [{"type": "ran", "id": task.test, "outcome": task.after, **facts} for task in tasks]
    (rows / "test.rows").write_text("".join(json.dumps(line) + "\n" for line in lines))


def integration(base: str, tasks: Sequence[Made], tips: Mapping[str, str]) -> dict[str, Any]:
    kept = [task for task in tasks if task.verdict in ON_BRANCH]
    refuted = [task for task in tasks if task.verdict == verdict.HELD][:40]
    commits = [
        {
            "id": tips[task.slug],
            "kind": "implementation",
            "title": f"Fix {task.slug}: {task.text}",
            "rank": rank,
            "because": "mends 1 test",
            "slugs": [task.slug],
            "agents": [f"run-{task.slug}-1"],
            "tests": [task.test],
            "paths": ["src/sprout.py"],
            "needs": [],
            "needed_by": [],
            "revert": {"clean": True, "paths": [], "needed_by": []},
        }
        for rank, task in enumerate(kept, 1)
    ]
    aside = [
        {
            "slugs": [task.slug],
            "agents": [f"run-{task.slug}-1"],
            "tasks": [task.test],
            "what": "all",
            "reason": f"clashes with `run-{tasks[0].slug}-1`: {task.text}",
            "branch": f"mngr/set-aside/{task.slug}",
            "commit": tips[task.slug],
            "paths": ["src/sprout.py"],
            "against": [f"run-{tasks[0].slug}-1"],
            "evidence": [f"{task.test}\n{task.text}"],
        }
        for task in refuted
    ]
    tip = commits[-1]["id"] if commits else base
    return {
        "base": base, "tip": tip, "commits": commits, "set_aside": aside, "unchanged": [], "decisions": [],
        "green": True, "gate": {"green": True, "failures": [], "log": "gate-1-final-1"}, "excused": [],
        "dropped": [], "accepted": [], "branch": "tmr/made", "narrative": f"Plants\n\n{tasks[0].text}",
    }  # fmt: skip
