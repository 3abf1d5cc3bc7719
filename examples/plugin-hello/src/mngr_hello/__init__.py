"""The hooks of the plugin. Imported whenever mngr wants to know what there is, so it imports nothing heavy."""

import shlex
import sys

from mngr.plugins import RegisterCommand, RegisterKind, hookimpl


@hookimpl
def register_commands(register: RegisterCommand) -> None:
    register("hello", "mngr_hello.hello", "Greet somebody, or all agents", aliases=("hi",))


@hookimpl
def register_kinds(register: RegisterKind) -> None:
    register("greeter", shlex.join([sys.executable, "-m", "mngr_hello.greeter"]))
