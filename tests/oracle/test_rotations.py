"""Rotations beside JAX: values, dtypes, and gradients where JAX has them."""

from importlib import import_module

import jax
import numpy as np
import pytest

import minijax

RANDOM = np.random.default_rng(0)
QUATS = RANDOM.normal(size=(12, 4)).astype("f4")
VECTORS = RANDOM.normal(size=(12, 3)).astype("f4")


def both(make, rtol=1e-4, atol=2e-5):
    found = []
    for m in (minijax, jax):
        space = import_module(f"{m.__name__}.scipy.spatial.transform")
        found.append(m.tree_util.tree_leaves(make(m, space)))
    for ours, theirs in zip(*found, strict=True):
        assert np.shape(ours) == np.shape(theirs) and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


FORMS = "as_matrix as_mrp as_rotvec as_quat magnitude inv".split()


@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    def make(m, space):
        many = space.Rotation.from_quat(m.numpy.asarray(QUATS))
        mapped = m.jit(m.vmap(lambda r: getattr(r, form)()))(many)
        slope = m.grad(lambda q: sum(
            (x**2).sum() for x in m.tree.leaves(getattr(space.Rotation(q), form)())
        ))(many.quat)  # fmt: skip
        return getattr(many, form)(), mapped, getattr(many[3], form)(), slope

    both(make, atol=1e-3)


def test_options():
    def make(m, space):
        many = space.Rotation.from_quat(m.numpy.asarray(QUATS))
        edge = space.Rotation(m.numpy.array([[0.0, -1, 0, 0], [0, 0, -1, 0]]))
        return [
            many.as_rotvec(degrees=True), many.as_quat(canonical=True),
            many.as_quat(True, True), edge.as_quat(canonical=True), edge.as_rotvec(),
            space.Rotation.from_rotvec(VECTORS * 50, degrees=True).as_matrix(),
            space.Rotation.from_mrp(VECTORS).quat, (many * edge[0]).as_matrix(),
            space.Rotation.from_matrix(many.as_matrix()).as_matrix(),
            many.apply(VECTORS), many.apply(VECTORS, inverse=True),
            many.apply(VECTORS[0]), many[0].apply(VECTORS), many.mean().as_matrix(),
            many.mean(m.numpy.arange(12)).as_matrix(), space.Rotation.identity(),
            space.Rotation.concatenate([many, many[:2]]), len(many) * many[0].quat,
            space.Rotation.from_rotvec(np.array([0, 0, 1])),
        ]  # fmt: skip

    both(make, atol=1e-4)


@pytest.mark.parametrize("seq", "xyz zyx zxz yxy XYZ ZYX ZXZ YZY xzy YXZ".split())
def test_angles(seq):
    edges = np.array([[0.3, 0, 0.4], [0.3, np.pi / 2, 0.4], [0.3, np.pi, 0.4]], "f4")

    def make(m, space):
        many = space.Rotation.from_euler(seq, m.numpy.asarray(VECTORS))
        degrees = space.Rotation.from_euler(seq, VECTORS * 90, degrees=True)
        slope = m.grad(lambda q: (space.Rotation(q).as_euler(seq) ** 2).sum())
        edge = space.Rotation.from_euler(seq, m.numpy.asarray(edges))
        return [
            many, degrees, many.as_euler(seq), many.as_euler(seq, degrees=True),
            slope(many.quat), edge.as_matrix(),
            space.Rotation.from_euler(seq[:2], VECTORS[:, :2]),
            space.Rotation.from_euler(seq[0], 90, degrees=True),
        ]  # fmt: skip

    both(make, rtol=1e-3, atol=1e-3)


def test_slerp():
    def make(m, space):
        many = space.Rotation.from_quat(m.numpy.asarray(QUATS[:4]))
        slerp = space.Slerp.init([0, 1, 2.5, 4], many)
        times = [-0.5, 0, 0.3, 1, 2, 2.5, 4, 5]
        return slerp(times).as_matrix(), slerp(0.7).as_rotvec(), slerp

    both(make, atol=1e-4)
