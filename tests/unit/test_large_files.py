"""Large files of a workspace go through git without being held in memory."""

import os
import subprocess
import sys
from pathlib import Path

SIZE = 64_000_000
# Saves and restores a large file, one with an odd name and a nested repository, and prints by how much memory grew.
CODE = """
import os, resource, sys
from mngr.system.state_dir import StateDir
from mngr.system.git import Git
from mngr.workspace.work import files as uncommitted_files

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

source, target, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
names = ["plain", "odd\\nname", "nested/"]
git = Git.of_user(source)
before = peak()
kept = git.commit_tree(uncommitted_files.dirty_tree(git, names), [], "kept")
packed = uncommitted_files.pack_repositories(git, names)
saved = peak() - before
empty = git.commit_tree(git.must("mktree", input=b""), [], "empty")
restored = Git.of_store(target, git_dir=os.path.join(source, ".git"))
uncommitted_files.write_files(restored, kept, empty, {"plain"})
uncommitted_files.unpack(restored, target, packed)
print(saved, peak() - before)
"""


def test_large_files_are_saved_and_restored_in_little_memory(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "nested").mkdir(parents=True)
    target.mkdir()
    for place in (source, source / "nested"):
        subprocess.run(["git", "init", "-q", str(place)], check=True, timeout=60)
    subprocess.run(["git", "-C", str(source), "config", "core.compression", "1"], check=True, timeout=60)
    for name in ("plain", "odd\nname", "nested/inside"):
        with (source / name).open("wb") as file:
            file.write(b"begin")
            file.truncate(SIZE)
    (source / "plain").chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(source), str(target), str(SIZE)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull},
    )
    kilobytes = [int(word) for word in done.stdout.split()]
    assert max(kilobytes) < SIZE / 1000 / 2, f"{kilobytes} kB more"
    for name in ("plain", "odd\nname", "nested/inside"):
        assert (target / name).stat().st_size == SIZE
        with (target / name).open("rb") as file:
            assert file.read(10) == b"begin\0\0\0\0\0"
    assert (target / "plain").stat().st_mode & 0o777 == 0o700
    assert sorted(os.listdir(target)) == ["nested", "odd\nname", "plain"]
    assert not [name for name in os.listdir(source / ".git") if "mngr" in name]
