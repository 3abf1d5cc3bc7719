"""The way of a verb through our files: how many it enters, and how often it changes from one to another.

    python bench/path.py              # a table
    python bench/path.py --calls list # each change of file of one verb, in order

A profile hook in the process of the verb notes every call of a Python function of ours, the body of a module included.
Two calls in a row in different files are a change of file."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.support.user import User

PROGRAM = """
import json, os, sys
root = sys.argv[2]
sys.path.insert(0, os.path.dirname(root[:-1]))
files, entered, changes, calls, last, order = {}, {}, 0, 0, None, []
def hook(frame, event, arg):
    global changes, calls, last
    if event != "call":
        return
    code = frame.f_code
    name = code.co_filename
    if not name.startswith(root):
        return
    calls += 1
    files[name] = files.get(name, 0) + 1
    if not code.co_qualname.startswith("<module>") and code.co_flags & 2: entered[name] = entered.get(name, 0) + 1
    if name != last:
        changes += 1
        last = name
        order.append([name[len(root):], code.co_qualname])
sys.setprofile(hook)
from mngr.cli.main import main
code = main(sys.argv[3:])
sys.setprofile(None)
with open(sys.argv[1], "w") as file:
    json.dump({"files": files, "entered": entered, "changes": changes, "calls": calls, "order": order}, file)
sys.exit(code)
"""


class Way(NamedTuple):
    files: dict[str, int]
    entered: dict[str, int]
    changes: int
    calls: int
    order: list[list[str]]


def measure(user, root, *words):
    with tempfile.NamedTemporaryFile() as answer:
        user.run([sys.executable, "-c", PROGRAM, answer.name, root, *words]).ok()
        return Way(**json.loads(Path(answer.name).read_text()))


def ways(root):
    user = User()
    try:
        found = {}

        def go(name, *words):
            found[name] = measure(user, root, *words)

        go("create", "create", "foo", "--no-connect", "--command", "cat")
        go("list", "list")
        go("message", "message", "foo", "-m", "hello")
        go("exec", "exec", "foo", "true")
        go("capture", "capture", "foo")
        go("pull", "pull", "foo")
        go("merge", "merge", "foo")
        go("stop", "stop", "foo")
        go("destroy", "destroy", "foo", "--force")
        return found
    finally:
        user.close()


if __name__ == "__main__":
    import os

    import mngr

    root = os.environ.get("ROOT") or str(Path(mngr.__file__).parent) + "/"
    for name, way in ways(root).items():
        body = len(way.files)
        inits = sum(f.endswith("__init__.py") for f in way.files)
        print(
            f"{name:8} files {body:3} ({inits} init)"
            f" entered {len(way.entered)} changes {way.changes:4} calls {way.calls}"
        )
        if name in sys.argv[1:]:
            for a, b in way.order:
                print("   ", a, b)
