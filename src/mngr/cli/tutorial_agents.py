"""The parts of `mngr tutorial` that talk: with an agent, and with a person about what the agent proposes."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from typing import Any

from mngr import json_values
from mngr.actions.create import extra_paths
from mngr.cli import catalog, permissions, sync_flags
from mngr.cli.app import App
from mngr.cli.dispatch import command_parser
from mngr.cli.output.amounts import amount
from mngr.cli.output.terminal import visible
from mngr.cli.parser import scan
from mngr.cli.parser.option_values import read_text
from mngr.cli.parser.parser import Args
from mngr.errors import TIMED_OUT, MngrError, Undecided, UsageError
from mngr.programs import kind
from mngr.settings.layers import project_root
from mngr.system import process
from mngr.system.git import Git
from mngr.system.process import join
from mngr.tmr.measure.measurement import default_command
from mngr.tutorial import fill, program, proposals, skill, sync, talk
from mngr.tutorial.check import STALE, Report
from mngr.tutorial.proposals import Proposal
from mngr.tutorial.sources import Sources


def _work(
    args: Args,
    app: App,
    job: sync.SyncJob | fill.FillJob,
    name: str,
    allowed: Sequence[str],
    uploads: Sequence[tuple[str, str]] = (),
) -> talk.Talked:
    """Create an agent and talk with it until the job is done. `allowed` are commands that the agent needs, for the
    permissions `tests`."""
    chosen = args.type or kind.default_name(app.settings)
    permissions.check(app, chosen, args.permissions)
    taken = {agent.name for agent in app.fleet.list().agents}
    names = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
    agent = app.fleet.create(
        args.name or next(free for free in names if free not in taken),
        type=chosen,
        args=args.rest,
        source=job.sources.root,
        transfer=args.transfer,
        unclean=None if args.include_unclean is None else "include" if args.include_unclean else "exclude",
        labels={"tutorial": name},
        uploads=uploads,
        permissions=args.permissions or "",
        allowed_commands=tuple(filter(None, allowed)),
        extra_paths=extra_paths(app.settings),
    )
    limits = {"rounds": args.rounds, "timeout": args.timeout}
    return talk.hold(app.fleet, agent, job.first_prompt(), job.look, tell=app.out.note, **limits)


def _talked(found: talk.Talked) -> dict[str, Any]:
    """The agent, its branch, how the talk ended, and what was missing after each turn."""
    return {
        "agent": found.agent.name,
        "branch": found.agent.record.workspace.branch,
        "work_dir": found.agent.record.workspace.work_dir,
        "end": found.end,
        "rounds": json_values.plain(found.turns),
    }


_NOT_STARTED: dict[str, Any] = {"agent": None, "branch": None, "work_dir": None, "end": None, "rounds": []}


def run_sync(args: Args, app: App, place: Sources) -> int:
    top = Git.of_user(place.root, cautious=True).run("rev-parse", "--show-toplevel")
    place = place.seen_from(top.text) if top.ok else place
    report = place.report()
    stale = [problem for problem in report.problems if problem.kind == STALE]
    report = report._replace(problems=tuple(problem for problem in report.problems if problem.kind != STALE))
    if stale and report.ok:
        raise MngrError(f"the citations are complete, but {stale[0].message}", hint="run the tests again")
    job = sync.SyncJob(
        app.fleet,
        place,
        place.text(),
        report.problems,
        test_command=_test_command(args, app, place, measured=report.ran is not None or bool(stale)),
        prepare=app.settings.text("tmr.prepare"),
        prompt=args.prompt,
        extra_paths=extra_paths(app.settings),
    )
    before = {"script": place.script, "before": len(report.problems)}
    if report.ok or args.dry_run:
        return _sync_not_started(args, app, job, report, {**before, **_NOT_STARTED})
    if (
        args.include_unclean is False
        and Git.of_user(place.root, cautious=True).run("status", "--porcelain", "--", place.script).text
    ):
        raise UsageError(
            f"`{place.script}` has uncommitted changes, which `--exclude-unclean` would leave out",
            hint="commit it, or take all along with `--include-unclean`",
        )
    app.out.note(f"{amount(len(report.problems), 'problem')}; an agent is made to repair them")
    talked = _work(args, app, job, "sync-tutorial", (job.test_command, sync.check_command(place)))
    missing, name = job.problems, talked.agent.name
    rounds = amount(len(talked.turns), "round")
    human = f"`{name}` made the tests match the tutorial, in {rounds}"
    if not talked.ok:
        why = f": {talked.agent.status.reason}" if talked.end == talk.AGENT_BLOCKED else ""
        human = f"{amount(len(missing), 'problem')} left after {rounds} ({talked.end}{why})"
        human += "".join(f"\n  {problem.message}" for problem in missing[:10])
    found = sync_flags.find(app, talked.agent, place.tests, (job.prepare, job.test_command))
    human = "\n".join([human, *map(visible, sync_flags.shown(found))])
    value = {
        **before,
        **_talked(talked),
        "ok": talked.ok,
        **json_values.plain({"problems": missing, "flags": found}),
        "prompt": None,
        "dry_run": False,
    }
    app.out.emit_object(value, human=human)
    if talked.agent.record.workspace.branch:
        app.out.note(f"its work is on branch {talked.agent.record.workspace.branch}")
    app.out.note(f"look: `mngr diff {name}`; take it: `mngr merge {name}`; then: `mngr destroy {name}`")
    return 0 if talked.ok else TIMED_OUT if talked.end == talk.OUT_OF_TIME else 1


def _test_command(args: Args, app: App, place: Sources, *, measured: bool) -> str:
    """What was run can be checked only if the tests are run in the clean checkout, so there is a default for that."""
    given: str = args.test_command or app.settings.text("tutorial.test_command")
    if given or not measured:
        return given
    return f"{app.settings.text('tmr.test_command') or default_command()} {join(place.tests)}"


def _sync_not_started(args: Args, app: App, job: sync.SyncJob, report: Report, value: dict[str, Any]) -> int:
    prompt = job.first_prompt() if args.dry_run else None
    human = "nothing is missing" if report.ok else "\n".join(problem.message for problem in report.problems)
    if prompt and not report.ok:
        human += f"\n\nthe prompt:\n\n{prompt}"
    app.out.emit_object(
        {**value, "ok": report.ok, "problems": [], "flags": [], "prompt": prompt, "dry_run": args.dry_run}, human=human
    )
    return 0


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
    shown = program.ProgramHelp(name, app.environ, place.root)
    judge = "the parser of mngr" if name == "mngr" else f"the help of `{name}`"
    value: dict[str, Any] = {"script": place.script, "program": name, "validated_by": judge, "dry_run": args.dry_run}
    value |= {**_NOT_STARTED, "headings": [heading.title for heading in headings], "prompt": None}
    value |= {"kept": [], "dropped": [], "rejected": [], "unfilled": []}
    if not headings:
        app.out.emit_object(value, human=f"every heading of {place.script} has an example")
        return 0
    if name != "mngr":
        shown.help()  # what judges the proposals has to work before an agent is paid for them
    reference = _reference(args, app, place, shown)
    problem_of = parse_problem if name == "mngr" else lambda command: program.problem(shown, shlex.split(command))
    job = fill.FillJob(app.fleet, place, name, headings, blocks, problem_of, args.prompt)
    if args.dry_run:
        prompt = job.first_prompt()
        titles = "\n".join(f"{place.script}:{heading.line}: {heading.title}" for heading in headings)
        shown_too = f"the prompt:\n\n{prompt}\nthe reference, {fill.REFERENCE}:\n\n{reference}"
        app.out.emit_object({**value, "prompt": prompt}, human=f"{titles}\n\nvalidated by {judge}\n\n{shown_too}")
        return 0
    if app.headless and not args.yes:
        raise Undecided(
            "cannot ask which examples to keep: no terminal",
            hint="run it in a terminal, or keep all valid ones: `mngr tutorial fill --yes`",
        )
    app.out.note(f"{amount(len(headings), 'heading')} without an example; an agent is asked for some")
    with tempfile.NamedTemporaryFile() as file:
        file.write(reference.encode("utf-8", "replace"))
        file.flush()
        uploads = ((file.name, fill.REFERENCE),)
        talked = _work(args, app, job, "fill-tutorial", (f"{name} --help", f"{name} help"), uploads)
    rejected = list(job.rejected.values())
    kept, dropped = _choose(args, app, job.good)
    if kept:
        fill.write(job, kept)
    filled = {one.heading for one in kept}
    unfilled = [heading.title for heading in headings if heading.title not in filled]
    value |= _talked(talked)
    value |= json_values.plain({"kept": kept, "dropped": dropped, "rejected": rejected, "unfilled": unfilled})
    app.out.emit_object(value, human="\n".join(_said(place, judge, kept, dropped, rejected, unfilled)))
    app.out.note(f"`mngr destroy {talked.agent.name}` removes the agent")
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
