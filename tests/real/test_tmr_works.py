"""Planted works end where they should: a sample with every test run, all of them by `make works`."""

from pathlib import Path

import pytest

from tests.support import works_run
from tests.support.user import User
from tests.support.works import modules

MODULES = modules()
ALL = {name: work for works in MODULES.values() for name, work in works.items()}
BATCHES = works_run.batches(ALL)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("batch", range(len(BATCHES)))
def test_every_work_ends_where_it_should(user: User, batch: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    works = BATCHES[batch]
    ends = works_run.run(user, works)
    works_run.kept(ends, Path(tmp_path_factory.getbasetemp()) / f"ends-{batch}.json")
    print(works_run.table(works, ends, MODULES))
    assert not works_run.wrong(works, ends)
