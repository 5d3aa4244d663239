"""Plans of eager calls: they do what Python does, and nothing where they may not."""

import gc
import inspect
import os
import signal
import sys
import threading
import traceback
import warnings
import weakref
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import random
from minijax.dispatch import eager
from minijax.dispatch.eager import PlanCache
from tests import array_cases, catalogue_cases, numpy_cases
from tests.commands import LONG, some
from tests.interrupts import Places, interrupted
from tests.sampler_cases import EXACT

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import eager_rows  # from the folder of benchmarks

jnp.add(1, 2)  # registers all that there is

OF_INTEGERS = "bitwise_not", "population_count", "clz"


@pytest.fixture
def at_once(monkeypatch):
    """The second call of each kind makes a plan, whatever it costs."""
    monkeypatch.setattr(PlanCache, "tick", -1)
    monkeypatch.setattr(PlanCache, "price", 0)
    monkeypatch.setattr(PlanCache, "is_faster", lambda *_: True)
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
            frames = traceback.extract_tb(error.__traceback__)[1:]
            places = [(frame.filename, frame.name, frame.lineno) for frame in frames]
            result = type(error), str(error), str(error.__context__), places
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


def has_numbers(x):
    is_key = minijax.dtypes.issubdtype(x.dtype, minijax.dtypes.prng_key)
    return not is_key and x.dtype.kind not in "OV"


def other_values(x, seed):
    """An array of the same type with other numbers: turned, negative, not finite."""
    weak = getattr(x, "weak_type", False)
    if not isinstance(x, (minijax.Array, np.ndarray)) or weak or not has_numbers(x):
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
        run = partial(eval, compile(text, "<user>", "eval"))
        with as_today():
            known = [outcome(partial(run, env)) for env in (names, *others)]
        first = [outcome(partial(run, names)) for _ in range(3)]
        later = [outcome(partial(run, env)) for env in others]
        pairs = zip(first + later, [known[0]] * 3 + known[1:])
        reasons = [reason for pair in pairs if (reason := difference(*pair))]
        found |= {text: reasons[0][:400]} if reasons else {}
    return found


def test_every_row_of_the_table_does_what_python_does(at_once, made):
    names = eager_rows.arrays(minijax)
    assert differences(eager_rows.texts(), names, (0,)) == {}
    assert len([plan for plan in made if plan]) > 150


@pytest.mark.parametrize("module", sorted(catalogue_cases.CALLS.keys() - {"borrowed"}))
def test_the_catalogue_does_what_python_does(module, at_once):
    """Every second call of each module; `LONG=1` takes all."""
    names = {"jnp": jnp, "np": np}
    names |= {k: jnp.asarray(x) for k, x in catalogue_cases.ARRAYS.items()}
    assert differences(some(catalogue_cases.calls(module), 2), names, (1,)) == {}


def test_numpy_s_functions_do_what_python_does(at_once):
    """Every second call; `LONG=1` takes all."""
    names, texts = numpy_cases.environment(jnp), some(numpy_cases.calls(), 2)
    assert differences(filter(_is_expression, texts), names, (1, 2)) == {}


def test_every_operand_does_what_python_does(at_once):
    step = 1 if LONG else 16
    texts = [*numpy_cases.generated()][::step]
    assert differences(texts, numpy_cases.environment(jnp), (0, 1)) == {}


def test_functions_of_lax_do_what_python_does(at_once, made):
    names = array_cases.environment(minijax, minijax.lax, jnp.asarray)
    names |= {"f": names["x"], "r": jnp.array([2, 0, 5])}
    texts = [*filter(_is_expression, array_cases.PROGRAMS)]
    texts += [f"lax.{name}(f)" for name in array_cases.UNARY if name not in OF_INTEGERS]
    texts += [f"lax.{name}(f, f)" for name in array_cases.BINARY[:10]]
    texts += [f"lax.{name}(r)" for name in OF_INTEGERS]
    assert differences(texts, names, (0,)) == {}
    assert len([plan for plan in made if plan]) > 100


def test_mistakes_in_calls_of_lax_are_told_as_ever(at_once):
    names = array_cases.environment(minijax, minijax.lax, jnp.asarray)
    texts = [*filter(_is_expression, array_cases.MISTAKES)]
    assert texts and differences(texts, names, ()) == {}


def test_functions_of_lax_that_take_functions_are_called_as_they_are():
    lax = minijax.lax
    for f in (lax.scan, lax.cond, lax.while_loop, lax.map, lax.custom_root, lax.psum):
        with pytest.raises((TypeError, ValueError)):  # behind the guard is no answer
            answer_of(f)
    for f in (lax.top_k, lax.add, lax.neg, lax.broadcast_in_dim, lax.igamma):
        assert isinstance(answer_of(f), eager.EagerFunction)


def _is_expression(text):
    try:
        compile(text, "<user>", "eval")
    except SyntaxError:
        return False
    return True


def test_mistakes_are_told_as_ever(at_once):
    names = numpy_cases.environment(jnp)
    assert differences(filter(_is_expression, numpy_cases.BAD), names, ()) == {}


MISTAKES = """
    jnp.sum(x, axis=3); x + m[:, :3]; m @ x[:2]; jnp.std(x, axis=1); jnp.linalg.inv(x);
    jnp.sum('x'); jnp.concatenate([x, m]); x.reshape(3); jnp.max(x[:0]); ~x;
    jnp.where(x, x, m[:, :3]); jnp.cumsum(m, 2); jnp.sort(x, 4); jnp.dot(m, x[1:])
"""


def test_mistakes_of_functions_with_plans_are_told_as_ever(at_once):
    names = {"x": x, "m": m, "jnp": jnp, "minijax": minijax}
    for text in (
        "jnp.sum(x), x + x, m @ x, jnp.std(x), jnp.linalg.inv(m + jnp.eye(4))",
        "jnp.concatenate([x, x]), x.reshape(2, 2), jnp.max(x), jnp.where(x > 1, x, m)",
        "jnp.cumsum(m, 1), jnp.sort(x, 0), minijax.nn.softmax(x, 0), ~(x > 1)",
    ):
        warm(partial(eval, text, names))
    assert all(answer_of(f)._ready.plans for f in (jnp.sum, jnp.std, jnp.linalg.inv))
    texts = [text.strip() for text in MISTAKES.split(";")]
    with as_today():
        assert all(type(outcome(partial(eval, t, names))[0]) is tuple for t in texts)
    assert differences(texts, names, ()) == {}


def test_a_plan_that_fails_is_no_part_of_the_message(at_once, monkeypatch):
    with as_today():
        known = float(jnp.median(x))
    monkeypatch.setattr(eager, "fastpath_supported", lambda *_: False)
    warm(lambda: jnp.median(x))
    [plan] = answer_of(jnp.median)._ready.plans.values()

    def run(*_):
        raise RuntimeError("of a plan")

    monkeypatch.setattr(plan, "run", run)
    assert float(jnp.median(x)) == known
    monkeypatch.setattr(answer_of(jnp.median), "function", lambda x: x.missing)
    with pytest.raises(AttributeError) as refusal:
        jnp.median(x)
    assert refusal.value.__context__ is None


@pytest.mark.parametrize("name", EXACT)
def test_samples_have_the_same_bits(name, at_once):
    def draw():
        return EXACT[name](random, random.key(3), (4,))

    with as_today():
        known = draw()
    for _ in range(3):
        assert np.asarray(draw()).tobytes() == np.asarray(known).tobytes()


x, m = jnp.arange(4.0) + 1, jnp.arange(16.0).reshape(4, 4) / 7


def answer_of(function):
    """What answers the calls of a public function, behind its guard."""
    cells = [cell.cell_contents for cell in function.__closure__]
    [call] = [each for each in cells if callable(each)]
    [answer] = [cell.cell_contents for cell in call.__closure__]
    return answer


def warm(call):
    for _ in range(3):
        result = call()
    return result


def test_what_is_called_once_is_not_compiled(monkeypatch, made):
    minijax.clear_caches()
    monkeypatch.setattr(PlanCache, "tick", -1)
    monkeypatch.setattr(PlanCache, "price", 10**15)
    warm(lambda: jnp.linalg.inv(m + jnp.eye(4)))
    assert made == [] and answer_of(jnp.linalg.inv)._ready.times
    minijax.clear_caches()
    monkeypatch.setattr(PlanCache, "price", 0)
    jnp.median(x)  # whatever the first call takes
    assert answer_of(jnp.median)._ready.plans == {}


def test_time_counts_and_not_calls(monkeypatch, made):
    minijax.clear_caches()
    monkeypatch.setattr(PlanCache, "tick", 10**15)
    warm(lambda: jnp.median(x))
    assert made == [] and answer_of(jnp.median)._ready.spent > 0


@pytest.mark.parametrize("name, call", {
    "a number that is looked at": lambda: jnp.power(np.int8(3), jnp.array(2)),
    "an argument that is the result": lambda: jnp.ravel(x),
    "a constant": lambda: jnp.asarray(2.0),
    "no array at all": lambda: jnp.iterable(x),
    "a function": lambda: jnp.apply_along_axis(jnp.sum, 0, m),
    "a shape by values": lambda: jnp.unique(x),
    "an iterator": lambda: jnp.fromiter(iter([1, 2]), int),
    "an array beside a number": lambda: jnp.stack([x[0], 1.0]),
}.items())  # fmt: skip
def test_some_calls_have_no_plan(name, call, at_once):
    function = getattr(jnp, call.__code__.co_names[1])
    with as_today():
        known = outcome(call)
    for _ in range(3):
        assert difference(outcome(call), known) is None
    assert answer_of(function)._ready.plans == {}


def test_a_result_that_is_an_argument_stays_one(at_once):
    for _ in range(4):
        assert jnp.ravel(x) is x and jnp.asarray(x) is x
        assert not np.shares_memory(jnp.reshape(jnp.sin(x), (2, 2)), x)


def test_values_of_one_kind_are_told_apart(at_once):
    pairs = [(1, True), (1, 1.0), (0.0, -0.0), (2, 2.0), (1.5, 2.5)]
    for first, second in pairs:
        for value in (first, second) * 3:
            with as_today():
                known = jnp.full(3, value) / 1, jnp.where(x > 2, x, value)
            found = jnp.full(3, value) / 1, jnp.where(x > 2, x, value)
            for a, b in zip(found, known):
                assert a.aval == b.aval
                assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("name", ["sum", "exp", "cumsum", "dot", "var", "sort"])
def test_the_bits_are_those_of_jit(name, at_once):
    function, numbers = getattr(jnp, name), jnp.linspace(-2, 3, 999)
    args = [numbers] * (2 if name == "dot" else 1)
    known = np.asarray(minijax.jit(function)(*args))
    assert np.asarray(warm(partial(function, *args))).tobytes() == known.tobytes()
    assert answer_of(function)._ready.plans


def test_a_list_may_change_between_two_calls(at_once):
    order, rows = [1, 0], [x, x]
    for turn in range(5):
        rows[turn % 2] = x * turn
        order[:] = order[::-1]
        with as_today():
            known = jnp.transpose(m[:2], order), jnp.stack(rows)
        found = jnp.transpose(m[:2], order), jnp.stack(rows)
        assert all(map(jnp.array_equal, found, known))


class Pair(NamedTuple):
    """A container that is a tuple."""

    first: object
    second: object


def test_arrays_are_operands_wherever_they_are():
    assert eager.varies(Pair(x, m)) and eager.varies({"a": [x, (m,)]})
    assert not eager.varies(Pair(1, 2)) and not eager.varies(slice(1, None))
    for mixed in (Pair(x, 1), slice(x[0], None), (x, None), [x, [1]]):
        with pytest.raises(eager.NoPlan):
            eager.varies(mixed)


def test_what_may_change_has_no_key():
    here = minijax.numpy.zeros(1).placement
    for fixed in (float, np.float32, jnp.float32, np.dtype("i1"), "fro", None, (1, 2)):
        assert eager.call_key((x, fixed), {}, here)
    for other in (len, lambda x: x, partial(len), Pair, object(), iter([1]), {1, 2}):
        with pytest.raises(eager.NoPlan):
            eager.call_key((x, other), {}, here)


def test_numpy_arrays_are_read_in_each_call(at_once):
    numbers = np.float32([1, 2, 3])
    for turn in range(5):
        numbers[0] = turn
        assert float(jnp.sum(numbers * np.float32(2))) == 2 * turn + 10
        assert float(jnp.median(numbers)) == np.median(numbers)


def test_a_warning_is_given_in_each_call(at_once):
    for _ in range(4):
        with pytest.warns(UserWarning, match="dtype"):
            jnp.linspace(0.0, 1.0, 3, dtype="float64")


def test_switches_are_heard(at_once):
    def deviation():
        return jnp.std(np.float64([1.0, 2.0, 4.0]))

    assert warm(deviation).dtype == "float32"
    with minijax.enable_x64():
        assert warm(deviation).dtype == "float64"
    minijax.config.update("jax_enable_x64", True)
    try:
        assert warm(deviation).dtype == "float64"
    finally:
        minijax.config.update("jax_enable_x64", False)
    assert warm(deviation).dtype == "float32"


def test_invalid_numbers_are_found(at_once):
    warm(lambda: jnp.divide(x, x) + jnp.log(x))
    with minijax.debug_nans(), pytest.raises(FloatingPointError):
        jnp.log(-x)
    minijax.config.update("jax_debug_nans", True)
    try:
        with pytest.raises(FloatingPointError):
            jnp.divide(x - x, x - x)
    finally:
        minijax.config.update("jax_debug_nans", False)


@contextmanager
def switched(name, value):
    before = getattr(minijax.config, name)
    minijax.config.update(name, value)
    try:
        yield
    finally:
        minijax.config.update(name, before)


@pytest.mark.parametrize("name, value", [
    ("minijax_eager_plans", False), ("jax_disable_jit", True), ("jax_no_tracing", True),
    ("jax_log_compiles", True), ("jax_explain_cache_misses", True),
    ("jax_debug_key_reuse", True),
])  # fmt: skip
def test_some_switches_end_all_plans(name, value, at_once, made, caplog):
    with switched(name, value):
        warm(lambda: jnp.average(x))
    assert made == [] and not caplog.records


def test_committed_arrays_stay_where_they_are(at_once):
    there = minijax.device_put(x, minijax.devices()[0])
    for _ in range(3):
        assert jnp.average(there).committed and (there + there).committed
        assert not jnp.average(x).committed


def test_nothing_changes_inside_a_trace(at_once):
    names = eager_rows.arrays(minijax)
    arrays = {k: v for k, v in names.items() if isinstance(v, minijax.Array)}

    def jaxpr(text):
        code = compile(text, "<user>", "eval")
        return str(minijax.make_jaxpr(lambda found: eval(code, names | found))(arrays))

    for text in eager_rows.texts()[::4]:
        with as_today():
            known = jaxpr(text)
        warm(lambda text=text: eval(text, names))
        assert jaxpr(text) == known


def test_derivatives_and_batches_of_warm_functions(at_once):
    def loss(x):
        return jnp.linalg.norm(jnp.median(m * x, 1) + minijax.nn.softmax(x))

    with as_today():
        known = minijax.grad(loss)(x), minijax.vmap(loss)(m)
    warm(lambda: loss(x))
    for a, b in zip((minijax.grad(loss)(x), minijax.vmap(loss)(m)), known):
        assert a.aval == b.aval and np.allclose(a, b, rtol=1e-6)


def test_caches_are_cleared(at_once):
    warm(lambda: jnp.average(x))
    ready = answer_of(jnp.average)._ready
    assert ready.plans and ready.times
    minijax.clear_caches()
    assert not (ready.plans or ready.times or ready.chain or ready.refused)


class NoProgram:
    """What stands for a plan where only its place counts."""

    assembly = None

    def __init__(self, function, args, kwargs):
        self.function = function

    def leaves(self, args, kwargs):
        return [*args]

    def run(self, args, kwargs):
        return self.function(*args, **kwargs)


@pytest.mark.parametrize("faster", [True, False])
def test_there_are_not_too_many(faster, at_once, monkeypatch):
    """A function that meets two thousand shapes keeps few of them."""
    monkeypatch.setattr(eager, "EagerPlan", NoProgram)
    monkeypatch.setattr(PlanCache, "is_faster", lambda *_: faster)
    monkeypatch.setattr(PlanCache, "_add_record", lambda *_: None)
    ready, most = answer_of(jnp.square)._ready, 0
    for number in range(2000):
        array = np.broadcast_to(np.float32(1), (number // 100 + 1, number % 100 + 1))
        for _ in range(2):
            jnp.square(array)
        most = max(most, len(ready.plans), len(ready.refused))
        assert len(ready.times) <= 257
    assert 200 < most <= 257


def test_records_are_few(at_once):
    ready = answer_of(jnp.square)._ready
    for number in range(1, PlanCache.limit + 6):
        warm(partial(jnp.square, np.ones(number, "f4")))
    assert len(ready.plans) > PlanCache.limit == len(ready.chain)


def test_a_plan_that_is_slower_is_given_up(monkeypatch, made):
    """NumPy turns an array without touching its numbers."""
    monkeypatch.setattr(PlanCache, "tick", -1)
    monkeypatch.setattr(PlanCache, "price", 0)
    minijax.clear_caches()
    large = jnp.zeros(3_000_000)
    warm(lambda: jnp.flip(large))
    ready = answer_of(jnp.flip)._ready
    assert {*made} == {None}  # that of `lax.rev`, too, which it calls
    assert len(ready.refused) == 1
    assert not (ready.plans or ready.chain or ready.head[0])


def test_a_transposed_array_is_another_kind(at_once):
    """A program needs its numbers in order, which may take longer than all else."""
    ready = answer_of(jnp.exp)._ready
    warm(lambda: jnp.exp(m))
    assert len(ready.plans) == len(ready.chain) == 1
    warm(lambda: jnp.exp(m.T))
    assert len(ready.plans) == 2 and len(ready.chain) == 1
    assert np.allclose(jnp.exp(m.T), np.exp(np.asarray(m)).T)


def test_a_transposed_array_that_is_met_again_is_put_in_order(at_once):
    ready, turned = answer_of(jnp.exp)._ready, m.T
    for _ in range(4):
        result = jnp.exp(turned)
    assert turned._buffer.flags.c_contiguous and ready.chain
    assert np.allclose(result, np.exp(np.asarray(m)).T)
    assert not m.T._buffer.flags.c_contiguous


def test_a_result_may_be_no_new_array(at_once):
    first, second = jnp.ones(3), jnp.ones((2, 3))
    spread = jnp.broadcast_arrays
    for _ in range(4):
        factor, lower = minijax.scipy.linalg.cho_factor(jnp.eye(3) * 4)
        assert lower is False and float(factor[0, 0]) == 2
        assert spread(first, second)[1] is second
    assert answer_of(minijax.scipy.linalg.cho_factor)._ready.plans
    assert answer_of(spread)._ready.plans


def test_without_the_gate(at_once, monkeypatch):
    monkeypatch.setattr(eager, "fastpath_supported", lambda *_: False)
    names = eager_rows.arrays(minijax)
    assert differences(eager_rows.texts()[::5], names, (0,)) == {}


def test_threads(at_once):
    expected, found = np.median(np.asarray(m), 1), []

    def work():
        found.extend(jnp.median(m, 1) for _ in range(200))

    threads = [threading.Thread(target=work) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 1200 and all(np.allclose(each, expected) for each in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_makes_plans_of_its_own(at_once):
    warm(lambda: jnp.median(x))
    ready = answer_of(jnp.average)._ready
    ready._making_lock.acquire()  # as another thread would in the middle of making one
    child = os.fork()
    if not child:
        good = float(warm(lambda: jnp.average(x))) == 2.5 and bool(ready.plans)
        os._exit(0 if good and float(jnp.median(x)) == 2.5 else 1)
    ready._making_lock.release()
    assert os.waitpid(child, 0)[1] == 0


def test_an_interrupt_leaves_things_as_they_were(at_once, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(eager, "planned_program", interrupted)
        jnp.average(x)
        with pytest.raises(KeyboardInterrupt):
            jnp.average(x)
    ready = answer_of(jnp.average)._ready
    assert not ready.plans and not ready.refused and not ready._making_lock.locked()
    assert float(warm(lambda: jnp.average(x))) == 2.5 and ready.plans


def test_an_interrupt_anywhere_leaves_no_lock(at_once):
    def again():
        minijax.clear_caches()
        jnp.average(x)
        return lambda: jnp.average(x)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ready, met = answer_of(jnp.average)._ready, Places()
        met.run(again())
        assert ready.plans
        for number in [n for n, name in enumerate(met.functions) if name == "look"]:
            where, held = interrupted(again(), number)
            assert not ready._making_lock.locked(), where
    finally:
        signal.signal(signal.SIGINT, before)


def test_warnings_of_other_threads_are_not_hidden(at_once, monkeypatch):
    def record(*args):
        thread = threading.Thread(target=warnings.warn, args=["from another thread"])
        thread.start()
        thread.join()
        return recorded(*args)

    recorded = eager.PlanTrace.record
    monkeypatch.setattr(eager.PlanTrace, "record", record)
    with pytest.warns(UserWarning, match="another"):
        warm(lambda: jnp.average(x))


def test_plans_hold_no_arguments(at_once):
    given = jnp.arange(5.0) * 3
    there = weakref.ref(given._buffer)
    warm(partial(jnp.median, given))
    warm(partial(jnp.sin, given))
    del given
    assert there() is None


def test_no_row_of_the_table_holds_its_arguments(at_once):
    with as_today():  # a small result of a plan may be kept, to be used again
        names = eager_rows.arrays(minijax)
    arrays = {k: x for k, x in names.items() if isinstance(x, minijax.Array)}
    there = {k: [weakref.ref(x), weakref.ref(x._buffer)] for k, x in arrays.items()}
    for text in eager_rows.texts():
        warm(partial(eval, text, names))
    names.clear()
    arrays.clear()
    gc.collect()
    assert not [k for k, refs in there.items() for ref in refs if ref() is not None]


def test_public_functions_stay_functions():
    for function in (jnp.median, jnp.linalg.inv, minijax.nn.softmax, random.normal):
        assert inspect.isfunction(function)
        assert inspect.signature(function) == inspect.signature(function.__wrapped__)
        assert function.__module__.startswith("minijax.")
