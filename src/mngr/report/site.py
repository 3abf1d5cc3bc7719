"""A site of one shell: the page that is the same for all, its scripts and styles, and the documents of a source."""

from __future__ import annotations

import os
import time
from importlib import resources
from typing import Any, NamedTuple

from mngr import __version__
from mngr.errors import MngrError
from mngr.report import player
from mngr.report.source import Source, script
from mngr.system import files, inside, tree_removal

_SHELL = ("shell.js", "ansi.js", "table.js", "recordings.js")
_MARK = ".mngr-report"
# Only files of the site itself, and WebAssembly for the player. `'self'` is what lies beside the page, on disk too.
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src {connect}; base-uri 'none'; form-action 'none'"
)


class ReportSite(NamedTuple):
    """All of a site but its documents: `page` is index.html, `assets` are beside it under `assets/`."""

    page: bytes
    assets: dict[str, bytes]
    facts: dict[str, Any]
    policy: str


def make(source: Source, *, live: bool) -> ReportSite:
    found = player.find()
    scripts = (*_SHELL, *source.scripts, "start.js")
    assets = {name: _static(name) for name in (*scripts, "style.css", "icon.svg")}
    assets.update(found.files if found else {})
    policy = _POLICY.format(connect="'self'" if live else "'none'")
    lines = ['<script src="assets/shell.js"></script>', '<script src="data/site.js"></script>']
    lines += [f'<script src="assets/{name}"></script>' for name in scripts[1:]]
    text = _static("index.html").decode().replace("{{policy}}", policy).replace("{{scripts}}", "\n".join(lines))
    facts = {
        "title": source.title,
        "home": source.home,
        "live": live,
        "version": __version__,
        "made_at": time.time(),
        "player": found.origin if found else None,
        "playerHint": player.HINT,
    }
    return ReportSite(text.encode(), assets, facts, policy)


def write(source: Source, output: str | None, usual: tuple[str, str]) -> str:
    """Write the site as files and return the path of its index.html. An earlier report there is replaced as a whole;
    a directory with anything else in it is refused and left as it is. A failure leaves what was there before. Without
    an output it goes to the `usual` path below a directory, where no link may lead out of that."""
    output = output or os.path.join(usual[0], inside.resolve(*usual))
    target = os.path.realpath(output)
    _check_free(target)
    draft = f"{target}.{os.getpid()}.draft"
    tree_removal.remove_tree(draft)
    try:
        _write_all(source, draft)
        tree_removal.remove_tree(target)
        os.rename(draft, target)
    except BaseException:
        tree_removal.remove_tree(draft)
        raise
    return os.path.join(os.path.abspath(output), "index.html")


def _write_all(source: Source, directory: str) -> None:
    site = make(source, live=False)
    files.make_private_dir(os.path.join(directory, "assets"))
    for name, data in site.assets.items():
        files.write_new(os.path.join(directory, "assets", name), data)
    _write_document(directory, "site", site.facts)
    for id in source.ids():
        value = source.load(id)
        if value is not None:
            _write_document(directory, id, value)
    files.write_new(os.path.join(directory, _MARK), b"made by `mngr`; replaced as a whole by the next report\n")
    files.write_new(os.path.join(directory, "index.html"), site.page)


def _write_document(directory: str, id: str, value: Any) -> None:
    path = os.path.join(directory, "data", f"{id}.js")
    files.make_private_dir(os.path.dirname(path))
    files.write_new(path, script(id, value))


def _check_free(output: str) -> None:
    if os.path.isdir(output) and os.listdir(output) and not os.path.isfile(os.path.join(output, _MARK)):
        raise MngrError(f"`{output}` holds other files", hint="name a new or empty directory with `--output`")
    if os.path.lexists(output) and not os.path.isdir(output):
        raise MngrError(f"`{output}` is a file", hint="name a directory with `--output`")


def _static(name: str) -> bytes:
    return (resources.files("mngr.report") / "static" / name).read_bytes()
