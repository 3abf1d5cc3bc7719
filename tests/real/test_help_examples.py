"""Every example that a verb's help shows is run, in a world where it makes sense."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from mngr.cli import catalog
from mngr.cli.dispatch import command_parser
from tests.support import e2e_runs
from tests.support.pods import Pods
from tests.support.tmr import NO_CHANGE
from tests.support.user import User

# Examples that stay until they are ended, and those that need a person's terminal.
STAYS = re.compile(
    r"--watch|--follow|mngr observe|mngr event .* -f\b|mngr e2e serve|mngr usage wait|mngr tmr .*--type claude"
)
NEEDS_TERMINAL = re.compile(
    r"^mngr connect [\w-]+$|^mngr create (?!.*--no-connect)(?!.*--dry-run)|config edit|--edit-message"
)
# Exit codes other than 0 that an example is there to show.
SHOWS = {"mngr destroy fix-login": 1}
# Verbs whose examples leave alone what the others of the verb need: they run one after the other in one world.
IN_ONE_WORLD = frozenset(
    {
        *("capture", "completion", "connect", "diff", "doctor", "e2e", "event", "exec", "help", "label"),
        *("host", "limit", "list", "plugin", "tmr", "transcript", "tutorial", "usage", "wait"),
    }
)
BEGINS_A_RUN = re.compile(r"mngr tmr tests\b")  # after those that look at the run that is there


def examples() -> Iterator[tuple[str, str]]:
    for entry in catalog.VERBS:
        if entry.name == "demo":
            continue
        for parser in command_parser(entry).family():
            for command, _ in parser.examples:
                yield entry.name, command


def agents_in(command: str) -> list[str]:
    """Names that the example expects to exist."""
    names = ["fix-login", "fix-logout", "reviewer", "build", "a1", "a2", "a3", "server"]
    made = re.match(r"mngr create (?:-\S+ )*([\w-]+)", command)
    found = [name for name in names if re.search(rf"\b{name}\b(?!-\d)", command)]
    return [name for name in found if not (made and made[1] == name)]


@pytest.fixture
def world(user: User) -> Iterator[User]:
    """A repository with files that examples name, and stand-ins for the programs that they start."""
    tools = user.root / "bin"
    tools.mkdir()
    for name in ("claude", "npm", "codex"):
        (tools / name).write_text('#!/bin/sh\n[ "$1" != --version ] || exec echo 99.0\nexec sleep 9999\n')
        (tools / name).chmod(0o755)
    user.env["PATH"] = f"{tools}:{user.env['PATH']}"
    user.env["EDITOR"] = user.env["VISUAL"] = "true"
    (user.repo / "prompt.md").write_text("Do this.\nAnd that.\n")
    (user.repo / "samples").mkdir()
    (user.repo / "samples" / "one.txt").write_text("1\n")
    (user.repo / "tests").mkdir()
    (user.repo / "tests" / "test_one.py").write_text("def test_one():\n    pass\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "files")
    user.git("branch", "feature")
    yield user
    for pod in (user.root / "pods").glob("*"):
        user.run(["kubectl", "delete", "pod", pod.name]).ok()


def prepare(user: User, verb: str, commands: list[str]) -> None:
    """All that the examples expect to be there."""
    for name in sorted({name for command in commands for name in agents_in(command)}):
        _make_an_agent(user, name, [command for command in commands if name in agents_in(command)])
    every = "\n".join(commands)
    if verb == "config":
        user.mngr("config", "set", "--scope", "user", "commands.create.type", "claude").ok()
    if "claude --message" in every:  # the stand-in of that name takes none
        user.mngr("config", "set", "--scope", "user", "agent_types.claude.parent_type", "scripted").ok()
    if "git diff" in every:
        (user.repo / "README.md").write_text("changed\n")
    if verb == "plugin":
        _install_a_plugin(user, "hello")
    if verb == "e2e":
        e2e_runs.make_run(user.repo / ".mngr" / "e2e", "nightly")
    if verb == "host" or "@" in every or "--provider" in every:
        _make_hosts(user)
    if verb == "saved":
        _make_history(user)
    if verb == "tutorial":
        (user.repo / "tutorial.sh").write_text("# Looking\n\nmngr list\n")
        test = "def test_one(e2e):\n    e2e.write_tutorial_block('mngr list')\n"
        (user.repo / "tests" / "test_one.py").write_text(test)
    if verb == "tmr":
        user.mngr("config", "set", "--scope", "user", "agent_types.claude.permissions", "ask").ok()
        _make_a_run(user)
    if verb == "snapshot":
        if not agents_in(every):
            user.create("fix-login")
        if not every.startswith("mngr snapshot create"):
            user.mngr("snapshot", "create", "my-snapshot").ok()
    if "a filter" in every or "--all" in every or "--include" in every:
        user.create("one-more", command="cat")
    if re.match(r"mngr push fix-login(?!.*:)", every):
        user.mngr("exec", "fix-login", "git reset -q --hard main").ok()


def _make_an_agent(user: User, name: str, commands: list[str]) -> None:
    settled = commands[0].startswith("mngr wait")
    if any("--wait-reply" in command for command in commands):
        user.mngr("create", name, "scripted", "--no-connect").ok()
        return
    record = any("--cast" in command for command in commands)
    user.mngr(
        *("create", name, "--no-connect", "--command", "true" if settled else "cat", *(["--record"] if record else []))
    ).ok()
    if name == "fix-login" and not settled:
        work = "echo x > made.txt; echo '<p>' > report.html; git add made.txt; git commit -qm Made"
        user.mngr("exec", name, f"{work}; echo art > $MNGR_ARTIFACTS_DIR/a.txt").ok()


def _make_hosts(user: User) -> None:
    """An `ssh` that reaches one machine, this one, and containers by a stand-in."""
    (user.root / "box" / "t").mkdir(parents=True)
    known = f"HOME={user.root}/box TMUX_TMPDIR={user.root}/box/t"
    (user.root / "bin" / "ssh").write_text(
        f'#!/bin/sh\nfor line; do :; done\nexec env -i {known} PATH=$PATH sh -c "$line"\n'
    )
    (user.root / "bin" / "ssh").chmod(0o755)
    Pods(user, "docker", 'stop = "true"\nstart = "true"\n')
    user.mngr("host", "create", "build.docker").ok()


def _install_a_plugin(user: User, name: str) -> None:
    """What pip leaves behind, in a directory of its own."""
    notes = user.root / "site" / f"{name}-1.0.dist-info"
    notes.mkdir(parents=True)
    (notes / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (notes / "entry_points.txt").write_text(f"[mngr]\n{name} = {name}_plugin\n")
    (notes.parent / f"{name}_plugin.py").write_text("")
    user.env["PYTHONPATH"] = str(notes.parent)


def _make_a_run(user: User) -> None:
    (user.repo / "tests" / "test_login.py").write_text("def test_login():\n    pass\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "login")
    (user.root / "leave.script").write_text(NO_CHANGE)
    words = ("--name", "first", "--type", "scripted", "--no-canary", "--no-record", "--", f"{user.root}/leave.script")
    user.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    user.mngr("tmr", "tests/test_one.py", *words, timeout=200).ok()


def _make_history(user: User) -> None:
    if "fix-login" not in {agent["name"] for agent in user.agents()}:
        user.create("fix-login")
        user.mngr("exec", "fix-login", "echo y > y").ok()
    user.mngr("destroy", "fix-login", "--force").ok()


def parameters() -> Iterator[Any]:
    """The examples of one world, with a name."""
    by_verb: dict[str, list[str]] = {}
    for verb, command in examples():
        by_verb.setdefault(verb, []).append(command)
    for verb, commands in by_verb.items():
        marks = pytest.mark.timeout(600 if verb == "tmr" else 300)
        if verb in IN_ONE_WORLD:
            yield pytest.param(
                verb, sorted(commands, key=lambda one: bool(BEGINS_A_RUN.match(one))), id=verb, marks=marks
            )
        else:
            yield from (pytest.param(verb, [command], id=command[:70], marks=marks) for command in commands)


@pytest.mark.parametrize(("verb", "commands"), list(parameters()))
def test_the_example_works(world: User, verb: str, commands: list[str], subtests: pytest.Subtests) -> None:
    prepare(world, verb, commands)
    for command in commands:
        with subtests.test(command):
            run(world, command)


def run(world: User, command: str) -> None:
    line = command
    if NEEDS_TERMINAL.search(command):
        line = f"script -qec {quoted(f'timeout 3 {command}')} /dev/null"
    elif STAYS.search(command):
        line = f"timeout 2 {command}"
    done = world.run(["bash", "-c", f"set -o pipefail; {line}"], input="", timeout=200)
    expected = {SHOWS.get(command, 0)} | ({124, 143, 0} if line != command else set())
    assert done.exit_code in expected, f"{command}\n{done.stdout}{done.stderr}"
    assert "bug in mngr" not in done.stdout + done.stderr


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def test_there_are_examples_for_every_verb() -> None:
    without = {entry.name for entry in catalog.VERBS} - {verb for verb, _ in examples()} - {"demo"}
    assert without == set()
