"""Planted works as the tasks of a few runs of `mngr tmr`, and where each ends."""

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mngr.mapreduce.ledger_fold import fold
from mngr.tmr.run_view import RunView, TaskView, view
from mngr.tmr.words.questions import questions
from tests.support.tmr import OUTCOME, Project
from tests.support.user import User
from tests.support.works import applied, task
from tests.works import ASKED, ON_BRANCH, PREPARE_C, REFUTED, SHARED_FILES_C, Work, shared_files

_BATCH = 24  # tasks of one run: one that goes wrong is seen before all have been paid for
ENDS = (ON_BRANCH, ASKED, REFUTED)


class End(NamedTuple):
    """Where a work ended: its place in one word, the verdict and why."""

    place: str
    verdict: str
    why: str


def batches(works: Mapping[str, Work]) -> list[dict[str, Work]]:
    """Works that can be tasks of one run: of one language, and of those that change the same shared file only one."""
    found: list[dict[str, Work]] = []
    for name, work in works.items():
        if any(name in batch for batch in found):
            continue
        both = {name: work, **({work.partner: works[work.partner]} if work.partner else {})}
        for batch in found:
            fits = all(_fit(*one, *other) for one in both.items() for other in batch.items())
            if fits and len(batch) + len(both) <= _BATCH:
                batch.update(both)
                break
        else:
            found.append(both)
    return found


def _fit(name: str, one: Work, other_name: str, other: Work) -> bool:
    shared = {edit.path for edit in one.edits} & {edit.path for edit in other.edits}
    same = _function(name, one) == _function(other_name, other)
    return shared_files(one) is shared_files(other) and not shared and not same


def _function(name: str, work: Work) -> str:
    """The name of its test, by which its agent finds what to do."""
    return task(name, work).rpartition("::")[2].partition("[")[0]


def run(user: User, works: Mapping[str, Work], timeout: float = 3000) -> dict[str, End]:
    """One run of a batch, whose agents do what their works say."""
    made = Project(user, product="", tests="")
    for name in ("calc.py", "tests/test_calc.py"):
        (made.repo / name).unlink()
    files = {path: text for work in works.values() for path, text in (*shared_files(work).items(), *work.files.items())}
    for path, text in files.items():
        made.write(path, text)
    if shared_files(next(iter(works.values()))) is SHARED_FILES_C:
        made.settings["prepare"] = PREPARE_C
    made.settings |= {"test_command": shlex.join([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"])}
    del made.settings["env.PYTHONPATH"]
    made.write(".mngr/settings.toml", made.toml() + '[tmr.paths]\nimplementation = ["src/"]\n')
    for name, work in works.items():
        made.script(_function(name, work), _script(user, name, work, files))
    made.commit("A shop")
    tests = [task(name, work) for name, work in works.items()]
    made.tmr("--no-canary", *tests, timeout=timeout)
    state = fold(made.ledger())
    seen = view(state)
    asked = {one.slug for question in questions(seen) for one in question.tasks}
    return {name: _end(seen, task(name, work), asked) for name, work in works.items()}


def _script(user: User, name: str, work: Work, files: Mapping[str, str]) -> str:
    """What the agent of a work does: it puts its files in place, commits and says so."""
    after = applied(files, work.edits)
    place = user.root / "edits" / name
    for path in (path for path in after if after[path] != files.get(path)):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(after[path], encoding="utf-8")
    gone = [f"run! rm {shlex.quote(path)}\n" for path in files if path not in after]
    copy = f"run! cp -R {shlex.quote(str(place))}/. .\n" if place.exists() else ""
    kinds = {"implementation" if edit.path.startswith("src/") else "test" for edit in work.edits}
    changes = [{"kind": kind, "commit": "{head}", "summary": work.summary, "importance": 3} for kind in sorted(kinds)]
    claim = OUTCOME.format(status="done", changes=json.dumps(changes), summary=work.summary)
    return f"wait\n{copy}{''.join(gone)}commit {work.summary}\n{claim}"


def _end(seen: RunView, test: str, asked: set[str]) -> End:
    one = next(one for one in seen.tasks if one.id == test.partition("[")[0])
    if one.slug in asked:
        place = ASKED
    elif one.place.commits:
        place = ON_BRANCH
    else:
        place = REFUTED
    return End(place, one.word, _why(one))


def _why(one: TaskView) -> str:
    return " ".join("; ".join(filter(None, [one.why, *one.flags, one.place.reason])).split())


def wrong(works: Mapping[str, Work], ends: Mapping[str, End]) -> dict[str, End]:
    """The works that ended where they should not. Of two that are wrong together one in the right place is enough."""
    bad = {name: end for name, end in ends.items() if end.place not in works[name].ends}
    return {name: end for name, end in bad.items() if not works[name].partner or works[name].partner in bad}


def table(works: Mapping[str, Work], ends: Mapping[str, End], modules: Mapping[str, Iterable[str]]) -> str:
    """The shares of each place by module, and what ended wrong."""
    lines = [f"{'':24}" + "".join(f"{end:>15}" for end in (*ENDS, "wrong"))]
    bad = wrong(works, ends)
    for module, names in modules.items():
        mine: Sequence[str] = [name for name in names if name in ends]
        if mine:
            counts = [sum(ends[name].place == end for name in mine) for end in ENDS]
            counts.append(sum(name in bad for name in mine))
            lines.append(f"{module:24}" + "".join(f"{count:15}" for count in counts))
    lines += [
        f"{name}: {end.place} ({end.verdict}), right: {sorted(works[name].ends)}: {end.why[:300]}"
        for name, end in bad.items()
    ]
    return "\n".join(lines)


def kept(ends: Mapping[str, End], path: Path) -> None:
    """The ends on disk, for whoever looks into one."""
    path.write_text(json.dumps({name: end._asdict() for name, end in ends.items()}, indent=1))
