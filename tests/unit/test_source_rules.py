"""Rules about our own source that no linter has."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import mngr

ROOT = Path(mngr.__file__).parent


@functools.cache
def trees() -> list[tuple[str, ast.Module]]:
    return [(str(path.relative_to(ROOT)), ast.parse(path.read_text())) for path in sorted(ROOT.rglob("*.py"))]


def test_a_python_that_mngr_starts_looks_for_no_module_in_the_current_directory() -> None:
    """Which is a clone, as a rule, and may hold a `socket.py`. `-I` and `-P` leave it out."""
    found = []
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.List) and node.elts and ast.unparse(node.elts[0]) == "sys.executable":
                options = [part.value for part in node.elts[1:2] if isinstance(part, ast.Constant)]
                if options not in (["-I"], ["-P"]) and "sys.orig_argv" not in ast.unparse(node):
                    found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert not found, found


# Where the directories that an agent or a repository writes are named: nobody else may.
NAMES_THEM = {
    "agent/launch.py",
    "workspace/workspace.py",
    "workspace/plan.py",
    "workspace/work/files.py",
    "workspace/work/measure.py",
    "settings/layers.py",
    "settings/trust.py",
    "mapreduce/run.py",
    "e2e/artifacts.py",
    "e2e/environment.py",  # the home of a test's own user
    "actions/file_copy.py",
    "transfer/file_copy.py",
    "cli/tmr/request.py",
    "tmr/measure/measurer.py",
    "tmr/recipe.py",
    "tmr/judge/steering_files.py",
    "tmr/measure/strength_project.py",
    "tutorial_runs/fill.py",
    "remote/boot.py",  # the state directory, as the next
    "providers/ray/supervisor.py",
    "tmr/measure/probe/mngr_tmr_probe.py",
}

# What opens, makes or moves a file by its path, and follows links on the way.
BY_PATH = {
    *("open", "os.open", "os.mkdir", "os.makedirs", "os.symlink", "os.link", "os.rename", "os.replace", "os.remove"),
    *("os.unlink", "os.rmdir", "os.chmod", "os.utime", "os.truncate", "os.listdir", "os.scandir", "os.walk"),
    *("files.content", "files.read_tail", "files.read_plain", "files.write_atomic", "files.write_new"),
    *("files.append_line", "files.make_private_dir", "make_private_dir", "write_atomic", "content", "json_values.file"),
}

# Modules that read or write in such directories, each with what it opens by path all the same, and why.
DOOR_ONLY = {
    "actions/file_copy.py": {"os.listdir"},  # of a path from `inside.for_programs`
    "actions/clone.py": set(),
    "actions/outcome.py": set(),
    "actions/provision.py": set(),
    "transfer/file_copy.py": set(),
    "agent/launch.py": set(),
    "settings/layers.py": set(),
    "e2e/artifacts.py": {  # the writer, which the tests of that repository run
        *("files.write_atomic", "json_values.file", "os.listdir", "os.makedirs", "os.mkdir", "os.open"),
    },
    "mapreduce/run.py": {  # in the directory of a run, once that is known to be one of this user's
        *("content", "make_private_dir", "open", "os.listdir", "write_atomic"),
    },
    "report/casts.py": set(),
    "report/run_files.py": set(),
    "report/tmr.py": set(),
    "report/tmr_recordings.py": set(),
    "report/tmr_task.py": set(),
    "report/e2e_runs.py": {"os.open", "os.scandir"},  # a lock and times; nothing of it is shown
    "tutorial_runs/fill.py": {"files.write_atomic"},  # the script that the user named
    "tutorial/citations.py": {"os.walk"},  # follows no link
    "tutorial/sources.py": set(),
    "tmr/detect.py": {"os.listdir"},
    "workspace/plan.py": set(),
    "workspace/workspace.py": {  # a directory that was made a moment ago, and git's own list of worktrees
        *("files.content", "files.make_private_dir", "files.write_atomic"),
        *("os.listdir", "os.makedirs", "os.mkdir", "os.rmdir"),
    },
}


def test_paths_below_a_directory_that_others_write_go_through_the_one_door() -> None:
    """See docs/design/026: `system/inside.py` follows no link and reads regular files only."""
    named, opened = set(), []
    for name, tree in trees():
        texts = {id(text) for text in docstrings(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in texts and is_place(node.value):
                named.add(name)
            if name in DOOR_ONLY and isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in BY_PATH - DOOR_ONLY[name] and not any(key.arg == "dir_fd" for key in node.keywords):
                    opened.append(f"{name}:{node.lineno}: {called}")
    assert not opened, f"use `system/inside.py`: {opened}"
    assert named <= NAMES_THEM, "a path below `.mngr` is made elsewhere: take it from one of NAMES_THEM, or add yours"


def docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def is_place(value: object) -> bool:
    """Whether a constant is such a path, and not a sentence about one."""
    return isinstance(value, str) and " " not in value and (value == ".mngr" or ".mngr/" in f"{value}/")
