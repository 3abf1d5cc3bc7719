"""`mngr help` and the topics."""

import os

import pytest

from mngr.cli import catalog
from mngr.cli.main import main
from mngr.cli.verbs.help import topic_text


def test_help_of_a_verb_equals_its_help_option(capsys):
    assert main(["help", "help"]) == 0
    one = capsys.readouterr().out
    assert main(["help", "--help"]) == 0
    assert capsys.readouterr().out == one
    assert one.startswith("Usage: mngr help [OPTIONS] [VERB|TOPIC...]\n")


def test_help_alone_equals_the_help_of_mngr(capsys):
    assert main(["help"]) == 0
    one = capsys.readouterr().out
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == one


def test_commands_and_topics_are_one_a_line(capsys):
    assert main(["help", "--commands"]) == 0
    assert capsys.readouterr().out.splitlines() == [entry.name for entry in catalog.VERBS]
    assert main(["help", "--topics"]) == 0
    assert capsys.readouterr().out.splitlines() == [name for name, _ in catalog.TOPICS]
    assert main(["help", "--topics", "--format", r"{name}\t{summary}"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("addresses\tHow to")


def test_an_unknown_topic_names_the_nearest(capsys):
    assert main(["help", "addreses"]) == 2
    said = capsys.readouterr().err
    assert "error: `addreses` is neither a verb nor a topic\n" in said
    assert "the closest one is `addresses`" in said


def test_a_part_that_a_verb_does_not_have(capsys):
    assert main(["help", "help", "me"]) == 2
    assert "`mngr help` has no subcommand `me`" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name, _ in catalog.TOPICS])
def test_every_topic_has_a_text_that_fits_a_terminal(name, capsys):
    assert main(["help", name]) == 0
    shown = capsys.readouterr().out
    assert shown == topic_text(name)
    assert shown.endswith("\n")
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_every_text_is_a_topic():
    folder = os.path.join(os.path.dirname(catalog.__file__), "topics")
    assert {name.removesuffix(".txt") for name in os.listdir(folder)} == {name for name, _ in catalog.TOPICS}
