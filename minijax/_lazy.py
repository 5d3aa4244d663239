"""Names that import their module when they are first used (PEP 562)."""

# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools
import gc
import os
import re
import sys
import threading
import warnings
from contextlib import suppress
from functools import WRAPPER_ASSIGNMENTS, cache, update_wrapper
from importlib import import_module
from types import FunctionType

_lock = threading.RLock()
_awake = threading.Event()

# Modules that register fill tables of rules, methods and settings. Each of these tables
# is in one of these modules, or in one that imports them.
TABLES = "minijax.core", "minijax.arrays.dtypes"


def namespace(package):
    """Return ``__getattr__`` and ``__dir__`` for a package whose names load lazily.

    Args:
      package: its dotted name. In the generated module ``minijax._public``,
        ``PUBLIC[package]`` maps its names to the modules that define them, and
        ``REGISTERS`` lists the modules that define no names but fill tables,
        ``WAITING`` maps some of these to the modules that they wait for. The keys of
        ``PUBLIC`` are the modules that users import.
    """
    early: dict = {}  # primitives and other constants, for modules that are imported

    def __getattr__(name):
        inside = is_importing()
        if inside and name in early:
            return early[name]
        names = _names(package)
        if name == "__all__":
            return [n for n in sorted(names) if hasattr(sys.modules[package], n)]
        if name.startswith("_") or not name.isidentifier():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = after_registrations(lambda: _load(package, name, names.get(name)))
        except AttributeError as error:
            told = _told(error, name, package)
            if told is not error:
                raise told from None
            error.__traceback__ = None  # the user's line is enough
            _suggest(error, name, names)
            raise
        if inside:  # the package calls its functions as they are
            if name in names and not callable(value):
                early[name] = value
            return value
        value = _decorated(value, package, name)
        if name in names and (_awake.is_set() or not _has_tables()):
            setattr(sys.modules[package], name, value)
        return value

    def __dir__():
        spaces = import_module("minijax._public").PUBLIC
        inside = [space.removeprefix(f"{package}.") for space in spaces]
        modules = {name for name in {*inside} - {*spaces} if "." not in name}
        return sorted({*_names(package)} | modules)

    return __getattr__, __dir__


_at_rest: list = []  # for each piece of such work: was the collector on?


def without_gc(work):
    """Return a function like `work`, during which Python's collector waits."""

    @functools.wraps(work)
    def at_rest(*args, **kwargs):
        was_on = gc.isenabled()
        try:
            _at_rest.append(was_on)
            gc.disable()
            return work(*args, **kwargs)
        finally:
            if was_on:
                gc.enable()  # first, as an interrupt may come after it
            _at_rest.pop()

    return at_rest


def _wake_collector():
    if any(_at_rest):
        gc.enable()
    _at_rest.clear()


if hasattr(os, "register_at_fork"):  # a new process has no such work
    os.register_at_fork(after_in_child=_wake_collector)


# Functions ``decorator(value, package)`` that turn a public object of a package into
# what its user gets.
decorators: list = []


def _decorated(value, package, name):
    given = value = as_called_in(value, package, name)
    for decorator in decorators:
        value = decorator(value, package)
    own = getattr(value, "__name__", name) == name
    if own and value is not given and value.__module__ == given.__module__:
        value.__module__, value.__qualname__ = package, name  # where pickle finds it
    return value


def wraps(function):
    """Return `functools.wraps` for any callable: what is of an odd type is left out."""
    kinds = {"__name__": str, "__qualname__": str, "__annotations__": dict}
    odd = {n for n in kinds if not isinstance(getattr(function, n, None), kinds[n])}
    return functools.wraps(function, [n for n in WRAPPER_ASSIGNMENTS if n not in odd])


_called: dict = {}  # from a function and a name to its copy under that name

# Here a second name is one more name of the same function, as it is in JAX.
ONE_FUNCTION = "minijax.nn", "minijax.nn.initializers", "minijax.example_libraries.stax"


def as_called_in(function, package, name):
    """Return a function as it is called in a package: a second name makes a copy."""
    named = type(function) is not FunctionType or function.__name__ == name
    if named or package in ONE_FUNCTION:
        return function
    key = function, package, name
    if key not in _called:
        code, closure = function.__code__, function.__closure__
        given = function.__globals__, name, function.__defaults__, closure
        copy = update_wrapper(FunctionType(code, *given), function)
        copy.__wrapped__ = getattr(function, "__wrapped__", function)
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__name__ = copy.__qualname__ = name
        copy.__module__ = package
        _called[key] = copy
    return _called[key]


def after_registrations(load):
    """Return ``load()`` when the modules that fill tables have been imported.

    One thread imports them, and the others wait: none sees tables that are half full.
    As long as there are no tables, nothing is imported besides what `load` imports.
    """
    if (_awake.is_set() and not _have_come()) or is_importing():
        return load()
    with _lock:
        value = load()
        if _has_tables():
            _register()
    return value


_missing: list = []  # modules that others wait for, and that are not imported yet


def _have_come():
    return [name for name in _missing if name in sys.modules]


@without_gc
def _register():
    """Import the modules that fill tables, except for those that wait for others."""
    public, before = import_module("minijax._public"), None
    waits = public.WAITING
    while before != (there := {*waits.values()} & sys.modules.keys()):
        before = there
        for name in public.REGISTERS:
            if name not in waits or waits[name] in there:
                import_module(name)
    _missing[:] = {*waits.values()} - there  # a list: other threads may be reading it
    _awake.set()
    _take_all_for_old()


def run_registrations():
    """Import all modules that fill tables, those that wait for others as well."""
    if not is_importing():
        for name in {*import_module("minijax._public").WAITING.values()}:
            import_module(name)
        after_registrations(lambda: None)


def _take_all_for_old():
    """Put all objects where the collector looks seldom: modules stay."""
    if not gc.get_freeze_count():  # what a user has frozen stays frozen
        gc.freeze()
        gc.unfreeze()


def _has_tables():
    return any(name in sys.modules for name in TABLES)


def is_importing():
    """Whether this thread is inside a module of the package that is half imported.

    A module that registers may need what is still missing there. Nor may the thread
    wait for our lock: it holds Python's lock of that module, and the thread that has
    ours may be waiting for that one. What other threads import does not matter.
    """
    return partially_imported() is not None


def partially_imported():
    """Return the names of the module of the package that is half imported, or None."""
    frame = sys._getframe(1)
    while frame and not _runs_our_module(frame):
        frame = frame.f_back
    return frame and frame.f_globals


def _runs_our_module(frame):
    name = frame.f_globals.get("__name__")
    return frame.f_code.co_name == "<module>" and str(name).startswith("minijax.")


if hasattr(os, "register_at_fork"):  # a child would wait for a thread that it lacks
    os.register_at_fork(
        before=_lock.acquire,
        after_in_parent=_lock.release,
        after_in_child=_lock.release,
    )


def _names(package):
    return import_module("minijax._public").PUBLIC.get(package, {})


def _load(package, name, module):
    if module is not None:
        return getattr(import_module(module), name)
    try:
        return import_module(f"{package}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{package}.{name}":
            raise
    moved = import_module("minijax._missing_names").MOVED.get(package, {})
    if name in moved:
        return _moved(package, name, moved[name])
    raise AttributeError(why_missing(package, name))


def _moved(package, name, place):
    message = f"{package}.{name} is deprecated. Use {place}.{name}."
    warnings.warn(message, DeprecationWarning, stacklevel=6)
    return getattr(import_module(place), name)


def why_missing(package, name):
    """Return what is said of a name of a package that is not there."""
    names = import_module("minijax._missing_names")
    if name in names.LATER.get(package, "").split():
        near = _nearest(name, _names(package))
        near = f" The name most like it is {package}.{near}." if near else ""
        return f"{package}.{name} is not here yet.{near} Of all names: {_page()}"
    if name in (absent := names.ABSENT.get(package, {})):
        return f"{package}.{name} is not here: {absent[name]}"
    removed = names.REMOVED.get(package, {})
    if name in removed:
        return f"{package}.{name} was {removed[name]}"
    return f"module {package!r} has no attribute {name!r}"


def _nearest(name, names):
    """Return the name that is most like another, or None."""
    return next(iter(import_module("difflib").get_close_matches(name, names, 1)), None)


@cache
def _page():
    """Return where the page is that lists JAX's names: its address in the book."""
    metadata, urls = import_module("importlib.metadata"), []
    with suppress(metadata.PackageNotFoundError):
        urls = metadata.metadata("minijax-book").get_all("Project-URL") or []
    found = re.search(r"github\.com/([\w-]+)/(\w+)", " ".join(urls))
    place = "https://{}.github.io/{}/".format(*found.groups()) if found else ""
    return f"{place}book/compatibility{'.html' if found else '.md'}"


def _suggest(error, name, names):
    """Note the public name that is most like one that there is not."""
    close = _nearest(name, names)
    if close and str(error).startswith("module "):
        error.add_note(f"  Did you mean {close}?")


def _told(error, name, package):
    """Return an error that Python shows; an import hides that of the attribute."""
    importing = sys._getframe(2).f_code.co_name == "_handle_fromlist"
    if not importing or str(error).startswith("module "):
        return error
    return ImportError(f"cannot import name {name!r}: {error}", name=package)
