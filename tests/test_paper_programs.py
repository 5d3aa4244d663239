"""The programs that `benchmarks/experiments.py` measures, and what was measured."""

import json
import sys

import numpy as np
import pytest

import minijax
from book.tools.source import ROOT
from minijax import numpy as jnp

sys.path.append(str(ROOT / "benchmarks"))
import paper_programs as programs
from rows import Eager

RECORD = json.loads((ROOT / "book/helper/data/experiments.json").read_text())


def minimum(package, function, x, steps, rounds):
    """The end and the history of an optimisation."""
    x = jnp.asarray(x)
    run = package.jit(lambda x: programs.newton_cg(package, function, x, steps, rounds))
    return run(x)


def test_the_minimum_of_a_quadratic_solves_its_equations():
    f, x = programs.quadratic(minijax, 20)
    end, history = minimum(minijax, f, x, 4, 60)
    matrix = minijax.hessian(f)(end)
    directly = np.linalg.solve(matrix, -minijax.grad(f)(jnp.zeros(20)))
    np.testing.assert_allclose(end, directly, atol=1e-3)
    assert (history[1:, 0] <= history[:-1, 0]).all()


@pytest.mark.parametrize(
    "make, size", [(programs.logistic, (50, 4)), (programs.markov, (2, 3, 8))]
)
def test_loops_of_python_do_the_same_rounds(make, size):
    results = []
    for package in (minijax, Eager(minijax)):
        f, x = make(package, *size)
        results.append(minimum(package, f, x, 2, 5))
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, atol=1e-3)
    losses = results[0][1][:, 0]
    assert losses[1] < losses[0]


def test_directions_that_do_not_bend_upwards_end_the_rounds():
    b = jnp.array([1.0, 2.0])
    d, count = programs.conjugate_gradients(minijax, lambda v: -v, b, 10, 1e-6)
    np.testing.assert_array_equal(d, b)
    assert count == 1


def test_a_step_lowers_the_loss_of_the_network():
    step = minijax.jit(programs.conv_step(minijax))
    params, batch = programs.conv_params(), programs.conv_images(1)
    moved = step(params, *batch)
    assert [x.shape for x in moved] == [x.shape for x in params]
    assert all(np.isfinite(x).all() for x in moved)
    assert any(np.abs(np.subtract(x, y)).max() > 0 for x, y in zip(moved, params))


@pytest.mark.parametrize("name", ["newton", "causes", "layer", "step", "replicas"])
def test_everything_was_recorded(name):
    about, rows = RECORD[name]["about"], RECORD[name]["rows"]
    assert {"date", "processor", "jax", "minijax", "note", "cores"} <= {*about}
    assert rows
    for row in rows:
        assert {"minijax", "JAX"} <= {*row["seconds"]}
        assert all(value > 0 for value in row["seconds"].values())
