"""The tables of verbs, of options that every verb has, and of help topics. Imports nothing: every start reads them."""

START = "Start and talk"
LOOK = "Inspect"
TAKE = "Collect work"
LIFE = "Life cycle"
TEST = "Test with many agents"
TOOL = "Settings and help"
PLUGINS = "From plugins"
GROUPS = (START, LOOK, TAKE, LIFE, TEST, TOOL)


class Verb:
    """One verb. Not a NamedTuple: importing `typing` would double the time of `mngr --help`."""

    __slots__ = ("aliases", "group", "module", "name", "plugin", "summary")

    def __init__(
        self,
        name: str,
        group: str,
        summary: str,
        aliases: tuple[str, ...] = (),
        module: str = "",
        plugin: str = "",
    ) -> None:
        self.name = name
        self.group = group
        self.summary = summary
        self.aliases = aliases
        self.module = module if plugin or "." in module else f"mngr.cli.verbs.{module or name}"
        self.plugin = plugin


VERBS = (
    Verb("create", START, "Start an agent in its own copy of the code", ("c",)),
    Verb("clone", START, "Copy an agent, conversation included"),
    Verb("migrate", START, "Move an agent to another host, conversation included"),
    Verb("connect", START, "Attach this terminal to an agent", ("conn",)),
    Verb("message", START, "Send text to agents and confirm that it arrived", ("msg",)),
    Verb("exec", START, "Run a command where an agent works", ("x",), module="exec_"),
    Verb("list", LOOK, "Show all agents and what each is doing", ("ls",), module="list_"),
    Verb("wait", LOOK, "Wait until agents reach a state"),
    Verb("capture", LOOK, "Print what is on an agent's screen"),
    Verb("event", LOOK, "Print the events of an agent", ("events",)),
    Verb("observe", LOOK, "Print changes of all agents as they happen, as JSON lines"),
    Verb("transcript", LOOK, "Print the conversation of an agent"),
    Verb("usage", LOOK, "Show the tokens and the cost of agents"),
    Verb("diff", TAKE, "Show what an agent changed"),
    Verb("pull", TAKE, "Copy an agent's commits or files to this machine"),
    Verb("push", TAKE, "Send commits or files to an agent"),
    Verb("git", TAKE, "Pull and push commits, like git"),
    Verb("rsync", TAKE, "Copy files between this machine and an agent"),
    Verb("merge", TAKE, "Merge an agent's work into the current branch"),
    Verb("saved", TAKE, "List, show and restore saved work"),
    Verb("snapshot", TAKE, "Save the state of an agent, and reset it to that later", ("snap",)),
    Verb("start", LIFE, "Start stopped agents again"),
    Verb("stop", LIFE, "Stop agents and keep their work", ("s",)),
    Verb("destroy", LIFE, "Remove agents, saving work that exists nowhere else", ("rm",)),
    Verb("archive", LIFE, "Stop agents and hide them from the list, keeping everything"),
    Verb("rename", LIFE, "Give an agent another name", ("mv",)),
    Verb("label", LIFE, "Set or remove labels of agents"),
    Verb("limit", LIFE, "Show or set how long agents may run or be idle", ("lim",)),
    Verb("cleanup", LIFE, "Stop or destroy many agents by age, idleness or state", ("clean",)),
    Verb("host", LIFE, "Show and manage the machines that agents run on"),
    Verb("gc", LIFE, "Remove leftovers of interrupted commands"),
    Verb("tmr", TEST, "Give every test an agent, and put verified work on one branch"),
    Verb("tutorial", TEST, "Keep a tutorial and its tests in sync"),
    Verb("e2e", TEST, "Browse end-to-end test runs, and measure what tests notice"),
    Verb("config", TOOL, "Read and change settings", ("cfg",)),
    Verb("plugin", TOOL, "List, add, remove, enable and disable plugins", ("plug",)),
    Verb("completion", TOOL, "Print a script that completes names in your shell"),
    Verb("doctor", TOOL, "Check that this machine is ready"),
    Verb("demo", TOOL, "Try everything on a sample project, without a model"),
    Verb("help", TOOL, "Explain a verb or a topic"),
)

# What every verb takes too: (option, value, help). `cli.parser` declares them from this table.
OPTIONS = (
    ("--format", "FORMAT", "human, json, jsonl or a template: '{name}\\t{state}'"),
    ("-q, --quiet", "", "print results and errors only"),
    ("-v, --verbose", "", "say more (can be repeated)"),
    ("--headless", "", "never ask; exit 5 where a decision is needed"),
    ("-S, --setting", "KEY=VALUE", "set one setting for this command (can be repeated)"),
    ("--schema", "", "print the JSON schema of what a verb prints"),
    ("--version", "", "print the version"),
    ("-h, --help", "", "print this help, or that of a verb"),
)

# Each has a text of the same name under `topics/`.
TOPICS = (
    ("addresses", "How to name an agent, a host or a path"),
    ("kinds", "What an agent can run, and types of your own"),
    ("providers", "Other machines: ssh, containers, your own"),
    ("states", "What RUNNING, WAITING, BLOCKED and the others mean"),
    ("filters", "Select agents with an expression"),
    ("settings", "Settings files, defaults of options, templates"),
    ("trust", "What a repository may do, and how to allow it"),
    ("sandbox", "What an agent with `--sandbox` can see and do"),
    ("transfer", "How code gets to an agent and back"),
    ("formats", "Table, JSON, lines of JSON, your own template"),
    ("exit-codes", "What the exit codes mean"),
    ("environment", "Variables that mngr reads, and those an agent gets"),
)


def find(word: str) -> Verb | None:
    """The verb with this name or alias."""
    for entry in VERBS:
        if word == entry.name or word in entry.aliases:
            return entry
    return None


def words() -> list[str]:
    """All names and aliases a person may type."""
    return [word for entry in VERBS for word in (entry.name, *entry.aliases)]
