"""Names of JAX that its modules hand out and floors define: doors and what they say."""

import importlib
import pickle
import warnings

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import dtypes, errors, lax, typing
from minijax._public import PUBLIC
from minijax.extend import core
from minijax.extend.core import primitives


def test_what_is_handed_on_is_the_object_of_the_floor_that_defines_it():
    assert minijax.core.ShapedArray is type(jnp.ones(2).aval)
    assert minijax.core.eval_jaxpr(
        minijax.make_jaxpr(jnp.sin)(1.0).jaxpr, [], 0.0
    ) == [0.0]
    assert dtypes.extended in dtypes.prng_key.__bases__
    assert core.JaxprTypeError is errors.JaxprTypeError
    assert primitives.sin_p is lax.sin_p
    assert minijax.float0 is dtypes.float0


def test_primitives_of_control_and_of_keys_are_there():
    for name in "cond_p while_p scan_p jit_p custom_jvp_call_p random_bits_p".split():
        assert str(getattr(primitives, name)) == name.removesuffix("_p")


def test_handed_on_names_are_listed_with_their_module():
    handed = PUBLIC["minijax.dtypes"]
    assert handed["finfo"] == handed["float0"] == "minijax.compat.core"
    assert handed["prng_key"] == "minijax.prng.random_primitives"
    assert dir(dtypes) == sorted(handed)


def test_a_name_that_has_moved_warns_each_time_at_the_user_s_line():
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match="Use minijax.extend.core") as told:
            assert minijax.core.DropVar is core.DropVar
        assert told[0].filename == __file__


def test_a_name_that_was_removed_says_what_to_write():
    with pytest.raises(AttributeError, match="removed .*; use minijax.typeof instead"):
        _ = minijax.core.get_aval
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = minijax.core.no_such_name


@pytest.mark.parametrize(
    "path", "numpy.acosh numpy.max numpy.amax lax.bitwise_and tree.map jacobian".split()
)
def test_a_function_with_two_names_says_the_one_that_it_is_called_by(path):
    space, _, name = f"minijax.{path}".rpartition(".")
    function = getattr(importlib.import_module(space), name)
    assert (function.__module__, function.__name__) == (space, name)
    assert function.__qualname__ == name
    assert pickle.loads(pickle.dumps(function)) is function
    assert "Reference" in function.__doc__


def test_no_name_that_is_there_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for space in (minijax.core, core, primitives, dtypes):
            for name in dir(space):
                getattr(space, name)


def test_errors_have_jax_s_bases():
    for name in "ConcretizationType UnexpectedTracer KeyReuse".split():
        assert issubclass(getattr(errors, f"{name}Error"), errors.JAXTypeError)
    assert issubclass(errors.NonConcreteBooleanIndexError, errors.JAXIndexError)


def test_a_dtype_may_be_written_in_four_ways():
    def convert(x, dtype: typing.DTypeLike):
        return x.astype(dtype)

    ways = "int8", np.int8, np.dtype("int8"), jnp.int8
    assert {convert(jnp.ones(2), way).dtype for way in ways} == {np.dtype("int8")}


def test_a_key_is_extended_and_no_number():
    dtype = minijax.random.key(0).dtype
    assert dtypes.issubdtype(dtype, dtypes.prng_key)
    assert dtypes.issubdtype(dtype, dtypes.extended)
    assert not dtypes.issubdtype(dtype, np.number)
    with pytest.raises(ValueError, match="extended dtype key<fry>"):
        dtypes.canonicalize_dtype(dtype)
    assert dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True) == dtype


def test_weakness_of_a_result_type():
    def weak(*args):
        return dtypes.result_type(*args, return_weak_type_flag=True)

    assert weak(1, 2.0) == (np.dtype("float32"), True)
    assert weak(np.arange(3), 1.0) == (np.dtype("float32"), True)
    assert weak(np.float16(1), 1.0) == (np.dtype("float16"), False)


def test_bits_and_scalars_of_types():
    assert [dtypes.itemsize_bits(x) for x in (bool, "int8", "complex64")] == [8, 8, 64]
    assert dtypes.scalar_type_of(jnp.uint8(3)) is int
    for wrong in (None, np.dtype("S1")):
        with pytest.raises((TypeError, ValueError)):
            dtypes.itemsize_bits(wrong)


def test_a_trace_is_asked_where_it_is():
    found = []

    def look(x):
        found.append(
            (
                core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                core.unsafe_get_axis_names_DO_NOT_USE(),
            )
        )
        return x

    x = jnp.ones((2, 3))
    look(x)
    minijax.jit(look)(x)
    minijax.vmap(minijax.vmap(look, axis_name="b"), axis_name="a")(x)
    assert found == [(False, False, []), (True, False, []), (False, True, ["a", "b"])]
    assert not core.nonempty_axis_env_DO_NOT_USE()


def test_the_same_trace_at_two_moments_is_the_same_state():
    states = [core.get_opaque_trace_state()]
    minijax.jit(lambda x: states.append(core.get_opaque_trace_state()) or x)(1.0)
    assert states[0] == core.get_opaque_trace_state() != states[1]
    assert hash(states[0]) == hash(core.get_opaque_trace_state())


def test_tracers_of_one_transformation_are_told_by_the_mark_of_their_trace():
    def f(x):
        marks = core.find_top_trace([x]).main, x._trace.main
        inner = []
        minijax.jvp(lambda y: inner.append(y._trace.main) or y * x, (2.0,), (1.0,))
        assert marks[0] is marks[1] is not inner[0]
        return x

    minijax.jvp(f, (1.0,), (1.0,))


def test_inside_of_take_current_trace_numbers_are_computed():
    def f(x):
        with core.take_current_trace() as before:
            assert before is core.find_top_trace([]) or float(jnp.sin(0.0)) == 0
        return x

    assert "sin" not in str(minijax.make_jaxpr(f)(1.0))


def test_a_value_that_is_not_known_is_refused_with_the_reason():
    assert core.concrete_or_error(int, jnp.int32(7)) == 7
    with pytest.raises(errors.ConcretizationTypeError, match="a size"):
        minijax.jit(lambda x: core.concrete_or_error(int, x, "It is a size."))(1)


def test_types_of_batches_and_examples():
    aval = minijax.core.ShapedArray((2, 5), np.dtype("int32"))
    assert core.mapped_aval(5, 1, aval).shape == (2,)
    assert core.unmapped_aval(7, 1, aval).shape == (2, 7, 5)
    assert core.mapped_aval(5, None, aval) == aval
    assert minijax.core.max_dim(2, 3) == 3 and minijax.core.min_dim(2, 3) == 2
