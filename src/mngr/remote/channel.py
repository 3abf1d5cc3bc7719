"""The near end of a channel: starts our program on a host, sends calls to it, and returns their answers.

Many threads can call at the same time. Each wait has a deadline or is watched by heartbeats, so that a host that stops
answering is an error and never a hang."""

from __future__ import annotations

import os
import queue
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mngr.errors import UNREACHED, MngrError
from mngr.named_tuples import NamedTuple
from mngr.remote import boot
from mngr.remote.codec import Decoder, Encoder, as_error, call_back
from mngr.remote.frames import BadStream, Frame, MessageReader, pack
from mngr.system import process
from mngr.system.interrupts import Abandoned, Terminated, check, held
from mngr.system.waiting import Deadline

BEAT_SECONDS = 15.0
SILENCE_SECONDS = 45.0
_CANCEL_SECONDS = 5.0
_LONGEST_GREETING = 64 << 10
_LAST_ERRORS = 4 << 10
_LATEST = 1e11  # a time after this is not from a clock


class Unreached(MngrError):
    """A host cannot be reached, or stopped answering. What it was asked to do may or may not be done."""

    exit_code = UNREACHED


class Opening(NamedTuple):
    """How to reach a host: `argv` is a program that runs the shell command line at its end on the host, with the
    program's input and output; `terminal` gives it a terminal. `state_dir` is the state directory there, by default
    `~/.mngr`. `recover` gets the error when the host cannot be used: it returns when another try is worth it, and
    raises what to report otherwise."""

    host: str
    argv: Sequence[str]
    env: Mapping[str, str]
    state_dir: str = ""
    seconds: float = 15.0
    terminal: Sequence[str] = ()
    recover: Callable[[MngrError], None] | None = None


class Channel:
    """A held stream to our program on one host. Raises Unreached when the host does not answer in time."""

    def __init__(self, opening: Opening, settings: Mapping[str, object] = {}, beat: float = BEAT_SECONDS) -> None:
        self.host = opening.host
        self.requests = 0
        # By the number of their calls; at 0 is what comes before the first one.
        self._inboxes: dict[int, queue.SimpleQueue[Frame | MngrError]] = {0: queue.SimpleQueue()}
        self._lock = threading.Lock()
        self._messages = MessageReader()
        self._greeting: bytes | None = b""  # what a login printed, until our token comes
        self._errors = b""
        self._lost: MngrError | None = None
        self._closing = self._ready = False
        self._input = -1
        self._exit_code: int | None = None
        self._program = os.path.basename(opening.argv[0])
        self._heard_at = time.monotonic()
        program, self._token = boot.program(), f"mngr-{os.urandom(8).hex()}".encode()
        self._spawn([*opening.argv, boot.line(program.key, self._token.decode(), opening.state_dir)], opening.env)
        try:
            threading.Thread(target=self._read_on, daemon=True, name=f"channel to {self.host}").start()
            self.clock_skew = self._contact(program, Deadline(opening.seconds), opening.seconds)
        except BaseException:
            with held():
                self._reap(0.0)
                self.close()
            raise
        del self._inboxes[0]
        encoder = Encoder()
        self._send({"settings": encoder.encode(dict(settings)), "beat": beat}, bytes(encoder.body))

    @property
    def lost(self) -> bool:
        """Whether the stream has ended, so that a new one is needed."""
        return self._lost is not None

    def call(
        self, verb: str, args: Sequence[object], options: Mapping[str, object], seconds: float | None = None
    ) -> Any:
        """The verb's result, or its error. A verb that yields gives an iterator. Ctrl-C here interrupts it there, and
        so does the end of our patience: `seconds` without an answer, an item, a part of one, or progress."""
        inbox = queue.SimpleQueue[Frame | MngrError]()
        encoder = Encoder()
        header = {"call": verb, "args": encoder.encode(list(args)), "options": encoder.encode(dict(options))}
        with self._lock:
            header["id"] = number = self.requests = self.requests + 1
        self._inboxes[number] = inbox
        if self._lost is not None:
            inbox.put(self._lost)
        else:
            self._send(header, bytes(encoder.body))
        answers = self._answers(number, inbox, encoder.functions, seconds)
        first, value = next(answers)
        return self._items(answers) if first == "stream" else value

    def _items(self, answers: Iterator[tuple[str, Any]]) -> Iterator[Any]:
        for kind, value in answers:
            if kind == "item":
                yield value

    def _answers(
        self,
        number: int,
        inbox: queue.SimpleQueue[Frame | MngrError],
        functions: Sequence[Callable[..., object]],
        seconds: float | None,
    ) -> Iterator[tuple[str, Any]]:
        """What comes of one call, until its answer. Raises its error."""
        over = False
        try:
            while not over:
                frame = self._next(inbox, Deadline(seconds))
                if frame is None:
                    raise self._given_up(number, seconds)
                header, decode = frame.header, Decoder(frame.body).decode
                if "answer" in header:
                    over = True
                    yield "answer", decode(header["answer"])
                elif "error" in header:
                    over = True
                    raise as_error(decode(header["error"]))
                elif "interrupted" in header:
                    over = True
                    raise Unreached(f"`{self.host}` interrupted the call")
                elif "called" in header:
                    call_back(functions, decode(header["called"]))
                elif "item" in header:
                    yield "item", decode(header["item"])
                elif "stream" in header:
                    yield "stream", None
                elif not header.keys() & {"part", "working"}:
                    raise BadStream("a frame is neither an answer nor an error")
        except BadStream as error:
            raise self._garbage(error) from None
        except (KeyboardInterrupt, Terminated, Abandoned, GeneratorExit):
            if not over:
                with held():
                    self._cancel(number, inbox)
            raise
        finally:
            self._inboxes.pop(number, None)

    def _next(self, inbox: queue.SimpleQueue[Frame | MngrError], deadline: Deadline) -> Frame | None:
        """What comes next of a call; None when nothing comes until the deadline."""
        while True:
            check()
            try:
                found = inbox.get(timeout=max(0.001, deadline.left(0.2)))
            except queue.Empty:
                if deadline.passed:
                    return None
                continue
            if isinstance(found, MngrError):
                raise found
            return found

    def _given_up(self, number: int, seconds: float | None) -> Unreached:
        """A host that lives and a verb on it that does not get on: a disk that hangs, a stopped process."""
        with suppress(Unreached):  # the answer to give is the same
            self._write(pack({"cancel": number}), Deadline(1.0))
        hint = "it may be done or not: look with `mngr list`; `hosts.verb_seconds` is how long mngr waits"
        return Unreached(f"`{self.host}` gave no answer and showed no progress for {seconds:g} s", hint=hint)

    def _cancel(self, number: int, inbox: queue.SimpleQueue[Frame | MngrError]) -> None:
        """Interrupt the verb, and wait a while until it has undone what it had begun."""
        try:
            self._send({"cancel": number})
            deadline = Deadline(_CANCEL_SECONDS)
            while (frame := self._next(inbox, deadline)) is not None:
                if frame.header.keys() & {"answer", "error", "interrupted"}:
                    return
        except (MngrError, Abandoned):
            pass

    def close(self) -> None:
        """End the stream. Verbs that run are interrupted by that."""
        self.hang_up()
        self._reap()

    def hang_up(self) -> None:
        """End the stream and do not wait until the program that held it has ended. Twice is safe."""
        if self._closing:
            return
        self._closing = True
        self._fail(Unreached(f"the connection to `{self.host}` was closed"))
        os.close(self._input)
        self._input = -1  # a write from now on fails, and does not reach another file

    def _reap(self, seconds: float = 2.0) -> None:
        """Wait for the end of the program that holds the connection, and end it after a while. Twice is safe."""
        for patience, number in ((seconds, signal.SIGTERM), (1.0, signal.SIGKILL)):
            if self._ended(patience):
                return
            os.killpg(self._pid, number)
        self._ended(None)

    def _ended(self, seconds: float | None) -> bool:
        deadline = Deadline(seconds)
        while self._exit_code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._exit_code = os.waitstatus_to_exitcode(status)
            elif deadline.passed:
                return False
            else:
                deadline.pause(0.002)
        return True

    def _spawn(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        theirs_in, self._input = os.pipe()
        self._output, theirs_out = os.pipe()
        self._error, theirs_error = os.pipe()
        descriptors = (theirs_in, theirs_out, theirs_error)
        try:
            self._pid = process.start(argv, cwd="/", env=env, descriptors=descriptors)
        finally:
            for fd in descriptors:
                os.close(fd)
        os.set_blocking(self._input, False)

    def _contact(self, program: boot.Program, deadline: Deadline, seconds: float) -> float:
        """Send our program if the host asks for it, and wait until it runs; how much the clock there is ahead."""
        words = self._hello(deadline, seconds)["words"]
        if words[:1] == ["missing"]:
            raise boot.missing(words[1:] or ["sh"], self.host)
        if words == ["send"]:
            with suppress(Unreached):  # what the host printed about it, or that the time is over, is read next
                self._write(boot.load(program), deadline)
        now = self._hello(deadline, seconds).get("now")
        if isinstance(now, bool) or not isinstance(now, int | float) or not 0 <= now < _LATEST:
            raise self._garbage(BadStream("the clock of the host makes no sense"))
        return now - time.time()

    def _hello(self, deadline: Deadline, seconds: float) -> Mapping[str, Any]:
        """What comes next while the channel opens. Raises Unreached with what the host or its program printed."""
        frame = self._next(self._inboxes[0], deadline)
        if frame is not None and "ended" not in frame.header:
            return frame.header
        said = _printable(self._errors + (self._greeting or b""))
        if frame is None:
            raise Unreached(f"`{self.host}` did not answer within {seconds:g} s", details=said)
        if not said and self._ended(0.5):
            said = f"`{self._program}` ended with exit code {self._exit_code} and printed nothing"
        what = "cannot be reached" if self._greeting is not None else "cannot start mngr"
        raise Unreached(f"`{self.host}` {what}", details=said)

    def _garbage(self, error: BadStream) -> Unreached:
        return Unreached(f"`{self.host}` sent something that is not an answer", details=error.message)

    def _send(self, header: Mapping[str, Any], body: bytes = b"") -> None:
        self._write(pack(header, body))

    def _write(self, data: bytes, deadline: Deadline | None = None) -> None:
        """Raises Unreached when the stream has ended, or takes nothing more until the deadline or the last beat."""
        left = memoryview(data)
        try:
            with self._lock:
                while left:
                    if self._writable(200):
                        left = left[os.write(self._input, left[: 1 << 16]) :]
                    elif self._lost or (deadline is not None and deadline.passed):
                        raise self._lost or Unreached(f"`{self.host}` does not read")
        except OSError:
            raise self._lost or Unreached(f"the connection to `{self.host}` was lost") from None

    def _writable(self, milliseconds: int) -> bool:
        poll = select.poll()
        poll.register(self._input, select.POLLOUT)
        return bool(poll.poll(milliseconds))

    def _beat(self) -> None:
        """Never waits: a stream that takes nothing is found by the silence on its other side."""
        if self._lock.acquire(blocking=False):
            try:
                if self._writable(0):
                    os.write(self._input, pack({"beat": True}))
            finally:
                self._lock.release()

    def _read_on(self) -> None:
        """The thread that reads all answers and sends heartbeats, until the stream ends. Only it closes what it reads:
        a number that is free again soon belongs to another file."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        poll.register(self._error, select.POLLIN)
        beat_at = time.monotonic() + BEAT_SECONDS
        try:
            while not self._closing:
                for fd, _ in poll.poll(1000):
                    data = os.read(fd, 1 << 16)
                    if fd == self._error:
                        self._errors = (self._errors + data)[-_LAST_ERRORS:]
                    else:
                        self._take(data)
                    if not data:
                        poll.unregister(fd)
                now = time.monotonic()
                if self._ready and now - self._heard_at > SILENCE_SECONDS:
                    raise Unreached(f"`{self.host}` stopped answering {now - self._heard_at:.0f} s ago")
                if self._ready and now >= beat_at:
                    beat_at = now + BEAT_SECONDS
                    self._beat()
        except BadStream as error:
            self._fail(self._garbage(error))
        except MngrError as error:
            self._fail(error)
        except OSError:
            self._fail(Unreached(f"the connection to `{self.host}` was lost"))
        finally:
            os.close(self._output)
            os.close(self._error)

    def _take(self, data: bytes) -> None:
        """What the host sent: at first what its login prints, then our token and frames. Nothing is the end."""
        self._heard_at = time.monotonic()
        if not data:
            self._drain_errors()
            if not self._ready:
                self._inboxes[0].put(Frame({"ended": True}))
            raise Unreached(f"the connection to `{self.host}` was lost", details=_printable(self._errors))
        if self._greeting is not None:
            before, words, rest = boot.greeting(self._greeting + data, self._token)
            if words is None:
                self._greeting += data
                if len(before) > _LONGEST_GREETING:
                    raise Unreached(f"`{self.host}` prints too much at login", details=_printable(before))
                return
            self._greeting, data = None, rest
            self._inboxes[0].put(Frame({"words": words}))
        for message in self._messages.feed(data):
            self._deliver(message)

    def _drain_errors(self) -> None:
        poll = select.poll()
        poll.register(self._error, select.POLLIN)
        while poll.poll(50) and (data := os.read(self._error, 1 << 16)):
            self._errors = (self._errors + data)[-_LAST_ERRORS:]

    def _deliver(self, message: Frame) -> None:
        number = message.header.get("id")
        if number is None and "error" in message.header:  # of no call: the other end cannot read what we send
            raise as_error(Decoder(message.body).decode(message.header["error"]))
        if number is None and message.header.get("ready"):
            number, self._ready = 0, True
        if isinstance(number, int) and number > self.requests:
            raise BadStream("an answer to a call that was not made")
        inbox = self._inboxes.get(number) if isinstance(number, int) else None
        if inbox is not None:
            inbox.put(message)

    def _fail(self, error: MngrError) -> None:
        self._lost = self._lost or error
        for inbox in tuple(self._inboxes.values()):
            inbox.put(error)


def _printable(data: bytes) -> str:
    """The end of what another program printed, without what a terminal would act on."""
    text = data[-_LAST_ERRORS:].decode("utf-8", "replace")
    return "".join(c for c in text if c in "\n\t" or c.isprintable())
