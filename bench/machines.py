"""Rows of the benchmark for another machine: a verb over ssh, beside `ssh` on an open connection and the local verb."""

import os
import shutil
from collections.abc import Sequence

from bench.works import Commands, Work
from bench.world import World
from mngr.actions.site import Site
from mngr.providers import registry
from tests.support.sshd import SYSTEM_PATH, Sshd
from tests.support.user import User

HAS_SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}") is not None


class OverSsh(Work):
    """`near` runs here and `far` on the host, both on an agent that runs `cat`; the floor is the local verb, and `ssh`
    as often as the verb may ask the host."""

    budget = 2.0
    samples = 11
    trips = 2

    def __init__(self, verb: str, *words: str, undo: str = "") -> None:
        self.name = f"{verb} over ssh"
        self._words = (verb, "{}", *words)
        self._undo = undo

    def set_up(self, world: World) -> None:
        self._far = User()
        self._box = Sshd(self._far)
        world.env.update(self._box.client.env(world.env))
        for name in ("near", "far@box"):
            world.run(*world.create(name, "cat"))
        provider = registry.find("ssh", Site(environ=world.env, cwd=str(world.repo)))
        self._ssh = [*provider.opening("box").argv]

    def close(self) -> None:
        self._box.close()
        self._far.close()

    def floor(self, world: World, number: int) -> Commands:
        return [*[[*self._ssh, "true"]] * self.trips, self._verb(world, "near", number)]

    def ours(self, world: World, number: int) -> Sequence[str]:
        return self._verb(world, "far", number)

    def _verb(self, world: World, name: str, number: int) -> Sequence[str]:
        return [world.mngr, *(word.format(name) for word in self._words)]

    def after_floor(self, world: World, number: int) -> None:
        self._take_back(world, "near", number)

    def after(self, world: World, number: int) -> None:
        self._take_back(world, "far", number)

    def _take_back(self, world: World, name: str, number: int) -> None:
        if self._undo:
            world.run(world.mngr, self._undo, name)


class CreateOverSsh(OverSsh):
    """The host has the code already, as it has for everyone's second agent."""

    trips = 4

    def __init__(self) -> None:
        super().__init__("create")

    def _verb(self, world: World, name: str, number: int) -> Sequence[str]:
        return world.create(f"{name}-{number}" + ("@box" if name == "far" else ""), "cat")

    def _take_back(self, world: World, name: str, number: int) -> None:
        world.run(world.mngr, "destroy", f"{name}-{number}", "--force")


class ListOverSsh(OverSsh):
    """All agents, here and there, beside those of somebody who knows no host. `make soak` measures 20 hosts."""

    def __init__(self) -> None:
        super().__init__("list")

    def set_up(self, world: World) -> None:
        super().set_up(world)
        self._alone = ["env", f"MNGR_HOST_DIR={world.root}/alone"]
        world.run(*self._alone, *world.create("alone", "cat"))

    def floor(self, world: World, number: int) -> Commands:
        return [[*self._ssh, "python3 -IS -c pass"], [*self._alone, world.mngr, "list"]]

    def _verb(self, world: World, name: str, number: int) -> Sequence[str]:
        return [world.mngr, "list"]


WORKS: tuple[Work, ...] = (
    ListOverSsh(),
    OverSsh("message", "-m", "hello there"),
    OverSsh("exec", "true"),
    OverSsh("stop", undo="start"),
    CreateOverSsh(),
) * HAS_SSHD
NOT_MEASURED = () if HAS_SSHD else ("verbs over ssh (no sshd)",)
