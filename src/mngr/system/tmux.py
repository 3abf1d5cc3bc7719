"""tmux on a server of our own: sessions, panes, pasted text. Knows nothing about agents beyond the marks it sets."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence

from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.system import files, process
from mngr.system.process import Result, checked, join
from mngr.system.state_dir import StateDir

SOCKET = "mngr"
_LONGEST_SOCKET = 100  # bytes; the kernel refuses longer ones, some systems a few bytes later
SECONDS = 20.0
_SECONDS_TO_END = 10.0
_EXITED = "server exited"  # what a client says whose server is about to end, or ended

# The server lives longer than any caller, so it gets only what it needs to run; agents get theirs with `-e`.
_SERVER_ENV = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TMUX_TMPDIR", "TMPDIR", "TERM"),
)
_PANE_FIELDS = (
    *("@mngr_agent", "session_name", "pane_id", "pane_pid", "pane_tty", "pane_dead", "pane_dead_status"),
    *("pane_dead_signal", "pane_dead_time", "window_activity", "session_attached", "pid"),
)
_REFUSED = "mngr-no-input"
_DEAD_LINE = "Pane is dead"
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")
_PANE_FORMAT = "\t".join(f"#{{{field}}}" for field in _PANE_FIELDS)


class Pane(NamedTuple):
    """One pane of an agent: the process in it, or how that process ended."""

    agent_id: str
    session: str
    pane_id: str
    pid: int
    tty: str
    dead: bool
    exit_code: int | None
    signal: int | None
    died_at: float | None
    active_at: float
    attached: bool
    server: int = 0


class Session(NamedTuple):
    """One to start. Values of `env` travel on a pipe: never in a process list, never on disk. A command is an argument
    list of at least two words: tmux hands a single one to the user's shell. `windows` are further ones, by name, with
    the same environment and directory. A `recorder` reads all that is written to the first one's terminal; it also
    gets the terminal's process, device, width and height."""

    name: str
    command: Sequence[str]
    work_dir: str
    env: Mapping[str, str]
    marks: Mapping[str, str]
    windows: Sequence[tuple[str, Sequence[str]]] = ()
    recorder: Sequence[str] = ()


class Tmux:
    """The tmux server of one host. From the first start on the state directory has the path of its socket: so whoever
    has another `TMUX_TMPDIR` asks the same server."""

    def __init__(self, environ: Mapping[str, str], host: StateDir) -> None:
        self._env = {name: environ[name] for name in _SERVER_ENV if name in environ}
        self._host = host

    def argv(self, *words: str) -> list[str]:
        # Without `-u`, in a locale that is not UTF-8, tmux prints `_` for every tab and every letter beyond ASCII.
        return ["tmux", "-u", "-S", self.socket, *words]

    @property
    def socket(self) -> str:
        """The path of the server's socket: the noted one, or where tmux itself would make it. Raises for one in a
        directory that other users could change: the server may be theirs."""
        path = self._noted() or self._usual_socket()
        self._check_room(os.path.dirname(path))
        return path

    def _check_room(self, room: str) -> None:
        try:
            info = os.lstat(room)
        except FileNotFoundError:
            return
        ours = info.st_uid == os.getuid() or (
            os.path.isdir(self._host.dir) and info.st_uid == os.stat(self._host.dir).st_uid  # root for another user
        )
        if not stat.S_ISDIR(info.st_mode) or not ours or info.st_mode & 0o007:
            raise MngrError(
                f"other users could change the directory `{room}` of the tmux socket",
                hint="`export TMUX_TMPDIR=DIR` with a directory of your own",
            )

    def _noted(self) -> str:
        """Empty before the first start. Also when the directory has gone, as that of a login does when it ends: nobody
        can reach a server there."""
        try:
            path = os.fsdecode(files.content(self._host.machine_file)).rstrip("\n")
        except NotADirectoryError:
            return ""  # this is no state directory
        return path if path and os.path.lexists(os.path.dirname(path)) else ""

    def _usual_socket(self) -> str:
        place = self._env.get("TMUX_TMPDIR", "")
        return f"{os.path.realpath(place if os.path.isdir(place) else '/tmp')}/tmux-{os.getuid()}/{SOCKET}"

    def server_pid(self) -> int:
        """The process of the server; 0 when there is none. One that does not answer is an error."""
        words = ("display-message", "-p", "#{pid}")
        result = _unless_gone(self._run(*words), "the tmux server did not answer")
        return int(result.text) if result.ok and result.text.isdecimal() else 0

    def panes(self) -> list[Pane]:
        """Every pane marked as an agent's; none without a server. A server that does not answer is an error."""
        return [pane for line in self.ask_all(_PANE_FORMAT) if (pane := _parse_pane(line))]

    def ask_all(self, form: str) -> list[str]:
        """A format, filled in for each pane of the server. No server has none; one that does not answer is an error."""
        return self._ask(form, "-a")

    def ask_session(self, session: str, form: str) -> list[str]:
        """The same for each pane of a session. A session that is gone has none."""
        return self._ask(form, "-s", "-t", f"={session}")

    def _ask(self, form: str, *where: str) -> list[str]:
        result = _unless_gone(self._run("list-panes", *where, "-F", form), "the tmux server did not answer")
        return result.text.split("\n") if result.ok else []

    def start(
        self,
        session: Session,
        *,
        history_lines: int = 50000,
        config: str | None = None,
        running: Callable[[], str] = lambda: "",
    ) -> None:
        """Start a detached session. Raises SessionExists when its name is taken. The first start notes the socket; it
        asks `running` for that of a server with sessions that were started before there was a note."""
        if self._noted():
            self._start(session, history_lines, config)
            return
        with self._host.locked("tmux", timeout=60, what="the tmux server"):
            if not self._noted():
                socket = running() or self._usual_socket()
                _make_room(socket)
                self._check_room(os.path.dirname(socket))
                self._host.write(self._host.machine_file, os.fsencode(socket) + b"\n")
                try:
                    self._start(session, history_lines, config)
                except SessionExists:
                    raise
                except BaseException:
                    self._host.write(self._host.machine_file, b"")
                    raise
                return
        self._start(session, history_lines, config)

    def _start(self, session: Session, history_lines: int, config: str | None) -> None:
        lines = [*(_line(words) for words in _server_options(history_lines, config)), _session_line(session)]
        words, text = ("-f", os.devnull, "start-server", ";", "source-file", "-"), "\n".join(lines)
        result = self._run(*words, input=text)
        if _EXITED in result.error_text:
            from mngr.system.waiting import wait_until

            # The server was just ending, and took nothing. Soon it is gone, and a new one starts.
            def again() -> Result | None:
                result = self._run(*words, input=text)
                return result if _EXITED not in result.error_text else None

            result = wait_until(again, timeout=_SECONDS_TO_END) or result
        _refuse_duplicate(result, session.name)
        checked(result, f"tmux could not start the session `{session.name}`")

    def kill(self, session: str) -> None:
        """End a session and hang up its processes. A session that is gone already is fine."""
        _unless_gone(self._run("kill-session", "-t", f"={session}"), f"tmux could not end the session `{session}`")

    def capture_and_kill(self, pane: Pane, *, history: int) -> str:
        """The same, in one call with a last look at the screen."""
        words = ["capture-pane", "-p", "-J", "-S", f"-{history}", "-t", pane.pane_id]
        result = self._run(*words, ";", "kill-session", "-t", f"={pane.session}")
        _unless_gone(result, f"tmux could not end the session `{pane.session}`")
        return _strip_dead_line(pane, result.stdout.decode(errors="replace"))

    def kill_agent_quietly(self, agent_id: str) -> None:
        """End the session of one agent, to clean up after another error."""
        try:
            for pane in self.panes():
                if pane.agent_id == agent_id:
                    self.kill(pane.session)
        except MngrError:
            pass  # the error that led here is the one to tell

    def add_helper(self, session: str, name: str, command: Sequence[str], marks: Mapping[str, str]) -> None:
        """Run something of ours in a session, in a window that is not in its status line and goes when it ends. The
        index is one that people do not reach by counting."""
        target = f"={session}:999"
        words = ["new-window", "-d", "-t", target, "-n", name, "-c", "/", *command]
        for scope, option, value in (
            ("-w", "remain-on-exit", "off"),
            ("-w", "window-status-format", ""),
            *(("-p", f"@mngr_{mark}", value) for mark, value in marks.items()),
        ):
            words += [";", "set-option", scope, "-t", target, option, value]
        checked(self._run(*words), f"tmux could not add a window to the session `{session}`")

    def kill_pane(self, pane_id: str) -> None:
        """End one pane. One that is gone already is fine."""
        _unless_gone(self._run("kill-pane", "-t", pane_id), f"tmux could not end the pane `{pane_id}`")

    def rename(self, old: str, new: str) -> None:
        """Raises SessionExists when the new name is taken."""
        result = self._run("rename-session", "-t", f"={old}", new)
        _refuse_duplicate(result, new)
        checked(result, f"tmux could not rename the session `{old}`")

    def capture(self, pane: Pane, *, history: int = 0, escapes: bool = False) -> str:
        """What the pane shows, with up to `history` lines above it."""
        words = ["capture-pane", "-p", "-t", pane.pane_id, "-J", *(["-e"] if escapes else [])]
        if history or pane.dead:
            words += ["-S", f"-{history + pane.dead}"]
        result = checked(self._run(*words), "tmux could not read the screen")
        return _strip_dead_line(pane, result.stdout.decode(errors="replace"))

    def paste(self, pane_id: str, text: str, *, enter: bool = False) -> None:
        """Put text into the pane's input, bracketed if its program asked for that, newlines as they are; then
        perhaps press Enter, apart from it. Raises for a pane that takes no input."""
        buffer = f"mngr-{os.urandom(6).hex()}"
        taken = [f"paste-buffer -p -r -d -b {buffer} -t '{pane_id}'", *([_press(pane_id, "Enter")] if enter else [])]
        load = ["load-buffer", "-b", buffer, "-", ";"]
        self._to_program(pane_id, taken, before=load, refused=f"delete-buffer -b {buffer}; ", input=text)

    def press(self, pane_id: str, *keys: str) -> None:
        """Press keys for the pane's program. Raises for a pane that takes no input."""
        self._to_program(pane_id, [_press(pane_id, *keys)])

    def _to_program(
        self,
        pane_id: str,
        commands: Sequence[str],
        *,
        before: Sequence[str] = (),
        refused: str = "",
        input: str | None = None,
    ) -> None:
        """Run commands of tmux that give input to the program of a pane. In copy mode and the like, tmux itself would
        take the keys, and pastes have no brackets: so that mode ends. Synchronized panes get nothing of it."""
        # tmux 3.3 dies of a paste into a dead pane, and every agent with it. It drops, without a word, what is given to
        # a pane whose input is switched off. So the server itself looks, in the moment of the paste.
        refused += f"display-message -p -t '{pane_id}' '{_REFUSED} #{{pane_dead}}'"
        alone = f"set-option -p -t '{pane_id}' synchronize-panes"
        taken = [f"copy-mode -q -t '{pane_id}'", f"{alone} off", *commands, alone.replace(" -p ", " -pu ")]
        takes_none = "#{||:#{pane_dead},#{pane_input_off}}"
        words = [*before, "if-shell", "-F", "-t", pane_id, takes_none, refused, "; ".join(taken)]
        said = checked(self._run(*words, input=input), "tmux did not take the input").text
        if _REFUSED in said:
            dead = said.endswith("1")
            raise MngrError(
                "tmux did not take the input: "
                + ("the program in the pane has ended" if dead else "the pane's input is switched off"),
                hint="" if dead else f"`{join(self.argv('select-pane', '-e', '-t', pane_id))}` switches it on",
            )

    def attach_argv(self, session: str) -> list[str]:
        return self.argv("attach-session", "-t", f"={session}")

    def _run(self, *words: str, input: str | None = None) -> Result:
        data = None if input is None else input.encode("utf-8", "surrogateescape")
        return process.run(self.argv(*words), timeout=SECONDS, input=data, env=self._env)


def _refuse_duplicate(result: Result, name: str) -> None:
    if "duplicate session" in result.error_text:
        raise SessionExists(f"a tmux session called `{name}` exists already")


def _make_room(socket: str) -> None:
    """Make the directory of a socket, for nobody else."""
    room = os.path.dirname(socket)
    if len(os.fsencode(socket)) > _LONGEST_SOCKET:
        raise MngrError(
            f"the path of the tmux socket is too long: `{socket}`",
            hint="it needs a shorter directory: `export TMUX_TMPDIR=/tmp`",
        )
    try:
        os.makedirs(room, 0o700, exist_ok=True)
    except OSError as error:
        raise MngrError(f"the directory `{room}` of the tmux socket cannot be made: {error.strerror}") from None


class SessionExists(MngrError):
    """The session name is taken on the server, by someone our records do not know."""


def _server_options(history_lines: int, config: str | None) -> Iterable[Sequence[str]]:
    """Set again with every session: cheap, and true after a server restart."""
    if config:
        yield ["if-shell", "-F", "#{@mngr_configured}", "", f"source-file -q {_quote(config)}"]
        yield ["set-option", "-g", "@mngr_configured", "1"]
    yield ["set-option", "-g", "remain-on-exit", "on"]
    yield ["set-option", "-g", "update-environment", ""]
    yield ["set-option", "-g", "history-limit", str(history_lines)]
    yield ["set-option", "-g", "destroy-unattached", "off"]
    yield ["set-option", "-g", "window-size", "latest"]
    yield ["set-option", "-s", "escape-time", "20"]
    yield ["set-option", "-s", "focus-events", "on"]
    if not config:
        yield ["set-option", "-g", "mouse", "on"]
        yield ["set-option", "-g", "status-left-length", "60"]
        yield ["set-option", "-g", "status-left", "#{session_name}  "]
        yield ["set-option", "-g", "status-right", "#{?pane_dead,it has ended - ,}detach: C-b d "]


def _session_line(session: Session) -> str:
    """One line, because tmux continues with the next line after an error: the marks of a session that exists already
    would be overwritten."""
    target = f"={session.name}:"
    place = ["-c", _not_a_format(session.work_dir)]
    variables = [word for name, value in session.env.items() for word in ("-e", f"{name}={value}")]
    # A recording is looked at in half the width of a page, where more columns would be too small to read.
    columns, rows = ("100", "30") if session.recorder else ("200", "50")
    commands = [
        ["new-session", "-d", "-s", session.name, "-x", columns, "-y", rows, *place, *variables, *session.command],
        *(["set-option", "-p", "-t", target, f"@mngr_{name}", value] for name, value in session.marks.items()),
    ]
    if session.recorder:
        # tmux reads nothing from the terminal before this whole line is done, so the first byte is recorded too.
        commands.append(["pipe-pane", "-t", target, _recorder_line(session.recorder)])
    commands += [["new-window", "-d", "-t", target, "-n", name, *place, *words] for name, words in session.windows]
    return " ; ".join(map(_line, commands))


def _press(pane_id: str, *keys: str) -> str:
    return f"send-keys -t '{pane_id}' {' '.join(keys)}"


def _line(words: Sequence[str]) -> str:
    return " ".join(_quote(word) for word in words)


def _strip_dead_line(pane: Pane, screen: str) -> str:
    """tmux moves the screen of a dead pane up by a line and writes below it that it is dead. A line at the bottom that
    the program did not end then counts as continued there, and has been joined with it."""
    above, _, last = screen.rstrip("\n").rpartition("\n")
    own, dead_line, _ = last.rpartition(_DEAD_LINE)
    if not pane.dead or not dead_line:
        return screen
    kept = f"{above}\n{own}" if _STYLE.sub("", own).strip() else above
    return kept.rstrip("\n") + "\n"


def _quote(word: str) -> str:
    """One word of a tmux command file. Nothing is special between single quotes, but a newline there is dropped, and
    a byte 255 taken for the end of the file."""
    for special, written in (("'", "\\'"), ("\n", '"\\n"'), ("\udcff", '"\\377"')):
        word = word.replace(special, f"'{written}'")
    return f"'{word}'"


def _recorder_line(words: Sequence[str]) -> str:
    """A shell command in which tmux fills in a pane's facts. It would also expand `%` like a date format."""
    line = _not_a_format(join(words)).replace("%", "%%")
    return f"exec {line} #{{pane_pid}} #{{pane_tty}} #{{pane_width}} #{{pane_height}}"


def _not_a_format(text: str) -> str:
    """Text where tmux would expand `#{...}` and run `#(...)`."""
    return text.replace("#", "##")


def _unless_gone(result: Result, doing: str) -> Result:
    """The result, unless it failed for another reason than that there is no server, or nothing of that name on it. A
    server at its first moment has no session, and then no target even for "all"."""
    text = result.error_text
    missing = "error connecting" in text and "No such file" in text
    gone = ("no server running", "lost server", _EXITED, "can't find")
    if missing or text == "no current target" or any(words in text for words in gone):
        return result
    return checked(result, doing)


def _parse_pane(line: str) -> Pane | None:
    fields = line.split("\t")
    if len(fields) != len(_PANE_FIELDS) or not fields[0]:
        return None
    agent, session, pane_id, pid, tty, dead, code, signal, died_at, active_at, attached, server = fields
    return Pane(
        agent_id=agent,
        session=session,
        pane_id=pane_id,
        pid=int(pid or 0),
        tty=tty,
        dead=dead == "1",
        exit_code=int(code) if code else None,
        signal=int(signal) if signal else None,
        died_at=float(died_at) if died_at else None,
        active_at=float(active_at or 0),
        attached=attached not in ("", "0"),
        server=int(server or 0),
    )
