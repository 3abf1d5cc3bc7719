"""Parts of one file are put together without git where git would do the same."""

import random

from mngr.tmr.branch.applier import Applier, State
from mngr.tmr.branch.objects import Ident, NewCommit, Objects
from mngr.tmr.branch.unit import ChangePart
from tests.support.work import Project

PATHS = ("some.txt", "end.txt", "driver.txt")


def test_what_is_put_together_without_git_is_what_git_merges() -> None:
    """Repeated lines, a file without a last newline, changes that touch, equal changes, and a path whose attribute asks
    for another kind of merge. Every pair of parts, in both orders."""
    chance = random.Random(7)
    texts = ["".join(f"{chance.choice('abcd')}\n" for _ in range(60)) for _ in PATHS]
    texts[1] = texts[1].removesuffix("\n")
    files = dict(zip(PATHS, texts, strict=True))
    project = Project({**files, ".gitattributes": "driver.txt merge=binary\n"})
    try:
        objects = Objects(project.git)
        tips = [project.commit({path: changed(chance, text)}) for _ in range(8) for path, text in files.items()]
        tips.append(project.commit({"end.txt": texts[1] + "z"}))
        facts = objects.facts([project.base, *tips])
        base = facts[project.base]
        changes = objects.changes((base.tree, facts[tip].tree) for tip in tips)
        parts = list(dict.fromkeys(ChangePart(base.id, changes[base.tree, facts[tip].tree]) for tip in tips))
        applier = Applier(objects, base, parts)
        pairs = [(one, two) for one in parts for two in parts if one is not two and one.paths == two.paths]
        git = objects.merges([(applier.part_commit(one), applier.part_commit(two)) for one, two in pairs])
        kept = {"git": 0, "ours": 0}
        checks = []
        who = Ident("Person", "person@example.com", 0)
        for (one, two), merge in zip(pairs, git, strict=True):
            project.git.calls.clear()
            first = applier.apply(applier.start, one)
            assert isinstance(first, State)
            answer = applier.apply(first, two)
            by_git = any("merge-tree" in call for call in project.git.calls)
            kept["git" if by_git else "ours"] += 1
            assert by_git or one.paths != ("driver.txt",)
            if isinstance(answer, State):
                checks.append((NewCommit(base.id, answer.files, "x\n", who, who, base.tree), merge))
            else:
                assert answer.paths == merge.conflicts
        made = objects.facts(ids := objects.write([new for new, _ in checks]))
        for id, (_, merge) in zip(ids, checks, strict=True):
            assert (made[id].tree, ()) == merge
        assert min(kept.values()) > 20, kept
    finally:
        project.close()


def changed(chance: random.Random, text: str) -> str:
    """With up to three places changed, added or taken away."""
    lines = text.splitlines(keepends=True)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines) + 1)
        lines[at : at + chance.randint(0, 2)] = [f"{chance.choice('abcdef')}\n" for _ in range(chance.randint(0, 2))]
    return "".join(lines)
