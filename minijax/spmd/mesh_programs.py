"""A backend for arrays in parts: programs are written anew for the ways they are cut.

Reference: the SPMD executables of XLA.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial

from minijax.arrays.array import asarray_impl
from minijax.arrays.placement import default_placement
from minijax.forgetting.programs import has_effects
from minijax.forgetting.remembering import Once
from minijax.jaxprs.latest import Latest
from minijax.jitting.compilation import backends, default_backends
from minijax.replicas.named_shardings import operations_together
from minijax.replicas.partition_specs import lies_like
from minijax.replicas.sharded_maps import MeshProgram, entries, mesh_program
from minijax.spmd.exchanging import (
    InStep,
    compute_in_parts,
    cuts_of,
    elsewhere,
    fits_in_step,
    fits_replicas,
    mesh_of,
    on_first,
    spec_of,
)
from minijax.spmd.notes import noting
from minijax.spmd.spreading import program_of_device


class Plan:
    """A program of one device, for inputs that are cut in one way.

    Args:
      closed, mesh, specs: see `program_of_device`.
      name: what the program is called.
    """

    def __init__(self, closed, mesh, specs, name):
        with noting(mesh) as notes:
            local, outs = program_of_device(closed, mesh, specs)
        self.mesh, self.name, self.gatherings = mesh, name, notes.lines
        self.ins, self.outs = (tuple(map(spec_of, cuts)) for cuts in (specs, outs))
        make = mesh_program if fits_replicas(local.jaxpr, mesh) else InStep
        in_step = make is not InStep or fits_in_step(local.jaxpr)
        if has_effects(local.jaxpr) or not in_step:
            make, local, self.gatherings = partial(on_first, name), closed, []
        self.local, run = local, make(local, mesh, self.ins, self.outs)
        self.run = elsewhere(run, notes.asked) if any(notes.asked) else run

    @property
    def text(self):
        """How inputs and results are cut, what was gathered, the program of one."""
        head = f"{self.name} on {self.mesh}: {[*self.ins]} -> {[*self.outs]}"
        return "\n".join([head, *self.gatherings, str(self.local)])


class SpreadProgram:
    """Runs a program on all devices of a mesh, written anew for each way to cut inputs.

    Args:
      closed: a `ClosedJaxpr`, for whole arrays.
      name: what the program is called.
    """

    platforms, placement = ("mesh",), None

    def __init__(self, closed, name="program"):
        self.closed, self.name, self._plans = closed, name, Once()
        self._last: tuple = [], None

    @property
    def text(self):
        """The programs of one device that were written so far, or that of all."""
        plans = self._plans.values.values()
        return "\n\n".join(x.text for x in plans) or str(self.closed.jaxpr)

    def __call__(self, *args):
        arrays = list(map(asarray_impl, args))
        last, places = self._last, [self.placement, *[x.placement for x in arrays]]
        if places != last[0]:
            last = self._last = places, self._plan(arrays)
        return last[1].run(arrays)

    def entry_at(self, places):
        """Return the `Entry` for arrays at placements that came last, or None."""
        (known, plan), default = self._last, default_placement()
        program = plan and plan.run
        came = {None: default, default: self.placement}  # it was brought here
        found = [self.placement, *[came.get(place, place) for place in places]]
        if known != found or type(program) is not MeshProgram:
            return None
        rows = zip(places, program.in_placements, self.closed.in_avals)
        alike = all(
            to.sharding.is_fully_replicated if place in came
            else lies_like(place, to, aval.ndim) for place, to, aval in rows
        )  # fmt: skip
        return entries.value(program) if alike else None

    def _plan(self, arrays):
        mesh = mesh_of([x.sharding for x in arrays], self.placement.sharding.mesh)
        specs = tuple([cuts_of(x.sharding, mesh, x.ndim) for x in arrays])
        key = self.closed, mesh, specs, self.name
        return self._plans.get(key, lambda: Plan(*key))


backends["spmd"] = SpreadProgram
default_backends["mesh"] = Latest("spmd")
operations_together.value = compute_in_parts
