"""From words and settings to a running verb. The verb is a module of the test's own."""

import json

import pytest

from mngr.cli import catalog
from mngr.cli.dispatch import command_parser, run_command
from mngr.settings import layers, trust

VERB = """
from mngr.cli.parser.parser import PAIR

EXAMPLES = (("mngr list -n 3", "show three"),)
DESCRIPTION = "Lists what there is."


def add_arguments(parser):
    parser.add_argument("-n", "--limit", type=int, default=10, help="at most so many")
    parser.add_argument("--label", action="append", help="with this label")
    parser.add_argument("--fail", choices=("error", "bug", "interrupt"), help="end badly")


def run(args, app):
    if args.fail == "error":
        from mngr.errors import MngrError
        raise MngrError("no such thing", hint="try another", exit_code=6)
    if args.fail == "bug":
        raise RuntimeError("oops")
    if args.fail == "interrupt":
        raise KeyboardInterrupt
    app.out.emit_object({"limit": args.limit, "label": args.label, "verbosity": app.verbosity})
    return 3
"""


@pytest.fixture
def verb(tmp_path, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "host").mkdir()
    (tmp_path / "project").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.setenv("MNGR_HOST_DIR", str(tmp_path / "host"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / "modules" / "verb_pkg").mkdir()
    (tmp_path / "modules" / "verb_pkg" / "__init__.py").write_text("")
    (tmp_path / "modules" / "verb_pkg" / "verb.py").write_text(VERB)
    return catalog.Verb("list", "Look", "List them", ("ls",), module="verb_pkg.verb")


def test_flags_win_over_overrides_over_variables_over_files(verb, tmp_path, monkeypatch, capsys):
    def limit(*words: str) -> int:
        assert run_command(verb, ["--format", "json", *words]) == 3
        return int(json.loads(capsys.readouterr().out)["limit"])

    assert limit() == 10
    (tmp_path / "host" / "settings.toml").write_text("[commands.list]\nlimit = 1\n")
    assert limit() == 1
    (tmp_path / "project" / ".mngr").mkdir()
    (tmp_path / "project" / ".mngr" / "settings.toml").write_text("[commands.list]\nlimit = 2\n")
    assert run_command(verb, ["--format", "json"]) == 5 and "config trust" in capsys.readouterr().out
    trusted = layers.load(host_dir=str(tmp_path / "host"), cwd=str(tmp_path / "project"), environ={}).claims()
    trust.remember(str(tmp_path / "host"), trusted)
    assert limit() == 2
    monkeypatch.setenv("MNGR__COMMANDS__LIST__LIMIT", "3")
    assert limit() == 3
    assert limit("-S", "commands.list.limit=4") == 4
    assert limit("-S", "commands.list.limit=4", "-n", "5") == 5


def test_the_format_may_come_from_the_settings_and_holds_for_errors(verb, tmp_path, capsys):
    (tmp_path / "host" / "settings.toml").write_text('[commands.list]\nformat = "json"\n')
    assert run_command(verb, ["-v"]) == 3
    assert json.loads(capsys.readouterr().out)["verbosity"] == 1
    assert run_command(verb, ["--fail", "error"]) == 6
    said = capsys.readouterr()
    assert json.loads(said.out) == {"error": "no such thing", "hint": "try another", "exit_code": 6}
    assert said.err == ""


def test_a_wrong_key_in_a_file_is_an_error_of_usage_that_names_it(verb, tmp_path, capsys):
    (tmp_path / "host" / "settings.toml").write_text("[commands.list]\nlimt = 1\n")
    assert run_command(verb, []) == 2
    said = capsys.readouterr().err
    assert "`commands.list.limt`" in said
    assert "settings.toml`" in said
    assert "`limit`" in said


def test_an_unknown_verb_in_a_file_is_a_warning_and_after_s_an_error(verb, tmp_path, capsys):
    (tmp_path / "host" / "settings.toml").write_text("[commands.creat]\nx = 1\n")
    assert run_command(verb, []) == 3
    said = "unknown key `commands.creat` in `~/host/settings.toml` (ignored; the closest command is `create`)"
    assert capsys.readouterr().err == f"warning: {said}\n"
    assert run_command(verb, ["-S", "commands.lst.x=1"]) == 2
    assert "unknown key `commands.lst` in `-S`\nhint: the closest command is `list`" in capsys.readouterr().err


def test_help_works_while_the_settings_are_broken(verb, tmp_path, capsys):
    (tmp_path / "host" / "settings.toml").write_text("= broken")
    assert run_command(verb, ["--help"]) == 0
    assert capsys.readouterr().out == command_parser(verb).help_text(80)
    assert run_command(verb, []) == 2


def test_help_has_summary_description_examples_and_aliases(verb):
    shown = command_parser(verb).help_text(80)
    assert shown.startswith("Usage: mngr list [OPTIONS]\n\nList them\n\nLists what there is.\n\nExamples:\n")
    assert shown.endswith("Also called: mngr ls\n")


def test_bugs_and_interrupts(verb, tmp_path, capsys):
    assert run_command(verb, ["--fail", "interrupt"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert run_command(verb, ["--fail", "bug", "-S", "commands.list.label=secret"]) == 70
    assert "this is a bug in mngr: RuntimeError: oops" in capsys.readouterr().err
    (file,) = (tmp_path / "host" / "crashes").iterdir()
    assert "command: mngr list --fail bug -S 'commands.list.label=***'" in file.read_text()
    assert "secret" not in file.read_text()


def test_a_mistake_in_the_words_is_said_in_the_format_they_ask_for(verb, capsys):
    assert run_command(verb, ["--limt", "3", "--format=jsonl"]) == 2
    assert json.loads(capsys.readouterr().out)["hint"].startswith("the closest option is `--limit`")
    assert run_command(verb, ["--format", "jsn"]) == 2
    assert "`jsn` is not a format" in capsys.readouterr().err
