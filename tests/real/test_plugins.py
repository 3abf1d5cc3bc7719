"""Plugins: a stranger's package, installed with pip, adds a verb and an agent type; a broken one harms nobody."""

import os
import shlex
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.test_docs import blocks, examples, first_missing
from tests.real.test_schemas import fits
from tests.support.user import Ran, User, wait_for

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugin-hello"
GUIDE = ROOT / "docs" / "guides" / "plugins.md"


class Installation:
    """An environment of its own that sees our packages, with a `mngr` in it."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.place = user.root / "v"
        venv.create(self.place, with_pip=False)
        self.python = self.place / "bin" / "python"
        paths = sysconfig.get_paths(vars={"base": str(self.place), "platbase": str(self.place)})
        Path(paths["purelib"], "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT / 'src'}\n")
        script = self.place / "bin" / "mngr"
        script.write_text(f"#!{self.python}\nfrom mngr.cli.main import start\nstart()\n")
        script.chmod(0o755)
        user.env["PATH"] = f"{self.place / 'bin'}:{user.env['PATH']}"

    def pip(self, *words: str) -> None:
        options = ("--disable-pip-version-check", "--no-input", "--quiet")
        command = [sys.executable, "-m", "pip", "--python", str(self.python), *options, *words]
        env = {**os.environ, "PIP_NO_INDEX": "1", "HOME": str(self.user.home)}
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300, check=False)
        assert done.returncode == 0, done.stderr

    def mngr(self, *words: str) -> Ran:
        return self.user.run([str(self.place / "bin" / "mngr"), *words])


@pytest.fixture
def installation(user: User) -> Installation:
    return Installation(user)


def plugin(user: User, name: str, code: str, target: str = "") -> None:
    """A package as pip would have left it, in a directory that modules are imported from."""
    place = user.root / "packages"
    info = place / f"mngr_{name}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: mngr-{name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        f"[console_scripts]\nx = y:z\n\n[mngr]\n{name} = {target or f'mngr_{name}'}\n"
    )
    (place / f"mngr_{name}.py").write_text("from mngr.plugins import hookimpl\n" + code)
    user.env["PYTHONPATH"] = str(place)


ONE_VERB = """
@hookimpl
def register_commands(register):
    register("{name}", "mngr_{name}", "Say {name}")

def add_arguments(parser):
    parser.add_argument("--loud", action="store_true", help="louder")

def run(args, app):
    app.out.line("{name}".upper() if args.loud else "{name}")
    return 0
"""


@pytest.mark.timeout(600)
def test_the_example_installed_with_pip_adds_its_verb_and_its_type_until_it_goes(installation: Installation) -> None:
    user, mngr = installation.user, installation.mngr
    assert mngr("plugin", "list").ok().stdout == "No plugins found\n"
    mngr("create", "first", "--no-connect", "--command", "cat").ok()
    mngr("plugin", "list").ok()

    # Offline, and with the setuptools that is installed.
    user.env.update(PIP_NO_INDEX="1", PIP_NO_DEPS="1", PIP_NO_BUILD_ISOLATION="0")
    assert "no-such-plugin" in mngr("plugin", "add", "no-such-plugin").failed(1).stderr
    added = mngr("plugin", "add", str(EXAMPLE)).ok()
    assert added.stdout == f"installed {EXAMPLE}; new plugins: hello\n", added
    assert mngr("plugin", "list", "--format", "json").ok().json["plugins"] == [
        {
            "name": "hello",
            "version": "0.1.0",
            "package": "mngr-plugin-hello",
            "active": True,
            "enabled": True,
            "verbs": ["hello"],
            "types": ["greeter"],
            "recipes": [],
            "problems": [],
        }
    ]
    assert "hello  0.1.0    yes     verb hello, type greeter\n" in mngr("plug", "list").ok().stdout
    assert mngr("plugin", "list", "--active", "--fields", "name,version").ok().stdout.splitlines()[1].split() == [
        "hello",
        "0.1.0",
    ]
    assert "From plugins:\n  hello, hi       Greet somebody, or all agents\n" in mngr("--help").ok().stdout
    assert mngr("help").ok().stdout == mngr("--help").ok().stdout
    assert mngr("help", "hello").ok().stdout.startswith("Usage: mngr hello [OPTIONS] [NAME...]\n")
    assert "hello" in mngr("help", "--commands").ok().stdout.split()
    assert mngr("hello", "Ada", "Bob").ok().stdout == "Hello, Ada!\nHello, Bob!\n"
    assert mngr("-q", "hi", "--format", "json").ok().json == [{"name": "first", "greeting": "Hello, first!"}]

    mngr("create", "g", "greeter", "--no-connect").ok()
    assert user.agent("g")["type"] == "greeter"
    mngr("message", "g", "-m", "Ada").ok()
    wait_for(lambda: "Nice to meet you, Ada!" in mngr("capture", "g").ok().stdout, "the greeting")
    assert "greeter" in mngr("__complete", "create", "x", "--type", "gr").stdout.split()
    assert "hello\tGreet somebody, or all agents\n" in mngr("__complete", "he").stdout

    mngr("config", "set", "commands.hello.word", "Servus").ok()
    assert mngr("hello", "Ada").ok().stdout == "Servus, Ada!\n"
    assert "commands.hello.word" in mngr("config", "list").ok().stdout
    assert "is not an option of `mngr hello`" in mngr("config", "set", "commands.hello.wrd", "x").failed(2).stderr

    assert "hello would be off now" in mngr("plugin", "disable", "hello", "--dry-run").ok().stdout
    mngr("hello", "Ada").ok()
    assert "hello is off now" in mngr("plugin", "disable", "hello").ok().stdout
    assert "enabled = false" in (user.host_dir / "settings.toml").read_text()
    assert "`hello` is not a verb of mngr" in mngr("hello", "Ada").failed(2).stderr
    assert "greeter" in mngr("create", "g2", "greeter", "--no-connect").failed(2).stderr
    assert "hello" not in mngr("--help").ok().stdout
    assert mngr("plugin", "list", "--active").ok().stdout == "No active plugins found\n"
    mngr("list").ok()  # what the settings say about its verb is no mistake
    mngr("config", "list").ok()
    assert mngr("-S", "plugins.hello.enabled=true", "hello", "Ada").ok().stdout == "Servus, Ada!\n"
    assert "hello is active now" in mngr("plugin", "enable", "hello").ok().stdout
    assert mngr("plugin", "enable", "hello").ok().stdout == "hello is active already\n"
    mngr("hello", "Ada").ok()

    mngr("config", "unset", "commands.hello").ok()
    assert mngr("plugin", "remove", "hello").ok().stdout == "uninstalled mngr-plugin-hello\n"
    assert mngr("plugin", "list").ok().stdout == "No plugins found\n"
    mngr("hello", "Ada").failed(2)
    assert {agent["name"] for agent in user.agents()} == {"first", "g"}, "agents outlive the plugin of their type"


LOADED = "import sys; from mngr.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"


def modules(user: User, *words: str) -> set[str]:
    return set(user.run([sys.executable, "-c", LOADED, *words]).ok().stderr.split())


def test_list_looks_at_no_plugin_even_where_there_is_one(user: User) -> None:
    plugin(user, "shout", ONE_VERB.format(name="shout"))
    user.create("a")
    for words in (["list"], ["create", "b", "--no-connect", "--command", "cat"], ["capture", "b"]):
        assert not modules(user, *words) & {"mngr.installed", "mngr.plugins", "pluggy", "mngr_shout"}
    assert {"pluggy", "mngr_shout"} <= modules(user, "--help")


def test_without_plugins_nothing_loads_pluggy(user: User) -> None:
    for words in (["--help"], ["plugin", "list"], ["help"], ["create", "a", "cat", "--dry-run"], ["__complete", "x"]):
        assert "pluggy" not in modules(user, *words)
    user.mngr("no-such-verb").failed(2)
    assert not user.host_dir.exists(), "looking for plugins creates nothing"


def test_a_state_directory_of_another_program_gets_no_file(user: User) -> None:
    plugin(user, "shout", ONE_VERB.format(name="shout"))
    user.host_dir.mkdir()
    (user.host_dir / "profiles").mkdir()
    assert user.mngr("shout", "--loud").ok().stdout == "SHOUT\n"
    user.mngr("plugin", "disable", "shout").failed(1)
    assert [path.name for path in user.host_dir.iterdir()] == ["profiles"]


BROKEN = {
    "import": "import no_such_module",
    "raises": "raise RuntimeError('half\\nway')",
    "exits": "import sys; sys.exit('bye')",
    "syntax": "def (:",
    "argument": "@hookimpl\ndef register_kinds(give): pass",
    "registers": "@hookimpl\ndef register_kinds(register):\n    register('good', 'cat')\n    register('b/d', 'cat')",
    "nothing": "@hookimpl\ndef register_commands(register):\n    register('good')",
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_plugin_that_fails_is_a_warning_with_its_name_and_harms_nobody(user: User, how: str) -> None:
    plugin(user, "shout", ONE_VERB.format(name="shout"))
    plugin(user, "broken", BROKEN[how])
    done = user.mngr("shout").ok()
    assert done.stdout == "shout\n"
    assert done.stderr.startswith("warning: plugin `broken`: cannot be used: ")
    assert "`mngr plugin disable broken`" in done.stderr
    assert user.mngr("list").ok().stderr == ""
    assert "shout" in user.mngr("--help").ok().stdout
    assert "plugin `broken`" in user.mngr("create", "a", "good", "--no-connect").failed(2).stderr
    assert user.mngr("__complete", "sho") == Ran(0, "shout\tSay shout\n", "")
    shown = user.mngr("plugin", "list", "--format", "json").ok().json["plugins"]
    assert [(row["name"], row["types"], bool(row["problems"])) for row in shown] == [
        ("broken", [], True),
        ("shout", [], False),
    ]
    user.mngr("plugin", "disable", "broken").ok()
    assert user.mngr("shout").ok().stderr == ""


def test_what_mngr_or_another_plugin_has_already_is_left_out_and_told(user: User) -> None:
    plugin(user, "one", ONE_VERB.format(name="one"))
    code = "@hookimpl\ndef register_commands(register):\n    register('list', 'mngr_two', 'x')\n"
    code += "    register('two', 'mngr_two', 'Two', aliases=['one'])\n    register('three', 'mngr_two', 'Three')\n"
    code += "@hookimpl\ndef register_kinds(register):\n    register('command', 'cat')\n    register('tom', 'cat')\n"
    code += "@hookimpl\ndef register_moons(register): pass\n"
    plugin(user, "two", code)
    rows = user.mngr("plugin", "list", "--format", "json").ok().json["plugins"]
    assert [(row["verbs"], row["types"]) for row in rows] == [(["one"], []), (["three"], ["tom"])]
    assert rows[1]["problems"] == [
        "has a hook `register_moons` that this version of mngr does not know",
        "cannot add the verb `one`: plugin `one` has it",
        "cannot add the verb `list`: mngr itself has it",
        "cannot add the agent type `command`: mngr itself has it",
    ]
    assert user.mngr("one").ok().stdout == "one\n"
    assert user.mngr("create", "c", "--no-connect", "--command", "cat").ok().stderr == ""


def test_a_type_of_a_plugin_comes_before_a_program_of_the_same_name_and_can_be_a_parent(user: User) -> None:
    code = "@hookimpl\ndef register_kinds(register):\n"
    plugin(user, "kinds", code + "    register('cat', 'sleep 9', args=['8'], env={'A': 'b'})\n")
    assert "running: sleep 9 8 7\n" in user.mngr("create", "c", "cat", "--dry-run", "--", "7").ok().stdout
    user.host_dir.mkdir()
    (user.host_dir / "settings.toml").write_text('[agent_types.tom]\nparent_type = "cat"\ncli_args = ["6"]\n')
    assert "running: sleep 9 8 6\n" in user.mngr("create", "c", "tom", "--dry-run").ok().stdout


def test_a_plugin_is_switched_by_any_settings_and_a_wrong_word_is_told(user: User) -> None:
    plugin(user, "my_shout", ONE_VERB.format(name="my_shout"))
    assert user.mngr("plugin", "list", "--fields", "name,active").ok().stdout.split() == [
        *("NAME", "ACTIVE"),
        *("my-shout", "yes"),
    ]
    variable = {"MNGR__PLUGINS__MY_SHOUT__ENABLED": "false"}
    user.run(["mngr", "my_shout"], env=variable).failed(2)
    done = user.run(["mngr", "plugin", "enable", "my_shout", "--scope", "project"], env=variable).ok()
    assert "nevertheless: `MNGR__PLUGINS__MY_SHOUT__ENABLED` says so" in done.stderr
    assert (user.repo / ".mngr" / "settings.toml").read_text() == "[plugins.my-shout]\nenabled = true\n"
    (user.repo / ".mngr" / "settings.toml").write_text("[plugins.my_shout]\nenabled = false  # not here\n")
    user.mngr("plugin", "enable", "my-shout", "--scope", "project").ok()
    text = (user.repo / ".mngr" / "settings.toml").read_text()
    assert text == "[plugins.my_shout]\nenabled = true  # not here\n"
    missing = user.mngr("plugin", "enable", "my-shut", "--dry-run").ok()
    assert "warning: plugin `my-shut` is not installed; the closest one is `my-shout`" in missing.stderr
    assert "has no field `nme`" in user.mngr("plugin", "list", "--fields", "nme").failed(2).stderr
    user.mngr("config", "set", "plugins.my-shout.enabled", "perhaps").failed(2)
    user.mngr("config", "set", "plugins.my-shout.enabld", "true").failed(2)


def test_the_json_of_plugin_fits_its_schema(user: User) -> None:
    assert fits(user, "plugin", "list") == {"plugins": []}
    plugin(user, "shout", ONE_VERB.format(name="shout"))
    plugin(user, "broken", "import no_such_module")
    assert len(fits(user, "plugin", "list")["plugins"]) == 2
    (changed,) = fits(user, "plugin", "disable", "broken", "--dry-run")
    assert changed["dry_run"] is True and not user.host_dir.exists()
    assert fits(user, "plugin", "disable", "broken", "shout")[1]["changed"] is True
    fits(user, "plugin", "enable", "nobody")
    fits(user, "plugin", "add", "nobody", "--dry-run")
    assert fits(user, "plugin", "remove", "shout", "--dry-run")["uninstalled"] == ["mngr-shout"]
    fits(user, "plugin", "remove", "coolname", exit_code=1)


def test_a_bug_in_a_verb_of_a_plugin_names_the_plugin(user: User) -> None:
    code = ONE_VERB.format(name="shout").replace("app.out.line", "app.no_such_thing")
    plugin(user, "shout", code)
    done = user.mngr("shout").failed(70)
    assert done.stderr.startswith("error: this is a bug in plugin `shout` or in mngr: AttributeError")


def test_broken_settings_leave_help_as_it_is_without_plugins(user: User) -> None:
    plugin(user, "shout", ONE_VERB.format(name="shout"))
    user.host_dir.mkdir()
    (user.host_dir / "settings.toml").write_text("[")
    assert "shout" not in user.mngr("--help").ok().stdout
    assert "is not valid TOML" in user.mngr("shout").failed(2).stderr


def readme_commands() -> Iterator[str]:
    inside = False
    for line in (EXAMPLE / "README.md").read_text().splitlines():
        inside = line == "```sh" or (inside and line != "```")
        if inside and line.startswith("mngr "):
            yield line


@pytest.mark.timeout(600)
def test_every_command_of_the_examples_readme_runs(installation: Installation) -> None:
    installation.pip("install", "--no-build-isolation", "--no-deps", str(EXAMPLE))
    commands = list(readme_commands())
    assert len(commands) == 5
    for command in commands:
        installation.mngr(*shlex.split(command)[1:]).ok()


@pytest.mark.timeout(600)
def test_every_example_of_the_guide_runs_and_prints_what_it_shows(installation: Installation) -> None:
    installation.pip("install", "--no-build-isolation", "--no-deps", str(EXAMPLE))
    for example in examples(GUIDE.read_text()):
        done = installation.user.run(["bash", "-o", "pipefail", "-c", f"exec 2>&1\n{example.command}"])
        where = f"line {example.line}: `{example.command}`"
        assert done.exit_code == example.exit_code, f"{where} exited with {done.exit_code}\n{done.stdout}"
        assert first_missing(example.shown, done.stdout) is None, f"{where}\n{done.stdout}"


def test_the_code_in_the_guide_is_that_of_the_example() -> None:
    files = [path.read_text() for path in EXAMPLE.rglob("*") if path.suffix in (".py", ".toml")]
    shown = [block for block in blocks(GUIDE.read_text()) if block.kind in ("python", "toml")]
    shown = [block for block in shown if "import pytest" not in block.lines]  # `test_kind_checks_find` runs that one
    assert len(shown) == 3
    for block in shown:
        assert any("\n".join(block.lines) in text for text in files), f"line {block.line}: not in the example"


RECIPE = """
from mngr.mapreduce.recipe import AgentLaunch, Recipe

@hookimpl
def register_recipes(register):
    register("touch", "mngr_touch:Touch", "One agent per file to be touched")

class Touch(Recipe):
    def __init__(self, fleet, run):
        self.fleet, self.run = fleet, run

    def launch(self, task, attempt):
        return AgentLaunch("command", args=("touch made; echo {} > $MNGR_OUTCOME_FILE",))

    def collect(self, task, attempt, agent):
        return {"files": agent.exec("ls").text.split()}

    def check(self, task, attempt, collected):
        return {"made": "made" in collected["files"]}
"""

MAP_REDUCE = """
import mngr
from mngr.mapreduce import recipe, run
from mngr.mapreduce.engine import Engine
from mngr.mapreduce.recipe import Task

fleet = mngr.Fleet()
new = run.new(".", id="r")
with new.locked():
    gone = Engine(new, recipe.make("touch", fleet, new), fleet).go([Task("a", "a"), Task("b", "b")])
print(gone.why, [task.last.verdict for task in gone.state.tasks.values()])
try:
    recipe.make("tuch", fleet, new)
except mngr.MngrError as error:
    print(error.message, error.hint)
"""


def test_a_plugin_adds_a_map_reduce_that_the_engine_runs(user: User) -> None:
    plugin(user, "touch", RECIPE)
    assert "recipe touch" in user.mngr("plugin", "list").ok().stdout
    ran = user.run([sys.executable, "-c", MAP_REDUCE]).ok()
    assert ran.stdout.splitlines() == [
        "settled [{'made': True}, {'made': True}]",
        "no plugin adds a recipe called `tuch` the closest recipe is `touch`",
    ]
