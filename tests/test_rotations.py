"""Rotations: conversions against each other, laws, gradients, and refusals."""

import numpy as np
import pytest

import minijax
from minijax import grad, jit, random, vmap
from minijax import numpy as jnp
from minijax.scipy.spatial.transform import Rotation, Slerp

MANY = Rotation.random(random.key(0), 20)
AXES = ["xyz", "zyx", "zxz", "yxy", "XYZ", "ZYX", "ZXZ", "YZY", "xzy", "YXZ"]


def same(a, b, atol=2e-5):
    """Fail unless rotations are the same; quaternions may differ in sign."""
    np.testing.assert_allclose(a.as_matrix(), b.as_matrix(), atol=atol)


def test_forms_lead_back():
    same(Rotation.from_matrix(MANY.as_matrix()), MANY)
    same(Rotation.from_rotvec(MANY.as_rotvec()), MANY)
    same(Rotation.from_rotvec(MANY.as_rotvec(degrees=True), degrees=True), MANY)
    same(Rotation.from_mrp(MANY.as_mrp()), MANY)
    same(Rotation.from_quat(3 * MANY.as_quat()), MANY)
    scalar_first = MANY.as_quat(scalar_first=True)
    same(Rotation.from_quat(jnp.roll(scalar_first, -1, axis=-1)), MANY)
    canonical = MANY.as_quat(canonical=True)
    assert (canonical[:, 3] >= 0).all()
    same(Rotation(canonical), MANY)


@pytest.mark.parametrize("seq", AXES)
def test_angles_lead_back(seq):
    same(Rotation.from_euler(seq, MANY.as_euler(seq)), MANY)
    degrees = MANY.as_euler(seq, degrees=True)
    same(Rotation.from_euler(seq, degrees, degrees=True), MANY)
    # where two axes fall together
    middle = 0.0 if seq[0] == seq[2] else np.pi / 2
    at_once = Rotation.from_euler(seq, jnp.array([0.3, middle, 0.4]))
    angles = at_once.as_euler(seq)
    same(Rotation.from_euler(seq, angles), at_once, atol=2e-3)


def test_matrices_of_known_turns():
    turn = Rotation.from_euler("z", 90, degrees=True)
    np.testing.assert_allclose(turn.as_matrix() @ np.eye(3)[0], [0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(turn.apply(np.eye(3)), turn.as_matrix().T, atol=1e-6)
    back = turn.apply(turn.apply(np.ones(3)), inverse=True)
    np.testing.assert_allclose(back, np.ones(3), atol=1e-6)
    assert abs(turn.magnitude() - np.pi / 2) < 1e-6 and turn.single
    halves = [jnp.diag(2 * jnp.eye(3)[i] - 1) for i in range(3)]  # half a turn
    quats = abs(Rotation.from_matrix(jnp.stack(halves)).as_quat())
    np.testing.assert_allclose(quats, np.eye(4)[:3], atol=1e-6)


def test_composition_and_inverse():
    first, second = MANY[:10], MANY[10:]
    both = (first * second).as_matrix()
    np.testing.assert_allclose(
        both, first.as_matrix() @ second.as_matrix(), atol=1e-5
    )
    same(first * first.inv(), Rotation.identity(10), atol=1e-5)
    assert len(Rotation.concatenate([first, second])) == 20
    fixed = Rotation.from_euler("x", 0.2) * Rotation.from_euler("y", 0.5)
    same(Rotation.from_euler("XY", jnp.array([0.2, 0.5])), fixed)
    same(Rotation.from_euler("yx", jnp.array([0.5, 0.2])), fixed)


def test_mean_is_near_all():
    centre = Rotation.from_euler("x", 0.7)
    spread = jnp.array([[0.1, 0, 0], [-0.1, 0, 0], [0, 0.2, 0], [0, -0.2, 0]])
    around = [centre * Rotation.from_rotvec(v) for v in spread]
    around = Rotation(jnp.stack([each.quat for each in around]))
    same(around.mean(), centre, atol=1e-4)
    same(around.mean([1, 0, 0, 0]), around[0], atol=1e-4)


def test_slerp_turns_evenly():
    given = Rotation.from_euler("z", jnp.array([[0.0], [1.0], [0.5]]))
    slerp = Slerp.init([0.0, 1.0, 3.0], given)
    found = slerp([0.0, 0.25, 1.0, 2.0, 3.0]).as_rotvec()[:, 2]
    np.testing.assert_allclose(found, [0, 0.25, 1, 0.75, 0.5], atol=1e-6)
    assert slerp(0.5).single


def test_trees_batches_and_gradients():
    vectors = jnp.arange(60.0).reshape(20, 3)
    at_once = MANY.apply(vectors)
    mapped = jit(vmap(lambda turn, v: turn.apply(v)))(MANY, vectors)
    np.testing.assert_allclose(mapped, at_once, rtol=1e-5, atol=1e-4)

    def height(v):
        return Rotation.from_rotvec(v).apply(jnp.array([1.0, 0.0, 0.0]))[1]

    # at no turn at all, where angles have no direction
    np.testing.assert_allclose(grad(height)(jnp.zeros(3)), [0, 0, 1], atol=1e-6)
    back = minijax.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())
    for v in (jnp.zeros(3), jnp.array([1e-4, 0, 0]), jnp.array([0.3, -0.2, 0.9])):
        np.testing.assert_allclose(back(v), np.eye(3), atol=1e-3)
    assert minijax.tree_util.tree_leaves(MANY)[0] is MANY.quat


def test_random_ones_favour_no_direction():
    turned = Rotation.random(random.key(3), 4000).apply(np.eye(3)[0])
    assert abs(turned.mean(0)).max() < 0.05
    np.testing.assert_allclose((turned**2).mean(0), 1 / 3, atol=0.03)
    assert Rotation.random(random.key(1)).single


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: Rotation.from_euler("", 1.0), ValueError, "non-empty"),
        (lambda: Rotation.from_euler("xyzx", jnp.ones(4)), ValueError, "upto 3"),
        (lambda: Rotation.from_euler("xY", jnp.ones(2)), ValueError, "'X', 'Y', 'Z'"),
        (lambda: Rotation.from_euler("xx", jnp.ones(2)), ValueError, "consecutive"),
        (lambda: Rotation.from_euler("xy", jnp.ones(3)), ValueError, "each axis"),
        (lambda: MANY.as_euler("xy"), ValueError, "3 axes"),
        (lambda: MANY[0][0], TypeError, "not subscriptable"),
        (lambda: len(MANY[0]), TypeError, "no len"),
        (lambda: MANY.mean(jnp.ones(3)), ValueError, "number of values"),
        (lambda: Slerp.init([0.0], MANY[:1]), ValueError, "at least 2"),
        (lambda: Slerp.init([0.0], MANY[:2]), ValueError, "timestamps"),
        (lambda: Slerp.init([0.0], 3), TypeError, "Rotation"),
        (lambda: Slerp.init([0.0, 1.0], MANY[:2])(jnp.ones((1, 1))), ValueError, "1-d"),
    ],
)
def test_refusals(call, error, told):
    with pytest.raises(error, match=told):
        call()
