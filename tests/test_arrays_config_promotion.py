"""What the switches of promotion refuse, and when."""

import threading

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from minijax.arrays.config import TypePromotionError, check_strict_promotion, wanted
from minijax.arrays.dtypes import config

FLOATS, PLACES = jnp.ones(3), jnp.arange(3)
TABLE = jnp.zeros((2, 3))
MIXED = {
    "add": lambda: FLOATS + PLACES,
    "a bool": lambda: FLOATS + True,
    "an integer and a weak float": lambda: PLACES + 1.0,
    "where": lambda: jnp.where(True, FLOATS, PLACES),
    "concatenate": lambda: jnp.concatenate([FLOATS, PLACES]),
    "array": lambda: jnp.array([FLOATS[0], PLACES[0]]),
    "matmul": lambda: FLOATS @ PLACES,
    "power": lambda: FLOATS**PLACES,
    "remainder": lambda: FLOATS % PLACES,
    "result_type": lambda: jnp.result_type(FLOATS, PLACES),
    "promote_types": lambda: jnp.promote_types("float32", "int32"),
}
ALIKE = {
    "weak numbers": lambda: (FLOATS + 1) * 2.5 - FLOATS,
    "of integers": lambda: PLACES // 2 + PLACES,
    "weak numbers alone": lambda: jnp.add(1, 2.5),
    "a power": lambda: FLOATS**2,
    "a mean of integers": lambda: jnp.mean(PLACES),
    "NumPy's scalars": lambda: FLOATS * np.float64(2),
    "a variance": lambda: jnp.var(PLACES),
}
STRETCHED = {
    "add": lambda: TABLE + FLOATS,
    "power": lambda: TABLE**FLOATS,
    "isclose": lambda: jnp.isclose(TABLE, FLOATS),
    "maximum": lambda: jnp.maximum(TABLE, FLOATS),
    "vectorize": lambda: jnp.vectorize(lambda x, y: x, signature="(),()->()")(
        TABLE, FLOATS
    ),
}
ALIGNED = {
    "scalars": lambda: TABLE + 1,
    "one rank": lambda: TABLE * jnp.ones((1, 3)),
    "where": lambda: jnp.where(FLOATS > 0, TABLE, FLOATS),
    "a variance": lambda: jnp.var(TABLE, 1),
    "a norm": lambda: jnp.linalg.norm(TABLE, axis=1),
    "outer": lambda: jnp.outer(FLOATS, FLOATS),
}


@pytest.mark.parametrize("use", MIXED.values(), ids=MIXED)
def test_strict_promotion_refuses_two_dtypes(use):
    use()
    refused = pytest.raises(TypePromotionError, match="no available implicit dtype")
    with minijax.numpy_dtype_promotion("strict"), refused:
        use()


@pytest.mark.parametrize("use", ALIKE.values(), ids=ALIKE)
def test_strict_promotion_takes_weak_numbers(use):
    with minijax.numpy_dtype_promotion("strict"):
        use()


@pytest.mark.parametrize("use", STRETCHED.values(), ids=STRETCHED)
def test_new_axes_are_told(use):
    told = r"for [\w.]+ on shapes \(2, 3\) \(3,\) and"
    refused = pytest.raises(ValueError, match=told)
    with minijax.numpy_rank_promotion("raise"), refused:
        use()
    told = pytest.warns(UserWarning, match="Following NumPy automatic rank promotion")
    with minijax.numpy_rank_promotion("warn"), told:
        use()


@pytest.mark.parametrize("use", ALIGNED.values(), ids=ALIGNED)
def test_without_new_axes_there_is_nothing_to_tell(use):
    with minijax.numpy_rank_promotion("raise"):
        use()


def test_a_jitted_function_is_traced_again_under_another_rule():
    add = minijax.jit(lambda x, y: x + y)
    add(FLOATS, PLACES)
    with minijax.numpy_dtype_promotion("strict"), pytest.raises(TypePromotionError):
        add(FLOATS, PLACES)
    add(FLOATS, PLACES)


def test_checks_are_made_in_the_thread_that_wants_them():
    done = []
    with minijax.numpy_dtype_promotion("strict"):
        assert wanted
        thread = threading.Thread(target=lambda: done.append(FLOATS + PLACES))
        thread.start()
        thread.join()
    FLOATS + PLACES  # is checked once more, and then no thread wants it
    assert len(done) == 1 and not wanted


def test_the_process_may_be_strict():
    config.update("jax_numpy_dtype_promotion", "strict")
    try:
        with minijax.numpy_dtype_promotion("standard"):
            FLOATS + PLACES
        with pytest.raises(TypePromotionError):
            FLOATS + PLACES
    finally:
        config.update("jax_numpy_dtype_promotion", "standard")
    assert not wanted


@pytest.mark.parametrize(
    ("nodes", "meet"),
    [
        ("int* float* complex*", True),
        ("int* int8", True),
        ("int* float16", True),
        ("int* float* complex64", True),
        ("complex* float32", False),
        ("int* bool", False),
        ("float32 float64", False),
    ],
)
def test_the_strict_lattice(nodes, meet):
    if meet:
        return check_strict_promotion({*nodes.split()})
    with pytest.raises(TypePromotionError):
        check_strict_promotion({*nodes.split()})
