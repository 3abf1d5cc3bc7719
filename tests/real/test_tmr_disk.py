"""A full disk, a lost file or a lock while work is collected and verified: nobody is refuted, a resume tries again."""

import functools
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from mngr.system.process import join
from mngr.tmr.plan import slugs
from tests.real.test_faults_disk import with_mounts
from tests.support.tmr import FIX_MUL_TEST, Project
from tests.support.user import MNGR, User, wait_for

pytestmark = pytest.mark.timeout(300)


def test_work_is_verified_once_there_is_room_again(user: User) -> None:
    project = Project(user)
    host, armed = user.host_dir, user.root / "armed"
    # At the agent's commit, and only while `armed` is there: something else on this machine takes all that is left.
    fill = f"git grep -q 'b - [1]' || ! test -e {armed} || cat /dev/zero >{host}/filler 2>/dev/null"
    project.settings["prepare"] = f"{fill}; true"
    project.write(".mngr/settings.toml", project.toml())
    project.commit("a disk that fills up")
    run = f"{MNGR} {join(project.words('--no-canary', '-k', 'sub'))}"
    quiet = f"{MNGR} {join(project.words('--no-canary', '-k', 'sub', name='quiet'))}"
    done = with_mounts(
        user,
        f"""
        cp -a {host} {user.root}/before; mount -t tmpfs -o size=40m none {host}; cp -a {user.root}/before/. {host}
        touch {armed}
        {run}; echo code $?
        test "$(stat -c %s {host}/filler)" -gt 1000000 && df --output=avail {host} | tail -n 1
        {MNGR} tmr status r1 --format '{{status}} {{verdict}} {{attempts}} {{why}}'
        rm {armed} {host}/filler
        {MNGR} tmr resume r1 >/dev/null; echo code $?
        {MNGR} tmr status r1 --format '{{status}} {{verdict}} {{attempts}}'
        {quiet} >/dev/null; echo code $?
        {MNGR} destroy --all --force --yes --quiet >/dev/null
        """,
    )
    full, room = done.stdout.split("code 1\n", 1)[1].split("code 0\n", 1)
    assert full.split()[:4] == ["0", "checking", "failed", "1"] and "No space left on device" in full, done
    assert room == "settled fixed 1\ncode 0\n", done
    assert user.git("rev-parse", "tmr/r1^{tree}") == user.git("rev-parse", "tmr/quiet^{tree}")


def test_a_lock_left_behind_and_lost_results_are_tried_again_by_resume(user: User) -> None:
    project = Project(user)
    armed = user.root / "armed"
    # At the commit that fixes `sub`, the results of the job vanish while it runs.
    lose = f"git grep -q 'b - [1]' || ! test -e {armed} || rm -r \"$MNGR_ARTIFACTS_DIR\""
    project.settings["prepare"] = f"{lose}; true"
    project.write(".mngr/settings.toml", project.toml())
    project.commit("results that vanish")
    # Where the work on `mul` is to be kept, a git that was killed left its lock.
    mul = slugs([name := "tests/test_calc.py::test_mul"])[name]
    lock = user.repo / ".git/refs/mngr/runs/r1" / mul / "1.lock"
    project.script("test_mul", FIX_MUL_TEST.replace("wait\n", f"wait\nrun! mkdir -p {lock.parent}; touch {lock}\n"))
    armed.touch()
    ledger = user.repo / ".mngr/runs/r1/ledger.jsonl"
    child = user.popen(*project.words("--no-canary", "-k", "sub or mul"))
    try:
        for kind, text in (("verdict", "artifacts` does not exist"), ("uncollected", "cannot lock ref")):
            found = wait_for(functools.partial(seen, project, ledger, kind), f"`{kind}` in the ledger", 100)
            assert text in json.dumps(found[0]), found
        child.send_signal(signal.SIGINT)
        child.wait(timeout=100)
    finally:
        child.kill()
        child.communicate()
    armed.unlink()
    lock.unlink()
    project.resume().ok()
    assert [(row["verdict"], row["attempts"]) for row in project.status()["rows"]] == [
        ("fixed", 1),
        ("expectation changed", 1),
    ]
    project.script("test_mul", FIX_MUL_TEST)
    project.tmr("--no-canary", "-k", "sub or mul", name="quiet").ok()
    assert user.git("rev-parse", "tmr/r1^{tree}") == user.git("rev-parse", "tmr/quiet^{tree}")


def seen(project: Project, ledger: Path, kind: str) -> list[dict[str, Any]]:
    return [entry for entry in project.ledger() if entry["type"] == kind] if ledger.exists() else []
