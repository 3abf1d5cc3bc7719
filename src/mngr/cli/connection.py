"""Get a person to an agent's terminal: attach, or run the command that is set to do so."""

import os

from mngr.actions import screen
from mngr.actions.agent import Agent
from mngr.cli.app import App
from mngr.cli.terminal import is_terminal
from mngr.errors import MngrError
from mngr.process import join, replace_self, run_attached
from mngr.tools.tmux import SOCKET


def after_start(app: App, agent: Agent, command: str | None) -> int:
    """What `create` and `start` do last. Without a terminal and a command there is nobody to connect."""
    if command:
        return run_command(app, agent, command)
    if not is_terminal(app.stdin) or not is_terminal(app.stdout) or app.headless:
        app.out.note(
            f"not connected, since this is not a terminal: `mngr connect {agent.name}` attaches, "
            f"`mngr capture {agent.name}` shows its screen"
        )
        return 0
    return attach(app, agent)


def connect(app: App, agent: Agent, command: str | None, *, start: bool) -> int:
    """Attach, starting a stopped agent first unless told not to."""
    if not agent.status.alive and agent.pane is None:
        if not start:
            raise MngrError(
                f"`{agent.name}` is {agent.state}", hint=f"`mngr start {agent.name}`, or connect without `--no-start`"
            )
        agent = agent.start()
    command = command or app.settings.text("commands.create.connect_command", "")
    if command:
        return run_command(app, agent, command)
    if not is_terminal(app.stdin) or not is_terminal(app.stdout):
        raise MngrError(
            "this is not a terminal, so there is nothing to attach",
            hint=f"`mngr capture {agent.name}` shows its screen",
        )
    return attach(app, agent)


def run_command(app: App, agent: Agent, command: str) -> int:
    """Run the connect command with what it needs to know in its environment. Its exit code is ours."""
    terminal = agent.site.run(screen.terminal, agent.id)
    env = {
        **app.environ,
        **terminal.identity,
        "MNGR_SESSION_NAME": agent.record.session,
        "MNGR_ATTACH_COMMAND": "env -u TMUX " + join(agent.site.terminal_argv(terminal.attach)),
    }
    app.stdout.flush()
    # Ctrl-C is for what runs in the foreground; without a trap the shell around it would end too.
    code = run_attached(["sh", "-c", f"trap : INT QUIT\n{command}"], env=env)
    if code != 0:
        raise MngrError(
            f"the connect command `{command}` failed (exit code {code}); `{agent.name}` keeps running",
            hint="`connect_command` comes from the settings or `--connect-command`",
        )
    return 0


def attach(app: App, agent: Agent) -> int:
    """Become the tmux client. Inside our own server switch to the session; inside another one leave it for the time
    and come back to it, since a terminal inside a terminal serves nobody."""
    site, outer = agent.site, app.environ.get("TMUX", "")
    argv = site.terminal_argv(site.run(screen.terminal, agent.id).attach)
    app.stdout.flush()
    if not outer:
        replace_self(argv)
    socket = outer.split(",")[0]
    if os.path.basename(socket) == SOCKET and site.is_near:
        replace_self(site.tmux.argv("switch-client", "-t", f"={agent.record.session}"))
    back = join(["tmux", "-S", socket, "attach-session"])
    replace_self(["tmux", "detach-client", "-E", f"env -u TMUX {join(argv)}; exec {back}"])
