"""`mngr destroy`: remove agents, after saving what exists only there."""

from collections.abc import Sequence

from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import MngrError
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple
from mngr.system import interrupts
from mngr.workspace.work.entry import SavedEntry
from mngr.workspace.work.tree import OmittedPath

DESCRIPTION = (
    "Remove agents: processes, tmux session and work dir. An agent with uncommitted files, or with commits that no "
    "other branch has, also inside of submodules or of a rebase that is not finished, is refused without `--force`. "
    "With `--force`, that work is saved first (`mngr saved`). Small ignored files, the conversation and the recording "
    "are always saved; ignored files above 10 MB (`saved.ignored_max_mb`) are not, and are named. A host "
    "that was created for an agent (`NAME@.PROVIDER`) is destroyed with its last agent, after saved work and snapshots "
    "have come to this machine. A file that cannot be deleted does not stop it: the work dir goes to the trash, where "
    "`mngr gc` tries again."
)
EXAMPLES = (
    ("mngr destroy fix-login", "refused if it has work that exists only there"),
    ("mngr destroy fix-login --force", "save that work, then remove the agent"),
    ("mngr list --ids --done | mngr destroy -", "all agents that are done"),
)


class DestroyResult(NamedTuple):
    """`saved`: the id of the saved work. `outlived`: ids of processes that could not be ended. `left`: what could not
    be deleted. `left_out`: ignored files that were too large to be saved."""

    saved: str | None
    kept_branch: str | None
    outlived: tuple[int, ...]
    left: str
    left_out: tuple[OmittedPath, ...]


class WouldDestroy(NamedTuple):
    """What would be saved, and what not: ignored files that are too large (`left_out`)."""

    dry_run: bool
    commits: int
    uncommitted: tuple[str, ...]
    left_out: tuple[OmittedPath, ...]


RESULTS = targets.results(DestroyResult, WouldDestroy)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.option("--force, -f", "also destroy agents with unsaved work; it is saved first")
    parser.option("--remove-created-branch, -b", "also delete the agent's branch, even with commits")
    parser.option("--keep-host", "keep a host that was created for an agent when its last agent goes")
    parser.option("--session NAME ...", "the agent with this tmux session")
    parser.option("--[no-]gc", "run `mngr gc` afterwards (default: no)", default=False)
    parser.option("--yes, -y", "do not ask for confirmation when no agents are named")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    args.agents += [targets.of_session(app, name) for name in args.session]
    agents = targets.resolve(args, app)
    if args.dry_run:
        return targets.finish(app, agents, lambda agent: would_destroy(agent, args.force))
    if agents and not (args.agents or args.yes or app.headless) and not targets.confirmed(app, "destroy", agents):
        return 1
    interrupts.outlive_terminal()
    remove_branch = args.remove_created_branch
    code = targets.finish(app, agents, lambda agent: destroy(agent, args.force, remove_branch), done="destroyed")
    if not args.keep_host:
        leave(app, agents)
    if args.gc:
        from mngr.cli.verbs import gc

        gc.run_after(app)
    return code


def destroy(agent: Agent, force: bool, remove_branch: bool = False) -> tuple[DestroyResult, str]:
    """Destroy an agent. Returns the result for a script and for a person."""
    done = agent.destroy(force=force, remove_branch=remove_branch)
    text = f"destroyed {done.name}{targets.say_outlived(done.outlived)}"
    if done.entry:
        text += f"; {say_saved(done.entry)}: `mngr saved restore {done.entry.id}`"
    text += say_left_out(done.left_out)
    text += f"; branch {done.kept_branch} stays" if done.kept_branch else ""
    text += f"; could not delete {done.left}; `mngr gc` tries again" if done.left else ""
    saved = done.entry.id if done.entry else None
    return DestroyResult(saved, done.kept_branch, done.outlived, done.left, done.left_out), text


def would_destroy(agent: Agent, force: bool) -> tuple[WouldDestroy, str]:
    work = agent.check_destroy(force=force)
    text = f"would destroy {agent.name}" + (f" and save {work.describe()}" if work.any else "")
    return WouldDestroy(True, work.commits, work.changed, work.left_out), text + say_left_out(work.left_out)


def say_saved(entry: SavedEntry) -> str:
    """What was saved: work, or of an agent without any what it said, and its results if it worked in place."""
    work = entry.commits or entry.changed or entry.refs or entry.ignored or entry.left_behind
    return "its work is saved" if work else "its conversation is saved"


def say_left_out(files: Sequence[OmittedPath]) -> str:
    return "".join(f"; not saved: `{path}` ({megabytes:.0f} MB, ignored by git)" for path, megabytes in files)


def leave(app: App, agents: Sequence[Agent]) -> None:
    """Destroy the hosts that were created for these agents and have none any more."""
    sites = dict.fromkeys(agent.site for agent in agents if not agent.site.is_local)
    if not sites:
        return
    from mngr.cli.verbs.host import say_brought
    from mngr.fleet import host_verbs

    for site in sites:
        try:
            if done := host_verbs.destroy_unused(app.fleet.hosts, site):
                known, brought = done
                app.out.note(f"destroyed host {known.name}, which has no agent any more")
                say_brought(app, brought)
        except MngrError as error:
            app.out.warn(f"host {site.name} was not destroyed: {error.explained()}")
