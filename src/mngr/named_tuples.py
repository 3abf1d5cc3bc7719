"""`NamedTuple` and `TypedDict` without `typing`, which a quick verb has no time to load. A class of `NamedTuple` is
made in a tenth of the time as well: no function is compiled for it, and no text of an annotation. See 001."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 (exported)
    from typing import TypedDict as TypedDict  # noqa: PLC0414 (exported)
else:
    from _collections import _tuplegetter

    class _Record(tuple):
        __slots__ = ()

        def __new__(cls, *values, **named):
            if named or len(values) != len(cls._fields):
                usual = cls._field_defaults
                try:
                    for name in cls._fields[len(values) :]:
                        values += (named.pop(name) if name in named else usual[name],)
                except KeyError:
                    raise TypeError(f"{cls.__name__}: no value for `{name}`") from None
                if named or len(values) != len(cls._fields):
                    raise TypeError(f"{cls.__name__}: too many values, {', '.join(named)}")
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values):
            return cls(*values)

        def _replace(self, **changed):
            values = map(changed.pop, self._fields, self)
            found = tuple.__new__(type(self), values)
            if changed:
                raise ValueError(f"{type(self).__name__} has no field {', '.join(changed)}")
            return found

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self):
            return tuple(self)

    class _Maker(type):
        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body.pop(field) for field in fields if field in body}
            getters = {field: _tuplegetter(at, "") for at, field in enumerate(fields)}
            more = {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields, "__slots__": ()}
            return type(name, (_Record,), {**body, **getters, **more})

    class NamedTuple(metaclass=_Maker):
        """Fields are annotations; those with a default come last."""

    class _DictMaker(type):
        def __call__(cls, *values, **named):
            return dict(*values, **named)

    class TypedDict(metaclass=_DictMaker):
        """The keys are annotations. A value is a plain dict."""
