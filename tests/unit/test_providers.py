"""Providers without their programs: how command lines are filled in, and what the words of ssh mean."""

import re
import tomllib
from pathlib import Path

import pytest

from mngr.actions.site import Site
from mngr.cli.verbs.help import topic_text
from mngr.errors import MngrError, UsageError
from mngr.names import parse_address
from mngr.providers import command, registry
from mngr.providers.command import expand
from mngr.providers.provider import HostRequest, Unsupported
from mngr.providers.ssh import NeedsPerson, explain
from mngr.remote.channel import Unreached
from mngr.settings.layers import Settings
from mngr.settings.schema import Layer
from tests.support import pods

CHANGED = """\
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
Offending ED25519 key in /home/me/known hosts:1
Host key for [127.0.0.1]:2222 has changed and you have requested strict checking.
Host key verification failed.
"""


def site(**values: object) -> Site:
    layer = Layer(
        "test", {("providers", "x", key): value for key, value in values.items()}, frozenset({("providers", "x")})
    )
    return Site(environ={"HOME": "/nonexistent", "PATH": "/bin"}, cwd="/", settings=Settings([layer]))


def test_values_are_arguments_and_never_read_by_a_shell() -> None:
    assert expand(["run", "--name={host}", "{host}"], {"host": "a b; $(id) {image}"}) == [
        *("run", "--name=a b; $(id) {image}", "a b; $(id) {image}"),
    ]


def test_a_word_with_an_empty_value_is_left_out_and_one_with_a_list_is_repeated() -> None:
    words = ["run", "--cpus={cpus}", "--label={label}", "{start_arg}", "{image}"]
    values = {"cpus": "", "label": ["a=1", "b=2"], "start_arg": [], "image": "i"}
    assert expand(words, values) == ["run", "--label=a=1", "--label=b=2", "i"]


def test_braces_of_other_programs_stay() -> None:
    words = ["--format={{.Names}} {{.State}}", "{end}", "awk {print $1}"]
    assert expand(words, {"host": "h"}) == words


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_packaged_providers_have_every_line_and_only_known_settings(name: str) -> None:
    table = command.packaged()[name]
    assert set(command.LINES) <= set(table) <= command.KEYS
    assert registry.find(name, site()).pool() == []


def test_a_container_gets_the_limits_of_the_settings_and_its_variables_stay_out_of_the_arguments() -> None:
    found = registry.find("x", site(type="docker", cpus=1.5, memory="1g", network="none"))
    assert isinstance(found, command.CommandProvider)
    values = found._of_request(HostRequest("h", env={"TOKEN": "secret"}, start_args=("--gpus", "all")))
    words = expand(command.packaged()["docker"]["create"], {**values, "owner": "me"})  # type: ignore[arg-type]
    assert {"--cpus=1.5", "--memory=1g", "--network=none", "--env=TOKEN", "--gpus", "all"} <= set(words)
    assert not any("secret" in word or "--pids" in word for word in words)
    assert words[-2:] == ["-c", f"exec sleep {100 * 365 * 86400}"]


def test_what_a_provider_cannot_do_is_refused_before_anything_is_made() -> None:
    found = registry.find("x", site(open=["ssh", "{host}"], create=["make", "{host}"]))
    for request in (
        HostRequest("h", start_args=("x",)),
        HostRequest("h", env={"A": "1"}),
        HostRequest("h", snapshot="s"),
    ):
        with pytest.raises(Unsupported, match="provider `x` does not support"):
            found.check(request)
    with pytest.raises(Unsupported):
        found.require("stop")
    with pytest.raises(Unsupported):
        registry.find("ssh", site()).check(HostRequest("h"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"type": "dokcer"}, "no known type"),
        ({"create": ["x"], "type": "command"}, "how to open a shell"),
        ({"type": "ssh", "image": "x"}, "`providers.x.image` is not a setting"),
        ({"type": "docker", "max_agents": 3}, "`providers.x.max_agents` is not a setting"),
        ({"open": ["x"], "create": ["y"], "max_hours": 3}, "does not use `{keeper}`"),
    ],
)
def test_settings_that_cannot_be_meant_are_errors(values: dict[str, object], said: str) -> None:
    with pytest.raises(MngrError) as raised:
        registry.find("x", site(**values))
    assert said in raised.value.message


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (CHANGED, "the host key of `box` has changed", "ssh-keygen -l -F '[127.0.0.1]:2222' -f '/home/me/known hosts'"),
        ("Host key verification failed.", "the host key of `box` is not known yet", "mngr host prepare box"),
        ("me@box: Permission denied (publickey,password).", "`box` refused the login", "mngr host prepare box"),
        ("ssh: Could not resolve hostname box: Name or service not known", "no host is called `box`", "`ssh -G box`"),
        ("ssh: connect to host box port 22: Connection refused", "`box` refuses connections", "`ssh -v box true`"),
        ("ssh: connect to host box port 22: Connection timed out", "`box` does not answer", "can be reached"),
        ("Connection closed by 10.0.0.1 port 22", "closed the connection before the login", "can be reached"),
        ("/x/config: line 1: Bad configuration option: y", "ssh cannot read its configuration", "`ssh -G box`"),
        ("mngr cannot be unpacked to /x: Permission denied", "cannot be reached", "another `host_dir`"),
        ("Welcome!", "cannot be reached", "see what the login does: `ssh box 'echo ok'`"),
    ],
)
def test_the_words_of_ssh_become_an_error_with_a_hint(said: str, message: str, hint: str) -> None:
    found = explain("box", Unreached("cannot be reached", details=said))
    assert message in found.message
    assert hint in found.hint
    assert found.details == said.strip("\n")
    assert found.exit_code == 6
    assert isinstance(found, NeedsPerson) == ("refused the login" in message or "not known yet" in message)


def test_an_error_that_has_a_hint_and_no_words_of_ssh_stays_as_it_is() -> None:
    error = Unreached("cannot be reached", hint="the hint", details="something new")
    assert explain("box", error) is error


def test_the_sockets_of_connections_have_short_paths_under_a_long_home(tmp_path) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    environ = {"HOME": str(long), "TMPDIR": str(long), "XDG_RUNTIME_DIR": str(long)}
    found = registry.find("ssh", Site(environ=environ, cwd="/", settings=Settings([])))
    path = next(word for word in found.opening("box").argv if word.startswith("ControlPath="))
    assert len(path.removeprefix("ControlPath=").replace("%C", "c" * 40)) + 17 <= 100


def test_the_example_of_the_guide_and_of_the_help_is_the_one_that_is_tested() -> None:
    tested = _lines(pods.SETTINGS.format(name="pods"))
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "other-machines.md").read_text()
    for text in (guide, topic_text("providers")):
        block = re.search(r"^ +\[providers\.pods\]\n(?: +.*\n)+", text, re.M)
        assert block is not None
        shown = _lines("\n".join(line.strip() for line in block[0].splitlines()))
        assert shown == {key: tested[key] for key in shown} and len(shown) >= 5


def _lines(text: str) -> dict[str, list[str]]:
    return {key: value.split() for key, value in tomllib.loads(text)["providers"]["pods"].items()}


@pytest.mark.parametrize("text", ["a@../x", "a@x/y", "a@-o", "a@.x/y"])
def test_a_host_name_cannot_be_a_path_or_an_option(text: str) -> None:
    with pytest.raises(UsageError):
        parse_address(text)
