"""Real projects of others through `mngr tmr`, from `init` to a branch: fetched from PyPI, with planted bugs, and agents
that follow scripts. Used by `make strangers` and by nothing else: it needs a network and time.

For each project: what tests do at the base has to be what plain pytest says, test by test; the verdict and the place
of each piece of work have to be the planted fact; and the time of each phase is printed beside one plain run of the
suite.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sys
import tarfile
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.tmr import NO_CHANGE, OUTCOME
from tests.support.user import User

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mngr-tests" / "strangers"
INDEX = "https://pypi.org/simple/{}/"
SECONDS = 3600
# Beside plain pytest, to say what came of each test.
PLUGIN = """\
import json, os


def pytest_runtest_logreport(report):
    word = "failed" if report.failed and not hasattr(report, "wasxfail") else ""
    if report.when == "call" or word or report.skipped:
        word = word or ("xfailed" if hasattr(report, "wasxfail") and report.skipped else report.outcome)
        with open(os.environ["STRANGERS_ROWS"], "a") as file:
            file.write(json.dumps([report.nodeid, word]) + "\\n")
"""


class Edit(NamedTuple):
    """`good` is in the file as it was published; the bug has `bad` in its place."""

    path: str
    good: str
    bad: str


class Stranger(NamedTuple):
    """A project with three bugs, each found by its test (the bug that is put right, the one whose fix does `harm`, the
    one whose test is skipped instead), and a test that passes. `place` is where in the repository it is."""

    version: str
    sha256: str
    right: tuple[str, Edit]
    harmful: tuple[str, Edit]
    harm: Edit
    skipped: tuple[str, Edit]
    passing: str
    place: str = ""

    @property
    def bugs(self) -> tuple[tuple[str, Edit], ...]:
        return (self.right, self.harmful, self.skipped)


_ENCODING, _TIMED = "src/itsdangerous/encoding.py", "src/itsdangerous/timed.py"
_OS, _EXT, _CONVERTERS = "src/aiofiles/os.py", "msgpack/ext.py", "src/attr/converters.py"
_FORMATTING = "src/click/formatting.py"
_UTILS, _TO_BOOL = "sqlite_utils/utils.py", "tests/test_converters.py::TestToBool::"
_UNTHOUGHT = "if default is not NOTHING and factory is not None:"
STRANGERS = {
    "itsdangerous": Stranger(
        "2.2.0",
        "e0050c0b7da1eea53ffaf149c0cfbb5c6e2e2b69c4bef22c81fa6eb73e5f6173",
        ("tests/test_itsdangerous/test_encoding.py::test_int_bytes", Edit(_ENCODING, '.lstrip(b"\\x00")', ".lstrip()")),
        (
            "tests/test_itsdangerous/test_encoding.py::test_base64_bad",
            Edit(_ENCODING, 'raise BadData("Invalid base64', 'raise ValueError("Invalid base64'),
        ),
        Edit(_TIMED, "if age > max_age:", "if age > max_age + 99:"),
        (
            "tests/test_itsdangerous/test_timed.py::TestTimestampSigner::test_future_age",
            Edit(_TIMED, "if age < 0:", "if age < -(10**9):"),
        ),
        "tests/test_itsdangerous/test_encoding.py::test_base64",
        place="packages/itsdangerous",
    ),
    "aiofiles": Stranger(
        "25.1.0",
        "a8d728f0a29de45dc521f18f07297428d56992a742f0cd2701ba86e44d23d5b2",
        ("tests/test_os.py::test_mkdir_and_rmdir", Edit(_OS, "rmdir = wrap(os.rmdir)", "rmdir = wrap(os.remove)")),
        ("tests/test_os.py::test_rename", Edit(_OS, "\nrename = wrap(os.rename)\n", "\nrename = wrap(os.stat)\n")),
        Edit(_OS, "unlink = wrap(os.unlink)", "unlink = wrap(os.stat)"),
        ("tests/test_os.py::test_readlink", Edit(_OS, "readlink = wrap(os.readlink)", "readlink = wrap(os.stat)")),
        "tests/test_os.py::test_exists",
    ),
    "click": Stranger(
        "8.5.1",
        "9bbfada76703fd1d784b83eea012e3e8c6a001a876543ef104fa56aaaeb072b4",
        (
            "tests/test_options.py::test_option_help_preserve_paragraphs",
            Edit(_FORMATTING, 'return ", ".join(x[1]', 'return "; ".join(x[1]'),
        ),
        (
            "tests/test_arguments.py::test_argument_metavar_marks_optional",
            Edit(_FORMATTING, "return wrapper.fill(text)", "return text"),
        ),
        Edit("src/click/exceptions.py", "_(\"Try '{command}", "_(\"Do try '{command}"),
        (
            "tests/test_imports.py::test_light_imports",
            Edit("src/click/_compat.py", "import codecs", "import codecs, csv"),
        ),
        "tests/test_formatting.py::test_formatting_usage_error",
    ),
    "msgpack": Stranger(
        "1.2.4",
        "475c44e12f2a5de766a8448783f149c9b33f3f49b88953c6cd739a77d93c732c",
        (
            "test/test_limits.py::test_negative_header_size",
            Edit("msgpack/_packer.pyx", "array size must be non-negative", "array size must be positive"),
        ),
        ("test/test_timestamp.py::test_timestamp_from", Edit(_EXT, "divmod(unix_ns, 10**9)", "divmod(unix_ns, 10**8)")),
        Edit(_EXT, "microseconds=self.nanoseconds // 1000", "microseconds=self.nanoseconds // 1"),
        (
            "test/test_timestamp.py::test_timestamp_to",
            Edit(_EXT, "self.seconds * 10**9 + self", "self.seconds * 10**8 + self"),
        ),
        "test/test_case.py::test_1",
    ),
    "attrs": Stranger(
        "26.1.0",
        "d03ceb89cb322a8fd706d4fb91940737b6642aa36998fe130a9bc96c985eff32",
        (_TO_BOOL + "test_truthy", Edit(_CONVERTERS, '"yes", "y", "on", ', '"yes", "y", ')),
        (_TO_BOOL + "test_falsy", Edit(_CONVERTERS, '"n", "off", ', '"n", ')),
        Edit(_CONVERTERS, 'msg = f"Cannot convert value', 'msg = f"Cannot make value'),
        (
            "tests/test_converters.py::TestDefaultIfNone::test_too_many_defaults",
            Edit(_CONVERTERS, _UNTHOUGHT, _UNTHOUGHT.replace("not None", "NOTHING")),
        ),
        "tests/test_converters.py::TestOptional::test_fail",
    ),
    "sqlite-utils": Stranger(
        "4.2.1",
        "76114b6a5414714e6c70e5fa5c4781b301b590f6951b5da39c8cc60c21382ba1",
        ("tests/test_utils.py::test_dedupe_keys", Edit(_UTILS, "suffix = 2", "suffix = 3")),
        ("tests/test_utils.py::test_hash_record", Edit(_UTILS, "keys is not None:", "keys is None:")),
        Edit(_UTILS, "return dict(_flatten(row))", "return row"),
        ("tests/test_utils.py::test_chunks", Edit(_UTILS, "islice(iterator, size - 1)", "islice(iterator, size)")),
        "tests/test_utils.py::test_decode_base64_values",
    ),
}


def fetch(name: str, stranger: Stranger, into: Path) -> None:
    """The published files, which are kept and checked."""
    kept = CACHE / f"{name}-{stranger.version}.tar.gz"
    if not kept.exists():
        index = INDEX.format(name)
        with urllib.request.urlopen(index, timeout=60) as answer:
            page = answer.read().decode()
        file = f"{name.replace('-', '[-_]')}-{stranger.version}[.]tar[.]gz"
        url = re.findall(rf'href="([^"]*{file})', page)[0]
        kept.parent.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(urllib.parse.urljoin(index, url), timeout=300) as answer:
            kept.write_bytes(answer.read())
    data = kept.read_bytes()
    if hashlib.sha256(data).hexdigest() != stranger.sha256:
        raise SystemExit(f"{kept} is not what it was when this was written")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive.getmembers():
            member.name = member.name.partition("/")[2]
            if member.name:
                archive.extract(member, into, filter="data")


class Visit:
    """One project in a world of its own."""

    def __init__(self, user: User, name: str) -> None:
        self.user, self.name, self.stranger = user, name, STRANGERS[name]
        self.top = user.repo / self.stranger.place
        self.wrong: list[str] = []
        self.top.mkdir(parents=True, exist_ok=True)
        fetch(name, self.stranger, self.top)
        for _, bug in self.stranger.bugs:
            path = self.top / bug.path
            text = path.read_text()
            if text.count(bug.good) != 1:
                raise SystemExit(f"{name}: `{bug.good}` is {text.count(bug.good)} times in {bug.path}")
            path.write_text(text.replace(bug.good, bug.bad))
        with (user.repo / ".gitignore").open("a") as file:
            file.write("\n.venv/\n__pycache__/\n*.egg-info/\nbuild/\n*.so\n*.c\n.pytest_cache/\n.hypothesis/\n")
        self.commit("as published, with three bugs")

    def commit(self, message: str) -> None:
        self.user.git("add", "-A")
        self.user.git("commit", "-q", "-m", message)

    def init(self) -> dict[str, str]:
        """What `mngr tmr init` writes, and where it found that."""
        ran = self.user.mngr("tmr", "init", "--format", "json", cwd=self.user.repo).ok()
        for guess in ran.json["settings"]:
            print(f"  {guess['key']} = {guess['value']}  ({guess['because']})")
        cache = CACHE / "pip"
        self.user.mngr("config", "set", "--scope", "project", "tmr.env.PIP_CACHE_DIR", str(cache)).ok()
        self.user.mngr("config", "set", "--scope", "project", "tmr.baseline_repeats", "0").ok()
        self.commit("settings")
        return {guess["key"]: guess["value"] for guess in ran.json["settings"]}

    def plain(self, settings: Mapping[str, str]) -> tuple[dict[str, str], float, float]:
        """What plain pytest says of each test, in a clone, and the seconds of `prepare` and of the suite."""
        clone = self.user.root / "plain"
        self.user.git("clone", "-q", str(self.user.repo), str(clone))
        (self.user.root / "strangers_rows.py").write_text(PLUGIN)
        rows = self.user.root / "rows"
        began = time.monotonic()
        env = {"PIP_CACHE_DIR": str(CACHE / "pip")}
        self.user.run(["sh", "-c", settings["tmr.prepare"]], cwd=clone, env=env, timeout=SECONDS).ok()
        prepared = time.monotonic()
        line = f"{settings['tmr.test_command']} -q -p strangers_rows -p no:randomly -p no:cacheprovider"
        env = {"PYTHONPATH": str(self.user.root), "STRANGERS_ROWS": str(rows), "PYTHONDONTWRITEBYTECODE": "1"}
        self.user.run(["sh", "-c", line], cwd=clone, env=env, timeout=SECONDS).failed()
        ended = time.monotonic()
        found: dict[str, str] = {}
        for id, word in map(json.loads, rows.read_text().splitlines()):
            test = os.path.join(self.stranger.place, id.replace(str(clone.resolve()), "<checkout>"))
            found[test] = "failed" if found.get(test) == "failed" else word
        return found, prepared - began, ended - prepared

    def scripts(self) -> Path:
        """One for each test that gets an agent."""
        place = self.user.root / "scripts"
        place.mkdir()
        stranger = self.stranger
        for (test, bug), more in ((stranger.right, None), (stranger.harmful, stranger.harm)):
            text = self._replace(bug.path, bug.bad, bug.good)
            text += self._replace(more.path, more.good, more.bad) if more else ""
            (place / f"{_name(test)}.script").write_text(f"wait\n{text}commit Put it right\n{_claim('implementation')}")
        test, _ = stranger.skipped
        file, lines = test.partition("::")[0], (self.top / test.partition("::")[0]).read_text().splitlines()
        line = next(one for one in lines if f"def {_name(test)}(" in one)
        skip = f'{line[: len(line) - len(line.lstrip())]}@__import__("pytest").mark.skip'
        text = self._replace(file, line, f"{skip}\n{line}")
        (place / f"{_name(test)}.script").write_text(f"wait\n{text}commit Make it green\n{_claim('test')}")
        (place / f"{_name(stranger.passing)}.script").write_text(NO_CHANGE)
        return place

    def _replace(self, path: str, old: str, new: str) -> str:
        full = os.path.join(self.stranger.place, path)
        return f"replace {full} <<END\n{old.strip(chr(10))}\n====\n{new.strip(chr(10))}\nEND\n"

    def run(self) -> dict[str, Any]:
        tests = [os.path.join(self.stranger.place, test) for test, _ in self.stranger.bugs]
        tests.append(os.path.join(self.stranger.place, self.stranger.passing))
        script = f"{self.scripts()}/{{name}}.script"
        words = ("tmr", "--name", "r1", "--type", "scripted", "--integrator", "none", "--no-record", "--format", "json")
        ran = self.user.mngr(*words, *tests, "--", script, timeout=SECONDS)
        if not ran.stdout.startswith("{") or "error" in ran.json:
            raise SystemExit(f"{self.name}: {ran.stdout}\n{ran.stderr[-4000:]}")
        found: dict[str, Any] = ran.json
        return found

    def check(self, what: str, found: object, wanted: object) -> None:
        if found != wanted:
            self.wrong.append(f"{what}: {found!r}, and not {wanted!r}")

    def check_baseline(self, plain: Mapping[str, str]) -> int:
        """Test by test."""
        kept = json.loads((self.user.repo / ".mngr/runs/r1/baseline.json").read_text())["tests"]
        words = {"pass": "passed", "fail": "failed", "skipped": "skipped", "broken": "failed"}
        ours = {test: words.get(one["verdict"], one["verdict"]) for test, one in kept.items()}
        same = {test: "passed" if word == "xfailed" else word for test, word in plain.items()}
        for test in sorted(ours.keys() | same.keys()):
            self.check(f"at the base, {test}", ours.get(test), same.get(test))
        return len(ours)

    def check_verdicts(self, result: Mapping[str, Any]) -> list[str]:
        """Of each agent: the verdict, and whether its work is on the branch."""
        rows = self.user.mngr("tmr", "status", "r1", "--format", "json").ok().json["rows"]
        found = {row["task"].rpartition("::")[2]: row for row in rows}
        wanted = {
            self.stranger.right[0]: (("fixed",), "on the branch"),
            self.stranger.harmful[0]: (("fixed", "refuted"), "not"),
            self.stranger.skipped[0]: (("refuted",), "not"),
            self.stranger.passing: (("unchanged",), "not"),
        }
        lines = []
        for test, (verdicts, place) in wanted.items():
            row = found.get(_name(test), {"verdict": "", "why": f"no such task among {sorted(found)}", "place": ""})
            self.check(f"the verdict on {test}", row["verdict"] in verdicts or row["why"], True)
            self.check(f"the place of {test}", row["place"] == "on the branch", place == "on the branch")
            lines.append(f"  {row['verdict']:10} {row['place'] or '-':14} {test}")
        self.check("the exit code", result["exit_code"], 3)
        return lines

    def phases(self) -> dict[str, float]:
        """Seconds of each, from the ledger."""
        began: dict[str, float] = {}
        spent: dict[str, float] = {"agents and checks": 0.0}
        lines = (self.user.repo / ".mngr/runs/r1/ledger.jsonl").read_text().splitlines()
        for entry in map(json.loads, lines):
            at = datetime.fromisoformat(entry["at"].replace("Z", "+00:00")).timestamp()
            if entry["type"] == "phase" and entry["status"] == "began":
                began[entry["name"]] = at
                if entry["name"] == "integrate":
                    spent["agents and checks"] = at - began["selected"]
            elif entry["type"] == "phase":
                spent[entry["name"]] = at - began[entry["name"]]
                began["selected"] = at
        return spent


def _name(test: str) -> str:
    return test.rpartition("::")[2]


def _claim(kind: str) -> str:
    change = f'[{{"kind": "{kind}", "commit": "{{head}}", "summary": "it is right now", "importance": 2}}]'
    return OUTCOME.format(status="done", changes=change, summary="it is right now")


def visit(name: str) -> list[str]:
    """What was found to be wrong."""
    print(f"{name} {STRANGERS[name].version}", flush=True)
    user = User()
    try:
        there = Visit(user, name)
        settings = there.init()
        plain, prepare, suite = there.plain(settings)
        failed = sum(word == "failed" for word in plain.values())
        print(f"  plain: {len(plain)} tests, {failed} fail; prepare {prepare:.1f} s, suite {suite:.1f} s", flush=True)
        result = there.run()
        count = there.check_baseline(plain)
        print("\n".join(there.check_verdicts(result)))
        print(f"  sanity check: {result['canary']}; verdicts: {result['verdicts']}")
        phases = ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in there.phases().items())
        print(f"  {count} tests at the base; {phases}")
        whole = result["seconds"]
        print(
            f"  {whole:.1f} s in all, {whole / (prepare + suite):.1f} times one prepare and one plain run", flush=True
        )
        return there.wrong
    finally:
        user.close()


def main() -> int:
    names = sys.argv[1:] or list(STRANGERS)
    wrong = {name: visit(name) for name in names}
    for name, found in wrong.items():
        print(f"{name}: {'all as planted' if not found else f'{len(found)} wrong'}")
        print("".join(f"  {line}\n" for line in found[:20]), end="")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
