"""Dynamic extent: values that are in force until a ``with`` block ends.

Ctrl-C raises an exception where Python looks for signals: as a function begins, as a
loop turns, and after a call. So an ``__exit__`` in Python may end before its first
line. That of a lock is C: whatever happens, `with` does not leave a lock locked. What
is in force here is what is locked, and it ends with its block although nobody puts the
old value back.
"""

# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.

import threading
from contextvars import ContextVar
from functools import partial, wraps
from operator import attrgetter
from threading import Lock
from typing import Any
from weakref import ref

from minijax.errors import format_for_user


class _Leave(property):
    """The ``__exit__`` of a block is that of its lock; `ExitStack` asks the class."""

    def __call__(self, extent, *exception):
        extent.lock.__exit__(*exception)


class ContextValue:
    """A value of a variable that is in force for one ``with`` block.

    Args:
      variable: what `context_variable` returned.
      value: of the variable; what follows ``as``.

    Attributes:
      begun: whether the block has begun.
      lock: is held until it ends.
      before: what the variable was before; None outside of all blocks.
    """

    __slots__ = (
        "__weakref__", "before", "begun", "lock", "owner", "value", "variable"
    )  # fmt: skip
    __exit__ = _Leave(attrgetter("lock.__exit__"))

    def __init__(self, variable, value=None):
        self.variable = variable
        self.value = value
        self.lock = Lock()
        self.begun = False

    def __enter__(self) -> Any:
        if self.begun:
            raise RuntimeError("This block has been entered before: make another one.")
        self.before = current_context_value(self.variable)
        self.lock.acquire(False)
        self.variable.set(self)
        self.begun = True  # Python looks for no signal after an assignment
        return self.value

    def again(self):
        """Return what can be entered like this one, once more."""
        return ContextValue(self.variable, self.value)

    def __call__(self, fun):
        """Return a function each of whose calls is such a block."""

        @wraps(fun)
        def inside(*args, **kwargs):
            try:
                with self.again():
                    return fun(*args, **kwargs)
            except Exception as error:
                format_for_user(error)
                raise

        return inside


def context_variable(name, value):
    """Return a context variable for `ContextValue`; `value` holds outside of them."""
    outermost = ContextValue(None, value)
    outermost.before = None
    return ContextVar(name, default=outermost)


def current_context_value(variable):
    """Return the innermost `ContextValue` of a variable whose block has not ended."""
    extent = innermost = variable.get()
    while extent.before is not None and not (extent.begun and extent.lock.locked()):
        extent = extent.before
    if extent is not innermost:
        variable.set(extent)
    return extent


def has_global_value(variable):
    """Return whether a variable has the value that it has outside of all blocks."""
    return current_context_value(variable).before is None


class DerivedContextValue(ContextValue):
    """A `ContextValue` whose value is made from the one before, as its block begins.

    Args:
      variable: see `ContextValue`.
      make: a function from the value before to the new one.
    """

    __slots__ = ("make",)

    def __init__(self, variable, make):
        super().__init__(variable)
        self.make = make

    def __enter__(self) -> Any:
        self.value = self.make(current_context_value(self.variable).value)
        return super().__enter__()

    def again(self):
        """Return what can be entered like this one, once more."""
        return DerivedContextValue(self.variable, self.make)


_next = threading.local()  # `extent`: of the block that `with` is about to enter


class _LeaveLast:
    """The ``__exit__`` of a `ReentrantContext`, which is that of a new block."""

    def __get__(self, owner, kind=None) -> Any:
        if owner is None:
            return self
        _next.extent = owner.block()
        return _next.extent.__exit__

    def __call__(self, owner, *exception):
        extent = current_context_value(owner.extent().variable)
        while getattr(extent, "owner", None) is not owner or not extent.lock.locked():
            if extent.before is None:
                raise RuntimeError(f"{owner} has not been entered.")
            extent = extent.before
        extent.__exit__(*exception)


class ReentrantContext:
    """A context manager that may be entered many times, also inside of its own block.

    The method `extent` returns a new `ContextValue` for each block.
    """

    __exit__ = _LeaveLast()

    def __enter__(self) -> Any:
        extent, _next.extent = getattr(_next, "extent", None), None
        if extent is None or extent.owner is not self:
            extent = self.block()
        self.__exit__ = partial(type(self).__exit__, self)  # for who calls it by hand
        extent.__enter__()
        return self

    def block(self):
        """Return an extent that knows whose it is."""
        extent = self.extent()
        extent.owner = self
        return extent


class _LeaveAndEnd:
    """The ``__exit__`` of a `CallbackContext`; nobody but `with` holds its result."""

    def __get__(self, extent, kind=None) -> Any:
        if extent is None:
            return self
        leave = partial(extent.leave)
        extent.left = ref(leave, extent.leave)
        return leave

    def __call__(self, extent, *exception):
        extent.leave()


class CallbackContext(ContextValue):
    """A `ContextValue` whose method `end` is called as its block ends, come what may.

    If Ctrl-C interrupts `end`, it is called once more: it may find some of its work
    done.
    """

    __slots__ = ("left",)
    __exit__ = _LeaveAndEnd()

    def leave(self, *_):
        """End the block, unless that is done."""
        if self.begun and self.lock.locked():
            self.end()
            self.lock.release()
            self.left = None  # and nobody is told again
