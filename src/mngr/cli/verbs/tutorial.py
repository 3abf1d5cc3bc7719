"""`mngr tutorial`: keep a tutorial script and the tests that cite it together."""

from __future__ import annotations

import os
from typing import Any

from mngr import json_values
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.durations import parse_duration
from mngr.cli.output.table import Column
from mngr.cli.parser.parser import Args, Parser
from mngr.e2e.artifacts import usual_place
from mngr.e2e.shell_blocks import ScriptBlock
from mngr.errors import UsageError
from mngr.programs.kind import PERMISSIONS
from mngr.settings.layers import project_root
from mngr.tutorial import check as checking
from mngr.tutorial import sources
from mngr.tutorial.check import Report, TutorialProblem
from mngr.tutorial.sources import Sources

DESCRIPTION = (
    "A tutorial is a shell script of examples: blocks with empty lines between them, in sections with headings. "
    "Every example is cited by a test, word for word, in `e2e.write_tutorial_block(...)` or below `Tutorial block:` in "
    "its docstring. This works for any command-line program. The settings `tutorial.script` and `tutorial.tests` say "
    "where they are, if not at `tutorial.sh` and `tests`."
)
EXAMPLES = (
    ("mngr tutorial check", "check that every example is cited by a test and was run"),
    ("mngr tutorial blocks --format json", "the examples, with their ids, lines, sections and commands"),
    ("mngr tutorial check --script tutorial.sh --tests tests --no-artifacts", "citations only"),
    ("mngr tutorial sync --dry-run", "show what an agent would be asked to fix"),
    ("mngr tutorial fill --dry-run", "show the headings that an agent would be asked to fill"),
    ("mngr tutorial install-skill --for claude", "`sync` as a slash command of a coding agent"),
)
_MOST_PROBLEMS = 40
_MOST_LINES = 12
_MOST_FILES = 5


def results() -> list[Any]:
    from mngr.tmr.judge.changed_file import Flag
    from mngr.tutorial.proposals import Proposal
    from mngr.tutorial.skill import Skill
    from mngr.tutorial_runs.run import Turn

    texts = ("run", "directory", "agent", "branch", "work_dir", "end", "prompt")
    asked = {"script": str, **dict.fromkeys(texts, str | None), "rounds": [Turn], "dry_run": bool}
    counts = dict.fromkeys(("blocks", "cited", "commands"), int)
    found = {"ok": bool, "problems": [TutorialProblem]}
    checked = {"commands_run": int | None, "runs": Any, "uncommitted": [str], "sections": [checking.Coverage]}
    proposed = {"kept": [Proposal], "dropped": [Proposal], "rejected": [Proposal]}
    return [
        {"script": str, "blocks": [ScriptBlock]},
        {"script": str, **counts, **checked, **found},
        {**asked, **found, "before": int, "flags": [Flag]},
        {**asked, "program": str, "validated_by": str, **proposed, "headings": [str], "unfilled": [str]},
        {"skills": [Skill]},
    ]


def add_arguments(parser: Parser) -> None:
    parser.option("--script FILE", "the tutorial (default: `tutorial.sh`)")
    parser.add_subcommand("blocks", "List the blocks of the tutorial")
    _add_places(
        parser.add_subcommand("check", "Check that every example is cited by a test, and was run", default=True)
    )
    sync = parser.add_subcommand(
        "sync",
        "Let an agent make the tests match the tutorial",
        description="An agent is told what the check finds missing, and told again, until the check passes at its last "
        "commit, with the tutorial unchanged. The tests run as in `mngr tmr`: in a copy of their own, with an empty "
        "home and none of your variables. What passed is put on a branch. Removed tests, weaker tests and changes of "
        "conftest files or of the product are listed, for you to look at before you merge it.",
    )
    _add_places(sync)
    sync.option(
        "--test-command CMD",
        "run this before each check; it must pass too (setting `tutorial.test_command`; default, if there is a "
        "recorded run: pytest)",
    )
    _add_agent_options(sync, "sync-tutorial")
    fill = parser.add_subcommand(
        "fill",
        "Let an agent propose examples for headings that have none",
        description="Every proposal is checked against the real program. Proposals with an unknown verb or option are "
        "rejected and listed: they show where the interface is not what users expect. The others are shown one by one, "
        "to keep or drop.",
    )
    fill.option("--program NAME", "program that the tutorial is about (default: the one it runs most)")
    fill.option("--reference FILE|CMD", "reference of the program, or a command that prints it (default: its `--help`)")
    fill.option("--yes, -y", "keep all valid proposals, without asking")
    _add_agent_options(fill, "fill-tutorial")
    again = parser.add_subcommand("resume", "Continue a run of `sync` or `fill`, however it ended")
    again.add_argument("run", nargs="?", metavar="RUN", help="its name, or how that begins (default: the latest)")
    again.option("--yes, -y", "keep all valid proposals, without asking")
    skill = parser.add_subcommand("install-skill", "Install `sync-tutorial-to-e2e-tests` for coding agents")
    skill.option(
        "--for ...", "only for this one (default: both; can be repeated)", dest="agent", choices=("claude", "codex")
    )
    skill.option(
        "--scope", "in this project (the default) or in your home", choices=("project", "user"), default="project"
    )
    skill.option("--force, -f", "replace one that was changed, and keep it beside")


def _add_agent_options(parser: Parser, name: str) -> None:
    """What `sync` and `fill` have in common."""
    parser.add_rest("ARGS", "arguments for the agent's program")
    parser.option("--type TYPE", "an agent type (default: an installed coding agent)")
    parser.option(
        "--permissions",
        "what a coding agent may do, as in `mngr create`: `tests` is recommended (no default: choose)",
        choices=PERMISSIONS,
    )
    parser.option(
        "--[no-]sandbox",
        "run the agent and all tests with bubblewrap; see `mngr help sandbox`",
        default=False,
    )
    parser.option(
        "--network", "with `--sandbox`: whether the tests have a network (default: on)", choices=("on", "off")
    )
    parser.option("--name, -n RUN", f"name of the run (default: `{name}`, or one like it)")
    parser.option("--rounds N", "send the agent at most this many prompts (default: 5)", type=int, default=5)
    parser.option("--timeout TIME", "maximum time of the agent (default: 1h)", type=parse_duration, default=3600.0)
    parser.option("--budget-usd USD", "send no more prompts once this much is spent", type=float)
    parser.option("--budget-tokens N", "the same, in tokens", type=int)
    parser.option("--prompt FILE", "your own prompt, a Jinja template, instead of the packaged one")
    parser.option(
        "--transfer", "how the agent gets the code", choices=("git-mirror", "git-worktree"), default="git-mirror"
    )
    parser.option(
        "--include-unclean / --exclude-unclean",
        "carry uncommitted changes along as a commit, or leave them out",
        default=None,
    )
    parser.option("--dry-run", "print the prompt and what is missing, and do nothing")


def _add_places(parser: Parser) -> None:
    parser.option("--tests DIR|FILE ...", "where the tests are (default: `tests`; can be repeated)")
    parser.option(
        "--artifacts DIR ...",
        "a recorded run of the tests, or a directory of runs: the newest counts (default: `.mngr/e2e`; can be "
        "repeated)",
    )
    parser.option("--no-artifacts", "do not look at what was run")


def run(args: Args, app: App) -> int:
    if args.subcommand == "resume":
        from mngr.cli import tutorial_agents

        return tutorial_agents.resume(args, app)
    place = places(args, app)
    if args.subcommand in ("blocks", "check"):
        return _blocks(app, place) if args.subcommand == "blocks" else _check(app, place)
    from mngr.cli import tutorial_agents

    runs = {"sync": tutorial_agents.run_sync, "fill": tutorial_agents.run_fill}
    return runs.get(args.subcommand, tutorial_agents.run_install)(args, app, place)


def places(args: Args, app: App) -> Sources:
    """Options count from here; settings and defaults from the project's directory. All are named from here."""
    here = os.getcwd()
    root = project_root(here, app.host_dir) or here

    def from_root(path: str) -> str:
        return os.path.relpath(os.path.join(root, path), here)

    script = args.script or from_root(app.settings.text("tutorial.script", sources.SCRIPT))
    tests = tuple(getattr(args, "tests", None) or map(from_root, app.settings.strings("tutorial.tests", sources.TESTS)))
    artifacts = tuple(getattr(args, "artifacts", None) or ()) or None
    if getattr(args, "no_artifacts", False):
        if artifacts:
            raise UsageError("`--artifacts` and `--no-artifacts` cannot be used together")
        artifacts = ()
    usual = os.path.relpath(usual_place(here, root), here)
    return Sources(here, script, tests, artifacts, usual, tests_needed=bool(getattr(args, "tests", None)))


def _blocks(app: App, place: Sources) -> int:
    """Each with the lines it has in the script, the `section` it stands in and its `commands`. Only those of the `kind`
    "example" need a test."""
    rows = [block._asdict() for block in place.blocks()]
    columns = [
        Column("ID", "id"),
        Column("LINES", "first_line", show=lambda row: f"{row['first_line']}-{row['last_line']}", right=True),
        Column("KIND", "kind"),
        Column("SECTION", "section", flexible=True),
        Column("TEXT", "text", show=_first_words, flexible=True),
    ]
    envelope = {"script": place.script, "blocks": rows}
    app.out.emit_rows(rows, columns, envelope=envelope, known=ScriptBlock._fields, empty="No blocks")
    return 0


def _first_words(row: Any) -> str:
    """The first command, the heading, or what a comment begins with."""
    text: str = row["commands"][0] if row["commands"] else row["text"]
    return row["section"] if row["kind"] == "heading" else text.partition("\n")[0]


def _check(app: App, place: Sources) -> int:
    report = place.report()
    app.out.emit_object(as_json(report), human="")
    if app.out.human:
        _tell(app, report)
        if names := report.uncommitted:
            more = f" and {len(names) - _MOST_FILES} more" if names[_MOST_FILES:] else ""
            app.out.note(f"edited since the tests were run, and not committed: {', '.join(names[:_MOST_FILES])}{more}")
        stale = any(one.kind == checking.STALE for one in report.problems)
        if report.ran is None and place.artifacts is None and not stale:
            why = "there is no recorded run (`pytest` with mngr's plugin makes one)"
            app.out.note(f"what was run is not checked: {why}")
    return 0 if report.ok else 1


def as_json(report: Report) -> dict[str, Any]:
    """`commands_run` is null if there is no recorded run that counts. `uncommitted` are files edited since the run."""
    return {
        "script": report.script,
        "ok": report.ok,
        "blocks": report.total("blocks"),
        "cited": report.total("cited"),
        "commands": report.total("commands"),
        "commands_run": report.total("run") if report.ran is not None else None,
        "runs": report.ran,
        **json_values.plain({name: getattr(report, name) for name in ("uncommitted", "sections", "problems")}),
    }


def _shown(count: int | None) -> str:
    return "-" if count is None else str(count)


def _run_style(row: Any) -> str:
    return "" if row["run"] in (None, row["commands"]) else "red"


def _tell(app: App, report: Report) -> None:
    """What is missing, then how much of each section is covered, then one line."""
    for problem in report.problems[:_MOST_PROBLEMS]:
        app.out.line(problem.message, style="bold")
        shown = problem.diff or (problem.text if problem.kind != checking.NOT_RUN else "")
        lines = shown.split("\n") if shown else []
        for line in lines[:_MOST_LINES]:
            app.out.line(f"    {line}")
        if len(lines) > _MOST_LINES:
            app.out.line(f"    ... {len(lines) - _MOST_LINES} more lines")
        if problem.hint:
            app.out.line(f"    hint: {problem.hint}")
    if len(report.problems) > _MOST_PROBLEMS:
        app.out.line(f"... and {len(report.problems) - _MOST_PROBLEMS} more; `--format json` has all")
    if report.problems:
        app.out.line("")
    columns = [
        Column("SECTION", "section", show=lambda row: row["section"] or "(before any heading)", flexible=True),
        Column("BLOCKS", "blocks", right=True),
        Column("CITED", "cited", right=True, style=lambda row: "" if row["cited"] == row["blocks"] else "red"),
        Column("COMMANDS", "commands", right=True),
        Column("RUN", "run", show=lambda row: _shown(row["run"]), right=True, style=_run_style),
    ]
    app.out.emit_rows([section._asdict() for section in report.sections], columns)
    app.out.line("")
    said = f"{report.total('cited')} of {amount(report.total('blocks'), 'example')} cited"
    ran = "not checked what was run"
    if report.ran is not None:
        commands = amount(report.total("commands"), "command")
        ran = f"{report.total('run')} of {commands} run in {', '.join(report.ran)}"
    missing = amount(len(report.problems), "problem") if report.problems else "ok"
    app.out.line(f"{missing}: {said}, {ran}", style="green" if report.ok else "red")
