"""What JAX answers at its edges: identities, texts, and things deprecated."""

import warnings

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from minijax import random
from minijax.extend import core
from minijax.jaxprs import checker

MASKED = np.ma.array([1, 2, 3], mask=[0, 1, 0])


@pytest.mark.parametrize("how", [{}, {"may_alias": True}])
def test_what_is_there_is_put_there_as_it_is(how):
    x = minijax.device_put(jnp.arange(2.0), minijax.devices()[0])
    mesh = minijax.make_mesh((2,), ("x",))
    rows = minijax.NamedSharding(mesh, minijax.P("x"))
    parts = minijax.device_put(x, rows)
    assert minijax.device_put(x, x.sharding, **how) is x
    assert minijax.device_put({"a": parts}, rows, **how)["a"] is parts
    whole = minijax.NamedSharding(mesh, minijax.P())
    assert minijax.device_put(parts, whole) is not parts
    assert minijax.device_put(x, x.sharding, may_alias=False) is not x


def test_an_uncommitted_array_is_committed():
    x = jnp.arange(2.0)
    there = minijax.device_put(x, minijax.devices()[0])
    assert there is not x and there.committed and not x.committed


def test_the_text_of_a_jitted_function():
    def f(x):
        return x

    assert repr(minijax.jit(f)) == f"<PjitFunction of {f!r}>"


def test_names_to_donate_need_a_signature():
    told = "Getting the signature of function <built-in function max> failed. Pass"
    with pytest.raises(ValueError, match=told):
        minijax.jit(max, donate_argnames="x")
    minijax.jit(max, donate_argnums=0)
    minijax.jit(max, static_argnames="key")


@pytest.mark.parametrize("function", [jnp.ndim, jnp.shape, jnp.size])
@pytest.mark.parametrize("value", [[1], (1, 2), None])
def test_what_is_no_array_has_a_shape_and_a_warning(function, value):
    told = f"{function.__name__} requires ndarray or scalar arguments, got "
    told += str(type(value))
    with pytest.warns(DeprecationWarning, match=told) as found:
        result = function(value)
    assert result == getattr(np, function.__name__)(value)
    assert [each.filename for each in found] == [__file__]


@pytest.mark.parametrize("value", [1, np.ones(2), jnp.ones(2), np.float32(1), MASKED])
def test_arrays_and_numbers_have_a_shape_without_one(value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (jnp.shape(value), jnp.ndim(value)) == (np.shape(value), np.ndim(value))


def test_how_to_copy_is_said_by_name():
    x = jnp.arange(2.0)
    told = "Passing the copy, order, and ndmin arguments to jnp.array positionally"
    for args in (False,), (True, "K"), (True, "K", 2):
        with pytest.warns(DeprecationWarning, match=told) as found:
            assert jnp.array(x, None, *args).ndim == (2 if len(args) == 3 else 1)
        assert [each.filename for each in found] == [__file__]
    with pytest.raises(TypeError, match="up to 5 arguments by position, got 6"):
        jnp.array(x, None, True, "K", 0, None)


@pytest.mark.parametrize("results", [[], (), [1.0, 2.0]])
def test_a_list_of_results_from_a_primitive_of_one(results):
    primitive = core.Primitive("several")
    primitive.def_impl(lambda x: results)
    primitive.def_abstract_eval(lambda x: [x for _ in results])
    told = rf"several.impl\(\) .* iff several.multiple_results: .* {len(results)} res"
    with pytest.raises(TypeError, match=told):
        primitive.bind(1.0)
    with pytest.raises(ValueError, match=r"several.abstract_eval\(\) method should"):
        minijax.jit(primitive.bind)(1.0)
    primitive.multiple_results = True
    assert primitive.bind(1.0) == [*results]


def test_one_result_from_a_primitive_of_several():
    primitive = core.Primitive("lonely")
    primitive.multiple_results = True
    primitive.def_impl(lambda x: np.ones(3))
    with pytest.raises(TypeError, match="lonely.impl.* returned one"):
        primitive.bind(1.0)


def test_no_results_of_a_rule_in_a_table():
    primitive = core.Primitive("silent")
    minijax.core.impl_rules[primitive] = lambda x: []
    with pytest.raises(TypeError, match="returned no results.*multiple_results = True"):
        primitive.bind(1.0)
    del minijax.core.impl_rules[primitive]


def test_prngkey_makes_typed_keys_while_asked_to():
    with minijax.enable_custom_prng():
        key = random.PRNGKey(3)
        assert key.dtype == random.key(3).dtype and key.shape == ()
        assert random.split(key).shape == (2,)
        assert random.uniform(key) == random.uniform(random.key(3))
    assert random.PRNGKey(3).shape == (2,)


def test_a_program_that_makes_keys_is_one_for_each():
    made = minijax.jit(lambda: random.PRNGKey(3))
    with minijax.enable_custom_prng():
        assert made().shape == ()
    assert made().shape == (2,)


def test_a_program_depends_on_a_context_of_the_user():
    traced, depth = [], minijax.make_user_context(0)
    f = minijax.jit(lambda x: traced.append(depth.value) or x + depth.value)
    assert f(1.0) == f(1.0) == 1 and traced == [0]
    with depth(2):
        assert f(1.0) == f(1.0) == 3
        with depth(3):
            assert depth.value == 3
        assert depth.value == 2
    assert f(1.0) == 1 and depth.value == 0 and traced == [0, 2]
    assert depth(5)(lambda: depth.value)() == 5
    assert minijax.make_user_context().value is None
    with pytest.raises(TypeError, match="unhashable"):
        depth([])


def test_nodes_are_walked_with_keys_in_a_list():
    tree = minijax.tree.structure({"a": (1, [2]), "b": 3})
    assert tree.node_data() == (dict, ["a", "b"])
    walked = tree.walk(lambda children, data: (children, data), lambda x: -x, [1, 2, 3])
    assert walked == (((((-1, ((-2,), None))), None), -3), ["a", "b"])


def test_a_type_takes_its_mesh_from_the_context():
    rows, mesh = minijax.P("x"), minijax.make_mesh((2,), ("x",))
    with minijax.set_mesh(mesh):
        told = minijax.ShapeDtypeStruct((4, 2), np.float32, sharding=rows)
        found = minijax.jit(jnp.sin).lower(told).compile()(jnp.ones((4, 2)))
    assert told.sharding == minijax.NamedSharding(mesh, rows)
    np.testing.assert_allclose(found, np.sin(np.ones((4, 2))), rtol=1e-6)
    with pytest.raises(TypeError, match="context mesh cannot be empty"):
        minijax.ShapeDtypeStruct((4, 2), np.float32, sharding=rows)


def test_the_memory_of_a_device_is_one_that_shardings_take():
    device = minijax.devices()[0]
    (memory,) = device.addressable_memories()
    assert memory == device.default_memory() and hash(memory) == hash(memory)
    assert memory.addressable_by_devices() == [device]
    x = minijax.device_put(
        1.0, minijax.sharding.SingleDeviceSharding(device, memory_kind=memory.kind)
    )
    assert x.sharding.memory_kind == memory.kind


def test_the_mapped_function_says_of_itself_what_it_is():
    def slope(x):
        """The slope at a point."""
        return x

    text = minijax.vmap(slope).__doc__
    assert text.startswith("Vectorized version of slope") and slope.__doc__ in text
    assert minijax.vmap(lambda x: x).__doc__ is None
    made = minijax.make_jaxpr(slope)
    assert made.__qualname__ == f"make_jaxpr({slope.__qualname__})"
    assert made(1.0).pretty_print(use_color=False, name_stack=True) == str(made(1.0))


def test_no_arguments_to_map_are_told_with_what_was_given():
    words = r"must be passed at least one argument .* got empty \*args=\(\{\},\)"
    with pytest.raises(ValueError, match=words):
        minijax.vmap(lambda x: x)({})


def test_words_of_calls_with_too_many_or_unfit_arguments():
    def f(x):
        return x * 2.0

    with pytest.raises(TypeError, match="f was called with 2 arguments"):
        minijax.vjp(f, 1.0)[1](1.0, 2.0)
    with pytest.raises(TypeError, match="linear_transpose only supports"):
        minijax.linear_transpose(f, 1)
    with pytest.raises(TypeError, match="cotangent tree does not match"):
        minijax.linear_transpose(lambda x: [x, x], 1.0)(1.0)
    with pytest.raises(ValueError, match="unexpected JAX type for the cotangent"):
        minijax.vjp(f, 1.0)[1](np.ones(2, np.float32))
    for kind in (float, complex):
        words = rf"Try using `x.astype\({kind.__name__}\)`"
        with pytest.raises(minijax.errors.ConcretizationTypeError, match=words):
            minijax.jit(kind)(1.0)
    effort = {"memory_fitting_level": "O0", "optimization_level": "O1"}
    assert minijax.jit(f, compiler_options=effort)(1.0) == 2
    with pytest.raises(minijax.errors.JaxRuntimeError, match="No such compile option"):
        minijax.jit(f, compiler_options={"fitting": 1})(1.0)
    with pytest.raises(ValueError, match="Can only use `unroll`"):
        minijax.jit(lambda n: minijax.lax.fori_loop(0, n, f, 1.0, unroll=2))(3)
    with pytest.raises(ValueError, match="each argument passed by keyword is mapped"):
        minijax.pmap(lambda x, y: x, in_axes=(0, 0))(np.ones((1, 2)), y=np.ones(1))


def test_the_gradient_of_an_integer_is_a_literal_without_numbers():
    move = minijax.grad(lambda x, i: x[i], argnums=(0, 1), allow_int=True)
    closed = minijax.make_jaxpr(move)(np.ones(2, np.float32), 1)
    assert [atom.aval.str_short() for atom in closed.jaxpr.outvars][1] == "float0[]"
    checker.check_jaxpr(closed)
