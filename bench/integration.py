"""What the row of integration runs: `python bench/integration.py RUN BASE REF...` in a repository with the branches."""

import os
import sys

from mngr.system import process
from mngr.system.git import Git
from mngr.tmr.branch.integration import integrate
from mngr.tmr.branch.unit import VerifiedWork


def main() -> int:
    run, base, *refs = sys.argv[1:]
    git = Git.of_user(os.getcwd())
    tips = process.run(["git", "rev-parse", base, *refs], timeout=60).text.split("\n")
    work = [
        VerifiedWork(f"tests/{ref}", ref.replace("/", "-"), ref, tip) for ref, tip in zip(refs, tips[1:], strict=True)
    ]
    done = integrate(git, run, tips[0], work)
    return 0 if len(done.commits) == len(refs) and not done.set_aside else 1


if __name__ == "__main__":
    sys.exit(main())
