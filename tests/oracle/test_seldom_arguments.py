"""Arguments that few programs give: the same answer, or the same class of error."""

import pytest

jax = pytest.importorskip("jax")

import numpy as np  # noqa: E402

import minijax  # noqa: E402


class Silent:
    """A function whose text cannot be written."""

    def __call__(self, x):
        return x

    def __repr__(self):
        raise ValueError("no text")


NUMBERS = [
    np.random.default_rng(0).integers(0, 2**16, 200, np.uint16).view(np.float16),
    np.random.default_rng(0).integers(0, 2**32, 200, np.uint32).view(np.float32),
    np.float32([1e-40, 1e-45, 3e-39, -1e-41, 1.17549435e-38, 1.1754942e-38, -0.0]),
    np.float16([6e-8, 1e-7, 3e-5, 6.1e-5, -5e-5, 65504.0, -0.0]),
]


@pytest.mark.parametrize("exponent", [1, 4, 5, 7, 8, 11, 40])
@pytest.mark.parametrize("mantissa", [0, 3, 10, 23, 60])
@pytest.mark.parametrize("numbers", NUMBERS, ids=lambda x: f"{x.dtype}, {x.size}")
def test_reduce_precision(exponent, mantissa, numbers):
    numbers = numbers[~np.isnan(numbers)]  # with no mantissa, JAX makes inf of some
    wanted = np.asarray(jax.lax.reduce_precision(numbers, exponent, mantissa))
    rounded = lambda x: minijax.lax.reduce_precision(x, exponent, mantissa)  # noqa: E731
    for run in (rounded, minijax.jit(rounded)):
        found = np.asarray(run(numbers))
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def window(j, found):
    return j.lax.reduce(np.ones(3, np.float32), np.float32(0), found, (0,))


CALLS = {
    "too many bits": lambda j: j.lax.reduce_precision(1.5, 3, 2**31),
    "no lengths": lambda j: j.lax.fft(np.arange(3), "FFT", ()),
    "no lengths of a half": lambda j: j.lax.fft(np.ones(3, np.float32), "RFFT", ()),
    "a fold in a list": lambda j: window(j, lambda x, y: [x + y]),
    "a fold in a tuple": lambda j: window(j, lambda x, y: (x + y,)),
    "static array": lambda j: j.pmap(
        lambda x, y: x, static_broadcasted_argnums=1
    )(np.ones((1, 3), np.float32), np.arange(3)),
    "text": lambda j: len(repr(j.jit(Silent()))) > 0,
    "options": lambda j: j.jit(np.negative, compiler_options={})(1.0),
    "an unknown option": lambda j: j.jit(lambda x: x).lower(1.0).compile(
        compiler_options={"no_such": 1}
    ),
    "an option of XLA": lambda j: j.jit(lambda x: x).lower(1.0).compile(
        compiler_options={"xla_embed_ir_in_executable": True}
    )(1.0),
    "platforms": lambda j: j.jit(lambda x: x).trace(1.0).lower(
        lowering_platforms=("cpu",)
    ).compile()(1.0),
    "to": lambda j: j.vmap(
        lambda x: j.lax.all_gather(x, "i", to="varying"), axis_name="i"
    )(np.ones(2, np.float32)),
    "to nothing": lambda j: j.vmap(
        lambda x: j.lax.all_gather(x, "i", to="x"), axis_name="i"
    )(np.ones(2, np.float32)),
    "to what is reduced": lambda j: j.vmap(
        lambda x: j.lax.all_gather(x, "i", to="reduced"), axis_name="i"
    )(np.ones(2, np.float32)),
    "walk": lambda j: j.tree.structure([1, (2, None)]).walk(
        lambda children, aux: sum(children), lambda leaf: 2 * leaf, [3, 4]
    ),
    "walk too far": lambda j: j.tree.structure([1, 2]).walk(
        lambda children, aux: 0, lambda leaf: 0, [3, 4, 5]
    ),
    "finfo of keys": lambda j: j.numpy.finfo(j.random.key(0).dtype),
    "version": lambda j: isinstance(j.__version_info__, tuple),
}  # fmt: skip
for name in "is_fully_replicated global_shards addressable_shards committed".split():
    CALLS[name] = lambda j, name=name: j.jit(lambda x: getattr(x, name))(1.0)
for name in ("addressable_data", "on_device_size_in_bytes", "devices"):
    CALLS[name] = lambda j, name=name: j.jit(lambda x: getattr(x, name)(0))(1.0)


def outcome(j, call):
    try:
        return j.tree.flatten(call(j))[0], None
    except Exception as error:
        return None, {kind.__name__ for kind in type(error).__mro__}


@pytest.mark.parametrize("name", CALLS)
def test_seldom_arguments(name):
    ours, refused = outcome(minijax, CALLS[name])
    theirs, wanted = outcome(jax, CALLS[name])
    assert (refused is None) == (wanted is None), (ours, refused, theirs, wanted)
    if wanted:
        assert refused & wanted - {"Exception", "BaseException", "object"}
    else:
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, other)
