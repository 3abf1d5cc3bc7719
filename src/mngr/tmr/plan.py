"""Which tests there are, and the task that each becomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mngr.errors import MngrError
from mngr.names import slug
from mngr.tmr.measure.measurement import Measurement, Pytest, log_tail
from mngr.tmr.measure.measurer import Measurer
from mngr.tmr.measure.rows import Broken, CollectedTest

_SLUG_MAX = 30
_DETAILS_MAX = 2000


class CollectedTests(NamedTuple):
    """`chosen` are the tests asked for, in pytest's order; `tests` are all of the suite, for comparing with."""

    tests: Mapping[str, CollectedTest]
    chosen: tuple[str, ...]
    broken: tuple[Broken, ...]


def collect(measurer: Measurer, commit: str, *, paths: Sequence[str] = (), args: Sequence[str] = ()) -> CollectedTests:
    """Ask pytest itself, in a copy of the code at the commit. `paths` are files, directories or node ids, `args` other
    options of pytest such as `-k`. A suite without any test, or one that pytest cannot begin with, is an error."""
    steps = [Pytest("collect", args=("--collect-only", "-q", "-p", "no:randomly"))]
    if paths or args:
        steps.append(Pytest("chosen", args=("--collect-only", "-q", "-p", "no:randomly", *args), named=paths))
    done = measurer.must_take(Measurement("collect", commit, steps))
    whole, chosen = done.steps["collect"], done.steps[steps[-1].name]
    for step in (whole, chosen):
        if step.exit_code not in (0, 1, 2, 5) or (not step.rows.finished and not step.rows.tests):
            raise MngrError(
                f"pytest could not collect the tests (exit code {step.exit_code})",
                details=log_tail(step),
                hint="`mngr config get tmr.test_command` shows how it is started, "
                "`mngr config set tmr.prepare 'COMMAND'` what comes before",
            )
    if not chosen.rows.tests and not chosen.rows.broken:
        asked = f" that fit {' '.join([*paths, *args])!r}" if paths or args else ""
        raise MngrError(
            f"there are no tests{asked}", details=log_tail(chosen), hint="`pytest --collect-only` lists them"
        )
    missing = [item for item in chosen.rows.broken if item.signature.startswith(("ModuleNotFoundError", "ImportError"))]
    if missing and len(missing) == len(chosen.rows.broken) and not chosen.rows.tests:
        raise MngrError(
            f"none of the tests can be collected: {missing[0].signature}",
            details=missing[0].text[-_DETAILS_MAX:],
            hint="say how a copy of this project is made ready: `mngr config set tmr.prepare 'COMMAND'`",
        )
    return CollectedTests(whole.rows.tests, tuple(chosen.rows.tests), chosen.rows.broken)


def functions(tests: Mapping[str, CollectedTest], chosen: Iterable[str]) -> list[str]:
    """The functions of these tests, each once: what becomes a task. All cases of one have the same code to change."""
    return list(dict.fromkeys(tests[test].function or test if test in tests else test for test in chosen))


def slugs(tests: Sequence[str]) -> dict[str, str]:
    """A short name for each test, for agents, branches and directories; no two are the same, also where letters that
    a name cannot have made them so. The same tests have the same slugs, in whatever company."""
    readable = {test: test.rpartition("::")[2].removeprefix("test_").lower().replace("_", "-") for test in tests}
    return {test: slug(text, of=test, longest=_SLUG_MAX) for test, text in readable.items()}
