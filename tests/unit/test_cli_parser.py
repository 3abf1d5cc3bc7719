"""A verb's command line: how words become values, and what a mistake says."""

import string

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from mngr.cli.output.durations import parse_duration
from mngr.cli.parser.parser import PAIR, Parser, given
from mngr.cli.parser.scan import parse, scan
from mngr.errors import UsageError


def make() -> Parser:
    parser = Parser("mngr create", summary="Start an agent", examples=[("mngr create foo", "start `foo`")])
    parser.add_argument("address", nargs="?", metavar="ADDRESS", help="name and place")
    parser.add_argument("kind", nargs="?", metavar="KIND", help="what it runs")
    parser.add_argument("-n", "--name", help="its name")
    parser.add_argument("-m", "--message", help="what to tell it")
    parser.add_argument("--count", type=int, default=1, help="how many")
    parser.add_argument("--timeout", type=parse_duration, default=600.0, help="how long to wait")
    parser.add_argument("--transfer", choices=("git-worktree", "git-mirror", "rsync", "none"), help="how to copy")
    parser.add_argument("--label", action="append", metavar="KEY=VALUE", help="a label")
    parser.add_argument("--connect", action=PAIR, default=True, help="attach to it")
    parser.add_argument(
        "--include-unclean", "--no-ensure-clean", action=PAIR, negative=("--exclude-unclean",), dest="unclean"
    )
    parser.add_argument("-f", "--force", action="store_true", help="even so")
    parser.add_rest("ARGS", "for the program itself")
    parser.add_everywhere_options()
    return parser


def failure(*words: str, parser: Parser | None = None) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse(parser or make(), words)
    return caught.value


def test_names_and_options_mix_freely():
    args = parse(make(), ["foo", "--no-connect", "codex", "-n", "bar", "--label=a=1", "--label", "b=2"])
    assert (args.address, args.kind, args.name, args.connect) == ("foo", "codex", "bar", False)
    assert args.label == ["a=1", "b=2"]


def test_what_is_not_typed_has_its_default():
    args = parse(make(), [])
    assert (args.address, args.count, args.timeout, args.label, args.connect) == (None, 1, 600.0, [], True)
    assert (args.format, args.verbose, args.quiet, args.headless, args.unclean, args.rest) == (
        "human", 0, False, False, None, [],
    )  # fmt: skip


def test_given_is_what_was_really_typed():
    args = parse(make(), ["foo", "--no-connect", "--count", "1"])
    assert given(args) == {"address", "connect", "count"}


def test_everything_after_two_dashes_stays_untouched():
    args = parse(make(), ["foo", "--", "--model", "opus", "--", "-q"])
    assert args.rest == ["--model", "opus", "--", "-q"]
    assert args.address == "foo"
    assert parse(make(), ["--", "--model", "opus"]).address is None


def test_without_a_rest_two_dashes_only_end_the_options():
    parser = Parser("mngr stop")
    parser.add_argument("agents", nargs="+")
    assert parse(parser, ["a", "--", "-b"]).agents == ["a", "-b"]


def test_short_options_join_and_carry_their_value():
    args = parse(make(), ["-fqvvnbar", "-mhi there"])
    assert (args.force, args.quiet, args.verbose, args.name, args.message) == (True, True, 2, "bar", "hi there")


def test_a_value_may_begin_with_a_dash():
    assert parse(make(), ["--message=--force"]).message == "--force"
    assert parse(make(), ["-m", "- a list\n- of things"]).message == "- a list\n- of things"
    assert parse(make(), ["-m", "--two words"]).message == "--two words"
    assert parse(make(), ["-m", "-"]).message == "-"
    assert parse(make(), ["--message="]).message == ""


def test_an_option_is_not_swallowed_as_a_value():
    error = failure("--message", "--force")
    assert error.message == "`--message` needs a value"
    assert "`--message=--force`" in error.hint
    assert failure("-m", "-f").message == "`-m` needs a value"
    assert failure("-n").message == "`-n` needs a value"
    assert failure("--force=yes").message == "`--force` takes no value"


def test_both_sides_of_a_pair():
    assert parse(make(), ["--include-unclean"]).unclean is True
    assert parse(make(), ["--no-ensure-clean"]).unclean is True
    assert parse(make(), ["--exclude-unclean"]).unclean is False
    assert parse(make(), ["--no-connect", "--connect"]).connect is True


def test_an_unknown_option_names_the_nearest():
    error = failure("foo", "--no-conect")
    assert error.message == "`--no-conect` is not an option of `mngr create`"
    assert error.hint.startswith("the closest option is `--no-connect`; ")
    assert error.hint.endswith("; `mngr create --help` shows all")
    assert error.exit_code == 2


def test_an_option_for_the_program_itself_is_sent_behind_the_dashes():
    assert "after `--`" in failure("foo", "--zzqq", "opus").hint


def test_a_long_option_with_one_dash_is_not_a_group_of_letters():
    error = failure("-name", "foo")
    assert error.message == "`-name` is not an option of `mngr create`"
    assert "`--name`" in error.hint


def test_options_are_never_abbreviated():
    assert "`--force`" in failure("--forc").hint


def test_a_wrong_choice_names_the_nearest_and_all():
    error = failure("--transfer", "git-miror")
    assert error.message == "`--transfer` cannot be `git-miror`"
    assert error.hint == "the closest is `git-mirror`; it takes `git-worktree`, `git-mirror`, `rsync`, `none`"


def test_a_wrong_type_says_what_it_takes():
    assert failure("--count", "many").message == "`--count` takes a whole number, not 'many'"
    assert failure("--timeout", "soon").message == "`--timeout`: 'soon' is not a length of time"


def test_positionals_leave_enough_for_those_after_them():
    parser = Parser("mngr exec")
    parser.add_argument("agents", nargs="+")
    parser.add_argument("command")
    args = parse(parser, ["a", "b", "git status"])
    assert (args.agents, args.command) == (["a", "b"], "git status")
    assert failure("a", parser=parser).message == "`COMMAND` is missing"
    assert failure(parser=parser).message == "`AGENTS` is missing"


def test_an_argument_too_many_shows_the_usage():
    error = failure("a", "b", "c")
    assert error.message == "`c` is one argument too many for `mngr create`"
    assert error.hint == "usage: `mngr create [OPTIONS] [ADDRESS] [KIND] [-- ARGS...]`"


def test_options_that_exclude_each_other():
    parser = Parser("mngr help")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--commands", action="store_true")
    group.add_argument("--topics", action="store_true")
    assert failure("--topics", "--commands", parser=parser).message == (
        "`--topics` and `--commands` cannot be used together"
    )
    assert parse(parser, ["--topics"]).topics is True


def config_like() -> Parser:
    parser = Parser("mngr config")
    parser.add_argument("--scope", choices=("user", "project"), help="which file")
    listing = parser.add_subcommand("list", "Show all", default=True)
    listing.add_argument("--all", action="store_true", help="defaults too")
    setting = parser.add_subcommand("set", "Set one")
    setting.add_argument("key")
    setting.add_argument("value")
    parser.add_everywhere_options()
    return parser


def test_parts_of_a_verb_share_its_options_on_both_sides():
    for words in (["--scope", "user", "set", "a.b", "1"], ["set", "a.b", "--scope", "user", "1"]):
        args = parse(config_like(), words)
        assert (args.subcommand, args.scope, args.key, args.value) == ("set", "user", "a.b", "1")


def test_a_verb_can_have_a_default_part():
    assert parse(config_like(), []).subcommand == "list"
    args = parse(config_like(), ["--all"])
    assert (args.subcommand, args.all) == ("list", True)


def test_a_part_that_does_not_exist_names_the_nearest():
    error = failure("lsit", parser=config_like())
    assert error.message == "`lsit` is not a part of `mngr config`"
    assert error.hint == "the closest one is `list`"
    parser = Parser("mngr saved")
    parser.add_subcommand("show", "Show one")
    assert failure(parser=parser).message == "`mngr saved` needs one of `show`"


def test_help_shows_examples_before_options():
    shown = make().help_text()
    assert shown.startswith("Usage: mngr create [OPTIONS] [ADDRESS] [KIND] [-- ARGS...]\n\nStart an agent\n")
    assert shown.index("Examples:") < shown.index("Arguments:") < shown.index("Options:") < shown.index("Everywhere:")
    assert "  mngr create foo  # start `foo`\n" in shown
    assert "--[no-]connect  " in shown
    assert "--include-unclean, --no-ensure-clean / --exclude-unclean" in shown
    assert "--label KEY=VALUE" in shown
    assert "a label (can be repeated)" in shown
    assert "--transfer git-worktree|git-mirror|rsync|none" in shown
    assert "--headless" in shown
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_help_of_a_part_shows_the_options_of_the_verb_too():
    shown = config_like().subcommands["set"].help_text()
    assert shown.startswith("Usage: mngr config set [OPTIONS] KEY VALUE\n")
    assert "Options of mngr config:\n  --scope user|project  which file\n" in shown
    assert "Parts:\n  list  Show all\n  set   Set one\n" in config_like().help_text()


def test_help_keeps_groups():
    parser = Parser("mngr list")
    group = parser.add_argument_group("Which agents")
    group.add_argument("--running", action="store_true", help="only those that run")
    shown = parser.help_text()
    assert "Which agents:\n  --running  only those that run\n" in shown


def test_help_stops_the_reading():
    found = scan(make(), ["foo", "-h", "--not-an-option"])
    assert found.asked == "help"


word = st.text(alphabet=string.ascii_letters + "-= \n'$\"é", max_size=8)


@given_any(st.lists(word, max_size=6))
def test_any_words_are_read_or_refused_with_a_usage_error(words):
    try:
        parse(make(), words)
    except UsageError:
        pass


@given_any(st.text(min_size=1))
def test_a_value_arrives_as_it_was_typed(text):
    assert parse(make(), [f"--message={text}"]).message == text
    assert parse(make(), ["--", text]).rest == [text]
