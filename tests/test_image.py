"""Images of other sizes, densities of points, a series with three parameters."""

import math

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, image, jit, random, tree
from minijax.image import ResizeMethod
from minijax.numpy import linalg
from minijax.scipy.special import hyp2f1, sph_harm_y
from minijax.scipy.stats import gaussian_kde
from minijax.test_util import check_grads

RAMP = jnp.arange(12.0).reshape(3, 4)
METHODS = [method for method in ResizeMethod if method is not ResizeMethod.NEAREST]


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_image_stays_constant_and_the_size_is_kept(method):
    for shape in ((6, 2), (1, 9), (3, 4)):
        found = image.resize(jnp.full((3, 4), 2.0), shape, method)
        np.testing.assert_allclose(found, np.full(shape, 2.0), rtol=1e-5)
    assert image.resize(RAMP, (3, 4), method).tolist() == RAMP.tolist()


def test_linear_and_nearest_by_hand():
    row = jnp.array([0, 4])
    assert image.resize(row, (4,), "linear").tolist() == [0, 1, 3, 4]
    assert image.resize(row, (4,), "nearest").tolist() == [0, 0, 4, 4]
    assert image.resize(jnp.arange(4), (2,), "nearest").tolist() == [1, 3]
    assert image.resize(jnp.arange(4.0), (2,), "area").tolist() == [0.5, 2.5]


def test_an_image_moves_by_whole_pixels():
    moved = jit(
        lambda by: image.scale_and_translate(RAMP, (3, 4), (1,), [1.0], by, "linear")
    )
    assert (
        moved(jnp.array([1.0])).tolist()
        == np.pad(RAMP, ((0, 0), (1, 0)))[:, :4].tolist()
    )

    def total(scale, by):
        return image.scale_and_translate(RAMP, (5, 5), (0, 1), scale, by, "cubic").sum()

    check_grads(total, (jnp.array([1.3, 0.7]), jnp.array([0.1, 0.2])), 1)


def test_mistakes():
    with pytest.raises(ValueError, match="Unknown resize method"):
        image.resize(RAMP, (2, 2), "sharp")
    with pytest.raises(ValueError, match="shape must have length"):
        image.resize(RAMP, (2, 2, 2), "linear")
    with pytest.raises(ValueError, match="Nearest"):
        image.scale_and_translate(RAMP, (2, 2), (0,), [1.0], [0.0], "nearest")


POINTS = random.normal(random.key(0), (2, 6))


def test_a_density_is_a_mean_of_normal_ones():
    kde = gaussian_kde(POINTS, 0.5)
    gap = POINTS[:, 0, None] - POINTS
    size = np.exp(-0.5 * np.einsum("in,ij,jn->n", gap, kde.inv_cov, gap))
    scale = 2 * math.pi * np.sqrt(np.linalg.det(kde.covariance))
    np.testing.assert_allclose(kde(POINTS[:, 0]), [size.mean() / scale], rtol=1e-4)
    np.testing.assert_allclose(jnp.exp(kde.logpdf(POINTS)), kde.pdf(POINTS), rtol=1e-4)
    again = tree.unflatten(tree.structure(kde), tree.leaves(kde))
    assert again.d == 2 and again.n == 6 and len(tree.leaves(kde)) == 5
    same = kde.integrate_kde(kde), kde.integrate_gaussian(jnp.zeros(2), jnp.eye(2))
    assert all(0 < x < 1 for x in same)
    with pytest.raises(AttributeError, match="neff"):
        kde.neff = 3
    with pytest.raises(ValueError, match="dimension 3"):
        kde(jnp.ones((3, 2)))
    with pytest.raises(ValueError, match="bw_method"):
        gaussian_kde(POINTS, "wide")


@pytest.mark.parametrize("x", [-30.0, -0.7, 0.3, 0.95, 0.999])
def test_known_values_of_the_hypergeometric_function(x):
    np.testing.assert_allclose(-x * hyp2f1(1, 1, 2, x), math.log1p(-x), rtol=2e-5)
    np.testing.assert_allclose(hyp2f1(0.5, 3, 3, x), (1 - x) ** -0.5, rtol=2e-5)
    np.testing.assert_allclose(
        hyp2f1(-2, 1.5, 1, x), 1 - 3 * x + 1.875 * x * x, rtol=1e-4
    )


def test_slopes_of_the_hypergeometric_function():
    check_grads(hyp2f1, (0.4, 1.3, 2.1, 0.35), 1)
    assert hyp2f1(1.0, 1.0, 3.0, 1.0) == pytest.approx(2, rel=1e-5)


def test_harmonics_of_degree_one():
    theta, phi = jnp.array([0.3, 1.2]), jnp.array([0.5, 2.0])
    flat = sph_harm_y(jnp.array(1), jnp.array(0), theta, phi)
    np.testing.assert_allclose(
        flat, math.sqrt(3 / 4 / math.pi) * np.cos(theta), rtol=1e-5
    )
    turned = sph_harm_y(jnp.array(1), jnp.array(-1), theta, phi, n_max=1)
    size = math.sqrt(3 / 8 / math.pi) * np.sin(theta)
    np.testing.assert_allclose(turned, size * np.exp(-1j * phi), rtol=1e-5)


def test_a_determinant_by_reflections():
    for dtype in ("float32", "complex64"):
        a = random.normal(random.key(1), (2, 4, 4), dtype)
        for x, y in zip(linalg.slogdet(a, method="qr"), linalg.slogdet(a)):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)
    slope = grad(lambda a: linalg.slogdet(a, method="qr")[1].sum())
    a = random.normal(random.key(1), (4, 4))
    np.testing.assert_allclose(slope(a), np.linalg.inv(a).T, rtol=1e-3, atol=1e-3)
