"""What another machine sends is what its annotation says, or refused."""

import importlib
import inspect
import pkgutil
import re

import pytest

import mngr.actions
import mngr.remote
from mngr.agent.state import Status
from mngr.errors import MngrError, NotFoundError
from mngr.remote import shapes

PLAIN = {*shapes._ANY, *shapes._PLAIN, *shapes._MANY, *shapes._TABLES}
STATUS = Status("RUNNING", "", 0.0, "seen")


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (1, "int"),
        (1, "float | None"),
        (None, "float | None"),
        (("a", 1), "tuple[str, int]"),
        (("a", "b"), "tuple[str, ...]"),
        ([STATUS], "Sequence[Status]"),
        (([STATUS], [NotFoundError("x")]), "tuple[list[Status], list[MngrError]]"),
        (([STATUS], [NotFoundError("x")]), tuple[list[Status], list[MngrError]]),
        ({"a": [1]}, "Mapping[str, list[int]]"),
        (None, None),
        (b"", bytes),
        ({"x"}, "object"),
    ],
)
def test_values_that_fit(value: object, annotation: object) -> None:
    assert shapes.fits(value, annotation)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (True, "int"),
        ("1", "int"),
        (("a",), "tuple[str, int]"),
        ((1, "b"), "tuple[str, ...]"),
        ([STATUS], "Sequence[Record]"),
        (STATUS, "tuple[str, ...]"),
        ("abc", "Sequence[str]"),
        ([5], "list[MngrError]"),
        (5, "Status | None"),
        ({1: 2}, "Mapping[str, int]"),
    ],
)
def test_values_that_do_not(value: object, annotation: object) -> None:
    assert not shapes.fits(value, annotation)


def test_what_a_verb_returns_is_named_by_classes_that_travel() -> None:
    """An alias in such an annotation would make every answer wrong: its name is the class of no value."""
    for package in (mngr.actions, mngr.remote):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            verbs = [one for one in vars(module).values() if inspect.isfunction(one) and one.__module__ == found.name]
            for verb in verbs:
                if list(inspect.signature(verb).parameters)[:1] == ["site"]:
                    for name in (
                        set(re.findall(r"\w+(?![\w.])", shapes.text_of(verb.__annotations__.get("return", "object"))))
                        - PLAIN
                    ):
                        assert name[:1].isupper() or name.startswith("_"), f"{found.name}.{verb.__name__}: {name}"
