"""Softmax and its relatives: overflow, masks, axes, derivatives."""

import itertools

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jit, jvp, nn, vmap
from minijax.test_util import check_grads

X = jnp.array(np.random.default_rng(0).normal(size=(3, 4)), "float32")
MASK = jnp.array([[1, 0, 1, 1], [1, 1, 1, 1], [0, 1, 0, 0]], bool)
AXES = [0, 1, -1, None, (0, 1)]


@pytest.mark.parametrize("axis, mask", [*itertools.product(AXES, [None, MASK])])
def test_shares_sum_to_one_and_move_with_nothing_but_differences(axis, mask):
    shares = nn.softmax(X, axis, where=mask)
    np.testing.assert_allclose(shares.sum(axis), 1, rtol=1e-6)
    np.testing.assert_allclose(nn.softmax(X + 300, axis, mask), shares, atol=2e-5)
    np.testing.assert_allclose(
        jnp.exp(nn.log_softmax(X, axis, mask)), shares, rtol=1e-5, atol=1e-7
    )
    if mask is not None:
        assert (np.array(shares)[~np.array(mask)] == 0).all()


@pytest.mark.parametrize("axis", AXES)
def test_the_stated_derivative_is_that_of_the_composition(axis):
    def composed(x):
        return jnp.exp(x) / jnp.exp(x).sum(axis, keepdims=True)

    t = jnp.cos(X)
    for f, g in ((nn.softmax, composed), (jit(nn.softmax, static_argnums=1), composed)):
        ours = jvp(lambda x, f=f: f(x, axis), (X,), (t,))[1]
        np.testing.assert_allclose(ours, jvp(g, (X,), (t,))[1], atol=1e-6)
    check_grads(lambda x: nn.softmax(x, axis), (X,), order=2, atol=2e-2, rtol=2e-2)
    check_grads(lambda x: nn.log_softmax(x, axis), (X,), order=2, atol=3e-2, rtol=3e-2)


def test_scores_that_overflow():
    for scores in ([1.0, 2.0, 100.0], [-200.0, -201.0, -202.0], [1e38, -1e38, 0.0]):
        scores = jnp.array(scores)
        for f in (nn.softmax, nn.log_softmax):
            for g in (f, grad(lambda x, f=f: f(x)[0]), vmap(grad(nn.logsumexp))):
                x = (
                    scores[:, None]
                    if g not in (f,) and g.__name__ != "<lambda>"
                    else scores
                )
                assert not np.isnan(g(x)).any()
    np.testing.assert_allclose(nn.log_softmax(jnp.array([1.0, 2, 100])), [-99, -98, 0])


def test_logsumexp():
    assert nn.logsumexp(jnp.array([1000.0, 1000.0])) == np.float32(1000 + np.log(2))
    assert nn.logsumexp(jnp.array([-jnp.inf, -jnp.inf])) == -np.inf
    assert grad(nn.logsumexp)(jnp.array([-jnp.inf, 0.0])).tolist() == [0, 1]
    size, sign = nn.logsumexp(X, 1, b=-jnp.ones(4), return_sign=True, keepdims=True)
    assert size.shape == (3, 1) and (sign == -1).all()
    np.testing.assert_allclose(size, nn.logsumexp(X, 1, keepdims=True), rtol=1e-6)
    assert np.isnan(nn.logsumexp(X, b=-1.0))
    z = X + 1j * X
    np.testing.assert_allclose(nn.logsumexp(z), np.log(np.exp(z).sum()), rtol=1e-5)
    kept = nn.logsumexp(X, 1, where=MASK)
    wanted = [np.log(np.exp(x[m]).sum()) for x, m in zip(np.array(X), np.array(MASK))]
    np.testing.assert_allclose(kept, wanted, rtol=1e-5)
    np.testing.assert_allclose(
        nn.logmeanexp(X, 1, where=MASK), kept - np.log(MASK.sum(1)), rtol=1e-5
    )


@pytest.mark.parametrize("algorithm", ["fast", "stable"])
def test_standardize(algorithm):
    y = nn.standardize(X, (0, 1), epsilon=0.0, algorithm=algorithm)
    assert abs(y.mean()) < 1e-6 and abs(y.std() - 1) < 1e-5
    same = nn.standardize(X, mean=0.0, variance=1.0, epsilon=0.0, algorithm=algorithm)
    np.testing.assert_allclose(same, X, rtol=1e-6)
    with pytest.raises(ValueError, match="Expected 'fast' or 'stable'"):
        nn.standardize(X, algorithm="other")
