"""How long the verbs take, as multiples of the least that any program would have to do; both measured in one run.

`BENCH_PEER=PATH` measures another `mngr` executable (the original) beside ours.
"""

import argparse
import compileall
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # as a script it would be this folder, where `bench` is this very file

from bench import machines, mapreduce, works  # noqa: E402
from bench.works import Work  # noqa: E402
from bench.world import CommandFailed, World  # noqa: E402

WORKS = (*works.WORKS, *machines.WORKS, *mapreduce.WORKS)
NOT_MEASURED = (*works.NOT_MEASURED, *machines.NOT_MEASURED, *mapreduce.NOT_MEASURED)
PEER_SAMPLES = 5


class Figures(NamedTuple):
    """The samples of one row, in seconds. `peer` is empty when none was asked for, None when it failed."""

    work: Work
    floor: list[float]
    ours: list[float]
    peer: list[float] | None

    @property
    def ratio(self) -> float:
        return median(self.ours) / median(self.floor)

    @property
    def best_ratio(self) -> float:
        """Minimum by minimum: what is left when the machine's noise is taken away."""
        return min(self.ours) / min(self.floor)

    @property
    def within(self) -> bool:
        return self.ratio <= self.work.budget


def main() -> int:
    args = _arguments()
    chosen = [work for work in WORKS if not args.only or any(word in work.name for word in args.only)]
    if not chosen:
        names = ", ".join(f"`{work.name}`" for work in WORKS)
        print(f"error: no row is called `{args.only[0]}`\nhint: the rows are {names}", file=sys.stderr)
        return 2
    peer = os.environ.get("BENCH_PEER", "")
    compileall.compile_dir(ROOT / "src", quiet=2)
    signal.signal(signal.SIGTERM, _interrupt)
    print(_line(_titles(bool(peer))))
    done = []
    try:
        for work in chosen:
            figures = measure(work, args.samples or work.samples, peer)
            done.append(figures)
            print(_line(_cells(figures, bool(peer))) + (f"\n  {work.note}" if work.note else ""), flush=True)
    except CommandFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    Path(args.output).write_text(json.dumps(_document(done, peer), indent=1) + "\n")
    for what in NOT_MEASURED:
        print(f"not measured: {what}")
    missed = [figures for figures in done if not figures.within]
    if missed:
        print(f"{len(missed)} of {len(done)} over budget: {', '.join(f'`{f.work.name}`' for f in missed)}")
    else:
        print(f"all {len(done)} within budget")
    return 1 if missed and not args.no_fail else 0


def measure(work: Work, samples: int, peer: str) -> Figures:
    """Floor, ours, floor, ours, ...: what else the machine does then hits both alike."""
    floor: list[float] = []
    ours: list[float] = []
    with closing(World()) as world, closing(Peer(work, peer)) as other, closing(work):
        work.set_up_floor(world)
        work.set_up(world)
        # The first round warms the caches and is not counted.
        for number in range(samples + 1):
            floor.append(work.time_floor(world, number))
            ours.append(work.time_ours(world, number))
            if number <= PEER_SAMPLES:
                other.sample(number)
            work.after_floor(world, number)
            work.after(world, number)
    return Figures(work, floor[1:], ours[1:], other.times and other.times[1:])


class Peer:
    """The same commands with the other executable, in a world of its own. `times` is None when it cannot do them."""

    def __init__(self, work: Work, path: str) -> None:
        self.times: list[float] | None = []
        self._work = work
        self._world = World(path) if path else None
        self._try(work.set_up)

    def sample(self, number: int) -> None:
        self._try(lambda world: self._sample(world, number))

    def close(self) -> None:
        if self._world is not None:
            self._world.close()

    def _sample(self, world: World, number: int) -> None:
        seconds = self._work.time_ours(world, number)
        self._work.after(world, number)
        if self.times is not None:
            self.times.append(seconds)

    def _try(self, act: Callable[[World], None]) -> None:
        if self._world is None or self.times is None:
            return
        try:
            act(self._world)
        except (CommandFailed, OSError):
            self.times = None
        except BaseException:
            self.close()
            raise


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="rows whose name holds this (can be repeated)"
    )
    parser.add_argument("--samples", type=int, default=0, metavar="N", help="samples per row (default: 1 to 25)")
    parser.add_argument("--no-fail", action="store_true", help="exit 0 also when a budget is missed")
    parser.add_argument("--output", default=str(ROOT / "bench.json"), metavar="FILE", help="default: bench.json")
    return parser.parse_args()


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _titles(peer: bool) -> list[str]:
    return ["work", "floor ms", "ours ms", "ratio", "at best", "budget", *(["peer ms", "ratio"] if peer else []), ""]


def _cells(figures: Figures, peer: bool) -> list[str]:
    cells = [
        figures.work.name,
        f"{median(figures.floor) * 1000:.1f}",
        f"{median(figures.ours) * 1000:.1f}",
        f"{figures.ratio:.2f}",
        f"{figures.best_ratio:.2f}",
        f"{figures.work.budget:g}",
    ]
    if peer and figures.peer:
        cells += [f"{median(figures.peer) * 1000:.1f}", f"{median(figures.peer) / median(figures.floor):.1f}"]
    elif peer:
        cells += ["failed", ""]
    return [*cells, "" if figures.within else "over"]


def _line(cells: Sequence[str]) -> str:
    return (f"{cells[0]:<20}" + "".join(f"{cell:>10}" for cell in cells[1:-1]) + f"  {cells[-1]}").rstrip()


def _document(done: Sequence[Figures], peer: str) -> dict[str, Any]:
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {
            "system": platform.system(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "git": _said("git", "--version"),
            "tmux": _said("tmux", "-V"),
        },
        "within_budget": all(figures.within for figures in done),
        "rows": [
            {
                "name": figures.work.name,
                "budget": figures.work.budget,
                "ratio": round(figures.ratio, 3),
                "best_ratio": round(figures.best_ratio, 3),
                "within_budget": figures.within,
                "floor": _summary(figures.floor),
                "ours": _summary(figures.ours),
                **({"peer": _summary(figures.peer) if figures.peer else "failed"} if peer else {}),
            }
            for figures in done
        ],
    }


def _summary(seconds: Sequence[float]) -> dict[str, Any]:
    each = [round(value * 1000, 2) for value in seconds]
    return {"median_ms": round(median(each), 2), "min_ms": min(each), "samples_ms": each}


def _said(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
