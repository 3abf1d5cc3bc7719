"""The crash file: what a bug report needs, and no secret. Never touches the state directory of another program."""

import os
import platform
import time
import traceback
from collections.abc import Mapping

from mngr import __version__
from mngr.cli.parser.scan import option_values
from mngr.secrets import MASK, mask
from mngr.system.process import join

# Options whose value may hold a secret after the first `=`.
_SECRET_OPTIONS = ("--env", "-S", "--setting")


def save(error: BaseException, words: list[str], environ: Mapping[str, str]) -> str | None:
    """Write the crash file and return its path, or None when there is no place for it."""
    try:
        from mngr.settings.layers import host_dir
        from mngr.system.files import make_private_dir, write_atomic
        from mngr.system.state_dir import StateDir

        StateDir(host_dir(environ)).is_ours()
        folder = os.path.join(host_dir(environ), "crashes")
        make_private_dir(folder)
        path = os.path.join(folder, f"{time.strftime('%Y-%m-%dT%H-%M-%S')}-{os.getpid()}.txt")
        write_atomic(path, crash_text(error, words, environ).encode("utf-8", "backslashreplace"))
    except Exception:  # noqa: BLE001 (a second error must not hide the first)
        return None
    return path


def crash_text(error: BaseException, words: list[str], environ: Mapping[str, str]) -> str:
    text = "\n".join(
        [
            f"mngr {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: mngr {join(masked_words(words))}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    # A crash file is sent to others, so shorter values are hidden too.
    return mask(text, _secrets(words, environ), shortest=4)


def masked_words(words: list[str]) -> list[str]:
    """The command line with the values of `--env` and `-S` hidden, their names kept."""
    for text in filter(None, option_values(words, *_SECRET_OPTIONS)):
        name, equals, _ = text.partition("=")
        hidden = f"{name}={MASK}" if equals else MASK
        words = [word.removesuffix(text) + hidden if word.endswith(text) else word for word in words]
    return words


def _secrets(words: list[str], environ: Mapping[str, str]) -> list[str]:
    """The values that `--pass-env`, `--env-file`, `--env` and `-S` name."""
    passed = [environ.get(name, "") for name in option_values(words, "--pass-env")]
    filed = [value for path in option_values(words, "--env-file") for value in _file_values(path)]
    return [*passed, *filed, *(text.partition("=")[2] for text in option_values(words, *_SECRET_OPTIONS))]


def _file_values(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.partition("=")[2].strip().strip("'\"") for line in file]
    except OSError:
        return []
