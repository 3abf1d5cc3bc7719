"""Our `NamedTuple` does what the one of `typing` does."""

import copy
import pickle
from typing import Any
from typing import NamedTuple as Typed

import pytest

from mngr.named_tuples import NamedTuple


class Ours(NamedTuple):
    """A point."""

    x: int
    y: int = 2
    label: str | None = None

    @property
    def total(self) -> int:
        return self.x + self.y


class Theirs(Typed):
    x: int
    y: int = 2
    label: str | None = None


@pytest.mark.parametrize(
    ("values", "named"), [((1,), {}), ((1, 3), {}), ((1, 3, "a"), {}), ((), {"x": 5, "label": "b"}), ((1,), {"y": 7})]
)
def test_a_value_is_the_same_tuple(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    ours, theirs = Ours(*values, **named), Theirs(*values, **named)
    assert tuple(ours) == tuple(theirs) and hash(ours) == hash(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours._asdict() == theirs._asdict() and tuple(ours._replace(y=9)) == tuple(theirs._replace(y=9))
    assert isinstance(ours._replace(y=9), Ours) and Ours._make(ours) == ours
    assert pickle.loads(pickle.dumps(ours)) == copy.deepcopy(ours) == ours
    assert isinstance(copy.copy(ours), Ours) and ours.total == ours.x + ours.y


def test_a_class_tells_the_same_of_itself() -> None:
    for name in ("_fields", "_field_defaults", "__match_args__"):
        assert getattr(Ours, name) == getattr(Theirs, name)
    assert Ours.__doc__ == "A point." and Ours.__module__ == __name__
    match Ours(1):
        case Ours(x, y=y):
            assert (x, y) == (1, 2)


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, "a", 4), {}), ((1,), {"x": 2}), ((1,), {"z": 2})])
def test_wrong_values_are_refused_alike(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    for kind in (Ours, Theirs):
        with pytest.raises(TypeError):
            kind(*values, **named)
    with pytest.raises(ValueError, match="z"):
        Ours(1)._replace(z=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Ours(1).x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Ours(1).other = 2  # type: ignore[attr-defined]
