"""`mngr tmr review`: walk through the work of a run, keep, drop or send back each piece, and build the branch again."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mngr.cli.amounts import amount
from mngr.cli.app import App
from mngr.cli.parser import Args
from mngr.cli.terminal import is_terminal
from mngr.cli.tmr.orchestrator import find, orchestrate, show_result, task_named, working
from mngr.errors import MngrError, Undecided, UsageError
from mngr.mapreduce.run import Run
from mngr.process import checked
from mngr.tmr.places import integration_of, places
from mngr.tmr.review import ReviewItem, works
from mngr.tmr.summary import verdict_of, why
from mngr.tools.git import Git

KEEP, DROP, BACK, SKIP = "y", "n", "b", "s"
_KEYS = "[y] keep, [n] drop, [b] send back with a comment, [s] skip, [d] details, [p] previous, [q] quit:"
_ACCEPT_KEYS = _KEYS.replace("keep", "put on the branch").replace("drop", "leave off")
_STYLES = {"@@": "cyan", "+": "green", "-": "red", "\\": "dim", " ": ""}
_NOISE = ("index ", "--- ", "+++ ")
_FEW_LINES = 60
_ASKED_MAX = 3
_WORDS = {"t0p0": "old tests, old product", "t0p1": "old tests, new product"}
_WORDS |= {"t1p0": "new tests, old product", "t1p1": "new tests, new product"}


class Choice(NamedTuple):
    """What a person decided about a piece of work. `comment` goes to its agent."""

    key: str = ""
    comment: str = ""


def review(args: Args, app: App) -> int:
    found = find(app, args.run)
    if not integration_of(found.state):
        raise MngrError(f"run `{found.id}` is not integrated yet", hint=f"`mngr tmr resume {found.id}`")
    if args.drop:
        return _rebuild(app, found, drop=_named(found, args.drop))
    every = works(found.state)
    picked = list(zip(every, _ask(app, found, every), strict=True))
    drop = [slug for work, choice in picked if choice.key == DROP and work.on_branch for slug in work.slugs]
    accept = [slug for work, choice in picked if choice.key == KEEP and work.dangerous for slug in work.slugs]
    back = [(work, choice.comment) for work, choice in picked if choice.key == BACK]
    if drop or back or any(choice.key == KEEP and not work.on_branch for work, choice in picked):
        if not app.confirm(_told(picked)):
            app.out.line("nothing was changed")
            return 0
        code = _rebuild(app, found, drop=drop, accept=accept) if drop or accept else 0
        return _send_back(app, found, back) if back else code
    if accept:
        return _looked_at(app, found, accept)
    app.out.emit_object({"run": found.id, "dropped": []}, human="the branch stays as it is")
    return 0


def _named(run: Run, names: Sequence[str]) -> list[str]:
    """The slugs of work that is on the branch, or was dropped from it before."""
    where = places(run.state)
    dropped = integration_of(run.state).get("dropped", ())
    there = {slug for slug, place in where.items() if place.commits}
    slugs = [task_named(run, name).slug for name in names]
    if strange := [slug for slug in slugs if slug not in there and slug not in dropped]:
        known = ", ".join(f"`{slug}`" for slug in sorted(there)[:20])
        raise UsageError(
            f"no work of `{strange[0]}` is on the branch", hint=f"on the branch is work of {known}" if there else ""
        )
    return slugs


def _rebuild(app: App, run: Run, *, drop: Sequence[str] = (), accept: Sequence[str] = ()) -> int:
    with working(app, run) as work:
        run.resume()
        work.integrate(drop=sorted(drop), accept=sorted(accept))
        code = work.exit_code()
        run.note("finished", exit_code=code, summary={"why": "reviewed", "because": "built again after a review"})
    return show_result(app, run, code)


def _looked_at(app: App, run: Run, accept: Sequence[str]) -> int:
    """Note that a person keeps flagged work. The branch stays as it is, and nothing is measured."""
    with run.locked():
        data = integration_of(run.state)
        run.end_phase("integrate", {**data, "accepted": sorted({*data.get("accepted", ()), *accept})})
    app.out.note("the branch stays as it is")
    return show_result(app, run, int((run.state.finished or {}).get("exit_code") or 0))


def _send_back(app: App, run: Run, back: Sequence[tuple[ReviewItem, str]]) -> int:
    """Let the agents continue with what the person has to say, then integrate again."""
    with run.locked():
        for work, comment in back:
            for task in work.tasks:
                run.retry(task.id, because="sent back in review", message=comment)
    return orchestrate(app, run, resumed=True)


def _ask(app: App, run: Run, every: Sequence[ReviewItem]) -> list[Choice]:
    """One piece of work after the other. Who quits decides nothing."""
    if not every:
        return []
    if app.headless or not is_terminal(app.stdout):
        raise Undecided(
            f"there {'is' if len(every) == 1 else 'are'} {amount(len(every), 'piece')} of work to review, and no "
            "terminal to ask",
            hint=f"name what to drop: `mngr tmr review {run.id} --drop TASK`",
        )
    git = Git(str(run.state.facts["repo"]))
    choices = [Choice()] * len(every)
    at = 0
    show = True
    while at < len(every):
        work = every[at]
        if show:
            _show(app, run, git, work, f"{at + 1} of {len(every)}")
        key = _key(app, work)
        show = True
        if key == "q":
            return [Choice()] * len(every)
        if key == "d":
            _details(app, run, git, work)
            show = False
        elif key == "p":
            at = max(0, at - 1)
        else:
            comment = app.ask("what should its agent do?", "") if key == BACK else ""
            show = key != BACK or bool(comment)
            choices[at] = Choice(key, comment)
            at += show
    return choices


def _key(app: App, work: ReviewItem) -> str:
    """One of the keys, asked again until it is one; no answer three times is a `q`. Enter keeps work that nothing was
    found against, and means nothing for dangerous work."""
    for _ in range(_ASKED_MAX):
        question = "keep it?" if work.on_branch else "accept it?"
        key = app.ask(question, _KEYS if work.on_branch else _ACCEPT_KEYS).lower()[:1]
        key = key or ("" if work.dangerous else KEEP)
        if key and key in "ynbsdpq":
            return key
    return "q"


def _told(picked: Sequence[tuple[ReviewItem, Choice]]) -> str:
    """The summary before anything is done."""
    counts = {
        "keep": sum(work.on_branch and choice.key not in (DROP, BACK) for work, choice in picked),
        "drop": sum(work.on_branch and choice.key == DROP for work, choice in picked),
        "accept": sum(not work.on_branch and choice.key == KEEP for work, choice in picked),
        "send back": sum(choice.key == BACK for _, choice in picked),
    }
    told = ", ".join(f"{word} {count}" for word, count in counts.items() if count)
    return f"\n{told}: build and measure the branch again?"


def _show(app: App, run: Run, git: Git, work: ReviewItem, place: str) -> None:
    out = app.out
    out.line(f"\n{place}: {work.title}", "bold")
    for task in work.tasks:
        out.line(f"  {task.id}: {verdict_of(task)}, {why(task)}")
    ranked = next((commit for commit in work.commits if commit["rank"]), None)
    if ranked:
        out.line(f"  rank {ranked['rank']}: {ranked['because']}")
    for text in work.warnings:
        out.line(f"  LOOK AT THIS: {text}", "bold red")
    if work.needed_by:
        out.line(f"  {amount(work.needed_by, 'later commit')} built on it would go too", "yellow")
    _diff(app, run, git, work, _FEW_LINES)


def _details(app: App, run: Run, git: Git, work: ReviewItem) -> None:
    """What the agents say, what was measured, and all of the change."""
    out = app.out
    for task in work.tasks:
        found, claim = task.verdict, task.claim
        for line in _wrapped(str(claim.get("summary") or ""), (out.columns or 100) - 4):
            out.line(f"  | {line}", "dim")
        marks = {name: word for name, word in (found.get("marks") or {}).items() if word}
        if marks:
            out.line("  measured: " + "; ".join(f"{_WORDS.get(name, name)}: {word}" for name, word in marks.items()))
        strength = found.get("strength") or {}
        for name, what in (("gained", "noticed only now"), ("lost", "noticed only before")):
            for text in strength.get(name) or ():
                out.line(f"  {what}: {text}", "green" if name == "gained" else "red")
    _diff(app, run, git, work, None)


def _wrapped(text: str, columns: int) -> Iterator[str]:
    for line in text.split("\n"):
        yield from textwrap.wrap(line, max(20, columns)) or [""]


def _diff(app: App, run: Run, git: Git, work: ReviewItem, most: int | None) -> None:
    """The change in our own colours, since an agent's line may hold others; without the lines that only git needs."""
    lines = [line for commit in _patches(run, git, work) for line in commit]
    for line in lines[:most]:
        if line.startswith("diff --git "):
            app.out.line("  " + line.rpartition(" b/")[2].strip('"'), "bold")
        else:
            app.out.line(line, _STYLES.get(line[:2] if line[:2] == "@@" else line[:1], "dim"))
    if most is not None and len(lines) > most:
        app.out.line(f"  ... {amount(len(lines) - most, 'more line')}: [d] shows all", "dim")


def _patches(run: Run, git: Git, work: ReviewItem) -> Iterator[list[str]]:
    form = ("--patch", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
    own = [commit for commit in work.commits if set(commit["slugs"]) <= set(work.slugs)]
    for commit in own:
        yield _lines(checked(git.run("show", "--format=", *form, commit["id"])).text)
    if len(own) < len(work.commits) or not own:  # what is squashed with the work of others, or on no branch
        base = str(run.state.facts["base"])
        shared = sorted({path for commit in work.commits if commit not in own for path in commit["paths"]})
        for task in work.tasks:
            tip = ((task.last.collected if task.last else None) or {}).get("tip")
            if tip:
                paths = [f":(literal){path}" for path in shared]
                yield _lines(checked(git.run("diff", *form, base, str(tip), "--", *paths)).text)


def _lines(patch: str) -> list[str]:
    return [line for line in patch.rstrip("\n").split("\n") if line and not line.startswith(_NOISE)]
