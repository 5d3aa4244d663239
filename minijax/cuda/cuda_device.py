"""A GPU as a device: arrays live there, and operations are programs that run there.

Reference: ``jax.devices("gpu")``.
"""

# Made from chapters/35_device.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.array import computations
from minijax.arrays.avals import ShapedArray
from minijax.arrays.placement import Device, host_device
from minijax.cuda.device_memory import CardBuffer, room, run
from minijax.cuda.driver import Card
from minijax.cuda.programs import CudaProgram
from minijax.forgetting.remembering import cache_by_object, key_of_params
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from minijax.jitting.compilation import on_device_of
from minijax.kernels.program_steps import kernel_rules


class NamedCard(Device):
    """A card under the name that JAX gives it.

    Args:
      id: number of the card.

    Attributes:
      card: the `Card`.
    """

    def __init__(self, id):
        super().__init__("gpu", id, None)
        self.card = Card(id)
        self.device_kind = self.card.name

    def __repr__(self):
        kind = "EmulatedCuda" if self.card.name == "EmulatedCuda" else "CudaDevice"
        return f"{kind}(id={self.id})"

    def __str__(self):
        return f"cuda:{self.id}"


def evaluated_on_the_host(device, primitive, compute, buffers, params, avals):
    """Return the buffers of what NumPy makes of copies of the operands."""
    copies, host = [device.fetch(x) for x in buffers], host_device()
    with on_device_of(host.uncommitted):
        found = host.evaluate(primitive, compute, copies, params, avals)
    return list(map(device.put, found))


class Programs(dict):
    """Programs of single operations, which `clear_caches` forgets."""

    def unlock(self):
        """Do nothing after a fork: there is no lock."""


_programs = cache_by_object()


class CardStore(NamedCard):
    """A card as a place for arrays, whose buffers are `CardBuffer`."""

    def put(self, x, dtype=None):
        """Return a buffer on the card with the numbers of an array of the host."""
        numbers = np.asarray(x, dtype, order="C")
        data = room(self.card, numbers.nbytes, "a copy").fill(numbers)
        return CardBuffer(data, numbers.shape, numbers.dtype)

    def fetch(self, buffer):
        """Return the numbers of a buffer, when they are there."""
        numbers = buffer.numbers()
        numbers.flags.writeable = False
        return numbers

    def seal(self, buffer):
        """Refuse what is no buffer of a card."""
        if type(buffer) is not CardBuffer:
            raise TypeError(f"{self} was given a {type(buffer).__name__} for a buffer.")

    def wait(self, buffer):
        """Return when the numbers of a buffer are there."""
        self.card.wait()

    def is_ready(self, buffer):
        """Return whether the numbers of a buffer are there."""
        return self.card.is_done


def program_of(device, primitive, types, params, avals):
    """Return the program of one operation on a device, which keeps it."""
    key = primitive, key_of_params(params), types, tuple(avals)
    if key not in device.programs:
        ins, outs = list(map(Var, types)), list(map(Var, avals))
        jaxpr = Jaxpr([], ins, outs, [JaxprEqn(ins, outs, primitive, params)])
        closed = ClosedJaxpr(jaxpr, [])
        device.programs[key] = CudaProgram(closed, primitive.name, device=device)
    return device.programs[key]


class CudaDevice(CardStore):
    """A GPU, where operations are programs of one equation.

    Attributes:
      programs: from primitives with their parameters and types to their programs.
    """

    def __init__(self, id):
        super().__init__(id)
        self.programs = _programs.setdefault(self, Programs())

    def evaluate(self, primitive, compute, buffers, params, avals):
        """Return the buffers of what a primitive makes of others."""
        if primitive not in kernel_rules or compute is not computations.get(primitive):
            given = primitive, compute, buffers, params, avals
            return evaluated_on_the_host(self, *given)
        types = tuple([ShapedArray(x.shape, x.dtype) for x in buffers])
        program = program_of(self, primitive, types, params, avals)
        return run(program, [x.bytes for x in buffers])
