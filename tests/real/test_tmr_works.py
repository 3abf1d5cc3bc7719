"""Planted works end where they should: some of each kind with every test run, all of them by `make works`."""

from pathlib import Path

import pytest

from tests.support import works_run
from tests.support.user import User
from tests.support.works import modules

MODULES = modules()
ALL = {name: work for works in MODULES.values() for name, work in works.items()}
BATCHES = works_run.batches(ALL)
SAMPLE = (
    *("barcode", "holidays", "pickup", "export", "currency", "allergens", "warehouse", "counter"),
    *("ok_last_chunk", "ok_cache_is_dropped", "ok_http_headers", "ok_better_words", "ok_tidy_move"),
    *("odd_expectation_by_the_docs", "odd_connection"),
)


@pytest.mark.timeout(600)
def test_some_works_of_each_kind_end_where_they_should(user: User) -> None:
    works = {name: ALL[name] for name in SAMPLE}
    ends = works_run.run(user, works, timeout=580)
    assert not works_run.wrong(works, ends), works_run.table(works, ends, MODULES)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("batch", range(len(BATCHES)))
def test_every_work_ends_where_it_should(user: User, batch: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    works = BATCHES[batch]
    ends = works_run.run(user, works, timeout=3500)
    works_run.kept(ends, Path(tmp_path_factory.getbasetemp()) / f"ends-{batch}.json")
    table = works_run.table(works, ends, MODULES)
    print(table)
    assert not works_run.wrong(works, ends), table
