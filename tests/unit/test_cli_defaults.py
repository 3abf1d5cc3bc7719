"""Settings and templates as defaults of options."""

import pytest

from mngr.cli.output.durations import parse_duration
from mngr.cli.parser.defaults import overwrite, set_defaults
from mngr.cli.parser.parser import PAIR, Parser
from mngr.cli.parser.scan import parse
from mngr.errors import UsageError
from mngr.settings.layers import Value

FILE = "~/.mngr/settings.toml"


def make() -> Parser:
    parser = Parser("mngr create")
    parser.add_argument("address", nargs="?")
    parser.add_argument("-n", "--name")
    parser.add_argument("--type")
    parser.add_argument("--connect-command")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--share", type=float)
    parser.add_argument("--timeout", type=parse_duration)
    parser.add_argument("--transfer", choices=("git-worktree", "git-mirror"))
    parser.add_argument("--label", action="append")
    parser.add_argument("--connect", action=PAIR, default=True)
    parser.add_argument("--force", action="store_true")
    parser.add_everywhere_options()
    return parser


def parsed(settings: dict[str, object], *words: str):
    parser = make()
    set_defaults(parser, {key: Value(value, FILE) for key, value in settings.items()}, "commands.create")
    return parse(parser, words)


def refused(**settings: object) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parsed(settings)
    return caught.value


def test_settings_give_every_kind_of_option_its_default():
    args = parsed(
        {
            "type": "command", "connect_command": "mngr-e2e-connect", "count": 3, "share": 1, "timeout": "2m",
            "transfer": "git-mirror", "label": ["a=1", "b=2"], "connect": False, "force": True, "format": "json",
            "verbose": 2,
        }
    )  # fmt: skip
    assert (args.type, args.connect_command, args.count, args.share) == ("command", "mngr-e2e-connect", 3, 1.0)
    assert (args.timeout, args.transfer, args.label) == (120.0, "git-mirror", ["a=1", "b=2"])
    assert (args.connect, args.force, args.format, args.verbose) == (False, True, "json", 2)


def test_the_command_line_wins():
    args = parsed({"type": "command", "connect": False, "count": 3, "verbose": 2}, "--type", "codex", "--connect", "-v")
    assert (args.type, args.connect, args.count, args.verbose) == ("codex", True, 3, 1)


def test_a_list_on_the_command_line_replaces_that_of_the_settings():
    assert parsed({"label": ["a=1"]}, "--label", "b=2", "--label", "c=3").label == ["b=2", "c=3"]


def test_two_parses_do_not_share_a_list():
    parser = make()
    set_defaults(parser, {"label": Value(["a=1"], FILE)}, "commands.create")
    parse(parser, []).label.append("changed")
    assert parse(parser, []).label == ["a=1"]


def test_forms_that_mean_the_same():
    assert parsed({"connect-command": "x"}).connect_command == "x"
    assert parsed({"no_connect": True}).connect is False
    assert parsed({"no_connect": False}).connect is True
    assert parsed({"connect": "false"}).connect is False
    assert parsed({"label": "a=1"}).label == ["a=1"]
    assert parsed({"label": {"a": 1, "b": "x"}}).label == ["a=1", "b=x"]
    assert parsed({"count": "4"}).count == 4
    assert parsed({"name": 7}).name == "7"
    assert parsed({"timeout": 90}).timeout == 90.0


def test_an_unknown_key_names_the_file_and_the_nearest_key():
    error = refused(conect_command="x")
    assert error.message == f"`commands.create.conect_command`, set in `{FILE}`, is not an option of `mngr create`"
    assert error.hint == "the closest key is `connect_command`"
    assert error.exit_code == 2


@pytest.mark.parametrize("key", ["help", "version", "setting", "address"])
def test_what_makes_no_sense_as_a_default_is_no_key(key):
    assert "is not an option" in refused(**{key: True}).message


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("connect", "perhaps", "must be true or false, not 'perhaps'"),
        ("connect", 3, "must be true or false, not 3"),
        ("force", ["x"], "must be true or false, not ['x']"),
        ("count", "many", "takes a whole number, not 'many'"),
        ("count", 1.5, "takes a whole number, not '1.5'"),
        ("count", True, "must be a whole number, not True"),
        ("name", ["a"], "must be a string, not ['a']"),
        ("name", True, "must be a string, not True"),
        ("label", [["a"]], "must be a string, not ['a']"),
        ("timeout", "soon", "'soon' is not a length of time"),
        ("transfer", "git-miror", "cannot be `git-miror`"),
        ("verbose", -1, "must be a whole number, not -1"),
    ],
)
def test_a_value_of_the_wrong_type_names_its_key_and_file(key, value, said):
    assert refused(**{key: value}).message == f"`commands.create.{key}`, set in `{FILE}`, {said}"


def test_a_template_is_between_settings_and_the_command_line():
    parser = make()
    set_defaults(parser, {"type": Value("command", FILE), "count": Value(2, FILE)}, "commands.create")
    args = parse(parser, ["--name", "typed"])
    table = {"type": Value("codex", FILE), "name": Value("from-template", FILE), "label": Value(["a=1"], FILE)}
    overwrite(parser, args, table, "create_templates.review")
    assert (args.type, args.count, args.name, args.label) == ("codex", 2, "typed", ["a=1"])
    with pytest.raises(UsageError, match=r"`create_templates.review.tpye`"):
        overwrite(parser, args, {"tpye": Value("x", FILE)}, "create_templates.review")


def test_settings_reach_the_parts_of_a_verb():
    parser = Parser("mngr config")
    part = parser.add_subcommand("list", "Show all", default=True)
    part.add_argument("--all", action="store_true")
    set_defaults(parser, {"all": Value(True, FILE)}, "commands.config")
    assert parse(parser, []).all is True
