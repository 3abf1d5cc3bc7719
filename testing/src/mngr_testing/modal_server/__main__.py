"""`python -m mngr_testing.modal_server`: prints its URL on the first line, then serves until it is told to end."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile

from mngr.errors import MngrError
from mngr_testing.modal_server.server import Settings, remove_when_we_end, serve

MEMORY = "/dev/shm"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mngr_testing.modal_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--root", metavar="DIR", default="/", help="root directory of every image (default: /)")
    parser.add_argument(
        "--show",
        metavar="DIR",
        action="append",
        default=[],
        help="a directory that each sandbox sees at the same path",
    )
    parser.add_argument("--state", metavar="DIR", help="where sandboxes are kept (default: a new directory in memory)")
    parser.add_argument("--log", metavar="FILE", help="append one JSON line for each call")
    parser.add_argument("--max-sandboxes", type=int, metavar="N", help="refuse to run more than N sandboxes at once")
    parser.add_argument(
        "--control", action="store_true", help="take orders on standard input, one JSON object per line; end with it"
    )
    given = parser.parse_args()
    place = given.state or (MEMORY if os.access(MEMORY, os.W_OK) else tempfile.gettempdir())
    state = tempfile.mkdtemp(prefix="mngr-modal-", dir=place)
    try:
        remove_when_we_end(state)
        settings = Settings(
            given.port, given.root, state, given.log, given.max_sandboxes, given.control, tuple(given.show)
        )
        asyncio.run(serve(settings))
    except MngrError as error:
        sys.stderr.write(f"error: {error.message}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    finally:
        shutil.rmtree(state, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
