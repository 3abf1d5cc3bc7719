"""Get a person to an agent's terminal: attach, or run the command that is set to do so."""

import os

from mngr.actions.agent import Agent
from mngr.agents import launch
from mngr.agents.record import Record
from mngr.cli.app import App
from mngr.cli.terminal import is_terminal
from mngr.errors import MngrError
from mngr.process import join, replace_self, run_attached
from mngr.tools.tmux import SOCKET


def after_start(app: App, record: Record, command: str | None) -> int:
    """What `create` and `start` do last. Without a terminal and a command there is nobody to connect."""
    if command:
        return run_command(app, record, command)
    if not is_terminal(app.stdin) or not is_terminal(app.stdout) or app.headless:
        app.out.note(
            f"not connected, since this is not a terminal: `mngr connect {record.name}` attaches, "
            f"`mngr capture {record.name}` shows its screen"
        )
        return 0
    return attach(app, record)


def connect(app: App, agent: Agent, command: str | None, *, start: bool) -> int:
    """Attach, starting a stopped agent first unless told not to."""
    record = agent.record
    if not agent.status.alive and agent.pane is None:
        if not start:
            raise MngrError(
                f"`{agent.name}` is {agent.state}", hint=f"`mngr start {agent.name}`, or connect without `--no-start`"
            )
        record = app.fleet.start(agent).record
    command = command or app.settings.text("commands.create.connect_command", "")
    if command:
        return run_command(app, record, command)
    if not is_terminal(app.stdin) or not is_terminal(app.stdout):
        raise MngrError(
            "this is not a terminal, so there is nothing to attach",
            hint=f"`mngr capture {record.name}` shows its screen",
        )
    return attach(app, record)


def run_command(app: App, record: Record, command: str) -> int:
    """Run the connect command with what it needs to know in its environment. Its exit code is ours."""
    state_dir = app.fleet.store.state_dir(record.id)
    own = launch.identity(record, state_dir, app.fleet.host.dir)
    env = {
        **app.environ,
        **{
            name: own[name]
            for name in (
                "MNGR_AGENT_ID",
                "MNGR_AGENT_NAME",
                "MNGR_AGENT_STATE_DIR",
                "MNGR_AGENT_WORK_DIR",
                "MNGR_HOST_DIR",
            )
        },
        "MNGR_SESSION_NAME": record.session,
        "MNGR_ATTACH_COMMAND": "env -u TMUX " + join(app.fleet.tmux.attach_argv(record.session)),
    }
    app.stdout.flush()
    # Ctrl-C is for what runs in the foreground; without a trap the shell around it would end too.
    code = run_attached(["sh", "-c", f"trap : INT QUIT\n{command}"], env=env)
    if code != 0:
        raise MngrError(
            f"the connect command `{command}` failed (exit code {code}); `{record.name}` runs on",
            hint="`connect_command` comes from the settings or `--connect-command`",
        )
    return 0


def attach(app: App, record: Record) -> int:
    """Become the tmux client. Inside our own server switch to the session; inside another one leave it for the time
    and come back to it, since a terminal inside a terminal serves nobody."""
    outer = app.environ.get("TMUX", "")
    argv = app.fleet.tmux.attach_argv(record.session)
    app.stdout.flush()
    if not outer:
        replace_self(argv)
    socket = outer.split(",")[0]
    if os.path.basename(socket) == SOCKET:
        replace_self(app.fleet.tmux.argv("switch-client", "-t", f"={record.session}"))
    back = join(["tmux", "-S", socket, "attach-session"])
    replace_self(["tmux", "detach-client", "-E", f"env -u TMUX {join(argv)}; exec {back}"])
