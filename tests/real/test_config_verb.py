"""`mngr config`: what a person types and sees, also when a file is broken."""

import stat
import tomllib
from pathlib import Path

import pytest

from tests.support.terminals import on_a_terminal
from tests.support.user import Ran, User

DEFAULTS = {"saved.ignored_max_mb": 10, "tmux.session_prefix": "mngr-"}


def settings_file(user: User, scope: str) -> Path:
    return {
        "user": user.host_dir / "settings.toml",
        "project": user.repo / ".mngr" / "settings.toml",
        "local": user.repo / ".mngr" / "settings.local.toml",
    }[scope]


def write(user: User, scope: str, text: str) -> Path:
    path = settings_file(user, scope)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(text)
    return path


def values(ran: Ran) -> dict[str, object]:
    return {row["key"]: row["value"] for row in ran.ok().json["settings"]}


def editor(user: User, script: str) -> str:
    """An editor that runs a shell script on the file `$1`."""
    path = user.root / "my editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return f"'{path}'"


def test_list_shows_every_value_with_its_source(user: User) -> None:
    write(user, "user", '[commands.create]\ntype = "codex"\nconnect = false\n')
    write(user, "project", '[commands.create]\ntype = "claude"\nlabel = ["a=1", "b=2"]\n')
    lines = user.mngr("config", "list", env={"MNGR__TMUX__HISTORY_LINES": "9"}).ok().stdout.splitlines()
    shown = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
    assert shown == {
        "KEY": "VALUE SOURCE",
        "commands.create.connect": "false ~/.mngr/settings.toml",
        "commands.create.label": '["a=1", "b=2"] .mngr/settings.toml',
        "commands.create.type": '"claude" .mngr/settings.toml',
        "saved.ignored_max_mb": "10 default",
        "tmux.history_lines": "9 MNGR__TMUX__HISTORY_LINES",
        "tmux.session_prefix": '"mngr-" default',
    }
    assert lines[0].index("VALUE") == lines[1].index("false")
    assert lines[0].index("SOURCE") == lines[1].index("~/.mngr")


def test_list_is_the_default_and_has_an_alias(user: User) -> None:
    assert user.mngr("config").ok() == user.mngr("cfg", "list").ok()


def test_list_of_one_scope_shows_that_file_alone(user: User) -> None:
    write(user, "user", '[tmux]\nconfig = "~/.tmux.conf"\n')
    write(user, "project", "[tmux\n")
    assert values(user.mngr("config", "list", "--scope", "user", "--format", "json")) == {"tmux.config": "~/.tmux.conf"}
    assert user.mngr("config", "--scope", "local", "list").ok().stdout == "No settings in .mngr/settings.local.toml\n"
    assert "`.mngr/settings.toml` is not valid TOML" in user.mngr("config", "list").failed(2).stderr


def test_list_gives_objects_lines_and_templates(user: User) -> None:
    assert values(user.mngr("config", "list", "--format", "json")) == DEFAULTS
    row = {"key": "saved.ignored_max_mb", "value": 10, "source": "default"}
    assert user.mngr("config", "list", "--format", "json").json["settings"][0] == row
    assert user.mngr("config", "list", "--format", "jsonl").ok().stdout.count("\n") == 2
    assert "saved.ignored_max_mb=10\n" in user.mngr("config", "list", "--format", "{key}={value}").ok().stdout


def test_list_finds_a_typo_in_any_section_of_any_file(user: User) -> None:
    write(user, "user", "[commands.stop]\ntimout = '2m'\n[create_templates.fast]\nconect = false\n")
    write(user, "local", "[commands.create]\nconnect = 'perhaps'\n")
    error = user.mngr("config", "list").failed(2).stderr
    assert "error: 3 settings are wrong" in error
    assert "`commands.stop.timout`, set in `~/.mngr/settings.toml`, is not an option of `mngr stop`" in error
    assert "the closest key is `timeout`" in error
    assert "`create_templates.fast.conect`, set in `~/.mngr/settings.toml`, is not an option of `mngr create`" in error
    assert "`commands.create.connect`, set in `.mngr/settings.local.toml`, must be true or false" in error
    assert "`mngr config edit --scope user`" in error and "`mngr config edit --scope local`" in error
    one = user.mngr("config", "list", "--scope", "local").failed(2).stderr
    assert one.startswith("error: `commands.create.connect`") and "timout" not in one


def test_list_finds_a_bad_value_that_another_file_hides_here(user: User) -> None:
    write(user, "user", "[commands.create]\nconnect = 'perhaps'\n")
    write(user, "project", "[commands.create]\nconnect = true\n")
    assert "set in `~/.mngr/settings.toml`" in user.mngr("config", "list").failed(2).stderr


def test_list_finds_a_mistake_in_a_variable(user: User) -> None:
    error = user.mngr("config", "list", env={"MNGR__COMMANDS__CREATE__TIPE": "x"}).failed(2).stderr
    assert "set in `MNGR__COMMANDS__CREATE__TIPE`" in error and "the closest key is `type`" in error


def test_get_prints_the_value_alone(user: User) -> None:
    write(user, "user", '[commands.create]\nlabel = ["a=1"]\nconnect = false\nmessage = "two\\nlines\\u0007"\n')
    write(user, "project", '[workspace]\nextra_paths = { ".env" = "share" }\n')
    for key, text in {
        "tmux.session_prefix": "mngr-",
        "commands.create.label": '["a=1"]',
        "commands.create.connect": "false",
        "commands.create.message": "two\nlines\x07",
        "saved.ignored_max_mb": "10",
        "workspace.extra_paths": '{ ".env" = "share" }',
        'workspace.extra_paths.".env"': "share",
        "saved": "{ ignored_max_mb = 10 }",
    }.items():
        assert user.mngr("config", "get", key).ok().stdout == f"{text}\n", key
    found = user.mngr("config", "get", "commands.create.connect", "--format", "json").ok().json
    assert found == {"key": "commands.create.connect", "value": False, "source": "~/.mngr/settings.toml"}


def test_get_shows_control_characters_to_a_person(user: User) -> None:
    write(user, "user", '[tmux]\nconfig = "\\u001b[2J"\n')
    assert on_a_terminal(user, "config", "get", "tmux.config").ok().stdout == "\\x1b[2J\n"


def test_get_takes_overrides_and_a_scope(user: User) -> None:
    write(user, "user", "[tmux]\nhistory_lines = 1\n")
    write(user, "project", "[tmux]\nhistory_lines = 2\n")
    get = ("config", "get", "tmux.history_lines")
    assert user.mngr(*get).ok().stdout == "2\n"
    assert user.mngr(*get, "--scope", "user").ok().stdout == "1\n"
    assert user.mngr(*get, "-S", "tmux.history_lines=3").ok().stdout == "3\n"
    assert "is not set in `.mngr/settings.local.toml`" in user.mngr(*get, "--scope", "local").failed(1).stderr
    assert "is not set" in user.mngr("config", "get", "tmux.session_prefix", "--scope", "user").failed(1).stderr


@pytest.mark.parametrize(
    ("key", "said", "hint"),
    [
        ("commands.create.type", "`commands.create.type` is not set", "mngr config set commands.create.type VALUE"),
        ("commands.create.typ", "`typ` is not an option of `mngr create`", "`type`"),
        ("create_templates.x.typ", "`typ` is not an option of `mngr create`", "`type`"),
        ("commands.creat.type", "unknown key `commands.creat`", "`create`"),
        ("tmux.sesion_prefix", "unknown key `tmux.sesion_prefix`", "`session_prefix`"),
        ("tmxu.config", "unknown key `tmxu`", "`tmux`"),
        ("agent_types.mycly.command", "is not set", "`agent_types.mycli.command`"),
    ],
)
def test_get_and_explain_of_what_is_not_there_name_the_nearest(user: User, key: str, said: str, hint: str) -> None:
    write(user, "user", '[agent_types.mycli]\ncommand = "mycli"\n')
    for verb in ("get", "explain"):
        ran = user.mngr("config", verb, key).failed(1)
        error, advice = ran.stderr.splitlines()
        assert said in error and hint in advice
        assert ran.stdout == ""


def test_set_writes_the_users_file_privately_and_keeps_its_comments(user: User) -> None:
    ran = user.mngr("config", "set", "--scope", "user", "commands.create.type", "codex").ok()
    assert ran.stdout == 'set commands.create.type = "codex" in ~/.mngr/settings.toml\n'
    path = settings_file(user, "user")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.write_text("# mine\n" + path.read_text())
    user.mngr("config", "set", "--scope", "user", "commands.create.connect", "false").ok()
    assert path.read_text().startswith("# mine\n")
    assert tomllib.loads(path.read_text()) == {"commands": {"create": {"type": "codex", "connect": False}}}
    assert user.mngr("list").ok().stdout == "No agents found\n"


def test_set_for_a_project_and_for_oneself_in_it(user: User) -> None:
    below = user.repo / "src"
    below.mkdir()
    said = user.mngr("config", "set", "tmux.history_lines", "5", cwd=below).ok().stdout
    assert said == "set tmux.history_lines = 5 in .mngr/settings.toml\n"
    found = user.mngr("config", "set", "tmux.history_lines", "6", "--scope=local", "--format", "json").ok().json
    local = settings_file(user, "local")
    assert found == {"key": "tmux.history_lines", "value": 6, "scope": "local", "path": str(local)}
    assert settings_file(user, "project").read_text() == "[tmux]\nhistory_lines = 5\n"
    assert local.read_text() == "[tmux]\nhistory_lines = 6\n"
    assert not settings_file(user, "user").exists()
    outside = user.mngr("config", "set", "tmux.history_lines", "7", cwd=user.root).ok().stdout
    assert outside == "set tmux.history_lines = 7 in ~/.mngr/settings.toml\n"


def test_a_default_that_was_set_is_used(user: User) -> None:
    user.mngr("config", "set", "commands.create.connect-command", "touch connected").ok()
    user.mngr("config", "set", "create_templates.quick.transfer", "none").ok()
    user.mngr("create", "foo", "-t", "quick", "--command", "sleep 99").ok()
    assert (user.repo / "connected").exists()
    assert user.agent("foo")["transfer"] == "none"


def test_set_says_when_something_else_wins(user: User) -> None:
    write(user, "project", "[tmux]\nhistory_lines = 7\n")
    ran = user.mngr("config", "set", "--scope", "user", "tmux.history_lines", "5").ok()
    assert ran.stderr == "here it is 7, set in .mngr/settings.toml\n"


@pytest.mark.parametrize(
    ("key", "value", "said", "hint"),
    [
        ("commands.create.typ", "x", "`commands.create.typ` is not an option of `mngr create`", "`type`"),
        ("commands.create.connect", "maybe", "`commands.create.connect` must be true or false", ""),
        ("commands.create.transfer", "gitmirror", "`commands.create.transfer` cannot be `gitmirror`", "`git-mirror`"),
        ("commands.stop.timeout", "soon", "`commands.stop.timeout`", ""),
        ("create_templates.x.typ", "x", "`create_templates.x.typ` is not an option of `mngr create`", "`type`"),
        ("commands.nosuch.x", "1", "unknown key `commands.nosuch`", ""),
        ("commands.config.scope", "local", "has no effect: `mngr config` takes no defaults", ""),
        ("commands.create", "x", "`commands.create` must be a table", ""),
        ("tmux.history_lines", "many", "`tmux.history_lines` must be a whole number", ""),
        ("tmux.history", "5", "unknown key `tmux.history`", "`history_lines`"),
        ("a b", "5", "`a b` is not a key", ""),
    ],
)
def test_set_refuses_what_cannot_be_meant_and_writes_nothing(
    user: User, key: str, value: str, said: str, hint: str
) -> None:
    ran = user.mngr("config", "set", key, value).failed(2)
    assert said in ran.stderr and hint in ran.stderr and "``" not in ran.stderr
    assert not user.host_dir.exists() and not settings_file(user, "project").exists()


def test_unset_removes_a_value_and_says_what_holds_now(user: User) -> None:
    path = write(user, "user", "[tmux]\nhistory_lines = 5 # lines\nconfig = 'x'\n")
    write(user, "project", "[tmux]\nhistory_lines = 7\n")
    ran = user.mngr("config", "unset", "--scope", "user", "tmux.history_lines").ok()
    assert ran.stdout == "removed tmux.history_lines from ~/.mngr/settings.toml\n"
    assert ran.stderr == "here it is 7, set in .mngr/settings.toml\n"
    assert path.read_text() == "[tmux]\nconfig = 'x'\n"
    again = user.mngr("config", "unset", "--scope", "user", "tmux.history_lines").failed(1).stderr
    assert "`mngr config unset --scope project tmux.history_lines`" in again
    user.mngr("config", "unset", "--scope", "project", "tmux").ok()
    assert settings_file(user, "project").read_text() == ""


def test_unset_of_what_is_not_set_names_the_nearest(user: User) -> None:
    write(user, "user", "[tmux]\nhistory_lines = 5\n")
    assert "`tmux.history_lines`" in user.mngr("config", "unset", "tmux.history_line", cwd=user.root).failed(1).stderr


def test_a_bad_key_can_be_unset_and_then_all_is_well(user: User) -> None:
    write(user, "user", "[tmux]\nhistory = 5\n[commands.create]\ntyp = 'x'\n")
    user.mngr("list").failed(2)
    first = user.mngr("config", "unset", "--scope", "user", "tmux.history").ok()
    assert first.stderr.startswith("warning: `commands.create.typ`")
    assert user.mngr("config", "unset", "--scope", "user", "commands.create.typ").ok().stderr == ""
    user.mngr("list").ok()
    assert values(user.mngr("config", "list", "--format", "json")) == DEFAULTS


def test_a_broken_file_can_be_found_and_opened_and_everything_else_says_how(user: User) -> None:
    path = write(user, "user", "[tmux\n")
    assert user.mngr("config", "path", "--scope", "user").ok().stdout == f"{path}\n"
    assert user.mngr("config", "path").ok().stdout.count("yes") == 1
    for words in (
        ["list"],
        ["get", "tmux.config"],
        ["explain", "tmux.config"],
        ["set", "--scope", "user", "tmux.config", "x"],
        ["unset", "--scope", "user", "tmux.config"],
    ):
        error = user.mngr("config", *words).failed(2).stderr
        assert "settings.toml` is not valid TOML" in error and "`mngr config edit --scope user`" in error, words
    assert path.read_text() == "[tmux\n"
    mend = editor(user, 'printf "[tmux]\\nhistory_lines = 5\\n" > "$1"')
    ran = on_a_terminal(user, "config", "edit", "--scope", "user", EDITOR=mend).ok()
    assert ran.stdout == "~/.mngr/settings.toml is changed and fine\n"
    assert user.mngr("config", "get", "tmux.history_lines").ok().stdout == "5\n"


def test_another_files_mistake_does_not_stop_a_change(user: User) -> None:
    write(user, "project", "[tmux\n")
    ran = user.mngr("config", "set", "--scope", "user", "tmux.history_lines", "5").ok()
    assert "warning: `.mngr/settings.toml` is not valid TOML" in ran.stderr
    user.mngr("config", "unset", "--scope", "user", "tmux.history_lines").ok()


def test_edit_makes_the_directory_and_says_what_is_wrong_afterwards(user: User) -> None:
    wrong = editor(user, 'printf "[commands.create]\\ntyp = 1\\n" > "$1"')
    ran = on_a_terminal(user, "config", "edit", "--scope", "project", VISUAL=wrong, EDITOR="false").failed(2)
    assert "error: `commands.create.typ`, set in `.mngr/settings.toml`, is not an option" in ran.stdout
    assert "the closest key is `type`; `mngr config edit --scope project` opens the file" in ran.stdout
    assert settings_file(user, "project").exists()
    broken = editor(user, 'echo "[x" > "$1"')
    ran = on_a_terminal(user, "config", "edit", "--scope", "project", EDITOR=broken).failed(2)
    assert "is not valid TOML" in ran.stdout and "`mngr config edit --scope project`" in ran.stdout


def test_edit_that_changes_nothing_leaves_nothing(user: User) -> None:
    ran = on_a_terminal(user, "config", "edit", "--scope", "user", EDITOR="true --wait").ok()
    assert ran.stdout == "~/.mngr/settings.toml is as it was\n"
    assert not user.host_dir.exists()
    on_a_terminal(user, "config", "edit", EDITOR="true").ok()
    assert not (user.repo / ".mngr").exists()


def test_edit_without_its_editor_says_how_to_choose_one(user: User) -> None:
    for missing in ("no-such-editor", "'unclosed"):
        ran = on_a_terminal(user, "config", "edit", EDITOR=missing).failed(1)
        assert f"the editor `{missing}` is not installed" in ran.stdout and "EDITOR=nano" in ran.stdout
    assert "ended with exit code 1" in on_a_terminal(user, "config", "edit", EDITOR="false").failed(1).stdout
    assert not user.host_dir.exists()


def test_edit_without_a_terminal_runs_the_editor_that_is_set(user: User) -> None:
    path = settings_file(user, "project")
    for name in ("VISUAL", "EDITOR"):
        user.env.pop(name, None)
    ran = user.mngr("config", "edit").failed(5)
    assert "cannot open an editor: no terminal" in ran.stderr and str(path) in ran.stderr
    on_a_terminal(user, "config", "edit", "--headless", EDITOR="touch").failed(5)
    user.mngr("config", "edit", env={"EDITOR": "touch", "MNGR__HEADLESS": "true"}).failed(5)
    assert not path.exists()
    write_it = editor(user, 'echo "headless = true" > "$1"')
    ran = user.mngr("config", "edit", env={"EDITOR": write_it}).ok()
    assert ran.stdout == ".mngr/settings.toml is changed and fine\n"
    user.mngr("config", "edit", env={"EDITOR": write_it}).failed(5)


def test_path_shows_where_the_files_are(user: User) -> None:
    path = write(user, "local", "")
    found = user.mngr("config", "path", "--format", "json").ok().json["paths"]
    assert [(row["scope"], row["exists"]) for row in found] == [("user", False), ("project", False), ("local", True)]
    assert found[2]["path"] == str(path)
    assert user.mngr("config", "path", "--scope", "project").ok().stdout == f"{settings_file(user, 'project')}\n"
    elsewhere = user.mngr("config", "path", "--scope", "user", env={"MNGR_HOST_DIR": "/x"}).ok().stdout
    assert elsewhere == "/x/settings.toml\n"


def test_at_home_there_is_no_project(user: User) -> None:
    write(user, "user", "[tmux]\nhistory_lines = 5\n")
    found = user.mngr("config", "path", "--format", "json", cwd=user.home).ok().json["paths"]
    assert [row["path"] for row in found] == [str(settings_file(user, "user")), None, None]
    assert user.mngr("config", "get", "tmux.history_lines", cwd=user.home).ok().stdout == "5\n"
    user.mngr("config", "set", "--scope", "project", "tmux.history_lines", "6", cwd=user.home).failed(2)


def test_explain_shows_every_layer_and_marks_the_winner(user: User) -> None:
    write(user, "user", '[tmux]\nsession_prefix = "a-"\n')
    write(user, "project", '[tmux]\nsession_prefix = "b-"\n')
    words = ("config", "explain", "tmux.session_prefix", "-S", "tmux.session_prefix=d-")
    env = {"MNGR__TMUX__SESSION_PREFIX": "c-"}
    lines = user.mngr(*words, env=env).ok().stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["SOURCE", "VALUE"],
        ["default", '"mngr-"'],
        ["~/.mngr/settings.toml", '"a-"'],
        [".mngr/settings.toml", '"b-"'],
        ["MNGR__TMUX__SESSION_PREFIX", '"c-"'],
        ["-S", '"d-"', "wins"],
    ]
    found = user.mngr(*words, "--scope", "project", "--format", "json", env=env).ok().json
    assert found["key"] == "tmux.session_prefix"
    row = {"key": "tmux.session_prefix", "source": ".mngr/settings.toml", "value": "b-", "wins": False}
    assert found["values"] == [row]


def test_explain_of_a_section_explains_each_key_in_it(user: User) -> None:
    write(user, "user", "[tmux]\nhistory_lines = 5\n")
    write(user, "project", "[tmux]\nhistory_lines = 6\n")
    found = user.mngr("config", "explain", "tmux", "--format", "json").ok().json["values"]
    assert [(row["key"], row["value"], row["wins"]) for row in found] == [
        ("tmux.history_lines", 5, False),
        ("tmux.history_lines", 6, True),
        ("tmux.session_prefix", "mngr-", True),
    ]
    assert user.mngr("config", "explain", "tmux").ok().stdout.startswith("KEY ")


def test_the_state_directory_of_another_program_is_not_written(user: User) -> None:
    user.host_dir.mkdir()
    (user.host_dir / "data.json").write_text("{}")
    for words in (["set", "tmux.config", "x"], ["unset", "tmux.config"], ["edit"]):
        assert "another program" in user.mngr("config", *words, "--scope", "user").failed(1).stderr
    assert [path.name for path in user.host_dir.iterdir()] == ["data.json"]
    user.mngr("config", "set", "--scope", "project", "tmux.config", "x").ok()


def test_an_error_in_json_is_an_object(user: User) -> None:
    error = user.mngr("config", "get", "tmux.confg", "--format", "json").failed(1).json
    assert error == {
        "error": "unknown key `tmux.confg`",
        "hint": "the closest key is `config`",
        "exit_code": 1,
    }
