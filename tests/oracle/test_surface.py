"""The namespaces and keywords that clients touch, beside JAX: what is not there, why.

A name or a keyword that arrives has to leave its list, and one that JAX has and ours
lack has to have a reason.
"""

import functools
import gc
import importlib
import inspect
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

jax = pytest.importorskip("jax")
from jax import dtypes as jax_dtypes  # noqa: E402
from jax.extend import core as jax_core  # noqa: E402

import minijax  # noqa: E402
import minijax.numpy  # noqa: E402
from minijax import dtypes  # noqa: E402
from minijax._public import PUBLIC  # noqa: E402
from minijax.extend import core  # noqa: E402
from tests.public_names import found_in as module  # noqa: E402

from .raised import raised  # noqa: E402
from .test_names import EXTEND  # noqa: E402

ABSENT = {
    "core": "",
    "dtypes": "",
    "typing": "",
    "errors": "",
    "custom_derivatives": "remat_opt_p",  # our remat needs no primitive of its own
    "extend.core": """
        AbstractToken CallPrimitive DebugInfo Token call_impl
    """,  # there are no tokens, calls of wrapped functions, or tags to name
    "api_util": "",
    "extend.backend": """
        backend_xla_version clear_in_memory_compilation_cache get_compile_options
        ifrt_proxy register_backend_cache register_backend_factory
    """,  # of XLA and its plugins
    "extend.linear_util": "Callable",  # a name that JAX imports there
    "extend.random": "threefry2x32_p",  # made of other primitives
    "extend.source_info_util": """
        NameStack SourceInfo current_name_stack extend_name_stack new_name_stack
        reset_name_stack set_name_stack transform_name_stack user_context
    """,  # equations keep a line, and no stack of names
    "extend.core.primitives": """
        after_all_p approx_top_k_p bessel_i0e_p bessel_i1e_p
        create_token_p eq_to_p get_p igamma_grad_a_p igamma_p igammac_p
        le_to_p lt_to_p polygamma_p ragged_all_to_all_p reduce_p
        regularized_incomplete_beta_p rng_bit_generator_p rng_uniform_p
        select_and_gather_add_p select_and_scatter_add_p select_and_scatter_p
        swap_p threefry2x32_p zeta_p
    """,  # of what is made of other primitives here
}

SHARDED = "how a result is laid out on several devices: the chapter on many devices"
NAMED_AXES = "a keyword of explicit sharding: the chapter on many devices"
GONE = "JAX accepts one value of it, which is its default"
KEYWORDS = {
    "grad": {"reduce_axes": GONE},
    "linear_transpose": {"reduce_axes": GONE},
    "value_and_grad": {"reduce_axes": GONE},
    "vjp": {"reduce_axes": GONE},
    "vmap": {"sum_match": NAMED_AXES},
    "core.eval_jaxpr": {"propagate_source_info": "equations keep their lines"},
    "dlpack.from_dlpack": {"external_array": "it goes by position"},
    "experimental.pjit.pjit": {"compiler_options": "options of XLA's compiler"},
    "export.export": {"_override_lowering_rules": "of JAX's own tests"},
    "lax.reduce_sum": {"out_sharding": SHARDED},
    "ref.swap": {"_function_name": "of JAX's own messages"},
}


def has(space, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hasattr(space, name)


@pytest.mark.parametrize("path", ABSENT)
def test_a_namespace_has_jax_s_names_but_those_with_a_reason(path):
    ours, theirs = module("minijax", path), module("jax", path)
    names = [name for name in dir(theirs) if not name.startswith("_")]
    assert names
    lacking = {name for name in names if not has(ours, name)}
    assert lacking == {*ABSENT[path].split()}


SMALL = "extend.backend", "extend.random", "extend.source_info_util"


@pytest.mark.parametrize("path", SMALL)
def test_a_name_that_is_absent_says_why(path):
    """What is left out of the small namespaces is told by an AttributeError."""
    for name in {*ABSENT[path].split()} - {"Callable"}:
        with pytest.raises(AttributeError, match=f"{name} is not here: .{{20}}"):
            getattr(module("minijax", path), name)


@pytest.mark.parametrize("path", ["core", "dtypes", "extend.core.primitives"])
def test_a_namespace_lists_no_other_names(path):
    ours, theirs = module("minijax", path), module("jax", path)
    assert {*dir(ours)} <= {name for name in dir(theirs) if not name.startswith("_")}


def keywords(function):
    found = inspect.signature(function).parameters.values()
    kinds = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [each.name for each in found if each.kind in kinds]


def lacking_keywords(space, name):
    path = space.removeprefix("minijax").removeprefix(".")
    ours = getattr(importlib.import_module(space), name)
    with warnings.catch_warnings():  # of names that JAX gives away with a warning
        warnings.simplefilter("ignore", DeprecationWarning)
        theirs = getattr(module("jax", path), name, None)
    if inspect.isclass(ours) or inspect.isclass(theirs) or not callable(theirs):
        return path, []
    try:
        wanted, given = keywords(theirs), keywords(ours)
    except (TypeError, ValueError):
        return path, []
    return path, [keyword for keyword in wanted if keyword not in given]


def test_functions_take_jax_s_keywords_but_those_with_a_reason():
    found = {}
    shared = {space: names for space, names in PUBLIC.items() if space not in EXTEND}
    for space, names in shared.items():
        for name in names:
            path, lacking = lacking_keywords(space, name)
            if lacking and not path.startswith("extend."):  # they name what differs
                found[f"{path}.{name}".removeprefix(".")] = {*lacking}
    assert found == {name: {*why} for name, why in KEYWORDS.items()}


MOVED = """
    DropVar Effect Effects check_jaxpr concrete_or_error find_top_trace gensym
    get_opaque_trace_state jaxprs_in_params new_jaxpr_eqn no_effects valid_jaxtype
    primal_dtype_to_tangent_dtype InconclusiveDimensionOperation JaxprTypeError
""".split()


@pytest.mark.parametrize("name", MOVED)
def test_a_name_that_jax_has_moved_warns_in_its_words(name):
    theirs, _ = jax.core._deprecations[name]  # JAX itself warns once in a process
    for _ in range(2):
        with pytest.warns(DeprecationWarning) as ours:
            getattr(minijax.core, name)
        assert str(ours[0].message) == theirs.replace("jax.", "minijax.")
        assert ours[0].filename == __file__


@pytest.mark.parametrize(
    "name", ["get_aval", "mapped_aval", "subjaxprs", "traverse_jaxpr_params", "nosuch"]
)
def test_a_name_that_jax_has_removed_says_what_to_write(name):
    theirs = raised(lambda: getattr(jax.core, name))
    kind, message = raised(lambda: getattr(minijax.core, name))
    assert (kind, message) == (theirs[0], theirs[1].replace("jax.", "minijax."))


# Objects that promise an array.


def promising(j):
    """What a case needs, of one package: the package, arrays, and a class."""

    class Promise:
        def __init__(self, x):
            self.x = x

        def __jax_array__(self):
            return self.x

    jnp = j.numpy
    return SimpleNamespace(
        j=j,
        jnp=jnp,
        lax=j.lax,
        a=jnp.arange(3.0),
        w=Promise(jnp.asarray(np.float32([1, 2, 3]))),
        m=Promise(jnp.asarray(np.float32([[1, 2], [3, 4]]))),
        one=Promise(jnp.float32(1)),
        numpy=Promise(np.float32([1, 2, 3])),
        Promise=Promise,
    )


TAKEN = """
    s.a+s.w  s.a*s.w  s.a-s.w  s.w-s.a  s.a==s.w  s.a<s.w  s.a@s.w  s.a**s.w  s.w*s.a
    s.a+s.numpy  jnp.array(s.w)  jnp.asarray(s.w)  jnp.asarray([s.one,2])
    jnp.array([s.w,s.w])  jnp.array(s.w,dtype="int32")  jnp.reshape(s.w,(3,1))
    jnp.concatenate([s.w,s.w])  jnp.stack([s.w,s.w])  jnp.shape(s.w)  jnp.ndim(s.w)
    jnp.size(s.w)  jnp.zeros_like(s.w)  jnp.ones_like(s.w)
    jnp.full_like(s.w,2)  jnp.empty_like(s.w)  jnp.broadcast_to(s.w,(2,3))
    jnp.transpose(s.m)  jnp.isscalar(s.one)  jnp.isscalar(s.w)  jnp.argmax(s.w)
    jnp.expand_dims(s.w,0)  jnp.squeeze(s.w)  jnp.meshgrid(s.w,s.w)  jnp.tile(s.w,2)
    jnp.repeat(s.w,2)  jnp.roll(s.w,1)  jnp.pad(s.w,1)  jnp.split(s.w,3)
    jnp.moveaxis(s.m,0,1)  jnp.var(s.w)  jnp.astype(s.w,"int32")  jnp.diag(s.w)
    jnp.power(s.w,2)  jnp.tensordot(s.w,s.w,1)  lax.convert_element_type(s.w,"int32")
    jnp.float32(s.one)
""".split()
REFUSED = """
    jnp.sin(s.w)  jnp.add(s.w,1)  jnp.maximum(s.w,2)  jnp.where(s.w,s.w,0)
    jnp.clip(s.w,0,1)  jnp.isnan(s.w)  lax.add(s.w,s.w)  lax.sin(s.w)  lax.neg(s.one)
    lax.reshape(s.w,(3,1))  lax.concatenate([s.w,s.w],0)  lax.stop_gradient(s.w)
    lax.dot_general(s.m,s.m,(((1,),(0,)),((),())))  lax.select(True,s.w,s.w)
    j.jit(f)(s.w)  j.jit(lambda_x:s.w)(s.a)  j.grad(f)(s.one)  j.vmap(f)(s.w)
    j.jvp(f,(s.w,),(s.w,))  j.vjp(f,s.w)  j.linearize(f,s.w)  j.jacfwd(f)(s.w)
    j.jacrev(f)(s.w)  j.make_jaxpr(f)(s.w)  j.eval_shape(f,s.w)  j.device_put(s.w)
    j.typeof(s.w)  j.checkpoint(f)(s.w)  lax.cond(True,f,f,s.w)  lax.map(f,s.w)
    lax.fori_loop(0,3,lambda_i,c:c,s.one)  lax.while_loop(f,f,s.one)
    lax.scan(lambda_c,x:(c,x),s.one,s.w)
""".split()


def asked(text, j):
    s = promising(j)
    names = {"s": s, "j": j, "jnp": s.jnp, "lax": s.lax, "f": lambda x: x * 2}
    return eval(text.replace("lambda_", "lambda "), names)


def same(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        return all(map(same, ours, theirs))
    if not hasattr(theirs, "shape"):
        return ours == theirs
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
    return np.array_equal(ours, theirs)


@pytest.mark.parametrize("text", TAKEN)
def test_an_object_that_promises_an_array_is_taken_for_it(text):
    assert same(asked(text, minijax), asked(text, jax))


@pytest.mark.parametrize("text", REFUSED)
def test_where_no_promise_is_asked_the_class_of_the_error_is_jax_s(text):
    kind, theirs = raised(lambda: asked(text, jax))
    assert raised(lambda: asked(text, minijax))[0] == kind == "ValueError"
    assert "Triggering __jax_array__() during abstractification" in theirs
    assert theirs.split("registering")[0] in raised(lambda: asked(text, minijax))[1]


# Sums from a start, repeats, rolls.

ARRANGED = """
    jnp.sum(t,initial=2.5)  jnp.prod(t,initial=3)
    jnp.sum(t,axis=0,initial=jnp.float32(2))
    jnp.max(t,initial=jnp.int32(9),axis=1)  jnp.min(t,initial=-1.5)
    jnp.sum(t,initial=jnp.ones(3),axis=0)  jnp.prod(t,initial=jnp.ones((1,1)))
    jnp.max(t,axis=0,initial=jnp.ones(3))  jnp.min(t,axis=0,initial=np.ones(3))
    jnp.repeat(a,np.array([1,2,0]),total_repeat_length=5)
    jnp.repeat(a,jnp.array([1,2,0]),total_repeat_length=2)
    jnp.repeat(a,2,total_repeat_length=8)  jnp.repeat(t,jnp.array([1,2]),axis=0)
    jnp.roll(a,1)  jnp.roll(a,1.0)  jnp.roll(t,jnp.array([1,2]),axis=(0,1))
    j.jit(lambda_n:jnp.roll(a,n))(2)  j.jit(lambda_n:jnp.roll(t,n,1))(-4)
    j.jit(lambda_n:jnp.roll(t,n,(0,1)))(jnp.array([1,2]))
    j.jit(lambda_n:jnp.roll(t,n,(1,0)))(-1)  j.jit(lambda_n:jnp.roll(t,n))(7)
    j.jit(lambda_n:jnp.roll(t[:0],n,0))(7)  j.jit(lambda_n:jnp.roll(t,n,0))(np.int8(5))
    j.vmap(lambda_n:jnp.roll(t,n,1))(jnp.arange(-3,4))
    j.vmap(jnp.roll)(t,jnp.array([1,2]))  j.jit(lambda_n:jnp.roll(t,n,5))(1)
    j.jit(j.grad(lambda_a,n:(jnp.roll(a,n)*a**2).sum()))(a,1)
    j.jit(lambda_n:jnp.roll(a,n,0))(jnp.ones((2,2),int))
    j.jit(lambda_n:jnp.roll(a<1,n))(1)
""".split()


@pytest.mark.parametrize("text", ARRANGED)
def test_arrangements_are_jax_s(text):
    def run(j):
        jnp = j.numpy
        a, t = jnp.array([np.nan, -0.0, 2.5]), jnp.arange(6.0).reshape(2, 3) - 2
        names = {"a": a, "t": t, "j": j, "jnp": jnp, "np": np}
        return eval(text.replace("lambda_", "lambda "), names)

    try:
        theirs = run(jax)
    except Exception as error:
        assert raised(lambda: run(minijax))[0] == type(error).__name__
        return
    ours = run(minijax)
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
    assert np.array_equal(ours, theirs, equal_nan=True)
    assert np.array_equal(np.signbit(ours), np.signbit(theirs))


# Where and how results are made.


CREATED = """
    jnp.zeros(2,device=d)  jnp.ones((2,3),device=d)  jnp.empty(2,device=d)
    jnp.full(2,3,device=d)  jnp.zeros_like(a,device=d)  jnp.ones_like(a,device=d)
    jnp.full_like(a,7,device=d)  jnp.empty_like(a,device=d)  jnp.arange(3,device=d)
    jnp.linspace(0,1,3,device=d)  jnp.eye(2,device=d)  jnp.array([1,2],device=d)
    jnp.asarray(1.5,device=d)  jnp.astype(a,"int32",device=d)
    jnp.zeros(2,out_sharding=None)  jnp.dot(a,a,out_sharding=None)
    jnp.reshape(a,(3,1),out_sharding=None)  lax.full((2,),1.5,sharding=None)
    jnp.zeros(2,device=d,out_sharding=d)
    lax.mul(h,h,out_dtype="float32")  lax.mul(h,h,out_dtype=None)
    lax.mul(h,2.0,out_dtype="int32")  lax.exp(a,accuracy=None)
    lax.exp(a,accuracy=lax.AccuracyMode.HIGHEST)  lax.tanh(a,accuracy="high")
    lax.sin(a,accuracy=lax.Tolerance(ulps=2))  lax.Tolerance(atol=-1)  lax.Tolerance()
""".split()


@pytest.mark.parametrize("text", CREATED)
def test_keywords_mean_what_they_do_in_jax(text):
    def run(j):
        names = {"jnp": j.numpy, "lax": j.lax, "d": j.devices()[0]}
        a, h = j.numpy.array([0.5, 1.0, 2.5]), j.numpy.float16(3)
        return eval(text, names | {"a": a, "h": h})

    try:
        theirs = run(jax)
    except Exception as error:
        assert raised(lambda: run(minijax))[0] == type(error).__name__
        return
    ours = run(minijax)
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert ours.devices() == {minijax.devices()[0]}


# What is no function of arrays.


class Holder:
    @staticmethod
    def static(x):
        return x


def numbers(x):
    yield x


async def later(x):
    return x


MISTAKES = {
    "a generator function": numbers,
    "a partial generator function": functools.partial(numbers),
    "a static method": Holder.__dict__["static"],
    "a number": 3,
}


@pytest.mark.parametrize("name", ["jit", "grad", "vmap", "value_and_grad", "jacfwd"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_no_function_is_refused_in_jax_s_words(name, mistake):
    theirs = raised(lambda: getattr(jax, name)(MISTAKES[mistake]))
    kind, message = raised(lambda: getattr(minijax, name)(MISTAKES[mistake]))
    assert kind == theirs[0] == "TypeError"
    assert message.startswith(theirs[1].rstrip("."))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["jit", "vmap"])
def test_a_coroutine_function_is_refused_when_it_is_called(name):
    for j in (jax, minijax):
        function = getattr(j, name)(later)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it was never awaited
            kind, message = raised(lambda f=function, j=j: f(j.numpy.ones(2)))
            gc.collect()
        assert (kind, "coroutine" in message) == ("TypeError", True)


# Integers in gradients.


GRADIENTS = """
    j.grad(f,allow_int=True)(3)  j.grad(g,allow_int=True)(jnp.arange(3))
    j.jit(j.grad(g,allow_int=True))(jnp.arange(3))
    j.vmap(j.grad(f,allow_int=True))(jnp.arange(3))
    j.grad(g,allow_int=True)(jnp.array([True]))  j.vjp(g,jnp.arange(3))[1](1.0)[0]
    j.value_and_grad(f,allow_int=True)(3)[1]  j.jvp(h,(jnp.arange(3),),(z,))[1]
    j.linearize(h,jnp.arange(3))[1](z)  j.jit(j.grad(g,allow_int=True))(jnp.arange(2))
    j.jit(j.grad(g,allow_int=True)).lower(jnp.arange(2)).compile()(jnp.arange(2))
""".split()


@pytest.mark.parametrize("text", GRADIENTS)
def test_gradients_of_integers_are_float0(text):
    def run(j):
        z = np.zeros(3, j.dtypes.float0)
        names = {"j": j, "jnp": j.numpy, "z": z}
        names |= {"f": lambda x: x * 2.0, "g": lambda x: (x * 2.0).sum()}
        return eval(text, names | {"h": lambda x: x + 1})

    ours, theirs = run(minijax), run(jax)
    assert ours.dtype == theirs.dtype == minijax.float0 == jax.float0
    assert ours.shape == theirs.shape


def test_the_type_of_float0_is_written_as_in_jax():
    zeros = np.zeros(2, dtypes.float0)
    assert str(minijax.typeof(zeros)) == str(jax.typeof(zeros)) == "float0[2]"


# jax.dtypes and jax.extend.core.


SAME = [1, 2.5, 1j, True, np.float16(1), np.int8(3), "float32", np.uint8, float, int]


@pytest.mark.parametrize("x", SAME, ids=str)
@pytest.mark.parametrize("y", [*SAME, np.arange(3)], ids=str)
def test_result_types_and_their_weakness_are_jax_s(x, y):
    ours = dtypes.result_type(x, y, return_weak_type_flag=True)
    assert ours == jax_dtypes.result_type(x, y, return_weak_type_flag=True)


@pytest.mark.parametrize("x", [*SAME, "bfloat16", dtypes.float0], ids=str)
@pytest.mark.parametrize(
    "name", ["scalar_type_of", "itemsize_bits", "canonicalize_dtype"]
)
def test_questions_about_types_have_jax_s_answers(name, x):
    try:
        theirs = getattr(jax_dtypes, name)(x)
    except Exception as error:
        assert raised(lambda: getattr(dtypes, name)(x))[0] == type(error).__name__
        return
    assert getattr(dtypes, name)(x) == theirs


def test_keys_are_of_an_extended_dtype():
    for j, space in ((jax, jax_dtypes), (minijax, dtypes)):
        key = j.random.key(0)
        kinds = space.prng_key, space.extended, np.generic, np.number, np.inexact
        found = [space.issubdtype(key.dtype, kind) for kind in kinds]
        assert found == [True, True, True, False, False]
        assert not any(j.numpy.issubdtype(np.float32, kind) for kind in kinds[:2])
        assert "extended dtype key<fry>" in raised(
            lambda s=space, k=key: s.canonicalize_dtype(k.dtype)
        )[1]


def test_traces_are_asked_the_same_questions():
    def answers(j, core):
        found = []

        def look(x):
            found.append(core.unsafe_am_i_under_a_jit_DO_NOT_USE())
            found.append(core.unsafe_am_i_under_a_vmap_DO_NOT_USE())
            found.append(core.unsafe_get_axis_names_DO_NOT_USE())
            found.append(core.nonempty_axis_env_DO_NOT_USE())
            return x * 2

        x = j.numpy.ones((2, 3))
        look(x)
        j.jit(look)(x)
        j.vmap(look, axis_name="a")(x)
        j.jit(j.vmap(j.vmap(look, axis_name="b"), axis_name="a"))(x)
        j.vmap(j.jit(look))(x + 0)
        j.grad(lambda x: look(x).sum())(x)
        return found

    assert answers(minijax, core) == answers(jax, jax_core)


@pytest.mark.filterwarnings("ignore:core.Jaxpr is missing a DebugInfo")
def test_an_equation_made_by_hand_runs():
    for j, space in ((jax, jax_core), (minijax, core)):
        var = space.gensym()
        aval = j.core.ShapedArray((3,), np.dtype("float32"))
        x, y = var(aval), var(aval)
        eqn = space.new_jaxpr_eqn(
            [x], [y], space.primitives.neg_p, {}, space.no_effects
        )
        jaxpr = space.Jaxpr([], [x], [y], [eqn])
        [result] = j.core.eval_jaxpr(jaxpr, [], j.numpy.arange(3.0))
        assert np.array_equal(result, [0, -1, -2])
        assert isinstance(x, j.core.Atom) and isinstance(aval, j.core.AbstractValue)


def test_batches_and_examples_have_jax_s_types():
    for axis in (0, 1, 2, None):
        texts = []
        for j, space in ((jax, jax_core), (minijax, core)):
            aval = j.core.ShapedArray((4, 4, 4), np.dtype("int32"))
            pair = space.mapped_aval(4, axis, aval), space.unmapped_aval(5, axis, aval)
            texts.append([*map(str, pair)])
        assert texts[0] == texts[1]


def test_values_are_asked_for_in_jax_s_classes():
    for j, space in ((jax, jax_core), (minijax, core)):
        assert space.concrete_or_error(int, j.numpy.int32(3)) == 3
        assert space.concrete_or_error(None, 4.5) == 4.5
        ask = j.jit(lambda x, s=space: s.concrete_or_error(int, x, "It is a size."))
        kind, message = raised(lambda f=ask: f(1))
        assert kind == "ConcretizationTypeError" and "It is a size." in message
        assert [space.valid_jaxtype(x) for x in (1.5, np.ones(2), "x", None)] == [
            True, True, False, False
        ]  # fmt: skip
        assert space.primal_dtype_to_tangent_dtype(np.dtype("int32")) == j.float0


def test_a_moment_can_be_compared_with_another():
    for j, space in ((jax, jax_core), (minijax, core)):
        before, inside = space.get_opaque_trace_state(), []

        def look(x, space=space, inside=inside):
            inside.append(space.get_opaque_trace_state())
            with space.take_current_trace():
                inside.append(space.get_opaque_trace_state())
            return x

        j.jit(look)(1.0)
        assert before == space.get_opaque_trace_state()
        assert before != inside[0] and inside[0] != inside[1]
