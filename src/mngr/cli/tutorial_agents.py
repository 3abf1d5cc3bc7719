"""The parts of `mngr tutorial` with an agent: its run, its result, and a person's choice of what it proposes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mngr import json_values
from mngr.cli import catalog
from mngr.cli.app import App
from mngr.cli.dispatch import command_parser
from mngr.cli.output.amounts import amount
from mngr.cli.output.terminal import visible
from mngr.cli.parser import scan
from mngr.cli.parser.option_values import parse_sandbox, read_text
from mngr.cli.parser.parser import Args
from mngr.cli.tmr import orchestrator
from mngr.cli.tmr import request as tmr_request
from mngr.errors import MngrError, Undecided, UsageError
from mngr.mapreduce import begun
from mngr.mapreduce import run as runs
from mngr.mapreduce.limits import RunLimits
from mngr.mapreduce.run import Run
from mngr.programs import kind
from mngr.settings.layers import project_root
from mngr.system import process
from mngr.system.files import write_atomic
from mngr.system.git import Git
from mngr.system.process import join
from mngr.tmr import settings as tmr_settings
from mngr.tmr.recipe import Workers
from mngr.tmr.run_request import RunRequest
from mngr.tutorial import program, proposals, skill
from mngr.tutorial.check import STALE
from mngr.tutorial.proposals import Proposal
from mngr.tutorial.sources import Sources
from mngr.tutorial_runs import fill, sync
from mngr.tutorial_runs import run as tutorial_run
from mngr.tutorial_runs.run import FILL, SYNC, TutorialRecipe, TutorialRequest, TutorialResult
from mngr.workspace import plan
from mngr.workspace.workspace import unclean_commit


def _begin(args: Args, app: App, place: Sources, recipe: str, prompt: str, command: str, **asked: Any) -> Run:
    """Create a run with one agent, without starting it. `command` is how its work is tried out."""
    repo = place.root
    chosen = args.type or kind.default_name(app.settings)
    tmr_request.check_kind(app, repo, chosen, args.permissions)
    git = Git.of_user(repo)
    tmr_request.check_identity(app, git, chosen, given={})
    sandbox = parse_sandbox(args)
    if sandbox:
        tmr_request.check_sandbox(app, args.transfer, here=True)
    timeout, budget = args.timeout, {"budget_usd": args.budget_usd, "budget_tokens": args.budget_tokens}
    limits = RunLimits(max_agents=1, max_returns=max(0, args.rounds - 1), timeout_seconds=timeout, **budget)
    limits = limits._replace(warn_seconds=min(300.0, timeout / 5))
    tmr_request.settle_trust(app, limits)
    name = args.name or tutorial_run.free_name(app.fleet, repo, recipe.replace("tutorial-", "") + "-tutorial")
    unclean = None if args.include_unclean is None else "include" if args.include_unclean else "exclude"
    [planned] = plan.decide(repo, [name], args.transfer, f"HEAD:{tutorial_run.branch_of(name)}", unclean)
    settings = tmr_settings.read(app.settings, test_command=command)
    asked_run = RunRequest(
        repo=repo,
        base=unclean_commit(git, planned) if planned.include_unclean else str(planned.start),
        branch=tutorial_run.branch_of(name),
        settings=settings._replace(environment=settings.environment._replace(sandbox=sandbox)),
        workers=Workers(
            type=chosen,
            args=tuple(args.rest),
            transfer=args.transfer,
            permissions=args.permissions or "",
            sandbox="on" if sandbox else "",
        ),
        limits=limits,
    )
    made = TutorialRequest(asked_run, place, prompt, asked)
    if recipe == SYNC:
        sync.check_tracked(git, made)
    run = runs.new(repo, id=name, recipe=recipe, **made.facts())
    git.must("update-ref", f"refs/mngr/runs/{run.id}/base", asked_run.base)
    begun.note(app.host_dir, repo, run.directory)
    return run


def _from_top(args: Args, app: App, place: Sources) -> Sources:
    """The same places named as in the agent's copy. Only what is tried out needs no repository."""
    if not args.dry_run:
        return place.seen_from(orchestrator.repository(app).top)
    top = Git.of_user(place.root, cautious=True).run("rev-parse", "--show-toplevel")
    return place.seen_from(top.text) if top.ok else place


@contextmanager
def _working(app: App, run: Run, recipe: TutorialRecipe) -> Iterator[TutorialResult]:
    """The result of the run, once its agent is done. On Ctrl-C, note how to resume."""
    try:
        with run.locked(), run.heard_by(tutorial_run.teller(run, recipe, app.out.note)):
            if run.state.tasks:
                tutorial_run.resume(run, recipe)
            found = tutorial_run.work(app.fleet, run, recipe)
            yield found
            run.note("finished", exit_code=found.code, summary={"why": found.end, "because": found.because})
    except KeyboardInterrupt:
        app.out.note(f"resume: `mngr tutorial resume {run.id}`")
        raise


_NOT_STARTED: dict[str, Any] = {
    **dict.fromkeys(("run", "directory", "agent", "branch", "work_dir", "end"), None),
    "rounds": [],
}


def _told(run: Run, found: TutorialResult) -> dict[str, Any]:
    """The run, its agent, the branch of what passed, how it ended, and what was missing after each round."""
    return {
        "run": run.id,
        "directory": run.directory,
        "agent": found.agent,
        "branch": found.branch or None,
        "work_dir": found.work_dir,
        "end": found.end,
        "rounds": json_values.plain(found.turns),
        "dry_run": False,
        "prompt": None,
    }


def resume(args: Args, app: App) -> int:
    run = orchestrator.find(app, args.run, (SYNC, FILL))
    request = tutorial_run.request_of(run)
    if run.state.finished is not None and run.state.finished.get("summary", {}).get("why") == tutorial_run.PASSED:
        app.out.note(f"run `{run.id}` is finished; nothing is left to do")
        return 0
    if run.state.facts["recipe"] == SYNC:
        return _sync(app, run, request)
    return _fill(args, app, run, request, request.sources)


def run_sync(args: Args, app: App, place: Sources) -> int:
    place = _from_top(args, app, place)
    report = place.report()
    stale = [problem for problem in report.problems if problem.kind == STALE]
    report = report._replace(problems=tuple(problem for problem in report.problems if problem.kind != STALE))
    if stale and report.ok:
        raise MngrError(f"the citations are complete, but {stale[0].message}", hint="run the tests again")
    own: str = args.test_command or app.settings.text("tutorial.test_command")
    command = own
    if not own and (report.ran is not None or stale):  # what was run can be checked only if the tests are run
        command = f"{tmr_settings.read(app.settings).environment.test_command} {join(place.tests)}"
    prompt = sync.render("sync.md.j2", place, command, report.problems, args.prompt)
    if report.ok or args.dry_run:
        value = {"script": place.script, "before": len(report.problems), **_NOT_STARTED, "ok": report.ok}
        human = "nothing is missing" if report.ok else "\n".join(problem.message for problem in report.problems)
        if args.dry_run and not report.ok:
            human += f"\n\nthe prompt:\n\n{prompt}"
        value |= {"problems": [], "flags": [], "prompt": prompt if args.dry_run else None, "dry_run": args.dry_run}
        app.out.emit_object(value, human=human)
        return 0
    if (
        args.include_unclean is False
        and Git.of_user(place.root, cautious=True).run("status", "--porcelain", "--", place.script).text
    ):
        raise UsageError(
            f"`{place.script}` has uncommitted changes, which `--exclude-unclean` would leave out",
            hint="commit it, or take all along with `--include-unclean`",
        )
    app.out.note(f"{amount(len(report.problems), 'problem')}; an agent is made to repair them")
    asked = {"test_command": command, "own": bool(own), "before": len(report.problems)}
    run = _begin(args, app, place, SYNC, prompt, own, **asked)
    return _sync(app, run, tutorial_run.request_of(run))


def _sync(app: App, run: Run, request: TutorialRequest) -> int:
    with _working(app, run, sync.SyncRecipe(run, request, app.fleet)) as found:
        problems, flags = found.found.get("problems", []), found.found.get("flags", [])
        rounds = amount(len(found.turns), "round")
        human = f"`{found.agent}` made the tests match the tutorial, in {rounds}"
        if not found.ok:
            human = f"{amount(len(problems), 'problem')} left after {rounds} ({found.end}: {found.because})"
            human += "".join(f"\n  {problem['message']}" for problem in problems[:10])
        value = {"script": request.sources.script, "before": request.asked["before"], **_told(run, found)}
        human = "\n".join([human, *map(visible, sync.shown(flags))])
        app.out.emit_object({**value, "ok": found.ok, "problems": problems, "flags": flags}, human=human)
    name = found.agent
    if found.ok:
        app.out.note(f"what was checked is on branch {found.branch}")
        look, take = f"git diff HEAD...{found.branch}", f"git merge {found.branch}"
    else:
        look, take = f"mngr diff {name}", f"mngr merge {name}"
    app.out.note(f"look: `{look}`; take it: `{take}`; then: `mngr destroy {name}`")
    return found.code


def run_fill(args: Args, app: App, place: Sources) -> int:
    blocks = place.blocks()
    headings = proposals.empty_headings(blocks)
    name = (
        args.program
        or app.settings.text("tutorial.program")
        or program.guess([command for block in blocks for command in block.commands])
    )
    if not name:
        raise UsageError("cannot tell which program the tutorial is about", hint="name it: `--program NAME`")
    shown, judge = program.ProgramHelp(name, app.environ, place.root), _judge_of(name)
    value: dict[str, Any] = {"script": place.script, "program": name, "validated_by": judge, "dry_run": args.dry_run}
    value |= {**_NOT_STARTED, "headings": [heading.title for heading in headings], "prompt": None}
    value |= {"kept": [], "dropped": [], "rejected": [], "unfilled": []}
    if not headings:
        app.out.emit_object(value, human=f"every heading of {place.script} has an example")
        return 0
    if name != "mngr":
        shown.help()  # what judges the proposals has to work before an agent is paid for them
    reference = _reference(args, app, place, shown)
    there = _from_top(args, app, place)
    prompt = fill.first_prompt(there, name, headings, args.prompt)
    if args.dry_run:
        titles = "\n".join(f"{place.script}:{heading.line}: {heading.title}" for heading in headings)
        shown_too = f"the prompt:\n\n{prompt}\nthe reference, {fill.REFERENCE}:\n\n{reference}"
        app.out.emit_object({**value, "prompt": prompt}, human=f"{titles}\n\nvalidated by {judge}\n\n{shown_too}")
        return 0
    _refuse_without_terminal(args, app)
    app.out.note(f"{amount(len(headings), 'heading')} without an example; an agent is asked for some")
    run = _begin(args, app, there, FILL, prompt, f"{name} --help", program=name)
    write_atomic(os.path.join(run.directory, fill.REFERENCE_FILE), reference.encode("utf-8", "replace"))
    return _fill(args, app, run, tutorial_run.request_of(run), place)


def _refuse_without_terminal(args: Args, app: App) -> None:
    if app.headless and not args.yes:
        raise Undecided(
            "cannot ask which examples to keep: no terminal",
            hint="run it in a terminal, or keep all valid ones: `mngr tutorial fill --yes`",
        )


def _judge_of(name: str) -> str:
    return "the parser of mngr" if name == "mngr" else f"the help of `{name}`"


def _fill(args: Args, app: App, run: Run, request: TutorialRequest, place: Sources) -> int:
    _refuse_without_terminal(args, app)
    name = str(request.asked["program"])
    shown, judge = program.ProgramHelp(name, app.environ, place.root), _judge_of(name)
    problem_of = parse_problem if name == "mngr" else lambda command: program.problem(shown, shlex.split(command))
    recipe = fill.FillRecipe(run, request, problem_of)
    titles = [heading.title for heading in proposals.empty_headings(place.blocks())]
    with _working(app, run, recipe) as found:
        good = [json_values.typed(Proposal, one) for one in found.found.get("good", ())]
        bad = (json_values.typed(Proposal, one) for each in found.rounds for one in each["rejected"])
        rejected = list({(one.heading, one.text): one for one in bad}.values())
        kept, dropped = _choose(args, app, good)
        if kept:
            fill.write(place, kept)
        filled = {one.heading for one in kept}
        unfilled = [title for title in titles if title not in filled]
        value = {"script": place.script, "program": name, "validated_by": judge, "headings": titles}
        value |= json_values.plain({"kept": kept, "dropped": dropped, "rejected": rejected, "unfilled": unfilled})
        human = "\n".join(_said(place, judge, kept, dropped, rejected, unfilled))
        app.out.emit_object({**value, **_told(run, found)}, human=human)
    app.out.note(f"`mngr destroy {found.agent}` removes the agent")
    return 1 if unfilled else 0


def _said(
    place: Sources,
    judge: str,
    kept: Sequence[Proposal],
    dropped: Sequence[Proposal],
    rejected: Sequence[Proposal],
    unfilled: Sequence[str],
) -> list[str]:
    lines = [f"kept {amount(len(kept), 'example')} in {place.script}, dropped {len(dropped)}; validated by {judge}"]
    interface = [one for one in rejected if one.kind == proposals.INTERFACE]
    if interface:
        lines.append("interface problems: an agent that read the reference expected these to work")
    for one in interface:
        lines += [f"  {one.heading}: {one.problem}", *(f"      {line}" for line in one.text.split("\n"))]
    lines += [f"rejected: {one.heading}: {one.problem}" for one in rejected if one.kind != proposals.INTERFACE]
    return lines + [f"still without an example: {title}" for title in unfilled]


def _choose(args: Args, app: App, good: Sequence[Proposal]) -> tuple[list[Proposal], list[Proposal]]:
    """Show the proposals one by one. With `--yes` all are kept."""
    if args.yes:
        return list(good), []
    kept: list[Proposal] = []
    for number, one in enumerate(good, 1):
        shown = "\n".join(f"    {line}" for line in one.text.split("\n"))
        if app.confirm(f"\n{number} of {len(good)}, under `{one.heading}`:\n\n{shown}\n\nKeep it?"):
            kept.append(one)
    return kept, [one for one in good if one not in kept]


def parse_problem(command: str) -> str:
    """What our own parser says to a command line of mngr, without running it."""
    from mngr.cli import plugin_verbs
    from mngr.cli.main import split

    try:
        before, verb, after = split(shlex.split(command)[1:])
        if verb is None:
            return ""
        entry = catalog.find(verb)
        if entry is None:
            verbs = plugin_verbs.known_verbs(os.environ, [])
            return "" if verbs is None or verb in verbs else f"`mngr` has no verb `{verb}`"
        found = scan.scan(command_parser(entry), [*before, *after])
        if not found.asked:
            scan.bind(found)
    except MngrError as error:
        return error.message
    return ""


def _reference(args: Args, app: App, place: Sources, shown: program.ProgramHelp) -> str:
    if args.reference is None:
        return shown.reference()
    if os.path.exists(args.reference):
        return read_text(args.reference, app)
    done = process.run(["sh", "-c", args.reference], timeout=300, cwd=place.root)
    if not done.ok:
        raise MngrError(
            f"`--reference {args.reference}` is not a file, and failed as a command (exit code {done.exit_code})",
            details=done.error_text,
        )
    return done.stdout.decode(errors="replace")


def run_install(args: Args, app: App, place: Sources) -> int:
    home = app.environ.get("HOME") or os.path.expanduser("~")
    directory = home if args.scope == "user" else project_root(place.root, app.host_dir) or place.root
    found = skill.install(args.agent or list(skill.PLACES), directory, force=args.force)
    lines = []
    for one in found:
        written = f"wrote {one.path}: type {skill.HOW[one.agent]} in {one.agent}"
        lines.append(f"{one.path} is up to date" if one.found == "same" else written)
        if one.kept:
            lines.append(f"what was there is now {one.kept}")
    app.out.emit_object({"skills": [one._asdict() for one in found]}, human="\n".join(lines))
    return 0
