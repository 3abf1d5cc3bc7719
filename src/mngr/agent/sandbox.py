"""The sandbox of an agent on this machine: what it sees and what it may write, as a file of arguments for bubblewrap.
The file is written before each start, in the agent's state directory, where the agent cannot change it. Everything that
runs for the agent (its program, its windows, `exec`, provision commands) is started with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping

from mngr.agent import events, launch
from mngr.agent.record import Record
from mngr.errors import MngrError, UsageError
from mngr.programs import driver
from mngr.programs.driver import AgentContext
from mngr.programs.kind import BYPASS
from mngr.system import bubblewrap, files, inside, process
from mngr.system.bubblewrap import READ_ONLY, SYSTEM, WRITABLE, Mount, is_below
from mngr.system.process import find_program, join, quote

ON, NO_NETWORK = "on", "no-network"
ARGUMENTS = "sandbox.args"
# In the state directory: what the agent has for a home and for temporary files.
HOME, TEMPORARY, GIT_CONFIG = "sandbox/home", "sandbox/tmp", "sandbox/gitconfig"
# Of the user's home, what tools need and no credentials are kept in.
TOOLS = (
    *(".pyenv", ".rustup", ".nvm", ".asdf", ".rbenv", ".sdkman", ".local/share/mise", ".local/share/uv", ".local/bin"),
    *(".local/lib", ".cargo/bin", ".cargo/registry", ".cargo/git", "go/pkg", ".npm", ".m2/repository", ".ccache"),
    *(".gradle/caches", ".gradle/wrapper", ".cache/pip", ".cache/uv", ".cache/go-build", ".cache/pypoetry"),
)
# Of the user's variables, what programs need and no secret is kept in.
VARIABLES = (
    *("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION", "RUSTUP_HOME", "NVM_DIR", "JAVA_HOME", "GOROOT"),
    *("GOFLAGS", "GOPROXY", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy"),
    *("https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"),
    *("NPM_CONFIG_REGISTRY", "PYTEST_ADDOPTS"),
)
# Those of them that name a toolchain.
_ROOTS = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "RUSTUP_HOME", "NVM_DIR", "JAVA_HOME", "GOROOT")
_UNSIGNED = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "commit.gpgSign", "GIT_CONFIG_VALUE_0": "false"}
_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")


def inherited(record_driver: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Of the caller's environment, what reaches an agent in a sandbox: nothing that may be a secret, except what its
    program uses to reach its model."""
    names = {*VARIABLES, "HOME", "COLORTERM"} - {"TMPDIR"}
    prefixes = tuple(driver.find(record_driver).variables) if record_driver else ()
    return {
        name: value
        for name, value in launch.inherited(environ).items()
        if name in names or (prefixes and name.startswith(prefixes))
    }


def write(agent: AgentContext, *, readable: Iterable[str], writable: Iterable[str], started: bool = True) -> None:
    """Write the file of arguments, and make what it names. Before the agent has `started` for the first time, its git
    configuration may be changed, since provision commands do. Twice is safe."""
    home, record = driver.user_home(agent.environ), agent.record
    for name in (HOME, TEMPORARY, driver.HOME):
        agent.host.make_dir(f"{agent.state_dir}/{name}")
    agent.host.write(f"{agent.state_dir}/{GIT_CONFIG}", _git_config(agent), 0o644)
    backed = {home: f"{agent.state_dir}/{HOME}", "/tmp": f"{agent.state_dir}/{TEMPORARY}"}
    own = [Mount(path, WRITABLE, source) for path, source in backed.items()]
    own.append(Mount(f"{home}/.gitconfig", READ_ONLY, f"{agent.state_dir}/{GIT_CONFIG}"))
    written = _named(agent, home, writable)
    logins = driver.find(record.spec.driver).logins(agent.environ) if record.spec.driver else ()
    seen = [*_tools(agent), *_shared(record), *_named(agent, home, readable), *_linked(agent)]
    own += map(Mount, _outermost(path for path in seen if path not in logins and _may_be_seen(path, agent, home)))
    own += [Mount(path, WRITABLE) for path in (*written, *logins)]
    own += [
        Mount(record.workspace.work_dir, WRITABLE),
        *_repository(record.workspace.work_dir, pinned=started),
        *_state(agent),
    ]
    for path, source in backed.items():
        _clear_way(source, [os.path.relpath(mount.path, path) for mount in own if is_below(mount.path, path)])
    words = bubblewrap.arguments(own, network=record.spec.sandbox != NO_NETWORK, env=_UNSIGNED)
    agent.host.write(f"{agent.state_dir}/{ARGUMENTS}", bubblewrap.file_form(words))


def in_sandbox(command: str, state_dir: str) -> str:
    """The shell line that runs a command in the sandbox, on the terminal of the agent."""
    inside = join([*bubblewrap.INSIDE, command])
    return f"(trap '' {bubblewrap.SIGNALS}; exec bwrap --args 9 {inside} 9< {quote(f'{state_dir}/{ARGUMENTS}')})"


def words_for(state_dir: str, directory: str, line: str, *, attached: bool = False) -> list[str]:
    """The argument list of a command in the sandbox that ends with the process that started it. One that is `attached`
    to the user's own terminal cannot type there where the kernel would let it."""
    apart = ["--new-session"] if attached and not bubblewrap.shares_terminal() else []
    script = 'args=$1; shift; [ ! -f "$0" ] || . "$0"; exec bwrap --args 9 "$@" 9<"$args"'
    more = ["--die-with-parent", *apart, "--chdir", directory, "sh", "-c", line]
    return ["sh", "-c", script, f"{state_dir}/env", f"{state_dir}/{ARGUMENTS}", *more]


def remove_links(agent: AgentContext) -> None:
    """Remove the links in the home of its program that lead out of it: the agent may have made them, and whatever they
    lead to would be seen at its next start, or replaced. The driver makes its own again."""
    for path in _links_out(agent.home):
        os.remove(path)


def check_kind(name: str, known: driver.Driver, sandbox: str, permissions: str, *, root: bool) -> None:
    """Raise when such an agent cannot work in its sandbox."""
    if sandbox == NO_NETWORK and known.program.name:
        raise UsageError(
            f"`{name}` cannot reach its model without a network", hint="leave out `--network off`, or `--sandbox`"
        )
    if root and known.own_sandbox and permissions != BYPASS:
        raise UsageError(
            f"`{name}` has a sandbox of its own, which does not work inside another one for root",
            hint="add `--permissions bypass`: the agent is in a sandbox all the same",
        )


def _state(agent: AgentContext) -> list[Mount]:
    """Of its state directory: what its program and its hooks write, and its own variables and prompt."""
    names = [events.FILE, driver.HOME]
    if agent.record.spec.reports and not agent.record.spec.driver:
        names.append("transcript.jsonl")
    for name in names:
        if name.endswith(".jsonl") and not os.path.exists(f"{agent.state_dir}/{name}"):
            files.write_new(f"{agent.state_dir}/{name}", b"")
    task = launch.task_dir(agent.record, agent.state_dir)
    written = [f"{agent.state_dir}/{name}" for name in names]
    written += [task] if is_below(task, agent.state_dir) else []
    read = [f"{agent.state_dir}/{name}" for name in ("env", driver.PROMPT)]
    return [*(Mount(path, WRITABLE) for path in written), *map(Mount, read)]


def _repository(work_dir: str, *, pinned: bool) -> list[Mount]:
    """Git obeys the configuration and the hooks of a repository, also when the user or mngr runs it there. So the agent
    can change neither, nor name another repository: `commondir` would."""
    place = f"{work_dir}/.git"
    if not pinned or not os.path.lexists(place):
        return []
    if os.path.islink(place) or not os.path.isdir(place):
        raise MngrError(f"a sandbox needs a repository inside `{work_dir}`, and `.git` there leads elsewhere")
    os.makedirs(f"{place}/hooks", exist_ok=True)
    for name, text in (("commondir", b".\n"), ("config.worktree", b"")):
        if not os.path.lexists(f"{place}/{name}"):
            files.write_new(f"{place}/{name}", text, 0o644)
    names = ("config", "config.worktree", "commondir", "hooks")
    return [Mount(place, WRITABLE), *(Mount(f"{place}/{name}") for name in names)]


def _shared(record: Record) -> Iterator[str]:
    """What the work dir shares with its source, without what has become a link that leads out of the source."""
    for path in record.workspace.shared_paths:
        try:
            if is_below(path, record.workspace.source):
                inside.resolve(record.workspace.source, path)
        except inside.UnsafePath:
            continue
        yield path


def _tools(agent: AgentContext) -> list[str]:
    """What programs are made of: the user's toolchains, what is on PATH, the agent's program, and mngr itself."""
    found = [f"{driver.user_home(agent.environ)}/{name}" for name in TOOLS]
    found += [agent.environ[name] for name in _ROOTS if name in agent.environ]
    path = agent.environ.get("PATH", os.defpath)
    for folder in path.split(":"):
        found += [folder, *_around(folder)]
    word = agent.record.spec.command.split(None, 1)[0] if agent.record.spec.command.strip() else ""
    program = find_program(os.path.expanduser(word), path)
    found += _packages(os.path.abspath(program)) if program else []
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [*found, sys.prefix, sys.base_prefix, ours]


def _around(folder: str) -> list[str]:
    """A virtual environment, its interpreter and a tree of Node packages are needed as a whole."""
    above = os.path.dirname(folder.rstrip("/"))
    if folder.rstrip("/").endswith("/node_modules/.bin"):
        return [above]
    if not any(os.path.exists(f"{above}/{name}") for name in _ENVIRONMENTS):
        return []
    return [above, os.path.dirname(os.path.dirname(os.path.realpath(f"{above}/bin/python")))]


def _packages(program: str) -> list[str]:
    """What belongs to a program: the packages around it, or the directory that it is in; of each link to it, too."""
    found = []
    for path in (*_hops(program), os.path.realpath(program)):
        before, modules, _ = path.partition("/node_modules/")
        found += [f"{before}/node_modules"] if modules else [os.path.dirname(path), path]
    return found


def _hops(path: str) -> list[str]:
    """The path, and what it is a link to, if it is one, and so on."""
    found = [path]
    while os.path.islink(path) and len(found) < 40:
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        found.append(path)
    return found


def _linked(agent: AgentContext) -> list[str]:
    """What the driver has linked into the home of its program: settings of the user."""
    return [_hops(path)[1] for path in _links_out(agent.home)]


def _links_out(top: str) -> list[str]:
    found = [os.path.join(root, name) for root, folders, names in os.walk(top) for name in (*folders, *names)]
    real = os.path.realpath(top)
    return [path for path in found if os.path.islink(path) and not is_below(os.path.realpath(path), real)]


def _named(agent: AgentContext, home: str, paths: Iterable[str]) -> list[str]:
    """What settings name, with `~`. Raises for what would show the user's whole home or the state of other agents."""
    found = [os.path.abspath(home + path[1:] if path.startswith("~/") else path) for path in paths]
    for path in found:
        if is_below(home, path) or is_below(agent.host.dir, path) or is_below(path, agent.host.dir):
            raise UsageError(f"`sandbox` settings name `{path}`, which an agent in a sandbox must not see")
    return found


def _may_be_seen(path: str, agent: AgentContext, home: str) -> bool:
    """Not what is there anyway, nor what is around the user's home, the state of mngr or the agent's own files."""
    if not path.startswith("/") or not os.path.exists(path):
        return False
    around = any(is_below(place, path) for place in (home, agent.host.dir, agent.record.workspace.work_dir, "/tmp"))
    hidden = is_below(path, agent.host.dir) and not is_below(path, f"{agent.host.dir}/lib")
    shown = any(is_below(path, top) for top in (*SYSTEM, agent.record.workspace.work_dir))
    return not (around or hidden or shown)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Without those that are inside another."""
    known = sorted({os.path.normpath(path) for path in paths})
    return [path for path in known if not any(is_below(path, other) for other in known if other != path)]


def _clear_way(top: str, paths: Iterable[str]) -> None:
    """Remove links on the way to these paths below a directory that the agent can write: what is mounted there would
    be put wherever they lead."""
    for path in paths:
        place = top
        for part in path.split("/"):
            place = os.path.join(place, part)
            if os.path.islink(place):
                os.remove(place)


def _git_config(agent: AgentContext) -> bytes:
    """Who commits. The rest of the user's configuration may hold credentials."""
    words = ["git", "config", "--get-regexp", r"^user\.(name|email)$"]
    lines = process.run(words, timeout=30, cwd=agent.record.workspace.work_dir).text.split("\n")
    text = "[user]\n"
    for line in lines:
        name, _, value = line.partition(" ")
        if value:
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            text += f'\t{name.removeprefix("user.")} = "{escaped}"\n'
    return text.encode("utf-8", "surrogateescape")
