"""The interface of the package autograd, made of JAX's, so that its tests can run.

Its functions take one place of an argument, and several, and give lists for lists; the
gradient of a complex number is the conjugate of JAX's.
"""

import builtins
import functools
import sys
import types

import jax
import numpy as onp

jax.config.update("jax_enable_x64", True)
dict, isinstance, list, tuple, type = (
    builtins.dict,
    builtins.isinstance,
    builtins.list,
    builtins.tuple,
    builtins.type,
)


def conjugated(tree):
    return jax.tree_util.tree_map(
        lambda x: x.conj() if jax.numpy.iscomplexobj(x) else x, tree
    )


def of_places(operator):
    """An operator on functions of one thing, for functions of several."""

    @functools.wraps(operator)
    def of_some(fun, argnum=0, *rest, **settings):
        def called(*args, **words):
            def alone(x):
                full = builtins.list(args)
                places = (argnum,) if builtins.isinstance(argnum, int) else argnum
                values = (x,) if builtins.isinstance(argnum, int) else x
                for place, value in zip(places, values, strict=True):
                    full[place] = value
                return fun(*full, **words)

            x = (
                args[argnum]
                if builtins.isinstance(argnum, int)
                else builtins.tuple(args[i] for i in argnum)
            )
            return operator(alone, x, *rest, **settings)

        return called

    return of_some


def ones(tree):
    return jax.tree_util.tree_map(jax.numpy.ones_like, tree)


@of_places
def make_vjp(fun, x):
    answer, back = jax.vjp(fun, x)
    return (lambda g: conjugated(back(conjugated(g))[0])), answer


@of_places
def make_jvp(fun, x):
    return lambda v: jax.jvp(fun, (x,), (v,))


@of_places
def value_and_grad(fun, x):
    answer, back = jax.vjp(fun, x)
    if jax.numpy.size(answer) != 1:
        raise TypeError("value_and_grad is of functions with one number as a result")
    return answer, conjugated(back(ones(answer))[0])


@of_places
def grad(fun, x):
    answer, back = jax.vjp(fun, x)
    if jax.numpy.size(answer) != 1:
        raise TypeError("Grad only applies to real scalar-output functions.")
    return conjugated(back(ones(answer))[0])


@of_places
def elementwise_grad(fun, x):
    answer, back = jax.vjp(fun, x)
    if jax.numpy.iscomplexobj(answer):
        raise TypeError("Elementwise_grad only applies to real-output functions.")
    return back(ones(answer))[0]


@of_places
def deriv(fun, x):
    return jax.jvp(fun, (x,), (ones(x),))[1]


@of_places
def jacobian(fun, x):
    return jax.jacrev(fun, holomorphic=jax.numpy.iscomplexobj(x))(x)


@of_places
def holomorphic_grad(fun, x):
    return grad(lambda x: jax.numpy.real(fun(x)))(x)


@of_places
def hessian(fun, x):
    return jax.hessian(fun)(x)


@of_places
def make_hvp(fun, x):
    answer, back = jax.vjp(jax.grad(fun), x)
    return (lambda v: back(v)[0]), answer


@of_places
def grad_and_aux(fun, x):
    return jax.grad(fun, has_aux=True)(x)


def hessian_tensor_product(fun, argnum=0):
    def dotted(*args, **words):
        *args, vector = args
        return jax.numpy.tensordot(
            grad(fun, argnum)(*args, **words), vector, jax.numpy.ndim(vector)
        )

    return grad(dotted, argnum)


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun, argnum=0):
    def dotted(*args, **words):
        *args, vector = args
        return jax.numpy.tensordot(vector, fun(*args, **words), jax.numpy.ndim(vector))

    return jacobian(dotted, argnum)


vector_jacobian_product = tensor_jacobian_product


def make_ggnvp(fun, g=lambda x: jax.numpy.sum(x**2, axis=-1) / 2, f_argnum=0):
    @of_places
    def product(fun, x):
        value, back = jax.vjp(fun, x)

        def of_vector(v):
            moved = jax.jvp(fun, (x,), (v,))[1]
            return back(jax.jvp(jax.grad(g), (value,), (moved,))[1])[0]

        return of_vector

    return product(fun, f_argnum)


def grad_named(fun, name):
    return grad(fun, fun.__code__.co_varnames.index(name))


checkpoint = jax.checkpoint


def module(name, source, **more):
    """A module of this name with the names of another."""
    made = types.ModuleType(f"autograd.{name}")
    made.__path__ = []
    made.__getattr__ = functools.partial(getattr, source)
    vars(made).update(more)
    sys.modules[made.__name__] = made
    return made


numpy = module(
    "numpy",
    jax.numpy,
    __version__=onp.__version__,
    random=module("numpy.random", onp.random),
    linalg=module("numpy.linalg", jax.numpy.linalg),
    fft=module("numpy.fft", jax.numpy.fft),
)
core = module("core", builtins, make_vjp=make_vjp)
wrap_util = module("wrap_util", builtins, unary_to_nary=of_places)
tracer = module("tracer", builtins, isbox=lambda x: isinstance(x, jax.core.Tracer))
builtins_ = module("builtins", builtins)


def of_scipy(name):
    """`jax.scipy.x` under the name `autograd.scipy.x`; empty if there is none."""
    try:
        source = __import__(f"jax.scipy.{name}", fromlist=["x"])
    except ImportError:
        source = builtins  # none of its names
    return module(f"scipy.{name}", source)


def flatten(tree):
    flat, back = jax.flatten_util.ravel_pytree(tree)
    return flat, back


PARTS = ("special", "linalg", "stats", "signal", "integrate")
scipy = module("scipy", jax.scipy, **{name: of_scipy(name) for name in PARTS})
for _law in (
    "norm",
    "t",
    "beta",
    "gamma",
    "chi2",
    "poisson",
    "dirichlet",
    "multivariate_normal",
    "bernoulli",
    "uniform",
):
    of_scipy(f"stats.{_law}")
misc = module("misc", builtins, flatten=flatten)
