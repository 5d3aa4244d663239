"""Plans of eager calls: they do what Python does, and nothing where they may not."""

import inspect
import os
import sys
import threading
import warnings
import weakref
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import random
from minijax.dispatch import eager
from minijax.dispatch.eager import EagerFunction, OneOperation, PlanCache
from tests import catalogue_cases, numpy_cases
from tests.sampler_cases import EXACT

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import eager_rows  # noqa: E402  # from the folder of benchmarks

jnp.add(1, 2)  # registers all that there is


@pytest.fixture
def at_once(monkeypatch):
    """The second call of each kind makes a plan, whatever it costs."""
    monkeypatch.setattr(PlanCache, "tick", -1)
    monkeypatch.setattr(PlanCache, "price", 0)
    monkeypatch.setattr(eager.Plan, "is_faster", lambda *_: True)
    minijax.clear_caches()
    yield
    minijax.clear_caches()


@pytest.fixture
def made(monkeypatch):
    """All plans that are made in a test."""
    found = []
    make = PlanCache._make

    def noted(self, key, *rest):
        make(self, key, *rest)
        found.append(self.plans.get(key))

    monkeypatch.setattr(PlanCache, "_make", noted)
    return found


def as_today():
    """A block in which there are no plans."""
    return minijax.config.override("minijax_eager_plans", False)


def outcome(call):
    """What a call returns or raises, and what it warns of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            line = error.__traceback__.tb_next
            result = type(error), str(error), line and line.tb_frame.f_code.co_filename
    return result, [str(warning.message) for warning in told]


def difference(found, known):
    """What is different between two outcomes, or None."""
    (found, said), (known, told) = found, known
    leaves, tree = minijax.tree.flatten(found)
    others, structure = minijax.tree.flatten(known)
    if said != told or tree != structure:
        return f"{said} {tree}, not {told} {structure}"
    for x, y in zip(leaves, others):
        if type(x) is not type(y):
            return f"{type(x)}, not {type(y)}"
        if isinstance(x, minijax.Array):
            if (x.aval, x.placement) != (y.aval, y.placement):
                return f"{x.aval} at {x.placement}, not {y.aval} at {y.placement}"
            if not near(np.asarray(x._buffer), np.asarray(y._buffer)):
                return f"{x}, not {y}"
        elif not isinstance(x, np.ndarray) and repr(x) != repr(y):
            return f"{x!r}, not {y!r}"
    return None


def near(x, y):
    """Whether numbers are the same: floats but for the last bits of their largest."""
    if x.dtype.kind not in "fcV" or x.tobytes() == y.tobytes():
        return x.tobytes() == y.tobytes()
    eps = float(np.finfo(x.dtype).eps) if x.dtype.kind in "fc" else 2.0**-7
    with np.errstate(all="ignore"):
        x, y = x.astype(complex), y.astype(complex)
        size = np.abs(y[np.isfinite(y)]).max(initial=1.0)
        return np.allclose(x, y, rtol=64 * eps, atol=64 * eps * size, equal_nan=True)


def other_values(x, seed):
    """An array of the same type with other numbers: turned, negative, not finite."""
    weak = getattr(x, "weak_type", False)
    if not isinstance(x, (minijax.Array, np.ndarray)) or weak or x.dtype.kind in "OV":
        return x
    numbers = np.array(x)
    flat = np.random.default_rng(seed).permutation(numbers.reshape(-1))
    with np.errstate(all="ignore"):
        flat = flat if flat.dtype.kind in "bu" else (flat * -1.5).astype(flat.dtype)
    if flat.dtype.kind in "fc" and flat.size and seed:
        flat[0] = (np.nan, np.inf)[seed % 2]
    numbers = flat.reshape(numbers.shape)
    return jnp.asarray(numbers) if isinstance(x, minijax.Array) else numbers


def differences(texts, names, seeds=(0, 1, 2)):
    """The texts of which a plan does not what Python does, with the reason.

    Each is called until there is a plan, and then with other numbers.
    """
    found = {}
    others = [{k: other_values(x, seed) for k, x in names.items()} for seed in seeds]
    for text in texts:
        code = compile(text, "<user>", "eval")
        with as_today():
            known = [outcome(lambda: eval(code, env)) for env in (names, *others)]
        first = [outcome(lambda: eval(code, names)) for _ in range(3)]
        later = [outcome(lambda env=env: eval(code, env)) for env in others]
        pairs = zip(first + later, [known[0]] * 3 + known[1:])
        reasons = [reason for pair in pairs if (reason := difference(*pair))]
        found |= {text: reasons[0][:400]} if reasons else {}
    return found


def test_every_row_of_the_table_does_what_python_does(at_once, made):
    names = eager_rows.arrays(minijax)
    assert differences(eager_rows.texts(), names, (0,)) == {}
    assert len([plan for plan in made if plan]) > 150
    assert {type(plan.ready) for plan in made if plan} >= {OneOperation}


@pytest.mark.parametrize("module", [m for m in catalogue_cases.CALLS if m != "borrowed"])
def test_the_catalogue_does_what_python_does(module, at_once):
    names = {"jnp": jnp, "np": np}
    names |= {k: jnp.asarray(x) for k, x in catalogue_cases.ARRAYS.items()}
    assert differences(catalogue_cases.calls(module), names, (1,)) == {}


def test_numpy_s_functions_do_what_python_does(at_once):
    names, texts = numpy_cases.environment(jnp), [*numpy_cases.calls()]
    assert differences(filter(_is_expression, texts), names, (1, 2)) == {}


def test_every_operand_does_what_python_does(at_once):
    step = 1 if os.environ.get("LONG") else 8
    texts = [*numpy_cases.generated()][::step]
    assert differences(texts, numpy_cases.environment(jnp), (0, 1)) == {}


def _is_expression(text):
    try:
        compile(text, "<user>", "eval")
    except SyntaxError:
        return False
    return True


def test_mistakes_are_told_as_ever(at_once):
    names = numpy_cases.environment(jnp)
    assert differences(filter(_is_expression, numpy_cases.BAD), names, ()) == {}


@pytest.mark.parametrize("name", EXACT)
def test_samples_have_the_same_bits(name, at_once):
    def draw():
        return EXACT[name](random, random.key(3), (4,))

    with as_today():
        known = draw()
    for _ in range(3):
        assert np.asarray(draw()).tobytes() == np.asarray(known).tobytes()
