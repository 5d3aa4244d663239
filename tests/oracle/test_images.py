"""Images, densities, hypergeometric functions and harmonics beside JAX."""

import functools
import itertools
from functools import partial

import jax
import numpy as np
import pytest

import minijax

from .raised import raised
from .test_linalg import agree

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.normal(size=(5, 7, 2)).astype("f4")
NAMES = "nearest linear cubic lanczos3 lanczos5 cubic-pytorch area".split()


@pytest.mark.parametrize("method", NAMES)
def test_resize(method):
    for shape, smooth in itertools.product([(8, 3, 2), (5, 7, 1)], [True, False]):
        how = {"method": method, "antialias": smooth}

        def resized(m, shape=shape, how=how):
            return m.jit(lambda x: m.image.resize(x, shape, **how))

        agree(resized, IMAGE, rtol=1e-5)
    agree(resized, IMAGE.astype("i4"), rtol=1e-5)

    def both(m):
        slope = m.grad(lambda x: (resized(m)(x) ** 2).sum())
        return m.jit(m.vmap(lambda x: (resized(m)(x), slope(x))))

    agree(both, np.stack([IMAGE, IMAGE + 1]), rtol=1e-5)


@pytest.mark.parametrize("method", NAMES[1:])
def test_scale_and_translate(method):
    # No sample falls on a corner of a filter, where the slope is a matter of last bits.
    scale, move = np.array([1.47, 0.43], "f4"), np.array([-1.21, 2.53], "f4")

    def moved(m):
        def moved(x, scale, move):
            axes = (1, -3)
            return m.image.scale_and_translate(x, (6, 9, 2), axes, scale, move, method)

        def slopes(*xs):
            return m.grad(lambda *xs: (moved(*xs) ** 2).sum(), (1, 2))(*xs)

        return m.jit(lambda *xs: (moved(*xs), slopes(*xs)))

    agree(moved, IMAGE, scale, move, rtol=1e-4)


def test_what_images_refuse():
    ones = np.ones((3, 3), "f4")
    for mistake in (
        lambda m: m.image.resize(m.numpy.asarray(ones), (2, 2), "best"),
        lambda m: m.image.scale_and_translate(
            m.numpy.asarray(ones), (2, 2, 1), (0,), [1.0], [0.0], "linear"
        ),
    ):
        ours, theirs = (raised(partial(mistake, m)) for m in (minijax, jax))
        assert ours == theirs


def points(*shape):
    return np.random.default_rng(1).normal(size=shape).astype("f4")


@pytest.mark.parametrize("shape", [(9,), (2, 11)])
def test_density(shape):
    data, where = points(*shape), points(*shape[:-1], 3)
    shares = np.abs(points(shape[-1]))
    for bandwidth, weights in ((None, None), ("silverman", shares), (0.5, shares)):

        def density(m, bandwidth=bandwidth, weights=weights):
            def parts(data, where):
                kde = m.scipy.stats.gaussian_kde(data, bandwidth, weights)
                d = data.ndim
                normal = np.ones(d, "f4"), np.eye(d, dtype="f4")
                found = [kde(where), kde.pdf(where), kde.logpdf(where)]
                found += [kde.integrate_gaussian(*normal), kde.integrate_kde(kde)]
                found += [kde.integrate_box_1d(-1.0, 0.5)] if d == 1 else []
                return found, m.tree.leaves(kde), kde.d, kde.n

            return lambda *xs: jax.tree.leaves(parts(*xs))

        agree(density, data, where, rtol=1e-4)

    def total(m):
        return lambda data: m.scipy.stats.gaussian_kde(data).logpdf(where).sum()

    agree(lambda m: m.jit(m.grad(total(m))), data, rtol=1e-3)

    def sampled(m):
        kde = m.scipy.stats.gaussian_kde
        return lambda data: kde(data).resample(m.random.key(3), (4,))

    agree(sampled, data, rtol=1e-4)


PARAMETERS = [
    (1.0, 1.0, 2.0), (0.5, 0.7, 1.9), (2.5, -0.3, 1.2), (-3.0, 1.5, 0.7),
    (1.0, 2.0, 1.5), (0.3, 0.4, 1.7), (2.0, 1.5, 4.5),
]  # fmt: skip


@functools.cache  # compiled once for all parameters
def hypergeometric(m):
    both = m.value_and_grad(m.scipy.special.hyp2f1, 3)
    return m.jit(m.vmap(both, (None, None, None, 0)))


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_hypergeometric_function(parameters):
    x = np.array([-0.8, -0.5, -1e-3, 0.0, 0.2, 0.6, 0.88])
    with minijax.enable_x64(), jax.enable_x64(True):
        agree(hypergeometric, *parameters, x, rtol=1e-8)
        scipy = pytest.importorskip("scipy.special")
        whole = np.array([-40.0, -3.0, -1.5, 0.93, 0.99, 0.9999])
        ours = np.asarray(minijax.scipy.special.hyp2f1(*parameters, whole))
        np.testing.assert_allclose(ours, scipy.hyp2f1(*parameters, whole), rtol=1e-9)
        for place in range(3):  # of JAX's three only one is right everywhere
            step = np.eye(4)[place] * 1e-5
            more, less = (
                scipy.hyp2f1(*(np.array([*parameters, 0.4]) + side * step))
                for side in (1, -1)
            )
            slope = minijax.grad(minijax.scipy.special.hyp2f1, place)(*parameters, 0.4)
            np.testing.assert_allclose(slope, (more - less) / 2e-5, rtol=1e-5)


def test_harmonics():
    n, m_ = np.array([0, 1, 1, 2, 4, 5, 9]), np.array([0, 0, -1, 2, -3, 5, 0])
    theta, phi = points(7) % np.pi, points(7) % np.pi

    def function(m):
        def parts(theta, phi):
            y = m.scipy.special.sph_harm_y(
                m.numpy.asarray(n), m.numpy.asarray(m_), theta, phi, n_max=9
            )
            return y

        def slopes(*xs):
            return m.grad(lambda *xs: (parts(*xs).real ** 3).sum(), (0, 1))(*xs)

        return m.jit(lambda *xs: (parts(*xs), slopes(*xs)))

    agree(function, theta, phi, rtol=1e-4)
