"""One run of pytest, as far as it concerns `e2e`: name, options, reaper. Makes nothing before a test needs it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from mngr.e2e import artifacts

if TYPE_CHECKING:
    from mngr.e2e.cleanup import Reaper
    from mngr.e2e.trial import Trial

CHOICES = ("yes", "on-failure", "no")
# Under this key a worker of pytest-xdist is told which run it is part of.
SHARED = "mngr_e2e"


class PytestRun:
    """Made in every pytest process that needs it; those of one xdist run share name, id and start."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._shared = shared(config)
        self._directory = _directory(config)
        self._artifacts = _choice(config, "artifacts", "yes")
        self._keep = _choice(config, "keep-environment", "no")
        self._opened: tuple[str, int] | None = None
        self._reaper: Reaper | None = None
        self._trials: list[Trial] = []

    def start(self, item: pytest.Item) -> Trial:
        """Everything that a test needs, watched by the reaper before anything runs in it."""
        from mngr.e2e.trial import Trial

        details = _details(item)
        target = "" if self._artifacts == "no" else artifacts.start_test(self._path(), details)
        keep = {"keep_artifacts": self._artifacts, "keep_environment": self._keep}
        self._trials.append(Trial(target, details, watch=self._watch, **keep))
        return self._trials[-1]

    def forget(self, trial: Trial) -> None:
        """The trial is over and has cleaned up."""
        self._trials.remove(trial)
        if self._reaper is not None:
            self._reaper.forget(trial.root)

    def close(self) -> None:
        """Clean up after tests that were interrupted. What cannot be cleaned up here is left to the reaper."""
        for trial in list(self._trials):
            trial.close()
            trial.remove_environment()
            self.forget(trial)
        if self._reaper is not None:
            self._reaper.close()
            self._reaper = None
        if self._opened is not None:
            os.close(self._opened[1])
            self._opened = None

    def _watch(self, root: str) -> None:
        from mngr.e2e.cleanup import Reaper

        self._reaper = self._reaper or Reaper()
        self._reaper.watch(root)

    def _path(self) -> str:
        if self._opened is None:
            self._opened = artifacts.open_run(
                self._directory, self._shared["name"], run_id=self._shared["id"], details=self._about
            )
        return self._opened[0]

    def _about(self) -> dict[str, Any]:
        from mngr.e2e import code_state

        root = str(self._config.rootpath)
        code = code_state.look(root)
        return {
            "started_at": self._shared["started_at"],
            "root": root,
            "args": self._shared["args"],
            "python": sys.version.split()[0],
            **(code.as_json() if code else {}),
        }


_RUN = pytest.StashKey[PytestRun]()
_SHARED = pytest.StashKey[dict[str, Any]]()


def of(config: pytest.Config) -> PytestRun:
    if _RUN not in config.stash:
        config.stash[_RUN] = PytestRun(config)
    return config.stash[_RUN]


def shared(config: pytest.Config) -> dict[str, Any]:
    """What all processes of a run have in common; decided by the first one, or given to a worker by the controller."""
    if _SHARED not in config.stash:
        given: Mapping[str, Any] = getattr(config, "workerinput", {}).get(SHARED, {})
        config.stash[_SHARED] = dict(given) or _new_run(config)
    return config.stash[_SHARED]


def finish(config: pytest.Config, exit_status: int) -> None:
    """The end of the tests: clean up in this process; the controller also notes the end of the run."""
    if _RUN in config.stash:
        config.stash[_RUN].close()
    if _SHARED in config.stash and not hasattr(config, "workerinput"):
        known = config.stash[_SHARED]
        path = os.path.join(_directory(config), known["name"])
        artifacts.end_run(path, run_id=known["id"], ended_at=_now(), exit_status=exit_status)


def _new_run(config: pytest.Config) -> dict[str, Any]:
    token = os.urandom(8).hex()
    name = _option(config, "run-name") or f"{time.strftime('%Y%m%d-%H%M%S')}-{token[:4]}"
    args = [str(word) for word in config.invocation_params.args]
    return {"name": name, "id": token, "started_at": _now(), "args": args}


def _details(item: pytest.Item) -> dict[str, Any]:
    file, line, _ = item.location
    function = getattr(item, "function", None)
    return {
        "node_id": _node_id(item),
        "file": file,
        "line": line + 1 if line is not None else None,
        "name": item.name,
        "doc": (getattr(function, "__doc__", None) or "").strip(),
        "started_at": _now(),
    }


def _node_id(item: pytest.Item) -> str:
    """Its own id: `--dist loadgroup` of pytest-xdist appends the name of the test's group to it."""
    groups = [mark.args[0] if mark.args else mark.kwargs.get("name") for mark in item.iter_markers("xdist_group")]
    for group in groups:
        if item.nodeid.endswith(f"@{group}"):
            return item.nodeid.removesuffix(f"@{group}")
    return item.nodeid


def _directory(config: pytest.Config) -> str:
    """Given on the command line it is relative to where pytest was started, in a settings file to the root. The
    variable wins: it says where the one who measures collects, whatever the test command is."""
    given = os.environ.get(artifacts.VARIABLE) or config.getoption("e2e_dir")
    if given:
        return os.path.join(config.invocation_params.dir, os.path.expanduser(given))
    return os.path.join(config.rootpath, os.path.expanduser(config.getini("e2e_dir") or artifacts.DEFAULT))


def _choice(config: pytest.Config, name: str, default: str) -> str:
    value = _option(config, name) or default
    if value not in CHOICES:
        raise pytest.UsageError(f"e2e_{name.replace('-', '_')} is {value!r}; it can be {', '.join(CHOICES)}")
    return value


def _option(config: pytest.Config, name: str) -> str:
    key = f"e2e_{name.replace('-', '_')}"
    return str(config.getoption(key) or config.getini(key) or "")


def _now() -> float:
    return round(time.time(), 3)
