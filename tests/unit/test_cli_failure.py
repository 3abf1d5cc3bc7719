"""Every way to fail: what is printed, where, with which exit code, and what the crash file holds."""

import errno
import io
import json
import os

import pytest

from mngr.cli.app import App
from mngr.cli.main import main
from mngr.cli.output.crash import crash_text, masked_words
from mngr.cli.output.failure import asked_format, error_text, report
from mngr.cli.parser.parser import Parser
from mngr.cli.parser.scan import parse
from mngr.errors import MngrError, Undecided, UsageError


def app_in(directory: object, **environ: str) -> App:
    return App({"MNGR_HOST_DIR": str(directory), **environ}, io.StringIO(), io.StringIO(), io.StringIO())


def bug() -> ZeroDivisionError:
    try:
        return ZeroDivisionError(1 // 0)
    except ZeroDivisionError as error:
        return error


def test_an_error_has_message_details_and_hint(capsys):
    error = MngrError("2 of 14 hosts did not answer", hint="rerun with `--timeout 60`", details="ssh: no\n  route")
    assert report(error, ["list"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == ("error: 2 of 14 hosts did not answer\n  ssh: no\n    route\nhint: rerun with `--timeout 60`\n")


def test_colour_is_only_for_the_labels():
    assert (
        error_text(MngrError("no", hint="yes"), colour=True) == "\x1b[1;31merror:\x1b[0m no\n\x1b[36mhint:\x1b[0m yes\n"
    )


def test_an_error_cannot_steer_the_terminal():
    shown = error_text(MngrError("a\x1b[2Jb\nc", details="\x9b\x07", hint="\x1b"))
    assert shown == "error: a\\x1b[2Jb\n  c\n  \\x9b\\x07\nhint: \\x1b\n"


def test_json_errors_are_on_stdout_with_details(capsys):
    assert report(UsageError("no", hint="yes", details="why"), ["list", "--format=jsonl"]) == 2
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out == '{"error":"no","hint":"yes","exit_code":2,"details":"why"}\n'


def test_after_results_in_json_the_error_goes_beside_them(capsys, tmp_path):
    app = app_in(tmp_path)
    app.parser = Parser("mngr x")
    app.format = "json"
    app.out.emit_object({"a": 1})
    assert report(MngrError("later"), [], app) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert json.loads(said.err)["error"] == "later"


def test_the_format_is_found_without_a_parser():
    assert asked_format(["list", "--format", "json"]) == "json"
    assert asked_format(["--format=jsonl", "lst"]) == "jsonl"
    assert asked_format(["exec", "a", "--", "--format=json"]) == "human"
    assert asked_format(["--format"]) == "human"


def test_an_interrupt_is_130(capsys):
    assert report(KeyboardInterrupt(), ["create"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_full_disk_is_said_clearly(capsys):
    assert report(OSError(errno.ENOSPC, "No space left on device", "/x/agent.json"), ["create"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: no space left on the disk while writing `/x/agent.json`\nhint:")


def test_a_bug_is_one_line_and_a_private_crash_file(capsys, tmp_path):
    app = app_in(tmp_path)
    assert report(bug(), ["create", "--env", "TOKEN=hunter22", "--name", "foo"], app) == 70
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "error: this is a bug in mngr: ZeroDivisionError: integer division or modulo by zero"
    (file,) = (tmp_path / "crashes").iterdir()
    assert lines[1:] == [f"hint: please report it with `{file}`"]
    text = file.read_text()
    assert "command: mngr create --env 'TOKEN=***' --name foo" in text
    assert "Traceback" in text
    assert "hunter22" not in text
    assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["crashes"]


def test_verbose_shows_where_a_bug_happened(capsys, tmp_path):
    app = app_in(tmp_path)
    app.verbosity = 1
    assert report(bug(), ["list"], app) == 70
    assert "  Traceback (most recent call last):" in capsys.readouterr().err


def test_a_directory_of_another_program_gets_no_crash_file(capsys, tmp_path):
    (tmp_path / "profiles").mkdir()
    assert report(bug(), ["list"], app_in(tmp_path)) == 70
    assert "hint: please report it; `-v` shows where it happened" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["profiles"]


def test_without_a_place_for_it_the_crash_file_is_left_out(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert report(bug(), ["list"], app_in(tmp_path / "file" / "below")) == 70
    assert "this is a bug" in capsys.readouterr().err


def test_values_are_masked_in_every_form():
    words = [
        "--env",
        "A=secret",
        "--env=B=secret",
        "-S",
        "x.y=secret",
        "-Sx.y=secret",
        "--setting=x=secret",
        "--env",
        "C",
    ]
    assert masked_words(words) == [
        "--env", "A=***", "--env=B=***", "-S", "x.y=***", "-Sx.y=***", "--setting=x=***", "--env", "***",
    ]  # fmt: skip


def test_secrets_are_masked_wherever_they_show_up():
    error = ValueError("bad values: from-environment and typed-one and sk-ant-0123456789abcdefghij")
    text = crash_text(
        error, ["--pass-env", "KEY", "--env=A=typed-one"], {"KEY": "from-environment", "OTHER": "not-passed"}
    )
    assert "from-environment" not in text
    assert "typed-one" not in text
    assert "sk-ant" not in text
    assert text.count("***") >= 3
    assert "not-passed" not in text


def test_a_broken_settings_file_does_not_stop_help(capsys, tmp_path, monkeypatch):
    (tmp_path / "settings.toml").write_text("this is = = not toml")
    monkeypatch.setenv("MNGR_HOST_DIR", str(tmp_path))
    assert main(["help", "states"]) == 0
    assert capsys.readouterr().out.startswith("States\n")


def test_nobody_is_asked_when_headless(tmp_path):
    app = app_in(tmp_path, MNGR_HEADLESS="1")
    with pytest.raises(Undecided) as caught:
        app.confirm("destroy 3 agents?", hint="rerun with `--force`")
    assert caught.value.exit_code == 5
    assert caught.value.hint == "rerun with `--force`"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "meant"), [("y\n", True), ("YES\n", True), ("\n", False), ("", False), ("nope\n", False)]
)
def test_on_a_terminal_a_question_is_asked_on_stderr(typed, meant):
    out, err = io.StringIO(), io.StringIO()
    app = App({}, Terminal(typed), out, err)
    assert not app.headless
    assert app.confirm("destroy it?") is meant
    assert err.getvalue().startswith("destroy it? [y/N] ")
    assert out.getvalue() == ""


def test_what_makes_it_headless():
    assert App({}, io.StringIO(), io.StringIO(), io.StringIO()).headless
    assert App({"MNGR_HEADLESS": "1"}, Terminal(), io.StringIO(), io.StringIO()).headless
    assert not App({"MNGR_HEADLESS": "0"}, Terminal(), io.StringIO(), io.StringIO()).headless
    app = App({}, Terminal(), io.StringIO(), io.StringIO())
    parser = Parser("mngr x")
    parser.add_everywhere_options()
    app.configure(parse(parser, ["--headless", "-vv"]))
    assert app.headless
    assert app.verbosity == 2
