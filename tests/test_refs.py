"""References: what they hold under all transformations, and what they refuse."""

import copy
import pickle
from itertools import product

import numpy as np
import pytest

import minijax
from minijax import jit, lax
from minijax import numpy as jnp
from minijax.ref import (
    Ref,
    addupdate,
    empty_ref,
    free_ref,
    freeze,
    get,
    new_ref,
    set,
    swap,
)
from tests.commands import some
from tests.ref_programs import programs, stacks

PROGRAMS, STACKS = programs(minijax), stacks(minijax)


@pytest.mark.parametrize("name, stack", some(product(PROGRAMS, STACKS), 2))
def test_a_program_with_references_is_the_one_without(name, stack):
    with_refs, without = map(STACKS[stack], PROGRAMS[name])
    for x in (0.8, 1.2):
        found, wanted = with_refs(x), without(x)
        for one, other in zip(*map(minijax.tree.leaves, (found, wanted)), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5)


# Every way to run a step some number of times, with references from outside.

COUNTING = {
    "call": (1, lambda step: step()),
    "jit": (1, lambda step: jit(step)()),
    "jit twice": (1, lambda step: jit(jit(step))()),
    "scan": (3, lambda step: lax.scan(lambda c, _: (c, step()), 0, length=3)),
    "jit scan": (
        3,
        lambda step: jit(lambda: lax.scan(lambda c, _: (c, step()), 0, length=3))(),
    ),
    "fori": (4, lambda step: lax.fori_loop(0, 4, lambda i, c: (step(), c)[1], 0)),
    "while": (
        2,
        lambda step: lax.while_loop(lambda i: i < 2, lambda i: (step(), i + 1)[1], 0),
    ),
    "map": (5, lambda step: lax.map(lambda x: (step(), x)[1], jnp.arange(5))),
    "cond": (1, lambda step: lax.cond(True, step, lambda: None)),
    "no cond": (
        0,
        lambda step: jit(lambda go: lax.cond(go, step, lambda: None))(False),
    ),
    "checkpoint": (1, lambda step: minijax.checkpoint(step)()),
    "grad": (1, lambda step: minijax.grad(lambda x: (step(), x * x)[1])(1.0)),
    "jit grad": (1, lambda step: jit(minijax.grad(lambda x: (step(), x * x)[1]))(1.0)),
    "grad jit": (1, lambda step: minijax.grad(jit(lambda x: (step(), x * x)[1]))(1.0)),
    "grad scan": (
        3,
        lambda step: minijax.grad(
            lambda x: lax.scan(lambda c, _: (c * x, step()), x, length=3)[0]
        )(1.0),
    ),
    "grad checkpoint": (
        1,
        lambda step: minijax.grad(minijax.checkpoint(lambda x: (step(), x * x)[1]))(
            1.0
        ),
    ),
    "scan cond scan": (
        4,
        lambda step: lax.scan(
            lambda c, i: lax.cond(
                i % 2 == 0,
                lambda: lax.scan(lambda c, _: (c, step()), c, length=2),
                lambda: (c, None),
            ),
            0,
            jnp.arange(4),
        ),
    ),
    "nothing is run": (0, lambda step: minijax.make_jaxpr(step)()),
    "no shapes": (0, lambda step: minijax.eval_shape(step)),
}


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("handed", [False, True], ids=["closed over", "argument"])
def test_an_outer_reference_is_written_once_for_each_step(name, handed):
    times, run = COUNTING[name]
    count, log = new_ref(0), new_ref(jnp.zeros(3))

    def step():
        count[...] += 1
        log[1] += 2.0

    def on(count, log):
        count[...] += 1
        log[1] += 2.0

    run((lambda: jit(on)(count, log)) if handed else step)
    assert (count[...], log[1]) == (times, 2 * times)
    run((lambda: jit(on)(count, log)) if handed else step)
    assert (count[...], log[1], log[0]) == (2 * times, 4 * times, 0)


def test_reads_and_writes_are_those_of_numpy():
    rng = np.random.default_rng(0)
    indices = [0, -1, (1, 2), slice(1, 3), (slice(None), 1), ..., (..., -1), [0, 2]]
    indices += [(np.array([0, 1]), np.array([2, 2])), slice(None, None, 2), ()]
    indices = [np.array(i) if isinstance(i, list) else i for i in indices]

    def play(write, array):
        for step in range(3 * len(indices)):
            index = indices[step % len(indices)]
            write(array, index, step + 1.0)
        return array

    def on_numpy(array, index, scale):
        array[index] = array[index] * 0.5 + scale

    wanted = rng.normal(size=(3, 4)).astype(np.float32)
    refs = [new_ref(wanted) for _ in range(3)]
    play(on_numpy, refs[0])
    jit(lambda ref: play(on_numpy, ref) and None)(refs[1])
    jit(lambda: play(on_numpy, refs[2]) and None)()
    play(on_numpy, wanted)
    for ref in refs:
        np.testing.assert_allclose(ref[...], wanted, rtol=1e-5)


def test_functions_of_the_module():
    ref = new_ref(jnp.arange(4))
    assert swap(ref, 1, 9) == 1
    addupdate(ref, jnp.array([0, 0]), jnp.array([1, 2]))
    set(ref, slice(2, None), jnp.array([5, 6]))
    ref.at[1:3].at[0][...] += 1
    ref.addupdate(1, 3)
    assert get(ref).tolist() == [3, 10, 5, 7]
    assert (ref.shape, ref.dtype, ref.ndim) == ((4,), np.int32, 1)
    assert ref.size == len(ref) == 4
    assert repr(ref) == "Ref([ 3, 10,  5,  7], dtype=int32)"
    assert empty_ref(minijax.ShapeDtypeStruct((2,), "float32")).shape == (2,)
    assert isinstance(ref, minijax.Ref) and not isinstance(ref, minijax.Array)
    twin, other = copy.copy(ref), pickle.loads(pickle.dumps(ref))
    ref[0] = 0
    assert twin[0] == other[0] == 3
    assert freeze(ref).tolist() == [0, 10, 5, 7]


def test_inside_of_a_program_it_is_a_reference_too():
    def look(ref, whole):
        assert isinstance(ref, Ref) and ref.shape == (3,) and len(ref) == 3
        assert repr(ref) == "Ref{f32[3]}" and repr(whole["a"][0]) == "Ref{i32[]}"
        whole["a"][0][...] += 1

    ref, count = new_ref(jnp.ones(3)), new_ref(0)
    jit(look)(ref, whole={"a": (count,)})
    assert count[...] == 1


def test_what_a_reference_is_made_of_is_nobodys_else():
    memory = np.zeros(2, np.float32)
    array = jnp.ones(2)
    one, other = new_ref(memory), new_ref(array)
    memory[:] = 5
    jit(lambda x: x + 1, donate_argnums=0)(array)
    assert one[...].tolist() == [0, 0] and other[...].tolist() == [1, 1]


def test_a_program_is_written_down_once_for_all_references_of_a_type():
    written = []

    @jit
    def f(ref, x):
        written.append(x)
        ref[...] += x

    for size in [2, 2, 3]:
        ref = new_ref(jnp.zeros(size))
        for _ in range(5):
            f(ref, 1.0)
        assert ref[...].tolist() == [5.0] * size
    assert len(written) == 2


def test_a_program_is_not_kept_for_a_reference_that_ends():
    here = []
    add_one = jit(lambda: here[-1].addupdate(1.0))

    def f(x):
        here.append(new_ref(x))
        add_one()
        return here[-1][...]

    assert [jit(f)(1.0), jit(lambda x: f(x) * 2)(2.0), f(3.0)] == [2, 6, 4]
    assert minijax.grad(f)(4.0) == 1


def test_static_donated_and_named_arguments_beside_references():
    @jit
    def swapped(ref, x, scale):
        before = ref[...]
        ref[...] = x * scale
        return before

    f = jit(swapped, static_argnums=2, donate_argnums=1)
    ref = new_ref(jnp.zeros(2))
    assert f(ref, jnp.ones(2), 3.0).tolist() == [0, 0]
    assert f(ref, x=jnp.ones(2), scale=4.0).tolist() == [3, 3]
    assert ref[...].tolist() == [4, 4]


def test_jaxprs_have_inputs_and_results_instead():
    ref = new_ref(1.0)

    def f(box, x):
        box[...] = box[...] * x
        return ref[...]

    jaxpr = minijax.make_jaxpr(f)(new_ref(2.0), jnp.float32(3))
    text = "{ lambda a:f32[]; b:f32[] c:f32[]. let d:f32[] = mul b c in (a, d, a) }"
    assert str(jaxpr) == text and jaxpr.consts == [1.0]
    assert minijax.eval_shape(f, ref, 1.0).shape == ()


def test_vmap_reads_what_is_shared_and_writes_what_is_mapped():
    shared, own = new_ref(2.0), new_ref(jnp.zeros((2, 3)))

    def f(x, own, shared):
        read = lax.cond(x > 0, lambda: shared[...], lambda: 1.0)
        read = lax.scan(lambda c, _: (c * shared[...], None), read, length=1)[0]
        own[...] = own[...] + jit(lambda: shared[...] * read)() * x

    minijax.vmap(f, (0, 1, None))(jnp.arange(3.0), own, shared)
    assert own[0].tolist() == own[1].tolist() == [0, 8, 16]


def test_a_while_loop_of_examples_that_end_one_by_one():
    def f(x):
        box, steps = new_ref(x), new_ref(0)

        def step(i):
            box[...] *= 2.0
            steps[...] += 1
            return i + 1

        lax.while_loop(lambda i: box[...] < 50, step, 0)
        return box[...], steps[...]

    values, steps = minijax.vmap(f)(jnp.array([1.0, 30.0, 60.0]))
    assert values.tolist() == [64, 60, 60] and steps.tolist() == [6, 1, 0]


# References that only the backward pass writes to.


@minijax.custom_vjp
def stash(ref, x):
    return x


def _stash_bwd(ref, cotangent):
    ref[...] = swap(ref, ..., cotangent) * 0.0 + cotangent
    return None, cotangent


stash.defvjp(lambda ref, x: (x, ref), _stash_bwd)


def _sine_of_stash(ref, x):
    return jnp.sin(stash(ref, jnp.sin(stash(ref, x * 2.0))))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: minijax.grad(f, 1),
        lambda f: minijax.grad(jit(f), 1),
        lambda f: jit(minijax.grad(f, 1)),
        lambda f: jit(minijax.grad(jit(jit(f)), 1)),
        lambda f: minijax.grad(minijax.checkpoint(f), 1),
        lambda f: lambda ref, x: minijax.value_and_grad(lambda x: f(ref, x))(x)[1],
        lambda f: lambda ref, x: minijax.grad(jit(lambda x: f(ref, x)))(x),
        lambda f: lambda ref, x: minijax.vjp(lambda x: f(ref, x), x)[1](1.0)[0],
    ],
)
def test_a_backward_rule_writes_to_a_reference(transform):
    ref = new_ref(0.0)
    for x in (0.3, 0.7):
        slope = transform(_sine_of_stash)(ref, x)
        inner = np.cos(np.sin(2 * x)) * np.cos(2 * x)
        np.testing.assert_allclose(slope, 2 * inner, rtol=1e-5)
        np.testing.assert_allclose(ref[...], inner, rtol=1e-5)


def test_jvp_of_references():
    def f(ref, x):
        ref[...] = ref[...] ** 3 * x
        return ref[...] + x, 5

    ref, direction = new_ref(2.0), new_ref(1.0)
    out, slope, aux = minijax.jvp(f, (ref, 1.0), (direction, 0.5), has_aux=True)
    assert (out, slope, aux, ref[...], direction[...]) == (9, 16.5, 5, 8, 16)


# What is refused, and with which words.


def _with(value, act):
    return lambda: act(new_ref(value))


def _escape(ref, transform):
    return transform(lambda x: (ref.__setitem__(..., x), x)[1])


REFUSED = {
    "dtype": (_with(1, lambda r: set(r, ..., 1.5)), ValueError, "Invalid dtype"),
    "shape": (_with(jnp.ones(2), lambda r: set(r, ..., 1.0)), ValueError, "Invalid sh"),
    "place": (_with(jnp.ones(2), lambda r: r[2]), ValueError, "idx=2, dim=2"),
    "array": (_with(1.0, jnp.sin), TypeError, "Ref"),
    "operand": (_with(1.0, lambda r: r + 1), TypeError, "unsupported"),
    "sum": (_with(1.0, lambda r: jnp.ones(2) + r), TypeError, "Ref"),
    "numpy": (_with(jnp.ones(2), np.asarray), TypeError, r"ref\[...\] reads"),
    "list": (_with(jnp.ones(2), list), TypeError, "not iterable"),
    "twice": (_with(1.0, new_ref), TypeError, "references to references"),
    "tree": (lambda: new_ref({"a": 1.0}), TypeError, "dict"),
    "kind": (lambda: new_ref(1.0, kind="?"), ValueError, "no_grad_no_remat"),
    "no ref": (lambda: get(jnp.ones(2), 0), TypeError, "takes a reference"),
    "frozen": (_with(1.0, lambda r: (freeze(r), r[...])), ValueError, "frozen"),
    "freed": (_with(1.0, lambda r: (free_ref(r), free_ref(r))), ValueError, "freed"),
    "freeze argument": (_with(1.0, jit(freeze)), ValueError, "the function that made"),
    "freeze outer": (
        _with(1.0, lambda r: jit(lambda: freeze(r))()),
        ValueError,
        "the function that made",
    ),
    "returned": (
        lambda: jit(lambda x: {"a": new_ref(x)})(1.0),
        ValueError,
        r"traced for jit returned a mutable array reference .* result\['a'\]",
    ),
    "returned by scan": (
        lambda: lax.scan(lambda c, _: (new_ref(c), None), 1.0, length=2),
        ValueError,
        "traced for scan returned",
    ),
    "carried": (
        _with(1.0, lambda r: lax.scan(lambda c, _: (c, None), r, length=2)),
        ValueError,
        "carry",
    ),
    "while": (
        _with(1.0, lambda r: lax.while_loop(lambda c: True, lambda c: c, r)),
        TypeError,
        "Ref",
    ),
    "condition": (
        _with(1, lambda r: lax.while_loop(lambda c: swap(r, ..., 1) > c, int, 0)),
        NotImplementedError,
        "cond_fun writes",
    ),
    "two names": (
        _with(1.0, lambda r: jit(lambda a, b: None)(r, r)),
        ValueError,
        "appeared at both a and b",
    ),
    "two names of vmap": (
        _with(jnp.ones(2), lambda r: minijax.vmap(lambda a, b: None)(r, r)),
        ValueError,
        "appeared at both a and b",
    ),
    "two names of a rule": (_with(1.0, lambda r: stash(r, r)), ValueError, "both"),
    "closure": (
        _with(1.0, lambda r: jit(lambda a: a[...] + r[...])(r)),
        ValueError,
        "both closed over and passed as the argument a",
    ),
    "closure of cond": (
        _with(1.0, lambda r: lax.cond(True, lambda a: r[...], lambda a: 1.0, r)),
        ValueError,
        "both closed over and passed as the argument a",
    ),
    "grad": (_with(1.0, minijax.grad(lambda r: r[...])), TypeError, "argument r"),
    "moving": (
        _with(1.0, lambda r: _escape(r, minijax.grad)(1.0)),
        ValueError,
        "Move the array reference to be an argument of the differentiated",
    ),
    "moving in jit": (
        _with(1.0, lambda r: _escape(r, lambda f: minijax.grad(jit(f)))(1.0)),
        ValueError,
        "differentiated value",
    ),
    "moving in scan": (
        _with(
            1.0,
            lambda r: _escape(
                r,
                lambda f: minijax.grad(
                    lambda x: lax.scan(lambda c, _: (f(c), None), x, length=2)[0]
                ),
            )(1.0),
        ),
        ValueError,
        "differentiated value",
    ),
    "mapped": (
        _with(1.0, lambda r: _escape(r, minijax.vmap)(jnp.ones(2))),
        ValueError,
        "unbatched array reference",
    ),
    "mapped in jit": (
        _with(1.0, lambda r: _escape(r, lambda f: minijax.vmap(jit(f)))(jnp.ones(2))),
        ValueError,
        "unbatched array reference",
    ),
    "shared": (
        _with(
            1.0,
            lambda r: minijax.vmap(lambda x, r: set(r, ..., x), (0, None))(
                jnp.ones(2), r
            ),
        ),
        ValueError,
        "unbatched array reference",
    ),
    "pmap": (
        _with(1.0, lambda r: minijax.pmap(lambda x: r[...] + x)(jnp.ones(1))),
        NotImplementedError,
        "cannot carry its array",
    ),
    "backward in scan": (
        _with(
            1.0,
            lambda r: minijax.grad(
                lambda x: lax.scan(lambda c, _: (stash(r, c), None), x, length=2)[0]
            )(1.0),
        ),
        NotImplementedError,
        "cannot carry its array",
    ),
    "lowered": (
        _with(1.0, lambda r: jit(lambda: r[...]).lower()),
        NotImplementedError,
        "references from outside",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    act, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        act()


def test_a_reference_that_has_left_its_function_is_refused():
    left = []
    jit(lambda x: left.append(new_ref(x)))(1.0)
    with pytest.raises(minijax.errors.UnexpectedTracerError, match="out of reach"):
        left[0][...]
    with pytest.raises(minijax.errors.UnexpectedTracerError, match="out of reach"):
        jit(lambda: left[0][...])()


def test_a_call_that_fails_gives_back_what_it_was_lent():
    ref = new_ref(1.0)

    @jit
    def fail(box):
        box[...] = 2.0
        raise KeyError("no")

    with pytest.raises(KeyError):
        fail(ref)
    ref[...] += 1.0
    assert ref[...] == 2


def test_residuals_that_are_references_have_to_be_arguments():
    strange = minijax.custom_vjp(lambda x: x)
    strange.defvjp(lambda x: (x, new_ref(x)), lambda ref, g: (g,))
    with pytest.raises(ValueError, match="none of its arguments"):
        minijax.grad(strange)(1.0)
