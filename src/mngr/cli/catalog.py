"""The table of verbs and help topics. Imports nothing, since every start reads it."""

START = "Start and talk"
LOOK = "Look"
TAKE = "Take the work"
LIFE = "Life cycle"
TEST = "Test with many agents"
TOOL = "The tool itself"
PLUGINS = "From plugins"
GROUPS = (START, LOOK, TAKE, LIFE, TEST, TOOL)


class Entry:
    """One verb. Not a NamedTuple: importing `typing` would double the time of `mngr --help`."""

    __slots__ = ("aliases", "group", "hidden", "module", "name", "plugin", "summary")

    def __init__(
        self,
        name: str,
        group: str,
        summary: str,
        aliases: tuple[str, ...] = (),
        module: str = "",
        hidden: bool = False,
        plugin: str = "",
    ) -> None:
        self.name = name
        self.group = group
        self.summary = summary
        self.aliases = aliases
        self.module = module if plugin or "." in module else f"mngr.cli.commands.{module or name}"
        self.plugin = plugin
        self.hidden = hidden


ENTRIES = (
    Entry("create", START, "Start an agent in its own copy of the code", ("c",)),
    Entry("clone", START, "Copy an agent, conversation included"),
    Entry("connect", START, "Attach this terminal to an agent", ("conn",)),
    Entry("message", START, "Send text to agents and confirm that it arrived", ("msg",)),
    Entry("exec", START, "Run a command where an agent works", ("x",), module="exec_"),
    Entry("list", LOOK, "Show all agents and what each is doing", ("ls",), module="list_"),
    Entry("wait", LOOK, "Wait until agents reach a state"),
    Entry("capture", LOOK, "Print what is on an agent's screen"),
    Entry("event", LOOK, "Print what happened to an agent", ("events",)),
    Entry("observe", LOOK, "Print changes of all agents as they happen, as JSON lines"),
    Entry("transcript", LOOK, "Print the conversation of an agent"),
    Entry("usage", LOOK, "Show what agents used: tokens and money"),
    Entry("diff", TAKE, "Show what an agent changed"),
    Entry("pull", TAKE, "Bring an agent's commits or files here"),
    Entry("push", TAKE, "Send commits or files to an agent"),
    Entry("git", TAKE, "Pull and push commits, as git itself would"),
    Entry("rsync", TAKE, "Copy files between here and an agent"),
    Entry("merge", TAKE, "Merge an agent's work into the current branch"),
    Entry("saved", TAKE, "List, show and restore work kept by the safety net"),
    Entry("snapshot", TAKE, "Keep an agent as it is, and bring it back to that", ("snap",)),
    Entry("start", LIFE, "Start stopped agents again"),
    Entry("stop", LIFE, "Stop agents and keep their work", ("s",)),
    Entry("destroy", LIFE, "Remove agents, saving work found nowhere else", ("rm",)),
    Entry("archive", LIFE, "Stop agents and hide them from the list, keeping everything"),
    Entry("rename", LIFE, "Give an agent another name", ("mv",)),
    Entry("label", LIFE, "Set or remove labels of agents"),
    Entry("limit", LIFE, "Show or set how long agents may run or be idle", ("lim",)),
    Entry("cleanup", LIFE, "Stop or destroy many agents by age, idleness or state", ("clean",)),
    Entry("gc", LIFE, "Remove what broken-off work left behind"),
    Entry("tmr", TEST, "Give every test an agent, and put what holds on one branch"),
    Entry("tutorial", TEST, "Keep a tutorial and the tests that cite it together"),
    Entry("e2e", TEST, "Browse what end-to-end tests did, and measure what they notice"),
    Entry("config", TOOL, "Read and change settings", ("cfg",)),
    Entry("plugin", TOOL, "List, add, remove, enable and disable plugins", ("plug",)),
    Entry("completion", TOOL, "Print a script that completes names in your shell"),
    Entry("doctor", TOOL, "Check that this machine is ready"),
    Entry("demo", TOOL, "See it all on a sample project, without a model"),
    Entry("help", TOOL, "Explain a verb or a topic"),
)

# Each has a text of the same name under `topics/`.
TOPICS = (
    ("addresses", "How to name an agent, a host or a path"),
    ("kinds", "What an agent can run, and types of your own"),
    ("states", "What RUNNING, WAITING, BLOCKED and the others mean"),
    ("filters", "Pick agents with an expression"),
    ("settings", "Settings files, defaults of options, templates"),
    ("trust", "What a repository may do, and how to let it"),
    ("transfer", "How the code gets to an agent and back"),
    ("formats", "Table, JSON, lines of JSON, your own template"),
    ("exit-codes", "What the exit code says"),
    ("environment", "Variables that are read, and those an agent gets"),
)


def find(word: str) -> Entry | None:
    """The verb with this name or alias."""
    for entry in ENTRIES:
        if word == entry.name or word in entry.aliases:
            return entry
    return None


def words() -> list[str]:
    """All names and aliases a person may type."""
    return [word for entry in ENTRIES if not entry.hidden for word in (entry.name, *entry.aliases)]
