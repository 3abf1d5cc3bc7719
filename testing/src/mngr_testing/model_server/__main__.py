"""`python -m mngr_testing.model_server`: prints its URL on the first line, then serves until it is told to end."""

from __future__ import annotations

import argparse
import signal
import sys

from mngr.errors import MngrError
from mngr_testing.model_server import ModelServer, load_rules


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mngr_testing.model_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--script", metavar="FILE", help="rules as TOML: `[[rule]]` with `when` and `do`")
    parser.add_argument("--log", metavar="FILE", help="append one JSON line for each request")
    given = parser.parse_args()
    ends = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        rules = load_rules(given.script) if given.script else ()
        with ModelServer(rules, given.log, given.port) as server:
            sys.stdout.write(f"{server.url}\n")
            sys.stdout.flush()
            signal.sigwait(ends)
    except MngrError as error:
        sys.stderr.write(f"error: {error.message}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
