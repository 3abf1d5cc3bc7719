"""Programs that use the real `modal` client against the local server."""

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

from mngr_testing.modal_server import ModalServer

# Sandboxes are made of namespaces and overlays.
CANNOT_RUN = "" if sys.platform == "linux" and os.geteuid() == 0 else "sandboxes of the local Modal server need root"

PRELUDE = """
import json, modal
def answer(value): print(json.dumps(value), flush=True)
app = modal.App.lookup("mngr", create_if_missing=True)
def sandbox(*args, **more): return modal.Sandbox.create(*args, **{"app": app, "timeout": 600, **more})
def run(sandbox, *args, **more):
    process = sandbox.exec(*args, **more)
    return process.stdout.read(), process.stderr.read(), process.wait()
"""


def started(server: ModalServer, program: str, **env: str) -> subprocess.Popen[str]:
    """The program after the prelude, as it runs."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PRELUDE + textwrap.dedent(program)],
        env={**os.environ, **server.env(), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def client(server: ModalServer, program: str, **env: str) -> list[Any]:
    """Run the program after the prelude; what it gave to `answer`, in order. Fails with its errors if it fails."""
    with started(server, program, **env) as running:
        try:
            output, errors = running.communicate(timeout=240)
        finally:
            running.kill()
    assert running.returncode == 0, "\n".join([output, errors, *map(str, server.calls()[-20:])])
    return [json.loads(line) for line in output.splitlines()]


def mounts() -> list[str]:
    """What is mounted for sandboxes outside of their own namespaces."""
    with open("/proc/self/mounts") as file:
        return [line for line in file if "mngr-modal-" in line]
