"""Create: what an agent runs, with which arguments and variables."""

import os
import threading
from pathlib import Path

import pytest

from tests.real.test_create import write_settings
from tests.support.user import User, wait_for

NASTY = {
    "NEWLINES": "a\nb\n\nc",
    "QUOTES": 'it\'s "quoted" `back` \\',
    "META": "$HOME $(id) ${x} ; & | > < * ? [a] ~ # !",
    "UNICODE": "ünïcode 名前 🦊",
    "SPACES": "  two  spaces\t",
    "EMPTY": "",
    "TMUX_FORMAT": "#{session_name} #S #(id) %1",
    "LARGE": "x" * 100_000,
}


def output_of(user: User, name: str, file: str = "out") -> str:
    """What the agent wrote to a file, once it is complete (a last line `end`)."""
    path = user.work_dir(name) / file
    text = wait_for(lambda: t if path.exists() and (t := path.read_text()).endswith("end\n") else None, "its output")
    return text.removesuffix("end\n")


def inside(user: User, name: str, *variables: str) -> dict[str, str | None]:
    """Variables as the agent's own process has them, whole: read from its environment."""
    agent = user.agent(name)
    children = Path(f"/proc/{agent['pid']}/task/{agent['pid']}/children")

    def environment() -> bytes | None:
        """Of the program itself, once it runs; the kernel shows the words of one that just begins a moment earlier."""
        for child in children.read_text().split():
            try:
                words = Path(f"/proc/{child}/cmdline").read_bytes()
                found = Path(f"/proc/{child}/environ").read_bytes()
            except OSError:
                continue
            if words.startswith(b"sleep\0") and found:
                return found
        return None

    raw = wait_for(environment, "the agent's program").split(b"\0")
    found = dict(item.decode(errors="surrogateescape").partition("=")[::2] for item in raw if item)
    return {variable: found.get(variable) for variable in variables}


def test_variables_arrive_exactly_as_given(user: User) -> None:
    words = [word for name, value in NASTY.items() for word in ("--env", f"{name}={value}")]
    user.create("foo", *words, command="exec sleep 9999")
    assert inside(user, "foo", *NASTY) == NASTY
    shown = user.mngr("exec", "foo", 'printf %s "$QUOTES$META"').ok().stdout
    assert shown == NASTY["QUOTES"] + NASTY["META"]


def test_the_callers_variables_arrive_exactly_too(user: User) -> None:
    user.mngr("create", "foo", "--no-connect", "--command", "exec sleep 9999", env=NASTY).ok()
    assert inside(user, "foo", *NASTY) == NASTY


def test_each_agent_has_the_environment_of_who_created_it(user: User) -> None:
    for name, value in (("a1", "first"), ("a2", "second")):
        user.mngr(
            "create", name, "--no-connect", "--command", "exec sleep 9999", env={"WHO": value, f"ONLY_{value}": "1"}
        ).ok()
    assert inside(user, "a1", "WHO", "ONLY_first", "ONLY_second") == {
        "WHO": "first",
        "ONLY_first": "1",
        "ONLY_second": None,
    }
    assert inside(user, "a2", "WHO", "ONLY_first", "ONLY_second") == {
        "WHO": "second",
        "ONLY_first": None,
        "ONLY_second": "1",
    }


def test_variables_from_a_file_and_passed_ones_last_over_a_restart(user: User) -> None:
    file = user.root / "vars.env"
    file.write_text("# a comment\n\nPLAIN=one two\nexport EXPORTED=yes\nSINGLE='a b'\nDOUBLE=\"c=d\"\nOVER=file\n")
    user.mngr(
        *("create", "foo", "--no-connect", "--env-file", str(file), "--pass-env", "TOKEN", "--env", "OVER=flag"),
        *("--command", "exec sleep 9999"),
        env={"TOKEN": "s3cr3t"},
    ).ok()
    expected = {
        "PLAIN": "one two",
        "EXPORTED": "yes",
        "SINGLE": "a b",
        "DOUBLE": "c=d",
        "OVER": "flag",
        "TOKEN": "s3cr3t",
    }
    assert inside(user, "foo", *expected) == expected
    user.mngr("stop", "foo").ok()
    user.mngr("start", "foo").ok()
    assert inside(user, "foo", *expected) == expected


def test_bad_variables_are_refused_before_anything_is_made(user: User) -> None:
    bad = user.root / "bad.env"
    bad.write_text("GOOD=1\nnot a variable\n")
    words = ("create", "foo", "--no-connect", "--command", "true")
    assert "line 2 of" in user.mngr(*words, "--env-file", str(bad)).failed(2).stderr
    user.mngr(*words, "--env", "1X=y").failed(2)
    user.mngr(*words, "--env", "NOVALUE").failed(2)
    assert "`--pass-env NOT_SET` is skipped" in user.mngr(*words, "--pass-env", "NOT_SET", "--dry-run").ok().stderr
    assert user.agents() == [] and not user.host_dir.exists()


def test_values_are_never_in_the_process_list(user: User) -> None:
    secret = "s3cr3t-" + os.urandom(8).hex()
    file = user.root / "vars.env"
    file.write_text(f"FROM_FILE={secret}\n")
    seen: list[bytes] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            for entry in os.listdir("/proc"):
                try:
                    words = Path(f"/proc/{entry}/cmdline").read_bytes() if entry.isdigit() else b""
                except OSError:
                    continue
                if secret.encode() in words:
                    seen.append(words)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        user.mngr(
            *("create", "foo", "--no-connect", "--env-file", str(file), "--pass-env", "TOKEN"),
            *("--command", "exec sleep 9999"),
            env={"TOKEN": secret, "INHERITED": secret},
        ).ok()
        user.mngr("exec", "foo", "true").ok()
        user.mngr("stop", "foo").ok()
        user.mngr("start", "foo").ok()
    finally:
        done.set()
        watcher.join()
    assert seen == []
    assert inside(user, "foo", "TOKEN", "FROM_FILE") == {"TOKEN": secret, "FROM_FILE": secret}
    readable = [path for path in user.host_dir.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]
    assert not [path for path in readable if secret.encode() in path.read_bytes()]


def test_an_agent_knows_who_and_where_it_is(user: User) -> None:
    agent = user.create("foo", command="exec sleep 9999")
    user.create("bar", command="exec sleep 9999")
    own = inside(
        user,
        "foo",
        *("MNGR_AGENT_ID", "MNGR_AGENT_NAME", "MNGR_AGENT_WORK_DIR", "MNGR_HOST_DIR", "MNGR_GIT_BASE_BRANCH"),
        *("MNGR_AGENT_STATE_DIR", "MNGR_AGENT_INDEX", "MNGR_OUTCOME_FILE", "MNGR_ARTIFACTS_DIR", "TMUX_PANE"),
    )
    assert own["MNGR_AGENT_ID"] == agent["id"]
    assert own["MNGR_AGENT_NAME"] == "foo"
    assert own["MNGR_AGENT_WORK_DIR"] == agent["work_dir"]
    assert own["MNGR_HOST_DIR"] == str(user.host_dir)
    assert own["MNGR_GIT_BASE_BRANCH"] == "main"
    assert Path(own["MNGR_AGENT_STATE_DIR"] or "") == user.host_dir / "agents" / agent["id"]
    assert Path(own["MNGR_ARTIFACTS_DIR"] or "").is_dir()
    assert str(own["MNGR_OUTCOME_FILE"]).startswith(agent["work_dir"])
    assert inside(user, "bar", "MNGR_AGENT_INDEX") != {"MNGR_AGENT_INDEX": own["MNGR_AGENT_INDEX"]}


def test_an_agent_made_by_an_agent_has_an_identity_of_its_own(user: User) -> None:
    user.create("parent", command="mngr create child --no-connect --command 'exec sleep 9999'; touch made; sleep 9999")
    wait_for((user.work_dir("parent") / "made").exists, "the child")
    assert inside(user, "child", "MNGR_AGENT_NAME") == {"MNGR_AGENT_NAME": "child"}
    user.mngr("stop", "parent").ok()
    assert user.state("child") == "RUNNING"


def test_arguments_after_two_dashes_are_an_exact_list(user: User) -> None:
    script = user.root / "show.sh"
    script.write_text('#!/bin/sh\nfor word; do printf "<%s>" "$word"; done > out; echo end >> out; sleep 9999\n')
    script.chmod(0o755)
    words = ["a b", "it's", '"', "$HOME", "*", "", "-x", "--format", "é\nnew", "\\", ";"]
    user.mngr("create", "foo", "--no-connect", "--type", "command", "--", str(script), *words).ok()
    assert output_of(user, "foo") == "".join(f"<{word}>" for word in words)


def test_one_word_after_two_dashes_is_a_shell_command(user: User) -> None:
    user.mngr("create", "foo", "--no-connect", "--type", "command", "--", "echo $((1+2)) > out; echo end >> out").ok()
    assert output_of(user, "foo") == "3\n"


def test_a_program_on_the_path_is_a_type(user: User) -> None:
    user.mngr("create", "foo", "sleep", "--no-connect", "--", "9999").ok()
    agent = user.agent("foo")
    assert (agent["type"], agent["command"], agent["state"]) == ("sleep", "sleep 9999", "RUNNING")


def test_a_type_from_settings_has_parent_arguments_and_variables(user: User) -> None:
    script = user.root / "tool"
    script.write_text('#!/bin/sh\necho "$@ / $LEVEL $MODE" > out; echo end >> out; sleep 9999\n')
    script.chmod(0o755)
    write_settings(
        user,
        f"""
[agent_types.base]
command = "{script}"
cli_args = ["--one", "two words"]
env = {{ LEVEL = "low", MODE = "base" }}
[agent_types.child]
parent_type = "base"
cli_args = "--three"
env = {{ LEVEL = "high" }}
""",
    )
    user.mngr("create", "foo", "--no-connect", "--type", "child", "--", "--last").ok()
    assert output_of(user, "foo") == "--one two words --three --last / high base\n"
    assert user.agent("foo")["type"] == "child"
    user.mngr("create", "bar", "child", "--no-connect", "--env", "LEVEL=mine").ok()
    assert output_of(user, "bar") == "--one two words --three / mine base\n"


def test_an_unknown_type_suggests_the_nearest(user: User) -> None:
    ran = user.mngr("create", "foo", "scriptd", "--no-connect").failed(2)
    assert "called `scriptd`" in ran.stderr and "`scripted`" in ran.stderr
    write_settings(user, '[agent_types.a]\nparent_type = "b"\n[agent_types.b]\nparent_type = "a"\n')
    assert "its own parent: a -> b -> a" in user.mngr("create", "foo", "a", "--no-connect").failed(2).stderr


def test_without_a_type_and_an_installed_agent_it_says_what_to_do(user: User) -> None:
    ran = user.mngr("create", "foo", "--no-connect", env={"PATH": "/usr/bin:/bin"}).failed(2)
    assert "`claude`" in ran.stderr and "--type command" in ran.stderr and "mngr doctor" in ran.stderr


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_an_installed_agent_is_the_default(user: User, agent: str) -> None:
    (user.home / "bin").mkdir()
    (user.home / "bin" / agent).write_text('#!/bin/sh\n[ "$1" != --version ] || exec echo 99.0\nexec sleep 9999\n')
    (user.home / "bin" / agent).chmod(0o755)
    path = f"{user.home}/bin:/usr/bin:/bin"
    user.mngr("create", "foo", "--no-connect", env={"PATH": path}).ok()
    assert user.agent("foo")["type"] == agent
    write_settings(user, '[commands.create]\ntype = "sleep"\n')
    user.mngr("create", "bar", "--no-connect", "--", "99", env={"PATH": path}).ok()
    assert user.agent("bar")["type"] == "sleep"
    user.mngr("create", "baz", "--no-connect", "--command", "sleep 98", env={"PATH": path}).ok()
    assert user.agent("baz")["type"] == "command"


def test_contradictions_are_usage_errors(user: User) -> None:
    for words in (
        ("foo", "--name", "bar", "--command", "true"),
        ("foo", "sleep", "--type", "command"),
        ("foo", "--type", "sleep", "--command", "true"),
        ("foo", "--command", "true", "--", "x"),
        ("foo", "--type", "command"),
        ("foo@.elsewhere", "--command", "true"),
        ("foo", "--transfer", "none", "--branch", "x:", "--command", "true"),
    ):
        ran = user.mngr("create", *words).failed(2)
        assert ran.stderr.startswith("error:"), words
    assert user.agents() == []


def test_templates_stack_and_flags_win(user: User) -> None:
    write_settings(
        user,
        """
[commands.create]
project = "from-command"
label = ["level=command"]
[create_templates.one]
transfer = "git-mirror"
project = "from-one"
label = ["t=one"]
command = "sleep 1111"
[create_templates.two]
project = "from-two"
command = "sleep 2222"
""",
    )
    user.mngr("create", "a1", "--no-connect", "-t", "one").ok()
    user.mngr("create", "a2", "--no-connect", "-t", "one", "-t", "two").ok()
    user.mngr(
        "create", "a3", "--no-connect", "-t", "one", "-t", "two", "--project", "flag", "--command", "sleep 3333"
    ).ok()
    user.mngr("create", "a4", "--no-connect", "--command", "sleep 4444").ok()
    found = {a["name"]: (a["project"], a["command"], a["transfer"]) for a in user.agents()}
    assert found == {
        "a1": ("from-one", "sleep 1111", "git-mirror"),
        "a2": ("from-two", "sleep 2222", "git-mirror"),
        "a3": ("flag", "sleep 3333", "git-mirror"),
        "a4": ("from-command", "sleep 4444", "git-worktree"),
    }
    ran = user.mngr("create", "a5", "--no-connect", "-t", "tow").failed(2)
    assert "no template named `tow`" in ran.stderr and "`two`" in ran.stderr
