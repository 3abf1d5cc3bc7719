import os
import stat
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.settings import layers as config
from mngr.settings import schema as settings_schema
from mngr.settings import trust
from mngr.settings.edit import set_value, unset_value
from mngr.settings.layers import Value
from mngr.settings.values import format_key, parse_key


def make_repository(directory: str) -> None:
    os.makedirs(os.path.join(directory, ".git"))
    with open(os.path.join(directory, ".git", "HEAD"), "w") as file:
        file.write("ref: refs/heads/main\n")


class Place:
    """A home and a project of its own, on disk."""

    def __init__(self, root: str) -> None:
        self.home = os.path.join(root, "home")
        self.host_dir = os.path.join(self.home, ".mngr")
        self.project = os.path.join(root, "project")
        os.makedirs(self.home)
        make_repository(self.project)

    def path(self, scope: str) -> str:
        return config.scope_path(scope, self.host_dir, self.project)

    def write(self, scope: str, text: str | bytes) -> None:
        path = self.path(scope)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    def read(self, scope: str) -> str:
        with open(self.path(scope), encoding="utf-8") as file:
            return file.read()

    def load(
        self,
        *overrides: str,
        environ: Mapping[str, str] | None = None,
        cwd: str = "",
    ) -> config.Settings:
        """Everything that is set, trusted by its user."""
        at, variables = cwd or self.project, {"HOME": self.home, **(environ or {})}
        found = config.load(host_dir=self.host_dir, cwd=at, environ=variables, overrides=overrides)
        if not found.claims():
            return found
        trust.remember(self.host_dir, found.claims())
        return config.load(host_dir=self.host_dir, cwd=at, environ=variables, overrides=overrides)

    def refusal(self, *overrides: str, **options: Any) -> MngrError:
        with pytest.raises(UsageError) as caught:
            self.load(*overrides, **options)
        return caught.value


@pytest.fixture
def place(tmp_path):
    return Place(str(tmp_path))


# Layers


def test_each_later_layer_wins_and_every_value_knows_its_source(place):
    place.write("user", 'tmux.config = "user"')
    place.write("project", 'tmux.config = "project"')
    place.write("local", 'tmux.config = "local"')
    loaded = place.load("tmux.config=override", environ={"MNGR__TMUX__CONFIG": "variable"})
    assert loaded.explain("tmux.config") == [
        Value("user", "~/.mngr/settings.toml"),
        Value("project", ".mngr/settings.toml"),
        Value("local", ".mngr/settings.local.toml"),
        Value("variable", "MNGR__TMUX__CONFIG"),
        Value("override", "-S"),
    ]
    assert loaded.find("tmux.config") == Value("override", "-S")
    assert place.load().text("tmux.config") == "local"


def test_tables_merge_key_by_key(place):
    place.write("user", '[commands.create]\nprovider = "local"\nconnect-command = "mine"')
    place.write("project", "[commands.create]\nconnect = false\nconnect_command = 'theirs'")
    table = place.load("commands.create.connect-command=now").table("commands.create")
    assert table == {
        "provider": Value("local", "~/.mngr/settings.toml"),
        "connect_command": Value("now", "-S"),
        "connect": Value(False, ".mngr/settings.toml"),
    }


def test_the_environment_of_an_agent_type_merges_by_variable_and_names_all_sources(place):
    place.write("user", '[agent_types.x]\ncommand = "go"\nenv = {A = "1", B = "1"}')
    place.write("project", '[agent_types.x.env]\nB = "2"')
    loaded = place.load()
    assert loaded.table("agent_types.x.env") == {
        "A": Value("1", "~/.mngr/settings.toml"),
        "B": Value("2", ".mngr/settings.toml"),
    }
    whole = loaded.table("agent_types.x")["env"]
    assert whole == Value({"A": "1", "B": "2"}, "~/.mngr/settings.toml, .mngr/settings.toml")
    assert loaded.get("agent_types.x") == {"command": "go", "env": {"A": "1", "B": "2"}}


def test_defaults_are_the_lowest_layer(place):
    loaded = place.load()
    assert loaded.flat() == {
        "saved.ignored_max_mb": Value(10, "default"),
        "tmux.session_prefix": Value("mngr-", "default"),
    }
    assert place.load("saved.ignored_max_mb=2.5").number("saved.ignored_max_mb") == 2.5


def test_an_absent_key_gives_the_callers_default(place):
    loaded = place.load()
    assert loaded.get("tmux.config") is None
    assert loaded.text("tmux.config", "x") == "x"
    assert loaded.number("tmux.history_lines", 7) == 7
    assert loaded.strings("agent_types.x.cli_args", ["a"]) == ["a"]
    assert loaded.table("commands.create") == {}
    assert loaded.explain("tmux.config") == []


def test_names_include_empty_tables_of_all_layers(place):
    place.write("user", "[create_templates.b]\n[agent_types.other]")
    place.write("project", "[create_templates.a]\nx = 1")
    loaded = place.load("create_templates.c.x=1")
    assert loaded.names("create_templates") == ["a", "b", "c"]
    assert loaded.names("agent_types") == ["other"]
    assert loaded.names("commands") == []


def test_flat_quotes_the_names_that_need_it(place):
    place.write("user", '[agent_types."my cli"]\ncommand = "go"')
    loaded = place.load()
    assert 'agent_types."my cli".command' in loaded.flat()
    assert loaded.text('agent_types."my cli".command') == "go"
    assert loaded.text(("agent_types", "my cli", "command")) == "go"


def test_extra_paths_may_be_a_list_or_a_table_and_the_later_layer_replaces_them(place):
    place.write("user", '[workspace]\nextra_paths = [".env", "data"]')
    assert place.load().get("workspace.extra_paths") == {".env": "copy", "data": "copy"}
    place.write("project", '[workspace.extra_paths]\n"node_modules" = "share"')
    table = place.load().table("workspace.extra_paths")
    assert table == {"node_modules": Value("share", ".mngr/settings.toml")}
    assert place.load().get("workspace.extra_paths.node_modules") == "share"


def test_cli_args_may_be_a_list_or_one_shell_quoted_string(place):
    place.write("user", "[agent_types]\na.cli_args = ['--x', 'y z']\nb.cli_args = \"--x 'y z'\"")
    loaded = place.load()
    assert loaded.strings("agent_types.a.cli_args") == loaded.strings("agent_types.b.cli_args") == ["--x", "y z"]


# Where the files are


def test_the_host_dir_is_absolute_and_expands_the_home_it_is_given():
    assert config.host_dir({"HOME": "/h"}) == "/h/.mngr"
    assert config.host_dir({"HOME": "/h", "MNGR_HOST_DIR": ""}) == "/h/.mngr"
    assert config.host_dir({"HOME": "/h", "MNGR_HOST_DIR": "~/x/"}) == "/h/x"
    assert config.host_dir({"HOME": "/h", "MNGR_HOST_DIR": "x"}) == os.path.abspath("x")


def test_the_project_is_found_from_a_directory_below_it(place):
    below = os.path.join(place.project, "a", "b")
    os.makedirs(below)
    place.write("project", "tmux.config = 'p'")
    assert place.load(cwd=below).find("tmux.config") == Value("p", ".mngr/settings.toml")
    assert config.scope_path("local", place.host_dir, below) == os.path.join(place.project, ".mngr/settings.local.toml")


def test_the_nearest_settings_make_a_project_even_without_git(place):
    inner = os.path.join(place.project, "inner")
    os.makedirs(os.path.join(inner, ".mngr"))
    with open(os.path.join(inner, ".mngr", "settings.local.toml"), "w") as file:
        file.write("tmux.config = 'inner'")
    place.write("project", "tmux.config = 'outer'")
    assert place.load(cwd=inner).explain("tmux.config") == [Value("inner", ".mngr/settings.local.toml")]


def test_an_empty_git_directory_is_no_repository(place):
    os.makedirs(os.path.join(place.project, "inner", ".git"))
    assert config.project_root(os.path.join(place.project, "inner"), place.host_dir) == place.project


def test_an_empty_mngr_directory_does_not_hide_the_project_above(place):
    os.makedirs(os.path.join(place.project, "inner", ".mngr"))
    assert config.project_root(os.path.join(place.project, "inner"), place.host_dir) == place.project


@pytest.mark.parametrize("repository", [False, True])
@pytest.mark.parametrize("below", ["", "notes"])
def test_the_users_own_settings_are_never_a_projects(place, repository, below):
    place.write("user", "tmux.config = 'u'")
    cwd = os.path.join(place.home, below)
    os.makedirs(cwd, exist_ok=True)
    if repository:
        make_repository(place.home)
    assert config.project_root(cwd, place.host_dir) is None
    assert place.load(cwd=cwd).explain("tmux.config") == [Value("u", "~/.mngr/settings.toml")]


def test_the_users_own_settings_are_recognised_through_a_link(place, tmp_path):
    place.write("user", "tmux.config = 'u'")
    link = tmp_path / "link"
    link.symlink_to(place.home)
    assert config.project_root(str(link), place.host_dir) is None


def test_the_home_directory_has_no_project_scope(place):
    with pytest.raises(UsageError, match="holds the user's settings") as caught:
        config.scope_path("project", place.host_dir, place.home)
    assert "--scope user" in caught.value.hint


def test_outside_any_project_a_new_one_would_begin_in_the_current_directory(place, tmp_path):
    assert config.scope_path("project", place.host_dir, str(tmp_path)) == str(tmp_path / ".mngr/settings.toml")


# Refusals


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("tmux.sesion_prefix = 'a'", "unknown key `tmux.sesion_prefix`", "the closest key is `session_prefix`"),
        ("[tmr.paths]\nreadonly = 'a'", "unknown key `tmr.paths.readonly`", "the closest key is `read_only`"),
        ("saved.q = 1", "unknown key `saved.q`", "known: `ignored_max_mb`"),
    ],
)
def test_an_unknown_key_names_the_file_the_key_and_the_nearest_good_key(place, text, message, hint):
    place.write("project", text)
    error = place.refusal()
    assert error.message == f"{message} in `.mngr/settings.toml`"
    assert error.hint.startswith(hint)


FOREIGN = """
prefix = "my-"
default_host_dir = "/somewhere"
headless = true
[tmuxx]
a = 1
[providers.modal]
a = 1
[retry]
connect_retry_times = 5
[logging]
console_level = "DEBUG"
[commands.creat]
x = 1
[agent_types.x]
comand = "a"
command = "b"
[plugins.board]
columns = ["a"]
enabled = false
[work_dir_extra_paths]
".env" = "COPY"
"""


def test_what_another_version_of_mngr_sets_is_used_or_named_as_ignored(place):
    place.write("user", FOREIGN)
    loaded = place.load(environ={"MNGR__FOO__BAR": "1"})
    assert [text.replace("`~/.mngr/settings.toml`", "FILE") for text in loaded.ignored] == [
        "unknown key `default_host_dir` in FILE (ignored)",
        "unknown key `tmuxx` in FILE (ignored; the closest key is `tmux`)",
        "unknown key `providers.modal.a` in FILE (ignored)",
        "unknown key `agent_types.x.comand` in FILE (ignored; the closest key is `command`)",
        "unknown key `plugins.board.columns` in FILE (ignored)",
        "unknown key `foo` in `MNGR__FOO__BAR` (ignored)",
    ]
    assert loaded.text("tmux.session_prefix") == loaded.text("prefix") == "my-"
    assert loaded.get("workspace.extra_paths") == {".env": "copy"}
    assert loaded.get("headless") is True and loaded.get("retry.connect_retry_times") == 5
    assert loaded.get("agent_types.x.command") == "b" and loaded.get("plugins.board.enabled") is False
    for typed in ("tmuxx.a=1", "agent_types.x.comand=a"):
        assert place.refusal(typed).message.startswith("unknown key")


def test_the_prefix_of_sessions_has_three_spellings(place):
    place.write("user", 'prefix = "a-"\n')
    assert place.load().find("tmux.session_prefix") == Value("a-", "~/.mngr/settings.toml")
    place.write("user", 'prefix = "a-"\n[tmux]\nsession_prefix = "b-"\n')
    assert place.load().text("prefix") == "b-"
    assert place.load(environ={"MNGR_PREFIX": "c-"}).find("prefix") == Value("c-", "MNGR_PREFIX")
    assert place.load(environ={"MNGR_PREFIX": "c-", "MNGR__PREFIX": "d-"}).text("prefix") == "d-"
    assert "must be a string of letters" in place.refusal(environ={"MNGR_PREFIX": "a.b"}).message
    unset_value(place.path("user"), "prefix")
    assert place.read("user") == '[tmux]\nsession_prefix = "b-"\n'
    unset_value(place.path("user"), "prefix")
    assert place.read("user") == ""


def test_an_unknown_key_in_a_variable_or_override_names_it(place):
    message = place.refusal(environ={"MNGR__TMUX__CONFG": "x"}).message
    assert message == "unknown key `tmux.confg` in `MNGR__TMUX__CONFG`"
    assert place.refusal("tmux.confg=x").message == "unknown key `tmux.confg` in `-S`"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tmux.config = 5", "`tmux.config` in `.mngr/settings.toml` must be a string, not `5`"),
        ("tmux.history_lines = 1.5", "must be a whole number, 0 or more, not `1.5`"),
        ("tmux.history_lines = true", "must be a whole number, 0 or more, not `true`"),
        ("tmux.history_lines = -1", "not `-1`"),
        (f"tmux.history_lines = 0x{'f' * 9000}", "not a number too large"),
        ("saved.ignored_max_mb = nan", "must be a number, 0 or more, not `nan`"),
        ("saved.ignored_max_mb = 'x'", 'not `"x"`'),
        ("tmux.session_prefix = 'a.b'", 'must be a string of letters, digits, `-` and `_`, not `"a.b"`'),
        ("tmux = 1", "`tmux` in `.mngr/settings.toml` must be a table, not `1`"),
        ("[[tmux]]", "must be a table, not a list"),
        ("[agent_types]\nx = 'claude'", "`agent_types.x` in `.mngr/settings.toml` must be a table"),
        ("[agent_types.x]\nenv = {A = 1}", "`agent_types.x.env.A` in `.mngr/settings.toml` must be a string"),
        (
            "[agent_types.x]\ncli_args = ['a', 1]",
            "must be a list of strings, or one string in shell quoting, not a list",
        ),
        ('[agent_types.x]\ncli_args = "it\'s"', 'not `"it\'s"` (no closing quotation)'),
        ("[workspace]\nextra_paths = {a = 'link'}", 'a table of paths that are each "copy" or "share", not a table'),
        ("[workspace]\nextra_paths = 'a'", 'not `"a"`'),
        ("[commands.create]\nx = 2026-01-01", "not `2026-01-01`"),
        ('tmux.config = "a\\u0000"', 'not `"a\\u0000"`'),
        ("commands.create" + ".x" * 1000 + " = 1", "list or table, not a table"),
    ],
)
def test_a_wrong_type_names_the_file_the_key_the_expected_and_the_found(place, text, said):
    place.write("project", text)
    assert said in place.refusal().message


def test_a_syntax_error_names_the_file_and_the_line(place):
    place.write("project", "[tmux]\n\nconfig 'x'\n")
    message = place.refusal().message
    assert message.startswith("`.mngr/settings.toml` is not valid TOML: ")
    assert "line 3" in message
    place.write("project", "[tmux]\nconfig =")
    assert "line 2" in place.refusal().message


def test_text_that_is_not_utf8_names_the_line(place):
    place.write("project", b"[tmux]\nconfig = '\xff'\n")
    assert place.refusal().message == "`.mngr/settings.toml` is not UTF-8 text (at line 2)"


def test_a_byte_order_mark_is_passed_over(place):
    place.write("project", b"\xef\xbb\xbftmux.config = 'x'\r\n")
    assert place.load().text("tmux.config") == "x"


def test_bottomless_nesting_is_an_ordinary_error(place):
    place.write("project", "x = " + "[" * 20000)
    assert "nested too deeply" in place.refusal().message
    place.write("project", "")
    assert place.load("commands.create.x=" + "[" * 20000).text("commands.create.x") == "[" * 20000


def test_a_settings_file_that_cannot_be_read_is_an_error_and_not_absent(place):
    os.makedirs(place.path("project"))
    with pytest.raises(MngrError, match=r"cannot read `\.mngr/settings\.toml`"):
        place.load()


def test_a_typed_accessor_refuses_what_an_untyped_key_holds(place):
    loaded = place.load("commands.create.x=[1]", "commands.create.y=a")
    for read in (loaded.text, loaded.number, loaded.strings, loaded.table):
        with pytest.raises(UsageError, match=r"`commands\.create\.x` in `-S` must be"):
            read("commands.create.x")
    assert loaded.strings("commands.create.y") == ["a"]


# Variables and overrides


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("modal", "modal"),
        ("", ""),
        ("true", True),
        ("True", "True"),
        ("5", 5),
        ("-2.5", -2.5),
        ('["a", 1]', ["a", 1]),
        ("{a = 1}", {"a": 1}),
        ('"quoted"', '"quoted"'),
        ("[WIP] fix", "[WIP] fix"),
        ("2026-01-01", "2026-01-01"),
        ("[2026-01-01]", "[2026-01-01]"),
        ("1.10", "1.10"),
        ("12e3", "12e3"),
        ("0x10", "0x10"),
        ("007", "007"),
        (" 5", " 5"),
        ("5 # five", "5 # five"),
        ("5\ny = 1", "5\ny = 1"),
        ("inf", "inf"),
        ("-inf", "-inf"),
        ("+nan", "+nan"),
        ("9" * 30, "9" * 30),
        ("9" * 9000, "9" * 9000),
        ("0x" + "f" * 9000, "0x" + "f" * 9000),
    ],
)
def test_untyped_text_is_a_toml_value_only_when_nothing_of_it_is_lost(place, text, value):
    for loaded in (
        place.load(f"commands.create.x={text}"),
        place.load(environ={"MNGR__COMMANDS__CREATE__X": text}),
    ):
        found = loaded.get("commands.create.x")
        assert found == value
        assert type(found) is type(value)


def test_text_is_read_as_the_type_that_the_key_has(place):
    loaded = place.load(
        "tmux.config=5",
        "tmux.session_prefix=true",
        "tmux.history_lines=5_000",
        "saved.ignored_max_mb=1.50",
        "agent_types.x.cli_args=--a 'b c'",
        'agent_types.y.cli_args=["--a", "b c"]',
        'workspace.extra_paths={".env" = "share"}',
        "agent_types.x.env.PORT=80",
    )
    assert loaded.get("tmux.config") == "5"
    assert loaded.get("tmux.session_prefix") == "true"
    assert loaded.get("tmux.history_lines") == 5000
    assert loaded.get("saved.ignored_max_mb") == 1.5
    assert loaded.get("agent_types.x.cli_args") == loaded.get("agent_types.y.cli_args") == ["--a", "b c"]
    assert loaded.get("workspace.extra_paths") == {".env": "share"}
    assert loaded.get("agent_types.x.env") == {"PORT": "80"}
    assert "`tmux.history_lines` in `-S` must be a whole number" in place.refusal("tmux.history_lines=many").message


def test_text_gives_an_untyped_value_as_it_was_written(place):
    loaded = place.load("commands.create.a=5", "commands.create.b=true", "commands.create.c=2.5")
    assert [loaded.text(f"commands.create.{name}") for name in "abc"] == ["5", "true", "2.5"]


def test_a_variable_matches_an_existing_name_whatever_its_case_and_dashes(place):
    place.write("user", "[agent_types.My-Cli]\ncommand = 'a'")
    loaded = place.load(
        environ={"MNGR__AGENT_TYPES__MY_CLI__COMMAND": "b", "MNGR__CREATE_TEMPLATES__NEW__PROVIDER": "modal"}
    )
    assert loaded.text("agent_types.My-Cli.command") == "b"
    assert loaded.names("agent_types") == ["My-Cli"]
    assert loaded.text("create_templates.new.provider") == "modal"


def test_the_name_of_an_agents_variable_keeps_its_case_and_underscores(place):
    loaded = place.load(environ={"MNGR__AGENT_TYPES__X__ENV__API__KEY": "k"})
    assert loaded.get("agent_types.x.env") == {"API__KEY": "k"}


def test_a_variable_may_set_a_whole_table_and_a_longer_one_refines_it(place):
    loaded = place.load(environ={"MNGR__TMUX": "{config = 'a', history_lines = 1}", "MNGR__TMUX__CONFIG": "b"})
    assert loaded.get("tmux") == {"session_prefix": "mngr-", "config": "b", "history_lines": 1}
    assert "must be a table" in place.refusal(environ={"MNGR__TMUX": "x"}).message


@pytest.mark.parametrize("variable", ["MNGR__", "MNGR__TMUX__", "MNGR__TMUX____CONFIG"])
def test_a_variable_without_a_full_name_is_refused(place, variable):
    assert place.refusal(environ={variable: "x"}).message == f"`{variable}` names no setting"


def test_other_variables_of_ours_are_no_settings(place):
    assert place.load(environ={"MNGR_HOST_DIR": "/x", "MNGR_AGENT_NAME": "a"}).explain("tmux.config") == []


@pytest.mark.parametrize("override", ["tmux.config", "", "=x", "tmux.=x", "tmux..config=x", 'tmux."config=x'])
def test_an_override_that_is_not_key_and_value_is_refused(place, override):
    assert f"{override}`" in place.refusal(override).message


def test_an_override_may_quote_its_key_and_hold_equals_signs(place):
    loaded = place.load('agent_types."a=b.c".command=x=y', "agent_types . 'd e' . command=z")
    assert loaded.text(("agent_types", "a=b.c", "command")) == "x=y"
    assert loaded.text(("agent_types", "d e", "command")) == "z"


def test_an_empty_name_is_refused(place):
    assert "a name is empty" in place.refusal('agent_types."".command=x').message


# Keys


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", 'a."', "a b", 'a"b"', '"a"b', "a=b", '"\\q"', '"""a"""'])
def test_text_that_is_no_key_is_refused(text):
    with pytest.raises(UsageError, match="is not a key"):
        parse_key(text)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
@example(["\x7f", "é", '"\\', "a.b", "", "\n"])
def test_every_key_survives_format_and_parse(parts):
    assert parse_key(format_key(tuple(parts))) == tuple(parts)


# Editing


def test_setting_keeps_comments_order_and_the_rest_of_the_file(place):
    before = "# mine\n[tmux] # t\nconfig = 'a' # c\n\n# agents\n[agent_types.x.env]\nA = '1'\n"
    place.write("user", before)
    set_value(place.path("user"), "tmux.config", "b")
    assert place.read("user") == before.replace("'a'", '"b"')
    set_value(place.path("user"), "agent_types.x.command", "go")
    assert place.load().get("agent_types.x") == {"command": "go", "env": {"A": "1"}}
    for comment in ("# mine", "# t", "# c", "# agents"):
        assert place.read("user").count(comment) == 1


def test_setting_makes_a_private_user_file_and_a_shared_project_file(place):
    for scope, mode in (("user", 0o600), ("project", 0o644 & ~_umask()), ("local", 0o600)):
        set_value(place.path(scope), "tmux.config", scope, scope=scope)
        assert stat.S_IMODE(os.stat(place.path(scope)).st_mode) == mode
        assert place.load().find("tmux.config") is not None
    assert stat.S_IMODE(os.stat(place.host_dir).st_mode) == 0o700
    assert place.load().text("tmux.config") == "local"
    assert sorted(os.listdir(os.path.join(place.project, ".mngr"))) == ["settings.local.toml", "settings.toml"]


def test_setting_writes_through_a_link(place, tmp_path):
    target = tmp_path / "dotfiles.toml"
    target.write_text("tmux.config = 'a'\n")
    os.makedirs(place.host_dir)
    os.symlink(target, place.path("user"))
    set_value(place.path("user"), "tmux.config", "b")
    assert os.path.islink(place.path("user"))
    assert target.read_text() == 'tmux.config = "b"\n'


def test_setting_replaces_an_option_under_the_spelling_it_has(place):
    place.write("user", "[commands.create]\nconnect-command = 'a'\n")
    set_value(place.path("user"), "commands.create.connect_command", "b")
    assert place.read("user") == '[commands.create]\nconnect-command = "b"\n'
    unset_value(place.path("user"), "commands.create.connect_command")
    assert place.read("user") == ""


def test_setting_replaces_a_table_by_a_list(place):
    place.write("user", "[workspace.extra_paths]\n'.env' = 'share'\n[tmux]\nconfig = 'a'\n")
    set_value(place.path("user"), "workspace.extra_paths", '["a", "b"]')
    loaded = place.load()
    assert loaded.get("workspace.extra_paths") == {"a": "copy", "b": "copy"}
    assert loaded.text("tmux.config") == "a"


def test_setting_works_inside_inline_and_dotted_tables(place):
    place.write("user", "tmux.config = 'a'\nagent_types = {x = {command = 'c'}}\n")
    set_value(place.path("user"), "tmux.history_lines", "3")
    set_value(place.path("user"), "agent_types.x.env.A", "1")
    set_value(place.path("user"), "agent_types.y.command", "d")
    loaded = place.load()
    assert loaded.get("tmux.history_lines") == 3
    assert loaded.get("agent_types") == {"x": {"command": "c", "env": {"A": "1"}}, "y": {"command": "d"}}


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("tmux.confg", "x", "unknown key `tmux.confg`"),
        ("tmux.history_lines", "x", '`tmux.history_lines` must be a whole number, 0 or more, not `"x"`'),
        ("tmux", "{config = 'a'}", "`tmux` is a section"),
        ("tmux", "{}", "`tmux` is a section"),
        ("tmux.config.x", "a", "`tmux.config` must be a string, not a table"),
        ("providers.x", "a", "`providers.x` must be a table"),
        ("tmux.config", "\udcff", "is not UTF-8 text"),
        ("workspace.extra_paths.a", "share", "without disturbing the rest of it"),
    ],
)
def test_setting_refuses_what_would_not_load_and_leaves_the_file_alone(place, key, text, said):
    before = "[workspace]\nextra_paths = ['.env']\n"
    place.write("user", before)
    with pytest.raises(MngrError) as caught:
        set_value(place.path("user"), key, text)
    assert said in caught.value.message
    assert place.read("user") == before


def test_setting_in_a_broken_file_names_the_line_and_leaves_it_alone(place):
    place.write("user", "[tmux\n")
    with pytest.raises(UsageError, match="line 1"):
        set_value(place.path("user"), "tmux.config", "a")
    assert place.read("user") == "[tmux\n"


def test_setting_in_a_directory_that_cannot_be_made_is_an_ordinary_error(place):
    with open(place.host_dir, "w"):
        pass
    with pytest.raises(MngrError, match="cannot write"):
        set_value(place.path("user"), "tmux.config", "a")


def test_unsetting_removes_the_table_it_empties_but_never_a_comment(place):
    place.write("user", "[commands.create]\na = 1\n[commands.list] # why\nb = 1\n[commands.stop]\n# note\nc = 1\n")
    for key in ("commands.create.a", "commands.list.b", "commands.stop.c"):
        unset_value(place.path("user"), key)
    assert place.read("user") == "[commands.list] # why\n[commands.stop]\n# note\n"


def test_unsetting_takes_whole_tables_and_keys_of_another_version(place):
    place.write("user", "[create_templates.a]\nx = 1\ny = 2\n[providers.modal]\nz = 1\n[tmux]\nconfig = 'a'\n")
    unset_value(place.path("user"), "create_templates.a")
    unset_value(place.path("user"), "providers")
    assert place.read("user") == "[tmux]\nconfig = 'a'\n"


def test_unsetting_an_absent_key_names_the_nearest_key_set_there(place):
    place.write("user", "[tmux]\nconfig = 'a'\n")
    with pytest.raises(NotFoundError) as caught:
        unset_value(place.path("user"), "tmux.confg")
    assert caught.value.message == f"`tmux.confg` is not set in `{place.path('user')}`"
    assert caught.value.hint == "the closest key set there is `tmux.config`"
    with pytest.raises(NotFoundError):
        unset_value(place.path("user"), "tmux.config.x")
    with pytest.raises(NotFoundError):
        unset_value(place.path("project"), "tmux.config", scope="project")
    assert not os.path.exists(os.path.dirname(place.path("project")))


# Start-up


def test_loading_without_settings_imports_nothing_heavy(tmp_path):
    script = (
        "import sys, os; before = set(sys.modules); from mngr.settings import layers as config\n"
        "s = config.load(host_dir=sys.argv[1] + '/h', cwd=sys.argv[1], environ=os.environ)\n"
        "assert s.text('tmux.session_prefix') == 'mngr-'; s.table('commands.create'); s.flat()\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    heavy = {"tomllib", "tomlkit", "difflib", "json", "shlex", "dataclasses", "pathlib", "inspect", "datetime"}
    assert heavy & set(done.stdout.split()) == set()
    assert "mngr.settings.layers" in done.stdout


# Anything at all

NAMES = st.sampled_from(
    [
        "tmux",
        "config",
        "history_lines",
        "commands",
        "create",
        "agent_types",
        "x",
        "env",
        "cli_args",
        "workspace",
        "extra_paths",
        "saved",
        "ignored_max_mb",
        "list",
        "providers",
        "a-b",
        "a_b",
        '"my cli"',
        "''",
        "session_prefix",
    ]
)
KEYS = st.lists(NAMES, min_size=1, max_size=5).map(".".join) | st.text(max_size=12)
VALUES = st.sampled_from(
    [
        "1",
        "-1",
        "1.5",
        "nan",
        "inf",
        "true",
        "'s'",
        '"\\u0000"',
        "[]",
        "['a', 'b']",
        "[1, [2]]",
        "{}",
        "{a = 'copy'}",
        "2026-01-01",
        "07:00:00",
        "{a.b = 1}",
        "[{a = 1}]",
        "0xffffffffffffffffffff",
        '"""\n"""',
    ]
) | st.text(max_size=8)
LINES = st.builds("{} = {}".format, KEYS, VALUES) | KEYS.map("[{}]".format) | KEYS.map("[[{}]]".format) | st.just("# c")
TOML = st.lists(LINES, max_size=8).map("\n".join)
VARIABLES = st.lists(NAMES.map(lambda name: name.upper().replace("-", "_")), max_size=5).map(
    lambda parts: "MNGR__" + "__".join(parts)
)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _use(loaded: config.Settings) -> None:
    """Everything a reader may do with settings that were accepted."""
    for key, value in loaded.flat().items():
        assert loaded.find(key) == value or value.value != value.value
        assert loaded.explain(key)[-1].source == value.source
    for section in settings_schema.SCHEMA:
        loaded.get(section)
        loaded.table(section)
        for name in loaded.names(section):
            loaded.table((section, name))


@settings(deadline=None, max_examples=300)
@given(TOML.map(str.encode) | st.binary(max_size=40))
def test_any_file_loads_or_is_refused_in_our_own_words(data):
    with tempfile.TemporaryDirectory() as root:
        place = Place(root)
        place.write("project", data)
        try:
            loaded = place.load()
        except MngrError:
            return
        _use(loaded)


@settings(deadline=None, max_examples=300)
@given(
    st.dictionaries(VARIABLES | st.text().map("MNGR__".__add__), VALUES, max_size=3),
    st.lists(st.builds("{}={}".format, KEYS, VALUES) | st.text(), max_size=3),
)
def test_any_variables_and_overrides_load_or_are_refused_in_our_own_words(environ, overrides):
    try:
        loaded = config.load(host_dir="/nonexistent", cwd="/nonexistent", environ=environ, overrides=overrides)
    except MngrError:
        return
    _use(loaded)


@settings(deadline=None, max_examples=300)
@given(TOML, KEYS, VALUES | st.text())
@example("[agent_types.x.env]\nA = '1'\n[tmux]\n[agent_types.y]\n", "agent_types.x.command", "\x7f\r\n\x1b'\"\\")
def test_a_change_is_read_back_or_else_leaves_the_file_as_it_was(before, key, text):
    with tempfile.TemporaryDirectory() as root:
        place = Place(root)
        place.write("user", before)
        path = place.path("user")
        try:
            set_value(path, key, text)
        except MngrError:
            assert _bytes(path) == before.encode()
        else:
            changed = tomllib.loads(place.read("user"))
            alone = config.load(host_dir=root + "/none", cwd=root, environ={}, overrides=[f"{key}={text}"])
            part = {"agent_types": 3, "commands": 3, "create_templates": 3}.get(parse_key(key)[0], 2)
            wanted = alone.get(parse_key(key))
            layer = settings_schema.read_layer(_only(changed, parse_key(key)[:part]), "")
            found = config.Settings([layer]).get(parse_key(key))
            assert found == wanted
            unset_value(path, key)
            with pytest.raises(NotFoundError):
                unset_value(path, key)


@settings(deadline=None, max_examples=200)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_that_is_set_is_what_is_got(text):
    with tempfile.TemporaryDirectory() as root:
        place = Place(root)
        set_value(place.path("project"), 'agent_types."my cli".command', text, scope="project")
        assert place.load().find('agent_types."my cli".command') == Value(text, ".mngr/settings.toml")


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _only(tree: dict[str, Any], key: Sequence[str]) -> dict[str, Any]:
    """The part of a tree that holds one key, under whichever spelling it has there."""
    if not key:
        return tree
    names = [name for name in tree if name.replace("-", "_") == key[0].replace("-", "_")]
    name = key[0] if key[0] in names else names[0]
    return {name: _only(tree[name], key[1:]) if isinstance(tree[name], dict) else tree[name]}
