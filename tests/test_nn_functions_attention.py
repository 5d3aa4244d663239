"""Dot-product attention, beside a loop over queries, and its masks."""

import itertools

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jit, nn, vmap

RNG = np.random.default_rng(0)
SIZES = 2, 5, 6, 4, 8  # B, T, S, N, H


def numbers(heads=4, dtype="float32"):
    b, t, s, n, h = SIZES
    shapes = (b, t, n, h), (b, s, heads, h), (b, s, heads, h)
    return [jnp.array(RNG.normal(size=shape), dtype) for shape in shapes]


def by_loops(q, k, v, scale, allowed, bias):
    b, t, s, n, h = SIZES
    q, k, v = (np.array(x, "float64") for x in (q, k, v))
    out = np.zeros((b, t, n, h))
    for i, j, head in itertools.product(range(b), range(t), range(n)):
        column = head // (n // k.shape[2])
        scores = k[i, :, column] @ q[i, j, head] * scale + bias[i, head, j]
        scores = np.where(allowed[i, head, j], scores, -2.4e38)
        shares = np.exp(scores - scores.max())
        out[i, j, head] = shares / shares.sum() @ v[i, :, column]
    return out


def masks():
    b, t, s, n, _ = SIZES
    rows, columns = np.arange(t)[:, None], np.arange(s)[None]
    given = RNG.random((b, 1, t, s)) > 0.4
    lengths = np.array([3, 6], "int32")
    yield {}, np.ones((t, s), bool)
    yield {"is_causal": True}, rows >= columns
    yield {"local_window_size": 1}, abs(rows - columns) <= 1
    window = (rows - columns <= 2) & (columns <= rows)
    yield {"local_window_size": (2, 0)}, window
    yield {"mask": given}, given
    yield {"key_value_seq_lengths": lengths}, columns < lengths[:, None, None, None]
    yield {"mask": given, "is_causal": True}, given & (rows >= columns)


@pytest.mark.parametrize("heads", [4, 2, 1])
@pytest.mark.parametrize("how, allowed", [*masks()])
def test_means_are_those_of_a_loop(how, allowed, heads):
    b, t, s, n, h = SIZES
    q, k, v = numbers(heads)
    bias = RNG.normal(size=(1, n, t, s)).astype("float32")
    allowed = np.broadcast_to(allowed, (b, n, t, s))
    for shift, scale in ((np.zeros_like(bias), None), (bias, 0.2)):
        wanted = by_loops(
            q, k, v, scale or h**-0.5, allowed, np.broadcast_to(shift, allowed.shape)
        )

        def layer(q, k, v, shift=shift, scale=scale):
            options = {"bias": shift, "scale": scale, **how}
            return nn.dot_product_attention(q, k, v, **options)

        for f in (layer, jit(layer)):
            np.testing.assert_allclose(f(q, k, v), wanted, rtol=1e-4, atol=1e-5)
        many = vmap(layer, (None, None, 0))(q, k, jnp.stack([v, 2 * v]))
        np.testing.assert_allclose(many[1], 2 * wanted, rtol=1e-4, atol=1e-5)


def test_what_is_not_real_is_zero():
    q, k, v = numbers()
    lengths = jnp.array([2, 5], "int32")
    means = nn.dot_product_attention(q, k, v, query_seq_lengths=lengths)
    plain = nn.dot_product_attention(q, k, v)
    assert (means[0, 2:] == 0).all() and np.array_equal(means[1], plain[1])


def test_a_query_that_sees_nothing_has_finite_gradients():
    q, k, v = numbers()
    nothing = jnp.zeros((2, 1, 5, 6), bool)

    def total(*args):
        return (nn.dot_product_attention(*args, mask=nothing) ** 2).sum()

    for slope in grad(total, (0, 1, 2))(q, k, v):
        assert np.isfinite(slope).all()


def test_residuals_and_three_axes():
    q, k, v = numbers()
    means, sums = nn.dot_product_attention(q, k, v, return_residual=True)
    scores = np.einsum("btnh,bsnh->btns", q, k) / np.sqrt(8)
    np.testing.assert_allclose(sums, np.log(np.exp(scores).sum(-1)), rtol=1e-5)
    alone = nn.dot_product_attention(q[0], k[0], v[0])
    np.testing.assert_allclose(alone, means[0], rtol=1e-5, atol=1e-6)


@pytest.mark.of_the_cpu("asks for the steps of the CPU")
def test_the_whole_layer_is_two_products_with_a_kernel_between():
    layer = jit(lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True))
    q = jnp.ones((1, 64, 1, 32))
    steps = layer.lower(q, q, q).as_text("steps").splitlines()
    assert sum(" @ " in line for line in steps) == 2 and len(steps) <= 6, steps


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"value": numbers()[2][:, :4]}, r"value shape should be \[2, 6, 4, 8\]"),
        ({"value": numbers(dtype="float16")[2]}, "value dtype should be float32"),
        ({"mask": np.ones((5, 6))}, "mask dtype should be bool, but got float"),
        ({"query_seq_lengths": np.array([1], "int32")}, "query_seq_lengths shape"),
        ({"query_seq_lengths": np.array([1, 2.0])}, "query_seq_lengths dtype"),
        ({"implementation": "fast"}, "Unsupported implementation option: fast"),
        (
            {
                "query": numbers()[0][:, :, :3],
                "key": numbers(2)[1],
                "value": numbers(2)[1],
            },
            "multiple of key/value heads, but got 3 vs 2",
        ),
    ],
)
def test_mistakes(wrong, words):
    q, k, v = numbers()
    with pytest.raises(ValueError, match=words):
        nn.dot_product_attention(**{"query": q, "key": k, "value": v} | wrong)


def test_there_is_no_cudnn():
    q, k, v = numbers()
    with pytest.raises(NotImplementedError, match="There is no cuDNN here"):
        nn.dot_product_attention(q, k, v, implementation="cudnn")
