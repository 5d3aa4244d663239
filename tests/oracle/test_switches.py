"""The switches of JAX, their defaults and choices, against the recorded table.

With ``MINIJAX_ORACLE=record`` the table in `tests/data` is written anew.
"""

import json
import os
import warnings
from pathlib import Path

import jax
import pytest

import minijax
from tests import test_arrays_config_promotion as promotion

TABLE = Path(__file__).parents[1] / "data" / "switches.json"


def plain(value):
    """A value that JSON can hold: a member of an Enum by its word."""
    value = getattr(value, "value", value) if isinstance(value, str) else value
    return getattr(value, "name", value).lower() if hasattr(value, "name") else value


def switches_of_jax():
    found = {}
    for name, (_, _, about) in sorted(jax.config.meta.items()):
        choices = about.get("enum_values") or about.get("enum_class") or []
        default = jax.config._value_holders[name].value
        found[name] = [plain(default), [plain(choice) for choice in choices]]
    found["jax_num_cpu_devices"][0] = -1  # tests/oracle/conftest.py asks for two
    return found


def test_switches_are_those_of_jax():
    found = json.loads(json.dumps(switches_of_jax()))
    if os.environ.get("MINIJAX_ORACLE") == "record":
        text = json.dumps(found, indent=1, sort_keys=True)
        TABLE.write_text(text + "\n", encoding="utf-8")
    assert json.loads(TABLE.read_text(encoding="utf-8")) == found


def test_switches_without_a_word_of_ours():
    assert {*jax.config.values} <= {*minijax.config.values}


WRONG = [
    ("jax_nonsense", 1),
    ("jax_numpy_rank_promotion", "x"),
    ("jax_numpy_dtype_promotion", "x"),
    ("jax_default_matmul_precision", "x"),
    ("jax_num_cpu_devices", "x"),
    ("jax_default_device", 3),
    ("jax_transfer_guard", "x"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_what_jax_refuses_is_refused_by_the_same_error(name, value):
    with pytest.raises((AttributeError, ValueError)) as theirs:
        jax.config.update(name, value)
    with pytest.raises(theirs.type) as ours:
        minijax.config.update(name, value)
    words = str(theirs.value).rstrip(".")
    assert words in str(ours.value) or "is not a valid" in words


def answers(library, text):
    """What an expression does under each switch of promotion: a dtype, or an error."""
    numpy, found = library.numpy, []
    names = {"jnp": numpy, "x": numpy.ones(3), "i": numpy.arange(3)}
    names["t"] = numpy.zeros((2, 3))
    names |= {"jit": library.jit, "lax": library.lax, "scipy": library.scipy}
    for switch, value in [
        (library.numpy_dtype_promotion, "strict"),
        (library.numpy_rank_promotion, "raise"),
    ]:
        with switch(value), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.append(str(getattr(eval(text, dict(names)), "dtype", "")))
            except ValueError as error:
                rank = "rank_promotion" in str(error)
                found.append(str(error) if rank else type(error).__name__)
    return found


EXPRESSIONS = """
    jnp.unpackbits(jnp.uint8([1,2])); lax.index_take(t,(i,i),(0,1));
    jit(jnp.insert)(x,2,x[0]); scipy.sparse.linalg.gmres(jnp.eye(3)+0j,x+0j)[0];
    jit(lambda i: jnp.delete(x,i,assume_unique_indices=True))(2);
    scipy.linalg.solve_sylvester(jnp.eye(3),jnp.eye(2),jnp.ones((3,2)),method='eigen');
    x+i; x+1; i+1; i+1.; x+True; i+True; jnp.where(i>0,x,i); jnp.where(i>0,x,0); x@i;
    jnp.concatenate([x,i]); jnp.stack([x,i]); jnp.dot(x,i); x**2; x**i; i**2; i/2; i/i;
    jnp.sin(i); jnp.mean(i); jnp.sum(x,initial=1); jnp.array([1,2.]); i<<1; i%2; x//2.;
    jnp.array([x[0],i[0]]); jnp.result_type(x,i); jnp.promote_types('float32','int32');
    jnp.clip(x,0,1); jnp.clip(i,0.,1); jnp.maximum(x,i); x==i; jnp.isclose(x,i);
    jnp.allclose(x,x); jnp.arctan2(x,i); jnp.linspace(0,1,3); jnp.arange(0,1.);
    jnp.mod(x,i); jnp.sqrt(2); jnp.add(1,2.); jnp.pad(x,1); jnp.var(i); jnp.hypot(x,i);
    jnp.logaddexp(x,i); jnp.float32(3)+x;
    jnp.array(1)+x; jnp.append(x,i);
    x.astype(int)+i; jnp.outer(x,i); jnp.cumsum(i); jnp.linalg.norm(i);
    jnp.tensordot(x,x,1); divmod(i,2);
    jnp.round(x,2); jnp.hypot(x,x); jnp.logaddexp(x,x); jnp.std(x); jnp.power(i,i);
    t+x; t*jnp.ones((1,2,3)); jnp.where(x>0,t,x);
    jnp.matmul(jnp.ones((2,3,3)),jnp.eye(3));
    jnp.mean(t,0); jnp.var(t,1); jnp.linspace(jnp.zeros(2),1.,3); jnp.isclose(t,x);
    jnp.linalg.norm(t,axis=1); jnp.arctan2(t,x); jnp.clip(t,x); jnp.logical_and(t,x);
    jnp.power(t,x); jnp.floor_divide(t,x); jnp.hypot(t,x); jnp.logaddexp(t,x); x<t
"""


@pytest.mark.parametrize("text", [e.strip() for e in EXPRESSIONS.split(";")])
def test_promotion_under_the_switches_of_jax(text):
    assert answers(minijax, text) == answers(jax, text)


def test_errors_of_promotion_have_the_names_of_jax():
    assert jax.dtypes.TypePromotionError.__name__ == "TypePromotionError"
    assert issubclass(promotion.TypePromotionError, ValueError)
