"""How large the artifacts of tests may be, and what is left out of those that are larger."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mngr import files
from mngr.e2e import artifacts
from mngr.e2e.transcript import Transcript

# Of one test, and of all tests of one pytest process. Transcripts have limits of their own.
TEST_BYTES = 32_000_000
RUN_BYTES = 512_000_000
_KEPT = frozenset(
    (
        artifacts.TEST_FILE,
        artifacts.RESULT_FILE,
        artifacts.ENVIRONMENT_FILE,
        artifacts.REMOVE_SCRIPT,
        artifacts.TRANSCRIPT_TEXT,
        artifacts.TRANSCRIPT_EVENTS,
    )
)


def trim(directory: str, room: int) -> tuple[list[str], int]:
    """Remove recordings and files that the test put there, largest first, until the directory fits into `room` bytes.
    Each is named in the transcript. Returns their names and the size of what stays."""
    found = list(_files(directory))
    total = sum(size for _, size in found)
    left_out: list[str] = []
    for name, size in sorted(found, key=lambda file: (-file[1], file[0])):
        if total <= room:
            break
        if name in _KEPT or name.endswith(".cast.json") or name.startswith(("tutorial_block", artifacts.EARLIER)):
            continue
        files.remove_tree(os.path.join(directory, name))
        files.remove_tree(os.path.join(directory, f"{name}.json"))
        total -= size
        left_out.append(name)
        transcript = Transcript(directory)  # that of the test is closed by now
        transcript.note(f"left out: {name} ({size / 1e6:.1f} MB), since the size of artifacts is limited")
        transcript.close()
    return left_out, total


def _files(directory: str) -> Iterator[tuple[str, int]]:
    """All files below a directory, named from there, with their sizes."""
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            try:
                yield os.path.relpath(path, directory), os.lstat(path).st_size
            except FileNotFoundError:  # a process that outlived the test may be at work
                continue
