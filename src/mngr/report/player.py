"""The asciinema player, from the package of the extra `pages`. Nothing of it is in this tree."""

from __future__ import annotations

from importlib import metadata, resources
from typing import NamedTuple

# Of the packages on PyPI with the player in them, this one brings the fewest others: the other needs all of Sphinx.
PACKAGE = "mkdocs-asciinema-player"
MODULE = "mkdocs_asciinema_player"
FILES = ("asciinema-player.min.js", "asciinema-player.css")
HINT = "pip install 'mngr[pages]'"


class PlayerFiles(NamedTuple):
    origin: str
    files: dict[str, bytes]


def find() -> PlayerFiles | None:
    """The player's files and the package they come from; None when it is not installed."""
    try:
        assets = resources.files(MODULE) / "assets"
        return PlayerFiles(
            f"{PACKAGE} {metadata.version(PACKAGE)}", {name: (assets / name).read_bytes() for name in FILES}
        )
    except (ImportError, FileNotFoundError):  # PackageNotFoundError is an ImportError
        return None
