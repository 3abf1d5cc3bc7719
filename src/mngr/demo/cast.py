"""The agents of the demo: what each is there to show. What it does is in `agents/NAME.script`."""

from mngr.records import NamedTuple


class Part(NamedTuple):
    name: str
    task: str
    transfer: str = "git-worktree"


CAST = (
    Part("fix-cents", "fix the failing test"),
    Part("more-tests", "test what has no test"),
    Part("readme", "say how to use it"),
    Part("round-tip", "round tips: must ask"),
    Part("add-json", "add --json, in a mirror", "git-mirror"),
)
ANSWER = "To the cent, please."
