"""The directory from which every Python that a test starts gets parts of the probe."""

from __future__ import annotations

import json
import os
import shutil

_HERE = os.path.dirname(os.path.abspath(__file__))
GIVEN = "given.json"


def prepare(place: str, part: str, given: object = None) -> None:
    """Fill a directory that is to be the first on `PYTHONPATH`. `given` is what the part finds beside it."""
    os.makedirs(place)
    for name, target in ((f"{part}.py", f"{part}.py"), ("mngr_child.py", "sitecustomize.py")):
        shutil.copyfile(os.path.join(_HERE, name), os.path.join(place, target))
    with open(os.path.join(place, GIVEN), "w", encoding="utf-8") as file:
        json.dump(given, file)


def follow(place: str, part: str, given: object) -> None:
    """Do the same for what this process will start."""
    prepare(place, part, given)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (place, os.environ.get("PYTHONPATH", ""))))
