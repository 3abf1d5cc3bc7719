"""`mngr tmr review`: walk through the work of a run, keep, drop or send back each piece, and build the branch again."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.terminal import is_terminal
from mngr.cli.parser.parser import Args
from mngr.cli.tmr.orchestrator import find, orchestrate, show_result, task_named, working
from mngr.errors import MngrError, Undecided, UsageError
from mngr.json_values import plain
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import SETTLED
from mngr.named_tuples import NamedTuple
from mngr.system.git import Git
from mngr.system.process import checked
from mngr.tmr.branch.integrated import Committed
from mngr.tmr.judge.second_opinion import can_be_asked_about
from mngr.tmr.judge.verdict import HELD, REFUTED, UNPROVEN
from mngr.tmr.run_view import RunView, TaskView, view
from mngr.tmr.words.questions import expected, is_dangerous, questions

KEEP, DROP, BACK, SKIP, VARIANT = "y", "n", "b", "s", "v"
_KEYS = "[y] keep, [n] drop, [b] send back with a comment, [s] skip, [d] details, [p] previous, [q] quit:"
_VARIANT_KEY = "[v] ask another agent for a variant of its test, "
_ACCEPT_KEYS = _KEYS.replace("keep", "put on the branch").replace("drop", "leave off")
_STYLES = {"@@": "cyan", "+": "green", "-": "red", "\\": "dim", " ": ""}
_NOISE = ("index ", "--- ", "+++ ")
_FEW_LINES = 60
_ASKED_MAX = 3
_WORDS = {
    "t0p0": "old tests, old product",
    "t0p1": "old tests, new product",
    "t1p0": "new tests, old product",
    "t1p1": "new tests, new product",
}


class ReviewItem(NamedTuple):
    """The work of one task, or of several that made the same fix. `commits` are those of the branch that hold it; none
    for work that waits for a person to accept it. `rank` is that of its fix, 0 for work beside the implementation."""

    tasks: tuple[TaskView, ...]
    commits: tuple[Committed, ...] = ()
    rank: int = 0

    @property
    def slugs(self) -> tuple[str, ...]:
        return tuple(task.slug for task in self.tasks)

    @property
    def on_branch(self) -> bool:
        return bool(self.commits)

    @property
    def is_refuted(self) -> bool:
        return not self.on_branch and any(task.word == REFUTED for task in self.tasks)

    @property
    def can_be_varied(self) -> bool:
        """Whether another agent can be asked for a variant of its test."""
        return any(can_be_asked_about(task.task) for task in self.tasks)

    @property
    def dangerous(self) -> bool:
        return not self.on_branch or any(map(is_dangerous, self.tasks))

    @property
    def own(self) -> list[Committed]:
        """The commits that hold no work of others."""
        return [commit for commit in self.commits if set(commit.slugs) <= set(self.slugs)]

    @property
    def title(self) -> str:
        first = next(iter(sorted(self.own, key=lambda commit: not commit.rank)), None)
        return first.title if first else self.tasks[0].id

    @property
    def warnings(self) -> list[str]:
        """What to look at before anything else."""
        found = []
        for task in self.tasks:
            found += [*expected(task), *task.flags]
            if not self.on_branch or (task.verdict.to_look_at and not task.evidence.change.expectations):
                found.append(f"{task.word}: {task.why}")
        return list(dict.fromkeys(found))

    @property
    def needed_by(self) -> int:
        """How many commits of other work would go with it."""
        own = {commit.id for commit in self.commits}
        return len({id for commit in self.commits if commit.rank for id in commit.needed_by} - own)


def works(run: RunView, *, refuted: bool = False) -> list[ReviewItem]:
    """Everything on the branch, and what waits to be accepted: dangerous work first, then by rank, then the rest; at
    the end what was refuted, if that is asked for."""
    by_slug = {task.slug: task for task in run.tasks}
    commits = run.branch.commits
    made: list[ReviewItem] = []
    taken: set[str] = set()
    for commit in sorted(commits, key=lambda commit: (not commit.rank, commit.rank)):
        slugs = [slug for slug in commit.slugs if slug in by_slug and slug not in taken]
        taken |= set(slugs)
        for group in filter(None, [slugs] if commit.rank else [[slug] for slug in slugs]):
            own = tuple(one for one in commits if set(group) & set(one.slugs))
            made.append(ReviewItem(tuple(by_slug[slug] for slug in group), own, commit.rank))
    made += [ReviewItem((task,)) for one in questions(run) if one.kind in (HELD, UNPROVEN) for task in one.tasks]
    made.sort(key=lambda work: (not work.dangerous, not work.on_branch, not work.rank, work.rank))
    wrong = [task for task in run.tasks if refuted and _can_be_overruled(task)]
    return [*made, *(ReviewItem((task,)) for task in wrong)]


def _can_be_overruled(task: TaskView) -> bool:
    return task.task.status == SETTLED and task.word == REFUTED and bool(task.tip) and not task.place.commits


class Choice(NamedTuple):
    """What a person decided about a piece of work. `comment` goes to its agent, or says why refuted work is right."""

    key: str = ""
    comment: str = ""


class Decided(NamedTuple):
    """What to do with the work of these slugs: take it off the branch; put it there, also refuted work, for a reason;
    ask another agent for a variant of its test."""

    drop: Sequence[str] = ()
    accept: Sequence[str] = ()
    overrule: Mapping[str, str] = {}
    vary: Sequence[str] = ()


def review(args: Args, app: App) -> int:
    found = find(app, args.run)
    run = view(found.state)
    if run.integrated is None:
        raise MngrError(f"run `{found.id}` is not integrated yet", hint=f"`mngr tmr resume {found.id}`")
    if args.drop or args.accept_refuted or args.second_opinion:
        return _rebuild(app, found, _asked_for(args, found))
    every = works(run, refuted=bool(args.refuted))
    picked = list(zip(every, _ask(app, found, every), strict=True))
    drop = [slug for work, choice in picked if choice.key == DROP and work.on_branch for slug in work.slugs]
    kept = [(work, choice) for work, choice in picked if choice.key == KEEP and work.dangerous]
    accept = [slug for work, _ in kept if not work.is_refuted for slug in work.slugs]
    overrule = {slug: choice.comment for work, choice in kept if work.is_refuted for slug in work.slugs}
    vary = [slug for work, choice in picked if choice.key == VARIANT for slug in work.slugs]
    back = [(task.id, choice.comment) for work, choice in picked if choice.key == BACK for task in work.tasks]
    if drop or back or vary or any(not work.on_branch for work, _ in kept):
        if not app.confirm(_told(picked)):
            app.out.line("nothing was changed")
            return 0
        decided = Decided(drop, accept, overrule, vary)
        code = _rebuild(app, found, decided) if any(decided) else 0
        return _send_back(app, found, back) if back else code
    if accept:
        return _looked_at(app, found, accept)
    app.out.emit_object({"run": found.id, "dropped": []}, human="the branch stays as it is")
    return 0


def _named(run: Run, names: Sequence[str]) -> list[str]:
    """The slugs of work that is on the branch, or was dropped from it before."""
    seen = view(run.state)
    dropped, there = seen.branch.dropped, {task.slug for task in seen.tasks if task.place.commits}
    slugs = [task_named(run, name).slug for name in names]
    if strange := [slug for slug in slugs if slug not in there and slug not in dropped]:
        known = ", ".join(f"`{slug}`" for slug in sorted(there)[:20])
        raise UsageError(
            f"no work of `{strange[0]}` is on the branch", hint=f"on the branch is work of {known}" if there else ""
        )
    return slugs


def _asked_for(args: Args, run: Run) -> Decided:
    """What the options decide without asking."""
    seen = view(run.state)
    wrong, fixes = (
        [task_named(run, name) for name in names or ()] for names in (args.accept_refuted, args.second_opinion)
    )
    reason = str(args.reason or "").strip()
    if wrong and not reason:
        raise UsageError("refuted work is accepted for a reason only", hint="`--reason TEXT` goes into its commit")
    by_slug = {task.slug: task for task in seen.tasks}
    for task in wrong:
        if not _can_be_overruled(by_slug[task.slug]):
            raise UsageError(f"`{task.slug}` is {by_slug[task.slug].word}, not refuted work")
    for task in fixes:
        if not can_be_asked_about(task):
            raise UsageError(f"`{task.slug}` is no fix that a second opinion can be asked about, or has one already")
    overrule = {task.slug: reason for task in wrong}
    return Decided(_named(run, args.drop or ()), (), overrule, [task.slug for task in fixes])


def _rebuild(app: App, run: Run, decided: Decided) -> int:
    with working(app, run) as work:
        run.resume()
        if decided.vary:
            work.second_opinions(decided.vary)
        work.integrate(sorted(decided.drop), sorted(decided.accept), decided.overrule)
        code = work.exit_code()
        run.note("finished", exit_code=code, summary={"why": "reviewed", "because": "built again after a review"})
    return show_result(app, run, code)


def _looked_at(app: App, run: Run, accept: Sequence[str]) -> int:
    """Note that a person keeps flagged work. The branch stays as it is, and nothing is measured."""
    with run.locked():
        done = view(run.state).branch
        run.end_phase("integrate", plain(done._replace(accepted=tuple(sorted({*done.accepted, *accept})))))
    app.out.note("the branch stays as it is")
    return show_result(app, run, int((run.state.finished or {}).get("exit_code") or 0))


def _send_back(app: App, run: Run, back: Sequence[tuple[str, str]]) -> int:
    """Let the agents continue with what the person has to say, then integrate again."""
    with run.locked():
        for task, comment in back:
            run.retry(task, because="sent back in review", message=comment)
    return orchestrate(app, run, resumed=True)


def _ask(app: App, run: Run, every: Sequence[ReviewItem]) -> list[Choice]:
    """One piece of work after the other. Who quits decides nothing."""
    if every and (app.headless or not is_terminal(app.stdout)):
        raise Undecided(
            f"there {'is' if len(every) == 1 else 'are'} {amount(len(every), 'piece')} of work to review, and no "
            "terminal to ask",
            hint=f"name what to drop: `mngr tmr review {run.id} --drop TASK`",
        )
    git = Git.of_user(str(run.state.facts["repo"]))
    choices = [Choice()] * len(every)
    at, shown = 0, -1
    while at < len(every):
        if shown != at:
            _show(app, run, git, every[at], f"{at + 1} of {len(every)}")
        shown = at
        key = _key(app, every[at])
        if key == "q":
            return [Choice()] * len(every)
        if key == "d":
            _details(app, run, git, every[at])
        elif key == "p":
            at, shown = max(0, at - 1), -1
        else:
            why = key == KEEP and every[at].is_refuted
            question = "what should its agent do?" if key == BACK else "it is refuted; why is it right?"
            comment = app.ask(question, "") if key == BACK or why else ""
            choices[at] = Choice(key, comment)
            at += bool(comment) or not (key == BACK or why)
    return choices


def _key(app: App, work: ReviewItem) -> str:
    """One of the keys, asked again until it is one; no answer three times is a `q`. Enter keeps work that nothing was
    found against, and means nothing for dangerous work."""
    question, keys = ("keep it?", _KEYS) if work.on_branch else ("accept it?", _ACCEPT_KEYS)
    keys = _VARIANT_KEY + keys if work.can_be_varied else keys
    for _ in range(_ASKED_MAX):
        key = app.ask(question, keys).lower()[:1] or ("" if work.dangerous else KEEP)
        if key and key in "ynbsdpq" + VARIANT * work.can_be_varied:
            return key
    return "q"


def _told(picked: Sequence[tuple[ReviewItem, Choice]]) -> str:
    """The summary before anything is done."""
    counts = {
        "keep": sum(work.on_branch and choice.key not in (DROP, BACK, VARIANT) for work, choice in picked),
        "drop": sum(work.on_branch and choice.key == DROP for work, choice in picked),
        "accept": sum(not work.on_branch and choice.key == KEEP for work, choice in picked),
        "ask for a variant": sum(choice.key == VARIANT for _, choice in picked),
        "send back": sum(choice.key == BACK for _, choice in picked),
    }
    told = ", ".join(f"{word} {count}" for word, count in counts.items() if count)
    return f"\n{told}: build and measure the branch again?"


def _show(app: App, run: Run, git: Git, work: ReviewItem, place: str) -> None:
    out = app.out
    out.line(f"\n{place}: {work.title}", "bold")
    for task in work.tasks:
        out.line(f"  {task.id}: {task.word}, {task.why}")
        if task.verdict.second_opinion:
            out.line(f"  {task.verdict.second_opinion}")
    if ranked := next((commit for commit in work.commits if commit.rank), None):
        out.line(f"  rank {ranked.rank}: {ranked.because}")
    for text in work.warnings:
        out.line(f"  LOOK AT THIS: {text}", "bold red")
    if work.needed_by:
        out.line(f"  {amount(work.needed_by, 'later commit')} built on it would go too", "yellow")
    _diff(app, run, git, work, _FEW_LINES)


def _details(app: App, run: Run, git: Git, work: ReviewItem) -> None:
    """What the agents say, what was measured, and all of the change."""
    out = app.out
    for task in work.tasks:
        for text in task.claim.summary.split("\n"):
            for line in textwrap.wrap(text, max(20, (out.columns or 100) - 4)) or [""]:
                out.line(f"  | {line}", "dim")
        marks = {name: word for name, word in task.evidence.marks._asdict().items() if word}
        if marks:
            out.line("  measured: " + "; ".join(f"{_WORDS[name]}: {word}" for name, word in marks.items()))
        if strength := task.evidence.noticed.strength:
            for texts, what, style in ((strength.gained, "only now", "green"), (strength.lost, "only before", "red")):
                for text in texts:
                    out.line(f"  noticed {what}: {text}", style)
    _diff(app, run, git, work, None)


def _diff(app: App, run: Run, git: Git, work: ReviewItem, most: int | None) -> None:
    """The change in our own colours, since an agent's line may hold others; without the lines that only git needs."""
    every = (line for patch in _patches(run, git, work) for line in patch.split("\n"))
    lines = [line for line in every if line and not line.startswith(_NOISE)]
    for line in lines[:most]:
        if line.startswith("diff --git "):
            app.out.line("  " + line.rpartition(" b/")[2].strip('"'), "bold")
        else:
            app.out.line(line, _STYLES.get(line[:2] if line[:2] == "@@" else line[:1], "dim"))
    if most is not None and len(lines) > most:
        app.out.line(f"  ... {amount(len(lines) - most, 'more line')}: [d] shows all", "dim")


def _patches(run: Run, git: Git, work: ReviewItem) -> Iterator[str]:
    form = ("--patch", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
    own = work.own
    for commit in own:
        yield checked(git.run("show", "--format=", *form, commit.id)).text
    if len(own) < len(work.commits) or not own:  # what is squashed with the work of others, or on no branch
        shared = sorted({path for commit in work.commits if commit not in own for path in commit.paths})
        paths = [f":(literal){path}" for path in shared]
        for task in work.tasks:
            if task.tip:
                yield checked(git.run("diff", *form, str(run.state.facts["base"]), task.tip, "--", *paths)).text
