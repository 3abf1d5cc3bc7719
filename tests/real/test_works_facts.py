"""The planted works are what they say: what plain pytest reports at their base and with their edits."""

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.works import alone, applied, failing, modules, task
from tests.works import ASKED, ON_BRANCH, REFUTED, SHARED_FILES, SHARED_FILES_C, Work, shared_files

MODULES = modules()
ALL = {name: work for works in MODULES.values() for name, work in works.items()}
SHARED = {*SHARED_FILES, *SHARED_FILES_C}


def _in_own_files(work: Work) -> bool:
    """An honest work that can stand in one tree with others, as it changes nothing that they share."""
    return REFUTED not in work.ends and not work.partner and not {edit.path for edit in work.edits} & SHARED


def _together(works: Iterable[Work]) -> dict[str, str]:
    return {path: text for work in works for path, text in alone(work).items()}


def test_works_do_not_meet():
    names = Counter(name for works in MODULES.values() for name in works)
    assert [name for name, count in names.items() if count > 1] == []
    paths = Counter(path for work in ALL.values() for path in work.files)
    assert [path for path, count in paths.items() if count > 1 or path in SHARED] == []


def test_works_are_whole():
    for name, work in ALL.items():
        assert work.ends and work.ends <= {ON_BRANCH, ASKED, REFUTED}, name
        assert work.family and work.story and work.edits, name
        assert task(name, work).split("::")[0] in {*work.files, *SHARED}, name
        assert not work.partner or ALL[work.partner].partner == name, name


@pytest.mark.parametrize("shared", [SHARED_FILES, SHARED_FILES_C], ids=["Python", "C"])
def test_base_of_all(shared: Mapping[str, str], tmp_path: Path):
    works = [work for work in ALL.values() if shared_files(work) is shared]
    assert failing({**shared, **_together(works)}, tmp_path / "base") == {id for work in works for id in work.base}


@pytest.mark.parametrize("shared", [SHARED_FILES, SHARED_FILES_C], ids=["Python", "C"])
def test_tip_of_those_in_own_files(shared: Mapping[str, str], tmp_path: Path):
    works = [work for work in ALL.values() if shared_files(work) is shared and _in_own_files(work)]
    tree = applied({**shared, **_together(works)}, [edit for work in works for edit in work.edits])
    assert failing(tree, tmp_path / "tip") == {id for work in works for id in work.tip}


@pytest.mark.parametrize("module", MODULES)
def test_tip_of_each_other(module: str, tmp_path: Path):
    """One tree for each work, and one for each pair."""
    trees: dict[str, tuple[dict[str, str], set[str]]] = {}
    for name, work in MODULES[module].items():
        if not _in_own_files(work):
            other = ALL.get(work.partner)
            trees[name] = applied(alone(work, other), work.edits), set(work.tip)
            if other and name < work.partner:
                both = applied(alone(work, other), [*work.edits, *other.edits])
                assert applied(alone(work, other), [*other.edits, *work.edits]) == both
                trees[f"{name} and {work.partner}"] = both, set(work.both)
    with ThreadPoolExecutor(4) as pool:
        found = dict(zip(trees, pool.map(lambda name: failing(trees[name][0], tmp_path / name), trees), strict=True))
    assert found == {name: expected for name, (_, expected) in trees.items()}
