"""Stand-ins for private names of JAX that packages import all the same."""

# Made from chapters/42_as_jax_ground.md by `make chapter`;
# edit the chapter, not this file.

import inspect
from typing import Any, NamedTuple, TypeVar

import numpy as np

import minijax
from minijax.core import EvalTrace, current_trace
from minijax.extend.core import Primitive
from minijax.tree_util import default_registry


class StandIn(NamedTuple):
    """What a private name of JAX is here.

    Attributes:
      users: the packages whose sources ask for it.
      value: the object, if it has no other place.
      place: the public name in minijax of the same thing.
    """

    users: str
    value: Any = None
    place: str = ""


def stand_ins(users, module, **values):
    """Return rows of the table: names of one module, and what they are."""
    return {
        f"jax.{module}.{name}": StandIn(users, value) for name, value in values.items()
    }


def elsewhere(users, module, place, names):
    """Return rows for names of a private module that are public in one place."""
    return {
        f"jax.{module}.{name}": StandIn(users, place=f"{place}.{name}")
        for name in names.split()
    }


_FLAX_CHECKIFY = "Error checkify user_checks"
PUBLIC_ELSEWHERE = {
    **elsewhere("flax", "_src.core", "minijax.core", "ShapedArray"),
    **elsewhere("equinox", "_src.dtypes", "minijax.dtypes", "TypePromotionError"),
    **elsewhere("flax", "_src.dtypes", "minijax.dtypes", "extended finfo"),
    **elsewhere(
        "flax", "_src.checkify", "minijax.experimental.checkify", _FLAX_CHECKIFY
    ),
    **stand_ins("flax", "_src.checkify", Out=TypeVar("Out")),
    "jax._src.checkify.JaxException": StandIn(
        "flax", place="minijax.experimental.checkify.JaxRuntimeError"
    ),
    **elsewhere(
        "tfp", "core", "minijax.interpreters.xla", "pytype_aval_mappings"
    ),
    **elsewhere(
        "blackjax", "_src.flatten_util", "minijax.flatten_util", "ravel_pytree"
    ),
}


def _empty_class(name, why, *bases):
    """Return a class without instances, which says why when it is called."""

    def __new__(cls, *args, **kwargs):
        if cls is made:
            raise NotImplementedError(f"{name} is a name without instances: {why}")
        return object.__new__(cls)

    made = type(name, bases, {"__new__": __new__, "__doc__": why})
    return made


_LITERALS = "a literal of a program is a NumPy array here."
_EXTENDED = "the only dtype that NumPy lacks here is that of keys."
EMPTY_CLASSES = {
    **stand_ins(
        "equinox jaxtyping",
        "_src.literals",
        LiteralArray=_empty_class("LiteralArray", _LITERALS),
        TypedNdArray=_empty_class("TypedNdArray", _LITERALS),
    ),
    **stand_ins(
        "flax",
        "_src.dtypes",
        DType=np.dtype,
        ExtendedDType=_empty_class("ExtendedDType", _EXTENDED),
    ),
}


_exclude_paths: list[str] = []


def api_boundary(function=None, **_):
    """Return a function as it is; errors of minijax begin at the user's line."""
    return (lambda wrapped: wrapped) if function is None else function


def include_frame(frame):
    """Return whether a frame is the user's: neither ours nor of an excluded file."""
    name, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
    return not name.startswith("minijax.") and file not in _exclude_paths


def wait_for_tokens():
    """Return at once: calls of jitted functions have no queue."""


NOTHING_TO_DO = {
    **stand_ins("equinox", "_src.dispatch", wait_for_tokens=wait_for_tokens),
    **stand_ins("chex", "_src.xla_bridge", _backends=None),
    **stand_ins(
        "equinox flax jaxtyping",
        "_src.traceback_util",
        register_exclusion=_exclude_paths.append,
        api_boundary=api_boundary,
        include_frame=include_frame,
        _exclude_paths=_exclude_paths,
    ),
}


def trace_state_clean():
    """Whether no transformation is at work: operations are computed at once."""
    return isinstance(current_trace(), EvalTrace)


def to_complex_dtype(dtype):
    """Return the complex dtype whose parts have a dtype, at least of 32 bits.

    Integers of 32 bits and less become parts of 32 bits, as JAX promotes them.
    """
    wide = ("int64", "uint64", "float64", "complex128")
    return np.dtype(np.complex128 if np.dtype(dtype).name in wide else np.complex64)


def supports_inf(dtype):
    """Whether a dtype of floats has an infinity."""
    return bool(np.isinf(np.asarray(np.inf).astype(dtype)))


_TOLERANCES = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "complex64": 1e-6}
_TOLERANCES |= {"float64": 1e-15, "complex128": 1e-15}


def _tolerance(given, *arrays):
    """Return a tolerance: a number, by dtype, or what is usual for a dtype."""
    if given is not None and not isinstance(given, dict):
        return given
    given = given or {}
    names = {k if isinstance(k, str) else np.dtype(k).name: given[k] for k in given}
    return max((_TOLERANCES | names).get(each.dtype.name, 0.0) for each in arrays)


def check_close(xs, ys, atol=None, rtol=None, err_msg=""):
    """Raise an AssertionError unless two trees have nearly the same numbers.

    Args:
      xs, ys: trees of arrays.
      atol, rtol: tolerances for each element, numbers or by the names of dtypes; they
        are multiplied by the number of elements, as in JAX.
      err_msg: is shown with the error.
    """
    for x, y in zip(*map(minijax.tree.leaves, (xs, ys)), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        near, far = _tolerance(atol, x, y) * x.size, _tolerance(rtol, x, y) * y.size
        np.testing.assert_allclose(x, y, rtol=far, atol=near, err_msg=err_msg)


_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


def infer_argnums_and_argnames(signature, argnums, argnames):
    """Return positions and names of static arguments, each inferred from the other."""
    names, positional = [*signature.parameters], {_EITHER}
    if argnums is None and argnames is None:
        return (), ()
    as_tuple = lambda x: (x,) if isinstance(x, int | str) else tuple(x)  # noqa: E731
    kinds = {name: p.kind for name, p in signature.parameters.items()}
    if argnums is None:
        found = [name for name in as_tuple(argnames) if kinds.get(name) in positional]
        return tuple(map(names.index, found)), as_tuple(argnames)
    given = as_tuple(argnums)
    if argnames is None:
        argnames = [names[i] for i in given if kinds[names[i]] in positional]
    return given, as_tuple(argnames)


class NodeClasses:
    """Answers ``class in registry``."""

    def __contains__(self, cls):
        return default_registry.is_node(cls)


ANSWERS = {
    **stand_ins("numpyro", "_src.core", trace_state_clean=trace_state_clean),
    **stand_ins("lineax", "_src.ad_util", stop_gradient_p=Primitive("stop_gradient")),
    **stand_ins("tinygp", "_src.dtypes", to_complex_dtype=to_complex_dtype),
    **stand_ins("flax", "_src.dtypes", supports_inf=supports_inf),
    **stand_ins("tinygp", "_src.public_test_util", check_close=check_close),
    **stand_ins("flax", "_src.tree_util", _registry=NodeClasses()),
    **stand_ins(
        "e3nn-jax",
        "_src.api_util",
        infer_argnums_and_argnames=infer_argnums_and_argnames,
    ),
}


_OPERATION: Any = _empty_class("HiPrimitive", "types of libraries are not here.")


class HiPrimitive(_OPERATION):
    """The base of operations on types of a library, which refuse to run."""

    def __call__(self, *_, **__):
        raise NotImplementedError(
            f"{type(self).__name__} is an operation of jax.experimental.hijax: types "
            "that a library brings into programs are not here. In flax, leave the "
            "option hijax off."
        )


def aval_method(function):
    """Return a method as it is; there are no types of libraries to ask for it."""
    return function


class _Effects:
    def add_type(self, kind):
        """Do nothing: effects of libraries do not occur."""


_TYPES = "AbstractValue MutableHiType AvalQDD AvalMutableQDD"
_NO_TYPES = "types that a library brings into programs are not here."
HIJAX = {
    **stand_ins(
        "flax",
        "experimental.hijax",
        **{name: _empty_class(name, _NO_TYPES) for name in _TYPES.split()},
        HiPrimitive=HiPrimitive,
        aval_method=aval_method,
        aval_property=property,
        control_flow_allowed_effects=_Effects(),
        register_hitype=lambda kind, to_aval: None,
    ),
    **elsewhere(
        "flax",
        "experimental.hijax",
        "minijax.interpreters.ad",
        "Zero instantiate_zeros is_undefined_primal",
    ),
    **stand_ins(
        "flax",
        "_src.state.types",
        AbstractRef=_empty_class("AbstractRef", "a reference is its own type here."),
    ),
}
STAND_INS = PUBLIC_ELSEWHERE | EMPTY_CLASSES | NOTHING_TO_DO | ANSWERS | HIJAX
