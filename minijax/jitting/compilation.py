"""From a program to something that runs it: backends, and what they have made.

Reference: ``jax.stages.Compiled``.
"""

# Made from chapters/12_jit_ground.md by `make chapter`;
# edit the chapter, not this file.

import copy
import operator
import os
from contextlib import nullcontext

from minijax._registry import Registry
from minijax.arrays.array import ArrayImpl, asarray_impl, asbuffer
from minijax.arrays.interchange import placement_of
from minijax.arrays.placement import default_placement
from minijax.arrays.settings import config
from minijax.arrays.transfer import brought
from minijax.core import EvalTrace, set_current_trace
from minijax.forgetting.programs import only, prune
from minijax.forgetting.remembering import cache_by_object, once_of
from minijax.jaxprs.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.jaxprs.latest import Latest
from minijax.jitting.shardings import with_wishes_inside

# From names to functions of a `ClosedJaxpr` and its name that make an executable: a
# callable from arrays to a list of arrays, with `text` and its results' `placement`.
backends: dict = Registry()


class Interpreter:
    """Runs a program one equation at a time.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.
    """

    placement = None

    def __init__(self, closed, name="program"):
        self.jaxpr, self.consts, self.name = closed.jaxpr, closed.consts, name
        self.out_avals = closed.out_avals

    text = property(lambda self: str(self.jaxpr))

    def __call__(self, *args):
        """Return the list of results."""
        inside = config.override("minijax_backend", "interpreter")
        with set_current_trace(EvalTrace()), inside, on_device_of(self.placement):
            outs = eval_jaxpr(self.jaxpr, self.consts, *args)
        return [_typed(*pair, self.placement) for pair in zip(outs, self.out_avals)]


backends["interpreter"] = Interpreter


config.define("minijax_backend", os.environ.get("MINIJAX_BACKEND"), lambda name: name)
default_backend = Latest("interpreter")
# By platform; the interpreter serves all.
default_backends = Registry({"cpu": default_backend})

# What returns the kind of processor that code is made for, as a switch names it.
processor: Latest = Latest(lambda: None)

# From names to functions of a `ClosedJaxpr`, its name, and the flags of donated inputs
# that return a text: what the program looks like on the way to an executable.
dialects: dict = Registry()

# What a program means: a function of a `ClosedJaxpr` that returns the one to be run.
canonical: Latest = Latest(lambda closed: closed)


def _typed(x, aval, placement):
    """Return a result as an array; one that is a literal is as weak as it was."""
    x = asarray_impl(x)
    placement = placement or x.placement
    if x.aval == aval and x.placement is placement:
        return x
    return ArrayImpl(asbuffer(x, placement.device), aval, placement)


def on_device_of(placement):
    """Return a context manager inside which new arrays are on the same device."""
    if placement is None or placement.device is default_placement().device:
        return nullcontext()
    return config.override("jax_default_device", placement.device)


def backend_name(name=None, platform=None):
    """Return the name of a backend: this one, the configured, or a platform's default.

    Raises:
      RuntimeError: if there is no such backend, or if it is for other platforms.
    """
    platform = platform or default_placement().device.platform
    latest = default_backends.get(platform)
    name = name or config.minijax_backend or (latest.value if latest else "interpreter")
    if name not in backends:
        known = ", ".join(backends)
        raise RuntimeError(f"Unknown backend {name!r}; there are: {known}.")
    serves = getattr(backends[name], "platforms", (platform,))
    if platform not in serves:
        raise RuntimeError(
            f"The backend {name!r} makes programs for {', '.join(serves)}; this one is "
            f"to run on {platform}."
        )
    return name


def compile_context():
    """Return what compiling depends on, besides the program."""
    return config.minijax_backend, config.jax_enable_x64, processor.value()


def without_waste(closed):
    """Return a program without the equations that neither results nor effects need."""
    return prune(closed)[0]


def _options(backend, donated, device):
    """Return the keyword arguments that a backend takes besides program and name.

    One with a true attribute `donates` takes `donated`; with `per_device`, `device`.
    """
    takes = any(donated) and getattr(backend, "donates", False)
    options = {"device": device} if getattr(backend, "per_device", False) else {}
    return options | ({"donated": tuple(donated)} if takes else {})


def _with_consts_on(closed, device):
    """Return a program whose constants are on a device, and uncommitted."""
    consts = [
        x
        if not isinstance(x, ArrayImpl) or x.placement is device.uncommitted
        else ArrayImpl(asbuffer(x, device), x.aval, device.uncommitted)
        for x in closed.consts
    ]
    same = all(map(operator.is_, consts, closed.consts))
    return closed if same else ClosedJaxpr(closed.jaxpr, consts)


def _at(executable, placement):
    """Return an executable with another placement of its results."""
    if getattr(executable, "placement", placement) is placement:
        return executable
    twin = copy.copy(executable)
    twin.placement = placement
    return twin


def place_to_run(args, name, *programs):
    """Return the `Placement` of a loop: that of its operands, or asked for inside it.

    Args:
      args: operands.
      name: of the operation, for messages.
      *programs: those that it runs.

    Raises:
      ValueError: if two of all these are committed to different devices.
    """
    return with_wishes_inside(placement_of(args, name), name, *programs)


def run_program(closed, args, backend=None, name="program", placement=None):
    """Run a program where its operands are, and return the list of results.

    Operands that no result needs have no say in where that is.

    Args:
      closed: a `ClosedJaxpr`.
      args: its operands.
      backend, name: see `compiled`.
      placement: where to run it instead.
    """
    default = default_placement()
    if placement is None and any(
        isinstance(x, ArrayImpl) and x.placement is not default for x in args
    ):
        needed = prune(closed)[1]
        labels = [f"args[{i}]" for i in only(needed, range(len(args)))]
        placement = placement_of(list(only(needed, args)), name, labels)
    placement = with_wishes_inside(placement or default, name, closed)
    args = brought(args, placement.device)
    return compiled(closed, backend, name, placement=placement)(*args)


_executables = cache_by_object()


def compiled(closed, backend=None, name="program", donated=(), placement=None):
    """Return the executable of a program; it is made once for each device.

    Args:
      closed: a `ClosedJaxpr`.
      backend: the name of a backend, or None for the default of the platform.
      name: what the program is called.
      donated: for each input whether its memory may be written to; () for none.
      placement: where operands are, and results will be; None for the default.
    """
    placement = placement or default_placement()
    device = placement.device
    backend = backend_name(backend, device.platform)
    options = _options(backends[backend], donated, device)
    key = backend, compile_context(), options.get("donated"), placement.sharding
    once = once_of(_executables, closed)
    if (value := once.values.get(key)) is not None:
        return _at(value, placement)
    with once.turn(key):
        if (value := once.values.get(key)) is None:
            program = without_waste(canonical.value(closed))
            program = _with_consts_on(program, device)
            value = backends[backend](program, name, **options)
            if hasattr(value, "placement"):
                value.placement = placement
            once.offer(key, value)
    return _at(value, placement)
