"""What mngr must know about an agent program to run it unattended. One driver for each program, loaded when one of its
agents is looked at, started or talked to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from mngr.agents.kinds.kind import PERMISSIONS
from mngr.agents.record import Record
from mngr.errors import MngrError
from mngr.process import quote
from mngr.records import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from typing import Any

    from mngr.agents.state import Status
    from mngr.hosts.host import Host

ASK, EDITS, TESTS, BYPASS = PERMISSIONS
HOME = "home"
PROMPT = "prompt"


def _blank() -> str:
    return ""


class Place(NamedTuple):
    """One agent as its driver sees it. Everything that the driver or the program keeps for this agent alone is in
    `home`, in the agent's state directory. `environ` is that of whoever starts or looks: it tells where the user's own
    login and settings are, which are read or linked to, never changed. `screen` asks tmux for what its terminal shows
    now, with escape sequences: for what no file tells."""

    host: Host
    record: Record
    state_dir: str
    environ: Mapping[str, str]
    screen: Callable[[], str] = _blank

    @property
    def home(self) -> str:
        return f"{self.state_dir}/{HOME}"

    @property
    def prompt_file(self) -> str:
        """Holds the first prompt, for the launch command to read: a command line would be seen by everybody."""
        return f"{self.state_dir}/{PROMPT}"


class Launch(NamedTuple):
    """A shell command line, and variables for it. `$(cat FILE)` in it may read the first prompt."""

    command: str
    env: Mapping[str, str] = {}


class Wording(NamedTuple):
    """A message on its way: what is given to the program, what the program will have in its own record, and, in
    words, what is altered on the way; empty when nothing is."""

    sent: str
    recorded: str
    altered: str = ""


class Spent(NamedTuple):
    """What one answer of a model cost. `input_tokens` are those that were neither read from nor written to a cache.
    `cost_usd` is None when the program does not say."""

    timestamp: str
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None


class Program(NamedTuple):
    """`oldest` is the first version known to work, `tried` the one that was tried last. `broken` are versions that
    must not be used, each with what goes wrong."""

    name: str
    install: str
    oldest: str
    tried: str
    broken: Mapping[str, str] = {}


class Driver(Protocol):
    """`ready_seconds` is how long a start may take before what it shows counts as a dialog that nobody knows.
    `dialogs` are what it may show instead of its prompt: a regular expression over the screen, and the reason in
    words. `conversation` names the parts of `home` to keep in snapshots and to take along when it is cloned."""

    program: Program
    ready_seconds: float
    dialogs: Sequence[tuple[str, str]]
    conversation: Sequence[str]

    def takes_prompt(self, record: Record) -> bool:
        """Whether a start can begin with the first prompt. Without, it is sent like any other message."""

    def prepare(self, place: Place, *, prompted: bool) -> Launch:
        """Before every start: put its configuration in place, and say what to run. With `prompted`, it begins with
        what the prompt file holds; later starts go on with the conversation that is there. One that is made for one
        task (`record.one_shot`) runs without a dialog and ends."""

    def look(self, place: Place, status: Status, events: Sequence[Mapping[str, Any]]) -> Status:
        """The state of an agent whose process lives: `status` is what its events tell since its start; what the
        program's own files tell wins where it is newer. Quick: `list` asks for every agent. Not asked about one that
        is made for one task: it works until it ends."""

    def wording(self, text: str) -> Wording:
        """How a message reaches the program as plain text. Raises MngrError for one that it would not take as that."""

    def mark(self, place: Place) -> object:
        """A point in its record, from which `received` goes on."""

    def received(self, place: Place, mark: object) -> list[str] | None:
        """The prompts that the program itself recorded since, in order. None: there is no telling for this program."""

    def occupied(self, screen: str) -> str:
        """What stands in its input box already, by a screen with escape sequences; empty when nothing does."""

    def deliver(self, place: Place, text: str) -> bool:
        """Hand the text to the program without its terminal. False: there is no other way than the terminal."""

    def transcript(self, place: Place) -> list[dict[str, Any]]:
        """The whole conversation in the common form: `timestamp`, `role`, `text`, and for tools `tool`, `input`,
        `exit_code`. A line that is half-written is left out."""

    def usage(self, place: Place) -> list[Spent]:
        """Every answer of a model in its record, each once."""

    def login(self, environ: Mapping[str, str]) -> str:
        """How this user is logged in, in words; empty when they are not. Looks at files and variables only."""


# Where each driver is: the module's `DRIVER`.
_MODULES = {
    "reporting": "mngr.agents.kinds.reporting",
    "claude": "mngr.agents.kinds.claude",
    "codex": "mngr.agents.kinds.codex",
    "opencode": "mngr.agents.kinds.opencode",
    "screen": "mngr.agents.kinds.screen",
}


def find(name: str) -> Driver:
    import importlib

    if name not in _MODULES:
        raise MngrError(f"this mngr does not know how to drive `{name}`", hint="upgrade mngr")
    driver: Driver = importlib.import_module(_MODULES[name]).DRIVER
    return driver


def of(record: Record) -> Driver | None:
    """None for a command of which nothing is known but that it runs."""
    if record.driver:
        return find(record.driver)
    return find("reporting") if record.reports else None


def one_shot(place: Place, template: str) -> str:
    """The shell line for one task: `{prompt}` stands for the prompt as one word, `{prompt_file}` for a file with it."""
    file = quote(place.prompt_file)
    return template.replace("{prompt_file}", file).replace("{prompt}", f'"$(cat {file})"')


def first_prompt(place: Place) -> bytes:
    """The first prompt without the blanks around it, which only a terminal needs."""
    prompt = place.host.read(place.prompt_file).strip()
    if not place.record.one_shot:
        check_word(prompt)
    return prompt


def check_word(prompt: bytes) -> None:
    """Raise for a first prompt that cannot be a word on a command line: Linux takes none longer than 128 KiB."""
    if len(prompt) > _LONGEST_WORD:
        raise MngrError(
            f"a first message of {len(prompt)} bytes is too long for a command line",
            hint="create the agent without it, and send it with `mngr message`",
        )


_LONGEST_WORD = 130_000


def plain(screen: str) -> str:
    """A screen, or a part of one, without escape sequences."""
    import re

    link = r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    return re.sub(rf"\x1b\[[0-9;:?]*[ -/]*[@-~]|{link}|\x1b[()][0-9A-Z]|[\x0e\x0f]", "", screen)


def user_home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")
