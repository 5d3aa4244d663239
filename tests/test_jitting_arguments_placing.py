"""Where programs run, on two devices: keys, executables, warmed calls."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.arrays.devices import default_placement
from minijax.jitting import compilation
from minijax.jitting.compilation import backend_name, backends, compile_cached

FIRST, SECOND = minijax.devices()
HOME = default_placement().device.id  # 0, unless a switch of conftest says more
BACKENDS = ["interpreter", "python", "kernels", "llvm", "planned", "cpu"]


def where(x):
    return x.device.id, x.committed


@pytest.fixture
def arrays():
    free = jnp.arange(3.0)
    return free, minijax.device_put(free, FIRST), minijax.device_put(free, SECOND)


def program(x):
    total, rows = lax.scan(lambda c, r: (c + r, c * 2), 0.0, x * jnp.arange(3.0))
    return total, lax.cond(total > 1, lambda r: r + 1, lambda r: r - 1, rows), 1.0


@pytest.mark.parametrize("name", BACKENDS)
def test_all_backends_leave_results_where_arguments_are(name, arrays):
    with minijax.config.override("minijax_backend", name):
        run = minijax.jit(program)
        for x, place in zip(arrays, [(HOME, False), (0, True), (1, True)]):
            results = run(x)
            assert [where(y) for y in results] == [place] * 3
            for mine, direct in zip(results, program(np.arange(3, dtype="float32"))):
                np.testing.assert_allclose(mine, direct, rtol=1e-6)
        with minijax.default_device(SECOND):
            assert [where(y) for y in run(1.0 * arrays[0])] == [(1, False)] * 3


def test_each_device_has_an_executable_and_each_placement_a_key(arrays):
    closed = minijax.make_jaxpr(lambda x: x * 2)(1.0)
    made = [compile_cached(closed, placement=x.placement) for x in arrays]
    assert [one.placement for one in made] == [x.placement for x in arrays]
    assert compile_cached(closed) is compile_cached(closed)
    assert len(compilation._executables[closed].values) == 2
    calls = []

    def traced(x):
        calls.append(x)
        return x + 1

    f = minijax.jit(traced)
    for x in arrays * 2:
        f(x)
    assert len(calls) == 1 and f._cache_size() == 3


def test_a_backend_may_want_to_know_the_device(arrays, monkeypatch):
    told = []

    class Asking(compilation.Interpreter):
        per_device = True

        def __init__(self, closed, name, device):
            told.append(device)
            super().__init__(closed, name)

    monkeypatch.setitem(backends, "asking", Asking)
    f = minijax.jit(lambda x: x + 1, backend="asking")
    assert [where(f(x)) for x in arrays] == [(HOME, False), (0, True), (1, True)]
    assert set(told) == {FIRST, SECOND}


def test_platforms_have_backends_of_their_own(monkeypatch):
    assert backend_name(platform="toy") == "interpreter"
    monkeypatch.setitem(compilation.backends, "toy code", compilation.Interpreter)
    monkeypatch.setitem(compilation.default_backends, "toy", "toy code")
    assert backend_name(platform="toy") == "toy code" != backend_name()
    assert backend_name("interpreter", "toy") == "interpreter"
    with pytest.raises(RuntimeError, match="'kernels' makes programs for cpu; .* toy"):
        backend_name("kernels", "toy")


def test_warmed_calls_go_where_cold_ones_do(arrays):
    free, here, there = arrays
    numbers = np.arange(3, dtype="float32")
    kinds = [
        ((free, free), (HOME, False)), ((numbers, numbers), (HOME, False)),
        ((there, there), (1, True)), ((here, here), (0, True)),
        ((there, numbers), (1, True)), ((numbers, there), (1, True)),
        ((free, there), (1, True)), ((here, free), (0, True)),
    ]  # fmt: skip
    for first, _ in kinds:
        f = minijax.jit(lambda x, y: x * y + 1)
        for _ in range(120):
            f(*first)
        for args, place in kinds * 3:
            result = f(*args)
            assert where(result) == place, (first, args)
            np.testing.assert_array_equal(result, numbers * numbers + 1)
        with pytest.raises(ValueError, match="argument x of <lambda> .*argument y of"):
            f(here, there)
        with minijax.default_device(SECOND):
            assert where(f(free, numbers)) == (1, False)


def test_arguments_that_are_not_needed_have_no_say_in_warmed_calls(arrays):
    free, here, there = arrays
    f = minijax.jit(lambda x, y: x + 1)
    for first in (free, there, here):
        for _ in range(120):
            f(first, there)
        for x, y, place in (
            (free, there, (HOME, False)), (here, there, (0, True)),
            (there, here, (1, True)), (1.0, there, (HOME, False)),
            (np.ones(3, "float32"), there, (HOME, False)),
        ):  # fmt: skip
            assert where(f(x, y)) == place


def test_the_default_device_may_change_under_a_warm_function(arrays):
    f = minijax.jit(lambda x: x + 1)
    before = minijax.config.jax_default_device
    for _ in range(120):
        f(arrays[0])
    try:
        for device in (SECOND, FIRST, SECOND):
            minijax.config.update("jax_default_device", device)
            for _ in range(5):
                assert where(f(arrays[0])) == where(f(1.0)) == (device.id, False)
    finally:
        minijax.config.update("jax_default_device", before)


def test_transformed_calls_follow_their_arguments(arrays):
    free, here, there = arrays
    f = minijax.jit(lambda x, y: (jnp.sin(x) * y).sum())
    assert where(minijax.grad(f)(there, there)) == (1, True)
    assert where(minijax.jit(minijax.grad(f))(free, there)) == (1, True)
    assert where(minijax.vmap(f)(here, here)) == (0, True)
    loop = minijax.jit(lambda x: lax.fori_loop(0, 3, lambda i, y: y + i, x))
    assert where(loop(there)) == (1, True)
    with pytest.raises(ValueError, match="Received incompatible devices"):
        minijax.vmap(f)(here, there)


def test_donated_arguments_that_move_are_not_deleted(arrays):
    free, _, there = arrays
    f = minijax.jit(lambda x, y: x + y, donate_argnums=0)
    moved, kept = free + 0, there + 0
    assert where(f(moved, there)) == (1, True) and moved.is_deleted() == (HOME == 1)
    assert where(f(kept, there)) == (1, True) and kept.is_deleted()


@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
def test_functions_jitted_for_a_device(arrays):
    f = minijax.jit(lambda x: x * 2, device=SECOND)
    assert [where(f(x)) for x in (*arrays, 1.0) * 50] == [(1, True)] * 200
    g = minijax.jit(lambda x: f(x) + 1)
    assert where(g(arrays[0])) == where(minijax.grad(lambda x: f(x))(1.0)) == (1, True)
    with pytest.raises(ValueError, match=r"jit inside jit with device ids \[1\]"):
        g(arrays[1])


def test_compiled_programs_refuse_arguments_of_another_device(arrays):
    free, here, there = arrays
    run = minijax.jit(lambda x, y: x + y).lower(there, free).compile()
    assert (
        where(run(free, free)) == where(run(there, np.ones(3, "float32"))) == (1, True)
    )
    with pytest.raises(ValueError) as refusal:
        run(there, here)
    assert str(refusal.value) == (
        "Computation was compiled for input shardings that disagree with the shardings "
        "of arguments passed to it. Here are the 1 mismatches:\nArgument y with shape "
        f"float32[3]:\n  Passed sharding: {here.sharding}\n  Required sharding: "
        f"{there.sharding}"
    )
    assert run.input_shardings == ((there.sharding,) * 2, {})
    assert run.output_shardings == there.sharding
    with pytest.raises(
        ValueError, match="Received incompatible devices.*argument x of"
    ):
        minijax.jit(lambda x, y: x + y).lower(here, there)


def test_deleted_arguments(arrays):
    f = minijax.jit(lambda x: x + 1)
    for x in arrays[1:]:
        x.delete()
        with pytest.raises(RuntimeError, match="has been deleted with shape=float32"):
            f(x)
