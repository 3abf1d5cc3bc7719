"""Where the real agent programs are that tests run. One that is missing is a skip that says so by name."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "opencode": "opencode-ai",
    "pi": "@earendil-works/pi-coding-agent",
}
# The programs themselves, below `node_modules`: what npm puts into `.bin` may be a wrapper around them.
_PLACES = {
    "claude": ("@anthropic-ai/claude-code-linux-*/claude", "@anthropic-ai/claude-code-darwin-*/claude"),
    "codex": ("@openai/codex-*/vendor/*/bin/codex", "@openai/codex-*/vendor/*/codex/codex"),
    "opencode": ("opencode-linux-*/bin/opencode", "opencode-darwin-*/bin/opencode"),
    "pi": (".bin/pi",),
}


def program(name: str) -> str:
    """The absolute path of the program. Skips the test, or the module, where it is not installed."""
    for place in _node_modules():
        for pattern in _PLACES[name]:
            for path in sorted(place.glob(pattern), key=lambda path: (len(str(path)), path)):
                if os.access(path, os.X_OK):
                    return str(path)
    pytest.skip(
        f"`{name}` is not installed: `scripts/setup --test` does it, or name a `node_modules` with {PACKAGES[name]} "
        "in $MNGR_TEST_PROGRAMS",
        allow_module_level=True,
    )


def with_program(path: str, environ: dict[str, str], folder: Path) -> None:
    """Put the program on PATH, by its own name and alone. Its temporary files are beside it: programs leave libraries,
    sockets and, where Codex is killed in its sandbox, even an empty `.git` there. That sandbox hides `/dev/shm` but for
    this directory, so it has to hold all that the user has."""
    folder.mkdir(exist_ok=True)
    environ["TMPDIR"] = str(folder.parent)
    name = next(name for name in _PLACES if Path(path).name.startswith(name))
    (folder / name).symlink_to(path)
    node = shutil.which("node")
    rest = [str(Path(node).parent)] if node else []
    environ["PATH"] = os.pathsep.join([str(folder), str(Path(sys.executable).parent), *rest, environ["PATH"]])


def _node_modules() -> Iterator[Path]:
    named = os.environ.get("MNGR_TEST_PROGRAMS")
    if named:
        yield from map(Path, named.split(os.pathsep))
    yield REPOSITORY / ".programs" / "node_modules"
