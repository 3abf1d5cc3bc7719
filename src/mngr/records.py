"""Named tuples and protocols without the cost of `typing`, a fifth of the time of a short command.

To type checkers they are those of `typing`; at run time they are made here, without compiling code for each class.
"""

__all__ = ["TYPE_CHECKING", "NamedTuple", "Protocol"]

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NamedTuple, Protocol
else:
    from _collections import _tuplegetter

    class _Maker(type):
        """Turns the annotations of a class body into the fields of a tuple."""

        def __new__(cls, name, bases, body):
            if bases == ():
                return super().__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", {}))
            defaults = {field: body.pop(field) for field in fields if field in body}
            getters = {field: _tuplegetter(at, None) for at, field in enumerate(fields)}
            own = {"_fields": fields, "_field_defaults": defaults, "__slots__": (), "__match_args__": fields}
            return type(name, (_Tuple,), {**body, **getters, **own})

    class _Tuple(tuple):
        __slots__ = ()
        _fields = ()

        def __new__(cls, *values, **named):
            fields = cls._fields
            if named or len(values) != len(fields):
                rest = fields[len(values) :]
                try:
                    values += tuple(
                        [named.pop(field) if field in named else cls._field_defaults[field] for field in rest]
                    )
                except KeyError as error:
                    raise TypeError(f"{cls.__name__} needs `{error.args[0]}`") from None
                if named or len(values) != len(fields):
                    raise TypeError(f"{cls.__name__} has the fields {', '.join(fields)}")
            return tuple.__new__(cls, values)

        def _replace(self, **changed):
            new = tuple.__new__(type(self), map(changed.pop, self._fields, self))
            if changed:
                raise TypeError(f"{type(self).__name__} has the fields {', '.join(self._fields)}")
            return new

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            return (
                f"{type(self).__name__}({', '.join(f'{field}={value!r}' for field, value in self._asdict().items())})"
            )

        def __getnewargs__(self):
            return tuple(self)

    class NamedTuple(metaclass=_Maker):
        """Base of the records of this package; see the module's words."""

    class Protocol:
        """A shape that other classes have; only type checkers look at it."""
