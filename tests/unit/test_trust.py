import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from mngr.cli import catalog
from mngr.cli.app import safe_option
from mngr.cli.dispatch import command_parser
from mngr.errors import Undecided
from mngr.settings import trust
from mngr.settings.layers import Settings, Value
from mngr.settings.schema import Layer, gate, is_safe
from mngr.settings.values import Key, parse_key

KEY: Key = ("tmr", "prepare")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("commands.create.type", "claude"),
        ("commands.create.permissions", "ask"),
        ("commands.create.sandbox", True),
        ("commands.create.no_connect", True),
        ("commands.destroy.format", "json"),
        ("commands.list.fields", "name"),
        ("create_templates.x.label", ["a=b"]),
        ("workspace.extra_paths", {".env": "copy"}),
        ("tmux.session_prefix", "x-"),
        ("tmr.paths.read_only", ["a"]),
        ("tutorial.script", "tour.sh"),
    ],
)
def test_what_runs_and_grants_nothing_may_come_from_a_repository(key: str, value: object) -> None:
    assert is_safe(parse_key(key), value, safe_option)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("commands.create.type", "sh"),
        ("commands.create.type", ["claude"]),
        ("commands.create.permissions", "edits"),
        ("commands.create.sandbox", False),
        ("commands.create.no_sandbox", True),
        ("commands.create.transfer", "none"),
        ("commands.create.template", ["mine"]),
        ("commands.create.provider", "local"),
        ("commands.create.exclude_unclean", True),
        ("commands.create.idle_timeout", "off"),
        ("commands.create.message", "rm -r ."),
        ("commands.create.env", {"PATH": "."}),
        ("commands.create.pass_env", ["TOKEN"]),
        ("commands.create.upload_file", ["~/.ssh/id:id"]),
        ("commands.create.from", "/"),
        ("commands.destroy.force", True),
        ("commands.destroy.headless", True),
        ("commands.destroy.quiet", True),
        ("commands.list.format", "{x}"),
        ("commands.list.watch", True),
        ("commands.list.explain", "x"),
        ("commands.list.local", True),
        ("commands.event.follow", True),
        ("commands.usage.until", ["false"]),
        ("commands.usage.unknown", 1),
        ("commands.unknown.format", "json"),
        ("commands.capture.cast", "/etc/passwd"),
        ("commands.tmr.budget_usd", 1000),
        ("create_templates.x.command", "true"),
        ("create_templates.x.unknown", "true"),
        ("agent_types.claude.permissions", "ask"),
        ("agent_types.x.parent_type", "claude"),
        ("tmux.config", "x"),
        ("headless", True),
        ("saved.ignored_max_mb", 0),
        ("record.max_mb", 0),
        ("tmr.baseline_repeats", 1),
        ("tutorial.script", "/etc/passwd"),
        ("tutorial.tests", ["tests", "../other"]),
        ("tmr.env.PATH", "."),
        ("prices.m.input", 0),
        ("plugins.x.enabled", True),
    ],
)
def test_everything_else_needs_trust(key: str, value: object) -> None:
    assert not is_safe(parse_key(key), value, safe_option)


# Whoever declares another one checks it against what `Option` says of them, and adds it here.
SAFE = {
    "clone": {"connect", "label", "project"},
    "create": {"connect", "label", "permissions", "project", "record", "sandbox", "type"},
    "list": {"fields", "header", "sort"},
    "start": {"connect"},
    "tmr": {"permissions", "record", "sandbox", "type"},
    "usage": {"by"},
}


def test_no_option_is_safe_that_was_not_declared_so_on_purpose() -> None:
    found: dict[str, set[str]] = {}
    for verb in catalog.VERBS:
        every = [option for parser in command_parser(verb).family() for option in parser.options if option.safe]
        assert {option.dest for option in every} >= {"format", "verbose"}
        for option in every:
            assert option.names, "an argument has no setting"
            if option.choices is not None and option.safe is not True:
                assert isinstance(option.safe, tuple) and set(option.safe) <= set(option.choices)
        if own := {option.dest for option in every} - {"format", "verbose"}:
            found[verb.name] = own
    assert found == SAFE


def test_without_the_verbs_no_option_is_safe() -> None:
    assert not is_safe(parse_key("commands.create.type"), "claude")
    assert is_safe(parse_key("tmux.session_prefix"), "x-")


def untrusted() -> Settings:
    repository = gate(Layer("theirs", {KEY: "evil", ("tmux", "session_prefix"): "t-"}), "/repo")
    return Settings([Layer("mine", {("tmr", "prompt"): "p"}), repository])


def test_reading_an_untrusted_key_raises_and_others_can_be_read() -> None:
    settings = untrusted()
    assert settings.text("tmux.session_prefix") == "t-" and settings.text("tmr.prompt") == "p"
    for key in ("tmr.prepare", "tmr"):
        with pytest.raises(Undecided) as caught:
            settings.get(key)
        assert caught.value.exit_code == 5 and 'tmr.prepare = "evil"' in caught.value.details
    assert settings.trusted_only.get("tmr") == {"prompt": "p"}
    assert settings.trusted_only.find(KEY) is None and settings.untrusted_keys() == [KEY]
    assert settings.explain(KEY) == [Value("evil", "theirs (not trusted)")]


def test_an_answer_counts_and_a_later_layer_needs_none() -> None:
    settings = untrusted()
    asked: list[list[str]] = []

    def yes(claims: Sequence[trust.Claim]) -> bool:
        asked.append([claim.name for claim in claims])
        return True

    settings.ask = yes
    assert settings.text("tmr.prepare") == settings.text("tmr.prepare") == "evil"
    assert asked == [["theirs"]]
    mine = Settings([gate(Layer("theirs", {KEY: "evil"}), "/repo"), Layer("-S", {KEY: "good"})])
    assert mine.text("tmr.prepare") == "good" and mine.untrusted_keys() == []


def test_an_answer_is_for_these_lines_in_this_repository(tmp_path: Path) -> None:
    root, other = str(tmp_path / "repo"), str(tmp_path / "other")
    first, second = (
        trust.of_settings(Layer("settings.toml", {}, untrusted={KEY: text}, root=root)) for text in ("a", "b")
    )
    trust.remember(str(tmp_path), [first])
    assert trust.is_trusted(str(tmp_path), first)
    assert not trust.is_trusted(str(tmp_path), second)
    assert not trust.is_trusted(str(tmp_path), first._replace(root=other))
    assert not trust.is_trusted(str(tmp_path), first._replace(root=f'{root}"\n"settings.toml'))
    assert trust.forget(str(tmp_path), other) == 0
    assert trust.forget(str(tmp_path), root) == 1 and not trust.is_trusted(str(tmp_path), first)


def test_worktrees_are_one_repository_and_what_only_points_at_it_is_another(tmp_path: Path) -> None:
    tmp_path = tmp_path.resolve()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path / "repo")]
    (tmp_path / "repo").mkdir()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["worktree", "add", "-q", "../tree"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    own = str(tmp_path / "repo" / ".git")
    assert trust.repository(str(tmp_path / "repo")) == trust.repository(str(tmp_path / "tree")) == own
    forged, linked, plain = (tmp_path / name for name in ("forged", "linked", "plain"))
    for place in (forged, linked, plain):
        place.mkdir()
    (forged / ".git").write_text((tmp_path / "tree" / ".git").read_text())
    (linked / ".git").symlink_to(own)
    for place in (forged, linked, plain):
        assert trust.repository(str(place)) == str(place)


def test_a_changed_file_for_an_agent_program_is_another_claim(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "hooks").mkdir(parents=True)
    (tmp_path / ".claude" / "hooks" / "x").write_text("1")
    first = trust.of_files(str(tmp_path), ".claude")
    (tmp_path / ".claude" / "hooks" / "x").write_text("2")
    assert len(first.lines) == 1 and first != trust.of_files(str(tmp_path), ".claude")
    assert trust.of_files(str(tmp_path), ".mcp.json").lines == ()
