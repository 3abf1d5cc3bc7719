"""`mngr tmr`: one agent per test, and all their verified work on one branch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Group, Parser
from mngr.programs.kind import ASK, KNOWN_AGENTS, PERMISSIONS

DESCRIPTION = (
    "Test map-reduce: collect the tests, run them as they are, give each to an agent that fixes or improves it, "
    "measure what comes back in clean checkouts, and put verified work on one linear branch for you to review. Your "
    "work tree is not changed. `mngr tmr resume` continues a run, however it ended."
)
EXAMPLES = (
    ("mngr tmr init --dry-run", "show how the tests of this project would be run"),
    ("mngr tmr --dry-run tests", "list the tests, the number of agents and the expected cost"),
    ("mngr tmr tests --failing --max-agents 4", "one agent for each test that fails"),
    (
        "mngr tmr tests/test_login.py --type claude --permissions tests --budget-usd 5",
        "stop launching agents once $5 is spent",
    ),
    ("mngr tmr tests --failing --provider docker --agents-per-host 4", "agents and test runs in containers"),
    ("mngr tmr status", "progress of the latest run"),
    ("mngr tmr resume", "continue it, however it ended"),
    ("mngr tmr review", "keep, drop or send back each piece of work"),
    ("mngr tmr report", "write its report and print the path"),
)


def results() -> list[Any]:
    from mngr.cli.tmr import result_forms

    return result_forms.ALL


def add_arguments(parser: Parser) -> None:
    _add_run(parser.add_subcommand("run", "Start a run; the word `run` may be left out", default=True))
    init = parser.add_subcommand("init", "Detect how this project's tests are run, and write that to its settings")
    init.option("--dry-run", "show what would be written, without writing it")
    _add_run_name(parser.add_subcommand("status", "Show the progress of a run, task by task"))
    resume = _add_run_name(parser.add_subcommand("resume", "Continue a run, however it ended"))
    _add_changes(resume.add_argument_group("change what the run was started with"))
    _add_run_name(parser.add_subcommand("stop", "Stop a run and save all work"))
    retry = _add_run_name(parser.add_subcommand("retry", "Give tasks another attempt, then integrate again"))
    retry.option("--task TASK ...", "this task, by test or slug")
    retry.option("--verdict WORD ...", "all tasks with this verdict")
    retry.option("--message TEXT", "message for the agent, which continues, or for a new agent if it is gone")
    connect = parser.add_subcommand("connect", "Attach to the agent of a task")
    connect.add_argument("task", metavar="TASK", help="a test, or its slug")
    connect.add_argument("run", nargs="?", metavar="RUN", help="the run (default: the latest)")
    report = _add_run_name(parser.add_subcommand("report", "Write the report of a run and print its path"))
    report.option("--output, -o DIR", "output directory (default: the directory of the run)")
    serve = _add_run_name(parser.add_subcommand("serve", "Show a run live in the browser"))
    serve.option("--port N", "port to listen on (default: a free one)")
    again = _add_run_name(parser.add_subcommand("integrate", "Integrate again, without running agents again"))
    again.option("--collect TASK ...", "first collect the work of this task's agent again")
    again.option("--accept TASK ...", "accept work that is held, or was dropped")
    _add_pr(again)
    review = _add_run_name(
        parser.add_subcommand("review", "Keep, drop or send back work piece by piece, and build the branch again")
    )
    review.option("--drop TASK ...", "drop this work without asking")
    review.option("--refuted", "also walk through refuted work, which you can accept for a reason")
    review.option("--accept-refuted TASK ...", "put this refuted work on the branch, marked as such; needs `--reason`")
    review.option("--reason TEXT", "why refuted work is right; goes into its commit and the report")
    review.option("--second-opinion TASK ...", "let another agent test this fix with a variant of its test")


def _add_run(parser: Parser) -> None:
    parser.words("tests", "TEST", "files, directories or node ids (default: all tests)")
    parser.add_rest("ARGS", "arguments for each agent; `{task}`, `{name}`, `{slug}`, `{attempt}` stand for its own")
    which = parser.add_argument_group("which tests")
    which.option("-k EXPR", "passed to pytest", dest="keyword")
    which.option("-m EXPR", "passed to pytest", dest="mark")
    which.option("--failing", "only tests that do not pass")
    which.option("--base REV", "commit to start from (default: HEAD)", default="HEAD")
    which.option("--exclude-unclean", "leave out uncommitted changes instead of refusing to start")
    which.option("--[no-]baseline", "run all tests before any agent starts", default=True)
    which.option("--[no-]canary", "check that the tests really run this code", default=True)
    agents = parser.add_argument_group("the agents")
    agents.option("--type TYPE", "type of the agents (default: an installed coding agent)", safe=KNOWN_AGENTS)
    agents.option(
        "--permissions",
        "what coding agents may do: ask first, edit files, edit and run tests and commit while the rest is denied "
        "(`tests`, recommended), or everything (no default: choose)",
        choices=PERMISSIONS,
        safe=(ASK,),
    )
    agents.option(
        "--[no-]sandbox",
        "run agents and all test runs with bubblewrap; see `mngr help sandbox`",
        default=False,
        safe=(True,),
    )
    agents.option(
        "--network", "with `--sandbox`: whether test runs have a network (default: on)", choices=("on", "off")
    )
    agents.option(
        "--integrator TYPE",
        "type of the agent that resolves conflicts, or `none` (default: the same type; none for `scripted`)",
    )
    agents.option("--integrator-arg ARG ...", "argument for the program of the integrator")
    agents.option("--prompt FILE", "Jinja template to use instead of the packaged prompt")
    agents.option("--instructions TEXT", "text to add at the end of the prompt")
    agents.option(
        "--transfer", "how the agents get the code", choices=("git-mirror", "git-worktree"), default="git-mirror"
    )
    agents.option("--env KEY=VALUE ...", "variable for each agent")
    agents.option("--env-file FILE ...", "file with KEY=VALUE lines")
    agents.option("--pass-env KEY ...", "pass this variable of your environment")
    agents.option("--[no-]record", "record the agents' terminals", default=True, safe=(True,))
    other = parser.add_argument_group("other machines")
    other.option("--provider NAME", "run agents and all test runs on hosts of this provider (default: on this machine)")
    other.option("--agents-per-host N", "at most N agents on each host (default: 4)", type=int, default=4)
    other.option("--snapshot ID", "start new hosts from this snapshot: `mngr host prepare --snapshot`")
    other.option("--checkpoint TIME", "how often commits of working agents are fetched (default: 2m)", default="2m")
    limits = parser.add_argument_group("limits")
    limits.option("--max-agents N", "at most N agents at once (default: 10)", type=int, default=10)
    limits.option("--max-launching N", "start at most N agents at the same time (default: 10)", type=int, default=10)
    limits.option("--max-attempts N", "attempts per task (default: 3)", type=int, default=3)
    limits.option("--timeout TIME", "maximum time per agent (default: 1h)", default="1h")
    limits.option("--stall TIME", "maximum time without output or events (default: 15m)", default="15m")
    limits.option("--budget-usd USD", "stop launching agents once this much is spent", type=float)
    limits.option("--budget-tokens N", "the same, in tokens", type=int)
    limits.option("--deadline TIME", "stop launching agents after this time")
    limits.option(
        "--when-over",
        "what running agents do after that (default: finish)",
        choices=("finish", "stop"),
        default="finish",
    )
    result = parser.add_argument_group("the result")
    result.option("--name, -n RUN", "name of the run (default: generated)")
    result.option("--branch NAME", "branch for the result (default: tmr/RUN)")
    result.option("--output-dir DIR", "directory of the run (default: .mngr/runs/RUN)")
    _add_pr(result)
    result.option("--dry-run", "collect the tests and show what would be done, without starting agents")


def _add_changes(group: Group) -> None:
    group.option("--budget-usd USD", "stop launching agents once this much is spent, in all", type=float)
    group.option("--budget-tokens N", "the same, in tokens", type=int)
    group.option("--deadline TIME", "stop launching agents after this time, from now on")
    group.option("--max-agents N", "at most N agents at once", type=int)
    group.option("--max-jobs N", "at most N test runs at once", type=int)
    group.option("--type TYPE", "type of agents started from now on")
    group.option("--permissions", "what agents started from now on may do without asking", choices=PERMISSIONS)


def _add_pr(group: Group) -> None:
    group.option("--open-pr", "push the branch and open a pull request with `gh`")


def _add_run_name(parser: Parser) -> Parser:
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="a run's name, its beginning, or its directory (default: the latest)"
    )
    return parser


_MODULES = {**dict.fromkeys(("run", "resume", "retry", "integrate"), "orchestrator"), "review": "review"}


def run(args: Args, app: App) -> int:
    module = import_module(f"mngr.cli.tmr.{_MODULES.get(args.subcommand, 'parts')}")
    code: int = getattr(module, args.subcommand)(args, app)
    return code
