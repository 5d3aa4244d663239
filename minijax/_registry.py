"""Tables that the floors of the package fill: each key once."""

# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import TYPE_CHECKING, Any, Self

from minijax._lazy import partially_imported


class Registry(dict):
    """A dictionary in which a module of the package sets no key that is taken.

    So what works does not depend on which module was imported first. Programs that use
    the package may set any key, and what they have set stays, though the module of the
    package that sets it be imported later. A module that is imported once more, because
    an interrupt has stopped it halfway, may set its keys again.

    Attributes:
      setters: from each key to the names of the module of the package that has set it.
    """

    setters: dict

    def __setitem__(self, key, value):
        if key not in self or not self.is_taken(key):
            self.enter(key, value)
        elif not self.is_of_program(key):
            raise RuntimeError(
                f"{key!r} is registered twice: first {self[key]!r}, then {value!r}. A "
                "floor that replaces the rule of a lower floor names it: "
                "table.supersede(key, old, new)."
            )

    def enter(self, key, value):
        """Set a key, whatever there is."""
        vars(self).setdefault("setters", {})[key] = partially_imported()
        super().__setitem__(key, value)

    def is_taken(self, key):
        """Whether a module of the package sets the key, and is not begun anew."""
        names, before = partially_imported(), vars(self).get("setters", {}).get(key)
        again = before and names and before["__name__"] == names["__name__"]
        return names is not None and not (again and before is not names)

    def is_of_program(self, key):
        """Whether a program that uses the package has set the key."""
        setters = vars(self).get("setters", {})
        return key in self and key in setters and setters[key] is None

    def update(self, *args, **kwargs):
        """Set some keys; see `dict.update`."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def supersede(self, key, old, new):
        """Let `new` be under a key, where a lower floor has registered `old`."""
        if self.get(key) is old or not self.is_taken(key):
            self.enter(key, new)
        elif not self.is_of_program(key):
            raise RuntimeError(
                f"{new!r} was to supersede {old!r} as {key!r}, but there is "
                f"{self.get(key)!r}."
            )


class Operators:
    """The operators of a class of values, for a type checker."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def _operator(self, other: Any) -> Self: ...
        def _function(self) -> Self: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __pow__ = __matmul__ = _operator
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rpow__ = _operator
        __rmatmul__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _operator
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _operator
        __lt__ = __le__ = __gt__ = __ge__ = __lshift__ = __rshift__ = _operator
        __getitem__, __neg__, __pos__, __abs__ = _operator, *[_function] * 3
