"""A user with one real agent program installed, whose model is the scripted one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mngr.errors import MngrError
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.system.waiting import wait_until
from mngr_testing.model_server import ModelServer
from tests.support.programs import program, with_program
from tests.support.user import User, wait_for

TURN_SECONDS = 90.0


class ProgramWorld:
    def __init__(self, kind: str, user: User, server: ModelServer) -> None:
        with_program(program(kind), user.env, user.root / "bin")
        user.env.update(server.env(kind))
        self.kind = kind
        self.user = user
        self.server = server
        self.fleet = Fleet(environ=user.env, cwd=str(user.repo))

    def create(self, name: str, message: str | None = None, **more: Any) -> Agent:
        more = {"args": self.server.args(self.kind), "permissions": "bypass", **more}
        return self.fleet.create(name, type=self.kind, message=message, **more)

    def until(self, name: str, fits: Callable[[Agent], object], what: str) -> Agent:
        seen: list[Agent] = []

        def look() -> Agent | None:
            seen[:] = [self.fleet.find(name)]
            return seen[0] if fits(seen[0]) else None

        try:
            return wait_for(look, f"`{name}` to {what}", TURN_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\nnow {seen[0].status}\n{self.screen(name)}") from None

    def press(self, name: str, *keys: str) -> None:
        self.user.tmux("send-keys", "-t", self.fleet.find(name).record.life.session, *keys)

    def resize(self, name: str, columns: int) -> None:
        """As the terminal of somebody who looks at it would; the program has drawn its screen again on return."""
        session = self.fleet.find(name).record.life.session
        before = self.fleet.find(name).capture()
        self.user.tmux("resize-window", "-t", f"={session}:", "-x", str(columns), "-y", "50").ok()
        wait_for(
            lambda: (now := self.fleet.find(name).capture()) != before and max(map(len, now.split("\n"))) <= columns,
            f"`{name}` to draw {columns} columns",
            TURN_SECONDS,
        )

    def shows(self, name: str, text: str) -> None:
        wait_for(
            lambda: text in self.fleet.find(name).capture(),
            f"`{text}` on its screen: {self.screen(name)}",
            TURN_SECONDS,
        )

    def answer(self, name: str, key: str, asks: str) -> None:
        """A dialog that was just drawn may take no key yet, so press it until the question is gone."""
        self.shows(name, asks)

        def taken() -> bool:
            if asks in self.fleet.find(name).capture():
                self.press(name, key)
            return bool(wait_until(lambda: asks not in self.fleet.find(name).capture(), timeout=3))

        wait_for(taken, f"`{name}` to take {key} for an answer: {self.screen(name)}", TURN_SECONDS)

    def blocks(self, name: str, reason: str) -> Agent:
        """One source may tell that it is, before another tells why."""
        return self.until(
            name,
            lambda agent: agent.state == "BLOCKED" and agent.status.reason.startswith(reason),
            f"be blocked: {reason}",
        )

    def says(self, name: str, *last: tuple[str, str]) -> None:
        """A program may write its record a moment after it shows the answer."""
        try:
            wait_for(lambda: self.said(name)[-len(last) :] == list(last), f"the last of {name}", TURN_SECONDS)
        except AssertionError:
            raise AssertionError(f"the transcript ends not with {last}: {self.said(name)}") from None

    def rests(self, name: str) -> Agent:
        return self.until(name, lambda agent: agent.state == "WAITING", "come to rest")

    def rests_well(self, name: str) -> Agent:
        """Without anything to tell about it."""
        return self.until(name, lambda agent: agent.state == "WAITING" and not agent.status.reason, "rest in peace")

    def ask(self, name: str, text: str) -> Agent:
        self.fleet.find(name).message(text)
        return self.rests(name)

    def said(self, name: str) -> list[tuple[str, str]]:
        return [
            (str(entry["role"]), str(entry["text"]))
            for entry in self.fleet.find(name).transcript().entries
            if entry["role"] in ("user", "assistant")
        ]

    def home(self, name: str) -> Path:
        return Path(self.fleet.local.store.state_dir(self.fleet.find(name).id), "home")

    def screen(self, name: str) -> str:
        try:
            return "\n".join(line for line in self.fleet.find(name).capture().split("\n") if line.strip())
        except MngrError as error:
            return str(error)
