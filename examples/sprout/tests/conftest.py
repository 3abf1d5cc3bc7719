"""`sprout` in a test is the code of this checkout, whatever else is installed. Every day is Friday, 8 May 2026."""

import shlex
import sys
from pathlib import Path

from mngr.e2e import E2eSession

SOURCE = Path(__file__).parents[1] / "src"


def e2e_environment(session: E2eSession) -> None:
    program = session.bin / "sprout"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(SOURCE))} exec {shlex.quote(sys.executable)} -m sprout "$@"\n'
    )
    program.chmod(0o755)
    session.env["SPROUT_TODAY"] = "2026-05-08"
    session.env["PYTHONDONTWRITEBYTECODE"] = "1"
