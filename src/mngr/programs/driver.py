"""What mngr knows about an agent program so that it can run the program unattended. Each program has one driver, which
is imported when one of its agents is started, looked at or sent a message."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence

from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.system.files import last_lines, read_lines
from mngr.system.process import quote
from mngr.system.state_dir import StateDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.agent.state import Status

HOME = "home"
PROMPT = "prompt"
TAIL_BYTES = 64 * 1024
# What is read at most of a file that the program writes, and of one that is its record of the conversation.
_READ_BYTES = 1 << 24
_RECORD_BYTES, _RECORD_LINES = 1 << 28, 500_000
_LONGEST_WORD = 130_000


def _blank() -> str:
    return ""


class AgentContext(NamedTuple):
    """One agent as its driver sees it. `home`, in the agent's state directory, holds everything that the driver or the
    program keeps for this agent alone. `environ` is the environment of the `mngr` that runs now: it says where the
    user's own login and settings are. Drivers read those or link to them and never change them. `screen` asks tmux for
    what the agent's terminal shows now, with escape sequences."""

    host: StateDir
    record: Record
    state_dir: str
    environ: Mapping[str, str]
    screen: Callable[[], str] = _blank

    @property
    def home(self) -> str:
        return f"{self.state_dir}/{HOME}"

    @property
    def prompt_file(self) -> str:
        """Holds the first prompt, for the launch command to read: every user can see a command line."""
        return f"{self.state_dir}/{PROMPT}"

    def read(self, name: str) -> bytes:
        """What a file in `home` holds, of a large one the end; empty when the file is missing. Raises OSError for what
        is not a plain file: the program can put anything there."""
        return self.tail(name, _READ_BYTES)

    def tail(self, name: str, size: int = TAIL_BYTES) -> bytes:
        return self.host.read_tail(f"{self.home}/{name}", size)[0]

    def after(self, name: str, mark: int) -> bytes:
        """What was added to a file of `home` since it had this size."""
        return self.host.read_from(f"{self.home}/{name}", mark, _READ_BYTES)

    def size(self, name: str) -> int:
        """How large a file in `home` is; 0 when it is missing."""
        try:
            return os.lstat(f"{self.home}/{name}").st_size
        except FileNotFoundError:
            return 0

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The JSON objects in a file of `home`, one per line: in all of a conversation, unless it is huge. A
        half-written last line is skipped."""
        return read_lines(last_lines(self.tail(name, _RECORD_BYTES), _RECORD_LINES))


class LaunchCommand(NamedTuple):
    """A shell command line and its variables. The command line may read the first prompt with `$(cat FILE)`."""

    command: str
    env: Mapping[str, str] = {}


class Wording(NamedTuple):
    """A message: the text that mngr gives to the program, the text that the program will record, and a description of
    what changes on the way (empty when nothing does)."""

    sent: str
    recorded: str
    altered: str = ""


class ModelUsage(NamedTuple):
    """What one answer of a model cost. `input_tokens` excludes tokens that were read from or written to a cache.
    `cost_usd` is None when the program does not report a cost."""

    timestamp: str
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None


class AgentProgram(NamedTuple):
    """`oldest` is the first version known to work, `tried` the version that was tested last. `broken` are versions that
    must not be used, each with what goes wrong."""

    name: str = ""
    install: str = ""
    oldest: str = ""
    tried: str = ""
    broken: Mapping[str, str] = {}


class Driver:
    """`ready_seconds` is how long a start may take; after that, whatever the screen shows counts as an unknown dialog.
    `dialogs` are the known dialogs: a regular expression over the screen, and the reason to report. `conversation`
    names the files in `home` that snapshots and clones take along. `prompts` is the file in `home`, if there is one, to
    which prompts are added. `variables` are how the names of variables begin
    that the program uses to reach its model: an agent in a sandbox inherits no others that may be secret."""

    program = AgentProgram()
    ready_seconds = 60.0
    dialogs: Sequence[tuple[str, str]] = ()
    conversation: Sequence[str] = ()
    prompts = ""
    variables: Sequence[str] = ()
    own_sandbox = False

    def takes_prompt(self, record: Record) -> bool:
        """Whether the program can start with the first prompt. Otherwise mngr sends it like any other message."""
        return True

    def prepare(self, agent: AgentContext, *, prompted: bool) -> LaunchCommand:
        """Before every start: write the program's configuration, and return what to run. With `prompted` the program
        starts with the text in the prompt file. Later starts resume the conversation. An agent for one task
        (`record.one_shot`) runs without dialogs and exits."""
        raise NotImplementedError

    def look(self, agent: AgentContext, status: Status, events: Sequence[Mapping[str, Any]]) -> Status:
        """The state of an agent whose process is alive. `status` follows from its events since its start; newer facts
        in the program's own files win. Must be quick: `list` calls it for every agent. Not called for `one_shot`."""
        return status

    def wording(self, text: str) -> Wording:
        """How a message reaches the program as plain text. Raises MngrError for a text that cannot be sent."""
        return Wording(text, text)

    def mark(self, agent: AgentContext) -> int:
        """The end of the program's record now; `received` reads from there."""
        return agent.size(self.prompts) if self.prompts else 0

    def received(self, agent: AgentContext, mark: int = 0) -> list[str] | None:
        """The prompts that the program itself recorded since `mark`, in order. None: this program records no prompts in
        time."""
        return None

    def same(self, recorded: str, received: str) -> bool:
        """Whether a prompt in the program's record is the message with this wording."""
        return recorded == received

    def occupied(self, screen: str) -> str:
        """The text in the program's input box, from a screen with escape sequences; empty when the box is empty."""
        return ""

    def deliver(self, agent: AgentContext, text: str) -> bool:
        """Give the text to the program without its terminal. False: the caller has to type it."""
        return False

    def transcript(self, agent: AgentContext) -> list[dict[str, Any]]:
        """The whole conversation in the common form: `timestamp`, `role`, `text`, and for tools `tool`, `input`,
        `exit_code`."""
        raise NotImplementedError

    def usage(self, agent: AgentContext) -> list[ModelUsage]:
        """Every answer of a model in the program's record, each once."""
        raise NotImplementedError

    def login(self, environ: Mapping[str, str]) -> str:
        """How this user is logged in; empty when they are not. Looks only at files and variables."""
        return ""

    def logins(self, environ: Mapping[str, str]) -> Sequence[str]:
        """The user's own files with the login, which the program also renews: the only ones of theirs that an agent in
        a sandbox can write."""
        return ()


# Where each driver is: the module's `DRIVER`.
_MODULES = {
    "reporting": "mngr.programs.reporter",
    "claude": "mngr.programs.claude.driver",
    "codex": "mngr.programs.codex.driver",
    "opencode": "mngr.programs.opencode.driver",
    "screen": "mngr.programs.screen",
}


def find(name: str) -> Driver:
    import importlib

    if name not in _MODULES:
        raise MngrError(f"this version of mngr has no driver `{name}`", hint="upgrade mngr")
    driver: Driver = importlib.import_module(_MODULES[name]).DRIVER
    return driver


def of(record: Record) -> Driver | None:
    """None for a command of which mngr knows only that it runs."""
    if record.spec.driver:
        return find(record.spec.driver)
    return find("reporting") if record.spec.reports else None


def one_shot(agent: AgentContext, template: str) -> str:
    """The shell line for one task: `{prompt}` becomes the prompt as one word, `{prompt_file}` a file that holds it."""
    file = quote(agent.prompt_file)
    return template.replace("{prompt_file}", file).replace("{prompt}", f'"$(cat {file})"')


def write_first_prompt(agent: AgentContext) -> str:
    """Write the first prompt without the blanks around it, which only a terminal needs, and return its quoted path."""
    prompt = agent.host.read(agent.prompt_file).strip()
    if not agent.record.spec.one_shot:
        check_word(prompt)
    agent.host.write(f"{agent.home}/{PROMPT}", prompt)
    return quote(f"{agent.home}/{PROMPT}")


def check_word(prompt: bytes) -> None:
    """Raise for a first prompt that does not fit on a command line: on Linux a word has at most 128 KiB."""
    if len(prompt) > _LONGEST_WORD:
        raise MngrError(
            f"a first message of {len(prompt)} bytes is too long for a command line",
            hint="create the agent without a message, then send the text with `mngr message`",
        )


def check_utf8(text: str, program: str) -> None:
    if any("\ud800" <= one <= "\udfff" for one in text):
        raise MngrError(f"the message is not UTF-8, and {program} would change it")


def plain(screen: str) -> str:
    """A screen, or a part of one, without escape sequences."""
    link = r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    return re.sub(rf"\x1b\[[0-9;:?]*[ -/]*[@-~]|{link}|\x1b[()][0-9A-Z]|[\x0e\x0f]", "", screen)


def joined(screen: str) -> str:
    """A plain screen as one line, without the frames of boxes: in a narrow terminal a program breaks its sentences into
    lines, wherever they have to end."""
    return re.sub(r"[\s│┃║╭╮╰╯┌┐└┘─━═|]+", " ", screen)


def user_home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")
