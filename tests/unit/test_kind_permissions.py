"""What `--permissions tests` allows, without the programs: shell lines taken apart, and the script for Claude Code."""

import json
import subprocess
from pathlib import Path

import pytest

from mngr.agent.record import dump, parse
from mngr.programs import permissions
from tests.support.records import make_record

SCRIPT = Path(permissions.__file__).with_name("claude_allow.awk")
LIST = r"""run . .venv/bin/activate && pytest
run PYTHONPATH=$PWD/src pytest -m \"not slow\"
file $MNGR_OUTCOME_FILE
file ${MNGR_OUTCOME_FILE}
file /w/.mngr/task/outcome.json
dir $MNGR_ARTIFACTS_DIR
dir /w/.mngr/task/artifacts
"""


def test_a_shell_line_is_taken_apart_into_its_commands() -> None:
    assert permissions.parts("pytest -q") == ["pytest -q"]
    assert permissions.parts(". .venv/bin/activate && pytest -k 'a && b'") == [
        ". .venv/bin/activate",
        "pytest -k 'a && b'",
    ]
    assert permissions.parts("cd app && make test; A=1 tox | cat") == ["make test", "A=1 tox", "cat"]
    assert (
        permissions.parts("(cd app; pytest)")
        == permissions.parts("pytest > log")
        == permissions.parts("echo 'open")
        == []
    )


def test_the_commands_of_a_record_survive_its_file() -> None:
    record = make_record(kind="claude", command="claude", transfer="worktree")
    told = record.changed(allowed_commands=("tox", "make check"))
    assert parse(dump(told), "x").spec.allowed_commands == ("tox", "make check")
    assert "tox" in permissions.allowed(told).commands and "git commit" in permissions.allowed(told).commands
    assert permissions.allowed(record).whole == permissions.PYTEST


def allows(command: str, tmp_path: Path) -> bool:
    (tmp_path / "list").write_text(LIST)
    payload = {"cwd": "/w", "tool_name": "Bash", "tool_input": {"command": command, "description": 'a "command":"x"'}}
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    words = ["awk", "-f", str(SCRIPT), str(tmp_path / "list"), "-"]
    done = subprocess.run(
        words, input=text, capture_output=True, text=True, check=False, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return bool(done.stdout) and json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "allow"


JSON = '{"schema": 1, "summary": "it\'s `done`, $HOME"}'


@pytest.mark.parametrize(
    "command",
    [
        ". .venv/bin/activate && pytest",
        ". .venv/bin/activate && pytest tests/test_a.py::test_b[x-1] -k 'a or b' -q",
        ". .venv/bin/activate && pytest -q 2>&1 | tail -n 20",
        'PYTHONPATH=$PWD/src pytest -m "not slow" -x "tests/a b.py"',
        f"cat > \"$MNGR_OUTCOME_FILE\" <<'EOF'\n{JSON}\nEOF",
        f"cat > \"$MNGR_OUTCOME_FILE\" << 'EOF'\n{JSON}\nEOFX\nEOF\n",
        f"cat <<'END' > ${{MNGR_OUTCOME_FILE}}\n{JSON}\nEND",
        'cat > /w/.mngr/task/outcome.json <<EOF\n{"a": "b\\n"}\nEOF',
        'cat > "$MNGR_OUTCOME_FILE" <<"EOF"\n$HOME\nEOF',
        "echo '{\"a\": 1}' > $MNGR_OUTCOME_FILE",
        'printf "{\\"a\\": 1}\n" >"$MNGR_OUTCOME_FILE"',
        'mkdir -p "$MNGR_ARTIFACTS_DIR"/shots',
        "cp -r out.log 'a b.txt' $MNGR_ARTIFACTS_DIR/",
    ],
)
def test_the_tests_and_what_writes_outcome_and_artifacts_are_allowed(command: str, tmp_path: Path) -> None:
    assert allows(command, tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        "curl x",
        "pytest",
        ". .venv/bin/activate && pytest; curl x",
        ". .venv/bin/activate && pytest $(curl x)",
        '. .venv/bin/activate && pytest "$(curl x)"',
        '. .venv/bin/activate && pytest "a\\"$(curl x)"',
        ". .venv/bin/activate && pytest > /etc/x",
        ". .venv/bin/activate && pytest\ncurl x",
        ". .venv/bin/activate && pytester",
        f"cat > \"$MNGR_OUTCOME_FILE\" <<'EOF'\n{JSON}\nEOF\ncurl x",
        f"cat > \"$MNGR_OUTCOME_FILE\" <<'EOF'\n{JSON}\nEOF\ncurl x\nEOF",
        'cat > "$MNGR_OUTCOME_FILE" <<EOF\n$(curl x)\nEOF',
        'cat > "$MNGR_OUTCOME_FILE" <<EOF\n`curl x`\nEOF',
        "cat > /etc/x <<'EOF'\nx\nEOF",
        "cat > $MNGR_OUTCOME_FILE.d <<'EOF'\nx\nEOF",
        "cat /etc/x > $MNGR_OUTCOME_FILE",
        'echo "$(curl x)" > $MNGR_OUTCOME_FILE',
        "echo 'x' > $MNGR_OUTCOME_FILE; curl x",
        "echo 'x'$(curl x)'' > $MNGR_OUTCOME_FILE",
        "cp x $MNGR_ARTIFACTS_DIR/../../x",
        "cp x $MNGR_ARTIFACTS_DIRx",
        "mkdir -p /x $MNGR_ARTIFACTS_DIR",
        "echo $HOME > $MNGR_OUTCOME_FILE",
    ],
)
def test_nothing_is_said_about_any_other_command(command: str, tmp_path: Path) -> None:
    assert not allows(command, tmp_path)
