"""Programs that are watched see what they have always seen."""

import asyncio
import contextlib
import copy
import gc
import pickle
import threading
import warnings

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import enable_x64, grad, jit, lax, make_jaxpr, vmap
from minijax.autojitting import autojit as operations
from minijax.autojitting.autojit import LazyArray
from minijax.core import current_trace
from minijax.experimental import autojit
from minijax.extend.core import Primitive
from minijax.rematerialization.caching import cache_key_of_params
from tests import mutants_auto
from tests.auto_programs import Program

SEEDS = range(6)


@pytest.fixture
def x():
    return jnp.arange(4.0)


def is_lazy(x):
    return type(x) is LazyArray


def runs_of(watch):
    return [dict(region.runs) for region in watch.report().regions]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_have_the_same_logs(seed):
    assert not Program(seed).problems()


SMALL = """
def program(a, b, c, d, key, turns):
    log, s = [], 0.5
    buffer = np.arange(8, dtype=np.float32)
    for i in range(turns):
        log.append(float(c.sum()))
        log.append(float((jnp.cos(c) * s).sum()))
        a = (a * s + buffer)[i % 4 :][:4]
        buffer += 1.0
        s = s * 0.5
        e = jnp.sin(a) + 1.0
        f = e * jnp.cos(a) - e
        log += [e, f, b[2:5] * 2.0, jnp.sum(b.reshape(2, 4), i % 2)]
        log.append(lax.dynamic_slice(b, (3,), (2,)) + 1.0)
        log += [sum(jnp.asarray(np.full(3, j, np.float32)) for j in range(9))]
        g = b * 1.0
        h = doubled(g)
        log.append(h + given_up(g))
        a = jnp.concatenate([a, a]) if i < 2 else jnp.concatenate([a, a])[:8]
        part = c[: i + 1]
        log += [float(part.sum()), part * 3.0]
    return log
"""


def small_problems():
    program = Program(0)
    program.source, program.size = SMALL.strip(), 8
    return program.problems()


def test_the_program_that_finds_mutants_is_right_without_them():
    assert not small_problems()


@pytest.mark.parametrize("mutant", mutants_auto.MUTANTS)
def test_mutants_are_found(mutant):
    with mutant():
        assert small_problems()


def test_a_look_computes_and_an_array_becomes_ordinary(x):
    with autojit():
        y = x + 1.0
        assert is_lazy(y) and y.shape == (4,) and y.dtype == np.float32
        assert isinstance(y, minijax.Array)
        assert float(y[1]) == 2.0 and not is_lazy(y)
        z = y * 2.0
    assert not is_lazy(z)


def test_results_that_nobody_holds_are_not_kept(x):
    watch = autojit()
    with watch:
        y = x
        for _ in range(5):
            y = y + 1.0
    [region] = watch.report().regions
    assert (region.operations, region.kept) == (5, 1)


def test_a_region_rises_from_one_by_one_to_compiled(x):
    watch = autojit(lambda x: jnp.sin(x) * 2.0, patience=0.0)
    for _ in range(3):
        watch(x)
    assert runs_of(watch.autojit) == [{"one by one": 1, "compiled": 2}]
    watch = autojit(lambda x: jnp.sin(x) * 2.0, patience=1e9)
    for _ in range(3):
        watch(x)
    assert runs_of(watch.autojit) == [{"one by one": 1, "as Python": 2}]


def test_a_number_that_changes_becomes_an_argument(x):
    watch = autojit(patience=0.0)
    for rate in (0.5, 0.25, 0.125, np.nan, -0.0, 0.0):
        with watch:
            y = x * rate + 1.0
        np.testing.assert_array_equal(y, x * rate + 1.0)
    assert [region.changing for region in watch.report().regions] == [0, 1]


def test_signs_of_zeros_and_types_of_numbers_are_told_apart(x):
    watch = autojit(patience=0.0)
    for number in (0.0, -0.0, 0, False, np.float32(0), jnp.float16(0)):
        with watch:
            y = number * -x
        plain = number * -x
        assert y.dtype == plain.dtype
        assert np.asarray(y).tobytes() == np.asarray(plain).tobytes()


def test_places_of_slices_are_numbers(x):
    watch = autojit(patience=0.0)
    with watch:
        for i in range(4):
            assert float(x[i]) == i
            assert (x[i : i + 1] == i).all()
    assert len(watch.report().regions) < 5
    with watch, pytest.raises((ValueError, TypeError)):
        minijax.lax.slice(x, (2,), (9,))


def test_errors_come_at_once_with_the_line(x):
    def wrong():
        y = x * 2.0
        y + jnp.ones(3)

    found = []
    for run in (wrong, autojit(wrong)):
        with pytest.raises(TypeError) as error:
            run()
        entry = [e for e in error.traceback if e.name == "wrong"][-1]
        found.append((str(error.value), entry.lineno))
    assert found[0] == found[1]
    with autojit(), pytest.raises(OverflowError):
        x.astype(int) + 2**40


def test_arrays_that_are_deleted_or_written_to_while_they_are_waited_for():
    buffer = np.ones(3, np.float32)
    with autojit():
        a = jnp.ones(3) * 1.0
        b = jnp.asarray(buffer)
        y, z = a + b, b * buffer
        b.delete()
        buffer[:] = 7.0
        a.delete()
        assert y.tolist() == [2.0] * 3 and z.tolist() == [1.0] * 3
        assert a.is_deleted() and b.is_deleted()


def test_donated_arrays_are_gone(x):
    give = jit(lambda a: a + 1.0, donate_argnums=0)
    with autojit():
        a = x * 2.0
        b = a * 3.0
        c = give(a)
        assert a.is_deleted() and not is_lazy(c)
        np.testing.assert_array_equal(b, 6.0 * np.arange(4))
        with pytest.raises(RuntimeError, match="deleted"):
            a + 1.0


def test_copies_and_pickles_are_ordinary_arrays(x):
    with autojit():
        copies = [copy.copy(x + 1.0), copy.deepcopy(x + 1.0)]
        copies.append(pickle.loads(pickle.dumps(x + 1.0)))
    for each in copies:
        assert type(each) is type(x)
        np.testing.assert_array_equal(each, x + 1.0)


def test_transformations_inside_and_outside(x):
    def f(x):
        return jnp.tanh(x * 2.0).sum()

    def g(x):
        return grad(f)(x) + vmap(jit(lambda a: a * a))(x)

    for watch in (autojit(g, patience=0.0), jit(autojit(g)), autojit(jit(autojit(g)))):
        for _ in range(3):
            np.testing.assert_allclose(watch(x), g(x), rtol=1e-6)
    slope = grad(lambda x: autojit(f)(x))(x)
    np.testing.assert_allclose(slope, grad(f)(x), rtol=1e-6)
    assert str(make_jaxpr(autojit(f))(x)) == str(make_jaxpr(f)(x))


def test_blocks_may_be_nested(x):
    one, two = autojit(), autojit()
    with one:
        a = x + 1.0
        with one:
            b = a + 1.0
            assert is_lazy(a) and is_lazy(b)
        assert is_lazy(b)
        with two:
            c = b + 1.0
            assert not is_lazy(b) and is_lazy(c)
        assert not is_lazy(c)
    assert type(current_trace()).__name__ == "EvalTrace"


def test_a_block_is_left_by_an_error(x):
    kept = []
    with pytest.raises(KeyError), autojit():
        kept.append(x + 1.0)
        raise KeyError
    assert not is_lazy(kept[0]) and not is_lazy(x + 1.0)


def test_switches_mean_what_they_meant(x):
    watch = autojit(patience=0.0)
    for _ in range(3):
        with watch:
            a = x + 1.0
            with enable_x64():
                b = jnp.arange(3) * 2.5
                assert b.dtype == np.float64
            c = b.sum() + a.sum()
            with enable_x64():
                assert a.dtype == np.float32 and float(a[0]) == 1.0
            assert b.tolist() == [0.0, 2.5, 5.0] and float(c) == 17.5


def test_invalid_numbers_are_found_at_their_line(x):
    with autojit(), minijax.debug_nans(), pytest.raises(FloatingPointError):
        jnp.log(x - 1.0)
    with autojit(), minijax.disable_jit():
        assert not is_lazy(x + 1.0)


def test_callbacks_happen_in_order(x, capsys):
    seen = []
    shape = minijax.ShapeDtypeStruct((4,), np.float32)
    with autojit():
        y = x + 1.0
        minijax.debug.print("y is {}", y.sum())
        print("then")
        z = minijax.pure_callback(lambda a: seen.append(1) or a, shape, y) * 2.0
        assert seen == [1]
    assert capsys.readouterr().out.split() == "y is 10.0 then".split()
    np.testing.assert_array_equal(z, [2, 4, 6, 8])


def test_long_loops_are_cut_after_whole_turns(x):
    watch = autojit(longest=20)
    with watch:
        y = x
        for _ in range(100):
            y = jnp.sin(y) * 0.5 + 1.0
    regions = watch.report().regions
    assert max(region.operations for region in regions) <= 20
    assert len(regions) <= 4
    assert any(sum(region.runs.values()) > 5 for region in regions)


def test_shapes_that_never_come_back_do_not_fill_the_tree():
    watch = autojit()
    with watch:
        for size in range(200):
            assert float((jnp.ones(size) + 1.0).sum()) == 2.0 * size
    gc.collect()
    assert len(watch.report().regions) < 100


def test_threads_compute_what_they_look_at(x):
    found, watch = [], autojit()
    with watch:
        y = x + 1.0
        z = y * 2.0

        def look():
            found.append(z.tolist())
            found.append(is_lazy(y + 1.0))

        other = threading.Thread(target=look)
        other.start()
        other.join()
        w = z + y
        assert w.tolist() == [3, 6, 9, 12]
    assert found == [[2, 4, 6, 8], False]


def test_one_watched_function_in_many_threads(x):
    watched, wrong = autojit(lambda x, s: jnp.sin(x) * s + x, patience=0.0), []

    def work(s):
        for _ in range(20):
            got = watched(x, s)
            if not np.allclose(got, np.sin(np.arange(4)) * s + np.arange(4), 1e-5):
                wrong.append(s)

    threads = [threading.Thread(target=work, args=(s,)) for s in (0.5, 1.5, 2.5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_tasks_have_blocks_of_their_own(x):
    async def task(k):
        with autojit():
            y = x + k
            await asyncio.sleep(0.001)
            return (y * 2.0).tolist()

    async def main():
        return await asyncio.gather(*map(task, (1.0, 2.0)))

    assert asyncio.run(main()) == [[2, 4, 6, 8], [4, 6, 8, 10]]


def test_what_cannot_be_compiled_stays_as_it_is(x, monkeypatch):
    def refuse(*args, **kwargs):
        raise NotImplementedError("no such thing")

    monkeypatch.setattr("minijax.autojitting.autojit.compile_cached", refuse)
    watch = autojit(lambda x: x + 1.0, patience=0.0)
    for _ in range(3):
        assert watch(x).tolist() == [1, 2, 3, 4]
    report = watch.autojit.report()
    assert report.regions[0].runs == {"one by one": 3}
    assert "not compiled: NotImplementedError: no such thing" in str(report)


def test_a_report_names_lines_and_misses(x):
    watch = autojit()
    with watch:
        for size in (4, 4, 3):
            assert (x[:size] * 2.0).sum() >= 0
    text = str(watch.report())
    assert "test_autojitting_autojit.py:" in text and "guards that missed" in text
    assert watch.report().seconds_won() == 0.0


def test_arguments_of_autojit_are_found_by_name():
    with pytest.raises(TypeError):
        autojit(None, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert autojit(len).autojit.longest == 256


def test_an_operation_that_is_refused_leaves_nothing_behind():
    def program(u, v, n):
        if n is not None:
            with contextlib.suppress(OverflowError):
                v = lax.add(v, n)
        return -u, v

    watched = autojit(program, patience=1e9)
    u, v = jnp.array([1, 2]), jnp.array([30, 40])
    for n in (1, None, 2**40, 2, 3, 2**40, 4):
        np.testing.assert_array_equal(watched(u, v, n), program(u, v, n))


def test_parameters_are_compared_by_type_and_bits_part_by_part():
    line_p = Primitive("line")
    line_p.def_impl(lambda x, *, w: x * float(w[0]) + float(w[1]))
    line_p.def_abstract_eval(lambda x, *, w: x)
    operations.wait_rules[line_p] = lambda eqn: True  # as those of the package
    watched = autojit(lambda x, w: line_p.bind_all(x, w=w), patience=1e9)
    x = jnp.array([-0.0])
    several = (0.0, -0.0), (-0.0, -0.0), (True, 0.0), (1, 0.0), (1, -0.0)
    for _ in range(2):
        for w in several:
            wanted = line_p.bind(x, w=w)
            assert np.signbit(watched(x, w)[0]) == np.signbit(wanted), w
    same = {cache_key_of_params({"w": (np.nan, float("nan"))}) for _ in range(2)}
    assert len(same) == 1
    assert len({cache_key_of_params({"w": w}) for w in several}) == 5


def closures(x, y):
    """Return calls of programs that have picked up an array which may wait."""
    times = jit(lambda t: t * y)
    steps = jnp.ones((2, *x.shape))
    return [
        lambda: times(x),
        lambda: vmap(times)(steps),
        lambda: grad(lambda t: times(t).sum())(x),
        lambda: minijax.jvp(times, (x,), (x,))[1],
        lambda: jit(lambda t: times(t) + 1)(x),
        lambda: lax.scan(lambda c, _: (times(c), None), x, None, length=2)[0],
        lambda: lax.cond(x[0] > 5, times, lambda t: t + y, x),
        lambda: lax.fori_loop(0, 2, lambda i, t: times(t), x),
        lambda: grad(minijax.checkpoint(lambda t: times(t).sum()))(x),
    ]


@pytest.mark.parametrize("patience", [0.0, 1e9])
def test_jitted_closures_over_arrays_that_wait(x, patience):
    for i, plain in enumerate(closures(x, x * 2.0)):
        watch = autojit(patience=patience)
        for _ in range(2):
            with watch:
                found = closures(x, x * 2.0)[i]()
            np.testing.assert_array_equal(found, plain())


def test_a_jitted_closure_over_an_array_that_is_deleted(x):
    with autojit():
        y = x * 2.0
        z = jit(lambda t: t * y)(x)
        y.delete()
        np.testing.assert_array_equal(z, x * x * 2.0)


def test_a_primitive_of_a_user_is_evaluated_at_once(x):
    seen, noted_p = [], Primitive("noted")
    noted_p.def_impl(lambda x: seen.append("noted") or x)
    noted_p.def_abstract_eval(lambda x: x)
    with autojit():
        for i in range(2):
            noted_p.bind(x * 2.0)
            seen.append(i)
            jit(noted_p.bind)(x * 3.0)
            seen.append(i)
    assert seen == ["noted", 0, "noted", 0, "noted", 1, "noted", 1]
