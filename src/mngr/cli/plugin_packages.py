"""Install and uninstall packages where mngr itself runs, with pip or uv. Knows nothing about settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from mngr import process
from mngr.errors import MngrError, UsageError

SECONDS = 900.0


def install(requirements: Sequence[str]) -> None:
    """Install them in one go. On failure pip leaves what was installed before."""
    _run(["install", *requirements], "cannot install")


def uninstall(packages: Sequence[str]) -> None:
    _run(["uninstall", *packages], "cannot uninstall")


def requirements(names: Sequence[str], paths: Sequence[str], urls: Sequence[str]) -> list[str]:
    """The words that pip takes for them: directories are installed in place, so that changes to them count."""
    for name in names:
        if name.startswith("-") or not name.strip():
            raise UsageError(f"invalid package name {name!r}", hint="for example `mngr plugin add mngr-hello`")
    words = list(names)
    for path in paths:
        if not os.path.isfile(os.path.join(path, "pyproject.toml")):
            raise UsageError(f"`{path}` is not a Python package: it has no `pyproject.toml`")
        words += ["-e", os.path.abspath(path)]
    return [*words, *(url if url.startswith("git+") else f"git+{url}" for url in urls)]


def package_of(path: str) -> str:
    """The name that the package in a directory gives itself."""
    import tomllib

    try:
        with open(os.path.join(path, "pyproject.toml"), "rb") as file:
            return str(tomllib.load(file)["project"]["name"]).replace("_", "-").lower()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cannot read the name of the package in `{path}`: {error}") from None


def _run(words: list[str], failed: str) -> None:
    shown = [word for word in words[1:] if word != "-e"]
    done = process.run([*_installer(words[0]), *words[1:]], timeout=SECONDS)
    if done.exit_code == 0:
        return
    text = done.error_text or done.text
    hint = ""
    if "externally-managed-environment" in text or "externally managed" in text:
        verb = "inject" if words[0] == "install" else "uninject"
        hint = f"this Python belongs to the system: use mngr from pipx or uv, then `pipx {verb} mngr {shown[0]}`"
    raise MngrError(f"{failed} {', '.join(f'`{word}`' for word in shown)}", details=text, hint=hint)


def _installer(verb: str) -> list[str]:
    """pip of this Python, or uv working on it."""
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
        return [sys.executable, "-m", "pip", verb, *quiet, *(["--yes"] if verb == "uninstall" else [])]
    if process.find_program("uv") is not None:
        return ["uv", "pip", verb, "--quiet", "--python", sys.executable]
    raise MngrError(
        f"cannot {verb} packages: neither pip nor uv is there for `{sys.executable}`",
        hint=f"`{sys.executable} -m ensurepip` installs pip",
    )
