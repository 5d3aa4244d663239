"""Every public function with bad values: no error of a line inside of the package.

python -m tests.bad_values --every 1 --seed 0    # all functions; --every 9: some

A value of the wrong kind or rank is put in the place of each argument in turn. The
call may answer, or be refused by a sentence: a `raise` of the package, or a TypeError.
An `IndexError` or an `AttributeError` of whatever line met the value first is a fault.
"""

import importlib
import inspect
import os
import random
import signal
import sys
import traceback
import warnings
from contextlib import contextmanager

import minijax
import minijax.numpy as jnp
from tests import public_names
from tests.commands import options_of, reported

INTERNAL = (
    AssertionError, AttributeError, IndexError, KeyError, NameError, RecursionError,
    StopIteration, UnboundLocalError, ZeroDivisionError,
)  # fmt: skip

# What writers of extensions call is given what they have made.
MODULES = [
    path for path in public_names.MODULES
    if not path.startswith(("extend", "interpreters", "example_libraries", "core",
                            "api_util", "test_util", "ad_checkpoint", "custom_",
                            "distributed", "debug", "profiler", "ref", "stages",
                            "errors"))
]  # fmt: skip

# Names whose errors come from what they call by the user's wish, or that change what
# is around; and what NumPy's own functions say of text, which are handed on.
LEFT_OUT = """
    array_repr array_str apply_along_axis apply_over_axes frompyfunc ufunc set_mesh
    enable_checks check_tracer_leaks distributed register_pytree_node_class
    register_pytree_with_keys_class PyTreeDef print_environment_info clear_caches
    live_arrays explain_cache_misses log_compiles jit set_printoptions save savez load
    debug_infs debug_nans make_mesh profiler pmax
""".split()


def bad_values():
    """Return values by name, most of which are wrong for most arguments."""
    return {
        "a number": 1.0, "two": 2, "a bool": True, "None": None, "text": "x",
        "texts": ["a", "b"], "0-d": jnp.array(1.0), "a vector": jnp.arange(3.0),
        "nothing": jnp.zeros(0), "no rows": jnp.zeros((0, 0)), "half": 0.5,
        "a matrix": jnp.ones((2, 3)), "a square": jnp.eye(2), "object": object(),
        "places": jnp.array([1, 0]), "a dict": {"a": 1}, "a key": minijax.random.key(0),
        "a spec": minijax.P("x"), "a tuple": (1,), "far axis": -9, "a list": [],
        "nested": (1, (2,)), "complex": 1j, "a function": lambda *a: a[0] if a else 1.0,
        "a type": int, "four axes": jnp.ones((1, 2, 3, 4)),
    }  # fmt: skip


GOOD = "a vector", "a square", "two", "a matrix", "places", "a key", "a function"


def functions():
    """Yield the public functions of the modules of JAX, each with its full name."""
    for path in MODULES:
        try:
            module = importlib.import_module(f"minijax.{path}".rstrip("."))
        except ImportError:
            continue
        for name in sorted(n for n in dir(module) if not n.startswith("_")):
            try:
                value = getattr(module, name)
            except AttributeError:  # a name that is listed, with the reason
                continue
            if callable(value) and not inspect.isclass(value) and name not in LEFT_OUT:
                yield f"{path}.{name}".lstrip("."), value


def calls_of(function, draw, count):
    """Return a few calls: names of positional values, and of keywords."""
    try:
        given = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return []
    needed = sum(p.kind in (0, 1) and p.default is p.empty for p in given)
    optional = [p.name for p in given if p.kind in (1, 3) and p.default is not p.empty]
    bad, found = [*bad_values()], []
    for _ in range(count):
        places: list = [draw.choice(GOOD)] * max(needed, 1)
        named = {}
        if optional and draw.random() < 0.4:
            named[draw.choice(optional)] = draw.choice(bad)
        elif draw.random() < 0.5:
            places = [draw.choice(bad)] * len(places)
        else:
            places[draw.randrange(len(places))] = draw.choice(bad)
        found.append((places, named))
    return found


class Endless(BaseException):
    """A call takes longer than anybody waits."""


@contextmanager
def patience(seconds):
    """Raise `Endless` when the time is over."""

    def over(*args):
        raise Endless

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fault(function, places, named, values):
    """Return what is wrong with the answer to a call, or None."""
    try:
        with patience(20), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = {key: values[name] for key, name in named.items()}
            function(*map(values.get, places), **options)
    except INTERNAL as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        if not (last.line or "").startswith("raise"):
            return f"{type(error).__name__}: {error} ({last.filename}: {last.line})"
    except Endless:
        return "it does not end"
    except BaseException:
        return None
    return None


@contextmanager
def whole_tracebacks():
    """Show the frames of the package, of which the last one is looked at."""
    with minijax.config.override("jax_traceback_filtering", "off"):
        yield


def faults(every, seed=0, count=40):
    """Return what is wrong with one function of so many, and how many there were."""
    values, found, met = bad_values(), [], 0
    with whole_tracebacks():
        for number, (name, function) in enumerate(functions()):
            if (number + seed) % every:
                continue
            draw = random.Random(f"{seed} {name}")
            for places, named in calls_of(function, draw, count):
                met += 1
                if text := fault(function, places, named, values):
                    found.append(f"{name}(*{places}, **{named}): {text}")
    return found, met


def main(arguments=None):
    options = options_of(__doc__, arguments, seed=0, every=1, count=40)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    wrong, met = faults(options.every, options.seed, options.count)
    return reported(f"{met} calls", wrong)


if __name__ == "__main__":
    sys.exit(main())
