"""Records the commands of a test, and answers them from the record: no command is started. Off unless a tape is set.

Used to measure tests (`mngr e2e strength`): an answer with one edit, and does the test notice?
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mngr.e2e import trees

OnOutput = Callable[[str, str], None]
Ended = tuple[int, float, bool]
Segment = tuple[str, str]  # stream and text

NOT_RECORDED = "no answer was recorded for this command"


class Answer(NamedTuple):
    """What a command did: its output as it came, its end, and the paths that it changed."""

    command: str
    segments: tuple[Segment, ...]
    exit_code: int
    seconds: float
    timed_out: bool
    changes: tuple[trees.Change, ...]

    def text(self, stream: str) -> str:
        return "".join(text for name, text in self.segments if name == stream)


class CommandRecord(NamedTuple):
    """One run of a test, with marks in place of the directories that its commands worked in. `repository` is what a
    session begins with; `screens` says how many full-screen programs were started, which cannot be replayed."""

    repository: tuple[trees.Change, ...]
    answers: tuple[Answer, ...]
    screens: int


class Tape:
    """What a session is recorded on, or answered from."""

    def __init__(self) -> None:
        self._roots: list[str] = []

    def add_root(self, root: str) -> None:
        self._roots.append(root)


tape: Recorder | Player | None = None


def set_tape(new: Recorder | Player | None) -> None:
    """From now on, sessions of this process are recorded or answered by this one."""
    global tape
    tape = new


def replaying() -> bool:
    """Whether no command is started, so that there is nothing to end."""
    return isinstance(tape, Player)


def repository(root: str, make: Callable[[], None]) -> None:
    """Fill a new session's directory: by `make`, or from the record."""
    if isinstance(tape, Player):
        tape.repository(root)
    elif tape is not None:
        tape.repository(root, make)
    else:
        make()


class Recorder(Tape):
    """Lets commands run, and keeps what they did."""

    def __init__(self) -> None:
        super().__init__()
        self._repository: list[trees.Change] = []
        self._answers: list[Answer] = []
        self._segments: list[Segment] = []
        self._before: trees.Look = []
        self._screens = 0

    def record(self) -> CommandRecord:
        return CommandRecord(tuple(self._repository), tuple(self._answers), self._screens)

    def repository(self, root: str, make: Callable[[], None]) -> None:
        before = trees.look([root])
        make()
        self._roots.append(root)
        self._repository = trees.changes([root], before, trees.look([root]))

    def begin(self) -> None:
        """A command is about to run."""
        self._segments = []
        self._before = trees.look(self._roots)

    def heard(self, stream: str, text: str) -> None:
        self._segments.append((stream, text))

    def ended(self, command: str, ended: Ended) -> None:
        changed = trees.changes(self._roots, self._before, trees.look(self._roots))
        marked = [change._replace(node=_replaced(change.node, self._roots, _marks(self._roots))) for change in changed]
        segments = tuple((stream, named(text, self._roots)) for stream, text in self._segments)
        self._answers.append(Answer(named(command, self._roots), segments, *ended, tuple(marked)))

    def spawn(self) -> None:
        self._screens += 1


class Player(Tape):
    """Answers each command from a record. A command that is asked more often than it was recorded gets its last answer
    again; one that was not recorded fails."""

    def __init__(self, record: CommandRecord) -> None:
        super().__init__()
        self._record = record
        self._asked: dict[str, int] = {}
        self._known: dict[str, list[Answer]] = {}
        for answer in record.answers:
            self._known.setdefault(answer.command, []).append(answer)

    def repository(self, root: str) -> None:
        self._roots.append(root)
        self._apply(self._record.repository)

    def answer(self, command: str, on_output: OnOutput) -> Ended:
        key = named(command, self._roots)
        known = self._known.get(key)
        if known is None:
            on_output("stderr", f"{NOT_RECORDED}\n")
            return 1, 0.0, False
        asked = self._asked[key] = self._asked.get(key, 0) + 1
        answer = known[min(asked, len(known)) - 1]
        for stream, text in answer.segments:
            on_output(stream, self._here(text))
        self._apply(answer.changes)
        _clock.skip(answer.seconds)
        return answer.exit_code, answer.seconds, answer.timed_out

    def spawn(self) -> None:
        raise AssertionError("a full-screen program cannot be replayed")

    def _here(self, text: str) -> str:
        for mark, root in zip(_marks(self._roots), self._roots, strict=True):
            text = text.replace(mark, root)
        return text

    def _apply(self, changes: Sequence[trees.Change]) -> None:
        for change in changes:
            if change.root < len(self._roots):
                node = _replaced(change.node, _marks(self._roots), self._roots)
                trees.apply(os.path.join(self._roots[change.root], change.path), node)


def named(text: str, roots: Sequence[str]) -> str:
    """A text with marks in place of the directories, whose names differ from run to run."""
    for mark, root in zip(_marks(roots), roots, strict=True):
        text = text.replace(root, mark)
    return text


def _marks(roots: Sequence[str]) -> list[str]:
    return [f"/mngr-session-{number}" for number in range(len(roots))]


def _replaced(node: trees.Node | None, old: Sequence[str], new: Sequence[str]) -> trees.Node | None:
    if node is None or not node.data:
        return node
    data = node.data
    for one, other in zip(old, new, strict=True):
        data = data.replace(os.fsencode(one), os.fsencode(other))
    return node._replace(data=data)


class _Clock:
    """How much time passed without waiting, in a process that only replays; None in others."""

    skipped: float | None = None

    def skip(self, seconds: float) -> None:
        if self.skipped is not None:
            self.skipped += max(0.0, seconds)


_clock = _Clock()


def skip_time() -> None:
    """In this process, from now on: `time.sleep` returns at once, and the clocks of `time` say that the time passed: a
    test that polls sees its deadline come."""
    if _clock.skipped is not None:
        return
    _clock.skipped = 0.0
    for name in ("time", "monotonic", "perf_counter"):
        real: Callable[[], float] = getattr(time, name)
        setattr(time, name, lambda real=real: real() + (_clock.skipped or 0.0))
    time.sleep = _clock.skip  # type: ignore[assignment]  # noqa: TID251  (nothing sleeps: that is the point)
