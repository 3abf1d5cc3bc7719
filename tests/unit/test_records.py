"""Named tuples without `typing`."""

import copy
import pickle

import pytest

from mngr.records import NamedTuple


class Point(NamedTuple):
    """A place."""

    x: int
    y: int = 2
    name: str = ""

    @property
    def total(self) -> int:
        return self.x + self.y


def test_fields_by_position_name_and_default():
    assert Point(1) == (1, 2, "") == Point(x=1) == Point(1, y=2)
    assert Point(1, 5, name="p").name == "p"
    assert Point(3).total == 5


def test_a_field_is_changed_in_a_copy():
    first = Point(1)
    assert first._replace(y=7) == (1, 7, "")
    assert first.y == 2
    assert first._asdict() == {"x": 1, "y": 2, "name": ""}


def test_it_cannot_be_changed():
    with pytest.raises(AttributeError):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Point(1).other = 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, "", 4), {}), ((1,), {"x": 1}), ((), {"z": 1})])
def test_what_does_not_fit_is_refused(values, named):
    with pytest.raises(TypeError):
        Point(*values, **named)


def test_it_shows_copies_and_pickles_itself():
    assert repr(Point(1)) == "Point(x=1, y=2, name='')"
    assert copy.deepcopy(Point(1)) == pickle.loads(pickle.dumps(Point(1))) == Point(1)
    match Point(1):
        case Point(x, y):
            assert (x, y) == (1, 2)
