"""Random programs mean the same in minijax and in JAX.

See `tests.random_programs` and `tests.random_control`. Programs with control flow begin
after those which `tests/test_control_random.py` has compared with themselves.
"""

from types import SimpleNamespace

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from tests.commands import blocks  # noqa: E402
from tests.known_differences import strong_gradient  # noqa: E402
from tests.random_calls import RulesComparison  # noqa: E402
from tests.random_control import ControlComparison, report  # noqa: E402
from tests.random_programs import Comparison  # noqa: E402


@pytest.mark.parametrize("block", blocks(2, 15))
def test_block_of_ten(block):
    comparisons = [Comparison(seed) for seed in range(10 * block, 10 * block + 10)]
    assert sum(comparison.checked for comparison in comparisons) > 70
    found = [text for comparison in comparisons for text in comparison.found]
    assert not found, "\n\n".join(found)


@pytest.mark.filterwarnings("ignore")  # complex to real: the two warn by other classes
@pytest.mark.parametrize("block", blocks(1, 20, start=8))
def test_block_of_ten_with_control_flow(block):
    jax.clear_caches()
    checked = 0
    for seed in range(10 * block, 10 * block + 10):
        comparison = ControlComparison(seed)
        assert not comparison.found, report(seed, comparison)
        checked += comparison.checked
    assert checked >= 160


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", blocks(1, 3))
def test_block_of_ten_with_rules_and_keys(block):
    jax.clear_caches()
    for seed in range(10 * block, 10 * block + 10):
        comparison = RulesComparison(seed, length=3)
        assert not comparison.found, report(seed, comparison)


def swapped(j, s, b):
    """Return what a step of a scan makes of the number `b`, which changes places."""
    f = j.numpy.float32
    return j.lax.scan(lambda c, _: ((f(c[1]), f(c[0])), None), (s, b), None, 1)[0][1]


def test_why_weakness_of_a_carried_number_is_excused():
    """JAX's own gradients: strong for the scan alone, weak for it in a loop."""
    one, loop = jax.numpy.float32(1), jax.lax.fori_loop
    assert not jax.grad(lambda b: swapped(jax, one, b))(-0.4).weak_type
    assert jax.grad(lambda b: loop(0, 1, lambda _, s: swapped(jax, s, b), one))(
        -0.4
    ).weak_type


WEAK = jax.numpy.asarray(1.0)
NESTED = """def program(b):
    def body(i, s):
        return lax.scan(step, (s, b), None, 1)[0][1]
    return lax.fori_loop(0, 1, body, b)
"""
IN_A_ROW = """def program(b):
    c = lax.scan(step, (b, b), None, 1)[0][1]
    return lax.fori_loop(0, 1, lambda i, s: c, b)
"""


@pytest.mark.parametrize(
    ("source", "way", "b", "ours", "wanted", "excused"),
    [
        (NESTED, "grad of jvp", -0.4, np.float32(1), WEAK, True),
        (NESTED, "vjp", -0.4, np.float32(1), WEAK, True),
        (NESTED, "vjp", -0.4, WEAK, np.float32(1), False),
        (NESTED, "jvp", -0.4, np.float32(1), WEAK, False),
        (NESTED, "vjp", np.float32(-0.4), np.float32(1), WEAK, False),
        (IN_A_ROW, "vjp", -0.4, np.float32(1), WEAK, False),
    ],
)
def test_which_weakness_is_excused(source, way, b, ours, wanted, excused):
    program = SimpleNamespace(source=source, inputs={"b": b})
    ours, wanted = jax.numpy.asarray(ours), jax.numpy.asarray(wanted)
    assert strong_gradient(program, way, [(ours, wanted)]) is excused
