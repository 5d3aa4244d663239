"""References beside real JAX: what programs return and write, and what is refused."""

import jax
import numpy as np
import pytest

import minijax
from tests.ref_programs import programs, stacks

OURS, THEIRS = programs(minijax), programs(jax)
STACKS = stacks(minijax), stacks(jax)
# JAX 0.10.2 has no rule that splits a cond with references, and forgets in_axes=1.
WITHOUT = "nested", "vmap"


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("stack", ["jit", "jit grad", "jvp", "linearize"])
def test_programs_return_the_same(name, stack):
    ours = STACKS[0][stack](OURS[name][0])
    theirs = STACKS[1][stack](THEIRS[name][name in WITHOUT])
    found, wanted = jax.tree.leaves(ours(0.8)), jax.tree.leaves(theirs(0.8))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5)


def _log(top):
    jnp, lax = top.numpy, top.lax

    def closed_over(run):
        def act():
            log = top.new_ref(jnp.zeros(4))

            def step(i, x):
                log[i] = lax.stop_gradient(x)
                log[0] += 1.0
                return x * 1.5

            return run(step), log[...]

        return act

    def argument(run):
        def act():
            log, count = top.new_ref(jnp.arange(4.0)), top.new_ref(jnp.int32(0))

            def step(log, count, x):
                log[1:3] = log[1:3] * x
                log[3] = top.ref.swap(log, 0, x)
                count[...] += 1
                return x + log[3]

            return run(step, log, count), log[...], count[...]

        return act

    def mapped():
        log = top.new_ref(jnp.ones((2, 3)))

        def one(row, x):
            row[1] = x
            return row[0] * x

        return top.vmap(one)(log, jnp.arange(2.0)), log[...]

    def moved():
        place, speed = top.new_ref(jnp.float32(2)), top.new_ref(jnp.float32(1))

        def f(ref, x):
            ref[...] = ref[...] ** 3 * x
            return ref[...]

        out = top.jvp(f, (place, jnp.float32(2)), (speed, jnp.float32(0.5)))
        return out, place[...], speed[...]

    def stashed(wrap):
        @top.custom_vjp
        def stash(ref, x):
            return x

        def backward(ref, g):
            ref[...] = g
            return None, g

        stash.defvjp(lambda ref, x: (x, ref), backward)

        def f(ref, x):
            return jnp.sin(stash(ref, jnp.sin(stash(ref, x))))

        def act():
            ref = top.new_ref(jnp.float32(0))
            return wrap(f)(ref, jnp.float32(0.5)), ref[...]

        return act

    x = jnp.float32(0.5)
    return {
        "call": closed_over(lambda step: step(1, step(2, x))),
        "jit": closed_over(lambda step: top.jit(step)(2, x)),
        "fori": closed_over(lambda step: lax.fori_loop(0, 3, step, x)),
        "grad": closed_over(lambda step: top.grad(lambda x: step(1, x))(x)),
        "grad jit": closed_over(
            lambda step: top.grad(top.jit(lambda x: step(1, x)))(x)
        ),
        "cond": closed_over(
            lambda step: lax.cond(x < 1, lambda x: step(1, x), lambda x: step(2, x), x)
        ),
        "scan": closed_over(
            lambda step: lax.scan(lambda c, i: (step(i, c), c), x, jnp.arange(3))
        ),
        "argument": argument(lambda step, log, count: step(log, count, x)),
        "argument of jit": argument(lambda step, *refs: top.jit(step)(*refs, x)),
        "argument of cond": argument(
            lambda step, log, count: lax.cond(
                True, lambda a, b: step(a, b, x), lambda a, b: x, log, count
            )
        ),
        "beside grad": argument(
            lambda step, log, count: top.grad(
                lambda x: x * lax.stop_gradient(step(log, count, lax.stop_gradient(x)))
            )(x)
        ),
        "vmap": mapped,
        "jvp": moved,
        "stash": stashed(lambda f: top.grad(f, 1)),
        "stash jit": stashed(lambda f: top.grad(top.jit(f), 1)),
        "jit stash": stashed(lambda f: top.jit(top.grad(f, 1))),
    }


@pytest.mark.parametrize("name", _log(minijax))
def test_what_is_written_is_the_same(name):
    found, wanted = _log(minijax)[name](), _log(jax)[name]()
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    for one, other in pairs:
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


REFUSED = {
    "dtype": lambda top, ref: ref.__setitem__(0, 1),
    "shape": lambda top, ref: ref.__setitem__(..., 1.0),
    "place": lambda top, ref: ref[3],
    "operand": lambda top, ref: ref + 1,
    "array": lambda top, ref: top.numpy.sin(ref),
    "returned": lambda top, ref: top.jit(lambda r: {"a": r})(ref),
    "returned by scan": lambda top, ref: top.lax.scan(
        lambda c, _: (top.new_ref(c), None), 1.0, length=2
    ),
    "twice": lambda top, ref: top.jit(lambda a, b: None)(ref, ref),
    "twice in vmap": lambda top, ref: top.vmap(lambda a, b: None)(ref, ref),
    "closure": lambda top, ref: top.jit(lambda a: a[0] + ref[0])(ref),
    "tree": lambda top, ref: top.new_ref({"a": 1.0}),
    "left": lambda top, ref: _left(top)[0][...],
}


def _left(top):
    left = []
    top.jit(lambda x: left.append(top.new_ref(x)))(1.0)
    return left


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_both_with_one_class(name):
    errors = []
    for top in (minijax, jax):
        with pytest.raises(Exception) as caught:
            REFUSED[name](top, top.new_ref(top.numpy.zeros(3)))
        errors.append(type(caught.value).__name__)
    assert errors[0] == errors[1]


@pytest.mark.parametrize("transform", ["grad", "vmap"])
def test_what_may_not_get_out_is_refused_by_both(transform):
    for top in (minijax, jax):
        ref, xs = top.new_ref(0.0), top.numpy.ones(2)
        wrapped = getattr(top, transform)(
            lambda x, ref=ref: (ref.__setitem__(..., x), x)[1]
        )
        with pytest.raises(Exception, match="Move the array reference"):
            wrapped(xs if transform == "vmap" else 1.0)


# Programs that are compiled ahead of time, with references among their arguments.


def _ahead(top):
    jnp = top.numpy

    def scaled(ref, x):
        ref[...] = ref[...] * x
        return {"first": ref[0] + 1}

    def moved(to, source):
        to[...] = source[...]
        source[0] = 5.0

    def refs():
        return top.new_ref(jnp.arange(3.0)), top.new_ref(jnp.ones(3))

    def one():
        ref, _ = refs()
        compiled = top.jit(scaled).lower(ref, 2.0).compile()
        outs = compiled(ref, 2.0), compiled(ref, 3.0), compiled(refs()[1], 4.0)
        return outs, ref[...]

    def two():
        compiled = top.jit(moved).trace(*refs()).lower().compile()
        one, other = refs()
        return compiled(one, other), one[...], other[...]

    def by_name():
        ref, _ = refs()
        compiled = top.jit(scaled).lower(x=2.0, ref=ref).compile()
        return compiled(ref=ref, x=2.0), ref[...]

    def other_shape():
        ref, _ = refs()
        top.jit(scaled).lower(ref, 2.0).compile()(top.new_ref(jnp.ones(4)), 2.0)

    return {"one": one, "two": two, "by name": by_name, "shape": other_shape}


@pytest.mark.parametrize("name", ["one", "two", "by name"])
def test_programs_compiled_for_references_write_to_them(name):
    found, wanted = (jax.tree.leaves(_ahead(top)[name]()) for top in (minijax, jax))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_program_compiled_for_references_tells_what_it_returns():
    ref = minijax.new_ref(minijax.numpy.ones(3))
    lowered = minijax.jit(lambda ref: {"first": ref[0]}).lower(ref)
    for stage in (lowered, lowered.compile()):
        assert stage.out_info["first"].shape == ()


def test_a_program_compiled_for_references_refuses_another_shape():
    for top in (minijax, jax):
        with pytest.raises(TypeError, match="float32\\[4\\]"):
            _ahead(top)["shape"]()


# What `vjp` returns: a tree of what it keeps, which adds cotangents to references.


def _pulled(top):
    jnp, ad = top.numpy, top.ad
    weights, x = {"a": jnp.array([3.0, 4.0]), "b": jnp.ones(2)}, jnp.float32(2)

    def f(w, x):
        return jnp.sum(w["a"] * w["a"]) * x, 3 * w["b"]

    def pull(*primals):
        return top.vjp(f, *(primals or (weights, x)))[1]

    cts = jnp.float32(1), jnp.ones(2)

    def into(w):
        ref = top.new_ref(jnp.full(2, 10.0))
        wanted = {"a": ref, "b": ad.DontWant()}, ad.GradValue()
        return [pull(w, x).with_refs(*wanted)(cts) for _ in range(2)], ref[...]

    def emptied():
        found = pull()
        (kept, unused), found.args_res[0] = found.args_res[0], None
        found.args_res[0] = kept * 2, unused
        return found(cts)

    def parts():
        found = pull()
        kinds = [type(leaf).__name__ for leaf in found.args_res[0]]
        return kinds, len(found.args_res)

    def integers():
        ref, found = top.new_ref(x), top.vjp(lambda i, x: i * x, 3, x)[1]
        return found.with_refs(ad.GradValue(), ref)(x)[1], ref[...]

    return {
        "into": lambda: into(weights),
        "into jit": lambda: top.jit(lambda w: into(w)[1])(weights),
        "emptied": emptied,
        "parts": parts,
        "integers": integers,
        "argument of jit": lambda: top.jit(lambda pull: pull(cts))(pull()),
        "result of jit": lambda: top.jit(lambda w: pull(w, x))(weights)(cts),
        "vmap": lambda: top.vmap(lambda ct, p: p((ct, cts[1])), (0, None))(
            jnp.ones(3), pull()
        ),
        "words": lambda: [str(getattr(ad, w)()) for w in vars(ad)],
    }


@pytest.mark.parametrize("name", _pulled(minijax))
def test_cotangents_go_where_they_are_wanted(name):
    found, wanted = _pulled(minijax)[name](), _pulled(jax)[name]()
    if name == "words":
        assert sorted(found) == sorted(wanted)
        return
    pairs = zip(jax.tree.leaves(_named(found)), jax.tree.leaves(_named(wanted)))
    for one, other in pairs:
        assert one == other if isinstance(one, str) else np.allclose(one, other)
    assert len(jax.tree.leaves(_named(found))) == len(jax.tree.leaves(_named(wanted)))


def _named(tree):
    """A tree with the names of words in it: those of the two libraries are others."""
    if isinstance(tree, (list, tuple)):
        return [*map(_named, tree)]
    if isinstance(tree, dict):
        return {key: _named(value) for key, value in tree.items()}
    kind = type(tree).__name__
    return kind if kind in ("GradRef", "DidntWant", "NotNeeded") else tree


def test_with_refs_takes_trees_like_the_arguments():
    with pytest.raises(ValueError, match="trees like the arguments"):
        minijax.vjp(lambda x: x, 1.0)[1].with_refs(1, 2)
    with pytest.raises(Exception):  # noqa: B017, JAX raises that class
        jax.vjp(lambda x: x, 1.0)[1].with_refs(1, 2)
