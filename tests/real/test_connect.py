"""Connect: a person reaches an agent's terminal, or the command runs that is set to do so."""

import sys

import pytest

from tests.real.test_create import write_settings
from tests.support.user import User, wait_for

SHOW = 'echo "$MNGR_AGENT_NAME|$MNGR_SESSION_NAME|$MNGR_ATTACH_COMMAND" >> "$HOME/connected"'


class Terminal:
    """A person's terminal: a pane of a tmux server of its own, which is not `mngr`'s."""

    def __init__(self, user: User, command: str) -> None:
        self.user = user
        self._tmux("-f", "/dev/null", "new-session", "-d", "-s", "person", "-x", "100", "-y", "24", "sh")
        self._tmux("send-keys", "-t", "person", "PS1='$ '; unset TMUX TMUX_PANE; clear", "Enter")
        self.type(command)

    def _tmux(self, *words: str) -> str:
        return self.user.run(["tmux", "-L", "person", *words], cwd=self.user.repo).ok().stdout

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-t", "person", "-l", text)
        self._tmux("send-keys", "-t", "person", "Enter")

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", "-t", "person", *keys)

    def resize(self, columns: int, lines: int) -> None:
        self._tmux("resize-window", "-t", "person", "-x", str(columns), "-y", str(lines))

    def shows(self, text: str) -> None:
        try:
            wait_for(lambda: text in self.screen(), text)
        except AssertionError:
            raise AssertionError(f"{text!r} is not on the screen:\n{self.screen().rstrip()}") from None

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-t", "person")

    def gone(self, text: str) -> None:
        wait_for(lambda: text not in self.screen(), f"{text!r} to go")


def clients(user: User) -> list[str]:
    """The sessions of `mngr` that somebody looks at."""
    return user.tmux("list-clients", "-F", "#{session_name}").stdout.split()


def test_connect_attaches_and_leaving_keeps_the_agent(user: User) -> None:
    user.create("foo", command="echo hello from $MNGR_AGENT_NAME; sleep 9999")
    terminal = Terminal(user, "mngr connect foo; echo left with $?")
    terminal.shows("hello from foo")
    assert user.agent("foo")["attached"] is True
    terminal.press("C-b", "d")
    terminal.shows("left with 0")
    assert user.state("foo") == "RUNNING"
    assert clients(user) == []


def test_what_is_typed_reaches_the_agent(user: User) -> None:
    user.create("foo", command="cat > typed")
    terminal = Terminal(user, "mngr connect foo")
    wait_for(lambda: clients(user) == ["mngr-foo"], "the client")
    terminal.type("typed by hand")
    path = user.work_dir("foo") / "typed"
    assert wait_for(lambda: path.exists() and path.read_text(), "the text") == "typed by hand\n"


def test_create_connects_at_once_in_a_terminal(user: User) -> None:
    terminal = Terminal(user, "mngr create foo --command 'echo ma\"\"de; sleep 9999'")
    terminal.shows("made")
    assert clients(user) == ["mngr-foo"]


def test_connect_starts_a_stopped_agent(user: User) -> None:
    user.create("foo", command="echo up again; sleep 9999")
    user.mngr("stop", "foo").ok()
    assert "`foo` is STOPPED" in user.mngr("connect", "foo", "--no-start").failed().stderr
    assert user.state("foo") == "STOPPED"
    Terminal(user, "mngr connect foo").shows("up again")
    assert user.state("foo") == "RUNNING"


def test_inside_another_tmux_it_takes_its_place_and_comes_back(user: User) -> None:
    user.create("foo", command="echo hello from foo; sleep 9999")
    terminal = Terminal(user, "tmux -L work -f /dev/null new-session -s day 'echo my day; exec sh'")
    terminal.shows("my day")
    terminal.type("mngr connect foo")
    terminal.shows("hello from foo")
    terminal.gone("my day")
    work = ("tmux", "-L", "work", "list-clients", "-F", "#{session_name}")
    assert (clients(user), user.run(work).stdout) == (["mngr-foo"], "")
    terminal.press("C-b", "d")
    terminal.shows("my day")
    wait_for(lambda: (clients(user), user.run(work).stdout) == ([], "day\n"), "the other tmux to have the terminal")


def test_inside_an_agents_own_terminal_it_switches(user: User) -> None:
    user.create("foo", command="echo this is foo; exec sh")
    user.create("bar", command="echo this is bar; sleep 9999")
    terminal = Terminal(user, "mngr connect foo")
    terminal.shows("this is foo")
    terminal.type("mngr connect bar")
    terminal.shows("this is bar")
    assert clients(user) == ["mngr-bar"]


def test_without_a_terminal_create_goes_on_and_connect_says_so(user: User) -> None:
    ran = user.mngr("create", "foo", "--command", "sleep 9999").ok()
    assert "not a terminal" in ran.stderr and "mngr connect foo" in ran.stderr
    ran = user.mngr("connect", "foo").failed()
    assert "not a terminal" in ran.stderr and "mngr capture foo" in ran.stderr


@pytest.mark.parametrize("where", ["settings", "project", "environment", "flag"])
def test_the_connect_command_runs_instead_also_without_a_terminal(user: User, where: str) -> None:
    words: tuple[str, ...] = ("create", "foo", "--command", "echo inside; sleep 9999")
    env = {}
    if where == "settings":
        write_settings(user, f"[commands.create]\nconnect_command = '''{SHOW}'''\n")
    elif where == "project":
        (user.repo / ".mngr").mkdir()
        (user.repo / ".mngr" / "settings.toml").write_text(f"[commands.create]\nconnect_command = '''{SHOW}'''\n")
        user.trust()
    elif where == "environment":
        env = {"MNGR__COMMANDS__CREATE__CONNECT_COMMAND": SHOW}
    else:
        words += ("--connect-command", SHOW)
    user.mngr(*words, env=env).ok()
    name, session, attach = (user.home / "connected").read_text().strip().split("|")
    assert (name, session) == ("foo", "mngr-foo")
    Terminal(user, attach).shows("inside")
    if where != "flag":
        user.mngr("connect", "foo", env=env).ok()
        assert (user.home / "connected").read_text().count("foo|mngr-foo|") == 2


def test_a_connect_command_is_found_on_the_path(user: User) -> None:
    (user.home / "bin").mkdir()
    program = user.home / "bin" / "mngr-e2e-connect"
    program.write_text(f"#!/bin/sh\n{SHOW}\n")
    program.chmod(0o755)
    write_settings(user, '[commands.create]\nconnect_command = "mngr-e2e-connect"\n')
    user.mngr("create", "foo", "--command", "sleep 9", env={"PATH": f"{program.parent}:{user.env['PATH']}"}).ok()
    assert (user.home / "connected").read_text().startswith("foo|mngr-foo|")
    user.mngr("create", "bar", "--no-connect", "--command", "sleep 9").ok()
    assert "bar" not in (user.home / "connected").read_text()


def test_a_connect_command_that_fails_is_told_and_the_agent_stays(user: User) -> None:
    ran = user.mngr("create", "foo", "--command", "sleep 9999", "--connect-command", "exit 9").failed()
    assert "the connect command `exit 9` failed (exit code 9); `foo` keeps running" in ran.stderr
    assert user.state("foo") == "RUNNING"


def test_a_connect_command_does_not_end_with_ctrl_c_for_it(user: User) -> None:
    script = user.root / "interactive.py"
    script.write_text(
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, lambda *a: (print('caught', flush=True), sys.exit(0)))\n"
        "print('waits', flush=True)\n"
        "signal.pause()\n"
    )
    terminal = Terminal(
        user, f"mngr create foo --command 'sleep 9999' --connect-command '{sys.executable} {script}'; echo code $?"
    )
    terminal.shows("waits")
    terminal.press("C-c")
    terminal.shows("caught")
    terminal.shows("code 0")
    assert user.state("foo") == "RUNNING"
