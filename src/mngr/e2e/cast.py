"""One recording of a test: an asciicast v2 file and, beside it, `<name>.cast.json` that says what and when it is."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from mngr.agent import recorder
from mngr.system import files

SCHEMA = 1
MAX_BYTES = 8_000_000
_NOTE = f"[the recording ends here, at {MAX_BYTES // 1_000_000} MB; the program went on]"


class Recording:
    """A file that grows as the program writes, so that a killed test leaves all but the last moment. A disk that is
    full ends the recording, never the program: `failure` then says so."""

    def __init__(
        self,
        path: str,
        *,
        kind: str,
        title: str,
        number: int | None,
        size: tuple[int, int],
        secrets: Sequence[str] = (),
    ) -> None:
        """`path` ends in `.cast`; if there is a file of that name it is `name-2.cast`, and so on. `number` is that of
        the test's command it belongs to."""
        self.failure = ""
        self.path, self._fd = _new_file(path)
        self._masked = recorder.SecretFilter(list(secrets))
        self._cast = recorder.Cast(self._fd, title, size, MAX_BYTES, _NOTE)
        self._sidecar = {
            "schema": SCHEMA,
            "recording": os.path.basename(self.path),
            "kind": kind,
            "number": number,
            "title": title,
            "started_at": round(time.time() - self._cast.now(), 3),
            "columns": size[0],
            "rows": size[1],
            "ended_at": None,
            "exit_code": None,
        }
        self._write_sidecar()

    def output(self, text: str) -> None:
        """What comes after `close` is not recorded."""
        if self._fd >= 0:
            self._add(self._masked.feed(text, self._cast.now()))

    def resize(self, columns: int, rows: int) -> None:
        if self._fd >= 0 and not self.failure:
            try:
                self._cast.resize((columns, rows))
            except OSError as error:
                self.failure = str(error)

    def close(self, exit_code: int | None) -> None:
        """Twice is safe; the first one counts."""
        if self._fd < 0:
            return
        self._add(self._masked.end())
        os.close(self._fd)
        self._fd = -1
        self._sidecar.update(ended_at=round(time.time(), 3), exit_code=exit_code)
        try:
            self._write_sidecar()
        except OSError as error:
            self.failure = str(error)

    def remove(self) -> None:
        """As if it had never been: there was nothing to record."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        for path in (self.path, f"{self.path}.json"):
            os.unlink(path)

    def _add(self, pieces: list[tuple[float, str]]) -> None:
        try:
            for at, piece in () if self.failure else pieces:
                self._cast.event("o", piece, at)
        except OSError as error:
            self.failure = str(error)

    def _write_sidecar(self) -> None:
        files.write_atomic(f"{self.path}.json", files.json_bytes(self._sidecar))


def _new_file(path: str) -> tuple[str, int]:
    number = 1
    while True:
        free = path if number == 1 else f"{path.removesuffix('.cast')}-{number}.cast"
        try:
            return free, os.open(free, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            number += 1
