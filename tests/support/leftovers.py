"""What a failed or interrupted command may have left behind, looked for everywhere it could be."""

from pathlib import Path

from tests.support.user import User


def found(user: User, *, repo: Path | None = None) -> list[str]:
    """Everything of an agent that is still there, a line each; empty when nothing is."""
    listing = user.mngr("list", "--format", "json").ok().json
    left = [f"agent {agent['name']} is {agent['state']}" for agent in listing["agents"]]
    left += [f"error {error['error']}" for error in listing["errors"]]
    for room in ("agents", "worktrees", "clones"):
        left += [f"state {path}" for path in _entries(user.host_dir / room)]
    left += [f"lock {path}" for path in _entries(user.host_dir / "locks") if path.name.startswith("agent-")]
    left += [f"draft {path}" for path in user.host_dir.glob("**/*.draft")]
    left += in_repository(user, repo or user.repo)
    sessions = user.tmux("list-sessions", "-F", "#{session_name}")
    left += [f"tmux session {name}" for name in sessions.stdout.split()]
    return left


def in_repository(user: User, repo: Path) -> list[str]:
    """Worktrees, branches, refs and locks in the source repository that were not there at first."""
    git_dir = Path(user.git("rev-parse", "--path-format=absolute", "--git-common-dir", cwd=repo))
    left = [f"worktree {path}" for path in _entries(git_dir / "worktrees")]
    left += [f"branch {name}" for name in user.git("branch", "--list", "mngr/*", cwd=repo).split("\n") if name]
    left += [f"ref {name}" for name in user.git("for-each-ref", "refs/mngr", cwd=repo).split("\n") if name]
    left += [f"lock {path}" for path in git_dir.glob("**/*.lock")]
    left += [f"index {path}" for path in git_dir.glob("**/mngr-index-*")]
    return left


def _entries(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else []
