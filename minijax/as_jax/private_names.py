"""Stand-ins for private names of JAX that packages import all the same."""

# Made from chapters/42_as_jax_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any, NamedTuple

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
    """Return rows of the table: names of one private module, and what they are."""
    return {
        f"jax._src.{module}.{name}": StandIn(users, value)
        for name, value in values.items()
    }


def elsewhere(users, module, place, names):
    """Return rows for names of a private module that are public in one place."""
    return {
        f"jax._src.{module}.{name}": StandIn(users, place=f"{place}.{name}")
        for name in names.split()
    }


_FLAX_CHECKIFY = "Error checkify user_checks"
PUBLIC_ELSEWHERE = {
    **elsewhere("flax", "core", "minijax.core", "ShapedArray"),
    **elsewhere("equinox", "dtypes", "minijax.dtypes", "TypePromotionError"),
    **elsewhere("flax", "dtypes", "minijax.dtypes", "extended finfo"),
    **elsewhere("flax", "checkify", "minijax.experimental.checkify", _FLAX_CHECKIFY),
    **elsewhere("blackjax", "flatten_util", "minijax.flatten_util", "ravel_pytree"),
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
        "literals",
        LiteralArray=_empty_class("LiteralArray", _LITERALS),
        TypedNdArray=_empty_class("TypedNdArray", _LITERALS),
    ),
    **stand_ins(
        "flax",
        "dtypes",
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
    **stand_ins("equinox", "dispatch", wait_for_tokens=wait_for_tokens),
    **stand_ins("chex", "xla_bridge", _backends=None),
    **stand_ins(
        "equinox flax jaxtyping",
        "traceback_util",
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
    """Return the complex dtype whose parts have a dtype, at least of 32 bits."""
    return np.result_type(dtype, np.complex64)


def supports_inf(dtype):
    """Whether a dtype of floats has an infinity."""
    return bool(np.isinf(np.asarray(np.inf).astype(dtype)))


_TOLERANCES = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "complex64": 1e-6}
_TOLERANCES |= {"float64": 1e-15, "complex128": 1e-15}


def check_close(xs, ys, atol=None, rtol=None, err_msg=""):
    """Raise an AssertionError unless two trees have nearly the same numbers.

    Args:
      xs, ys: trees of arrays.
      atol, rtol: tolerances for each element, which are multiplied by the number of
        elements, as in JAX; by default they depend on the dtype.
      err_msg: is shown with the error.
    """
    for x, y in zip(*map(minijax.tree.leaves, (xs, ys)), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        usual = max(_TOLERANCES.get(each.dtype.name, 0.0) for each in (x, y))
        near, far = (usual if each is None else each for each in (atol, rtol))
        near, far = near * x.size, far * y.size
        np.testing.assert_allclose(x, y, rtol=far, atol=near, err_msg=err_msg)


class NodeClasses:
    """Answers ``class in registry``."""

    def __contains__(self, cls):
        return default_registry.is_node(cls)


ANSWERS = {
    **stand_ins("numpyro", "core", trace_state_clean=trace_state_clean),
    **stand_ins("lineax", "ad_util", stop_gradient_p=Primitive("stop_gradient")),
    **stand_ins("tinygp", "dtypes", to_complex_dtype=to_complex_dtype),
    **stand_ins("flax", "dtypes", supports_inf=supports_inf),
    **stand_ins("tinygp", "public_test_util", check_close=check_close),
    **stand_ins("flax", "tree_util", _registry=NodeClasses()),
}
STAND_INS = PUBLIC_ELSEWHERE | EMPTY_CLASSES | NOTHING_TO_DO | ANSWERS
