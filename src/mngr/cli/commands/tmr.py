"""`mngr tmr`: one agent per test, and all their verified work on one branch."""

from __future__ import annotations

from importlib import import_module

from mngr.agents.kinds.kind import PERMISSIONS
from mngr.cli.app import App
from mngr.cli.parser import Args, BooleanPair, Parser

DESCRIPTION = (
    "Test map-reduce: collect the tests, run them as they are, give each to an agent that mends or improves it, "
    "measure what comes back in clean checkouts, and put what holds on one linear branch for you to review. Your work "
    "tree is not touched. A run that was ended at any point goes on with `mngr tmr resume`."
)
EXAMPLES = (
    ("mngr tmr init --dry-run", "how the tests of this project would be run"),
    ("mngr tmr --dry-run tests", "which tests, how many agents, what it may cost"),
    ("mngr tmr tests --failing --max-agents 4", "one agent for each test that fails"),
    ("mngr tmr tests/test_login.py --type claude --permissions tests --budget-usd 5", "with a limit on money"),
    ("mngr tmr status", "how far the latest run is"),
    ("mngr tmr resume", "continue it, whatever ended it"),
    ("mngr tmr review", "walk through its work: keep, drop or send back each piece"),
    ("mngr tmr report", "write its pages and say where"),
)


def add_arguments(parser: Parser) -> None:
    _add_run(parser.add_subcommand("run", "Begin a run; the word may be left out", default=True))
    init = parser.add_subcommand("init", "Find out how this project's tests are run, and write it to its settings")
    init.add_argument("--dry-run", action="store_true", help="say what would be written, and write nothing")
    status = _add_run_name(parser.add_subcommand("status", "Show how far a run is, task by task"))
    status.add_argument("--all", action="store_true", help="all runs of this repository, a line each")
    resume = _add_run_name(parser.add_subcommand("resume", "Continue a run, whatever ended it"))
    _add_changes(resume.add_argument_group("change what the run was started with"))
    _add_run_name(parser.add_subcommand("stop", "End a run cleanly; all work is saved"))
    retry = _add_run_name(parser.add_subcommand("retry", "Give tasks another attempt, then integrate again"))
    retry.add_argument("--task", action="append", metavar="TASK", help="a test or slug (can be repeated)")
    retry.add_argument("--verdict", action="append", metavar="WORD", help="all of this verdict (can be repeated)")
    retry.add_argument(
        "--message", metavar="TEXT", help="tell this to the agent, which continues, or to a new one if it is gone"
    )
    connect = parser.add_subcommand("connect", "Attach to the agent of a task")
    connect.add_argument("task", metavar="TASK", help="a test, or its slug")
    connect.add_argument("run", nargs="?", metavar="RUN", help="the run (default: the latest)")
    report = _add_run_name(parser.add_subcommand("report", "Write the pages of a run and say where they are"))
    report.add_argument("--output", "-o", metavar="DIR", help="where to (default: the directory of the run)")
    serve = _add_run_name(parser.add_subcommand("serve", "Show a run in the browser while it goes on"))
    serve.add_argument("--port", type=int, metavar="N", help="(default: a free one)")
    again = _add_run_name(parser.add_subcommand("integrate", "Integrate again, without running agents again"))
    again.add_argument(
        "--collect", action="append", metavar="TASK", help="take an agent's work anew first (repeatable)"
    )
    again.add_argument(
        "--accept", action="append", metavar="TASK", help="take work that is held, or was dropped (can be repeated)"
    )
    _add_pr(again)
    review = _add_run_name(
        parser.add_subcommand("review", "Keep, drop or send back work piece by piece, and build the branch again")
    )
    review.add_argument(
        "--drop", action="append", metavar="TASK", help="drop this work without asking (can be repeated)"
    )


def _add_run(parser: Parser) -> None:
    parser.add_argument("tests", nargs="*", metavar="TEST", help="files, directories or node ids (default: all tests)")
    parser.add_rest("ARGS", "arguments for each agent; `{task}`, `{name}`, `{slug}`, `{attempt}` stand for its own")
    which = parser.add_argument_group("which tests")
    which.add_argument("-k", dest="keyword", metavar="EXPR", help="passed to pytest")
    which.add_argument("-m", dest="mark", metavar="EXPR", help="passed to pytest")
    which.add_argument("--failing", action="store_true", help="only tests that do not pass")
    which.add_argument("--base", metavar="REV", default="HEAD", help="the commit to begin at (default: HEAD)")
    which.add_argument(
        "--exclude-unclean", action="store_true", help="leave uncommitted changes out instead of refusing to begin"
    )
    which.add_argument("--baseline", action=BooleanPair, default=True, help="run all tests before any agent")
    which.add_argument("--canary", action=BooleanPair, default=True, help="check that the tests run this very code")
    agents = parser.add_argument_group("the agents")
    agents.add_argument("--type", metavar="TYPE", help="what they are (default: an installed coding agent)")
    agents.add_argument(
        "--permissions",
        choices=PERMISSIONS,
        help="what coding agents may do: ask first, edit files, edit and run tests and commit while the rest is denied "
        "(`tests`, recommended), or everything (no default: choose)",
    )
    agents.add_argument(
        "--integrator",
        metavar="TYPE",
        help="who resolves conflicts, or `none` (default: the same type; none for `scripted`)",
    )
    agents.add_argument("--integrator-arg", action="append", metavar="ARG", help="for its program (can be repeated)")
    agents.add_argument("--prompt", metavar="FILE", help="a Jinja template in place of the packaged prompt")
    agents.add_argument("--instructions", metavar="TEXT", help="something to add at the end of the prompt")
    agents.add_argument(
        "--transfer", choices=("git-mirror", "git-worktree"), default="git-mirror", help="how they get the code"
    )
    agents.add_argument("--env", action="append", metavar="KEY=VALUE", help="a variable for each (can be repeated)")
    agents.add_argument("--env-file", action="append", metavar="FILE", help="variables from a file (can be repeated)")
    agents.add_argument("--pass-env", action="append", metavar="KEY", help="a variable of yours (can be repeated)")
    agents.add_argument("--record", action=BooleanPair, default=True, help="record their terminals")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--max-agents", type=int, metavar="N", default=10, help="so many at once (default: 10)")
    limits.add_argument(
        "--max-launching", type=int, metavar="N", default=10, help="so many started at once (default: 10)"
    )
    limits.add_argument("--max-attempts", type=int, metavar="N", default=3, help="tries of one task (default: 3)")
    limits.add_argument("--timeout", metavar="TIME", default="1h", help="for one agent (default: 1h)")
    limits.add_argument(
        "--stall", metavar="TIME", default="15m", help="an agent without any sign of life (default: 15m)"
    )
    limits.add_argument("--budget-usd", type=float, metavar="USD", help="launch no more agents after so much money")
    limits.add_argument("--budget-tokens", type=int, metavar="N", help="the same, in tokens")
    limits.add_argument("--deadline", metavar="TIME", help="launch no more agents after so long")
    limits.add_argument(
        "--when-over",
        choices=("finish", "stop"),
        default="finish",
        help="what running agents then do (default: finish)",
    )
    result = parser.add_argument_group("the result")
    result.add_argument("--name", "-n", metavar="RUN", help="the run's name (made up when left out)")
    result.add_argument("--branch", metavar="NAME", help="the branch to deliver (default: tmr/RUN)")
    result.add_argument("--output-dir", metavar="DIR", help="where the run is kept (default: .mngr/runs/RUN)")
    _add_pr(result)
    result.add_argument(
        "--dry-run", action="store_true", help="collect the tests, say what would be done, start no agent"
    )


def _add_changes(group: object) -> None:
    add = group.add_argument  # type: ignore[attr-defined]  # a group of options
    add("--budget-usd", type=float, metavar="USD", help="stop launching agents once this much is spent, in all")
    add("--budget-tokens", type=int, metavar="N", help="the same, in tokens")
    add("--deadline", metavar="TIME", help="stop launching agents after this time, from now on")
    add("--max-agents", type=int, metavar="N", help="at most N agents at once")
    add("--max-jobs", type=int, metavar="N", help="at most N test runs at once")
    add("--type", metavar="TYPE", help="type of agents started from now on")
    add("--permissions", choices=PERMISSIONS, help="what agents started from now on may do without asking")


def _add_pr(parser: object) -> None:
    parser.add_argument("--open-pr", action="store_true", help="push the branch and open a pull request with `gh`")  # type: ignore[attr-defined]  # a parser or a group of one


def _add_run_name(parser: Parser) -> Parser:
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="a run's name, its beginning, or its directory (default: the latest)"
    )
    return parser


_MODULES = {"run": "starting", "resume": "starting", "retry": "starting", "integrate": "starting"}


def run(args: Args, app: App) -> int:
    module = import_module(f"mngr.cli.tmr.{_MODULES.get(args.subcommand, args.subcommand)}")
    code: int = getattr(module, args.subcommand)(args, app)
    return code
