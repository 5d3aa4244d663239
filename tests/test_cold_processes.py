"""First uses of the package, in processes that have not imported it: some of them."""

import os
import re
import subprocess
import sys

import pytest

from minijax_book import emulator
from tests.cold_processes import ROOT, a_share, all_cases, compare
from tests.mutants_package import switched_on

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="nothing is forked here"
)


@pytest.mark.parametrize("kind", sorted({kind for kind, *_ in a_share()}))
def test_first_uses(kind):
    assert compare([case for case in a_share() if case[0] == kind]) == []


@pytest.mark.parametrize(
    ("mutant", "cases"),
    [
        ("first use by threads", [["meanwhile", "arithmetic"]]),
        ("waiting inside an import", [["crossed"]]),
        ("lock held over a fork", [["forked", 0.02]]),
    ],
)
def test_mutants_are_found(mutant, cases):
    with switched_on(mutant):  # a race, which a busy machine may decide otherwise
        assert any(compare(cases, limit=5) for _ in range(12))


def test_the_full_set_has_every_kind():
    assert {kind for kind, *_ in all_cases()} == {kind for kind, *_ in a_share()}


WITHOUT_ML_DTYPES = """
import sys

sys.modules["ml_dtypes"] = None
import numpy as np
import minijax, minijax.numpy as jnp
from minijax import lax
from minijax.numpy import *

x = jnp.ones(3)
ways = [
    lambda: jnp.bfloat16,
    lambda: jnp.zeros(3, jnp.bfloat16),
    lambda: jnp.zeros(3, "bfloat16"),
    lambda: jnp.asarray([1.0], "bfloat16"),
    lambda: x.astype("bfloat16"),
    lambda: x.sum(dtype="bfloat16"),
    lambda: jnp.finfo("bfloat16"),
    lambda: jnp.promote_types("bfloat16", "float32"),
    lambda: jnp.result_type("bfloat16"),
    lambda: lax.convert_element_type(1.0, "bfloat16"),
    lambda: lax.dot(x, x, preferred_element_type="bfloat16"),
    lambda: minijax.jit(lambda x: x.astype("bfloat16"))(1.0),
    lambda: minijax.ShapeDtypeStruct((3,), "bfloat16"),
]
for way in ways:
    try:
        print("accepted:", repr(way()))
    except (AttributeError, TypeError) as error:
        assert "pip install ml_dtypes, or minijax-book[bfloat16]" in str(error), error
assert not hasattr(jnp, "bfloat16") and jnp.float16(1) == 1
assert "bfloat16" not in jnp.__all__ and "float16" in jnp.__all__
try:
    np.dtype("bfloat16")
except TypeError as error:
    try:
        jnp.zeros(3, "bfloat17")
    except TypeError as other:
        assert str(other) == str(error).replace("16", "17")
"""


def run(code, **environment):
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bfloat16_without_its_package_is_refused():
    assert run(WITHOUT_ML_DTYPES) == ""


PLATFORMS = """
import minijax

uses = minijax.devices, minijax.default_backend, lambda: minijax.numpy.arange(3)
for use in uses:
    try:
        use()
    except RuntimeError as error:
        print(error)
"""


def test_the_environment_names_a_platform_that_is_not_here():
    told = "initialize backend 'cuda'. Present here: cpu.*variable JAX_PLATFORMS"
    lines = run(PLATFORMS, JAX_PLATFORMS="cuda").splitlines()
    assert len(lines) == 3 and all(re.search(told, line) for line in lines)
    assert run(PLATFORMS, JAX_PLATFORMS="cuda,cpu") == ""
    told = told.replace("cuda", "tpu")
    assert re.search(told, run(PLATFORMS, JAX_PLATFORMS="tpu,cpu"))


# CuPy is there, and finds a card: one that is emulated, which does not say so here.
WITH_A_CARD = """
import sys

from minijax_book.emulator.cupy_card import EmulatedCuPy

sys.modules["cupy"] = cupy = EmulatedCuPy()
import minijax

x = minijax.numpy.arange(3.0)
print(minijax.default_backend(), minijax.devices()[0], x.device, (x + x).tolist())
assert minijax.devices("cpu")[0].platform == "cpu"
assert minijax.device_put(x, minijax.devices("cpu")[0]).tolist() == [0, 1, 2]
"""


@pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")
@pytest.mark.parametrize("named", ["cuda", "gpu", "cuda,cpu"])
def test_the_environment_names_a_card(named):
    told = "gpu cuda:0 cuda:0 [0.0, 2.0, 4.0]\n"
    assert run(WITH_A_CARD, JAX_PLATFORMS=named) == told


def test_programs_can_stay_on_the_cpu():
    told = "cpu cpu:0 cpu:0 [0.0, 2.0, 4.0]\n"
    for named in ("", "cpu", "cpu,cuda"):
        assert run(WITH_A_CARD, JAX_PLATFORMS=named) == told


NO_LOCK_OF_OTHERS = """
import sys

import minijax.numpy as jnp

jnp.add(1, 2)
assert "minijax.jitting.api" in sys.modules
assert "logging" not in sys.modules
"""


def test_loading_takes_no_lock_that_a_fork_takes_before_ours():
    """A fork that had logging's lock waited for ours, and we waited for logging's."""
    subprocess.run([sys.executable, "-c", NO_LOCK_OF_OTHERS], check=True)
