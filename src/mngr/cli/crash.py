"""The crash file: what a bug report needs, and no secret. Never touches the state directory of another program."""

import os
from collections.abc import Mapping

_MASK = "***"
# Options whose value may hold a secret after the first `=`.
_SECRET_OPTIONS = ("--env", "-S", "--setting")
_KEY_SHAPES = (
    r"sk-[A-Za-z0-9_-]{16,}",
    r"gh[opsur]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"xox[abeprs]-[A-Za-z0-9-]{10,}",
    r"AKIA[A-Z0-9]{16}",
    r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+",
)


def save(error: BaseException, words: list[str], environ: Mapping[str, str]) -> str | None:
    """Write the crash file and return its path, or None when there is no place for it."""
    try:
        from mngr.config import host_dir
        from mngr.files import make_private_dir, write_atomic
        from mngr.hosts.local import LocalHost

        LocalHost(host_dir(environ)).is_ours()
        folder = os.path.join(host_dir(environ), "crashes")
        make_private_dir(folder)
        path = os.path.join(folder, _file_name())
        write_atomic(path, crash_text(error, words, environ).encode("utf-8", "backslashreplace"))
    except Exception:  # noqa: BLE001 (a second error must not hide the first)
        return None
    return path


def crash_text(error: BaseException, words: list[str], environ: Mapping[str, str]) -> str:
    import platform
    import traceback

    from mngr import __version__
    from mngr.process import join

    text = "\n".join(
        [
            f"mngr {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: mngr {join(masked_words(words))}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    return _without_keys(_without_passed(text, words, environ))


def masked_words(words: list[str]) -> list[str]:
    """The command line with the values of `--env` and `-S` hidden, their names kept."""
    masked = []
    value_follows = False
    for word in words:
        option, equals, value = word.partition("=")
        if value_follows:
            masked.append(_masked_value(word))
            value_follows = False
        elif word in _SECRET_OPTIONS:
            masked.append(word)
            value_follows = True
        elif equals and option in _SECRET_OPTIONS:
            masked.append(f"{option}={_masked_value(value)}")
        elif word.startswith("-S"):
            masked.append(f"-S{_masked_value(word[2:])}")
        else:
            masked.append(word)
    return masked


def _masked_value(text: str) -> str:
    name, equals, _ = text.partition("=")
    return f"{name}={_MASK}" if equals else _MASK


def _without_passed(text: str, words: list[str], environ: Mapping[str, str]) -> str:
    """Hide what `--pass-env NAME` would hand over, and what `--env` sets, wherever it shows up."""
    secrets = []
    for at, word in enumerate(words):
        option, equals, value = word.partition("=")
        value = value if equals else "".join(words[at + 1 : at + 2])
        if option == "--pass-env":
            secrets.append(environ.get(value, ""))
        elif option in _SECRET_OPTIONS:
            secrets.append(value.partition("=")[2])
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= 4:  # shorter ones would blank out ordinary words
            text = text.replace(secret, _MASK)
    return text


def _without_keys(text: str) -> str:
    import re

    return re.sub("|".join(rf"\b{shape}" for shape in _KEY_SHAPES), _MASK, text)


def _file_name() -> str:
    import time

    return time.strftime("%Y-%m-%dT%H-%M-%S") + f"-{os.getpid()}.txt"
