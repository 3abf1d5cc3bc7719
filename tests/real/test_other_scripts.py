"""Commands and settings that people have in scripts for other versions of mngr: typed as they are, and run."""

import json
import signal
from typing import NamedTuple

from tests.real.test_schemas import validator
from tests.support.user import User, wait_for


class Row(NamedTuple):
    """A command line, what it ends with, and what it has to say."""

    command: str
    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""


NO_BUILD = "provider `modal` does not support build arguments"
ON_MODAL = "would create a on a host of provider modal"
SETTINGS = """
default_host_dir = "/somewhere"
prefix = "my-"
[retry]
connect_retry_times = 5
connect_retry_delay = "10s"
[logging]
console_level = "DEBUG"
[providers.modal]
backend = "modal"
[commands.kanpan]
project = "."
[commands.start]
connect_command = "echo attached $MNGR_SESSION_NAME"
[work_dir_extra_paths]
".env" = "COPY"
[create_templates.big]
provider = "modal"
build_arg = ["cpu=4", "memory=16"]
agent_args = ["--dangerously-skip-permissions"]
[create_templates.here]
provider = "local"
agent_args = ["-c", "cat .env; sleep 999"]
"""
ROWS = (
    Row("mngr list", 0, "No agents found", "`default_host_dir`"),
    Row("mngr create a --provider modal -b cpu=4 -s '--gpus all' --snapshot snap-1", 2, "", NO_BUILD),
    Row("mngr create a@.modal:/workspace --no-connect --dry-run", 0, ON_MODAL),
    Row("MNGR__COMMANDS__CREATE__PROVIDER=modal mngr create a --dry-run", 0, ON_MODAL),
    Row("mngr create a --template big", 2, "", NO_BUILD),
    Row("mngr create a --build-arg cpu=4", 2, "", "`--build-arg` needs a new host"),
    Row(
        "MNGR__COMMANDS__CREATE__PROVIDER=modal mngr create a --provider local --no-connect -y --no-auto-start"
        " --host-label env=staging --plugin my-plugin --disable-plugin other --pass-env NOT_SET --no-start-on-boot"
        " --type command --idle-mode run --idle-timeout 60 -- sleep 999",
        0,
        "created a",
        "ignored: `--host-label`|`my-plugin` is not installed|`--pass-env NOT_SET` is skipped|`--idle-mode run` needs",
    ),
    Row(
        "mngr create b sh --from a --no-connect -t here --idle-mode ssh --idle-timeout 300",
        0,
        "created b",
        "files of `a`",
    ),
    Row("mngr capture b", 0, "SECRET=1"),
    Row(
        "mngr list --format '{name} {session} {limits.idle_mode} {limits.idle_seconds}'",
        0,
        "a my-a output \nb my-b user 300",
    ),
    Row("mngr stop a", 0, "stopped a"),
    Row("mngr start a --connect", 0, "started a\nattached my-a"),
    Row("mngr start a --no-connect", 0, "a is already running"),
    Row("mngr start a b --connect", 2, "", "`--connect` takes one agent"),
    Row("mngr exec a 'echo x > made && git add made && git commit -qm Made'"),
    Row("mngr git pull a --dry-run", 0, "would merge 1 commit of a into main"),
    Row("mngr git pull a", 0, "merged 1 commit of a into main"),
    Row("mngr git push b --source-branch main", 0, "pushed 1 commit to b"),
    Row("mngr rsync a:made ./out/", 0, "copied 1 file"),
    Row("mngr rsync ./out b:sub", 0, "copied 1 file"),
    Row("mngr rsync ./out ./copy", 2, "", "neither is an agent"),
    Row(
        "mngr plugin enable my-plugin --scope project",
        0,
        "active once it is installed",
        "`my-plugin` is not installed",
    ),
    Row("mngr plugin list --fields name,version,enabled", 0, "No plugins found"),
    Row("mngr plugin remove my-plugin", 1, "", "`my-plugin` is not installed"),
    Row("mngr plugin add --path /path/to/my-plugin --dry-run", 0, "would install /path/to/my-plugin"),
    Row("mngr config set headless true", 0, "in .mngr/settings.toml"),
    Row("mngr config get headless", 0, "true"),
    Row("mngr config set logging.file_level INFO", 0, "", "has no effect in this version"),
)


def test_commands_of_other_scripts_do_what_they_say_or_name_what_to_type(user: User) -> None:
    user.host_dir.mkdir(mode=0o700)
    (user.host_dir / "settings.toml").write_text(SETTINGS)
    (user.repo / ".git" / "info" / "exclude").write_text("/.env\n/out\n")
    (user.repo / ".env").write_text("SECRET=1\n")
    stream = None
    for row in ROWS:
        if row.command == "mngr capture b":
            wait_for(lambda: "SECRET=1" in user.mngr("capture", "b").stdout, "b to print its file")
        ran = user.run(["sh", "-c", row.command])
        seen = f"{row.command}: {ran}"
        assert ran.exit_code == row.exit_code, seen
        assert row.stdout in ran.stdout and all(part in ran.stderr for part in row.stderr.split("|")), seen
        assert row.exit_code == 0 or "hint:" in ran.stderr, seen
        assert ran.stderr.count("`providers`") <= 1, f"warned more than once: {seen}"
        if row.command == "mngr stop a":
            stream = user.popen("observe")
            assert stream.stdout is not None
            first = [json.loads(stream.stdout.readline()) for _ in range(2)]
            assert sorted((line["type"], line["name"], line["state"]) for line in first) == [
                ("AGENT_DISCOVERED", "a", "STOPPED"),
                ("AGENT_DISCOVERED", "b", "RUNNING"),
            ]
    assert stream is not None and stream.stdout is not None
    user.mngr("destroy", "b", "--force").ok()
    seen_types: list[tuple[str, str]] = []
    while not seen_types or seen_types[-1] != ("AGENT_DESTROYED", "b"):
        line = json.loads(stream.stdout.readline())
        validator("observe")(line)
        seen_types.append((line["type"], line["name"]))
    assert ("AGENT_CHANGED", "a") in seen_types
    stream.send_signal(signal.SIGINT)
    stream.communicate(timeout=60)
    assert stream.returncode == 0
    assert user.git("status", "--short", "made") == "" and (user.work_dir("a") / "made").exists()
