"""The far end of a channel: reads calls from a stream, runs each verb in a process of its own, and sends the answers.

The reader never blocks, so it sees a cancelled call and the end of the stream while verbs run. When the stream ends, or
the near end is silent for too long, all verbs are interrupted, and end as they do on Ctrl-C."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from mngr.errors import BUG, MngrError
from mngr.remote.codec import Decoder, Encoder
from mngr.remote.frames import BadStream, Frame, FrameReader, MessageReader, pack
from mngr.system import interrupts

if TYPE_CHECKING:
    from mngr.actions.site import Site

BEAT_SECONDS = 15.0
SILENCE_SECONDS = 60.0
_END_SECONDS = 60.0
# What is waiting to be sent before the verbs have to wait too.
_FULL = 8 << 20
# Facts of the connection that started this process. They do not hold for an agent that outlives it.
_OF_THE_CONNECTION = ("SSH_", "XDG_SESSION_", "XDG_RUNTIME_DIR", "MAIL")


def main() -> None:
    """Serve on standard input and output, which no verb and no agent gets to see."""
    wire = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    for name in [name for name in os.environ if name.startswith(_OF_THE_CONNECTION)]:
        del os.environ[name]
    os.environ["PATH"] = ":".join(dict.fromkeys(filter(None, os.environ["PATH"].split(":"))))
    # Whoever started us may have had these ignored; verbs are ended with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    Server(*wire).serve()
    os._exit(0)  # nothing is left to undo, and this is three milliseconds faster


class _Verb:
    """A verb that runs: its call's id, its process, and what it sends."""

    def __init__(self, call: int, pid: int, pipe: int) -> None:
        self.call, self.pid, self.pipe = call, pid, pipe
        self.reader = FrameReader()
        self.answered = False
        self.spent = 0.0


class Server:
    def __init__(self, source: int, target: int, *, silence: float = SILENCE_SECONDS) -> None:
        self._source, self._target, self._silence = source, target, silence
        self._messages = MessageReader()
        self._out = bytearray()
        self._verbs: dict[int, _Verb] = {}
        self._settings: dict[str, Any] = {}
        self._open = True
        self._beat = BEAT_SECONDS
        self._heard_at = self._beat_at = time.monotonic()
        os.set_blocking(target, False)

    def serve(self) -> None:
        self._send({"ready": True, "now": time.time(), "pid": os.getpid()})
        from mngr.actions import find  # noqa: F401 (nearly every verb needs it; meanwhile the first call is on its way)

        while self._open:
            self._turn()
            now = time.monotonic()
            if now - self._heard_at > self._silence:
                break
            if now - self._beat_at >= self._beat:
                self._beat_at = now
                self._send({"beat": True})
                self._tell_progress()
        self._end_verbs()

    def _tell_progress(self) -> None:
        """Name the verbs that get on. One that waits for something else is not named, and may be given up."""
        for verb in self._verbs.values():
            spent = _spent(verb.pid)
            if spent != verb.spent:
                verb.spent = spent
                self._send({"id": verb.call, "working": True})

    def _turn(self) -> None:
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        if self._out:
            poll.register(self._target, select.POLLOUT)
        if len(self._out) < _FULL:
            for pipe in self._verbs:
                poll.register(pipe, select.POLLIN)
        for fd, _ in poll.poll(min(1.0, self._silence / 4, self._beat) * 1000):
            if fd == self._source:
                self._receive()
            elif fd == self._target:
                self._flush()
            elif fd in self._verbs:
                self._forward(self._verbs[fd])

    def _receive(self) -> None:
        data = os.read(self._source, 1 << 16)
        self._heard_at = time.monotonic()
        if not data:
            self._open = False
            return
        try:
            for message in self._messages.feed(data):
                self._take(message)
        except BadStream as error:
            self._fail(None, error)
            self._open = False

    def _take(self, message: Frame) -> None:
        header = message.header
        if "settings" in header:
            self._settings = Decoder(message.body).decode(header["settings"])
            self._beat = float(header.get("beat", BEAT_SECONDS))
        elif "cancel" in header:
            for verb in self._verbs.values():
                if verb.call == header["cancel"]:
                    os.kill(verb.pid, signal.SIGINT)
        elif "call" in header:
            self._start(int(header["id"]), message)

    def _start(self, call: int, message: Frame) -> None:
        """Run the verb in a new process. Its module is imported in this one, so that the next call has it already."""
        try:
            function = find_verb(str(message.header["call"]))
        except MngrError as error:
            self._fail(call, error)
            return
        ours, theirs = os.pipe()
        pid = os.fork()
        if not pid:
            for fd in (self._source, self._target, ours, *self._verbs):
                os.close(fd)
            _run(function, call, message, self._settings, theirs)
        os.close(theirs)
        self._verbs[ours] = _Verb(call, pid, ours)

    def _forward(self, verb: _Verb) -> None:
        data = os.read(verb.pipe, 1 << 16)
        for frame in verb.reader.feed(data):
            verb.answered |= bool(frame.header.keys() & {"answer", "error", "interrupted"})
            self._send(frame.header, frame.body)
        if data:
            return
        del self._verbs[verb.pipe]
        os.close(verb.pipe)
        _, status = os.waitpid(verb.pid, 0)
        if not verb.answered:
            code = os.waitstatus_to_exitcode(status)
            self._fail(verb.call, MngrError(f"the process of the verb ended without an answer ({code})", exit_code=BUG))

    def _fail(self, call: int | None, error: MngrError) -> None:
        encoder = Encoder()
        self._send({"id": call, "error": encoder.encode(error)}, bytes(encoder.body))

    def _send(self, header: Any, body: bytes = b"") -> None:
        self._out += pack(header, body)
        self._flush()

    def _flush(self) -> None:
        try:
            while self._out:
                del self._out[: os.write(self._target, self._out[: 1 << 16])]
        except BlockingIOError:
            pass
        except OSError:
            self._open = False
            self._out.clear()

    def _end_verbs(self) -> None:
        """Interrupt the verbs that run, and give them time to undo what they had begun."""
        for verb in self._verbs.values():
            os.close(verb.pipe)
            os.kill(verb.pid, signal.SIGTERM)
        end = time.monotonic() + _END_SECONDS
        left = {verb.pid for verb in self._verbs.values()}
        while left and time.monotonic() < end:
            left -= {pid for pid in left if os.waitpid(pid, os.WNOHANG)[0]}
            select.select([], [], [], 0.01)


def _spent(pid: int) -> float:
    """The time of the processor that a process, its descendants and their ended children had so far; where the system
    does not tell, the time that went by."""
    if not os.path.isdir("/proc/self"):
        return time.monotonic()
    from mngr.system.process_table import descendants

    ticks = 0
    for one in descendants(pid):
        try:
            with open(f"/proc/{one}/stat", "rb") as file:
                ticks += sum(map(int, file.read().rpartition(b")")[2].split()[11:15]))
        except OSError:
            continue  # it has ended; its parent has its time now
    return ticks


def find_verb(name: str) -> Callable[..., Any]:
    """A function that a module of `mngr.actions` defines, by its module and name."""
    module, _, word = name.partition(":")
    if module.split(".")[:2] != ["mngr", "actions"] or not word.isidentifier() or word.startswith("_"):
        raise MngrError(f"`{name}` is not a verb")
    import importlib

    try:
        found = getattr(importlib.import_module(module), word)
    except (ImportError, AttributeError) as error:
        raise MngrError(f"`{name}` is not a verb of this version: {error}") from None
    if not callable(found) or getattr(found, "__module__", "") != module:
        raise MngrError(f"`{name}` is not a verb")
    return found  # type: ignore[no-any-return]


def _run(function: Callable[..., Any], call: int, message: Frame, settings: dict[str, Any], pipe: int) -> NoReturn:
    """The process of one verb. Does not return."""
    code = 0
    try:
        interrupts.install()
        sender = _Sender(call, pipe)
        try:
            decoder = Decoder(message.body, sender.function)
            args, options = decoder.decode(message.header["args"]), decoder.decode(message.header["options"])
            result = function(_site(settings), *args, **options)
            if isinstance(result, Iterator):
                sender.send("stream", True)
                for item in result:
                    sender.send("item", item)
                result = None
            sender.send("answer", result)
        except MngrError as error:
            sender.send("error", error)
        except OSError as error:
            from mngr.system import files

            sender.send("error", files.disk_error(error) or _bug())
        except (KeyboardInterrupt, interrupts.Terminated):
            sender.send("interrupted", True)
        except BaseException:  # noqa: BLE001 (told to the near end)
            sender.send("error", _bug())
    except BaseException:  # noqa: BLE001 (the stream is gone, or a second signal came)
        code = 1
    os._exit(code)


class _Sender:
    def __init__(self, call: int, pipe: int) -> None:
        self._call, self._pipe = call, pipe

    def send(self, kind: str, value: object) -> None:
        encoder = Encoder()
        encoded = encoder.encode(value)
        left = memoryview(pack({"id": self._call, kind: encoded}, bytes(encoder.body)))
        while left:
            left = left[os.write(self._pipe, left) :]

    def function(self, number: int) -> Callable[..., None]:
        """What stands for a function of the near end. It is called there, and nothing comes back."""
        return lambda *args: self.send("called", [number, list(args)])


def _site(settings: dict[str, Any]) -> Site:
    from mngr.actions.site import Site
    from mngr.settings.layers import Settings
    from mngr.settings.schema import Layer, as_key

    layer = Layer("settings", {as_key(key): value for key, value in settings.items()})
    return Site(cwd=os.path.expanduser("~"), settings=Settings([layer]))


def _bug() -> MngrError:
    import traceback

    kind, _, _ = sys.exc_info()
    return MngrError(
        f"a bug in mngr, on the agent's host ({kind.__name__ if kind else ''})",
        details=traceback.format_exc(),
        exit_code=BUG,
    )
