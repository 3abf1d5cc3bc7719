"""Get a person to an agent's terminal: attach, or run the command that is set to do so."""

import os
from collections.abc import Sequence

from mngr.actions import screen
from mngr.cli.app import App
from mngr.cli.output.terminal import is_terminal
from mngr.errors import UNREACHED, MngrError
from mngr.fleet.agent import Agent
from mngr.system.process import join, replace_self, run_attached
from mngr.system.waiting import Deadline

# What ssh, and what stands for it, ends with when the host is not reached.
_NOT_REACHED = 255
_AGAIN_SECONDS = 600.0
# A tmux that was cut off did not leave the other screen, show the cursor, or stop reporting the mouse and pasted text.
_PLAIN_TERMINAL = "\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[0m\r"


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
        agent, _ = agent.start()
    command = command or app.settings.text("commands.create.connect_command", "")
    if not command and not (is_terminal(app.stdin) and is_terminal(app.stdout)):
        hint = f"`mngr capture {agent.name}` shows its screen"
        raise MngrError("this is not a terminal, so there is nothing to attach", hint=hint)
    return run_command(app, agent, command) if command else attach(app, agent)


def run_command(app: App, agent: Agent, command: str) -> int:
    """Run the connect command with what it needs to know in its environment. Its exit code is ours."""
    terminal = agent.terminal()
    env = {
        **app.environ,
        **terminal.identity,
        "MNGR_SESSION_NAME": agent.record.life.session,
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
    argv = site.terminal_argv(agent.terminal().attach)
    app.stdout.flush()
    if not outer and not site.is_local:
        return _attach_again(app, agent, argv)
    if not outer:
        replace_self(argv)
    socket = outer.split(",")[0]
    if site.is_local and os.path.realpath(socket) == os.path.realpath(site.tmux.socket):
        replace_self(site.tmux.argv("switch-client", "-t", f"={agent.record.life.session}"))
    back = join(["tmux", "-S", socket, "attach-session"])
    return replace_self(["tmux", "detach-client", "-E", f"env -u TMUX {join(argv)}; exec {back}"])


def _attach_again(app: App, agent: Agent, argv: Sequence[str]) -> int:
    """A terminal on another machine. When the connection is lost the agent goes on, and we attach again as soon as the
    host answers; Ctrl-C ends that."""
    site = agent.site
    while True:
        site.close()  # nothing is asked while somebody looks
        code = run_attached(argv)
        if code != _NOT_REACHED:
            return code
        app.stdout.write(_PLAIN_TERMINAL)
        app.stdout.flush()
        app.out.note(f"the connection to `{site.name}` was lost; `{agent.name}` keeps running")
        app.out.note("connecting again; Ctrl-C stops this")
        argv = site.terminal_argv(_found_again(agent).attach)


def _found_again(agent: Agent) -> screen.AgentTerminal:
    """How to attach, once the host answers. Raises what is wrong when it does not for a long time."""
    deadline = Deadline(_AGAIN_SECONDS)
    while True:
        try:
            return agent.terminal()
        except MngrError as error:
            if error.exit_code != UNREACHED or deadline.passed:
                raise
            deadline.pause(2.0)
