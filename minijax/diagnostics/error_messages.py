"""What is said of errors about tracers; guards around each public function.

References: ``jax.errors``, ``jax._src.traceback_util.api_boundary``.
"""

# Made from chapters/08_errors_rest.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/26_calls_rest.md: public_with_boundary (aa1c00f6).

import inspect
import re
from inspect import unwrap
from types import FunctionType

from minijax import errors
from minijax._lazy import decorators
from minijax.arrays.dtypes import dtype_kind
from minijax.arrays.interchange import BufferInterop
from minijax.core import Tracer, check_leaked_tracers, tracer_methods
from minijax.diagnostics.source_info import (
    UserLine,
    argument_name_of,
    defining_line,
    innermost_jaxpr_tracer,
)
from minijax.diagnostics.tracebacks import (
    API_BOUNDARY_CODE,
    api_boundary,
    describe_operand,
    explainers,
    is_internal_file,
    is_tracer_error,
    name_in,
    raise_if_leaked,
    wrap_result_in_boundary,
)
from minijax.jaxprs.jaxpr import JaxprTracer
from minijax.jaxprs.types import Hook, ancestor_argument_positions
from minijax.numpy import array_methods as syntax
from minijax.numpy import operators as array_methods
from minijax.numpy import operators as conversions
from minijax.pytrees.api_util import FlatCall

# What is said of errors about tracers, and of calls that a transformation refuses.


def frame_running(scene, function):
    """Return the innermost frame of ours that runs a function, or None."""
    code = function.__code__
    return next((f for f in reversed(scene.below) if f.f_code is code), None)


def about_leaks(error, scene):
    """Say of a tracer that is used after its time who made it, and in which line."""
    frame = frame_running(scene, check_leaked_tracers)
    if frame is None:
        return []
    line = f"The line that used it: {scene.line.brief}"
    return [*birth_of(frame.f_locals["arg"]), line]


def birth_of(tracer):
    """Return lines that say which transformation made a tracer, and where."""
    lines = [f"It was made by {maker(tracer)}."]
    inner = recorded(tracer)
    if inner is not None and (source := defining_line(inner)):
        lines.append(f"The line that made it: {source.brief}")
    if inner is not None and (found := argument_name_of(inner)):
        lines.append(f"It is {found}.")
    return lines


MAKERS = {"JVPTrace": "jvp", "BatchTrace": "vmap"}


def recorded(tracer):
    """Return a `JaxprTracer` in which a tracer is written down, or its tangent."""
    inner = innermost_jaxpr_tracer(tracer)
    return (
        innermost_jaxpr_tracer(getattr(tracer, "tangent", None))
        if inner is None
        else inner
    )


def maker(tracer):
    """Return the name of the transformation that made a tracer, and of what."""
    inner = innermost_jaxpr_tracer(tracer)
    if inner is None:
        is_linearized = isinstance(getattr(tracer, "tangent", None), JaxprTracer)
        kind = type(tracer._trace).__name__
        return "grad, vjp or linearize" if is_linearized else MAKERS.get(kind, kind)
    origin = inner._trace.origin
    who = origin.transformation or "a transformation"
    return f"{who} of {origin.function}" if origin.function else who


REMEDIES = {
    errors.TracerBoolConversionError: "jnp.where(test, a, b) chooses between values, "
    "lax.cond(test, f, g, x) between computations.",
    errors.TracerIntegerConversionError: "A length, an axis or an index that Python "
    "asks for must be known when the program is written; lax.fori_loop counts in the "
    "program.",
    errors.TracerArrayConversionError: "Use the function of minijax.numpy, or "
    "pure_callback for a function that has no other form.",
    errors.NonConcreteBooleanIndexError: "jnp.where(mask, x, 0) keeps the shape.",
    errors.ConcretizationTypeError: "x.astype(dtype) converts in the program.",
}

SHAPES = "Shapes are part of the program and must be known."
KNOWN = "What is part of the program must be known when it is written."


def remedy_for(error):
    """Return what to do about a number that is missing, or None for other errors."""
    text = str(error)
    if "Shapes must be" in text or "decide the shape" in text:
        return SHAPES
    converts = re.search(r"in \w+\(\)", text)
    asks = type(error) is errors.ConcretizationTypeError and not converts
    if asks or "concrete values" in text:
        return "" if "part of" in text else KNOWN
    return next((REMEDIES[c] for c in type(error).__mro__ if c in REMEDIES), None)


def missing(scene):
    """Return the tracer whose number was asked for, most likely, or None."""
    tracers = [x for x in scene.operands if isinstance(x, Tracer)]
    whole = [x for x in tracers if not x.shape and dtype_kind(x.dtype) in "bi"]
    return next(iter(whole + tracers), None)


def about_numbers(error, scene):
    """Say where Python asked for a number that a tracer lacks, and what to do."""
    remedy, tracer = remedy_for(error), missing(scene)
    if tracer is None or remedy is None:
        return []
    lines = [f"The line that asked: {scene.line.brief}"]
    inner = innermost_jaxpr_tracer(tracer)
    if is_tracer_error(error) and name_in(scene.frame, tracer):
        lines.append(describe_operand(scene, "first", tracer))
    if inner is not None and (why := inner.provenance()) not in str(error):
        lines.append(why)
    return list(filter(None, [*lines, f"{remedy} {static_advice(inner)}".strip()]))


def static_advice(tracer):
    """Return how to make the arguments static that a tracer depends on, or nothing."""
    if tracer is None or tracer._trace.origin.argument_names is None:
        return ""
    trace = tracer._trace
    positions = ancestor_argument_positions(tracer.variable, trace.invars, trace.eqns)
    scalars = [i for i in positions if not trace.invars[i].aval.shape]
    found = {re.split(r"\W", trace.origin.argument_names()[i])[0] for i in scalars}
    whole = [i for i in scalars if dtype_kind(trace.invars[i].aval.dtype) in "bi"]
    if not whole or len(scalars) < len(positions):
        return ""
    advice = as_static(trace.origin.argument_names.__self__, sorted(found))
    return advice and f"If {' and '.join(sorted(found))} may be known: {advice}."


def as_static(call, names):
    """Return the sentence that says how some parameters of a call become static."""
    known = list(inspect.signature(call.fun).parameters)
    numbers = [known.index(name) for name in names if name in known]
    if len(numbers) < len(names):
        return ""
    nums = numbers[0] if len(numbers) == 1 else tuple(numbers)
    return f"{call.name}(..., static_argnums={nums})"


def definition(fun):
    """Return the `UserLine` of the first line of a user's function, or None."""
    code = getattr(inspect.unwrap(fun) if callable(fun) else None, "__code__", None)
    ours = code is None or is_internal_file(code.co_filename)
    return None if ours else UserLine(code, 0)


def about_calls(error, scene):
    """Say of a call that a transformation refuses where its function is written."""
    held = [f.f_locals.get(name) for f in scene.below for name in ("call", "self")]
    call = next((c for c in reversed(held) if isinstance(c, FlatCall)), None)
    found = definition(call and call.fun)
    if found is None or is_tracer_error(error):
        return []
    lines = [f"{call.fun_name} is defined in {found.place}"]
    frame = frame_running(scene, FlatCall._input_aval)
    if frame is not None and call.name in ("jit", "make_jaxpr"):
        name = re.split(r"\W", call.name_of(frame.f_locals["i"]))[0]
        advice = as_static(call, [name])
        lines.append(f"What is no array may be static, if it has a hash: {advice}")
    return lines


def about_rules(error, scene):
    """Say of a rule of the user's that returns something wrong where it is written."""
    held = [frame.f_locals.get("self") for frame in reversed(scene.below)]
    rules = [getattr(owner, "rule", None) for owner in held]
    found = next(((r, d) for r in rules if r and (d := definition(r))), None)
    if found is None:
        return []
    name = inspect.unwrap(found[0]).__name__
    return [f"The rule {name} is defined in {found[1].place}"]


def about_keys(error, scene):
    """Say what a sampler wants in the place of a key."""
    if "PRNG key data" not in str(error) or not scene.below:
        return []
    keyless = [f for f in scene.below if "key" in f.f_code.co_varnames]
    names = [f.f_code.co_name for f in keyless if not f.f_code.co_name.startswith("_")]
    what = names[0] if names else "it"
    return [
        f"The first argument of {what} is a key: random.key(0) makes one of a seed, "
        "split(key) more of one."
    ]


explainers += [about_leaks, about_numbers, about_calls, about_rules, about_keys]


def about_leaks_looked_for(error, scene):
    """Say of tracers that a transformation has left who made them, and where."""
    frame = frame_running(scene, raise_if_leaked)
    if frame is None:
        return []
    return [line for tracer in frame.f_locals["tracers"] for line in birth_of(tracer)]


explainers.append(about_leaks_looked_for)


# API boundaries: a guard around each public function and each method of arrays.

_public: dict = {}  # from a function to the one that its user gets

# Packages of functions that JAX wraps in `jit`, which takes containers apart, and those
# of their functions that ask a container for its type.
OF_CONTAINERS = {"numpy", "nn", "scipy", "random", "image", "ops"}
OF_TYPES = {
    *"full_like zeros_like ones_like empty_like shape ndim size result_type".split(),
    *"iscomplexobj isrealobj promote_types issubdtype isdtype can_cast".split(),
    *"finfo iinfo dtype".split(),
}


# Folders whose functions in `lax` take functions, or speak of devices or of programs.
OF_FUNCTIONS = {
    *"batching collectives control_flow custom_derivatives rematerialization".split(),
    *"scans spmd stablehlo".split(),
}


# What returns, for a function of arrays, one that does the same and may have plans.
eager_function_hook: Hook = Hook(lambda function: function)


def public_with_boundary(value, package="minijax.numpy"):
    """Return a public object as its user gets it from a package: always the same."""
    if type(value) is not FunctionType:
        guard_brackets(type(value))
        return value
    [folder] = package.split(".")[1:2] or [""]
    of_types = value.__name__ in OF_TYPES
    keeps_promises = folder in OF_CONTAINERS and not of_types
    has_plans = folder == "lax" and is_of_arrays(value) and not of_types
    key = value, keeps_promises, has_plans
    if key not in _public:
        made = value
        if keeps_promises or has_plans:
            made = eager_function_hook.value(value)
        _public[key] = wrap_result_in_boundary(made, keeps_promises)
    return _public[key]


def is_of_arrays(function):
    """Return whether a function of `lax` is one of arrays alone, by its folder."""
    name = getattr(unwrap(function), "__globals__", {}).get("__name__", "")
    return OF_FUNCTIONS.isdisjoint(name.split(".")[1:2])


def guard_brackets(kind):
    """Put a guard around the brackets of a class of the package, as that of `r_`."""
    brackets = vars(kind).get("__getitem__")
    code = brackets.__code__ if type(brackets) is FunctionType else API_BOUNDARY_CODE
    if code is not API_BOUNDARY_CODE and is_internal_file(code.co_filename):
        kind.__getitem__ = api_boundary(brackets)


decorators.append(public_with_boundary)


# The modules that fill the table of methods; they have to be there first.
FILLED = syntax, array_methods, conversions


method_boundaries: dict = {}  # from the function that a method was to its guard


def guard_methods():
    """Put a guard around the methods of arrays that have none of their own."""
    for name, method in list(tracer_methods.items()):
        own = name.startswith("__") and name not in ASKED
        has_guard = getattr(method, "__code__", None) is API_BOUNDARY_CODE
        if type(method) is FunctionType and not own and not has_guard:
            method_boundaries[method] = api_boundary(method, keeps_promises=True)
            tracer_methods.supersede(name, method, method_boundaries[method])
    for name in TEXT_METHODS:
        setattr(BufferInterop, name, api_boundary(getattr(BufferInterop, name)))


# What Python asks of an array in other words than those of operators.
ASKED = {
    f"__{name}__"
    for name in "bool float int index complex getitem setitem iter len".split()
}
# What Python asks of the array itself, which may have been deleted.
TEXT_METHODS = "__repr__", "__str__", "__format__", "__array__"
guard_methods()
