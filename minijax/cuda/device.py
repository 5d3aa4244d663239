"""A GPU as a device: arrays live there, and programs are CUDA C.

Reference: ``jax.devices("gpu")``.
"""

# Made from chapters/35_device.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.array import ShapedArray, asbuffer, eval_rules
from minijax.arrays.devices import Device, host_device
from minijax.cpu_backend.program_codegen import unalias_outputs
from minijax.cuda.driver import (
    CudaContext,
    DeviceBuffer,
    call_device_program,
    device_allocate,
    enqueue_program,
    offsets_with_readbacks,
)
from minijax.cuda.host_steps import StreamProgram, captured_series, use_cublas
from minijax.cuda.program_steps import (
    cuda_source,
    launches_in,
    may_overwrite_on_gpu,
    program_for_gpu,
    source_line,
)
from minijax.fusion.fusion_pass import fuse
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from minijax.jitting.compilation import default_device_scope
from minijax.kernels.lowering import jaxpr_passes, kernel_rules, lower
from minijax.llvm.targets import TARGETS
from minijax.memory.buffer_assignment import plan_memory
from minijax.rematerialization.caching import cache_key_of_params, weakref_cache

# A GPU as a device: arrays live there, and operations are programs that run there.


class NamedCudaDevice(Device):
    """A card under the name that JAX gives it.

    Args:
      id: number of the card.

    Attributes:
      card: the `CudaContext`.
    """

    def __init__(self, id):
        super().__init__("gpu", id, None)
        self.card = CudaContext(id)
        self.device_kind = self.card.name

    def __repr__(self):
        kind = "EmulatedCuda" if self.card.name == "EmulatedCuda" else "CudaDevice"
        return f"{kind}(id={self.id})"

    def __str__(self):
        return f"cuda:{self.id}"


def evaluated_on_the_host(device, primitive, compute, buffers, params, avals):
    """Return the buffers of what NumPy makes of copies of the operands."""
    copies, host = [device.fetch(x) for x in buffers], host_device()
    with default_device_scope(host.uncommitted):
        found = host.evaluate(primitive, compute, copies, params, avals)
    return list(map(device.put, found))


class DeviceProgramCache(dict):
    """Programs of single operations, which `clear_caches` forgets."""

    def unlock(self):
        """Do nothing after a fork: there is no lock."""


_programs = weakref_cache()


class CudaDeviceStorage(NamedCudaDevice):
    """A card as a place for arrays, whose buffers are `DeviceBuffer`."""

    def put(self, x, dtype=None):
        """Return a buffer on the card with the numbers of an array of the host."""
        numbers = np.asarray(x, dtype, order="C")
        data = device_allocate(self.card, numbers.nbytes, "a copy").fill(numbers)
        return DeviceBuffer(data, numbers.shape, numbers.dtype)

    def fetch(self, buffer):
        """Return the numbers of a buffer, when they are there."""
        numbers = buffer.numbers()
        numbers.flags.writeable = False
        return numbers

    def seal(self, buffer):
        """Refuse what is no buffer of a card."""
        if type(buffer) is not DeviceBuffer:
            raise TypeError(f"{self} was given a {type(buffer).__name__} for a buffer.")

    def wait(self, buffer):
        """Return when the numbers of a buffer are there."""
        self.card.wait()

    def is_ready(self, buffer):
        """Return whether the numbers of a buffer are there."""
        return self.card.is_done


# Programs for a GPU: CUDA C for their kernels, and the order of launches.


def lower_for_gpu(closed, card=None):
    """Return the `LoweredProgram` of a program: launches, where a card can do it."""
    with default_device_scope(
        host_device().uncommitted
    ):  # for what is computed at once
        program = unalias_outputs(lower(jaxpr_passes.value(closed)))
        program = program_for_gpu(fuse(program, TARGETS["gpu"]))
    return use_cublas(program, card) if card else program


class CudaProgram(StreamProgram):
    """A program whose kernels run on a GPU, in the order in which the host asks.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.
      donated: for each input whether its memory may be written to; () for none.
      device: the `CudaDevice`.

    Attributes:
      lowered, plan: its `LoweredProgram` and its `MemoryPlan`.
      text: the CUDA C of its kernels.
      arenas: memory for what is between the results, while no call uses it.
      offsets, room: where what is between lies in an arena, and how large that is.
    """

    platforms, donates, per_device = ("gpu",), True, True

    def __init__(self, closed, name="program", donated=(), device=None):
        self.name, self.line, self.out_avals = (
            name,
            source_line(closed),
            closed.out_avals,
        )
        self.device, self.card, self.placement = device, device.card, device.uncommitted
        steps = lower_for_gpu(closed, device.card)
        self.plan = plan_memory(steps, donated, may_overwrite_on_gpu)
        self.lowered = self.plan.planned
        self.offsets, self.room = offsets_with_readbacks(self.plan)
        self.launches, self.arenas = launches_in(self.lowered), []
        self.text, labels = cuda_source(self.launches.values())
        self.functions = self.card.load(self.text, labels) if labels else {}
        consts = self.lowered.constants
        self.constants = {x: asbuffer(value, device).bytes for x, value in consts}
        self.steps = self.series(self.lowered.steps)

    def __call__(self, *args):
        """Return the list of results."""
        return call_device_program(self, args)


def device_program(device, primitive, types, params, avals):
    """Return the program of one operation on a device, which keeps it."""
    key = primitive, cache_key_of_params(params), types, tuple(avals)
    if key not in device.programs:
        ins, outs = list(map(Var, types)), list(map(Var, avals))
        jaxpr = Jaxpr([], ins, outs, [JaxprEqn(ins, outs, primitive, params)])
        closed = ClosedJaxpr(jaxpr, [])
        device.programs[key] = CudaProgram(closed, primitive.name, device=device)
    return device.programs[key]


class CudaDevice(CudaDeviceStorage):
    """A GPU, where operations are programs of one equation.

    Attributes:
      programs: from primitives with their parameters and types to their programs.
    """

    def __init__(self, id):
        super().__init__(id)
        self.programs = _programs.setdefault(self, DeviceProgramCache())

    def evaluate(self, primitive, compute, buffers, params, avals):
        """Return the buffers of what a primitive makes of others."""
        if primitive not in kernel_rules or compute is not eval_rules.get(primitive):
            given = primitive, compute, buffers, params, avals
            return evaluated_on_the_host(self, *given)
        types = tuple([ShapedArray(x.shape, x.dtype) for x in buffers])
        program = device_program(self, primitive, types, params, avals)
        return enqueue_program(program, [x.bytes for x in buffers])


class GraphProgram(CudaProgram):
    """A program for a GPU that records launches which come again."""

    def series(self, steps):
        """Return functions of the memory that do steps, one after the other."""
        return captured_series(self, steps)
