"""Writes the man pages into the wheel, from the help of the commands: they are not in git."""

import os
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface):  # type: ignore[type-arg]  # the configuration class is hatchling's own
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the pages below `build/man`. An editable install has none."""
        if version == "editable":
            return
        sys.path[:0] = [os.path.join(self.root, "src"), self.root]
        from scripts import reference

        folder = os.path.join(self.root, "build", "man")
        reference.write_files(folder, reference.man_pages())
        build_data["shared_data"][folder] = "share/man/man1"
