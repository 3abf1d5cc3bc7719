"""The way of the verbs through our code: how many files each enters, and how often it changes from one to another; and
how many of our functions only forward a call. `python bench/path.py list` also prints each change of file of `list`.

A profile hook in the process of the verb notes every call of a Python function of ours, the body of a module included.
A file is entered when one of its functions runs; loading it alone does not count. Two calls in a row in different files
are a change of file."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # as a script it would be this folder

from tests.support.user import User  # noqa: E402

SOURCE = ROOT / "src" / "mngr"
VERBS = {
    "create": ("create", "foo", "--no-connect", "--command", "cat"),
    "list": ("list",),
    "message": ("message", "foo", "-m", "hello"),
    "exec": ("exec", "foo", "true"),
    "pull": ("pull", "foo"),
    "destroy": ("destroy", "foo", "--force"),
}
_PROGRAM = """
import json, sys
root, entered, calls, way = sys.argv[2], set(), 0, []
def hook(frame, event, arg):
    global calls
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(root) or code.co_filename.endswith("/named_tuples.py"):
        return  # making a named tuple is no step of the way
    calls += 1
    name = code.co_filename[len(root):]
    if code.co_flags & 2:  # a function: the bodies of modules and classes have no fast locals
        entered.add(name)
    if not way or way[-1][0] != name:
        way.append([name, code.co_qualname])
sys.setprofile(hook)
from mngr.cli.main import main
code = main(sys.argv[3:])
sys.setprofile(None)
loaded = sum(str(getattr(module, "__file__", "")).startswith(root) for module in list(sys.modules.values()))
with open(sys.argv[1], "w") as file:
    json.dump([sorted(entered), loaded, calls, way], file)
sys.exit(code)
"""


class Way(NamedTuple):
    entered: list[str]
    loaded: int
    calls: int
    changes: list[list[str]]


def ways() -> dict[str, Way]:
    """The way of each verb on a local agent of type `command`, in a world of its own."""
    user, found = User(), {}
    try:
        for verb, words in VERBS.items():
            answer = user.root / "way"
            user.run([sys.executable, "-c", _PROGRAM, str(answer), f"{SOURCE}/", *words]).ok()
            found[verb] = Way(*json.loads(answer.read_text()))
    finally:
        user.close()
    return found


def forwarders() -> list[str]:
    """The functions whose only statement passes nothing but their own arguments, and constants, to another one."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and _forwards(node):
                found.append(f"{path.relative_to(SOURCE)}: {node.name}")
    return found


def _forwards(function: ast.FunctionDef) -> bool:
    body = [one for one in function.body if not isinstance(one, ast.Import | ast.ImportFrom)]
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    call = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return | ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    names = {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)} - {"self"}
    passed = [one.id for one in given if isinstance(one, ast.Name)]
    return names <= set(passed) and all(isinstance(one, ast.Name | ast.Constant | ast.Attribute) for one in given)


def main() -> None:
    print(f"{'verb':10}{'files':>7}{'loaded':>8}{'changes':>9}{'calls':>8}")
    for verb, way in ways().items():
        print(f"{verb:10}{len(way.entered):7}{way.loaded:8}{len(way.changes):9}{way.calls:8}")
        for name, function in way.changes if verb in sys.argv[1:] else ():
            print(f"    {name}: {function}")
    found = forwarders()
    print(f"{len(found)} functions only forward a call")
    if "forwarders" in sys.argv[1:]:
        print("\n".join(found))


if __name__ == "__main__":
    main()
