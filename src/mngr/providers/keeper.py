"""What the first process of a host that mngr made runs: shell functions that say whether anybody uses it, and that
stop its agents before it ends. What they ask is answered by our program there, which knows its agents."""

from __future__ import annotations

from mngr.remote import boot

# `ask` runs a function of the newest of our programs there. What nobody can say counts as use. A bracket in a pattern
# keeps the script from finding itself.
_FUNCTIONS = """\
h=${{HOME:-/root}}; export HOME=$h MNGR_HOST_DIR={state}
ask() {{
  for l in $(ls -td "$MNGR_HOST_DIR"/lib/*/ 2>/dev/null); do
    read p < "$l/python" && "$p" -I -S -c "import sys; sys.path.insert(0, sys.argv[1]); \
from mngr.actions import limits; print(getattr(limits, sys.argv[2])(sys.argv[3]))" "$l" "$1" "$2"
    return
  done
}}
is_used() {{
  ! grep -qs "lib/[0-9a-f]*/[s]tart.py" /proc/[0-9]*/cmdline || return 0
  grep -qs "tmux: server" /proc/[0-9]*/comm || return 1
  [ "$(ask is_unused {waiting:.0f} 2>/dev/null)" != True ]
}}
"""
WAITING_MINUTES = 240.0  # an agent that waits for its user counts as use for so long


def functions(host_dir: str, waiting_seconds: float) -> str:
    """The shell functions `is_used` and `ask NAME ARGUMENT`, for the state directory `host_dir`."""
    return _FUNCTIONS.format(state=boot.state_word(host_dir), waiting=waiting_seconds)
