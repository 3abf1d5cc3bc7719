"""One test that uses `e2e`, from its setup to its result: environment, session, reports of its phases, clean-up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from mngr.e2e import artifacts, expectation
from mngr.e2e.environment import Environment
from mngr.e2e.session import E2eSession
from mngr.e2e.transcript import Transcript
from mngr.signature import signature
from mngr.system import tree_removal

_SHOWN_LINES = 200
_SHOWN_CHARACTERS = 20_000
_LONGEST_TEXT = 100_000
_LARGEST_BYTES = 32_000_000  # of the artifacts of one test; transcripts have limits of their own
_KEPT = (
    *(artifacts.TEST_FILE, artifacts.RESULT_FILE, artifacts.TRANSCRIPT_TEXT, artifacts.TRANSCRIPT_EVENTS),
    *(artifacts.ENVIRONMENT_FILE, artifacts.REMOVE_SCRIPT, "tutorial_block"),
)


class Trial:
    """`close` ends the session; `finish` writes the result and removes what is not kept. Without a target its artifacts
    are in the environment and go with it."""

    def __init__(
        self,
        target: str,
        details: Mapping[str, Any],
        *,
        keep_artifacts: str,
        keep_environment: str,
        watch: Callable[[str], None],
    ) -> None:
        self._details = details
        self._keep_artifacts = keep_artifacts
        self._keep_environment = keep_environment
        self._outcome = "passed"
        self._phases: dict[str, float] = {}
        self._failure: dict[str, str] | None = None
        self._closed = False
        self._environment = Environment(os.environ, watch if keep_environment == "no" else None)
        self.root = str(self._environment.root)
        try:
            self.directory = target or os.path.join(self.root, "artifacts")
            os.makedirs(self.directory, exist_ok=True)
            if keep_environment != "no":
                self._environment.write_remove_script(self.directory)
            self.session = E2eSession(self._environment, self.directory)
        except BaseException:
            self._environment.clean()
            raise
        expectation.listen(self.session)

    @property
    def kept(self) -> bool:
        """Whether the environment stays, as far as is known now."""
        return self._keep_environment == "yes" or (self._keep_environment == "on-failure" and self._failed)

    @property
    def _failed(self) -> bool:
        return self._outcome in ("failed", "error")

    def close(self) -> None:
        """End the session and what runs in it. Its directories stay until it is known how the test ended."""
        if not self._closed:
            self._closed = True
            expectation.stop_listening(self.session)
            self.session.close(keep_running=self.kept)

    def see(self, report: pytest.TestReport, excinfo: pytest.ExceptionInfo[BaseException] | None) -> None:
        """Take note of one phase; a failed one shows the transcript."""
        self._phases[report.when] = round(report.duration, 3)
        outcome = _outcome(report)
        if outcome != "passed" and not self._failed:
            self._outcome = outcome
        if outcome not in ("failed", "error"):
            return
        if self._failure is None:
            self._failure = _failure(report, excinfo, str(self._details["file"]), str(self._details["name"]))
        relative = os.path.relpath(self.directory)
        place = self.directory if relative.startswith("..") else relative
        report.sections.append((f"e2e transcript ({place})", _shortened(self._transcript())))

    def finish(self) -> str:
        """Write the result, remove what is not kept; the place of the environment if that stays, else nothing."""
        self.close()
        begun, now = self._details["started_at"], round(time.time(), 3)
        result = {
            "schema": artifacts.SCHEMA,
            "outcome": self._outcome,
            "phases": self._phases,
            "failure": self._failure,
            "started_at": begun,
            "ended_at": now,
            "duration": round(now - begun, 3),
            "left_out": _trim(self.directory),
        }
        artifacts.write_json(os.path.join(self.directory, artifacts.RESULT_FILE), self.session.masked(result))
        kept = self.remove_environment()
        if self._keep_artifacts == "on-failure" and not self._failed and not kept:
            tree_removal.remove_tree(self.directory)
        return kept

    def remove_environment(self) -> str:
        """Unless it is to be kept, or cannot be removed: there may be files of another user in it. Its place then."""
        if self.kept:
            return self.root
        try:
            self._environment.clean()
        except OSError:
            self._environment.write_remove_script(self.directory)
            return self.root
        for name in (artifacts.ENVIRONMENT_FILE, artifacts.REMOVE_SCRIPT):
            tree_removal.remove_tree(os.path.join(self.directory, name))
        return ""

    def _transcript(self) -> str:
        try:
            return self.session.transcript()
        except OSError as error:
            return f"(the transcript cannot be read: {error})"


def _trim(directory: str) -> list[str]:
    """Remove recordings and files that the test put there, largest first, until the rest is not too large. Their names,
    each of which is in the transcript too."""
    sizes: dict[str, int] = {}
    for folder, _, names in os.walk(directory):
        for path in (os.path.join(folder, name) for name in names):
            with suppress(FileNotFoundError):  # a process that outlived the test may be at work
                sizes[os.path.relpath(path, directory)] = os.lstat(path).st_size
    left_out: list[str] = []
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        if sum(sizes.values()) <= _LARGEST_BYTES:
            break
        if name.startswith(_KEPT) or name.endswith(".cast.json"):
            continue
        tree_removal.remove_tree(os.path.join(directory, name))
        tree_removal.remove_tree(os.path.join(directory, f"{name}.json"))
        transcript = Transcript(directory)  # that of the test is closed by now
        transcript.note(f"left out: {name} ({sizes.pop(name) / 1e6:.1f} MB), since the size of artifacts is limited")
        transcript.close()
        left_out.append(name)
    return left_out


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "xpassed" if report.passed else "xfailed"
    if report.failed:
        return "failed" if report.when == "call" else "error"
    return report.outcome


def _failure(
    report: pytest.TestReport, excinfo: pytest.ExceptionInfo[BaseException] | None, file: str, name: str
) -> dict[str, str]:
    """Its signature names the innermost function of the test's file, if that is not the test itself: tests that fail
    alike have one signature."""
    text = report.longreprtext
    message, where, words = text.strip(), "Failed", signature(text)
    if excinfo is not None:  # a strict xfail that passed has none
        message, where, words = excinfo.exconly()[:_LONGEST_TEXT], excinfo.typename, signature(str(excinfo.value))
        function = next((e.name for e in reversed(excinfo.traceback) if str(e.path).endswith(file)), "")
        if function not in ("", name.partition("[")[0]):
            where += f" in {function}"
    found = f"{where}: {words}" if words else where
    return {"phase": report.when, "message": message, "signature": found, "text": text[-_LONGEST_TEXT:]}


def _shortened(text: str) -> str:
    """The end of it."""
    text = text.rstrip("\n")
    shown = "\n".join(text[-_SHOWN_CHARACTERS:].split("\n")[-_SHOWN_LINES:])
    left_out = len(text) - len(shown)
    return f"[{left_out:,} characters before these are left out]\n{shown}" if left_out else shown
