"""The real engine, ledger and report with simulated hosts and agents, in simulated time."""

from pathlib import Path

import pytest

from bench.simulate import simulate
from mngr.mapreduce.run import Run
from mngr.report import tmr


@pytest.mark.parametrize(("seed", "pooled"), [(1, False), (2, False), (1, True)])
def test_whatever_fails_every_task_is_settled_exactly_once(tmp_path: Path, seed: int, pooled: bool) -> None:
    done = simulate(str(tmp_path), tasks=200, hosts=20, seed=seed, pooled=pooled)
    assert (done.result.why, done.problems()) == ("settled", [])
    assert set(done.endings()) >= {"outcome", "blocked", "launch", "host-lost"}, "troubles were met"
    assert {"crash", "silent", "rate limits", "slow starts"} <= set(done.site.counts)
    assert not pooled or "lost" in {entry.get("state") for entry in done.run.ledger.entries()}
    assert Run(done.run.directory).state == done.result.state, "the ledger says the same"
    tmr.write(done.run)
    assert Path(done.run.directory, "report.json").stat().st_size > 200 * 100


def test_a_simulation_with_the_same_seed_has_the_same_ledger(tmp_path: Path) -> None:
    first, again, other = (
        Path(simulate(str(tmp_path / str(number)), tasks=30, hosts=5, seed=seed).run.ledger.path).read_bytes()
        for number, seed in enumerate((1, 1, 2))
    )
    assert first == again != other
