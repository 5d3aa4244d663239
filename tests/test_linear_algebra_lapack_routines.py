"""Routines of NumPy's LAPACK, called by machine code, beside NumPy itself."""

import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax
from minijax.kernels.lowering import (
    BufferAllocations,
    as_bytes,
    cpu_rules,
    lower,
    step_kinds,
)
from minijax.linear_algebra import lapack as on_cpu
from minijax.linear_algebra import lapack as routines
from minijax.linear_algebra.lapack import getrf_impl, trsm_impl

from .test_linear_algebra_lapack_loops import (
    KINDS,
    all_ways,
    close,
    drawn,
    in_batches,
    squares,
    steps_of,
)

SIZES = (1, 1), (2, 2), (13, 13), (33, 33), (65, 64), (21, 40), (40, 3)

shown = pytest.mark.skipif(
    routines.lapack_routine("dpotrf") is None,
    reason="NumPy does not show its LAPACK here",
)


@pytest.fixture(autouse=True)
def _x64():
    with minijax.enable_x64():
        yield


def hermitian(x):
    x = x[..., : x.shape[-1], :]
    return x + x.swapaxes(-1, -2).conj()


@pytest.mark.parametrize("case, batch", in_batches(SIZES))
def test_factors_are_those_of_numpy(case, batch):
    shape, kind = case
    x = drawn((*batch, *shape), kind)
    for full in (False, True):
        svd = partial(lax.linalg.svd, full_matrices=full)
        close(jit(svd)(x), svd(x), kind)
        qr = partial(lax.linalg.qr, full_matrices=full)
        close(jit(qr)(x), qr(x), kind, 10)
    values = partial(lax.linalg.svd, compute_uv=False)
    close([jit(values)(x)], [values(x)], kind)
    close(jit(lax.linalg.lu)(x), getrf_impl(x), kind, 100)
    if shape[0] == shape[1]:
        h = hermitian(x)
        for lower in (False, True):
            eigh = partial(lax.linalg.eigh, lower=lower, symmetrize_input=False)
            close(jit(eigh)(h), eigh(h), kind, 10)
        positive = squares(x.shape, kind)
        cholesky = partial(lax.linalg.cholesky, symmetrize_input=False)
        close([jit(cholesky)(positive)], [cholesky(positive)], kind, 10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, k", [(18, 1), (33, 4), (40, 65)])
def test_triangles_in_all_ways(n, k, kind):
    names = "left_side lower transpose_a conjugate_a unit_diagonal".split()
    a = drawn((2, n, n), kind) / n + 2 * np.eye(n, dtype=kind)
    for ways in all_ways(n, kind):
        how = dict(zip(names, ways))
        b = drawn((2, n, k) if how["left_side"] else (2, k, n), kind, 1)
        found = jit(partial(lax.linalg.triangular_solve, **how))(a, b)
        close([found], [trsm_impl(a, b, *ways)], kind, 10)


@shown
def test_no_step_of_numpy_is_left():
    x = np.eye(33)
    for function in (lax.linalg.eigh, lax.linalg.svd, lax.linalg.qr, lax.linalg.lu):
        text = steps_of(function, x)
        name = function.__name__
        assert f"= {name} " not in text, text
    assert " = dsyevd " in steps_of(lax.linalg.eigh, x)


@pytest.mark.parametrize("kind", KINDS)
def test_where_numpy_hides_its_lapack_its_steps_remain(kind, monkeypatch):
    for module in (routines, on_cpu):
        monkeypatch.setattr(module, "lapack_routine", lambda name: None)
    x = hermitian(drawn((33, 33), kind))
    for function in (lax.linalg.eigh, lax.linalg.svd, lax.linalg.qr, lax.linalg.lu):
        close(jit(lambda x, f=function: f(x))(x), function(x), kind, 100)
    assert " = eigh " in steps_of(lambda x: lax.linalg.eigh(x), x)
    assert " = cholesky " in steps_of(lambda x: lax.linalg.cholesky(x), x)


def test_matrices_that_have_no_factor_become_nan_alone():
    x = np.stack([np.eye(30), -np.eye(30), np.eye(30)])
    factors = jit(lax.linalg.cholesky)(x)
    assert np.isnan(np.tril(factors[1])[np.tril_indices(30)]).all()
    np.testing.assert_array_equal(factors[::2], x[::2])
    x[1, 2, 3] = np.nan
    s = jit(partial(lax.linalg.svd, compute_uv=False))(x)
    assert np.isnan(s[1]).all() and np.isfinite(s[::2]).all()


@shown
def test_python_calls_a_routine_as_machine_code_does():
    x = hermitian(drawn((3, 5, 5), "float64"))
    wanted = lax.linalg.eigh(x)
    lowered = lower(minijax.make_jaxpr(lax.linalg.eigh)(x), cpu_rules)
    [step] = [s for s in lowered.walk() if type(s) is routines.CallLapack]
    memory = BufferAllocations({})
    memory[step.operand.source] = as_bytes(x.mT)
    for view in step.results:
        memory[view.source] = np.zeros(view.source.size * view.dtype.itemsize, np.uint8)
    step_kinds[type(step)].run(None, step)(memory)
    v = memory[step.results[0].source].view("float64").reshape(3, 5, 5)
    np.testing.assert_array_equal(v.mT, wanted[0])


def test_threads_factor_at_once():
    x = hermitian(drawn((9, 20, 20), "float32"))
    function = jit(lambda x: jnp.linalg.svd(x)[0] @ jnp.linalg.eigh(x)[1])
    wanted, found = np.asarray(function(x)), {}

    def work(number):
        for _ in range(20):
            found[number] = np.asarray(function(x))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        np.testing.assert_array_equal(found[number], wanted)


COLD = """
import numpy as np, minijax
minijax.config.update("jax_compilation_cache_dir", {folder!r})
x = np.arange(900, dtype="float32").reshape(30, 30)
f = minijax.jit(lambda x: minijax.numpy.linalg.svd(x + x.T, compute_uv=False))
print(f(x)[:3])
"""


def test_a_program_from_the_disk_finds_the_routine(tmp_path):
    code = COLD.format(folder=str(tmp_path))
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        for _ in range(2)
    ]
    assert runs[0].stdout and runs[0].stdout == runs[1].stdout, runs
