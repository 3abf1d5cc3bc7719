"""The way in: what `mngr`, `--help` and `--version` print, what they cost, and how a verb is found."""

import contextlib
import json
import os
import pty
import subprocess
import sys

import pytest

from mngr import __version__
from mngr.cli import catalog
from mngr.cli.main import main, split
from mngr.errors import UsageError

HEAVY = {"argparse", "json", "difflib", "dataclasses", "inspect", "shutil", "pathlib", "subprocess"}


def run(*words: str, stdout: int = subprocess.PIPE) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "mngr.cli.main", *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


def modules_loaded(*words: str) -> set[str]:
    code = f"import sys; before = set(sys.modules); from mngr.cli.main import main; main({list(words)!r}); "
    code += "print('\\n' + ' '.join(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("words", [[], ["--help"], ["--version"], ["-h"], ["-q", "--help"]])
def test_the_first_screens_load_next_to_nothing(words):
    loaded = modules_loaded(*words)
    assert not {name for name in loaded if name.startswith("mngr.cli.verbs")}
    ours = {
        "mngr",
        "mngr.errors",
        "mngr.cli",
        *(f"mngr.cli.{name}" for name in ("main", "catalog", "overview", "output", "output.terminal")),
    }
    if words and words[-1] in ("-h", "--help"):
        assert not loaded & HEAVY
        loaded = {name for name in loaded if name.startswith("mngr")}
        ours |= {"mngr.installed", "mngr.names", "mngr.named_tuples"}  # it shows the verbs of plugins
    assert loaded <= ours


def test_a_verb_loads_no_other_verb_and_nothing_slow():
    loaded = modules_loaded("help", "--commands")
    assert {name for name in loaded if name.startswith("mngr.cli.verbs.")} == {"mngr.cli.verbs.help"}
    slow = {"dataclasses", "pathlib", "tomllib", "datetime", "inspect", "shutil", "tempfile", "logging", "difflib"}
    assert not loaded & slow
    assert not {"subprocess", "importlib.metadata", "mngr.settings.layers", "json"} & loaded


def test_help_begins_with_usage_and_shows_every_verb_once():
    done = run("--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("Usage: mngr")
    for entry in catalog.VERBS:
        assert done.stdout.count(f"  {', '.join((entry.name, *entry.aliases))} ") == 1
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert "\x1b" not in done.stdout


def test_help_on_a_terminal_still_begins_with_usage():
    reader, writer = pty.openpty()
    environ = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm"}
    command = [sys.executable, "-m", "mngr.cli.main", "--help"]
    subprocess.run(command, stdout=writer, env=environ, timeout=60, check=True)
    os.close(writer)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that all was read and the other side is closed
        while data := os.read(reader, 65536):
            shown += data
    os.close(reader)
    assert shown.startswith(b"Usage: mngr")
    assert b"\x1b[1mInspect:\x1b[0m" in shown


def test_mngr_alone_is_a_short_friendly_overview(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 15
    assert "mngr create" in shown
    assert "mngr --help" in shown


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mngr {__version__}\n"
    assert main(["help", "--version"]) == 0
    assert capsys.readouterr().out == f"mngr {__version__}\n"


def test_a_mistyped_verb_names_the_nearest(capsys):
    assert main(["lst"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "error: `lst` is not a verb of mngr\nhint: the closest verb is `list`; `mngr --help` shows all\n"


def test_a_verb_that_is_far_from_all_still_gets_a_hint(capsys):
    assert main(["zzzzqq"]) == 2
    assert capsys.readouterr().err.endswith("hint: `mngr --help` shows all\n")


def test_a_verb_cannot_steer_the_terminal(capsys):
    assert main(["\x1b[31mlist"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_an_error_in_json_is_one_object_on_stdout(capsys):
    assert main(["--format", "json", "lst"]) == 2
    said = capsys.readouterr()
    assert said.err == ""
    assert set(json.loads(said.out)) == {"error", "hint", "exit_code"}
    assert json.loads(said.out)["exit_code"] == 2


def test_options_are_found_before_the_verb():
    assert split(["-qv", "--format", "json", "-S", "a.b=c", "list", "-x", "--"]) == (
        ["-qv", "--format", "json", "-S", "a.b=c"],
        "list",
        ["-x", "--"],
    )
    assert split(["--format=json", "-Sa.b=c", "list"]) == (["--format=json", "-Sa.b=c"], "list", [])
    assert split(["-v"]) == (["-v"], None, [])


def test_an_option_of_a_verb_before_it_is_explained():
    with pytest.raises(UsageError, match="`--type` is not an option of mngr itself") as caught:
        split(["--type", "command", "create"])
    assert "mngr VERB --type" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        split(["--headles", "list"])
    assert "`--headless`" in caught.value.hint
    with pytest.raises(UsageError, match="`--format` needs a value"):
        split(["--format"])


def test_global_options_work_on_both_sides_of_the_verb(capsys):
    outputs = []
    for words in (["--format", "jsonl", "help", "--topics"], ["help", "--topics", "--format=jsonl"]):
        assert main(words) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0].splitlines()[0])["name"] == "addresses"


def test_a_reader_that_goes_away_ends_it_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        for words in (["--help"], ["help", "filters"]):
            done = run(*words, stdout=writer)
            assert (done.returncode, done.stderr) == (141, "")
    finally:
        os.close(writer)


def test_a_closed_standard_output_is_no_bug():
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m mngr.cli.main help --topics >&- <&-', sys.executable],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_name_and_alias_is_used_once_and_every_group_is_known():
    words = [word for entry in catalog.VERBS for word in (entry.name, *entry.aliases)]
    assert len(words) == len(set(words))
    assert {entry.group for entry in catalog.VERBS} == set(catalog.GROUPS)
    assert catalog.find("rm") is catalog.find("destroy")
    assert catalog.find("nothing") is None
    for entry in catalog.VERBS:
        assert entry.summary[0].isupper()
        assert not entry.summary.endswith(".")
