"""`--permissions tests` with the real programs: tests, edits and commits work, and the rest is denied unasked."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr_testing.model_server import ModelServer
from tests.support.program_world import ProgramWorld
from tests.support.user import User

pytestmark = pytest.mark.timeout(300)
TEST_COMMAND = "PYTHONPATH=$PWD/src python3 -B -m unittest"
OUTCOME = '{"schema": 1, "status": "done"}'
CONVERSATION = f"""
%% run {TEST_COMMAND} test_a 2>&1 | tail -3
%% write test_b.py <<END
first = 1
END
%% run git add test_b.py && git commit -q -m 'add b'
%% run git status --porcelain
%% write @TASK@/outcome.json <<END
by the tool
END
%% run cp @TASK@/outcome.json "$MNGR_ARTIFACTS_DIR/by-tool"
%% run <<END
cat > "$MNGR_OUTCOME_FILE" <<'EOF'
{OUTCOME}
EOF
END
%% run echo '{OUTCOME}' > $MNGR_ARTIFACTS_DIR/by-echo
%% run git push origin HEAD:pushed
%% run curl -o fetched @URL@/v1/models
%% run rm -rf @OUTSIDE@
%% say went on
"""


@pytest.fixture
def user() -> Iterator[User]:
    """Not in `/dev/shm`: what Codex runs in its sandbox has a `/dev` of its own."""
    made = User("/tmp")
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("kind", ["claude", "codex", "opencode"])
def test_tests_and_commits_work_and_the_rest_is_denied_without_a_question(
    kind: str, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as server:
        world = ProgramWorld(kind, user, server)
        monkeypatch.setenv("PATH", user.env["PATH"])
        outside = user.root / "outside"
        outside.mkdir()
        (user.repo / "src").mkdir()
        (user.repo / "src" / "product.py").write_text("answer = 42\n")
        (user.repo / "test_a.py").write_text(
            "import unittest\nimport product\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n"
            "        self.assertEqual(product.answer, 42)\n        open('ran', 'w').close()\n"
        )
        user.git("add", ".")
        user.git("commit", "-q", "-m", "tests")
        user.git("init", "-q", "--bare", str(user.root / "bare"))
        user.git("remote", "add", "origin", str(user.root / "bare"))
        agent = world.create("a", permissions="tests", allowed_commands=(TEST_COMMAND,))
        work_dir, task = Path(agent.record.workspace.work_dir), Path(agent.record.workspace.work_dir, ".mngr", "task")
        text = CONVERSATION.replace("@TASK@", str(task)).replace("@OUTSIDE@", str(outside)).replace("@URL@", server.url)
        world.rests("a")
        world.fleet.find("a").message(text.strip())
        seen = world.until("a", lambda agent: agent.state in ("WAITING", "BLOCKED"), "end its turn")
        results = [entry for entry in world.fleet.find("a").transcript().entries if entry["role"] == "tool_result"]
        told = json.dumps(results, indent=1)
        assert seen.state == "WAITING", f"{seen.status}\n{told}"
        world.says("a", ("assistant", "went on"))
        assert (work_dir / "ran").exists(), told
        assert user.git("log", "-1", "--format=%s", cwd=work_dir) == "add b", told
        assert (task / "artifacts" / "by-tool").read_text() == "by the tool\n", told
        assert (task / "outcome.json").read_text() == f"{OUTCOME}\n", told
        assert (task / "artifacts" / "by-echo").read_text() == f"{OUTCOME}\n", told
        assert outside.exists() and not (work_dir / "fetched").exists(), told
        assert not user.git("ls-remote", str(user.root / "bare")), told
        assert "BLOCKED" not in {event.get("state") for event in world.fleet.find("a").events()}, told
